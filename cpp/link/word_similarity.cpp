#include "cpp/link/word_similarity.hpp"

namespace gputext {

Status WordSimilarityRequest::pack(Packed& packed, Stop stop) const {
    SubmitWordSimilarity& message = packed.message;
    message.shape = shape;
    message.counted = counted;
    message.count = rows;
    message.weighting = weighting;
    message.parameters = parameters;
    packed.expected.queries = packed.expected.items = shape.words;
    packed.files.add(first);
    if (counted) return packed.files.add_copy(order, stop);
    packed.files.add(second);
    return {};
}

}  // namespace gputext
