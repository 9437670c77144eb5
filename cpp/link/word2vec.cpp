#include "cpp/link/word2vec.hpp"

#include <algorithm>
#include <cmath>

#include "cpp/base/exception_status.hpp"

namespace gputext {

Status Word2VecRequest::pack(Packed& packed, Stop stop) const {
    if (counts.size() >= UINT32_MAX) return too_many("words");
    SubmitWord2Vec& message = packed.message;
    message.host_memory_limit = host_memory_limit;
    message.words = static_cast<std::uint32_t>(counts.size());
    message.tokens = tokens;
    message.known = known_words;
    message.parameters = parameters;
    message.sample = sample;
    packed.expected.words = message.words;
    packed.expected.dimensions = parameters.dimensions;
    packed.files.add(words);
    packed.files.add(positions);
    GPUTEXT_TRY(packed.files.add_copy(counts, stop));
    if (known_words > 0) packed.files.add(known);
    return {};
}

Result<std::uint64_t> Word2VecAnswer::file_size() const {
    if (summary.words != words) return broken_reply(kOtherRows);
    if (summary.dimensions != dimensions) return broken_reply("vectors of other dimensions");
    return std::uint64_t{2} * words * dimensions * sizeof(float);
}

Result<TrainingModel> Word2VecAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<TrainingModel> {
        TrainingModel model;
        const std::uint64_t size = std::uint64_t{words} * dimensions;
        if (!copy_array(file, 0, size, model.vectors, stop) ||
            !copy_array(file, size * sizeof(float), size, model.outputs, stop))
            return Status::cancelled();
        const auto finite = [](float x) { return std::isfinite(x); };
        if (!std::all_of(model.vectors.begin(), model.vectors.end(), finite) ||
            !std::all_of(model.outputs.begin(), model.outputs.end(), finite))
            return broken_reply("vectors that are not finite");
        return model;
    });
}

}  // namespace gputext
