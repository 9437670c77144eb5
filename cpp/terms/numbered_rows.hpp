// cpp/terms/numbered_rows.hpp - rows of terms by the numbers of a common vocabulary
//
// Texts lie in chunks that number terms by words of their own. Here they become rows of one sparse
// matrix (cpp/base/vectors.hpp).

#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/terms/chunked_texts.hpp"

namespace gputext {

/// Texts of TextForm::terms, and the number that each term has in the matrix, or UINT32_MAX for one
/// that is left out. A view.
struct NumberedTexts {
    ChunkedTexts texts;
    const ChunkNumbers* numbers;
};

/// Fills row_begins of all rows, one more than there are: what of their terms is not left out, one
/// row behind the other. O(rows), and O(terms) with `leaves_out`. Error: cancelled.
Status count_terms(const NumberedTexts& rows, bool leaves_out, std::span<std::uint64_t> row_begins,
                   Execution& execution);

/// Takes the columns and the values of rows, from that place of the matrix on. Called by several
/// threads at once.
using TermSink = std::function<Status(std::uint64_t begin, std::span<const std::uint32_t> columns,
                                      std::span<const std::uint32_t> values)>;

/// Gives all rows to the sink, each with its columns in ascending order. O(n log n) of a row's
/// terms; takes 16 bytes for each term of the texts at work. Errors: cancelled; the sink's.
Status number_terms(const NumberedTexts& rows, std::span<const std::uint64_t> row_begins,
                    const TermSink& sink, Execution& execution);

}  // namespace gputext
