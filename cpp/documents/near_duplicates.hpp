// cpp/documents/near_duplicates.hpp - finds all pairs of documents with an edit rate of at most a
// threshold
//
// Source: the 2015 thesis, chapter 4. Mode ctph is its method, with signatures also compared at
// neighbouring block sizes; mode exact finds every pair and needs no signature.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/documents.hpp"

namespace gputext {

enum class NearDuplicateMode {
    ctph,  // pairs whose signatures' edit rate is at most 3 * threshold, verified on the documents
    exact  // every pair, found by filters that lose none, verified on the documents
};

struct NearDuplicateParameters {
    double threshold = 0.05;  // 0 <= threshold < 0.5; pairs with at most this rate are found
    NearDuplicateMode mode = NearDuplicateMode::ctph;
    std::size_t signature_length = 100;  // 1 to Ctph::max_length; mode ctph only
    /// Bytes that mode exact's index and pairs may take (cpp/documents/detail/exact_search.hpp).
    std::size_t memory_limit = std::size_t{1} << 30;
    Simd simd = best_simd();
};

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
/// that n copies take n numbers and not n^2 pairs.
class NearDuplicates {
public:
    /// Documents after `document` in input order that are near it, ascending.
    void later_neighbours(std::uint32_t document, std::vector<NearDuplicate>& neighbours) const;

    /// Number of pairs that later_neighbours gives over all documents.
    std::uint64_t pairs() const;

    /// Connected components: for each document the first one of its component. Error: cancelled.
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
                                             std::span<const NearPair> pairs, Stop stop = {});

private:
    friend class NearDuplicateSearch;

    std::span<const std::uint32_t> copies(std::uint32_t first_copy) const;
    void collect_members();
    bool collect_pairs(std::span<const NearPair> pairs, Stop stop);

    std::vector<std::uint32_t> first_copy_;  // by document: the first one with the same bytes
    // Members of the classes, ascending, and where those of a first copy begin.
    std::vector<std::uint32_t> members_;
    std::vector<std::uint64_t> members_begin_;
    // Neighbours of first copies, both ways, ascending.
    std::vector<NearDuplicate> near_;
    std::vector<std::uint64_t> near_begin_;
};

/// Signatures that the caller already has: empty, or one a document, absent where there is none.
using GivenSignatures = std::span<const std::optional<Ctph>>;

/// Time: hashing O(bytes), the join (cpp/documents/detail/signature_join.hpp or
/// cpp/documents/detail/exact_search.hpp), and about size * threshold * size / 32 word steps for
/// each candidate that has to be verified in full. Memory: 40 bytes and a signature (250 bytes) a
/// document, an index in mode exact, the pairs. Errors: invalid_argument for parameters out of
/// range; cancelled; out_of_memory.
Result<NearDuplicates> near_duplicates(const NearDuplicateParameters& parameters,
                                       const Documents& documents, GivenSignatures signatures,
                                       Execution& execution);

}  // namespace gputext
