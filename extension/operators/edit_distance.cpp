#include "extension/base/postgres.hpp"

#include <algorithm>

#include "cpp/documents/edit_distance.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/types/text_arguments.hpp"

using namespace gputext;

namespace {

struct Comparison {
    std::size_t distance;
    std::size_t lengths;  // of both together
};

/// The distance, or limit + 1 if it is above the limit; raises errors.
Comparison compare(const varlena* a, const varlena* b, const CharacterLengths& characters,
                   std::size_t limit) {
    Comparison comparison{};
    attempt_or_raise([&]() -> Status {
        const auto distance = EditDistance().of_texts(bytes_of(a), bytes_of(b), characters, limit,
                                                      stop_on_interrupt());
        if (!distance.ok()) return distance.status();
        comparison.distance = *distance;
        comparison.lengths = count_characters(bytes_of(a), characters, stop_on_interrupt()) +
                             count_characters(bytes_of(b), characters, stop_on_interrupt());
        return {};
    });
    return comparison;
}

std::size_t limit_argument(int32 limit) {
    if (limit < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("max must be at least 0, not %d", limit)));
    return static_cast<std::size_t>(limit);
}

/// A distance is at most as large as the longer value, which is below 2^30 bytes.
Datum distance_datum(const Comparison& comparison) {
    return Int32GetDatum(static_cast<int32>(comparison.distance));
}

Datum rate_datum(const Comparison& comparison) {
    return Float8GetDatum(edit_rate(comparison.distance, comparison.lengths));
}

}  // namespace

extern "C" {
SQL_FUNCTION(gputext_edit_distance_text) {
    return distance_datum(compare(PG_GETARG_TEXT_PP(0), PG_GETARG_TEXT_PP(1), database_characters(),
                                  EditDistance::no_limit));
}

SQL_FUNCTION(gputext_edit_distance_text_max) {
    return distance_datum(compare(PG_GETARG_TEXT_PP(0), PG_GETARG_TEXT_PP(1), database_characters(),
                                  limit_argument(PG_GETARG_INT32(2))));
}

SQL_FUNCTION(gputext_edit_distance_bytea) {
    return distance_datum(compare(PG_GETARG_BYTEA_PP(0), PG_GETARG_BYTEA_PP(1),
                                  CharacterLengths::single_byte(), EditDistance::no_limit));
}

SQL_FUNCTION(gputext_edit_distance_bytea_max) {
    return distance_datum(compare(PG_GETARG_BYTEA_PP(0), PG_GETARG_BYTEA_PP(1),
                                  CharacterLengths::single_byte(),
                                  limit_argument(PG_GETARG_INT32(2))));
}

SQL_FUNCTION(gputext_edit_rate_text) {
    return rate_datum(compare(PG_GETARG_TEXT_PP(0), PG_GETARG_TEXT_PP(1), database_characters(),
                              EditDistance::no_limit));
}

SQL_FUNCTION(gputext_edit_rate_bytea) {
    return rate_datum(compare(PG_GETARG_BYTEA_PP(0), PG_GETARG_BYTEA_PP(1),
                              CharacterLengths::single_byte(), EditDistance::no_limit));
}
}
