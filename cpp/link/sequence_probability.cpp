#include "cpp/link/sequence_probability.hpp"

#include "cpp/base/exception_status.hpp"

namespace gputext {

Status SequenceProbabilityRequest::pack(Packed& packed, Stop stop) const {
    if (sequences.size() >= UINT32_MAX) return too_many("sequences");
    SubmitSequenceProbability& message = packed.message;
    message.sequences = static_cast<std::uint32_t>(sequences.size());
    message.tokens = sequences.tokens.size();
    packed.expected.sequences = message.sequences;
    packed.expected.tokens = message.tokens;
    RequestFiles& files = packed.files;
    GPUTEXT_TRY(files.add(model_files(model.vectors, elements), message.vectors, stop));
    GPUTEXT_TRY(files.add(model_files(model.outputs, output_elements), message.outputs, stop));
    GPUTEXT_TRY(files.add_copy(sequences.begins, stop));
    files.add(tokens);
    return {};
}

Result<std::uint64_t> SequenceProbabilityAnswer::file_size() const {
    if (summary.sequences != sequences) return broken_reply(kOtherRows);
    if (summary.tokens != tokens) return broken_reply("an answer of another number of tokens");
    return sequences * sizeof(double) + tokens * sizeof(float);
}

Result<SequenceProbabilities> SequenceProbabilityAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<SequenceProbabilities> {
        SequenceProbabilities answer;
        if (!copy_array(file, 0, sequences, answer.sequences, stop) ||
            !copy_array(file, sequences * sizeof(double), tokens, answer.tokens, stop))
            return Status::cancelled();
        return answer;
    });
}

}  // namespace gputext
