#include "kernels/knn/detail/fp16_filter.hpp"

#include "kernels/base/early_launch.cuh"
#include "kernels/base/warp.cuh"
#include "kernels/knn/detail/fp16_product.cuh"
#include "kernels/knn/kth_score.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;

/// At most the score of items as far as the limit.
__device__ float gate_of_limit(const Fp16Space& space, const Fp16QueryBound& query, double limit) {
    if (!isfinite(query.norm)) return -INFINITY;
    if (space.metric == Metric::cosine && query.norm == 0) return INFINITY;  // it has no neighbors
    const double norm_square = query.norm * query.norm;
    double t = 0;
    switch (space.metric) {
        case Metric::euclidean: {
            const double scaled = limit * query.scale;
            t = (query.least_norm * query.least_norm * (1 - 0x1p-48) -
                 scaled * scaled * (1 + 0x1p-48)) /
                2;
            break;
        }
        case Metric::cosine:
            t = 1 - limit;
            break;
        default:
            t = -limit * query.scale;
    }
    t -= fabs(t) * (0x1p-48 + space.sum_error) + 2 * space.double_error * norm_square + 0x1p-100;
    return isnan(t) ? -INFINITY : __double2float_rd(t);
}

/// How much more than its t a score may be: twice r with the largest bounds of any item.
__device__ float width_of_scores(const GateJob& job, std::uint32_t row, float gate) {
    const float2 group = job.queries.groups[row / kGroupQueries];
    const double error = job.space.sum_error + 4 * job.space.double_error;
    const double per_norm = job.largest[0];
    const double norm = job.largest[1];
    const double query_norm = group.x;
    const double r = query_norm * per_norm + group.y * norm +
                     error * (norm * norm + query_norm * query_norm + query_norm * norm);
    return __double2float_ru(2.001 * r + fabs(static_cast<double>(gate)) * 0x1p-20 + 0x1p-90);
}

__global__ void gates_of_limits(GateJob job) {
    let_next_begin();
    wait_for_previous();
    const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= job.rows) return;
    const float gate = gate_of_limit(job.space, job.queries.bounds[row], job.limits[row]);
    job.gates[row] = gate;
    if (job.widths != nullptr) job.widths[row] = width_of_scores(job, row, gate);
}

/// Below the scores of all items that have a bound.
__device__ float lowest_gate(const GateJob& job, std::uint32_t row) {
    const double norm = job.queries.bounds[row].norm;
    const double largest = job.largest[1];
    if (!isfinite(norm)) return -INFINITY;
    return __double2float_rd(-1.01 * (largest * norm + largest * largest) - 0x1p-80);
}

__global__ void gates_below_all(GateJob job) {
    const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < job.rows) job.gates[row] = lowest_gate(job, row);
}

__global__ void gates_of_merged(GateJob job, QuerySelection selection) {
    const std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= selection.count) return;
    const std::uint32_t row = selection[at];
    job.gates[row] = gate_of_limit(job.space, job.queries.bounds[row], job.limits[row]);
}

__global__ void keep_nothing_without_limit(ListsView lists, std::uint32_t queries) {
    const std::uint32_t query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query < queries && isinf(lists.limits[query])) lists.kept[query] = 0;
}

/// A block for each query.
__global__ __launch_bounds__(kThreads) void settle_lists(GateJob job, ListsView lists,
                                                         QuerySelection selection,
                                                         std::uint32_t most,
                                                         std::uint32_t* crowded) {
    extern __shared__ std::uint32_t memory[];
    __shared__ unsigned left;
    std::uint32_t* const scores = memory;
    std::uint32_t* const items = memory + lists.capacity;
    const std::uint32_t query = selection[blockIdx.x];
    const std::uint32_t count = lists.counts[query];
    if (count > lists.capacity || count == lists.kept[query]) return;
    const auto list_crowded = [&] {
        if (threadIdx.x == 0) crowded[1 + atomicAdd(&crowded[0], 1u)] = query;
    };
    if (!isinf(lists.limits[query])) return list_crowded();
    const std::size_t begin = std::size_t{query} * lists.capacity;
    for (unsigned i = threadIdx.x; i < count; i += kThreads) {
        scores[i] = ordered_float(lists.scores[begin + i]);
        items[i] = lists.items[begin + i];
    }
    if (threadIdx.x == 0) left = 0;
    __syncthreads();
    const unsigned kth = count > lists.k ? about_kth_score<kThreads>(scores, count, lists.k) : 0;
    float least = -INFINITY;
    if (kth != 0) {
        const float score = float_of_ordered(kth);
        // Scores were found by gates as low as the lowest one, which take a part of their digits.
        const float width =
            width_of_scores(job, query, score) +
            fabsf(lowest_gate(job, query)) * static_cast<float>(job.space.padded) * 0x1p-24f;
        least = __fsub_rd(score, width);
        if (threadIdx.x == 0) {
            job.widths[query] = width;
            if (least > job.gates[query]) job.gates[query] = least;
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += kThreads) {
        const float score = float_of_ordered(scores[i]);
        if (score < least) continue;
        const unsigned at = atomicAdd(&left, 1u);
        lists.items[begin + at] = items[i];
        lists.scores[begin + at] = score;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        lists.counts[query] = left;
        lists.kept[query] = left <= most ? left : 0;
    }
    if (left > most) list_crowded();
}

/// Between two scores: in the middle of values at first, which are close together, and later in the
/// middle of their bits, so that the end is near whatever they are.
__device__ unsigned middle_score(unsigned low, unsigned high, unsigned round) {
    constexpr unsigned kByValue = 12;
    const unsigned value =
        ordered_float(0.5f * float_of_ordered(low) + 0.5f * float_of_ordered(high));
    return round < kByValue && value > low && value < high ? value : low + (high - low) / 2;
}

/// A warp for each query finds by bisection a score that `rank` groups or a few more reach.
/// `All`: groups of all items.
template <unsigned Most, bool All>
__global__ void gates_of_groups(GateJob job, const float* largest, std::uint32_t groups,
                                std::uint32_t rank) {
    let_next_begin();
    wait_for_previous();
    constexpr unsigned kEach = Most / 32;
    const std::uint32_t row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= job.rows) return;
    unsigned values[kEach];
    unsigned low = UINT32_MAX;
    unsigned high = 0;
#pragma unroll
    for (unsigned i = 0; i < kEach; ++i) {
        const unsigned group = 32 * i + threadIdx.x % 32;
        values[i] = 0;
        if (group >= groups) continue;
        values[i] = ordered_float(largest[std::size_t{row} * Most + group]);
        low = min(low, values[i]);
        high = max(high, values[i]);
    }
    low = warp_min(low);
    high = warp_max(high);
    for (unsigned round = 0; high - low > 1; ++round) {
        const unsigned middle = middle_score(low, high, round);
        unsigned reached = 0;
#pragma unroll
        for (unsigned i = 0; i < kEach; ++i) reached += values[i] >= middle;
        reached = warp_sum(reached);
        if (reached >= rank)
            low = middle;
        else
            high = middle;
        if (reached >= rank && reached <= rank + rank / (All ? 32 : 16)) break;
    }
    if (threadIdx.x % 32 != 0) return;
    const float proven = gate_of_limit(job.space, job.queries.bounds[row], job.limits[row]);
    float gate = float_of_ordered(low);
    const float width = width_of_scores(job, row, gate);
    if constexpr (All) gate = __fsub_rd(gate, width);
    if (!(fabsf(gate) < INFINITY) || gate < proven) gate = proven;
    job.gates[row] = gate;
    job.widths[row] = width;
}

}  // namespace

Status Fp16FilterDevice::look() {
    int device = 0;
    int major = 0;
    int minor = 0;
    GPUTEXT_TRY(cuda_status(cudaGetDevice(&device), "asking for the device"));
    const auto ask = [device](int& value, cudaDeviceAttr which) {
        return cuda_status(cudaDeviceGetAttribute(&value, which, device),
                           "asking for the device's properties");
    };
    GPUTEXT_TRY(ask(major, cudaDevAttrComputeCapabilityMajor));
    GPUTEXT_TRY(ask(minor, cudaDevAttrComputeCapabilityMinor));
    GPUTEXT_TRY(ask(processors, cudaDevAttrMultiProcessorCount));
    GPUTEXT_TRY(ask(shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin));
    capability = 10 * major + minor;
    return {};
}

Status run_fp16_filter(const Fp16FilterDevice& device, const Fp16FilterJob& job,
                       std::uint32_t padded, cudaStream_t stream) {
    if (job.rows == 0 || (job.parts.count == 0 && job.begin == job.end)) return {};
    if (padded <= 64) return run_narrow_filter(device, job, padded, stream);
    return device.capability == 90 ? run_hopper_filter(device, job, padded, stream)
                                   : run_wide_filter(device, job, padded, stream);
}

Status open_gates(const GateJob& job, cudaStream_t stream) {
    gates_below_all<<<blocks_for(job.rows, kThreads), kThreads, 0, stream>>>(job);
    return launched("setting gates");
}

Status settle(const GateJob& job, const ListsView& lists, const QuerySelection& selection,
              std::uint32_t most, std::uint32_t* crowded, cudaStream_t stream) {
    const std::size_t bytes = 2 * lists.capacity * sizeof(std::uint32_t);
    settle_lists<<<selection.count, kThreads, bytes, stream>>>(job, lists, selection, most,
                                                               crowded);
    return launched("settling lists");
}

Status raise_gates(const GateJob& job, const QuerySelection& selection, cudaStream_t stream) {
    gates_of_merged<<<blocks_for(selection.count, kThreads), kThreads, 0, stream>>>(job, selection);
    return launched("setting gates");
}

Status unsettle(const ListsView& lists, std::uint32_t queries, cudaStream_t stream) {
    keep_nothing_without_limit<<<blocks_for(queries, kThreads), kThreads, 0, stream>>>(lists,
                                                                                       queries);
    return launched("settling lists");
}

Status set_gates(const GateJob& job, cudaStream_t stream) {
    return launch_early("setting gates", gates_of_limits, blocks_for(job.rows, kThreads), kThreads,
                        0, stream, job);
}

Status guess_gates(const GateJob& job, const float* largest, std::uint32_t rank,
                   cudaStream_t stream) {
    return launch_early("guessing gates", gates_of_groups<kSampleGroups, false>,
                        blocks_for(std::size_t{job.rows} * 32, kThreads), kThreads, 0, stream, job,
                        largest, kSampleGroups, rank);
}

Status find_gates(const GateJob& job, const float* largest, std::uint32_t groups,
                  std::uint32_t rank, cudaStream_t stream) {
    return launch_early("finding gates", gates_of_groups<kMostGroups, true>,
                        blocks_for(std::size_t{job.rows} * 32, kThreads), kThreads, 0, stream, job,
                        largest, groups, rank);
}

}  // namespace gputext::gpu
