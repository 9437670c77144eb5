// kernels/thesaurus/detail/feature_rows.hpp - co-occurrences of words and their weights as sparse
// rows on the device

#pragma once

#include <cstdint>

#include "cpp/thesaurus/cooccurrences.hpp"
#include "kernels/base/device_buffer.hpp"

namespace gputext::gpu {

/// As cpp/thesaurus/cooccurrences.hpp has it; a view.
struct CountRows {
    CooccurrenceShape shape;
    std::uint64_t stored = 0;
    const std::uint64_t* begins = nullptr;
    const std::uint32_t* columns = nullptr;
    const std::uint32_t* counts = nullptr;
    /// Whether the counts were made here, and are known to be symmetric.
    bool symmetric = false;
};

struct CountRowsMemory {
    DeviceBuffer<std::uint64_t> begins;
    DeviceBuffer<std::uint32_t> columns, counts;
    CountRows view;
};

/// As cpp/thesaurus/feature_weights.hpp has it; a view.
struct FeatureRows {
    CooccurrenceShape shape;
    std::uint64_t stored = 0;
    const std::uint64_t* begins = nullptr;
    const std::uint32_t* columns = nullptr;
    const std::uint16_t* weights = nullptr;
};

struct FeatureRowsMemory {
    DeviceBuffer<std::uint64_t> begins;
    DeviceBuffer<std::uint32_t> columns;
    DeviceBuffer<std::uint16_t> weights;
    FeatureRows view;
};

}  // namespace gputext::gpu
