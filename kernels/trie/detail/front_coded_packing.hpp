// kernels/trie/detail/front_coded_packing.hpp - packs sorted words into the buckets of
// cpp/trie/detail/front_coded.hpp, on a device

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/execution.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/trie/detail/word_sort.hpp"

namespace gputext::gpu {

struct CodeTable;

/// Statistics of the words of a dictionary.
struct WordStatistics {
    std::uint64_t text_bytes = 0;
    std::uint32_t longest = 0;
    std::uint32_t alphabet[8] = {};  // a bit for each byte value
};

/// Words in order are measured, then written.
class FrontCodedPacking {
public:
    /// Device memory for so many words, without what write() fills.
    static std::size_t bytes(std::size_t words);

    /// Measures words, of which at least one is not empty; they, their order and the table must
    /// live as long as this object. Errors of all functions: out_of_memory, device_error.
    Status measure(const DeviceWords& words, const WordOrder& order, const CodeTable* table,
                   cudaStream_t stream);

    /// Valid after measure(), which has to have ended on the device. Bytes of all buckets.
    std::uint64_t payload() const { return payload_; }
    const WordStatistics& statistics() const { return statistics_; }

    /// Writes separators, offsets and buckets, each to its place on the device. The payload is
    /// below 4 GB.
    Status write(std::uint8_t* separators, std::uint8_t* offsets, std::uint8_t* buckets);

private:
    DeviceWords words_;
    const std::uint32_t* order_ = nullptr;
    std::uint32_t count_ = 0, buckets_ = 0;
    const CodeTable* table_ = nullptr;
    cudaStream_t stream_ = nullptr;
    DeviceBuffer<std::uint32_t> shared_, codes_;  // of each word: WordSizes
    DeviceBuffer<std::uint64_t> offsets_;         // of buckets, and their end
    DeviceBuffer<WordStatistics> statistics_on_device_;
    DeviceBuffer<std::uint8_t> scratch_;
    std::uint64_t payload_ = 0;
    WordStatistics statistics_;
};

}  // namespace gputext::gpu
