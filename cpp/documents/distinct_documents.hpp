// cpp/documents/distinct_documents.hpp - the documents of a search without their copies

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicates.hpp"

namespace gputext {

// ---- The sides of a search between two sets of documents ----
//
// A distinct document is on one side, or on both if both sets have it. Only pairs across are
// wanted. A search joins rows with columns: the rows are the documents of the side that has more of
// them, the columns those of the other side, and a document on both sides is a row and a column. So
// the time follows the product of the two numbers, and tables are made of the smaller side.

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

/// Documents of which no two have the same bytes.
struct DistinctDocuments {
    Documents documents;
    std::span<const std::uint32_t> lengths;   // of each, in characters
    std::span<const Ctph* const> signatures;  // of each that the caller has, else null; or empty
    /// Each document's sides, in a search between two sides; else empty.
    std::span<const std::uint8_t> sides = {};
    /// Of each the first document of its set, in a search for near pairs that connect sets
    /// (cpp/documents/detail/candidate_pairs.hpp); or empty.
    std::span<const std::uint32_t> sets = {};

    std::size_t size() const { return documents.size(); }
    const Ctph* signature(std::size_t i) const {
        return signatures.empty() ? nullptr : signatures[i];
    }
};

/// The first document of each class of copies. What it was made of must live as long.
class FirstCopies {
public:
    /// `split`: as in NearDuplicateParameters. Time: O(bytes), on the execution's threads. Memory:
    /// 40 bytes a document. Error: cancelled.
    Status find(const Documents& documents, GivenSignatures signatures, std::uint32_t split,
                Execution& execution);

    /// Valid until answer().
    DistinctDocuments distinct() const {
        return {{documents_.bytes, extents_, documents_.characters}, lengths_, signatures_, sides_};
    }

    /// The answer about all documents, from the near pairs of distinct ones, by their positions
    /// among these: first < second, in any order, some perhaps more than once. Called once.
    /// O(pairs * log(pairs)) time. Error: cancelled.
    Result<NearDuplicates> answer(std::vector<NearPair> pairs, Execution& execution);

private:
    using DocumentStep = std::function<void(std::uint32_t document)>;

    Status for_each_document(const char* phase, Execution& execution, const DocumentStep& step);
    Status read_documents(Execution& execution);
    Status find_copies(Execution& execution);
    Status find_equal_hashes(Execution& execution);
    bool separate(const std::vector<std::uint8_t>& differs, const Execution& execution);
    Status select(GivenSignatures signatures, const Execution& execution);
    void find_sides();

    Documents documents_;
    std::uint32_t split_ = 0;
    std::vector<std::uint32_t> steps_;
    std::vector<std::uint64_t> hashes_;
    std::vector<std::uint32_t> first_copies_;  // by document: the first one with the same bytes
    std::vector<std::uint32_t> distinct_;      // documents that are first copies
    std::vector<std::uint32_t> lengths_;       // of all documents; later of those, as the next two
    std::vector<Extent> extents_;
    std::vector<const Ctph*> signatures_;
    std::vector<std::uint8_t> sides_;  // of distinct documents, where there is a split
};

}  // namespace gputext
