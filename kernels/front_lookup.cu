#include "kernels/front_lookup.hpp"

#include <algorithm>

#include "kernels/front_dictionary.cuh"
#include "kernels/launch.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 512;
constexpr unsigned kBlocksPerProcessor = 2;

__global__ __launch_bounds__(kThreads, kBlocksPerProcessor) void look_up_words(
    FrontDictionary dictionary, SeparatorSample sample, DeviceWords words, std::uint32_t* codes,
    std::uint32_t* too_long) {
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
    const FrontSymbols symbols{symbol_bytes, symbol_lengths};
    for (std::uint64_t i = blockIdx.x * kThreads + threadIdx.x; i < words.count;
         i += gridDim.x * kThreads) {
        const std::uint64_t length = words.length(i);
        std::uint32_t code = FrontLookup::kNone;
        if (length > kLongestOnDevice)
            atomicAdd(too_long, 1u);
        else
            code = FrontLookup(dictionary, sample, symbols, words.begin(i),
                               static_cast<std::uint32_t>(length))
                       .code();
        codes[i] = code;
    }
}

Status multiprocessors(unsigned& count) {
    int device = 0, found = 0;
    GPUTEXT_TRY(cuda_status(cudaGetDevice(&device), "asking for the device"));
    GPUTEXT_TRY(cuda_status(cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, device),
                            "asking for the device"));
    count = static_cast<unsigned>(found);
    return {};
}

}  // namespace

Status look_up(const FrontDictionary& dictionary, const DeviceWords& words, std::uint32_t* codes,
               std::uint32_t* too_long, cudaStream_t stream, std::uint32_t sampled) {
    if (words.count == 0) return {};
    if (dictionary.words == 0)
        return cuda_status(
            cudaMemsetAsync(codes, 0xff, std::size_t{words.count} * sizeof *codes, stream),
            "looking up words");
    SeparatorSample sample;
    sample.separators = dictionary.separators;
    sample.step = (dictionary.bucket_count + sampled - 1) / sampled;
    sample.count = (dictionary.bucket_count + sample.step - 1) / sample.step;
    const std::size_t shared = sample.count * sizeof(WordKey);
    GPUTEXT_TRY(allow_shared_bytes(look_up_words, shared));
    unsigned processors = 0;
    GPUTEXT_TRY(multiprocessors(processors));
    const unsigned blocks =
        std::min(blocks_for(words.count, kThreads), processors * kBlocksPerProcessor);
    look_up_words<<<blocks, kThreads, shared, stream>>>(dictionary, sample, words, codes, too_long);
    return launched("looking up words");
}

}  // namespace gputext::gpu
