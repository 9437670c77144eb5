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
    std::memcpy(letters(page) + place * SketchShape::letters, sketch, SketchShape::letters);
    std::memcpy(grams(page) + place * shape_.gram_bytes(), sketch + SketchShape::letters,
                shape_.gram_bytes());
}

void SketchPages::move(Page page, std::uint16_t from, std::uint16_t to) const {
    lengths(page)[to] = lengths(page)[from];
    hashes(page)[to] = hashes(page)[from];
    rows(page)[to] = rows(page)[from];
    std::memcpy(letters(page) + to * SketchShape::letters,
                letters(page) + from * SketchShape::letters, SketchShape::letters);
    std::memcpy(grams(page) + to * shape_.gram_bytes(), grams(page) + from * shape_.gram_bytes(),
                shape_.gram_bytes());
}

void initialize_page(Page page, PageKind kind, SketchShape shape, std::uint8_t length_class) {
    PageInit(page, BLCKSZ, sizeof(PageTrailer));
    // The columns lie all over the page: there is no hole that WAL could leave out.
    reinterpret_cast<PageHeader>(page)->pd_lower = reinterpret_cast<PageHeader>(page)->pd_upper;
    *trailer(page) = {kMagic,       kVersion, kind,
                      length_class, 0,        static_cast<std::uint16_t>(shape.bins)};
    if (kind == PageKind::directory)
        std::fill_n(directory_entries(page), kGroupEntries, DirectoryEntry{kNoClass, 0});
}

void raise_damaged(Relation index, BlockNumber block, const char* detail) {
    ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
                    errmsg("index \"%s\" has a damaged page at block %u",
                           RelationGetRelationName(index), block),
                    errdetail_internal("%s", detail), errhint("Please REINDEX it.")));
    pg_unreachable();
}

namespace {

/// The contents of a meta page.
struct Meta {
    std::uint32_t checksum;  // of the numbers: sketches made by others would not be found
    std::uint16_t numbers[SketchModel::size({SketchShape::most_bins})];  // of the model
};
static_assert(sizeof(Meta) <= kPageRoom);

Meta* meta(Page page) {
    return reinterpret_cast<Meta*>(PageGetContents(page));
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

}  // namespace

void check_page(Relation index, BlockNumber block, Page page, PageKind kind, SketchShape shape) {
    const bool sketches = kind == PageKind::sketches;
    if (kind != PageKind::meta && PageIsNew(page)) return;
    const PageTrailer* const found = check_trailer(index, block, page);
    const bool unused = sketches && found->kind == PageKind::unused;
    if (found->kind != kind && !unused)
        raise_damaged(index, block, "It is a page of another kind than its place is for.");
    if (found->bins != shape.bins)
        raise_damaged(index, block, "Its sketches have another size than those of the index.");
    if (sketches && !unused &&
        (found->count > SketchPages(shape).capacity() || found->length_class == kNoClass))
        raise_damaged(index, block,
                      "Its number of sketches or its class of lengths is impossible.");
}

SketchModel check_meta_page(Relation index, Page page) {
    const PageTrailer* const found = check_trailer(index, kMetaBlock, page);
    if (found->kind != PageKind::meta)
        raise_damaged(index, kMetaBlock, "It is a page of another kind than its place is for.");
    const SketchShape shape{found->bins};
    if (shape.bins < SketchShape::least_bins || shape.bins > SketchShape::most_bins ||
        shape.bins % (2 * SketchShape::group) != 0)
        raise_damaged(index, kMetaBlock, "Its number of bins is impossible.");
    const SketchModel model(shape, meta(page)->numbers);
    if (meta(page)->checksum != checksum_of(model) || !model.is_valid())
        raise_damaged(index, kMetaBlock, "Its model of sketches is damaged.");
    return model;
}

void initialize_meta_page(Page page, const SketchModel& model) {
    initialize_page(page, PageKind::meta, model.shape());
    meta(page)->checksum = checksum_of(model);
    std::ranges::copy(model.numbers(), meta(page)->numbers);
}

}  // namespace gputext::index
