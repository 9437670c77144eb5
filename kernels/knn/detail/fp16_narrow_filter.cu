#include <algorithm>
#include <type_traits>

#include "kernels/base/early_launch.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/knn/detail/fp16_product.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kWarps = 4;
constexpr unsigned kThreads = 32 * kWarps;
constexpr unsigned kTiles = 4;  // of 16 queries, of a warp
constexpr unsigned kWarpRows = 16 * kTiles;
constexpr unsigned kBlockRows = kWarps * kWarpRows;
constexpr unsigned kStage = 64;  // items in shared memory at a time
constexpr unsigned kFound = 768;
constexpr std::uint32_t kLeastOfGroups = 48;  // padded dimensions: warp groups are slower below
static_assert(kBlockRows == kGroupQueries);

/// What becomes of scores: see Fp16FilterJob.
enum class Output { lists, largest, marks };

/// Rows of items. Each is 16 bytes longer than its elements, so that rows begin in different banks.
template <unsigned Steps, Output To>
struct Shared {
    static constexpr unsigned pitch = 16 * Steps + 8;
    struct Nothing {};
    __half items[2][kStage][pitch];
    float starts[2][kStage];
    std::conditional_t<To == Output::lists, FoundMemory<kFound, kTiles>, Nothing> found[kWarps];
};

template <unsigned Steps, Output To>
__device__ void fetch_stage(const Fp16FilterJob& job, std::uint32_t first,
                            Shared<Steps, To>& shared, unsigned stage) {
    constexpr unsigned kVectors = 2 * Steps;  // of a row
    const std::uint32_t left = first < job.end ? min(job.end - first, kStage) * kVectors : 0;
    const auto* const rows = reinterpret_cast<const uint4*>(job.items.rows) +
                             std::size_t{first - job.first_item} * kVectors;
#pragma unroll
    for (unsigned v = 0; v < kStage * kVectors / kThreads; ++v) {
        const unsigned at = v * kThreads + threadIdx.x;
        copy_vector(&shared.items[stage][at / kVectors][8 * (at % kVectors)], rows + at, at < left);
    }
    end_of_copies();
}

/// The start of the calling thread's item of a stage.
__device__ float fetch_start(const Fp16FilterJob& job, std::uint32_t first, float2 group) {
    const std::uint32_t item = first + threadIdx.x;
    if (threadIdx.x >= kStage || item >= job.end) return -INFINITY;
    return start_of_item(job.items.bounds[item - job.first_item], group);
}

/// Eight items' halves, as the product wants them.
template <unsigned Steps, Output To>
__device__ void load_items(const Shared<Steps, To>& shared, unsigned stage, unsigned eight,
                           std::uint32_t (&items)[Steps][2]) {
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t row = shared_address(&shared.items[stage][eight + lane % 8][lane / 8 * 8]);
#pragma unroll
    for (unsigned step = 0; step + 1 < Steps; step += 2) {
        std::uint32_t two[4];
        load_matrices(two, row + 32 * step);
        items[step][0] = two[0];
        items[step][1] = two[1];
        items[step + 1][0] = two[2];
        items[step + 1][1] = two[3];
    }
    if constexpr (Steps % 2 == 1) {
        const std::uint32_t last =
            shared_address(&shared.items[stage][eight + lane % 8][lane / 8 % 2 * 8]);
        load_matrices(items[Steps - 1], last + 32 * (Steps - 1));
    }
}

/// How many items a block takes at a time: those whose scores have one place to go.
template <Output To>
__host__ __device__ std::uint32_t items_at_a_time(const Fp16FilterJob& job) {
    switch (To) {
        case Output::largest:
            return 4 * job.group_items;
        case Output::marks:
            return 2 * kStage;
        default:
            return kStage;
    }
}

/// What a warp does with its scores.
template <Output To>
class Sink;

template <>
class Sink<Output::lists> {
public:
    using Memory = FoundMemory<kFound, kTiles>;

    __device__ Sink(Memory& memory, const Fp16FilterJob& job, std::uint32_t first_row,
                    std::uint32_t first_item)
        : finder_(memory, job, first_row, first_item), begin_(first_item) {}
    __device__ void add(const float (*sums)[4], std::uint32_t item) {
        finder_.add(sums, 0, item - begin_);
    }
    __device__ void end_stage(std::uint32_t) {}
    __device__ void end() { finder_.flush(); }

private:
    Finder<kFound, kTiles> finder_;
    std::uint32_t begin_;
};

template <>
class Sink<Output::largest> {
public:
    template <class Nothing>
    __device__ Sink(Nothing&, const Fp16FilterJob& job, std::uint32_t first_row, std::uint32_t)
        : job_(job), first_row_(first_row) {}
    __device__ void add(const float (*sums)[4], std::uint32_t) { largest_.add(sums); }
    __device__ void end_stage(std::uint32_t first) {
        const std::uint32_t passed = first + kStage - job_.begin;
        const std::uint32_t four_groups = items_at_a_time<Output::largest>(job_);
        if (passed % four_groups == 0)
            largest_.store(job_, first_row_, (passed / four_groups - 1) * 4 + threadIdx.x % 4);
    }
    __device__ void end() {}

private:
    const Fp16FilterJob& job_;
    std::uint32_t first_row_;
    Largest<kTiles> largest_;
};

template <>
class Sink<Output::marks> {
public:
    template <class Nothing>
    __device__ Sink(Nothing&, const Fp16FilterJob& job, std::uint32_t first_row, std::uint32_t)
        : job_(job), first_row_(first_row) {}
    __device__ void add(const float (*sums)[4], std::uint32_t) { marks_.add(sums); }
    __device__ void end_stage(std::uint32_t first) {
        const std::uint32_t stage = (first - job_.begin) / kStage;
        if (stage % 2 == 0) return;
        marks_.store(job_, MarkedItems::words_of(job_.end - job_.begin), first_row_, stage / 2 * 4);
    }
    __device__ void end() {}

private:
    const Fp16FilterJob& job_;
    std::uint32_t first_row_;
    Marks<kTiles> marks_;
};

/// Each warp multiplies 64 queries, held in registers, with the block's items.
template <unsigned Steps, Output To>
__global__ __launch_bounds__(kThreads) void filter_narrow(const Fp16FilterJob job,
                                                          std::uint32_t items_per_block) {
    extern __shared__ uint4 memory[];
    let_next_begin();
    wait_for_previous();
    auto& shared = *reinterpret_cast<Shared<Steps, To>*>(memory);
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    const std::uint32_t warp_row = blockIdx.y * kBlockRows + warp * kWarpRows;
    const std::uint32_t begin = job.begin + blockIdx.x * items_per_block;
    // Whole ones: behind the last item are scores of -infinity.
    const std::uint32_t at_a_time = items_at_a_time<To>(job);
    const std::uint32_t end =
        min(begin + items_per_block,
            job.begin + (job.end - job.begin + at_a_time - 1) / at_a_time * at_a_time);
    const float2 group = job.queries.groups[blockIdx.y];
    Sink<To> sink(shared.found[warp], job, warp_row, begin);

    fetch_stage(job, begin, shared, 0);
    const float first_start = fetch_start(job, begin, group);
    std::uint32_t rows[Steps][kTiles][4];
    [[maybe_unused]] float gates[kTiles][2];
#pragma unroll
    for (unsigned half = 0; half < 2 * kTiles; ++half) {
        const std::uint32_t row = warp_row + 8 * half + lane / 4;
        const bool is = row < job.rows;
        if constexpr (To != Output::largest)
            gates[half / 2][half % 2] = is ? job.gates[row] : INFINITY;
        const auto* words = reinterpret_cast<const std::uint32_t*>(
                                job.queries.rows + std::size_t{is ? row : 0} * 16 * Steps) +
                            lane % 4;
#pragma unroll
        for (unsigned step = 0; step < Steps; ++step) {
            rows[step][half / 2][half % 2] = is ? words[8 * step] : 0;
            rows[step][half / 2][2 + half % 2] = is ? words[8 * step + 4] : 0;
        }
    }
    __syncthreads();
    if (threadIdx.x < kStage) shared.starts[0][threadIdx.x] = first_start;

    unsigned stage = 0;
    for (std::uint32_t first = begin; first < end; first += kStage, stage ^= 1) {
        wait_for_copies<0>();
        __syncthreads();
        const bool more = first + kStage < end;
        float next_start = 0;
        if (more) {
            fetch_stage(job, first + kStage, shared, stage ^ 1);
            next_start = fetch_start(job, first + kStage, group);
        }
        for (unsigned eight = 0; eight < kStage; eight += 8) {
            std::uint32_t items[Steps][2];
            load_items(shared, stage, eight, items);
            const float2 start =
                *reinterpret_cast<const float2*>(&shared.starts[stage][eight + lane % 4 * 2]);
            float sums[kTiles][4];
            if constexpr (To == Output::largest) {
                const float starts[4] = {start.x, start.y, start.x, start.y};
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t)
                    multiply_halves(sums[t], rows[0][t], items[0][0], items[0][1], starts);
            } else {
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t) {
                    sums[t][0] = start.x - gates[t][0];
                    sums[t][1] = start.y - gates[t][0];
                    sums[t][2] = start.x - gates[t][1];
                    sums[t][3] = start.y - gates[t][1];
                    multiply_halves(sums[t], rows[0][t], items[0][0], items[0][1]);
                }
            }
#pragma unroll
            for (unsigned step = 1; step < Steps; ++step)
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t)
                    multiply_halves(sums[t], rows[step][t], items[step][0], items[step][1]);

            sink.add(sums, first + eight);
        }
        sink.end_stage(first);
        if (more && threadIdx.x < kStage) shared.starts[stage ^ 1][threadIdx.x] = next_start;
    }
    sink.end();
}

/// So many that the blocks fill the device a few times over; whole times `at_a_time`.
std::uint32_t items_of_block(const Fp16FilterDevice& device, std::uint32_t items,
                             std::uint32_t groups, std::uint32_t at_a_time) {
    constexpr std::uint32_t kBlocksPerProcessor = 12;
    constexpr std::uint32_t kLeast = 256;
    constexpr std::uint32_t kMost = 1u << 20;
    const std::uint32_t across =
        std::max(1u, static_cast<std::uint32_t>(device.processors) * kBlocksPerProcessor / groups);
    const std::uint32_t each = std::clamp(blocks_for(items, across), kLeast, kMost);
    return blocks_for(each, at_a_time) * at_a_time;
}

template <unsigned Steps, Output To>
Status run(const Fp16FilterDevice& device, const Fp16FilterJob& job, cudaStream_t stream) {
    const std::uint32_t items = job.end - job.begin;
    const std::uint32_t groups = blocks_for(job.rows, kGroupQueries);
    constexpr auto kernel = filter_narrow<Steps, To>;
    constexpr int bytes = sizeof(Shared<Steps, To>);
    GPUTEXT_TRY(cuda_status(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "asking for shared memory"));
    const std::uint32_t each = items_of_block(device, items, groups, items_at_a_time<To>(job));
    return launch_early("filtering neighbors", kernel, dim3(blocks_for(items, each), groups),
                        kThreads, bytes, stream, job, each);
}

template <unsigned Steps>
Status run(const Fp16FilterDevice& device, const Fp16FilterJob& job, cudaStream_t stream) {
    if (job.largest != nullptr) return run<Steps, Output::largest>(device, job, stream);
    if (job.marks != nullptr) return run<Steps, Output::marks>(device, job, stream);
    return run<Steps, Output::lists>(device, job, stream);
}

}  // namespace

Status run_narrow_filter(const Fp16FilterDevice& device, const Fp16FilterJob& job,
                         std::uint32_t padded, cudaStream_t stream) {
    if (device.capability == 90 && padded >= kLeastOfGroups &&
        (job.largest != nullptr || job.marks != nullptr))
        return run_hopper_narrow_filter(device, job, padded, stream);
    switch (padded) {
        case 16:
            return run<1>(device, job, stream);
        case 32:
            return run<2>(device, job, stream);
        case 48:
            return run<3>(device, job, stream);
        default:
            return run<4>(device, job, stream);
    }
}

}  // namespace gputext::gpu
