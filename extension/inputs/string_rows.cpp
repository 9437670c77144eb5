#include "extension/inputs/string_rows.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
}

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/server/activity.hpp"
#include "extension/types/column_types.hpp"
#include "extension/types/distance_names.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

struct NamedMetric {
    const char* name;
    StringMetric metric;
};

constexpr NamedMetric kMetrics[] = {{"edit_rate", StringMetric::edit_rate},
                                    {"levenshtein", StringMetric::levenshtein},
                                    {"osa", StringMetric::osa},
                                    {"jaro", StringMetric::jaro},
                                    {"jaro_winkler", StringMetric::jaro_winkler},
                                    {"trigram", StringMetric::trigram}};

const char* const kWanted =
    "With this metric the inner query must give an id and a text, in this order, and after them a "
    "key of rows that may be neighbors, if wanted, and with exclude_key one of rows that may not.";

bool may_be_bytes(StringMetric metric) {
    return metric == StringMetric::edit_rate || metric == StringMetric::levenshtein ||
           metric == StringMetric::osa;
}

// ---- Symbols ----

/// Before a row's symbols take memory.
Status check_room(std::size_t more, const VectorRows& rows, const StringRows& strings) {
    const std::size_t bytes = (strings.symbols.size() + more) * sizeof(std::uint32_t);
    return bytes <= rows.memory_limit()
               ? Status()
               : over_memory_limit("the strings", bytes, rows.memory_limit());
}

/// Room for all rows within the limit: a vector that grows has up to three times what it needs. A
/// string has no more characters than bytes, and no more trigrams than bytes and one.
void reserve_symbols(VectorRows& rows, StringRows& strings) {
    strings.begins.reserve(rows.size() + 1);
    strings.symbols.reserve(std::min<std::uint64_t>(
        rows.values(0).unpacked_bytes(), rows.memory_limit() / sizeof(std::uint32_t)));
}

Status append_characters(Bytes text, const CharacterLengths& lengths, const VectorRows& rows,
                         StringRows& strings, Stop stop) {
    const std::size_t count = count_characters(text, lengths, stop);
    if (stop()) return Status::cancelled();
    GPUTEXT_TRY(check_room(count, rows, strings));
    for (std::size_t at = 0, done = 1; at < text.size(); ++done) {
        strings.symbols.push_back(next_character(text, lengths, at));
        if (done % kLookEvery == 0 && stop()) return Status::cancelled();
    }
    strings.begins.push_back(strings.symbols.size());
    return {};
}

void append_string(StringForm form, Datum value, const VectorRows& rows, StringRows& strings) {
    const auto* const string = reinterpret_cast<const varlena*>(DatumGetPointer(value));
    Bytes bytes = bytes_of(string);
    if (form == StringForm::unpadded)
        bytes = bytes.first(static_cast<std::size_t>(
            bpchartruelen(VARDATA_ANY(string), static_cast<int>(bytes.size()))));
    const CharacterLengths& lengths = form == StringForm::bytes ? CharacterLengths::single_byte()
                                                                : database_characters();
    attempt_or_raise(
        [&] { return append_characters(bytes, lengths, rows, strings, stop_on_interrupt()); });
}

// ---- Trigrams ----

/// pg_trgm's own function in C, wherever it lies. Nobody but a superuser makes one in C.
Oid trigram_function() {
    CatCList* const functions = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum("show_trgm"));
    Oid found = InvalidOid;
    for (int i = 0; i < functions->n_members; ++i) {
        HeapTuple tuple = &functions->members[i]->tuple;
        const auto* const function = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
        if (function->prolang == ClanguageId && function->pronargs == 1 &&
            function->proargtypes.values[0] == TEXTOID && function->prorettype == TEXTARRAYOID &&
            belongs_to_extension(ProcedureRelationId, function->oid, "pg_trgm"))
            found = function->oid;
    }
    ReleaseSysCacheList(functions);
    if (!OidIsValid(found))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("metric 'trigram' needs the extension pg_trgm"),
                        errdetail("Trigrams are those that its function show_trgm gives."),
                        errhint("Run CREATE EXTENSION pg_trgm in this database.")));
    if (!may_call(found)) aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, "show_trgm");
    return found;
}

/// A trigram of three bytes, or of other characters as the number that stands for them: 0x123456.
std::uint32_t trigram_number(const text* trigram) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(trigram));
    const std::size_t size = VARSIZE_ANY_EXHDR(trigram);
    if (size == 3)
        return static_cast<std::uint32_t>(bytes[0]) << 16 |
               static_cast<std::uint32_t>(bytes[1]) << 8 | bytes[2];
    char digits[9] = {};
    if (size != 8 || std::memcmp(bytes, "0x", 2) != 0)
        elog(ERROR, "show_trgm gave a trigram of %zu bytes", size);
    std::memcpy(digits, bytes, 8);
    return static_cast<std::uint32_t>(std::strtoul(digits, nullptr, 16));
}

void append_trigrams(FmgrInfo* function, Datum value, const VectorRows& rows,
                     StringRows& strings) {
    const Datum array = FunctionCall1Coll(function, DEFAULT_COLLATION_OID, value);
    Datum* trigrams;
    int count;
    deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT, &trigrams,
                      nullptr, &count);
    auto* const numbers = static_cast<std::uint32_t*>(
        MemoryContextAllocHuge(CurrentMemoryContext, (count + 1) * sizeof(std::uint32_t)));
    for (int i = 0; i < count; ++i) numbers[i] = trigram_number(DatumGetTextPP(trigrams[i]));
    std::sort(numbers, numbers + count);
    std::uint32_t* const end = std::unique(numbers, numbers + count);
    attempt_or_raise([&]() -> Status {
        GPUTEXT_TRY(check_room(static_cast<std::size_t>(end - numbers), rows, strings));
        strings.symbols.insert(strings.symbols.end(), numbers, end);
        strings.begins.push_back(strings.symbols.size());
        return {};
    });
}

}  // namespace

std::optional<StringMetric> string_metric_of(const char* name) {
    for (const NamedMetric& known : kMetrics)
        if (std::strcmp(name, known.name) == 0) return known.metric;
    return std::nullopt;
}

const char* name_of(StringMetric metric) {
    return kMetrics[static_cast<std::size_t>(metric)].name;
}

StringForm string_form_of(TupleDesc columns, StringMetric metric) {
    const Oid type = base_type_of_column(columns, 1);
    if (type == BPCHAROID) return StringForm::unpadded;
    if (type == BYTEAOID && may_be_bytes(metric)) return StringForm::bytes;
    if (IsBinaryCoercible(type, TEXTOID)) return StringForm::characters;
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("metric '%s' compares texts, not values of type %s", name_of(metric),
                    format_type_be(TupleDescAttr(columns, 1)->atttypid)),
             errdetail("%s", kWanted),
             type == BYTEAOID
                 ? errhint("A text in bytes can be converted in the inner query, as in "
                           "convert_from(name, 'UTF8'); 'edit_rate', 'levenshtein' and 'osa' "
                           "compare bytes.")
                 : errhint("Other types can be cast in the inner query, as in name::text.")));
    pg_unreachable();
}

void read_strings(StringForm form, StringMetric metric, VectorRows& rows, StringRows& strings) {
    auto* const function = static_cast<FmgrInfo*>(palloc0(sizeof(FmgrInfo)));
    if (metric == StringMetric::trigram) fmgr_info(trigram_function(), function);
    attempt_or_raise([&] {
        reserve_symbols(rows, strings);
        strings.begins.push_back(0);
    });
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);
    MemoryContext before = MemoryContextSwitchTo(context);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        CHECK_FOR_INTERRUPTS();
        const Datum value = rows.values(0).detoasted(row);
        if (metric == StringMetric::trigram)
            append_trigrams(function, value, rows, strings);
        else
            append_string(form, value, rows, strings);
        MemoryContextReset(context);
        show_step({"reading rows", row, rows.size(), kNowhereYet});
    }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
    rows.release_values();
    rows.finish();
}

}  // namespace gputext
