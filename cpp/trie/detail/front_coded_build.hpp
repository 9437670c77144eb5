// cpp/trie/detail/front_coded_build.hpp - builder of front-coded dictionaries, shared by CPU and
// GPU

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cpp/base/status.hpp"
#include "cpp/trie/detail/front_coded_layout.hpp"
#include "cpp/trie/detail/symbol_table.hpp"
#include "cpp/trie/image.hpp"

namespace gputext {

/// Buckets of whose words the symbols are chosen: about 100,000 words, evenly spread.
constexpr std::size_t kSampleBuckets = 3072;

/// Every so many buckets, from the first on, one is in that sample. At least 1 bucket.
std::size_t sample_step(std::size_t buckets);

/// Symbol table chosen from the words of these buckets, bucket by bucket. When stopped, any table.
SymbolTable front_coded_symbols(std::span<const std::string_view> sample, Stop stop);

/// Without longest, alphabet, text_bytes and checksum.
TrieHeader front_coded_header(std::size_t words, const SymbolTable& symbols, std::uint64_t payload);

/// Where the parts of an image begin.
struct FrontCodedPlaces {
    std::size_t separators, offsets, symbols, buckets;

    /// The words, symbols and their bytes are known.
    explicit FrontCodedPlaces(const TrieHeader& header) {
        const std::size_t count = (std::size_t{header.words} + kBucketWords - 1) / kBucketWords;
        separators = sizeof header;
        offsets = separators + count * kSeparatorBytes;
        symbols = offsets + (count + 1) * sizeof(std::uint32_t);
        buckets = symbols + header.symbols + header.symbol_bytes;
    }
};

/// Their lengths, then their bytes.
void write_symbols(const SymbolTable& symbols, std::uint8_t* to);

/// Bytes of all buckets and of the longest word. Error: invalid_argument.
Status check_front_size(std::uint64_t payload, std::uint64_t longest);

}  // namespace gputext
