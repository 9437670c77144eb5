// tests/module/parser_checks.cpp - compares TextParser with PostgreSQL's parsetext(); dictionaries for tests
//
// Only the module of the tests has these functions. Tests and bench/sql_parsing create the SQL
// functions, as a superuser may.

#include "extension/base/postgres.hpp"

extern "C" {
#include "fmgr.h"
#include "tsearch/ts_public.h"
#include "tsearch/ts_utils.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

#include <algorithm>
#include <string_view>

#include "extension/base/owned.hpp"
#include "extension/texts/text_parser.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

/// Lives as long as the place in the statement where the function is called.
struct CheckedParser {
    explicit CheckedParser(Oid given) : config(given), parser(given) {}

    Oid config;
    TextParser parser;
};

/// The parser of this call, with the tokens of calls before.
TextParser& parser_of(FunctionCallInfo fcinfo) {
    FmgrInfo* const call = fcinfo->flinfo;
    const Oid config = PG_GETARG_OID(0);
    auto* checked = static_cast<CheckedParser*>(call->fn_extra);
    if (checked == nullptr || checked->config != config)
        call->fn_extra = checked = make_owned<CheckedParser>(call->fn_mcxt, config);
    return checked->parser;
}

ParsedText parse_by_server(Oid config, std::string_view text) {
    ParsedText parsed{};
    parsed.lenwords = static_cast<int32>(std::max<std::size_t>(16, text.size() / 6));
    parsed.words = static_cast<ParsedWord*>(palloc(sizeof(ParsedWord) * parsed.lenwords));
    parsed.pos = PG_INT32_MIN;
    parsetext(config, &parsed, const_cast<char*>(text.data()), static_cast<int32>(text.size()));
    return parsed;
}

/// Whether the lexemes are those of PostgreSQL, each once at a position.
bool are_alike(const TextParser& parser, const ParsedText& expected) {
    std::size_t found = 0;
    for (int32 i = 0; i < expected.curwords; ++i) {
        const ParsedWord& word = expected.words[i];
        const std::string_view bytes(word.word, word.len);
        bool seen = false;
        for (int32 j = i - 1; j >= 0 && expected.words[j].pos.pos == word.pos.pos; --j)
            seen = seen || std::string_view(expected.words[j].word, expected.words[j].len) == bytes;
        if (seen) continue;
        if (found == parser.lexemes().size()) return false;
        const Lexeme& lexeme = parser.lexemes()[found++];
        if (parser.text(lexeme.number) != bytes ||
            static_cast<std::uint16_t>(lexeme.position) != static_cast<std::uint16_t>(word.pos.pos))
            return false;
    }
    return found == parser.lexemes().size() &&
           parser.positions() ==
               static_cast<std::uint64_t>(std::int64_t{expected.pos} - PG_INT32_MIN);
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_parsed_lexemes);
PG_FUNCTION_INFO_V1(gputext_parses_alike);
PG_FUNCTION_INFO_V1(gputext_parse);
PG_FUNCTION_INFO_V1(gputext_twice_lexize);
PG_FUNCTION_INFO_V1(gputext_slow_lexize);

/// (regconfig, text): text[], "POSITION LEXEME" of each lexeme of the text.
PGDLLEXPORT Datum gputext_parsed_lexemes(PG_FUNCTION_ARGS) {
    TextParser& parser = parser_of(fcinfo);
    const std::string_view text = view_of(PG_GETARG_VARLENA_PP(1));
    ArrayBuildState* lexemes = initArrayResult(TEXTOID, CurrentMemoryContext, false);
    std::uint64_t positions = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        begin = parser.parse(text, begin);
        for (const Lexeme& lexeme : parser.lexemes()) {
            const std::string_view bytes = parser.text(lexeme.number);
            const char* const line =
                psprintf("%llu %.*s", static_cast<unsigned long long>(positions + lexeme.position),
                         static_cast<int>(bytes.size()), bytes.data());
            accumArrayResult(lexemes, CStringGetTextDatum(line), false, TEXTOID,
                             CurrentMemoryContext);
        }
        positions += parser.positions();
    }
    PG_RETURN_DATUM(makeArrayResult(lexemes, CurrentMemoryContext));
}

/// (regconfig, text): bool, whether lexemes, positions and the number of positions are those of
/// parsetext(), for a text of less than 1 MB.
PGDLLEXPORT Datum gputext_parses_alike(PG_FUNCTION_ARGS) {
    TextParser& parser = parser_of(fcinfo);
    const std::string_view text = view_of(PG_GETARG_VARLENA_PP(1));
    if (text.empty()) PG_RETURN_BOOL(true);
    if (parser.parse(text, 0) != text.size())
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the text has more than one piece")));
    PG_RETURN_BOOL(are_alike(parser, parse_by_server(PG_GETARG_OID(0), text)));
}

/// (regconfig, text, boolean): bigint, how many lexemes parsetext(), or with false TextParser,
/// finds in a text of less than 1 GB.
PGDLLEXPORT Datum gputext_parse(PG_FUNCTION_ARGS) {
    const std::string_view text = view_of(PG_GETARG_VARLENA_PP(1));
    if (PG_GETARG_BOOL(2)) PG_RETURN_INT64(parse_by_server(PG_GETARG_OID(0), text).curwords);
    TextParser& parser = parser_of(fcinfo);
    int64 lexemes = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        begin = parser.parse(text, begin);
        lexemes += static_cast<int64>(parser.lexemes().size());
    }
    PG_RETURN_INT64(lexemes);
}

/// Of the template of a dictionary: a word is itself at two places, and twice at the second.
PGDLLEXPORT Datum gputext_twice_lexize(PG_FUNCTION_ARGS) {
    const auto* const token = reinterpret_cast<const char*>(PG_GETARG_POINTER(1));
    auto* const lexemes = static_cast<TSLexeme*>(palloc0(4 * sizeof(TSLexeme)));
    for (int i = 0; i < 3; ++i)
        lexemes[i].lexeme = pnstrdup(token, static_cast<Size>(PG_GETARG_INT32(2)));
    lexemes[1].flags = TSL_ADDPOS;
    PG_RETURN_POINTER(lexemes);
}

/// Of the template of a dictionary: a word is itself, and takes 20 ms, in which nothing is heard of
/// interrupts.
PGDLLEXPORT Datum gputext_slow_lexize(PG_FUNCTION_ARGS) {
    const auto* const token = reinterpret_cast<const char*>(PG_GETARG_POINTER(1));
    pg_usleep(20000);
    auto* const lexemes = static_cast<TSLexeme*>(palloc0(2 * sizeof(TSLexeme)));
    lexemes[0].lexeme = pnstrdup(token, static_cast<Size>(PG_GETARG_INT32(2)));
    PG_RETURN_POINTER(lexemes);
}
}
