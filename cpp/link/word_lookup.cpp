#include "cpp/link/word_lookup.hpp"

#include <algorithm>
#include <cstring>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {

Status WordLookupRequest::pack(Packed& packed, Stop stop) const {
    packed.message.dictionary_bytes = dictionary.size();
    GPUTEXT_TRY(packed.files.add_copy(dictionary, stop));
    GPUTEXT_TRY(packed.files.add(words, packed.message.words, stop));
    packed.expected.words = packed.message.words.words;
    packed.expected.dictionary_words = dictionary_words;
    return {};
}

Result<std::uint64_t> WordLookupAnswer::file_size() const {
    if (summary.words != words) return broken_reply(kOtherRows);
    return std::uint64_t{words} * sizeof(std::uint32_t);
}

Result<std::vector<std::uint32_t>> WordLookupAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<std::vector<std::uint32_t>> {
        auto codes = unpack_codes(file.bytes(), words, dictionary_words, stop);
        if (!codes.ok()) return broken_reply(codes.status());
        return codes;
    });
}

Result<std::vector<std::uint32_t>> unpack_codes(std::span<const std::uint8_t> file,
                                                std::uint32_t codes, std::uint32_t dictionary_words,
                                                Stop stop) {
    if (file.size() != codes * sizeof(std::uint32_t)) return broken("codes in a wrong size");
    std::vector<std::uint32_t> unpacked(codes);
    for (std::size_t begin = 0; begin < codes; begin += kLookEvery) {
        if (stop()) return Status::cancelled();
        const auto part = std::span(unpacked).subspan(begin).first(
            std::min<std::size_t>(kLookEvery, codes - begin));
        std::memcpy(part.data(), file.data() + begin * sizeof part[0], part.size_bytes());
        bool known = true;
        for (const std::uint32_t code : part)
            known &= code < dictionary_words || code == Trie::kNone;
        if (!known) return broken("a code that the dictionary does not have");
    }
    return unpacked;
}

}  // namespace gputext
