#include "cpp/documents/near_duplicates_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "cpp/documents/detail/exact_search.hpp"
#include "cpp/documents/detail/signature_join.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "tests/support/answer_rows.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/plain_rates.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::corpus;
using testing::kSanitized;
using testing::Packed;
using testing::plain_edit_distance;
using testing::plain_rates;
using testing::RandomStrings;
using testing::Row;
using testing::rows;
using testing::within;

constexpr std::uint32_t kMostParts = 5;

/// Families of versions, of about a length.
std::vector<std::string> families(RandomStrings& random, std::size_t count, std::size_t length,
                                  std::size_t edits) {
    constexpr std::string_view letters = "etaoinshrdlu \n";
    std::vector<std::string> texts;
    while (texts.size() < count) {
        texts.push_back(random.string(length - random.below(length / 4 + 1), letters));
        for (int version = 0; version < 3; ++version)
            texts.push_back(random.edited(texts.back(), random.below(edits + 1), letters));
    }
    return texts;
}

std::vector<std::uint32_t> lengths_of(const Documents& documents) {
    std::vector<std::uint32_t> lengths;
    for (std::size_t i = 0; i < documents.size(); ++i)
        lengths.push_back(
            static_cast<std::uint32_t>(count_characters(documents[i], documents.characters)));
    return lengths;
}

std::vector<Row> sorted(const std::vector<NearPair>& pairs) {
    std::vector<Row> found;
    for (const NearPair& pair : pairs) found.emplace_back(pair.first, pair.second, pair.edit_rate);
    std::ranges::sort(found);
    return found;
}

/// Pairs of each part by one method, one part behind the other.
std::vector<Row> exact_parts(const Packed& packed, const NearDuplicateParameters& parameters,
                             std::uint32_t count, ExactMethod method) {
    const auto lengths = lengths_of(packed.documents());
    std::vector<NearPair> all;
    for (std::uint32_t index = 0; index < count; ++index) {
        Execution execution(1 + index % 3);
        std::vector<NearPair> pairs;
        const Status status =
            find_exact_pairs(parameters, {packed.documents(), lengths, {}}, execution, pairs,
                             nullptr, method, {index, count, PairSource::documents});
        EXPECT_TRUE(status.ok()) << status.message();
        all.insert(all.end(), pairs.begin(), pairs.end());
    }
    return sorted(all);
}

TEST(NearDuplicatesParts, OfExactModeHaveEachPairOnce) {
    RandomStrings random;
    for (const auto& texts : {corpus(random, kSanitized ? 150 : 420, 60),
                              families(random, kSanitized ? 150 : 450, 14, 3)}) {
        const Packed packed(texts);
        for (const double threshold : {0.02, 0.15, 0.4}) {
            const auto expected = within(plain_rates(texts), threshold);
            ASSERT_FALSE(expected.empty());
            const NearDuplicateParameters parameters{threshold, NearDuplicateMode::exact};
            for (std::uint32_t count = 1; count <= kMostParts; ++count)
                for (const auto method :
                     {ExactMethod::estimated, ExactMethod::tiles, ExactMethod::index})
                    ASSERT_EQ(exact_parts(packed, parameters, count, method), expected)
                        << count << " parts, threshold " << threshold << ", method "
                        << static_cast<int>(method);
        }
    }
}

TEST(NearDuplicatesParts, OfLongDocumentsHaveEachPairOnce) {
    RandomStrings random;
    const Packed packed(families(random, kSanitized ? 140 : 500, 1200, 60));
    NearDuplicateParameters parameters{0.05, NearDuplicateMode::exact};
    const auto expected = exact_parts(packed, parameters, 1, ExactMethod::tiles);
    ASSERT_GT(expected.size(), 50u);
    // Features of all documents at a time, or of some.
    for (const std::size_t memory : {std::size_t{1} << 30, std::size_t{1} << 23}) {
        parameters.memory_limit = memory;
        for (std::uint32_t count = 1; count <= kMostParts; ++count)
            for (const auto method :
                 {ExactMethod::estimated, ExactMethod::counts, ExactMethod::index})
                ASSERT_EQ(exact_parts(packed, parameters, count, method), expected)
                    << count << " parts, " << memory << " bytes";
    }
}

/// Which part has a pair of near signatures, by the definition of stripes.
class SignatureStripes {
public:
    explicit SignatureStripes(const std::vector<Ctph>& signatures)
        : signatures_(signatures), stripes_(signatures.size()) {
        std::uint64_t stripe = 0;
        for (unsigned level = 0; level < Ctph::max_level + 2; ++level) {
            std::vector<std::tuple<std::size_t, bool, std::uint32_t>> list;
            for (std::uint32_t i = 0; i < signatures.size(); ++i) {
                if (signatures[i].level == level)
                    list.emplace_back(signatures[i].first().size(), false, i);
                if (signatures[i].level + 1u == level)
                    list.emplace_back(signatures[i].second().size(), true, i);
            }
            std::ranges::sort(list);
            for (std::size_t place = 0; place < list.size(); ++place) {
                const auto& [length, second, i] = list[place];
                stripes_[i][second ? 1 : 0] = {stripe + place / 512, place};
            }
            stripe += (list.size() + 511) / 512;
        }
    }

    bool has(const PairPart& part, const IndexPair& pair, double rate) const {
        for (int a = 0; a < 2; ++a)
            for (int b = 0; b < 2; ++b) {
                if (signatures_[pair.first].level + a != signatures_[pair.second].level + b)
                    continue;
                const std::string_view x = letters(pair.first, a), y = letters(pair.second, b);
                if (edit_rate(plain_edit_distance(x, y), x.size() + y.size()) > rate) continue;
                const Place& first = stripes_[pair.first][a];
                const Place& second = stripes_[pair.second][b];
                const std::uint64_t stripe =
                    first.place < second.place ? first.stripe : second.stripe;
                const std::uint64_t turn = stripe / part.count, dealt = stripe % part.count;
                if ((turn % 2 == 0 ? dealt : part.count - 1 - dealt) == part.index) return true;
            }
        return false;
    }

private:
    struct Place {
        std::uint64_t stripe = 0;
        std::size_t place = 0;  // in its list
    };

    std::string_view letters(std::uint32_t i, int second) const {
        return second != 0 ? signatures_[i].second() : signatures_[i].first();
    }

    const std::vector<Ctph>& signatures_;
    std::vector<std::array<Place, 2>> stripes_;
};

TEST(NearDuplicatesParts, OfSignaturesAreTheirJoin) {
    RandomStrings random;
    std::vector<Ctph> signatures;
    for (const std::string& text : families(random, kSanitized ? 1200 : 2200, 150, 12))
        signatures.push_back(*ctph_signature(testing::bytes_of(text), 100));
    const SignatureStripes stripes(signatures);
    for (const double rate : {0.1, 0.2}) {
        Execution execution(2);
        std::vector<IndexPair> all;
        ASSERT_TRUE(join_signatures(signatures, rate, best_simd(), execution, all).ok());
        ASSERT_FALSE(all.empty());
        for (std::uint32_t count = 2; count <= kMostParts; ++count) {
            std::set<IndexPair> together;
            std::size_t found = 0;
            for (std::uint32_t index = 0; index < count; ++index) {
                const PairPart part{index, count, PairSource::signatures};
                std::vector<IndexPair> expected = all, pairs;
                std::erase_if(expected, [&](const IndexPair& pair) {
                    return !stripes.has(part, pair, rate);
                });
                ASSERT_TRUE(join_signatures(signatures, rate, best_simd(), execution, pairs,
                                            UINT64_MAX, nullptr, part)
                                .ok());
                ASSERT_EQ(pairs, expected) << "part " << index << " of " << count;
                EXPECT_FALSE(pairs.empty());
                together.insert(pairs.begin(), pairs.end());
                found += pairs.size();
            }
            EXPECT_TRUE(std::ranges::equal(together, all));
            // Pairs near at two block sizes, which both have rows of other parts.
            EXPECT_GT(found, all.size());
        }
    }
}

/// What all parts together make of the documents.
std::vector<Row> shared(const Packed& packed, const NearDuplicateParameters& parameters,
                        GivenSignatures given, std::uint32_t count, PairSource source) {
    Execution execution(2);
    FirstCopies copies;
    EXPECT_TRUE(copies.find(packed.documents(), given, 0, execution).ok());
    std::vector<NearPair> all;
    for (std::uint32_t index = 0; index < count; ++index) {
        const auto part =
            near_pairs(parameters, copies.distinct(), {index, count, source}, execution);
        EXPECT_TRUE(part.ok()) << part.status().message();
        EXPECT_FALSE(part->too_many);
        all.insert(all.begin(), part->pairs.begin(), part->pairs.end());
    }
    const auto answer = copies.answer(std::move(all), execution);
    EXPECT_TRUE(answer.ok());
    return rows(*answer);
}

TEST(NearDuplicatesParts, TogetherAreTheAnswer) {
    RandomStrings random;
    std::vector<std::string> texts = families(random, 1200, 150, 12);
    const auto others = corpus(random, 300, 400);
    texts.insert(texts.end(), others.begin(), others.end());
    // Copies of a few, and of one many.
    for (int i = 0; i < 300; ++i) texts.push_back(texts[random.below(i < 100 ? 1 : texts.size())]);
    for (const auto& characters : {CharacterLengths::utf8(), CharacterLengths::single_byte()}) {
        const Packed packed(texts, characters);
        Execution execution(2);
        const auto signatures = ctph_signatures(packed.documents(), 100, execution);
        ASSERT_TRUE(signatures.ok());
        const std::vector<std::optional<Ctph>> given(signatures->begin(), signatures->end());
        std::vector<std::optional<Ctph>> some = given;
        for (std::size_t i = 0; i < some.size(); i += 3) some[i].reset();
        for (const double threshold : {0.03, 0.06}) {
            NearDuplicateParameters parameters{threshold, NearDuplicateMode::ctph};
            const auto answer = near_duplicates(parameters, packed.documents(), {}, execution);
            ASSERT_TRUE(answer.ok());
            const auto expected = rows(*answer);
            for (std::uint32_t count = 1; count <= kMostParts; ++count) {
                ASSERT_EQ(shared(packed, parameters, given, count, PairSource::signatures),
                          expected)
                    << count << " parts";
                ASSERT_EQ(shared(packed, parameters, some, count, PairSource::documents), expected)
                    << count << " parts";
            }
        }
    }
}

TEST(NearDuplicatesParts, OfFewDocumentsOrOfCopies) {
    for (const std::vector<std::string>& texts :
         {std::vector<std::string>{}, {"one"}, {"", "a"}, std::vector<std::string>(200, "copies")})
        for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact}) {
            const Packed packed(texts);
            Execution execution(1);
            const NearDuplicateParameters parameters{0.2, mode};
            const auto expected =
                rows(*near_duplicates(parameters, packed.documents(), {}, execution));
            for (std::uint32_t count = 1; count <= kMostParts; ++count)
                EXPECT_EQ(shared(packed, parameters, {}, count, PairSource::documents), expected);
        }
}

TEST(NearDuplicatesParts, SayWhenSignaturesAreTooMuchAlike) {
    RandomStrings random;
    const Packed packed(families(random, 1000, 60, 20));
    const std::vector<std::optional<Ctph>> alike(packed.documents().size(),
                                                 *parse_ctph("4:ABCDEFGH:ABCD"));
    Execution execution(2);
    FirstCopies copies;
    ASSERT_TRUE(copies.find(packed.documents(), alike, 0, execution).ok());
    const NearDuplicateParameters parameters{0.1, NearDuplicateMode::ctph};
    for (std::uint32_t index = 0; index < 2; ++index) {
        const auto part = near_pairs(parameters, copies.distinct(),
                                     {index, 2, PairSource::signatures}, execution);
        ASSERT_TRUE(part.ok());
        EXPECT_TRUE(part->too_many);
        EXPECT_TRUE(part->pairs.empty());
    }
    const auto expected = near_duplicates(parameters, packed.documents(), alike, execution);
    EXPECT_EQ(shared(packed, parameters, alike, 2, PairSource::documents), rows(*expected));
}

TEST(NearDuplicatesParts, HaveEachRowOnceAndAboutAsManyPairs) {
    RandomStrings random;
    for (const std::size_t size : {0, 1, 63, 64, 65, 3000, 10007, 100000}) {
        std::vector<std::uint32_t> lengths;
        for (std::size_t i = 0; i < size; ++i)
            lengths.push_back(static_cast<std::uint32_t>(100 + random.below(50)));
        std::vector<std::uint32_t> order(size);
        for (std::uint32_t i = 0; i < size; ++i) order[i] = i;
        std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return lengths[i]; });
        for (std::uint32_t count = 2; count <= 8; ++count) {
            std::vector<std::uint8_t> sum(size, 0), part;
            std::vector<double> pairs(count);
            for (std::uint32_t index = 0; index < count; ++index) {
                ASSERT_TRUE(rows_of_part(lengths, {index, count}, {}, part));
                ASSERT_EQ(part.size(), size);
                for (std::size_t place = 0; place < size; ++place) {
                    sum[order[place]] += part[order[place]];
                    if (part[order[place]] != 0)
                        pairs[index] += static_cast<double>(size - place - 1);
                }
            }
            EXPECT_EQ(sum, std::vector<std::uint8_t>(size, 1));
            const double all = static_cast<double>(size) * static_cast<double>(size) / 2;
            if (size >= 10000) {
                EXPECT_LT(*std::ranges::max_element(pairs), 1.01 * all / count) << size;
            }
        }
        std::vector<std::uint8_t> whole{1};
        ASSERT_TRUE(rows_of_part(lengths, {}, {}, whole));
        EXPECT_TRUE(whole.empty());
    }
}

TEST(NearDuplicatesParts, EndWhenAskedToStop) {
    const Packed packed({"one document", "another document"});
    const auto lengths = lengths_of(packed.documents());
    Execution execution(1);
    execution.request_stop();
    EXPECT_EQ(near_pairs({0.1, NearDuplicateMode::exact}, {packed.documents(), lengths, {}},
                         {1, 2, PairSource::documents}, execution)
                  .status()
                  .code(),
              ErrorCode::cancelled);
    EXPECT_EQ(ctph_signatures(packed.documents(), 100, execution).status().code(),
              ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
