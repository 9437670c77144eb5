#include "cpp/link/term_knn.hpp"

namespace gputext {

Status TermKnnRequest::pack(Packed& packed, Stop stop) const {
    SubmitTermKnn& message = packed.message;
    message.terms = terms;
    message.parameters = parameters;
    message.has_factors = !factors.empty();
    GPUTEXT_TRY(packed.files.add(queries, items, keys, matches, message.search, stop));
    if (message.has_factors) GPUTEXT_TRY(packed.files.add_copy(factors, stop));
    packed.expected.queries = message.search.queries.rows;
    packed.expected.items = message.search.items.rows;
    return {};
}

}  // namespace gputext
