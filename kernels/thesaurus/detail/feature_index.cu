#include "kernels/thesaurus/detail/feature_index.hpp"

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <string>

#include "kernels/base/binary_search.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/thesaurus/detail/measure.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::uint32_t kNotDense = UINT32_MAX;
constexpr std::uint32_t kDenseOfBlock = 32768;  // dense columns that a block of threads fills

/// A block for each word: its own sum, which the measures divide by.
template <WordMeasure Measure>
__global__ __launch_bounds__(kThreads) void measure_alone(FeatureRows features,
                                                          unsigned long long* words, float* rough,
                                                          unsigned long long* largest) {
    __shared__ unsigned long long total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const std::uint32_t row = blockIdx.x;
    unsigned long long sum = 0;
    for (std::uint64_t at = features.begins[row] + threadIdx.x; at < features.begins[row + 1];
         at += kThreads) {
        const unsigned long long weight =
            Measure == WordMeasure::jaccard ? 1 : features.weights[at];
        sum += Measure == WordMeasure::cosine ? weight * weight : weight;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0 && sum != 0) atomicAdd(&total, sum);
    __syncthreads();
    if (threadIdx.x != 0) return;
    words[row] = total;
    rough[row] = rough_part<Measure>(total);
    if (total > *largest) atomicMax(largest, total);
}

/// A thread for each feature of a word.
__global__ void pair_up(FeatureRows features, std::uint32_t* columns, std::uint64_t* pairs) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (at >= features.stored) return;
    columns[at] = features.columns[at];
    pairs[at] = std::uint64_t{part_with(features.begins, features.shape.words, at)} << 16 |
                features.weights[at];
}

/// A thread for each sorted pair of word and weight.
__global__ void write_postings(const std::uint64_t* pairs, std::uint64_t size,
                               const std::uint32_t* cuts, std::uint32_t tiles,
                               std::uint32_t* postings) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (at >= size) return;
    const auto word = static_cast<std::uint32_t>(pairs[at] >> 16);
    postings[at] = (word - cuts[part_with(cuts, tiles, word)]) |
                   static_cast<std::uint32_t>(pairs[at] & 0xffff) << 16;
}

/// Features that some word has, sorted by their columns.
struct Lists {
    const std::uint32_t* columns;
    const std::uint32_t* lengths;
    const std::uint32_t* begins;
    std::uint32_t count;
};

struct Work {
    unsigned long long dense, cold, cold_postings;
};

/// A thread for each feature and tile: where its words of the tile are, unless it is dense, or one
/// word's alone.
__global__ void find_lists(Lists lists, const std::uint64_t* pairs, const std::uint32_t* cuts,
                           std::uint32_t tiles, std::uint64_t columns, std::uint32_t cut,
                           uint2* to) {
    const std::uint64_t number = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::uint32_t list = static_cast<std::uint32_t>(number % lists.count);
    const std::uint32_t tile = static_cast<std::uint32_t>(number / lists.count);
    if (tile >= tiles) return;
    const std::uint32_t length = lists.lengths[list], begin = lists.begins[list];
    if (length < 2 || length >= cut) return;
    const auto first_from = [&](std::uint32_t word) {
        return partition_point(begin, begin + length,
                               [&](std::uint32_t at) { return (pairs[at] >> 16) < word; });
    };
    to[tile * columns + lists.columns[list]] = {first_from(cuts[tile]), first_from(cuts[tile + 1])};
}

/// A thread for each feature.
__global__ __launch_bounds__(kThreads) void add_work(Lists lists, std::uint32_t cut, Work* work) {
    __shared__ Work sums;
    if (threadIdx.x == 0) sums = {};
    __syncthreads();
    const std::uint32_t list = blockIdx.x * kThreads + threadIdx.x;
    if (list < lists.count) {
        const unsigned long long length = lists.lengths[list];
        if (length >= cut) {
            atomicAdd(&sums.dense, length * length);
        } else if (length > 1) {
            atomicAdd(&sums.cold, length * length);
            atomicAdd(&sums.cold_postings, length);
        }
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    atomicAdd(&work->dense, sums.dense);
    atomicAdd(&work->cold, sums.cold);
    atomicAdd(&work->cold_postings, sums.cold_postings);
}

__global__ void number_lists(std::uint32_t* numbers, std::uint32_t count) {
    const std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) numbers[at] = at;
}

/// A thread for each dense column.
__global__ void rank_dense(Lists lists, const std::uint32_t* order, std::uint32_t dense,
                           std::uint32_t* ranks) {
    const std::uint32_t rank = blockIdx.x * blockDim.x + threadIdx.x;
    if (rank < dense) ranks[lists.columns[order[rank]]] = rank;
}

struct Dense {
    FeatureRows features;
    const std::uint32_t* ranks;
    const std::uint32_t* cuts;
    std::uint32_t tiles, padded, column_blocks;
    std::uint8_t* upper;  // null where not wanted
    std::uint8_t* lower;
    std::uint8_t* marks;
};

/// A block for each word and kDenseOfBlock dense columns.
__global__ __launch_bounds__(kThreads) void fill_dense(Dense job) {
    extern __shared__ std::uint16_t weights[];  // of the columns
    const std::uint32_t first = blockIdx.y * kDenseOfBlock;
    const std::uint32_t count = min(kDenseOfBlock, job.column_blocks * 128 - first);
    for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) weights[i] = 0;
    __syncthreads();
    const std::uint32_t word = blockIdx.x;
    for (std::uint64_t at = job.features.begins[word] + threadIdx.x;
         at < job.features.begins[word + 1]; at += kThreads) {
        const std::uint32_t rank = job.ranks[job.features.columns[at]];
        if (rank != kNotDense && rank - first < count)
            weights[rank - first] = job.features.weights[at];
    }
    __syncthreads();
    const std::uint32_t tile = part_with(job.cuts, job.tiles, word);
    const std::uint32_t row = tile * job.padded + (word - job.cuts[tile]);
    for (std::uint32_t i = 16 * threadIdx.x; i < count; i += 16 * kThreads) {
        union {
            std::uint8_t bytes[16];
            uint4 vector;
        } upper, lower, marks;
#pragma unroll
        for (unsigned b = 0; b < 16; ++b) {
            const std::uint16_t weight = weights[i + b];
            upper.bytes[b] = static_cast<std::uint8_t>(weight >> 8);
            lower.bytes[b] = static_cast<std::uint8_t>(weight & 255);
            marks.bytes[b] = weight != 0;
        }
        const std::size_t to = place_in_blocks(row, first + i, job.column_blocks);
        if (job.upper != nullptr) *reinterpret_cast<uint4*>(job.upper + to) = upper.vector;
        if (job.lower != nullptr) *reinterpret_cast<uint4*>(job.lower + to) = lower.vector;
        if (job.marks != nullptr) *reinterpret_cast<uint4*>(job.marks + to) = marks.vector;
    }
}

/// A thread for each word.
__global__ void find_divided(FeatureRows features, std::uint64_t least, std::uint32_t most,
                             std::uint32_t* words, unsigned* found) {
    const std::uint32_t word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= features.shape.words) return;
    if (features.begins[word + 1] - features.begins[word] < least) return;
    const unsigned at = atomicAdd(found, 1u);
    if (at < most) words[at] = word;
}

__global__ void rank_divided(const WordPart* parts, std::uint32_t count, std::uint32_t* ranks) {
    const std::uint32_t part = blockIdx.x * blockDim.x + threadIdx.x;
    if (part < count) ranks[parts[part].word] = parts[part].rank;
}

unsigned matrices_of(WordMeasure measure) {
    return measure == WordMeasure::lin ? 3 : measure == WordMeasure::cosine ? 2 : 1;
}

}  // namespace

WordIndexMemory::Bytes WordIndexMemory::bytes(const FeatureRows& features, std::uint32_t tiles,
                                              std::uint32_t padded, std::uint32_t dense,
                                              WordMeasure measure) {
    const std::uint64_t columns = features.shape.columns(), stored = features.stored;
    const std::uint64_t different = std::min(columns, stored);
    const std::uint64_t words = std::uint64_t{features.shape.words} * 12;
    const std::uint64_t lists = columns * (8 * std::uint64_t{tiles} + 4) + words;
    const std::uint64_t small = std::uint64_t{4} << 20;
    const std::uint64_t cells = std::uint64_t{tiles} * padded * dense * matrices_of(measure);
    return {lists + stored * (24 + 4 + 1) + different * 24 + small,
            lists + stored * 4 + cells + small};
}

Status WordIndexMemory::measure_words(const FeatureRows& features, WordMeasure measure,
                                      cudaStream_t stream) {
    const std::uint32_t words = features.shape.words;
    DeviceBuffer<unsigned long long> largest;
    GPUTEXT_TRY(words_.allocate(words, stream));
    GPUTEXT_TRY(rough_.allocate(words + kRoughBehind, stream));
    GPUTEXT_TRY(cuda_status(
        cudaMemsetAsync(rough_.data(), 0, (words + kRoughBehind) * sizeof(float), stream),
        "clearing sums"));
    GPUTEXT_TRY(largest.allocate(1, stream));
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(largest.data(), 0, 8, stream), "clearing sums"));
    if (words == 0) return {};
    const auto launch = [&](auto kernel) {
        kernel<<<words, kThreads, 0, stream>>>(features, words_.data(), rough_.data(),
                                               largest.data());
        return launched("measuring words");
    };
    if (measure == WordMeasure::lin)
        GPUTEXT_TRY(launch(measure_alone<WordMeasure::lin>));
    else if (measure == WordMeasure::cosine)
        GPUTEXT_TRY(launch(measure_alone<WordMeasure::cosine>));
    else
        GPUTEXT_TRY(launch(measure_alone<WordMeasure::jaccard>));
    unsigned long long most = 0;
    GPUTEXT_TRY(download_value(largest.data(), most, stream, "measuring words"));
    facts_.largest = most;
    return {};
}

Status WordIndexMemory::sort(const FeatureRows& features, const WordIndexPlan& plan,
                             Execution& execution, cudaStream_t stream) {
    const std::uint64_t stored = features.stored, columns = features.shape.columns();
    const std::uint64_t most = std::min(columns, stored);
    const auto items = static_cast<std::int64_t>(stored);
    DeviceBuffer<std::uint8_t> scratch;
    DeviceBuffer<std::uint32_t> columns_a, columns_b, lengths, begins, order_a, order_b, sorted_b;
    DeviceBuffer<std::uint64_t> pairs_a, pairs_b, number;
    GPUTEXT_TRY(columns_a.allocate(stored, stream));
    GPUTEXT_TRY(columns_b.allocate(stored, stream));
    GPUTEXT_TRY(pairs_a.allocate(stored, stream));
    GPUTEXT_TRY(pairs_b.allocate(stored, stream));
    pair_up<<<blocks_for(stored, kThreads), kThreads, 0, stream>>>(features, columns_a.data(),
                                                                   pairs_a.data());
    GPUTEXT_TRY(launched("indexing features"));
    cub::DoubleBuffer<std::uint32_t> keys(columns_a.data(), columns_b.data());
    cub::DoubleBuffer<std::uint64_t> pairs(pairs_a.data(), pairs_b.data());
    GPUTEXT_TRY(with_scratch(scratch, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceRadixSort::SortPairs(space, bytes, keys, pairs, items, 0,
                                               std::bit_width(columns), stream);
    }));
    GPUTEXT_TRY(lengths.allocate(most, stream));
    GPUTEXT_TRY(begins.allocate(most, stream));
    GPUTEXT_TRY(number.allocate(1, stream));
    GPUTEXT_TRY(with_scratch(scratch, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceRunLengthEncode::Encode(space, bytes, keys.Current(), keys.Alternate(),
                                                  lengths.data(), number.data(), items, stream);
    }));
    std::uint64_t different = 0;
    GPUTEXT_TRY(download_value(number.data(), different, stream, "indexing features"));
    GPUTEXT_TRY(execution.checkpoint(0));
    const auto count = static_cast<std::uint32_t>(different);
    GPUTEXT_TRY(with_scratch(scratch, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(space, bytes, lengths.data(), begins.data(),
                                             static_cast<std::int64_t>(count), stream);
    }));
    write_postings<<<blocks_for(stored, kThreads), kThreads, 0, stream>>>(
        pairs.Current(), stored, cuts_.data(), plan.tiles(), postings_.data());
    GPUTEXT_TRY(launched("indexing features"));
    const Lists lists{keys.Alternate(), lengths.data(), begins.data(), count};

    // Dense columns: those of the most words.
    auto cut = std::max<std::uint32_t>(
        2, static_cast<std::uint32_t>(plan.dense_share * features.shape.words));
    std::uint32_t dense = 0;
    if (plan.most_dense > 0) {
        GPUTEXT_TRY(order_a.allocate(count, stream));
        GPUTEXT_TRY(order_b.allocate(count, stream));
        GPUTEXT_TRY(sorted_b.allocate(count, stream));
        number_lists<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(order_a.data(), count);
        GPUTEXT_TRY(with_scratch(scratch, stream, [&](void* space, std::size_t& bytes) {
            return cub::DeviceRadixSort::SortPairsDescending(
                space, bytes, lengths.data(), sorted_b.data(), order_a.data(), order_b.data(),
                static_cast<std::int64_t>(count), 0, 32, stream);
        }));
        std::vector<std::uint32_t> longest(std::min(count, plan.most_dense + 1));
        GPUTEXT_TRY(download(sorted_b.data(), longest.data(), longest.size(), stream,
                             "choosing frequent features"));
        // If there is no room for all, those as long as the first that has none stay lists.
        if (longest.size() > plan.most_dense) cut = std::max(cut, longest.back() + 1);
        while (dense < longest.size() && longest[dense] >= cut) ++dense;
    }
    if (dense == 0) cut = UINT32_MAX;
    if (dense > 0) {
        GPUTEXT_TRY(dense_ranks_.allocate(columns, stream));
        GPUTEXT_TRY(cuda_status(cudaMemsetAsync(dense_ranks_.data(), 0xff, columns * 4, stream),
                                "clearing"));
        rank_dense<<<blocks_for(dense, kThreads), kThreads, 0, stream>>>(
            lists, order_b.data(), dense, dense_ranks_.data());
        GPUTEXT_TRY(launched("choosing frequent features"));
    }
    find_lists<<<blocks_for(std::uint64_t{count} * plan.tiles(), kThreads), kThreads, 0, stream>>>(
        lists, pairs.Current(), cuts_.data(), plan.tiles(), columns, cut, lists_.data());
    GPUTEXT_TRY(launched("indexing features"));
    DeviceBuffer<Work> work;
    GPUTEXT_TRY(work.allocate(1, stream));
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(work.data(), 0, sizeof(Work), stream), "clearing"));
    add_work<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(lists, cut, work.data());
    GPUTEXT_TRY(launched("indexing features"));
    Work sums{};
    GPUTEXT_TRY(download_value(work.data(), sums, stream, "indexing features"));
    facts_.dense_work = static_cast<double>(sums.dense);
    facts_.cold_work = static_cast<double>(sums.cold);
    facts_.cold_postings = sums.cold_postings;
    view_.dense = dense;
    view_.column_blocks = (dense + 127) / 128;
    return {};
}

Status WordIndexMemory::fill(const WordIndexPlan& plan, cudaStream_t stream) {
    const std::size_t size = std::size_t{plan.tiles()} * plan.padded * view_.column_blocks * 128;
    const auto clear = [&](DeviceBuffer<std::uint8_t>& matrix) -> Status {
        GPUTEXT_TRY(matrix.allocate(size, stream));
        return cuda_status(cudaMemsetAsync(matrix.data(), 0, size, stream), "clearing features");
    };
    if (plan.measure != WordMeasure::jaccard) {
        GPUTEXT_TRY(clear(upper_));
        GPUTEXT_TRY(clear(lower_));
    }
    if (plan.measure != WordMeasure::cosine) GPUTEXT_TRY(clear(marks_));
    const std::uint32_t columns = view_.column_blocks * 128;
    const std::size_t shared = std::min(columns, kDenseOfBlock) * sizeof(std::uint16_t);
    GPUTEXT_TRY(allow_shared_bytes(fill_dense, shared));
    const dim3 blocks(view_.features.shape.words, blocks_for(columns, kDenseOfBlock));
    fill_dense<<<blocks, kThreads, shared, stream>>>(
        {view_.features, dense_ranks_.data(), cuts_.data(), plan.tiles(), plan.padded,
         view_.column_blocks, upper_.data(), lower_.data(), marks_.data()});
    GPUTEXT_TRY(launched("writing frequent features"));
    view_.upper = upper_.data();
    view_.lower = lower_.data();
    view_.marks = marks_.data();
    dense_ranks_.reset();
    return {};
}

Status WordIndexMemory::divide(const FeatureRows& features, const WordIndexPlan& plan,
                               cudaStream_t stream) {
    word_parts_.clear();
    const std::uint32_t words = features.shape.words;
    const std::uint64_t least = plan.divided_from > 0
                                    ? plan.divided_from
                                    : std::max<std::uint64_t>(8192, 4 * features.stored / words);
    DeviceBuffer<std::uint32_t> found_words;
    DeviceBuffer<unsigned> number;
    GPUTEXT_TRY(found_words.allocate(plan.most_divided, stream));
    GPUTEXT_TRY(number.allocate(1, stream));
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(number.data(), 0, sizeof(unsigned), stream),
                            "clearing a number"));
    find_divided<<<blocks_for(words, kThreads), kThreads, 0, stream>>>(
        features, least, plan.most_divided, found_words.data(), number.data());
    GPUTEXT_TRY(launched("finding frequent words"));
    unsigned found = 0;
    GPUTEXT_TRY(download_value(number.data(), found, stream, "finding frequent words"));
    std::vector<std::uint32_t> divided(std::min<std::size_t>(found, plan.most_divided));
    if (divided.empty()) return {};
    GPUTEXT_TRY(download(found_words.data(), divided.data(), divided.size(), stream,
                         "finding frequent words"));
    std::vector<std::uint64_t> begins(std::size_t{words} + 1);
    GPUTEXT_TRY(
        download(features.begins, begins.data(), begins.size(), stream, "finding frequent words"));
    std::ranges::sort(divided);
    for (std::uint32_t rank = 0; rank < divided.size(); ++rank)
        for (std::uint64_t begin = begins[divided[rank]]; begin < begins[divided[rank] + 1];
             begin += WordPart::kFeatures)
            word_parts_.push_back(
                {divided[rank], rank, begin,
                 std::min(begins[divided[rank] + 1], begin + WordPart::kFeatures)});
    GPUTEXT_TRY(parts_.upload(word_parts_, stream));
    GPUTEXT_TRY(divided_ranks_.allocate(words, stream));
    GPUTEXT_TRY(cuda_status(
        cudaMemsetAsync(divided_ranks_.data(), 0xff, std::size_t{words} * 4, stream), "clearing"));
    const auto count = static_cast<std::uint32_t>(word_parts_.size());
    rank_divided<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(parts_.data(), count,
                                                                       divided_ranks_.data());
    view_.word_parts = parts_.data();
    view_.divided_ranks = divided_ranks_.data();
    return launched("finding frequent words");
}

Status WordIndexMemory::build(const FeatureRows& features, const WordIndexPlan& plan,
                              Execution& execution, cudaStream_t stream) {
    view_ = {};
    view_.features = features;
    view_.columns = features.shape.columns();
    view_.tiles = plan.tiles();
    view_.padded = plan.padded;
    view_.words = words_.data();
    view_.rough = rough_.data();
    if (features.stored == 0) return {};
    if (features.stored > UINT32_MAX)
        return {ErrorCode::out_of_memory,
                std::to_string(features.stored) +
                    " features of words are more than the 4294967295 that a device can index"};
    const std::size_t lists = view_.columns * plan.tiles();
    GPUTEXT_TRY(lists_.allocate(lists, stream));
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(lists_.data(), 0, lists * sizeof(uint2), stream), "clearing"));
    GPUTEXT_TRY(postings_.allocate(features.stored, stream));
    GPUTEXT_TRY(cuts_.upload(plan.cuts, stream));
    GPUTEXT_TRY(sort(features, plan, execution, stream));
    view_.lists = lists_.data();
    view_.postings = postings_.data();
    if (view_.dense > 0) GPUTEXT_TRY(fill(plan, stream));
    if (plan.most_divided > 0) GPUTEXT_TRY(divide(features, plan, stream));
    return cuda_status(cudaStreamSynchronize(stream), "indexing features");
}

}  // namespace gputext::gpu
