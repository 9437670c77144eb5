#include "extension/queries/remembered_scans.hpp"

extern "C" {
#include "utils/inval.h"
}

#include <algorithm>
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

/// Of a change of the relation, or of any for InvalidOid. Statements that use the scan go on.
void forget_table(Datum, Oid relation) {
    std::erase_if(scans(), [&](const auto& other) {
        return !OidIsValid(relation) || other->scan.relation == relation;
    });
}

}  // namespace

std::shared_ptr<const RememberedScan> remembered_scan(const WholeScan& scan, Oid id_type) noexcept {
    Scans& all = scans();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& other) {
        return other->scan == scan && other->id_type == id_type;
    });
    if (found == all.end()) return nullptr;
    std::rotate(found, found + 1, all.end());
    return all.back();
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

void watch_tables() {
    static bool watching = false;
    if (watching) return;
    CacheRegisterRelcacheCallback(forget_table, 0);
    watching = true;
}

}  // namespace gputext
