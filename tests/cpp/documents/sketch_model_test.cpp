#include "cpp/documents/sketch_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cpp/documents/detail/document_kinds.hpp"
#include "cpp/documents/detail/sketch_counts.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::RandomStrings;

TEST(SketchModel, SharesAllCellsOut) {
    for (const std::size_t bins : {32u, 320u, 512u, 1024u}) {
        const OwnedSketchModel owned = general_sketch_model(bins);
        const SketchModel model = owned.view();
        ASSERT_EQ(owned.numbers.size(), SketchModel::size(owned.shape));
        ASSERT_EQ(model.shape(), (SketchShape{bins, false}));
        ASSERT_TRUE(model.shape().is_valid());
        ASSERT_TRUE(model.is_valid());
        for (const SketchPart& part : {model.letters(), model.grams()}) {
            std::vector<std::size_t> cells(part.least.size());
            for (const std::uint16_t bin : part.bins) ++cells[bin];
            EXPECT_GT(*std::ranges::min_element(cells), 0u) << bins;
        }
    }
}

/// Its parts are all of its numbers, one behind the other.
TEST(SketchModel, ConsistsOfItsParts) {
    for (const bool halves : {false, true}) {
        const SketchShape shape{96, halves};
        const std::vector<std::uint16_t> numbers(SketchModel::size(shape));
        const SketchModel model(shape, numbers.data());
        const std::uint16_t* at = numbers.data();
        const auto follows = [&](std::span<const std::uint16_t> part, std::size_t size) {
            EXPECT_EQ(part.data(), at);
            EXPECT_EQ(part.size(), size);
            at += size;
        };
        follows(model.typical_roots(), kLetterCells);
        follows(model.letters().bins, kLetterCells);
        follows(model.letters().least, 32);
        follows(model.letters().steps, 32);
        follows(model.grams().bins, halves ? 2 * kGramCells : kGramCells);
        follows(model.grams().least, 96);
        follows(model.grams().steps, 6);
        EXPECT_EQ(at, numbers.data() + numbers.size());
        EXPECT_EQ(model.numbers().size(), numbers.size());
    }
}

TEST(SketchModel, HasAMultipleOf32Bins) {
    for (std::size_t bins = 0; bins < 1200; ++bins) {
        const bool valid = bins % 32 == 0 && bins >= 32 && bins <= 1024;
        EXPECT_EQ((SketchShape{bins, false}.is_valid()), valid) << bins;
        EXPECT_EQ((SketchShape{bins, true}.is_valid()), valid) << bins;
    }
    EXPECT_FALSE((SketchShape{SIZE_MAX - 31, false}.is_valid()));
}

TEST(SketchModel, IsNotValidWithBinsThatThereAreNot) {
    for (const SketchShape shape : {SketchShape{320, false}, SketchShape{64, true}}) {
        std::vector<std::uint16_t> numbers(SketchModel::size(shape));
        const SketchModel model(shape, numbers.data());
        ASSERT_TRUE(model.is_valid());
        for (const SketchPart& part : {model.letters(), model.grams()})
            for (std::size_t cell = 0; cell < part.bins.size(); ++cell) {
                const auto at = static_cast<std::size_t>(&part.bins[cell] - numbers.data());
                numbers[at] = static_cast<std::uint16_t>(part.least.size());
                ASSERT_FALSE(model.is_valid()) << cell;
                numbers[at] = UINT16_MAX;
                ASSERT_FALSE(model.is_valid()) << cell;
                numbers[at] = static_cast<std::uint16_t>(part.least.size() - 1);
                ASSERT_TRUE(model.is_valid()) << cell;
            }
        // All other numbers may have any value.
        for (const SketchPart& part : {model.letters(), model.grams()})
            for (const auto& any : {part.least, part.steps, model.typical_roots()})
                for (const std::uint16_t& number : any)
                    numbers[static_cast<std::size_t>(&number - numbers.data())] = UINT16_MAX;
        ASSERT_TRUE(model.is_valid());
    }
}

LetterRoots roots_of(const std::string& text) {
    SketchCounts counts;
    LetterRoots roots;
    counts.count(bytes_of(text), CharacterLengths::utf8(), {});
    find_roots(counts.letters(), counts.length(), roots);
    return roots;
}

/// With a sum in floating point.
double plain_distance(const LetterRoots& a, const LetterRoots& b) {
    double sum = 0;
    for (std::size_t cell = 0; cell < a.size(); ++cell) {
        const double apart = a[cell] - b[cell];
        sum += apart * apart;
    }
    return sum;
}

TEST(LetterRoots, HaveDistancesWithoutOverflow) {
    RandomStrings random;
    for (int round = 0; round < 300; ++round) {
        const LetterRoots a = roots_of(random.string(random.below(100), "abcde")),
                          b = roots_of(random.string(random.below(100), "cdefghijk"));
        ASSERT_EQ(square_distance(a, b), plain_distance(a, b));
        ASSERT_EQ(square_distance(a, a), 0u);
        ASSERT_LE(plain_distance(a, {}), double{kRootUnit} * kRootUnit);
    }
    // The longest distance that there is.
    for (const std::size_t length : {1u, 3u, 41u, 1'000'003u}) {
        const LetterRoots roots = roots_of(std::string(length, 'a'));
        EXPECT_GE(roots['a'], kRootUnit - 1) << length;
        EXPECT_LE(roots['a'], kRootUnit) << length;
        EXPECT_EQ(square_distance(roots, roots_of("b")), plain_distance(roots, roots_of("b")));
    }
    const std::uint32_t unit = kRootUnit;
    EXPECT_EQ(square_distance(roots_of("a"), roots_of("b")), 2 * unit * unit);
    EXPECT_EQ(roots_of(""), LetterRoots{});
}

TEST(NearestModel, HasTheNearestTypicalDocument) {
    RandomStrings random;
    const char* const alphabets[] = {"abcdef", "abcdefghijkl", "0123456789", "a0 "};
    for (int round = 0; round < 300; ++round) {
        std::vector<OwnedSketchModel> owned(1 + random.below(kMostSketchModels));
        std::vector<SketchModel> models;
        std::vector<LetterRoots> typical;
        for (OwnedSketchModel& model : owned) {
            model.shape = {32, false};
            model.numbers.resize(SketchModel::size(model.shape));
            typical.push_back(
                roots_of(random.string(1 + random.below(30), alphabets[random.below(4)])));
            std::ranges::copy(typical.back(), model.numbers.begin());
            models.push_back(model.view());
        }
        const std::string text = random.string(random.below(100), alphabets[random.below(4)]);
        SketchCounts counts;
        counts.count(bytes_of(text), CharacterLengths::utf8(), {});
        const LetterRoots roots = roots_of(text);
        std::size_t expected = 0;
        for (std::size_t i = 1; i < models.size(); ++i)
            if (plain_distance(roots, typical[i]) < plain_distance(roots, typical[expected]))
                expected = i;  // the first of several
        ASSERT_EQ(nearest_model(models, counts.letters(), counts.length()), expected);
    }
}

}  // namespace
}  // namespace gputext
