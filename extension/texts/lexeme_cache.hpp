// extension/texts/lexeme_cache.hpp - cache of what the dictionaries make of tokens

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "cpp/base/hash_table.hpp"
#include "cpp/base/vocabulary.hpp"

namespace gputext {

/// A lexeme of a token, and how many positions behind the last one before the token it lies: 1 for
/// the first, unless a dictionary says TSL_ADDPOS.
struct TokenLexeme {
    std::uint32_t number;
    std::uint32_t place;
};

/// Keeps the lexemes of tokens by their type and bytes, and numbers all these lexemes. Takes no
/// more tokens once it has 32 MB, so that it never takes more than 64 MB, as tables double.
/// Functions throw std::bad_alloc.
class LexemeCache {
public:
    /// What the dictionaries make of a token: the number of its only lexeme, or one of the values
    /// below, or what list() takes.
    using Meaning = std::uint32_t;
    /// The token is not known yet.
    static constexpr Meaning kUnseen = UINT32_MAX;
    /// No dictionary knows the token: it takes no position.
    static constexpr Meaning kUnknown = UINT32_MAX - 1;
    /// A stop word: it takes a position and has no lexeme.
    static constexpr Meaning kStop = UINT32_MAX - 2;
    /// Meanings below are numbers of lexemes.
    static constexpr Meaning kLexemes = std::uint32_t{1} << 31;

    /// Several lexemes, or positions.
    struct List {
        const TokenLexeme* lexemes;
        std::uint32_t size;
        std::uint32_t positions;
    };

    /// Bytes of a token or stretch; longer ones are not kept.
    static constexpr std::size_t kLongest = 254;
    /// Types of tokens are below.
    static constexpr int kTypes = 255;
    /// In place of a type: some tokens, one behind the other, whose list is always one.
    static constexpr int kStretch = 255;

    /// Bytes of a token that ShortToken can have.
    static constexpr std::size_t kShort = 15;
    /// A short token of a type: its bytes, and zeros, which no token has; then its type.
    struct ShortToken {
        std::uint64_t low, high;
    };
    /// Memory may be read up to `end`, which is not before the token's end.
    static ShortToken short_token(int type, std::string_view token, const char* end) {
        if constexpr (std::endian::native == std::endian::little)
            if (end - token.data() >= 16) {
                ShortToken key;
                std::memcpy(&key, token.data(), sizeof key);
                const std::uint64_t kept = ~std::uint64_t{0} >> (-8 * token.size() & 63);
                if (token.size() > 8) {
                    key.high &= kept;
                } else {
                    key.low &= token.empty() ? 0 : kept;
                    key.high = 0;
                }
                key.high |= static_cast<std::uint64_t>(type) << 56;
                return key;
            }
        char bytes[16] = {};
        std::memcpy(bytes, token.data(), token.size());
        bytes[kShort] = static_cast<char>(type);
        return std::bit_cast<ShortToken>(bytes);
    }
    static std::uint64_t hash_of(ShortToken token) {
        const auto product = static_cast<unsigned __int128>(token.low ^ 0x9e3779b97f4a7c15) *
                             (token.high ^ 0xd1b54a32d192ed03);
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }

private:
    struct Slot {
        ShortToken token;
        Meaning meaning;

        static Slot nothing() { return {{0, 0}, kUnseen}; }
        bool free() const { return token.high == 0; }  // which has the type
    };
    static auto is_slot_of(ShortToken token) {
        return [token](const Slot& slot) {
            return slot.token.low == token.low && slot.token.high == token.high;
        };
    }

public:
    LexemeCache() : short_(kFirstTokens) {}

    Meaning find(ShortToken token) const {
        return short_.find(hash_of(token), is_slot_of(token)).meaning;
    }
    /// For a find() soon after.
    void prefetch(ShortToken token) const { short_.prefetch(hash_of(token)); }
    /// O(bytes) on average.
    Meaning find(int type, std::string_view token) const;

    List list(Meaning meaning) const {
        const std::uint32_t at = meaning - kLexemes;
        return {lists_.data() + at + 1, lists_[at].number, lists_[at].place};
    }

    /// Whether it takes another token of the type and size.
    bool takes(int type, std::size_t size) const {
        return type > 0 && type < kTypes && size <= kLongest && bytes() < kMost;
    }
    /// Adds a token that it takes, which is unseen, with all its lexemes: a token may have no
    /// lexeme but positions.
    void add(int type, std::string_view token, const std::vector<TokenLexeme>& lexemes,
             std::uint32_t positions);

    /// The same for stretches, which leave half of the memory to tokens.
    bool takes_stretch(std::size_t size) const { return size <= kLongest && bytes() < kMost / 2; }
    void add_stretch(std::string_view stretch, const std::vector<TokenLexeme>& lexemes,
                     std::uint32_t positions);

    /// The number of a lexeme, which is added if it is new and there is room for it; or
    /// Vocabulary::kNone.
    std::uint32_t number_of(std::string_view lexeme) {
        return bytes() < kMost ? lexemes_.add(lexeme) : lexemes_.find(lexeme);
    }
    const Vocabulary& lexemes() const { return lexemes_; }

    std::size_t bytes() const {
        return short_.bytes() + long_.bytes() + long_meanings_.capacity() * sizeof(Meaning) +
               lists_.capacity() * sizeof(TokenLexeme) + lexemes_.bytes();
    }

private:
    static constexpr std::size_t kFirstTokens = 500;
    static constexpr std::size_t kMost = std::size_t{32} << 20;

    void keep(int type, std::string_view token, Meaning meaning);
    Meaning add_list(const std::vector<TokenLexeme>& lexemes, std::uint32_t positions);

    HashTable<Slot> short_;
    std::size_t short_tokens_ = 0;
    Vocabulary long_;                     // a byte with the type, and the bytes of the token
    std::vector<Meaning> long_meanings_;  // by their numbers
    std::vector<TokenLexeme> lists_;      // each behind its size and its positions
    Vocabulary lexemes_;
};

}  // namespace gputext
