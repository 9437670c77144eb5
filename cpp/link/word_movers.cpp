#include "cpp/link/word_movers.hpp"

namespace gputext {

Status WordMoversRequest::pack(Packed& packed, Stop stop) const {
    if (pairs.size() >= UINT32_MAX) return too_many("pairs");
    SubmitWordMovers& message = packed.message;
    message.pairs = static_cast<std::uint32_t>(pairs.size());
    message.masses = pairs.masses.size();
    message.parameters = parameters;
    packed.expected.rows = message.pairs;
    GPUTEXT_TRY(packed.files.add(model_files(vectors, elements), message.vectors, stop));
    GPUTEXT_TRY(packed.files.add_copy(pairs.begins, stop));
    GPUTEXT_TRY(packed.files.add_copy(pairs.totals, stop));
    packed.files.add(masses);
    return {};
}

}  // namespace gputext
