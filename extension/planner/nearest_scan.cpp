#include "extension/base/postgres.hpp"

extern "C" {
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"
}

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/planner/nearest_explain.hpp"
#include "extension/planner/nearest_items.hpp"
#include "extension/planner/nearest_of_one.hpp"
#include "extension/planner/nearest_plan.hpp"
#include "extension/planner/nearest_search.hpp"
#include "extension/planner/query_value.hpp"
#include "extension/server/settings.hpp"

// The node reads outer rows in batches. It keeps them, computes their vectors, and searches for all
// of them at once; then it gives the rows of one outer row after the other. The items are read when
// the first outer row is there, and stay until the node ends, rescans included. Where the outer
// rows have one vector and the distance is exact, its nearest items are found while items are read,
// and stay in their place, unless the session remembers the items or is going to. An outer row that
// cannot be answered so is answered by the inner side of the loop below the node
// (nearest_plan.hpp), as that loop would have it.

namespace gputext {
namespace {

/// No batch has more outer rows.
constexpr std::size_t kMostRows = std::size_t{1} << 20;
/// A batch may take these parts of gputext.host_memory_limit for its queries, and for what is
/// found.
constexpr std::size_t kPartOfQueries = 4, kPartOfFound = 8;

class NearestScan {
public:
    NearestScan(CustomScanState* node, const NearestPlan& plan, MemoryContext context)
        : node_(node), plan_(plan), context_(context) {}

    void begin(EState* estate, int flags);
    /// The next row, as the node's scan has it; null behind the last one.
    TupleTableSlot* next();
    void rescan();
    /// Ends the parallel workers of the loop's inner side; the executor sees the outer side itself.
    void shut_down() { ExecShutdownNode(ordinary()); }
    void end();
    void explain(List* ancestors, ExplainState* explain) const;

private:
    EState* estate() const { return node_->ss.ps.state; }
    PlanState* outer() const { return outerPlanState(loop_); }
    PlanState* ordinary() const { return innerPlanState(loop_); }

    void set_limits();
    std::optional<int64> evaluate(Node* expression);
    void make_items_ready();
    void read_items();
    std::size_t most_rows() const;
    bool has_room_for_trigrams() const {
        return batch_.trigrams.symbols.size() * sizeof(std::uint32_t) <=
               host_memory_limit() / kPartOfQueries;
    }
    bool read_batch();
    std::uint32_t key_of_outer();
    std::int64_t number_of_query();
    bool append_vector();
    bool append_text();
    std::int64_t number_of_one_query();
    bool finds_of_one() const { return k_ > 0 && !keeps_items_; }
    const PlannedStmt* item_plan() const { return statement_of_items(plan_, keeps_items_); }
    void search();
    bool next_outer();
    TupleTableSlot* show_item(const NearestItem& item);
    TupleTableSlot* show_ordinary(TupleTableSlot* given);
    TupleTableSlot* show_nothing();
    TupleTableSlot* next_of_outer();
    void copy_outer(TupleTableSlot* row) const;
    void begin_ordinary();
    void forget_batch();

    CustomScanState* node_;
    NearestPlan plan_;
    MemoryContext context_;
    int flags_ = 0;              // of the node's begin
    PlanState* loop_ = nullptr;  // below the node
    ItemStatement item_statement_;
    ExprContext* expressions_ = nullptr;
    QueryValue query_{};
    List* keys_ = NIL;                 // ExprStates
    List* shown_ = NIL;                // ExprStates
    TupleTableSlot* item_ = nullptr;   // columns of the item query, and the distance
    TupleTableSlot* outer_ = nullptr;  // the outer row at work
    int outer_columns_ = 0;

    bool keeps_items_ = false;  // in items_
    bool limits_known_ = false;
    std::size_t k_ = 0;  // with the offset; 0 where the ordinary query answers all
    std::size_t offset_ = 0;

    NearestItems* items_ = nullptr;   // null before the first outer row
    NearestOfOne* of_one_ = nullptr;  // the same, in the place of items_

    /// In the place of a query: there are no items to compare the outer row with.
    static constexpr std::int64_t kNothing = -2;

    Tuplestorestate* rows_ = nullptr;     // outer rows of the batch
    std::vector<std::int64_t> query_of_;  // of these, by place; kOrdinary or kNothing for others
    NearestBatch batch_;
    bool outer_ended_ = false;
    std::size_t place_ = 0;  // of the outer row at work in the batch, from 1
    std::size_t rank_ = 0;   // what is given next of it
    bool given_ = false;     // whether a row was given of it
    bool at_work_ = false;
    bool is_ordinary_ = false;  // whether the loop's inner side answers it

    NearestRun run_;
};

/// Adds the time since its making.
class Lap {
public:
    explicit Lap(double& ms) : ms_(ms) { INSTR_TIME_SET_CURRENT(begin_); }
    void end() {
        instr_time now;
        INSTR_TIME_SET_CURRENT(now);
        INSTR_TIME_SUBTRACT(now, begin_);
        ms_ += INSTR_TIME_GET_MILLISEC(now);
    }

private:
    double& ms_;
    instr_time begin_;
};

/// Columns of the item query before its vector, and the distance.
TupleDesc item_columns(const NearestPlan& plan) {
    const TupleDesc columns = CreateTemplateTupleDesc(plan.columns + 1);
    int number = 0;
    ListCell* cell;
    foreach (cell, plan.items->planTree->targetlist) {
        const auto* const entry = static_cast<const TargetEntry*>(lfirst(cell));
        if (number == plan.columns) break;
        const auto* const value = reinterpret_cast<const Node*>(entry->expr);
        TupleDescInitEntry(columns, static_cast<AttrNumber>(++number), nullptr, exprType(value),
                           exprTypmod(value), 0);
    }
    TupleDescInitEntry(columns, static_cast<AttrNumber>(plan.columns + 1), nullptr,
                       plan.distance.result(), -1, 0);
    return columns;
}

void NearestScan::begin(EState* estate, int flags) {
    flags_ = flags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
    auto* const scan = reinterpret_cast<CustomScan*>(node_->ss.ps.plan);
    loop_ = ExecInitNode(static_cast<Plan*>(linitial(scan->custom_plans)), estate, flags_);
    node_->custom_ps = list_make1(outer());
    PushActiveSnapshot(estate->es_snapshot);
    keeps_items_ = !gputext::finds_of_one(plan_) ||
                   are_worth_keeping(plan_, estate->es_param_list_info);
    PopActiveSnapshot();
    item_statement_.start(item_plan(), estate, flags_);
    const TupleDesc outer_row = ExecGetResultType(outer());
    outer_columns_ = outer_row->natts;
    outer_ = ExecInitExtraTupleSlot(estate, outer_row, &TTSOpsMinimalTuple);
    item_ = ExecInitExtraTupleSlot(estate, item_columns(plan_), &TTSOpsVirtual);
    expressions_ = CreateExprContext(estate);
    query_ = {plan_.distance.type, ExecInitExprWithParams(plan_.query, estate->es_param_list_info),
              expressions_};
    ListCell* cell;
    foreach (cell, plan_.keys)
        keys_ = lappend(keys_, ExecInitExprWithParams(static_cast<Expr*>(lfirst(cell)),
                                                      estate->es_param_list_info));
    foreach (cell, plan_.shown)
        shown_ = lappend(shown_, ExecInitExprWithParams(static_cast<Expr*>(lfirst(cell)),
                                                        estate->es_param_list_info));
}

std::optional<int64> NearestScan::evaluate(Node* expression) {
    ExprState* const state =
        ExecInitExprWithParams(reinterpret_cast<Expr*>(expression), estate()->es_param_list_info);
    bool null = false;
    const Datum value = ExecEvalExprSwitchContext(state, expressions_, &null);
    if (null) return std::nullopt;
    return DatumGetInt64(value);
}

/// Leaves k at 0 for limits that give no rows, all of them, or an error: the ordinary query does
/// that as ever.
void NearestScan::set_limits() {
    if (limits_known_) return;
    limits_known_ = true;
    const std::optional<int64> limit = evaluate(plan_.limit);
    const std::optional<int64> offset = plan_.offset == nullptr ? int64{0} : evaluate(plan_.offset);
    if (!limit || *limit < 1 || *limit > PG_INT32_MAX) return;
    const int64 skipped = offset.value_or(0);
    if (skipped < 0 || skipped > PG_INT32_MAX) return;
    offset_ = static_cast<std::size_t>(skipped);
    k_ = static_cast<std::size_t>(*limit) + offset_;
}

/// The library may have been replaced since the node began.
void NearestScan::make_items_ready() {
    if (item_statement_.description()->plannedstmt != item_plan())
        item_statement_.start(item_plan(), estate(), flags_);
}

void NearestScan::read_items() {
    if (items_ != nullptr || k_ == 0) return;
    Lap lap(run_.reading_ms);
    NearestItems* const items = make_owned<NearestItems>(context_, context_, host_memory_limit());
    make_items_ready();
    items->read(plan_, item_statement_);
    items_ = items;
    run_.items = items->size();
    run_.remembered = items->remembered();
    lap.end();
}

/// Outer rows of a batch.
std::size_t NearestScan::most_rows() const {
    const std::size_t limit = host_memory_limit();
    const std::size_t query =
        items_->vectors.dimensions() * element_size(plan_.distance.type.element);
    const std::size_t found = std::min(searched_for(plan_, k_), items_->vectors.size()) *
                              (2 * kBytesOfNeighbor + sizeof(NearestItem));
    return std::clamp<std::size_t>(
        std::min(limit / kPartOfQueries / (query + 1), limit / kPartOfFound / (found + 1)), 1,
        kMostRows);
}

/// The number among the queries of the batch for the row that was read, or what else answers it.
/// Its vector or text is computed only where there are items to compare it with.
std::int64_t NearestScan::number_of_query() {
    if (k_ == 0 || !items_->searchable()) return NearestBatch::kOrdinary;
    const std::uint32_t key = items_->keyed() && !items_->empty() ? key_of_outer() : kNoKey;
    const RowsOfKey rows = items_->rows_of(key);
    if (rows.items == 0) return rows.nulls == 0 ? kNothing : NearestBatch::kOrdinary;
    if (!(plan_.distance.trigrams ? append_text() : append_vector()))
        return NearestBatch::kOrdinary;
    if (items_->keyed()) attempt_or_raise([&] { batch_.keys.push_back(key); });
    return static_cast<std::int64_t>(batch_.queries++);
}

/// The vector of the row that was read, to the batch. False where it cannot be searched.
bool NearestScan::append_vector() {
    const std::optional<VectorValue> vector = query_.vector();
    if (!vector || vector->dimensions != items_->vectors.dimensions()) return false;
    const auto* const bytes = static_cast<const std::uint8_t*>(vector->elements);
    const std::size_t size = vector->stored * element_size(plan_.distance.type.element);
    attempt_or_raise([&] { batch_.elements.insert(batch_.elements.end(), bytes, bytes + size); });
    return true;
}

/// The same of the trigrams of its text.
bool NearestScan::append_text() {
    const std::optional<Datum> text = query_.compute();
    if (!text || is_long_text(*text)) return false;
    const MemoryContext before = MemoryContextSwitchTo(expressions_->ecxt_per_tuple_memory);
    const std::span<const std::uint32_t> trigrams = items_->reader().read(*text);
    MemoryContextSwitchTo(before);
    attempt_or_raise([&] { batch_.trigrams.append(trigrams); });
    return true;
}

/// The number of the key of the row that was read.
std::uint32_t NearestScan::key_of_outer() {
    const MemoryContext before = MemoryContextSwitchTo(expressions_->ecxt_per_tuple_memory);
    const int count = list_length(keys_);
    auto* const values = static_cast<Datum*>(palloc(sizeof(Datum) * count));
    auto* const nulls = static_cast<bool*>(palloc(sizeof(bool) * count));
    for (int i = 0; i < count; ++i)
        values[i] =
            ExecEvalExpr(static_cast<ExprState*>(list_nth(keys_, i)), expressions_, &nulls[i]);
    const std::uint32_t number = items_->keys.number_of(values, nulls);
    MemoryContextSwitchTo(before);
    return number;
}

/// The same where the vector is the only one: finds its nearest items with the first outer row.
std::int64_t NearestScan::number_of_one_query() {
    if (of_one_ == nullptr) {
        Lap lap(run_.reading_ms);
        of_one_ = make_owned<NearestOfOne>(context_, plan_, k_, context_,
                                           host_memory_limit() / kPartOfFound);
        make_items_ready();
        of_one_->find(query_, item_statement_);
        run_.items = of_one_->items();
        lap.end();
        ++run_.queries;
        ++run_.searches.on_cpu;
    }
    if (!of_one_->answered()) return NearestBatch::kOrdinary;
    attempt_or_raise([&] {
        batch_.begins.push_back(batch_.found.size());
        batch_.counts.push_back(static_cast<std::int64_t>(of_one_->found().size()));
        batch_.found.insert(batch_.found.end(), of_one_->found().begin(), of_one_->found().end());
    });
    return static_cast<std::int64_t>(batch_.queries++);
}

/// Reads outer rows, and the items with the first one. False where there are no more.
bool NearestScan::read_batch() {
    forget_batch();
    std::size_t most = 1;
    while (!outer_ended_ && query_of_.size() < most && has_room_for_trigrams()) {
        CHECK_FOR_INTERRUPTS();
        TupleTableSlot* const row = ExecProcNode(outer());
        if (TupIsNull(row)) {
            outer_ended_ = true;
            break;
        }
        const MemoryContext before = MemoryContextSwitchTo(context_);
        set_limits();
        if (!finds_of_one()) {
            read_items();
            if (most == 1 && k_ > 0) most = most_rows();
        }
        if (rows_ == nullptr) rows_ = tuplestore_begin_heap(false, false, work_mem);
        tuplestore_puttupleslot(rows_, row);
        ResetExprContext(expressions_);
        expressions_->ecxt_outertuple = row;
        const std::int64_t query = finds_of_one() ? number_of_one_query() : number_of_query();
        attempt_or_raise([&] { query_of_.push_back(query); });
        MemoryContextSwitchTo(before);
    }
    if (query_of_.empty()) return false;
    search();
    return true;
}

void NearestScan::search() {
    if (batch_.queries == 0 || of_one_ != nullptr) return;
    run_.queries += batch_.queries;
    Lap lap(run_.searching_ms);
    const MemoryContext before = MemoryContextSwitchTo(context_);
    search_nearest(plan_, *items_, k_, batch_, run_.searches);
    MemoryContextSwitchTo(before);
    lap.end();
}

/// Goes on to the next outer row.
bool NearestScan::next_outer() {
    while (place_ == query_of_.size())
        if (!read_batch()) return false;
    tuplestore_gettupleslot(rows_, true, false, outer_);
    ++place_;
    rank_ = offset_;
    given_ = false;
    at_work_ = true;
    const std::int64_t query = query_of_[place_ - 1];
    is_ordinary_ = query == NearestBatch::kOrdinary ||
                   (query != kNothing &&
                    batch_.counts[static_cast<std::size_t>(query)] == NearestBatch::kOrdinary);
    if (is_ordinary_) begin_ordinary();
    return true;
}

/// Has the inner side of the loop begin with the outer row at work.
void NearestScan::begin_ordinary() {
    ++run_.ordinary;
    ListCell* cell;
    foreach (cell, reinterpret_cast<const NestLoop*>(loop_->plan)->nestParams) {
        const auto* const given = static_cast<const NestLoopParam*>(lfirst(cell));
        ParamExecData& parameter = estate()->es_param_exec_vals[given->paramno];
        parameter.value = slot_getattr(outer_, given->paramval->varattno, &parameter.isnull);
        ordinary()->chgParam = bms_add_member(ordinary()->chgParam, given->paramno);
    }
    ExecReScan(ordinary());
}

/// Begins a row of the node with the outer row's columns.
void NearestScan::copy_outer(TupleTableSlot* row) const {
    ExecClearTuple(row);
    slot_getallattrs(outer_);
    std::copy_n(outer_->tts_values, outer_columns_, row->tts_values);
    std::copy_n(outer_->tts_isnull, outer_columns_, row->tts_isnull);
}

TupleTableSlot* NearestScan::show_item(const NearestItem& item) {
    TupleTableSlot* const row = node_->ss.ss_ScanTupleSlot;
    copy_outer(row);
    ExecClearTuple(item_);
    if (of_one_ != nullptr)
        of_one_->get(item.item, item_);
    else
        items_->get(item.item, item_);
    item_->tts_values[plan_.columns] = plan_.distance.result() == FLOAT4OID
                                           ? Float4GetDatum(static_cast<float4>(item.distance))
                                           : Float8GetDatum(item.distance);
    item_->tts_isnull[plan_.columns] = false;
    ExecStoreVirtualTuple(item_);
    ResetExprContext(expressions_);
    expressions_->ecxt_outertuple = outer_;
    expressions_->ecxt_innertuple = item_;
    int column = outer_columns_;
    ListCell* cell;
    foreach (cell, shown_) {
        row->tts_values[column] = ExecEvalExprSwitchContext(static_cast<ExprState*>(lfirst(cell)),
                                                            expressions_, &row->tts_isnull[column]);
        ++column;
    }
    return ExecStoreVirtualTuple(row);
}

TupleTableSlot* NearestScan::show_ordinary(TupleTableSlot* given) {
    TupleTableSlot* const row = node_->ss.ss_ScanTupleSlot;
    copy_outer(row);
    int column = outer_columns_;
    ListCell* cell;
    foreach (cell, plan_.ordinary) {
        bool& null = row->tts_isnull[column];
        null = lfirst_int(cell) == 0;
        row->tts_values[column++] = null ? Datum{0} : slot_getattr(given, lfirst_int(cell), &null);
    }
    return ExecStoreVirtualTuple(row);
}

/// Of an outer join.
TupleTableSlot* NearestScan::show_nothing() {
    TupleTableSlot* const row = node_->ss.ss_ScanTupleSlot;
    copy_outer(row);
    const int count = list_length(shown_);
    std::fill_n(row->tts_values + outer_columns_, count, Datum{0});
    std::fill_n(row->tts_isnull + outer_columns_, count, true);
    return ExecStoreVirtualTuple(row);
}

/// The next row of the outer row at work; null behind its last one.
TupleTableSlot* NearestScan::next_of_outer() {
    if (is_ordinary_) {
        TupleTableSlot* const given = ExecProcNode(ordinary());
        return TupIsNull(given) ? nullptr : show_ordinary(given);
    }
    if (query_of_[place_ - 1] == kNothing) return nullptr;
    const auto query = static_cast<std::size_t>(query_of_[place_ - 1]);
    if (rank_ >= static_cast<std::size_t>(batch_.counts[query])) return nullptr;
    return show_item(batch_.found[batch_.begins[query] + rank_++]);
}

TupleTableSlot* NearestScan::next() {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        if (!at_work_ && !next_outer()) return nullptr;
        if (TupleTableSlot* const row = next_of_outer()) {
            given_ = true;
            return row;
        }
        at_work_ = false;
        if (plan_.outer_join && !given_) return show_nothing();
    }
}

void NearestScan::forget_batch() {
    if (rows_ != nullptr) tuplestore_end(rows_);
    rows_ = nullptr;
    query_of_.clear();
    batch_.clear();
    place_ = 0;
    at_work_ = false;
}

void NearestScan::rescan() {
    ExecClearTuple(outer_);
    forget_batch();
    outer_ended_ = false;
    if (node_->ss.ps.chgParam != nullptr) UpdateChangedParamSet(loop_, node_->ss.ps.chgParam);
    ExecReScan(loop_);
}

void NearestScan::end() {
    ExecClearTuple(outer_);
    forget_batch();
    if (items_ != nullptr) items_->release();
    item_statement_.release();
    ExecEndNode(loop_);
}

void NearestScan::explain(List* ancestors, ExplainState* explain) const {
    explain_nearest(plan_, node_, ancestors, explain->analyze ? &run_ : nullptr,
                    item_statement_.description(), explain);
}

// ---- What the executor calls ----

/// The executor knows the first member only.
struct NearestState {
    CustomScanState node;
    NearestScan* scan;  // null before BeginCustomScan
};

NearestScan& scan_of(CustomScanState* node) {
    return *reinterpret_cast<NearestState*>(node)->scan;
}

void begin_scan(CustomScanState* node, EState* estate, int flags) {
    const MemoryContext context =
        AllocSetContextCreate(estate->es_query_cxt, "gputext nearest", ALLOCSET_DEFAULT_SIZES);
    const NearestPlan plan =
        read_nearest_plan(reinterpret_cast<CustomScan*>(node->ss.ps.plan)->custom_private);
    reinterpret_cast<NearestState*>(node)->scan =
        make_owned<NearestScan>(context, node, plan, context);
    scan_of(node).begin(estate, flags);
}

TupleTableSlot* next_row(ScanState* node) {
    return scan_of(reinterpret_cast<CustomScanState*>(node)).next();
}

/// Not called: statements that read rows again have no such node.
bool same_row(ScanState*, TupleTableSlot*) {
    return true;
}

TupleTableSlot* execute_scan(CustomScanState* node) {
    return ExecScan(&node->ss, next_row, same_row);
}

void end_scan(CustomScanState* node) {
    scan_of(node).end();
}

void rescan(CustomScanState* node) {
    ExecScanReScan(&node->ss);
    scan_of(node).rescan();
}

void shut_scan_down(CustomScanState* node) {
    scan_of(node).shut_down();
}

void explain_scan(CustomScanState* node, List* ancestors, ExplainState* explain) {
    scan_of(node).explain(ancestors, explain);
}

constexpr CustomExecMethods executor_methods() {
    CustomExecMethods methods{};
    methods.CustomName = kNearestName;
    methods.BeginCustomScan = begin_scan;
    methods.ExecCustomScan = execute_scan;
    methods.EndCustomScan = end_scan;
    methods.ReScanCustomScan = rescan;
    methods.ShutdownCustomScan = shut_scan_down;
    methods.ExplainCustomScan = explain_scan;
    return methods;
}

constexpr CustomExecMethods kExecMethods = executor_methods();

}  // namespace

Node* new_nearest_scan(CustomScan*) {
    auto* const state =
        reinterpret_cast<NearestState*>(newNode(sizeof(NearestState), T_CustomScanState));
    state->node.methods = &kExecMethods;
    return reinterpret_cast<Node*>(state);
}

}  // namespace gputext
