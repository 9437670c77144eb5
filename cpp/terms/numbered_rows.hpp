// cpp/terms/numbered_rows.hpp - rows of terms by the numbers of a common vocabulary
//
// Rows are read in stretches, each by a process that numbers terms by a vocabulary of its own. Here
// they become rows of one sparse matrix (cpp/base/vectors.hpp).

#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// Rows that follow each other. A row is the number n of its terms, the terms[n], each once, and
/// their values[n], of four bytes each.
struct TermStretch {
    const std::uint32_t* records;
    std::uint32_t rows;
    /// The term's number in the matrix, or UINT32_MAX for one that is left out.
    const std::uint32_t* numbers;
};

/// Fills row_begins of all rows, one more than there are: what of their terms is not left out, one
/// row behind the other. O(rows), and O(terms) with `leaves_out`. Error: cancelled.
Status count_terms(std::span<const TermStretch> stretches, bool leaves_out,
                   std::span<std::uint64_t> row_begins, Execution& execution);

/// Takes the columns and the values of rows, from that place of the matrix on. Called by several
/// threads at once.
using TermSink = std::function<Status(std::uint64_t begin, std::span<const std::uint32_t> columns,
                                      std::span<const std::uint32_t> values)>;

/// Gives all rows to the sink, each with its columns in ascending order. O(n log n) of a row's
/// terms; takes 16 bytes for each term of a stretch at work. Errors: cancelled; the sink's.
Status number_terms(std::span<const TermStretch> stretches,
                    std::span<const std::uint64_t> row_begins, const TermSink& sink,
                    Execution& execution);

}  // namespace gputext
