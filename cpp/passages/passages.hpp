// cpp/passages/passages.hpp - shared passages of documents

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/passages/passage_texts.hpp"
#include "cpp/passages/shared_windows.hpp"

namespace gputext {

/// Equal symbols of two documents that are followed, and preceded, by different ones or by the end
/// or the begin of a document.
struct SharedPassage {
    std::uint32_t first, second;               // documents
    std::uint64_t first_symbol, second_symbol;  // counted in all documents
    std::uint64_t symbols;
};

struct PassagePairs {
    /// By the first document, the first symbol in it, the second document and the symbol in it.
    std::vector<SharedPassage> passages;
    /// How many there are; where these are more than the most that are wanted, the list is empty.
    std::uint64_t count = 0;
};

/// All passages of at least the windows' length that two documents share: each once, the first
/// document being the one that comes before, or the one of the first table. What a document has
/// twice is not shared. Time: that of each_shared_window() and O(length) for each pair. Memory:
/// theirs, and 40 bytes a pair. Errors: cancelled; out_of_memory; memory_limit where the pairs need
/// more than answer_limit.
Result<PassagePairs> shared_passages(const PassageTexts& texts,
                                     const SharedWindowsParameters& parameters,
                                     std::uint64_t most_pairs, std::size_t answer_limit,
                                     Execution& execution);

/// Symbols of a document of which each window stands in so many other documents.
struct SharedStretch {
    std::uint32_t document;
    std::uint64_t symbol;  // counted in all documents
    std::uint64_t symbols;
};

/// The longest such stretches of each document, some of which may overlap. With two tables those of
/// the first one's documents, by windows that stand in `others` documents of the second one; with
/// one table `others` are other documents. By document and symbol. Time: that of
/// each_shared_window(). Memory: theirs, a bit a symbol, and 24 bytes a stretch. Errors: cancelled;
/// out_of_memory.
Result<std::vector<SharedStretch>> shared_stretches(const PassageTexts& texts,
                                                    const SharedWindowsParameters& parameters,
                                                    std::size_t others, Execution& execution);

/// What such stretches cover, whatever they overlap: those that overlap or touch are one. Where there
/// are gaps between symbols, one covers those between its symbols only if a window of both sides is
/// shared, and stretches that touch are several. Time, memory and errors: those of
/// shared_stretches(), twice for windows of one symbol with gaps.
Result<std::vector<SharedStretch>> covered_stretches(const PassageTexts& texts,
                                                     const SharedWindowsParameters& parameters,
                                                     std::size_t others, Execution& execution);

/// Symbols that are a stretch of some document.
struct CommonPassage {
    SharedStretch first;        // the first place where they stand, maybe within a longer stretch
    std::uint32_t documents;    // in which they stand, also within longer stretches
    std::uint64_t occurrences;  // places where they stand, some of which may overlap
};

/// The passages that the stretches have, each once, in the order of their first places, and of one
/// place the shorter one first; with one table. Time: O(symbols of all stretches), and O(1) for each
/// passage in each document that has it. Memory: 10 bytes for each symbol of the passages, 13 where a
/// symbol is no byte, and some 70 bytes a passage. Errors: cancelled; out_of_memory; memory_limit where the passages need more than
/// memory_limit.
Result<std::vector<CommonPassage>> common_passages(const PassageTexts& texts,
                                                   const std::vector<SharedStretch>& stretches,
                                                   std::size_t memory_limit,
                                                   Execution& execution);

}  // namespace gputext
