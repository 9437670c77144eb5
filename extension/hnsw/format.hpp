// extension/hnsw/format.hpp - the pages of an index of pgvector's access method hnsw
//
// Block 0 is the meta page. All others hold elements and their neighbors, and form a chain in the
// order of their numbers.
//
//   block   0      1                                             2 ..
//           meta   element, its neighbors, element, its ...      element ..
//
// An element tuple has the vector, and the rows of the table that have this vector, up to ten. A
// neighbor tuple has the places of the element's neighbors from its highest layer down to layer 0;
// places that are not needed have an invalid one. Both have a version: an element that takes the
// place of a deleted one has the next.
//
// Source: pgvector, src/hnsw.h, hnswbuild.c, hnswinsert.c and hnswvacuum.c, from v0.5.0 to v0.8.6,
// for the facts of the format, which is the same in all of them. Tuples have had their versions
// since 0.8.0; earlier releases ignore these bytes.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "storage/bufpage.h"
#include "storage/itemptr.h"
}

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gputext::hnsw {

inline constexpr std::uint32_t kMagic = 0xA953A953, kMetaVersion = 1;
inline constexpr std::uint16_t kPageId = 0xFF90;
inline constexpr BlockNumber kMetaBlock = 0, kFirstElementBlock = 1;

/// The special space of every page.
struct PageTrailer {
    BlockNumber next;  // of the chain; invalid on its last page, and on the meta page
    std::uint16_t unused;
    std::uint16_t page_id;
};

/// The contents of the meta page.
struct MetaPage {
    std::uint32_t magic;
    std::uint32_t version;
    std::uint32_t dimensions;
    std::uint16_t m;
    std::uint16_t ef_construction;
    BlockNumber entry_block;  // where searches begin; invalid in an index without elements
    OffsetNumber entry_offset;
    std::int16_t entry_level;  // -1 in an index without elements
    BlockNumber insert_page;   // where an insert looks for room first
};

enum TupleType : std::uint8_t { kElementTuple = 1, kNeighborTuple = 2 };

inline constexpr std::size_t kMostRows = 10;
/// Of all tuples of a build. Releases before 0.8.0 write an element's neighbors anew with 0 here,
/// as when they vacuum. Later ones pass over neighbors of another version than their element has,
/// so that an index of version 1 would find nothing after an update of pgvector.
inline constexpr std::uint8_t kFirstVersion = 0;

/// The vector lies behind it.
struct ElementTuple {
    std::uint8_t type;
    std::uint8_t level;
    std::uint8_t deleted;
    std::uint8_t version;
    ItemPointerData rows[kMostRows];  // those that are not needed are invalid, and follow
    ItemPointerData neighbors;        // where the neighbor tuple lies
    std::uint16_t unused;
};

/// The places of element tuples lie behind it.
struct NeighborTuple {
    std::uint8_t type;
    std::uint8_t version;  // that of its element
    std::uint16_t count;   // of places, invalid ones too
};

/// What a value of type vector or halfvec begins with. The numbers lie behind it.
struct VectorHeader {
    std::int32_t size;  // as SET_VARSIZE() writes it
    std::int16_t dimensions;
    std::int16_t unused;
};

static_assert(sizeof(PageTrailer) == 8 && sizeof(MetaPage) == 28 && sizeof(ElementTuple) == 72 &&
              sizeof(NeighborTuple) == 4 && sizeof(VectorHeader) == 8);

/// What of a page is left for its tuples, and for the item identifier of each.
inline constexpr std::size_t kPageRoom =
    BLCKSZ - SizeOfPageHeaderData - MAXALIGN(sizeof(PageTrailer));
/// The largest tuple.
inline constexpr std::size_t kMostTuple = kPageRoom - sizeof(ItemIdData);

/// How many places a neighbor tuple has.
constexpr std::size_t neighbor_places(unsigned m, unsigned level) {
    return std::size_t{m} * (level + 2);
}
/// Where those of a layer begin.
constexpr std::size_t first_neighbor(unsigned m, unsigned level, unsigned layer) {
    return std::size_t{m} * (level - layer);
}

/// Sizes of tuples.
constexpr std::size_t element_size(std::size_t vector_size) {
    return MAXALIGN(sizeof(ElementTuple) + vector_size);
}
constexpr std::size_t neighbors_size(unsigned m, unsigned level) {
    return MAXALIGN(sizeof(NeighborTuple) + neighbor_places(m, level) * sizeof(ItemPointerData));
}

/// The highest level that an element may have: its neighbors fit a page.
constexpr unsigned highest_level(unsigned m) {
    const std::size_t places = (kMostTuple - sizeof(NeighborTuple)) / sizeof(ItemPointerData);
    return static_cast<unsigned>(std::min<std::size_t>(places / m - 2, 63));
}

inline PageTrailer* trailer(Page page) {
    return reinterpret_cast<PageTrailer*>(PageGetSpecialPointer(page));
}
inline MetaPage* meta(Page page) {
    return reinterpret_cast<MetaPage*>(PageGetContents(page));
}
inline ItemPointerData* neighbor_places(NeighborTuple* tuple) {
    return reinterpret_cast<ItemPointerData*>(tuple + 1);
}
inline const ItemPointerData* neighbor_places(const NeighborTuple* tuple) {
    return reinterpret_cast<const ItemPointerData*>(tuple + 1);
}

}  // namespace gputext::hnsw
