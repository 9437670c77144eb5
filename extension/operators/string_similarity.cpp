#include "extension/base/postgres.hpp"

#include <vector>

#include "cpp/strings/string_distance.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/types/text_arguments.hpp"

using namespace gputext;

namespace {

/// What `compute` returns of the characters of both texts; raises errors.
template <class Number>
Number of_texts(const text* a, const text* b,
                Result<Number> (*compute)(Symbols a, Symbols b, Stop stop)) {
    Number number{};
    const CharacterLengths& lengths = database_characters();
    attempt_or_raise([&]() -> Status {
        const Stop stop = stop_on_interrupt();
        std::vector<std::uint32_t> symbols_of_a, symbols_of_b;
        decode_characters(bytes_of(a), lengths, symbols_of_a, stop);
        decode_characters(bytes_of(b), lengths, symbols_of_b, stop);
        if (stop()) return Status::cancelled();
        const Result<Number> computed = compute(symbols_of_a, symbols_of_b, stop);
        if (!computed.ok()) return computed.status();
        number = *computed;
        return {};
    });
    return number;
}

}  // namespace

extern "C" {
SQL_FUNCTION(gputext_jaro_similarity) {
    return Float8GetDatum(of_texts(PG_GETARG_TEXT_PP(0), PG_GETARG_TEXT_PP(1), jaro_similarity));
}

SQL_FUNCTION(gputext_jaro_winkler_similarity) {
    return Float8GetDatum(
        of_texts(PG_GETARG_TEXT_PP(0), PG_GETARG_TEXT_PP(1), jaro_winkler_similarity));
}

// A distance is at most as large as the longer text, which is below 2^30 bytes.

SQL_FUNCTION(gputext_osa_distance) {
    return Int32GetDatum(static_cast<int32>(
        of_texts(PG_GETARG_TEXT_PP(0), PG_GETARG_TEXT_PP(1), osa_distance)));
}

SQL_FUNCTION(gputext_damerau_levenshtein) {
    return Int32GetDatum(static_cast<int32>(
        of_texts(PG_GETARG_TEXT_PP(0), PG_GETARG_TEXT_PP(1), damerau_levenshtein)));
}
}
