#include "extension/texts/text_parser.hpp"

extern "C" {
#include "catalog/namespace.h"
#include "nodes/value.h"
#include "tsearch/ts_utils.h"
#include "utils/elog.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/memutils.h"
}

#include <algorithm>
#include <cstring>

#include "extension/base/failure.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/texts/text_pieces.hpp"

namespace gputext {
namespace {

/// Tokens between two looks for a cancel, which not every release of PostgreSQL's parser has.
constexpr unsigned kTokensAtOnce = 4096;

void report_too_long(int words) {
    for (int i = 0; i < words; ++i)
        ereport(NOTICE,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("word is too long to be indexed"),
                 errdetail("Words longer than %d characters are ignored.", MAXSTRLEN)));
}

/// The longest token that the server takes: MAXSTRLEN, or one byte less in releases before it was
/// mended. Minor releases and distributions differ, so the server is asked, once a process, and its
/// NOTICE is kept from the client.
int longest_token() {
    static int longest = 0;
    if (longest > 0) return longest;
    const Oid simple = get_ts_config_oid(
        list_make2(makeString(pstrdup("pg_catalog")), makeString(pstrdup("simple"))), true);
    if (!OidIsValid(simple)) return MAXSTRLEN;
    char word[MAXSTRLEN];
    std::memset(word, 'a', sizeof word);
    ParsedText parsed{};
    parsed.lenwords = 4;
    parsed.words = static_cast<ParsedWord*>(palloc(sizeof(ParsedWord) * parsed.lenwords));
    const int client = client_min_messages, log = log_level();
    PG_TRY();
    {
        client_min_messages = log_level() = ERROR;
        parsetext(simple, &parsed, word, sizeof word);
    }
    PG_FINALLY();
    {
        client_min_messages = client;
        log_level() = log;
    }
    PG_END_TRY();
    longest = parsed.curwords > 0 ? MAXSTRLEN : MAXSTRLEN - 1;
    return longest;
}

/// Whether the token has given the same lexeme before, as other variants of a compound word can; a
/// tsvector has it once at its position.
bool seen_at_position(const ParsedWord* words, int32 index) {
    const ParsedWord& word = words[index];
    for (int32 i = index - 1; i >= 0 && words[i].pos.pos == word.pos.pos; --i)
        if (words[i].len == word.len && std::memcmp(words[i].word, word.word, word.len) == 0)
            return true;
    return false;
}

}  // namespace

// ---- Pieces ----

std::size_t TextParser::parse(std::string_view text, std::size_t begin) {
    CHECK_FOR_INTERRUPTS();
    if (!configured_) read_config();
    const std::size_t end = end_of_piece(text, begin);
    begin_piece();
    MemoryContext before = CurrentMemoryContext;
    context_ = nullptr;
    parse_tokens(text.substr(begin, end - begin));
    MemoryContextSwitchTo(before);
    if (context_) MemoryContextDelete(context_);
    report_too_long(too_long_);
    return end;
}

/// What it says is copied, since the server's own entry may change at any time.
void TextParser::read_config() {
    longest_ = longest_token();
    plain_text_.set_longest(static_cast<std::size_t>(longest_));
    const TSConfigCacheEntry* const config = lookup_ts_config_cache(config_);
    attempt_or_raise([&] {
        dictionary_begins_.assign(1, 0);
        for (int type = 0; type < config->lenmap; ++type) {
            const ListDictionary& list = config->map[type];
            dictionaries_.insert(dictionaries_.end(), list.dictIds, list.dictIds + list.len);
            dictionary_begins_.push_back(dictionaries_.size());
        }
    });
    parser_ = config->prsId;
    plain_ = begins_plain(lookup_ts_parser_cache(parser_)) && characters_.learn_ascii();
    configured_ = true;
}

/// Whether the parser is the default one, and blank tokens are nothing to the dictionaries.
bool TextParser::begins_plain(const TSParserCacheEntry* parser) const {
    return kKnowsDefaultParser && parser->prsstart.fn_addr == prsd_start &&
           parser->prstoken.fn_addr == prsd_nexttoken && parser->prsend.fn_addr == prsd_end &&
           !is_mapped(kBlankToken);
}

void TextParser::begin_piece() {
    attempt_or_raise([&] { passing_ends_.assign(1, 0); });
    found_.clear();
    passing_.clear();
    position_ = 0;
    too_long_ = 0;
}

/// What PostgreSQL allocates for the piece is freed behind it.
void TextParser::enter_context() {
    if (!context_)
        context_ =
            AllocSetContextCreate(CurrentMemoryContext, "gputext piece", ALLOCSET_DEFAULT_SIZES);
    MemoryContextSwitchTo(context_);
}

void TextParser::parse_tokens(std::string_view piece) {
    if (!phrases_ && parse_with_cache(piece)) return;
    begin_piece();  // parsetext() gives its notices itself
    parse_phrases(piece);
}

/// Calls `take(type, token, size)` for each token of the text, while it returns true; returns
/// whether it did for all.
template <class Take>
bool parse_by(Oid parser_id, std::string_view text, const Take& take) {
    TSParserCacheEntry* const parser = lookup_ts_parser_cache(parser_id);
    const Datum state =
        FunctionCall2(&parser->prsstart, PointerGetDatum(const_cast<char*>(text.data())),
                      Int32GetDatum(static_cast<int32>(text.size())));
    for (unsigned tokens = 1;; ++tokens) {
        if (tokens % kTokensAtOnce == 0) CHECK_FOR_INTERRUPTS();
        char* token = nullptr;
        int size = 0;
        const int type = DatumGetInt32(FunctionCall3(
            &parser->prstoken, state, PointerGetDatum(&token), PointerGetDatum(&size)));
        if (type <= 0) break;
        if (!take(type, token, size)) return false;
    }
    FunctionCall1(&parser->prsend, state);
    return true;
}

/// False when a dictionary wants to see the next token.
bool TextParser::parse_with_cache(std::string_view piece) {
    if (plain_) return parse_plain(piece);
    enter_context();
    return parse_by(parser_, piece, [this](int type, char* token, int size) {
        return take_token(type, token, size);
    });
}

/// False when a dictionary wants to see the next token.
bool TextParser::parse_plain(std::string_view piece) {
    plain_text_.begin_piece(piece);
    ahead_begin_ = ahead_end_ = 0;
    behind_ahead_ = PlainText::Found::token;
    for (;;) {
        PlainText::Token token;
        PlainText::Found found;
        attempt_or_raise([&] { found = take_plain(token); });
        switch (found) {
            case PlainText::Found::token:
                if (!take_token(token.type, const_cast<char*>(token.begin),
                                static_cast<int>(token.size)))
                    return false;
                break;
            case PlainText::Found::unknown:
                enter_context();
                characters_.learn(plain_text_.unknown());
                break;
            case PlainText::Found::hard:
                if (!parse_stretch()) return false;
                break;
            case PlainText::Found::end:
                plain_text_.end_blank();
                too_long_ += plain_text_.too_long();
                return true;
        }
    }
}

/// Finds some tokens, so that the memory with what they mean is on its way when it is needed.
void TextParser::look_ahead() {
    ahead_begin_ = ahead_end_ = 0;
    while (ahead_end_ < ahead_.size()) {
        Seen& seen = ahead_[ahead_end_];
        behind_ahead_ = plain_text_.next(characters_, seen.token);
        if (behind_ahead_ != PlainText::Found::token) return;
        if (!is_mapped(seen.token.type) && static_cast<int>(seen.token.size) <= longest_) continue;
        if (seen.token.size <= LexemeCache::kShort) {
            seen.key = LexemeCache::short_token(seen.token.type, seen.token.view(),
                                                plain_text_.rest().end());
            cache_.prefetch(seen.key);
        }
        ++ahead_end_;
    }
}

/// Takes tokens up to the first that is unseen, or to where there is something else to be done.
PlainText::Found TextParser::take_plain(PlainText::Token& token) {
    for (;;) {
        while (ahead_begin_ < ahead_end_) {
            const Seen& seen = ahead_[ahead_begin_++];
            const LexemeCache::Meaning meaning =
                seen.token.size <= LexemeCache::kShort
                    ? cache_.find(seen.key)
                    : cache_.find(seen.token.type, seen.token.view());
            if (meaning == LexemeCache::kUnseen) {
                token = seen.token;
                return PlainText::Found::token;
            }
            take(meaning);
        }
        const PlainText::Found found = behind_ahead_;
        behind_ahead_ = PlainText::Found::token;
        if (found != PlainText::Found::token) return found;
        look_ahead();
    }
}

/// False when a dictionary wants to see the next token.
bool TextParser::parse_stretch() {
    std::string_view stretch = plain_text_.stretch();
    if (take_known_stretch(stretch)) return true;
    enter_context();
    const std::size_t found = found_.size();
    const std::uint64_t position = position_;
    const int too_long = too_long_;
    const PlainText before = plain_text_;
    Blanks blanks{};
    if (!take_stretch(stretch, blanks)) return false;
    if (!blanks.end && stretch.size() < plain_text_.rest().size()) {
        // Never seen, but if it were, PostgreSQL's parser would have what comes to itself.
        attempt_or_raise([&] { found_.resize(found); });
        position_ = position;
        too_long_ = too_long;
        plain_text_ = before;
        stretch = plain_text_.rest();
        if (!take_stretch(stretch, blanks)) return false;
    }
    if (!blanks.begin && blanks.end && too_long_ == too_long &&
        plain_text_.too_long() == before.too_long())
        attempt_or_raise([&] { keep_stretch(stretch, found, position); });
    plain_text_.skip(stretch);
    return true;
}

/// False when a dictionary wants to see the next token.
bool TextParser::take_stretch(std::string_view stretch, Blanks& blanks) {
    bool first = true;
    blanks = {};
    return parse_by(parser_, stretch, [&](int type, char* token, int size) {
        const bool is_first = first;
        first = false;
        blanks.end = type == kBlankToken && token + size == stretch.data() + stretch.size();
        if (type == kBlankToken) {
            blanks.begin = blanks.begin || is_first;
            plain_text_.add_blank(static_cast<std::size_t>(size), is_first);
            return true;
        }
        plain_text_.end_blank();
        return take_token(type, token, size);
    });
}

/// Keeps what a stretch gave, and last the size of the blank token at its end.
void TextParser::keep_stretch(std::string_view stretch, std::size_t found, std::uint64_t position) {
    if (!cache_.takes_stretch(stretch.size())) return;
    token_lexemes_.clear();
    for (; found < found_.size(); ++found) {
        if (found_[found].number >= kLasting) return;
        token_lexemes_.push_back(
            {found_[found].number, static_cast<std::uint32_t>(found_[found].position - position)});
    }
    token_lexemes_.push_back({static_cast<std::uint32_t>(plain_text_.blank()), 0});
    cache_.add_stretch(stretch, token_lexemes_, static_cast<std::uint32_t>(position_ - position));
}

/// Takes a stretch that was kept; false if it was not.
bool TextParser::take_known_stretch(std::string_view stretch) {
    const LexemeCache::Meaning meaning = cache_.find(LexemeCache::kStretch, stretch);
    if (meaning == LexemeCache::kUnseen) return false;
    LexemeCache::List list = cache_.list(meaning);
    plain_text_.end_blank();
    plain_text_.add_blank(list.lexemes[--list.size].number, true);
    plain_text_.skip(stretch);
    attempt_or_raise([&] { take(list); });
    return true;
}

/// As parsetext() has them, which stops to count positions at 16383. From the lowest number it does
/// not get there, and those of neighboring tokens differ in the 16 bits that it keeps.
void TextParser::parse_phrases(std::string_view piece) {
    enter_context();
    ParsedText parsed{};
    parsed.lenwords = static_cast<int32>(std::max<std::size_t>(16, piece.size() / 6));
    parsed.words = static_cast<ParsedWord*>(palloc(sizeof(ParsedWord) * parsed.lenwords));
    parsed.pos = PG_INT32_MIN;
    parsetext(config_, &parsed, const_cast<char*>(piece.data()), static_cast<int32>(piece.size()));
    attempt_or_raise([&] {
        std::uint64_t position = 0;
        bool lasting;
        for (int32 i = 0; i < parsed.curwords; ++i) {
            const ParsedWord& word = parsed.words[i];
            position += static_cast<std::uint16_t>(word.pos.pos - position);
            if (!seen_at_position(parsed.words, i))
                found_.push_back({number_of({word.word, word.len}, lasting),
                                  static_cast<std::uint32_t>(position)});
        }
    });
    position_ = static_cast<std::uint64_t>(std::int64_t{parsed.pos} - PG_INT32_MIN);
}

// ---- Tokens ----

/// False when a dictionary wants to see the next token.
bool TextParser::take_token(int type, char* token, int size) {
    if (size > longest_) {
        ++too_long_;
        return true;
    }
    if (!is_mapped(type)) return true;  // mostly blanks
    const auto bytes = static_cast<std::size_t>(size);
    const LexemeCache::Meaning meaning =
        type < LexemeCache::kTypes ? cache_.find(type, {token, bytes}) : LexemeCache::kUnseen;
    if (meaning == LexemeCache::kUnseen) return take_unseen(type, token, size);
    attempt_or_raise([&] { take(meaning); });
    return true;
}

/// Takes what a token means that was seen before.
void TextParser::take(LexemeCache::Meaning meaning) {
    if (meaning < LexemeCache::kLexemes) {
        found_.push_back({meaning, static_cast<std::uint32_t>(++position_)});
    } else if (meaning == LexemeCache::kStop) {
        ++position_;
    } else if (meaning != LexemeCache::kUnknown) {
        take(cache_.list(meaning));
    }
}

void TextParser::take(const LexemeCache::List& list) {
    for (std::uint32_t i = 0; i < list.size; ++i)
        found_.push_back({list.lexemes[i].number,
                          static_cast<std::uint32_t>(position_ + list.lexemes[i].place)});
    position_ += list.positions;
}

/// False when a dictionary wants to see the next token.
bool TextParser::take_unseen(int type, char* token, int size) {
    enter_context();
    const int too_long = too_long_;
    const TSLexeme* const lexemes = ask_dictionaries(type, token, size);
    if (phrases_) return false;
    attempt_or_raise([&] {
        const std::string_view bytes(token, static_cast<std::size_t>(size));
        bool lasting = cache_.takes(type, bytes.size());
        read_lexemes(lexemes, lasting);
        // A token with a lexeme that is too long has a NOTICE each time.
        if (lasting && too_long == too_long_)
            cache_.add(type, bytes, token_lexemes_, token_positions_);
        for (const TokenLexeme& lexeme : token_lexemes_)
            found_.push_back({lexeme.number, static_cast<std::uint32_t>(position_ + lexeme.place)});
        position_ += token_positions_;
    });
    return true;
}

/// What the first dictionary says that knows the token, or nothing. A filter gives another token,
/// for the dictionaries behind it.
TSLexeme* TextParser::ask_dictionaries(int type, char* token, int size) {
    const std::size_t end = dictionary_begins_[static_cast<std::size_t>(type) + 1];
    for (std::size_t i = dictionary_begins_[static_cast<std::size_t>(type)]; i < end; ++i) {
        TSDictionaryCacheEntry* const dictionary = lookup_ts_dictionary_cache(dictionaries_[i]);
        DictSubState state{};
        auto* const lexemes = reinterpret_cast<TSLexeme*>(DatumGetPointer(
            FunctionCall4(&dictionary->lexize, PointerGetDatum(dictionary->dictData),
                          PointerGetDatum(token), Int32GetDatum(size), PointerGetDatum(&state))));
        if (state.getnext) phrases_ = true;
        if (phrases_) return nullptr;
        if (lexemes == nullptr) continue;
        if ((lexemes->flags & TSL_FILTER) == 0) return lexemes;
        token = lexemes->lexeme;
        size = static_cast<int>(std::strlen(token));
    }
    return nullptr;
}

/// Numbers the lexemes of an unseen token; a lexeme that comes twice at a position is taken once.
void TextParser::read_lexemes(const TSLexeme* lexemes, bool& lasting) {
    token_lexemes_.clear();
    token_positions_ = lexemes == nullptr ? 0 : 1;
    for (; lexemes != nullptr && lexemes->lexeme != nullptr; ++lexemes) {
        const std::string_view bytes(lexemes->lexeme);
        if (bytes.size() > MAXSTRLEN) {
            ++too_long_;
            continue;
        }
        if (lexemes->flags & TSL_ADDPOS) ++token_positions_;
        const auto is_same = [&](const TokenLexeme& other) {
            return other.place == token_positions_ && text(other.number) == bytes;
        };
        if (std::none_of(token_lexemes_.begin(), token_lexemes_.end(), is_same))
            token_lexemes_.push_back({number_of(bytes, lasting), token_positions_});
    }
}

std::uint32_t TextParser::number_of(std::string_view lexeme, bool& lasting) {
    const std::uint32_t number = cache_.number_of(lexeme);
    if (number != Vocabulary::kNone) return number;
    lasting = false;
    passing_.insert(passing_.end(), lexeme.begin(), lexeme.end());
    passing_ends_.push_back(passing_.size());
    return kLasting + static_cast<std::uint32_t>(passing_ends_.size() - 2);
}

}  // namespace gputext
