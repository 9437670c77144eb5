#include "cpp/link/term_knn.hpp"

namespace gputext {

Status TermKnnRequest::pack(Packed& packed, Stop stop) const {
    SubmitTermKnn& message = packed.message;
    message.terms = terms;
    message.parameters = parameters;
    GPUTEXT_TRY(packed.files.add(queries, items, keys, matches, message.search, stop));
    packed.expected.queries = message.search.queries.rows;
    packed.expected.items = message.search.items.rows;
    return {};
}

}  // namespace gputext
