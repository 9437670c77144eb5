#include "extension/inputs/string_rows.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/server/activity.hpp"
#include "extension/types/column_types.hpp"
#include "extension/types/text_arguments.hpp"
#include "extension/values/row_threads.hpp"
#include "extension/values/stored_values.hpp"

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
    strings.begins.push_back(0);
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

/// A reader of trigrams, for a role that may call pg_trgm's function.
TrigramReader new_trigram_reader() {
    const Oid function = trigram_function();
    if (!OidIsValid(function))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("metric 'trigram' needs the extension pg_trgm"),
                        errdetail("Trigrams are those that its function show_trgm gives."),
                        errhint("Run CREATE EXTENSION pg_trgm in this database.")));
    if (!may_call(function)) aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, "show_trgm");
    return TrigramReader(function);
}

void append_trigrams(TrigramReader& reader, Datum value, const VectorRows& rows,
                     StringRows& strings) {
    const std::span<const std::uint32_t> trigrams = reader.read(value);
    attempt_or_raise([&]() -> Status {
        GPUTEXT_TRY(check_room(trigrams.size(), rows, strings));
        strings.append(trigrams);
        return {};
    });
}

/// Has `append` take the value of each row, until it says false; whether it has taken all.
template <class Append>
bool read_values(VectorRows& rows, StringRows& strings, Append append) {
    attempt_or_raise([&] { reserve_symbols(rows, strings); });
    bool taken = true;
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);
    MemoryContext before = MemoryContextSwitchTo(context);
    for (std::size_t row = 0; row < rows.size() && taken; ++row) {
        CHECK_FOR_INTERRUPTS();
        taken = append(rows.values(0).detoasted(row));
        MemoryContextReset(context);
        show_step({"reading rows", row, rows.size(), kNowhereYet});
    }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
    return taken;
}

// ---- Many strings that lie in the session's memory as they are, by threads ----

constexpr std::size_t kRowsOfStep = 1 << 12;

class PlainStrings {
public:
    PlainStrings(StringForm form, VectorRows& rows, StringRows& strings)
        : form_(form), rows_(rows), values_(rows.values(0)), strings_(strings) {}

    /// Whether threads may read them, and there are enough for it to pay.
    bool may_be_read() const { return values_.plain() && rows_.size() >= kRowsForThreads; }

    void read_characters();
    void read_trigrams(TrigramReader& reader);

private:
    Bytes text(std::size_t row) const;
    template <class Body>
    Status each_row(Execution& execution, Body&& body) const;
    Status make_room();

    StringForm form_;
    VectorRows& rows_;
    StoredValues& values_;
    StringRows& strings_;
};

Bytes PlainStrings::text(std::size_t row) const {
    const Extent extent = values_.plain_extent(row);
    Bytes bytes(values_.plain_bytes().data() + extent.begin, extent.size);
    if (form_ == StringForm::unpadded)
        while (!bytes.empty() && bytes.back() == ' ') bytes = bytes.first(bytes.size() - 1);
    return bytes;
}

/// Calls body(row, worker, stop) for each row, by all threads.
template <class Body>
Status PlainStrings::each_row(Execution& execution, Body&& body) const {
    const Stop stop = execution.stop();
    const std::size_t rows = rows_.size(), steps = (rows + kRowsOfStep - 1) / kRowsOfStep;
    execution.begin_phase("reading rows", steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned worker) -> Status {
        const std::size_t end = std::min(rows, (step + 1) * kRowsOfStep);
        for (std::size_t row = step * kRowsOfStep; row < end; ++row) body(row, worker, stop);
        return stop() ? Status::cancelled() : Status();
    });
}

/// Of the numbers of each row's symbols: where these begin, and the room for them.
Status PlainStrings::make_room() {
    std::partial_sum(strings_.begins.begin(), strings_.begins.end(), strings_.begins.begin());
    GPUTEXT_TRY(check_room(strings_.begins.back(), rows_, strings_));
    strings_.symbols.resize(strings_.begins.back());
    return {};
}

void PlainStrings::read_characters() {
    const CharacterLengths& lengths =
        form_ == StringForm::bytes ? CharacterLengths::single_byte() : database_characters();
    run_threaded([&](Execution& execution) -> Status {
        strings_.begins.assign(rows_.size() + 1, 0);
        GPUTEXT_TRY(each_row(execution, [&](std::size_t row, unsigned, Stop stop) {
            strings_.begins[row + 1] = count_characters(text(row), lengths, stop);
        }));
        GPUTEXT_TRY(make_room());
        return each_row(execution, [&](std::size_t row, unsigned, Stop stop) {
            const Bytes bytes = text(row);
            std::uint64_t to = strings_.begins[row];
            for (std::size_t at = 0; at < bytes.size(); ++to) {
                strings_.symbols[to] = next_character(bytes, lengths, at);
                if (to % kLookEvery == 0 && stop()) return;
            }
        });
    });
}

/// Those that the reader makes itself; the session asks for the others in between.
void PlainStrings::read_trigrams(TrigramReader& reader) {
    constexpr std::uint64_t kAsked = UINT64_MAX;
    auto& others = *make_owned<StringRows>(CurrentMemoryContext);
    // Memory of a thread; another run may have more threads.
    using Scratch = std::vector<std::vector<std::uint32_t>>;
    const auto read_known = [&](std::size_t row, std::vector<std::uint32_t>& numbers) {
        const Bytes bytes = text(row);
        if (numbers.size() < bytes.size() + 1) numbers.resize(bytes.size() + 1);
        return Symbols(numbers.data(), reader.read_known(bytes, numbers.data()));
    };
    run_threaded([&](Execution& execution) -> Status {
        Scratch scratch(execution.threads());
        strings_.begins.assign(rows_.size() + 1, 0);
        return each_row(execution, [&](std::size_t row, unsigned worker, Stop) {
            strings_.begins[row + 1] =
                reader.knows(text(row)) ? read_known(row, scratch[worker]).size() : kAsked;
        });
    });
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);
    MemoryContext before = MemoryContextSwitchTo(context);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
        if (strings_.begins[row + 1] != kAsked) continue;
        CHECK_FOR_INTERRUPTS();
        const std::span<const std::uint32_t> trigrams = reader.read(values_.detoasted(row));
        attempt_or_raise([&]() -> Status {
            GPUTEXT_TRY(check_room(trigrams.size(), rows_, others));
            others.append(trigrams);
            return {};
        });
        MemoryContextReset(context);
        show_step({"reading rows", row, rows_.size(), kNowhereYet});
    }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
    auto& asked = *make_owned<std::vector<std::uint32_t>>(CurrentMemoryContext);
    run_threaded([&](Execution& execution) -> Status {
        asked.assign(rows_.size(), UINT32_MAX);
        for (std::size_t row = 0, other = 0; row < rows_.size(); ++row) {
            if (strings_.begins[row + 1] != kAsked) continue;
            strings_.begins[row + 1] = others.view().length(other);
            asked[row] = static_cast<std::uint32_t>(other++);
        }
        GPUTEXT_TRY(make_room());
        Scratch scratch(execution.threads());
        return each_row(execution, [&](std::size_t row, unsigned worker, Stop) {
            const Symbols trigrams = asked[row] == UINT32_MAX ? read_known(row, scratch[worker])
                                                              : others.view()[asked[row]];
            std::ranges::copy(trigrams, strings_.symbols.data() + strings_.begins[row]);
        });
    });
    others = {};
    asked = {};
}

}  // namespace

const char* const kStringColumns =
    "With this metric the inner query must give an id and a text, in this order, and after them a "
    "key of rows that may be neighbors, if wanted, and with exclude_key one of rows that may not.";

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
             errdetail("%s", kStringColumns),
             type == BYTEAOID
                 ? errhint("A text in bytes can be converted in the inner query, as in "
                           "convert_from(name, 'UTF8'); 'edit_rate', 'levenshtein' and 'osa' "
                           "compare bytes.")
                 : errhint("Other types can be cast in the inner query, as in name::text.")));
    pg_unreachable();
}

void read_strings(StringForm form, StringMetric metric, VectorRows& rows, StringRows& strings) {
    PlainStrings plain(form, rows, strings);
    if (metric == StringMetric::trigram) {
        TrigramReader reader = new_trigram_reader();
        if (plain.may_be_read()) {
            plain.read_trigrams(reader);
        } else {
            read_values(rows, strings, [&](Datum value) {
                append_trigrams(reader, value, rows, strings);
                return true;
            });
        }
    } else if (plain.may_be_read()) {
        plain.read_characters();
    } else {
        read_values(rows, strings, [&](Datum value) {
            append_string(form, value, rows, strings);
            return true;
        });
    }
    rows.release_values();
    rows.finish();
}

bool read_trigrams_if_they_fit(TrigramReader& reader, std::size_t longest, VectorRows& rows,
                               StringRows& strings) {
    const bool fit = read_values(rows, strings, [&](Datum value) {
        if (VARSIZE_ANY_EXHDR(DatumGetPointer(value)) > longest) return false;
        const std::span<const std::uint32_t> trigrams = reader.read(value);
        if (!check_room(trigrams.size(), rows, strings).ok()) return false;
        attempt_or_raise([&] { strings.append(trigrams); });
        return true;
    });
    rows.release_values();
    rows.finish();
    return fit;
}

}  // namespace gputext
