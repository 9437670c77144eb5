// cpp/documents/near_duplicate_answer.hpp - the pairs of documents that near_duplicates finds

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

/// A document near another one, which the context names.
struct NearDuplicate {
    std::uint32_t document;
    double edit_rate;
};

/// Two documents with an edit rate of at most the threshold.
struct NearPair {
    std::uint32_t first;
    std::uint32_t second;
    double edit_rate;
};

/// The answer. Documents with the same bytes are kept as one class, named by its first member, so
/// that n copies take n numbers and not n^2 pairs. Of a search with a split
/// (NearDuplicateParameters), the pairs are those of a document before it and one behind it.
class NearDuplicates {
public:
    /// Of no documents.
    NearDuplicates() = default;

    /// Documents after `document` in input order that are a pair with it, ascending.
    void later_neighbours(std::uint32_t document, std::vector<NearDuplicate>& neighbours) const;

    /// Number of pairs that later_neighbours gives over all documents.
    std::uint64_t pairs() const;

    /// Connected components, of a search without a split: for each document the first one of its
    /// component. Error: cancelled.
    Result<std::vector<std::uint32_t>> components(Stop stop = {}) const;

    std::size_t documents() const { return first_copy_.size(); }

    /// The answer as plain arrays, for another process: for each document the first one with the
    /// same bytes, and the pairs of such first ones that are near each other: first < second,
    /// ascending, each once.
    std::span<const std::uint32_t> first_copies() const { return first_copy_; }
    std::uint64_t near_pair_count() const { return near_.size() / 2; }
    /// Pairs with begin <= first < end.
    std::vector<NearPair> near_pairs_of(std::uint32_t begin, std::uint32_t end) const;

    /// The inverse, from arrays that nobody vouches for: whatever is in them, it returns an answer
    /// that is safe to ask, or invalid_argument. O(documents + pairs). Error: cancelled.
    static Result<NearDuplicates> from_parts(std::span<const std::uint32_t> first_copies,
                                             std::span<const NearPair> pairs,
                                             std::uint32_t split = 0, Stop stop = {});

    /// The answer from the arrays of a search, which are not checked, and whose pairs come in any
    /// order, some perhaps more than once. The execution's threads sort them, if need be, in
    /// O(pairs * log(pairs)) time. Error: cancelled.
    static Result<NearDuplicates> from_search(std::vector<std::uint32_t> first_copies,
                                              std::span<const NearPair> pairs, std::uint32_t split,
                                              Execution& execution);

private:
    /// Documents and their copies, and no pairs.
    NearDuplicates(std::vector<std::uint32_t> first_copies, std::uint32_t split);

    std::span<const std::uint32_t> copies(std::uint32_t first_copy) const;
    /// Those of them that are not before the split.
    std::size_t copies_behind_split(std::uint32_t first_copy) const;
    /// The neighbours of a document get the order of the pairs. Error: cancelled.
    Status collect_pairs(std::span<const NearPair> pairs, Stop stop);
    Status sort_neighbours(Execution& execution);
    /// Of sorted neighbours. Error: cancelled.
    Status drop_repeated(Stop stop);

    std::uint32_t split_ = 0;
    std::vector<std::uint32_t> first_copy_;  // by document: the first one with the same bytes
    // Members of the classes, ascending, and where those of a first copy begin.
    std::vector<std::uint32_t> members_;
    std::vector<std::uint64_t> members_begin_;
    // Neighbours of first copies, both ways, ascending.
    std::vector<NearDuplicate> near_;
    std::vector<std::uint64_t> near_begin_;
};

}  // namespace gputext
