// cpp/documents/near_duplicates.hpp - finds all pairs of documents with an edit rate of at most a
// threshold
//
// Source: the 2015 thesis, chapter 4. Mode ctph is its method, with signatures also compared at
// neighboring block sizes; mode exact finds every pair and needs no signature. The pairs are those
// of all documents, or those of one of the first documents and one of the others.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/documents.hpp"

namespace gputext {

// ---- The pairs of documents that near_duplicates finds ----

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
    /// The answer for no documents.
    NearDuplicates() = default;

    /// Documents after `document` in input order that are a pair with it, ascending.
    void later_neighbors(std::uint32_t document, std::vector<NearDuplicate>& neighbors) const;

    /// Number of pairs that later_neighbors gives over all documents.
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
    /// The number of copies that are not before the split.
    std::size_t copies_behind_split(std::uint32_t first_copy) const;
    /// The neighbors of a document get the order of the pairs. Error: cancelled.
    Status collect_pairs(std::span<const NearPair> pairs, Stop stop);
    Status sort_neighbors(Execution& execution);
    /// Removes repeated neighbors, which must be sorted. Error: cancelled.
    Status drop_repeated(Stop stop);

    std::uint32_t split_ = 0;
    std::vector<std::uint32_t> first_copy_;  // by document: the first one with the same bytes
    // Members of the classes, ascending, and where those of a first copy begin.
    std::vector<std::uint32_t> members_, members_begin_;
    // Neighbors of first copies, both ways, ascending.
    std::vector<NearDuplicate> near_;
    std::vector<std::uint64_t> near_begin_;
};

// ---- The search ----

enum class NearDuplicateMode {
    ctph,  // pairs whose signatures' edit rate is at most 3 * threshold, verified on the documents
    exact  // every pair, found by filters that lose none, verified on the documents
};

struct NearDuplicateParameters {
    double threshold = 0.05;  // 0 <= threshold < 0.5; pairs with at most this rate are found
    NearDuplicateMode mode = NearDuplicateMode::ctph;
    std::size_t signature_length = 100;  // 1 to Ctph::max_length; mode ctph only
    /// 0: all pairs are looked at. Else only those of one of the first so many documents and a
    /// later one.
    std::uint32_t split = 0;
    /// Only the connected components are wanted: the answer has fewer near pairs than documents,
    /// which connect all that near pairs connect. Which pairs these are may differ from call to
    /// call. Not with a split.
    bool components_only = false;
    /// Bytes that mode exact's index and pairs may take (cpp/documents/detail/exact_search.hpp).
    std::size_t memory_limit = std::size_t{1} << 30;
    Simd simd = best_simd();
};

/// Signatures that the caller already has: empty, or one a document, absent where there is none.
using GivenSignatures = std::span<const std::optional<Ctph>>;

/// Error: invalid_argument for parameters out of range, too many documents, a split behind them, or
/// one beside components_only.
Status check_near_duplicates(const NearDuplicateParameters& parameters, std::size_t documents);

/// Time: hashing O(bytes), the join (cpp/documents/detail/signature_join.hpp or
/// cpp/documents/detail/exact_search.hpp), and about size * threshold * size / 32 word steps for
/// each candidate that has to be verified in full. With a split the join's time follows the product
/// of the numbers of documents before and behind it, in place of the square of their sum. For the
/// components only, pairs within large components are not even candidates
/// (cpp/documents/detail/near_duplicate_search.hpp). Memory: 40 bytes and a signature (250 bytes) a
/// document, an index in mode exact, the pairs. Errors:
/// invalid_argument for parameters out of range; cancelled; out_of_memory.
Result<NearDuplicates> near_duplicates(const NearDuplicateParameters& parameters,
                                       const Documents& documents, GivenSignatures signatures,
                                       Execution& execution);

}  // namespace gputext
