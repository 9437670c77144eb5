#include "cpp/documents/detail/sketch_levels.hpp"

#include <gtest/gtest.h>

#include "cpp/documents/detail/shared_counts.hpp"
#include "cpp/documents/sketch_model.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::RandomStrings;

constexpr std::size_t kGroup = SketchShape::group;

/// The numbers of a part of a model that levels are made of.
struct Part {
    std::vector<std::uint16_t> least, steps;

    Part(RandomStrings& random, std::size_t bins, std::size_t groups) : least(bins), steps(groups) {
        for (auto& number : least) number = static_cast<std::uint16_t>(random.below(1000));
        for (auto& number : steps)
            number = static_cast<std::uint16_t>(random.below(std::size_t{1} << random.below(17)));
    }
    operator SketchPart() const { return {{}, least, steps}; }
};

/// Around and far from the least one; documents have fewer than 2^31 characters.
std::uint32_t count_near(RandomStrings& random, std::uint32_t least) {
    least = std::min(least, std::uint32_t{1} << 30);
    return static_cast<std::uint32_t>(least + random.below(2u << random.below(20)) -
                                      random.below(least + std::size_t{1}));
}

/// A code stands for at least the count that it was made of, and the one below does not.
TEST(SketchLevels, RoundCountsOfLettersUp) {
    RandomStrings random;
    for (int round = 0; round < 2000; ++round) {
        const Part part(random, SketchShape::letter_bins, SketchShape::letter_bins);
        const LetterLevels levels(part, static_cast<std::uint8_t>(random.below(kLengthClasses)));
        std::vector<std::uint32_t> counts;
        for (const auto& of_bin : levels.counts)
            counts.push_back(count_near(random, of_bin[random.below(of_bin.size())]));
        std::uint8_t sketch[SketchShape::letters];
        levels.pack(counts, sketch);
        for (std::size_t bin = 0; bin < counts.size(); ++bin) {
            const unsigned code = bin % 2 == 0 ? sketch[bin / 2] & 15u : sketch[bin / 2] >> 4;
            ASSERT_TRUE(code == 15 || counts[bin] <= levels.counts[bin][code]) << counts[bin];
            ASSERT_TRUE(code == 0 || counts[bin] > levels.counts[bin][code - 1]) << counts[bin];
        }
    }
}

TEST(SketchLevels, RoundCountsOfBigramsUp) {
    RandomStrings random;
    for (int round = 0; round < 2000; ++round) {
        const Part part(random, 4 * kGroup, 4);
        const GramLevels levels(part, static_cast<std::uint8_t>(random.below(kLengthClasses)));
        std::vector<std::uint32_t> counts;
        for (const std::uint32_t least : levels.least) counts.push_back(count_near(random, least));
        std::vector<std::uint8_t> units(counts.size()), sketch(counts.size() / 2);
        levels.units_of(counts, units.data());
        levels.pack(units, sketch.data());
        for (std::size_t bin = 0; bin < counts.size(); ++bin) {
            const std::size_t group = bin / kGroup;
            const std::uint8_t byte = sketch[group / 2 * kGroup + bin % kGroup];
            const unsigned code = group % 2 == 0 ? byte & 15u : byte >> 4;
            const auto level = [&](unsigned at) {
                return levels.least[bin] +
                       (std::uint64_t{levels.levels[group][at]} << levels.shifts[group]);
            };
            ASSERT_TRUE(code == 15 || counts[bin] <= level(code)) << counts[bin];
            ASSERT_TRUE(code == 0 || counts[bin] > level(code - 1)) << counts[bin];
        }
    }
}

std::vector<Simd> instruction_sets() {
    std::vector<Simd> sets{Simd::portable};
    for (const Simd simd : {Simd::avx2, Simd::avx512})
        if (simd_available(simd)) sets.push_back(simd);
    return sets;
}

/// By all instruction sets the same sums, which are what the tables say.
TEST(SharedCounts, OfLettersAreSumsOfUnits) {
    RandomStrings random;
    for (int round = 0; round < 1000; ++round) {
        const Part part(random, SketchShape::letter_bins, SketchShape::letter_bins);
        const LetterLevels levels(part, static_cast<std::uint8_t>(random.below(200)));
        std::vector<std::uint32_t> counts;
        for (const auto& of_bin : levels.counts)
            counts.push_back(count_near(random, of_bin[random.below(of_bin.size())]) %
                             (1u << random.below(20)));
        const std::uint64_t allowed = random.below(2u << random.below(18));
        const QueryLetters query(levels, counts, allowed);
        const std::size_t stride = kLetterBatch + random.below(50);
        std::vector<std::uint8_t> sketches((SketchShape::letters - 1) * stride + kLetterBatch);
        for (auto& byte : sketches)
            byte = static_cast<std::uint8_t>(random.below(256) | random.below(256));
        for (const Simd simd : instruction_sets()) {
            std::uint8_t sums[kLetterBatch];
            const std::uint64_t left =
                shared_counts(simd).letters(query, sketches.data(), stride, sums);
            for (std::size_t document = 0; document < kLetterBatch; ++document) {
                unsigned sum = 0;
                std::uint64_t lacks = 0;
                for (std::size_t bin = 0; bin < counts.size(); ++bin) {
                    const std::uint8_t byte = sketches[bin / 2 * stride + document];
                    const unsigned code = bin % 2 == 0 ? byte & 15u : byte >> 4;
                    sum += query.tables()[bin][code];
                    if (code < 15)
                        lacks += counts[bin] - std::min(counts[bin], levels.counts[bin][code]);
                }
                ASSERT_EQ(sums[document], std::min(sum, 255u)) << simd_name(simd);
                ASSERT_LE(sums[document] * query.unit(), lacks);
                ASSERT_EQ(left >> document & 1, sums[document] < query.excluding());
                // Only documents that lack more than is allowed are excluded.
                ASSERT_TRUE((left >> document & 1) != 0 || lacks > allowed);
            }
        }
    }
}

/// At least what the query shares with a document, and, if no level is rounded, just that.
TEST(SharedCounts, OfBigramsAreSumsOfMinima) {
    RandomStrings random;
    for (int round = 0; round < 1000; ++round) {
        const std::size_t bins = 32 * (1 + random.below(32));
        Part part(random, bins, bins / kGroup);
        const bool exact = round % 2 == 0;  // each count has a level of its own
        if (exact) std::ranges::fill(part.steps, 0);
        const GramLevels levels(part, static_cast<std::uint8_t>(random.below(200)));
        std::vector<std::uint32_t> mine, other;
        std::uint64_t shared = 0;
        for (const std::uint32_t least : levels.least) {
            mine.push_back(exact ? static_cast<std::uint32_t>(random.below(least + 256))
                                 : count_near(random, least));
            other.push_back(exact ? least + static_cast<std::uint32_t>(random.below(14))
                                  : count_near(random, least));
            shared += std::min(mine.back(), other.back());
        }
        const QueryGrams query(levels, mine);
        std::vector<std::uint8_t> units(bins), sketch(bins / 2);
        levels.units_of(other, units.data());
        levels.pack(units, sketch.data());
        const std::vector<std::uint8_t> copy = sketch;  // with nothing behind it
        const std::uint64_t first = shared_counts(Simd::portable).grams(query, copy.data());
        ASSERT_GE(first + query.at_least(), shared);
        ASSERT_TRUE(!exact || first + query.at_least() == shared);
        for (const Simd simd : instruction_sets())
            ASSERT_EQ(shared_counts(simd).grams(query, copy.data()), first) << simd_name(simd);
    }
}

}  // namespace
}  // namespace gputext
