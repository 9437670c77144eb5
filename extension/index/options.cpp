#include "extension/index/options.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
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

#include <cstddef>

#include "cpp/documents/document_sketch.hpp"

namespace gputext::index {
namespace {

struct IndexOptions {
    int32 vl_len_;
    int bins;
    double threshold;
};

/// The kind of this access method's options, made when the first index is looked at.
relopt_kind options_kind() {
    static relopt_kind kind{};
    static bool made = false;
    if (!made) {
        kind = add_reloption_kind();
        add_int_reloption(kind, "bins", "Sets the average number of counts of bigrams in a sketch.",
                          SketchShape::default_bins, SketchShape::least_bins,
                          SketchShape::most_bins, AccessExclusiveLock);
        add_real_reloption(kind, "threshold",
                           "Sets the edit rate up to which an exclusion constraint refuses "
                           "documents.",
                           kDefaultThreshold, 0, 0.5, AccessExclusiveLock);
        made = true;
    }
    return kind;
}

/// Null where none was given.
const IndexOptions* options_of(Relation index) {
    return reinterpret_cast<const IndexOptions*>(index->rd_options);
}

double threshold_of(const IndexOptions* options) {
    return options == nullptr ? kDefaultThreshold : options->threshold;
}

relopt_parse_elt element(const char* name, relopt_type type, std::size_t offset) {
    relopt_parse_elt made{};  // a release may have more members
    made.optname = name;
    made.opttype = type;
    made.offset = static_cast<int>(offset);
    return made;
}

}  // namespace

bytea* read_options(Datum options, bool validate) {
    const relopt_parse_elt elements[] = {
        element("bins", RELOPT_TYPE_INT, offsetof(IndexOptions, bins)),
        element("threshold", RELOPT_TYPE_REAL, offsetof(IndexOptions, threshold))};
    auto* const read = static_cast<bytea*>(build_reloptions(
        options, validate, options_kind(), sizeof(IndexOptions), elements, lengthof(elements)));
    if (read == nullptr || !validate) return read;
    const IndexOptions& given = *reinterpret_cast<IndexOptions*>(read);
    if (given.bins % 32 != 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("bins must be a multiple of 32, not %d", given.bins)));
    if (given.threshold >= 0.5)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("threshold must be at least 0 and below 0.5, not %g", given.threshold)));
    return read;
}

std::size_t wanted_bins(Relation index) {
    const IndexOptions* const options = options_of(index);
    return options == nullptr ? SketchShape::default_bins : static_cast<std::size_t>(options->bins);
}

double threshold_of(Relation index) {
    return threshold_of(options_of(index));
}

void raise_no_constraint() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("threshold is an option of exclusion constraints"),
                    errdetail("An index serves every threshold, which conditions name.")));
    pg_unreachable();
}

// ---- Thresholds that stay ----

namespace {

object_access_hook_type hook_before = nullptr;

/// The threshold in a row of pg_class.
double threshold_of(HeapTuple tuple) {
    bool null = false;
    const Datum options = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &null);
    const bytea* const read = read_options(null ? Datum{0} : options, false);
    return threshold_of(reinterpret_cast<const IndexOptions*>(read));
}

void check_same_threshold(Oid index, HeapTuple before, HeapTuple after) {
    const double old = threshold_of(before), wanted = threshold_of(after);
    if (old == wanted) return;
    if (!OidIsValid(get_index_constraint(index))) raise_no_constraint();
    ereport(
        ERROR,
        (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
         errmsg("cannot change the threshold of index \"%s\" from %g to %g",
                NameStr(reinterpret_cast<Form_pg_class>(GETSTRUCT(before))->relname), old, wanted),
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
