// tests/support/packed.hpp - random documents in one block of memory, as operators take them

#pragma once

#include <string>
#include <vector>

#include "cpp/documents/documents.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

/// Documents in one block of memory.
class Packed {
public:
    explicit Packed(const std::vector<std::string>& texts,
                    CharacterLengths characters = CharacterLengths::utf8()) {
        for (const std::string& text : texts) {
            extents_.push_back({bytes_.size(), text.size()});
            bytes_ += text;
        }
        documents_ = {bytes_of(bytes_).data(), extents_, characters};
    }
    Packed(const Packed&) = delete;

    const Documents& documents() const { return documents_; }
    std::span<const std::uint8_t> bytes() const { return bytes_of(bytes_); }

private:
    std::string bytes_;
    std::vector<Extent> extents_;
    Documents documents_;
};

/// A corpus with versions, exact copies, empty documents and several alphabets.
inline std::vector<std::string> corpus(RandomStrings& random, std::size_t count,
                                       std::size_t longest) {
    const std::u32string_view alphabets[] = {U"etaoin shrdlu(){};=\n", U"ab",
                                             U"\u00e9tao漢字 🙂\n"};
    std::vector<std::string> texts;
    while (texts.size() < count) {
        const auto alphabet = alphabets[random.below(3)];
        const std::size_t length = random.below(40) == 0 ? 0 : random.below(longest);
        auto text = random.string<std::u32string>(length, alphabet);
        texts.push_back(utf8_of(text));
        for (std::size_t n = random.below(4); n > 0; --n) {
            if (random.below(4) != 0)
                text = random.edited(text, random.below(text.size() / 12 + 2), alphabets[0]);
            texts.push_back(utf8_of(text));
        }
    }
    return texts;
}

}  // namespace gputext::testing
