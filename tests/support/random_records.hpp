// tests/support/random_records.hpp - records at random, and levels as cpp/records/comparison.hpp
// defines them

#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cpp/records/linkage_model.hpp"
#include "tests/support/plain_strings.hpp"

namespace gputext::testing {

/// A value of any kind.
struct PlainValue {
    String text;  // of texts and other values: bytes
    double number = 0;
    std::set<std::string> elements;
};

/// The values of a field, some of them null, as FieldValues::of() reads them.
class PlainField {
public:
    explicit PlainField(FieldKind kind) : kind_(kind) {}

    void append(std::optional<PlainValue> value) { values_.push_back(std::move(value)); }
    const std::optional<PlainValue>& operator[](std::size_t row) const { return values_[row]; }
    FieldKind kind() const { return kind_; }

    FieldValues values() const {
        std::vector<std::uint8_t> nulls;
        std::vector<double> numbers;
        std::string bytes;
        std::vector<std::uint64_t> begins = {0};
        for (const std::optional<PlainValue>& value : values_) {
            nulls.push_back(!value);
            numbers.push_back(value ? value->number : 0);
            if (value) {
                bytes.append(value->text.begin(), value->text.end());
                for (const std::string& element : value->elements) {
                    const auto size = static_cast<std::uint32_t>(element.size());
                    char prefix[sizeof size];
                    std::memcpy(prefix, &size, sizeof size);
                    bytes.append(prefix, sizeof size).append(element);
                }
            }
            begins.push_back(bytes.size());
        }
        FieldRows rows;
        rows.kind = kind_;
        rows.rows = values_.size();
        rows.nulls = nulls;
        rows.numbers = numbers;
        rows.bytes = {reinterpret_cast<const std::uint8_t*>(bytes.data()), begins.data(),
                      values_.size()};
        return *FieldValues::of(rows, CharacterLengths::single_byte(), {});
    }

private:
    FieldKind kind_;
    std::vector<std::optional<PlainValue>> values_;
};

/// Year, month and day, counted from 1970-01-01.
inline std::tuple<int, int, int> plain_date(double days) {
    int year = 1970, month = 0;
    int rest = static_cast<int>(days);
    const auto is_leap = [&] { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); };
    for (; rest < 0; rest += is_leap() ? 366 : 365) --year;
    for (; rest >= (is_leap() ? 366 : 365); ++year) rest -= is_leap() ? 366 : 365;
    const int lengths[] = {31, is_leap() ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    for (; rest >= lengths[month]; ++month) rest -= lengths[month];
    return {year, month + 1, rest + 1};
}

inline bool plain_holds(const Condition& condition, FieldKind kind, const PlainValue& a,
                        const PlainValue& b) {
    const double difference = std::abs(a.number - b.number);
    switch (condition.kind) {
        case ConditionKind::exact:
            if (is_number(kind))
                return a.number == b.number || (std::isnan(a.number) && std::isnan(b.number));
            return kind == FieldKind::set ? a.elements == b.elements : a.text == b.text;
        // Equal numbers are as near as can be, infinite ones and NaN, too.
        case ConditionKind::within:
        case ConditionKind::within_percent:
            if (plain_holds({}, kind, a, b)) return true;
            if (!std::isfinite(difference)) return false;
            return difference <= (condition.kind == ConditionKind::within
                                      ? condition.limit
                                      : condition.limit / 100 *
                                            std::max(std::abs(a.number), std::abs(b.number)));
        case ConditionKind::day_month_exchanged: {
            if (plain_holds({}, kind, a, b)) return true;
            if (!std::isfinite(difference)) return false;
            const auto [year, month, day] = plain_date(a.number);
            return plain_date(b.number) == std::tuple(year, day, month);
        }
        case ConditionKind::overlap: {
            std::size_t common = 0;
            for (const std::string& element : a.elements) common += b.elements.count(element);
            return static_cast<double>(common) >= condition.limit;
        }
        case ConditionKind::jaro:
            return plain_jaro(a.text, b.text) >= condition.limit;
        case ConditionKind::jaro_winkler:
            return plain_jaro_winkler(a.text, b.text) >= condition.limit;
        default:
            return plain_string_distance(*string_metric_of(condition.kind), a.text, b.text) <=
                   condition.limit;
    }
}

inline int plain_level(const FieldComparison& comparison, const PlainField& field, std::size_t a,
                       std::size_t b) {
    if (!field[a] || !field[b]) return kNullLevel;
    for (int level = comparison.top_level(); level > 0; --level)
        if (plain_holds(comparison.condition(level), field.kind(), *field[a], *field[b]))
            return level;
    return 0;
}

/// Fields of records that share some of their values, with comparisons of them.
class RandomRecords {
public:
    explicit RandomRecords(RandomNames& random) : random_(random) {}

    PlainField field(FieldKind kind, std::size_t rows) {
        std::vector<PlainValue> pool;
        const std::size_t distinct = 1 + random_.below(rows + 1);
        const std::vector<String> texts =
            random_.strings(distinct, random_.below(4) == 0 ? 90 : 12);
        for (std::size_t i = 0; i < distinct; ++i) {
            PlainValue& value = pool.emplace_back();
            if (kind == FieldKind::date) {
                // Of few years, so that some are exchanged
                value.number = random_.below(20) == 0
                                   ? number()
                                   : static_cast<double>(random_.below(400)) - 100;
                value.number = std::trunc(value.number);
            } else if (kind == FieldKind::number) {
                value.number = number();
            } else if (kind == FieldKind::set) {
                for (std::size_t n = random_.below(5); n > 0; --n)
                    value.elements.insert(std::string(1 + random_.below(2), "abcdefgh"[random_.below(8)]));
            } else {
                // Bytes, so that they are characters of their own.
                for (const std::uint32_t symbol : texts[i]) value.text.push_back(1 + symbol % 255);
            }
        }
        PlainField field(kind);
        const std::size_t null = 2 + random_.below(20);
        for (std::size_t row = 0; row < rows; ++row) {
            if (random_.below(null) == 0) {
                field.append(std::nullopt);
                continue;
            }
            // Some values are hot.
            const std::size_t some = 1 + random_.below(distinct);
            field.append(pool[random_.below(some)]);
        }
        return field;
    }

    FieldComparison comparison(FieldKind kind, std::size_t number) {
        FieldComparison comparison;
        comparison.field = "field" + std::to_string(number);
        if (random_.below(5) != 0) comparison.conditions.push_back({});
        const auto add = [&](ConditionKind condition, double limit) {
            if (random_.below(2) == 0) comparison.conditions.push_back({condition, limit});
        };
        if (kind == FieldKind::text) {
            add(ConditionKind::levenshtein, 1);
            add(ConditionKind::jaro_winkler, 0.92);
            add(ConditionKind::osa, 2);
            add(ConditionKind::jaro_winkler, 0.8);
            add(ConditionKind::edit_rate, 0.2);
            add(ConditionKind::jaro, 0.7);
        } else if (is_number(kind)) {
            const bool date = kind == FieldKind::date;
            if (date && random_.below(2) == 0) add(ConditionKind::day_month_exchanged, 0);
            add(ConditionKind::within, 1);
            add(ConditionKind::within_percent, 10);
            add(ConditionKind::within, 30);
            if (date && comparison.conditions.size() < 2)
                add(ConditionKind::day_month_exchanged, 0);
            add(ConditionKind::within, 100);
        } else if (kind == FieldKind::set) {
            add(ConditionKind::overlap, 2);
            add(ConditionKind::overlap, 1);
        }
        if (comparison.conditions.empty()) comparison.conditions.push_back({});
        return comparison;
    }

    FieldModel model(FieldKind kind, std::size_t number) {
        FieldModel model{comparison(kind, number), false, {}};
        model.term_frequencies =
            model.comparison.conditions[0].kind == ConditionKind::exact && random_.below(2) == 0;
        for (int level = 0; level <= model.comparison.top_level(); ++level)
            model.levels.push_back({probability(), probability()});
        return model;
    }

    double probability() { return std::exp2(-static_cast<double>(random_.below(4000)) / 400); }

private:
    double number() {
        switch (random_.below(12)) {
            case 0:
                return std::numeric_limits<double>::infinity();
            case 1:
                return std::numeric_limits<double>::quiet_NaN();
            case 2:
                return -0.0;
            case 3:
                return -static_cast<double>(random_.below(300));
            default:
                return static_cast<double>(random_.below(2000)) / 4;
        }
    }

    RandomNames& random_;
};

}  // namespace gputext::testing
