#include "cpp/base/radix_sort.hpp"

#include <gtest/gtest.h>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

TEST(RadixSort, EqualsTheLibrarysSort) {
    testing::RandomStrings random;
    for (int round = 0; round < 300; ++round) {
        // Few distinct bytes make some passes empty, one value all of them.
        const unsigned bits = static_cast<unsigned>(1 + random.below(63));
        std::vector<std::uint64_t> keys(random.below(2000));
        for (auto& key : keys)
            key = random.below(std::size_t{1} << bits) << random.below(64 - bits);
        auto expected = keys;
        std::sort(expected.begin(), expected.end());
        ASSERT_TRUE(radix_sort(keys, {}));
        ASSERT_EQ(keys, expected);
    }
}

TEST(RadixSort, LeavesWhatIsEqualFromABitOnInItsOrder) {
    testing::RandomStrings random;
    for (int round = 0; round < 100; ++round) {
        std::vector<std::uint64_t> keys(random.below(2000));
        for (std::size_t i = 0; i < keys.size(); ++i)
            keys[i] = std::uint64_t{random.below(500)} << 32 | (keys.size() - i);
        auto expected = keys;
        std::stable_sort(expected.begin(), expected.end(),
                         [](auto a, auto b) { return a >> 32 < b >> 32; });
        ASSERT_TRUE(radix_sort(keys, {}, 32));
        ASSERT_EQ(keys, expected);
    }
}

TEST(RadixSort, SortsElementsByKeysOfSomeBits) {
    testing::RandomStrings random;
    struct Element {
        std::uint64_t key;
        std::size_t place;
        bool operator==(const Element&) const = default;
    };
    for (unsigned bits = 0; bits < 64; ++bits) {
        std::vector<Element> elements(random.below(2000)), scratch(elements.size());
        for (std::size_t i = 0; i < elements.size(); ++i) {
            const std::size_t some = random.below(std::size_t{1} << std::min(bits, 10u));
            elements[i] = {some << random.below(bits < 10 ? 1 : bits - 9), i};
        }
        auto expected = elements;
        std::ranges::stable_sort(expected, {}, &Element::key);
        radix_sort(std::span(elements), std::span(scratch), bits,
                   [](const Element& element) { return element.key; });
        ASSERT_EQ(elements, expected) << bits;
    }
}

TEST(RadixSort, StopsWhenAsked) {
    std::vector<std::uint64_t> keys(100, 1);
    EXPECT_FALSE(radix_sort(keys, {[](void*) { return true; }, nullptr}));
}

}  // namespace
}  // namespace gputext
