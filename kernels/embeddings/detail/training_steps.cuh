// kernels/embeddings/detail/training_steps.cuh - kernel of
// kernels/embeddings/detail/training_steps.hpp, for a model and a number of elements of a lane

#pragma once

#include <algorithm>
#include <cstdint>

#include "cpp/base/counter_random.hpp"
#include "cpp/embeddings/detail/logistic.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/embeddings/detail/lane_rows.cuh"
#include "kernels/embeddings/detail/training_steps.hpp"

namespace gputext::gpu {

// Windows of cpp/embeddings/trainer.hpp, found by one thread.

/// A window in shared memory: how many words the context has, where the first of them lies, how
/// many outputs there are; then the context, those before the word up to the middle, and the
/// outputs.
class WindowSlot {
public:
    /// Numbers that one takes; odd, so that threads with slots side by side use different banks.
    __host__ __device__ static constexpr std::size_t size(std::uint32_t window,
                                                          std::uint32_t negative) {
        return (3 + 2 * window + 1 + negative) | 1;
    }

    __device__ WindowSlot(std::uint32_t* space, std::uint32_t window)
        : space_(space), window_(window) {}

    /// No contexts where there is no window.
    __device__ unsigned contexts() const { return space_[0]; }
    __device__ unsigned outputs() const { return space_[2]; }
    __device__ std::uint32_t context(unsigned i) const { return space_[space_[1] + i]; }
    __device__ std::uint32_t output(unsigned q) const { return space_[3 + 2 * window_ + q]; }

    /// The window around an entry.
    __device__ void find(const StepJob& job, std::uint64_t entry) {
        space_[0] = 0;
        const std::uint32_t word = __ldg(job.entries + entry);
        if (word == TrainerParameters::kBreak) return;
        const std::uint64_t base = random_bits(job.window_key, entry);
        const unsigned most = 1 + random_below(static_cast<std::uint32_t>(base >> 32), job.window);
        std::uint32_t* const middle = space_ + 3 + window_;
        const unsigned before = find_side<-1>(job, entry, most, entry, middle - 1);
        const unsigned contexts =
            before + find_side<1>(job, entry, most, job.entry_count - 1 - entry, middle);
        if (contexts == 0) return;
        std::uint32_t* const to = middle + window_;
        to[0] = word;
        unsigned outputs = 1;
#pragma unroll 4
        for (unsigned q = 1; q <= job.negative; ++q)
            if (const std::uint32_t drawn = draw(job, word, base, q); drawn != word)
                to[outputs++] = drawn;
        space_[1] = 3 + window_ - before;
        space_[2] = outputs;
        space_[0] = contexts;
    }
    __device__ void clear() {
        space_[0] = 0;
    }

private:
    /// Writes the entries of the window on one side to to[0], to[Way] and so on: at most `most`,
    /// and as many as `there` are. Returns how many.
    template <int Way>
    __device__ static unsigned find_side(const StepJob& job, std::uint64_t entry, unsigned most,
                                         std::uint64_t there, std::uint32_t* to) {
        constexpr unsigned kAtOnce = 8;
        const unsigned size = static_cast<unsigned>(min(std::uint64_t{most}, there));
        const std::uint32_t* const entries = job.entries + entry + Way;
        for (unsigned first = 0; first < size; first += kAtOnce) {
            std::uint32_t words[kAtOnce];
#pragma unroll
            for (unsigned i = 0; i < kAtOnce; ++i)
                words[i] = first + i < size ? __ldg(entries + Way * static_cast<int>(first + i))
                                            : TrainerParameters::kBreak;
#pragma unroll
            for (unsigned i = 0; i < kAtOnce; ++i) {
                if (words[i] == TrainerParameters::kBreak) return first + i;
                to[Way * static_cast<int>(first + i)] = words[i];
            }
        }
        return size;
    }

    __device__ static std::uint32_t draw(const StepJob& job, std::uint32_t word, std::uint64_t base,
                                         std::uint32_t q) {
        const std::uint64_t bits = random_bits(base, q);
        const auto upper = static_cast<std::uint32_t>(bits >> 32);
        if (job.far_count != 0 && random_bits(base, job.negative + q) >> 63 != 0)
            return __ldg(job.farthest + std::uint64_t{word} * job.far_count +
                         random_below(upper, job.far_count));
        const std::uint32_t place = random_below(upper, job.words);
        const std::uint32_t own = __ldg(job.own + place), other = __ldg(job.other + place);
        return static_cast<std::uint32_t>(bits) <= own ? place : other;
    }

    std::uint32_t* const space_;
    const std::uint32_t window_;
};

/// Largest loss that a step counts, -log of 2^-20, as on the CPU.
constexpr float kMostLoss = 0x1.bb9d3cp+3f;

/// Rows that a block has met and keeps in shared memory; others are spilled.
constexpr unsigned kListed = 2048;

/// Windows of a block that are found at a time, at most, and products of two elements in all of
/// them.
constexpr std::uint32_t kMostSlots = 256;
constexpr std::uint64_t kMostProducts = std::uint64_t{1} << 28;

/// Among so many frequent words no two have their counts in one line of the cache.
constexpr std::uint32_t kCountSpread = 64;

/// Outputs whose rows a warp has in registers at a time, rows of the context that are multiplied
/// with them, rows that take their sums at a time, and the warps of a block, of which each
/// multiprocessor has one: what registers allow.
template <WordModel Model, unsigned Elements>
struct StepShape {
    static constexpr bool kSkipgram = Model == WordModel::skipgram;
    static constexpr unsigned kOutputs = Elements <= 10 ? 6 : Elements <= 16 ? 3 : 1;
    static constexpr unsigned kContexts =
        kSkipgram ? (Elements <= 7 ? 2 : 1) : (Elements <= 10 ? 4 : 2);
    static constexpr bool kAhead = Elements <= 4;  // the next rows are read while some are used
    static constexpr unsigned kApplied = Elements <= 4 ? 4 : Elements <= 10 ? 2 : 1;
    static constexpr unsigned kSkipgramWarps = Elements <= 4 ? 16 : Elements <= 7 ? 12 : 8;
    static constexpr unsigned kCbowWarps = Elements <= 4    ? 24
                                           : Elements <= 7  ? 16
                                           : Elements <= 16 ? 12
                                                            : 8;
    static constexpr unsigned kWarps = kSkipgram ? kSkipgramWarps : kCbowWarps;
};

/// The least power of two that is not less.
__host__ __device__ constexpr unsigned power_of_two(unsigned size) {
    return size <= 1 ? 1 : 2 * power_of_two((size + 1) / 2);
}

/// An element of a step in units of 2^-kFractionBits.
__device__ inline std::int32_t to_integer(float element) {
    constexpr float kMost = TrainerParameters::kMostStep;
    const float scaled = __fmul_rn(element, 1 << TrainerParameters::kFractionBits);
    return __float2int_rn(fminf(fmaxf(scaled, -kMost), kMost));
}

/// The learning rate of a step, as step_rate() has it.
__device__ inline float rate_of(const StepJob& job, std::uint64_t step) {
    const double done = __ddiv_rn(
        __dadd_rn(job.epoch, __ddiv_rn(static_cast<double>(step), static_cast<double>(job.length))),
        job.epochs);
    return static_cast<float>(
        __dmul_rn(static_cast<double>(job.learning_rate), fmax(1e-4, __dsub_rn(1, done))));
}

/// A reduction in memory, which nobody waits for.
__device__ inline void add_where(bool wanted, std::int32_t* to, std::int32_t by) {
    asm volatile(
        "{\n .reg .pred wanted;\n setp.ne.s32 wanted, %2, 0;\n"
        " @wanted red.relaxed.gpu.global.add.s32 [%0], %1;\n}" ::"l"(to),
        "r"(by), "r"(static_cast<int>(wanted)));
}

/// Where a row's steps are counted. The counts of the most frequent words, which nearly every
/// window has, lie in different lines of the cache.
__device__ inline std::uint32_t count_place(const StepJob& job, std::uint32_t row) {
    return row % kCountSpread * (2 * job.words / kCountSpread + 1) + row / kCountSpread;
}

/// What the threads of a block share.
struct BlockState {
    unsigned listed;              // rows in list, or beyond it
    unsigned next_window;         // that no warp has taken
    unsigned next_row;            // of the list
    unsigned parity;              // of the step
    float rate, damping;          // of the step
    std::uint32_t released;       // arrivals of blocks that are waited for no more
    std::uint32_t list[kListed];  // rows that the block has met first

    __device__ void begin(const StepJob& job, std::uint64_t step) {
        listed = next_window = next_row = 0;
        parity = step % 2;
        rate = rate_of(job, step);
        damping = __fmul_rn(rate, job.damping);
    }
};

/// What a warp knows all the time.
struct WarpState {
    BlockState& block;
    unsigned lane;
    float loss = 0;  // of this lane
    unsigned windows = 0, pairs = 0;
};

/// Takes the next `size` numbers for a warp from the block's counter `next`. Returns the first one.
__device__ inline unsigned take_next(unsigned& next, unsigned size, unsigned lane) {
    unsigned first = 0;
    if (lane == 0) first = atomicAdd(&next, size);
    return __shfl_sync(~0u, first, 0);
}

/// Windows that have been found, and what later_steps() says.
extern __shared__ std::uint32_t shared_slots[];

template <WordModel Model, unsigned Elements>
class WindowStep {
    using Shape = StepShape<Model, Elements>;
    static constexpr unsigned kOutputs = Shape::kOutputs, kContexts = Shape::kContexts;
    static constexpr std::size_t kRow = 32 * stored_elements(Elements);

public:
    __device__ WindowStep(const StepJob& job, WarpState& state, const WindowSlot& window)
        : job_(job),
          state_(state),
          window_(window),
          contexts_(window.contexts()),
          outputs_(window.outputs()) {}

    __device__ void run() {
        const unsigned of_context = Model == WordModel::skipgram ? outputs_ : 1;
        const unsigned of_output = Model == WordModel::skipgram ? contexts_ : 1;
        // Asked for first, and looked at last.
        std::uint32_t row = 0;
        bool met = count(state_.lane, of_context, of_output, row);
        if constexpr (Model == WordModel::cbow)
            cbow();
        else if (outputs_ <= kOutputs)
            skipgram<true>();
        else
            skipgram<false>();
        list(met, row);
        const unsigned rows = contexts_ + outputs_;
        for (unsigned first = 32; first < rows; first += 32) {
            met = count(first + state_.lane, of_context, of_output, row);
            list(met, row);
        }
        ++state_.windows;
        state_.pairs += of_context * (Model == WordModel::skipgram ? of_output : outputs_);
    }

private:
    __device__ std::uint32_t output_row(unsigned q) const { return job_.words + window_.output(q); }
    /// Steps of each context and output, where the outputs do not fit in registers; behind the
    /// windows.
    __device__ float* later_steps() const {
        return reinterpret_cast<float*>(shared_slots +
                                        job_.slots * WindowSlot::size(job_.window, job_.negative)) +
               threadIdx.x / 32 * 2 * job_.window * (1 + job_.negative);
    }
    __device__ const float* row_at(std::uint32_t row) const { return job_.rows + row * kRow; }

    /// Counts the steps of a row of the window; whether it was met for the first time.
    __device__ bool count(unsigned number, unsigned of_context, unsigned of_output,
                          std::uint32_t& row) const {
        if (number >= contexts_ + outputs_) return false;
        const bool context = number < contexts_;
        row = context ? window_.context(number) : output_row(number - contexts_);
        return atomicAdd(job_.counts + count_place(job_, row), context ? of_context : of_output) ==
               0;
    }

    /// Puts the rows of lanes that met them on the list.
    __device__ void list(bool met, std::uint32_t row) const {
        const unsigned all = __ballot_sync(~0u, met);
        const unsigned at = take_places(&state_.block.listed, all, state_.lane);
        if (!met) return;
        if (at < kListed)
            state_.block.list[at] = row;
        else
            job_.spill[atomicAdd(job_.sync->spilled + state_.block.parity, 1)] = row;
    }

    /// Adds to the sums of a row, if it is one of the window's.
    __device__ void add(std::uint32_t row, const std::int32_t (&by)[Elements], bool has) const {
        std::int32_t* const sums =
            job_.sums + row * std::size_t{sum_size(job_.dimensions)} + state_.lane;
        const int size = has ? static_cast<int>(job_.dimensions - state_.lane) : 0;
#pragma unroll
        for (int k = 0; k < static_cast<int>(Elements); ++k)
            add_where(size > 32 * k, sums + k * 32, by[k]);
    }
    __device__ void add(std::uint32_t row, const float (&by)[Elements], bool has) const {
        std::int32_t integers[Elements];
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k) integers[k] = to_integer(by[k]);
        add(row, integers, has);
    }

    // Beyond the window's last row, that row is read again, with steps of 0: a branch would cost
    // more.

    __device__ void load_outputs(unsigned first, float (&y)[kOutputs][Elements]) const {
#pragma unroll
        for (unsigned q = 0; q < kOutputs; ++q)
            load_row(row_at(output_row(min(first + q, outputs_ - 1))), state_.lane, y[q]);
    }

    template <unsigned Rows>
    __device__ void load_contexts(unsigned first, float (&x)[Rows][Elements]) const {
#pragma unroll
        for (unsigned i = 0; i < Rows; ++i)
            load_row(row_at(window_.context(min(first + i, contexts_ - 1))), state_.lane, x[i]);
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
        if (number >= Rows * kOutputs || i >= contexts || q >= outputs_) return 0;
        const float product = products[0];
        const float power = exponential_below(product);
        if (state_.lane % kShare == 0)
            state_.loss +=
                fminf(fmaxf(q == 0 ? -product : product, 0.0f) + __logf(1.0f + power), kMostLoss);
        return __fmul_rn(__fsub_rn(q == 0 ? 1.0f : 0.0f, logistic(product, power)),
                         state_.block.rate);
    }

    template <bool AtOnce>
    __device__ void skipgram() {
#pragma unroll 1
        for (unsigned first = 0; first < outputs_; first += kOutputs) {
            float x[kContexts][Elements], y[kOutputs][Elements], y_sum[kOutputs][Elements] = {};
            load_contexts(0, x);
            load_outputs(first, y);
#pragma unroll 1
            for (unsigned i = 0; i < contexts_; i += kContexts) {
                float next[kContexts][Elements];
                if constexpr (Shape::kAhead) load_contexts(i + kContexts, next);
                skipgram_contexts<AtOnce>(i, first, x, y, y_sum);
                if constexpr (!Shape::kAhead) load_contexts(i + kContexts, next);
#pragma unroll
                for (unsigned k = 0; k < kContexts * Elements; ++k)
                    x[k / Elements][k % Elements] = next[k / Elements][k % Elements];
            }
#pragma unroll
            for (unsigned q = 0; q < kOutputs; ++q)
                add(output_row(min(first + q, outputs_ - 1)), y_sum[q], first + q < outputs_);
        }
        if (!AtOnce) skipgram_later();
    }

    template <bool AtOnce>
    __device__ void skipgram_contexts(unsigned first_x, unsigned first_y,
                                      const float (&x)[kContexts][Elements],
                                      const float (&y)[kOutputs][Elements],
                                      float (&y_sum)[kOutputs][Elements]) {
        constexpr unsigned kShare = 32 / power_of_two(kContexts * kOutputs);
        const float own = steps(x, y, first_x, contexts_, first_y);
        if (!AtOnce && state_.lane % kShare == 0) {
            const unsigned number = state_.lane / kShare;
            const unsigned i = first_x + number / kOutputs, q = first_y + number % kOutputs;
            if (number < kContexts * kOutputs && i < contexts_ && q < outputs_)
                later_steps()[i * outputs_ + q] = own;
        }
#pragma unroll
        for (unsigned i = 0; i < kContexts; ++i) {
            float x_sum[Elements] = {};
#pragma unroll
            for (unsigned q = 0; q < kOutputs; ++q) {
                const float step = __shfl_sync(~0u, own, (i * kOutputs + q) * kShare);
#pragma unroll
                for (unsigned k = 0; k < Elements; ++k) {
                    if (AtOnce) x_sum[k] = __fmaf_rn(step, y[q][k], x_sum[k]);
                    y_sum[q][k] = __fmaf_rn(step, x[i][k], y_sum[q][k]);
                }
            }
            if (AtOnce)
                add(window_.context(min(first_x + i, contexts_ - 1)), x_sum,
                    first_x + i < contexts_);
        }
    }

    /// The contexts' sums, where there are more outputs than are in registers.
    __device__ void skipgram_later() {
        __syncwarp();
#pragma unroll 1
        for (unsigned first = 0; first < contexts_; first += kContexts) {
            float x_sum[kContexts][Elements] = {};
            for (unsigned q = 0; q < outputs_; ++q) {
                float y[Elements];
                load_row(row_at(output_row(q)), state_.lane, y);
#pragma unroll
                for (unsigned i = 0; i < kContexts; ++i) {
                    const float step = later_steps()[min(first + i, contexts_ - 1) * outputs_ + q];
#pragma unroll
                    for (unsigned k = 0; k < Elements; ++k)
                        x_sum[i][k] = __fmaf_rn(step, y[k], x_sum[i][k]);
                }
            }
#pragma unroll
            for (unsigned i = 0; i < kContexts; ++i)
                add(window_.context(min(first + i, contexts_ - 1)), x_sum[i],
                    first + i < contexts_);
        }
        __syncwarp();
    }

    __device__ void cbow() {
        constexpr unsigned kShare = 32 / power_of_two(kOutputs);
        float mean[1][Elements] = {}, y[kOutputs][Elements];
        load_outputs(0, y);
#pragma unroll 1
        for (unsigned first = 0; first < contexts_; first += kContexts) {
            float x[kContexts][Elements];
            load_contexts(first, x);
#pragma unroll
            for (unsigned i = 0; i < kContexts; ++i) {
#pragma unroll
                for (unsigned k = 0; k < Elements; ++k)
                    if (first + i < contexts_) mean[0][k] = __fadd_rn(mean[0][k], x[i][k]);
            }
        }
        const float share = __frcp_rn(static_cast<float>(contexts_));
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k) mean[0][k] = __fmul_rn(mean[0][k], share);
        float x_sum[Elements] = {};
#pragma unroll 1
        for (unsigned first = 0; first < outputs_; first += kOutputs) {
            if (first > 0) load_outputs(first, y);
            const float own = steps(mean, y, 0, 1, first);
#pragma unroll
            for (unsigned q = 0; q < kOutputs; ++q) {
                const float step = __shfl_sync(~0u, own, q * kShare);
                float y_sum[Elements];
#pragma unroll
                for (unsigned k = 0; k < Elements; ++k) {
                    x_sum[k] = __fmaf_rn(step, y[q][k], x_sum[k]);
                    y_sum[k] = __fmul_rn(step, mean[0][k]);
                }
                add(output_row(min(first + q, outputs_ - 1)), y_sum, first + q < outputs_);
            }
        }
        std::int32_t integers[Elements];
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k) integers[k] = to_integer(x_sum[k]);
        for (unsigned i = 0; i < contexts_; ++i) add(window_.context(i), integers, true);
    }

    const StepJob& job_;
    WarpState& state_;
    const WindowSlot window_;
    const unsigned contexts_, outputs_;
};

/// Adds the sums to some rows, and clears the sums: rows first, first + 1 ... of `size`, as
/// row_of() names them.
template <unsigned Elements, unsigned Rows, class RowOf>
__device__ void take_sums(const StepJob& job, const WarpState& state, unsigned first, unsigned size,
                          RowOf row_of) {
    constexpr std::size_t kRow = 32 * stored_elements(Elements);
    const std::size_t sum_row = sum_size(job.dimensions);
    std::uint32_t numbers[Rows], counts[Rows];
    float rows[Rows][Elements];
    std::int32_t sums[Rows][Elements];
#pragma unroll
    for (unsigned i = 0; i < Rows; ++i) {
        numbers[i] = row_of(min(first + i, size - 1));
        counts[i] = __ldcg(job.counts + count_place(job, numbers[i]));
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
        const float quotient =
            __frcp_rn(__fmaf_rn(state.block.damping, static_cast<float>(counts[i]), 1.0f));
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k) {
            const float sum = __fmul_rn(static_cast<float>(sums[i][k]),
                                        1.0f / (1 << TrainerParameters::kFractionBits));
            rows[i][k] = __fmaf_rn(sum, quotient, rows[i][k]);
        }
    }
#pragma unroll
    for (unsigned i = 0; i < Rows; ++i) {
        if (first + i >= size) break;
        store_row(job.rows + numbers[i] * kRow, state.lane, rows[i]);
#pragma unroll
        for (unsigned k = 0; k < Elements; ++k) {
            const unsigned element = k * 32 + state.lane;
            if (element < job.dimensions) job.sums[numbers[i] * sum_row + element] = 0;
        }
        if (state.lane == 0) job.counts[count_place(job, numbers[i])] = 0;
    }
}

/// A barrier of all blocks: what was written before arrive() is seen after wait(). arrive() is a
/// barrier of the block's threads, too.
__device__ inline void arrive(const StepJob& job) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&job.sync->arrived) : "memory");
}
__device__ inline void wait_for(const StepJob& job, std::uint32_t arrivals) {
    std::uint32_t seen;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(seen)
                     : "l"(&job.sync->arrived)
                     : "memory");
    } while (seen < arrivals);
}
/// Waits, all warps of the block together. `number`: how many barriers there have been.
__device__ inline void wait(const StepJob& job, std::uint32_t number) {
    if (threadIdx.x == 0) wait_for(job, number * gridDim.x);
    __syncthreads();
}
/// Waits, each warp by itself, so that warps with more to do than others may come later.
__device__ inline void wait_alone(const StepJob& job, BlockState& block, std::uint32_t number) {
    const std::uint32_t wanted = number * gridDim.x;
    if (threadIdx.x == 0) {
        wait_for(job, wanted);
        __threadfence_block();
        atomicExch(&block.released, wanted);
    } else if (threadIdx.x % 32 == 0) {
        while (atomicOr(&block.released, 0) != wanted) __nanosleep(40);
        __threadfence_block();
    }
    __syncwarp();
}

/// Finds windows of a step, one a thread, from the block's number `first` on. Half of the warps do
/// so, each for a few.
__device__ inline void find_windows(const StepJob& job, std::uint64_t step, unsigned first) {
    const std::size_t size = WindowSlot::size(job.window, job.negative);
    const unsigned warps = blockDim.x / 32, finders = (warps + 1) / 2;
    const unsigned last = warps - 1 - threadIdx.x / 32;
    if (last >= finders) return;
    for (unsigned slot = threadIdx.x % 32 * finders + last; slot < job.slots;
         slot += 32 * finders) {
        WindowSlot window(shared_slots + slot * size, job.window);
        const unsigned stream = (first + slot) * gridDim.x + blockIdx.x;
        const std::uint64_t entry = stream * job.length + step;
        if (stream >= job.streams || entry >= job.entry_count || __ldcg(job.stop) != 0) {
            window.clear();
            continue;
        }
        window.find(job, entry);
    }
}

/// All windows that have been found.
template <WordModel Model, unsigned Elements>
__device__ void take_windows(const StepJob& job, WarpState& state) {
    const std::size_t size = WindowSlot::size(job.window, job.negative);
    for (;;) {
        const unsigned slot = take_next(state.block.next_window, 1, state.lane);
        if (slot >= job.slots) return;
        const WindowSlot window(shared_slots + slot * size, job.window);
        if (window.contexts() > 0) WindowStep<Model, Elements>(job, state, window).run();
    }
}

/// All rows that have been met.
template <unsigned Elements, unsigned Applied>
__device__ void take_all_sums(const StepJob& job, const WarpState& state) {
    const unsigned met = min(state.block.listed, kListed);
    for (;;) {
        const unsigned first = take_next(state.block.next_row, Applied, state.lane);
        if (first >= met) break;
        take_sums<Elements, Applied>(job, state, first, met,
                                     [&](unsigned i) { return state.block.list[i]; });
    }
    const unsigned spilled = __ldcg(job.sync->spilled + state.block.parity);
    const unsigned warps = blockDim.x / 32 * gridDim.x;
    for (unsigned first = (threadIdx.x / 32 * gridDim.x + blockIdx.x) * Applied; first < spilled;
         first += warps * Applied)
        take_sums<Elements, Applied>(job, state, first, spilled,
                                     [&](unsigned i) { return __ldcg(job.spill + i); });
}

template <WordModel Model, unsigned Elements>
__global__ __launch_bounds__((StepShape<Model, Elements>::kWarps * 32),
                             1) void run_steps(const __grid_constant__ StepJob job) {
    __shared__ BlockState block;
    WarpState state{block, threadIdx.x % 32};
    if (threadIdx.x == 0) {
        block.released = 0;
        block.begin(job, job.begin);
    }
    const unsigned windows = (job.streams + gridDim.x - 1) / gridDim.x;  // of a block and a step
    find_windows(job, job.begin, 0);
    __syncthreads();

    std::uint32_t barriers = 0;
    for (std::uint64_t step = job.begin; step < job.end; ++step) {
        take_windows<Model, Elements>(job, state);
        for (unsigned first = job.slots; first < windows; first += job.slots) {
            __syncthreads();
            if (threadIdx.x == 0) block.next_window = 0;
            find_windows(job, step, first);
            __syncthreads();
            take_windows<Model, Elements>(job, state);
        }
        arrive(job);
        // By some warps, while the others wait and then begin with the sums.
        if (step + 1 < job.end) find_windows(job, step + 1, 0);
        wait_alone(job, block, ++barriers);
        take_all_sums<Elements, StepShape<Model, Elements>::kApplied>(job, state);
        // The counter of the other parity was read by all blocks in the step before.
        if (blockIdx.x == 0 && threadIdx.x == 0) job.sync->spilled[(step + 1) % 2] = 0;
        arrive(job);
        if (threadIdx.x == 0) block.begin(job, step + 1);
        wait(job, ++barriers);
    }
    state.loss = warp_sum(state.loss);
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
