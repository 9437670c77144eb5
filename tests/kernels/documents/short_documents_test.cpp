// Mode exact on documents of few characters, which have a search of their own.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"
#include "kernels/documents/detail/short_documents.hpp"
#include "kernels/documents/near_duplicates.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/plain_strings.hpp"

namespace gputext {
namespace {

using testing::RandomNames;
using testing::String;

class ShortDocuments : public testing::RingTest {
protected:
    /// Names in UTF-8, a third of which are others with edits.
    static void append_names(RandomNames& random, std::size_t count, std::size_t longest,
                             std::string& bytes, std::vector<Extent>& extents) {
        for (const String& name : random.strings(count, longest)) {
            const std::size_t begin = bytes.size();
            for (const std::uint32_t symbol : name) {
                const std::uint32_t code = symbol < 0x80 ? symbol : 0x3040 + symbol % 2000;
                if (code < 0x80) {
                    bytes.push_back(static_cast<char>(code));
                    continue;
                }
                bytes.push_back(static_cast<char>(0xe0 | code >> 12));
                bytes.push_back(static_cast<char>(0x80 | (code >> 6 & 0x3f)));
                bytes.push_back(static_cast<char>(0x80 | (code & 0x3f)));
            }
            extents.push_back({begin, bytes.size() - begin});
        }
    }

    static void expect_same(const NearDuplicates& found, const NearDuplicates& expected) {
        ASSERT_TRUE(std::ranges::equal(found.first_copies(), expected.first_copies()));
        const auto all_of = [](const NearDuplicates& answer) {
            return answer.near_pairs_of(0, static_cast<std::uint32_t>(answer.documents()));
        };
        const auto pairs = all_of(found), wanted = all_of(expected);
        ASSERT_EQ(pairs.size(), wanted.size());
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            ASSERT_EQ(pairs[i].first, wanted[i].first);
            ASSERT_EQ(pairs[i].second, wanted[i].second);
            ASSERT_EQ(pairs[i].edit_rate, wanted[i].edit_rate);
        }
    }
};

TEST_F(ShortDocuments, HaveTheHostsPairs) {
    RandomNames random;
    for (const double threshold : {0.0, 0.05, 0.1, 0.2, 0.33, 0.49})
        for (const std::size_t longest : {12, 40, 64, 250})
            for (const bool sides : {false, true}) {
                std::string bytes;
                std::vector<Extent> extents;
                const std::size_t count = small() ? 120 : 1500;
                append_names(random, count, longest, bytes, extents);
                const Documents documents{reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                          extents, CharacterLengths::utf8()};
                NearDuplicateParameters parameters;
                parameters.threshold = threshold;
                parameters.mode = NearDuplicateMode::exact;
                if (sides) parameters.split = static_cast<std::uint32_t>(count / 3);
                SCOPED_TRACE("threshold " + std::to_string(threshold) + ", longest " +
                             std::to_string(longest) + (sides ? ", two sides" : ""));
                Execution execution(3);
                const auto expected = near_duplicates(parameters, documents, {}, execution);
                ASSERT_TRUE(expected.ok()) << expected.status().message();
                const auto found =
                    gpu::near_duplicates(parameters, documents, {}, work, ring(), execution);
                ASSERT_TRUE(found.ok()) << found.status().message();
                ASSERT_NO_FATAL_FAILURE(expect_same(*found, *expected));
                if (threshold == 0) continue;

                FirstCopies copies;
                ASSERT_TRUE(copies.find(documents, {}, parameters.split, execution).ok());
                std::vector<NearPair> pairs;
                for (std::uint32_t part = 0; part < 3; ++part) {
                    const auto some =
                        gpu::near_pairs(parameters, copies.distinct(),
                                        {part, 3, PairSource::documents}, work, ring(), execution);
                    ASSERT_TRUE(some.ok()) << some.status().message();
                    pairs.insert(pairs.end(), some->pairs.begin(), some->pairs.end());
                }
                const auto joined = copies.answer(pairs, execution);
                ASSERT_TRUE(joined.ok());
                ASSERT_NO_FATAL_FAILURE(expect_same(*joined, *expected));
            }
}

TEST_F(ShortDocuments, InPartsOfSeveralLaunchesAreThoseOfTheWhole) {
    RandomNames random;
    std::string bytes;
    std::vector<Extent> extents;
    append_names(random, small() ? 2000 : 300000, 40, bytes, extents);
    const Documents documents{reinterpret_cast<const std::uint8_t*>(bytes.data()), extents,
                              CharacterLengths::utf8()};
    NearDuplicateParameters parameters;
    parameters.mode = NearDuplicateMode::exact;
    Execution execution(3);
    FirstCopies whole, copies;
    ASSERT_TRUE(whole.find(documents, {}, 0, execution).ok());
    const auto all = gpu::near_pairs(parameters, whole.distinct(), {}, work, ring(), execution);
    ASSERT_TRUE(all.ok()) << all.status().message();
    EXPECT_FALSE(all->pairs.empty());
    const auto expected = whole.answer(all->pairs, execution);
    ASSERT_TRUE(copies.find(documents, {}, 0, execution).ok());
    std::vector<NearPair> pairs;
    for (std::uint32_t part = 0; part < 2; ++part) {
        const auto some =
            gpu::near_pairs(parameters, copies.distinct(), {part, 2, PairSource::documents}, work,
                            ring(), execution);
        ASSERT_TRUE(some.ok()) << some.status().message();
        pairs.insert(pairs.end(), some->pairs.begin(), some->pairs.end());
    }
    EXPECT_EQ(pairs.size(), all->pairs.size());
    const auto joined = copies.answer(pairs, execution);
    ASSERT_TRUE(expected.ok() && joined.ok());
    ASSERT_NO_FATAL_FAILURE(expect_same(*joined, *expected));
}

TEST_F(ShortDocuments, AreToldFromLongOnes) {
    const std::string bytes(100, 'a');
    const std::vector<Extent> extents{{0, 64}, {0, 10}}, longer{{0, 65}, {0, 10}};
    const std::vector<std::uint32_t> lengths{64, 10}, longer_lengths{65, 10};
    const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    bool are = false;
    ASSERT_TRUE(gpu::are_short({{data, extents, CharacterLengths::single_byte()}, lengths, {}},
                               are)
                    .ok());
    EXPECT_TRUE(are);
    ASSERT_TRUE(
        gpu::are_short({{data, longer, CharacterLengths::single_byte()}, longer_lengths, {}}, are)
            .ok());
    EXPECT_FALSE(are);
}

}  // namespace
}  // namespace gputext
