#include "extension/index/access_method.hpp"

extern "C" {
#include "access/amapi.h"
#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/vacuum.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"
#include "utils/syscache.h"
}

#include <algorithm>

#include "extension/base/sql_function.hpp"
#include "extension/index/options.hpp"

namespace gputext::index {
namespace {

/// Whether an operator class has the two operators that a search knows and nothing else.
bool validate_class(Oid opclass) {
    const HeapTuple tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for operator class %u", opclass);
    const auto* const form = reinterpret_cast<const FormData_pg_opclass*>(GETSTRUCT(tuple));
    const Oid family = form->opcfamily, type = form->opcintype;
    const char* const name = pstrdup(NameStr(form->opcname));
    ReleaseSysCache(tuple);
    bool valid = type == TEXTOID || type == BYTEAOID;
    if (!valid)
        ereport(INFO, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                       errmsg("operator class \"%s\" of access method gputext is for the type %s, "
                              "and only text and bytea are known",
                              name, format_type_be(type))));
    CatCList* const operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
    for (int i = 0; i < operators->n_members; ++i) {
        const auto* const member =
            reinterpret_cast<const FormData_pg_amop*>(GETSTRUCT(&operators->members[i]->tuple));
        if ((member->amopstrategy == kNearStrategy || member->amopstrategy == kNearQueryStrategy) &&
            member->amoppurpose == AMOP_SEARCH && get_op_rettype(member->amopopr) == BOOLOID)
            continue;
        ereport(INFO, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                       errmsg("operator class \"%s\" of access method gputext has the operator %s, "
                              "which no search knows",
                              name, format_operator(member->amopopr))));
        valid = false;
    }
    ReleaseCatCacheList(operators);
    return valid;
}

// ---- Costs ----

/// The part of the pages that is read, where the document's length is not known: those whose
/// lengths allow the rate (measured 0.10 to 0.15 of abstracts and of program files at a threshold
/// of 0.05; documents of one length are all read).
constexpr double kPagesRead = 0.15;

/// The part of the rows whose sketches do not exclude them: these are fetched and rechecked. Less
/// of abstracts and programs, more of texts in few letters (docs/near-duplicate-index.md).
constexpr double kRowsLeft = 1e-4;

/// What it costs to prepare a search, and to look at a sketch, in units of cpu_operator_cost (about
/// 50 ns). The bigrams of few sketches are looked at.
constexpr double kPrepareOperators = 100, kSketchOperators = 0.05;

/// amcostestimate.
void estimate_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup_cost,
                   Cost* total_cost, Selectivity* selectivity, double* correlation, double* pages) {
    const IndexOptInfo* const info = path->indexinfo;
    GenericCosts costs = {};
    genericcostestimate(root, path, loop_count, &costs);

    const double pages_read = std::min<double>(info->pages, 2 + kPagesRead * info->pages);
    const double rows_left = std::min(1.0, kRowsLeft + 1.0 / std::max(info->tuples, 1.0));
    double random_page_cost, sequential_page_cost;
    get_tablespace_page_costs(info->reltablespace, &random_page_cost, &sequential_page_cost);
    // Searches that follow each other find the pages in memory.
    const double page_cost = sequential_page_cost / std::max(1.0, std::min(loop_count, 10.0));

    *startup_cost =
        kPrepareOperators * cpu_operator_cost +
        index_other_operands_eval_cost(root, get_quals_from_indexclauses(path->indexclauses));
    *total_cost = *startup_cost + pages_read * page_cost +
                  kPagesRead * info->tuples * kSketchOperators * cpu_operator_cost +
                  rows_left * info->tuples * cpu_index_tuple_cost;
    *selectivity = std::max(rows_left, costs.indexSelectivity);
    *correlation = 0;
    *pages = pages_read;
}

// ---- The routine ----

IndexAmRoutine* make_routine() {
    IndexAmRoutine* const routine = makeNode(IndexAmRoutine);
    routine->amstrategies = kNearQueryStrategy;
    routine->amsupport = 0;
    routine->amkeytype = InvalidOid;
    routine->amparallelvacuumoptions =
        VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_COND_CLEANUP;
#if PG_VERSION_NUM >= 170000
    routine->amcanbuildparallel = true;
#endif
    routine->ambuild = build_index;
    routine->ambuildempty = build_empty_index;
    routine->aminsert = insert_row;
    routine->ambulkdelete = remove_rows;
    routine->amvacuumcleanup = end_vacuum;
    routine->amcostestimate = estimate_cost;
    routine->amoptions = read_options;
    routine->ambuildphasename = [](int64 phase) {
        return const_cast<char*>(build_phase_name(phase));
    };
    routine->amvalidate = validate_class;
    routine->ambeginscan = begin_scan;
    routine->amrescan = restart_scan;
    routine->amgettuple = next_row;
    routine->amgetbitmap = add_rows_to_bitmap;
    routine->amendscan = end_scan;
    return routine;
}

}  // namespace

}  // namespace gputext::index

extern "C" {
SQL_FUNCTION(gputext_index_handler) {
    PG_RETURN_POINTER(gputext::index::make_routine());
}
}
