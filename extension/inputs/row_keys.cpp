#include "extension/inputs/row_keys.hpp"

extern "C" {
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
}

#include "extension/base/failure.hpp"

namespace gputext {
namespace {

/// The type's hash function and equality.
TypeCacheEntry* functions_of(Oid type) {
    TypeCacheEntry* entry =
        lookup_type_cache(type, TYPECACHE_EQ_OPR_FINFO | TYPECACHE_HASH_PROC_FINFO);
    if (!OidIsValid(entry->eq_opr_finfo.fn_oid) || !OidIsValid(entry->hash_proc_finfo.fn_oid))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("exclude_self cannot compare ids of type %s", format_type_be(type)),
                        errdetail("The type has no default equality that can be hashed."),
                        errhint("Ids can be cast in the inner queries, as in id::text.")));
    return entry;
}

/// A table of the ids that have been seen. Rows are those of the queries, then those of the items.
class IdTable {
public:
    IdTable(const VectorRows& queries, const VectorRows& items, Oid collation, NumberedIds& numbers)
        : queries_(queries),
          items_(items),
          collation_(collation),
          numbers_(numbers),
          functions_(functions_of(items.id_type().oid)) {}

    /// The first row with an id that is equal to this row's.
    std::uint32_t first_row(std::uint32_t row) {
        const Datum id = id_of(row);
        const std::uint32_t hash =
            DatumGetUInt32(FunctionCall1Coll(&functions_->hash_proc_finfo, collation_, id));
        numbers_.hashes[row] = hash;
        NumberSlot& first = numbers_.table.find(hash, [&](NumberSlot other) {
            return numbers_.hashes[other.number] == hash && equal(id_of(other.number), id);
        });
        if (first.free()) first.number = row;
        return first.number;
    }

private:
    Datum id_of(std::uint32_t row) const {
        return row < queries_.size() ? queries_.id(row) : items_.id(row - queries_.size());
    }
    bool equal(Datum a, Datum b) const {
        return DatumGetBool(FunctionCall2Coll(&functions_->eq_opr_finfo, collation_, a, b));
    }

    const VectorRows& queries_;
    const VectorRows& items_;
    Oid collation_;
    NumberedIds& numbers_;
    TypeCacheEntry* functions_;
};

void allocate(std::size_t queries, std::size_t items, NumberedIds& numbers) {
    if (queries + items >= NumberSlot::kNone)
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                 errmsg("exclude_self cannot compare the ids of more than 4294967294 rows")));
    attempt_or_raise([&] {
        numbers.queries.resize(queries);
        numbers.items.resize(items);
        numbers.hashes.resize(queries + items);
        numbers.table = HashTable<NumberSlot>(queries + items);
    });
}

}  // namespace

void number_ids(const VectorRows& queries, const VectorRows& items, Oid collation,
                NumberedIds& numbers) {
    allocate(queries.size(), items.size(), numbers);
    IdTable table(queries, items, collation, numbers);
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext ids", ALLOCSET_DEFAULT_SIZES);
    MemoryContext before = MemoryContextSwitchTo(context);
    std::uint32_t row = 0;
    for (std::vector<std::uint32_t>* side : {&numbers.queries, &numbers.items})
        for (std::uint32_t& number : *side) {
            if (row % 1024 == 0) {
                CHECK_FOR_INTERRUPTS();
                MemoryContextReset(context);
            }
            number = table.first_row(row++);
        }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
    numbers.hashes = {};
    numbers.table = {};
}

}  // namespace gputext
