// cpp/link/trie_build.hpp - build_trie() (cpp/trie/trie.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/wire.hpp"
#include "cpp/trie/trie.hpp"

namespace gputext {

/// Which structures there are, SubmitTrieBuild::consistent() knows.
constexpr TrieStructure last_of(TrieStructure) {
    return static_cast<TrieStructure>(UINT32_MAX);
}

/// Answered by the image of a dictionary of the words, which come in any order, each any number of
/// times. Files: the words.
struct SubmitTrieBuild {
    static constexpr std::uint16_t type = 21;
    static constexpr const char* operation = "trie_build";
    JobLimits limits;
    TrieStructure structure = TrieStructure::front;
    WordsShape words;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.structure, self.words);
    }
    bool consistent() const { return name_of(structure)[0] != '\0' && words.consistent(); }
    std::size_t files() const { return words.files(); }
    std::uint64_t rows() const { return words.words; }
    std::uint64_t bytes() const { return words.input_bytes(); }
};

/// File: the dictionary's image, in a sealed memfd.
struct TrieBuildReply {
    static constexpr std::uint16_t type = 22;
    JobReport report;
    std::uint32_t words = 0;  // of the request
    std::uint64_t bytes = 0;  // of the image

    static void fields(auto& archive, auto& self) { archive(self.report, self.words, self.bytes); }
};

/// A complete image with its checksum.
struct TrieBuildAnswer {
    std::uint32_t words = 0;  // of the request
    TrieBuildReply summary;
    MappedFile file;

    // As in KnnAnswer.
    Result<std::uint64_t> file_size() const;
    Result<std::vector<std::uint8_t>> read(Stop stop = {}) const noexcept;
};

struct TrieBuildRequest {
    using Packed = PackedRequest<SubmitTrieBuild, TrieBuildAnswer>;

    TrieStructure structure = TrieStructure::front;
    WordFiles words;
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const;
};

}  // namespace gputext
