#include "cpp/trie/detail/front_coded_layout.hpp"

namespace gputext {

Result<FrontCodedLayout> read_front_layout(std::span<const std::uint8_t> image) {
    const auto header = load<TrieHeader>(image.data());
    FrontCodedLayout layout;
    layout.words = header.words;
    layout.bucket_count =
        static_cast<std::uint32_t>((std::uint64_t{header.words} + kBucketWords - 1) / kBucketWords);
    layout.symbols.size = header.symbols;
    if (header.symbols > SymbolTable::kMost ||
        header.symbol_bytes > header.symbols * SymbolTable::kLongest)
        return broken_trie("it has too many symbols");

    const std::uint64_t separators = sizeof header;
    const std::uint64_t offsets = separators + std::uint64_t{layout.bucket_count} * kSeparatorBytes;
    const std::uint64_t lengths = offsets + (std::uint64_t{layout.bucket_count} + 1) * 4;
    const std::uint64_t symbols = lengths + header.symbols;
    const std::uint64_t buckets = symbols + header.symbol_bytes;
    if (buckets > image.size()) return broken_trie("its parts do not fit into it");
    layout.separators = image.data() + separators;
    layout.offsets = image.data() + offsets;
    layout.buckets = image.subspan(buckets);
    if (layout.offset(layout.bucket_count) != layout.buckets.size())
        return broken_trie("its parts do not fill it");

    std::uint64_t used = 0;
    for (std::uint32_t i = 0; i < header.symbols; ++i) {
        const std::uint8_t length = image[lengths + i];
        if (length == 0 || length > SymbolTable::kLongest || length > header.symbol_bytes - used)
            return broken_trie("the length of a symbol is wrong");
        layout.symbols.lengths[i] = length;
        std::memcpy(&layout.symbols.bytes[i], image.data() + symbols + used, length);
        used += length;
    }
    if (used != header.symbol_bytes) return broken_trie("the length of a symbol is wrong");
    return layout;
}

}  // namespace gputext
