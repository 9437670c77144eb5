// cpp/documents/detail/letter_filter.hpp - filters signatures that share enough letters to be
// within a distance
//
// Two strings within distance k have max(|a|, |b|) - k letters in common, counted as a multiset.
// Letter counts in unary, one bit a letter and count (word t has bit g when letter g occurs more
// than t times), make that number of common letters a product of bit matrices: AND, then count the
// ones. It is q-gram filtering with q = 1, and the unary code makes the product equal to the sum of
// minima, where plain counts would only bound it from above. Counts beyond the last word are kept
// aside as `excess` and added to the bound, so that no pair is ever lost.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cpp/base/simd.hpp"

namespace gputext {

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

}  // namespace gputext
