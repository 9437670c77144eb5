// kernels/documents/detail/pair_sink.hpp - pairs that kernels find, collected on the device

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/detail/index_pair.hpp"
#include "kernels/base/device_buffer.hpp"

namespace gputext::gpu {

/// Pairs as first << 32 | second, in no order, some of them perhaps twice. When the device's room
/// is full, what is there moves to the host.
class PairSink {
public:
    /// 24 bytes a pair of `capacity`, of which sorting takes two thirds.
    static constexpr std::size_t bytes_per_pair = 24;
    Status allocate(std::size_t capacity, cudaStream_t stream);

    std::size_t capacity() const { return pairs_.size(); }
    std::uint64_t* pairs() const { return pairs_.data(); }
    unsigned long long* count() const { return count_.data(); }

    /// Makes room for `more` pairs, which are at most the capacity. Waits for the stream.
    Status reserve(std::size_t more);
    /// How many pairs there are, those counted twice that are there twice. Waits for the stream.
    Status size(std::uint64_t& pairs) const;
    /// All pairs, ascending, each once; the sink is empty then. Errors: as PairLists::take.
    Status take(std::vector<IndexPair>& pairs, Stop stop);

private:
    Status flush();

    cudaStream_t stream_ = nullptr;
    DeviceBuffer<std::uint64_t> pairs_, sorted_;
    DeviceBuffer<unsigned long long> count_;
    DeviceBuffer<std::uint8_t> scratch_;
    std::vector<std::vector<std::uint64_t>> flushed_;  // each ascending, without doubles
};

}  // namespace gputext::gpu
