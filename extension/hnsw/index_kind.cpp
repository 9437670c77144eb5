#include "extension/hnsw/index_kind.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_operator.h"
#include "commands/defrem.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "extension/base/failure.hpp"
#include "extension/types/distance_names.hpp"
#include "extension/types/vector_type.hpp"

namespace gputext::hnsw {
namespace {

constexpr int kNormProcedure = 2;  // of an operator class

/// The releases of pgvector whose format was read, and whose indexes were searched, changed and
/// vacuumed.
constexpr int kFirstMinor = 5, kLastMinor = 8;

/// `format` has one place, for `what`.
void set(Reason& reason, const char* format, const char* what) {
    std::snprintf(reason.text, sizeof reason.text, format, what);
}

void set_unknown_class(Reason& reason) {
    set(reason, "its operator class is not one of %s's", "pgvector");
    copy_text(reason.hint, "Use an operator class of pgvector, or set gputext.build_hnsw to off.");
}

/// The version of the extension vector, in the current memory context; null without it.
const char* version_of_pgvector() {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
                CStringGetDatum("vector"));
    const Relation catalog = table_open(ExtensionRelationId, AccessShareLock);
    const SysScanDesc scan =
        systable_beginscan(catalog, ExtensionNameIndexId, true, nullptr, 1, &key);
    const HeapTuple tuple = systable_getnext(scan);
    char* version = nullptr;
    if (HeapTupleIsValid(tuple)) {
        bool null;
        const Datum stored =
            heap_getattr(tuple, Anum_pg_extension_extversion, RelationGetDescr(catalog), &null);
        if (!null) version = TextDatumGetCString(stored);
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return version;
}

void check_version(Reason& reason) {
    const char* const version = version_of_pgvector();
    int major = -1, minor = -1;
    if (version != nullptr) std::sscanf(version, "%d.%d", &major, &minor);
    if (major == 0 && minor >= kFirstMinor && minor <= kLastMinor) return;
    set(reason, "version %.40s of the extension vector is not known to it",
        version == nullptr ? "(none)" : version);
    copy_text(reason.hint, "Update gputext, or set gputext.build_hnsw to off.");
}

/// An integer option, in any form that the server takes; 0 for none.
int integer_of(const char* text) {
    int value = 0;
    return parse_int(text, &value, 0, nullptr) ? value : 0;
}

/// An option of the index, or its default.
unsigned option_of(Relation index, const char* name, unsigned otherwise) {
    const HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(index)));
    if (!HeapTupleIsValid(tuple)) return otherwise;
    bool null;
    const Datum options = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &null);
    unsigned value = otherwise;
    if (!null) {
        ListCell* cell;
        foreach (cell, untransformRelOptions(options)) {
            auto* const option = static_cast<DefElem*>(lfirst(cell));
            if (std::strcmp(option->defname, name) == 0)
                value = static_cast<unsigned>(integer_of(defGetString(option)));
        }
    }
    ReleaseSysCache(tuple);
    return value;
}

/// The metric of the index's operator; none for one that is not pgvector's.
std::optional<Metric> metric_of(Relation index) {
    const Oid type = index->rd_opcintype[0];
    const Oid ordering = get_opfamily_member(index->rd_opfamily[0], type, type, 1);
    const Oid operators = get_index_column_opclass(RelationGetRelid(index), 1);
    // One of others may have pgvector's operator and another distance.
    if (!OidIsValid(ordering) || !belongs_to_extension(OperatorRelationId, ordering, "vector") ||
        !belongs_to_extension(OperatorClassRelationId, operators, "vector"))
        return std::nullopt;
    return metric_of_operator(get_opname(ordering));
}

}  // namespace

IndexKind kind_of(Relation index, Reason& reason) {
    IndexKind kind{};
    check_version(reason);
    if (reason.given()) return kind;
    const Oid type = index->rd_opcintype[0];
    const std::optional<VectorType> vectors = vector_type_of(type);
    if (!vectors || vectors->form != VectorType::Form::dense) {
        set(reason, "its values are of type %.100s", format_type_be(type));
        return kind;
    }
    const std::optional<Metric> metric = metric_of(index);
    if (!metric || RelationGetNumberOfAttributes(index) != 1) {
        set_unknown_class(reason);
        return kind;
    }
    kind.element = vectors->element;
    kind.m = option_of(index, "m", 16);
    kind.ef_construction = option_of(index, "ef_construction", 64);
    const int dimensions = TupleDescAttr(RelationGetDescr(index), 0)->atttypmod;
    const int most = kind.element == ElementType::float16 ? 4000 : 2000;
    if (dimensions < 1) {
        set(reason, "its column of type %.100s has no number of dimensions", format_type_be(type));
        return kind;
    }
    if (dimensions > most || kind.m < 2 || kind.m > 100 || kind.ef_construction < 2 * kind.m ||
        kind.ef_construction > 1000) {
        set(reason, "%s refuses its options or its number of dimensions", "pgvector");
        return kind;
    }
    kind.dimensions = static_cast<std::size_t>(dimensions);
    kind.normalized = OidIsValid(index_getprocid(index, 1, kNormProcedure));
    // Of vectors of length 1 both metrics give the same order.
    kind.metric = kind.normalized ? Metric::euclidean : *metric;
    if (kind.normalized != (*metric == Metric::cosine)) set_unknown_class(reason);
    return kind;
}

}  // namespace gputext::hnsw
