#include "extension/queries/remembered_scans.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace gputext {
namespace {

using Scans = std::vector<std::shared_ptr<const RememberedScan>>;

/// The one that was used last is at the end.
Scans& scans() {
    static Scans all;
    return all;
}

std::size_t memory() {
    std::size_t bytes = 0;
    for (const auto& other : scans()) bytes += other->memory();
    return bytes;
}

/// The one that was used last of those that are such; it is used now.
template <class Such>
std::shared_ptr<const RememberedScan> newest(const Such& such) {
    Scans& all = scans();
    const auto found =
        std::find_if(all.rbegin(), all.rend(), [&](const auto& other) { return such(*other); });
    if (found == all.rend()) return nullptr;
    const auto at = std::prev(found.base());
    std::rotate(at, at + 1, all.end());
    return all.back();
}

}  // namespace

void ScanDefinition::keep(Relation table, const List* conditions) {
    context_ = AllocSetContextCreate(TopMemoryContext, "gputext scan", ALLOCSET_SMALL_SIZES);
    const MemoryContext before = MemoryContextSwitchTo(context_);
    columns_ = CreateTupleDescCopyConstr(RelationGetDescr(table));
    conditions_ = static_cast<List*>(copyObjectImpl(conditions));
    MemoryContextSwitchTo(before);
    memory_ = MemoryContextMemAllocated(context_, false);
    const HeapTuple row = SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(table)));
    if (!HeapTupleIsValid(row)) return;
    version_ = HeapTupleHeaderGetRawXmin(row->t_data);
    place_ = row->t_self;
    ReleaseSysCache(row);
}

bool ScanDefinition::holds(Relation table) const {
    const HeapTuple row = SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(table)));
    if (!HeapTupleIsValid(row)) return false;
    const bool same = TransactionIdIsNormal(version_) &&
                      HeapTupleHeaderGetRawXmin(row->t_data) == version_ &&
                      ItemPointerEquals(&row->t_self, const_cast<ItemPointer>(&place_));
    ReleaseSysCache(row);
    return same && equalTupleDescs(columns_, RelationGetDescr(table));
}

ScanDefinition::~ScanDefinition() {
    if (context_ != nullptr) MemoryContextDelete(context_);
}

std::shared_ptr<const RememberedScan> remembered_scan(const WholeScan& scan, Oid id_type) {
    return newest(
        [&](const RememberedScan& other) { return other.scan == scan && other.id_type == id_type; });
}

std::shared_ptr<const RememberedScan> remembered_rows(const WholeScan& scan) {
    return newest([&](const RememberedScan& other) {
        return other.by_page != nullptr && other.scan.same_rows(scan);
    });
}

void remember_scan(std::shared_ptr<const RememberedScan> scan, std::size_t most) {
    Scans& all = scans();
    std::erase_if(all, [&](const auto& other) {
        return other->scan == scan->scan && other->id_type == scan->id_type;
    });
    if (scan->memory() > most) return;
    forget_scans_beyond(most - scan->memory());
    all.push_back(std::move(scan));
}

void forget_scans_beyond(std::size_t most) noexcept {
    Scans& all = scans();
    std::size_t bytes = memory(), count = 0;
    for (; bytes > most; ++count) bytes -= all[count]->memory();
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
}

void forget_scan(const RememberedScan& scan) noexcept {
    std::erase_if(scans(), [&](const auto& other) { return other.get() == &scan; });
}

}  // namespace gputext
