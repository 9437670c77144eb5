#include "kernels/trie/resident_trie.hpp"

#include <algorithm>

#include "cpp/trie/detail/front_coded_layout.hpp"
#include "cpp/trie/image.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/trie/detail/trie_lookup.hpp"

namespace gputext::gpu {
namespace {

/// Reads the header alone. Of bytes that are no image, it is a header that no dictionary has.
TrieHeader header_of(std::span<const std::uint8_t> image) {
    TrieHeader header{};
    if (image.size() >= sizeof header) std::memcpy(&header, image.data(), sizeof header);
    return header;
}

bool is_of(const ResidentTrie& trie, std::span<const std::uint8_t> image) {
    const TrieHeader header = header_of(image);
    return header.checksum == trie.stats().checksum && header.bytes == image.size() &&
           trie.stats().bytes == image.size() && header.words == trie.stats().words;
}

}  // namespace

bool has_kernels_for(std::span<const std::uint8_t> image) {
    const std::uint32_t structure = header_of(image).structure;
    return structure == static_cast<std::uint32_t>(TrieStructure::front) ||
           structure == static_cast<std::uint32_t>(TrieStructure::xbw);
}

std::size_t ResidentTrie::bytes(std::span<const std::uint8_t> image) {
    // Allocations are rounded up.
    constexpr std::size_t kRounding = 2048;
    const TrieHeader header = header_of(image);
    const std::size_t buckets = std::size_t{header.words} / kBucketWords + 1;
    const bool front = header.structure == static_cast<std::uint32_t>(TrieStructure::front);
    return image.size() + kWordSlack + kRounding +
           (front ? sizeof(SymbolTable) + buckets * sizeof(BucketLine)
                  : kXbwTable * sizeof(std::uint16_t));
}

Result<std::unique_ptr<ResidentTrie>> ResidentTrie::load(std::span<const std::uint8_t> image,
                                                         std::uint64_t hash, cudaStream_t stream,
                                                         UploadRing& ring, Execution& execution) {
    const Result<TrieHeader> header = read_trie_header(image);
    if (!header.ok()) return header.status();
    std::unique_ptr<ResidentTrie> trie(new ResidentTrie);
    trie->stats_ = stats_of(*header);
    trie->hash_ = hash;
    trie->bytes_ = bytes(image);
    GPUTEXT_TRY(trie->image_.allocate(image.size() + kWordSlack, stream));
    if (trie->stats_.structure == TrieStructure::xbw)
        GPUTEXT_TRY(trie->read_xbw(image, stream));
    else
        GPUTEXT_TRY(trie->read_front(image, stream));
    StreamEvent ready;
    GPUTEXT_TRY(ready.create());
    // The memory may be in use by earlier work until the stream comes here.
    GPUTEXT_TRY(ready.hold(ring.stream(), stream));
    GPUTEXT_TRY(ring.copy(trie->image_.data(), image, execution));
    GPUTEXT_TRY(ready.hold(stream, ring.stream()));
    if (trie->front_.bucket_count > 0) {
        GPUTEXT_TRY(make_lines(trie->front_, trie->lines_.data(), stream));
        trie->front_.lines = trie->lines_.data();
    }
    return Result<std::unique_ptr<ResidentTrie>>(std::move(trie));
}

Status ResidentTrie::read_front(std::span<const std::uint8_t> image, cudaStream_t stream) {
    const Result<FrontCodedLayout> layout = read_front_layout(image);
    if (!layout.ok()) return layout.status();
    GPUTEXT_TRY(symbols_.upload({&layout->symbols, 1}, stream));
    GPUTEXT_TRY(lines_.allocate(layout->bucket_count, stream));
    // What is copied from has to live until it is.
    GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "copying a dictionary"));
    const auto on_device = [&](const std::uint8_t* part) {
        return image_.data() + (part - image.data());
    };
    front_.separators = reinterpret_cast<const WordKey*>(on_device(layout->separators));
    front_.offsets = reinterpret_cast<const std::uint32_t*>(on_device(layout->offsets));
    front_.buckets = on_device(layout->buckets.data());
    front_.symbols = symbols_.data();
    front_.words = layout->words;
    front_.bucket_count = layout->bucket_count;
    return {};
}

Status ResidentTrie::read_xbw(std::span<const std::uint8_t> image, cudaStream_t stream) {
    const Result<XbwLayout> layout = read_xbw_layout(image);
    if (!layout.ok()) return layout.status();
    std::vector<std::uint16_t> table(kXbwBlockValues.begin(), kXbwBlockValues.end());
    table.insert(table.end(), kXbwClassBegins, kXbwClassBegins + 16);
    GPUTEXT_TRY(table_.upload(table, stream));
    GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "copying a dictionary"));
    const std::uint8_t* const begin = image_.data();
    xbw_.symbol_of = begin + layout->symbol_table;
    xbw_.table = table_.data();
    xbw_.cells = reinterpret_cast<const XbwCell*>(begin + layout->cells);
    xbw_.superblocks = reinterpret_cast<const XbwSuperblock*>(begin + layout->superblock_table);
    xbw_.payload = reinterpret_cast<const std::uint32_t*>(begin + layout->payload);
    xbw_.ends = reinterpret_cast<const XbwLine*>(begin + layout->ends);
    xbw_.codes = reinterpret_cast<const std::uint32_t*>(begin + layout->codes);
    xbw_.words = layout->words;
    xbw_.symbols = layout->symbols;
    xbw_.row_cells = layout->row_cells;
    xbw_.code_bits = layout->code_bits;
    return {};
}

bool ResidentTries::has(std::span<const std::uint8_t> image) const {
    return std::ranges::any_of(tries_, [&](const auto& trie) { return is_of(*trie, image); });
}

std::size_t ResidentTries::bytes() const {
    std::size_t sum = 0;
    for (const auto& trie : tries_) sum += trie->bytes();
    return sum;
}

Result<const ResidentTrie*> ResidentTries::get(std::span<const std::uint8_t> image,
                                               std::size_t limit, cudaStream_t stream,
                                               UploadRing& ring, Execution& execution) {
    limit = std::min(limit, most_);
    const std::uint64_t hash = hash_(image);
    const auto found = std::ranges::find_if(
        tries_, [&](const auto& trie) { return is_of(*trie, image) && trie->hash() == hash; });
    if (found != tries_.end()) {
        tries_.splice(tries_.begin(), tries_, found);
    } else {
        const std::size_t needed = ResidentTrie::bytes(image);
        while (!tries_.empty() && bytes() + needed > limit) tries_.pop_back();
        auto loaded = ResidentTrie::load(image, hash, stream, ring, execution);
        if (!loaded.ok()) return loaded.status();
        tries_.push_front(std::move(*loaded));
    }
    while (tries_.size() > 1 && bytes() > limit) tries_.pop_back();
    return tries_.front().get();
}

}  // namespace gputext::gpu
