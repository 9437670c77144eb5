#include "kernels/trie/trie_build.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>

#include "cpp/trie/detail/front_coded_build.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/trie/detail/front_coded_encoder.cuh"
#include "kernels/trie/detail/front_coded_packing.hpp"
#include "kernels/trie/detail/word_sort.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
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

    /// By the host, of the same words as cpp/trie/detail/front_coded_build.cpp takes.
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
