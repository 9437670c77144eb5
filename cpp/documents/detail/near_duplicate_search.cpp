#include "cpp/documents/detail/near_duplicate_search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cpp/documents/detail/connecting_search.hpp"

namespace gputext {

Result<NearDuplicates> search_near_duplicates(const NearDuplicateParameters& parameters,
                                              const Documents& documents,
                                              GivenSignatures signatures, NearPairFinder& finder,
                                              Execution& execution) {
    GPUTEXT_TRY(check_near_duplicates(parameters, documents.size()));
    FirstCopies copies;
    GPUTEXT_TRY(copies.find(documents, signatures, parameters.split, execution));
    std::vector<NearPair> pairs;
    // Documents with different bytes are at least one edit apart.
    if (parameters.threshold > 0)
        GPUTEXT_TRY(
            parameters.components_only
                ? find_connecting_pairs(parameters, copies.distinct(), finder, execution, pairs)
                : finder.find(parameters, copies.distinct(), execution, pairs));
    return copies.answer(std::move(pairs), execution);
}

double signature_rate(double threshold) {
    // The thesis's factor: edits weigh more on a signature than on its document.
    return std::min(std::nextafter(1.0, 0.0), 3 * threshold);
}

}  // namespace gputext
