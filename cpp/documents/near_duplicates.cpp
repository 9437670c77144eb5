#include "cpp/documents/near_duplicates.hpp"

#include <string>

#include "cpp/documents/detail/near_duplicate_search.hpp"

namespace gputext {
Status check_near_duplicates(const NearDuplicateParameters& parameters, std::size_t documents) {
    if (!(parameters.threshold >= 0 && parameters.threshold < 0.5))
        return Status(ErrorCode::invalid_argument, "threshold must be at least 0 and below 0.5");
    if (parameters.signature_length < 1 || parameters.signature_length > Ctph::max_length)
        return Status(ErrorCode::invalid_argument,
                      "signature length must be between 1 and " + std::to_string(Ctph::max_length));
    if (documents >= UINT32_MAX)
        return Status(ErrorCode::invalid_argument, "more than 4294967294 documents");
    if (parameters.split > documents)
        return Status(ErrorCode::invalid_argument, "a split behind the documents");
    if (parameters.split > 0 && parameters.components_only)
        return Status(ErrorCode::invalid_argument, "components of documents with a split");
    return {};
}

Result<NearDuplicates> near_duplicates(const NearDuplicateParameters& parameters,
                                       const Documents& documents, GivenSignatures signatures,
                                       Execution& execution) {
    HostPairFinder finder;
    return search_near_duplicates(parameters, documents, signatures, finder, execution);
}

}  // namespace gputext
