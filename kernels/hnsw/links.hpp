// kernels/hnsw/links.hpp - cpp/hnsw/links.hpp on a device
//
// The device has all rows of the layer, copied once. A tile of them is searched for the nearest
// ones before each (kernels/knn/earlier_search.hpp, probing_search.hpp), and their links are chosen
// where the lists lie. Links are the CPU's, to the bit: exact distances decide, or bounds of them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/hnsw/links.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// Whether the current device has kernels for this at all: for rows of float32 and float16 of up to
/// 4,096 dimensions, up to 1,024 candidates and places, and every metric but cosine; for rows that
/// probe clusters see kernels/knn/probing_search.hpp.
bool has_kernels_for(const HnswLinkParameters& parameters, const LayerValues& values);

/// The fewest bytes of device memory that each of the functions below can do with; for link_back()
/// where no more rows than that link to one.
std::size_t least_bytes_to_link(const HnswLinkParameters& parameters, const LayerValues& values);
std::size_t least_bytes_to_link_back(const HnswLinkParameters& parameters, const Vectors& values);
std::size_t least_bytes_to_link_layer(const HnswLinkParameters& parameters,
                                      const LayerValues& values);

/// As gputext::link_to_earlier(), on the current device, in `work.bytes` of its memory; of the
/// parameters, memory_limit, block_rows and simd are the CPU's and mean nothing here. The ring
/// serves nothing else meanwhile. Errors besides the operator's: out_of_memory, device_error,
/// device_lost.
Status link_to_earlier(const HnswLinkParameters& parameters, const LayerValues& values,
                       const LayerRows& rows, const HnswLinks& links, const DeviceWork& work,
                       UploadRing& ring, Execution& execution);

/// As gputext::link_back(), likewise.
Status link_back(const HnswLinkParameters& parameters, const Vectors& values,
                 const HnswLinks& links, const LayerRows& rows, std::span<std::uint32_t> neighbors,
                 const DeviceWork& work, UploadRing& ring, Execution& execution);

/// Both of all rows: writes their neighbors. Rows are copied once, and links stay on the device.
Status link_layer(const HnswLinkParameters& parameters, const LayerValues& values,
                  std::span<std::uint32_t> neighbors, const DeviceWork& work, UploadRing& ring,
                  Execution& execution);

}  // namespace gputext::gpu
