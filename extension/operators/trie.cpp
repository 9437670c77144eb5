#include "extension/base/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"
}

#include <algorithm>
#include <cstring>
#include <memory>

#include "cpp/base/base64.hpp"
#include "cpp/trie/image.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/types/text_arguments.hpp"
#include "extension/types/trie_value.hpp"

namespace gputext {
namespace {

/// For make_owned().
struct CursorOwner {
    std::unique_ptr<TrieCursor> cursor;
};
struct FoundOwner {
    std::vector<PrefixWord> found;
};

text* text_of(std::string_view word) {
    return cstring_to_text_with_len(word.data(), static_cast<int>(word.size()));
}

// ---- Words one after the other ----

TrieCursor* cursor_of(const Trie& trie, CodeRange range) {
    CursorOwner* owner = make_owned<CursorOwner>(CurrentMemoryContext);
    attempt_or_raise([&] { owner->cursor = trie.cursor(range); });
    return owner->cursor.get();
}

bool step(TrieCursor* cursor) {
    bool any = false;
    attempt_or_raise([&] { any = cursor->next(); });
    return any;
}

/// One row of (code, word).
void put_word(ReturnSetInfo* result, std::uint32_t code, std::string_view word) {
    bool nulls[2] = {};
    text* const value = text_of(word);
    Datum values[2] = {Int64GetDatum(code), PointerGetDatum(value)};
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    pfree(value);
}

void put_range(FunctionCallInfo fcinfo, const Trie& trie, CodeRange range) {
    auto* const result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    TrieCursor* const cursor = cursor_of(trie, range);
    while (step(cursor)) {
        if (cursor->code() % 1024 == 0) CHECK_FOR_INTERRUPTS();
        put_word(result, cursor->code(), cursor->word());
    }
}

// ---- Values from outside ----

/// Only words that may be texts of this database make a dictionary of it.
void check_encoding(std::span<const std::uint8_t> image, const char* refused) {
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext words", ALLOCSET_DEFAULT_SIZES);
    MemoryContext before = MemoryContextSwitchTo(context);
    struct Owner {
        std::unique_ptr<Trie> trie;
    };
    Owner* owner = make_owned<Owner>(context);
    attempt_or_raise([&] { return take_value(open_trie(image), owner->trie); });
    TrieCursor* const cursor = cursor_of(*owner->trie, {0, owner->trie->stats().words});
    while (step(cursor)) {
        if (cursor->code() % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const std::string_view word = cursor->word();
        if (!pg_verify_mbstr(GetDatabaseEncoding(), word.data(), static_cast<int>(word.size()),
                             true))
            ereport(ERROR,
                    (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE), errmsg("%s", refused),
                     errdetail("The word with the code %u is no text in the encoding \"%s\".",
                               cursor->code(), GetDatabaseEncodingName())));
    }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
}

/// Raises `refused` when the image is not one of a dictionary, with a checksum that fits or not.
void check_image(std::span<const std::uint8_t> image, const char* refused) {
    Failure failure;
    if (!attempt(failure, [&] { return validate_trie(image, stop_on_interrupt()); })) {
        if (failure.code != ErrorCode::invalid_argument) raise_failure(failure);
        ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("%s", refused),
                        errdetail("In this value, %s.", failure.message)));
    }
    check_encoding(image, refused);
}

Datum checked_value(const void* bytes, std::size_t size) {
    varlena* const value = new_trie_value(size);
    std::memcpy(VARDATA(value), bytes, size);
    check_image(image_of(value), "invalid binary value of type trie");
    PG_RETURN_POINTER(value);
}

// ---- The text form ----

/// The text form: this, and the image in base64. The number is the version of the form.
constexpr std::string_view kForm = "trie:1:";

/// What the form of every version begins with.
constexpr std::string_view kAnyForm = "trie:";

/// What gputext.trie_output = 'bytes' made of a dictionary up to 0.1.0: hexadecimal digits, as
/// bytea has them.
constexpr std::string_view kHexForm = "\\x";

constexpr const char* kWrongForm = "invalid text value of type trie";

char* form_of(const varlena* value) {
    const auto image = image_of(value);
    const std::size_t size = kForm.size() + base64_size(image.size());
    // A value of type text has a header, too.
    if (size > MaxAllocSize - VARHDRSZ)
        ereport(
            ERROR,
            (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
             errmsg("a dictionary of %zu bytes is too large for a text form", image.size()),
             errdetail("Its text form would have %zu characters, and a text can have at most "
                       "1 GB.",
                       size),
             errhint("COPY in binary format moves it. pg_dump can leave the table's rows out by "
                     "--exclude-table-data.")));
    auto* const form = static_cast<char*>(palloc(size + 1));
    std::memcpy(form, kForm.data(), kForm.size());
    write_base64(image, form + kForm.size());
    form[size] = '\0';
    return form;
}

varlena* image_in_base64(std::string_view digits) {
    Failure failure;
    std::size_t size = 0;
    varlena* value = nullptr;
    bool ok = attempt(failure, [&] { return take_value(base64_bytes(digits), size); });
    if (ok) {
        value = new_trie_value(size);
        auto* const bytes = reinterpret_cast<std::uint8_t*>(VARDATA(value));
        ok = attempt(failure, [&] { return read_base64(digits, bytes); });
    }
    if (!ok) {
        if (failure.code != ErrorCode::invalid_argument) raise_failure(failure);
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("%s", kWrongForm),
                        errdetail("In the text after \"%s\", %s.", kForm.data(), failure.message)));
    }
    return value;
}

varlena* image_in_hex(std::string_view digits) {
    varlena* const value = new_trie_value(digits.size() / 2);
    const uint64 size = hex_decode(digits.data(), digits.size(), VARDATA(value));
    SET_VARSIZE(value, size + VARHDRSZ);
    return value;
}

/// Whether a text is such as trie_summary() gives.
bool is_summary(std::string_view form) {
    for (const TrieStructure structure : kTrieStructures) {
        const std::string_view name(name_of(structure));
        if (form.starts_with(name) && form.substr(name.size()).starts_with(", ")) return true;
    }
    return false;
}

[[noreturn]] void refuse_form(std::string_view form) {
    if (is_summary(form))
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("a value of type trie cannot be read from its summary"),
                 errdetail("gputext 0.1.0 wrote summaries in place of dictionaries."),
                 errhint("Upgrade gputext where the dictionary is and dump it again, or let "
                         "pg_dump run there with PGOPTIONS='-c gputext.trie_output=bytes'.")));
    if (form.starts_with(kAnyForm))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("%s", kWrongForm),
                        errdetail("Its text form is not of the version 1, which is the only one."),
                        errhint("It may come from a later release of gputext.")));
    const int shown =
        pg_mbcliplen(form.data(), static_cast<int>(std::min<std::size_t>(form.size(), 40)), 40);
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("%s", kWrongForm),
                    errdetail("It begins with \"%.*s\", and not with \"%s\".", shown, form.data(),
                              kForm.data()),
                    errhint("Dictionaries are built by trie_agg().")));
}

/// Statistics of the argument, of which only the first bytes are fetched.
TrieStats stats_argument(FunctionCallInfo fcinfo) {
    const varlena* const begin = PG_DETOAST_DATUM_SLICE(PG_GETARG_DATUM(0), 0, sizeof(TrieHeader));
    TrieHeader header;
    if (VARSIZE_ANY_EXHDR(begin) < sizeof header)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("a value of type trie is broken"),
                        errdetail("In this value, it has fewer bytes than a header.")));
    std::memcpy(&header, VARDATA_ANY(begin), sizeof header);
    if (std::memcmp(header.magic, TrieHeader::kMagic, sizeof header.magic) != 0 ||
        header.version != TrieHeader::kVersion)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("a value of type trie is broken"),
                        errdetail("In this value, its header is not that of a dictionary.")));
    return stats_of(header);
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_trie_in) {
    const std::string_view form(PG_GETARG_CSTRING(0));
    varlena* value = nullptr;
    if (form.starts_with(kForm))
        value = image_in_base64(form.substr(kForm.size()));
    else if (form.starts_with(kHexForm))
        value = image_in_hex(form.substr(kHexForm.size()));
    else
        refuse_form(form);
    check_image(image_of(value), kWrongForm);
    PG_RETURN_POINTER(value);
}

SQL_FUNCTION(gputext_trie_out) {
    PG_RETURN_CSTRING(form_of(PG_GETARG_VARLENA_PP(0)));
}

/// Binary form: the image.
SQL_FUNCTION(gputext_trie_recv) {
    auto* message = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    const int size = message->len - message->cursor;
    return checked_value(pq_getmsgbytes(message, size), static_cast<std::size_t>(size));
}

SQL_FUNCTION(gputext_trie_send) {
    PG_RETURN_BYTEA_P(PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(0)));
}

SQL_FUNCTION(gputext_trie_from_bytea) {
    const varlena* const bytes = PG_GETARG_VARLENA_PP(0);
    return checked_value(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
}

SQL_FUNCTION(gputext_trie_stats) {
    TupleDesc columns;
    if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "trie_stats does not return a row");
    const TrieStats stats = stats_argument(fcinfo);
    const double words = stats.words;
    Datum values[6] = {CStringGetTextDatum(name_of(stats.structure)),
                       Int64GetDatum(stats.words),
                       Int64GetDatum(static_cast<int64>(stats.bytes)),
                       Float8GetDatum(8 * static_cast<double>(stats.bytes) / words),
                       Int32GetDatum(static_cast<int32>(stats.alphabet)),
                       Int64GetDatum(stats.longest)};
    bool nulls[6] = {};
    nulls[3] = stats.words == 0;
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls)));
}

SQL_FUNCTION(gputext_trie_summary) {
    const TrieStats stats = stats_argument(fcinfo);
    const char* const summary = psprintf("%s, %u words, " UINT64_FORMAT " bytes",
                                         name_of(stats.structure), stats.words, stats.bytes);
    PG_RETURN_TEXT_P(cstring_to_text(summary));
}

SQL_FUNCTION(gputext_trie_lookup) {
    const Trie& trie = trie_argument(fcinfo, 0);
    const std::uint32_t code = trie.lookup(view_of(PG_GETARG_VARLENA_PP(1)));
    if (code == Trie::kNone) PG_RETURN_NULL();
    PG_RETURN_INT64(code);
}

SQL_FUNCTION(gputext_trie_node) {
    const Trie& trie = trie_argument(fcinfo, 0);
    if (!trie.has_nodes())
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("a dictionary of the structure %s has no nodes",
                               name_of(trie.stats().structure)),
                        errhint("trie_agg(word, 'xbw') builds one that has.")));
    const std::uint32_t node = trie.node(view_of(PG_GETARG_VARLENA_PP(1)));
    if (node == Trie::kNone) PG_RETURN_NULL();
    PG_RETURN_INT64(node);
}

SQL_FUNCTION(gputext_trie_decode) {
    const Trie& trie = trie_argument(fcinfo, 0);
    const int64 code = PG_GETARG_INT64(1);
    const TrieStats& stats = trie.stats();
    if (code < 0 || code >= int64{stats.words})
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("the dictionary has no code %lld", static_cast<long long>(code)),
                        errdetail("It has %u words, whose codes begin with 0.", stats.words)));
    auto* const word =
        static_cast<text*>(palloc(VARHDRSZ + std::size_t{stats.longest} + Trie::kSlack));
    const std::size_t size = trie.decode(static_cast<std::uint32_t>(code), VARDATA(word));
    SET_VARSIZE(word, VARHDRSZ + size);
    PG_RETURN_TEXT_P(word);
}

SQL_FUNCTION(gputext_trie_prefix_range) {
    TupleDesc columns;
    if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "trie_prefix_range does not return a row");
    const Trie& trie = trie_argument(fcinfo, 0);
    const std::string_view prefix = view_of(PG_GETARG_VARLENA_PP(1));
    CodeRange range;
    attempt_or_raise([&] { range = trie.prefix_range(prefix); });
    Datum values[2] = {Int64GetDatum(range.first), Int64GetDatum(int64{range.end} - 1)};
    bool nulls[2] = {range.empty(), range.empty()};
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls)));
}

/// Not strict, as max may be null.
SQL_FUNCTION(gputext_trie_prefix) {
    InitMaterializedSRF(fcinfo, 0);
    if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) PG_RETURN_NULL();
    const int64 most = PG_ARGISNULL(2) ? int64{UINT32_MAX} : int64{PG_GETARG_INT32(2)};
    if (most < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("max must be at least 0, not %d", PG_GETARG_INT32(2))));
    const Trie& trie = trie_argument(fcinfo, 0);
    const std::string_view prefix = view_of(PG_GETARG_VARLENA_PP(1));
    CodeRange range;
    attempt_or_raise([&] { range = trie.prefix_range(prefix); });
    if (int64{range.end} - range.first > most)
        range.end = range.first + static_cast<std::uint32_t>(most);
    put_range(fcinfo, trie, range);
    PG_RETURN_NULL();
}

SQL_FUNCTION(gputext_trie_prefixes_of) {
    InitMaterializedSRF(fcinfo, 0);
    const Trie& trie = trie_argument(fcinfo, 0);
    const std::string_view document = view_of(PG_GETARG_VARLENA_PP(1));
    FoundOwner* const owner = make_owned<FoundOwner>(CurrentMemoryContext);
    attempt_or_raise([&] { trie.prefixes_of(document, owner->found); });
    auto* const result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    for (const PrefixWord& prefix : owner->found)
        put_word(result, prefix.code, document.substr(0, prefix.length));
    PG_RETURN_NULL();
}

SQL_FUNCTION(gputext_trie_words) {
    InitMaterializedSRF(fcinfo, 0);
    const Trie& trie = trie_argument(fcinfo, 0);
    put_range(fcinfo, trie, {0, trie.stats().words});
    PG_RETURN_NULL();
}
}
