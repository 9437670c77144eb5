#include "extension/planner/nearest_keys.hpp"

extern "C" {
#include "catalog/pg_type_d.h"
#include "utils/lsyscache.h"
}

#include "extension/base/failure.hpp"

namespace gputext {

void NearestKeys::set_types(const std::vector<Oid>& types) {
    attempt_or_raise([&] {
        for (std::size_t i = 0; i < types.size(); ++i) {
            columns_.emplace_back(context_, memory_limit_);
            if (i > 0) pairs_.emplace_back(context_, memory_limit_);
        }
    });
    for (std::size_t i = 0; i < types.size(); ++i)
        columns_[i].set_type(types[i], get_typcollation(types[i]));
    for (KeyNumbers& pair : pairs_) pair.set_type(INT8OID, InvalidOid);
}

std::uint32_t NearestKeys::number_of_pair(std::size_t pair, std::uint32_t left,
                                          std::uint32_t right) {
    return pairs_[pair].number_of(
        Int64GetDatum(static_cast<int64>(std::uint64_t{left} << 32 | right)));
}

std::uint32_t NearestKeys::number_of(const Datum* values, const bool* nulls) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (nulls[i]) return kNoKey;
        const std::uint32_t own = columns_[i].number_of(values[i]);
        if (own == KeyNumbers::kNone) return kNoKey;
        number = i == 0 ? own : number_of_pair(i - 1, number, own);
        if (number == KeyNumbers::kNone) return kNoKey;
    }
    return number;
}

void NearestKeys::add_item(const Datum* values, const bool* nulls, bool has_vector) {
    const std::uint32_t number = number_of(values, nulls);
    attempt_or_raise([&] {
        if (number != kNoKey) {
            if (number >= rows_.size()) rows_.resize(number + 1);
            ++(has_vector ? rows_[number].items : rows_[number].nulls);
        }
        if (has_vector) items_.push_back(number);
    });
}

void NearestKeys::end_items() {
    for (KeyNumbers& column : columns_) column.close();
    for (KeyNumbers& pair : pairs_) pair.close();
}

void NearestKeys::release() {
    for (KeyNumbers& column : columns_) column.release();
    for (KeyNumbers& pair : pairs_) pair.release();
    items_ = {};
    rows_ = {};
}

}  // namespace gputext
