// extension/texts/text_parser.hpp - the lexemes of texts, as to_tsvector() finds them, in less time
//
// What the dictionaries of a configuration make of a token depends on the token alone, so it is
// kept for tokens that come again. A dictionary of phrases, such as a thesaurus, is the exception:
// it asks for the next token. A configuration with such a dictionary is left to PostgreSQL's
// parsetext() from the first time that the dictionary asks.
//
// What remains is PostgreSQL's parser. Where it is the default one, plain_text.hpp finds the tokens
// of plain text in less time; PostgreSQL's finds those of the stretches that have anything else.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "tsearch/ts_cache.h"
#include "tsearch/ts_public.h"
}

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "extension/texts/lexeme_cache.hpp"
#include "extension/texts/plain_text.hpp"

namespace gputext {

/// A lexeme at a position of a piece. Positions are counted from 1; a stop word takes one, too.
struct Lexeme {
    std::uint32_t number;
    std::uint32_t position;
};

/// Parses texts piece by piece. Positions have no limit, unlike those of a tsvector, but otherwise
/// lexemes and positions are those of to_tsvector(): a lexeme comes once at a position, and words
/// above 2047 bytes are left out with a NOTICE. The configuration is read when the first text is
/// parsed, and holds for all texts. parse() raises errors, after which the object is of no use.
/// Takes up to 64 MB for the tokens that it has seen, and what one piece needs.
class TextParser {
public:
    /// A lower number is that of the same bytes in all pieces, and no other lower number is.
    /// Numbers from here on are given anew in each piece, and several of them may have the same
    /// bytes.
    static constexpr std::uint32_t kLasting = std::uint32_t{1} << 31;

    /// `config` is the text search configuration.
    explicit TextParser(Oid config) : config_(config) {}

    /// Parses the piece of the text that begins there, and returns where it ends. Can be cancelled.
    std::size_t parse(std::string_view text, std::size_t begin);

    // What follows is of the piece, and valid until the next one is parsed.

    /// In ascending order of their positions.
    std::span<const Lexeme> lexemes() const { return found_; }
    /// The number of positions of the piece.
    std::uint64_t positions() const { return position_; }
    /// The bytes of a lexeme.
    std::string_view text(std::uint32_t lexeme) const {
        if (lexeme < kLasting) return cache_.lexemes().term(lexeme);
        const std::size_t number = lexeme - kLasting;
        return {passing_.data() + passing_ends_[number],
                passing_ends_[number + 1] - passing_ends_[number]};
    }

    /// Numbers that last are below.
    std::uint32_t lasting() const { return cache_.lexemes().size(); }

private:
    void read_config();
    void begin_piece();
    void enter_context();
    void parse_tokens(std::string_view piece);
    bool parse_with_cache(std::string_view piece);
    bool parse_plain(std::string_view piece);
    PlainText::Found take_plain(PlainText::Token& token);
    void look_ahead();
    bool parse_stretch();
    /// The blank tokens at the ends of a stretch.
    struct Blanks {
        bool begin, end;
    };
    bool take_stretch(std::string_view stretch, Blanks& blanks);
    bool take_known_stretch(std::string_view stretch);
    void keep_stretch(std::string_view stretch, std::size_t found, std::uint64_t position);
    bool begins_plain(const TSParserCacheEntry* parser) const;
    bool is_mapped(int type) const {
        const auto place = static_cast<std::size_t>(type);
        return place + 1 < dictionary_begins_.size() &&
               dictionary_begins_[place] != dictionary_begins_[place + 1];
    }

    void parse_phrases(std::string_view piece);

    bool take_token(int type, char* token, int size);
    bool take_unseen(int type, char* token, int size);
    void take(LexemeCache::Meaning meaning);
    void take(const LexemeCache::List& list);
    TSLexeme* ask_dictionaries(int type, char* token, int size);
    void read_lexemes(const TSLexeme* lexemes, bool& lasting);
    std::uint32_t number_of(std::string_view lexeme, bool& lasting);

    Oid config_;
    bool configured_ = false;
    Oid parser_ = InvalidOid;
    std::vector<Oid> dictionaries_;               // of all types of tokens
    std::vector<std::size_t> dictionary_begins_;  // of each type, and their end
    bool phrases_ = false;                        // a dictionary has asked for a next token
    int longest_ = 0;                             // token that the server takes
    bool plain_ = false;                          // plain_text.hpp is for the parser
    PlainCharacters characters_;

    LexemeCache cache_;
    std::vector<TokenLexeme> token_lexemes_;  // of an unseen token
    std::uint32_t token_positions_ = 0;

    // Of a piece
    MemoryContext context_ = nullptr;  // made when something of PostgreSQL is called
    std::vector<Lexeme> found_;
    std::uint64_t position_ = 0;
    PlainText plain_text_;
    struct Seen {
        PlainText::Token token;
        LexemeCache::ShortToken key;  // of a short token
    };
    std::array<Seen, 32> ahead_;  // plain tokens that were found and are to be taken
    std::size_t ahead_begin_ = 0, ahead_end_ = 0;
    PlainText::Found behind_ahead_ = PlainText::Found::token;  // what comes then
    std::vector<char> passing_;                                // bytes of lexemes that do not last
    std::vector<std::size_t> passing_ends_;
    int too_long_ = 0;  // words to give a NOTICE for
};

}  // namespace gputext
