// cpp/documents/detail/signature_join.hpp - finds all pairs of signatures whose edit rate is at
// most a threshold
//
// Exact: the same pairs as comparing every signature with every other. Source of the task: the
// 2015 thesis, algorithm CTPHBasedHomoDocsDetect (sections 4.3 and 4.4).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/detail/candidate_pairs.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"

namespace gputext {

// ---- Filters signatures that share enough letters to be within a distance ----
//
// Two strings within distance k have max(|a|, |b|) - k letters in common, counted as a multiset.
// Letter counts in unary, one bit a letter and count (word t has bit g when letter g occurs more
// than t times), make that number of common letters a product of bit matrices: AND, then count the
// ones. It is q-gram filtering with q = 1, and the unary code makes the product equal to the sum of
// minima, where plain counts would only bound it from above. Counts beyond the last word are kept
// aside as `excess` and added to the bound, so that no pair is ever lost.

/// Features of many signatures, transposed: word w of signature c at words[w * stride + c].
class LetterCounts {
public:
    static constexpr std::size_t max_depth = 32;
    /// `depth` words a signature, counting each letter up to `depth`: 4, 8, 16 or 32.
    /// The stride leaves room to read a vector of eight columns from any column on.
    LetterCounts(std::size_t count, std::size_t depth);

    void set(std::size_t column, std::string_view letters);

    std::size_t depth() const { return depth_; }
    std::size_t stride() const { return stride_; }
    const std::uint64_t* words() const { return words_.data(); }
    /// Letters of the column that `depth` words do not count.
    std::uint32_t excess(std::size_t column) const { return excess_[column]; }
    /// The column's words, one after the other.
    void copy_column(std::size_t column, std::uint64_t* words) const;

private:
    std::size_t depth_;
    std::size_t stride_;
    std::vector<std::uint64_t> words_;
    std::vector<std::uint32_t> excess_;
};

/// Columns c in [begin, end) with ones(row AND column c) >= least[c - begin], ascending, into
/// `hits`, which has room for end - begin + 1; returns how many. `row` has depth() words.
/// depth() word operations a pair.
using LetterFilter = std::size_t (*)(const std::uint64_t* row, const LetterCounts& columns,
                                     std::size_t begin, std::size_t end, const std::int64_t* least,
                                     std::uint32_t* hits);
LetterFilter letter_filter(Simd simd, std::size_t depth);

/// The depth that suits signatures up to this length.
std::size_t letter_filter_depth(std::size_t longest_signature);

/// Every pair with edit_rate(signatures[first], signatures[second]) <= rate, ascending, into
/// `pairs`. Signatures share a block size where the first or second part of one has that of the
/// other; parts of one block size are joined by join_letters. Signatures without a common block
/// size have rate 1 and are no pair. Requires 0 <= rate < 1.
/// Memory: about 100 bytes a signature more than the signatures themselves, and the pairs. Ends
/// soon after it has found more than `most` pairs, some perhaps twice, and then sets `too_many` and
/// leaves `pairs` empty. A pair belongs to the part whose stripes
/// (cpp/documents/near_duplicates_parts.hpp) have the earlier one of its two strings, in the order
/// of block size, of length, of first parts before second ones, and of the signatures' numbers; a
/// pair that is near at two block sizes may belong to two parts. With `sides`, one a signature
/// (cpp/documents/distinct_documents.hpp), only pairs across are found, and a pair belongs to the
/// part that has the string of its row, in the order of the rows.
Status join_signatures(std::span<const Ctph> signatures, double rate, Simd simd,
                       Execution& execution, std::vector<IndexPair>& pairs,
                       std::uint64_t most = UINT64_MAX, bool* too_many = nullptr,
                       const PairPart& part = {}, std::span<const std::uint8_t> sides = {});

/// Joins plain strings of signature letters, all of them comparable: every pair with
/// distance / (sum of lengths) <= rate, ascending. It is the inner join of join_signatures: sorted
/// by length, filtered by common letters, then bit-parallel Levenshtein on what remains. Time:
/// length-compatible pairs times 4 to 32 word operations (cpp/documents/detail/signature_join.hpp),
/// and about 2 * length steps for each pair that passes. Strings are at most Ctph::max_length long.
Status join_letters(std::span<const std::string_view> strings, double rate, Simd simd,
                    Execution& execution, std::vector<IndexPair>& pairs);

}  // namespace gputext
