// cpp/documents/detail/count_join.hpp - finds candidates for all pairs of documents within an edit
// rate, none missing

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/detail/index_pair.hpp"
#include "cpp/documents/documents.hpp"

namespace gputext {

struct DocumentJoin {
    double threshold = 0.05;  // 0 to 0.5: an edit rate, distance / (sum of lengths)
    /// Bytes that the documents' features may take. Below that they are computed once, above it
    /// once a tile: 5 KB a document in two tiles at a time. At least two documents' worth is taken.
    std::size_t memory_limit = std::size_t{1} << 30;
    Simd simd = best_simd();
    /// Above 0 only pairs of one of the first so many documents and a later one are wanted.
    std::size_t split = 0;
    /// By document 0 or 1: only pairs are wanted whose first document in order of length, then of
    /// number, has 1; with a split the document before it. None at all: all pairs.
    std::span<const std::uint8_t> rows = {};
};

/// Every wanted pair of documents that the filters cannot exclude from having an edit rate of at
/// most the threshold, ascending: a superset of the true pairs, half as many again on source files.
/// `lengths` holds each document's number of characters. Filters, in this order: lengths,
/// characters in common by classes, by themselves, trigrams in common
/// (cpp/documents/detail/count_filter.hpp). Time: O(sum of sizes) for each tile of features; 16
/// word operations for each pair of compatible length, 256 to 4352 byte operations for each of the
/// few that their classes do not exclude. Ends soon after it has found more than `most` candidates,
/// and then sets `too_many` and leaves `candidates` empty. Errors: cancelled, out_of_memory.
Status join_documents(const DocumentJoin& parameters, const Documents& documents,
                      std::span<const std::uint32_t> lengths, Execution& execution,
                      std::vector<IndexPair>& candidates, std::uint64_t most = UINT64_MAX,
                      bool* too_many = nullptr);

}  // namespace gputext
