#include "extension/index/format.hpp"

extern "C" {
#include "utils/rel.h"
}

#include <algorithm>
#include <bit>
#include <cstring>

namespace gputext::index {

std::uint8_t length_class(std::uint32_t length) {
    // Most documents have from 2^6 to 2^16 characters: these lengths are told apart most finely.
    constexpr int kFirstFine = 6, kFirstLong = 16;
    const std::uint64_t above = std::uint64_t{length} + 1;
    const int octave = std::bit_width(above) - 1;
    const bool fine = octave >= kFirstFine && octave < kFirstLong;
    const int bits = fine ? 4 : 2;  // of the steps of an octave
    const std::uint64_t step =
        (octave >= bits ? above >> (octave - bits) : above << (bits - octave)) % (1u << bits);
    const int before = octave < kFirstFine   ? octave * 4
                       : octave < kFirstLong ? kFirstFine * 4 + (octave - kFirstFine) * 16
                                             : kFirstFine * 4 + (kFirstLong - kFirstFine) * 16 +
                                                   (octave - kFirstLong) * 4;
    return static_cast<std::uint8_t>(before + static_cast<int>(step));
}

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

SketchShape check_meta_page(Relation index, Page page) {
    const PageTrailer* const found = check_trailer(index, kMetaBlock, page);
    if (found->kind != PageKind::meta)
        raise_damaged(index, kMetaBlock, "It is a page of another kind than its place is for.");
    const SketchShape shape{found->bins};
    if (shape.bins < SketchShape::least_bins || shape.bins > SketchShape::most_bins ||
        shape.bins % 8 != 0)
        raise_damaged(index, kMetaBlock, "Its number of bins is impossible.");
    return shape;
}

}  // namespace gputext::index
