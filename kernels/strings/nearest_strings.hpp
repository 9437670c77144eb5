// kernels/strings/nearest_strings.hpp - cpp/strings/nearest_strings.hpp on a device
//
// Gives the CPU's answer, to the bit. Queries and items come to the device once, in order of
// length, and some hundred thousand queries are searched beside all items at a time
// (kernels/strings/detail/string_pairs.hpp):
//
//   - items whose bounds are least, of each of some parts of the items, are compared, and the k-th
//     of their distances limits the query's search; without a k the radius does;
//   - the items whose bounds are within the limit are compared;
//   - the host keeps the k nearest. Where many are within the limit, it lowers the limit by the
//     nearest among some of the items before the others are looked at.
//
// The host compares strings that are too long for the kernels (string_pairs.hpp), if the filter
// does not exclude them, and searches for queries of more than 256 symbols, with osa of more than
// 64.

#pragma once

#include <cstddef>

#include "cpp/base/execution.hpp"
#include "cpp/strings/nearest_strings.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// Whether there are kernels for such a search: not for many neighbors without a radius, for items
/// of more than 65534 symbols, and by jaro and jaro_winkler where many have more than 256. On a
/// device without products of bits, and for more than 65536 different symbols, nearest_strings()
/// searches on the host.
bool has_kernels_for(const NearestStringsParameters& parameters, const Strings& items);

/// As gputext::nearest_strings without keys that have to match, on the current device, in
/// `work.bytes` of its memory. Time: two products of 256 bits for each pair, and a distance for a
/// pair that the filter leaves. The ring serves nothing else meanwhile. Errors: the operator's;
/// out_of_memory, which says how much is needed; device_error, device_lost.
Result<Neighbors> nearest_strings(const NearestStringsParameters& parameters,
                                  const Strings& queries, const Strings& items,
                                  const RowKeys& excluded, const DeviceWork& work, UploadRing& ring,
                                  Execution& execution);

}  // namespace gputext::gpu
