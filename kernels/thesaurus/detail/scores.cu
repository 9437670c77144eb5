#include "kernels/thesaurus/detail/scores.hpp"

#include <algorithm>

#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/thesaurus/detail/measure.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 768;
constexpr unsigned kWarps = kThreads / 32;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr unsigned kBlocks = 1;  // of a processor
#else
constexpr unsigned kBlocks = 2;
#endif
constexpr unsigned kAtOnce = 4;  // sums that a thread looks at before it tells the others
constexpr float kLeastFactor = 1e-30f;
constexpr unsigned kLong = 32;  // postings of a list that a warp takes by itself

/// Words that may be among the nearest, and room for these.
unsigned candidates_for(std::uint32_t top_k) {
    return top_k <= 256 ? 1024 : 2048;
}
static_assert(NearestWords::kMost + kThreads <= 2048 && 256 + kThreads <= 1024);

/// Sums of 32 bits.
struct NarrowSums {
    using Value = std::uint32_t;

    std::uint32_t* sums;

    __device__ NarrowSums(void* memory, std::uint32_t)
        : sums(static_cast<std::uint32_t*>(memory)) {}

    __device__ void load(const void* dense, std::size_t at, std::uint32_t size,
                         std::uint32_t room) const {
        const auto* const from =
            reinterpret_cast<const uint4*>(static_cast<const std::uint32_t*>(dense) + at);
        for (std::uint32_t i = threadIdx.x; i < room / 4; i += kThreads)
            reinterpret_cast<uint4*>(sums)[i] =
                dense == nullptr || 4 * i >= size ? uint4{0, 0, 0, 0} : __ldcs(from + i);
    }
    __device__ void set(std::uint32_t at, Value sum) const { sums[at] = sum; }
    __device__ void add(std::uint32_t at, std::uint32_t value) const {
        atomicAdd(&sums[at], value);
    }
    __device__ Value sum(std::uint32_t at) const { return sums[at]; }
};

/// Sums of 64 bits in two halves: where the lower half wraps around, 1 is added to the upper half.
struct WideSums {
    using Value = unsigned long long;

    std::uint32_t* lower;
    std::uint32_t* upper;

    __device__ WideSums(void* memory, std::uint32_t size)
        : lower(static_cast<std::uint32_t*>(memory)), upper(lower + size) {}

    __device__ void load(const void* dense, std::size_t at, std::uint32_t size,
                         std::uint32_t room) const {
        const auto* const from = static_cast<const unsigned long long*>(dense) + at;
        for (std::uint32_t i = threadIdx.x; i < room; i += kThreads) {
            const unsigned long long value = dense == nullptr || i >= size ? 0 : __ldcs(from + i);
            lower[i] = static_cast<std::uint32_t>(value);
            upper[i] = static_cast<std::uint32_t>(value >> 32);
        }
    }
    __device__ void add(std::uint32_t at, std::uint32_t value) const {
        const std::uint32_t before = atomicAdd(&lower[at], value);
        if (before + value < before) atomicAdd(&upper[at], 1u);
    }
    __device__ void set(std::uint32_t at, Value sum) const {
        lower[at] = static_cast<std::uint32_t>(sum);
        upper[at] = static_cast<std::uint32_t>(sum >> 32);
    }
    __device__ Value sum(std::uint32_t at) const {
        return static_cast<unsigned long long>(upper[at]) << 32 | lower[at];
    }
};

template <WordMeasure Measure>
__device__ std::uint32_t shared_part(std::uint32_t weight, std::uint32_t posting) {
    if constexpr (Measure == WordMeasure::lin) return weight + (posting >> 16);
    if constexpr (Measure == WordMeasure::cosine) return weight * (posting >> 16);
    return 1;
}

/// Adds the postings of the lists of a word's features, of [begin, end), in a tile. Each warp takes
/// some features at a time: long lists one after the other, and short ones as if they were one.
template <WordMeasure Measure, class Sums>
__device__ void add_postings(const WordIndex& index, std::uint64_t begin, std::uint64_t end,
                             std::uint32_t tile, const Sums& sums) {
    const unsigned lane = threadIdx.x % 32;
    const uint2* const lists = index.lists + tile * index.columns;
    // The features of a warp are far apart: neighbors are words of like frequency, whose lists are
    // of like length.
    for (std::uint64_t base = begin + threadIdx.x / 32; base < end; base += kThreads) {
        const std::uint64_t feature = base + kWarps * lane;
        const bool has = feature < end;
        const uint2 list = has ? lists[index.features.columns[feature]] : uint2{0, 0};
        const std::uint32_t weight = has ? index.features.weights[feature] : 0;
        const std::uint32_t length = list.y - list.x;
        for (unsigned longer = __ballot_sync(~0u, length >= kLong); longer != 0;
             longer &= longer - 1) {
            const int source = __ffs(static_cast<int>(longer)) - 1;
            const std::uint32_t list_end = __shfl_sync(~0u, list.y, source);
            const std::uint32_t own = __shfl_sync(~0u, weight, source);
            std::uint32_t at = __shfl_sync(~0u, list.x, source) + lane;
            for (; at - lane < list_end; at += 128) {
                std::uint32_t postings[4];
#pragma unroll
                for (unsigned i = 0; i < 4; ++i)
                    if (at + 32 * i < list_end) postings[i] = index.postings[at + 32 * i];
#pragma unroll
                for (unsigned i = 0; i < 4; ++i)
                    if (at + 32 * i < list_end)
                        sums.add(postings[i] & 0xffff, shared_part<Measure>(own, postings[i]));
            }
        }
        const std::uint32_t shorter = length < kLong ? length : 0;
        const std::uint32_t ends = sum_up_to_lane(shorter);
        const std::uint32_t total = __shfl_sync(~0u, ends, 31);
        const std::uint32_t start = list.x - (ends - shorter);
        for (std::uint32_t first = 0; first < total; first += 64) {
            std::uint32_t postings[2] = {}, owns[2] = {};
#pragma unroll
            for (unsigned u = 0; u < 2; ++u) {
                if (first + 32 * u >= total) break;
                const std::uint32_t number = first + 32 * u + lane;
                int source = 0;  // the first lane whose lists end behind it
#pragma unroll
                for (int step = 16; step > 0; step /= 2)
                    if (__shfl_sync(~0u, ends, source + step - 1) <= number) source += step;
                const std::uint32_t at = __shfl_sync(~0u, start, source) + number;
                owns[u] = __shfl_sync(~0u, weight, source);
                if (number < total) postings[u] = index.postings[at];
            }
#pragma unroll
            for (unsigned u = 0; u < 2; ++u)
                if (first + 32 * u + lane < total)
                    sums.add(postings[u] & 0xffff, shared_part<Measure>(owns[u], postings[u]));
        }
    }
}

/// Candidates of one word, the best first once sorted.
struct Candidates {
    unsigned long long* similarities;
    std::uint32_t* words;

    __device__ bool before(unsigned a, unsigned b) const {
        return similarities[a] > similarities[b] ||
               (similarities[a] == similarities[b] && words[a] < words[b]);
    }
    __device__ void exchange(unsigned a, unsigned b) const {
        const unsigned long long similarity = similarities[a];
        const std::uint32_t word = words[a];
        similarities[a] = similarities[b];
        words[a] = words[b];
        similarities[b] = similarity;
        words[b] = word;
    }
    /// A bitonic network over the power of two from `count` on. Places less than 64 apart are of
    /// one warp.
    __device__ void sort(unsigned count) const {
        unsigned size = 64;
        while (size < count) size *= 2;
        for (unsigned i = count + threadIdx.x; i < size; i += kThreads) {
            similarities[i] = 0;
            words[i] = UINT32_MAX;
        }
        bool was_far = true;
        for (unsigned span = 2; span <= size; span *= 2)
            for (unsigned step = span / 2; step > 0; step /= 2) {
                const bool far = step >= 64;
                if (far || was_far)
                    __syncthreads();
                else
                    __syncwarp();
                was_far = far;
                for (unsigned i = threadIdx.x; i < size / 2; i += kThreads) {
                    const unsigned a = 2 * i - (i & (step - 1)), b = a + step;
                    const bool best_first = (a & span) == 0;
                    if (best_first ? before(b, a) : before(a, b)) exchange(a, b);
                }
            }
        __syncthreads();
    }
};

/// The k-th largest of a number of each thread, all below 2^30, rounded down to 18 bits; 0 where
/// less than k are above 0.
__device__ std::uint32_t kth_largest(std::uint32_t own, unsigned k) {
    std::uint32_t found = 0;
    for (int bit = 29; bit >= 12; --bit) {
        const std::uint32_t more = found | 1u << bit;
        if (__syncthreads_count(own >= more) >= static_cast<int>(k)) found = more;
    }
    return found;
}

template <WordMeasure Measure, class Sums, bool All>
__global__ __launch_bounds__(kThreads, kBlocks) void score(const WordIndex index,
                                                           const WordScoresJob job,
                                                           std::uint32_t tile_room, unsigned room) {
    extern __shared__ uint4 memory[];
    __shared__ unsigned pushed;
    const std::uint32_t word = job.first + blockIdx.x;
    const Sums sums(memory, tile_room);
    const unsigned halves = sizeof(Sums) / sizeof(void*);
    auto* const behind = reinterpret_cast<unsigned long long*>(
        reinterpret_cast<std::uint32_t*>(memory) + halves * tile_room);
    const Candidates candidates{behind, reinterpret_cast<std::uint32_t*>(behind + room)};
    const std::uint64_t alone = index.words[word];
    if (alone == 0 && !All) return;
    if (threadIdx.x == 0) pushed = 0;
    sums.load(job.dense, std::size_t{word - job.dense_first} * job.dense_stride, job.tile_words,
              tile_room);
    __syncthreads();
    const std::uint32_t divided =
        job.divided_sums == nullptr ? kUndivided : index.divided_ranks[word];
    if (divided == kUndivided) {
        add_postings<Measure>(index, index.features.begins[word], index.features.begins[word + 1],
                              job.tile, sums);
    } else {
        const auto* const from = static_cast<const typename Sums::Value*>(job.divided_sums) +
                                 std::size_t{divided} * job.divided_stride;
        for (std::uint32_t i = threadIdx.x; i < job.tile_words; i += kThreads)
            sums.set(i, sums.sum(i) + from[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0 && word - job.tile_first < job.tile_words)
        sums.set(word - job.tile_first, 0);  // no neighbor of itself
    __syncthreads();

    if constexpr (All) {
        std::uint64_t* const to =
            job.all + std::size_t{word - job.first} * job.all_stride + job.tile_first;
        for (std::uint32_t i = threadIdx.x; i < job.tile_words; i += kThreads) {
            const std::uint64_t shared = sums.sum(i);
            const std::uint32_t other = job.tile_first + i;
            const bool near = shared != 0;
            to[i] = near ? static_cast<std::uint64_t>(__double_as_longlong(
                               exact_similarity<Measure>(shared, alone, index.words[other])))
                         : 0;
        }
        return;
    }

    const std::uint32_t row = word - job.nearest.first;
    const std::uint32_t top_k = job.nearest.top_k;
    const std::size_t list = std::size_t{row} * top_k;
    const unsigned kept = job.nearest.counts[row];
    const float rough = index.rough[word];
    // Sums at least as large as the factor times the words' rough sum are near. Nothing shared is
    // not.
    float factor = fmaxf(rough_factor<Measure>(job.nearest.gates[row]), kLeastFactor);
    float gate = job.nearest.gates[row];
    bool loaded = false;  // what was kept before is among the candidates
    unsigned count = 0;
    const auto merge = [&] {
        __syncthreads();
        if (!loaded) {
            for (unsigned i = threadIdx.x; i < kept; i += kThreads) {
                candidates.similarities[count + i] = job.nearest.similarities[list + i];
                candidates.words[count + i] = job.nearest.words[list + i];
            }
            count += kept;
            loaded = true;
            __syncthreads();
        }
        candidates.sort(count);
        count = min(count, top_k);
        gate = count < top_k ? 0
                             : gate_of(__longlong_as_double(
                                   static_cast<long long>(candidates.similarities[top_k - 1])));
        factor = fmaxf(factor, rough_factor<Measure>(gate));
        if (threadIdx.x == 0) pushed = count;
    };
    // Behind the tile's words sums are 0.
    const auto is_near = [&](std::uint32_t i) {
        const float other = index.rough[job.tile_first + i];
        return static_cast<float>(sums.sum(i)) >= factor * rough_sum<Measure>(rough, other);
    };
    const std::uint32_t end =
        (job.tile_words + kAtOnce * kThreads - 1) / (kAtOnce * kThreads) * (kAtOnce * kThreads);
    if (kept == 0 && top_k <= kThreads / 2) {
        // The k-th largest of all is at least as large as that of what the threads have each.
        float largest = 0;
        for (std::uint32_t base = threadIdx.x; base < end; base += kAtOnce * kThreads)
#pragma unroll
            for (unsigned u = 0; u < kAtOnce; ++u) {
                const std::uint32_t i = base + u * kThreads;
                const float other = index.rough[job.tile_first + i];
                largest = fmaxf(largest, __fdividef(static_cast<float>(sums.sum(i)),
                                                    rough_sum<Measure>(rough, other)));
            }
        const std::uint32_t bits = kth_largest(__float_as_uint(fminf(largest, 1)), top_k);
        factor = fmaxf(__uint_as_float(bits) * (1 - 0x1p-16f), kLeastFactor);
    }
    // What has no room is left out, and told by the number of those pushed.
    const auto push = [&](std::uint32_t i) {
        const unsigned at = atomicAdd(&pushed, 1u);
        if (at >= room) return;
        const std::uint32_t other = job.tile_first + i;
        candidates.similarities[at] = static_cast<unsigned long long>(__double_as_longlong(
            exact_similarity<Measure>(sums.sum(i), alone, index.words[other])));
        candidates.words[at] = other;
    };
    // More candidates than that are merged, which raises the gate.
    const unsigned many = top_k + (room - top_k) / 4;
    bool any = false;
    for (std::uint32_t base = threadIdx.x; base < end; base += kAtOnce * kThreads) {
        unsigned near = 0;
#pragma unroll
        for (unsigned u = 0; u < kAtOnce; ++u) near |= is_near(base + u * kThreads) << u;
        if (!__syncthreads_or(static_cast<int>(near))) continue;
        any = true;
        for (; near != 0; near &= near - 1)
            push(base + (__ffs(static_cast<int>(near)) - 1) * kThreads);
        __syncthreads();
        const unsigned before = loaded ? 0 : kept;
        if (pushed + before <= room) {
            count = pushed;
            if (count + before > many) merge();
            continue;
        }
        // All of them again, fewer at a time.
        for (unsigned u = 0; u < kAtOnce; ++u) {
            __syncthreads();
            if (threadIdx.x == 0) pushed = count;
            if (count + (loaded ? 0 : kept) + kThreads > room) merge();
            __syncthreads();
            if (is_near(base + u * kThreads)) push(base + u * kThreads);
            __syncthreads();
            count = pushed;
        }
    }
    if (!any) return;
    merge();
    for (unsigned i = threadIdx.x; i < count; i += kThreads) {
        job.nearest.similarities[list + i] = candidates.similarities[i];
        job.nearest.words[list + i] = candidates.words[i];
    }
    if (threadIdx.x == 0) {
        job.nearest.counts[row] = count;
        job.nearest.gates[row] = gate;
    }
}

/// A block for each part of a word with very many features.
template <WordMeasure Measure, class Sums>
__global__ __launch_bounds__(kThreads, kBlocks) void add_divided(const WordIndex index,
                                                                 const WordScoresJob job,
                                                                 std::uint32_t first_part,
                                                                 std::uint32_t tile_room) {
    extern __shared__ uint4 memory[];
    const Sums sums(memory, tile_room);
    const WordPart part = index.word_parts[first_part + blockIdx.x];
    sums.load(nullptr, 0, job.tile_words, tile_room);
    __syncthreads();
    add_postings<Measure>(index, part.begin, part.end, job.tile, sums);
    __syncthreads();
    auto* const to = static_cast<typename Sums::Value*>(job.divided_sums) +
                     std::size_t{part.rank} * job.divided_stride;
    for (std::uint32_t i = threadIdx.x; i < job.tile_words; i += kThreads) {
        const typename Sums::Value sum = sums.sum(i);
        if (sum != 0) atomicAdd(&to[i], sum);
    }
}

template <WordMeasure Measure, class Sums, bool All>
Status launch(const WordIndex& index, const WordScoresJob& job, cudaStream_t stream) {
    constexpr auto kernel = score<Measure, Sums, All>;
    constexpr unsigned halves = sizeof(Sums) / sizeof(void*);
    const unsigned room = All ? 0 : candidates_for(job.nearest.top_k);
    const std::uint32_t tile_room =
        (job.tile_words + kAtOnce * kThreads - 1) / (kAtOnce * kThreads) * (kAtOnce * kThreads);
    const std::size_t bytes = std::size_t{tile_room} * halves * 4 + room * 12;
    GPUTEXT_TRY(allow_shared_bytes(kernel, bytes));
    if constexpr (!All) {
        const std::span<const WordPart> parts = job.word_parts;
        const auto first = std::ranges::lower_bound(parts, job.first, {}, &WordPart::word);
        const auto last = std::ranges::lower_bound(parts, job.end, {}, &WordPart::word);
        if (first != last) {
            constexpr auto divided = add_divided<Measure, Sums>;
            const std::size_t sums = std::size_t{tile_room} * halves * 4;
            GPUTEXT_TRY(allow_shared_bytes(divided, sums));
            // The words of this launch alone, whose ranks follow one another.
            const std::uint32_t rank = first->rank, ranks = (last - 1)->rank + 1 - rank;
            GPUTEXT_TRY(cuda_status(
                cudaMemsetAsync(static_cast<typename Sums::Value*>(job.divided_sums) +
                                    rank * job.divided_stride,
                                0, ranks * job.divided_stride * sizeof(typename Sums::Value),
                                stream),
                "clearing sums"));
            divided<<<static_cast<unsigned>(last - first), kThreads, sums, stream>>>(
                index, job, static_cast<std::uint32_t>(first - parts.begin()), tile_room);
            GPUTEXT_TRY(launched("comparing frequent words"));
        }
    }
    kernel<<<job.end - job.first, kThreads, bytes, stream>>>(index, job, tile_room, room);
    return launched("comparing words");
}

template <WordMeasure Measure>
Status launch(const WordIndex& index, const WordScoresJob& job, cudaStream_t stream) {
    if (job.all != nullptr) return launch<Measure, WideSums, true>(index, job, stream);
    if constexpr (Measure != WordMeasure::cosine)
        if (!job.wide) return launch<Measure, NarrowSums, false>(index, job, stream);
    return launch<Measure, WideSums, false>(index, job, stream);
}

}  // namespace

Status NearestWordsMemory::allocate(std::uint32_t rows, std::uint32_t top_k, cudaStream_t stream) {
    const std::size_t size = std::size_t{rows} * top_k;
    GPUTEXT_TRY(similarities.allocate(size, stream));
    GPUTEXT_TRY(words.allocate(size, stream));
    GPUTEXT_TRY(counts.allocate(rows, stream));
    GPUTEXT_TRY(gates.allocate(rows, stream));
    view = {0, top_k, similarities.data(), words.data(), counts.data(), gates.data()};
    return {};
}

Status NearestWordsMemory::clear(std::uint32_t first, std::uint32_t count, cudaStream_t stream) {
    view.first = first;
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(counts.data(), 0, std::size_t{count} * 4, stream),
                            "clearing neighbors"));
    return cuda_status(cudaMemsetAsync(gates.data(), 0, std::size_t{count} * 4, stream),
                       "clearing neighbors");
}

std::uint32_t most_tile_words(bool wide) {
    int device = 0, bytes = 48 << 10;
    if (cudaGetDevice(&device) == cudaSuccess)
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    constexpr std::uint32_t kStep = kAtOnce * kThreads;
    const auto room = static_cast<std::uint32_t>(bytes) - 2048 * 12 - 1024;
    const std::uint32_t words = room / (wide ? 8 : 4) / kStep * kStep;
    return std::min(words, wide ? kWordTile / 2 : kWordTile);
}

Status score_words(const WordIndex& index, const WordScoresJob& job, cudaStream_t stream) {
    if (job.first >= job.end || job.tile_words == 0) return {};
    switch (job.measure) {
        case WordMeasure::lin:
            return launch<WordMeasure::lin>(index, job, stream);
        case WordMeasure::cosine:
            return launch<WordMeasure::cosine>(index, job, stream);
        case WordMeasure::jaccard:
            return launch<WordMeasure::jaccard>(index, job, stream);
    }
    return {ErrorCode::internal_error, "no such measure"};
}

}  // namespace gputext::gpu
