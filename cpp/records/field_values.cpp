#include "cpp/records/field_values.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string_view>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/base/vocabulary.hpp"

namespace gputext {
namespace {

std::string_view bytes_of(const std::vector<std::uint32_t>& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()),
            numbers.size() * sizeof(std::uint32_t)};
}

Status wrong_set() {
    return {ErrorCode::invalid_argument, "the elements of a set are not packed as they should be"};
}

/// Splits a packed set into the numbers of its elements, ascending, each once.
Status number_elements(std::string_view packed, Vocabulary& elements,
                       std::vector<std::uint32_t>& numbers, Stop stop) {
    numbers.clear();
    while (!packed.empty()) {
        std::uint32_t size = 0;
        if (packed.size() < sizeof size) return wrong_set();
        std::memcpy(&size, packed.data(), sizeof size);
        packed.remove_prefix(sizeof size);
        if (packed.size() < size) return wrong_set();
        const std::uint32_t number = elements.add(packed.substr(0, size), stop);
        if (number == Vocabulary::kNone) return Status::cancelled();
        numbers.push_back(number);
        packed.remove_prefix(size);
    }
    if (!stoppable_sort(numbers.begin(), numbers.end(), std::less<>(), stop))
        return Status::cancelled();
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return {};
}

}  // namespace

Result<FieldValues> FieldValues::of(const FieldRows& rows, const CharacterLengths& characters,
                                    Stop stop) {
    return status_or_exception([&]() -> Result<FieldValues> {
        FieldValues values;
        values.kind_ = rows.kind;
        if (!stoppable_assign(values.of_rows_, rows.rows, kNullValue, stop))
            return Status::cancelled();
        switch (rows.kind) {
            case FieldKind::number:
            case FieldKind::date:
                GPUTEXT_TRY(values.number_numbers(rows, stop));
                break;
            case FieldKind::set:
                GPUTEXT_TRY(values.number_sets(rows, stop));
                break;
            default:
                GPUTEXT_TRY(values.number_texts(rows, characters, stop));
        }
        return values;
    });
}

Status FieldValues::number_texts(const FieldRows& rows, const CharacterLengths& characters,
                                 Stop stop) {
    Vocabulary vocabulary;
    for (std::size_t row = 0; row < rows.rows; ++row) {
        if (row % 4096 == 0 && stop()) return Status::cancelled();
        if (rows.nulls[row]) continue;
        of_rows_[row] = vocabulary.add(rows.bytes[row], stop);
        if (of_rows_[row] == Vocabulary::kNone) return Status::cancelled();
    }
    count_ = vocabulary.size();
    if (kind_ != FieldKind::text) return {};
    begins_.reserve(count_ + 1);
    begins_.push_back(0);
    for (std::uint32_t value = 0; value < count_; ++value) {
        const std::string_view term = vocabulary.term(value);
        const Bytes text(reinterpret_cast<const std::uint8_t*>(term.data()), term.size());
        for (std::size_t at = 0, done = 0; at < text.size(); ++done) {
            if (done % kLookEvery == 0 && stop()) return Status::cancelled();
            symbols_.push_back(next_character(text, characters, at));
        }
        begins_.push_back(symbols_.size());
    }
    return {};
}

Status FieldValues::number_sets(const FieldRows& rows, Stop stop) {
    Vocabulary elements, sets;
    std::vector<std::uint32_t> numbers;
    begins_.push_back(0);
    for (std::size_t row = 0; row < rows.rows; ++row) {
        if (row % 1024 == 0 && stop()) return Status::cancelled();
        if (rows.nulls[row]) continue;
        GPUTEXT_TRY(number_elements(rows.bytes[row], elements, numbers, stop));
        of_rows_[row] = sets.add(bytes_of(numbers), stop);
        if (of_rows_[row] == Vocabulary::kNone) return Status::cancelled();
        if (of_rows_[row] != count_) continue;
        ++count_;
        symbols_.insert(symbols_.end(), numbers.begin(), numbers.end());
        begins_.push_back(symbols_.size());
    }
    return {};
}

Status FieldValues::number_numbers(const FieldRows& rows, Stop stop) {
    Vocabulary vocabulary;
    for (std::size_t row = 0; row < rows.rows; ++row) {
        if (row % 4096 == 0 && stop()) return Status::cancelled();
        if (rows.nulls[row]) continue;
        double number = rows.numbers[row] + 0.0;  // that of -0 is 0
        if (std::isnan(number)) number = std::numeric_limits<double>::quiet_NaN();
        const auto bits = std::bit_cast<std::array<char, sizeof number>>(number);
        of_rows_[row] = vocabulary.add({bits.data(), bits.size()}, stop);
        if (of_rows_[row] == count_) {
            ++count_;
            numbers_.push_back(number);
        }
    }
    return {};
}

std::vector<std::uint32_t> FieldValues::frequencies(std::size_t begin, std::size_t end) const {
    std::vector<std::uint32_t> counts(count_);
    for (std::size_t row = begin; row < end; ++row)
        if (of_rows_[row] != kNullValue) ++counts[of_rows_[row]];
    return counts;
}

}  // namespace gputext
