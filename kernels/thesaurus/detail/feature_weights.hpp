// kernels/thesaurus/detail/feature_weights.hpp - cpp/thesaurus/feature_weights.hpp on a device
//
// Gives the CPU's weights, to the bit: doubles in the order that the header gives, none of them
// fused. Sums of counts that were made here come from the rows alone, since counts are symmetric:
// the words before a word are those that it stands behind.

#pragma once

#include "cpp/base/execution.hpp"
#include "cpp/thesaurus/feature_weights.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/thesaurus/detail/feature_rows.hpp"

namespace gputext::gpu {

/// Bytes of device memory that weighing takes beside the counts.
std::uint64_t word_weight_bytes(const CooccurrenceShape& shape, std::uint64_t stored);

/// O(stored) time. Waits for the stream. Errors: invalid_argument, cancelled, out_of_memory,
/// device_error, device_lost.
Status weigh_features(const WeightParameters& parameters, const CountRows& counts,
                      const DeviceWork& work, Execution& execution, FeatureRowsMemory& features);

}  // namespace gputext::gpu
