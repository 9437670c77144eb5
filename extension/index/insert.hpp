// extension/index/insert.hpp - puts a row's sketch into an index

#pragma once

#include "extension/index/open_index.hpp"

namespace gputext::index {

/// A sketch in memory: letters, and the grams behind them.
inline constexpr std::size_t kMostSketchBytes = SketchShape::letters + SketchShape::most_bins / 2;

/// Adds a sketch to a page of its kind, in one record of WAL. About one page is read and
/// locked, a directory page or more when that page is full.
void insert_sketch(Relation index, ItemPointerData row, SketchedDocument document,
                   const std::uint8_t* sketch);

}  // namespace gputext::index
