#include "extension/order/key_column.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
}

#include <algorithm>
#include <cstring>

#include "cpp/base/row_buckets.hpp"
#include "extension/base/failure.hpp"
#include "extension/values/row_threads.hpp"

namespace gputext {
namespace {

/// Types passed by value whose values are equal if all bits are: not so are float4 and float8, of
/// which 0 equals -0.
bool compares_bitwise(Oid type) {
    switch (type) {
        case BOOLOID:
        case CHAROID:
        case INT2OID:
        case INT4OID:
        case INT8OID:
        case OIDOID:
        case DATEOID:
        case TIMESTAMPOID:
        case TIMESTAMPTZOID:
            return true;
        default:
            return get_typtype(type) == TYPTYPE_ENUM;
    }
}

[[noreturn]] void raise_not_comparable(Oid type, const char* what, const char* cast) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                    errmsg("%s of type %s cannot be compared", what, format_type_be(type)),
                    errdetail("The type has no default equality that can be hashed."),
                    errhint("Cast them in the inner query, as in %s.", cast)));
    pg_unreachable();
}

[[noreturn]] void raise_too_many_keys(std::size_t count, const char* different,
                                      const KeyNumbers& numbers) {
    ereport(ERROR,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
             errmsg("the %s do not fit into gputext.host_memory_limit", numbers.what()),
             errdetail("%zu %s%s take more than %zu kB.", count, different, numbers.what(),
                       numbers.memory_limit() / 1024),
             errhint("Increase gputext.host_memory_limit, or cast %s to a shorter type.",
                     numbers.what())));
    pg_unreachable();
}

}  // namespace

void KeyNumbers::set_type(Oid type, Oid collation) {
    release();
    type_ = type;
    collation_ = collation;
    bool by_value;
    get_typlenbyval(type, &length_, &by_value);
    by_value_ = by_value;
    bitwise_ = by_value_ && compares_bitwise(type);
    context_ = AllocSetContextCreate(parent_, "gputext keys", ALLOCSET_DEFAULT_SIZES);
    Oid hash, equal;
    if (type == RECORDOID) {
        // The cache does not say that anonymous rows can be hashed; that depends on their columns.
        hash = F_HASH_RECORD;
        equal = F_RECORD_EQ;
    } else {
        const TypeCacheEntry* const entry =
            lookup_type_cache(type, TYPECACHE_EQ_OPR_FINFO | TYPECACHE_HASH_PROC_FINFO);
        hash = entry->hash_proc_finfo.fn_oid;
        equal = entry->eq_opr_finfo.fn_oid;
    }
    if (!OidIsValid(hash) || !OidIsValid(equal)) raise_not_comparable(type, what_, cast_);
    fmgr_info_cxt(hash, &hash_, context_);
    fmgr_info_cxt(equal, &equal_, context_);
    attempt_or_raise([&] { table_ = HashTable<NumberSlot>(512); });
}

std::uint32_t KeyNumbers::hash_of(Datum key) {
    if (!bitwise_) return DatumGetUInt32(FunctionCall1Coll(&hash_, collation_, key));
    // The upper half of a product depends on all bits of the key.
    const std::uint64_t mixed = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
    return static_cast<std::uint32_t>(mixed >> 32);
}

bool KeyNumbers::equal(Datum a, Datum b) {
    return bitwise_ ? a == b : DatumGetBool(FunctionCall2Coll(&equal_, collation_, a, b));
}

void KeyNumbers::append(Datum key, std::uint32_t hash) {
    Datum kept = key;
    if (!by_value_) {
        const MemoryContext before = MemoryContextSwitchTo(context_);
        kept = datumCopy(key, false, length_);
        MemoryContextSwitchTo(before);
        key_bytes_ += datumGetSize(kept, false, length_);
    }
    if (bytes() + 12 > memory_limit_) raise_too_many_keys(keys_.size(), "different ", *this);
    if (keys_.size() >= kNone - 2)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("there are more than 4294967292 different %s", what_)));
    attempt_or_raise([&] {
        keys_.push_back(kept);
        hashes_.push_back(hash);
    });
}

std::uint32_t KeyNumbers::number_of(Datum key) {
    if (length_ == -1) key = PointerGetDatum(PG_DETOAST_DATUM(key));
    const std::uint32_t hash = hash_of(key);
    const auto is = [&](NumberSlot slot) {
        return hashes_[slot.number] == hash && equal(keys_[slot.number], key);
    };
    const NumberSlot found = table_.find(hash, is);
    if (!found.free()) return found.number;
    if (closed_) return kNone;
    append(key, hash);
    const auto number = static_cast<std::uint32_t>(keys_.size() - 1);
    attempt_or_raise([&] {
        table_.grow(keys_.size() + 1, [this](NumberSlot slot) { return hashes_[slot.number]; });
    });
    table_.find(hash, [](NumberSlot) { return false; }).number = number;
    return number;
}

void KeyNumbers::copy(RememberedKeys& copied) const {
    copied.by_value = by_value_;
    if (by_value_) {
        copied.keys.assign(keys_.begin(), keys_.end());
        return;
    }
    copied.keys.reserve(keys_.size());
    std::size_t size = 0;
    for (const Datum key : keys_) {
        copied.keys.push_back(size);
        size += MAXALIGN(datumGetSize(key, false, length_));
    }
    copied.bytes.resize(size / sizeof(std::uint64_t));
    auto* const bytes = reinterpret_cast<char*>(copied.bytes.data());
    for (std::size_t i = 0; i < keys_.size(); ++i)
        std::memcpy(bytes + copied.keys[i], DatumGetPointer(keys_[i]),
                    datumGetSize(keys_[i], false, length_));
}

void KeyNumbers::release() {
    if (context_ != nullptr) MemoryContextDelete(context_);
    context_ = nullptr;
    key_bytes_ = 0;
    keys_ = {};
    hashes_ = {};
    table_ = {};
}

void KeyColumn::append(KeyNumbers& numbers, Datum key, bool is_null, std::uint32_t null,
                       std::uint32_t unknown) {
    std::uint32_t number = null;
    if (!is_null) {
        number = numbers.number_of(key);
        if (number == KeyNumbers::kNone) number = unknown;
    }
    if (numbers_.size() == numbers_.capacity())
        attempt_or_raise([&] { numbers_.reserve(2 * numbers_.size() + 1024); });
    numbers_.push_back(number);
}

void KeyColumn::append(const KeyNumbers& numbers, Datum key, bool is_null) {
    if (values_.full()) {
        if (2 * values_.size() * sizeof(Datum) > numbers.memory_limit())
            raise_too_many_keys(values_.size(), "", numbers);
        attempt_or_raise([&] { values_.reserve(values_.size() + 1); });
    }
    if (is_null)
        attempt_or_raise([&] { nulls_.push_back(static_cast<std::uint32_t>(values_.size())); });
    values_.append(is_null ? 0 : key);
}

/// A null has got the number of a zero.
void KeyColumn::end_values(std::uint32_t null) {
    for (const std::uint32_t row : nulls_) numbers_[row] = null;
    values_.clear();
    nulls_ = {};
}

void KeyColumn::number_by(KeyTable& table, const KeyNumbers& numbers, std::uint32_t null) {
    attempt_or_raise([&] { numbers_.resize(values_.size()); });
    run_threaded([&](Execution& execution) {
        return table.number({values_.data(), values_.size()}, numbers_, execution);
    });
    if (table.bytes() > numbers.memory_limit())
        raise_too_many_keys(table.size(), "different ", numbers);
    end_values(null);
}

void KeyColumn::look_up_in(const KeyTable& table, std::uint32_t null, std::uint32_t unknown) {
    attempt_or_raise([&] { numbers_.resize(values_.size()); });
    run_threaded([&](Execution& execution) {
        return table.look_up({values_.data(), values_.size()}, numbers_, unknown, execution);
    });
    end_values(null);
}

void KeyColumn::reorder(const std::vector<std::uint32_t>& order) {
    if (order.empty()) return;
    run_on_rows(order.size(), [&](Execution& execution) -> Status {
        std::vector<std::uint32_t> ordered(order.size());
        GPUTEXT_TRY(gather(
            order, ordered.data(), [this](std::uint32_t row) { return numbers_[row]; }, execution));
        numbers_.swap(ordered);
        return {};
    });
}

void KeyColumn::keep(const KeyNumbers& numbers, const KeyTable& table) {
    RememberedKeys* keys = nullptr;
    attempt_or_raise([&] {
        const auto made = std::make_shared<RememberedKeys>();
        if (numbers.bitwise()) {
            made->by_value = true;
            made->keys.resize(table.size());
        } else {
            numbers.copy(*made);
        }
        numbers_.shrink_to_fit();
        made->numbers.swap(numbers_);
        keys = made.get();
        kept_ = made;
    });
    if (numbers.bitwise())
        run_threaded([&](Execution& execution) { return table.keys(keys->keys, execution); });
}

/// Of keys that functions compare.
void KeyColumn::number_different(KeyNumbers& numbers, std::uint32_t unknown) {
    for (std::size_t i = 0; i < kept_->size(); ++i) {
        if (i % 4096 == 0) CHECK_FOR_INTERRUPTS();
        const std::uint32_t number = numbers.number_of(kept_->key(i));
        number_of_kept_[i] = number == KeyNumbers::kNone ? unknown : number;
    }
}

/// When the different keys have numbers.
void KeyColumn::number_rows(std::uint32_t null) {
    const std::vector<std::uint32_t>& rows = kept_->numbers;
    attempt_or_raise([&] { numbers_.resize(rows.size()); });
    run_on_rows(rows.size(), [&](Execution& execution) {
        return gather(
            rows, numbers_.data(),
            [&](std::uint32_t number) {
                return number == RememberedKeys::kNull ? null : number_of_kept_[number];
            },
            execution);
    });
    number_of_kept_ = {};
    own_numbers_ = false;
}

void KeyColumn::look_up_kept(KeyNumbers& numbers, const KeyTable& table, std::uint32_t null,
                             std::uint32_t unknown) {
    attempt_or_raise([&] { number_of_kept_.resize(kept_->size()); });
    if (numbers.bitwise())
        run_on_rows(kept_->size(), [&](Execution& execution) {
            return table.look_up(kept_->keys, number_of_kept_, unknown, execution);
        });
    else
        number_different(numbers, unknown);
    number_rows(null);
}

void KeyColumn::number_kept(KeyNumbers& numbers, KeyTable& table, std::uint32_t null,
                            KeyColumn& added) {
    const std::size_t different = kept_->size();
    if (numbers.bitwise()) {
        attempt_or_raise([&] {
            values_.resize(different + added.values_.size());
            number_of_kept_.resize(values_.size());
            std::copy_n(kept_->keys.data(), different, values_.data());
            std::copy_n(added.values_.data(), added.values_.size(), values_.data() + different);
        });
        run_on_rows(values_.size(), [&](Execution& execution) {
            return table.number({values_.data(), values_.size()}, number_of_kept_, execution);
        });
        attempt_or_raise([&] {
            added.numbers_.assign(number_of_kept_.begin() + static_cast<std::ptrdiff_t>(different),
                                  number_of_kept_.end());
        });
        added.end_values(null);
        values_.clear();
    } else {
        attempt_or_raise([&] { number_of_kept_.resize(different); });
        number_different(numbers, null);
    }
    number_rows(null);
}

}  // namespace gputext
