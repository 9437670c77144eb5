// cpp/passages/shared_windows.hpp - windows of so many symbols that stand in several documents
//
// A window is what a document has in so many symbols, from any of its symbols on. A passage that is
// at least as long stands in two documents exactly if its windows do, so that whoever knows the
// groups of equal windows knows all.
//
// Nearly no window of most texts stands elsewhere. So windows are sampled first: of each window the
// gram with the least hash, which it has in common with an equal window, wherever that stands. Only
// windows whose gram occurs in several documents are put into groups, by a hash and then by their
// symbols.
//
// Source of the sample: Schleimer, Wilkerson and Aiken 2003, "Winnowing: local algorithms for
// document fingerprinting".

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/passages/passage_texts.hpp"

namespace gputext {

struct SharedWindowsParameters {
    std::size_t length = 50;  // symbols of a window, at least 1
    /// With two tables, the first `split` documents are the first one's, and windows are of
    /// interest that stand in both; with one table, those that stand in two documents.
    bool two_tables = false;
    std::size_t split = 0;
    /// Bytes that windows may take at a time; they are put into groups in as many parts as that
    /// needs.
    std::size_t memory_limit = std::size_t{1} << 30;
};

/// Calls group(symbols, worker) for each group of equal windows, which names the first symbol of
/// each, ascending; on the execution's threads, in no order. A group has windows of two documents;
/// with two tables, of both.
/// Time: a nanosecond or two for each symbol, some ten for each window whose gram occurs in several
/// documents. Memory: memory_limit, 28 to 40 bytes for a sample, of which there are 2 for a
/// window's length, and as PassageTexts. Errors: cancelled; out_of_memory; those of group().
using WindowGroup = std::function<Status(std::span<const std::uint64_t> symbols, unsigned worker)>;
Status each_shared_window(const PassageTexts& texts, const SharedWindowsParameters& parameters,
                          Execution& execution, const WindowGroup& group);

}  // namespace gputext
