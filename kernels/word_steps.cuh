// kernels/word_steps.cuh - the kernel of kernels/word_steps.hpp, for a model and a number of
// elements of a lane

#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/lane_rows.cuh"
#include "kernels/launch.hpp"
#include "kernels/logistic.cuh"
#include "kernels/word_steps.hpp"
#include "kernels/word_windows.cuh"

namespace gputext::gpu {

/// Rows that a block has met and keeps in shared memory; others are spilled.
constexpr unsigned kListed = 2048;

/// Outputs whose rows a warp has in registers at a time, rows of the context that are multiplied
/// with them, rows that take their sums at a time, and the warps of a block, of which each
/// multiprocessor has one: what registers allow.
template <WordModel Model, unsigned Elements>
struct StepShape {
    static constexpr bool kSkipgram = Model == WordModel::skipgram;
    static constexpr unsigned kOutputs = Elements <= 10 ? 6 : Elements <= 16 ? 3 : 1;
    static constexpr unsigned kContexts =
        kSkipgram ? (Elements <= 7 ? 2 : 1) : (Elements <= 10 ? 4 : 2);
    static constexpr unsigned kApplied = Elements <= 4 ? 4 : Elements <= 10 ? 2 : 1;
    static constexpr unsigned kWarps = kSkipgram ? (Elements <= 4    ? 16
                                                    : Elements <= 7  ? 12
                                                    : Elements <= 10 ? 8
                                                                     : 8)
                                                 : (Elements <= 4    ? 24
                                                    : Elements <= 7  ? 16
                                                    : Elements <= 16 ? 12
                                                                     : 8);
};

/// The least power of two that is not less.
__host__ __device__ constexpr unsigned power_of_two(unsigned size) {
    return size <= 1 ? 1 : 2 * power_of_two((size + 1) / 2);
}

__device__ inline std::int32_t to_integer(float element) {
    constexpr float kMost = TrainerParameters::kMostStep;
    const float scaled = __fmul_rn(element, 1 << TrainerParameters::kFractionBits);
    return __float2int_rn(fminf(fmaxf(scaled, -kMost), kMost));
}

/// What a warp knows all the time.
struct WarpState {
    unsigned lane, warp;   // of the block
    std::uint32_t* space;  // of window_words()
    float* steps;          // of each context and output, where the outputs do not fit in registers
    std::uint32_t* list;   // the block's, of kListed
    unsigned* listed;
    unsigned parity;  // of the step
    float rate, damping;
    float loss = 0;  // of this lane
    unsigned long long windows = 0, pairs = 0;
};

template <WordModel Model, unsigned Elements>
class WindowStep {
    using Shape = StepShape<Model, Elements>;
    static constexpr unsigned kOutputs = Shape::kOutputs, kContexts = Shape::kContexts;
    static constexpr std::size_t kRow = 32 * stored_elements(Elements);

public:
    __device__ WindowStep(const StepJob& job, WarpState& state, const Window& window)
        : job_(job), state_(state), window_(window) {}

    __device__ void run() {
        const unsigned of_context = Model == WordModel::skipgram ? window_.output_count : 1;
        const unsigned of_output = Model == WordModel::skipgram ? window_.contexts : 1;
        // Asked for first, and looked at last.
        std::uint32_t row = 0;
        bool met = count(state_.lane, of_context, of_output, row);
        if constexpr (Model == WordModel::skipgram)
            skipgram();
        else
            cbow();
        list(met, row);
        const unsigned rows = window_.contexts + window_.output_count;
        for (unsigned first = 32; first < rows; first += 32) {
            met = count(first + state_.lane, of_context, of_output, row);
            list(met, row);
        }
        ++state_.windows;
        state_.pairs +=
            of_context * (Model == WordModel::skipgram ? of_output : window_.output_count);
    }

private:
    __device__ std::uint32_t output_row(unsigned q) const {
        return job_.words + window_.outputs[q];
    }
    __device__ const float* row_at(std::uint32_t row) const { return job_.rows + row * kRow; }

    /// Counts the steps of a row of the window; whether it was met for the first time.
    __device__ bool count(unsigned number, unsigned of_context, unsigned of_output,
                          std::uint32_t& row) const {
        if (number >= window_.contexts + window_.output_count) return false;
        const bool context = number < window_.contexts;
        row = context ? window_.context[number] : output_row(number - window_.contexts);
        return atomicAdd(job_.counts + row, context ? of_context : of_output) == 0;
    }

    /// Puts the rows of lanes that met them on the list.
    __device__ void list(bool met, std::uint32_t row) const {
        const unsigned all = __ballot_sync(~0u, met);
        if (all == 0) return;
        unsigned at = 0;
        if (state_.lane == 0) at = atomicAdd(state_.listed, __popc(all));
        at = __shfl_sync(~0u, at, 0) + __popc(all & ((1u << state_.lane) - 1));
        if (!met) return;
        if (at < kListed)
            state_.list[at] = row;
        else
            job_.spill[atomicAdd(job_.sync->spilled + state_.parity, 1)] = row;
    }

    /// Adds to the sums of a row.
    __device__ void add(std::uint32_t row, const std::int32_t (&by)[Elements]) const {
        std::int32_t* const sums =
            job_.sums + row * std::size_t{(job_.dimensions + 31) / 32 * 32} + state_.lane;
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k)
            if (k * 32 + state_.lane < job_.dimensions) atomicAdd(sums + k * 32, by[k]);
    }
    __device__ void add(std::uint32_t row, const float (&by)[Elements]) const {
        std::int32_t integers[Elements];
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k) integers[k] = to_integer(by[k]);
        add(row, integers);
    }

    __device__ void load_outputs(unsigned first, float (&y)[kOutputs][Elements]) const {
#pragma unroll
        for (unsigned q = 0; q < kOutputs; ++q) {
            if (first + q < window_.output_count) {
                load_row(row_at(output_row(first + q)), state_.lane, y[q]);
            } else {
#pragma unroll
                for (unsigned k = 0; k < Elements; ++k) y[q][k] = 0;
            }
        }
    }

    template <unsigned Rows>
    __device__ void load_contexts(unsigned first, float (&x)[Rows][Elements]) const {
#pragma unroll
        for (unsigned i = 0; i < Rows; ++i) {
            if (first + i < window_.contexts) {
                load_row(row_at(window_.context[first + i]), state_.lane, x[i]);
            } else {
#pragma unroll
                for (unsigned k = 0; k < Elements; ++k) x[i][k] = 0;
            }
        }
    }

    /// The step of each product, in lane number * (32 / the power of two) of the first rows *
    /// kOutputs lanes: those of x[i] and y[q] are number i * kOutputs + q, 0 beyond the window.
    template <unsigned Rows>
    __device__ float steps(const float (&x)[Rows][Elements], const float (&y)[kOutputs][Elements],
                           unsigned first_x, unsigned contexts, unsigned first_y) {
        constexpr unsigned kSize = power_of_two(Rows * kOutputs), kShare = 32 / kSize;
        float products[kSize];
#pragma unroll
        for (unsigned i = 0; i < Rows; ++i) {
#pragma unroll
            for (unsigned q = 0; q < kOutputs; ++q) {
                float sum = 0;
#pragma unroll
                for (unsigned k = 0; k < Elements; ++k) sum = __fmaf_rn(x[i][k], y[q][k], sum);
                products[i * kOutputs + q] = sum;
            }
        }
#pragma unroll
        for (unsigned i = Rows * kOutputs; i < kSize; ++i) products[i] = 0;
        add_across<kSize>(products, state_.lane);
        const unsigned number = state_.lane / kShare;
        const unsigned i = first_x + number / kOutputs, q = first_y + number % kOutputs;
        if (number >= Rows * kOutputs || i >= contexts || q >= window_.output_count) return 0;
        const float product = products[0];
        const float power = exponential_below(product);
        if (state_.lane % kShare == 0)
            state_.loss += fmaxf(q == 0 ? -product : product, 0.0f) + __logf(1.0f + power);
        return __fmul_rn(__fsub_rn(q == 0 ? 1.0f : 0.0f, logistic(product, power)), state_.rate);
    }

    __device__ void skipgram() {
        const bool at_once = window_.output_count <= kOutputs;
        for (unsigned first = 0; first < window_.output_count; first += kOutputs) {
            float y[kOutputs][Elements], y_sum[kOutputs][Elements] = {};
            load_outputs(first, y);
            for (unsigned i = 0; i < window_.contexts; i += kContexts)
                skipgram_contexts(i, first, at_once, y, y_sum);
#pragma unroll
            for (unsigned q = 0; q < kOutputs; ++q)
                if (first + q < window_.output_count) add(output_row(first + q), y_sum[q]);
        }
        if (!at_once) skipgram_later();
    }

    __device__ void skipgram_contexts(unsigned first_x, unsigned first_y, bool at_once,
                                      const float (&y)[kOutputs][Elements],
                                      float (&y_sum)[kOutputs][Elements]) {
        constexpr unsigned kShare = 32 / power_of_two(kContexts * kOutputs);
        float x[kContexts][Elements];
        load_contexts(first_x, x);
        const float own = steps(x, y, first_x, window_.contexts, first_y);
        if (!at_once && state_.lane % kShare == 0) {
            const unsigned number = state_.lane / kShare;
            const unsigned i = first_x + number / kOutputs, q = first_y + number % kOutputs;
            if (number < kContexts * kOutputs && i < window_.contexts && q < window_.output_count)
                state_.steps[i * window_.output_count + q] = own;
        }
#pragma unroll
        for (unsigned i = 0; i < kContexts; ++i) {
            if (first_x + i >= window_.contexts) break;
            float x_sum[Elements] = {};
#pragma unroll
            for (unsigned q = 0; q < kOutputs; ++q) {
                const float step = __shfl_sync(~0u, own, (i * kOutputs + q) * kShare);
#pragma unroll
                for (unsigned k = 0; k < Elements; ++k) {
                    x_sum[k] = __fmaf_rn(step, y[q][k], x_sum[k]);
                    y_sum[q][k] = __fmaf_rn(step, x[i][k], y_sum[q][k]);
                }
            }
            if (at_once) add(window_.context[first_x + i], x_sum);
        }
    }

    /// The contexts' sums, where there are more outputs than are in registers.
    __device__ void skipgram_later() {
        __syncwarp();
        for (unsigned first = 0; first < window_.contexts; first += kContexts) {
            float x_sum[kContexts][Elements] = {};
            for (unsigned q = 0; q < window_.output_count; ++q) {
                float y[Elements];
                load_row(row_at(output_row(q)), state_.lane, y);
#pragma unroll
                for (unsigned i = 0; i < kContexts; ++i) {
                    if (first + i >= window_.contexts) break;
                    const float step = state_.steps[(first + i) * window_.output_count + q];
#pragma unroll
                    for (unsigned k = 0; k < Elements; ++k)
                        x_sum[i][k] = __fmaf_rn(step, y[k], x_sum[i][k]);
                }
            }
#pragma unroll
            for (unsigned i = 0; i < kContexts; ++i)
                if (first + i < window_.contexts) add(window_.context[first + i], x_sum[i]);
        }
        __syncwarp();
    }

    __device__ void cbow() {
        constexpr unsigned kShare = 32 / power_of_two(kOutputs);
        float mean[1][Elements] = {};
        for (unsigned first = 0; first < window_.contexts; first += kContexts) {
            float x[kContexts][Elements];
            load_contexts(first, x);
#pragma unroll
            for (unsigned i = 0; i < kContexts; ++i) {
                if (first + i >= window_.contexts) break;
#pragma unroll
                for (unsigned k = 0; k < Elements; ++k) mean[0][k] = __fadd_rn(mean[0][k], x[i][k]);
            }
        }
        const float share = __frcp_rn(static_cast<float>(window_.contexts));
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k) mean[0][k] = __fmul_rn(mean[0][k], share);
        float x_sum[Elements] = {};
        for (unsigned first = 0; first < window_.output_count; first += kOutputs) {
            float y[kOutputs][Elements];
            load_outputs(first, y);
            const float own = steps(mean, y, 0, 1, first);
#pragma unroll
            for (unsigned q = 0; q < kOutputs; ++q) {
                const float step = __shfl_sync(~0u, own, q * kShare);
                if (first + q >= window_.output_count) break;
                float y_sum[Elements];
#pragma unroll
                for (unsigned k = 0; k < Elements; ++k) {
                    x_sum[k] = __fmaf_rn(step, y[q][k], x_sum[k]);
                    y_sum[k] = __fmul_rn(step, mean[0][k]);
                }
                add(output_row(first + q), y_sum);
            }
        }
        std::int32_t integers[Elements];
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k) integers[k] = to_integer(x_sum[k]);
        for (unsigned i = 0; i < window_.contexts; ++i) add(window_.context[i], integers);
    }

    const StepJob& job_;
    WarpState& state_;
    const Window window_;
};

/// Some rows take their sums, and those are cleared: the rows first, first + 1 ... of `size`, which
/// row_of() names.
template <unsigned Elements, unsigned Rows, class RowOf>
__device__ void take_sums(const StepJob& job, const WarpState& state, unsigned first, unsigned size,
                          RowOf row_of) {
    constexpr std::size_t kRow = 32 * stored_elements(Elements);
    const std::size_t sum_row = (job.dimensions + 31) / 32 * 32;
    std::uint32_t numbers[Rows];
    std::uint32_t counts[Rows];
    float rows[Rows][Elements];
    std::int32_t sums[Rows][Elements];
#pragma unroll
    for (unsigned i = 0; i < Rows; ++i) {
        if (first + i >= size) break;
        numbers[i] = row_of(first + i);
        counts[i] = __ldcg(job.counts + numbers[i]);
        load_row(job.rows + numbers[i] * kRow, state.lane, rows[i]);
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k) {
            const unsigned element = k * 32 + state.lane;
            sums[i][k] =
                element < job.dimensions ? __ldcg(job.sums + numbers[i] * sum_row + element) : 0;
        }
    }
#pragma unroll
    for (unsigned i = 0; i < Rows; ++i) {
        if (first + i >= size) break;
        const float quotient =
            __frcp_rn(__fmaf_rn(state.damping, static_cast<float>(counts[i]), 1.0f));
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k) {
            const unsigned element = k * 32 + state.lane;
            const float sum = __fmul_rn(static_cast<float>(sums[i][k]),
                                        1.0f / (1 << TrainerParameters::kFractionBits));
            rows[i][k] = __fmaf_rn(sum, quotient, rows[i][k]);
            if (element < job.dimensions) job.sums[numbers[i] * sum_row + element] = 0;
        }
        store_row(job.rows + numbers[i] * kRow, state.lane, rows[i]);
        if (state.lane == 0) job.counts[numbers[i]] = 0;
    }
}

/// Of all blocks of the launch: what was written before arrive() is seen after wait(). Called by
/// all threads.
class LaunchBarrier {
public:
    __device__ explicit LaunchBarrier(std::uint32_t* arrived) : arrived_(arrived) {}

    __device__ void arrive() {
        __syncthreads();
        target_ += gridDim.x;
        if (threadIdx.x != 0) return;
        __threadfence();
        atomicAdd(arrived_, 1);
    }
    __device__ void wait() const {
        if (threadIdx.x == 0) {
            std::uint32_t seen;
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                             : "=r"(seen)
                             : "l"(arrived_)
                             : "memory");
            } while (seen < target_);
            __threadfence();
        }
        __syncthreads();
    }

private:
    std::uint32_t* const arrived_;
    std::uint32_t target_ = 0;
};

/// The learning rate of a step, as step_rate() has it.
__device__ inline float rate_of(const StepJob& job, std::uint64_t step) {
    const double done = __ddiv_rn(
        __dadd_rn(job.epoch, __ddiv_rn(static_cast<double>(step), static_cast<double>(job.length))),
        job.epochs);
    return static_cast<float>(
        __dmul_rn(static_cast<double>(job.learning_rate), fmax(1e-4, __dsub_rn(1, done))));
}

template <WordModel Model, unsigned Elements>
__global__ __launch_bounds__((StepShape<Model, Elements>::kWarps * 32),
                             1) void run_steps(const __grid_constant__ StepJob job) {
    using Shape = StepShape<Model, Elements>;
    extern __shared__ std::uint32_t shared[];
    __shared__ std::uint32_t list[kListed];
    __shared__ unsigned listed;
    const unsigned warps = blockDim.x / 32;
    WarpState state{};
    state.lane = threadIdx.x % 32;
    state.warp = threadIdx.x / 32;
    const std::size_t words = window_words(job.window, job.negative);
    state.space = shared + state.warp * words;
    state.steps = reinterpret_cast<float*>(shared + warps * words) +
                  std::size_t{state.warp} * 2 * job.window * (1 + job.negative);
    state.list = list;
    state.listed = &listed;
    if (threadIdx.x == 0) listed = 0;
    __syncthreads();

    const std::uint64_t streams =
        min(std::uint64_t{job.batch}, (job.entry_count + job.length - 1) / job.length);
    const std::uint64_t own = std::uint64_t{state.warp} * gridDim.x + blockIdx.x;
    const std::uint64_t stride = std::uint64_t{warps} * gridDim.x;
    const auto window_at = [&](std::uint64_t stream, std::uint64_t step) {
        const std::uint64_t entry = stream * job.length + step;
        if (stream >= streams || entry >= job.entry_count) return Window{};
        return find_window(job, entry, state.lane, state.space);
    };

    LaunchBarrier barrier(&job.sync->arrived);
    Window window = window_at(own, job.begin);
    for (std::uint64_t step = job.begin; step < job.end; ++step) {
        state.parity = step % 2;
        state.rate = rate_of(job, step);
        state.damping = __fmul_rn(state.rate, job.damping);
        for (std::uint64_t stream = own; stream < streams; stream += stride) {
            if (window.contexts > 0) WindowStep<Model, Elements>(job, state, window).run();
            if (stream + stride < streams) window = window_at(stream + stride, step);
        }
        barrier.arrive();
        window = step + 1 < job.end ? window_at(own, step + 1) : Window{};
        barrier.wait();

        const unsigned met = min(listed, kListed);
        for (unsigned first = state.warp * Shape::kApplied; first < met;
             first += warps * Shape::kApplied)
            take_sums<Elements, Shape::kApplied>(job, state, first, met,
                                                 [&](unsigned i) { return list[i]; });
        const unsigned spilled = __ldcg(job.sync->spilled + state.parity);
        for (std::uint64_t first = own * Shape::kApplied; first < spilled;
             first += stride * Shape::kApplied)
            take_sums<Elements, Shape::kApplied>(job, state, static_cast<unsigned>(first), spilled,
                                                 [&](unsigned i) { return __ldcg(job.spill + i); });
        // Those of the other parity have been looked at by all, in the step before.
        if (blockIdx.x == 0 && threadIdx.x == 0) job.sync->spilled[state.parity ^ 1] = 0;
        barrier.arrive();
        if (threadIdx.x == 0) listed = 0;
        barrier.wait();
    }
    for (unsigned mask = 16; mask > 0; mask /= 2)
        state.loss += __shfl_xor_sync(~0u, state.loss, mask);
    if (state.lane != 0) return;
    atomicAdd(&job.totals->windows, state.windows);
    atomicAdd(&job.totals->steps, state.pairs);
    atomicAdd(&job.totals->loss, static_cast<double>(state.loss));
}

/// The kernel of a model, for as many elements of a lane as elements_of_lane() says.
using StepKernel = void (*)(StepJob);
struct StepChoice {
    StepKernel kernel = nullptr;
    unsigned warps = 0;    // of a block at most
    unsigned outputs = 0;  // in registers
};
template <WordModel Model, unsigned Elements>
StepChoice step_choice() {
    using Shape = StepShape<Model, Elements>;
    return {run_steps<Model, Elements>, Shape::kWarps, Shape::kOutputs};
}
StepChoice skipgram_steps(unsigned elements);
StepChoice skipgram_wide_steps(unsigned elements);
StepChoice cbow_steps(unsigned elements);
StepChoice cbow_wide_steps(unsigned elements);

}  // namespace gputext::gpu
