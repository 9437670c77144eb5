#include "cpp/link/cosine_similarity.hpp"

namespace gputext {

Status CosineSimilarityRequest::pack(Packed& packed, Stop stop) const {
    GPUTEXT_TRY(packed.files.add(query, packed.message.query, stop));
    GPUTEXT_TRY(packed.files.add(items, packed.message.items, stop));
    packed.expected.rows = packed.message.items.rows;
    return {};
}

}  // namespace gputext
