// kernels/bits/nearest_bits.hpp - cpp/bits/nearest_bits.hpp on a device
//
// Gives the CPU's answer, to the bit. Queries and items come to the device once, in order of their
// ones, and some hundred thousand queries are searched beside all items at a time
// (kernels/bits/detail/bit_pairs.hpp), while the host sorts what was found of those before.

#pragma once

#include "cpp/base/execution.hpp"
#include "cpp/bits/nearest_bits.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// Whether there are kernels for such a search: of at most kMostBits bits, and not for many
/// neighbors without a radius. On a device without products of bits nearest_bits() searches on the
/// host.
bool has_kernels_for(const NearestBitsParameters& parameters, const Vectors& items);

/// As gputext::nearest_bits without keys that have to match, on the current device, in
/// `work.bytes` of its memory. Time: a product of 256 bits for each pair and 256 bits. The ring
/// serves nothing else meanwhile. Errors: the operator's; out_of_memory, which says how much is
/// needed; device_error, device_lost.
Result<Neighbors> nearest_bits(const NearestBitsParameters& parameters, const Vectors& queries,
                               const Vectors& items, const RowKeys& excluded,
                               const DeviceWork& work, UploadRing& ring, Execution& execution);

}  // namespace gputext::gpu
