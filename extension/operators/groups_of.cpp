#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/typcache.h"
}

#include <vector>

#include "cpp/groups/groups.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/order/row_ids.hpp"
#include "extension/order/row_order.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/column_types.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give pairs of ids in its first two columns; those after them are not "
    "looked at.";

// ---- The pairs ----

/// Ids that are no integers, two for each pair, and what they are numbered by: the order of their
/// type, by which equal ids have one number. Functions raise errors.
class TypedEnds {
public:
    TypedEnds(const IdType& type, std::size_t memory_limit) : ids_(type, memory_limit) {}

    /// Before the first id: what says which of them are equal.
    void set_collation(Oid collation) { collation_ = collation; }
    void append(Datum id) { ids_.append(id); }
    std::uint64_t bytes() const { return ids_.bytes(); }
    /// Ends the appending.
    void number();

    /// The numbers of the ids, in the order of the rows.
    std::span<const std::uint32_t> numbers() const { return numbers_; }
    std::uint32_t count() const { return static_cast<std::uint32_t>(places_.size()); }
    /// The id of that number; of equal ids the one that came first.
    Datum id(std::uint32_t number) const { return ids_.at(places_[number]); }

    void release_numbers() { numbers_ = {}; }
    void release() { ids_.release(); }

private:
    RowIds ids_;
    Oid collation_ = InvalidOid;
    std::vector<std::uint32_t> numbers_;
    std::vector<std::uint32_t> places_;  // of each number the first id
};

void TypedEnds::number() {
    ids_.finish();
    auto* const order = make_owned<std::vector<std::uint32_t>>(CurrentMemoryContext);
    order_by_id(ids_, collation_, *order);
    attempt_or_raise([&] { numbers_.resize(ids_.size()); });
    const auto place = [&](std::size_t i) {
        return order->empty() ? static_cast<std::uint32_t>(i) : (*order)[i];
    };
    TypeCacheEntry* const type = lookup_type_cache(ids_.type().oid, TYPECACHE_CMP_PROC_FINFO);
    for (std::size_t i = 0; i < ids_.size(); ++i) {
        if (i % 4096 == 0) CHECK_FOR_INTERRUPTS();
        const bool is_new = i == 0 || DatumGetInt32(FunctionCall2Coll(
                                          &type->cmp_proc_finfo, collation_, ids_.at(place(i - 1)),
                                          ids_.at(place(i)))) != 0;
        if (is_new) attempt_or_raise([&] { places_.push_back(place(i)); });
        numbers_[place(i)] = static_cast<std::uint32_t>(places_.size() - 1);
    }
    attempt_or_raise([&] { *order = {}; });
}

/// Whether values of the type are grouped as bigint, which needs no function of the type.
bool is_integer(Oid type) {
    return type == INT8OID || type == INT4OID || type == INT2OID || type == OIDOID;
}

/// The bigint as a value of that integer type.
Datum narrowed(std::int64_t id, Oid type) {
    switch (type) {
        case INT2OID:
            return Int16GetDatum(static_cast<int16>(id));
        case INT4OID:
            return Int32GetDatum(static_cast<int32>(id));
        case OIDOID:
            return ObjectIdGetDatum(static_cast<Oid>(id));
        default:
            return Int64GetDatum(id);
    }
}

/// The pairs of an inner query, in its order.
struct PairRows {
    PairRows(const IdType& type, std::size_t memory_limit)
        : ends(memory_limit),
          typed_ends(type, memory_limit),
          id_type(type.oid),
          is_typed(!is_integer(type.oid)) {}

    PackedBytes ends;  // that are integers, as bigint
    TypedEnds typed_ends;
    const Oid id_type;
    const bool is_typed;
    bool ordered = false;  // by the query
    std::uint64_t count = 0;

    std::uint64_t bytes() const { return is_typed ? typed_ends.bytes() : ends.size(); }
};

class PairReceiver final : public RowReceiver {
public:
    PairReceiver(Oid id_type, PairRows& rows) : id_type_(id_type), rows_(rows) {}

    WantedColumns wanted_columns() const override {
        return {2, WantedColumns::kAnyColumns, kWanted};
    }
    void check_columns(TupleDesc columns) override {
        for (int i = 0; i < 2; ++i) {
            narrow_types_[i] = narrow_id_type(columns, i, id_type_, {});
            if (!OidIsValid(narrow_types_[i])) narrow_types_[i] = id_type_;
        }
        rows_.typed_ends.set_collation(common_collation(TupleDescAttr(columns, 0)->attcollation,
                                                        TupleDescAttr(columns, 1)->attcollation,
                                                        "ids", "id"));
    }
    bool left_out(const bool* nulls) const override { return nulls[0] || nulls[1]; }
    void take_row(const Datum* values, const bool*) override;
    void end_rows() override {
        rows_.ordered = query().ordered;
        if (rows_.is_typed)
            rows_.typed_ends.number();
        else
            rows_.ends.finish();
    }
    void report_nulls(int64 rows, const char*) override {
        ereport(NOTICE,
                (errmsg_plural("skipped %lld pair with an id that is null",
                               "skipped %lld pairs with an id that is null",
                               static_cast<unsigned long>(rows), static_cast<long long>(rows))));
    }

private:
    const Oid id_type_;
    PairRows& rows_;
    Oid narrow_types_[2] = {};  // that the ids of a column are widened from
};

void PairReceiver::take_row(const Datum* values, const bool*) {
    if (rows_.count == kMostGroupedPairs)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the inner query gives more than %llu pairs",
                               static_cast<unsigned long long>(kMostGroupedPairs)),
                        errhint("Group parts of them, and then the union of the parts' rows "
                                "(id, group_id).")));
    ++rows_.count;
    if (rows_.is_typed) {
        rows_.typed_ends.append(values[0]);
        rows_.typed_ends.append(values[1]);
    } else {
        const std::int64_t ends[2] = {DatumGetInt64(widened_id(values[0], narrow_types_[0])),
                                      DatumGetInt64(widened_id(values[1], narrow_types_[1]))};
        rows_.ends.append(ends, sizeof ends);
    }
    show_rows(rows_.count, rows_.bytes());
}

// ---- The computation ----

/// What a call needs until its last row; dies with the call's memory context.
class GroupsComputation final : public HostComputation {
public:
    GroupsComputation(const IdType& type, std::size_t memory_limit)
        : rows(type, memory_limit), memory_limit_(memory_limit) {}

    PairRows rows;
    IdGroups answer;  // without ids where these have a type of their own

    Datum id(std::uint32_t node) const {
        return rows.is_typed ? rows.typed_ends.id(node) : narrowed(answer.id(node), rows.id_type);
    }

    JobSize size() const override { return {rows.count, rows.bytes(), 0}; }
    Status compute(Execution& execution) override;

private:
    std::size_t memory_limit_;
};

Status GroupsComputation::compute(Execution& execution) {
    const GroupOrder order = rows.ordered ? GroupOrder::by_occurrence : GroupOrder::by_node;
    if (rows.is_typed)
        return take_value(groups_of_nodes(rows.typed_ends.numbers(), rows.typed_ends.count(), order,
                                          memory_limit_, execution),
                          answer.groups);
    const auto* const ends = reinterpret_cast<const std::int64_t*>(rows.ends.data());
    return take_value(groups_of_ids({ends, 2 * rows.count}, order, memory_limit_, execution),
                      answer);
}

// ---- The call ----

/// Equal ids are told by their order.
void check_order(Oid type) {
    if (OidIsValid(lookup_type_cache(type, TYPECACHE_CMP_PROC_FINFO)->cmp_proc_finfo.fn_oid))
        return;
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_FUNCTION),
             errmsg("ids of type %s cannot be compared", format_type_be(type)),
             errdetail("The type has no default operator class for access method \"btree\"."),
             errhint("Cast the ids to another type in the inner query, such as text.")));
}

void put_groups(const GroupsComputation& work, SetCall& set) {
    bool nulls[3] = {};
    std::size_t done = 0;
    work.answer.groups.for_each([&](std::uint32_t node) {
        if (done++ % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const std::uint32_t name = work.answer.groups.names[node];
        Datum values[3] = {work.id(node), work.id(name),
                           Int64GetDatum(work.answer.groups.sizes[name])};
        set.put(values, nulls);
    });
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const Oid id_type = id_type_argument(given);
    check_order(id_type);
    const InnerQuery query{given.text("pairs"), InvalidOid};  // either column is an id
    SetCall set(fcinfo, "groups_of");
    GroupsComputation* work =
        make_owned<GroupsComputation>(set.context(), id_type_of(id_type), host_memory_limit());
    PairReceiver receiver(id_type, work->rows);
    run_inner_query(query, receiver);
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    work->rows.ends.release();
    work->rows.typed_ends.release_numbers();
    put_groups(*work, set);
    work->rows.typed_ends.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_groups_of) {
    return answer(fcinfo);
}
SQL_ALIAS(gputext_groups_of_typed, gputext_groups_of);
}
