#include "kernels/trie/detail/trie_lookup.hpp"

#include <algorithm>

#include "kernels/base/launch.hpp"
#include "kernels/trie/detail/front_coded_lookup.cuh"
#include "kernels/trie/detail/xbw_lookup.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 512;
constexpr unsigned kBlocksPerProcessor = 2;

/// Calls code_of(word, length) for each word that is not too long.
template <class CodeOf>
__device__ void look_up_all(const DeviceWords& words, std::uint32_t* codes, std::uint32_t* too_long,
                            const CodeOf& code_of) {
    for (std::uint64_t i = blockIdx.x * kThreads + threadIdx.x; i < words.count;
         i += gridDim.x * kThreads) {
        const std::uint64_t length = words.length(i);
        std::uint32_t code = UINT32_MAX;
        if (length > kLongestOnDevice)
            atomicAdd(too_long, 1u);
        else
            code = code_of(words.begin(i), static_cast<std::uint32_t>(length));
        codes[i] = code;
    }
}

__global__ __launch_bounds__(kThreads, kBlocksPerProcessor) void look_up_front(
    FrontCodedDictionary dictionary, SeparatorSample sample, DeviceWords words,
    std::uint32_t* codes, std::uint32_t* too_long) {
    extern __shared__ WordKey sampled[];
    __shared__ std::uint64_t symbol_bytes[SymbolTable::kMost + 1];
    __shared__ std::uint8_t symbol_lengths[SymbolTable::kMost + 1];
    for (std::uint32_t i = threadIdx.x; i < sample.count; i += kThreads)
        sampled[i] = sample.separators[std::size_t{i} * sample.step];
    const auto* const table = dictionary.symbols;
    for (std::uint32_t i = threadIdx.x; i <= SymbolTable::kMost; i += kThreads) {
        symbol_bytes[i] = reinterpret_cast<const std::uint64_t*>(&table->bytes)[i];
        symbol_lengths[i] = reinterpret_cast<const std::uint8_t*>(&table->lengths)[i];
    }
    __syncthreads();
    sample.separators = sampled;
    const FrontCodedSymbols symbols{symbol_bytes, symbol_lengths};
    look_up_all(words, codes, too_long, [&](const std::uint8_t* word, std::uint32_t length) {
        return FrontCodedLookup(dictionary, sample, symbols, word, length).code();
    });
}

__global__ void make_bucket_lines(FrontCodedDictionary dictionary, BucketLine* lines) {
    const std::uint32_t bucket = blockIdx.x * kThreads + threadIdx.x;
    if (bucket >= dictionary.bucket_count) return;
    const auto* const table = dictionary.symbols;
    const FrontCodedSymbols symbols{reinterpret_cast<const std::uint64_t*>(&table->bytes),
                                    reinterpret_cast<const std::uint8_t*>(&table->lengths)};
    const SeparatorSample none;
    lines[bucket] = FrontCodedLookup(dictionary, none, symbols, nullptr, 0).line_of(bucket);
}

__global__ __launch_bounds__(kThreads, kBlocksPerProcessor) void look_up_xbw(
    XbwDictionary dictionary, DeviceWords words, std::uint32_t* codes, std::uint32_t* too_long) {
    extern __shared__ std::uint32_t table[];
    __shared__ std::uint8_t symbol_of[256];
    for (std::uint32_t i = threadIdx.x; i < kXbwTable / 2; i += kThreads)
        table[i] = reinterpret_cast<const std::uint32_t*>(dictionary.table)[i];
    for (std::uint32_t i = threadIdx.x; i < 256; i += kThreads)
        symbol_of[i] = dictionary.symbol_of[i];
    __syncthreads();
    const XbwLookup lookup(dictionary, symbol_of, reinterpret_cast<const std::uint16_t*>(table));
    look_up_all(words, codes, too_long, [&](const std::uint8_t* word, std::uint32_t length) {
        return lookup.code(word, length);
    });
}

/// Blocks that fill the device, or fewer.
Status grid_for(const DeviceWords& words, unsigned& blocks) {
    int device = 0, processors = 0;
    GPUTEXT_TRY(cuda_status(cudaGetDevice(&device), "asking for the device"));
    GPUTEXT_TRY(
        cuda_status(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                    "asking for the device"));
    blocks = std::min(blocks_for(words.count, kThreads),
                      static_cast<unsigned>(processors) * kBlocksPerProcessor);
    return {};
}

Status no_codes(std::uint32_t* codes, std::uint32_t count, cudaStream_t stream) {
    return cuda_status(cudaMemsetAsync(codes, 0xff, std::size_t{count} * sizeof *codes, stream),
                       "looking up words");
}

}  // namespace

Status make_lines(const FrontCodedDictionary& dictionary, BucketLine* lines, cudaStream_t stream) {
    if (dictionary.bucket_count == 0) return {};
    make_bucket_lines<<<blocks_for(dictionary.bucket_count, kThreads), kThreads, 0, stream>>>(
        dictionary, lines);
    return launched("copying a dictionary");
}

Status look_up(const FrontCodedDictionary& dictionary, const DeviceWords& words,
               std::uint32_t* codes, std::uint32_t* too_long, cudaStream_t stream,
               std::uint32_t sampled) {
    if (words.count == 0) return {};
    if (dictionary.words == 0) return no_codes(codes, words.count, stream);
    SeparatorSample sample;
    sample.separators = dictionary.separators;
    sample.step = (dictionary.bucket_count + sampled - 1) / sampled;
    sample.count = (dictionary.bucket_count + sample.step - 1) / sample.step;
    const std::size_t shared = sample.count * sizeof(WordKey);
    GPUTEXT_TRY(allow_shared_bytes(look_up_front, shared));
    unsigned blocks = 0;
    GPUTEXT_TRY(grid_for(words, blocks));
    look_up_front<<<blocks, kThreads, shared, stream>>>(dictionary, sample, words, codes, too_long);
    return launched("looking up words");
}

Status look_up(const XbwDictionary& dictionary, const DeviceWords& words, std::uint32_t* codes,
               std::uint32_t* too_long, cudaStream_t stream) {
    if (words.count == 0) return {};
    if (dictionary.words == 0) return no_codes(codes, words.count, stream);
    constexpr std::size_t kShared = kXbwTable * sizeof(std::uint16_t);
    GPUTEXT_TRY(allow_shared_bytes(look_up_xbw, kShared));
    unsigned blocks = 0;
    GPUTEXT_TRY(grid_for(words, blocks));
    look_up_xbw<<<blocks, kThreads, kShared, stream>>>(dictionary, words, codes, too_long);
    return launched("looking up words");
}

}  // namespace gputext::gpu
