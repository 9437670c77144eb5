#include "extension/queries/inner_query.hpp"

extern "C" {
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "nodes/parsenodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "tcop/cmdtag.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/snapmgr.h"
}

#include <algorithm>
#include <cstring>
#include <memory>

#include "extension/base/growing_array.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/order/row_order.hpp"
#include "extension/queries/bundle_plan.hpp"
#include "extension/queries/executed_rows.hpp"
#include "extension/queries/reduced_rows.hpp"
#include "extension/queries/remembered_scans.hpp"
#include "extension/queries/repeated_scan.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/column_types.hpp"
#include "extension/values/row_versions.hpp"

namespace gputext {
namespace {

/// "2", "2 or 3", "2 to 4", "at least 4"
const char* number_of(const WantedColumns& wanted) {
    if (wanted.most == WantedColumns::kAnyColumns) return psprintf("at least %d", wanted.fewest);
    if (wanted.fewest == wanted.most) return psprintf("%d", wanted.fewest);
    return psprintf(wanted.most == wanted.fewest + 1 ? "%d or %d" : "%d to %d", wanted.fewest,
                    wanted.most);
}

void check_column_count(TupleDesc columns, const WantedColumns& wanted) {
    if (columns->natts >= wanted.fewest && columns->natts <= wanted.most) return;
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg_plural(
                 "the inner query has %d column, not %s", "the inner query has %d columns, not %s",
                 static_cast<unsigned long>(columns->natts), columns->natts, number_of(wanted)),
             errdetail("%s", wanted.detail)));
}

/// Takes the rows of the query for its receiver.
class InnerRows final : public RowTaker {
public:
    InnerRows(const InnerQuery& query, RowReceiver& receiver)
        : query_(query), receiver_(receiver), executed_(*this) {}

    /// Before the query runs. `table` is the one whose system columns it got, if any.
    void set_prepared(const CachedPlanSource& prepared, const VersionedTable& table) {
        prepared_ = &prepared;
        table_ = table;
    }
    /// Also called where no row comes from the executor. Raises an error for columns that the
    /// receiver does not take.
    void check_columns(TupleDesc columns);
    void begin(TupleDesc all_columns) override;
    bool take(const ExecutedRow& row) override;

    const InnerQuery& query() const { return query_; }
    RowReceiver& receiver() { return receiver_; }
    const CachedPlanSource& prepared() const { return *prepared_; }
    const VersionedTable& table() const { return table_; }
    ExecutedRows& executed() { return executed_; }
    /// Whether the rows that have come had the system columns of the table.
    bool had_origins() const { return had_origins_; }
    /// The id as the receiver gets it. After check_columns().
    Datum id(Datum given) const {
        return OidIsValid(narrow_id_type_) ? widened_id(given, narrow_id_type_) : given;
    }
    /// Before the query runs: where the rows lie that are left out goes there, if it is known.
    void keep_nulls(GrowingArray<ItemPointerData>& places) { places_of_nulls_ = &places; }

    int64 nulls = 0;  // rows that were left out

private:
    const InnerQuery& query_;
    RowReceiver& receiver_;
    ExecutedRows executed_;
    const CachedPlanSource* prepared_ = nullptr;
    VersionedTable table_;
    bool had_origins_ = false;
    GrowingArray<ItemPointerData>* places_of_nulls_ = nullptr;
    Oid narrow_id_type_ = InvalidOid;  // that ids widen to bigint from, if they do
    int64 seen_ = 0;
};

void InnerRows::check_columns(TupleDesc columns) {
    check_column_count(columns, receiver_.wanted_columns());
    receiver_.check_columns(columns);
    narrow_id_type_ = narrow_id_type(columns, 0, query_.id_type, query_.id_type_place);
}

void InnerRows::begin(TupleDesc all_columns) {
    TupleDesc columns = all_columns;
    had_origins_ = table_.known() && has_row_columns(*prepared_);
    if (had_origins_) {
        const int own = all_columns->natts - table_.columns;
        executed_.set_origins({table_, own});
        columns = first_columns(all_columns, own);
    }
    check_columns(columns);
}

bool InnerRows::take(const ExecutedRow& row) {
    ++seen_;
    if (OidIsValid(query_.id_type) && row.nulls[0])
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("an id of the inner query is null"),
                        errdetail("Row %lld has a null id.", static_cast<long long>(seen_))));
    if (receiver_.left_out(row.nulls)) {
        ++nulls;
        if (places_of_nulls_ != nullptr && row.origin.place.known())
            append_or_raise(*places_of_nulls_, row.origin.place.row);
        return true;
    }
    const Datum id = row.values[0];
    row.values[0] = this->id(id);
    receiver_.set_row(row.origin);
    receiver_.take_row(row.values, row.nulls);
    row.values[0] = id;
    return true;
}

/// Refuses all but a statement that reads, before any of it runs. Functions that it calls may still
/// write, as they may below a stable function.
void check_statement(SPIPlanPtr plan, const char* sql) {
    const List* statements = SPI_plan_get_plan_sources(plan);
    if (list_length(statements) != 1)
        ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR),
                        list_length(statements) == 0
                            ? errmsg("the inner query is empty")
                            : errmsg("the inner query must be a single statement, not %d",
                                     list_length(statements)),
                        errcontext("SQL statement \"%s\"", sql)));
    const auto* statement = static_cast<const CachedPlanSource*>(linitial(statements));
    const char* refused = nullptr;
    if (statement->commandTag != CMDTAG_SELECT) {
        refused = GetCommandTagName(statement->commandTag);
    } else {
        const auto* query = static_cast<const Query*>(linitial(statement->query_list));
        if (query->commandType != CMD_SELECT) refused = "SELECT INTO";
        if (query->hasModifyingCTE) refused = "WITH that changes data";
        if (query->rowMarks != NIL) refused = "locking of rows";
    }
    if (refused != nullptr)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("%s is not allowed in the inner query", refused),
                        errdetail("It may be a SELECT, VALUES or TABLE that only reads."),
                        errcontext("SQL statement \"%s\"", sql)));
}

[[noreturn]] void raise_spi_error(int result, const char* sql) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("could not run the inner query: %s", SPI_result_code_string(result)),
                    errcontext("SQL statement \"%s\"", sql)));
    pg_unreachable();
}

bool is_name(const char* text) {
    return std::strspn(text,
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.\"") ==
           std::strlen(text);
}

bool begins_as_query(const char* text) {
    text += std::strspn(text, " \t\r\n(");
    for (const char* word : {"select", "values", "table", "with", "--", "/*"})
        if (pg_strncasecmp(text, word, std::strlen(word)) == 0) return true;
    return false;
}

/// What to do about an error of the parser that shows that the text was written for something else
/// than a query of its own; null for any other error.
const char* advice(const ErrorData& error, const char* sql) {
    if (error.sqlerrcode == ERRCODE_SYNTAX_ERROR && !begins_as_query(sql))
        return psprintf("The inner query is the text of a query, as in 'SELECT ... FROM %s'.",
                        is_name(sql) ? sql : "docs");
    // The functions of PostgreSQL that raise errors of names that the query does not know.
    const bool unknown_name =
        error.funcname != nullptr && (std::strcmp(error.funcname, "errorMissingRTE") == 0 ||
                                      std::strcmp(error.funcname, "errorMissingColumn") == 0);
    if (error.sqlerrcode == ERRCODE_UNDEFINED_PARAMETER || unknown_name)
        return "The inner query sees no parameters, variables or columns of the statement around "
               "it. Write values into its text, as in format('SELECT ... WHERE id = %L', value).";
    return nullptr;
}

/// The plan of the inner query, for SPI. Errors of its text have a detail and a hint of ours where
/// PostgreSQL has none.
SPIPlanPtr prepare(const char* sql, const RowReceiver& receiver) {
    const MemoryContext context = CurrentMemoryContext;
    SPIPrepareOptions preparation{};
    preparation.cursorOptions = CURSOR_OPT_PARALLEL_OK;
    SPIPlanPtr plan = nullptr;
    PG_TRY();
    { plan = SPI_prepare_extended(sql, &preparation); }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        ErrorData* const error = CopyErrorData();
        FlushErrorState();
        if (const char* const hint = advice(*error, sql); hint != nullptr) {
            if (error->hint == nullptr) error->hint = pstrdup(hint);
            if (error->detail == nullptr && error->sqlerrcode == ERRCODE_SYNTAX_ERROR)
                error->detail = pstrdup(receiver.wanted_columns().detail);
        }
        ReThrowError(error);
    }
    PG_END_TRY();
    if (plan == nullptr) raise_spi_error(SPI_result, sql);
    return plan;
}

CachedPlanSource* prepared_statement(SPIPlanPtr plan) {
    return static_cast<CachedPlanSource*>(linitial(SPI_plan_get_plan_sources(plan)));
}

/// -1 for none.
int versioned_column(const RowReceiver& receiver, SPIPlanPtr plan) {
    const int column = receiver.versioned_column();
    return column == RowReceiver::kLastColumn ? prepared_statement(plan)->resultDesc->natts - 1
                                              : column;
}

void name_statement(void* sql) {
    errcontext("SQL statement \"%s\"", static_cast<const char*>(sql));
}

/// Has errors of the work name the statement, as SPI does where it runs one.
template <class Work>
void do_for_statement(const char* sql, const Work& work) {
    ErrorContextCallback context{error_context_stack, name_statement, const_cast<char*>(sql)};
    error_context_stack = &context;
    work();
    error_context_stack = context.previous;
}

/// Aggregates that are not PostgreSQL's own: nothing says whether what they call is volatile.
bool has_sample_or_aggregate(Node* node, void* context) {
    if (node == nullptr) return false;
    if (IsA(node, TableSampleClause)) return true;
    if (IsA(node, Aggref) && reinterpret_cast<Aggref*>(node)->aggfnoid >= FirstNormalObjectId)
        return true;
    if (IsA(node, WindowFunc) &&
        reinterpret_cast<WindowFunc*>(node)->winfnoid >= FirstNormalObjectId)
        return true;
    return IsA(node, Query)
               ? walk_query(reinterpret_cast<Query*>(node), has_sample_or_aggregate, context)
               : walk_expression(node, has_sample_or_aggregate, context);
}

/// Of a statement that reads.
InnerQueryTraits traits_of(SPIPlanPtr plan) {
    auto* query = static_cast<Query*>(linitial(prepared_statement(plan)->query_list));
    auto* const node = reinterpret_cast<Node*>(query);
    return {query->sortClause != NIL, max_parallel_hazard(query) != PROPARALLEL_UNSAFE,
            !contain_volatile_functions(node) && !has_sample_or_aggregate(node, nullptr)};
}

// ---- Rows of an earlier scan ----

/// Rows of a query that gives all rows of a table, for a receiver that may take remembered ones.
struct Repeat {
    Repeat(RepeatReceiver* taker, MemoryContext context) : receiver(taker), rows(context) {}

    RepeatReceiver* receiver;  // null for any other receiver
    RepeatedScan rows;         // not known for any other query
    RepeatedScan::Found found;
    GrowingArray<ItemPointerData> nulls;  // places of rows that the scan leaves out
};

/// The scan that the query is, where its rows may be remembered. Other modules that check rights
/// may look at more than what is checked here.
WholeScan scan_to_remember(const PlannedStmt* statement, InnerRows& to) {
    const int keys = to.prepared().resultDesc->natts - 2;
    if (to.receiver().query().ordered || keys < 0 || keys > WholeScan::kMostKeys ||
        ExecutorCheckPerms_hook != nullptr)
        return {};
    const WholeScan scan = whole_scan_of(statement, 1, 2, nullptr, keys);
    return scan.known() && may_be_repeated(scan.relation) ? scan : WholeScan();
}

Datum id_of_rows(Datum id, const void* rows) {
    return static_cast<const InnerRows*>(rows)->id(id);
}

/// Whether the rows of the earlier scan are, with what has changed, those that the query would
/// give, and have been taken.
bool take_rows(InnerRows& to, Repeat& repeat) {
    RepeatedScan& rows = repeat.rows;
    if (!rows.read_changes(id_of_rows, &to)) return false;
    const bool taken = rows.changed()
                           ? repeat.receiver->take_changed(rows.earlier().rows, rows.changes())
                           : repeat.receiver->take_remembered(rows.earlier().rows);
    if (!taken) return false;
    to.nulls = rows.nulls();
    rows.taken();
    return true;
}

/// Takes the rows from an earlier scan of the table in place of running the query, if that can be:
/// after the checks of rights and columns that come first when it runs.
bool take_remembered(SPIPlanPtr plan, InnerRows& to, Repeat& repeat) {
    forget_scans_beyond(scan_memory());
    if (scan_memory() == 0 || repeat.receiver == nullptr) return false;
    CachedPlan* const planned = SPI_plan_get_cached_plan(plan);
    if (planned == nullptr) return false;
    const auto* const statement = static_cast<const PlannedStmt*>(linitial(planned->stmt_list));
    repeat.rows.set(scan_to_remember(statement, to));
    bool taken = false;
    if (repeat.rows.known() && repeat.rows.find(to.query().id_type))
        do_for_statement(to.query().sql, [&] {
            check_rights(statement);
            to.check_columns(to.prepared().resultDesc);
            taken = take_rows(to, repeat);
        });
    ReleaseCachedPlan(planned, nullptr);
    if (repeat.rows.known() && !taken) {
        to.keep_nulls(repeat.nulls);
        repeat.receiver->keep_places();
    }
    return taken;
}

/// Remembers the rows of the scan that has run, if later statements may take them.
void remember_rows(const InnerRows& from, Repeat& repeat) {
    if (!repeat.rows.known()) return;
    RepeatedScan::Found& found = repeat.found;
    repeat.receiver->copy_rows(scan_memory(), found.rows);
    if (found.rows == nullptr) return;
    repeat.rows.note_state();
    found.id_type = from.query().id_type;
    found.places = repeat.receiver->places();
    found.nulls = {repeat.nulls.data(), repeat.nulls.size()};
    found.null_rows = from.nulls;
    repeat.rows.remember(found);
}

// ---- Rows that workers bundle or reduce ----

/// A plan for workers, at least so many. Not known where the receiver takes rows in the order of
/// their coming, or reads tables while the query changes them.
BundlePlan plan_of_workers(SPIPlanPtr plan, InnerRows& to, unsigned fewest_workers) {
    const RowReceiver& receiver = to.receiver();
    if (!receiver.takes_any_order() || receiver.query().ordered ||
        !receiver.query().parallel_safe || !has_order(to.query().id_type))
        return {};
    CachedPlan* const planned = SPI_plan_get_cached_plan(plan);
    if (planned == nullptr) return {};
    BundledRows bundled;
    const CachedPlanSource& prepared = to.prepared();
    if (to.table().known() && has_row_columns(prepared))
        bundled = {to.table(), versioned_column(receiver, plan)};
    const PlannedQuery query{static_cast<const Query*>(linitial(prepared.query_list)),
                             prepared.query_string, CURSOR_OPT_PARALLEL_OK, nullptr};
    const BundlePlan made =
        bundle_plan(query, *static_cast<const PlannedStmt*>(linitial(planned->stmt_list)), bundled,
                    fewest_workers);
    ReleaseCachedPlan(planned, nullptr);
    return made;
}

/// Has the query's processes reduce its rows, if they can: after the checks of rights and columns
/// that come first when the query runs. The reducers are asked for what depends on the columns.
bool take_reduced(SPIPlanPtr plan, InnerRows& to, ReducingReceiver& receiver) {
    if (!receiver.may_reduce()) return false;
    const BundlePlan made = plan_of_workers(plan, to, 1);
    if (!made.known()) return false;
    auto& reduced = *make_owned<ReducedRows>(CurrentMemoryContext);
    bool all = false;
    do_for_statement(to.query().sql, [&] {
        check_rights(made.statement);
        to.check_columns(to.prepared().resultDesc);
        all = reduced.run(made, to.query().sql, receiver.reduction());
        if (all) receiver.take_reduced(reduced);
    });
    if (all) reduced.release();
    return all;
}

// ---- Running ----

/// Lets the executor run it to its end.
void run_rows(SPIPlanPtr plan, InnerRows& to) {
    SPIExecuteOptions options{};
    options.read_only = true;
    options.must_return_tuples = true;
    options.dest = to.executed().destination();
    const int result = SPI_execute_plan_extended(plan, &options);
    if (result < 0) raise_spi_error(result, to.query().sql);
}

void run_plan(SPIPlanPtr plan, InnerRows& to) {
    const BundlePlan bundles = plan_of_workers(plan, to, kFewestBundlers);
    if (bundles.known()) {
        to.executed().open_bundles(bundles.columns, bundles.value);
        do_for_statement(to.query().sql, [&] {
            run_with_workers(bundles, to.query().sql, "bundled", to.executed());
        });
    } else {
        run_rows(plan, to);
    }
    if (to.had_origins() && !has_row_versions(to.table())) to.receiver().forget_row_versions();
}

/// `repeat` and `reducing` are the receiver as one of that kind, or null.
void run(const InnerQuery& query, RowReceiver& receiver, RepeatReceiver* repeat,
         ReducingReceiver* reducing) {
    InnerRows rows(query, receiver);
    Repeat& repeated = *make_owned<Repeat>(CurrentMemoryContext, repeat, CurrentMemoryContext);

    instr_time begin, end;
    INSTR_TIME_SET_CURRENT(begin);
    SPI_connect();
    const SPIPlanPtr plan = prepare(query.sql, receiver);
    check_statement(plan, query.sql);
    receiver.set_query(traits_of(plan));
    CachedPlanSource& prepared = *prepared_statement(plan);
    const int column = versioned_column(receiver, plan);
    rows.set_prepared(prepared, column >= 0 ? add_row_columns(prepared, column) : VersionedTable());

    const bool taken = take_remembered(plan, rows, repeated);
    if (!taken && !(reducing != nullptr && take_reduced(plan, rows, *reducing)))
        run_plan(plan, rows);
    SPI_finish();
    rows.executed().end();
    INSTR_TIME_SET_CURRENT(end);
    INSTR_TIME_SUBTRACT(end, begin);
    ereport(DEBUG2, (errmsg("ran the inner query in %.1f ms", INSTR_TIME_GET_MILLISEC(end))));

    if (!taken)
        do_for_statement(query.sql, [&] {
            receiver.end_rows();
            remember_rows(rows, repeated);
        });
    if (rows.nulls > 0) receiver.report_nulls(rows.nulls, query.among);
}

}  // namespace

void run_inner_query(const InnerQuery& query, RowReceiver& receiver) {
    run(query, receiver, nullptr, nullptr);
}

void run_inner_query(const InnerQuery& query, RepeatReceiver& receiver) {
    run(query, receiver, &receiver, nullptr);
}

void run_inner_query(const InnerQuery& query, ReducingReceiver& receiver) {
    run(query, receiver, nullptr, &receiver);
}

}  // namespace gputext
