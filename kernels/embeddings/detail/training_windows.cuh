// kernels/embeddings/detail/training_windows.cuh - windows of cpp/embeddings/trainer.hpp, found by
// one thread

#pragma once

#include <cstdint>

#include "cpp/base/counter_random.hpp"
#include "kernels/embeddings/detail/training_steps.hpp"

namespace gputext::gpu {

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
    /// How many entries on one side are of the window, of `most` or of as many as `there` are; they
    /// are written to to[0], to[Way] and so on.
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

}  // namespace gputext::gpu
