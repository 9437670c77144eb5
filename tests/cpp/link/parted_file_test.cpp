#include "cpp/link/memory_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
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
    std::size_t most_at_once = std::numeric_limits<std::size_t>::max();
    unsigned signals = 0;  // that interrupt the next calls
    int error = 0;         // of every call, when there is one
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
    if (kernel.error != 0) {
        errno = kernel.error;
        return -1;
    }
    return syscall(SYS_pwrite64, file, bytes, std::min(size, kernel.most_at_once), offset);
}

namespace gputext {
namespace {

const std::uint64_t kPart = 2 * page_size();

/// Bytes that differ from page to page.
std::vector<std::uint8_t> pattern(std::size_t size) {
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(1 + i % 251);
    return bytes;
}

class PartedFileTest : public testing::Test {
protected:
    void SetUp() override { kernel = {}; }

    void expect_bytes(const std::vector<std::uint8_t>& bytes) {
        ASSERT_EQ(file_.size(), bytes.size());
        ASSERT_TRUE(file_.map().ok());
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), file_.data()));
    }

    PartedFile file_;
};

std::uint64_t size_of(int descriptor) {
    struct stat found {};
    EXPECT_EQ(fstat(descriptor, &found), 0);
    return static_cast<std::uint64_t>(found.st_size);
}

TEST_F(PartedFileTest, IsAsLongAsItsPartsTogether) {
    const std::uint64_t page = page_size();
    for (const std::uint64_t size :
         {std::uint64_t{0}, std::uint64_t{1}, page, kPart - 1, kPart, kPart + 1, 3 * kPart,
          kMostParts * kPart - 5, kMostParts * kPart}) {
        ASSERT_TRUE(file_.create(size, kPart).ok()) << size;
        const FileParts parts = file_.parts();
        std::uint64_t sum = 0;
        for (const int part : parts.descriptors()) {
            EXPECT_EQ(sum % kPart, 0u);
            sum += size_of(part);
        }
        EXPECT_EQ(sum, size);
        EXPECT_TRUE(parts.shape().hold(size));
        ASSERT_TRUE(file_.seal().ok());
        expect_bytes(std::vector<std::uint8_t>(size));
    }
}

TEST_F(PartedFileTest, TakesNoMemoryForWhatNobodyHasWritten) {
    ASSERT_TRUE(file_.create(kMostParts << 30, std::uint64_t{1} << 30).ok());
    const std::uint8_t byte = 7;
    ASSERT_TRUE(file_.write((std::uint64_t{20} << 30) + 5, {&byte, 1}).ok());
    std::uint64_t blocks = 0;
    const FileParts parts = file_.parts();
    for (const int part : parts.descriptors()) {
        struct stat found {};
        ASSERT_EQ(fstat(part, &found), 0);
        blocks += static_cast<std::uint64_t>(found.st_blocks);
    }
    EXPECT_EQ(blocks * 512, page_size());
    ASSERT_TRUE(file_.seal().ok());
    ASSERT_TRUE(file_.map().ok());
    EXPECT_EQ(file_.data()[(std::uint64_t{20} << 30) + 5], byte);
}

TEST_F(PartedFileTest, KeepsWhatIsWrittenOverBorders) {
    const auto bytes = pattern(5 * kPart + 100);
    for (const std::size_t piece : {std::size_t{977}, std::size_t{3 * kPart + 1}, bytes.size()}) {
        ASSERT_TRUE(file_.create(bytes.size(), kPart).ok());
        for (std::size_t begin = 0; begin < bytes.size(); begin += piece) {
            const auto part = std::span(bytes).subspan(begin);
            ASSERT_TRUE(file_.write(begin, part.first(std::min(piece, part.size()))).ok());
        }
        ASSERT_TRUE(file_.seal().ok());
        expect_bytes(bytes);
    }
}

/// As a worker does that has its own descriptors.
TEST_F(PartedFileTest, KeepsWhatIsWrittenThroughItsPaths) {
    const auto bytes = pattern(3 * kPart);
    ASSERT_TRUE(file_.create(bytes.size(), kPart).ok());
    for (std::size_t part = 0; part < 3; ++part) {
        const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" +
                                 std::to_string(file_.parts().descriptors()[part]);
        const FileDescriptor own(open(path.c_str(), O_RDWR | O_CLOEXEC));
        ASSERT_TRUE(own.valid());
        ASSERT_EQ(pwrite(own.get(), bytes.data() + part * kPart, kPart, 0),
                  static_cast<ssize_t>(kPart));
    }
    ASSERT_TRUE(file_.seal().ok());
    expect_bytes(bytes);
}

TEST_F(PartedFileTest, GoesOnAfterSignalsAndShortWrites) {
    const auto bytes = pattern(2 * kPart);
    ASSERT_TRUE(file_.create(bytes.size(), kPart).ok());
    kernel.signals = 3;
    kernel.most_at_once = 1000;
    ASSERT_TRUE(file_.write(0, bytes).ok());
    EXPECT_GT(kernel.calls, 3 + bytes.size() / 1000);
    ASSERT_TRUE(file_.seal().ok());
    expect_bytes(bytes);
}

TEST_F(PartedFileTest, SaysWhyItCouldNotWrite) {
    const std::uint8_t byte = 1;
    ASSERT_TRUE(file_.create(kPart, kPart).ok());
    for (const int error : {ENOSPC, ENOMEM, EFBIG}) {
        kernel.error = error;
        EXPECT_EQ(file_.write(0, {&byte, 1}).code(), ErrorCode::out_of_memory);
    }
    kernel.error = EIO;
    const Status status = file_.write(0, {&byte, 1});
    EXPECT_EQ(status.code(), ErrorCode::io_error);
    EXPECT_EQ(status.message(), "could not grow a file in memory: Input/output error");
}

TEST_F(PartedFileTest, RefusesBytesBehindItsEnd) {
    const auto bytes = pattern(kPart);
    EXPECT_EQ(file_.write(0, bytes).code(), ErrorCode::invalid_argument);
    ASSERT_TRUE(file_.create(kPart + 1, kPart).ok());
    EXPECT_TRUE(file_.write(1, bytes).ok());
    EXPECT_TRUE(file_.write(kPart + 1, {}).ok());
    EXPECT_EQ(file_.write(2, bytes).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(file_.write(kPart + 2, {}).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(file_.write(UINT64_MAX, bytes).code(), ErrorCode::invalid_argument);
}

TEST_F(PartedFileTest, RefusesPartsThatCannotBe) {
    EXPECT_EQ(file_.create(100, 0).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(file_.create(100, page_size() + 1).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(file_.create(kMostParts * kPart + 1, kPart).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(file_.create(UINT64_MAX, kPart).code(), ErrorCode::invalid_argument);
    EXPECT_TRUE(file_.parts().none());
}

TEST_F(PartedFileTest, ChangesNoMoreOnceItIsSealed) {
    ASSERT_TRUE(file_.create(2 * kPart, kPart).ok());
    EXPECT_EQ(file_.map().code(), ErrorCode::invalid_argument);
    {
        void* const writable = mmap(nullptr, kPart, PROT_READ | PROT_WRITE, MAP_SHARED,
                                    file_.parts().descriptors()[1], 0);
        ASSERT_NE(writable, MAP_FAILED);
        EXPECT_EQ(file_.seal().code(), ErrorCode::io_error);
        munmap(writable, kPart);
    }
    ASSERT_TRUE(file_.create(2 * kPart, kPart).ok());
    ASSERT_TRUE(file_.seal().ok());
    const std::uint8_t byte = 1;
    EXPECT_EQ(file_.write(kPart, {&byte, 1}).code(), ErrorCode::io_error);
    const FileParts parts = file_.parts();
    for (const int part : parts.descriptors()) EXPECT_NE(ftruncate(part, 0), 0);
    expect_bytes(std::vector<std::uint8_t>(2 * kPart));
}

TEST_F(PartedFileTest, ClosesItsPartsWhenItIsReleased) {
    ASSERT_TRUE(file_.create(3 * kPart, kPart).ok());
    ASSERT_TRUE(file_.seal().ok());
    ASSERT_TRUE(file_.map().ok());
    const FileParts parts = file_.parts();
    const std::vector<int> descriptors(parts.descriptors().begin(), parts.descriptors().end());
    file_.release();
    for (const int descriptor : descriptors) EXPECT_EQ(fcntl(descriptor, F_GETFD), -1);
    EXPECT_EQ(file_.size(), 0u);
    EXPECT_EQ(file_.data(), nullptr);
    EXPECT_TRUE(file_.parts().none());
}

TEST(PartBytes, AreWholePagesForAllWriters) {
    const std::uint64_t sizes[] = {
        0, 1, 1 << 20, (1 << 20) + 1, 50'000'001, std::uint64_t{3} << 30};
    for (const std::uint64_t size : sizes)
        for (const std::size_t writers : {0u, 1u, 2u, 15u, 16u, 32u, 33u, 1000u}) {
            const std::uint64_t part = part_bytes_for(size, writers);
            const std::uint64_t parts = (size + part - 1) / part;
            EXPECT_EQ(part % page_size(), 0u);
            EXPECT_GE(part, std::uint64_t{1} << 20);
            EXPECT_LE(parts, std::clamp<std::size_t>(writers, 1, kMostParts));
            if (size >= std::uint64_t{64} << 20) {
                EXPECT_EQ(parts, std::clamp<std::size_t>(writers, 1, kMostParts)) << size;
            }
        }
}

}  // namespace
}  // namespace gputext
