#include "cpp/link/mapped_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cpp/link/memory_file.hpp"
#include "tests/support/random_strings.hpp"

namespace {

/// What munmap() has been told.
struct Unmapped {
    std::size_t bytes = 0;
    std::size_t most_at_once = 0;
} unmapped;

}  // namespace

extern "C" int munmap(void* begin, size_t size) noexcept {
    unmapped.bytes += size;
    unmapped.most_at_once = std::max(unmapped.most_at_once, size);
    return static_cast<int>(syscall(SYS_munmap, begin, size));
}

namespace gputext {
namespace {

using testing::bytes_of;

class MappedFileTest : public ::testing::Test {
protected:
    static ErrorCode map(int descriptor, std::uint64_t size, Trust trust) {
        return MappedFile::map(descriptor, size, trust).status().code();
    }
};

TEST_F(MappedFileTest, TakesASealedFileOfTheRightSize) {
    const FileDescriptor open = std::move(*new_memory_file());
    ASSERT_TRUE(write_file(open.get(), bytes_of("hello"), 0).ok());
    EXPECT_EQ(map(open.get(), 5, Trust::sealed), ErrorCode::invalid_argument);
    EXPECT_EQ(map(open.get(), 5, Trust::sealed_or_disk), ErrorCode::invalid_argument);
    MemoryFile file;
    ASSERT_TRUE(file.append(bytes_of("hello")).ok());
    ASSERT_TRUE(file.seal().ok());
    EXPECT_EQ(std::memcmp(file.data(), "hello", 5), 0);
    EXPECT_LT(ftruncate(file.descriptor(), 0), 0);
    const auto mapped = MappedFile::map(file.descriptor(), 5, Trust::sealed);
    ASSERT_TRUE(mapped.ok());
    EXPECT_EQ(std::memcmp(mapped->bytes().data(), "hello", 5), 0);
    EXPECT_EQ(map(file.descriptor(), 4, Trust::sealed), ErrorCode::invalid_argument);
    EXPECT_EQ(map(file.descriptor(), 6, Trust::sealed), ErrorCode::invalid_argument);
}

/// With fewer seals, its sender could take bytes away that are being read, or change them.
TEST_F(MappedFileTest, RefusesAFileThatLacksASeal) {
    constexpr int needed[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE};
    for (unsigned chosen = 0; chosen < 8; ++chosen) {
        int seals = 0;
        for (unsigned i = 0; i < 3; ++i)
            if ((chosen >> i & 1) != 0) seals |= needed[i];
        const FileDescriptor file = std::move(*new_memory_file());
        ASSERT_TRUE(write_file(file.get(), bytes_of("hello"), 0).ok());
        ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
        const ErrorCode wanted = chosen == 7 ? ErrorCode::ok : ErrorCode::invalid_argument;
        EXPECT_EQ(map(file.get(), 5, Trust::sealed), wanted) << seals;
        EXPECT_EQ(map(file.get(), 5, Trust::sealed_or_disk), wanted) << seals;
        EXPECT_EQ(map(file.get(), 5, Trust::own), ErrorCode::ok) << seals;
    }
}

TEST_F(MappedFileTest, TakesAnEmptyFile) {
    MemoryFile file;
    ASSERT_TRUE(file.seal().ok());
    EXPECT_EQ(map(file.descriptor(), 0, Trust::sealed), ErrorCode::ok);
}

TEST_F(MappedFileTest, TakesAPlainFileOnlyWhereThatIsAllowed) {
    std::FILE* const plain = std::tmpfile();
    ASSERT_NE(plain, nullptr);
    std::fputs("hello", plain);
    std::fflush(plain);
    EXPECT_EQ(map(fileno(plain), 5, Trust::sealed), ErrorCode::invalid_argument);
    EXPECT_EQ(map(fileno(plain), 5, Trust::sealed_or_disk), ErrorCode::ok);
    EXPECT_EQ(map(fileno(plain), 6, Trust::sealed_or_disk), ErrorCode::invalid_argument);
    std::fclose(plain);
}

TEST_F(MappedFileTest, RefusesWhatIsNoFile) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    EXPECT_EQ(map(ends[0], 0, Trust::sealed_or_disk), ErrorCode::invalid_argument);
    close(ends[0]);
    close(ends[1]);
    EXPECT_EQ(map(-1, 0, Trust::sealed_or_disk), ErrorCode::invalid_argument);
}

const std::uint64_t kPart = page_size();

/// Files of these sizes, the bytes of each its number, sealed or not.
class Files {
public:
    explicit Files(const std::vector<std::uint64_t>& sizes, bool sealed = true) {
        for (const std::uint64_t size : sizes) {
            FileDescriptor file = std::move(*new_memory_file());
            const std::vector<std::uint8_t> bytes(size, ++number_);
            EXPECT_EQ(pwrite(file.get(), bytes.data(), size, 0), static_cast<ssize_t>(size));
            if (sealed) {
                EXPECT_TRUE(seal_memory_file(file.get()).ok());
            }
            descriptors_.push_back(file.get());
            files_.push_back(std::move(file));
        }
    }

    Result<MappedFile> map(std::uint64_t size, std::uint64_t part_bytes = kPart) const {
        return MappedFile::map({descriptors_, part_bytes}, size, Trust::sealed_or_disk);
    }
    bool fit(std::uint64_t size, std::uint64_t part_bytes = kPart) const {
        const auto mapped = map(size, part_bytes);
        EXPECT_TRUE(mapped.ok() || mapped.status().code() == ErrorCode::invalid_argument);
        return mapped.ok();
    }

private:
    std::uint8_t number_ = 0;
    std::vector<FileDescriptor> files_;
    std::vector<int> descriptors_;
};

TEST(MappedParts, HasPartsSideBySide) {
    const auto mapped = Files({kPart, kPart, 10}).map(2 * kPart + 10);
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    const auto bytes = mapped->bytes();
    ASSERT_EQ(bytes.size(), 2 * kPart + 10);
    for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], 1 + i / kPart);
}

TEST(MappedParts, IsGoneWithAllItsParts) {
    const std::uint8_t* begin = nullptr;
    {
        auto mapped = Files({kPart, kPart, kPart}).map(3 * kPart);
        ASSERT_TRUE(mapped.ok());
        MappedFile owner = std::move(*mapped);
        begin = owner.bytes().data();
    }
    unsigned char in_memory[3];
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NE(mincore(const_cast<std::uint8_t*>(begin) + i * kPart, kPart, in_memory), 0);
}

TEST(MappedParts, AreUnmappedInSteps) {
    PartedFile file;
    ASSERT_TRUE(file.create(std::uint64_t{1} << 30, std::uint64_t{100} << 20).ok());
    ASSERT_TRUE(file.seal().ok());
    ASSERT_TRUE(file.map().ok());
    unmapped = {};
    file.release();
    EXPECT_EQ(unmapped.bytes, std::size_t{1} << 30);
    EXPECT_LE(unmapped.most_at_once, std::size_t{64} << 20);
}

TEST(MappedParts, RefusesPartsOfOtherSizes) {
    EXPECT_TRUE(Files({kPart, kPart}).fit(2 * kPart));
    EXPECT_FALSE(Files({kPart, kPart}).fit(2 * kPart + 1));
    EXPECT_FALSE(Files({kPart, kPart}).fit(2 * kPart - 1));
    EXPECT_FALSE(Files({kPart, kPart}).fit(kPart));
    EXPECT_FALSE(Files({kPart - 1, kPart}).fit(2 * kPart));
    EXPECT_FALSE(Files({kPart + 1, kPart - 1}).fit(2 * kPart));
    EXPECT_FALSE(Files({2 * kPart, kPart}).fit(2 * kPart));
    EXPECT_FALSE(Files({kPart, 0, kPart}).fit(2 * kPart));
    EXPECT_FALSE(Files({kPart, kPart}).fit(2 * kPart, 2 * kPart));
    EXPECT_FALSE(Files({kPart, kPart}).fit(2 * kPart, 0));
    EXPECT_FALSE(Files({kPart, kPart}).fit(2 * kPart, UINT64_MAX / kPart * kPart));
    EXPECT_FALSE(Files({100, 100}).fit(200, 100));
    EXPECT_FALSE(Files({0, 0}).fit(0));
    EXPECT_FALSE(Files({}).fit(0));
    EXPECT_TRUE(Files(std::vector<std::uint64_t>(kMostParts, kPart)).fit(kMostParts * kPart));
    EXPECT_FALSE(
        Files(std::vector<std::uint64_t>(kMostParts + 1, kPart)).fit((kMostParts + 1) * kPart));
}

TEST(MappedParts, RefusesPartsThatCanChange) {
    EXPECT_FALSE(Files({kPart, kPart}, false).fit(2 * kPart));
    PartedFile file;
    ASSERT_TRUE(file.create(3 * kPart, kPart).ok());
    const FileParts parts = file.parts();
    ASSERT_TRUE(seal_memory_file(parts.descriptors()[0]).ok());
    ASSERT_TRUE(seal_memory_file(parts.descriptors()[2]).ok());
    EXPECT_FALSE(MappedFile::map(parts, 3 * kPart, Trust::sealed_or_disk).ok());
    ASSERT_TRUE(seal_memory_file(parts.descriptors()[1]).ok());
    EXPECT_TRUE(MappedFile::map(parts, 3 * kPart, Trust::sealed).ok());
}

}  // namespace
}  // namespace gputext
