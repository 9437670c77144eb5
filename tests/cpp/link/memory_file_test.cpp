#include "cpp/link/memory_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

/// What the pwrite() below does, in place of the C library's: it stands for a kernel that has no
/// more pages, that is interrupted, or that writes less than it was told.
struct Kernel {
    off_t pages_until = std::numeric_limits<off_t>::max();  // no pages beyond this byte
    int error = ENOSPC;                                     // and what it then says
    std::size_t most_at_once = std::numeric_limits<std::size_t>::max();
    unsigned signals = 0;  // that interrupt the next calls
    unsigned calls = 0;
} kernel;

}  // namespace

extern "C" ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
    ++kernel.calls;
    if (kernel.signals > 0) {
        --kernel.signals;
        errno = EINTR;
        return -1;
    }
    const off_t room = kernel.pages_until - offset;
    if (room <= 0) {
        errno = kernel.error;
        return -1;
    }
    const std::size_t most = std::min(kernel.most_at_once, static_cast<std::size_t>(room));
    return syscall(SYS_pwrite64, file, bytes, std::min(size, most), offset);
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

    void seal_and_expect(std::size_t size) {
        ASSERT_TRUE(file_.seal().ok());
        ASSERT_EQ(file_.size(), size);
        struct stat found {};
        ASSERT_EQ(fstat(file_.descriptor(), &found), 0);
        ASSERT_EQ(static_cast<std::size_t>(found.st_size), size);
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
    ASSERT_TRUE(append(kMegabyte, 4096).ok());
    seal_and_expect(44 * kMegabyte);
    EXPECT_EQ(bytes_in_memory(), 44 * kMegabyte);
}

TEST_F(MemoryFileTest, KeepsPiecesOfAllLengths) {
    std::size_t size = 0;
    for (const std::size_t piece : {1, 4095, 100'000, 262'143, 262'144, 262'145, 3, 3'000'000, 7}) {
        ASSERT_TRUE(append(3 * piece, piece).ok());
        size += 3 * piece;
    }
    seal_and_expect(size);
}

TEST_F(MemoryFileTest, IsAFileEvenWithoutBytes) {
    ASSERT_TRUE(file_.append({}).ok());
    seal_and_expect(0);
    EXPECT_EQ(file_.data(), nullptr);
}

TEST_F(MemoryFileTest, WritesSmallPiecesTogether) {
    ASSERT_TRUE(append(10 * kMegabyte, 100).ok());
    EXPECT_LE(kernel.calls, 41u);
    kernel.calls = 0;
    MemoryFile small;
    const std::uint8_t byte = 1;
    ASSERT_TRUE(small.append({&byte, 1}).ok());
    EXPECT_EQ(kernel.calls, 0u);
    ASSERT_TRUE(small.seal().ok());
    EXPECT_EQ(kernel.calls, 1u);
}

TEST_F(MemoryFileTest, SaysThatThereIsNoMemory) {
    for (const int error : {ENOSPC, ENOMEM, EFBIG}) {
        kernel = {};
        kernel.error = error;
        kernel.pages_until = 10 * kMegabyte;
        file_.release_descriptor();
        const Status status = append(11 * kMegabyte, kMegabyte / 4 - 1);
        EXPECT_EQ(status.code(), ErrorCode::out_of_memory) << status.message();
    }
    // What was there is of use still, and what came only in part is none of it.
    const std::size_t before = file_.size();
    EXPECT_EQ(file_.append(std::vector<std::uint8_t>(kMegabyte)).code(), ErrorCode::out_of_memory);
    EXPECT_EQ(file_.size(), before);
    kernel.pages_until = 11 * kMegabyte;
    seal_and_expect(before);
}

TEST_F(MemoryFileTest, HasNoBytesOfAnAppendThatFailed) {
    ASSERT_TRUE(append(kMegabyte, kMegabyte).ok());
    kernel.pages_until = 3 * kMegabyte;
    EXPECT_FALSE(append(5 * kMegabyte, 5 * kMegabyte).ok());
    seal_and_expect(kMegabyte);
}

TEST_F(MemoryFileTest, TellsOtherErrors) {
    kernel.pages_until = 0;
    kernel.error = EOPNOTSUPP;
    const Status status = append(kMegabyte, kMegabyte);
    EXPECT_EQ(status.code(), ErrorCode::io_error);
    EXPECT_EQ(status.message(), "could not grow a file in memory: Operation not supported");
}

TEST_F(MemoryFileTest, GrowsAmongSignalsAndShortWrites) {
    kernel.signals = 3;
    kernel.most_at_once = 100'000;
    ASSERT_TRUE(append(5 * kMegabyte, 5 * kMegabyte).ok());
    EXPECT_EQ(kernel.signals, 0u);
    seal_and_expect(5 * kMegabyte);
}

TEST_F(MemoryFileTest, ReadsWhatIsThere) {
    auto file = new_memory_file();
    ASSERT_TRUE(file.ok());
    const std::vector<std::uint8_t> bytes{1, 2, 3, 4, 5};
    ASSERT_TRUE(write_file(file->get(), bytes, 0).ok());
    std::vector<std::uint8_t> some(3);
    EXPECT_TRUE(read_file(file->get(), some, 1).ok());
    EXPECT_EQ(some, (std::vector<std::uint8_t>{2, 3, 4}));
    EXPECT_EQ(read_file(file->get(), some, 3).code(), ErrorCode::io_error);
    EXPECT_EQ(read_file(-1, some, 0).code(), ErrorCode::io_error);
}

TEST_F(MemoryFileTest, IsEmptyAfterItWasHandedOver) {
    ASSERT_TRUE(append(2 * kMegabyte, kMegabyte).ok());
    ASSERT_TRUE(file_.seal().ok());
    const FileDescriptor first = file_.release_descriptor();
    EXPECT_EQ(file_.size(), 0u);
    EXPECT_EQ(file_.data(), nullptr);
    ASSERT_TRUE(append(kMegabyte, 1000).ok());
    EXPECT_GE(bytes_in_memory(), kMegabyte / 2);
    EXPECT_GE(first.get(), 0);
}

}  // namespace
}  // namespace gputext
