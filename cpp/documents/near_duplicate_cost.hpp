// cpp/documents/near_duplicate_cost.hpp - estimates what the modes of near_duplicates take on the
// CPU

#pragma once

#include <cstdint>
#include <span>

#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/documents.hpp"

namespace gputext {

/// Seconds of one processor.
struct NearDuplicateSeconds {
    double ctph = 0;
    double exact = 0;
    /// Mode ctph, where it compares the signatures first.
    double signatures_first = 0;
    /// Of these, what it compares signatures for.
    double signature_pairs = 0;
    /// Mode ctph takes less if it compares the documents first, as mode exact does, and then the
    /// signatures of the pairs that are near.
    bool documents_first = false;
    /// Seconds of a GPU for pairs of short documents, in both modes, and for their groups. What it
    /// takes for others follows their bytes.
    double device = 0, device_groups = 0;
};

/// From rates measured on an AMD EPYC with AVX-512. Documents that are much alike take longer, in
/// both modes. `split`: as in NearDuplicateParameters. O(documents).
NearDuplicateSeconds estimate_near_duplicates(std::span<const Extent> documents, double threshold,
                                              bool signatures_given, std::uint32_t split = 0);

/// The estimate for documents without copies, with their sides, if they have any.
NearDuplicateSeconds estimate_near_duplicates(const DistinctDocuments& documents, double threshold);

}  // namespace gputext
