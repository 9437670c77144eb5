#include "extension/rows/bundle_plan.hpp"

extern "C" {
#include "access/parallel.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
}

#include <algorithm>
#include <utility>

#include "extension/base/local_setting.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// Fewer rows are handed on in less time than workers take to start.
constexpr double kFewestRows = 20000;
/// A sequential scan reads a page, of one unit of cost, in about so many seconds.
constexpr double kSecondsOfUnit = 1e-5;
/// So many times cpu_tuple_cost, for a plan with workers.
constexpr double kMoreForRows = 10;
/// Next to the numbers that the planner gives to nodes.
constexpr int kNumberOfNode = PG_INT32_MAX;

constexpr const char* kName = "GputextBundle";

// ---- The node ----

struct BundleState {
    CustomScanState node;
    BundleWriter* writer;
    bool ended;  // no plan is to be asked again behind its last row
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
    void* const writer = palloc(sizeof(BundleWriter));
    state_of(node).writer = new (writer)
        BundleWriter(ExecGetResultType(outerPlanState(node)), rows_of(plan->custom_private));
    MemoryContextSwitchTo(before);
}

TupleTableSlot* next_bundle(CustomScanState* node) {
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
    node->custom_private = list_of(rows);
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
    PlannedStmt* const planned = planner(copy, query.sql, query.cursor_options, query.parameters);
    AtEOXact_GUC(true, level);
    return planned;
}

}  // namespace

void register_bundle_node() {
    RegisterCustomScanMethods(&kMethods);
}

BundlePlan bundle_plan(const PlannedQuery& query, const PlannedStmt& plain,
                       const BundledRows& rows) {
    const Plan* const usual = plain.planTree;
    // Who turns parallel plans off gets none.
    if (usual->plan_rows < kFewestRows || IsParallelWorker() ||
        max_parallel_workers_per_gather == 0 || workers_for(usual->total_cost) == 0)
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

}  // namespace gputext
