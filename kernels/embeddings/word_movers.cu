#include "kernels/embeddings/word_movers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/base/device_buffer.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/base/warp.cuh"

namespace gputext::gpu {

// Solver of cpp/embeddings/detail/optimal_transport.hpp by one warp, for at most 32 * C rows and
// columns. Lane l has rows and columns l, l + 32 .. in its registers, and the warp its costs and
// what is carried in shared memory. The same potentials and searches as the CPU's; in a tie a
// column that lacks something goes first. The total follows from the potentials: sum of supply * u
// and demand * v.

template <int C>
class WarpTransport {
public:
    static constexpr unsigned most = kWarp * C;         // rows, or columns
    static constexpr unsigned words = 2 * most * most;  // of shared memory

    /// `shared` has words; the first most * most of them are for the costs, c[i][j] at
    /// [i * most + j].
    __device__ WarpTransport(std::uint32_t* shared, unsigned rows, unsigned columns, unsigned lane)
        : costs_(shared),
          carried_(shared + most * most),
          rows_(rows),
          columns_(columns),
          lane_(lane) {}

    /// The least total. Costs are there; lane l gives what it has of supplies and demands, 0 beyond
    /// the last ones. All lanes return it.
    __device__ std::uint64_t solve(const std::uint32_t (&supplies)[C],
                                   const std::uint32_t (&demands)[C]) {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            supply_[c] = supplies[c];
            demand_[c] = demands[c];
            v_[c] = 0;
            u_[c] = 0;
        }
        for (unsigned j = 0; j < columns_; ++j)
            for (unsigned i = lane_; i < rows_; i += kWarp) carried_[j * most + i] = 0;
        __syncwarp();
        set_column_potentials();
        for (unsigned row = 0; row < rows_; ++row) begin_row(row);
        for (unsigned row = 0; row < rows_; ++row) {
            std::uint32_t left = of_lane(supply_, row);
            while (left > 0) {
                search(row);
                change_potentials();
                left -= augment(row, left);
            }
        }
        std::int64_t total = 0;
#pragma unroll
        for (int c = 0; c < C; ++c)
            total += static_cast<std::int64_t>(supplies[c]) * u_[c] +
                     static_cast<std::int64_t>(demands[c]) * v_[c];
        return static_cast<std::uint64_t>(warp_sum(total));
    }

    /// The larger one of the sums of mass times the least cost, of rows and of columns.
    __device__ std::uint64_t relaxed(const std::uint32_t (&supplies)[C],
                                     const std::uint32_t (&demands)[C]) {
#pragma unroll
        for (int c = 0; c < C; ++c) v_[c] = 0;
        set_column_potentials();
        std::uint64_t forth = 0, back = 0;
#pragma unroll
        for (int c = 0; c < C; ++c) back += static_cast<std::uint64_t>(demands[c]) * v_[c];
        for (unsigned row = 0; row < rows_; ++row) {
            std::uint32_t least = UINT32_MAX;
#pragma unroll
            for (int c = 0; c < C; ++c)
                if (column(c) < columns_) least = min(least, costs_[row * most + column(c)]);
            least = warp_min(least);
            forth += static_cast<std::uint64_t>(of_lane(supplies, row)) * least;
        }
        return max(forth, warp_sum(back));
    }

private:
    __device__ unsigned column(int c) const {
        return lane_ + kWarp * static_cast<unsigned>(c);
    }

    /// The element of an array over rows or columns, from the lane that has it.
    template <class T>
    __device__ T of_lane(const T (&values)[C], unsigned index) const {
        T value = values[0];
#pragma unroll
        for (int c = 1; c < C; ++c)
            if (index / kWarp == static_cast<unsigned>(c)) value = values[c];
        return __shfl_sync(kAllLanes, value, static_cast<int>(index % kWarp));
    }

    __device__ bool has(unsigned index, int c) const {
        return index == column(c);
    }

    __device__ void set_column_potentials() {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if (column(c) >= columns_) continue;
            std::uint32_t least = UINT32_MAX;
            for (unsigned row = 0; row < rows_; ++row)
                least = min(least, costs_[row * most + column(c)]);
            v_[c] = static_cast<std::int32_t>(least);
        }
    }

    /// The row's potential, and what can be carried where the cost is just that of the potentials.
    __device__ void begin_row(unsigned row) {
        std::int32_t rest[C];
        std::uint32_t least = UINT32_MAX;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            rest[c] = INT32_MAX;
            if (column(c) >= columns_) continue;
            rest[c] = static_cast<std::int32_t>(costs_[row * most + column(c)]) - v_[c];
            least = min(least, static_cast<std::uint32_t>(rest[c]));
        }
        const auto u = static_cast<std::int32_t>(warp_min(least));
        std::uint32_t left = of_lane(supply_, row);
#pragma unroll
        for (int c = 0; c < C; ++c) {
            unsigned tight = __ballot_sync(kAllLanes, rest[c] == u && demand_[c] > 0);
            while (tight != 0 && left > 0) {
                const int at = __ffs(static_cast<int>(tight)) - 1;
                tight &= tight - 1;
                const std::uint32_t mass = min(left, __shfl_sync(kAllLanes, demand_[c], at));
                left -= mass;
                if (lane_ == static_cast<unsigned>(at)) {
                    demand_[c] -= mass;
                    carried_[column(c) * most + row] = mass;
                }
            }
            if (has(row, c)) u_[c] = u;
        }
#pragma unroll
        for (int c = 0; c < C; ++c)
            if (has(row, c)) supply_[c] = left;
        __syncwarp();
    }

    __device__ void relax(unsigned row, std::uint32_t distance) {
        const std::uint32_t offset = distance - static_cast<std::uint32_t>(of_lane(u_, row));
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if (closed_[c]) continue;
            const std::uint32_t there =
                offset + costs_[row * most + column(c)] - static_cast<std::uint32_t>(v_[c]);
            if (there < distance_[c]) {
                distance_[c] = there;
                from_[c] = row;
            }
        }
    }

    /// `end_`: a nearest column that lacks something, `length_` its distance.
    __device__ void search(unsigned row) {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            closed_[c] = column(c) >= columns_;
            scanned_[c] = false;
            distance_[c] = UINT32_MAX;
            reached_[c] = has(row, c) || column(c) >= rows_;
            row_distance_[c] = 0;
        }
        relax(row, 0);
        for (;;) {
            std::uint32_t nearest = UINT32_MAX;
#pragma unroll
            for (int c = 0; c < C; ++c)
                if (!closed_[c]) nearest = min(nearest, distance_[c]);
            length_ = warp_min(nearest);
            // This lane's state: 0 for none, 1 for a column at that distance, 2 if it lacks
            // something.
            int best = 0, mine = 0;
#pragma unroll
            for (int c = 0; c < C; ++c) {
                if (closed_[c] || distance_[c] != length_) continue;
                const int rank = demand_[c] > 0 ? 2 : 1;
                if (rank > best) best = rank, mine = c;
            }
            const unsigned lacking = __ballot_sync(kAllLanes, best == 2);
            const unsigned any = lacking != 0 ? lacking : __ballot_sync(kAllLanes, best == 1);
            const int at = __ffs(static_cast<int>(any)) - 1;
            const unsigned of_lane_at =
                static_cast<unsigned>(C == 1 ? 0 : __shfl_sync(kAllLanes, mine, at));
            end_ = of_lane_at * kWarp + static_cast<unsigned>(at);
            if (lacking != 0) return;
            scan(end_);
        }
    }

    /// Closes the column, and goes on from all rows that carry something to it.
    __device__ void scan(unsigned from) {
        unsigned rows[C];
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if (has(from, c)) closed_[c] = scanned_[c] = true;
            const bool carries = !reached_[c] && carried_[from * most + column(c)] > 0;
            if (carries) {
                reached_[c] = true;
                row_distance_[c] = length_;
                row_from_[c] = from;
            }
            rows[c] = __ballot_sync(kAllLanes, carries);
        }
#pragma unroll
        for (int c = 0; c < C; ++c)
            for (unsigned left = rows[c]; left != 0; left &= left - 1)
                relax(static_cast<unsigned>(__ffs(static_cast<int>(left)) - 1) +
                          kWarp * static_cast<unsigned>(c),
                      length_);
    }

    __device__ void change_potentials() {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if (scanned_[c]) v_[c] -= static_cast<std::int32_t>(length_ - distance_[c]);
            // The searching row's distance is 0.
            if (reached_[c] && column(c) < rows_)
                u_[c] += static_cast<std::int32_t>(length_ - row_distance_[c]);
        }
    }

    /// Carries as much as the path allows, which it returns.
    __device__ std::uint32_t augment(unsigned row, std::uint32_t left) {
        std::uint32_t mass = min(left, of_lane(demand_, end_));
        for (unsigned at = of_lane(from_, end_); at != row;) {
            const unsigned back = of_lane(row_from_, at);
            mass = min(mass, carried_[back * most + at]);
            at = of_lane(from_, back);
        }
        __syncwarp();
        unsigned to = end_;
        for (;;) {
            const unsigned at = of_lane(from_, to);
            if (lane_ == 0) carried_[to * most + at] += mass;
            if (at == row) break;
            to = of_lane(row_from_, at);
            if (lane_ == 0) carried_[to * most + at] -= mass;
        }
#pragma unroll
        for (int c = 0; c < C; ++c)
            if (has(end_, c)) demand_[c] -= mass;
        __syncwarp();
        return mass;
    }

    std::uint32_t* costs_;
    std::uint32_t* carried_;  // column by column
    unsigned rows_, columns_, lane_;
    std::uint32_t supply_[C], demand_[C];
    std::int32_t u_[C], v_[C];
    // State of one search:
    std::uint32_t distance_[C], row_distance_[C];
    unsigned from_[C], row_from_[C];
    bool closed_[C], scanned_[C], reached_[C];
    std::uint32_t length_ = 0;
    unsigned end_ = 0;
};

namespace {

// ---- The kernel ----

/// Costs that a warp computes at a time: rows and columns.
constexpr unsigned kTileRows = 4, kTileColumns = 8;
static_assert(kTileRows * kTileColumns == kWarp);

constexpr unsigned warps_of_block(int classes) {
    return classes == 1 ? 4 : 1;
}

/// The costs of a tile from (row, column) on: lane l computes those of row l / 8 and column l % 8
/// in the end.
template <int C>
__device__ void costs_of_tile(const DevicePairs& all, const WordMass* rows, unsigned row,
                              unsigned row_count, const WordMass* columns, unsigned column,
                              unsigned column_count, unsigned lane, std::uint32_t* costs) {
    const float *a[kTileRows], *b[kTileColumns];
#pragma unroll
    for (unsigned i = 0; i < kTileRows; ++i)
        a[i] = all.vectors + std::size_t{rows[min(row + i, row_count - 1)].word} * all.dimensions;
#pragma unroll
    for (unsigned j = 0; j < kTileColumns; ++j)
        b[j] = all.vectors +
               std::size_t{columns[min(column + j, column_count - 1)].word} * all.dimensions;
    float sums[kWarp] = {};
    for (std::uint32_t d = lane; d < all.dimensions; d += kWarp) {
        float x[kTileRows];
#pragma unroll
        for (unsigned i = 0; i < kTileRows; ++i) x[i] = __ldg(a[i] + d);
#pragma unroll
        for (unsigned j = 0; j < kTileColumns; ++j) {
            const float y = __ldg(b[j] + d);
#pragma unroll
            for (unsigned i = 0; i < kTileRows; ++i) {
                const float difference = __fsub_rn(x[i], y);
                sums[i * kTileColumns + j] =
                    __fmaf_rn(difference, difference, sums[i * kTileColumns + j]);
            }
        }
    }
    const float square = sum_of_each(sums, lane);
    const unsigned own_row = row + lane / kTileColumns, own_column = column + lane % kTileColumns;
    if (own_row < row_count && own_column < column_count)
        costs[own_row * WarpTransport<C>::most + own_column] =
            __float2uint_rn(__fmul_rn(__fsqrt_rn(square), all.unit));
}

template <int C>
__device__ std::uint64_t cost_of_pair(MoversMethod method, const DevicePairs& all,
                                      std::uint32_t pair, unsigned lane, std::uint32_t* shared) {
    const std::uint64_t begin = all.begins[2 * std::size_t{pair}],
                        middle = all.begins[2 * std::size_t{pair} + 1],
                        end = all.begins[2 * std::size_t{pair} + 2];
    const WordMass* rows = all.masses + (begin - all.first_mass);
    const WordMass* columns = all.masses + (middle - all.first_mass);
    auto row_count = static_cast<unsigned>(middle - begin);
    auto column_count = static_cast<unsigned>(end - middle);
    if (row_count == 0) return 0;
    // Searches begin at rows.
    if (row_count > column_count) {
        const WordMass* const swapped = rows;
        rows = columns, columns = swapped;
        const unsigned count = row_count;
        row_count = column_count, column_count = count;
    }
    for (unsigned row = 0; row < row_count; row += kTileRows)
        for (unsigned column = 0; column < column_count; column += kTileColumns)
            costs_of_tile<C>(all, rows, row, row_count, columns, column, column_count, lane,
                             shared);
    std::uint32_t supplies[C], demands[C];
#pragma unroll
    for (int c = 0; c < C; ++c) {
        const unsigned own = lane + kWarp * static_cast<unsigned>(c);
        supplies[c] = own < row_count ? rows[own].mass : 0;
        demands[c] = own < column_count ? columns[own].mass : 0;
    }
    __syncwarp();
    WarpTransport<C> transport(shared, row_count, column_count, lane);
    const std::uint64_t cost = method == MoversMethod::exact ? transport.solve(supplies, demands)
                                                             : transport.relaxed(supplies, demands);
    __syncwarp();
    return cost;
}

/// Each warp takes the next pair of the list until there is none.
template <int C>
__global__ __launch_bounds__(kWarp* warps_of_block(C),
                             C == 1 ? 5 : 1) void move_words(MoversMethod method, DevicePairs all,
                                                             const std::uint32_t* pairs,
                                                             std::uint32_t count,
                                                             std::uint32_t* counter) {
    extern __shared__ std::uint32_t shared[];
    const unsigned lane = threadIdx.x % kWarp;
    std::uint32_t* const own = shared + threadIdx.x / kWarp * WarpTransport<C>::words;
    for (;;) {
        std::uint32_t next = 0;
        if (lane == 0) next = atomicAdd(counter, 1);
        next = __shfl_sync(kAllLanes, next, 0);
        if (next >= count) return;
        const std::uint64_t cost = cost_of_pair<C>(method, all, pairs[next], lane, own);
        if (lane == 0) all.costs[pairs[next]] = cost;
    }
}

template <int C>
Status run_class(MoversMethod method, const DevicePairs& all, std::span<const std::uint32_t> pairs,
                 std::uint32_t* counter, cudaStream_t stream) {
    constexpr unsigned warps = warps_of_block(C);
    constexpr std::size_t bytes = warps * WarpTransport<C>::words * sizeof(std::uint32_t);
    GPUTEXT_TRY(allow_shared_bytes(move_words<C>, bytes));
    int device = 0, processors = 0, blocks = 0;
    GPUTEXT_TRY(cuda_status(cudaGetDevice(&device), "asking for the device"));
    GPUTEXT_TRY(
        cuda_status(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                    "asking for processors"));
    GPUTEXT_TRY(cuda_status(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, move_words<C>, warps * kWarp, bytes),
        "planning blocks"));
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(counter, 0, sizeof *counter, stream), "clearing a counter"));
    const auto most = static_cast<std::size_t>(processors) * std::max(1, blocks);
    const std::size_t wanted = std::min(most, (pairs.size() + warps - 1) / warps);
    move_words<C><<<static_cast<unsigned>(wanted), warps * kWarp, bytes, stream>>>(
        method, all, pairs.data(), static_cast<std::uint32_t>(pairs.size()), counter);
    return launched("moving words");
}

// ---- One job ----

constexpr std::size_t kClasses = std::size(kMovedWords);

/// Pairs of each class in one launch, of some 50 ms at most.
constexpr std::size_t kPairsOfLaunch[kClasses] = {1 << 16, 1 << 14, 1 << 11, 1 << 8};

/// Pairs that are on the device together.
constexpr std::size_t kMostBatchPairs = std::size_t{1} << 19;
constexpr std::size_t kMostBatchBytes = std::size_t{1} << 30;

/// Bytes of a pair, besides its masses.
constexpr std::size_t kPairBytes = 3 * sizeof(std::uint64_t) + sizeof(std::uint32_t);

std::size_t larger_side(const TextPairs& pairs, std::size_t pair) {
    return std::max(pairs.side(pair, 0).size(), pairs.side(pair, 1).size());
}

class Movement {
public:
    Movement(const MoversParameters& parameters, const WordVectors& vectors, const TextPairs& pairs,
             const DeviceWork& work, UploadRing& ring, Execution& execution,
             std::span<double> distances)
        : parameters_(parameters),
          vectors_(vectors),
          pairs_(pairs),
          work_(work),
          ring_(ring),
          execution_(execution),
          distances_(distances) {}

    Status run() {
        const Result<int> scale = movers_scale(vectors_, execution_);
        if (!scale.ok()) return scale.status();
        scale_ = *scale;
        GPUTEXT_TRY(find_most_words());
        GPUTEXT_TRY(upload_model());
        execution_.begin_phase("moving words", pairs_.size());
        for (std::size_t begin = 0; begin < pairs_.size();) {
            const std::size_t end = end_of_batch(begin);
            if (end == begin) return too_little(pair_bytes(begin));
            GPUTEXT_TRY(run_batch(begin, end));
            begin = end;
        }
        return run_large();
    }

private:
    std::size_t model_bytes() const { return vectors_.words * vectors_.dimensions * sizeof(float); }
    std::size_t pair_bytes(std::size_t pair) const {
        return kPairBytes +
               (pairs_.begins[2 * pair + 2] - pairs_.begins[2 * pair]) * sizeof(WordMass);
    }

    Status too_little(std::size_t more) const {
        return {ErrorCode::out_of_memory, "Word Mover's Distances by this model take " +
                                              std::to_string(model_bytes() + more) +
                                              " bytes of device memory, and " +
                                              std::to_string(work_.bytes) + " may be taken"};
    }

    Status copy(void* to, const void* from, std::size_t bytes) {
        if (bytes == 0) return {};
        return ring_.copy(static_cast<std::uint8_t*>(to),
                          {static_cast<const std::uint8_t*>(from), bytes}, execution_);
    }

    Status upload_model() {
        if (model_bytes() + kPairBytes > work_.bytes) return too_little(kPairBytes);
        GPUTEXT_TRY(event_.create());
        GPUTEXT_TRY(model_.allocate(vectors_.words * vectors_.dimensions, work_.stream));
        GPUTEXT_TRY(counter_.allocate(1, work_.stream));
        execution_.begin_phase("copying vectors", model_bytes() / UploadRing::slice + 1);
        GPUTEXT_TRY(event_.hold(ring_.stream(), work_.stream));
        GPUTEXT_TRY(copy(model_.data(), vectors_.elements, model_bytes()));
        // Even if there are no pairs: the memory is not freed before the last copy has come.
        return event_.hold(work_.stream, ring_.stream());
    }

    std::size_t end_of_batch(std::size_t begin) const {
        const std::size_t most = std::min(kMostBatchBytes, work_.bytes - model_bytes());
        std::size_t end = begin, bytes = 0;
        while (end < pairs_.size() && end - begin < kMostBatchPairs) {
            bytes += pair_bytes(end);
            if (bytes > most) break;
            ++end;
        }
        return end;
    }

    Status run_batch(std::size_t begin, std::size_t end);
    Status upload_batch(std::size_t begin, std::size_t end);
    Status find_most_words();
    void sort_out(std::size_t begin, std::size_t end);
    Status run_large();

    const MoversParameters& parameters_;
    const WordVectors& vectors_;
    const TextPairs& pairs_;
    const DeviceWork& work_;
    UploadRing& ring_;
    Execution& execution_;
    std::span<double> distances_;
    int scale_ = 0;
    std::size_t most_words_ = 0;  // that the device has shared memory for
    StreamEvent event_;
    DeviceBuffer<float> model_;
    DeviceBuffer<std::uint32_t> counter_;
    // State of a batch:
    DeviceBuffer<std::uint64_t> begins_, costs_;
    DeviceBuffer<WordMass> masses_;
    DeviceBuffer<std::uint32_t> lists_on_device_;
    std::vector<std::uint32_t> lists_[kClasses];  // pairs, counted from the batch's first
    std::vector<std::uint32_t> all_lists_;
    std::vector<std::uint64_t> costs_here_;
    std::vector<std::size_t> large_;  // pairs for the host
};

Status Movement::find_most_words() {
    int device = 0, bytes = 0;
    GPUTEXT_TRY(cuda_status(cudaGetDevice(&device), "asking for the device"));
    GPUTEXT_TRY(
        cuda_status(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                    "asking for shared memory"));
    for (const unsigned words : kMovedWords)
        if (2 * words * words * sizeof(std::uint32_t) <= static_cast<std::size_t>(bytes))
            most_words_ = words;
    return {};
}

void Movement::sort_out(std::size_t begin, std::size_t end) {
    for (auto& list : lists_) list.clear();
    for (std::size_t pair = begin; pair < end; ++pair) {
        const std::size_t side = larger_side(pairs_, pair);
        if (side > most_words_) {
            large_.push_back(pair);
            continue;
        }
        const auto* const fitting =
            std::lower_bound(std::begin(kMovedWords), std::end(kMovedWords), side);
        lists_[fitting - kMovedWords].push_back(static_cast<std::uint32_t>(pair - begin));
    }
    all_lists_.clear();
    for (const auto& list : lists_) all_lists_.insert(all_lists_.end(), list.begin(), list.end());
}

Status Movement::upload_batch(std::size_t begin, std::size_t end) {
    const auto begins = pairs_.begins.subspan(2 * begin, 2 * (end - begin) + 1);
    const auto masses = pairs_.masses.subspan(begins.front(), begins.back() - begins.front());
    if (begins_.size() < begins.size()) GPUTEXT_TRY(begins_.allocate(begins.size(), work_.stream));
    if (costs_.size() < end - begin) GPUTEXT_TRY(costs_.allocate(end - begin, work_.stream));
    if (masses_.size() < masses.size()) GPUTEXT_TRY(masses_.allocate(masses.size(), work_.stream));
    if (lists_on_device_.size() < all_lists_.size())
        GPUTEXT_TRY(lists_on_device_.allocate(all_lists_.size(), work_.stream));
    GPUTEXT_TRY(event_.hold(ring_.stream(), work_.stream));
    GPUTEXT_TRY(copy(begins_.data(), begins.data(), begins.size_bytes()));
    GPUTEXT_TRY(copy(masses_.data(), masses.data(), masses.size_bytes()));
    GPUTEXT_TRY(
        copy(lists_on_device_.data(), all_lists_.data(), all_lists_.size() * sizeof all_lists_[0]));
    GPUTEXT_TRY(cuda_status(
        cudaMemsetAsync(costs_.data(), 0, (end - begin) * sizeof(std::uint64_t), work_.stream),
        "clearing costs"));
    return event_.hold(work_.stream, ring_.stream());
}

Status Movement::run_batch(std::size_t begin, std::size_t end) {
    sort_out(begin, end);
    GPUTEXT_TRY(upload_batch(begin, end));
    const DevicePairs all{model_.data(),
                          static_cast<std::uint32_t>(vectors_.dimensions),
                          std::ldexp(1.0f, scale_),
                          begins_.data(),
                          masses_.data(),
                          pairs_.begins[2 * begin],
                          costs_.data()};
    const std::uint32_t* list = lists_on_device_.data();
    for (std::size_t c = 0; c < kClasses; list += lists_[c].size(), ++c) {
        const std::size_t count = lists_[c].size();
        for (std::size_t at = 0; at < count; at += kPairsOfLaunch[c]) {
            const std::size_t now = std::min(kPairsOfLaunch[c], count - at);
            GPUTEXT_TRY(run_word_movers(parameters_.method, all, kMovedWords[c], {list + at, now},
                                        counter_.data(), work_.stream));
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(work_.stream), "moving words"));
            GPUTEXT_TRY(execution_.checkpoint(now));
        }
    }
    costs_here_.resize(end - begin);
    auto* const bytes = reinterpret_cast<std::uint8_t*>(costs_here_.data());
    GPUTEXT_TRY(ring_.copy_back({bytes, costs_here_.size() * sizeof costs_here_[0]},
                                reinterpret_cast<const std::uint8_t*>(costs_.data()), work_.stream,
                                execution_));
    for (std::size_t pair = begin; pair < end; ++pair)
        distances_[pair] = movers_distance(costs_here_[pair - begin], pairs_.totals[pair], scale_);
    return {};
}

/// The pairs that are too large for a warp, on the host's threads.
Status Movement::run_large() {
    if (large_.empty()) return {};
    std::vector<std::uint64_t> begins{0};
    std::vector<WordMass> masses;
    std::vector<std::uint32_t> totals;
    for (const std::size_t pair : large_) {
        for (unsigned which = 0; which < 2; ++which) {
            const auto side = pairs_.side(pair, which);
            masses.insert(masses.end(), side.begin(), side.end());
            begins.push_back(masses.size());
        }
        totals.push_back(pairs_.totals[pair]);
    }
    const auto found =
        gputext::word_movers_distances(parameters_, vectors_, {begins, masses, totals}, execution_);
    if (!found.ok()) return found.status();
    for (std::size_t i = 0; i < large_.size(); ++i) distances_[large_[i]] = (*found)[i];
    return {};
}

}  // namespace

Status run_word_movers(MoversMethod method, const DevicePairs& all, unsigned words,
                       std::span<const std::uint32_t> pairs_on_device, std::uint32_t* counter,
                       cudaStream_t stream) {
    if (pairs_on_device.empty()) return {};
    switch (words) {
        case 32:
            return run_class<1>(method, all, pairs_on_device, counter, stream);
        case 64:
            return run_class<2>(method, all, pairs_on_device, counter, stream);
        case 96:
            return run_class<3>(method, all, pairs_on_device, counter, stream);
        default:
            return run_class<5>(method, all, pairs_on_device, counter, stream);
    }
}

Status word_movers_distances(const MoversParameters& parameters, const WordVectors& vectors,
                             const TextPairs& pairs, const DeviceWork& work, UploadRing& ring,
                             Execution& execution, std::span<double> distances) {
    const Status status =
        Movement(parameters, vectors, pairs, work, ring, execution, distances).run();
    return finish_work(status, work.stream, "moving words");
}

}  // namespace gputext::gpu
