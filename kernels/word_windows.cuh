// kernels/word_windows.cuh - which words a window of cpp/word_trainer.hpp has, found by a warp

#pragma once

#include <cstdint>

#include "kernels/training_random.cuh"
#include "kernels/word_steps.hpp"

namespace gputext::gpu {

/// In shared memory, of one warp.
struct Window {
    const std::uint32_t* context;
    const std::uint32_t* outputs;
    unsigned contexts = 0, output_count = 0;  // both 0 where there is no window
};

/// Numbers of shared memory that a window takes.
__host__ __device__ constexpr std::size_t window_words(std::uint32_t window,
                                                       std::uint32_t negative) {
    return 2 * window + 1 + negative;
}

__device__ inline std::uint32_t draw_output(const StepJob& job, std::uint32_t word,
                                            std::uint64_t base, std::uint32_t q) {
    const std::uint64_t bits = random_bits(base, q);
    const auto upper = static_cast<std::uint32_t>(bits >> 32);
    if (job.far_count != 0 && random_bits(base, job.negative + q) >> 63 != 0)
        return job
            .farthest[std::uint64_t{word} * job.far_count + random_below(upper, job.far_count)];
    const std::uint32_t place = random_below(upper, job.words);
    return static_cast<std::uint32_t>(bits) <= job.own[place] ? place : job.other[place];
}

/// How many entries on one side of an entry are of its window, of `most` or less; they are written
/// to to[0], to[way] and so on. `way` is 1 or -1.
__device__ inline unsigned find_side(const StepJob& job, std::uint64_t entry, int way,
                                     unsigned most, unsigned lane, std::uint32_t* to) {
    const std::uint64_t there = way < 0 ? entry : job.entry_count - 1 - entry;
    for (unsigned first = 0; first < most; first += 32) {
        const unsigned distance = first + lane + 1;
        std::uint32_t word = TrainerParameters::kBreak;
        if (distance <= most && distance <= there)
            word = job.entries[way < 0 ? entry - distance : entry + distance];
        const unsigned ends = __ballot_sync(~0u, word == TrainerParameters::kBreak);
        const unsigned found = ends == 0 ? 32 : __ffs(static_cast<int>(ends)) - 1;
        if (lane < found) to[way * static_cast<int>(first + lane)] = word;
        if (found < 32) return first + found;
    }
    return most;
}

/// The window around an entry, which all lanes ask for; `space` has window_words().
__device__ inline Window find_window(const StepJob& job, std::uint64_t entry, unsigned lane,
                                     std::uint32_t* space) {
    Window window{};
    const std::uint32_t word = job.entries[entry];
    if (word == TrainerParameters::kBreak) return window;
    const std::uint64_t base = random_bits(job.window_key, entry);
    const unsigned most = 1 + random_below(static_cast<std::uint32_t>(base >> 32), job.window);
    __syncwarp();
    // Those before the word end in the middle, where those behind it begin.
    std::uint32_t* const middle = space + job.window;
    const unsigned before = find_side(job, entry, -1, most, lane, middle - 1);
    window.contexts = before + find_side(job, entry, 1, most, lane, middle);
    window.context = middle - before;
    if (window.contexts == 0) return window;
    std::uint32_t* const outputs = space + 2 * job.window;
    window.outputs = outputs;
    window.output_count = 1;
    if (lane == 0) outputs[0] = word;
    for (unsigned first = 1; first <= job.negative; first += 32) {
        const unsigned q = first + lane;
        const std::uint32_t drawn = q <= job.negative ? draw_output(job, word, base, q) : word;
        const unsigned taken = __ballot_sync(~0u, drawn != word);
        if (drawn != word)
            outputs[window.output_count + __popc(taken & ((1u << lane) - 1))] = drawn;
        window.output_count += __popc(taken);
    }
    __syncwarp();
    return window;
}

}  // namespace gputext::gpu
