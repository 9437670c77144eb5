#include "kernels/documents/detail/exact_join.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "cpp/documents/detail/exact_search.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::DeviceTest;
using testing::RandomStrings;
using testing::ResidentDocuments;
using testing::utf8_of;

/// Documents whose candidates the device finds, and cpp/ decides what has to be among them.
class DocumentJoins : public DeviceTest {
protected:
    struct Pairs {
        std::size_t near = 0;
        std::size_t candidates = 0;  // of the device
    };

    Pairs join(double threshold,
               const CharacterLengths& characters = CharacterLengths::single_byte(),
               std::size_t memory_limit = std::size_t{1} << 30) {
        const ResidentDocuments documents(texts_, characters, stream());
        std::vector<std::uint32_t> lengths;
        for (std::size_t i = 0; i < texts_.size(); ++i)
            lengths.push_back(
                static_cast<std::uint32_t>(count_characters(documents[i], characters)));
        std::vector<IndexPair> found;
        Execution execution(2);
        memory_limit = std::max(memory_limit, least_document_join_bytes(documents.view()));
        const Status status =
            join_documents(threshold, documents.view(), lengths, memory_limit, execution, stream(),
                           [&found](std::span<const IndexPair> some) {
                               found.insert(found.end(), some.begin(), some.end());
                               return Status();
                           });
        EXPECT_TRUE(status.ok()) << status.message();
        expect_pairs(found);
        const std::vector<IndexPair> near = near_pairs(threshold, documents.host_view(), lengths);
        EXPECT_TRUE(std::ranges::includes(found, near, {}, key, key))
            << "threshold " << threshold << ", " << near.size() << " near pairs, " << found.size()
            << " candidates";
        return {near.size(), found.size()};
    }

    static std::uint64_t key(const IndexPair& pair) {
        return std::uint64_t{pair.first} << 32 | pair.second;
    }

    /// Sorts them.
    void expect_pairs(std::vector<IndexPair>& found) const {
        std::ranges::sort(found, {}, key);
        for (std::size_t i = 0; i < found.size(); ++i) {
            ASSERT_LT(found[i].first, found[i].second);
            ASSERT_LT(found[i].second, texts_.size());
            ASSERT_TRUE(i == 0 || key(found[i - 1]) < key(found[i])) << "found twice";
        }
    }

    /// Ascending.
    static std::vector<IndexPair> near_pairs(double threshold, const Documents& documents,
                                             std::span<const std::uint32_t> lengths) {
        NearDuplicateParameters parameters;
        parameters.threshold = threshold;
        Execution execution(std::max(2u, std::thread::hardware_concurrency()));
        std::vector<NearPair> found;
        EXPECT_TRUE(find_exact_pairs(parameters, {documents, lengths, {}}, execution, found).ok());
        std::vector<IndexPair> near;
        for (const NearPair& pair : found) near.push_back({pair.first, pair.second});
        std::ranges::sort(near, {}, key);
        return near;
    }

    /// Families of versions of about a length.
    void add_families(RandomStrings& random, int families, std::size_t length, std::size_t edits,
                      std::string_view letters = "etaoinshrdlu \n") {
        for (int family = 0; family < families; ++family) {
            texts_.push_back(random.string(length - random.below(length / 3 + 1), letters));
            for (int version = 0; version < 4; ++version)
                texts_.push_back(random.edited(texts_.back(), random.below(edits + 1), letters));
        }
    }

    /// Takes no candidates.
    const TakeCandidates nobody_ = [](std::span<const IndexPair>) {
        ADD_FAILURE() << "candidates";
        return Status();
    };
    std::vector<std::string> texts_;
};

TEST_F(DocumentJoins, OfFewDocuments) {
    EXPECT_EQ(join(0.05).candidates, 0u);
    texts_ = {""};
    EXPECT_EQ(join(0.05).candidates, 0u);
    texts_ = {"", "", "a", "a", "b", "ab", "ba", "abc"};
    for (const double threshold : {0.0, 1e-9, 0.05, 0.2, 0.34, 0.49}) join(threshold);
}

TEST_F(DocumentJoins, OfVersions) {
    RandomStrings random;
    add_families(random, small() ? 20 : 150, 1000, 120);
    for (const double threshold : {0.01, 0.05, 0.15, 0.4}) EXPECT_GT(join(threshold).near, 0u);
}

TEST_F(DocumentJoins, OfShortTexts) {
    RandomStrings random;
    add_families(random, small() ? 60 : 500, 12, 3, "abcdef");
    for (const double threshold : {0.05, 0.2, 0.45}) join(threshold);
}

TEST_F(DocumentJoins, OfLongRuns) {
    RandomStrings random;
    for (int i = 0; i < 60; ++i) {
        texts_.push_back(std::string(30000 + random.below(6000), 'a') +
                         std::string(random.below(600), 'b'));
        texts_.push_back(std::string(32700 + random.below(200), 'a'));
        texts_.push_back(std::string(65500 + random.below(100), 'a'));
    }
    EXPECT_GT(join(0.05).near, 0u);
    EXPECT_GT(join(0.001).near, 0u);
}

TEST_F(DocumentJoins, OfLongDocuments) {
    RandomStrings random;
    for (const std::size_t length : {32766u, 32767u, 32768u, 40000u, 70000u})
        add_families(random, 2, length, 2000);
    if (!small()) add_families(random, 1, 2500000, 1000);
    EXPECT_GT(join(0.05).near, 0u);
}

TEST_F(DocumentJoins, OfUtf8) {
    RandomStrings random;
    const std::u32string_view letters = U"aé€ß漢字かな한글🙂🙃z etnoi";
    for (int family = 0; family < (small() ? 10 : 100); ++family) {
        auto text = random.string<std::u32string>(random.below(1500), letters);
        for (int version = 0; version < 4; ++version) {
            texts_.push_back(utf8_of(text));
            text = random.edited(text, random.below(90), letters);
        }
        texts_.push_back(random.string(random.below(1500), "etaoin "));
    }
    EXPECT_GT(join(0.05, CharacterLengths::utf8()).near, 0u);
    EXPECT_GT(join(0.2, CharacterLengths::utf8()).near, 0u);
    EXPECT_GT(join(0.05, CharacterLengths::utf8(), 0).near, 0u);
}

TEST_F(DocumentJoins, OfPartsAreEachPairOnce) {
    RandomStrings random;
    add_families(random, small() ? 150 : 600, 700, 60);
    const CharacterLengths characters = CharacterLengths::single_byte();
    const ResidentDocuments documents(texts_, characters, stream());
    std::vector<std::uint32_t> lengths;
    for (std::size_t i = 0; i < texts_.size(); ++i)
        lengths.push_back(static_cast<std::uint32_t>(texts_[i].size()));
    const auto near = near_pairs(0.05, documents.host_view(), lengths);
    const std::size_t least = least_document_join_bytes(documents.view());
    // Features of all documents at a time, or of some.
    for (const std::size_t memory : {std::size_t{1} << 30, least})
        for (const std::uint32_t count : {2u, 3u, 5u}) {
            std::vector<IndexPair> all;
            for (std::uint32_t index = 0; index < count; ++index) {
                std::vector<std::uint8_t> rows;
                ASSERT_TRUE(rows_of_part(lengths, {index, count}, {}, rows));
                std::size_t found = 0;
                Execution execution(2);
                const Status status = join_documents(
                    0.05, documents.view(), lengths, memory, execution, stream(),
                    [&](std::span<const IndexPair> some) {
                        for (const auto& [first, second] : some)
                            EXPECT_NE(rows[lengths[second] < lengths[first] ? second : first], 0);
                        all.insert(all.end(), some.begin(), some.end());
                        found += some.size();
                        return Status();
                    },
                    rows);
                ASSERT_TRUE(status.ok()) << status.message();
                EXPECT_GT(found, 0u);
            }
            expect_pairs(all);
            EXPECT_TRUE(std::ranges::includes(all, near, {}, key, key)) << count << " parts";
        }
}

/// Rows that stand in the row blocks of other parts, as where documents come in groups.
TEST_F(DocumentJoins, OfAnyRows) {
    RandomStrings random;
    add_families(random, 100, 700, 60);
    const CharacterLengths characters = CharacterLengths::single_byte();
    const ResidentDocuments documents(texts_, characters, stream());
    std::vector<std::uint32_t> lengths;
    for (std::size_t i = 0; i < texts_.size(); ++i)
        lengths.push_back(static_cast<std::uint32_t>(texts_[i].size()));
    const auto near = near_pairs(0.05, documents.host_view(), lengths);
    std::vector<std::uint8_t> rows(texts_.size());
    for (auto& row : rows) row = random.below(2) == 0 ? 1 : 0;
    std::vector<IndexPair> all;
    for (int round = 0; round < 2; ++round) {
        Execution execution(2);
        const Status status = join_documents(
            0.05, documents.view(), lengths, std::size_t{1} << 30, execution, stream(),
            [&](std::span<const IndexPair> some) {
                all.insert(all.end(), some.begin(), some.end());
                return Status();
            },
            rows);
        ASSERT_TRUE(status.ok()) << status.message();
        for (auto& row : rows) row = 1 - row;
    }
    expect_pairs(all);
    EXPECT_TRUE(std::ranges::includes(all, near, {}, key, key));
}

TEST_F(DocumentJoins, OfRowsWithColumns) {
    RandomStrings random;
    // Longer than what is folded, too, in the middle of all places.
    add_families(random, small() ? 60 : 300, 700, 60);
    add_families(random, 8, 100, 9);
    add_families(random, 3, 70000, 900);
    const CharacterLengths characters = CharacterLengths::single_byte();
    const ResidentDocuments documents(texts_, characters, stream());
    std::vector<std::uint32_t> lengths;
    for (const std::string& text : texts_)
        lengths.push_back(static_cast<std::uint32_t>(text.size()));
    for (const double threshold : {0.05, 0.2}) {
        const auto near = near_pairs(threshold, documents.host_view(), lengths);
        // Few rows, few columns, documents that are both, no row.
        for (const auto& [row_of, column_of] :
             {std::pair(2, 2), std::pair(40, 1), std::pair(1, 40), std::pair(0, 1)}) {
            std::vector<std::uint8_t> rows, columns;
            for (std::size_t i = 0; i < texts_.size(); ++i) {
                rows.push_back(row_of > 0 && random.below(row_of) == 0 ? 1 : 0);
                columns.push_back(random.below(column_of) == 0 ? 1 : 0);
            }
            const auto wanted = [&](const IndexPair& pair) {
                return (rows[pair.first] != 0 && columns[pair.second] != 0) ||
                       (rows[pair.second] != 0 && columns[pair.first] != 0);
            };
            std::vector<IndexPair> expected;
            std::ranges::copy_if(near, std::back_inserter(expected), wanted);
            EXPECT_EQ(expected.empty(), row_of == 0);
            for (const std::size_t memory :
                 {std::size_t{1} << 30, least_document_join_bytes(documents.view())}) {
                std::vector<IndexPair> found;
                Execution execution(2);
                const Status status = join_documents(
                    threshold, documents.view(), lengths, memory, execution, stream(),
                    [&](std::span<const IndexPair> some) {
                        for (const IndexPair& pair : some) EXPECT_TRUE(wanted(pair));
                        found.insert(found.end(), some.begin(), some.end());
                        return Status();
                    },
                    rows, columns);
                ASSERT_TRUE(status.ok()) << status.message();
                std::ranges::sort(found, {}, key);
                const auto twice = std::ranges::adjacent_find(found);
                EXPECT_TRUE(twice == found.end() ||
                            (rows[twice->first] != 0 && columns[twice->first] != 0 &&
                             rows[twice->second] != 0 && columns[twice->second] != 0));
                EXPECT_TRUE(std::ranges::includes(found, expected, {}, key, key))
                    << threshold << ", " << memory << " bytes, a row of " << row_of;
            }
        }
    }
}

TEST_F(DocumentJoins, InManyTiles) {
    RandomStrings random;
    add_families(random, small() ? 150 : 600, 700, 60);
    EXPECT_GT(join(0.05, CharacterLengths::single_byte(), 0).near, 0u);
}

TEST_F(DocumentJoins, OfWhatIsAllAlike) {
    RandomStrings random;
    add_families(random, 1, 300, 3);
    for (int i = 0; i < (small() ? 600 : 3000); ++i)
        texts_.push_back(random.edited(texts_.front(), 2, "ab"));
    // More pairs than there is room for at a time.
    EXPECT_GT(join(0.1, CharacterLengths::single_byte(), std::size_t{12} << 20).near, 100000u);
}

TEST_F(DocumentJoins, LeaveOutUnrelatedTexts) {
    RandomStrings random;
    for (int i = 0; i < (small() ? 100 : 400); ++i)
        texts_.push_back(random.string(700 + random.below(600), "etaoinshrdlu etaoinsh "));
    texts_.push_back(random.edited(texts_.front(), 150, "etaoin "));
    // By grams of four, by grams of three and the columns so far, by columns alone.
    for (const double threshold : {0.06, 0.1, 0.15, 0.2, 0.25}) {
        const Pairs pairs = join(threshold);
        EXPECT_GE(pairs.near, threshold < 0.1 ? 0 : 1u);
        // Some are left to verification, which costs less where few are in question together.
        EXPECT_LE(pairs.candidates, pairs.near + texts_.size() * texts_.size() / 40)
            << "threshold " << threshold;
    }
}

TEST_F(DocumentJoins, OfVersionsAtEachRate) {
    RandomStrings random;
    // Versions as far away as the limit allows, a little less and a little more: bounds that are
    // too sharp would lose some.
    for (const double threshold : {0.04, 0.1, 0.16, 0.22, 0.3, 0.4}) {
        texts_.clear();
        for (int i = 0; i < (small() ? 20 : 80); ++i) {
            texts_.push_back(random.string(130 + random.below(1500), "etaoinshrdlu cmfw"));
            const auto edits =
                static_cast<std::size_t>(2 * threshold * static_cast<double>(texts_.back().size()));
            for (const double share : {0.5, 0.9, 1.0, 1.1, 1.3})
                texts_.push_back(random.edited(
                    texts_.back(), static_cast<std::size_t>(share * static_cast<double>(edits)),
                    "etaoinshrdlu cmfw"));
        }
        EXPECT_GT(join(threshold).near, texts_.size() / 5);
    }
}

TEST_F(DocumentJoins, OfMovedAndDroppedParts) {
    RandomStrings random;
    for (int i = 0; i < (small() ? 20 : 60); ++i) {
        const std::string text = random.string(600 + random.below(1200), "etaoinshrdlu cmfw");
        const std::size_t at = random.below(text.size()), cut = random.below(text.size() / 3);
        texts_.push_back(text);
        texts_.push_back(text.substr(at) + text.substr(0, at));
        texts_.push_back(text.substr(0, text.size() - cut));
        texts_.push_back(text.substr(cut));
        texts_.push_back(std::string(text).insert(at, std::string(cut, 'x')));
        texts_.push_back(text.substr(0, at) + text);
    }
    for (const double threshold : {0.08, 0.2, 0.33, 0.49}) EXPECT_GT(join(threshold).near, 0u);
}

TEST_F(DocumentJoins, SayWhenMemoryIsTooLittle) {
    texts_ = {"a", "b"};
    const ResidentDocuments documents(texts_, CharacterLengths::utf8(), stream());
    const std::vector<std::uint32_t> lengths{1, 1};
    Execution execution(1);
    EXPECT_EQ(
        join_documents(0.05, documents.view(), lengths, 1, execution, stream(), nobody_).code(),
        ErrorCode::invalid_argument);
}

TEST_F(DocumentJoins, StopWhenAsked) {
    RandomStrings random;
    add_families(random, 10, 300, 3);
    const ResidentDocuments documents(texts_, CharacterLengths::utf8(), stream());
    const std::vector<std::uint32_t> lengths(texts_.size(), 300);
    Execution execution(1);
    execution.request_stop();
    EXPECT_EQ(join_documents(0.05, documents.view(), lengths, std::size_t{1} << 30, execution,
                             stream(), nobody_)
                  .code(),
              ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
