#include "extension/queries/repeated_scan.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "portability/instr_time.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <utility>

#include "extension/base/failure.hpp"
#include "extension/queries/scan_condition.hpp"
#include "extension/server/settings.hpp"
#include "extension/values/row_versions.hpp"

namespace gputext {

bool may_be_repeated(Oid relation) {
    if (scan_memory() == 0 || IsolationIsSerializable() || IsParallelWorker()) return false;
    const Relation table = table_open(relation, NoLock);
    const bool may = TableState::may_be_noted(table);
    table_close(table, NoLock);
    return may;
}

void RepeatedScan::set(const WholeScan& scan) {
    const MemoryContext before = MemoryContextSwitchTo(context_);
    scan_ = scan;
    scan_.conditions = static_cast<List*>(copyObjectImpl(scan.conditions));
    MemoryContextSwitchTo(before);
}

bool RepeatedScan::find(Oid id_type) {
    earlier_ = remembered_scan(scan_, id_type);
    return earlier_ != nullptr;
}

bool RepeatedScan::find_by_place() {
    earlier_ = remembered_rows(scan_);
    return earlier_ != nullptr;
}

/// The rows of the tuples that were added. False where one of their ids is null, which is an error
/// of the scan.
bool RepeatedScan::read_added(Relation table, IdOf id_of, const void* context) {
    for (std::size_t i = 0; i < found_.added.size(); ++i) {
        const HeapTuple tuple = found_.added[i];
        bool null = false, null_id = false;
        const Datum value = heap_getattr(tuple, scan_.value, RelationGetDescr(table), &null);
        Datum id = Int64GetDatum(number_of_place(tuple->t_self));
        if (id_of != nullptr)
            id = id_of(heap_getattr(tuple, scan_.id, RelationGetDescr(table), &null_id), context);
        if (null_id) return false;
        if (null) {
            ++nulls_;
            continue;
        }
        AddedRow row{id, value};
        for (std::size_t k = 0; k < scan_.keys.size(); ++k)
            if (scan_.keys[k] != InvalidAttrNumber)
                row.keys[k].value = heap_getattr(tuple, scan_.keys[k], RelationGetDescr(table),
                                                 &row.keys[k].isnull);
        append_or_raise(added_, row);
    }
    return true;
}

bool RepeatedScan::compare(Relation table, IdOf id_of, const void* context) {
    TableState& now = now_->state;
    if (!earlier_->definition->holds(table)) return false;
    now.note(table);
    if (!now.compare(earlier_->state)) return false;
    if (now.pages_to_read().empty()) return true;
    if (earlier_->by_page == nullptr) return false;
    ScanCondition condition;
    const bool has_condition = scan_.conditions != NIL;
    if (has_condition) condition.open(table, scan_.conditions);
    const bool few = find_changes(table, now, *earlier_->by_page,
                                  has_condition ? &condition : nullptr, found_);
    if (has_condition) condition.close();
    nulls_ -= found_.removed_nulls;
    return few && read_added(table, id_of, context);
}

bool RepeatedScan::read_changes(IdOf id_of, const void* context) {
    instr_time begin, end;
    INSTR_TIME_SET_CURRENT(begin);
    attempt_or_raise([&] { now_ = std::make_shared<RememberedScan>(); });
    nulls_ = earlier_->nulls;
    const Relation table = table_open(scan_.relation, NoLock);
    const bool known = compare(table, id_of, context);
    table_close(table, NoLock);
    if (!known) {
        forget_scan(*earlier_);
        return false;
    }
    std::sort(found_.removed.data(), found_.removed.data() + found_.removed.size());
    INSTR_TIME_SET_CURRENT(end);
    INSTR_TIME_SUBTRACT(end, begin);
    ms_ = INSTR_TIME_GET_MILLISEC(end);
    return true;
}

void RepeatedScan::taken() {
    TableState& now = now_->state;
    if (now.pages_to_read().empty())
        ereport(DEBUG1, (errmsg("took the rows of an earlier scan: none of %u pages has changed, "
                                "as was found in %.2f ms",
                                now.pages(), ms_)));
    else
        ereport(DEBUG1, (errmsg("took the rows of an earlier scan: of %u pages %zu were read, "
                                "which have %zu new rows and have lost %zu, in %.2f ms",
                                now.pages(), now.pages_to_read().size(), added_.size(),
                                found_.removed.size(), ms_)));
    now.set_differing(std::move(found_.pages));
    if (!now.needs_fewer_pages()) return;
    now_->scan = earlier_->scan;
    now_->definition = earlier_->definition;
    now_->id_type = earlier_->id_type;
    now_->by_page = earlier_->by_page;
    now_->nulls = earlier_->nulls;
    now_->rows = earlier_->rows;
    attempt_or_raise([&] { remember_scan(now_, scan_memory()); });
}

void RepeatedScan::note_state() {
    attempt_or_raise([&] { now_ = std::make_shared<RememberedScan>(); });
    const Relation table = table_open(scan_.relation, NoLock);
    now_->state.note(table);
    table_close(table, NoLock);
}

/// Sets by which pages the rows lie on, if there is memory for it.
void RepeatedScan::set_pages(Relation table, const Found& found) {
    if (found.places.size() != found.rows->ids.size ||
        static_cast<std::int64_t>(found.nulls.size()) != found.null_rows)
        return;
    const BlockNumber pages = now_->state.pages();
    attempt_or_raise([&] { pages_ = std::make_shared<RowsByPage>(); });
    pages_->set({found.places, found.nulls, {}}, pages, horizon());
    if (pages_->known() && scan_.conditions != NIL) {
        find_left_out(table, *pages_, pages, left_out_);
        pages_->set({found.places, found.nulls, {left_out_.data(), left_out_.size()}}, pages,
                    horizon());
        left_out_.clear();
    }
    if (pages_->known()) now_->by_page = pages_;
    if (now_->memory() > scan_memory()) now_->by_page.reset();
}

void RepeatedScan::remember(const Found& found) {
    if (found.rows == nullptr) return;
    now_->scan = scan_;
    now_->id_type = found.id_type;
    now_->rows = found.rows;
    now_->nulls = found.null_rows;
    attempt_or_raise([&] { definition_ = std::make_shared<ScanDefinition>(); });
    const Relation table = table_open(scan_.relation, NoLock);
    definition_->keep(table, scan_.conditions);
    now_->definition = definition_;
    now_->scan.conditions = definition_->conditions();
    set_pages(table, found);
    table_close(table, NoLock);
    if (now_->by_page == nullptr && !now_->state.needs_no_pages()) return;
    attempt_or_raise([&] { remember_scan(now_, scan_memory()); });
}

}  // namespace gputext
