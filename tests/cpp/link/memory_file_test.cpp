#include "cpp/link/memory_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace {

/// What the fallocate() below does, in place of the C library's: it stands for a kernel that has no
/// more pages, or that is interrupted.
struct Kernel {
    off_t pages_until = std::numeric_limits<off_t>::max();  // no pages beyond this byte
    int error = ENOSPC;                                     // and what it then says
    off_t most_between_signals = std::numeric_limits<off_t>::max();
    std::uint64_t reserved_until = 0;
    unsigned calls = 0, interrupted = 0;
} kernel;

}  // namespace

extern "C" int fallocate(int file, int mode, off_t from, off_t size) noexcept {
    ++kernel.calls;
    if (size > kernel.most_between_signals) {
        ++kernel.interrupted;
        errno = EINTR;
        return -1;
    }
    if (from + size > kernel.pages_until) {
        errno = kernel.error;
        return -1;
    }
    kernel.reserved_until = static_cast<std::uint64_t>(from + size);
    return static_cast<int>(syscall(SYS_fallocate, file, mode, from, size));
}

namespace gputext {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

class MemoryFileTest : public testing::Test {
protected:
    void SetUp() override { kernel = {}; }

    /// Appends bytes that say where they are; returns the first error.
    Status append(std::size_t bytes, std::size_t piece) {
        std::vector<std::uint8_t> values(piece);
        for (std::size_t done = 0; done < bytes; done += piece) {
            for (std::size_t i = 0; i < piece; ++i)
                values[i] = static_cast<std::uint8_t>((file_.size() + i) % 251);
            if (Status status = file_.append(values); !status.ok()) return status;
        }
        return {};
    }

    void expect_bytes(std::size_t size) {
        ASSERT_EQ(file_.size(), size);
        for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(file_.data()[i], i % 251) << "byte " << i;
    }

    std::uint64_t bytes_in_memory() const {
        struct stat found {};
        EXPECT_EQ(fstat(file_.descriptor(), &found), 0);
        return static_cast<std::uint64_t>(found.st_blocks) * 512;
    }

    MemoryFile file_;
};

TEST_F(MemoryFileTest, KeepsWhatIsAppended) {
    ASSERT_TRUE(append(3 * kMegabyte, 1).ok());
    ASSERT_TRUE(append(40 * kMegabyte, 5 * kMegabyte).ok());
    expect_bytes(43 * kMegabyte);
    ASSERT_TRUE(file_.seal().ok());
    expect_bytes(43 * kMegabyte);
    EXPECT_EQ(bytes_in_memory(), 43 * kMegabyte);
}

TEST_F(MemoryFileTest, NeverWritesToAPageThatItHasNotReserved) {
    for (std::size_t piece : {1, 4095, 4096, 100'000, 3'000'000}) {
        for (int i = 0; i < 20; ++i) {
            ASSERT_TRUE(append(piece, piece).ok());
            ASSERT_LE(file_.size(), kernel.reserved_until);
        }
    }
}

TEST_F(MemoryFileTest, TakesLittleMoreThanItHolds) {
    for (int i = 0; i < 150; ++i) {
        ASSERT_TRUE(append(kMegabyte, kMegabyte).ok());
        const std::uint64_t spare = std::min(file_.size() / 8, 16 * kMegabyte);
        ASSERT_LE(bytes_in_memory(), file_.size() + spare + 4096);
    }
    EXPECT_LT(kernel.calls, 100u);
    MemoryFile small;
    const std::uint8_t byte = 1;
    ASSERT_TRUE(small.append({&byte, 1}).ok());
    EXPECT_EQ(kernel.reserved_until, 65536u);
}

/// With vm.overcommit_memory = 2 a write through the mapping would be SIGBUS.
TEST_F(MemoryFileTest, SaysThatThereIsNoMemory) {
    for (const int error : {ENOSPC, ENOMEM, EFBIG}) {
        kernel = {};
        kernel.error = error;
        kernel.pages_until = 10 * kMegabyte;
        file_.release_descriptor();
        const Status status = append(11 * kMegabyte, kMegabyte / 4);
        EXPECT_EQ(status.code(), ErrorCode::out_of_memory) << status.message();
        expect_bytes(10 * kMegabyte);
    }
    // What was there is of use still.
    kernel.pages_until += kMegabyte;
    ASSERT_TRUE(append(kMegabyte, kMegabyte).ok());
    ASSERT_TRUE(file_.seal().ok());
    expect_bytes(11 * kMegabyte);
}

TEST_F(MemoryFileTest, TellsOtherErrors) {
    kernel.pages_until = 0;
    kernel.error = EOPNOTSUPP;
    const Status status = append(1, 1);
    EXPECT_EQ(status.code(), ErrorCode::io_error);
    EXPECT_EQ(status.message(), "could not grow a file in memory: Operation not supported");
}

TEST_F(MemoryFileTest, GrowsAmongSignals) {
    kernel.most_between_signals = 100'000;
    ASSERT_TRUE(append(5 * kMegabyte, 5 * kMegabyte).ok());
    EXPECT_GT(kernel.interrupted, 0u);
    expect_bytes(5 * kMegabyte);
}

TEST_F(MemoryFileTest, IsEmptyAfterItWasHandedOver) {
    ASSERT_TRUE(append(2 * kMegabyte, kMegabyte).ok());
    const FileDescriptor first = file_.release_descriptor();
    EXPECT_EQ(file_.size(), 0u);
    ASSERT_TRUE(append(kMegabyte, 1000).ok());
    EXPECT_GE(bytes_in_memory(), kMegabyte);
    EXPECT_GE(first.get(), 0);
}

}  // namespace
}  // namespace gputext
