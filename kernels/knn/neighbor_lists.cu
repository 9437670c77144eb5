#include "kernels/knn/neighbor_lists.hpp"

#include <thrust/iterator/transform_iterator.h>
#include <algorithm>
#include <cstring>
#include <cub/device/device_scan.cuh>
#include <new>
#include <utility>

#include "cpp/base/large_pages.hpp"
#include "cpp/knn/knn.hpp"
#include "kernels/base/early_launch.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/knn/detail/score_distance.cuh"

namespace gputext::gpu {

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kGatherThreads = 128;   // a query
constexpr std::uint32_t kMostSmall = 512;  // queries of a small answer

/// Limits become another list's, if there is one, else the radius.
__global__ void clear_lists(ListsView lists, std::uint32_t queries, const double* limits,
                            double radius) {
    let_next_begin();
    const std::uint32_t query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query >= queries) return;
    clear_list(lists, query, limits != nullptr ? limits[query] : radius);
}

__global__ void select_failed(ListsView lists, QuerySelection selection, FailedLists failed) {
    wait_for_previous();
    const std::uint32_t selected = blockIdx.x * blockDim.x + threadIdx.x;
    if (selected < selection.count) take_if_failed(lists, selection[selected], failed);
    __syncthreads();
    if (threadIdx.x == 0) report_failed(failed);
}

struct Widened {
    __device__ std::uint64_t operator()(std::uint32_t value) const { return value; }
};

/// A block for each query.
__global__ void gather_kept(ListsView lists, const std::uint64_t* begins, std::uint32_t* items,
                            double* distances) {
    const std::uint32_t query = blockIdx.x;
    const std::size_t from = std::size_t{query} * lists.capacity;
    for (std::uint32_t i = threadIdx.x; i < lists.kept[query]; i += blockDim.x) {
        items[begins[query] + i] = lists.items[from + i];
        distances[begins[query] + i] = distance_of_key(lists.keys[from + i]);
    }
}

/// Where a small answer lies in a PinnedBuffer: `begins`, then room for the distances of `most`
/// neighbors, then their items.
struct SmallAnswer {
    std::uint64_t* begins;
    double* distances;
    std::uint32_t* items;

    static std::size_t bytes(std::size_t queries, std::size_t most) {
        return (queries + 1) * sizeof(std::uint64_t) +
               most * (sizeof(double) + sizeof(std::uint32_t));
    }
    SmallAnswer(std::byte* memory, std::size_t queries, std::size_t most)
        : begins(reinterpret_cast<std::uint64_t*>(memory)),
          distances(reinterpret_cast<double*>(begins + queries + 1)),
          items(reinterpret_cast<std::uint32_t*>(distances + most)) {}
};

/// A block for each query. `counter` of blocks that are done is 0 before and after.
__global__ __launch_bounds__(kGatherThreads) void gather_small(ListsView lists, SmallAnswer to,
                                                               std::uint32_t* counter,
                                                               std::uint64_t* word) {
    __shared__ std::uint32_t sums[kGatherThreads / kWarp];
    const std::uint32_t query = blockIdx.x;
    std::uint32_t own = 0;
    for (std::uint32_t i = threadIdx.x; i < query; i += kGatherThreads) own += lists.kept[i];
    own = warp_sum(own);
    if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = own;
    __syncthreads();
    std::uint64_t begin = 0;
    for (const std::uint32_t sum : sums) begin += sum;
    const std::uint32_t kept = lists.kept[query];
    const std::size_t from = std::size_t{query} * lists.capacity;
    for (std::uint32_t i = threadIdx.x; i < kept; i += kGatherThreads) {
        to.items[begin + i] = lists.items[from + i];
        to.distances[begin + i] = distance_of_key(lists.keys[from + i]);
    }
    if (threadIdx.x == 0) {
        to.begins[query] = begin;
        if (query + 1 == gridDim.x) to.begins[query + 1] = begin + kept;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence_system();
    if (atomicAdd(counter, 1u) != gridDim.x - 1) return;
    *counter = 0;
    __threadfence_system();
    write_word(word, 1);
}

template <class T>
void copy_bytes(std::vector<T>& to, const T* from) {
    if (!to.empty()) std::memcpy(to.data(), from, to.size() * sizeof(T));
}

}  // namespace

std::size_t NeighborLists::bytes_per_query(const Shape& shape) {
    const std::size_t entry = sizeof(std::uint32_t) + sizeof(std::uint64_t);
    // Found, kept and gathered; CUB sorts into a second place and takes some space by list.
    const std::size_t entries = shape.capacity * (shape.is_short() ? 1 : 2) + shape.capacity;
    return entries * entry + (shape.scored ? shape.capacity * sizeof(float) : 0) + 64;
}

Status NeighborLists::allocate(const Shape& shape, std::uint32_t queries, cudaStream_t stream) {
    shape_ = shape;
    stream_ = stream;
    const std::size_t entries = std::size_t{queries} * shape.capacity;
    GPUTEXT_TRY(items_.allocate(entries, stream));
    GPUTEXT_TRY(keys_.allocate(entries, stream));
    if (!shape.is_short()) {
        GPUTEXT_TRY(sorted_items_.allocate(entries, stream));
        GPUTEXT_TRY(sorted_keys_.allocate(entries, stream));
    }
    if (shape.scored) GPUTEXT_TRY(scores_.allocate(entries, stream));
    GPUTEXT_TRY(counts_.allocate(queries, stream));
    GPUTEXT_TRY(kept_.allocate(queries, stream));
    GPUTEXT_TRY(limits_.allocate(queries, stream));
    GPUTEXT_TRY(counters_.allocate(3, stream));
    return cuda_status(
        cudaMemsetAsync(counters_.data(), 0, counters_.size() * sizeof(std::uint32_t), stream),
        "clearing counts");
}

Status NeighborLists::reset(std::uint32_t queries, double radius) {
    radius_ = radius;
    clear_lists<<<blocks_for(queries, kThreads), kThreads, 0, stream_>>>(view(), queries, nullptr,
                                                                         radius);
    return launched("clearing lists of neighbors");
}

Status NeighborLists::reset(std::uint32_t queries, const NeighborLists& other) {
    clear_lists<<<blocks_for(queries, kThreads), kThreads, 0, stream_>>>(view(), queries,
                                                                         other.limits_.data(), 0);
    return launched("clearing lists of neighbors");
}

Status NeighborLists::forget_kept(std::uint32_t queries) {
    return reset(queries, *this);
}

ListsView NeighborLists::view() const {
    return {shape_.k,     shape_.capacity, items_.data(),  counts_.data(),
            kept_.data(), keys_.data(),    limits_.data(), scores_.data()};
}

Status NeighborLists::merge(const MergeInput& input, const QuerySelection& selection,
                             unsigned long long* rescored) {
    if (selection.count == 0) return {};
    if (input.marked.words != nullptr) return merge_marked(input, selection, rescored);
    return shape_.is_short() ? merge_short(input, selection, rescored)
                             : merge_long(input, selection, rescored);
}

Status NeighborLists::keep(const QuerySelection& selection) {
    if (selection.count == 0) return {};
    return shape_.is_short() ? keep_short(selection, {}) : keep_long(selection);
}

Status NeighborLists::take_failed(const QuerySelection& selection, const float* wanted,
                                   const float* proven, std::uint32_t* failed,
                                   std::uint32_t& count) {
    count = 0;
    if (selection.count == 0) return {};
    FailedLists lists{wanted, proven, radius_, failed};
    GPUTEXT_TRY(prepare(lists));
    GPUTEXT_TRY(launch_early("looking for lists that overflowed", select_failed,
                             blocks_for(selection.count, kThreads), kThreads, 0, stream_, view(),
                             selection, lists));
    return wait_for_failed(count);
}

Status NeighborLists::keep_and_take_failed(const QuerySelection& selection, const float* wanted,
                                            const float* proven, std::uint32_t* failed,
                                            std::uint32_t& count) {
    count = 0;
    if (selection.count == 0) return {};
    FailedLists lists{wanted, proven, radius_, failed};
    GPUTEXT_TRY(prepare(lists));
    GPUTEXT_TRY(keep_short(selection, lists));
    return wait_for_failed(count);
}

Status NeighborLists::prepare(FailedLists& failed) {
    GPUTEXT_TRY(pinned_.prepare());
    failed.counters = counters_.data();
    failed.reported = pinned_.word();
    return {};
}

Status NeighborLists::wait_for_failed(std::uint32_t& count) {
    std::uint64_t reported = 0;
    GPUTEXT_TRY(pinned_.wait(stream_, "merging neighbors", reported));
    count = static_cast<std::uint32_t>(reported);
    return {};
}

Status NeighborLists::download_small(std::uint32_t queries, MemoryBudget& budget,
                                      std::vector<std::uint64_t>& begins,
                                      std::vector<std::uint32_t>& items,
                                      std::vector<double>& distances) {
    GPUTEXT_TRY(pinned_.prepare());
    const SmallAnswer answer(pinned_.data(), queries, std::size_t{queries} * shape_.k);
    gather_small<<<queries, kGatherThreads, 0, stream_>>>(view(), answer, counters_.data() + 2,
                                                          pinned_.word());
    GPUTEXT_TRY(launched("gathering neighbors"));
    std::uint64_t done = 0;
    GPUTEXT_TRY(pinned_.wait(stream_, "finding neighbors", done));
    copy_bytes(begins, answer.begins);
    GPUTEXT_TRY(budget.take(begins.back() * kBytesOfNeighbor, "the neighbors"));
    try {
        items.resize(begins.back());
        distances.resize(begins.back());
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    copy_bytes(items, answer.items);
    copy_bytes(distances, answer.distances);
    return {};
}

Status NeighborLists::download(std::uint32_t queries, MemoryBudget& budget,
                                std::vector<std::uint64_t>& begins,
                                std::vector<std::uint32_t>& items, std::vector<double>& distances) {
    begins.assign(std::size_t{queries} + 1, 0);
    items.clear();
    distances.clear();
    if (queries == 0) return {};
    if (queries <= kMostSmall &&
        SmallAnswer::bytes(queries, std::size_t{queries} * shape_.k) <= PinnedBuffer::bytes)
        return download_small(queries, budget, begins, items, distances);
    DeviceBuffer<std::uint64_t> device_begins;
    GPUTEXT_TRY(device_begins.allocate(std::size_t{queries} + 1, stream_));
    GPUTEXT_TRY(cuda_status(
        cudaMemsetAsync(device_begins.data(), 0, sizeof(std::uint64_t), stream_), "clearing"));
    GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
        const auto sizes = thrust::make_transform_iterator(
            static_cast<const std::uint32_t*>(kept_.data()), Widened());
        return cub::DeviceScan::InclusiveSum(space, bytes, sizes, device_begins.data() + 1,
                                             static_cast<int>(queries), stream_);
    }));
    GPUTEXT_TRY(gpu::download(device_begins.data(), begins.data(), begins.size(), stream_,
                              "finding neighbors"));
    const std::size_t total = begins.back();
    GPUTEXT_TRY(budget.take(total * kBytesOfNeighbor, "the neighbors"));
    try {
        resize_pages(items, total);
        resize_pages(distances, total);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    if (total == 0) return {};
    DeviceBuffer<std::uint32_t> device_items;
    DeviceBuffer<double> device_distances;
    GPUTEXT_TRY(device_items.allocate(total, stream_));
    GPUTEXT_TRY(device_distances.allocate(total, stream_));
    gather_kept<<<queries, 128, 0, stream_>>>(view(), device_begins.data(), device_items.data(),
                                              device_distances.data());
    GPUTEXT_TRY(launched("gathering neighbors"));
    GPUTEXT_TRY(gpu::download(device_items.data(), items.data(), total, stream_,
                              "copying neighbors from the device"));
    return gpu::download(device_distances.data(), distances.data(), total, stream_,
                         "copying neighbors from the device");
}

Status append_kept(NeighborLists& lists, std::uint32_t queries, MemoryBudget& budget,
                   Neighbors& answer) {
    try {
        std::vector<std::uint64_t> begins;
        std::vector<std::uint32_t> items;
        std::vector<double> distances;
        GPUTEXT_TRY(lists.download(queries, budget, begins, items, distances));
        if (answer.begins.size() == 1) {  // there are no earlier queries
            answer.begins = std::move(begins);
            answer.items = std::move(items);
            answer.distances = std::move(distances);
            return {};
        }
        const std::uint64_t before = answer.items.size();
        answer.items.insert(answer.items.end(), items.begin(), items.end());
        answer.distances.insert(answer.distances.end(), distances.begin(), distances.end());
        for (std::size_t q = 1; q < begins.size(); ++q) answer.begins.push_back(before + begins[q]);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    return {};
}

Status DownloadedLists::take(NeighborLists& lists, std::uint32_t queries, MemoryBudget& budget) {
    try {
        Piece& piece = pieces_.emplace_back();
        GPUTEXT_TRY(lists.download(queries, budget, piece.begins, piece.items, piece.distances));
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    if (pieces_.back().items.empty()) pieces_.pop_back();
    return lists.forget_kept(queries);
}

Status DownloadedLists::append_to(Neighbors& answer, std::size_t queries, MemoryBudget& budget,
                                  Execution& execution) {
    try {
        using Neighbor = std::pair<double, std::uint32_t>;
        std::size_t bytes = 0;
        for (const Piece& piece : pieces_) bytes += piece.items.size() * sizeof(Neighbor);
        GPUTEXT_TRY(budget.take(bytes, "the neighbors"));
        std::vector<std::vector<Neighbor>> sorted(queries);
        GPUTEXT_TRY(execution.parallel_for(queries, [&](std::size_t q, unsigned) {
            for (const Piece& piece : pieces_)
                for (auto i = piece.begins[q]; i < piece.begins[q + 1]; ++i)
                    sorted[q].emplace_back(piece.distances[i], piece.items[i]);
            if (pieces_.size() > 1) std::sort(sorted[q].begin(), sorted[q].end());
            return Status();
        }));
        pieces_.clear();
        for (const auto& list : sorted) {
            for (const auto& [distance, item] : list) {
                answer.items.push_back(item);
                answer.distances.push_back(distance);
            }
            answer.begins.push_back(answer.items.size());
        }
        budget.give_back(bytes);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    return {};
}

}  // namespace gputext::gpu
