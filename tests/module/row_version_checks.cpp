// tests/module/row_version_checks.cpp - shows what is known of the rows of an inner query
//
// Only the module of the tests has these functions. Tests create the SQL functions, as a superuser
// may.

#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
}

#include <numeric>
#include <vector>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/settings.hpp"
#include "extension/server/shared_state.hpp"
#include "extension/values/row_versions.hpp"
#include "extension/values/stored_values.hpp"

namespace gputext {
namespace {

struct VersionedRows {
    explicit VersionedRows(std::size_t memory_limit) : values(memory_limit) {}

    std::vector<std::int64_t> ids;
    StoredValues values;
};

/// Takes the rows (id, value of varying length).
class VersionReceiver final : public RowReceiver {
public:
    explicit VersionReceiver(VersionedRows& rows) : rows_(rows) {}

    WantedColumns wanted_columns() const override { return {2, 2, "They are an id and a value."}; }
    int versioned_column() const override { return 1; }
    void forget_row_versions() override { rows_.values.forget_row_versions(); }
    void check_columns(TupleDesc columns) override {
        if (TupleDescAttr(columns, 1)->attlen != -1)
            ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                            errmsg("the values are not of varying length")));
    }
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool*) override {
        attempt_or_raise([&] { rows_.ids.push_back(DatumGetInt64(values[0])); });
        rows_.values.append(values[1], !query().parallel_safe, row());
    }
    void end_rows() override;
    void report_nulls(int64 rows, const char*) override {
        ereport(NOTICE, (errmsg("%lld values are null", static_cast<long long>(rows))));
    }

private:
    VersionedRows& rows_;
};

/// In the opposite order, so that a version that does not go with its value is seen.
void VersionReceiver::end_rows() {
    auto* const order = make_owned<std::vector<std::uint32_t>>(CurrentMemoryContext);
    attempt_or_raise([&] {
        order->resize(rows_.ids.size());
        std::iota(order->rbegin(), order->rend(), 0);
        rows_.ids = {rows_.ids.rbegin(), rows_.ids.rend()};
    });
    rows_.values.finish(*order);
}

/// Null where it is kUnknownTransaction.
void put_transaction(std::uint64_t id, Datum& value, bool& null) {
    null = id == kUnknownTransaction;
    value = Int64GetDatum(static_cast<int64>(id));
}

void put_versions(const VersionedRows& rows, SetCall& call) {
    RowVersions versions;
    const std::uint64_t read_by = horizon();
    for (std::size_t row = 0; row < rows.ids.size(); ++row) {
        const StoredValue& stored = rows.values.stored(row);
        const TransactionId version = rows.values.row_version(row);
        Datum values[6] = {Int64GetDatum(rows.ids[row]), TransactionIdGetDatum(version),
                           ObjectIdGetDatum(stored.relation),
                           ObjectIdGetDatum(stored.out_of_line() ? stored.pointer.id : InvalidOid)};
        bool nulls[6] = {false, !TransactionIdIsValid(version), !stored.out_of_line(),
                         !stored.out_of_line()};
        put_transaction(versions.since(version, stored.relation), values[4], nulls[4]);
        put_transaction(read_by, values[5], nulls[5]);
        call.put(values, nulls);
    }
}

void put_places(const VersionedRows& rows, SetCall& call) {
    for (std::size_t row = 0; row < rows.ids.size(); ++row) {
        const StoredValue& stored = rows.values.stored(row);
        RowPlace place = stored.place();
        Datum values[3] = {Int64GetDatum(rows.ids[row]), ObjectIdGetDatum(place.relation),
                           PointerGetDatum(&place.row)};
        bool nulls[3] = {false, !stored.in_row(), !stored.in_row()};
        call.put(values, nulls);
    }
}

/// Runs the query, and gives rows about its rows.
Datum answer(FunctionCallInfo fcinfo, void (*put)(const VersionedRows&, SetCall&)) {
    const InnerQuery query{text_to_cstring(PG_GETARG_TEXT_PP(0)), INT8OID};
    SetCall call(fcinfo, "row_versions");
    auto* const rows = make_owned<VersionedRows>(call.context(), host_memory_limit());
    VersionReceiver receiver(*rows);
    run_inner_query(query, receiver);
    put(*rows, call);
    rows->values.release();
    call.end();
    return 0;
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_row_versions);
PG_FUNCTION_INFO_V1(gputext_row_places);
PG_FUNCTION_INFO_V1(gputext_latest_it_can_be);
PG_FUNCTION_INFO_V1(gputext_server_run);

/// (query text): rows (id bigint, version xid, toast_table oid, number oid, since bigint, horizon
/// bigint) for the rows (id bigint, value) of the query; what is not known is null.
PGDLLEXPORT Datum gputext_row_versions(PG_FUNCTION_ARGS) {
    return answer(fcinfo, put_versions);
}

/// (query text): rows (id bigint, relation regclass, "row" tid) for the rows (id bigint, value) of
/// the query: where the value is read again, null for values that are copied or out of line.
PGDLLEXPORT Datum gputext_row_places(PG_FUNCTION_ARGS) {
    return answer(fcinfo, put_places);
}

/// (xid, next bigint): bigint.
PGDLLEXPORT Datum gputext_latest_it_can_be(PG_FUNCTION_ARGS) {
    const std::uint64_t id = latest_it_can_be(PG_GETARG_TRANSACTIONID(0),
                                              static_cast<std::uint64_t>(PG_GETARG_INT64(1)));
    if (id == kUnknownTransaction) PG_RETURN_NULL();
    PG_RETURN_INT64(static_cast<int64>(id));
}

/// (): bigint.
PGDLLEXPORT Datum gputext_server_run(PG_FUNCTION_ARGS) {
    (void)fcinfo;
    PG_RETURN_INT64(static_cast<int64>(server_run()));
}
}
