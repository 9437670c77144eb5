#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <new>

#include "cpp/base/radix_sort.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/documents/detail/pair_sink.hpp"

namespace gputext::gpu {

Status PairSink::allocate(std::size_t capacity, cudaStream_t stream) {
    stream_ = stream;
    flushed_.clear();
    GPUTEXT_TRY(pairs_.allocate(capacity, stream));
    GPUTEXT_TRY(sorted_.allocate(capacity, stream));
    GPUTEXT_TRY(count_.allocate(1, stream));
    return cuda_status(cudaMemsetAsync(count_.data(), 0, sizeof(unsigned long long), stream),
                       "clearing a count");
}

Status PairSink::reserve(std::size_t more) {
    unsigned long long count = 0;
    GPUTEXT_TRY(download_value(count_.data(), count, stream_, "counting pairs"));
    return count + more <= capacity() ? Status() : flush();
}

Status PairSink::flush() {
    unsigned long long count = 0;
    GPUTEXT_TRY(download_value(count_.data(), count, stream_, "counting pairs"));
    if (count == 0) return {};
    GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
        return cub::DeviceRadixSort::SortKeys(space, bytes, pairs_.data(), sorted_.data(), count, 0,
                                              64, stream_);
    }));
    GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
        return cub::DeviceSelect::Unique(space, bytes, sorted_.data(), pairs_.data(), count_.data(),
                                         count, stream_);
    }));
    GPUTEXT_TRY(download_value(count_.data(), count, stream_, "sorting pairs"));
    try {
        std::vector<std::uint64_t>& pairs = flushed_.emplace_back(count);
        GPUTEXT_TRY(
            cuda_status(cudaMemcpyAsync(pairs.data(), pairs_.data(), count * sizeof pairs[0],
                                        cudaMemcpyDeviceToHost, stream_),
                        "copying pairs from the device"));
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(count_.data(), 0, sizeof count, stream_), "clearing a count"));
    return cuda_status(cudaStreamSynchronize(stream_), "copying pairs from the device");
}

Status PairSink::size(std::uint64_t& pairs) const {
    unsigned long long count = 0;
    GPUTEXT_TRY(download_value(count_.data(), count, stream_, "counting pairs"));
    pairs = count;
    for (const std::vector<std::uint64_t>& some : flushed_) pairs += some.size();
    return {};
}

Status PairSink::take(std::vector<IndexPair>& pairs, Stop stop) {
    GPUTEXT_TRY(flush());
    try {
        std::vector<std::uint64_t> all;
        for (std::vector<std::uint64_t>& some : flushed_) {
            if (all.empty()) {
                all = std::move(some);
            } else {
                all.insert(all.end(), some.begin(), some.end());
            }
            some = {};
        }
        if (flushed_.size() > 1) {
            if (!radix_sort(all, stop)) return Status::cancelled();
            all.erase(std::unique(all.begin(), all.end()), all.end());
        }
        flushed_.clear();
        pairs.resize(all.size());
        std::transform(all.begin(), all.end(), pairs.begin(), [](std::uint64_t pair) {
            return IndexPair{static_cast<std::uint32_t>(pair >> 32),
                             static_cast<std::uint32_t>(pair)};
        });
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    return {};
}

}  // namespace gputext::gpu
