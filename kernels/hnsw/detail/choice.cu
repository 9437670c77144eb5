#include "kernels/hnsw/detail/choice.hpp"

#include "cpp/hnsw/detail/difference_bound.hpp"
#include "cpp/hnsw/graph.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/knn/exact_distance.cuh"
#include "kernels/knn/fp16_tiles.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kHalfWarps = kThreads / kHalfWarp;
constexpr unsigned kNone = UINT32_MAX;

/// One list.
struct List {
    const std::uint32_t* items;
    const std::uint64_t* keys;
    std::uint32_t stride_of_items, stride_of_keys;
    std::uint32_t count;

    __device__ List(const ListsToChoose& lists, std::uint32_t number)
        : stride_of_items(lists.stride_of_items), stride_of_keys(lists.stride_of_keys) {
        const bool packed = lists.begins != nullptr;
        const std::uint64_t begin =
            packed ? lists.begins[number] : std::uint64_t{number} * lists.capacity;
        items = lists.items + begin * stride_of_items;
        keys = lists.keys + begin * stride_of_keys;
        count = packed ? static_cast<std::uint32_t>(lists.begins[number + 1] - begin)
                       : lists.kept[number];
    }
    __device__ std::uint32_t item(std::uint32_t i) const {
        return items[std::size_t{i} * stride_of_items];
    }
    __device__ double distance(std::uint32_t i) const {
        return __longlong_as_double(
            static_cast<long long>(bits_of_ordered(keys[std::size_t{i} * stride_of_keys])));
    }
};

__device__ void write(const Choice& choice, const List& list, std::size_t place, unsigned from) {
    choice.chosen[place] = from == kNone ? kNoElement : list.item(from);
    if (choice.distances != nullptr)
        choice.distances[place] = from == kNone ? 0.0 : list.distance(from);
}

/// Places in a list: of the rows that were chosen, and of the first ones that were left.
struct Chosen {
    const unsigned *chosen, *left;
    unsigned chosen_count, left_count;
};

/// The block's list, by the block.
__device__ void write_all(const Choice& choice, const List& list, const Chosen& all) {
    const std::size_t to = std::size_t{blockIdx.x} * choice.limit;
    for (unsigned i = threadIdx.x; i < choice.limit; i += kThreads) {
        const unsigned more = i - all.chosen_count;
        write(choice, list, to + i,
              i < all.chosen_count    ? all.chosen[i]
              : more < all.left_count ? all.left[more]
                                      : kNone);
    }
}

/// A list that has no more rows than may be chosen.
__device__ void write_all(const Choice& choice, const List& list) {
    const std::size_t to = std::size_t{blockIdx.x} * choice.limit;
    for (unsigned i = threadIdx.x; i < choice.limit; i += kThreads)
        write(choice, list, to + i, i < list.count ? i : kNone);
}

// ---- By exact distances ----

/// Has a row brought near by the block, while another one is compared.
template <class T>
__device__ void fetch_ahead(const T* row, unsigned dimensions) {
    constexpr unsigned kLine = 128;
    const auto* const bytes = reinterpret_cast<const char*>(row);
    for (unsigned at = threadIdx.x * kLine; at < dimensions * sizeof(T); at += kThreads * kLine)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(bytes + at));
}

/// A block for each list. A candidate is compared with as many of the chosen rows at a time as the
/// block has half warps, first with the one that another candidate was near to last.
template <class T>
__global__ __launch_bounds__(kThreads) void choose_of_lists(ListsToChoose lists, Choice choice,
                                                            std::uint32_t first) {
    extern __shared__ double memory[];
    __shared__ unsigned nearer;
    const std::uint32_t number = first + blockIdx.x, dimensions = choice.rows.dimensions;
    const unsigned limit = choice.limit, lanes = half_warp_lanes();
    double* const candidate = memory;
    // Places in the list: of the chosen rows, of these in the order of comparisons, of left ones
    auto* const chosen = reinterpret_cast<unsigned*>(memory + dimensions);
    unsigned* const order = chosen + limit;
    unsigned* const left = order + limit;
    const auto* const rows = static_cast<const T*>(choice.rows.elements);
    const List list(lists, number);
    if (list.count <= limit) {
        write_all(choice, list);
        return;
    }
    unsigned chosen_count = 0, left_count = 0;
    for (unsigned i = 0; i < list.count && chosen_count < limit; ++i) {
        const T* const row = rows + std::size_t{list.item(i)} * dimensions;
        for (unsigned d = threadIdx.x; d < dimensions; d += kThreads)
            candidate[d] = as_double(row[d]);
        if (i + 1 < list.count)
            fetch_ahead(rows + std::size_t{list.item(i + 1)} * dimensions, dimensions);
        if (threadIdx.x == 0) nearer = kNone;
        const double most = __ddiv_rn(list.distance(i), choice.slack);
        __syncthreads();
        bool found = false;
        for (unsigned base = 0; base < chosen_count && !found; base += kHalfWarps) {
            const unsigned at = base + threadIdx.x / kHalfWarp;
            bool is_nearer = false;
            if (at < chosen_count) {
                const T* const other[1] = {rows + std::size_t{list.item(order[at])} * dimensions};
                is_nearer = exact_distance(choice.metric, ExactQuery{candidate, 0}, other,
                                           dimensions, lanes) <= most;
            }
            if (is_nearer && threadIdx.x % kHalfWarp == 0) atomicMin(&nearer, at);
            found = __syncthreads_or(is_nearer) != 0;
        }
        if (threadIdx.x == 0) {
            if (!found) {
                chosen[chosen_count] = order[chosen_count] = i;
            } else {
                const unsigned last = order[nearer];
                order[nearer] = order[0];
                order[0] = last;
                if (left_count < limit) left[left_count] = i;
            }
        }
        ++(found ? left_count : chosen_count);
        __syncthreads();
    }
    write_all(choice, list, {chosen, left, chosen_count, left_count});
}

// ---- By products of halves ----
//
// Candidates are looked at 64 together. Tensor cores multiply their differences, and those of the
// rows that were chosen before, from the row that others are chosen for, all rounded to halves.
// That decides most pairs (cpp/hnsw/detail/difference_bound.hpp). Of the others exact distances are
// computed where no pair that is decided says that the candidate is left.

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

constexpr unsigned kTogether = half_tiles::kWarpRows;  // candidates
constexpr unsigned kMostChosen = 64;
constexpr unsigned kColumns = kTogether + kMostChosen;
constexpr unsigned kWords = kColumns / 32;
constexpr unsigned kEights = 32 / 8;  // of a warp's columns
static_assert(kWords == kThreads / 32, "a warp for each 32 columns");

/// Columns 0 to 63 are the candidates that are looked at, those from 64 on the chosen rows. What
/// there is of columns beyond these means nothing.
struct ChoiceMemory {
    alignas(16) __half differences[2][kColumns * half_tiles::kDepth];
    std::uint32_t rows[kColumns];
    double distances[kColumns];  // from the row that others are chosen for, scaled
    float squares[kColumns];     // of the rounded differences
    double limits[kTogether];    // chosen rows are not to be as near to a candidate; not scaled
    // Of each candidate, the columns that are as near, and those that it is not known of
    std::uint32_t nearer[kTogether][kWords], unknown[kTogether][kWords];
    unsigned chosen[kMostChosen], left[kMostChosen];
};

/// Four numbers of a row; zeros behind its last one. `Fours`: the dimensions are whole fours.
template <bool Fours, class T>
__device__ float4 four_numbers(const T* row, unsigned first, unsigned dimensions) {
    float4 four = {0, 0, 0, 0};
    if constexpr (Fours) {
        if (first >= dimensions) return four;
        if constexpr (sizeof(T) == sizeof(float)) {
            four = *reinterpret_cast<const float4*>(row + first);
        } else {
            const uint2 halves = *reinterpret_cast<const uint2*>(row + first);
            const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&halves.x));
            const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&halves.y));
            four = {low.x, low.y, high.x, high.y};
        }
    } else {
        const auto number = [&](unsigned i) {
            return i < dimensions ? static_cast<float>(row[i]) : 0.0f;
        };
        four = {number(first), number(first + 1), number(first + 2), number(first + 3)};
    }
    return four;
}

/// Of the columns [first, first + count), the rounded differences in 64 dimensions. By the block.
template <bool Fours, class T>
__device__ void round_differences(const ChoiceMemory& memory, const T* rows, const T* from,
                                  unsigned dimensions, unsigned depth, unsigned first,
                                  unsigned count, float scale, __half* to) {
    constexpr unsigned kFours = half_tiles::kDepth / 4;  // of a row, each a thread's
    constexpr unsigned kAtOnce = kThreads / kFours;
    constexpr unsigned kRounds = kTogether / kAtOnce;
    const unsigned four = threadIdx.x % kFours, dimension = depth + 4 * four;
    const float4 origin = four_numbers<Fours>(from, dimension, dimensions);
    const auto number_of = [&](unsigned round) { return round * kAtOnce + threadIdx.x / kFours; };
    float4 numbers[kRounds];
#pragma unroll
    for (unsigned round = 0; round < kRounds; ++round) {
        if (round * kAtOnce >= count) break;
        // Behind the last one, this one again: so all reads are under way at once.
        const std::uint32_t row = memory.rows[first + min(number_of(round), count - 1)];
        numbers[round] =
            four_numbers<Fours>(rows + std::size_t{row} * dimensions, dimension, dimensions);
    }
#pragma unroll
    for (unsigned round = 0; round < kRounds; ++round) {
        if (number_of(round) >= count) break;
        const float4& number = numbers[round];
        const __half2 low =
            __floats2half2_rn((number.x - origin.x) * scale, (number.y - origin.y) * scale);
        const __half2 high =
            __floats2half2_rn((number.z - origin.z) * scale, (number.w - origin.w) * scale);
        const unsigned column = first + number_of(round);
        __half* const place = to + half_tiles::place_of(column, four / 2) + four % 2 * 4;
        *reinterpret_cast<uint2*>(place) = {*reinterpret_cast<const unsigned*>(&low),
                                            *reinterpret_cast<const unsigned*>(&high)};
    }
}

/// Fills in what is known of the candidates, `count` of them, beside each other and beside the rows
/// that were chosen before. By the block; other threads see it after a barrier.
template <bool Fours, class T>
__device__ void compare_by_products(ChoiceMemory& memory, const Choice& choice, const T* from,
                                    unsigned count, unsigned chosen, float scale) {
    const unsigned dimensions = choice.rows.dimensions;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const auto* const rows = static_cast<const T*>(choice.rows.elements);
    // Whether any of the warp's columns is one
    const bool used = warp < kTogether / 32 ? warp * 32 < count : warp * 32 < kTogether + chosen;
    const auto round = [&](unsigned depth) {
        __half* const to = memory.differences[depth / half_tiles::kDepth % 2];
        round_differences<Fours>(memory, rows, from, dimensions, depth, 0, count, scale, to);
        if (chosen > 0)
            round_differences<Fours>(memory, rows, from, dimensions, depth, kTogether, chosen,
                                     scale, to);
    };
    float sums[kEights][half_tiles::kTiles][4] = {};
    round(0);
    for (unsigned depth = 0; depth < dimensions; depth += half_tiles::kDepth) {
        // All are there, and those before are no longer read.
        __syncthreads();
        if (depth + half_tiles::kDepth < dimensions) round(depth + half_tiles::kDepth);
        const __half* const differences = memory.differences[depth / half_tiles::kDepth % 2];
        if (used) half_tiles::multiply_stage(differences, differences, 0, 32 * warp, sums);
    }
    // Row and column of a sum: see kernels/knn/detail/fp16_product.cuh.
    const auto row_of = [&](unsigned tile, unsigned i) { return 16 * tile + i / 2 * 8 + lane / 4; };
    const auto bit_of = [&](unsigned eight, unsigned i) {
        return 8 * eight + lane % 4 * 2 + i % 2;
    };
    if (warp < kTogether / 32) {
#pragma unroll
        for (unsigned n = 0; n < kEights; ++n)
#pragma unroll
            for (unsigned t = 0; t < half_tiles::kTiles; ++t)
#pragma unroll
                for (unsigned i = 0; i < 4; ++i)
                    if (row_of(t, i) == 32 * warp + bit_of(n, i))
                        memory.squares[row_of(t, i)] = sums[n][t][i];
    }
    __syncthreads();
    if (!used) return;
    const DifferenceBound bound = bound_of_halves(dimensions);
#pragma unroll
    for (unsigned t = 0; t < half_tiles::kTiles; ++t)
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
            const unsigned row = row_of(t, 2 * half);
            const double limit = memory.limits[row] * scale, distance = memory.distances[row];
            const double square = memory.squares[row];
            std::uint32_t nearer = 0, unknown = 0;
#pragma unroll
            for (unsigned n = 0; n < kEights; ++n)
#pragma unroll
                for (unsigned i = 0; i < 2; ++i) {
                    const unsigned bit = bit_of(n, i), column = 32 * warp + bit;
                    const double product = sums[n][t][2 * half + i];
                    const SideOfLimit side =
                        bound.side_of(limit, distance + memory.distances[column],
                                      square + memory.squares[column] - 2 * product);
                    nearer |= static_cast<std::uint32_t>(side == SideOfLimit::below) << bit;
                    unknown |= static_cast<std::uint32_t>(side == SideOfLimit::unknown) << bit;
                }
                // Four lanes have the columns of a row.
#pragma unroll
            for (unsigned other = 1; other < 4; other *= 2) {
                nearer |= __shfl_xor_sync(kAllLanes, nearer, other);
                unknown |= __shfl_xor_sync(kAllLanes, unknown, other);
            }
            if (lane % 4 != 0) continue;
            memory.nearer[row][warp] = nearer;
            memory.unknown[row][warp] = unknown;
        }
}

/// Columns, as bits: among the candidates, and among the rows that were chosen before.
struct SomeColumns {
    std::uint64_t candidates, chosen;

    __device__ static SomeColumns of(const std::uint32_t (&words)[kWords]) {
        static_assert(kWords == 4);
        return {words[0] | std::uint64_t{words[1]} << 32, words[2] | std::uint64_t{words[3]} << 32};
    }
    __device__ SomeColumns among(const SomeColumns& others) const {
        return {candidates & others.candidates, chosen & others.chosen};
    }
    __device__ bool any() const { return (candidates | chosen) != 0; }
    __device__ unsigned count() const {
        return static_cast<unsigned>(__popcll(candidates) + __popcll(chosen));
    }
    /// The n-th of them.
    __device__ unsigned column(unsigned n) const {
        const auto first = static_cast<unsigned>(__popcll(candidates));
        std::uint64_t bits = n < first ? candidates : chosen;
        for (unsigned skip = n < first ? n : n - first; skip > 0; --skip) bits &= bits - 1;
        return static_cast<unsigned>(__ffsll(static_cast<long long>(bits))) - 1 +
               (n < first ? 0 : kTogether);
    }
};

/// Whether one of these columns is as near to a candidate, by exact distances. By the block, which
/// all gets the answer.
template <class T>
__device__ bool any_is_near(const ChoiceMemory& memory, const DeviceRows& all, unsigned candidate,
                            const SomeColumns& columns) {
    const auto* const rows = static_cast<const T*>(all.elements);
    const T* const row = rows + std::size_t{memory.rows[candidate]} * all.dimensions;
    const unsigned count = columns.count(), lanes = half_warp_lanes();
    for (unsigned base = 0; base < count; base += kHalfWarps) {
        const unsigned at = base + threadIdx.x / kHalfWarp;
        bool is_near = false;
        if (at < count) {
            const T* const other[1] = {rows + std::size_t{memory.rows[columns.column(at)]} *
                                                  all.dimensions};
            is_near =
                exact_euclidean(row, other, all.dimensions, lanes) <= memory.limits[candidate];
        }
        if (__syncthreads_or(is_near)) return true;
    }
    return false;
}

/// A block for each list.
template <bool Fours, class T>
__global__ __launch_bounds__(kThreads, 3) void choose_by_products(ListsToChoose lists,
                                                                  Choice choice,
                                                                  std::uint32_t first) {
    __shared__ ChoiceMemory memory;
    const std::uint32_t number = first + blockIdx.x;
    const unsigned limit = choice.limit;
    const List list(lists, number);
    if (list.count <= limit) {
        write_all(choice, list);
        return;
    }
    const T* const from = static_cast<const T*>(choice.rows.elements) +
                          std::size_t{lists.first_row + number} * choice.rows.dimensions;
    const float scale = scale_to_halves(list.distance(list.count - 1));
    unsigned chosen_count = 0, left_count = 0;
    for (unsigned base = 0; base < list.count && chosen_count < limit; base += kTogether) {
        const unsigned count = min(kTogether, list.count - base);
        if (threadIdx.x < count) {
            const double distance = list.distance(base + threadIdx.x);
            memory.rows[threadIdx.x] = list.item(base + threadIdx.x);
            memory.distances[threadIdx.x] = distance * scale;
            memory.limits[threadIdx.x] = __ddiv_rn(distance, choice.slack);
        }
        __syncthreads();
        if (scale > 0) {
            compare_by_products<Fours>(memory, choice, from, count, chosen_count, scale);
        } else {
            for (unsigned i = threadIdx.x; i < kTogether * kWords; i += kThreads) {
                memory.nearer[i / kWords][i % kWords] = 0;
                memory.unknown[i / kWords][i % kWords] = UINT32_MAX;
            }
        }
        __syncthreads();
        // All threads take the same steps.
        SomeColumns chosen{0, (std::uint64_t{1} << chosen_count) - 1};
        for (unsigned i = 0; i < count && chosen_count < limit; ++i) {
            bool found = SomeColumns::of(memory.nearer[i]).among(chosen).any();
            if (!found) {
                const SomeColumns left = SomeColumns::of(memory.unknown[i]).among(chosen);
                found = left.any() && any_is_near<T>(memory, choice.rows, i, left);
            }
            if (!found) {
                if (threadIdx.x == 0) {
                    const unsigned column = kTogether + chosen_count;
                    memory.chosen[chosen_count] = base + i;
                    memory.rows[column] = memory.rows[i];
                    memory.distances[column] = memory.distances[i];
                    memory.squares[column] = memory.squares[i];
                }
                chosen.candidates |= std::uint64_t{1} << i;
                ++chosen_count;
            } else {
                if (threadIdx.x == 0 && left_count < limit) memory.left[left_count] = base + i;
                ++left_count;
            }
        }
        __syncthreads();
    }
    write_all(choice, list, {memory.chosen, memory.left, chosen_count, left_count});
}

#else

template <bool Fours, class T>
__global__ void choose_by_products(ListsToChoose, Choice, std::uint32_t) {}

#endif

constexpr unsigned kMostByProducts = 64;   // of the limit
constexpr unsigned kLeastDimensions = 64;  // of fewer, exact distances are as fast

/// Whether choose_by_products() is for it, on the current device.
Status multiplies(const Choice& choice, bool& answer) {
    answer = choice.metric == Metric::euclidean && choice.limit <= kMostByProducts &&
             choice.rows.dimensions >= kLeastDimensions;
    return answer ? has_capability(8, answer) : Status();
}

}  // namespace

Status choose(const ListsToChoose& lists, const Choice& choice, std::uint32_t begin,
              std::uint32_t end, cudaStream_t stream) {
    if (begin == end) return {};
    const std::size_t bytes =
        choice.rows.dimensions * sizeof(double) + 3 * std::size_t{choice.limit} * sizeof(unsigned);
    bool by_products = false;
    GPUTEXT_TRY(multiplies(choice, by_products));
    const auto run = [&](auto element) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(element)>>;
        if (by_products) {
            const auto kernel = choice.rows.dimensions % 4 == 0 ? choose_by_products<true, T>
                                                                : choose_by_products<false, T>;
            kernel<<<end - begin, kThreads, 0, stream>>>(lists, choice, begin);
            return launched("choosing links");
        }
        GPUTEXT_TRY(allow_shared_bytes(choose_of_lists<T>, bytes));
        choose_of_lists<T><<<end - begin, kThreads, bytes, stream>>>(lists, choice, begin);
        return launched("choosing links");
    };
    return choice.rows.type == ElementType::float16 ? run(static_cast<const __half*>(nullptr))
                                                    : run(static_cast<const float*>(nullptr));
}

}  // namespace gputext::gpu
