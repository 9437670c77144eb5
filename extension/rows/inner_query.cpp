#include "extension/rows/inner_query.hpp"

extern "C" {
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "nodes/parsenodes.h"
#include "optimizer/clauses.h"
#include "portability/instr_time.h"
#include "tcop/cmdtag.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/snapmgr.h"
}

#include <algorithm>
#include <cstring>
#include <memory>

#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/rows/bundle_plan.hpp"
#include "extension/rows/id_column.hpp"
#include "extension/rows/kept_scans.hpp"
#include "extension/rows/row_order.hpp"
#include "extension/rows/row_versions.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// Takes the rows as the executor makes them. The executor knows the first member only.
struct Destination {
    DestReceiver receiver;
    const InnerQuery* query;
    RowReceiver* rows;
    Oid narrow_id_type;  // that ids widen to bigint from; InvalidOid where they stay as they are
    int64 seen;
    int64 nulls;
    MemoryContext row_context;  // for what one row needs
    const CachedPlanSource* prepared;
    VersionedTable table;  // that rows' system columns are of, where they were asked for
    int system_columns;    // the first one, behind what the receiver sees; -1 for none
    RowPlaces places;
    const BundlePlan* bundles;  // null where rows come one by one
    BundleReader* bundle;
};

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

/// The query's columns, without those that were added to them.
TupleDesc own_columns(Destination* destination, TupleDesc columns) {
    destination->system_columns = -1;
    if (!destination->table.known() || !has_row_columns(*destination->prepared)) return columns;
    destination->system_columns = columns->natts - destination->table.columns;
    return first_columns(columns, destination->system_columns);
}

void check_columns(Destination* destination, TupleDesc columns) {
    check_column_count(columns, destination->rows->wanted_columns());
    destination->rows->check_columns(columns);
    destination->narrow_id_type =
        narrow_id_type(columns, 0, destination->query->id_type, destination->query->id_type_place);
}

void start(DestReceiver* self, int, TupleDesc all_columns) {
    auto* destination = reinterpret_cast<Destination*>(self);
    if (destination->bundles != nullptr) all_columns = destination->bundles->columns;
    check_columns(destination, own_columns(destination, all_columns));
}

/// Tells the receiver what the system columns say of the row. They are null on the side of an outer
/// join that has no row.
void set_row(Destination& destination, const Datum* values, const bool* nulls, bool value_in_row) {
    const Datum* const columns = values + destination.system_columns;
    const VersionedTable& table = destination.table;
    if (nulls[destination.system_columns]) return destination.rows->set_row({});
    RowPlace place;
    if (table.has_places())
        place = destination.places.at(
            table.with_children ? DatumGetObjectId(columns[2]) : table.relation,
            reinterpret_cast<ItemPointer>(DatumGetPointer(columns[1])));
    destination.rows->set_row({DatumGetTransactionId(columns[0]), place, value_in_row});
}

/// The values are as they were when it returns. `value_in_row` as BundleReader::value_is_in_row().
void take_row(Destination& destination, Datum* values, const bool* nulls, bool value_in_row) {
    ++destination.seen;
    if (OidIsValid(destination.query->id_type) && nulls[0])
        ereport(
            ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("an id of the inner query is null"),
             errdetail("Row %lld has a null id.", static_cast<long long>(destination.seen))));
    if (destination.rows->left_out(nulls)) {
        ++destination.nulls;
        return;
    }
    Datum id = 0;
    const bool widens = OidIsValid(destination.narrow_id_type);
    if (widens) {
        id = values[0];
        values[0] = widened_id(id, destination.narrow_id_type);
    }
    MemoryContext before = MemoryContextSwitchTo(destination.row_context);
    if (destination.system_columns >= 0) set_row(destination, values, nulls, value_in_row);
    destination.rows->take_row(values, nulls);
    MemoryContextSwitchTo(before);
    if (widens) values[0] = id;
    MemoryContextReset(destination.row_context);
}

bool receive(TupleTableSlot* slot, DestReceiver* self) {
    slot_getallattrs(slot);
    take_row(*reinterpret_cast<Destination*>(self), slot->tts_values, slot->tts_isnull, false);
    return true;
}

bool receive_bundle(TupleTableSlot* slot, DestReceiver* self) {
    auto& destination = *reinterpret_cast<Destination*>(self);
    Datum values[BundledRows::kMostColumns];
    bool nulls[BundledRows::kMostColumns];
    slot_getallattrs(slot);
    destination.bundle->open(slot->tts_values[0]);
    while (destination.bundle->next(values, nulls))
        take_row(destination, values, nulls, destination.bundle->value_is_in_row());
    return true;
}

void shut_down(DestReceiver*) {}

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
    return std::strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.\"") ==
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
    const bool unknown_name = error.funcname != nullptr &&
                              (std::strcmp(error.funcname, "errorMissingRTE") == 0 ||
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

/// For errors that the executor's rows lead to when it has ended.
void name_statement(void* sql) {
    errcontext("SQL statement \"%s\"", static_cast<const char*>(sql));
}

/// Of a statement that reads.
InnerQueryTraits traits_of(SPIPlanPtr plan) {
    auto* query = static_cast<Query*>(linitial(prepared_statement(plan)->query_list));
    return {query->sortClause != NIL, max_parallel_hazard(query) != PROPARALLEL_UNSAFE};
}

// ---- Rows of an earlier scan ----

/// A query that gives all rows of a table, and what is kept of such.
struct KeptRows {
    WholeScan scan;                        // not known for any other query
    std::shared_ptr<const KeptScan> kept;  // null for nothing
    std::shared_ptr<KeptScan> now;         // with the state of the table alone
};

/// Whether the query gives all rows of a table whose state may be noted. Other modules that check
/// rights may look at more than what is checked here.
bool may_keep(const CachedPlanSource& prepared, const RowReceiver& receiver,
              const WholeScan& scan) {
    if (!scan.known() || receiver.query().ordered || prepared.resultDesc->natts != 2 ||
        IsolationIsSerializable() || IsParallelWorker() || ExecutorCheckPerms_hook != nullptr)
        return false;
    const Relation table = table_open(scan.relation, NoLock);
    const bool may = TableState::may_be_noted(table);
    table_close(table, NoLock);
    return may;
}

/// Whether the active snapshot sees all rows that the table has; their state is noted then.
bool note_state(KeptRows& rows) {
    attempt_or_raise([&] { rows.now = std::make_shared<KeptScan>(); });
    const Relation table = table_open(rows.scan.relation, NoLock);
    const bool noted = rows.now->state.note(table);
    table_close(table, NoLock);
    return noted;
}

/// Whether the rows that are kept are those that the query would give, and have been taken.
bool take_rows(Destination& destination, KeptRows& rows) {
    instr_time begin, end;
    INSTR_TIME_SET_CURRENT(begin);
    if (!note_state(rows) || !rows.now->state.same_as(rows.kept->state)) {
        forget_scan(*rows.kept);
        return false;
    }
    INSTR_TIME_SET_CURRENT(end);
    INSTR_TIME_SUBTRACT(end, begin);
    if (!destination.rows->take_kept_rows(rows.kept->rows)) return false;
    destination.nulls = rows.kept->nulls;
    ereport(DEBUG1, (errmsg("took the rows of an earlier scan: none of %u pages has changed, as "
                            "was found in %.2f ms",
                            rows.now->state.pages(), INSTR_TIME_GET_MILLISEC(end))));
    return true;
}

/// Takes the rows from an earlier scan of the table in place of running the query, if that can be:
/// after the checks of rights and columns that come first when it runs.
bool take_kept_rows(SPIPlanPtr plan, Destination& destination, KeptRows& rows) {
    forget_scans_beyond(kept_scans_memory());
    if (kept_scans_memory() == 0 || !destination.rows->takes_kept_rows()) return false;
    CachedPlan* const planned = SPI_plan_get_cached_plan(plan);
    if (planned == nullptr) return false;
    const auto* const statement = static_cast<const PlannedStmt*>(linitial(planned->stmt_list));
    rows.scan = whole_scan_of(statement);
    if (!may_keep(*destination.prepared, *destination.rows, rows.scan)) rows.scan = {};
    if (rows.scan.known()) rows.kept = kept_scan(rows.scan, destination.query->id_type);
    bool taken = false;
    if (rows.kept != nullptr) {
        const char* const sql = destination.query->sql;
        ErrorContextCallback context{error_context_stack, name_statement, const_cast<char*>(sql)};
        error_context_stack = &context;
        check_rights(statement);
        check_columns(&destination, destination.prepared->resultDesc);
        taken = take_rows(destination, rows);
        error_context_stack = context.previous;
    }
    ReleaseCachedPlan(planned, nullptr);
    return taken;
}

/// Keeps the rows of the scan that has run, if later statements may take them.
void keep_rows(const Destination& destination, KeptRows& rows) {
    if (!rows.scan.known() || !note_state(rows)) return;
    KeptScan& now = *rows.now;
    destination.rows->copy_rows(kept_scans_memory(), now.rows);
    if (now.rows == nullptr) return;
    now.scan = rows.scan;
    now.id_type = destination.query->id_type;
    now.nulls = destination.nulls;
    watch_tables();
    attempt_or_raise([&] { keep_scan(rows.now, kept_scans_memory()); });
}

// ---- Tables that the receiver reads by itself ----

/// Has the receiver read the tables of a query that gives all of their rows, if it can: after the
/// checks of rights and columns that come first when the query runs.
bool scan_tables(SPIPlanPtr plan, Destination& destination) {
    RowReceiver& receiver = *destination.rows;
    if (!receiver.scans_tables() || receiver.query().ordered || IsolationIsSerializable() ||
        IsParallelWorker())
        return false;
    CachedPlan* const planned = SPI_plan_get_cached_plan(plan);
    if (planned == nullptr) return false;
    const auto* const statement = static_cast<const PlannedStmt*>(linitial(planned->stmt_list));
    auto* const scans = static_cast<TableScans*>(palloc0(sizeof(TableScans)));
    bool scanned = false;
    if (find_table_scans(statement, *scans)) {
        const char* const sql = destination.query->sql;
        ErrorContextCallback context{error_context_stack, name_statement, const_cast<char*>(sql)};
        error_context_stack = &context;
        check_rights(statement);
        check_columns(&destination, destination.prepared->resultDesc);
        scanned = receiver.scan(*scans);
        error_context_stack = context.previous;
    }
    pfree(scans);
    ReleaseCachedPlan(planned, nullptr);
    return scanned;
}

/// A plan that lets workers bundle the rows; not known where the receiver takes them in the order
/// of their coming, or reads tables while the query changes them.
BundlePlan bundle_rows(SPIPlanPtr plan, const Destination& destination) {
    const RowReceiver& rows = *destination.rows;
    if (!rows.takes_any_order() || rows.query().ordered || !rows.query().parallel_safe ||
        !has_order(destination.query->id_type))
        return {};
    CachedPlan* const planned = SPI_plan_get_cached_plan(plan);
    if (planned == nullptr) return {};
    BundledRows bundled;
    if (destination.table.known() && has_row_columns(*destination.prepared))
        bundled = {destination.table, versioned_column(rows, plan)};
    const CachedPlanSource& prepared = *destination.prepared;
    const PlannedQuery query{static_cast<const Query*>(linitial(prepared.query_list)),
                             prepared.query_string, CURSOR_OPT_PARALLEL_OK, nullptr};
    const BundlePlan bundles =
        bundle_plan(query, *static_cast<const PlannedStmt*>(linitial(planned->stmt_list)), bundled);
    ReleaseCachedPlan(planned, nullptr);
    return bundles;
}

/// Lets the executor run it to its end, as SPI runs a statement that only reads.
void run_bundles(const BundlePlan& bundles, Destination& destination) {
    const char* const sql = destination.query->sql;
    ErrorContextCallback context{error_context_stack, name_statement, const_cast<char*>(sql)};
    error_context_stack = &context;
    BundleReader reader(bundles.columns, bundles.value);
    destination.bundles = &bundles;
    destination.bundle = &reader;
    destination.receiver.receiveSlot = receive_bundle;
    QueryDesc* const statement =
        CreateQueryDesc(bundles.statement, sql, GetActiveSnapshot(), InvalidSnapshot,
                        &destination.receiver, nullptr, nullptr, 0);
    ExecutorStart(statement, 0);
    run_to_end(statement);
    const auto* const gather = reinterpret_cast<const GatherState*>(statement->planstate);
    ereport(DEBUG1, (errmsg("bundled rows in %d of %d parallel workers", gather->nworkers_launched,
                            reinterpret_cast<const Gather*>(gather->ps.plan)->num_workers)));
    ExecutorFinish(statement);
    ExecutorEnd(statement);
    FreeQueryDesc(statement);
    error_context_stack = context.previous;
}

/// Lets the executor run it to its end.
void run_rows(SPIPlanPtr plan, Destination& destination) {
    SPIExecuteOptions options{};
    options.read_only = true;
    options.must_return_tuples = true;
    options.dest = &destination.receiver;
    const int result = SPI_execute_plan_extended(plan, &options);
    if (result < 0) raise_spi_error(result, destination.query->sql);
}

void run_plan(SPIPlanPtr plan, Destination& destination) {
    const BundlePlan bundles = bundle_rows(plan, destination);
    if (bundles.known())
        run_bundles(bundles, destination);
    else
        run_rows(plan, destination);
    if (destination.system_columns >= 0 && !has_row_versions(destination.table))
        destination.rows->forget_row_versions();
}

}  // namespace

Oid base_type_of_column(TupleDesc columns, int column) {
    return getBaseType(TupleDescAttr(columns, column)->atttypid);
}

void run_inner_query(const InnerQuery& query, RowReceiver& receiver) {
    Destination destination{};
    destination.receiver.receiveSlot = receive;
    destination.receiver.rStartup = start;
    destination.receiver.rShutdown = shut_down;
    destination.receiver.rDestroy = shut_down;
    destination.receiver.mydest = DestNone;
    destination.query = &query;
    destination.rows = &receiver;
    destination.row_context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);

    const MemoryContext context_of_query = CurrentMemoryContext;

    instr_time begin, end;
    INSTR_TIME_SET_CURRENT(begin);
    SPI_connect();
    const SPIPlanPtr plan = prepare(query.sql, receiver);
    check_statement(plan, query.sql);
    receiver.set_query(traits_of(plan));
    destination.system_columns = -1;
    destination.prepared = prepared_statement(plan);
    if (const int column = versioned_column(receiver, plan); column >= 0)
        destination.table = add_row_columns(*prepared_statement(plan), column);
    destination.places = RowPlaces(destination.table);

    KeptRows& kept = *make_owned<KeptRows>(context_of_query);
    const bool taken = take_kept_rows(plan, destination, kept);
    if (!taken && !scan_tables(plan, destination)) run_plan(plan, destination);
    SPI_finish();
    MemoryContextDelete(destination.row_context);
    INSTR_TIME_SET_CURRENT(end);
    INSTR_TIME_SUBTRACT(end, begin);
    ereport(DEBUG2, (errmsg("ran the inner query in %.1f ms", INSTR_TIME_GET_MILLISEC(end))));

    if (!taken) {
        ErrorContextCallback context{error_context_stack, name_statement,
                                     const_cast<char*>(query.sql)};
        error_context_stack = &context;
        receiver.end_rows();
        keep_rows(destination, kept);
        error_context_stack = context.previous;
    }
    if (destination.nulls > 0) receiver.report_nulls(destination.nulls, query.among);
}

}  // namespace gputext
