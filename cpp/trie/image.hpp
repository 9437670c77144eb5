// cpp/trie/image.hpp - what the images of all dictionaries have: structure, header, checksum

#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "cpp/base/status.hpp"

namespace gputext {

/// How an image is laid out; the numbers are those in the images.
enum class TrieStructure : std::uint32_t {
    front = 1,  // cpp/trie/detail/front_coded.hpp
    xbw = 2     // cpp/trie/detail/xbw.hpp
};
inline constexpr TrieStructure kTrieStructures[] = {TrieStructure::front, TrieStructure::xbw};

/// "front", "xbw"
const char* name_of(TrieStructure structure);
std::optional<TrieStructure> structure_named(std::string_view name);

struct TrieStats {
    TrieStructure structure{};
    std::uint32_t words = 0;
    std::uint32_t longest = 0;     // bytes of the longest word
    std::uint32_t alphabet = 0;    // how many byte values occur in the words
    std::uint64_t bytes = 0;       // of the image
    std::uint64_t text_bytes = 0;  // of the words, one behind the other
    std::uint64_t checksum = 0;    // of the image: that of another dictionary differs
};

static_assert(std::endian::native == std::endian::little, "images are little-endian");

/// The first bytes of an image, as they are stored.
struct TrieHeader {
    static constexpr char kMagic[8] = {'g', 'p', 'u', 't', 'r', 'i', 'e', '\n'};
    static constexpr std::uint32_t kVersion = 1;

    char magic[8];
    std::uint32_t version;
    std::uint32_t structure;
    std::uint32_t words;
    std::uint32_t longest;     // bytes
    std::uint64_t bytes;       // of the image
    std::uint64_t checksum;    // of all other bytes of the image
    std::uint64_t text_bytes;  // of all words
    std::uint32_t alphabet;    // different byte values in the words
    std::uint32_t symbols;     // what the structure makes of it; 0 if nothing
    std::uint32_t symbol_bytes;
    std::uint32_t unused;  // 0
};
static_assert(sizeof(TrieHeader) == 64);

/// Checksum of all bytes except the checksum's own. A change within eight bytes that begin at a
/// multiple of eight always changes it, any other change with a probability of 1 - 2^-64. It does
/// not protect against an attacker.
std::uint64_t trie_checksum(std::span<const std::uint8_t> image);

/// The header of an image that begins with one, is as long as it says, and has its checksum.
Result<TrieHeader> read_trie_header(std::span<const std::uint8_t> image);

TrieStats stats_of(const TrieHeader& header);

/// The error of an image in which `what`.
inline Status broken_trie(const char* what) {
    return {ErrorCode::invalid_argument, what};
}

}  // namespace gputext
