// kernels/documents/detail/distance_bounds.cuh - lower bounds of the distances between a text and
// 32 others at a time
//
// A document (the text) is compared with a group of 32 that are not longer, one a lane.
//
// First by grams: an edit destroys at most one of grams that do not overlap, so two documents
// differ by at least as many edits as the text has disjoint grams which the other one lacks; taking
// each missing gram that begins behind the one taken last gives the most of them. Counted from a
// place of the text on, it bounds the edits from there to the end.
//
// Then by strips of 128 rows of the Levenshtein matrix (Myers 1999; Hyyro 2003), whose rows are the
// lanes' documents and whose columns are the text. The character is the same one in all lanes, so
// that their match tables are read without conflicts and shared by all warps of a block, each of
// which has a text of its own. A cell is live while its value and the bound of what remains (the
// difference of the lengths that remain, or the text's missing grams behind it) do not exceed the
// limit; a path within the limit has live cells only. Each strip begins at the first column that
// some lane's path may come through, and ends where no cell of a column is live and nothing
// enters from above. A pair is excluded once no path within its limit can leave a strip.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/cuda_status.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/documents/detail/band_columns.cuh"
#include "kernels/documents/detail/folded_documents.cuh"

#include "cpp/documents/detail/candidate_pairs.hpp"

namespace gputext::gpu {

/// Tiles of pairs: 64 documents (rows, by place, from a multiple of 64 on) beside 256 that are
/// longer or later (columns).
inline constexpr unsigned kTileRows = 64;
inline constexpr unsigned kTileColumns = 256;
inline constexpr unsigned kTileGroups = kTileRows / kGroup;
/// The pairs of a group and a column are a word, bit by bit the group's documents. The words of a
/// tile lie group by group, then column by column; eight columns' words are an item of work.
inline constexpr unsigned kTileWords = kTileGroups * kTileColumns;
inline constexpr unsigned kItemColumns = 8;
inline constexpr unsigned kTileItems = kTileWords / kItemColumns;
inline constexpr unsigned kItemPairs = kItemColumns * kGroup;

struct TilePlace {
    std::uint32_t first_row, first_column;  // places
};

/// Documents by their places, and which pairs of them are to be looked at.
struct FilterInput {
    const std::uint32_t* documents;  // by place
    const std::uint32_t* lengths;    // by place
    double threshold;
    const TilePlace* tiles;
    const std::uint32_t* words;  // by tile
    const std::uint32_t* items;  // numbers of those whose words are not all 0
    const std::uint32_t* item_count;
};

/// Where pairs go that were not excluded.
struct FilterOutput {
    IndexPair* pairs;
    std::uint32_t room;
    std::uint32_t* count;
    std::uint32_t* taken;  // items
};

/// Finds the words of `tiles` tiles that are not all 0, eight at a time. Counts on from what
/// `item_count` holds.
Status launch_item_search(const std::uint32_t* words, std::uint32_t tiles, std::uint32_t* items,
                          std::uint32_t* item_count, cudaStream_t stream);

/// How the filter is launched, and the memory that it works in.
class DistanceFilter {
public:
    /// Chooses the number of blocks: as many as the device runs at a time, or as `memory_limit` and
    /// `room` for pairs leave. Without room for one block's strips, or without folded documents,
    /// what the earlier filters let through is listed.
    Status plan(std::uint32_t longest_text, std::size_t memory_limit, std::uint32_t room,
                cudaStream_t stream);

    /// Works on items until there are none, there is no room for more pairs, or about `nanoseconds`
    /// have passed. The counters then say how far it came.
    Status launch(const FilterInput& input, const FoldedView* folded, const FilterOutput& output,
                  std::uint64_t nanoseconds, cudaStream_t stream);

    std::size_t bytes() const { return scratch_.size(); }

private:
    unsigned blocks_ = 1;
    std::uint32_t chunks_ = 0;  // of a text's letters that a warp has memory for
    DeviceBuffer<std::uint8_t> scratch_;
};

/// The least room for pairs.
inline constexpr std::uint32_t kLeastFilterRoom = kItemPairs;

}  // namespace gputext::gpu
