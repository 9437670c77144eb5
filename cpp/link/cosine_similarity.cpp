#include "cpp/link/cosine_similarity.hpp"

namespace gputext {

Status CosineSimilarityRequest::pack(Packed& packed, Stop stop) const {
    Status status = packed.files.add(query, packed.message.query, stop);
    if (status.ok()) status = packed.files.add(items, packed.message.items, stop);
    packed.expected.rows = packed.message.items.rows;
    return status;
}

}  // namespace gputext
