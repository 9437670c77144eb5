// cpp/records/comparison.hpp - how a field of two records is compared: conditions, from the most
// similar to the least
//
// A pair of records has a level in each field: the number of conditions for the first condition of
// the list that holds, one less for the second, and so on; 0, "else", where none holds, and -1
// where one of the two values is null. That numbering is Splink's (its gammas).

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/strings/string_distance.hpp"

namespace gputext {

enum class FieldKind : std::uint8_t {
    text,    // characters
    number,  // double precision
    date,    // days since 1970-01-01, in double precision
    set,     // of elements that are equal or not
    other    // values that are equal or not
};

enum class ConditionKind : std::uint8_t {
    exact,         // equal values
    jaro_winkler,  // a similarity of at least the limit
    jaro,
    levenshtein,  // a distance of at most the limit
    osa,
    edit_rate,
    within,          // numbers that differ by at most the limit; NaN and infinity: by nothing
    within_percent,  // by at most so many percent of the larger absolute value
    day_month_exchanged,  // dates that are the same with day and month in each other's place
    overlap          // sets with at least so many common elements
};

struct Condition {
    ConditionKind kind = ConditionKind::exact;
    double limit = 0;

    bool operator==(const Condition&) const = default;
};

/// Whether values of the kind are numbers.
inline bool is_number(FieldKind kind) {
    return kind == FieldKind::number || kind == FieldKind::date;
}

/// The metric of a condition on texts, and none for others.
std::optional<StringMetric> string_metric_of(ConditionKind kind);
/// The largest distance by that metric with which the condition holds.
double largest_distance(const Condition& condition);
/// Whether values of the kind can be compared so.
bool applies_to(ConditionKind condition, FieldKind field);

/// As a person writes it: "exact", "jaro_winkler >= 0.92", "within 5 percent".
std::string text_of(const Condition& condition);
/// Reads one condition. Error: invalid_argument, with what is allowed as the hint.
Result<Condition> read_condition(std::string_view text);

// ---- A field ----

inline constexpr std::size_t kMostFields = 32;
inline constexpr std::size_t kMostConditions = 15;
inline constexpr std::int8_t kNullLevel = -1;

/// The conditions of a field, the most similar first.
struct FieldComparison {
    std::string field;
    std::vector<Condition> conditions;

    int top_level() const { return static_cast<int>(conditions.size()); }
    /// The condition of a level from 1 up.
    const Condition& condition(int level) const {
        return conditions[conditions.size() - static_cast<std::size_t>(level)];
    }
};

/// Reads "field: condition, condition, ...". A name with other characters than letters, digits and
/// underscores stands in double quotes, as in SQL. Error: invalid_argument, with a hint.
Result<FieldComparison> read_comparison(std::string_view text);
/// Reads "field, field, ...", the names as above. Error: invalid_argument, with a hint.
Result<std::vector<std::string>> read_names(std::string_view text);

/// What is wrong with the conditions, for values of that kind: none, too many, one that does not
/// apply, one that can never decide as a wider one stands before it. invalid_argument.
Status check_comparison(const FieldComparison& comparison, FieldKind kind);

}  // namespace gputext
