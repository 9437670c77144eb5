#include "cpp/trie/image.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>

namespace gputext {
namespace {

/// Each step is invertible, so equal input never makes different states equal.
class Checksum {
public:
    /// `size` is a multiple of 32 but for the last call.
    void add(const std::uint8_t* bytes, std::size_t size) {
        for (; size >= sizeof lanes_; size -= sizeof lanes_, bytes += sizeof lanes_) mix(bytes);
        if (size == 0) return;
        std::uint8_t last[sizeof lanes_] = {};
        std::copy(bytes, bytes + size, last);
        mix(last);
    }

    std::uint64_t end(std::uint64_t size) const {
        std::uint64_t sum = size;
        for (const std::uint64_t lane : lanes_) {
            sum = (sum ^ lane) * kOdd;
            sum ^= sum >> 32;
        }
        return sum;
    }

private:
    static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;

    void mix(const std::uint8_t* bytes) {
        for (std::size_t i = 0; i < lanes_.size(); ++i) {
            std::uint64_t word;
            std::memcpy(&word, bytes + 8 * i, sizeof word);
            lanes_[i] = std::rotl((lanes_[i] ^ word) * kOdd, 29);
        }
    }

    std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
};

}  // namespace

const char* name_of(TrieStructure structure) {
    switch (structure) {
        case TrieStructure::front:
            return "front";
        case TrieStructure::xbw:
            return "xbw";
    }
    return "";
}

std::optional<TrieStructure> structure_named(std::string_view name) {
    for (const TrieStructure structure : kTrieStructures)
        if (name == name_of(structure)) return structure;
    return std::nullopt;
}

std::uint64_t trie_checksum(std::span<const std::uint8_t> image) {
    std::uint8_t header[sizeof(TrieHeader)];
    std::memcpy(header, image.data(), sizeof header);
    std::memset(header + offsetof(TrieHeader, checksum), 0, sizeof(TrieHeader::checksum));
    Checksum checksum;
    checksum.add(header, sizeof header);
    checksum.add(image.data() + sizeof header, image.size() - sizeof header);
    return checksum.end(image.size());
}

Result<TrieHeader> read_trie_header(std::span<const std::uint8_t> image) {
    TrieHeader header;
    if (image.size() < sizeof header) return broken_trie("it has fewer bytes than a header");
    std::memcpy(&header, image.data(), sizeof header);
    if (std::memcmp(header.magic, TrieHeader::kMagic, sizeof header.magic) != 0)
        return broken_trie("its header is not that of a dictionary");
    if (header.version != TrieHeader::kVersion)
        return Status{ErrorCode::invalid_argument,
                      "its version is " + std::to_string(header.version) +
                          ", and the one known is " + std::to_string(TrieHeader::kVersion)};
    if (header.bytes != image.size())
        return Status{ErrorCode::invalid_argument, "it has " + std::to_string(image.size()) +
                                                       " bytes, and says " +
                                                       std::to_string(header.bytes)};
    if (header.checksum != trie_checksum(image)) return broken_trie("its checksum does not fit");
    const bool known = std::any_of(
        std::begin(kTrieStructures), std::end(kTrieStructures), [&](TrieStructure structure) {
            return header.structure == static_cast<std::uint32_t>(structure);
        });
    if (!known)
        return Status{ErrorCode::invalid_argument,
                      "its structure has the unknown number " + std::to_string(header.structure)};
    if (header.unused != 0) return broken_trie("its header is not as it is written");
    return header;
}

TrieStats stats_of(const TrieHeader& header) {
    return {static_cast<TrieStructure>(header.structure),
            header.words,
            header.longest,
            header.alphabet,
            header.bytes,
            header.text_bytes,
            header.checksum};
}

}  // namespace gputext
