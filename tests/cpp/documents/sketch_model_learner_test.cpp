#include "cpp/documents/sketch_model_learner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cpp/documents/detail/sketch_counts.hpp"
#include "cpp/documents/detail/sketch_levels.hpp"
#include "cpp/documents/document_sketch.hpp"
#include "cpp/documents/sketch_model.hpp"
#include "tests/support/learned_models.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::learn;
using testing::RandomStrings;

using Texts = std::vector<std::string>;

Texts texts(RandomStrings& random, std::size_t count, std::string_view letters,
            std::size_t length = 400) {
    Texts made;
    while (made.size() < count)
        made.push_back(random.string(length / 2 + random.below(length), letters));
    return made;
}

void add(SketchModelLearner& learner, const Texts& documents) {
    for (const std::string& document : documents)
        learner.add(bytes_of(document), CharacterLengths::single_byte());
}

std::vector<SketchModel> views(const std::vector<OwnedSketchModel>& models) {
    std::vector<SketchModel> made;
    for (const OwnedSketchModel& model : models) made.push_back(model.view());
    return made;
}

std::vector<std::size_t> models_of(const Texts& documents, const std::vector<SketchModel>& models) {
    std::vector<std::size_t> numbers;
    SketchCounts counts;
    for (const std::string& document : documents) {
        counts.count(bytes_of(document), CharacterLengths::single_byte(), {});
        numbers.push_back(nearest_model(models, counts.letters(), counts.length()));
    }
    return numbers;
}

TEST(SketchModelLearner, GivesEachKindItsModel) {
    RandomStrings random;
    const Texts prose = texts(random, 300, "eeeettaaooiinnsshhrrdlu  ,"),
                tables = texts(random, 300, "0123456789\t\n");
    SketchModelLearner learner;
    add(learner, prose);
    add(learner, tables);
    const auto models = learn(learner, 320, 2);
    ASSERT_EQ(models.size(), 2u);
    const auto of_prose = models_of(prose, views(models));
    const auto of_tables = models_of(tables, views(models));
    EXPECT_EQ(of_prose, std::vector<std::size_t>(300, of_prose[0]));
    EXPECT_EQ(of_tables, std::vector<std::size_t>(300, 1 - of_prose[0]));
}

/// Each has the shape that it says, and sketches of the documents have no more bins on average.
TEST(SketchModelLearner, StaysWithinItsLimits) {
    RandomStrings random;
    Texts all;
    for (const std::string_view letters :
         {"etaoin shrdlu", "0123456789", "abcdefghijklmnopqrstuvwxyz ", "ab", "(){};=_ if"})
        for (std::string& text : texts(random, 120 + random.below(200), letters))
            all.push_back(std::move(text));
    SketchModelLearner learner;
    add(learner, all);
    for (const std::size_t bins : {32u, 64u, 320u, 1024u})
        for (const std::size_t most : {std::size_t{1}, std::size_t{3}, kMostSketchModels}) {
            const auto models = learn(learner, bins, most);
            ASSERT_GE(models.size(), 1u);
            ASSERT_LE(models.size(), most);
            if (most > 1) {
                EXPECT_GT(models.size(), 1u);
            }
            for (const OwnedSketchModel& model : models) {
                ASSERT_TRUE(model.shape.is_valid()) << model.shape.bins;
                ASSERT_EQ(model.numbers.size(), SketchModel::size(model.shape));
                ASSERT_TRUE(model.view().is_valid());
            }
            std::size_t sum = 0;
            for (const std::size_t number : models_of(all, views(models)))
                sum += models[number].shape.bins;
            EXPECT_LE(sum, bins * all.size()) << bins << " " << most;
            // And not much less, where there is a choice.
            if (bins == 320) {
                EXPECT_GE(sum, bins * all.size() / 2);
            }
        }
}

/// On any number of threads.
TEST(SketchModelLearner, LearnsTheSameAgain) {
    RandomStrings random;
    SketchModelLearner one, other;
    for (const std::string_view letters : {"etaoin shrdlu", "0123456789", "xyz,;"}) {
        const Texts documents = texts(random, 150, letters);
        add(one, documents);
        add(other, documents);
    }
    const auto first = learn(one, 320, 4);
    EXPECT_EQ(first.size(), 4u);
    for (const auto& again : {learn(one, 320, 4), learn(other, 320, 4, 2), learn(one, 320, 4, 7)}) {
        ASSERT_EQ(again.size(), first.size());
        for (std::size_t i = 0; i < again.size(); ++i) {
            EXPECT_EQ(again[i].shape, first[i].shape);
            EXPECT_EQ(again[i].numbers, first[i].numbers);
        }
    }
}

/// The same blocks in any order: only halves tell these documents apart. Others, which are easy to
/// tell apart, leave them the bins for that.
TEST(SketchModelLearner, TellsHalvesApartWhereThatHelps) {
    RandomStrings random;
    const Texts shuffled = random.shuffled_blocks(100);
    SketchModelLearner learner;
    add(learner, shuffled);
    add(learner, texts(random, 300, "0123456789"));
    const auto models = learn(learner, 320, 2);
    ASSERT_EQ(models.size(), 2u);
    const std::size_t number = models_of(shuffled, views(models))[0];
    EXPECT_TRUE(models[number].shape.halves);
    EXPECT_FALSE(models[1 - number].shape.halves);
}

/// The largest part of all bigrams of a text that comes into one bin.
double largest_bin(const SketchModel& model, const std::string& text) {
    SketchCounts counts;
    counts.count(bytes_of(text), CharacterLengths::single_byte(), {});
    std::vector<std::uint32_t> bins(model.shape().bins);
    add_in_bins(counts.grams(), model.grams(), bins);
    return *std::ranges::max_element(bins) / static_cast<double>(text.size());
}

TEST(SketchModelLearner, GivesFrequentBigramsBinsOfTheirOwn) {
    RandomStrings random;
    const Texts documents = texts(random, 200, "etaoin shrdlu", 1000);
    SketchModelLearner learner;
    add(learner, documents);
    ASSERT_EQ(learner.documents(), 200u);
    std::string all;
    for (const std::string& document : documents) all += document;
    const auto models = learn(learner, 512, 1);
    // 169 bigrams, all as frequent but for chance; some share a cell.
    ASSERT_GE(models[0].shape.bins, 256u);
    EXPECT_LT(largest_bin(models[0].view(), all), 4.5 / 169);
    EXPECT_GT(largest_bin(general_sketch_model(models[0].shape.bins).view(), all),
              largest_bin(models[0].view(), all));
}

/// Most counts of documents that it was learned from lie between the first and the last level.
TEST(SketchModelLearner, SetsLevelsWhereCountsAre) {
    RandomStrings random;
    Texts documents;
    for (int i = 0; i < 300; ++i)
        documents.push_back(random.string(2000, "eeeeeettttaaoinshrdlu    "));
    SketchModelLearner learner;
    add(learner, documents);
    const auto models = learn(learner, 320, 1);
    const SketchModel model = models[0].view();
    const LetterLevels letter_levels(model.letters(), length_class(2000));
    const GramLevels gram_levels(model.grams(), length_class(2000));
    SketchCounts counts;
    std::vector<std::uint32_t> letters(SketchShape::letter_bins), grams(model.shape().bins);
    std::size_t beyond_letters = 0, below_grams = 0, beyond_grams = 0;
    for (const std::string& document : documents) {
        counts.count(bytes_of(document), CharacterLengths::single_byte(), {});
        add_in_bins(counts.letters(), model.letters(), letters);
        add_in_bins(counts.grams(), model.grams(), grams);
        for (std::size_t bin = 0; bin < letters.size(); ++bin)
            beyond_letters += letters[bin] > letter_levels.counts[bin].back();
        for (std::size_t bin = 0; bin < grams.size(); ++bin) {
            const std::size_t group = bin / SketchShape::group;
            below_grams += grams[bin] < gram_levels.least[bin];
            beyond_grams +=
                grams[bin] > gram_levels.least[bin] + (std::uint32_t{gram_levels.levels[group][13]}
                                                       << gram_levels.shifts[group]);
        }
    }
    EXPECT_LT(beyond_letters, documents.size() * letters.size() / 20);
    EXPECT_LT(below_grams, documents.size() * grams.size() / 20);
    EXPECT_LT(beyond_grams, documents.size() * grams.size() / 10);
}

TEST(SketchModelLearner, TakesFewDocuments) {
    SketchModelLearner learner;
    learner.add(bytes_of("too short"), CharacterLengths::utf8());
    learner.add(bytes_of(""), CharacterLengths::utf8());
    EXPECT_EQ(learner.documents(), 0u);
    learner.add(bytes_of(std::string(1'000'000, 'x')), CharacterLengths::utf8());
    EXPECT_EQ(learner.documents(), 1u);
    RandomStrings random;
    for (const std::size_t more : {0, 1, 50}) {
        add(learner, texts(random, more, "0123456789"));
        const auto models = learn(learner, 320, kMostSketchModels);
        ASSERT_EQ(models.size(), 1u);
        EXPECT_TRUE(models[0].view().is_valid());
    }
}

/// It reads no more than the first bytes, however they end.
TEST(SketchModelLearner, ReadsTheBeginningOfDocuments) {
    RandomStrings random;
    SketchModelLearner whole, beginning;
    for (int i = 0; i < 20; ++i) {
        const std::string text = random.string(32'768, "abc\xc3\xa4 ");
        beginning.add(bytes_of(text), CharacterLengths::utf8());
        whole.add(bytes_of(text + random.string(1 + random.below(99), "01234")),
                  CharacterLengths::utf8());
    }
    EXPECT_EQ(learn(whole, 64, 1)[0].numbers, learn(beginning, 64, 1)[0].numbers);
}

TEST(SketchModelLearner, StopsWhenAsked) {
    RandomStrings random;
    const Stop now{[](void*) { return true; }, nullptr};
    SketchModelLearner learner;
    learner.add(bytes_of(std::string(1000, 'x')), CharacterLengths::utf8(), now);
    EXPECT_EQ(learner.documents(), 0u);
    add(learner, texts(random, 300, "etaoin shrdlu"));
    add(learner, texts(random, 300, "0123456789"));
    Execution execution(2);
    execution.request_stop();
    for (const std::size_t most : {std::size_t{1}, kMostSketchModels})
        EXPECT_EQ(learner.learn(320, most, execution).status().code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
