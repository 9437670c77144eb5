// cpp/documents/detail/document_sides.hpp - the sides of a search between two sets of documents
//
// A document without copies (cpp/documents/distinct_documents.hpp) is on one side, or on both,
// where both sets have it. Only pairs across are wanted. A search joins rows with columns: the rows
// are the documents of the side that has more of them, the columns those of the other side, and a
// document on both sides is a row and a column. So the time follows the product of the two numbers,
// and tables are made of the side that is smaller.

#pragma once

#include <cstdint>
#include <span>

namespace gputext {

/// Bits of a document's sides.
inline constexpr std::uint8_t kFirstSide = 1, kSecondSide = 2;
inline constexpr std::uint8_t kBothSides = kFirstSide | kSecondSide;

/// The side whose documents are rows.
inline std::uint8_t row_side(std::span<const std::uint8_t> sides) {
    std::int64_t more_first = 0;
    for (const std::uint8_t side : sides)
        more_first += (side & kFirstSide) - (side & kSecondSide) / kSecondSide;
    return more_first > 0 ? kFirstSide : kSecondSide;
}

/// Whether a row and a column are a pair: two documents, and of two that are on both sides, which
/// meet twice, once only.
inline bool are_pair(std::span<const std::uint8_t> sides, std::uint32_t row, std::uint32_t column) {
    if (sides.empty()) return true;
    return row < column || (row > column && (sides[row] & sides[column]) != kBothSides);
}

}  // namespace gputext
