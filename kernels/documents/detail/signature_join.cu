#include "kernels/documents/detail/signature_join.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/radix_sort.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/detail/candidate_pairs.hpp"
#include "cpp/documents/detail/signature_join.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"
#include "kernels/base/bit_product.cuh"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/documents/detail/bit_planes.cuh"
#include "kernels/documents/detail/letter_product.hpp"
#include "kernels/documents/detail/signature_parts.hpp"

namespace gputext::gpu {

/// most_edits_within for every sum of two lengths of signature parts: the same division as the
/// CPU's test, so that no device has to divide.
inline std::vector<std::uint16_t> most_edits_by_length(double rate) {
    std::vector<std::uint16_t> most(2 * Ctph::max_length + 1);
    for (std::size_t sum = 0; sum < most.size(); ++sum)
        most[sum] = static_cast<std::uint16_t>(most_edits_within(rate, sum));
    return most;
}

/// Pairs that kernels find, collected on the device: as first << 32 | second, in no order, some of
/// them perhaps twice. When the device's room is full, what is there moves to the host.
class PairSink {
public:
    /// 24 bytes a pair of `capacity`, of which sorting takes two thirds.
    static constexpr std::size_t bytes_per_pair = 24;
    Status allocate(std::size_t capacity, cudaStream_t stream);

    std::size_t capacity() const { return pairs_.size(); }
    std::uint64_t* pairs() const { return pairs_.data(); }
    unsigned long long* count() const { return count_.data(); }

    /// Makes room for `more` pairs, which are at most the capacity. Waits for the stream.
    Status reserve(std::size_t more);
    /// How many pairs there are, those counted twice that are there twice. Waits for the stream.
    Status size(std::uint64_t& pairs) const;
    /// All pairs, ascending, each once; the sink is empty then. Errors: as PairLists::take.
    Status take(std::vector<IndexPair>& pairs, Stop stop);

private:
    Status flush();

    cudaStream_t stream_ = nullptr;
    DeviceBuffer<std::uint64_t> pairs_, sorted_;
    DeviceBuffer<unsigned long long> count_;
    DeviceBuffer<std::uint8_t> scratch_;
    std::vector<std::vector<std::uint64_t>> flushed_;  // each ascending, without doubles
};

Status PairSink::allocate(std::size_t capacity, cudaStream_t stream) {
    stream_ = stream;
    flushed_.clear();
    GPUTEXT_TRY(pairs_.allocate(capacity, stream));
    GPUTEXT_TRY(sorted_.allocate(capacity, stream));
    GPUTEXT_TRY(count_.allocate(1, stream));
    return cuda_status(cudaMemsetAsync(count_.data(), 0, sizeof(unsigned long long), stream),
                       "clearing a count");
}

Status PairSink::reserve(std::size_t more) {
    unsigned long long count = 0;
    GPUTEXT_TRY(download_value(count_.data(), count, stream_, "counting pairs"));
    return count + more <= capacity() ? Status() : flush();
}

Status PairSink::flush() {
    unsigned long long count = 0;
    GPUTEXT_TRY(download_value(count_.data(), count, stream_, "counting pairs"));
    if (count == 0) return {};
    GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
        return cub::DeviceRadixSort::SortKeys(space, bytes, pairs_.data(), sorted_.data(), count, 0,
                                              64, stream_);
    }));
    GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
        return cub::DeviceSelect::Unique(space, bytes, sorted_.data(), pairs_.data(), count_.data(),
                                         count, stream_);
    }));
    GPUTEXT_TRY(download_value(count_.data(), count, stream_, "sorting pairs"));
    try {
        std::vector<std::uint64_t>& pairs = flushed_.emplace_back(count);
        GPUTEXT_TRY(
            cuda_status(cudaMemcpyAsync(pairs.data(), pairs_.data(), count * sizeof pairs[0],
                                        cudaMemcpyDeviceToHost, stream_),
                        "copying pairs from the device"));
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(count_.data(), 0, sizeof count, stream_), "clearing a count"));
    return cuda_status(cudaStreamSynchronize(stream_), "copying pairs from the device");
}

Status PairSink::size(std::uint64_t& pairs) const {
    unsigned long long count = 0;
    GPUTEXT_TRY(download_value(count_.data(), count, stream_, "counting pairs"));
    pairs = count;
    for (const std::vector<std::uint64_t>& some : flushed_) pairs += some.size();
    return {};
}

Status PairSink::take(std::vector<IndexPair>& pairs, Stop stop) {
    GPUTEXT_TRY(flush());
    try {
        std::vector<std::uint64_t> all;
        for (std::vector<std::uint64_t>& some : flushed_) {
            if (all.empty()) {
                all = std::move(some);
            } else {
                all.insert(all.end(), some.begin(), some.end());
            }
            some = {};
        }
        if (flushed_.size() > 1) {
            if (!radix_sort(all, stop)) return Status::cancelled();
            all.erase(std::unique(all.begin(), all.end()), all.end());
        }
        flushed_.clear();
        pairs.resize(all.size());
        std::transform(all.begin(), all.end(), pairs.begin(), [](std::uint64_t pair) {
            return IndexPair{static_cast<std::uint32_t>(pair >> 32),
                             static_cast<std::uint32_t>(pair)};
        });
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    return {};
}

namespace {

constexpr unsigned kThreads = 128;

template <bool Long>
__global__ __launch_bounds__(kThreads) void verify(PartsView parts, const std::uint16_t* most_edits,
                                                   const Candidate* candidates, std::uint32_t count,
                                                   std::uint64_t* pairs,
                                                   unsigned long long* found) {
    const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    const Candidate candidate = candidates[i];
    if (candidate.x >= candidate.y) return;
    const unsigned rows = parts.lengths[candidate.x] & 0xffff;
    const unsigned columns = parts.lengths[candidate.y] & 0xffff;
    const unsigned most = most_edits[rows + columns];
    const unsigned difference = columns > rows ? columns - rows : rows - columns;
    if (difference > most) return;
    const unsigned distance =
        plane_distance<Long>(parts.planes + parts.blocks[candidate.x], rows,
                             parts.planes + parts.blocks[candidate.y], columns);
    if (distance > most) return;
    const std::uint32_t a = parts.order[candidate.x] % parts.strings;
    const std::uint32_t b = parts.order[candidate.y] % parts.strings;
    pairs[atomicAdd(found, 1ull)] = std::uint64_t{min(a, b)} << 32 | max(a, b);
}

}  // namespace

/// Adds those of the candidates, less those with row >= column, whose distance is at most
/// most_edits[sum of lengths], as numbers of strings, to the sink, which grows by no more than
/// `count`. Parts have at most `longest` letters.
/// Looks at the execution between launches; waits for the stream.
Status verify_pairs(const PartsView& parts, const std::uint16_t* most_edits,
                    const Candidate* candidates, std::size_t count, std::size_t longest,
                    Execution& execution, PairSink& sink, cudaStream_t stream) {
    const bool is_long = longest > kPlaneLetters;
    const std::size_t blocks = plane_blocks(static_cast<unsigned>(longest));
    // Some milliseconds on a fast device, some tens on a slow one.
    const std::size_t step = (std::size_t{1} << 22) / std::max<std::size_t>(blocks * blocks, 1);
    for (std::size_t begin = 0; begin < count; begin += step) {
        if (execution.stop_requested()) return Status::cancelled();
        const std::size_t size = std::min(step, count - begin);
        const auto kernel = is_long ? verify<true> : verify<false>;
        kernel<<<blocks_for(size, kThreads), kThreads, 0, stream>>>(
            parts, most_edits, candidates + begin, static_cast<std::uint32_t>(size), sink.pairs(),
            sink.count());
        GPUTEXT_TRY(launched("comparing signatures"));
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "comparing signatures"));
    }
    return {};
}

namespace {

constexpr std::size_t kMostTileRows = 512;
static_assert(kSignatureStripe % kMostTileRows == 0);
constexpr std::size_t kLeastColumns = 256;  // of a task
constexpr std::size_t kMostColumns = 1 << 14;
constexpr std::size_t kMostCandidates = 1 << 26;
constexpr double kLaunchMs = 20;  // what a launch is made to take
constexpr std::size_t kBytesPerCandidate = sizeof(Candidate) + PairSink::bytes_per_pair;

/// Tasks of all tiles, sized such that one of them never finds more than there is room for.
struct Plan {
    std::vector<FilterTile> tiles;
    std::uint32_t columns_per_task;
    std::size_t candidates;  // capacity
    std::uint32_t tasks = 0;
    std::size_t tile_rows;
    PairPart part;
    std::uint64_t pairs = 0;

    Plan(std::size_t rows, std::size_t bytes, const PairPart& own) : tile_rows(rows), part(own) {
        candidates = std::min(bytes / kBytesPerCandidate, kMostCandidates);
        columns_per_task = kMostColumns;
        while (columns_per_task > kLeastColumns && columns_per_task * tile_rows > candidates)
            columns_per_task /= 2;
    }

    /// Runs of each group in turn, with `between` of every other one, beside those of the next.
    void add_runs(std::span<const PartRun> runs, bool between,
                  std::span<const std::uint16_t> most_edits) {
        while (!runs.empty()) {
            const std::span<const PartRun> rows = runs_of(runs, runs.front().group);
            runs = runs.subspan(rows.size());
            if (!between) {
                add_group(rows, rows, most_edits);
            } else if (rows.front().group % 2 == 0) {
                add_group(rows, runs_of(runs, rows.front().group + 1u), most_edits);
            }
        }
    }

private:
    /// The first ones, if they are of the group.
    static std::span<const PartRun> runs_of(std::span<const PartRun> runs, unsigned group) {
        const auto other =
            std::ranges::find_if(runs, [=](const PartRun& run) { return run.group != group; });
        return runs.first(static_cast<std::size_t>(other - runs.begin()));
    }

    /// The columns of these runs that may be within the rate of a row of this length; none as
    /// {UINT32_MAX, 0}.
    static std::pair<std::uint32_t, std::uint32_t> comparable(
        std::span<const PartRun> columns, unsigned length,
        std::span<const std::uint16_t> most_edits) {
        std::pair<std::uint32_t, std::uint32_t> range{UINT32_MAX, 0};
        for (const PartRun& run : columns) {
            const unsigned difference =
                run.length > length ? run.length - length : length - run.length;
            if (difference > most_edits[run.length + length]) continue;
            range = {std::min(range.first, run.begin), std::max(range.second, run.end)};
        }
        return range;
    }

    /// Tiles of the part's stripes, which are whole tiles.
    void add_group(std::span<const PartRun> runs, std::span<const PartRun> columns,
                   std::span<const std::uint16_t> most_edits) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
        for (const PartRun& run : runs)
            ranges.push_back(comparable(columns, run.length, most_edits));
        const bool behind_rows = columns.data() == runs.data();
        std::size_t run = 0;
        const std::uint32_t end = runs.back().end;
        for (std::uint32_t row = runs.front().begin; row < end;) {
            while (runs[run].end <= row) ++run;
            const std::uint32_t stripe = (row - runs.front().begin) / kSignatureStripe;
            if (!has_stripe(part, stripes_ + stripe)) {
                row = std::min(end, runs.front().begin + (stripe + 1) * kSignatureStripe);
                continue;
            }
            FilterTile tile;
            tile.rows_begin = row;
            tile.rows_end = std::min(end, row + static_cast<std::uint32_t>(tile_rows));
            tile.shortest_row = runs[run].length;
            tile.columns_begin = UINT32_MAX;
            tile.columns_end = 0;
            std::size_t last = run;
            for (; last < runs.size() && runs[last].begin < tile.rows_end; ++last) {
                tile.columns_begin = std::min(tile.columns_begin, ranges[last].first);
                tile.columns_end = std::max(tile.columns_end, ranges[last].second);
                tile.longest_row = runs[last].length;
            }
            if (behind_rows) tile.columns_begin = tile.rows_begin;
            row = tile.rows_end;
            if (tile.columns_begin >= tile.columns_end) continue;
            tile.first_task = tasks;
            tiles.push_back(tile);
            const std::uint32_t beside = tile.columns_end - tile.columns_begin;
            tasks += (beside + columns_per_task - 1) / columns_per_task;
            pairs += std::uint64_t{tile.rows_end - tile.rows_begin} * beside;
        }
        stripes_ += (end - runs.front().begin + kSignatureStripe - 1) / kSignatureStripe;
    }

    std::uint64_t stripes_ = 0;  // of the groups so far
};

/// The time between two points of a stream.
class StreamTimer {
public:
    ~StreamTimer() {
        for (const cudaEvent_t event : events_)
            if (event != nullptr) cudaEventDestroy(event);
    }
    Status create() {
        for (cudaEvent_t& event : events_)
            GPUTEXT_TRY(cuda_status(cudaEventCreate(&event), "creating an event"));
        return {};
    }
    Status begin(cudaStream_t stream) { return record(events_[0], stream); }
    Status end(cudaStream_t stream) { return record(events_[1], stream); }
    /// Requires that the stream was waited for.
    double milliseconds() const {
        float ms = 0;
        return cudaEventElapsedTime(&ms, events_[0], events_[1]) == cudaSuccess ? ms : 0;
    }

private:
    static Status record(cudaEvent_t event, cudaStream_t stream) {
        return cuda_status(cudaEventRecord(event, stream), "recording an event");
    }

    cudaEvent_t events_[2] = {};
};

class Join {
public:
    Join(const PackedParts& parts, double rate, const PairPart& part, const DeviceWork& work,
         Execution& execution, JoinCounts& counts, PairLimit& limit)
        : packed_(parts),
          part_(part),
          work_(work),
          execution_(execution),
          counts_(counts),
          limit_(limit),
          longest_(parts.longest()),
          depth_(letter_filter_depth(longest_)),
          most_edits_(most_edits_by_length(rate)) {}

    Status run(FilterKernel filter, std::vector<IndexPair>& pairs) {
        GPUTEXT_TRY(choose(filter));
        const JoinBytes bytes = join_bytes(packed_.size(), packed_.letters.size(), longest_);
        if (work_.bytes < bytes.least) return too_little(bytes);
        execution_.begin_phase("sorting signatures", 1);
        GPUTEXT_TRY(parts_.build(packed_, depth_, work_.stream));
        const std::size_t parts_bytes =
            SortedParts::bytes_needed(packed_.size(), packed_.letters.size(), longest_, depth_);
        Plan plan(filter_tile_rows(depth_, bit_product_), work_.bytes - parts_bytes, part_);
        plan.add_runs(parts_.runs(), packed_.between, most_edits_);
        counts_.filtered = plan.pairs;
        if (plan.tiles.empty()) return {};
        GPUTEXT_TRY(prepare(plan));
        GPUTEXT_TRY(run_tasks(plan));
        if (limit_.exceeded) return {};
        execution_.begin_phase("sorting pairs", 1);
        return sink_.take(pairs, execution_.stop());
    }

private:
    Status choose(FilterKernel filter) {
        bool has = false;
        GPUTEXT_TRY(has_bit_product(has));
        if (filter == FilterKernel::matrix_product && !has)
            return {ErrorCode::device_error, "the device lacks products of bit matrices"};
        bit_product_ = has && filter != FilterKernel::count_ones;
        return {};
    }

    Status too_little(const JoinBytes& bytes) const {
        return {ErrorCode::out_of_memory,
                "joining " + std::to_string(packed_.size()) + " signature parts needs " +
                    std::to_string(bytes.least) + " bytes of device memory, and may take " +
                    std::to_string(work_.bytes)};
    }

    Status prepare(const Plan& plan) {
        GPUTEXT_TRY(timer_.create());
        GPUTEXT_TRY(tiles_.upload(plan.tiles, work_.stream));
        GPUTEXT_TRY(edits_.upload(most_edits_, work_.stream));
        GPUTEXT_TRY(found_.allocate(1, work_.stream));
        GPUTEXT_TRY(candidates_.allocate(plan.candidates, work_.stream));
        GPUTEXT_TRY(sink_.allocate(plan.candidates, work_.stream));
        job_ = {parts_.view(),         tiles_.data(), static_cast<std::uint32_t>(plan.tiles.size()),
                plan.columns_per_task, edits_.data(), candidates_.data(),
                plan.candidates,       found_.data()};
        return {};
    }

    /// Tasks that are a safe first launch on a slow device.
    std::uint32_t first_step(const Plan& plan) const {
        const double pairs = bit_product_ ? 2e10 : 5e8;
        const double task = static_cast<double>(plan.tile_rows * plan.columns_per_task);
        return static_cast<std::uint32_t>(
            std::clamp(4 * pairs / task / static_cast<double>(depth_), 1.0, 1e6));
    }

    Status run_tasks(const Plan& plan) {
        execution_.begin_phase("comparing signatures", plan.tasks);
        std::uint32_t step = first_step(plan);
        for (std::uint32_t begin = 0; begin < plan.tasks;) {
            if (execution_.stop_requested()) return Status::cancelled();
            const std::uint32_t end = begin + std::min(step, plan.tasks - begin);
            unsigned long long found = 0;
            GPUTEXT_TRY(filter_tasks(begin, end, found));
            const double ms = timer_.milliseconds();
            counts_.filter_ms += ms;
            if (found > plan.candidates) {
                // A single task always fits.
                step = std::max(1u, (end - begin) / 2);
                ++counts_.repeated;
                continue;
            }
            GPUTEXT_TRY(verify(found));
            if (limit_.exceeded) return {};
            execution_.advance(end - begin);
            begin = end;
            step = next_step(step, ms, found, plan);
        }
        return {};
    }

    /// Longer launches while they are short and leave room, shorter ones when they are long.
    static std::uint32_t next_step(std::uint32_t step, double ms, unsigned long long found,
                                   const Plan& plan) {
        double factor = std::clamp(kLaunchMs / std::max(ms, 0.01), 0.25, 8.0);
        const double room = static_cast<double>(plan.candidates);
        factor = std::min(factor, 0.7 * room / std::max<double>(static_cast<double>(found), 1));
        return static_cast<std::uint32_t>(std::clamp(step * factor, 1.0, 1e9));
    }

    Status filter_tasks(std::uint32_t begin, std::uint32_t end, unsigned long long& found) {
        GPUTEXT_TRY(
            cuda_status(cudaMemsetAsync(found_.data(), 0, sizeof(unsigned long long), work_.stream),
                        "clearing a count"));
        GPUTEXT_TRY(timer_.begin(work_.stream));
        GPUTEXT_TRY(run_filter(job_, depth_, bit_product_, begin, end, work_.stream));
        GPUTEXT_TRY(timer_.end(work_.stream));
        return download_value(found_.data(), found, work_.stream, "filtering pairs by letters");
    }

    Status verify(unsigned long long found) {
        counts_.candidates += found;
        if (found == 0) return {};
        GPUTEXT_TRY(sink_.reserve(found));
        GPUTEXT_TRY(timer_.begin(work_.stream));
        GPUTEXT_TRY(verify_pairs(job_.parts, edits_.data(), candidates_.data(), found, longest_,
                                 execution_, sink_, work_.stream));
        GPUTEXT_TRY(timer_.end(work_.stream));
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(work_.stream), "comparing signatures"));
        counts_.verify_ms += timer_.milliseconds();
        std::uint64_t pairs = 0;
        GPUTEXT_TRY(sink_.size(pairs));
        limit_.exceeded = pairs > limit_.most;
        return {};
    }

    const PackedParts& packed_;
    PairPart part_;
    DeviceWork work_;
    Execution& execution_;
    JoinCounts& counts_;
    PairLimit& limit_;
    std::size_t longest_;
    std::size_t depth_;
    std::vector<std::uint16_t> most_edits_;
    bool bit_product_ = false;
    SortedParts parts_;
    DeviceBuffer<FilterTile> tiles_;
    DeviceBuffer<std::uint16_t> edits_;
    DeviceBuffer<unsigned long long> found_;
    DeviceBuffer<Candidate> candidates_;
    PairSink sink_;
    StreamTimer timer_;
    FilterJob job_ = {};
};

template <class Strings>
Status join(std::span<const Strings> strings, double rate, const DeviceWork& work,
            Execution& execution, std::vector<IndexPair>& pairs, FilterKernel filter,
            JoinCounts* counts, PairLimit* limit, const PairPart& part, std::size_t split = 0) {
    pairs.clear();
    JoinCounts unwanted;
    PairLimit none{UINT64_MAX};
    if (strings.empty()) return {};
    try {
        PackedParts parts;
        GPUTEXT_TRY(pack_parts(strings, execution, parts));
        if (split > 0) separate_parts(parts, split);
        Join join(parts, rate, part, work, execution, counts != nullptr ? *counts : unwanted,
                  limit != nullptr ? *limit : none);
        return join.run(filter, pairs);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
}

/// The signatures of the rows and behind them those of the columns.
struct SidedSignatures {
    std::vector<Ctph> signatures;
    std::vector<std::uint32_t> origins;  // of each, its number in the input
    std::size_t split = 0;               // how many rows

    SidedSignatures(std::span<const Ctph> all, std::span<const std::uint8_t> sides) {
        const std::uint8_t rows = row_side(sides);
        add(all, sides, rows);
        split = signatures.size();
        add(all, sides, kBothSides ^ rows);
    }

    /// Pairs of the input in place of those of a join, ascending, each once.
    Status restore(std::vector<IndexPair>& pairs, Stop stop) const {
        PairLists restored(1);
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            if (i % 65536 == 0 && stop()) return Status::cancelled();
            const std::uint32_t row = origins[pairs[i].first], column = origins[pairs[i].second];
            if (row != column) restored.add(0, row, column);
        }
        return restored.take(pairs, stop);
    }

private:
    void add(std::span<const Ctph> all, std::span<const std::uint8_t> sides, std::uint8_t side) {
        for (std::uint32_t i = 0; i < all.size(); ++i) {
            if ((sides[i] & side) == 0) continue;
            signatures.push_back(all[i]);
            origins.push_back(i);
        }
    }
};

}  // namespace

JoinBytes join_bytes(std::size_t parts, std::size_t letters, std::size_t longest) {
    const std::size_t sorted =
        SortedParts::bytes_needed(parts, letters, longest, letter_filter_depth(longest));
    const std::size_t tiles = parts / 128 * sizeof(FilterTile) + (std::size_t{1} << 20);
    const std::size_t pairs = std::min(kMostCandidates, parts * parts);
    const std::size_t least = kMostTileRows * kLeastColumns;
    return {sorted + tiles + least * kBytesPerCandidate,
            sorted + tiles + std::max(least, pairs) * kBytesPerCandidate};
}

Status join_signatures(std::span<const Ctph> signatures, double rate, const DeviceWork& work,
                       Execution& execution, std::vector<IndexPair>& pairs, FilterKernel filter,
                       JoinCounts* counts, PairLimit* limit, const PairPart& part,
                       std::span<const std::uint8_t> sides) try {
    if (sides.empty())
        return join(signatures, rate, work, execution, pairs, filter, counts, limit, part);
    pairs.clear();
    const SidedSignatures sided(signatures, sides);
    if (sided.split == 0 || sided.split == sided.signatures.size()) return {};
    GPUTEXT_TRY(join(std::span<const Ctph>(sided.signatures), rate, work, execution, pairs, filter,
                     counts, limit, part, sided.split));
    return sided.restore(pairs, execution.stop());
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

Status join_letters(std::span<const std::string_view> strings, double rate, const DeviceWork& work,
                    Execution& execution, std::vector<IndexPair>& pairs, FilterKernel filter,
                    JoinCounts* counts) {
    return join(strings, rate, work, execution, pairs, filter, counts, nullptr, {});
}

}  // namespace gputext::gpu
