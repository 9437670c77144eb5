#include "extension/index/format.hpp"

extern "C" {
#include "utils/rel.h"
}

#include <algorithm>
#include <cstring>

namespace gputext::index {

void SketchPages::append(Page page, ItemPointerData row, SketchedDocument document,
                         const std::uint8_t* sketch) const {
    const std::uint16_t place = trailer(page)->count++;
    lengths(page)[place] = document.length;
    hashes(page)[place] = document.hash;
    rows(page)[place] = row;
    for (std::size_t i = 0; i < SketchShape::letters; ++i)
        letters(page)[i * capacity_ + place] = sketch[i];
    std::memcpy(grams(page) + place * shape_.gram_bytes(), sketch + SketchShape::letters,
                shape_.gram_bytes());
}

void SketchPages::copy(Page page, std::uint16_t place, std::uint8_t* sketch) const {
    for (std::size_t i = 0; i < SketchShape::letters; ++i)
        sketch[i] = letters(page)[i * capacity_ + place];
    std::memcpy(sketch + SketchShape::letters, grams(page) + place * shape_.gram_bytes(),
                shape_.gram_bytes());
}

void SketchPages::move(Page page, std::uint16_t from, std::uint16_t to) const {
    lengths(page)[to] = lengths(page)[from];
    hashes(page)[to] = hashes(page)[from];
    rows(page)[to] = rows(page)[from];
    for (std::size_t i = 0; i < SketchShape::letters; ++i)
        letters(page)[i * capacity_ + to] = letters(page)[i * capacity_ + from];
    std::memcpy(grams(page) + to * shape_.gram_bytes(), grams(page) + from * shape_.gram_bytes(),
                shape_.gram_bytes());
}

namespace {

PageTrailer* initialize_page(Page page, PageKind kind) {
    PageInit(page, BLCKSZ, sizeof(PageTrailer));
    // The columns lie all over the page: there is no hole that WAL could leave out.
    reinterpret_cast<PageHeader>(page)->pd_lower = reinterpret_cast<PageHeader>(page)->pd_upper;
    *trailer(page) = {kMagic, kVersion, kind, 0, 0, 0, {}};
    return trailer(page);
}

}  // namespace

void initialize_directory(Page page) {
    initialize_page(page, PageKind::directory);
    std::fill_n(directory_entries(page), kGroupEntries, DirectoryEntry{kNoClass, 0, 0});
}

void initialize_sketches(Page page, SketchShape shape, SketchKind sketches) {
    PageTrailer* const made = initialize_page(page, PageKind::sketches);
    made->halves = shape.halves;
    made->bins = static_cast<std::uint16_t>(shape.bins);
    made->sketches = sketches;
}

void initialize_meta_page(Page page, std::size_t models) {
    initialize_page(page, PageKind::meta)->count = static_cast<std::uint16_t>(models);
}

void raise_damaged(Relation index, BlockNumber block, const char* detail) {
    ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
                    errmsg("index \"%s\" has a damaged page at block %u",
                           RelationGetRelationName(index), block),
                    errdetail_internal("%s", detail), errhint("Please REINDEX it.")));
    pg_unreachable();
}

namespace {

/// The contents of a model's page.
struct ModelContents {
    std::uint32_t checksum;  // of the numbers: sketches made by others would not be found
    std::uint16_t numbers[SketchModel::size({SketchShape::most_bins, true})];
};
static_assert(sizeof(ModelContents) <= kPageRoom);

ModelContents* contents(Page page) {
    return reinterpret_cast<ModelContents*>(PageGetContents(page));
}

/// FNV-1a.
std::uint32_t checksum_of(const SketchModel& model) {
    std::uint32_t hash = 0x811c9dc5;
    for (const std::uint16_t number : model.numbers()) hash = (hash ^ number) * 0x01000193;
    return hash;
}

const PageTrailer* check_trailer(Relation index, BlockNumber block, Page page) {
    if (PageIsNew(page)) raise_damaged(index, block, "The page is empty.");
    if (PageGetSpecialSize(page) != MAXALIGN(sizeof(PageTrailer)) || trailer(page)->magic != kMagic)
        raise_damaged(index, block, "It is no page of an index of the access method gputext.");
    const PageTrailer* const found = trailer(page);
    if (found->version != kVersion)
        ereport(ERROR,
                (errcode(ERRCODE_INDEX_CORRUPTED),
                 errmsg("index \"%s\" has a page of version %u at block %u, and this gputext reads "
                        "version %u",
                        RelationGetRelationName(index), found->version, block, kVersion),
                 errhint("Please REINDEX it.")));
    return found;
}

const PageTrailer* check_kind(Relation index, BlockNumber block, Page page, PageKind kind) {
    const PageTrailer* const found = check_trailer(index, block, page);
    const bool unused = kind == PageKind::sketches && found->kind == PageKind::unused;
    if (found->kind != kind && !unused)
        raise_damaged(index, block, "It is a page of another kind than its place is for.");
    return found;
}

SketchShape shape_of(const PageTrailer& trailer) {
    return {trailer.bins, trailer.halves != 0};
}

}  // namespace

void check_directory(Relation index, BlockNumber block, Page page) {
    if (!PageIsNew(page)) check_kind(index, block, page, PageKind::directory);
}

void check_sketches(Relation index, BlockNumber block, Page page,
                    std::span<const SketchModel> models) {
    if (PageIsNew(page)) return;
    const PageTrailer& found = *check_kind(index, block, page, PageKind::sketches);
    if (found.kind == PageKind::unused) return;
    if (found.sketches.model >= models.size())
        raise_damaged(index, block, "Its sketches are of a model that the index does not have.");
    const SketchShape shape = models[found.sketches.model].shape();
    if (shape_of(found) != shape)
        raise_damaged(index, block, "Its sketches have another size than those of their model.");
    if (found.count > SketchPages(shape).capacity() ||
        found.sketches.length_class >= kLengthClasses)
        raise_damaged(index, block,
                      "Its number of sketches or its class of lengths is impossible.");
}

std::size_t check_meta_page(Relation index, Page page) {
    const std::uint16_t models = check_kind(index, kMetaBlock, page, PageKind::meta)->count;
    if (models == 0 || models > kMostSketchModels)
        raise_damaged(index, kMetaBlock, "Its number of models is impossible.");
    return models;
}

SketchModel check_model_page(Relation index, std::uint8_t number, Page page) {
    const BlockNumber block = model_block(number);
    const PageTrailer& found = *check_kind(index, block, page, PageKind::model);
    // Sketches that another model of the same shape has made would not be found.
    if (found.sketches.model != number)
        raise_damaged(index, block, "It has the model of another number.");
    const SketchShape shape = shape_of(found);
    if (!shape.is_valid()) raise_damaged(index, block, "Its number of bins is impossible.");
    const SketchModel model(shape, contents(page)->numbers);
    if (contents(page)->checksum != checksum_of(model) || !model.is_valid())
        raise_damaged(index, block, "Its model of sketches is damaged.");
    return model;
}

void initialize_model_page(Page page, std::uint8_t number, const SketchModel& model) {
    PageTrailer* const made = initialize_page(page, PageKind::model);
    made->halves = model.shape().halves;
    made->bins = static_cast<std::uint16_t>(model.shape().bins);
    made->sketches = {kModelClass, number};
    contents(page)->checksum = checksum_of(model);
    std::ranges::copy(model.numbers(), contents(page)->numbers);
}

}  // namespace gputext::index
