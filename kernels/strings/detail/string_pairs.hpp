// kernels/strings/detail/string_pairs.hpp - pairs of strings, rows beside columns, that are near
//
// Each string has a mask of 256 bits: a bit for each pair of adjacent symbols (metrics of edits) or
// for each trigram, or unary counts of kinds of symbols (Jaro's). What finds no bit that is free is
// excess, of which the mask has a unary count, too, up to 8. The ones of the "and" of two masks, and
// what a string's excess has beyond its mask, bound what two strings have in common from above, and
// that bounds their distance from below (Ukkonen 1992).
// The product of bits gives these ones for 16 rows beside 8 columns at a time; where it leaves pairs
// of them, those of metrics of edits are told by masks of their symbols, too. A warp collects the
// pairs that are left until each of its lanes has one to compare, bit-parallel: Myers 1999, Hyyro
// 2003; Jaro's matches as in cpp/strings/string_distance.cpp. Distances have the CPU's bits.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/strings/string_distance.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/strings/coded_strings.hpp"

namespace gputext::gpu {

__host__ __device__ constexpr bool counts_edits(StringMetric metric) {
    return metric == StringMetric::edit_rate || metric == StringMetric::levenshtein ||
           metric == StringMetric::osa;
}

/// Rows or columns on the device, by place.
struct StringSide {
    std::uint32_t places;
    const std::uint16_t* lengths;
    const std::uint64_t* begins;
    const std::uint32_t* numbers;   // of the strings
    const std::uint16_t* codes;     // null for trigrams
    const std::uint32_t* trigrams;  // null for codes
    const std::uint32_t* keys;      // of RowKeys; or null
    uint4* masks;                   // two a place
    std::uint16_t* excess;          // that the masks do not count
    uint4* letters;                 // metrics of edits: masks of the symbols; or null
    std::uint16_t* letter_excess;
    /// Of rows: a bit for each place of a string's symbols, for each bit of their codes: words of
    /// 64, those of one bit together. Of strings of at most kMostPlaneSymbols.
    std::uint64_t* planes;
    const std::uint64_t* plane_begins;  // of a place's words for one bit, counted in such words
};

inline constexpr unsigned kMostPlaneSymbols = 256;
/// Strings whose pairs are compared where the filter leaves them.
inline constexpr unsigned kQuickSymbols = 64;
/// More code bits than this, and no planes: pairs are not counted on the device.
inline constexpr unsigned kMostPlaneBits = 16;

struct StringSearch {
    StringMetric metric;
    unsigned bits;  // of codes
    StringSide rows, columns;
    const StringGroup* groups;  // of the columns
    std::uint32_t group_count;
    /// Rows and columns are the same strings, and a pair is wanted once: the column comes after
    /// the row.
    bool triangle;
    /// The farthest neighbor of a row that is wanted: its distance, and at this distance the
    /// largest number.
    double* limits;
    std::uint32_t* limit_numbers;
};

struct PlaceRange {
    std::uint32_t begin, end;  // whole tiles
};

/// Of each `step` tiles of columns, a power of two, the `count` from the `first` on.
struct TileChoice {
    std::uint32_t step = 1, first = 0, count = 1;
};

/// A pair that is to be compared: its places.
using StringCandidate = uint2;

/// A pair within the row's limit.
struct StringPair {
    std::uint32_t row, column;
    /// As distance_of_counts() takes them, or kNotCounted: the strings are too long for it, and may
    /// be farther.
    std::uint32_t counts;
};
inline constexpr std::uint32_t kNotCounted = UINT32_MAX;

/// A list on the device that may have become too long.
template <class T>
struct FoundList {
    T* data;
    unsigned long long capacity;
    unsigned long long* found;  // also counts what is above the capacity
};

/// Rows that one block compares.
inline constexpr std::uint32_t kBlockRows = 512;
/// Probes that a block leaves for each of its rows.
inline constexpr std::uint32_t kProbesOfBlock = 4;

/// Masks and excess of all places, and the planes of those that have some. O(symbols).
Status make_masks(StringMetric metric, unsigned bits, const StringSide& side, cudaStream_t stream);

/// Writes, for each of the rows, places of columns whose bounds are least: kProbesOfBlock *
/// `splits` of them, or kNoString.
Status find_probes(const StringSearch& search, const PlaceRange& rows, std::uint32_t splits,
                   std::uint32_t* probes, cudaStream_t stream);

/// Lowers the limits of the rows to the k-th distance of their probes, of which there are
/// `probe_count` each. `distances` is memory for as many.
Status limit_by_probes(const StringSearch& search, const PlaceRange& rows,
                       std::uint32_t probe_count, std::uint32_t k, const std::uint32_t* probes,
                       double* distances, cudaStream_t stream);

/// Appends the pairs of some rows and columns within the rows' limits, in no order, and to `left`
/// those that take longer to compare: where either has more symbols than a word has bits.
Status find_pairs(const StringSearch& search, const PlaceRange& rows, const PlaceRange& columns,
                  const TileChoice& tiles, std::uint32_t splits, const FoundList<StringPair>& pairs,
                  const FoundList<StringCandidate>& left, cudaStream_t stream);

/// Appends those of the pairs that were left that are within the limits.
Status compare_left(const StringSearch& search, const StringCandidate* left, std::uint64_t count,
                    const FoundList<StringPair>& pairs, cudaStream_t stream);

}  // namespace gputext::gpu
