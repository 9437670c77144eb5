#include "cpp/near_duplicates.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "cpp/document_filter.hpp"
#include "cpp/document_join.hpp"
#include "cpp/edit_distance.hpp"
#include "tests/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::kSanitized;
using testing::plain_edit_distance;
using testing::RandomStrings;
using testing::utf8_of;

/// Documents in one block of memory, as an operator gets them.
class Packed {
public:
    explicit Packed(const std::vector<std::string>& texts,
                    CharacterLengths characters = CharacterLengths::utf8()) {
        for (const std::string& text : texts) {
            extents_.push_back({bytes_.size(), text.size()});
            bytes_ += text;
        }
        documents_ = {bytes_of(bytes_).data(), extents_, characters};
    }
    Packed(const Packed&) = delete;

    const Documents& documents() const { return documents_; }

private:
    std::string bytes_;
    std::vector<Extent> extents_;
    Documents documents_;
};

/// A corpus with versions, exact copies, empty documents and several alphabets.
std::vector<std::string> corpus(RandomStrings& random, std::size_t count, std::size_t longest) {
    const std::u32string_view alphabets[] = {U"etaoin shrdlu(){};=\n", U"ab",
                                             U"\u00e9tao漢字 🙂\n"};
    std::vector<std::string> texts;
    while (texts.size() < count) {
        const auto alphabet = alphabets[random.below(3)];
        const std::size_t length = random.below(40) == 0 ? 0 : random.below(longest);
        auto text = random.string<std::u32string>(length, alphabet);
        texts.push_back(utf8_of(text));
        for (std::size_t n = random.below(4); n > 0; --n) {
            if (random.below(4) != 0)
                text = random.edited(text, random.below(text.size() / 12 + 2), alphabets[0]);
            texts.push_back(utf8_of(text));
        }
    }
    return texts;
}

using Row = std::tuple<std::uint32_t, std::uint32_t, double>;

std::vector<Row> rows(const NearDuplicates& answer) {
    std::vector<Row> result;
    std::vector<Neighbour> neighbours;
    for (std::uint32_t i = 0; i < answer.documents(); ++i) {
        answer.later_neighbours(i, neighbours);
        for (const Neighbour& neighbour : neighbours)
            result.emplace_back(i, neighbour.document, neighbour.edit_rate);
    }
    EXPECT_EQ(answer.pairs(), result.size());
    return result;
}

/// Edit rates of all pairs by the dynamic program.
std::vector<Row> all_rates(const Packed& packed) {
    const Documents& documents = packed.documents();
    std::vector<std::vector<std::uint32_t>> symbols(documents.size());
    for (std::size_t i = 0; i < documents.size(); ++i)
        decode_characters(documents[i], documents.characters, symbols[i]);
    std::vector<Row> rates;
    for (std::uint32_t i = 0; i < documents.size(); ++i)
        for (std::uint32_t j = i + 1; j < documents.size(); ++j)
            rates.emplace_back(i, j,
                               edit_rate(plain_edit_distance(symbols[i], symbols[j]),
                                         symbols[i].size() + symbols[j].size()));
    return rates;
}

std::vector<Row> below(std::vector<Row> rates, double threshold) {
    std::erase_if(rates, [=](const Row& row) { return !(std::get<2>(row) < threshold); });
    return rates;
}

class NearDuplicatesOnEach : public ::testing::TestWithParam<Simd> {
protected:
    void SetUp() override {
        if (!simd_available(GetParam())) GTEST_SKIP() << "this processor lacks it";
    }

    NearDuplicates run(const Packed& packed, NearDuplicateParameters parameters,
                       GivenSignatures signatures = {}) {
        parameters.simd = GetParam();
        Execution execution(3);
        auto answer = near_duplicates(parameters, packed.documents(), signatures, execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return std::move(*answer);
    }
};

INSTANTIATE_TEST_SUITE_P(Simd, NearDuplicatesOnEach,
                         ::testing::Values(Simd::portable, Simd::avx2, Simd::avx512),
                         [](const auto& simd) { return std::string(simd_name(simd.param)); });

TEST_P(NearDuplicatesOnEach, ExactModeFindsEveryPair) {
    RandomStrings random;
    for (const std::size_t longest : {40, 700}) {
        const Packed packed(corpus(random, kSanitized ? 60 : 160, longest));
        const auto rates = all_rates(packed);
        for (const double threshold : {0.0, 0.001, 0.05, 0.2, 0.4999}) {
            // Room for all documents' features, for a few, for fewer than any.
            for (const std::size_t memory_limit :
                 {std::size_t{1} << 30, std::size_t{200000}, std::size_t{0}}) {
                NearDuplicateParameters parameters{threshold, NearDuplicateMode::exact};
                parameters.memory_limit = memory_limit;
                ASSERT_EQ(rows(run(packed, parameters)), below(rates, threshold))
                    << threshold << ", " << memory_limit << " bytes";
            }
        }
    }
}

TEST_P(NearDuplicatesOnEach, CtphModeFindsThePairsWithNearSignatures) {
    RandomStrings random;
    const auto texts = corpus(random, kSanitized ? 50 : 110, 1000);
    const Packed packed(texts);
    const auto rates = all_rates(packed);
    for (const std::size_t length : {16, 100}) {
        std::vector<std::optional<Ctph>> signatures;
        for (const std::string& text : texts)
            signatures.push_back(*ctph_signature(bytes_of(text), length));
        for (const double threshold : {0.01, 0.05, 0.3}) {
            std::vector<Row> expected = below(rates, threshold);
            std::erase_if(expected, [&](const Row& row) {
                const auto& [i, j, rate] = row;
                const double near = edit_rate(*signatures[i], *signatures[j]);
                return !(near < std::min(1.0, 3 * threshold)) && texts[i] != texts[j];
            });
            NearDuplicateParameters parameters{threshold, NearDuplicateMode::ctph, length};
            ASSERT_EQ(rows(run(packed, parameters)), expected);
            // Signatures that the caller has already make no difference, some or all.
            parameters.signature_length = length;
            for (std::size_t i = 0; i < signatures.size(); i += 3) signatures[i].reset();
            ASSERT_EQ(rows(run(packed, parameters, signatures)), expected);
            for (std::size_t i = 0; i < signatures.size(); i += 3)
                signatures[i] = *ctph_signature(bytes_of(texts[i]), length);
        }
    }
}

TEST_P(NearDuplicatesOnEach, SharedCountsAreNeverBelowTheTruth) {
    RandomStrings random;
    const auto shared = shared_features(GetParam());
    const auto lengths = CharacterLengths::utf8();
    for (int round = 0; round < 60; ++round) {
        // Long runs of one character and of one trigram overflow the bins' counts.
        auto a = random.string(random.below(3000), "ab");
        a.append(round % 5 == 0 ? 70000 : random.below(2000), 'x');
        const auto b = random.edited(a, random.below(40), "abc");
        auto features_a = std::make_unique<DocumentFeatures>();
        auto features_b = std::make_unique<DocumentFeatures>();
        ASSERT_TRUE(features_a->set(bytes_of(a), lengths));
        ASSERT_TRUE(features_b->set(bytes_of(b), lengths));
        const std::size_t edits = *EditDistance()(bytes_of(a), bytes_of(b));
        const std::size_t longer = std::max(a.size(), b.size());
        ASSERT_GE(shared.characters(*features_a, *features_b) + edits, longer);
        ASSERT_GE(shared.trigrams(*features_a, *features_b) + 3 * edits + 2, longer);
        const auto portable = shared_features(Simd::portable);
        ASSERT_EQ(shared.characters(*features_a, *features_b),
                  portable.characters(*features_a, *features_b));
        ASSERT_EQ(shared.trigrams(*features_a, *features_b),
                  portable.trigrams(*features_a, *features_b));
    }
}

TEST(NearDuplicates, ComponentsAreNamedByTheirFirstDocument) {
    const std::string text(400, 'x');
    const std::string chain[] = {text + "ab",
                                 "something else",
                                 text + "abcdefghijklmnopqrstuvwxyz",
                                 text,
                                 text + "abcdefghijklm",
                                 text,
                                 "else something"};
    const Packed packed(std::vector<std::string>(std::begin(chain), std::end(chain)));
    Execution execution(1);
    const NearDuplicateParameters parameters{0.02, NearDuplicateMode::exact};
    const auto answer = near_duplicates(parameters, packed.documents(), {}, execution);
    ASSERT_TRUE(answer.ok());
    // 2 is near 4, 4 near 0 and 3; 2 is not near 0.
    EXPECT_EQ(*answer->components(), (std::vector<std::uint32_t>{0, 1, 0, 0, 0, 0, 6}));
}

TEST(NearDuplicates, CopiesTakeNoMemoryForTheirPairs) {
    const Packed packed(std::vector<std::string>(20000, "the same"));
    Execution execution(2);
    const auto answer =
        near_duplicates({0.05, NearDuplicateMode::exact}, packed.documents(), {}, execution);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->pairs(), 20000ull * 19999 / 2);
    std::vector<Neighbour> neighbours;
    answer->later_neighbours(19990, neighbours);
    EXPECT_EQ(neighbours.size(), 9u);
}

TEST(NearDuplicates, HandlesNoDocuments) {
    const Packed packed({});
    Execution execution(2);
    for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact}) {
        const auto answer = near_duplicates({0.05, mode}, packed.documents(), {}, execution);
        ASSERT_TRUE(answer.ok());
        EXPECT_EQ(answer->pairs(), 0u);
        EXPECT_TRUE(answer->components()->empty());
    }
}

TEST(NearDuplicates, RefusesParametersOutOfRange) {
    const Packed packed({"a", "b"});
    Execution execution(1);
    for (const double threshold : {-0.1, 0.5, 2.0, std::nan("")}) {
        const auto answer = near_duplicates({threshold}, packed.documents(), {}, execution);
        EXPECT_EQ(answer.status().code(), ErrorCode::invalid_argument);
    }
    for (const std::size_t length : {0, 1025}) {
        const auto answer = near_duplicates({0.05, NearDuplicateMode::ctph, length},
                                            packed.documents(), {}, execution);
        EXPECT_EQ(answer.status().code(), ErrorCode::invalid_argument);
    }
}

}  // namespace
}  // namespace gputext
