// cpp/link/word_lookup.hpp - lookup_words() (cpp/trie/trie.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/wire.hpp"
#include "cpp/trie/trie.hpp"

namespace gputext {

/// Answered by the codes of the words. That the image is one which build_trie() made or
/// validate_trie() has accepted is the client's word; the server checks that it is whole and has
/// its checksum. A device may keep the dictionary for the next job with it. Files: the
/// dictionary's image (cpp/trie/trie.hpp), in a sealed memfd; the words.
struct SubmitWordLookup {
    static constexpr std::uint16_t type = 19;
    static constexpr const char* operation = "word_lookup";
    JobLimits limits;
    std::uint64_t dictionary_bytes = 0;  // size of the image
    WordsShape words;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.dictionary_bytes, self.words);
    }
    bool consistent() const { return dictionary_bytes <= kMostStored && words.consistent(); }
    std::size_t files() const { return 1 + words.files(); }
    std::uint64_t rows() const { return words.words; }
    std::uint64_t bytes() const { return dictionary_bytes + words.input_bytes(); }
};

/// File: u32 codes[words], Trie::kNone for a word that the dictionary does not have, in a sealed
/// memfd.
struct WordLookupReply {
    static constexpr std::uint16_t type = 20;
    JobReport report;
    std::uint32_t words = 0;

    static void fields(auto& archive, auto& self) { archive(self.report, self.words); }
};

/// The code of each word.
struct WordLookupAnswer {
    std::uint32_t words = 0;             // of the request
    std::uint32_t dictionary_words = 0;  // the same
    WordLookupReply summary;
    MappedFile file;

    // As in KnnAnswer.
    Result<std::uint64_t> file_size() const;
    Result<std::vector<std::uint32_t>> read(Stop stop = {}) const noexcept;
};

struct WordLookupRequest {
    using Packed = PackedRequest<SubmitWordLookup, WordLookupAnswer>;

    std::span<const std::uint8_t> dictionary;  // the image; it is copied
    std::uint32_t dictionary_words = 0;        // that it has
    WordFiles words;
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const;
};

/// The codes in a file of so many; invalid_argument for any that is neither Trie::kNone nor that of
/// one of so many words of a dictionary; cancelled. O(codes).
Result<std::vector<std::uint32_t>> unpack_codes(std::span<const std::uint8_t> file,
                                                std::uint32_t codes, std::uint32_t dictionary_words,
                                                Stop stop = {});

}  // namespace gputext
