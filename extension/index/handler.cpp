#include "extension/base/postgres.hpp"

extern "C" {
#include "access/amapi.h"
#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/vacuum.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
}

#include "extension/base/owned.hpp"
#include "extension/index/build.hpp"
#include "extension/index/cost.hpp"
#include "extension/index/options.hpp"
#include "extension/index/row_sketcher.hpp"
#include "extension/index/scan.hpp"
#include "extension/index/vacuum.hpp"

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

/// Of a statement that inserts rows.
RowSketcher& sketcher_of(Relation index, IndexInfo* info) {
    if (info->ii_AmCache == nullptr)
        info->ii_AmCache = make_owned<RowSketcher>(info->ii_Context, open_index(index));
    return *static_cast<RowSketcher*>(info->ii_AmCache);
}

bool insert(Relation index, Datum* values, bool* nulls, ItemPointer row, Relation, IndexUniqueCheck,
            bool, IndexInfo* info) {
    if (nulls[0]) return false;
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext document", ALLOCSET_SMALL_SIZES);
    const MemoryContext outside = MemoryContextSwitchTo(context);
    RowSketcher& sketcher = sketcher_of(index, info);
    const SketchedDocument document = sketcher.sketch(values[0]);
    insert_sketch(index, *row, document, sketcher.bytes());
    MemoryContextSwitchTo(outside);
    MemoryContextDelete(context);
    return false;
}

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
    routine->aminsert = insert;
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
PG_FUNCTION_INFO_V1(gputext_index_handler);

PGDLLEXPORT Datum gputext_index_handler(PG_FUNCTION_ARGS) {
    PG_RETURN_POINTER(gputext::index::make_routine());
}
}
