#include "extension/planner/nearest_items.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
}

#include <algorithm>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/queries/bundle_plan.hpp"
#include "extension/queries/remembered_scans.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/daemon.hpp"
#include "extension/server/release.hpp"
#include "extension/server/session_job.hpp"
#include "extension/server/settings.hpp"

namespace gputext {

namespace {

/// A worker that loads another build of the library would write other bundles.
bool takes_bundles(const NearestPlan& plan) {
    return plan.bundles != nullptr && !module_is_replaced();
}

/// The scan that the item query is, where its rows can be known by their places.
WholeScan scan_of_items(const NearestPlan& plan, ParamListInfo parameters) {
    if (plan.keys != NIL || plan.distance.trigrams || !plan.table.has_places() ||
        plan.table.with_children)
        return {};
    for (int column = 1; column <= plan.columns; ++column)
        if (column_of_scan(plan.items, static_cast<AttrNumber>(column)) == InvalidAttrNumber)
            return {};
    const WholeScan scan = whole_scan_of(plan.items, WholeScan::kPlace,
                                         static_cast<AttrNumber>(plan.columns + 1), parameters);
    return scan.known() && may_be_repeated(scan.relation) ? scan : WholeScan();
}

/// A smaller table is not worth a question to gputextd.
constexpr std::uint64_t kWorthKeeping = 16 << 20;

/// Whether the session and gputextd may hold as much as the table has.
bool may_be_kept(Oid relation) {
    const Relation table = table_open(relation, NoLock);
    const Oid toast_table = table->rd_rel->reltoastrelid;
    std::uint64_t pages = RelationGetNumberOfBlocks(table);
    table_close(table, NoLock);
    if (OidIsValid(toast_table)) {
        const Relation toast = table_open(toast_table, AccessShareLock);
        pages += RelationGetNumberOfBlocks(toast);
        table_close(toast, AccessShareLock);
    }
    const std::uint64_t bytes = pages * BLCKSZ;
    return bytes >= kWorthKeeping &&
           bytes <= std::min<std::uint64_t>(host_memory_limit(), resident_memory());
}

/// Tables whose items were read to be kept and could not be, as while a long transaction runs: for
/// a while they are not read so again.
class NotKept {
public:
    void add(Oid relation) { tables_[next_++ % kMost] = {relation, GetCurrentTimestamp()}; }
    bool has(Oid relation) const {
        for (const Table& table : tables_)
            if (table.relation == relation &&
                !TimestampDifferenceExceeds(table.since, GetCurrentTimestamp(), kMilliseconds))
                return true;
        return false;
    }

private:
    struct Table {
        Oid relation = InvalidOid;
        TimestampTz since = 0;
    };
    static constexpr std::size_t kMost = 16;
    static constexpr int kMilliseconds = 10000;

    Table tables_[kMost];
    std::size_t next_ = 0;
};

NotKept not_kept;

/// The norms of vectors that gputextd keeps under a name, which are always the same.
class KnownNorms {
public:
    const NormRange* find(std::uint64_t resident) const {
        for (const Known& known : known_)
            if (known.resident == resident) return &known.norms;
        return nullptr;
    }
    /// In the place of the oldest.
    void add(std::uint64_t resident, const NormRange& norms) {
        known_[next_++ % kMost] = {resident, norms};
    }

private:
    struct Known {
        std::uint64_t resident = 0;
        NormRange norms;
    };
    static constexpr std::size_t kMost = 32;

    Known known_[kMost];
    std::size_t next_ = 0;
};

KnownNorms known_norms;

NormRange norms_of(const Vectors& vectors) {
    NormRange norms;
    NormRange* const found = &norms;
    run_threaded([&vectors, found](Execution& execution) -> Status {
        const Result<NormRange> range = norm_range(vectors, execution);
        if (!range.ok()) return range.status();
        *found = *range;
        return {};
    });
    return norms;
}

}  // namespace

/// Takes the rows of the item query.
class NearestItems::Taker final : public RowTaker {
public:
    Taker(NearestItems& items, const NearestPlan& plan) : items_(items), plan_(plan) {}

    bool take(const ExecutedRow& row) override {
        items_.take(row, plan_);
        return true;
    }

private:
    NearestItems& items_;
    const NearestPlan& plan_;
};

InnerQueryTraits NearestItems::traits(const NearestPlan& plan) const {
    return {!by_place(), plan.parallel_safe};
}

void NearestItems::keep_columns(const ExecutedRow& row) {
    const MinimalTuple tuple = form_minimal_tuple(columns_, row.values, row.nulls);
    append_or_raise(begins_, std::uint64_t{rows_.size()});
    rows_.append(tuple, tuple->t_len);
    constexpr std::uint8_t kNothing[MAXIMUM_ALIGNOF] = {};
    rows_.append(kNothing, MAXALIGN(tuple->t_len) - tuple->t_len);
}

void NearestItems::take(const ExecutedRow& row, const NearestPlan& plan) {
    const bool null = row.nulls[plan.columns];
    const int first_key = plan.columns + 1;
    const ItemPointerData& place = row.origin.place.row;
    if (by_place() && !row.origin.place.known())
        elog(ERROR, "a row of table %u has no place", repeated_.scan().relation);
    if (keyed_) keys.add_item(row.values + first_key, row.nulls + first_key, !null);
    if (null) {
        ++nulls_;
        if (by_place()) append_or_raise(null_places_, place);
        return;
    }
    if (plan.columns > 0 && !by_place()) keep_columns(row);
    const std::int64_t number =
        by_place() ? number_of_place(place) : static_cast<std::int64_t>(vectors.size());
    vectors.collect(Int64GetDatum(number), {row.values + plan.columns, 1}, traits(plan),
                    row.origin);
    show_rows_so_far(vectors.size(), [this] { return vectors.bytes() + rows_.size(); });
}

/// Finds out whether the bound holds.
void NearestItems::measure(const NearestPlan& plan) {
    if (plan.distance.exact || !searchable_) return;
    const std::uint64_t resident = vectors.files().resident;
    const NormRange* const known = resident == 0 ? nullptr : known_norms.find(resident);
    norms_ = known != nullptr ? *known : norms_of(vectors.view());
    if (known == nullptr && resident != 0) known_norms.add(resident, norms_);
    if (vectors.added() != nullptr) {
        const NormRange added = norms_of(vectors.added()->view());
        norms_.least = std::min(norms_.least, added.least);
        norms_.largest = std::max(norms_.largest, added.largest);
    }
    searchable_ = norms_.fits();
}

bool NearestItems::read_trigrams() {
    // pg_trgm may have lost it since the plan was made.
    const Oid function = trigram_function();
    if (!OidIsValid(function)) return false;
    const MemoryContext before = MemoryContextSwitchTo(context_);
    reader_.emplace(function);
    MemoryContextSwitchTo(before);
    return read_trigrams_if_they_fit(*reader_, kLongestText, vectors, trigrams);
}

void NearestItems::set_key_types(const NearestPlan& plan, TupleDesc columns) {
    keyed_ = plan.keys != NIL;
    if (!keyed_) return;
    auto* const types = make_owned<std::vector<Oid>>(CurrentMemoryContext);
    attempt_or_raise([&] {
        for (int i = 0; i < list_length(plan.keys); ++i)
            types->push_back(TupleDescAttr(columns, plan.columns + 1 + i)->atttypid);
    });
    for (Oid& type : *types) type = getBaseType(type);
    keys.set_types(*types);
}

const PlannedStmt* statement_of_items(const NearestPlan& plan, bool kept) {
    return takes_bundles(plan) &&
                   (kept || !finds_of_one(plan) || plan.items->planTree->plan_rows < kFewestBundled)
               ? plan.bundles
               : plan.items;
}

bool are_worth_keeping(const NearestPlan& plan, ParamListInfo parameters) {
    const WholeScan scan = scan_of_items(plan, parameters);
    return scan.known() && value_store_is_ready() &&
           (remembered_rows(scan) != nullptr ||
            (!not_kept.has(scan.relation) && may_be_kept(scan.relation)));
}

/// Where rows can be known by their places: opens the table that they are read from.
void NearestItems::begin_places(const NearestPlan& plan, const EState* estate) {
    repeated_.set(scan_of_items(plan, estate->es_param_list_info));
    if (!repeated_.known()) return;
    for (int column = 1; column <= plan.columns; ++column)
        append_or_raise(table_columns_,
                        column_of_scan(plan.items, static_cast<AttrNumber>(column)));
    // The statement has locked it.
    table_ = table_open(repeated_.scan().relation, NoLock);
    snapshot_ = estate->es_snapshot;
    table_row_ = MakeSingleTupleTableSlot(RelationGetDescr(table_), table_slot_callbacks(table_));
    vectors.keep_places();
}

/// Whether the rows are those of an earlier scan and have been taken.
bool NearestItems::take_remembered() {
    forget_scans_beyond(scan_memory());
    if (!by_place() || !repeated_.find_by_place() || !repeated_.read_changes(nullptr, nullptr) ||
        !vectors.take_without_order(repeated_.earlier().rows, repeated_.changes()))
        return false;
    nulls_ = static_cast<std::uint64_t>(repeated_.nulls());
    repeated_.taken();
    show_rows(size(), vectors.bytes());
    return true;
}

/// Remembers the rows that were read.
void NearestItems::remember() {
    if (!by_place() || !searchable_) return;
    vectors.copy(scan_memory(), found_.rows);
    if (found_.rows == nullptr) return not_kept.add(repeated_.scan().relation);
    found_.id_type = INT8OID;
    found_.places = vectors.places();
    found_.nulls = {null_places_.data(), null_places_.size()};
    found_.null_rows = static_cast<std::int64_t>(nulls_);
    repeated_.note_state();
    repeated_.remember(found_);
}

/// Until ItemStatement::end().
void NearestItems::run(const NearestPlan& plan, ItemStatement& statement) {
    Taker taker(*this, plan);
    ExecutedRows rows(taker);
    const TupleDesc columns = columns_of_items(plan);
    columns_ = first_columns(columns, plan.columns);
    set_key_types(plan, columns);
    if (plan.table.known())
        rows.set_origins({plan.table, plan.columns + 1 + list_length(plan.keys)});
    if (statement.description()->plannedstmt == plan.bundles)
        rows.open_bundles(columns, bundled_value(plan));
    statement.run(rows.destination());
    rows.end();
    show_rows(vectors.size(), vectors.bytes() + rows_.size());
    if (plan.table.known() && !has_row_versions(plan.table)) vectors.forget_row_versions();
    rows_.finish();
    if (keyed_) keys.end_items();
    vectors.end_rows(traits(plan));
    searchable_ = plan.distance.trigrams ? read_trigrams() : vectors.read_vectors_if_alike();
    remember();
}

void NearestItems::read(const NearestPlan& plan, ItemStatement& statement) {
    const EState* const estate = statement.description()->estate;
    vectors.set_type(plan.distance.trigrams
                         ? VectorType{VectorType::Form::dense, ElementType::int32}
                         : plan.distance.type);
    PushActiveSnapshot(estate->es_snapshot);
    begin_places(plan, estate);
    remembered_ = searchable_ = take_remembered();
    PopActiveSnapshot();
    if (!remembered_) {
        run(plan, statement);
        statement.end();
    }
    measure(plan);
}

ItemPointerData NearestItems::place_of(std::size_t item) {
    if (item >= vectors.size() || !remembered_ || repeated_.earlier().scan.id == WholeScan::kPlace)
        return place_of_number(DatumGetInt64(vectors.id(item)));
    if (places_.empty()) repeated_.earlier().by_page->places_of_rows(places_);
    return places_[item];
}

void NearestItems::get(std::size_t item, TupleTableSlot* row) {
    if (by_place()) {
        if (table_columns_.empty()) return;
        ItemPointerData place = place_of(item);
        if (!table_tuple_fetch_row_version(table_, &place, snapshot_, table_row_))
            elog(ERROR, "a row of table %u has gone from its place", RelationGetRelid(table_));
        for (std::size_t i = 0; i < table_columns_.size(); ++i)
            row->tts_values[i] = slot_getattr(table_row_, table_columns_[i], &row->tts_isnull[i]);
        return;
    }
    if (columns_->natts == 0) return;
    get_columns(reinterpret_cast<const MinimalTupleData*>(rows_.data() + begins_[item]), columns_,
                row);
}

void NearestItems::release() {
    vectors.release();
    trigrams.release();
    keys.release();
    rows_.release();
    if (table_row_ != nullptr) ExecDropSingleTupleTableSlot(table_row_);
    table_row_ = nullptr;
    if (table_ != nullptr) table_close(table_, NoLock);
    table_ = nullptr;
}

}  // namespace gputext
