#include "cpp/base/secret_hash.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(SecretHash, DependsOnEveryByteAndTheLength) {
    testing::RandomStrings random;
    const SecretHash hash;
    for (const std::size_t size : {0, 1, 3, 4, 31, 32, 33, 1000}) {
        Bytes bytes(size);
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.below(256));
        std::set<std::uint64_t> hashes{hash(bytes)};
        EXPECT_EQ(hash(Bytes(bytes)), *hashes.begin());
        for (std::size_t i = 0; i < size; ++i) {
            Bytes other = bytes;
            other[i] ^= static_cast<std::uint8_t>(1 + random.below(255));
            EXPECT_TRUE(hashes.insert(hash(other)).second) << i;
        }
        // Zeros behind the end, which fill up the last numbers
        for (int i = 0; i < 40; ++i) {
            bytes.push_back(0);
            EXPECT_TRUE(hashes.insert(hash(bytes)).second) << i;
        }
    }
}

/// Parts that change places do not take each other's contribution away.
TEST(SecretHash, DependsOnTheOrder) {
    const SecretHash hash;
    std::set<std::uint64_t> hashes;
    for (std::size_t i = 0; i < 200; ++i) {
        Bytes bytes(800);
        bytes[4 * i] = 1;
        EXPECT_TRUE(hashes.insert(hash(bytes)).second) << i;
    }
}

TEST(SecretHash, IsAnotherForEachKey) {
    const Bytes bytes(100, 7);
    std::set<std::uint64_t> hashes;
    for (int i = 0; i < 50; ++i) hashes.insert(SecretHash()(bytes));
    EXPECT_EQ(hashes.size(), 50u);
}

}  // namespace
}  // namespace gputext
