// cpp/records/field_values.hpp - the distinct values of a field, by number, and their frequencies
//
// Records hold few distinct values in a field: those are compared, once for each pair, and weighted
// by their frequencies.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/words.hpp"
#include "cpp/records/comparison.hpp"
#include "cpp/strings/strings.hpp"

namespace gputext {

/// The value of a record whose field is null.
inline constexpr std::uint32_t kNullValue = UINT32_MAX;

/// The values of one field as they were read, a row for each record. A view.
struct FieldRows {
    FieldKind kind = FieldKind::other;
    std::size_t rows = 0;
    std::span<const std::uint8_t> nulls;  // one for each row: whether it is null
    /// Of numbers and dates: one for each row.
    std::span<const double> numbers;
    /// Of the other kinds. Of a set: its elements, each as four bytes of length and its bytes, in
    /// any order, some perhaps twice.
    Words bytes;
};

/// Immutable once made.
class FieldValues {
public:
    /// Numbers are distinct when they differ as numbers; NaN is a number of its own. Values are
    /// numbered as they come first. O(bytes) time. Memory: the distinct values, some 40 bytes for
    /// each, 4 bytes a row. Errors: cancelled; out_of_memory; invalid_argument for sets that are
    /// not packed as above.
    static Result<FieldValues> of(const FieldRows& rows, const CharacterLengths& characters,
                                  Stop stop);

    FieldKind kind() const { return kind_; }
    std::uint32_t count() const { return count_; }
    /// The number of each record's value, or kNullValue.
    std::span<const std::uint32_t> of_rows() const { return of_rows_; }
    std::size_t rows() const { return of_rows_.size(); }

    /// Characters of texts, ascending elements of sets.
    Strings strings() const { return {begins_, symbols_.data()}; }
    std::span<const double> numbers() const { return numbers_; }

    /// How many of the records [begin, end) have each value.
    std::vector<std::uint32_t> frequencies(std::size_t begin, std::size_t end) const;

private:
    Status number_texts(const FieldRows& rows, const CharacterLengths& characters, Stop stop);
    Status number_sets(const FieldRows& rows, Stop stop);
    Status number_numbers(const FieldRows& rows, Stop stop);

    FieldKind kind_ = FieldKind::other;
    std::uint32_t count_ = 0;
    std::vector<std::uint32_t> of_rows_;
    std::vector<std::uint64_t> begins_;
    std::vector<std::uint32_t> symbols_;
    std::vector<double> numbers_;
};

/// The fields of one job's records, at most 2^31. A view.
struct Records {
    std::span<const FieldValues> fields;
    std::size_t rows = 0;
    /// Whether they are of two tables: the first one's are the first `split` records, and a pair is
    /// one of each. In one table, a pair is any two records.
    bool two_tables = false;
    std::size_t split = 0;

    std::uint64_t pairs() const {
        if (two_tables) return std::uint64_t{split} * (rows - split);
        return rows < 2 ? 0 : std::uint64_t{rows} * (rows - 1) / 2;
    }
};

}  // namespace gputext
