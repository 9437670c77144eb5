#include "extension/queries/bundle_plan.hpp"

extern "C" {
#include "access/parallel.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "port/atomics.h"
#include "utils/snapmgr.h"
}

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "extension/base/local_setting.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/queries/row_columns.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// A sequential scan reads a page, of one unit of cost, in about so many seconds.
constexpr double kSecondsOfUnit = 1e-5;
/// So many times cpu_tuple_cost, for a plan with workers.
constexpr double kMoreForRows = 10;
/// Next to the numbers that the planner gives to nodes.
constexpr int kNumberOfNode = PG_INT32_MAX;

/// Rows that a reducer takes between two looks at what other processes say.
constexpr std::uint64_t kRowsAtOnce = 1024;

constexpr const char* kName = "GputextBundle";

// ---- The node ----

struct BundleState {
    CustomScanState node;
    BundleWriter* writer;  // null where rows are reduced
    pg_atomic_uint32*
        refused;  // of all processes: a reducer has refused a row; null without workers
    bool ended;   // no plan is to be asked again behind its last row
};

BundleState& state_of(CustomScanState* node) {
    return *reinterpret_cast<BundleState*>(node);
}

List* list_of(const BundledRows& rows) {
    return list_make5_oid(static_cast<Oid>(rows.value + 1), rows.table.relation,
                          static_cast<Oid>(rows.table.with_children),
                          static_cast<Oid>(rows.table.attribute),
                          static_cast<Oid>(rows.table.columns));
}

BundledRows rows_of(const List* list) {
    BundledRows rows;
    rows.value = static_cast<int>(list_nth_oid(list, 0)) - 1;
    rows.table.relation = list_nth_oid(list, 1);
    rows.table.with_children = list_nth_oid(list, 2) != 0;
    rows.table.attribute = static_cast<AttrNumber>(list_nth_oid(list, 3));
    rows.table.columns = static_cast<int>(list_nth_oid(list, 4));
    return rows;
}

void begin_bundles(CustomScanState* node, EState* estate, int flags) {
    const auto* const plan = reinterpret_cast<const CustomScan*>(node->ss.ps.plan);
    outerPlanState(node) = ExecInitNode(outerPlan(&plan->scan.plan), estate, flags);
    const MemoryContext before = MemoryContextSwitchTo(estate->es_query_cxt);
    if (const List* const given = plan->custom_private; list_length(given) == 1) {
        void* const writer = palloc(sizeof(BundleWriter));
        state_of(node).writer =
            new (writer) BundleWriter(ExecGetResultType(outerPlanState(node)),
                                      rows_of(static_cast<const List*>(linitial(given))));
    }
    MemoryContextSwitchTo(before);
}

// ---- Reducing ----

/// What the node is given for it, behind what it would be given for bundles. `places` as
/// places_in_rows() gives them.
List* list_of(const RowReduction& reduction, std::span<const int> files, List* places) {
    auto* const request = static_cast<bytea*>(palloc(VARHDRSZ + reduction.size));
    SET_VARSIZE(request, VARHDRSZ + reduction.size);
    std::memcpy(VARDATA(request), reduction.request, reduction.size);
    List* numbers = list_make1_int(MyProcPid);
    for (const int file : files) numbers = lappend_int(numbers, file);
    return list_make4(
        makeString(pstrdup(reduction.entry)),
        makeConst(BYTEAOID, -1, InvalidOid, -1, PointerGetDatum(request), false, false), numbers,
        places);
}

/// The same as it is read in one process.
struct ReductionHere {
    unsigned process;
    RowReducer* reducer;
    int file;  // -1 where the system does not let this process have it
    RowColumns columns;
};

ReductionHere reduction_here(const CustomScanState* node) {
    const List* const given = reinterpret_cast<const CustomScan*>(node->ss.ps.plan)->custom_private;
    const auto* const request = static_cast<const Const*>(list_nth(given, 2));
    const auto* const numbers = static_cast<const List*>(list_nth(given, 3));
    const auto make = reinterpret_cast<NewRowReducer>(
        load_external_function(library_path(), strVal(list_nth(given, 1)), true, nullptr));
    const int process = IsParallelWorker() ? ParallelWorkerNumber + 1 : 0;
    return {static_cast<unsigned>(process),
            make(VARDATA_ANY(DatumGetPointer(request->constvalue)),
                 static_cast<unsigned>(list_length(numbers) - 1)),
            open_file_of_session(linitial_int(numbers), list_nth_int(numbers, process + 1), O_RDWR),
            RowColumns(static_cast<const List*>(list_nth(given, 4)))};
}

bool is_refused(const BundleState& state) {
    return state.refused != nullptr && pg_atomic_read_u32(state.refused) != 0;
}

/// Takes in all rows that this process gets. False where not all rows are to be reduced.
bool take_rows(CustomScanState* node, ReductionHere& here, std::uint64_t& rows) {
    const BundleState& state = state_of(node);
    ExprContext* const expressions = node->ss.ps.ps_ExprContext;
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        TupleTableSlot* const row = ExecProcNode(outerPlanState(node));
        if (TupIsNull(row)) return !is_refused(state);
        here.columns.read(row);
        const MemoryContext before = MemoryContextSwitchTo(expressions->ecxt_per_tuple_memory);
        const bool took = here.reducer->take(here.columns.values(), here.columns.nulls());
        MemoryContextSwitchTo(before);
        if (!took) return false;
        if (++rows % kRowsAtOnce != 0) continue;
        ResetExprContext(expressions);
        if (is_refused(state)) return false;
    }
}

/// The report of this process.
TupleTableSlot* reduce_rows(CustomScanState* node) {
    BundleState& state = state_of(node);
    TupleTableSlot* const answer = node->ss.ss_ScanTupleSlot;
    ExecClearTuple(answer);
    if (std::exchange(state.ended, true)) return answer;
    const MemoryContext before = MemoryContextSwitchTo(node->ss.ps.state->es_query_cxt);
    ReductionHere here = reduction_here(node);
    auto* const output = make_owned<PackedBytes>(CurrentMemoryContext, SIZE_MAX);
    ReducerReport report{here.process, 0, 0, 0};
    if (output->borrow(here.file) && take_rows(node, here, report.rows)) {
        here.reducer->leave(*output);
        output->finish();
        report.bytes = output->size();
        report.reduced = 1;
    } else if (state.refused != nullptr) {
        pg_atomic_write_u32(state.refused, 1);
    }
    auto* const value = static_cast<bytea*>(palloc(VARHDRSZ + sizeof report));
    SET_VARSIZE(value, VARHDRSZ + sizeof report);
    std::memcpy(VARDATA(value), &report, sizeof report);
    MemoryContextSwitchTo(before);
    answer->tts_values[0] = PointerGetDatum(value);
    answer->tts_isnull[0] = false;
    return ExecStoreVirtualTuple(answer);
}

Size size_for_workers(CustomScanState*, ParallelContext*) {
    return sizeof(pg_atomic_uint32);
}

void begin_for_workers(CustomScanState* node, ParallelContext*, void* shared) {
    state_of(node).refused = static_cast<pg_atomic_uint32*>(shared);
    pg_atomic_init_u32(state_of(node).refused, 0);
}

void begin_in_worker(CustomScanState* node, shm_toc*, void* shared) {
    state_of(node).refused = static_cast<pg_atomic_uint32*>(shared);
}

// ---- Bundles ----

TupleTableSlot* next_bundle(CustomScanState* node) {
    if (state_of(node).writer == nullptr) return reduce_rows(node);
    BundleWriter& writer = *state_of(node).writer;
    TupleTableSlot* const bundle = node->ss.ss_ScanTupleSlot;
    ExecClearTuple(bundle);
    ExprContext* const expressions = node->ss.ps.ps_ExprContext;
    bool some = false;
    bool& ended = state_of(node).ended;
    while (!ended && (!some || !writer.full())) {
        CHECK_FOR_INTERRUPTS();
        TupleTableSlot* const row = ExecProcNode(outerPlanState(node));
        ended = TupIsNull(row);
        if (ended) break;
        const MemoryContext before = MemoryContextSwitchTo(expressions->ecxt_per_tuple_memory);
        writer.append(row);
        MemoryContextSwitchTo(before);
        ResetExprContext(expressions);
        some = true;
    }
    if (!some) return bundle;
    bundle->tts_values[0] = writer.take();
    bundle->tts_isnull[0] = false;
    return ExecStoreVirtualTuple(bundle);
}

void end_bundles(CustomScanState* node) {
    ExecEndNode(outerPlanState(node));
}

/// Gather reads its plan once, as a statement without parameters does.
void read_again(CustomScanState* node) {
    state_of(node).ended = false;
    if (outerPlanState(node)->chgParam == nullptr) ExecReScan(outerPlanState(node));
}

constexpr CustomExecMethods executor_methods() {
    CustomExecMethods methods{};
    methods.CustomName = kName;
    methods.BeginCustomScan = begin_bundles;
    methods.ExecCustomScan = next_bundle;
    methods.EndCustomScan = end_bundles;
    methods.ReScanCustomScan = read_again;
    methods.EstimateDSMCustomScan = size_for_workers;
    methods.InitializeDSMCustomScan = begin_for_workers;
    methods.InitializeWorkerCustomScan = begin_in_worker;
    return methods;
}

constexpr CustomExecMethods kExecMethods = executor_methods();

Node* new_state(CustomScan*) {
    auto* const state =
        reinterpret_cast<BundleState*>(newNode(sizeof(BundleState), T_CustomScanState));
    state->node.methods = &kExecMethods;
    return reinterpret_cast<Node*>(state);
}

constexpr CustomScanMethods kMethods{kName, new_state};

// ---- The plan ----

TargetEntry* bundle_column(Expr* value) {
    return makeTargetEntry(value, 1, pstrdup("bundle"), false);
}

Expr* bundle_of(int node) {
    return reinterpret_cast<Expr*>(makeVar(node, 1, BYTEAOID, -1, InvalidOid, 0));
}

/// The node over the plan of a worker.
Plan* bundled(Plan* plan, const BundledRows& rows) {
    CustomScan* const node = makeNode(CustomScan);
    node->methods = &kMethods;
    node->custom_private = list_make1(list_of(rows));
    node->custom_scan_tlist =
        list_make1(bundle_column(reinterpret_cast<Expr*>(makeNullConst(BYTEAOID, -1, InvalidOid))));
    Plan& made = node->scan.plan;
    made.startup_cost = plan->startup_cost;
    made.total_cost = plan->total_cost;
    made.plan_rows = plan->plan_rows;
    made.parallel_safe = true;
    made.plan_node_id = kNumberOfNode;
    made.targetlist = list_make1(bundle_column(bundle_of(INDEX_VAR)));
    made.lefttree = plan;
    made.extParam = bms_copy(plan->extParam);
    made.allParam = bms_copy(plan->allParam);
    return &made;
}

/// Whether the node hands on the columns of its plan as they are.
bool hands_on(const Gather& gather) {
    const List* const columns = gather.plan.targetlist;
    const Plan* const plan = outerPlan(&gather.plan);
    if (gather.single_copy || gather.plan.qual != NIL ||
        list_length(columns) != list_length(plan->targetlist))
        return false;
    for (int i = 0; i < list_length(columns); ++i) {
        const auto* const entry = static_cast<const TargetEntry*>(list_nth(columns, i));
        const auto* const column = reinterpret_cast<const Var*>(entry->expr);
        if (entry->resjunk || !IsA(column, Var) || static_cast<int>(column->varno) != OUTER_VAR ||
            column->varattno != i + 1)
            return false;
    }
    return true;
}

unsigned workers_for(double cost) {
    return wanted_workers(cost * kSecondsOfUnit);
}

/// The statement planned as if rows were handed on for nothing. In the planner's eyes workers share
/// the costs of rows and not those of pages, and plans whose costs differ by less than 1 % are
/// alike: rows cost more here, such that workers pay off also where a page has few of them, and
/// that is no reason for code that is compiled for them.
PlannedStmt* plan_for_workers(const PlannedQuery& query) {
    auto* const copy = static_cast<Query*>(copyObjectImpl(query.query));
    const int level = NewGUCNestLevel();
    set_locally("parallel_tuple_cost", "0");
    set_locally("parallel_setup_cost", "0");
    set_locally("cpu_tuple_cost", psprintf("%g", kMoreForRows * cpu_tuple_cost));
    set_locally("jit", "off");
    set_locally("max_parallel_workers_per_gather", psprintf("%u", read_workers()));
    PlannedStmt* const planned =
        call_planner(planner, {copy, query.sql, query.cursor_options, query.parameters});
    AtEOXact_GUC(true, level);
    return planned;
}

}  // namespace

void register_bundle_node() {
    RegisterCustomScanMethods(&kMethods);
}

int BundlePlan::workers() const {
    return reinterpret_cast<const Gather*>(statement->planTree)->num_workers;
}

BundlePlan bundle_plan(const PlannedQuery& query, const PlannedStmt& plain, const BundledRows& rows,
                       unsigned fewest_workers, double fewest_rows) {
    const Plan* const usual = plain.planTree;
    // Who turns parallel plans off gets none.
    if (usual->plan_rows < fewest_rows || IsParallelWorker() ||
        max_parallel_workers_per_gather == 0 || workers_for(usual->total_cost) < fewest_workers)
        return {};
    PlannedStmt* const planned = plan_for_workers(query);
    if (!IsA(planned->planTree, Gather)) return {};
    auto& gather = *reinterpret_cast<Gather*>(planned->planTree);
    if (!hands_on(gather)) return {};
    const TupleDesc columns = ExecTypeFromTL(gather.plan.targetlist);
    if (!can_be_bundled(columns)) return {};
    gather.num_workers =
        std::max(gather.num_workers, static_cast<int>(workers_for(usual->total_cost)));
    outerPlan(&gather.plan) = bundled(outerPlan(&gather.plan), rows);
    gather.plan.targetlist = list_make1(bundle_column(bundle_of(OUTER_VAR)));
    return {planned, columns, rows.value};
}

void reduce_rows_of(const BundlePlan& plan, const RowReduction& reduction,
                    std::span<const int> files) {
    auto* const node = reinterpret_cast<CustomScan*>(outerPlan(plan.statement->planTree));
    List* const places = places_in_rows(plan.statement, outerPlan(&node->scan.plan));
    node->custom_private = list_concat(node->custom_private, list_of(reduction, files, places));
    // The processes share whether one of them has refused a row.
    node->scan.plan.parallel_aware = true;
}

void run_with_workers(const BundlePlan& plan, const char* sql, const char* done,
                      ExecutedRows& rows) {
    QueryDesc* const statement =
        CreateQueryDesc(plan.statement, sql, GetActiveSnapshot(), InvalidSnapshot,
                        rows.destination(), nullptr, nullptr, 0);
    ExecutorStart(statement, 0);
    run_to_end(statement);
    const auto* const gather = reinterpret_cast<const GatherState*>(statement->planstate);
    ereport(DEBUG1, (errmsg("%s rows in %d of %d parallel workers", done, gather->nworkers_launched,
                            plan.workers())));
    ExecutorFinish(statement);
    ExecutorEnd(statement);
    FreeQueryDesc(statement);
}

}  // namespace gputext
