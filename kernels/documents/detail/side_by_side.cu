#include "kernels/base/launch.hpp"
#include "kernels/documents/detail/bit_planes.cuh"
#include "kernels/documents/detail/pair_verifier.hpp"
#include "kernels/documents/detail/side_by_side.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kWords = kSideBits / 32;
constexpr unsigned kVectors = kWords / 4;
constexpr unsigned kThreads = 768;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kLetters = 64;
constexpr unsigned kMostPatterns = 12;

struct SharedMemory {
    uint4 matches[kLetters][kVectors][32];  // one read of a warp is 512 bytes on end
    uint4 rows[kVectors][32];               // bits that are rows of patterns
    std::uint16_t lengths[kMostPatterns][32];
    std::uint32_t strings[kMostPatterns][32];
};

/// Where the patterns of a lane lie: a separator, then pitch - 1 rows, of which the shorter ones
/// leave the last unused. The separator acts as the matrix's row 0: its vertical difference is kept
/// at -1, so that its horizontal one, which the first row takes in, is always +1; and as it is no
/// +1, a carry ends there.
template <unsigned Patterns>
struct Layout {
    static constexpr unsigned pitch = kSideBits / Patterns;

    __host__ __device__ static constexpr std::uint32_t separators(unsigned word) {
        std::uint32_t mask = 0;
        for (unsigned p = 0; p < Patterns; ++p)
            if (p * pitch / 32 == word) mask |= 1u << p * pitch % 32;
        return mask;
    }

    /// Rows just below a separator, whose -1 must not enter it.
    __host__ __device__ static constexpr std::uint32_t tops(unsigned word) {
        std::uint32_t mask = 0;
        for (unsigned p = 1; p < Patterns; ++p)
            if ((p * pitch - 1) / 32 == word) mask |= 1u << (p * pitch - 1) % 32;
        return mask;
    }

    /// Bits of one pattern, the separator too.
    __host__ __device__ static constexpr std::uint32_t bits(unsigned pattern, unsigned word) {
        std::uint32_t mask = 0;
        for (unsigned b = 0; b < 32; ++b)
            if ((32 * word + b) / pitch == pattern) mask |= 1u << b;
        return mask;
    }
};

template <unsigned Value>
struct Constant {
    static constexpr unsigned value = Value;
};

/// body(Constant<Begin>()) to body(Constant<End - 1>()): indices that are constants, such that
/// arrays stay in registers.
template <unsigned Begin, unsigned End, class Body>
__device__ __forceinline__ void unroll(Body&& body) {
    if constexpr (Begin < End) {
        body(Constant<Begin>());
        unroll<Begin + 1, End>(body);
    }
}

template <unsigned Patterns>
__device__ void write_matches(const PartsView& parts, const SideTask& task, SharedMemory& shared) {
    auto* const words = reinterpret_cast<std::uint32_t*>(&shared);
    constexpr unsigned kCleared = (sizeof shared.matches + sizeof shared.rows) / 4;
    for (unsigned i = threadIdx.x; i < kCleared; i += kThreads) words[i] = 0;
    __syncthreads();
    const unsigned lane = threadIdx.x % 32;
    for (unsigned pattern = threadIdx.x / 32; pattern < Patterns; pattern += kWarps) {
        const std::uint32_t part = task.patterns_begin + 32 * pattern + lane;
        const bool is = part < task.patterns_end;
        const std::uint32_t number = is ? parts.order[part] : 0;
        const unsigned length = is ? parts.lengths[part] & 0xffff : 0;
        shared.lengths[pattern][lane] = static_cast<std::uint16_t>(length);
        shared.strings[pattern][lane] = is ? number % parts.strings : 0;
        for (unsigned i = 0; i < length; ++i) {
            const unsigned bit = pattern * Layout<Patterns>::pitch + 1 + i;
            const unsigned value = parts.values[parts.begins[number] + i];
            const auto set = [&](uint4(&vectors)[kVectors][32]) {
                auto* const word = reinterpret_cast<std::uint32_t*>(&vectors[bit / 128][lane]);
                atomicOr(word + bit / 32 % 4, 1u << bit % 32);
            };
            set(shared.matches[value]);
            set(shared.rows);
        }
    }
    __syncthreads();
}

/// The vertical differences of a lane's patterns.
template <unsigned Patterns>
struct Columns {
    std::uint32_t up[kWords];
    std::uint32_t down[kWords];

    __device__ __forceinline__ void start() {
        unroll<0, kWords>([&](auto word) {
            constexpr unsigned w = decltype(word)::value;
            down[w] = Layout<Patterns>::separators(w);
            up[w] = ~down[w];
        });
    }

    __device__ __forceinline__ void advance(const uint4 (&matches)[kVectors][32], unsigned lane) {
        std::uint32_t before_up = 0;
        std::uint32_t before_down = 0;
        unroll<0, kVectors>([&](auto vector) {
            constexpr unsigned v = decltype(vector)::value;
            const uint4 equal = matches[v][lane];
            step<4 * v>(equal.x, before_up, before_down);
            step<4 * v + 1>(equal.y, before_up, before_down);
            step<4 * v + 2>(equal.z, before_up, before_down);
            step<4 * v + 3>(equal.w, before_up, before_down);
        });
    }

    template <unsigned W>
    __device__ __forceinline__ void step(std::uint32_t equal, std::uint32_t& before_up,
                                         std::uint32_t& before_down) {
        constexpr std::uint32_t separators = Layout<Patterns>::separators(W);
        constexpr std::uint32_t tops = Layout<Patterns>::tops(W);
        const std::uint32_t sum =
            W == 0 ? add_first(equal & up[W], up[W]) : add_next(equal & up[W], up[W]);
        const std::uint32_t diagonal = (sum ^ up[W]) | (equal | down[W]);
        const std::uint32_t right_up = down[W] | ~(diagonal | up[W]);
        const std::uint32_t right_down = up[W] & diagonal & ~tops;
        const std::uint32_t shifted_up = __funnelshift_l(before_up, right_up, 1);
        const std::uint32_t shifted_down = __funnelshift_l(before_down, right_down, 1);
        up[W] = shifted_down | ~(diagonal | shifted_up);
        down[W] = (shifted_up & diagonal) | separators;
        before_up = right_up;
        before_down = right_down;
    }

    /// Last row less row 0 of one pattern. `up` and `down` must have been cut to rows.
    template <unsigned Pattern>
    __device__ __forceinline__ int rise() const {
        int sum = 0;
        unroll<0, kWords>([&](auto word) {
            constexpr unsigned w = decltype(word)::value;
            constexpr std::uint32_t bits = Layout<Patterns>::bits(Pattern, w);
            if constexpr (bits != 0) sum += __popc(up[w] & bits) - __popc(down[w] & bits);
        });
        return sum;
    }

    __device__ __forceinline__ void cut(const uint4 (&rows)[kVectors][32], unsigned lane) {
        unroll<0, kVectors>([&](auto vector) {
            constexpr unsigned v = 4 * decltype(vector)::value;
            const uint4 mask = rows[v / 4][lane];
            up[v] &= mask.x, up[v + 1] &= mask.y, up[v + 2] &= mask.z, up[v + 3] &= mask.w;
            down[v] &= mask.x, down[v + 1] &= mask.y, down[v + 2] &= mask.z, down[v + 3] &= mask.w;
        });
    }
};

template <unsigned Patterns>
__global__ __launch_bounds__(kThreads, 1) void compare_side_by_side(
    PartsView parts, const std::uint16_t* most_edits, const SideTask* tasks, std::uint64_t* pairs,
    unsigned long long* found, unsigned long long* checksum) {
    extern __shared__ uint4 memory[];
    SharedMemory& shared = *reinterpret_cast<SharedMemory*>(memory);
    const SideTask task = tasks[blockIdx.x];
    write_matches<Patterns>(parts, task, shared);
    const unsigned lane = threadIdx.x % 32;
    std::uint64_t marks = 0;
    for (std::uint32_t text = task.texts_begin + threadIdx.x / 32; text < task.texts_end;
         text += kWarps) {
        const std::uint32_t number = parts.order[text];
        const unsigned length = parts.lengths[text] & 0xffff;
        const std::uint8_t* values = parts.values + parts.begins[number];
        Columns<Patterns> columns;
        columns.start();
        unsigned next = length > 0 ? values[0] : 0;
        for (unsigned i = 1; i <= length; ++i) {
            const unsigned value = next;
            if (i < length) next = values[i];
            columns.advance(shared.matches[value], lane);
        }
        columns.cut(shared.rows, lane);
        unroll<0, Patterns>([&](auto pattern) {
            constexpr unsigned p = decltype(pattern)::value;
            const std::uint32_t part = task.patterns_begin + 32 * p + lane;
            if (part >= task.patterns_end || part >= text) return;
            const unsigned distance =
                static_cast<unsigned>(static_cast<int>(length) + columns.template rise<p>());
            const std::uint32_t a = shared.strings[p][lane];
            const std::uint32_t b = number % parts.strings;
            if (checksum != nullptr) marks += distance_mark(a, b, distance);
            if (distance <= most_edits[length + shared.lengths[p][lane]])
                pairs[atomicAdd(found, 1ull)] = std::uint64_t{min(a, b)} << 32 | max(a, b);
        });
    }
    if (checksum != nullptr && marks != 0) atomicAdd(checksum, marks);
}

template <unsigned Patterns>
Status run(const PartsView& parts, const std::uint16_t* most_edits, const SideTask* tasks,
           unsigned count, std::uint64_t* pairs, unsigned long long* found,
           unsigned long long* checksum, cudaStream_t stream) {
    constexpr auto kernel = compare_side_by_side<Patterns>;
    GPUTEXT_TRY(
        cuda_status(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(sizeof(SharedMemory))),
                    "asking for shared memory"));
    kernel<<<count, kThreads, sizeof(SharedMemory), stream>>>(parts, most_edits, tasks, pairs,
                                                              found, checksum);
    return launched("comparing signatures");
}

}  // namespace

std::size_t side_shared_bytes() {
    return sizeof(SharedMemory);
}

Status run_side_by_side(unsigned layout, const PartsView& parts, const std::uint16_t* most_edits,
                        const SideTask* tasks, unsigned count, std::uint64_t* pairs,
                        unsigned long long* found, unsigned long long* checksum,
                        cudaStream_t stream) {
    const auto call = [&](auto runner) {
        return runner(parts, most_edits, tasks, count, pairs, found, checksum, stream);
    };
    switch (layout) {
        case 12:
            return call(run<12>);
        case 8:
            return call(run<8>);
        case 6:
            return call(run<6>);
        case 5:
            return call(run<5>);
        case 4:
            return call(run<4>);
        case 2:
            return call(run<2>);
        default:
            return call(run<1>);
    }
}

}  // namespace gputext::gpu
