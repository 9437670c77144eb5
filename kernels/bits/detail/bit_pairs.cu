#include "kernels/bits/detail/bit_pairs.hpp"

#include <climits>

#include "kernels/base/bit_product.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define GPUTEXT_BIT_PRODUCT 1
#else
#pragma nv_diag_suppress 177  // what is used by these kernels alone
#endif

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kProducts = 4;  // of 16 rows, held by a warp
constexpr unsigned kWarpRows = 16 * kProducts;
static_assert(kBlockRows == kWarps * kWarpRows);
static_assert(kWarpRows == 2 * kWarp, "a lane looks after two rows");
constexpr unsigned kHalves = 2 * kProducts;  // rows of a lane
constexpr int kNever = INT_MIN / 2;
/// Tiles of columns whose words a lane has at once.
constexpr unsigned kTogether = 4;
constexpr std::uint32_t kNoOnes = UINT32_MAX;  // of a row that there is none of
/// More than all that is rounded where the least ones in common follow from a limit.
constexpr double kSlack = 1e-6;

// ---- Distances in whole numbers ----

template <BitMetric Metric>
__device__ std::uint32_t steps_of(std::uint32_t a, std::uint32_t b, std::uint32_t common) {
    if constexpr (Metric == BitMetric::hamming) return a + b - 2 * common;
    const std::uint32_t either = a + b - common;
    if (common == 0) return 1u << 31;
    return static_cast<std::uint32_t>(
        __dmul_rn(__ddiv_rn(either - common, either), kStepsOfOne));
}

/// The fewest ones in common within so many steps, or fewer; kNever where they never are.
template <BitMetric Metric>
__device__ int least_ones(std::uint32_t a, std::uint32_t b, std::uint32_t steps) {
    const int most = static_cast<int>(min(a, b));
    double least;
    if constexpr (Metric == BitMetric::hamming) {
        const double both = __dadd_rn(a, b);
        least = steps >= a + b ? 0.0 : __dmul_rn(__dsub_rn(both, steps), 0.5);
    } else {
        const double below = __ddiv_rn(__dadd_rn(steps, 1.0), kStepsOfOne);
        least = below >= 1 ? 0.0
                           : __ddiv_rn(__dmul_rn(__dadd_rn(a, b), __dsub_rn(1.0, below)),
                                       __dsub_rn(2.0, below));
    }
    const int ones = static_cast<int>(ceil(least - kSlack));
    return ones > most ? INT_MAX : max(ones, 0);
}

// ---- What a warp has ----

/// Of a warp's rows, in shared memory.
struct WarpRows {
    NearKey limits[kWarpRows];
    std::uint32_t ones[kWarpRows];
    std::uint32_t counts[kWarpRows];  // of their lists
};

/// A lane's words of its rows. `Held` products, or 0 for any number, which are read again and
/// again.
template <unsigned Held>
struct HeldRows {
    std::uint32_t words[Held == 0 ? 1 : Held][kProducts][4];
};

/// Words of a lane: of the place that its quarter of the warp has.
__device__ uint2 words_of(const BitSide& side, std::uint32_t products, std::uint32_t place,
                          std::uint32_t product) {
    const unsigned lane = threadIdx.x % kWarp;
    return __ldg(reinterpret_cast<const uint2*>(side.words) +
                 (std::size_t{place} * products + product) * (kProductWords / 2) + lane % 4);
}

__device__ void read_rows(const BitSearch& search, std::uint32_t of_warp, std::uint32_t product,
                          std::uint32_t (&words)[kProducts][4]) {
    const unsigned lane = threadIdx.x % kWarp;
#pragma unroll
    for (unsigned half = 0; half < kHalves; ++half) {
        const std::uint32_t row = min(of_warp + lane / 4 + 8 * half, search.rows.places - 1);
        const uint2 two = words_of(search.rows, search.products, row, product);
        words[half / 2][half % 2] = two.x;
        words[half / 2][2 + half % 2] = two.y;
    }
}

/// Adds a product to the sums of a warp's rows and a tile.
__device__ void add_product(int (&sums)[kProducts][4], const std::uint32_t (&rows)[kProducts][4],
                            uint2 column) {
#ifdef GPUTEXT_BIT_PRODUCT
#pragma unroll
    for (unsigned t = 0; t < kProducts; ++t) {
        const int before[4] = {sums[t][0], sums[t][1], sums[t][2], sums[t][3]};
        multiply_bits(sums[t], rows[t], column, before);
    }
#endif
}

__device__ void begin_sums(int (&sums)[kProducts][4], const int (&starts)[kHalves]) {
#pragma unroll
    for (unsigned t = 0; t < kProducts; ++t)
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) sums[t][k] = starts[2 * t + k / 2];
}

/// Below zero if all sums are.
__device__ int sign_of_all(const int (&sums)[kProducts][4]) {
    int all = -1;
#pragma unroll
    for (unsigned t = 0; t < kProducts; ++t)
        all &= sums[t][0] & sums[t][1] & sums[t][2] & sums[t][3];
    return all;
}

// ---- Lists of the nearest ----

/// The largest key that fewer than k of the list are below, as far as bits from `first` down tell.
__device__ NearKey kth_key(const NearKey* list, std::uint32_t count, std::uint32_t k,
                           NearKey known, int first, int last) {
    const unsigned lane = threadIdx.x % kWarp;
    for (int bit = first; bit >= last; --bit) {
        const NearKey more = known | NearKey{1} << bit;
        std::uint32_t below = 0;
        for (std::uint32_t i = lane; i < count; i += kWarp) below += list[i] < more;
        if (warp_sum(below) < k) known = more;
    }
    return known;
}

/// Leaves the keys up to the limit; how many they are.
__device__ std::uint32_t keep_up_to(NearKey* list, std::uint32_t count, NearKey limit) {
    const unsigned lane = threadIdx.x % kWarp;
    std::uint32_t kept = 0;
    for (std::uint32_t begin = 0; begin < count; begin += kWarp) {
        const std::uint32_t i = begin + lane;
        const NearKey key = i < count ? list[i] : kNoKeyYet;
        const bool is = i < count && key <= limit;
        const unsigned lanes = __ballot_sync(kAllLanes, is);
        if (is) list[kept + lanes_before(lanes, lane)] = key;
        kept += __popc(lanes);
    }
    __syncwarp();
    return kept;
}

/// Keeps the nearest columns of the warp's rows.
template <BitMetric Metric>
class NearestSink {
public:
    __device__ NearestSink(const BitSearch& search, const PlaceRange& rows,
                           const NearestRows& nearest, std::uint32_t of_warp, WarpRows& own)
        : search_(search), rows_(rows), nearest_(nearest), of_warp_(of_warp), own_(own) {}

    __device__ bool goes_on() const { return true; }
    __device__ void add(bool is, std::uint32_t row, NearKey key) {
        if (!is || key > own_.limits[row]) return;
        list(row)[atomicAdd(&own_.counts[row], 1u)] = key;
    }
    /// Makes room for one more tile. Whether limits may have changed.
    __device__ bool make_room() {
        const unsigned lane = threadIdx.x % kWarp;
        __syncwarp();
        bool any = false;
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
            const bool full = own_.counts[half * kWarp + lane] > nearest_.capacity - kTilePlaces;
            for (unsigned lanes = __ballot_sync(kAllLanes, full); lanes != 0; lanes &= lanes - 1) {
                cut(half * kWarp + __ffs(static_cast<int>(lanes)) - 1, false);
                any = true;
            }
        }
        return any;
    }
    /// Other blocks may have lowered limits.
    __device__ void read_limits() {
        const unsigned lane = threadIdx.x % kWarp;
        if (nearest_.parts == 1) return;
        __syncwarp();
        for (unsigned row = lane; row < kWarpRows; row += kWarp)
            if (own_.ones[row] != kNoOnes)
                own_.limits[row] = min(own_.limits[row], search_.limits[of_warp_ + row]);
        __syncwarp();
    }
    __device__ void finish() {
        const unsigned lane = threadIdx.x % kWarp;
        __syncwarp();
        for (unsigned row = 0; row < kWarpRows; ++row) {
            if (of_warp_ + row >= rows_.end) break;
            if (own_.counts[row] > nearest_.k) cut(row, true);
            const std::uint32_t count = own_.counts[row];
            NearKey* const to = nearest_.nearest + place_of(row) * nearest_.k;
            for (std::uint32_t i = lane; i < nearest_.k; i += kWarp)
                to[i] = i < count ? list(row)[i] : kNoKeyYet;
        }
    }

private:
    __device__ std::size_t place_of(unsigned row) const {
        return (std::size_t{of_warp_ - rows_.begin} + row) * nearest_.parts + blockIdx.y;
    }
    __device__ NearKey* list(unsigned row) const {
        return nearest_.lists + place_of(row) * nearest_.capacity;
    }
    /// Leaves the k nearest, or a few more as far as the k-th, and limits the row by them. Its list
    /// has more than k.
    __device__ void cut(unsigned row, bool exactly) {
        const unsigned lane = threadIdx.x % kWarp;
        constexpr int kHighest = 32 + (Metric == BitMetric::hamming ? 16 : 31);
        NearKey* const keys = list(row);
        const std::uint32_t count = own_.counts[row], k = nearest_.k;
        NearKey limit = kth_key(keys, count, k, 0, kHighest, 32);
        std::uint32_t within = 0;
        for (std::uint32_t i = lane; i < count; i += kWarp) within += keys[i] >> 32 <= limit >> 32;
        if (exactly || warp_sum(within) > k + k / 2 + kWarp)
            limit = kth_key(keys, count, k, limit, 31, 0);
        else
            limit |= UINT32_MAX;
        const std::uint32_t kept = keep_up_to(keys, count, limit);
        if (lane == 0) {
            own_.counts[row] = kept;
            own_.limits[row] = min(own_.limits[row], limit);
            if (nearest_.parts > 1) atomicMin(&search_.limits[of_warp_ + row], limit);
        }
        __syncwarp();
    }

    const BitSearch& search_;
    const PlaceRange& rows_;
    const NearestRows& nearest_;
    std::uint32_t of_warp_;
    WarpRows& own_;
};

/// Lists all columns within the limits.
class WithinSink {
public:
    __device__ WithinSink(const NearPairs& pairs, std::uint32_t of_warp, const WarpRows& own)
        : pairs_(pairs), of_warp_(of_warp), own_(own) {}

    /// What is found is of no use where the list is full.
    __device__ bool goes_on() const { return fit_; }
    __device__ void add(bool is, std::uint32_t row, NearKey key) {
        is = is && key <= own_.limits[row];
        const unsigned lanes = __ballot_sync(kAllLanes, is);
        if (lanes == 0) return;
        const unsigned long long at = take_places(pairs_.found, lanes, threadIdx.x % kWarp);
        const bool fits = !is || at < pairs_.capacity;
        if (is && fits) pairs_.data[at] = {of_warp_ + row, static_cast<std::uint32_t>(key)};
        fit_ = __all_sync(kAllLanes, fits) && fit_;
    }
    __device__ bool make_room() { return false; }
    __device__ void read_limits() {}
    __device__ void finish() {}

private:
    const NearPairs& pairs_;
    std::uint32_t of_warp_;
    const WarpRows& own_;
    bool fit_ = true;
};

// ---- Rows beside columns ----

template <BitMetric Metric, unsigned Held, class Sink>
class ColumnSearch {
public:
    __device__ ColumnSearch(const BitSearch& search, std::uint32_t of_warp, const WarpRows& own,
                            Sink& sink)
        : search_(search), of_warp_(of_warp), own_(own), sink_(sink) {
        if constexpr (Held > 0) {
#pragma unroll
            for (unsigned product = 0; product < Held; ++product)
                read_rows(search_, of_warp_, product, held_.words[product]);
        }
    }

    /// Groups of about as many ones as the rows first, on both sides until no row can be near.
    __device__ void run(std::uint32_t fewest, std::uint32_t most) {
        const std::uint32_t middle = fewest + (most - fewest) / 2;
        std::uint32_t above = 0, count = search_.group_count;
        while (count > 0) {
            const std::uint32_t half = count / 2;
            const bool fewer = search_.groups[above + half].ones < middle;
            above = fewer ? above + half + 1 : above;
            count = fewer ? count - half - 1 : half;
        }
        std::uint32_t below = above;
        std::uint32_t end = search_.group_count;
        while (sink_.goes_on() && (below > 0 || above < end)) {
            const bool up = below == 0 || (above < end && search_.groups[above].ones - middle <=
                                                              middle - search_.groups[below - 1].ones);
            const std::uint32_t number = up ? above++ : --below;
            const OnesGroup group = search_.groups[number];
            if (search_group(group, number)) continue;
            if (up && group.ones >= most) end = 0;
            if (!up && group.ones <= fewest) below = 0;
        }
        sink_.finish();
    }

private:
    /// False where no row can be near.
    __device__ bool search_group(const OnesGroup& group, std::uint32_t number) {
        ones_ = group.ones;
        sink_.read_limits();
        if (!set_starts()) return false;
        // The part of a block, another one in each group
        const std::uint32_t tiles = (group.end - group.begin) / kTilePlaces;
        const std::uint32_t each = (tiles + gridDim.y - 1) / gridDim.y;
        const std::uint32_t part = (blockIdx.y + number) % gridDim.y;
        const std::uint32_t begin = group.begin + kTilePlaces * min(tiles, part * each);
        const std::uint32_t end = group.begin + kTilePlaces * min(tiles, (part + 1) * each);
        if constexpr (Held > 0)
            search_held(begin, end);
        else
            search_any(begin, end);
        return true;
    }

    /// What sums begin with, so that their sign tells. False where no row can be near.
    __device__ bool set_starts() {
        bool any = false;
        const unsigned lane = threadIdx.x % kWarp;
#pragma unroll
        for (unsigned half = 0; half < kHalves; ++half) {
            const unsigned row = lane / 4 + 8 * half;
            starts_[half] = kNever;
            if (own_.ones[row] == kNoOnes) continue;
            const int least = least_ones<Metric>(
                own_.ones[row], ones_, static_cast<std::uint32_t>(own_.limits[row] >> 32));
            if (least == INT_MAX) continue;
            starts_[half] = -least;
            any = true;
        }
        return __any_sync(kAllLanes, any);
    }

    /// Columns of few products: the rows' words are held, and words of columns read ahead.
    __device__ void search_held(std::uint32_t begin, std::uint32_t end) {
        constexpr unsigned kTiles = kTogether / Held == 0 ? 1 : kTogether / Held;
        const unsigned lane = threadIdx.x % kWarp;
        uint2 next[kTiles][Held];
        const auto read = [&](std::uint32_t from) {
#pragma unroll
            for (unsigned i = 0; i < kTiles; ++i) {
                // What is read behind the end is not looked at.
                const std::uint32_t place =
                    min(from + i * kTilePlaces, end - kTilePlaces) + lane / 4;
#pragma unroll
                for (unsigned product = 0; product < Held; ++product)
                    next[i][product] = words_of(search_.columns, Held, place, product);
            }
        };
        if (begin >= end) return;
        read(begin);
        for (std::uint32_t from = begin; from < end && sink_.goes_on();
             from += kTiles * kTilePlaces) {
            uint2 words[kTiles][Held];
#pragma unroll
            for (unsigned i = 0; i < kTiles; ++i)
#pragma unroll
                for (unsigned product = 0; product < Held; ++product)
                    words[i][product] = next[i][product];
            read(min(from + kTiles * kTilePlaces, end - kTilePlaces));
            unsigned near = 0;
#pragma unroll
            for (unsigned i = 0; i < kTiles; ++i) {
                int sums[kProducts][4];
                begin_sums(sums, starts_);
#pragma unroll
                for (unsigned product = 0; product < Held; ++product)
                    add_product(sums, held_.words[product], words[i][product]);
                near |= sign_of_all(sums) >= 0 ? 1u << i : 0u;
            }
            take_tiles(near, from, end);
        }
    }

    /// Columns of any number of products.
    __device__ void search_any(std::uint32_t begin, std::uint32_t end) {
        const unsigned lane = threadIdx.x % kWarp;
        for (std::uint32_t from = begin; from < end && sink_.goes_on();
             from += kTogether * kTilePlaces) {
            int sums[kTogether][kProducts][4];
#pragma unroll
            for (unsigned i = 0; i < kTogether; ++i) begin_sums(sums[i], starts_);
            for (std::uint32_t product = 0; product < search_.products; ++product) {
                read_rows(search_, of_warp_, product, held_.words[0]);
#pragma unroll
                for (unsigned i = 0; i < kTogether; ++i) {
                    const std::uint32_t place =
                        min(from + i * kTilePlaces, end - kTilePlaces) + lane / 4;
                    add_product(sums[i], held_.words[0],
                                words_of(search_.columns, search_.products, place, product));
                }
            }
            unsigned near = 0;
#pragma unroll
            for (unsigned i = 0; i < kTogether; ++i)
                near |= sign_of_all(sums[i]) >= 0 ? 1u << i : 0u;
            take_tiles(near, from, end);
        }
    }

    /// Adds the pairs of the tiles in which a lane has one that is near, a bit each. Their sums are
    /// computed again, so that registers need not hold them.
    __device__ void take_tiles(unsigned near, std::uint32_t from, std::uint32_t end) {
        if (!__any_sync(kAllLanes, near != 0)) return;
        const unsigned lane = threadIdx.x % kWarp;
#pragma unroll 1
        for (unsigned tiles = warp_or(near); tiles != 0; tiles &= tiles - 1) {
            const std::uint32_t tile =
                from + (__ffs(static_cast<int>(tiles)) - 1) * kTilePlaces;
            if (tile >= end) return;
            int sums[kProducts][4];
            begin_sums(sums, starts_);
            if constexpr (Held > 0) {
#pragma unroll
                for (unsigned product = 0; product < Held; ++product)
                    add_product(sums, held_.words[product],
                                words_of(search_.columns, Held, tile + lane / 4, product));
            } else {
                for (std::uint32_t product = 0; product < search_.products; ++product) {
                    read_rows(search_, of_warp_, product, held_.words[0]);
                    add_product(sums, held_.words[0],
                                words_of(search_.columns, search_.products, tile + lane / 4,
                                         product));
                }
            }
            take(sums, tile);
        }
    }

    /// Adds the pairs of a tile whose sums are not below zero.
    __device__ void take(const int (&sums)[kProducts][4], std::uint32_t tile) {
        const unsigned lane = threadIdx.x % kWarp;
        unsigned passed = 0;
#pragma unroll
        for (unsigned t = 0; t < kProducts; ++t)
#pragma unroll
            for (unsigned k = 0; k < 4; ++k) passed |= sums[t][k] >= 0 ? 1u << (4 * t + k) : 0u;
        while (__any_sync(kAllLanes, passed != 0)) {
            const unsigned number = passed != 0 ? __ffs(static_cast<int>(passed)) - 1 : 0;
            int common = 0;
            // Indices that the compiler knows keep the sums in registers.
#pragma unroll
            for (unsigned t = 0; t < kProducts; ++t)
#pragma unroll
                for (unsigned k = 0; k < 4; ++k)
                    if (4 * t + k == number) common = sums[t][k] - starts_[2 * t + k / 2];
            const unsigned row = lane / 4 + number / 2 * 8;
            const std::uint32_t column = tile + lane % 4 * 2 + number % 2;
            bool is = passed != 0;
            NearKey key = kNoKeyYet;
            if (is) {
                const std::uint32_t item = __ldg(search_.columns.numbers + column);
                is = item != kNoRow && (search_.rows.keys == nullptr ||
                                        search_.rows.keys[of_warp_ + row] !=
                                            search_.columns.keys[column]);
                key = NearKey{steps_of<Metric>(own_.ones[row], ones_,
                                               static_cast<std::uint32_t>(common))}
                          << 32 |
                      item;
            }
            sink_.add(is, row, key);
            passed &= passed - 1;
        }
        if (sink_.make_room()) set_starts();
    }

    const BitSearch& search_;
    std::uint32_t of_warp_;
    const WarpRows& own_;
    Sink& sink_;
    HeldRows<Held> held_;
    std::uint32_t ones_ = 0;  // of the group
    int starts_[kHalves];
};

/// Reads what is known of the warp's rows. False where there are none.
__device__ bool read_warp(const BitSearch& search, const PlaceRange& rows, std::uint32_t of_warp,
                          WarpRows& own, std::uint32_t& fewest, std::uint32_t& most) {
    if (of_warp >= rows.end) return false;
    const unsigned lane = threadIdx.x % kWarp;
    fewest = kNoOnes;
    most = 0;
    for (unsigned row = lane; row < kWarpRows; row += kWarp) {
        const std::uint32_t place = of_warp + row;
        const bool is = place < rows.end;
        own.ones[row] = is ? search.rows.ones[place] : kNoOnes;
        own.limits[row] = is ? search.limits[place] : 0;
        own.counts[row] = 0;
        if (!is) continue;
        fewest = min(fewest, own.ones[row]);
        most = max(most, own.ones[row]);
    }
    fewest = warp_min(fewest);
    most = warp_max(most);
    __syncwarp();
    return true;
}

template <BitMetric Metric, unsigned Held>
__global__ __launch_bounds__(kThreads, 2) void nearest_kernel(const BitSearch search,
                                                              const PlaceRange rows,
                                                              const NearestRows nearest) {
#ifdef GPUTEXT_BIT_PRODUCT
    __shared__ WarpRows of_warps[kWarps];
    const unsigned warp = threadIdx.x / kWarp;
    const std::uint32_t of_warp = rows.begin + blockIdx.x * kBlockRows + warp * kWarpRows;
    std::uint32_t fewest, most;
    if (!read_warp(search, rows, of_warp, of_warps[warp], fewest, most)) return;
    NearestSink<Metric> sink(search, rows, nearest, of_warp, of_warps[warp]);
    ColumnSearch<Metric, Held, NearestSink<Metric>>(search, of_warp, of_warps[warp], sink)
        .run(fewest, most);
#endif
}

template <BitMetric Metric, unsigned Held>
__global__ __launch_bounds__(kThreads, 2) void within_kernel(const BitSearch search,
                                                             const PlaceRange rows,
                                                             const NearPairs pairs) {
#ifdef GPUTEXT_BIT_PRODUCT
    __shared__ WarpRows of_warps[kWarps];
    const unsigned warp = threadIdx.x / kWarp;
    const std::uint32_t of_warp = rows.begin + blockIdx.x * kBlockRows + warp * kWarpRows;
    std::uint32_t fewest, most;
    if (!read_warp(search, rows, of_warp, of_warps[warp], fewest, most)) return;
    WithinSink sink(pairs, of_warp, of_warps[warp]);
    ColumnSearch<Metric, Held, WithinSink>(search, of_warp, of_warps[warp], sink).run(fewest, most);
#endif
}

/// Calls body.operator()<Metric, Held>().
template <class Body>
void with_kernel(const BitSearch& search, Body&& body) {
    const auto of_metric = [&]<BitMetric Metric>() {
        if (search.products == 1)
            body.template operator()<Metric, 1>();
        else if (search.products == 2)
            body.template operator()<Metric, 2>();
        else
            body.template operator()<Metric, 0>();
    };
    if (search.metric == BitMetric::hamming)
        of_metric.template operator()<BitMetric::hamming>();
    else
        of_metric.template operator()<BitMetric::jaccard>();
}

dim3 grid_of(const PlaceRange& rows, std::uint32_t parts) {
    return {(rows.end - rows.begin + kBlockRows - 1) / kBlockRows, parts};
}

}  // namespace

Status find_nearest(const BitSearch& search, const PlaceRange& rows, const NearestRows& nearest,
                    cudaStream_t stream) {
    const dim3 grid = grid_of(rows, nearest.parts);
    with_kernel(search, [&]<BitMetric Metric, unsigned Held>() {
        nearest_kernel<Metric, Held><<<grid, kThreads, 0, stream>>>(search, rows, nearest);
    });
    return launched("looking for the nearest bits");
}

Status find_within(const BitSearch& search, const PlaceRange& rows, std::uint32_t parts,
                   const NearPairs& pairs, cudaStream_t stream) {
    const dim3 grid = grid_of(rows, parts);
    with_kernel(search, [&]<BitMetric Metric, unsigned Held>() {
        within_kernel<Metric, Held><<<grid, kThreads, 0, stream>>>(search, rows, pairs);
    });
    return launched("looking for near bits");
}

}  // namespace gputext::gpu
