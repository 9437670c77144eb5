// extension/hnsw/layout.hpp - which place each element has on the pages of an index, and these
// pages
//
// The places follow from the sizes of tuples alone. So they are known before any page is made, and
// each page is made once, whole. Nothing here calls the server or allocates memory.

#pragma once

#include "extension/hnsw/format.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/vectors.hpp"
#include "cpp/hnsw/graph.hpp"

namespace gputext::hnsw {

/// All that an index has. A view: whoever made it keeps the memory.
struct Elements {
    HnswGraphView graph;
    unsigned ef_construction;
    /// Dense, one row an element: float32 for the type vector, float16 for halfvec.
    Vectors values;
    /// One more than elements: element e is of rows[first_rows[e]] up to rows[first_rows[e + 1]],
    /// one to kMostRows of them.
    std::span<const std::uint32_t> first_rows;
    std::span<const ItemPointerData> rows;
};

/// Sizes of the tuples of one index.
struct TupleSizes {
    std::size_t element;
    unsigned m;

    std::size_t neighbors(unsigned level) const { return neighbors_size(m, level); }
    /// Whether both tuples of an element fit an empty page.
    bool side_by_side(unsigned level) const {
        return element + neighbors(level) + sizeof(ItemIdData) <= kMostTuple;
    }
    /// Where the neighbors of an element lie that has this place.
    ItemPointerData neighbors_behind(ItemPointerData place, unsigned level) const;
};

/// The size of a value, with its header.
std::size_t value_size(const Vectors& values);

TupleSizes tuple_sizes(const Elements& elements);

/// Gives the elements of an index their places, in the order of their numbers. A neighbor tuple
/// lies behind its element, or first on the next page if both do not fit a page.
class Placer {
public:
    /// Requires that an element tuple fits a page.
    explicit Placer(TupleSizes sizes) : sizes_(sizes) {}

    /// The place of the next element, of no use once block() is more than MaxBlockNumber. Requires
    /// level <= highest_level(m).
    ItemPointerData next(unsigned level);
    /// The last block so far.
    std::uint64_t block() const { return block_; }

private:
    void take(std::size_t size);
    void turn_page();

    TupleSizes sizes_;
    std::uint64_t block_ = kFirstElementBlock;
    std::size_t free_ = kPageRoom;
    OffsetNumber items_ = 0;
};

/// The pages of an index.
struct Layout {
    TupleSizes sizes;
    std::span<const ItemPointerData> places;  // of all elements
    BlockNumber blocks;
};

/// Whether the links of the graph are there. Until they are, a neighbor tuple is all zeros.
enum class Links : bool { unknown, known };

/// Fills a page of BLCKSZ bytes, whatever is there. `first` is the first element that lies on the
/// block or behind it; returns that of the next block. O(its neighbors). Each page by itself: any
/// number of threads or processes may do so for different blocks.
std::size_t fill_page(Page page, BlockNumber block, std::size_t first, const Elements& elements,
                      const Layout& layout, Links links);
void fill_meta_page(Page page, const Elements& elements, const Layout& layout);

/// What the links change of a page, at most.
inline constexpr std::size_t kMostChanges = 2 * BLCKSZ;

/// Writes what a page of elements has that it had not before the links were there, as generic WAL
/// records have changes: of each the place in the page, the length, and the bytes. Returns the
/// size; 0 where there is no neighbor tuple.
std::size_t write_changes(Page page, char* to);

}  // namespace gputext::hnsw
