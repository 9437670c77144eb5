#include "cpp/documents/sketch_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "cpp/documents/detail/sketch_counts.hpp"
#include "cpp/documents/detail/sketch_levels.hpp"
#include "cpp/documents/length_class.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::RandomStrings;

/// The largest part of all bigrams of a text that comes into one bin.
double largest_bin(const std::vector<std::uint16_t>& numbers, const std::string& text) {
    const SketchModel model({}, numbers.data());
    SketchCounts counts(model);
    counts.count(bytes_of(text), CharacterLengths::single_byte(), {});
    return *std::ranges::max_element(counts.grams()) / static_cast<double>(text.size());
}

TEST(SketchModel, GivesFrequentBigramsBinsOfTheirOwn) {
    RandomStrings random;
    SketchModelLearner learner;
    std::string all;
    for (int i = 0; i < 200; ++i) {
        const std::string text = random.string(1000, "etaoin shrdlu");
        learner.add(bytes_of(text), CharacterLengths::single_byte());
        all += text;
    }
    ASSERT_EQ(learner.documents(), 200u);
    const auto numbers = learner.learn({});
    ASSERT_EQ(numbers.size(), SketchModel::size({}));
    // 169 bigrams, all as frequent but for chance, among 320 bins; some share a cell.
    EXPECT_LT(largest_bin(numbers, all), 4.5 / 169);
    EXPECT_GT(largest_bin(general_sketch_model({}), all), largest_bin(numbers, all));
}

TEST(SketchModel, SharesAllCellsOut) {
    for (const std::size_t bins : {32u, 320u, 512u, 1024u}) {
        const auto numbers = general_sketch_model({bins});
        const SketchModel model({bins}, numbers.data());
        ASSERT_TRUE(model.is_valid());
        for (const SketchPart& part : {model.letters(), model.grams()}) {
            std::vector<std::size_t> cells(part.least.size());
            for (const std::uint16_t bin : part.bins) ++cells[bin];
            EXPECT_GT(*std::ranges::min_element(cells), 0u) << bins;
        }
    }
}

/// Most counts of documents that it was learned from lie between the first and the last level.
TEST(SketchModel, HasLevelsWhereCountsAre) {
    RandomStrings random;
    SketchModelLearner learner;
    std::vector<std::string> texts;
    for (int i = 0; i < 300; ++i) {
        texts.push_back(random.string(2000, "eeeeeettttaaoinshrdlu    "));
        learner.add(bytes_of(texts.back()), CharacterLengths::single_byte());
    }
    const auto numbers = learner.learn({});
    const SketchModel model({}, numbers.data());
    SketchCounts counts(model);
    for (const bool of_letters : {true, false}) {
        const SketchLevels levels(of_letters ? model.letters() : model.grams(), length_class(2000));
        std::size_t below = 0, beyond = 0, all = 0;
        for (const std::string& text : texts) {
            counts.count(bytes_of(text), CharacterLengths::single_byte(), {});
            const auto& found = of_letters ? counts.letters() : counts.grams();
            for (std::size_t bin = 0; bin < found.size(); ++bin) {
                const std::size_t group = bin / SketchShape::group;
                const std::uint32_t last =
                    levels.least[bin] +
                    (std::uint32_t{levels.levels[group][14]} << levels.shifts[group]);
                below += found[bin] < levels.least[bin];
                beyond += found[bin] > last;
                ++all;
            }
        }
        EXPECT_LT(below, all / 20);
        EXPECT_LT(beyond, all / 20);
    }
}

TEST(SketchModel, IsNotLearnedFromShortDocuments) {
    SketchModelLearner learner;
    learner.add(bytes_of("too short"), CharacterLengths::utf8());
    learner.add(bytes_of(""), CharacterLengths::utf8());
    EXPECT_EQ(learner.documents(), 0u);
    learner.add(bytes_of(std::string(1'000'000, 'x')), CharacterLengths::utf8());
    EXPECT_EQ(learner.documents(), 1u);
    const auto numbers = learner.learn({});
    EXPECT_TRUE(SketchModel({}, numbers.data()).is_valid());
}

TEST(SketchModel, IsNotValidWithBinsThatThereAreNot) {
    auto numbers = general_sketch_model({});
    const SketchModel model({}, numbers.data());
    ASSERT_TRUE(model.is_valid());
    for (const SketchPart& part : {model.letters(), model.grams()}) {
        const auto at = static_cast<std::size_t>(&part.bins.back() - numbers.data());
        const std::uint16_t was = numbers[at];
        numbers[at] = static_cast<std::uint16_t>(part.least.size());
        EXPECT_FALSE(model.is_valid());
        numbers[at] = was;
    }
}

/// A code stands for at least the count that it was made of, and the one below does not.
TEST(SketchLevels, RoundsCountsUp) {
    RandomStrings random;
    constexpr std::size_t group = SketchShape::group;
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::uint16_t> least(2 * group), steps(2), no_cells;
        for (auto& number : least) number = static_cast<std::uint16_t>(random.below(1000));
        for (auto& number : steps)
            number = static_cast<std::uint16_t>(random.below(std::size_t{1} << random.below(17)));
        const auto number = static_cast<std::uint8_t>(random.below(kLengthClasses));
        const SketchLevels levels({no_cells, least, steps}, number);
        std::vector<std::uint32_t> counts(2 * group);
        for (std::size_t bin = 0; bin < counts.size(); ++bin)
            counts[bin] = static_cast<std::uint32_t>(levels.least[bin] +
                                                     random.below(2u << random.below(20))) -
                          static_cast<std::uint32_t>(random.below(levels.least[bin] + 1));
        std::vector<std::uint8_t> units(counts.size()), sketch(group);
        levels.units_of(counts, units.data());
        levels.pack(units, sketch.data());
        for (std::size_t bin = 0; bin < counts.size(); ++bin) {
            const std::size_t of = bin / group;
            const unsigned code = of == 0 ? sketch[bin] & 15u : sketch[bin - group] >> 4;
            const auto level = [&](unsigned at) {
                return levels.least[bin] +
                       (std::uint64_t{levels.levels[of][at]} << levels.shifts[of]);
            };
            ASSERT_TRUE(code == 15 || counts[bin] <= level(code)) << counts[bin];
            ASSERT_TRUE(code == 0 || counts[bin] > level(code - 1)) << counts[bin];
        }
    }
}

}  // namespace
}  // namespace gputext
