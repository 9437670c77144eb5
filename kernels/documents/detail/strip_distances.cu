#include "kernels/documents/detail/band_distances.cuh"

#include <algorithm>

#include "kernels/base/device_buffer.hpp"
#include "kernels/base/launch.hpp"

namespace gputext::gpu {
namespace {

/// What a strip of rows hands on.
struct Strip {
    std::uint32_t up[2][kWarp];  // of the column that it met last
    std::uint32_t down[2][kWarp];
    std::int8_t steps[2][kTile];  // along its last row, of the last two tiles
    std::int32_t start[2];        // value of that row before those tiles
    std::int32_t value;           // value of that row in the column that it met last
};

/// One try at one pair.
struct Attempt {
    PairTask pair;
    std::uint32_t task;
    std::int32_t limit;
    std::int32_t slack;
    Strip* strips;
    std::int32_t strip_count;
    std::int32_t tile_count;  // of a strip that crosses the whole matrix
    std::int32_t distance;    // once known, or limit + 1
    std::int32_t state;       // kRunning, then kDone or kHopeless
    std::uint32_t least;      // smallest cost of a path through the present tiles
};

enum : std::int32_t { kRunning, kDone, kHopeless };

/// The tiles of an attempt on one antidiagonal: strips first to last.
struct Wave {
    int first, last;
};

__host__ __device__ inline int first_tile(const Attempt& attempt, int strip) {
    const std::int64_t column = std::int64_t{strip} * kTile - attempt.slack;
    return column <= 0 ? 0 : static_cast<int>(column / kTile);
}

__host__ __device__ inline int last_tile(const Attempt& attempt, int strip) {
    const std::int64_t difference =
        std::int64_t{attempt.pair.columns.count} - attempt.pair.rows.count;
    const std::int64_t column = std::int64_t{strip + 1} * kTile + difference + attempt.slack - 1;
    const std::int64_t tile = column / kTile;
    return tile < attempt.tile_count ? static_cast<int>(tile) : attempt.tile_count - 1;
}

__host__ __device__ inline Wave strips_of_wave(const Attempt& attempt, int wave) {
    // By the outermost diagonals, a tile too many at either end; last_tile and first_tile decide.
    const std::int64_t difference =
        std::int64_t{attempt.pair.columns.count} - attempt.pair.rows.count;
    const std::int64_t right = (difference + attempt.slack) / kTile + 2;
    const std::int64_t left = attempt.slack / kTile + 1;
    const std::int64_t first = (wave - right) / 2;
    const std::int64_t last = (wave + left) / 2 + 1;
    return {static_cast<int>(first < 0 ? 0 : first),
            static_cast<int>(last < attempt.strip_count ? last : attempt.strip_count - 1)};
}

template <int kDigits>
class TileWarp {
public:
    using Tables = MatchTables<kDigits, 1>;
    using Code = SymbolCode<kDigits>;

    struct Shared {
        Tables matches;
        Code codes[kTile];
        std::int8_t steps[kTile];
    };

    __device__ TileWarp(Shared& shared, Attempt& attempt, int strip, int tile)
        : shared_(shared),
          attempt_(attempt),
          strip_(attempt.strips[strip]),
          lane_(threadIdx.x),
          strip_number_(strip),
          tile_(tile),
          rows_(static_cast<int>(attempt.pair.rows.count)),
          all_columns_(static_cast<int>(attempt.pair.columns.count)),
          begin_(tile * static_cast<int>(kTile)),
          columns_(min(static_cast<int>(kTile), all_columns_ - begin_)),
          row_begin_(strip * static_cast<int>(kTile)) {}

    __device__ void run() {
        fill();
        load();
        __syncwarp();
        sweep();
        save();
        report();
    }

private:
    __device__ void fill() {
        for (unsigned i = 0; i < Tables::kEntries; ++i) shared_.matches.clear(lane_, i);
        const int first = row_begin_ + static_cast<int>(lane_) * 64;
        for (int row = 0; row < 64 && row < rows_ - first; ++row)
            shared_.matches.add(lane_, row, Code::of(attempt_.pair.rows[first + row]));
        for (int i = static_cast<int>(lane_); i < columns_; i += kWarp)
            shared_.codes[i] = Code::of(attempt_.pair.columns[begin_ + i]);
    }

    __device__ bool is_first() const { return tile_ == first_tile(attempt_, strip_number_); }
    __device__ bool has_above() const {
        return strip_number_ > 0 && tile_ <= last_tile(attempt_, strip_number_ - 1);
    }

    /// The column before the tile and the steps above it.
    __device__ void load() {
        const Strip* above = has_above() ? &attempt_.strips[strip_number_ - 1] : nullptr;
        for (int i = static_cast<int>(lane_); i < columns_; i += kWarp)
            shared_.steps[i] = above != nullptr ? above->steps[tile_ & 1][i] : std::int8_t{1};
        if (is_first()) {
            // A first tile is that of the first column, or lies under a tile of the strip above.
            start_ = static_cast<int>(kTile) + (above != nullptr ? above->start[tile_ & 1] : 0);
            state_.reset();
        } else {
            start_ = strip_.value;
            for (int i = 0; i < 2; ++i) {
                state_.up[i] = strip_.up[i][lane_];
                state_.down[i] = strip_.down[i][lane_];
            }
        }
        value_ = start_;
    }

    __device__ void sweep() {
        RowStep step = 0;
        const int lane = static_cast<int>(lane_);
        const int last_row = row_begin_ + static_cast<int>(kTile);
        const bool bottom = lane_ == kWarp - 1 && strip_number_ + 1 < attempt_.strip_count;
        for (int time = 0; time < columns_ + static_cast<int>(kWarp) - 1; ++time) {
            RowStep in = __shfl_up_sync(kAllLanes, step, 1);
            const int column = time - lane;
            if (column < 0 || column >= columns_) continue;
            if (lane_ == 0) {
                const int above = shared_.steps[column];
                in = above > 0 ? kStepUp : above < 0 ? 1 : 0;
            }
            std::uint32_t equal[2];
            shared_.matches.match(lane_, shared_.codes[column], equal);
            step = state_.advance(equal, in);
            value_ += value_of(step);
            if (bottom) {
                strip_.steps[tile_ & 1][column] = static_cast<std::int8_t>(value_of(step));
                least_ = min(least_, value_ + edits_to_end(last_row, begin_ + column + 1));
            }
        }
        value_ = __shfl_sync(kAllLanes, value_, kWarp - 1);
    }

    __device__ std::uint32_t edits_to_end(int row, int column) const {
        return abs((all_columns_ - column) - (rows_ - row));
    }

    __device__ void save() {
        for (int i = 0; i < 2; ++i) {
            strip_.up[i][lane_] = state_.up[i];
            strip_.down[i][lane_] = state_.down[i];
        }
        if (lane_ == 0) {
            strip_.start[tile_ & 1] = start_;
            strip_.value = value_;
        }
    }

    /// The cheapest path through the tile's last column and row, and the distance if it ends here.
    __device__ void report() {
        int below = state_.rise_from(0);  // of this lane and those below it
        for (unsigned distance = 1; distance < kWarp; distance *= 2) {
            const int theirs = __shfl_down_sync(kAllLanes, below, distance);
            if (lane_ + distance < kWarp) below += theirs;
        }
        const int value = value_ - below + state_.rise_from(0);  // of the lane's last row
        const int top = row_begin_ + static_cast<int>(lane_) * 64 + 1;
        const int column = begin_ + columns_;
        if (top <= rows_) {
            const int on_diagonal = rows_ - all_columns_ + column;
            const int nearest = min(max(on_diagonal, top), top + 63);
            const std::uint32_t there = value - state_.rise_from(nearest - top + 1);
            least_ = min(least_, there + abs(on_diagonal - nearest));
        }
        if (strip_number_ == 0) least_ = min(least_, column + edits_to_end(0, column));
        least_ = warp_min(least_);
        if (lane_ == 0) atomicMin(&attempt_.least, least_);
        if (column < all_columns_ || rows_ < top || rows_ > top + 63) return;
        attempt_.distance = min(value - state_.rise_from(rows_ - top + 1), attempt_.limit + 1);
        attempt_.state = kDone;
    }

    Shared& shared_;
    Attempt& attempt_;
    Strip& strip_;
    unsigned lane_;
    int strip_number_, tile_;
    int rows_, all_columns_;
    int begin_, columns_;  // of the tile
    int row_begin_;
    int start_ = 0, value_ = 0;  // of the strip's last row
    std::uint32_t least_ = UINT32_MAX;
    LaneRows<1> state_;
};

/// blockIdx.y: an attempt, blockIdx.x: one of its strips on the wave.
template <int kDigits>
__global__ void __launch_bounds__(kWarp) tiles_of_wave(Attempt* attempts, int wave) {
    extern __shared__ std::uint64_t memory[];
    Attempt& attempt = attempts[blockIdx.y];
    if (attempt.state != kRunning) return;
    const Wave strips = strips_of_wave(attempt, wave);
    const int strip = strips.first + static_cast<int>(blockIdx.x);
    const int tile = wave - strip;
    if (strip > strips.last || tile < first_tile(attempt, strip) ||
        tile > last_tile(attempt, strip))
        return;
    using Warp = TileWarp<kDigits>;
    Warp(*reinterpret_cast<typename Warp::Shared*>(memory), attempt, strip, tile).run();
}

/// Ends the attempts that no path can save. The 2: a path may pass a corner of two tiles.
__global__ void end_hopeless(Attempt* attempts, unsigned count) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count || attempts[i].state != kRunning) return;
    Attempt& attempt = attempts[i];
    if (attempt.least != UINT32_MAX &&
        attempt.least > static_cast<std::uint32_t>(attempt.limit) + 2) {
        attempt.distance = attempt.limit + 1;
        attempt.state = kHopeless;
    }
    attempt.least = UINT32_MAX;
}

std::size_t strips_for(std::size_t rows) {
    return (rows + kTile - 1) / kTile;
}

constexpr std::size_t kMostAttempts = 4096;  // at a time
constexpr int kWavesBetweenLooks = 8;

class StripDistances {
public:
    StripDistances(std::uint32_t* distances, bool wide, const Execution& execution,
                   cudaStream_t stream)
        : distances_(distances), wide_(wide), execution_(execution), stream_(stream) {}

    Status run(std::span<const StripPair> pairs) {
        std::vector<Attempt> attempts;
        for (const StripPair& pair : pairs) attempts.push_back(first_attempt(pair));
        while (!attempts.empty()) {
            GPUTEXT_TRY(run_attempts(attempts));
            std::vector<Attempt> again;
            for (const Attempt& attempt : attempts) {
                const bool known = attempt.distance <= attempt.limit;
                if (!known && static_cast<std::uint32_t>(attempt.limit) < most(attempt)) {
                    again.push_back(with_limit(attempt, 4u * attempt.limit));
                    continue;
                }
                const std::uint32_t distance = known ? attempt.distance : kAbove;
                GPUTEXT_TRY(store(attempt.task, distance));
            }
            attempts = std::move(again);
        }
        return {};
    }

private:
    /// No distance is above the longer one's length.
    static std::uint32_t most(const Attempt& attempt) {
        return std::min(attempt.pair.limit, attempt.pair.columns.count);
    }

    static Attempt first_attempt(const StripPair& pair) {
        Attempt attempt{};
        attempt.pair = pair.pair;
        attempt.task = pair.task;
        attempt.strip_count = static_cast<int>(strips_for(pair.pair.rows.count));
        attempt.tile_count = static_cast<int>(strips_for(pair.pair.columns.count));
        const std::uint32_t difference = pair.pair.columns.count - pair.pair.rows.count;
        return with_limit(attempt, std::max<std::uint64_t>(kTile, 2ull * difference));
    }

    static Attempt with_limit(Attempt attempt, std::uint64_t limit) {
        const auto difference =
            static_cast<std::int32_t>(attempt.pair.columns.count - attempt.pair.rows.count);
        attempt.limit = static_cast<std::int32_t>(std::min<std::uint64_t>(limit, most(attempt)));
        // One more than a path may need, so that neighboring strips always share a tile's columns.
        attempt.slack = (attempt.limit - difference) / 2 + 1;
        attempt.distance = attempt.limit + 1;
        attempt.state = kRunning;
        attempt.least = UINT32_MAX;
        return attempt;
    }

    Status store(std::uint32_t task, std::uint32_t distance) {
        return cuda_status(cudaMemcpyAsync(distances_ + task, &distance, sizeof distance,
                                           cudaMemcpyHostToDevice, stream_),
                           "storing a distance");
    }

    Status run_attempts(std::vector<Attempt>& attempts) {
        std::size_t strips = 0;
        int waves = 0;
        for (const Attempt& attempt : attempts) {
            strips += attempt.strip_count;
            waves = std::max(waves, attempt.strip_count + attempt.tile_count - 1);
        }
        DeviceBuffer<Strip> memory;
        GPUTEXT_TRY(memory.allocate(strips, stream_));
        Strip* next = memory.data();
        for (Attempt& attempt : attempts) {
            attempt.strips = next;
            next += attempt.strip_count;
        }
        DeviceBuffer<Attempt> resident;
        GPUTEXT_TRY(resident.upload(attempts, stream_));
        for (int wave = 0; wave < waves; ++wave) {
            GPUTEXT_TRY(run_wave(attempts, resident.data(), wave));
            if (wave % kWavesBetweenLooks != kWavesBetweenLooks - 1 && wave + 1 < waves) continue;
            GPUTEXT_TRY(fetch(attempts, resident.data()));
            if (execution_.stop_requested()) return Status::cancelled();
            if (std::ranges::none_of(attempts,
                                     [](const Attempt& a) { return a.state == kRunning; }))
                break;
        }
        return {};
    }

    Status run_wave(const std::vector<Attempt>& attempts, Attempt* resident, int wave) {
        int widest = 0;
        for (const Attempt& attempt : attempts) {
            if (attempt.state != kRunning) continue;
            const Wave strips = strips_of_wave(attempt, wave);
            widest = std::max(widest, strips.last - strips.first + 1);
        }
        if (widest == 0) return {};
        const auto count = static_cast<unsigned>(attempts.size());
        const dim3 grid(static_cast<unsigned>(widest), count);
        const auto kernel = wide_ ? tiles_of_wave<8> : tiles_of_wave<2>;
        const int bytes = wide_ ? sizeof(TileWarp<8>::Shared) : sizeof(TileWarp<2>::Shared);
        GPUTEXT_TRY(cuda_status(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
            "planning the verification"));
        kernel<<<grid, kWarp, bytes, stream_>>>(resident, wave);
        end_hopeless<<<(count + 127) / 128, 128, 0, stream_>>>(resident, count);
        return cuda_status(cudaGetLastError(), "verifying long pairs");
    }

    Status fetch(std::vector<Attempt>& attempts, const Attempt* resident) {
        return download(resident, attempts.data(), attempts.size(), stream_,
                        "verifying long pairs");
    }

    std::uint32_t* distances_;
    bool wide_;
    const Execution& execution_;
    cudaStream_t stream_;
};

}  // namespace

std::size_t strip_bytes(std::size_t rows) {
    return strips_for(rows) * sizeof(Strip) + sizeof(Attempt);
}

Status strip_distances(std::span<const StripPair> pairs, bool wide, std::uint32_t* distances,
                       std::size_t memory_limit, const Execution& execution, cudaStream_t stream) {
    StripDistances batches(distances, wide, execution, stream);
    while (!pairs.empty()) {
        std::size_t count = 0;
        std::size_t bytes = 0;
        while (count < pairs.size() && count < kMostAttempts) {
            bytes += strip_bytes(pairs[count].pair.rows.count);
            if (count > 0 && bytes > memory_limit) break;
            ++count;
        }
        GPUTEXT_TRY(batches.run(pairs.first(count)));
        pairs = pairs.subspan(count);
    }
    return cuda_status(cudaStreamSynchronize(stream), "verifying long pairs");
}

}  // namespace gputext::gpu
