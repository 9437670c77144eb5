// cpp/trie/detail/front_coded.hpp - dictionary as front-coded buckets of sorted words
//
// Source: Witten, Moffat, Bell, "Managing Gigabytes", section 4.1 (front coding), with separators
// as in a static B-tree's leaves; what is left of the words is compressed by
// cpp/trie/detail/symbol_table.hpp.
//
// Behind the header (cpp/trie/image.hpp), all numbers little-endian:
//   separators  two uint64 a bucket: bytes 0 .. 7 and 8 .. 15 of its first word, zeros behind a
//               shorter one, as big-endian numbers, so that they compare as the bytes do
//   offsets     uint32 a bucket and one more: where it begins in the buckets, and their end
//   symbols     the length of each (uint8), then their bytes
//   buckets     of 32 words each, the last one of what is left:
//     length    uint8 of the first word, or 255
//     heads     uint8 for each other word: how many bytes it shares with the word before it, at
//               most 15, in the upper four bits, and how many codes the rest has, less 1 and at
//               most 15, in the lower four
//     tail      the first word's bytes from the 17th on
//     codes     of each other word's rest
//     excess    what is above the 255 and each 15, in the order of the words and of the upper four
//               bits first, as varints (seven bits a byte, the lowest first, the upper bit in all
//               but the last), from the bucket's end downwards
// A lookup reads about log2(buckets) separators, one offset and one bucket, of about 130 bytes.

#pragma once

#include "cpp/trie/trie.hpp"

namespace gputext {

/// For build_trie(): of words in strict order.
Result<std::vector<std::uint8_t>> build_front_coded_trie(std::span<const std::string_view> words,
                                                         Execution& execution);

/// For open_trie(): of an image whose header has been read.
Result<std::unique_ptr<Trie>> open_front_coded_trie(std::span<const std::uint8_t> image);

/// For validate_trie(), as open_front_coded_trie().
Status validate_front_coded_trie(std::span<const std::uint8_t> image, Stop stop);

}  // namespace gputext
