#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/typcache.h"
}

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "cpp/knn/partial_answers.hpp"
#include "extension/base/owned.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/order/key_column.hpp"
#include "extension/order/row_ids.hpp"
#include "extension/order/row_order.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/queries/reduced_rows.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/session_job.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/column_types.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give the columns (query_id, item_id, distance), or those of gpu_knn: "
    "(query_id, item_id, rank, distance).";

/// The item of most neighbors whose number is not its id.
constexpr std::uint64_t kMostNumberedItems = UINT32_MAX - 1;

/// Bigint as a number of the same order, and back.
std::uint64_t unsigned_id(std::int64_t id) {
    return static_cast<std::uint64_t>(id) ^ std::uint64_t{1} << 63;
}
std::int64_t signed_id(std::uint64_t id) {
    return static_cast<std::int64_t>(id ^ std::uint64_t{1} << 63);
}

// ---- Rows that are reduced where they are read ----

/// Where the columns of an answer are, and what of it is wanted.
struct MergeRequest {
    Oid narrow_query, narrow_item;  // types that ids are widened from
    int distance;                   // the column
    std::size_t k;
    std::size_t memory_limit;  // of all processes
};

/// Precedes a query's neighbors in what a process leaves.
struct LeftQuery {
    std::int64_t id;
    std::uint64_t count;
};

/// The nearest items, among those that one process reads, of queries whose ids are integers.
class MergeReducer final : public RowReducer {
public:
    MergeReducer(const MergeRequest& request, MemoryContext context, std::size_t memory_limit)
        : request_(request),
          numbers_(context, request.memory_limit),
          answers_(request.k, FoundTies::by_item, memory_limit) {}

    /// Before the first row.
    void begin() { numbers_.set_type(INT8OID, InvalidOid); }
    /// An error is to come of a null, or of a distance that is NaN: the session raises it.
    bool take(const Datum* values, const bool* nulls) override {
        if (nulls[0] || nulls[1] || nulls[request_.distance]) return false;
        const double distance = DatumGetFloat8(values[request_.distance]);
        if (std::isnan(distance)) return false;
        return add(id_in(values[0], request_.narrow_query),
                   {distance, unsigned_id(id_in(values[1], request_.narrow_item))});
    }
    void leave(PackedBytes& output) override;

private:
    static std::int64_t id_in(Datum value, Oid narrow_type) {
        return DatumGetInt64(OidIsValid(narrow_type) ? widened_id(value, narrow_type) : value);
    }
    bool add(std::int64_t query, FoundItem found);

    const MergeRequest request_;
    /// Of the queries. The limit of the answers, which ends the reducing, comes before theirs, which
    /// would be an error.
    KeyNumbers numbers_;
    std::vector<std::int64_t> queries_;
    PartialAnswers answers_;
};

/// False where memory does not suffice.
bool MergeReducer::add(std::int64_t query, FoundItem found) {
    const std::uint32_t number = numbers_.number_of(Int64GetDatum(query));
    if (number < queries_.size() && !answers_.wants(number, found.distance)) return true;
    Failure failure;
    return attempt(failure, [&] {
        if (number == queries_.size()) queries_.push_back(query);
        return answers_.add(number, found);
    });
}

void MergeReducer::leave(PackedBytes& output) {
    for (std::uint32_t query = 0; query < queries_.size(); ++query) {
        const std::span<const FoundItem> found = answers_.of(query);
        const LeftQuery left{queries_[query], found.size()};
        output.append(&left, sizeof left);
        output.append(found.data(), found.size_bytes());
    }
    numbers_.release();
}

/// Calls visit(query, found) for the queries of which a process has left neighbors.
template <class Visit>
void for_each_query(std::span<const std::uint8_t> output, const Visit& visit) {
    const std::uint8_t* at = output.data();
    const std::uint8_t* const end = at + output.size();
    while (at < end) {
        const auto* const left = reinterpret_cast<const LeftQuery*>(at);
        const auto* const found = reinterpret_cast<const FoundItem*>(left + 1);
        visit(left->id, std::span(found, left->count));
        at = reinterpret_cast<const std::uint8_t*>(found + left->count);
    }
}

// ---- The rows ----

/// The answers of an inner query. Items that are bigint and rank by their ids are numbered by
/// these. All others are numbered as they come.
struct AnswerRows {
    AnswerRows(MemoryContext context, const IdType& type, std::size_t keep, std::size_t limit)
        : queries(context, limit),
          query_ids(type, limit),
          item_ids(type, limit),
          k(keep),
          memory_limit(limit) {}

    KeyNumbers queries;
    RowIds query_ids;  // by number
    RowIds item_ids;   // of those that are numbered as they come
    bool ordered = false;
    bool items_are_ids = false;
    const std::size_t k;
    const std::size_t memory_limit;
    std::optional<PartialAnswers> answers;
    std::vector<FoundPiece> pieces;  // that processes have left
    std::uint64_t count = 0;

    /// Before the first row.
    void begin() {
        items_are_ids = item_ids.type().oid == INT8OID && !ordered;
        const FoundTies ties = items_are_ids || ordered ? FoundTies::by_item : FoundTies::open;
        attempt_or_raise([&] { answers.emplace(k, ties, memory_limit); });
    }
    std::uint64_t bytes() const { return answers->bytes() + query_ids.bytes() + item_ids.bytes(); }
};

class AnswerReceiver final : public ReducingReceiver {
public:
    explicit AnswerReceiver(AnswerRows& rows) : rows_(rows) {}

    WantedColumns wanted_columns() const override { return {3, 4, kWanted}; }
    void check_columns(TupleDesc columns) override;
    bool takes_any_order() const override { return true; }
    bool left_out(const bool*) const override { return false; }
    void take_row(const Datum* values, const bool* nulls) override;
    void end_rows() override {
        rows_.query_ids.finish();
        rows_.item_ids.finish();
    }
    void report_nulls(int64, const char*) override {}
    bool may_reduce() const override { return rows_.item_ids.type().oid == INT8OID; }
    RowReduction reduction() override;
    void take_reduced(const ReducedRows& rows) override;

private:
    [[noreturn]] void raise_null(const char* what) const;
    [[noreturn]] void raise_not_a_number(const Datum* values) const;
    std::uint32_t number_of(Datum query);
    std::uint64_t number_of_item(Datum item);

    AnswerRows& rows_;
    Oid narrow_query_ = InvalidOid;  // that reducers widen queries from
    Oid narrow_type_ = InvalidOid;   // that items are widened from
    int distance_ = 0;               // the column
    MergeRequest request_{};
};

void AnswerReceiver::check_columns(TupleDesc columns) {
    distance_ = columns->natts - 1;
    narrow_query_ = narrow_id_type(columns, 0, rows_.item_ids.type().oid, {});
    narrow_type_ = narrow_id_type(columns, 1, rows_.item_ids.type().oid, {});
    if (const Oid found = base_type_of_column(columns, distance_); found != FLOAT8OID)
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("the distances of the inner query are of type %s, not double precision",
                        format_type_be(found)),
                 errdetail("%s", kWanted)));
    rows_.queries.set_type(rows_.item_ids.type().oid, TupleDescAttr(columns, 0)->attcollation);
    rows_.ordered = query().ordered;
    rows_.begin();
}

void AnswerReceiver::raise_null(const char* what) const {
    ereport(ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s of the inner query is null", what),
             errdetail("Row %llu has a null.", static_cast<unsigned long long>(rows_.count))));
    pg_unreachable();
}

void AnswerReceiver::raise_not_a_number(const Datum* values) const {
    const Datum item = OidIsValid(narrow_type_) ? widened_id(values[1], narrow_type_) : values[1];
    ereport(ERROR,
            (errcode(ERRCODE_DATA_EXCEPTION),
             errmsg("the distance of %s and %s is NaN", rows_.query_ids.name_of("query", values[0]),
                    rows_.item_ids.name_of("item", item))));
    pg_unreachable();
}

std::uint32_t AnswerReceiver::number_of(Datum query) {
    const std::uint32_t number = rows_.queries.number_of(query);
    if (number == rows_.query_ids.size()) rows_.query_ids.append(query);
    return number;
}

std::uint64_t AnswerReceiver::number_of_item(Datum item) {
    if (OidIsValid(narrow_type_)) item = widened_id(item, narrow_type_);
    if (rows_.items_are_ids) return unsigned_id(DatumGetInt64(item));
    if (rows_.item_ids.size() == kMostNumberedItems)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the answers have more than %llu neighbors to be kept",
                               static_cast<unsigned long long>(kMostNumberedItems)),
                        errhint("Merge the answers for some of the queries at a time.")));
    rows_.item_ids.append(item);
    return rows_.item_ids.size() - 1;
}

void AnswerReceiver::take_row(const Datum* values, const bool* nulls) {
    ++rows_.count;
    if (nulls[1]) raise_null("an id");
    if (nulls[distance_]) raise_null("a distance");
    const double distance = DatumGetFloat8(values[distance_]);
    if (std::isnan(distance)) raise_not_a_number(values);
    const std::uint32_t query = number_of(values[0]);
    if (rows_.answers->wants(query, distance)) {
        const FoundItem found{distance, number_of_item(values[1])};
        attempt_or_raise([&] { return rows_.answers->add(query, found); });
    }
    show_rows(rows_.count, rows_.bytes());
}

RowReduction AnswerReceiver::reduction() {
    request_ = {narrow_query_, narrow_type_, distance_, rows_.k, rows_.memory_limit};
    return {"gputext_knn_merge_reducer", &request_, sizeof request_};
}

void AnswerReceiver::take_reduced(const ReducedRows& rows) {
    rows_.count = rows.rows();
    for (std::size_t process = 0; process < rows.processes(); ++process)
        for_each_query(rows.output(process),
                       [this](std::int64_t query, std::span<const FoundItem> found) {
                           const std::uint32_t number = number_of(Int64GetDatum(query));
                           attempt_or_raise([&] { rows_.pieces.push_back({number, found}); });
                       });
    run_threaded(
        [this](Execution& execution) { return rows_.answers->add(rows_.pieces, execution); });
    attempt_or_raise([this] { rows_.pieces = {}; });
    show_rows(rows_.count, rows_.bytes());
}

// ---- The computation ----

/// What a call needs until its last row; dies with the call's memory context.
class MergeComputation final : public Computation {
public:
    MergeComputation(MemoryContext context, const IdType& type, std::size_t k, std::size_t limit)
        : rows(context, type, k, limit) {}

    AnswerRows rows;
    std::vector<std::uint32_t> query_order;  // numbers; empty where it is theirs
    std::vector<std::uint32_t> ranks;        // of items that are numbered as they came

    JobSize size() const override { return {rows.count, rows.bytes(), 0}; }
    Status compute(Execution& execution) override {
        if (!ranks.empty()) GPUTEXT_TRY(rows.answers->renumber(ranks, execution));
        return rows.answers->finish(execution);
    }
    // Reading the rows takes longer than merging them.
    bool has_device_job() const override { return false; }
    void prepare_for_device() override {}
    Status submit(DaemonConnection&, Stop) override { return {}; }
    Status take(const DaemonEvent&, Stop) override { return {}; }
};

/// Puts queries and items into the order of their ids, unless the inner query has an order.
void order_rows(MergeComputation& work) {
    AnswerRows& rows = work.rows;
    if (rows.ordered) return;
    order_by_id(rows.query_ids, work.query_order);
    if (rows.items_are_ids) return;
    auto* const order = make_owned<std::vector<std::uint32_t>>(CurrentMemoryContext);
    order_by_id(rows.item_ids, *order);
    const bool in_order = order->empty();
    attempt_or_raise([&] {
        work.ranks.resize(rows.item_ids.size());
        for (std::uint32_t rank = 0; rank < work.ranks.size(); ++rank)
            work.ranks[in_order ? rank : (*order)[rank]] = rank;
    });
    rows.item_ids.reorder(*order);
    attempt_or_raise([&] { *order = {}; });
}

void put_neighbors(const MergeComputation& work, SetCall& set) {
    const AnswerRows& rows = work.rows;
    bool nulls[4] = {};
    for (std::size_t i = 0; i < rows.answers->queries(); ++i) {
        const auto query = static_cast<std::uint32_t>(i);
        const std::uint32_t number = work.query_order.empty() ? query : work.query_order[query];
        const Datum query_id = rows.query_ids.at(number);
        const std::span<const FoundItem> found = rows.answers->of(number);
        if (found.size() > PG_INT32_MAX)
            ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                            errmsg("%s has more than %d neighbors",
                                   rows.query_ids.name_of("query", query_id), PG_INT32_MAX)));
        for (std::size_t rank = 0; rank < found.size(); ++rank) {
            if (rank % 512 == 0) CHECK_FOR_INTERRUPTS();
            const Datum item = rows.items_are_ids ? Int64GetDatum(signed_id(found[rank].item))
                                                  : rows.item_ids.at(found[rank].item);
            Datum values[4] = {query_id, item, Int32GetDatum(static_cast<int32>(rank + 1)),
                               Float8GetDatum(found[rank].distance)};
            set.put(values, nulls);
        }
    }
}

// ---- The call ----

/// Queries are told by their equality, and ties of items by their order.
void check_type(Oid type) {
    const TypeCacheEntry* const entry = lookup_type_cache(
        type, TYPECACHE_CMP_PROC_FINFO | TYPECACHE_EQ_OPR_FINFO | TYPECACHE_HASH_PROC_FINFO);
    const bool ordered = OidIsValid(entry->cmp_proc_finfo.fn_oid);
    const bool hashed =
        OidIsValid(entry->eq_opr_finfo.fn_oid) && OidIsValid(entry->hash_proc_finfo.fn_oid);
    if (ordered && hashed) return;
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                    errmsg("ids of type %s cannot be compared", format_type_be(type)),
                    errdetail("The type has no default operator class for access method \"%s\".",
                              ordered ? "hash" : "btree"),
                    errhint("Cast the ids to another type in the inner query, such as text.")));
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const Oid id_type = id_type_argument(given);
    const std::size_t k = given.is_null("k") ? PartialAnswers::kAll : given.count("k");
    check_type(id_type);
    const InnerQuery query{given.text("partial_answers"), id_type};
    SetCall set(fcinfo, "knn_merge");
    auto* const work = make_owned<MergeComputation>(set.context(), set.context(),
                                                    id_type_of(id_type), k, host_memory_limit());
    AnswerReceiver receiver(work->rows);
    run_inner_query(query, receiver);
    work->rows.queries.release();
    order_rows(*work);
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    put_neighbors(*work, set);
    work->rows.query_ids.release();
    work->rows.item_ids.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_knn_merge);
PG_FUNCTION_INFO_V1(gputext_knn_merge_typed);

PGDLLEXPORT Datum gputext_knn_merge(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}

PGDLLEXPORT Datum gputext_knn_merge_typed(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}

PGDLLEXPORT RowReducer* gputext_knn_merge_reducer(const void* given, unsigned processes) {
    MergeRequest request;
    std::memcpy(&request, given, sizeof request);
    auto* const reducer = make_owned<MergeReducer>(
        CurrentMemoryContext, request, CurrentMemoryContext, request.memory_limit / processes);
    reducer->begin();
    return reducer;
}
}
