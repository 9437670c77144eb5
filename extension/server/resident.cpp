// What gputextd keeps of the tables of this database, and what it is to forget.

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/dbcommands.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
}

#include <algorithm>
#include <span>

#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/base/table_rights.hpp"
#include "extension/server/daemon.hpp"
#include "extension/server/value_store.hpp"

namespace gputext {
namespace {

/// A conversation with the gputextd that runs; null without one.
ValueStore* running_store() {
    if (!value_store_is_ready()) return nullptr;
    ValueStore* const store = make_owned<ValueStore>(CurrentMemoryContext);
    return store->connect() ? store : nullptr;
}

void put_row(ReturnSetInfo* result, Oid relation, const ResidentTable& table) {
    const auto idle = static_cast<TimestampTz>(table.idle_seconds * USECS_PER_SEC);
    Datum values[] = {ObjectIdGetDatum(relation),
                      Int64GetDatum(static_cast<int64>(table.values)),
                      Int64GetDatum(static_cast<int64>(table.bytes)),
                      Int64GetDatum(static_cast<int64>(table.device_bytes)),
                      Int64GetDatum(static_cast<int64>(table.hits)),
                      Int64GetDatum(static_cast<int64>(table.misses)),
                      TimestampTzGetDatum(GetCurrentTimestamp() - idle)};
    bool nulls[lengthof(values)] = {};
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/// What is kept of a relation, in its rows and in its TOAST table; whether there is anything.
bool find_relation(std::span<const ResidentTable> tables, const FormData_pg_class& relation,
                   ResidentTable& kept) {
    bool found = false;
    for (const ResidentTable& table : tables) {
        if (table.database != MyDatabaseId || !OidIsValid(table.table) ||
            (table.table != relation.oid && table.table != relation.reltoastrelid))
            continue;
        kept.idle_seconds =
            found ? std::min(kept.idle_seconds, table.idle_seconds) : table.idle_seconds;
        kept.values += table.values;
        kept.bytes += table.bytes;
        kept.device_bytes += table.device_bytes;
        kept.hits += table.hits;
        kept.misses += table.misses;
        found = true;
    }
    return found;
}

/// Puts a row for each relation that the user may read whole, as the numbers are of all rows and
/// columns. Reads all of pg_class, which has no index by TOAST tables.
void put_rows(ReturnSetInfo* result, std::span<const ResidentTable> tables) {
    const Relation classes = table_open(RelationRelationId, AccessShareLock);
    const SysScanDesc scan = systable_beginscan(classes, InvalidOid, false, nullptr, 0, nullptr);
    for (HeapTuple tuple; HeapTupleIsValid(tuple = systable_getnext(scan));) {
        CHECK_FOR_INTERRUPTS();
        const auto* const relation = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
        if (relation->relkind != RELKIND_RELATION && relation->relkind != RELKIND_MATVIEW) continue;
        ResidentTable kept;
        if (find_relation(tables, *relation, kept) && may_read_whole(relation->oid))
            put_row(result, relation->oid, kept);
    }
    systable_endscan(scan);
    table_close(classes, AccessShareLock);
}

void check_owns(Oid relation) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("relation with OID %u does not exist", relation)));
    const FormData_pg_class form = *reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
    ReleaseSysCache(tuple);
    if (!owns_relation(relation))
        aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(form.relkind),
                       NameStr(form.relname));
}

/// InvalidOid for a relation that stores nothing out of line, or that has just been dropped.
Oid toast_table_of(Oid relation) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
    if (!HeapTupleIsValid(tuple)) return InvalidOid;
    const Oid found = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->reltoastrelid;
    ReleaseSysCache(tuple);
    return found;
}

/// Returns how many values were kept of the table, or TOAST table; of the whole database for
/// InvalidOid.
std::uint64_t forget(ValueStore& store, Oid table) {
    std::uint64_t values = 0;
    if (!store.forget(MyDatabaseId, table, values))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("gputextd does not answer"),
                        errhint("The server's log has gputextd's messages.")));
    return values;
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_resident) {
    InitMaterializedSRF(fcinfo, 0);
    ValueStore* const store = running_store();
    if (store != nullptr && store->list())
        put_rows(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), store->kept().tables());
    PG_RETURN_NULL();
}

SQL_FUNCTION(gputext_evict) {
    const Oid relation = PG_GETARG_OID(0);
    check_owns(relation);
    ValueStore* const store = running_store();
    std::uint64_t values = 0;
    ListCell* cell;
    foreach (cell, find_all_inheritors(relation, AccessShareLock, nullptr)) {
        if (store == nullptr) break;
        values += forget(*store, lfirst_oid(cell));
        const Oid toast_table = toast_table_of(lfirst_oid(cell));
        if (OidIsValid(toast_table)) values += forget(*store, toast_table);
    }
    PG_RETURN_INT64(static_cast<int64>(values));
}

SQL_FUNCTION(gputext_evict_all) {
    if (!owns_database(MyDatabaseId))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_DATABASE, get_database_name(MyDatabaseId));
    ValueStore* const store = running_store();
    PG_RETURN_INT64(store == nullptr ? 0 : static_cast<int64>(forget(*store, InvalidOid)));
}
}
