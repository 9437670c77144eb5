#include "extension/inputs/record_rows.hpp"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/builtins.h"
}

#include <algorithm>
#include <cstring>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/order/row_order.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/session_job.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {

namespace {

/// Records are numbered with 31 bits.
constexpr std::size_t kMostRecords = std::size_t{1} << 31;

const char* const kWanted =
    "The inner query must give an id, and behind it a column for each field and each key, by their "
    "names; other columns are ignored.";

bool is_named(TupleDesc columns, int column, const char* name) {
    return std::strcmp(NameStr(TupleDescAttr(columns, column)->attname), name) == 0;
}

/// "id2, surname", without the first one; null where there is none.
const char* names_behind_id(TupleDesc columns) {
    StringInfoData names;
    initStringInfo(&names);
    for (int i = 1; i < columns->natts; ++i)
        appendStringInfo(&names, "%s%s", i == 1 ? "" : ", ",
                         quote_identifier(NameStr(TupleDescAttr(columns, i)->attname)));
    return names.len == 0 ? nullptr : names.data;
}

[[noreturn]] void raise_missing(TupleDesc columns, const RecordColumn& column, const char* query) {
    const char* const names = names_behind_id(columns);
    const char* const name = column.name().c_str();
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_COLUMN),
             errmsg("%s has no column \"%s\" for the %s of this name", query, name,
                    column.is_field() ? "field" : "key"),
             names == nullptr ? errdetail("It has no columns behind the id.")
                              : errdetail("Its columns behind the id are: %s.", names),
             is_named(columns, 0, name)
                 ? errhint("The first column is the id. Give it once more to compare it, as in "
                           "SELECT id, %s AS %s.",
                           quote_identifier(name), quote_identifier(name))
                 : errhint("Give it that name in the inner query, as in SELECT id, ... AS %s.",
                           quote_identifier(name))));
    pg_unreachable();
}

/// The number of the column in the query.
int find_column(TupleDesc columns, const RecordColumn& wanted, const char* query) {
    int found = -1;
    for (int i = 1; i < columns->natts; ++i) {
        if (!is_named(columns, i, wanted.name().c_str())) continue;
        if (found >= 0)
            ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_COLUMN),
                            errmsg("%s has several columns \"%s\"", query, wanted.name().c_str()),
                            errhint("Give all but one of them another name.")));
        found = i;
    }
    if (found < 0) raise_missing(columns, wanted, query);
    return found;
}

}  // namespace

class RecordReceiver final : public RowReceiver {
public:
    RecordReceiver(RecordRows& rows, RowIds& ids, const char* query)
        : rows_(rows), ids_(ids), query_(query) {}

    WantedColumns wanted_columns() const override {
        return {1, WantedColumns::kAnyColumns, kWanted};
    }
    void check_columns(TupleDesc columns) override;
    bool takes_any_order() const override { return true; }
    bool left_out(const bool*) const override { return false; }
    void take_row(const Datum* values, const bool* nulls) override;
    void end_rows() override { rows_.end_rows(ids_, query().ordered); }
    void report_nulls(int64, const char*) override {}

private:
    RecordRows& rows_;
    RowIds& ids_;
    const char* query_;
};

void RecordReceiver::check_columns(TupleDesc columns) {
    for (RecordColumn& column : rows_.columns_)
        column.begin_rows(columns, find_column(columns, column, query_));
}

void RecordReceiver::take_row(const Datum* values, const bool* nulls) {
    if (rows_.size() == kMostRecords)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("there are more than %zu records", kMostRecords)));
    ids_.append(values[0]);
    std::uint64_t bytes = ids_.bytes();
    for (RecordColumn& column : rows_.columns_) {
        column.append(values, nulls);
        bytes += column.bytes();
    }
    show_rows(rows_.size(), bytes);
}

// ---- The call ----

void record_arguments(const Arguments& given, const char* id_type_after, RecordQueries& queries) {
    queries.two_tables = given.has("records2");
    queries.first = {given.text(queries.two_tables ? "records1" : "records"),
                     id_type_argument(given),
                     {id_type_after, queries.two_tables},
                     queries.two_tables ? " of the first records" : ""};
    if (queries.two_tables) {
        queries.second = queries.first;
        queries.second.sql = given.text("records2");
        queries.second.among = " of the second records";
    }
    const TextArray keys = given.texts("keys");
    attempt_or_raise([&]() -> Status {
        for (int i = 0; i < keys.count; ++i) {
            queries.keys.emplace_back();
            GPUTEXT_TRY(take_value(read_names(keys.values[i]), queries.keys.back()));
        }
        return {};
    });
}

// ---- Columns ----

/// Numbers that are compared by a distance are rounded to double precision: a key has the column
/// once more.
std::size_t RecordRows::place_of_key(const std::string& name, std::span<const FieldModel> fields) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (columns_[i].name() != name) continue;
        if (i >= fields.size()) return i;
        const auto rounding = [](const Condition& c) {
            return applies_to(c.kind, FieldKind::number) && c.kind != ConditionKind::exact;
        };
        const bool rounds = std::ranges::any_of(fields[i].comparison.conditions, rounding);
        if (!rounds) return i;
    }
    columns_.emplace_back(name, nullptr, columns_.front().memory_limit());
    return columns_.size() - 1;
}

void RecordRows::want(const RecordQueries& queries, std::span<const FieldModel> fields) {
    std::size_t most = fields.size();
    for (const std::vector<std::string>& key : queries.keys) most += key.size();
    for (const FieldModel& field : fields)
        columns_.emplace_back(field.comparison.field, &field.comparison, memory_limit_ / most);
    for (const std::vector<std::string>& key : queries.keys) {
        key_columns_.emplace_back();
        for (const std::string& name : key)
            key_columns_.back().push_back(place_of_key(name, fields));
    }
}

// ---- Rows ----

void RecordRows::end_rows(RowIds& ids, bool ordered) {
    auto* const order = make_owned<std::vector<std::uint32_t>>(CurrentMemoryContext);
    put_in_order(ids, ordered, *order);
    if (order->empty()) return;
    const std::size_t begin = size() - ids.size();
    attempt_or_raise([&] {
        fill_order(begin);
        for (const std::uint32_t row : *order)
            order_.push_back(static_cast<std::uint32_t>(begin + row));
        *order = {};
    });
}

/// Up to the record `end`, where an order is known of some.
void RecordRows::fill_order(std::size_t end) {
    order_.reserve(size());
    while (order_.size() < end) order_.push_back(static_cast<std::uint32_t>(order_.size()));
}

void RecordRows::finish_order() {
    if (order_.empty()) return;
    fill_order(size());
    ranks_.resize(size());
    for (std::uint32_t rank = 0; rank < order_.size(); ++rank) ranks_[order_[rank]] = rank;
}

void RecordRows::number_values() {
    database_characters();  // known before threads ask for them
    const auto fields =
        static_cast<std::size_t>(std::ranges::count_if(columns_, &RecordColumn::is_field));
    run_threaded([&](Execution& execution) -> Status {
        std::vector<FieldValues> values(columns_.size());
        execution.begin_phase("numbering values", columns_.size());
        GPUTEXT_TRY(execution.parallel_for(columns_.size(), [&](std::size_t i, unsigned) {
            return take_value(
                FieldValues::of(columns_[i].rows(), database_characters(), execution.stop()),
                values[i]);
        }));
        keys_.resize(key_columns_.size());
        execution.begin_phase("numbering keys", keys_.size());
        GPUTEXT_TRY(execution.parallel_for(keys_.size(), [&](std::size_t i, unsigned) {
            std::vector<const FieldValues*> of_key;
            for (const std::size_t column : key_columns_[i]) of_key.push_back(&values[column]);
            return take_value(combined_key(of_key, execution.stop()), keys_[i]);
        }));
        values.resize(fields);
        fields_ = std::move(values);
        key_views_.assign(keys_.begin(), keys_.end());
        return {};
    });
    for (RecordColumn& column : columns_) column.release();
    descriptors_.give_back();
}

void RecordRows::read(const RecordQueries& queries, std::span<const FieldModel> fields) {
    attempt_or_raise([&] { want(queries, fields); });
    descriptors_.reserve(static_cast<unsigned>(2 * columns_.size()));
    two_tables_ = queries.two_tables;
    {
        RecordReceiver receiver(*this, ids_,
                                two_tables_ ? "the first inner query" : "the inner query");
        run_inner_query(queries.first, receiver);
    }
    if (two_tables_) {
        RecordReceiver receiver(*this, second_ids_, "the second inner query");
        run_inner_query(queries.second, receiver);
    }
    bytes_ = ids_.bytes() + second_ids_.bytes();
    for (RecordColumn& column : columns_) {
        column.finish();
        bytes_ += column.bytes();
    }
    attempt_or_raise([&] { finish_order(); });
}

}  // namespace gputext
