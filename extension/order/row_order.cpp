#include "extension/order/row_order.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

#include <algorithm>
#include <numeric>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/row_buckets.hpp"
#include "cpp/base/stoppable.hpp"
#include "extension/base/failure.hpp"
#include "extension/values/row_threads.hpp"

namespace gputext {
namespace {

/// Rows between two looks for a cancel.
constexpr std::size_t kPart = 4096;

// ---- Ids of type bigint ----

struct Numbered {
    std::int64_t id;
    std::uint32_t row;
};

/// What they are, and whether they ascend.
struct Numbers {
    std::int64_t least, greatest;
    bool ascend;

    /// From the least to the greatest.
    std::uint64_t range() const {
        return static_cast<std::uint64_t>(greatest) - static_cast<std::uint64_t>(least);
    }
};

/// Of at least one row.
Status look_at(const RowIds& ids, Numbers& numbers, Stop stop) {
    std::int64_t before = DatumGetInt64(ids.at(0));
    numbers = {before, before, true};
    for (std::size_t row = 1; row < ids.size(); ++row) {
        if (row % kPart == 0 && stop()) return Status::cancelled();
        const std::int64_t id = DatumGetInt64(ids.at(row));
        numbers.ascend = numbers.ascend && before <= id;
        numbers.least = std::min(numbers.least, id);
        numbers.greatest = std::max(numbers.greatest, id);
        before = id;
    }
    return {};
}

/// Numbers within a range of 32 bits, as those of most tables are.
Status order_near_numbers(const RowIds& ids, std::int64_t least, std::vector<std::uint32_t>& order,
                          Execution& execution) {
    std::vector<std::uint32_t> keys;
    resize_pages(keys, ids.size());
    const std::size_t parts = (ids.size() + kPart - 1) / kPart;
    execution.begin_phase("sorting rows", parts);
    GPUTEXT_TRY(execution.parallel_for(parts, [&](std::size_t part, unsigned) {
        const std::size_t end = std::min(ids.size(), (part + 1) * kPart);
        for (std::size_t row = part * kPart; row < end; ++row)
            keys[row] =
                static_cast<std::uint32_t>(static_cast<std::uint64_t>(DatumGetInt64(ids.at(row))) -
                                           static_cast<std::uint64_t>(least));
        return Status();
    }));
    return order_by_key(keys, order, execution);
}

Status order_far_numbers(const RowIds& ids, std::vector<std::uint32_t>& order, Stop stop) {
    std::vector<Numbered> numbered(ids.size());
    for (std::uint32_t row = 0; row < numbered.size(); ++row) {
        if (row % kPart == 0 && stop()) return Status::cancelled();
        numbered[row] = {DatumGetInt64(ids.at(row)), row};
    }
    const auto before = [](const Numbered& a, const Numbered& b) {
        return a.id != b.id ? a.id < b.id : a.row < b.row;
    };
    if (!stoppable_sort(numbered.begin(), numbered.end(), before, stop)) return Status::cancelled();
    order.resize(numbered.size());
    for (std::size_t i = 0; i < numbered.size(); ++i) order[i] = numbered[i].row;
    return {};
}

void order_numbers(const RowIds& ids, std::vector<std::uint32_t>& order) {
    if (ids.size() == 0) return;
    Numbers numbers{};
    attempt_or_raise([&]() -> Status {
        const Stop stop = stop_on_interrupt();
        GPUTEXT_TRY(look_at(ids, numbers, stop));
        if (numbers.ascend || numbers.range() < kKeyOfNoBucket) return {};
        return order_far_numbers(ids, order, stop);
    });
    if (!numbers.ascend && order.empty())
        run_on_rows(ids.size(), [&](Execution& execution) {
            return order_near_numbers(ids, numbers.least, order, execution);
        });
}

// ---- Ids of other types ----

struct Comparison {
    const RowIds* ids;
    TypeCacheEntry* functions;
    Oid collation;
    std::size_t done;
};

int compare_ids(std::uint32_t a, std::uint32_t b, const Comparison& comparison) {
    return DatumGetInt32(FunctionCall2Coll(&comparison.functions->cmp_proc_finfo,
                                           comparison.collation, comparison.ids->at(a),
                                           comparison.ids->at(b)));
}

int compare(std::uint32_t a, std::uint32_t b, const Comparison& comparison) {
    const int by_id = compare_ids(a, b, comparison);
    return by_id != 0 ? by_id : a < b ? -1 : 1;
}

/// For the server's qsort, which an error may leave.
int compare_rows(const void* a, const void* b, void* argument) {
    auto* const comparison = static_cast<Comparison*>(argument);
    if (++comparison->done % kPart == 0) CHECK_FOR_INTERRUPTS();
    return compare(*static_cast<const std::uint32_t*>(a), *static_cast<const std::uint32_t*>(b),
                   *comparison);
}

/// Whether each id is above the one before; no order is known of ids without functions.
bool all_differ(const Comparison& comparison) {
    for (std::uint32_t row = 1; row < comparison.ids->size(); ++row) {
        if (row % kPart == 0) CHECK_FOR_INTERRUPTS();
        if (compare_ids(row - 1, row, comparison) >= 0) return false;
    }
    return true;
}

bool ascending(const Comparison& comparison) {
    for (std::uint32_t row = 1; row < comparison.ids->size(); ++row) {
        if (row % kPart == 0) CHECK_FOR_INTERRUPTS();
        if (compare(row - 1, row, comparison) > 0) return false;
    }
    return true;
}

}  // namespace

bool has_order(Oid type) {
    return OidIsValid(type) && OidIsValid(lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc);
}

bool have_one_order(const RowIds& ids) {
    if (ids.type().oid == INT8OID) {
        for (std::size_t row = 1; row < ids.size(); ++row) {
            if (row % kPart == 0) CHECK_FOR_INTERRUPTS();
            if (DatumGetInt64(ids.at(row - 1)) >= DatumGetInt64(ids.at(row))) return false;
        }
        return true;
    }
    TypeCacheEntry* const functions = lookup_type_cache(ids.type().oid, TYPECACHE_CMP_PROC_FINFO);
    return OidIsValid(functions->cmp_proc_finfo.fn_oid) &&
           all_differ({&ids, functions, functions->typcollation, 0});
}

bool find_places(const RowIds& ids, std::span<const std::uint32_t> removed, const RowIds& added,
                 std::vector<std::uint32_t>& before) {
    TypeCacheEntry* const functions = lookup_type_cache(ids.type().oid, TYPECACHE_CMP_PROC_FINFO);
    attempt_or_raise([&] { before.resize(added.size()); });
    if (!have_one_order(added)) return false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < added.size(); ++i) {
        CHECK_FOR_INTERRUPTS();
        // What is from `end` on is not less.
        std::size_t end = ids.size();
        int last = 1;  // how the id at `end` compares with the one that was added
        while (begin < end) {
            const std::size_t middle = begin + (end - begin) / 2;
            const int order = DatumGetInt32(FunctionCall2Coll(
                &functions->cmp_proc_finfo, functions->typcollation, ids.at(middle), added.at(i)));
            if (order < 0) {
                begin = middle + 1;
            } else {
                end = middle;
                last = order;
            }
        }
        before[i] = static_cast<std::uint32_t>(begin);
        if (last == 0 && !std::binary_search(removed.begin(), removed.end(), before[i]))
            return false;
    }
    return true;
}

void put_in_order(RowIds& ids, bool ordered, std::vector<std::uint32_t>& order) {
    ids.finish();
    if (!ordered) order_by_id(ids, order);
    ids.reorder(order);
}

void order_by_id(const RowIds& ids, std::vector<std::uint32_t>& order) {
    order_by_id(ids, get_typcollation(ids.type().oid), order);
}

void order_by_id(const RowIds& ids, Oid collation, std::vector<std::uint32_t>& order) {
    order.clear();
    if (ids.type().oid == INT8OID) return order_numbers(ids, order);
    TypeCacheEntry* const functions = lookup_type_cache(ids.type().oid, TYPECACHE_CMP_PROC_FINFO);
    if (!OidIsValid(functions->cmp_proc_finfo.fn_oid)) return;
    Comparison comparison{&ids, functions, collation, 0};
    if (ascending(comparison)) return;
    attempt_or_raise([&] {
        order.resize(ids.size());
        std::iota(order.begin(), order.end(), 0u);
    });
    qsort_arg(order.data(), order.size(), sizeof(std::uint32_t), compare_rows, &comparison);
}

}  // namespace gputext
