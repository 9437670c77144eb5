#include "cpp/link/trie_build.hpp"

#include "cpp/base/exception_status.hpp"
#include "cpp/trie/image.hpp"

namespace gputext {

Status TrieBuildRequest::pack(Packed& packed, Stop stop) const {
    packed.message.structure = structure;
    GPUTEXT_TRY(packed.files.add(words, packed.message.words, stop));
    packed.expected.words = packed.message.words.words;
    return {};
}

Result<std::uint64_t> TrieBuildAnswer::file_size() const {
    if (summary.words != words) return broken_reply(kOtherRows);
    return summary.bytes;
}

Result<std::vector<std::uint8_t>> TrieBuildAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<std::vector<std::uint8_t>> {
        const Result<TrieHeader> header = read_trie_header(file.bytes());
        if (!header.ok()) return broken_reply(header.status().message());
        if (header->words > words) return broken_reply("a dictionary of other words");
        std::vector<std::uint8_t> image;
        if (!copy_array(file, 0, file.bytes().size(), image, stop)) return Status::cancelled();
        return image;
    });
}

}  // namespace gputext
