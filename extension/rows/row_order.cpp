#include "extension/rows/row_order.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/typcache.h"
}

#include <algorithm>
#include <numeric>

#include "extension/base/failure.hpp"

namespace gputext {
namespace {

/// Rows between two looks for a cancel.
constexpr std::size_t kPart = 4096;

// ---- Ids of type bigint ----

struct Numbered {
    std::int64_t id;
    std::uint32_t row;
};

/// False when stopped, which leaves them in no particular order.
bool sort_numbers(std::vector<Numbered>& numbered, Stop stop) {
    struct Stopped {};
    std::size_t done = 0;
    try {
        std::sort(numbered.begin(), numbered.end(), [&](const Numbered& a, const Numbered& b) {
            if (++done % kPart == 0 && stop()) throw Stopped();
            return a.id != b.id ? a.id < b.id : a.row < b.row;
        });
    } catch (const Stopped&) {
        return false;
    }
    return true;
}

void order_numbers(const RowIds& ids, std::vector<std::uint32_t>& order) {
    attempt_or_raise([&]() -> Status {
        const Stop stop = stop_on_interrupt();
        std::vector<Numbered> numbered(ids.size());
        bool ascending = true;
        for (std::uint32_t row = 0; row < numbered.size(); ++row) {
            if (row % kPart == 0 && stop()) return Status::cancelled();
            numbered[row] = {DatumGetInt64(ids.at(row)), row};
            ascending = ascending && (row == 0 || numbered[row - 1].id <= numbered[row].id);
        }
        if (ascending) return {};
        if (!sort_numbers(numbered, stop)) return Status::cancelled();
        order.resize(numbered.size());
        for (std::size_t i = 0; i < numbered.size(); ++i) order[i] = numbered[i].row;
        return {};
    });
}

// ---- Ids of other types ----

struct Comparison {
    const RowIds* ids;
    TypeCacheEntry* functions;
    std::size_t done;
};

int compare(std::uint32_t a, std::uint32_t b, const Comparison& comparison) {
    const int by_id = DatumGetInt32(
        FunctionCall2Coll(&comparison.functions->cmp_proc_finfo, comparison.functions->typcollation,
                          comparison.ids->at(a), comparison.ids->at(b)));
    return by_id != 0 ? by_id : a < b ? -1 : 1;
}

/// For the server's qsort, which an error may leave.
int compare_rows(const void* a, const void* b, void* argument) {
    auto* const comparison = static_cast<Comparison*>(argument);
    if (++comparison->done % kPart == 0) CHECK_FOR_INTERRUPTS();
    return compare(*static_cast<const std::uint32_t*>(a), *static_cast<const std::uint32_t*>(b),
                   *comparison);
}

bool ascending(const Comparison& comparison) {
    for (std::uint32_t row = 1; row < comparison.ids->size(); ++row) {
        if (row % kPart == 0) CHECK_FOR_INTERRUPTS();
        if (compare(row - 1, row, comparison) > 0) return false;
    }
    return true;
}

}  // namespace

void order_by_id(const RowIds& ids, std::vector<std::uint32_t>& order) {
    order.clear();
    if (ids.type().oid == INT8OID) return order_numbers(ids, order);
    TypeCacheEntry* const functions = lookup_type_cache(ids.type().oid, TYPECACHE_CMP_PROC_FINFO);
    if (!OidIsValid(functions->cmp_proc_finfo.fn_oid)) return;
    Comparison comparison{&ids, functions, 0};
    if (ascending(comparison)) return;
    attempt_or_raise([&] {
        order.resize(ids.size());
        std::iota(order.begin(), order.end(), 0u);
    });
    qsort_arg(order.data(), order.size(), sizeof(std::uint32_t), compare_rows, &comparison);
}

}  // namespace gputext
