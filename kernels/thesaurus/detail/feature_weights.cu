#include "kernels/thesaurus/detail/feature_weights.hpp"

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "cpp/base/natural_functions.hpp"
#include "kernels/base/binary_search.cuh"
#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::uint64_t kSmallBuffers = std::uint64_t{1} << 20;

struct Sums {
    unsigned long long* of_rows;     // by word and relation
    unsigned long long* of_columns;  // by relation and neighbor
    unsigned long long* of_relations;
};

/// A warp for each row and relation.
__global__ __launch_bounds__(kThreads) void add_rows(CountRows counts, std::uint32_t relations,
                                                     Sums sums) {
    const std::uint64_t warp = (std::uint64_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
    const std::uint32_t row = static_cast<std::uint32_t>(warp / relations);
    const std::uint32_t relation = static_cast<std::uint32_t>(warp % relations);
    if (row >= counts.shape.words) return;
    const auto first_of = [&](std::uint64_t column) {
        return partition_point(counts.begins[row], counts.begins[row + 1],
                               [&](std::uint64_t at) { return counts.columns[at] < column; });
    };
    const std::uint64_t words = counts.shape.words;
    const std::uint64_t begin = first_of(relation * words), end = first_of((relation + 1) * words);
    unsigned long long sum = 0;
    for (std::uint64_t at = begin + threadIdx.x % 32; at < end; at += 32) sum += counts.counts[at];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums.of_rows[warp] = sum;
}

/// A thread for each column, of symmetric counts.
__global__ void mirror_columns(std::uint32_t words, std::uint32_t relations, Sums sums) {
    const std::uint64_t column = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (column >= std::uint64_t{words} * relations) return;
    const std::uint64_t relation = column / words, neighbor = column % words;
    sums.of_columns[column] = sums.of_rows[neighbor * relations + (relations - 1 - relation)];
}

/// A thread for each count, where counts were given.
__global__ void add_columns(CountRows counts, Sums sums) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (at >= counts.stored) return;
    atomicAdd(&sums.of_columns[counts.columns[at]],
              static_cast<unsigned long long>(counts.counts[at]));
}

/// A block for each relation.
__global__ __launch_bounds__(1024) void add_relations(std::uint32_t words, Sums sums) {
    __shared__ unsigned long long total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    unsigned long long sum = 0;
    for (std::uint32_t i = threadIdx.x; i < words; i += blockDim.x)
        sum += sums.of_columns[std::uint64_t{blockIdx.x} * words + i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, sum);
    __syncthreads();
    if (threadIdx.x == 0) sums.of_relations[blockIdx.x] = total;
}

struct Weighing {
    CountRows counts;
    Sums sums;
    std::uint32_t relations;
    WordWeight weight;
    double discount;
    std::uint64_t neighbors;  // of which there are features
};

__device__ std::uint16_t stored_weight(double units) {
    const double raised = __dadd_rn(units, 0.5);
    if (!(raised >= 1)) return 0;
    return static_cast<std::uint16_t>(static_cast<unsigned>(raised < 65535 ? raised : 65535));
}

__device__ std::uint16_t weigh(const Weighing& job, std::uint64_t at) {
    const std::uint32_t words = job.counts.shape.words;
    const std::uint32_t column = job.counts.columns[at];
    const std::uint32_t relation = column / words;
    if (column - relation * words >= job.neighbors) return 0;
    const double joint = __dadd_rn(static_cast<double>(job.counts.counts[at]), -job.discount);
    if (job.weight == WordWeight::count) return stored_weight(joint);
    if (!(joint > 0)) return 0;
    const std::uint64_t row = part_with(job.counts.begins, words, at);
    unsigned long long of_word = 0, total = 0;
    if (job.weight == WordWeight::lin) {
        of_word = job.sums.of_rows[row * job.relations + relation];
        total = job.sums.of_relations[relation];
    } else {
        for (std::uint32_t r = 0; r < job.relations; ++r) {
            of_word += job.sums.of_rows[row * job.relations + r];
            total += job.sums.of_relations[r];
        }
    }
    const double product = __dmul_rn(joint, static_cast<double>(total));
    const double by_chance =
        __dmul_rn(static_cast<double>(of_word), static_cast<double>(job.sums.of_columns[column]));
    const double ratio = __ddiv_rn(product, by_chance);
    if (!(ratio > 1)) return 0;
    return stored_weight(__dmul_rn(natural_log(ratio), 2048));
}

/// A thread for each count.
__global__ __launch_bounds__(kThreads) void weigh_all(Weighing job, std::uint16_t* weights) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at < job.counts.stored) weights[at] = weigh(job, at);
}

/// A block for each row: how many of its weights are above 0.
__global__ __launch_bounds__(kThreads) void count_added(CountRows counts,
                                                        const std::uint16_t* weights,
                                                        std::uint64_t* kept) {
    const std::uint64_t begin = counts.begins[blockIdx.x], end = counts.begins[blockIdx.x + 1];
    unsigned sum = 0;
    for (std::uint64_t base = begin; base < end; base += kThreads) {
        const std::uint64_t at = base + threadIdx.x;
        sum += __syncthreads_count(at < end && weights[at] != 0);
    }
    if (threadIdx.x == 0) kept[blockIdx.x] = sum;
}

struct AboveZero {
    __device__ bool operator()(std::uint16_t weight) const { return weight != 0; }
};

}  // namespace

std::uint64_t word_weight_bytes(const CooccurrenceShape& shape, std::uint64_t stored) {
    // Weights, and those that are kept with their columns; sums.
    return stored * (2 + 6 + 1) + 2 * shape.columns() * sizeof(std::uint64_t) +
           (std::uint64_t{shape.words} + 1) * sizeof(std::uint64_t) + kSmallBuffers;
}

Status weigh_features(const WeightParameters& parameters, const CountRows& counts,
                      const DeviceWork& work, Execution& execution, FeatureRowsMemory& features) {
    GPUTEXT_TRY(check_weights(parameters));
    const std::uint64_t words = counts.shape.words, columns = counts.shape.columns();
    const std::uint32_t relations = counts.shape.relations();
    const std::uint64_t needed = word_weight_bytes(counts.shape, counts.stored);
    if (needed > work.bytes)
        return too_little_memory("weighing features takes", needed, work.bytes);
    execution.begin_phase("weighing features", 1);
    cudaStream_t stream = work.stream;
    DeviceBuffer<unsigned long long> of_rows, of_columns, of_relations;
    DeviceBuffer<std::uint16_t> weights;
    DeviceBuffer<std::uint64_t> number;
    DeviceBuffer<std::uint8_t> scratch;
    GPUTEXT_TRY(features.begins.allocate(words + 1, stream));
    GPUTEXT_TRY(cuda_status(
        cudaMemsetAsync(features.begins.data(), 0, (words + 1) * sizeof(std::uint64_t), stream),
        "clearing rows"));
    features.view = {counts.shape, 0, features.begins.data(), nullptr, nullptr};
    if (counts.stored == 0) return {};
    GPUTEXT_TRY(of_rows.allocate(columns, stream));
    GPUTEXT_TRY(of_columns.allocate(columns, stream));
    GPUTEXT_TRY(of_relations.allocate(relations, stream));
    GPUTEXT_TRY(weights.allocate(counts.stored, stream));
    const Sums sums{of_rows.data(), of_columns.data(), of_relations.data()};
    if (parameters.weight != WordWeight::count) {
        add_rows<<<blocks_for(columns, kThreads / 32), kThreads, 0, stream>>>(counts, relations,
                                                                              sums);
        if (counts.symmetric) {
            mirror_columns<<<blocks_for(columns, kThreads), kThreads, 0, stream>>>(
                counts.shape.words, relations, sums);
        } else {
            GPUTEXT_TRY(cuda_status(
                cudaMemsetAsync(of_columns.data(), 0, columns * sizeof(std::uint64_t), stream),
                "clearing sums"));
            add_columns<<<blocks_for(counts.stored, kThreads), kThreads, 0, stream>>>(counts, sums);
        }
        add_relations<<<relations, 1024, 0, stream>>>(counts.shape.words, sums);
        GPUTEXT_TRY(launched("adding up counts"));
    }
    Weighing job{counts,
                 sums,
                 relations,
                 parameters.weight,
                 parameters.discount,
                 parameters.features == 0
                     ? UINT64_MAX
                     : parameters.features / relations + (parameters.features % relations != 0)};
    weigh_all<<<blocks_for(counts.stored, kThreads), kThreads, 0, stream>>>(job, weights.data());
    count_added<<<counts.shape.words, kThreads, 0, stream>>>(counts, weights.data(),
                                                             features.begins.data());
    GPUTEXT_TRY(launched("weighing features"));
    GPUTEXT_TRY(with_scratch(scratch, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(space, bytes, features.begins.data(),
                                             features.begins.data(),
                                             static_cast<std::int64_t>(words + 1), stream);
    }));
    std::uint64_t stored = 0;
    GPUTEXT_TRY(
        download_value(features.begins.data() + words, stored, stream, "weighing features"));
    GPUTEXT_TRY(execution.checkpoint());
    GPUTEXT_TRY(features.columns.allocate(stored, stream));
    GPUTEXT_TRY(features.weights.allocate(stored, stream));
    GPUTEXT_TRY(number.allocate(1, stream));
    const auto items = static_cast<std::int64_t>(counts.stored);
    GPUTEXT_TRY(with_scratch(scratch, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceSelect::FlaggedIf(space, bytes, counts.columns, weights.data(),
                                            features.columns.data(), number.data(), items,
                                            AboveZero{}, stream);
    }));
    GPUTEXT_TRY(with_scratch(scratch, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceSelect::If(space, bytes, weights.data(), features.weights.data(),
                                     number.data(), items, AboveZero{}, stream);
    }));
    features.view = {counts.shape, stored, features.begins.data(), features.columns.data(),
                     features.weights.data()};
    return {};
}

}  // namespace gputext::gpu
