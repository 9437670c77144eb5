#include "kernels/thesaurus/detail/cooccurrences.hpp"

#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_merge.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/binary_search.cuh"
#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/thesaurus/detail/pair_keys.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kTokensOfThread = 8;
constexpr unsigned kTokensOfBlock = kThreads * kTokensOfThread;
constexpr unsigned kStagedBytes = 32 << 10;

constexpr std::uint64_t kLeastChunk = 4096;                        // tokens
constexpr std::uint64_t kMostKeys = (std::uint64_t{1} << 31) - 1;  // of a sort
constexpr std::uint64_t kSmallBuffers = std::uint64_t{4} << 20;

enum Wrong : unsigned { kNoWord = 1, kDescends = 2, kCountTooLarge = 4 };

/// What kernels tell the host.
struct Found {
    unsigned long long keys;
    unsigned wrong;
};

struct EmitJob {
    const std::uint32_t* words;
    const std::uint32_t* positions;
    std::uint64_t begin, end, size;  // the first words of pairs, and all tokens
    PairsWanted wanted;
    WordKeys keys;
    std::uint32_t range;
    bool check;  // the tokens
    std::uint64_t capacity;
    Found* found;
};

/// Calls take(key) for the keys of a token.
template <class Key, class Take>
__device__ void each_key(const EmitJob& job, std::uint64_t at, Take take) {
    if (!job.wanted.ordered && !job.keys.in_range(job.range, job.words[at])) return;
    pairs_of(job.words, job.positions, at, job.size, job.wanted,
             [&](std::uint32_t a, std::uint32_t b) {
                 if (job.keys.in_range(job.range, a))
                     take(static_cast<Key>(job.keys.key(job.range, a, b)));
             });
}

__device__ unsigned wrong_token(const EmitJob& job, std::uint64_t at) {
    unsigned wrong = 0;
    if (job.words[at] >= job.keys.words) wrong |= kNoWord;
    if (at > 0 && job.positions[at] < job.positions[at - 1]) wrong |= kDescends;
    return wrong;
}

/// Most tokens have one key at most, which is found once.
template <class Key>
__global__ __launch_bounds__(kThreads) void emit_keys(EmitJob job, Key* to) {
    using Scan = cub::BlockScan<unsigned, kThreads>;
    constexpr unsigned kStaged = kStagedBytes / sizeof(Key);
    __shared__ Key staged[kStaged];
    __shared__ typename Scan::TempStorage scan;
    __shared__ unsigned long long block_begin;
    const std::uint64_t first =
        job.begin + std::uint64_t{blockIdx.x} * kTokensOfBlock + threadIdx.x;
    Key keys[kTokensOfThread];
    unsigned count = 0, wrong = 0, one = 0, more = 0;
#pragma unroll
    for (unsigned i = 0; i < kTokensOfThread; ++i) {
        const std::uint64_t at = first + i * kThreads;
        if (at >= job.end) continue;
        unsigned found = 0;
        each_key<Key>(job, at, [&](Key key) {
            keys[i] = key;
            ++found;
        });
        if (job.check) wrong |= wrong_token(job, at);
        one |= (found == 1) << i;
        more |= (found > 1) << i;
        count += found;
    }
    if (wrong != 0) atomicOr(&job.found->wrong, wrong);
    unsigned before = 0, total = 0;
    Scan(scan).ExclusiveSum(count, before, total);
    if (threadIdx.x == 0)
        block_begin = atomicAdd(&job.found->keys, static_cast<unsigned long long>(total));
    __syncthreads();
    const std::uint64_t begin = block_begin;
    if (begin + total > job.capacity) return;
    Key* const own = (total <= kStaged ? staged : to + begin) + before;
    unsigned next = 0;
#pragma unroll
    for (unsigned i = 0; i < kTokensOfThread; ++i) {
        if (one >> i & 1) own[next++] = keys[i];
        if (more >> i & 1)
            each_key<Key>(job, first + i * kThreads, [&](Key key) { own[next++] = key; });
    }
    if (total > kStaged) return;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < total; i += kThreads) to[begin + i] = staged[i];
}

/// Sums that stay at the largest number.
struct AddSaturating {
    __host__ __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
        return a + b < a ? UINT32_MAX : a + b;
    }
};

/// Pairs of one offset and their counts, sorted by the first word, or by the second one.
template <class Key>
struct Segment {
    const Key* keys;
    const std::uint32_t* counts;
    std::uint64_t size;
    std::uint32_t range;
    std::uint32_t relation;
    bool by_second;

    __device__ std::uint32_t row(const WordKeys& words, Key key) const {
        return by_second ? words.second(key) : words.first(range, key);
    }
    __device__ std::uint32_t neighbor(const WordKeys& words, Key key) const {
        return by_second ? words.first(range, key) : words.second(key);
    }
};

/// A thread for each row, and one for the end: where the row begins in the segment.
template <class Key>
__global__ void find_rows(WordKeys words, Segment<Key> segment, std::uint64_t* begins) {
    const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row > words.words) return;
    begins[row] = partition_point(std::uint64_t{0}, segment.size, [&](std::uint64_t at) {
        return segment.row(words, segment.keys[at]) < row;
    });
}

/// How long each row is; or, given where rows begin, what of each segment's row is to be added to
/// the place of an element there. With one relation for all a word beside itself is among the first
/// words' pairs alone: among the others it would be the last of its row.
template <class Key>
__global__ void measure_rows(WordKeys words, const Segment<Key>* segments, std::uint32_t count,
                             bool positions, std::uint64_t* begins_of_segments,
                             std::uint64_t* lengths, const std::uint64_t* begins) {
    const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= words.words) {
        if (row == words.words && begins == nullptr) lengths[row] = 0;
        return;
    }
    std::uint64_t sum = begins == nullptr ? 0 : begins[row];
    for (std::uint32_t s = 0; s < count; ++s) {
        std::uint64_t* const of_segment =
            begins_of_segments + std::uint64_t{s} * (words.words + 1) + row;
        const std::uint64_t begin = of_segment[0], end = of_segment[1];
        const Segment<Key> segment = segments[s];
        const bool itself = !positions && segment.by_second && end > begin &&
                            segment.neighbor(words, segment.keys[end - 1]) == row;
        if (begins != nullptr) lengths[std::uint64_t{s} * (words.words + 1) + row] = sum - begin;
        sum += end - begin - itself;
    }
    if (begins == nullptr) lengths[row] = sum;
}

template <class Key>
__global__ void write_rows(WordKeys words, Segment<Key> segment, bool positions,
                           const std::uint64_t* offsets, std::uint32_t* columns,
                           std::uint32_t* counts, Found* found) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (at >= segment.size) return;
    const Key key = segment.keys[at];
    const std::uint32_t row = segment.row(words, key), neighbor = segment.neighbor(words, key);
    std::uint32_t count = segment.counts[at];
    if (!positions && row == neighbor) {
        if (segment.by_second) return;
        count = AddSaturating{}(count, count);
    }
    if (count == UINT32_MAX) atomicOr(&found->wrong, kCountTooLarge);
    const std::uint64_t to = offsets[row] + at;
    columns[to] = segment.relation * words.words + neighbor;
    counts[to] = count;
}

struct Timers {
    Timers(bool measure, cudaStream_t stream)
        : emit(measure, stream),
          sort(measure, stream),
          runs(measure, stream),
          merge(measure, stream),
          transpose(measure, stream),
          rows(measure, stream) {}

    StreamTimer emit, sort, runs, merge, transpose, rows;
};

/// What one pass over the tokens looks for: an offset, or all of them.
struct Pass {
    PairsWanted wanted;
    std::uint32_t range = 0;
    std::uint32_t forward = 0, backward = 0;  // relations
};

std::vector<Pass> passes_of(const CooccurrenceShape& shape, const WordKeys& keys) {
    std::vector<Pass> passes;
    const std::uint32_t offsets = shape.positions ? shape.window : 1;
    for (std::uint32_t offset = 1; offset <= offsets; ++offset)
        for (std::uint32_t range = 0; range < keys.ranges; ++range) {
            Pass pass;
            pass.wanted.least = offset;
            pass.wanted.most = shape.positions ? offset : shape.window;
            pass.wanted.ordered = !shape.positions;
            pass.range = range;
            pass.forward = shape.relation_of(static_cast<std::int32_t>(offset));
            pass.backward = shape.relation_of(-static_cast<std::int32_t>(offset));
            passes.push_back(pass);
        }
    return passes;
}

std::uint64_t keys_of_token(const CooccurrenceShape& shape) {
    return shape.positions ? 1 : shape.window;
}

/// While a chunk is sorted: two keys, a count, and what sorting needs.
std::uint64_t bytes_of_key(std::uint64_t key) {
    return 2 * key + 4 + 1;
}

std::uint64_t bytes_of_tokens(const CooccurrenceShape& shape, std::uint64_t key) {
    return 2 * sizeof(std::uint32_t) + keys_of_token(shape) * bytes_of_key(key);
}

std::uint64_t fixed_bytes(const CooccurrenceShape& shape, const WordKeys& keys) {
    const std::uint64_t segments =
        2 * std::uint64_t{shape.positions ? shape.window : 1} * keys.ranges;
    return (2 * segments + 2) * (std::uint64_t{shape.words} + 1) * sizeof(std::uint64_t) +
           kSmallBuffers;
}

template <class Key>
class Counting {
public:
    Counting(const CooccurrenceShape& shape, const WordKeys& keys, const DeviceWork& work,
             Execution& execution, bool measure)
        : shape_(shape),
          keys_(keys),
          work_(work),
          execution_(execution),
          passes_(passes_of(shape, keys)),
          runs_(passes_.size()),
          timers_(measure, work.stream) {}

    /// Room for chunks of at most so many tokens.
    Status begin(std::uint64_t chunk) {
        capacity_ = std::min(kMostKeys, chunk * keys_of_token(shape_));
        GPUTEXT_TRY(keys_a_.allocate(capacity_, work_.stream));
        GPUTEXT_TRY(keys_b_.allocate(capacity_, work_.stream));
        GPUTEXT_TRY(counts_.allocate(capacity_, work_.stream));
        GPUTEXT_TRY(number_.allocate(1, work_.stream));
        chunk_bytes_ = chunk * bytes_of_tokens(shape_, sizeof(Key)) + fixed_bytes(shape_, keys_);
        return found_.allocate(1, work_.stream);
    }

    Status count(const DeviceTokens& tokens, std::uint64_t begin, std::uint64_t end) {
        for (std::size_t pass = 0; pass < passes_.size(); ++pass)
            GPUTEXT_TRY(count_pass(pass, tokens, begin, end));
        ++times.chunks;
        return execution_.checkpoint();
    }

    /// The rows, of all chunks.
    Status finish(CountRowsMemory& rows) {
        keys_a_.reset();
        keys_b_.reset();
        counts_.reset();
        std::uint64_t stored = 0;
        for (const Runs& runs : runs_) stored += runs.size;
        const std::uint64_t needed =
            2 * stored * (sizeof(Key) + 4) + 2 * stored * 8 + fixed_bytes(shape_, keys_);
        GPUTEXT_TRY(fits(needed));
        GPUTEXT_TRY(transpose());
        GPUTEXT_TRY(execution_.checkpoint(0));
        timers_.rows.begin();
        GPUTEXT_TRY(make_rows(rows));
        timers_.rows.end();
        Found found{};
        GPUTEXT_TRY(download_value(found_.data(), found, work_.stream, "counting words"));
        return right(found);
    }

    void tell(CooccurrenceTimes& to) {
        times.emit_ms = timers_.emit.milliseconds();
        times.sort_ms = timers_.sort.milliseconds();
        times.runs_ms = timers_.runs.milliseconds();
        times.merge_ms = timers_.merge.milliseconds();
        times.transpose_ms = timers_.transpose.milliseconds();
        times.rows_ms = timers_.rows.milliseconds();
        to = times;
    }

    CooccurrenceTimes times;

private:
    struct Runs {
        DeviceBuffer<Key> keys;
        DeviceBuffer<std::uint32_t> counts;
        std::uint64_t size = 0;
    };

    Status right(const Found& found) const {
        if (found.wrong & kNoWord)
            return {ErrorCode::invalid_argument,
                    "a word is not of the vocabulary, which has " + std::to_string(shape_.words)};
        if (found.wrong & kDescends)
            return {ErrorCode::invalid_argument, "the positions of words must ascend"};
        if (found.wrong & kCountTooLarge)
            return {ErrorCode::invalid_argument,
                    "two words stand near one another more than 4294967294 times"};
        return {};
    }

    Status fits(std::uint64_t needed) const {
        if (needed <= work_.bytes) return {};
        return too_little_memory("counting neighbors takes", needed, work_.bytes);
    }

    Status count_pass(std::size_t pass, const DeviceTokens& tokens, std::uint64_t begin,
                      std::uint64_t end) {
        if (begin == end) return {};
        timers_.emit.begin();
        GPUTEXT_TRY(cuda_status(cudaMemsetAsync(found_.data(), 0, sizeof(Found), work_.stream),
                                "clearing counts"));
        emit_keys<Key><<<blocks_for(end - begin, kTokensOfBlock), kThreads, 0, work_.stream>>>(
            {tokens.words, tokens.positions, begin, end, tokens.size, passes_[pass].wanted, keys_,
             passes_[pass].range, pass == 0, capacity_, found_.data()},
            keys_a_.data());
        GPUTEXT_TRY(launched("finding neighbors of words"));
        timers_.emit.end();
        Found found{};
        GPUTEXT_TRY(download_value(found_.data(), found, work_.stream, "finding neighbors"));
        GPUTEXT_TRY(right(found));
        if (found.keys > capacity_) {
            // Variants of words make more pairs than there are tokens.
            if (end - begin == 1)
                return fits((found.keys + capacity_) * bytes_of_key(sizeof(Key)) + work_.bytes);
            const std::uint64_t middle = begin + (end - begin) / 2;
            GPUTEXT_TRY(count_pass(pass, tokens, begin, middle));
            return count_pass(pass, tokens, middle, end);
        }
        times.keys += found.keys;
        if (found.keys == 0) return {};
        return sort_keys(runs_[pass], found.keys);
    }

    Status sort_keys(Runs& runs, std::uint64_t size) {
        const auto items = static_cast<std::int64_t>(size);
        timers_.sort.begin();
        cub::DoubleBuffer<Key> keys(keys_a_.data(), keys_b_.data());
        GPUTEXT_TRY(with_scratch(scratch_, work_.stream, [&](void* space, std::size_t& bytes) {
            return cub::DeviceRadixSort::SortKeys(space, bytes, keys, items, 0, keys_.bits,
                                                  work_.stream);
        }));
        timers_.sort.end();
        timers_.runs.begin();
        GPUTEXT_TRY(with_scratch(scratch_, work_.stream, [&](void* space, std::size_t& bytes) {
            return cub::DeviceRunLengthEncode::Encode(space, bytes, keys.Current(),
                                                      keys.Alternate(), counts_.data(),
                                                      number_.data(), items, work_.stream);
        }));
        std::uint64_t different = 0;
        GPUTEXT_TRY(download_value(number_.data(), different, work_.stream, "counting neighbors"));
        Status status = runs.size == 0 ? keep(runs, keys.Alternate(), different)
                                       : merge(runs, keys.Alternate(), different);
        timers_.runs.end();
        return status;
    }

    std::uint64_t kept_bytes() const {
        std::uint64_t all = 0;
        for (const Runs& runs : runs_) all += runs.size;
        return all * (sizeof(Key) + 4) + chunk_bytes_;
    }

    Status allocate(Runs& runs, std::uint64_t size) {
        runs.size = size;
        GPUTEXT_TRY(runs.keys.allocate(size, work_.stream));
        return runs.counts.allocate(size, work_.stream);
    }

    Status keep(Runs& runs, const Key* keys, std::uint64_t size) {
        GPUTEXT_TRY(fits(kept_bytes() + size * (sizeof(Key) + 4)));
        GPUTEXT_TRY(allocate(runs, size));
        GPUTEXT_TRY(cuda_status(cudaMemcpyAsync(runs.keys.data(), keys, size * sizeof(Key),
                                                cudaMemcpyDeviceToDevice, work_.stream),
                                "keeping counts"));
        return cuda_status(cudaMemcpyAsync(runs.counts.data(), counts_.data(), size * 4,
                                           cudaMemcpyDeviceToDevice, work_.stream),
                           "keeping counts");
    }

    Status merge(Runs& runs, const Key* keys, std::uint64_t size) {
        timers_.merge.begin();
        const std::uint64_t all = runs.size + size;
        GPUTEXT_TRY(fits(kept_bytes() + 2 * all * (sizeof(Key) + 4)));
        Runs merged, summed;
        GPUTEXT_TRY(allocate(merged, all));
        GPUTEXT_TRY(with_scratch(scratch_, work_.stream, [&](void* space, std::size_t& bytes) {
            return cub::DeviceMerge::MergePairs(space, bytes, runs.keys.data(), runs.counts.data(),
                                                static_cast<std::int64_t>(runs.size), keys,
                                                counts_.data(), static_cast<std::int64_t>(size),
                                                merged.keys.data(), merged.counts.data(), {},
                                                work_.stream);
        }));
        GPUTEXT_TRY(allocate(summed, all));
        GPUTEXT_TRY(with_scratch(scratch_, work_.stream, [&](void* space, std::size_t& bytes) {
            return cub::DeviceReduce::ReduceByKey(
                space, bytes, merged.keys.data(), summed.keys.data(), merged.counts.data(),
                summed.counts.data(), number_.data(), AddSaturating{},
                static_cast<std::int64_t>(all), work_.stream);
        }));
        GPUTEXT_TRY(download_value(number_.data(), summed.size, work_.stream, "merging counts"));
        runs = std::move(summed);
        timers_.merge.end();
        return {};
    }

    /// The pairs again, sorted by their second words.
    Status transpose() {
        timers_.transpose.begin();
        opposite_.resize(runs_.size());
        for (std::size_t pass = 0; pass < runs_.size(); ++pass) {
            const Runs& from = runs_[pass];
            if (from.size == 0) continue;
            GPUTEXT_TRY(allocate(opposite_[pass], from.size));
            GPUTEXT_TRY(with_scratch(scratch_, work_.stream, [&](void* space, std::size_t& bytes) {
                return cub::DeviceRadixSort::SortPairs(
                    space, bytes, from.keys.data(), opposite_[pass].keys.data(), from.counts.data(),
                    opposite_[pass].counts.data(), static_cast<std::int64_t>(from.size), 0,
                    keys_.low_bits, work_.stream);
            }));
        }
        timers_.transpose.end();
        return {};
    }

    /// In the order of a row: offsets ascending, and of each the ranges of words.
    std::vector<Segment<Key>> segments() const {
        std::vector<Segment<Key>> segments;
        const std::size_t ranges = keys_.ranges;
        for (std::size_t offset = passes_.size() / ranges; offset-- > 0;)
            for (std::size_t pass = offset * ranges; pass < (offset + 1) * ranges; ++pass)
                segments.push_back({opposite_[pass].keys.data(), opposite_[pass].counts.data(),
                                    opposite_[pass].size, passes_[pass].range,
                                    passes_[pass].backward, true});
        for (std::size_t pass = 0; pass < passes_.size(); ++pass)
            segments.push_back({runs_[pass].keys.data(), runs_[pass].counts.data(),
                                runs_[pass].size, passes_[pass].range, passes_[pass].forward,
                                false});
        return segments;
    }

    Status make_rows(CountRowsMemory& rows) {
        const std::vector<Segment<Key>> all = segments();
        const std::uint64_t words = shape_.words, ends = words + 1;
        DeviceBuffer<Segment<Key>> on_device;
        DeviceBuffer<std::uint64_t> begins, offsets;
        GPUTEXT_TRY(on_device.upload(all, work_.stream));
        GPUTEXT_TRY(begins.allocate(all.size() * ends, work_.stream));
        GPUTEXT_TRY(offsets.allocate(all.size() * ends, work_.stream));
        GPUTEXT_TRY(rows.begins.allocate(ends, work_.stream));
        GPUTEXT_TRY(cuda_status(cudaMemsetAsync(found_.data(), 0, sizeof(Found), work_.stream),
                                "clearing counts"));
        const unsigned blocks = blocks_for(ends, kThreads);
        for (std::size_t s = 0; s < all.size(); ++s)
            find_rows<<<blocks, kThreads, 0, work_.stream>>>(keys_, all[s],
                                                             begins.data() + s * ends);
        const auto count = static_cast<std::uint32_t>(all.size());
        measure_rows<<<blocks, kThreads, 0, work_.stream>>>(keys_, on_device.data(), count,
                                                            shape_.positions, begins.data(),
                                                            rows.begins.data(), nullptr);
        GPUTEXT_TRY(launched("measuring rows of counts"));
        GPUTEXT_TRY(with_scratch(scratch_, work_.stream, [&](void* space, std::size_t& bytes) {
            return cub::DeviceScan::ExclusiveSum(space, bytes, rows.begins.data(),
                                                 rows.begins.data(),
                                                 static_cast<std::int64_t>(ends), work_.stream);
        }));
        measure_rows<<<blocks, kThreads, 0, work_.stream>>>(keys_, on_device.data(), count,
                                                            shape_.positions, begins.data(),
                                                            offsets.data(), rows.begins.data());
        std::uint64_t stored = 0;
        GPUTEXT_TRY(download_value(rows.begins.data() + words, stored, work_.stream,
                                   "measuring rows of counts"));
        GPUTEXT_TRY(rows.columns.allocate(stored, work_.stream));
        GPUTEXT_TRY(rows.counts.allocate(stored, work_.stream));
        for (std::size_t s = 0; s < all.size(); ++s) {
            if (all[s].size == 0) continue;
            write_rows<<<blocks_for(all[s].size, kThreads), kThreads, 0, work_.stream>>>(
                keys_, all[s], shape_.positions, offsets.data() + s * ends, rows.columns.data(),
                rows.counts.data(), found_.data());
            GPUTEXT_TRY(launched("writing rows of counts"));
        }
        rows.view = {shape_, stored, rows.begins.data(), rows.columns.data(), rows.counts.data(),
                     true};
        return {};
    }

    const CooccurrenceShape shape_;
    const WordKeys keys_;
    const DeviceWork work_;
    Execution& execution_;
    const std::vector<Pass> passes_;
    std::vector<Runs> runs_, opposite_;
    Timers timers_;
    std::uint64_t capacity_ = 0, chunk_bytes_ = 0;
    DeviceBuffer<Key> keys_a_, keys_b_;
    DeviceBuffer<std::uint32_t> counts_;
    DeviceBuffer<std::uint64_t> number_;
    DeviceBuffer<Found> found_;
    DeviceBuffer<std::uint8_t> scratch_;
};

/// Tokens of a chunk: a third of the memory, for the runs and the answer take more.
Status plan_chunk(const CooccurrenceShape& shape, const WordKeys& keys, std::uint64_t tokens,
                  std::uint64_t bytes, std::uint64_t& chunk) {
    const std::uint64_t of_token = bytes_of_tokens(shape, keys.wide ? 8 : 4);
    const std::uint64_t fixed = fixed_bytes(shape, keys);
    const std::uint64_t least = fixed + 3 * kLeastChunk * of_token;
    if (bytes < least) return too_little_memory("counting neighbors takes", least, bytes);
    chunk = std::min((bytes - fixed) / 3 / of_token, kMostKeys / keys_of_token(shape));
    chunk = std::max<std::uint64_t>(1, std::min(chunk, std::max<std::uint64_t>(1, tokens)));
    return {};
}

template <class Work>
Status with_key_type(const WordKeys& keys, Work&& work) {
    return keys.wide ? work(std::uint64_t{}) : work(std::uint32_t{});
}

}  // namespace

CooccurrenceBytes cooccurrence_bytes(const CooccurrenceShape& shape, std::uint64_t tokens) {
    const WordKeys keys = WordKeys::of(shape.words);
    const std::uint64_t key = keys.wide ? 8 : 4;
    const std::uint64_t fixed = fixed_bytes(shape, keys), of_token = bytes_of_tokens(shape, key);
    // Runs may be as many as there are keys.
    const std::uint64_t runs = tokens * shape.window * (key + 4);
    return {fixed + 3 * kLeastChunk * of_token,
            fixed + std::max(3 * tokens * of_token, 2 * runs + 16 * tokens * shape.window)};
}

Status count_words(const CooccurrenceShape& shape, const DeviceTokens& tokens,
                   const DeviceWork& work, Execution& execution, CountRowsMemory& rows,
                   CooccurrenceTimes* times) {
    GPUTEXT_TRY(check_shape(shape));
    const WordKeys keys = WordKeys::of(shape.words);
    std::uint64_t chunk = 0;
    GPUTEXT_TRY(plan_chunk(shape, keys, tokens.size, work.bytes, chunk));
    execution.begin_phase("counting neighbors", (tokens.size + chunk - 1) / chunk);
    return with_key_type(keys, [&](auto key) -> Status {
        Counting<decltype(key)> counting(shape, keys, work, execution, times != nullptr);
        GPUTEXT_TRY(counting.begin(chunk));
        for (std::uint64_t begin = 0; begin < tokens.size; begin += chunk)
            GPUTEXT_TRY(counting.count(tokens, begin, std::min(tokens.size, begin + chunk)));
        GPUTEXT_TRY(counting.finish(rows));
        if (times != nullptr) counting.tell(*times);
        return {};
    });
}

Status count_words(const CooccurrenceShape& shape, const TokenStream& tokens,
                   const DeviceWork& work, UploadRing& ring, Execution& execution,
                   CountRowsMemory& rows, CooccurrenceTimes* times) {
    GPUTEXT_TRY(check_shape(shape));
    const std::uint64_t size = tokens.words.size();
    if (tokens.positions.size() != size)
        return {ErrorCode::invalid_argument, "there must be a position for each word"};
    if (size > UINT32_MAX)
        return {ErrorCode::invalid_argument,
                "there may be at most 4294967295 words, not " + std::to_string(size)};
    const WordKeys keys = WordKeys::of(shape.words);
    std::uint64_t chunk = 0;
    GPUTEXT_TRY(plan_chunk(shape, keys, size, work.bytes, chunk));
    execution.begin_phase("counting neighbors", (size + chunk - 1) / chunk);
    StreamEvent event;
    GPUTEXT_TRY(event.create());
    return with_key_type(keys, [&](auto key) -> Status {
        Counting<decltype(key)> counting(shape, keys, work, execution, times != nullptr);
        DeviceBuffer<std::uint32_t> words, positions;
        GPUTEXT_TRY(counting.begin(chunk));
        for (std::uint64_t begin = 0; begin < size;) {
            const std::uint64_t end = std::min(size, begin + chunk);
            // Tokens behind the chunk that stand near its last one, and the token before, to be
            // compared.
            std::uint64_t ahead = end;
            while (ahead < size &&
                   tokens.positions[ahead] - tokens.positions[end - 1] <= shape.window)
                ++ahead;
            const std::uint64_t from = begin == 0 ? 0 : begin - 1;
            const std::uint64_t count = ahead - from;
            if (count > words.size()) {
                GPUTEXT_TRY(words.allocate(count, work.stream));
                GPUTEXT_TRY(positions.allocate(count, work.stream));
            }
            GPUTEXT_TRY(event.hold(ring.stream(), work.stream));
            const auto copy = [&](std::uint32_t* to, std::span<const std::uint32_t> all) {
                return ring.copy(
                    reinterpret_cast<std::uint8_t*>(to),
                    {reinterpret_cast<const std::uint8_t*>(all.data() + from), count * 4},
                    execution);
            };
            GPUTEXT_TRY(copy(words.data(), tokens.words));
            GPUTEXT_TRY(copy(positions.data(), tokens.positions));
            GPUTEXT_TRY(event.hold(work.stream, ring.stream()));
            GPUTEXT_TRY(
                counting.count({words.data(), positions.data(), count}, begin - from, end - from));
            begin = end;
        }
        words.reset();
        positions.reset();
        GPUTEXT_TRY(counting.finish(rows));
        if (times != nullptr) counting.tell(*times);
        return {};
    });
}

Status upload_counts(const Cooccurrences& counts, const DeviceWork& work, UploadRing& ring,
                     Execution& execution, CountRowsMemory& rows) {
    StreamEvent event;
    GPUTEXT_TRY(event.create());
    GPUTEXT_TRY(rows.begins.allocate(counts.begins.size(), work.stream));
    GPUTEXT_TRY(rows.columns.allocate(counts.columns.size(), work.stream));
    GPUTEXT_TRY(rows.counts.allocate(counts.counts.size(), work.stream));
    GPUTEXT_TRY(event.hold(ring.stream(), work.stream));
    const auto copy = [&](auto* to, const auto& from) -> Status {
        if (from.empty()) return {};
        return ring.copy(
            reinterpret_cast<std::uint8_t*>(to),
            {reinterpret_cast<const std::uint8_t*>(from.data()), from.size() * sizeof(from[0])},
            execution);
    };
    GPUTEXT_TRY(copy(rows.begins.data(), counts.begins));
    GPUTEXT_TRY(copy(rows.columns.data(), counts.columns));
    GPUTEXT_TRY(copy(rows.counts.data(), counts.counts));
    GPUTEXT_TRY(event.hold(work.stream, ring.stream()));
    rows.view = {counts.shape,        counts.stored(),    rows.begins.data(),
                 rows.columns.data(), rows.counts.data(), false};
    return {};
}

Result<Cooccurrences> download_counts(const CountRows& rows, cudaStream_t stream,
                                      Execution& execution) try {
    Cooccurrences counts;
    counts.shape = rows.shape;
    counts.begins.resize(std::size_t{rows.shape.words} + 1);
    counts.columns.resize(rows.stored);
    counts.counts.resize(rows.stored);
    constexpr std::size_t kStep = std::size_t{1} << 28;  // bytes between two looks
    const auto copy = [&](auto& to, const auto* from) -> Status {
        auto* const bytes = reinterpret_cast<std::uint8_t*>(to.data());
        const std::size_t size = to.size() * sizeof(to[0]);
        for (std::size_t at = 0; at < size; at += kStep) {
            GPUTEXT_TRY(cuda_status(
                cudaMemcpyAsync(bytes + at, reinterpret_cast<const std::uint8_t*>(from) + at,
                                std::min(kStep, size - at), cudaMemcpyDeviceToHost, stream),
                "copying counts"));
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "copying counts"));
            GPUTEXT_TRY(execution.checkpoint(0));
        }
        return {};
    };
    const Status begins = copy(counts.begins, rows.begins);
    if (!begins.ok()) return begins;
    const Status columns = copy(counts.columns, rows.columns);
    if (!columns.ok()) return columns;
    const Status values = copy(counts.counts, rows.counts);
    if (!values.ok()) return values;
    return counts;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

}  // namespace gputext::gpu
