#include "extension/operators/index_search.hpp"

extern "C" {
#include "nodes/plannodes.h"
#include "optimizer/plancat.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/portal.h"
}

#include "extension/base/local_setting.hpp"

namespace gputext {
namespace {

// ---- What the planner sees ----

/// The index that the planner may use, and its table; none while no search is planned.
struct OnlyIndex {
    Oid table = InvalidOid;
    Oid index = InvalidOid;
};

OnlyIndex only_index;
get_relation_info_hook_type hook_before = nullptr;

void leave_only_index(PlannerInfo* root, Oid table, bool inherits, RelOptInfo* relation) {
    if (hook_before != nullptr) hook_before(root, table, inherits, relation);
    if (!OidIsValid(only_index.table) || table != only_index.table) return;
    List* left = NIL;
    ListCell* cell;
    foreach (cell, relation->indexlist) {
        auto* const index = static_cast<IndexOptInfo*>(lfirst(cell));
        if (index->indexoid == only_index.index) left = lappend(left, index);
    }
    relation->indexlist = left;
}

void add_hook() {
    static bool added = false;
    if (added) return;
    hook_before = get_relation_info_hook;
    get_relation_info_hook = leave_only_index;
    added = true;
}

/// Until the context is reset; a search within a search leaves the outer one's index behind.
void show_only(const OnlyIndex& index, MemoryContext context) {
    struct Before {
        MemoryContextCallback callback;
        OnlyIndex index;
    };
    auto* const before = static_cast<Before*>(MemoryContextAllocZero(context, sizeof(Before)));
    before->index = only_index;
    before->callback.arg = before;
    before->callback.func = [](void* kept) { only_index = static_cast<Before*>(kept)->index; };
    MemoryContextRegisterResetCallback(context, &before->callback);
    add_hook();
    only_index = index;
}

// ---- The plan ----

/// The scan that rows come from without being sorted.
const Plan* source_of(const Plan* plan) {
    while (plan != nullptr) {
        switch (nodeTag(plan)) {
            case T_Limit:
            case T_Result:
                plan = plan->lefttree;
                break;
            case T_SubqueryScan:
                plan = reinterpret_cast<const SubqueryScan*>(plan)->subplan;
                break;
            default:
                return plan;
        }
    }
    return nullptr;
}

bool is_by(const Plan* plan, Oid index) {
    if (plan == nullptr || !IsA(plan, IndexScan)) return false;
    const auto* const scan = reinterpret_cast<const IndexScan*>(plan);
    return scan->indexid == index && scan->indexorderby != NIL;
}

void check_plan(Portal portal, const DistanceIndex& index, const char* sql) {
    const auto* const statement = static_cast<const PlannedStmt*>(linitial(portal->stmts));
    if (is_by(source_of(statement->planTree), index.index)) return;
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the planner does not take the nearest rows from index %s", index.name),
             errdetail("The statement is: %s", sql),
             errhint("EXPLAIN shows the plan. An index that was created while its table was being "
                     "changed is of use to later transactions only.")));
}

}  // namespace

IndexSearch::IndexSearch(const DistanceIndex& index, std::uint32_t k, MemoryContext context)
    : index_(index), k_(k), settings_(NewGUCNestLevel()) {
    sql_ = MemoryContextStrdup(context, psprintf("%s LIMIT %u", index.nearest, k));
    set_locally("enable_seqscan", "off");
    set_locally("enable_bitmapscan", "off");
    set_locally("enable_indexscan", "on");
    // The index is what is to be measured.
    set_locally("gputext.plan_nearest", "off");
    set_locally("max_parallel_workers_per_gather", "0");
    show_only({index.table, index.index}, context);
    SPI_connect();
    Oid type = index.operand;
    plan_ = SPI_prepare_cursor(sql_, 1, &type, CURSOR_OPT_GENERIC_PLAN);
    if (plan_ == nullptr)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("could not search by index %s: %s", index.name,
                               SPI_result_code_string(SPI_result))));
}

std::uint32_t IndexSearch::nearest(Datum query, ItemPointerData* rows) {
    const Portal portal = SPI_cursor_open(nullptr, plan_, &query, nullptr, true);
    check_plan(portal, index_, sql_);
    SPI_cursor_fetch(portal, true, static_cast<long>(k_));
    const auto count = static_cast<std::uint32_t>(SPI_processed);
    for (std::uint32_t i = 0; i < count; ++i) {
        bool null;
        const Datum place = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &null);
        ItemPointerCopy(reinterpret_cast<ItemPointer>(DatumGetPointer(place)), rows + i);
    }
    SPI_freetuptable(SPI_tuptable);
    SPI_cursor_close(portal);
    return count;
}

void IndexSearch::end() {
    SPI_finish();
    only_index = {};
    AtEOXact_GUC(true, settings_);
}

}  // namespace gputext
