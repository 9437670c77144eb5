// cpp/resident/gathered_values.hpp - copies the values of a request one behind the other

#pragma once

#include <memory>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/resident_origin.hpp"
#include "cpp/base/status.hpp"
#include "cpp/link/resident_values.hpp"
#include "cpp/resident/resident_chunk.hpp"
#include "cpp/resident/value_request.hpp"

namespace gputext {

/// Where the values of a request lie, none of which may be missing, in their order; it holds the
/// chunks. O(values). Error: cancelled.
Result<ResidentOrigin> origin_of(const ValueRequest& request, Stop stop);

/// Fills a reserved chunk, which is to hold values of that kind, with what its origin says, on the
/// execution's threads, a file each, and ends its filling. Of vectors it then knows the largest
/// magnitude. Waits for sources that are still being filled.
void fill(ResidentChunk& chunk, const ValueKind& kind, const ResidentOrigin& origin,
          Execution& execution) noexcept;

/// Lets a chunk of vectors know how large the magnitudes of its elements are at most, by what the
/// chunks know that they come from; those that do not know it are looked at where they have at most
/// a quarter of the bytes. Error: cancelled.
Status bound_magnitude(const ResidentChunk& chunk, const ValueKind& kind,
                       std::span<const std::shared_ptr<const ResidentChunk>> sources,
                       Execution& execution);

}  // namespace gputext
