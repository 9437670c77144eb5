#include "kernels/trie/detail/front_coded_packing.hpp"

#include <cub/device/device_scan.cuh>

#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/trie/detail/front_coded_encoder.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
static_assert(kBucketWords == kWarp, "a lane for each word of a bucket");

__device__ void copy_table(const CodeTable* from, CodeTable& to) {
    for (unsigned i = threadIdx.x; i < sizeof(CodeTable) / 4; i += kThreads)
        reinterpret_cast<std::uint32_t*>(&to)[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
    __syncthreads();
}
static_assert(sizeof(CodeTable) % 4 == 0);

__device__ FrontCodedWord word_at(const DeviceWords& words, const std::uint32_t* order,
                                  std::uint32_t i) {
    const std::uint32_t word = order[i];
    return {words.begin(word), static_cast<std::uint32_t>(words.length(word))};
}

__device__ FrontCodedWord word_before(const FrontCodedWord& word) {
    const auto bytes = reinterpret_cast<unsigned long long>(word.bytes);
    return {reinterpret_cast<const std::uint8_t*>(__shfl_up_sync(~0u, bytes, 1)),
            __shfl_up_sync(~0u, word.length, 1)};
}

/// A bit for each byte value that occurs.
struct Alphabet {
    std::uint32_t bits[8] = {};

    __device__ void add(std::uint32_t byte) {
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) bits[i] |= i == byte / 32 ? 1u << byte % 32 : 0;
    }
    __device__ void add_to(WordStatistics* statistics, unsigned lane) {
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) {
            const std::uint32_t all = warp_or(bits[i]);
            if (lane == 0 && all != 0) atomicOr(&statistics->alphabet[i], all);
        }
    }
};

/// As many warps as fill the device, each of which takes buckets in turn.
__global__ __launch_bounds__(kThreads) void measure_buckets(
    DeviceWords words, const std::uint32_t* order, std::uint32_t count, std::uint32_t buckets,
    const CodeTable* table, std::uint32_t* shared, std::uint32_t* codes, std::uint64_t* sizes,
    WordStatistics* statistics) {
    __shared__ CodeTable own_table;
    copy_table(table, own_table);
    const unsigned lane = threadIdx.x % kWarp;
    Alphabet alphabet;
    unsigned long long text_bytes = 0;
    std::uint32_t longest = 0;
    for (std::uint32_t bucket = (blockIdx.x * kThreads + threadIdx.x) / kWarp; bucket < buckets;
         bucket += gridDim.x * kThreads / kWarp) {
        const std::uint32_t i = bucket * kBucketWords + lane;
        const bool is_word = i < count;
        const FrontCodedWord word = is_word ? word_at(words, order, i) : FrontCodedWord();
        const FrontCodedWord before = word_before(word);
        std::uint32_t bytes = 0;  // in the bucket
        WordSizes own;
        if (lane == 0) {
            bytes = 1 + tail_length(word.length) + excess_of(word.length, kMostFirst);
        } else if (is_word) {
            own = sizes_of(own_table, before, word);
            shared[i] = own.shared;
            codes[i] = own.codes;
            bytes = 1 + own.codes + own.excess;
        }
        for (std::uint32_t at = own.shared; at < word.length; ++at) alphabet.add(word.bytes[at]);
        text_bytes += word.length;
        longest = max(longest, word.length);
        bytes = warp_sum(bytes);
        if (lane == 0) sizes[bucket] = bytes;
    }
    alphabet.add_to(statistics, lane);
    text_bytes = warp_sum(text_bytes);
    longest = warp_max(longest);
    if (lane != 0) return;
    atomicAdd(reinterpret_cast<unsigned long long*>(&statistics->text_bytes), text_bytes);
    atomicMax(&statistics->longest, longest);
}

__global__ __launch_bounds__(kThreads) void write_buckets(
    DeviceWords words, const std::uint32_t* order, std::uint32_t count, std::uint32_t buckets,
    const CodeTable* table, const std::uint32_t* shared, const std::uint32_t* codes,
    const std::uint64_t* offsets, WordKey* separators, std::uint32_t* offsets_out,
    std::uint8_t* out) {
    __shared__ CodeTable own_table;
    copy_table(table, own_table);
    const unsigned lane = threadIdx.x % kWarp;
    for (std::uint32_t bucket = (blockIdx.x * kThreads + threadIdx.x) / kWarp; bucket < buckets;
         bucket += gridDim.x * kThreads / kWarp) {
        const std::uint32_t i = bucket * kBucketWords + lane;
        const bool is_word = i < count;
        const std::uint32_t in_bucket = min(kBucketWords, count - bucket * kBucketWords);
        const FrontCodedWord word = is_word ? word_at(words, order, i) : FrontCodedWord();
        const std::uint32_t first_length = __shfl_sync(~0u, word.length, 0);
        WordSizes own;
        if (lane == 0) {
            own.excess = excess_of(word.length, kMostFirst);
        } else if (is_word) {
            own.shared = shared[i];
            own.codes = codes[i];
            own.excess = excess_of(own.shared, kMostInHead) + excess_of(own.codes - 1, kMostInHead);
        }
        const std::uint32_t codes_before = sum_up_to_lane(own.codes) - own.codes;
        const std::uint32_t excess_before = sum_up_to_lane(own.excess) - own.excess;
        std::uint8_t* const begin = out + offsets[bucket];
        std::uint8_t* const end = out + offsets[bucket + 1] - excess_before;
        if (lane == 0) {
            separators[bucket] = key_of(word.bytes, word.length);
            offsets_out[bucket] = static_cast<std::uint32_t>(offsets[bucket]);
            if (bucket + 1 == buckets)
                offsets_out[buckets] = static_cast<std::uint32_t>(offsets[buckets]);
            begin[0] = static_cast<std::uint8_t>(min(word.length, kMostFirst));
            for (std::uint32_t at = kSeparatorBytes; at < word.length; ++at)
                begin[in_bucket + at - kSeparatorBytes] = word.bytes[at];
            write_excess(word.length, kMostFirst, end);
        } else if (is_word) {
            begin[lane] = head_of(own);
            write_codes(own_table, word, own.shared,
                        begin + in_bucket + tail_length(first_length) + codes_before);
            write_excess(own.codes - 1, kMostInHead, write_excess(own.shared, kMostInHead, end));
        }
    }
}

/// Blocks that are enough for any device.
unsigned blocks_of(std::uint32_t buckets) {
    constexpr unsigned kMost = 1 << 12;
    return std::min(blocks_for(buckets, kThreads / kWarp), kMost);
}

std::size_t buckets_of(std::size_t words) {
    return (words + kBucketWords - 1) / kBucketWords;
}

}  // namespace

std::size_t FrontCodedPacking::bytes(std::size_t words) {
    constexpr std::size_t kSlack = 1 << 16;
    // CUB's scratch memory is far below a byte a bucket.
    return 2 * words * sizeof(std::uint32_t) +
           (buckets_of(words) + 1) * (sizeof(std::uint64_t) + 1) + kSlack;
}

Status FrontCodedPacking::measure(const DeviceWords& words, const WordOrder& order,
                                  const CodeTable* table, cudaStream_t stream) {
    words_ = words;
    order_ = order.words.data();
    count_ = static_cast<std::uint32_t>(order.count);
    buckets_ = static_cast<std::uint32_t>(buckets_of(count_));
    table_ = table;
    stream_ = stream;
    GPUTEXT_TRY(shared_.allocate(count_, stream));
    GPUTEXT_TRY(codes_.allocate(count_, stream));
    GPUTEXT_TRY(offsets_.allocate(std::size_t{buckets_} + 1, stream));
    GPUTEXT_TRY(statistics_on_device_.allocate(1, stream));
    GPUTEXT_TRY(cuda_status(
        cudaMemsetAsync(statistics_on_device_.data(), 0, sizeof(WordStatistics), stream),
        "packing words"));
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(offsets_.data() + buckets_, 0, sizeof(std::uint64_t), stream),
                    "packing words"));
    measure_buckets<<<blocks_of(buckets_), kThreads, 0, stream>>>(
        words, order_, count_, buckets_, table, shared_.data(), codes_.data(), offsets_.data(),
        statistics_on_device_.data());
    GPUTEXT_TRY(launched("packing words"));
    GPUTEXT_TRY(with_scratch(scratch_, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(space, bytes, offsets_.data(), offsets_.data(),
                                             static_cast<std::int64_t>(buckets_) + 1, stream);
    }));
    GPUTEXT_TRY(download_value(statistics_on_device_.data(), statistics_, stream, "packing words"));
    return download_value(offsets_.data() + buckets_, payload_, stream, "packing words");
}

Status FrontCodedPacking::write(std::uint8_t* separators, std::uint8_t* offsets,
                                std::uint8_t* buckets) {
    write_buckets<<<blocks_of(buckets_), kThreads, 0, stream_>>>(
        words_, order_, count_, buckets_, table_, shared_.data(), codes_.data(), offsets_.data(),
        reinterpret_cast<WordKey*>(separators), reinterpret_cast<std::uint32_t*>(offsets), buckets);
    return launched("packing words");
}

}  // namespace gputext::gpu
