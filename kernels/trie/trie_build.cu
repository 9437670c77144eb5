#include "kernels/trie/trie_build.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_scan.cuh>
#include <optional>
#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/trie/detail/front_coded_build.hpp"
#include "cpp/trie/detail/front_coded_layout.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/trie/detail/device_words.cuh"
#include "kernels/trie/detail/word_sort.hpp"

namespace gputext::gpu {

// The sizes of the words of a bucket of cpp/trie/detail/front_coded.hpp. One thread a word, one
// warp a bucket: where a thread writes, it knows from the sizes of the words before its own.

/// The symbols by first byte, the longest of each first, as SymbolEncoder has them.
struct CodeTable {
    std::uint64_t bytes[SymbolTable::kMost + 1];
    std::uint8_t lengths[SymbolTable::kMost + 1];
    std::uint8_t codes[SymbolTable::kMost + 1];
    std::uint16_t begins[257];  // of those with one first byte
};

inline CodeTable code_table_of(const SymbolTable& symbols) {
    std::vector<std::uint8_t> order(symbols.size);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint8_t>(i);
    const auto first_of = [&](std::uint8_t code) { return symbols.bytes[code] & 255; };
    std::stable_sort(order.begin(), order.end(), [&](std::uint8_t a, std::uint8_t b) {
        return first_of(a) != first_of(b) ? first_of(a) < first_of(b)
                                          : symbols.lengths[a] > symbols.lengths[b];
    });
    CodeTable table{};
    for (std::size_t i = 0; i < order.size(); ++i) {
        table.bytes[i] = symbols.bytes[order[i]];
        table.lengths[i] = symbols.lengths[order[i]];
        table.codes[i] = order[i];
        ++table.begins[first_of(order[i]) + 1];
    }
    for (std::size_t byte = 0; byte < 256; ++byte)
        table.begins[byte + 1] =
            static_cast<std::uint16_t>(table.begins[byte + 1] + table.begins[byte]);
    return table;
}

/// A symbol that a text begins with.
struct EncodedSymbol {
    std::uint8_t code;
    std::uint32_t length;  // 1 behind kEscape
};

/// The longest of a text of `left` bytes, at least 1, of which `text` are the first eight.
__host__ __device__ inline EncodedSymbol symbol_of(const CodeTable& table, std::uint64_t text,
                                                   std::uint32_t left) {
    const std::uint32_t first = text & 255;
    for (std::uint32_t i = table.begins[first]; i < table.begins[first + 1]; ++i) {
        const std::uint32_t length = table.lengths[i];
        if (length <= left && lowest_bytes(text, length) == table.bytes[i])
            return {table.codes[i], length};
    }
    return {SymbolTable::kEscape, 1};
}

/// A sorted word.
struct FrontCodedWord {
    const std::uint8_t* bytes = nullptr;
    std::uint32_t length = 0;
};

__host__ __device__ inline std::uint32_t tail_length(std::uint32_t first_length) {
    const auto separator = static_cast<std::uint32_t>(kSeparatorBytes);
    return first_length > separator ? first_length - separator : 0;
}

/// Bytes of a number as a varint.
__host__ __device__ inline std::uint32_t varint_bytes(std::uint32_t number) {
    std::uint32_t bytes = 1;
    for (; number >= 128; number >>= 7) ++bytes;
    return bytes;
}

/// Sizes of a word that is not the first of its bucket: bytes shared with the word before it,
/// bytes of codes, and bytes of the excess for which its head has no room.
struct WordSizes {
    std::uint32_t shared = 0, codes = 0, excess = 0;
};

__host__ __device__ inline std::uint32_t excess_of(std::uint32_t number, std::uint32_t most) {
    return number >= most ? varint_bytes(number - most) : 0;
}

__host__ __device__ inline WordSizes sizes_of(const CodeTable& table, const FrontCodedWord& before,
                                              const FrontCodedWord& word) {
    WordSizes sizes;
    sizes.shared = common_bytes(before.bytes, word.bytes,
                                before.length < word.length ? before.length : word.length);
    for (std::uint32_t at = sizes.shared; at < word.length;) {
        const std::uint32_t left = word.length - at;
        const EncodedSymbol symbol =
            symbol_of(table, load_up_to_eight(word.bytes + at, left), left);
        sizes.codes += symbol.code == SymbolTable::kEscape ? 2 : 1;
        at += symbol.length;
    }
    sizes.excess = excess_of(sizes.shared, kMostInHead) + excess_of(sizes.codes - 1, kMostInHead);
    return sizes;
}

/// Writes the codes of the word's own bytes.
__host__ __device__ inline void write_codes(const CodeTable& table, const FrontCodedWord& word,
                                            std::uint32_t shared, std::uint8_t* to) {
    for (std::uint32_t at = shared; at < word.length;) {
        const std::uint32_t left = word.length - at;
        const std::uint64_t text = load_up_to_eight(word.bytes + at, left);
        const EncodedSymbol symbol = symbol_of(table, text, left);
        *to++ = symbol.code;
        if (symbol.code == SymbolTable::kEscape) *to++ = static_cast<std::uint8_t>(text);
        at += symbol.length;
    }
}

/// Writes a number that has `most` or more downwards from `end` on; returns the lowest byte.
__host__ __device__ inline std::uint8_t* write_excess(std::uint32_t number, std::uint32_t most,
                                                      std::uint8_t* end) {
    if (number < most) return end;
    for (number -= most; number >= 128; number >>= 7)
        *--end = static_cast<std::uint8_t>((number & 127) | 128);
    *--end = static_cast<std::uint8_t>(number);
    return end;
}

__host__ __device__ inline std::uint8_t head_of(const WordSizes& sizes) {
    const std::uint32_t shared = sizes.shared < kMostInHead ? sizes.shared : kMostInHead;
    const std::uint32_t codes = sizes.codes - 1 < kMostInHead ? sizes.codes - 1 : kMostInHead;
    return static_cast<std::uint8_t>(shared << 4 | codes);
}

/// Statistics of the words of a dictionary.
struct WordStatistics {
    std::uint64_t text_bytes = 0;
    std::uint32_t longest = 0;
    std::uint32_t alphabet[8] = {};  // a bit for each byte value
};

/// Packs sorted words into buckets. They are measured, then written.
class FrontCodedPacking {
public:
    /// Device memory for so many words, without what write() fills.
    static std::size_t bytes(std::size_t words);

    /// Measures words, of which at least one is not empty; they, their order and the table must
    /// live as long as this object. Errors of all functions: out_of_memory, device_error.
    Status measure(const DeviceWords& words, const WordOrder& order, const CodeTable* table,
                   cudaStream_t stream);

    /// Valid after measure(), which has to have ended on the device. Bytes of all buckets.
    std::uint64_t payload() const { return payload_; }
    const WordStatistics& statistics() const { return statistics_; }

    /// Writes separators, offsets and buckets, each to its place on the device. The payload is
    /// below 4 GB.
    Status write(std::uint8_t* separators, std::uint8_t* offsets, std::uint8_t* buckets);

private:
    DeviceWords words_;
    const std::uint32_t* order_ = nullptr;
    std::uint32_t count_ = 0, buckets_ = 0;
    const CodeTable* table_ = nullptr;
    cudaStream_t stream_ = nullptr;
    DeviceBuffer<std::uint32_t> shared_, codes_;  // of each word: WordSizes
    DeviceBuffer<std::uint64_t> offsets_;         // of buckets, and their end
    DeviceBuffer<WordStatistics> statistics_on_device_;
    DeviceBuffer<std::uint8_t> scratch_;
    std::uint64_t payload_ = 0;
    WordStatistics statistics_;
};

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

namespace {

constexpr std::size_t kSmallBuffers = 1 << 16;

__global__ void find_longest(DeviceWords words, unsigned long long* longest) {
    unsigned long long own = 0;
    for (std::uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < words.count;
         i += gridDim.x * kThreads)
        own = max(own, static_cast<unsigned long long>(words.length(i)));
    own = warp_max(own);
    if (threadIdx.x % 32 == 0) atomicMax(longest, own);
}

class FrontCodedBuild {
public:
    FrontCodedBuild(const Words& words, cudaStream_t stream, UploadRing& ring, Execution& execution)
        : host_words_(words), stream_(stream), ring_(ring), execution_(execution) {}

    /// Nothing when the host has to do it.
    Status run(std::optional<std::vector<std::uint8_t>>& image) {
        GPUTEXT_TRY(upload());
        unsigned long long longest = 0;
        GPUTEXT_TRY(find_longest_word(longest));
        if (longest > kLongestPacked) return {};
        GPUTEXT_TRY(order_words(words_, host_words_, stream_, execution_, order_));
        GPUTEXT_TRY(choose_symbols());
        execution_.begin_phase("packing words", 0);
        FrontCodedPacking packing;
        GPUTEXT_TRY(packing.measure(words_, order_, table_.data(), stream_));
        GPUTEXT_TRY(check_front_size(packing.payload(), longest));
        GPUTEXT_TRY(execution_.checkpoint());
        return make_image(packing, image.emplace());
    }

private:
    Status upload() {
        const std::uint64_t begins_bytes = (host_words_.size() + 1) * sizeof(std::uint64_t);
        const std::uint64_t text_bytes = host_words_.byte_count();
        execution_.begin_phase(
            "copying words",
            (begins_bytes + text_bytes + UploadRing::slice - 1) / UploadRing::slice);
        GPUTEXT_TRY(ready_.create());
        GPUTEXT_TRY(text_.allocate(begins_bytes + text_bytes + kWordSlack, stream_));
        const Bytes pieces[] = {
            {reinterpret_cast<const std::uint8_t*>(host_words_.begins), begins_bytes},
            {host_words_.bytes, text_bytes}};
        // The memory may be in use by earlier work until the stream comes here.
        GPUTEXT_TRY(ready_.hold(ring_.stream(), stream_));
        GPUTEXT_TRY(ring_.copy_pieces(text_.data(), pieces, execution_));
        GPUTEXT_TRY(ready_.hold(stream_, ring_.stream()));
        words_.begins = reinterpret_cast<const std::uint64_t*>(text_.data());
        words_.bytes = text_.data() + begins_bytes;
        words_.count = static_cast<std::uint32_t>(host_words_.size());
        return {};
    }

    Status find_longest_word(unsigned long long& longest) {
        DeviceBuffer<unsigned long long> found;
        GPUTEXT_TRY(found.allocate(1, stream_));
        GPUTEXT_TRY(cuda_status(cudaMemsetAsync(found.data(), 0, sizeof longest, stream_),
                                "looking at words"));
        const unsigned blocks = std::min(blocks_for(words_.count, kThreads), 1024u);
        find_longest<<<blocks, kThreads, 0, stream_>>>(words_, found.data());
        GPUTEXT_TRY(launched("looking at words"));
        return download_value(found.data(), longest, stream_, "looking at words");
    }

    /// Chooses symbols on the host, from the same words as cpp/trie/detail/front_coded_build.cpp.
    Status choose_symbols() {
        execution_.begin_phase("choosing symbols", 0);
        const std::size_t buckets = (order_.count + kBucketWords - 1) / kBucketWords;
        const std::size_t step = sample_step(buckets);
        const std::size_t sampled = (buckets + step - 1) / step;
        constexpr std::size_t kRow = kBucketWords * sizeof(std::uint32_t);
        std::vector<std::uint32_t> numbers(sampled * kBucketWords);
        GPUTEXT_TRY(
            cuda_status(cudaMemcpy2DAsync(numbers.data(), kRow, order_.words.data(), step * kRow,
                                          kRow, sampled, cudaMemcpyDeviceToHost, stream_),
                        "choosing symbols"));
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "choosing symbols"));
        // The last bucket may be shorter.
        const std::size_t last_begin = (sampled - 1) * step * kBucketWords;
        numbers.resize((sampled - 1) * kBucketWords +
                       std::min<std::size_t>(kBucketWords, order_.count - last_begin));
        std::vector<std::string_view> sample;
        for (const std::uint32_t number : numbers) sample.push_back(host_words_[number]);
        symbols_ = front_coded_symbols(sample, execution_.stop());
        const CodeTable table = code_table_of(symbols_);
        GPUTEXT_TRY(table_.upload({&table, 1}, stream_));
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "choosing symbols"));
        return execution_.checkpoint();
    }

    Status make_image(FrontCodedPacking& packing, std::vector<std::uint8_t>& image) {
        TrieHeader header = front_coded_header(order_.count, symbols_, packing.payload());
        header.longest = packing.statistics().longest;
        header.text_bytes = packing.statistics().text_bytes;
        for (const std::uint32_t bits : packing.statistics().alphabet)
            header.alphabet += static_cast<std::uint32_t>(std::popcount(bits));
        const FrontCodedPlaces places(header);
        DeviceBuffer<std::uint8_t> on_device;
        GPUTEXT_TRY(on_device.allocate(header.bytes, stream_));
        GPUTEXT_TRY(packing.write(on_device.data() + places.separators,
                                  on_device.data() + places.offsets,
                                  on_device.data() + places.buckets));
        image.resize(header.bytes);  // which takes its time, as does the device
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "packing words"));
        execution_.begin_phase("copying a dictionary",
                               (header.bytes + UploadRing::slice - 1) / UploadRing::slice);
        GPUTEXT_TRY(ring_.copy_back(image, on_device.data(), stream_, execution_));
        execution_.begin_phase("checking a dictionary", 0);
        write_symbols(symbols_, image.data() + places.symbols);
        std::memcpy(image.data(), &header, sizeof header);
        header.checksum = trie_checksum(image);
        std::memcpy(image.data(), &header, sizeof header);
        return {};
    }

    const Words& host_words_;
    cudaStream_t stream_;
    UploadRing& ring_;
    Execution& execution_;

    StreamEvent ready_;
    DeviceBuffer<std::uint8_t> text_;  // begins first
    DeviceWords words_;
    WordOrder order_;
    SymbolTable symbols_;
    DeviceBuffer<CodeTable> table_;
};

}  // namespace

std::size_t build_bytes(const Words& words) {
    const std::uint64_t given = (words.size() + 1) * sizeof(std::uint64_t) + words.byte_count();
    // What is packed takes up to twice its bytes, where each is escaped; and a word has a head, and
    // a bucket a separator and an offset.
    const std::uint64_t image = 2 * words.byte_count() + 4 * words.size();
    return given + kSmallBuffers +
           std::max<std::uint64_t>(word_order_bytes(words.size()),
                                   words.size() * sizeof(std::uint32_t) +
                                       FrontCodedPacking::bytes(words.size()) + image);
}

Result<std::vector<std::uint8_t>> build_trie(TrieStructure structure, const Words& words,
                                             const DeviceWork& work, UploadRing& ring,
                                             Execution& execution) {
    if (structure == TrieStructure::front && words.size() > 0 &&
        words.size() <= kMostOrderedWords && build_bytes(words) <= work.bytes) {
        std::optional<std::vector<std::uint8_t>> image;
        GPUTEXT_TRY(FrontCodedBuild(words, work.stream, ring, execution).run(image));
        if (image) return std::move(*image);
    }
    return gputext::build_trie(structure, words, execution);
}

}  // namespace gputext::gpu
