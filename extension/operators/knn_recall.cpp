// How many of the exact nearest rows an index returns: an exact search of all queries at once, and
// then a search by the index for each of them

#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "cpp/knn/recall.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/base/table_rights.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/operators/distance_index.hpp"
#include "extension/operators/knn_rows.hpp"
#include "extension/operators/knn_search.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/column_types.hpp"

namespace gputext {
namespace {

// ---- Queries, as values of the index's type ----

/// How vectors of one type become values of another.
struct Conversion {
    Oid function = InvalidOid;  // none: they are such values already
    int arguments = 0;

    Datum operator()(Datum value) const {
        if (!OidIsValid(function)) return value;
        if (arguments == 1) return OidFunctionCall1(function, value);
        // The cast's type modifier, and that it is an explicit one
        return OidFunctionCall3(function, value, Int32GetDatum(-1), BoolGetDatum(true));
    }
};

Conversion conversion(Oid from, Oid to, const char* index) {
    if (from == to) return {};
    Oid function = InvalidOid;
    const CoercionPathType path = find_coercion_pathway(to, from, COERCION_EXPLICIT, &function);
    if (path == COERCION_PATH_RELABELTYPE) return {};
    if (path != COERCION_PATH_FUNC)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("queries of type %s cannot be cast to %s, the type of index %s",
                               format_type_be(from), format_type_be(to), index)));
    return {function, get_func_nargs(function)};
}

const char* const kWanted =
    "The inner query must give an id and a vector of type real[], double precision[], integer[], "
    "or pgvector's vector, halfvec or sparsevec, in this order.";

class QueryReceiver final : public RowReceiver {
public:
    QueryReceiver(const DistanceIndex& index, VectorRows& rows) : index_(index), rows_(rows) {}

    WantedColumns wanted_columns() const override { return {2, 2, kWanted}; }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool*) override {
        const Datum vector = conversion_(values[1]);
        // What a conversion has made lives for this row only: it is copied at once.
        InnerQueryTraits traits = query();
        traits.parallel_safe = false;
        rows_.collect(values[0], {&vector, 1}, traits);
        show_rows(rows_.size(), rows_.bytes());
    }
    void end_rows() override {
        rows_.end_rows(query());
        rows_.read_vectors();
    }
    void report_nulls(int64 rows, const char* among) override { report_null_vectors(rows, among); }

private:
    const DistanceIndex& index_;
    VectorRows& rows_;
    Conversion conversion_;
};

void QueryReceiver::check_columns(TupleDesc columns) {
    const Oid type = base_type_of_column(columns, 1);
    if (!vector_type_of(type))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the vectors of the inner query are of type %s",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                        errdetail("%s", kWanted)));
    conversion_ = conversion(type, index_.operand, index_.name);
    rows_.set_type(index_.vectors);
}

// ---- Rights ----

/// What runs as the table's owner does not look at the caller's rights.
void check_rights_for(const DistanceIndex& index) {
    if (!OidIsValid(index.evaluator) || may_read_whole(index.table)) return;
    ereport(ERROR,
            (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
             errmsg("permission denied for index %s", index.name),
             errdetail("Its expression or condition calls functions that run as the owner "
                       "of the table: only who may read the whole table may search by it.")));
}

template <class Work>
void run_with_rights_for(const DistanceIndex& index, Work work) {
    if (!OidIsValid(index.evaluator)) return work();
    AsOwner as_owner(index.evaluator);
    work();
    as_owner.end();
}

// ---- The exact answer ----

/// What is known of a query.
struct QueryRecall {
    std::uint32_t expected = 0;                                  // rows that are its nearest
    double distance = std::numeric_limits<double>::quiet_NaN();  // of the last one of them
    std::uint32_t found = 0;  // of the rows that the index returned
    std::uint32_t returned = 0;
    double farthest = std::numeric_limits<double>::quiet_NaN();
    double milliseconds = 0;
};

struct Recalls {
    explicit Recalls(std::size_t queries, std::size_t k) : of(queries), numbers(k), places(k) {}

    std::vector<QueryRecall> of;
    RecallJudge judge;
    // The rows that the index returned for one query:
    std::vector<std::uint32_t> numbers;
    std::vector<ItemPointerData> places;
};

void search_exactly(KnnRows& rows, const KnnParameters& parameters, Recalls& recalls,
                    SetCall& set) {
    auto* const search = make_owned<VectorKnnComputation>(set.context(), rows, parameters);
    while (search->next_block()) {
        do run_computation(*search, set.times(), set.context());
        while (search->block_was_too_large());
        const Neighbors& answer = search->answer;
        for (std::size_t i = 0; i + 1 < answer.begins.size(); ++i) {
            QueryRecall& recall = recalls.of[search->first_query() + i];
            recall.expected = static_cast<std::uint32_t>(answer.begins[i + 1] - answer.begins[i]);
            if (recall.expected > 0) recall.distance = answer.distances[answer.begins[i + 1] - 1];
        }
    }
}

// ---- The index's answer ----

ItemPointer place_of(const VectorRows& items, std::size_t row) {
    return reinterpret_cast<ItemPointer>(DatumGetPointer(items.id(row)));
}

/// Writes the numbers of the items at these places, and returns how many of them there are. A
/// policy of row-level security may have shown rows then and hidden them now.
std::size_t numbers_of(const VectorRows& items, std::span<ItemPointerData> places,
                       std::uint32_t* numbers) {
    std::size_t count = 0;
    for (ItemPointerData& place : places) {
        // The rows of a query without an order of its own are in the order of their ids.
        std::size_t low = 0, high = items.size();
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (ItemPointerCompare(place_of(items, middle), &place) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < items.size() && ItemPointerEquals(place_of(items, low), &place))
            numbers[count++] = static_cast<std::uint32_t>(low);
    }
    return count;
}

void search_by_index(const DistanceIndex& index, std::uint32_t k, KnnRows& rows, Recalls& recalls,
                     MemoryContext context) {
    const Vectors queries = rows.queries.view(), items = rows.items.view();
    attempt_or_raise(
        [&] { return recalls.judge.set(index.metric, queries, items, stop_on_interrupt()); });
    IndexSearch search(index, k, context);
    for (std::size_t q = 0; q < recalls.of.size(); ++q) {
        CHECK_FOR_INTERRUPTS();
        show_step({"searching by the index", q, recalls.of.size(), kNowhereYet});
        const Datum query = new_vector_value(index.vectors, queries, q);
        instr_time begin, end;
        INSTR_TIME_SET_CURRENT(begin);
        const std::uint32_t returned = search.nearest(query, recalls.places.data());
        INSTR_TIME_SET_CURRENT(end);
        INSTR_TIME_SUBTRACT(end, begin);
        const std::size_t known = numbers_of(rows.items, std::span(recalls.places).first(returned),
                                             recalls.numbers.data());
        QueryRecall& recall = recalls.of[q];
        attempt_or_raise([&] {
            const ReturnedItems judged =
                recalls.judge.judge(q, std::span(recalls.numbers).first(known), recall.distance);
            recall.found = judged.within;
            recall.farthest = judged.farthest;
        });
        recall.returned = returned;
        recall.milliseconds = INSTR_TIME_GET_MILLISEC(end);
        pfree(DatumGetPointer(query));
    }
    search.end();
}

// ---- The rows of the result ----

void put_recalls(const KnnRows& rows, const Recalls& recalls, SetCall& set) {
    for (std::size_t q = 0; q < recalls.of.size(); ++q) {
        if (q % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const QueryRecall& recall = recalls.of[q];
        const double share = static_cast<double>(recall.found) / recall.expected;
        Datum values[8] = {rows.queries.id(q),
                           Float8GetDatum(share),
                           Int32GetDatum(static_cast<int32>(recall.found)),
                           Int32GetDatum(static_cast<int32>(recall.expected)),
                           Int32GetDatum(static_cast<int32>(recall.returned)),
                           Float8GetDatum(recall.distance),
                           Float8GetDatum(recall.farthest),
                           Float8GetDatum(recall.milliseconds)};
        bool nulls[8] = {};
        nulls[1] = recall.expected == 0;
        nulls[5] = std::isnan(recall.distance);
        nulls[6] = std::isnan(recall.farthest);
        set.put(values, nulls);
    }
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const Oid oid = given.oid("index");
    const InnerQuery queries{given.text("queries"), id_type_argument(given)};
    KnnParameters parameters;
    parameters.k = given.count("k");
    SetCall set(fcinfo, "knn_recall");
    const DistanceIndex index = distance_index(oid);
    parameters.metric = index.metric;
    parameters.memory_limit = parameters.answer_limit = host_memory_limit();

    KnnRows& rows = *make_owned<KnnRows>(set.context(), set.context(), id_type_of(queries.id_type),
                                         "row", id_type_of(TIDOID), host_memory_limit());
    check_rights_for(index);
    run_with_rights_for(index, [&] { run_vector_query({index.all_rows, TIDOID}, rows.items); });
    QueryReceiver receiver(index, rows.queries);
    run_inner_query(queries, receiver);
    check_same_dimensions(rows.queries, rows.items);
    set.times().lap("reading rows");
    const std::size_t most =
        std::min<std::size_t>(parameters.k, std::max<std::size_t>(1, rows.items.size()));
    Recalls& recalls = *make_owned<Recalls>(set.context(), rows.queries.size(), most);
    search_exactly(rows, parameters, recalls, set);
    // Where the caller may see no row there is nothing to find, and the plan may do without the
    // index.
    if (rows.items.size() > 0)
        run_with_rights_for(index, [&] {
            search_by_index(index, static_cast<std::uint32_t>(most), rows, recalls, set.context());
        });
    rows.queries.release_vectors();
    rows.items.release();
    put_recalls(rows, recalls, set);
    rows.queries.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_knn_recall) {
    return answer(fcinfo);
}
SQL_ALIAS(gputext_knn_recall_typed, gputext_knn_recall);
}
