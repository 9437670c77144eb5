#include "cpp/link/knn.hpp"

namespace gputext {

Status KnnRequest::pack(Packed& packed, Stop stop) const {
    SubmitKnn& message = packed.message;
    message.parameters = parameters;
    GPUTEXT_TRY(packed.files.add(queries, items, keys, matches, message.search, stop));
    packed.expected.queries = message.search.queries.rows;
    packed.expected.items = message.search.items.rows;
    return {};
}

}  // namespace gputext
