#include "extension/index/fixed_threshold.hpp"

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

#include "extension/index/options.hpp"

namespace gputext::index {
namespace {

object_access_hook_type hook_before = nullptr;

double threshold_of(HeapTuple tuple) {
    bool null = false;
    const Datum options = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &null);
    return threshold_in(null ? PointerGetDatum(nullptr) : options);
}

void check_same_threshold(Oid index, HeapTuple before, HeapTuple after) {
    const double kept = threshold_of(before), wanted = threshold_of(after);
    if (kept == wanted) return;
    if (!OidIsValid(get_index_constraint(index))) raise_no_constraint();
    ereport(
        ERROR,
        (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
         errmsg("cannot change the threshold of index \"%s\" from %g to %g",
                NameStr(reinterpret_cast<Form_pg_class>(GETSTRUCT(before))->relname), kept, wanted),
         errdetail("The rows of its table were compared at the threshold that it has."),
         errhint("Drop the constraint, and add it with the new threshold, which compares the "
                 "rows anew.")));
}

/// The command sees the row of pg_class as it was before, and as it has made it by a snapshot of
/// its own.
void check_altered(Oid index, HeapTuple before) {
    const Relation classes = table_open(RelationRelationId, AccessShareLock);
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(index));
    const SysScanDesc scan =
        systable_beginscan(classes, ClassOidIndexId, true, SnapshotSelf, 1, &key);
    const HeapTuple after = systable_getnext(scan);
    if (HeapTupleIsValid(after)) check_same_threshold(index, before, after);
    systable_endscan(scan);
    table_close(classes, AccessShareLock);
}

void look_at_change(ObjectAccessType access, Oid catalog, Oid object, int column, void* argument) {
    if (hook_before != nullptr) hook_before(access, catalog, object, column, argument);
    if (access != OAT_POST_ALTER || catalog != RelationRelationId || column != 0) return;
    const HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(object));
    if (!HeapTupleIsValid(tuple)) return;
    const auto* const relation = reinterpret_cast<const FormData_pg_class*>(GETSTRUCT(tuple));
    if (relation->relkind == RELKIND_INDEX && relation->relam == get_index_am_oid("gputext", true))
        check_altered(object, tuple);
    ReleaseSysCache(tuple);
}

}  // namespace

void keep_thresholds_fixed() {
    hook_before = object_access_hook;
    object_access_hook = look_at_change;
}

}  // namespace gputext::index
