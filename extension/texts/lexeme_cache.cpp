#include "extension/texts/lexeme_cache.hpp"

namespace gputext {
namespace {

/// The key of a long token: its type, and its bytes.
struct LongToken {
    LongToken(int type, std::string_view token) : size(token.size() + 1) {
        bytes[0] = static_cast<char>(type);
        std::memcpy(bytes + 1, token.data(), token.size());
    }
    std::string_view view() const { return {bytes, size}; }

    char bytes[LexemeCache::kLongest + 1];
    std::size_t size;
};

}  // namespace

LexemeCache::Meaning LexemeCache::find(int type, std::string_view token) const {
    if (token.size() <= kShort) return find(short_token(type, token, token.end()));
    if (token.size() > kLongest) return kUnseen;
    const std::uint32_t number = long_.find(LongToken(type, token).view());
    return number == Vocabulary::kNone ? kUnseen : long_meanings_[number];
}

void LexemeCache::keep(int type, std::string_view token, Meaning meaning) {
    if (token.size() > kShort) {
        long_.add(LongToken(type, token).view());
        long_meanings_.push_back(meaning);
        return;
    }
    short_.grow(short_tokens_ + 1, [](const Slot& slot) { return hash_of(slot.token); });
    const ShortToken key = short_token(type, token, token.end());
    short_.find(hash_of(key), is_slot_of(key)) = {key, meaning};
    ++short_tokens_;
}

void LexemeCache::add(int type, std::string_view token, const std::vector<TokenLexeme>& lexemes,
                      std::uint32_t positions) {
    if (positions == 0) return keep(type, token, kUnknown);
    if (positions == 1 && lexemes.empty()) return keep(type, token, kStop);
    if (positions == 1 && lexemes.size() == 1) return keep(type, token, lexemes[0].number);
    keep(type, token, add_list(lexemes, positions));
}

void LexemeCache::add_stretch(std::string_view stretch, const std::vector<TokenLexeme>& lexemes,
                              std::uint32_t positions) {
    keep(kStretch, stretch, add_list(lexemes, positions));
}

LexemeCache::Meaning LexemeCache::add_list(const std::vector<TokenLexeme>& lexemes,
                                           std::uint32_t positions) {
    const auto at = static_cast<std::uint32_t>(lists_.size());
    lists_.push_back({static_cast<std::uint32_t>(lexemes.size()), positions});
    lists_.insert(lists_.end(), lexemes.begin(), lexemes.end());
    return kLexemes + at;
}

}  // namespace gputext
