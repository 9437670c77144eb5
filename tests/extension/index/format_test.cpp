// First, as PostgreSQL defines Max()
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "extension/index/format.hpp"
#include "tests/extension/server.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::index {
namespace {

using testing::error_of;

struct AlignedPage {
    std::unique_ptr<PGAlignedBlock> block = std::make_unique<PGAlignedBlock>();
    operator Page() const { return block->data; }
};

constexpr std::size_t kMostSketch = SketchShape::letters + SketchShape::most_bins / 2;

struct StoredSketch {
    ItemPointerData row;
    SketchedDocument document;
    std::vector<std::uint8_t> bytes;
};

StoredSketch random_sketch(testing::RandomStrings& random, SketchShape shape) {
    StoredSketch sketch;
    ItemPointerSet(&sketch.row, static_cast<BlockNumber>(random.below(1000000)),
                   static_cast<OffsetNumber>(1 + random.below(200)));
    sketch.document = {static_cast<std::uint32_t>(random.below(100000)),
                       static_cast<std::uint32_t>(random.below(1u << 31)), 0};
    for (std::size_t i = 0; i < SketchShape::letters + shape.gram_bytes(); ++i)
        sketch.bytes.push_back(static_cast<std::uint8_t>(random.below(256)));
    return sketch;
}

void expect_stored(const SketchPages& pages, Page page, std::uint16_t place,
                   const StoredSketch& expected) {
    EXPECT_EQ(pages.lengths(page)[place], expected.document.length);
    EXPECT_EQ(pages.hashes(page)[place], expected.document.hash);
    EXPECT_EQ(std::memcmp(&pages.rows(page)[place], &expected.row, sizeof expected.row), 0);
    std::vector<std::uint8_t> bytes(kMostSketch);
    pages.copy(page, place, bytes.data());
    bytes.resize(expected.bytes.size());
    EXPECT_EQ(bytes, expected.bytes);
}

// ---- Blocks ----

TEST(IndexFormat, EveryBlockBehindTheMetaPageIsInOneGroup) {
    EXPECT_FALSE(is_directory(kMetaBlock));
    for (const std::uint32_t group : {0u, 1u, 2u, 77u, kMostGroups - 1}) {
        const BlockNumber first = directory_block(group);
        EXPECT_TRUE(is_directory(first));
        EXPECT_EQ(group_of(first), group);
        for (const std::uint32_t entry : {0u, 1u, 1000u, kGroupEntries - 1}) {
            const BlockNumber block = first + 1 + entry;
            EXPECT_FALSE(is_directory(block));
            EXPECT_EQ(group_of(block), group);
            EXPECT_EQ(entry_of(block), entry);
        }
    }
    EXPECT_LE(std::uint64_t{directory_block(kMostGroups - 1)} + kGroupEntries, MaxBlockNumber);
    EXPECT_GT(1 + std::uint64_t{kMostGroups} * kGroupBlocks + kGroupEntries, MaxBlockNumber);
}

TEST(IndexFormat, CountsGroupsThatHaveADirectory) {
    EXPECT_EQ(groups_in(0), 0u);
    EXPECT_EQ(groups_in(1), 0u);
    EXPECT_EQ(groups_in(2), 1u);
    EXPECT_EQ(groups_in(directory_block(1)), 1u);
    EXPECT_EQ(groups_in(directory_block(1) + 1), 2u);
}

TEST(IndexFormat, ModelsLieBehindTheFirstDirectory) {
    EXPECT_EQ(model_block(0), directory_block(0) + 1);
    EXPECT_EQ(entry_of(model_block(kMostSketchModels - 1)), kMostSketchModels - 1);
    EXPECT_LT(kMostSketchModels, kGroupEntries);
}

// ---- Sketch pages ----

TEST(IndexFormat, APageGivesBackItsSketches) {
    testing::RandomStrings random;
    for (const std::size_t bins :
         {SketchShape::least_bins, SketchShape::default_bins, SketchShape::most_bins}) {
        const SketchShape shape{bins, bins == SketchShape::default_bins};
        const SketchPages pages(shape);
        const AlignedPage page;
        initialize_sketches(page, shape, {3, 0});
        ASSERT_GT(pages.capacity(), 5);
        // Columns do not reach into the trailer.
        EXPECT_LE(pages.grams(page) + pages.capacity() * shape.gram_bytes(),
                  reinterpret_cast<std::uint8_t*>(trailer(page)));
        std::vector<StoredSketch> sketches;
        while (trailer(page)->count < pages.capacity()) {
            sketches.push_back(random_sketch(random, shape));
            const StoredSketch& last = sketches.back();
            pages.append(page, last.row, last.document, last.bytes.data());
        }
        for (std::uint16_t i = 0; i < pages.capacity(); ++i)
            expect_stored(pages, page, i, sketches[i]);
        // As VACUUM does.
        pages.move(page, static_cast<std::uint16_t>(pages.capacity() - 1), 1);
        expect_stored(pages, page, 0, sketches[0]);
        expect_stored(pages, page, 1, sketches.back());
        expect_stored(pages, page, 2, sketches[2]);
        EXPECT_EQ(trailer(page)->sketches, (SketchKind{3, 0}));
    }
}

// ---- What is damaged ----

class DamagedPages : public ::testing::Test {
protected:
    std::string sketches_error() {
        const SketchModel model = model_.view();
        return error_of([&] { check_sketches(index_, 7, page_, {&model, 1}); });
    }

    testing::NamedRelation index_{"docs_body"};
    const OwnedSketchModel model_ = general_sketch_model(64);
    const AlignedPage page_{};
    const std::string damaged_ = "index \"docs_body\" has a damaged page at block 7: ";
};

TEST_F(DamagedPages, TakesPagesThatAreSound) {
    std::memset(page_, 0, BLCKSZ);
    EXPECT_EQ(sketches_error(), "");  // never written
    EXPECT_EQ(error_of([&] { check_directory(index_, 7, page_); }), "");
    initialize_sketches(page_, model_.shape, {5, 0});
    EXPECT_EQ(sketches_error(), "");
    EXPECT_TRUE(is_in_use(page_));
    trailer(page_)->kind = PageKind::unused;
    trailer(page_)->count = 60000;
    EXPECT_EQ(sketches_error(), "");
    EXPECT_FALSE(is_in_use(page_));
    initialize_directory(page_);
    EXPECT_EQ(error_of([&] { check_directory(index_, 1, page_); }), "");
    EXPECT_EQ(directory_entries(page_)[kGroupEntries - 1].length_class, kNoClass);
}

TEST_F(DamagedPages, RefusesPagesOfOtherKindsAndVersions) {
    initialize_directory(page_);
    EXPECT_EQ(sketches_error(), damaged_ + "It is a page of another kind than its place is for.");
    initialize_sketches(page_, model_.shape, {5, 0});
    EXPECT_NE(error_of([&] { check_directory(index_, 7, page_); }), "");
    trailer(page_)->kind = PageKind::unused;
    EXPECT_NE(error_of([&] { check_directory(index_, 7, page_); }), "");
    trailer(page_)->kind = PageKind::sketches;
    trailer(page_)->version = kVersion + 1;
    EXPECT_EQ(sketches_error(),
              "index \"docs_body\" has a page of version 4 at block 7, and this gputext reads "
              "version 3");
    trailer(page_)->magic ^= 1;
    EXPECT_EQ(sketches_error(),
              damaged_ + "It is no page of an index of the access method gputext.");
}

TEST_F(DamagedPages, RefusesNumbersThatAreImpossible) {
    const auto broken = [&](const auto& breaks) {
        initialize_sketches(page_, model_.shape, {5, 0});
        breaks(*trailer(page_));
        return sketches_error();
    };
    const std::uint16_t capacity = SketchPages(model_.shape).capacity();
    EXPECT_EQ(broken([&](PageTrailer& t) { t.count = capacity; }), "");
    EXPECT_NE(broken([&](PageTrailer& t) { t.count = static_cast<std::uint16_t>(capacity + 1); }),
              "");
    EXPECT_EQ(broken([](PageTrailer& t) { t.sketches.length_class = kLengthClasses - 1; }), "");
    EXPECT_NE(broken([](PageTrailer& t) { t.sketches.length_class = kLengthClasses; }), "");
    EXPECT_NE(broken([](PageTrailer& t) { t.sketches.model = 1; }), "");
    EXPECT_NE(broken([](PageTrailer& t) { t.bins = 96; }), "");
    EXPECT_NE(broken([](PageTrailer& t) { t.halves = 1; }), "");
}

TEST_F(DamagedPages, ReadsModelsAndRefusesEveryChangedNumber) {
    initialize_model_page(page_, 2, model_.view());
    const auto error = [&](std::uint8_t number) {
        return error_of([&] { check_model_page(index_, number, page_); });
    };
    ASSERT_EQ(error(2), "");
    const SketchModel read = check_model_page(index_, 2, page_);
    EXPECT_EQ(read.shape(), model_.shape);
    EXPECT_TRUE(std::ranges::equal(read.numbers(), model_.numbers));
    EXPECT_NE(error(3), "");
    auto* const bytes = reinterpret_cast<std::uint8_t*>(PageGetContents(page_));
    const std::size_t size = sizeof(std::uint32_t) + 2 * model_.numbers.size();
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] ^= 0x10;
        ASSERT_NE(error(2), "") << i;
        bytes[i] ^= 0x10;
    }
    trailer(page_)->bins = 48;
    EXPECT_NE(error(2), "");
}

TEST_F(DamagedPages, RefusesAnImpossibleNumberOfModels) {
    const auto models = [&](std::size_t count) {
        initialize_meta_page(page_, count);
        std::size_t read = 0;
        const std::string error = error_of([&] { read = check_meta_page(index_, page_); });
        return error.empty() ? std::to_string(read) : "refused";
    };
    EXPECT_EQ(models(1), "1");
    EXPECT_EQ(models(kMostSketchModels), "16");
    EXPECT_EQ(models(kMostSketchModels + 1), "refused");
    EXPECT_EQ(models(0), "refused");
}

}  // namespace
}  // namespace gputext::index
