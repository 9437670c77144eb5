#include "extension/types/ctph_value.hpp"

extern "C" {
#include "common/hashfn.h"
#include "libpq/pqformat.h"
}

#include <cstring>

#include "extension/base/failure.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/types/text_arguments.hpp"

using namespace gputext;

namespace {

/// Longest text form: a block size of 10 digits, two parts, two colons.
constexpr std::size_t kMostText = 10 + 2 * Ctph::max_length + 2;

int compare_arguments(FunctionCallInfo fcinfo) {
    const StoredCtph* a = ctph_argument(PG_GETARG_DATUM(0));
    const StoredCtph* b = ctph_argument(PG_GETARG_DATUM(1));
    int order = 0;
    attempt_or_raise([&] { order = compare_ctph(read_ctph(*a), read_ctph(*b)); });
    PG_FREE_IF_COPY(const_cast<StoredCtph*>(a), 0);
    PG_FREE_IF_COPY(const_cast<StoredCtph*>(b), 1);
    return order;
}

/// What is hashed and what must be equal: all behind the length word.
Bytes payload(const StoredCtph* stored) {
    return {reinterpret_cast<const std::uint8_t*>(VARDATA(stored)), VARSIZE(stored) - VARHDRSZ};
}

}  // namespace

extern "C" {
SQL_FUNCTION(gputext_ctph_out) {
    const StoredCtph* stored = ctph_argument(PG_GETARG_DATUM(0));
    auto* text = static_cast<char*>(palloc(kMostText + 1));
    attempt_or_raise([&] {
        const std::string formatted = format_ctph(read_ctph(*stored));
        std::memcpy(text, formatted.c_str(), formatted.size() + 1);
    });
    PG_RETURN_CSTRING(text);
}

/// Binary form: level (int8), length of the first part (int16), then the letters of both.
SQL_FUNCTION(gputext_ctph_recv) {
    auto* message = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    PlainCtph plain;
    // pq_getmsgint() would take this for a defect of the protocol and not of the value.
    if (message->len - message->cursor < 3)
        ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                        errmsg("invalid binary value of type ctph"),
                        errdetail("It has fewer than 3 bytes.")));
    plain.level = static_cast<uint8>(pq_getmsgbyte(message));
    plain.first_length = static_cast<uint16>(pq_getmsgint(message, 2));
    const int size = message->len - message->cursor;
    if (size > static_cast<int>(sizeof plain.letters))
        ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                        errmsg("invalid binary value of type ctph"),
                        errdetail("It has %d letters, and may have %d.", size,
                                  static_cast<int>(sizeof plain.letters))));
    plain.letters_size = static_cast<std::size_t>(size);
    pq_copymsgbytes(message, plain.letters, size);
    Failure failure;
    if (!attempt(failure, [&] {
            return check_ctph(
                {plain.level, plain.first_length, std::string(plain.letters, plain.letters_size)});
        }))
        ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                        errmsg("invalid binary value of type ctph"),
                        errdetail("In this value, %s.", failure.message)));
    PG_RETURN_POINTER(make_ctph(plain));
}

SQL_FUNCTION(gputext_ctph_send) {
    const StoredCtph* stored = ctph_argument(PG_GETARG_DATUM(0));
    StringInfoData message;
    pq_begintypsend(&message);
    pq_sendint8(&message, stored->level);
    pq_sendint16(&message, stored->first_length);
    pq_sendbytes(&message, stored->letters, static_cast<int>(stored->letters_size()));
    PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

SQL_FUNCTION(gputext_ctph_eq) {
    PG_RETURN_BOOL(compare_arguments(fcinfo) == 0);
}

SQL_FUNCTION(gputext_ctph_ne) {
    PG_RETURN_BOOL(compare_arguments(fcinfo) != 0);
}

SQL_FUNCTION(gputext_ctph_lt) {
    PG_RETURN_BOOL(compare_arguments(fcinfo) < 0);
}

SQL_FUNCTION(gputext_ctph_le) {
    PG_RETURN_BOOL(compare_arguments(fcinfo) <= 0);
}

SQL_FUNCTION(gputext_ctph_gt) {
    PG_RETURN_BOOL(compare_arguments(fcinfo) > 0);
}

SQL_FUNCTION(gputext_ctph_ge) {
    PG_RETURN_BOOL(compare_arguments(fcinfo) >= 0);
}

SQL_FUNCTION(gputext_ctph_cmp) {
    PG_RETURN_INT32(compare_arguments(fcinfo));
}

SQL_FUNCTION(gputext_ctph_hash) {
    const Bytes bytes = payload(ctph_argument(PG_GETARG_DATUM(0)));
    return hash_any(bytes.data(), static_cast<int>(bytes.size()));
}

SQL_FUNCTION(gputext_ctph_hash_extended) {
    const Bytes bytes = payload(ctph_argument(PG_GETARG_DATUM(0)));
    return hash_any_extended(bytes.data(), static_cast<int>(bytes.size()), PG_GETARG_INT64(1));
}

/// Takes a text or a bytea: both are hashed byte by byte.
SQL_FUNCTION(gputext_ctph_signature) {
    const varlena* document = PG_GETARG_VARLENA_PP(0);
    const std::size_t longest = signature_length(PG_GETARG_INT32(1));
    PlainCtph plain;
    attempt_or_raise([&]() -> Status {
        const Result<Ctph> signature =
            ctph_signature(bytes_of(document), longest, stop_on_interrupt());
        if (!signature.ok()) return signature.status();
        store(plain, *signature);
        return {};
    });
    PG_RETURN_POINTER(make_ctph(plain));
}

SQL_FUNCTION(gputext_edit_rate_ctph) {
    const StoredCtph* a = ctph_argument(PG_GETARG_DATUM(0));
    const StoredCtph* b = ctph_argument(PG_GETARG_DATUM(1));
    double rate = 0;
    attempt_or_raise([&] { rate = edit_rate(read_ctph(*a), read_ctph(*b)); });
    PG_RETURN_FLOAT8(rate);
}
}
