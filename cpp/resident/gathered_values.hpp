// cpp/resident/gathered_values.hpp - copies the values of a request one behind the other

#pragma once

#include <memory>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/resident/resident_chunk.hpp"
#include "cpp/resident/value_request.hpp"

namespace gputext {

/// A new chunk with the bytes of all values, none of which may be missing, in their order. It has
/// up to 16 parts, which the execution's threads fill. Errors: cancelled; out_of_memory; io_error.
Result<std::shared_ptr<const ResidentChunk>> gather(const ValueRequest& request,
                                                    ResidentChunks& chunks, Execution& execution);

}  // namespace gputext
