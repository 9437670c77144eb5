#include "cpp/records/value_levels.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/strings/nearest_strings.hpp"

namespace gputext {
namespace {

constexpr std::size_t kBytesOfSimilar = sizeof(std::uint32_t) + sizeof(std::int8_t);

/// Whether numbers that differ are near enough; others, further away, then are not, either.
bool holds(const Condition& condition, double a, double b) {
    const double difference = std::abs(a - b);
    if (condition.kind == ConditionKind::within) return difference <= condition.limit;
    return condition.kind == ConditionKind::within_percent && std::isfinite(difference) &&
           difference <= condition.limit / 100 * std::max(std::abs(a), std::abs(b));
}

std::size_t common_elements(Symbols a, Symbols b) {
    std::size_t common = 0;
    for (auto left = a.begin(), right = b.begin(); left != a.end() && right != b.end();) {
        if (*left == *right) {
            ++common, ++left, ++right;
        } else if (*left < *right) {
            ++left;
        } else {
            ++right;
        }
    }
    return common;
}

/// Lists that threads have made of some values each become one.
Status join(std::span<const SimilarValues> parts, std::uint64_t most, SimilarValues& found) {
    found = {};
    std::uint64_t total = 0;
    for (const SimilarValues& part : parts) total += part.values.size();
    if (total > most)
        return over_memory_limit("the similar values", total * kBytesOfSimilar,
                                 most * kBytesOfSimilar);
    found.begins.push_back(0);
    found.values.reserve(total);
    found.levels.reserve(total);
    for (const SimilarValues& part : parts) {
        for (std::size_t i = 1; i < part.begins.size(); ++i)
            found.begins.push_back(found.values.size() + part.begins[i]);
        found.values.insert(found.values.end(), part.values.begin(), part.values.end());
        found.levels.insert(found.levels.end(), part.levels.begin(), part.levels.end());
    }
    return {};
}

/// Has threads call append(value, list, scratch) for the values [first, last), where list gets the
/// value's similar ones.
template <class Scratch, class Append>
Status list_in_parts(std::uint32_t first, std::uint32_t last, std::uint64_t most,
                     Execution& execution, const Scratch& scratch, const Append& append,
                     SimilarValues& found) {
    constexpr std::uint32_t kValuesOfPart = 256;
    const std::size_t count = (last - first + kValuesOfPart - 1) / kValuesOfPart;
    std::vector<SimilarValues> parts(count);
    std::vector<Scratch> scratches(execution.threads(), scratch);
    MemoryBudget budget(most > SIZE_MAX / kBytesOfSimilar ? SIZE_MAX : most * kBytesOfSimilar);
    const auto find = [&](std::size_t i, unsigned worker) -> Status {
        SimilarValues& part = parts[i];
        part.begins.push_back(0);
        const auto begin = first + static_cast<std::uint32_t>(i) * kValuesOfPart;
        for (std::uint32_t value = begin; value < std::min(last, begin + kValuesOfPart); ++value) {
            if (execution.stop_requested()) return Status::cancelled();
            append(value, part, scratches[worker]);
            const std::size_t size = part.values.size();
            GPUTEXT_TRY(budget.take((size - part.begins.back()) * kBytesOfSimilar,
                                    "the similar values"));
            part.begins.push_back(size);
        }
        return {};
    };
    GPUTEXT_TRY(execution.parallel_for(count, find));
    return join(parts, most, found);
}

}  // namespace

// ---- Two values ----

struct ValueLevels::Comparer::Metrics {
    std::vector<StringDistance> distances;  // of each metric
    std::vector<double> found;
    std::uint32_t query = kNullValue;
};

ValueLevels::Comparer::Comparer(const ValueLevels& levels)
    : levels_(&levels), metrics_(std::make_unique<Metrics>()) {
    for (const StringMetric metric : levels.metrics_) metrics_->distances.emplace_back(metric);
    metrics_->found.resize(levels.metrics_.size());
}

ValueLevels::Comparer::~Comparer() = default;
ValueLevels::Comparer::Comparer(Comparer&&) noexcept = default;

Status ValueLevels::Comparer::level(std::uint32_t a, std::uint32_t b, Stop stop, int& level) {
    const ValueLevels& levels = *levels_;
    const FieldValues& values = *levels.values_;
    if (a == b) {
        level = levels.level_of_equal(a);
        return {};
    }
    level = 0;
    if (is_number(values.kind())) {
        const double number = values.numbers()[a];
        level = levels.level_of_numbers(number, values.numbers()[b],
                                        levels.exchanged_date(number));
    } else if (values.kind() == FieldKind::set) {
        level = levels.level_of_overlap(common_elements(values.strings()[a], values.strings()[b]));
    } else if (!metrics_->distances.empty()) {
        if (metrics_->query != a) {
            for (StringDistance& distance : metrics_->distances)
                distance.set_query(values.strings()[a]);
            metrics_->query = a;
        }
        for (std::size_t i = 0; i < metrics_->distances.size(); ++i)
            GPUTEXT_TRY(metrics_->distances[i](values.strings()[b], levels.radii_[i], stop,
                                               metrics_->found[i]));
        for (int candidate = levels.top_level(); candidate > 0; --candidate) {
            const Condition& condition = levels.comparison_->condition(candidate);
            const std::optional<StringMetric> metric = string_metric_of(condition.kind);
            if (!metric) continue;
            const auto i = static_cast<std::size_t>(
                std::ranges::find(levels.metrics_, *metric) - levels.metrics_.begin());
            if (metrics_->found[i] > largest_distance(condition)) continue;
            level = candidate;
            break;
        }
    }
    return {};
}

ValueLevels::ValueLevels(const FieldComparison& comparison, const FieldValues& values)
    : comparison_(&comparison), values_(&values) {
    for (const Condition& condition : comparison.conditions) {
        exchanges_ |= condition.kind == ConditionKind::day_month_exchanged;
        const std::optional<StringMetric> metric = string_metric_of(condition.kind);
        if (!metric) continue;
        const auto found = std::ranges::find(metrics_, *metric);
        if (found == metrics_.end()) {
            metrics_.push_back(*metric);
            radii_.push_back(largest_distance(condition));
        } else {
            double& radius = radii_[static_cast<std::size_t>(found - metrics_.begin())];
            radius = std::max(radius, largest_distance(condition));
        }
    }
}

Result<ValueLevels> ValueLevels::of(const FieldComparison& comparison, const FieldValues& values,
                                    Stop stop) {
    return status_or_exception([&]() -> Result<ValueLevels> {
        ValueLevels levels(comparison, values);
        if (is_number(values.kind())) GPUTEXT_TRY(levels.sort_numbers(stop));
        if (values.kind() == FieldKind::set) GPUTEXT_TRY(levels.list_elements(stop));
        return levels;
    });
}

Status ValueLevels::sort_numbers(Stop stop) {
    const std::span<const double> numbers = values_->numbers();
    for (std::uint32_t value = 0; value < values_->count(); ++value)
        if (!std::isnan(numbers[value])) ascending_.push_back(value);
    const auto less = [&](std::uint32_t a, std::uint32_t b) { return numbers[a] < numbers[b]; };
    if (!stoppable_sort(ascending_.begin(), ascending_.end(), less, stop))
        return Status::cancelled();
    place_.assign(values_->count(), static_cast<std::uint32_t>(ascending_.size()));
    for (std::uint32_t place = 0; place < ascending_.size(); ++place)
        place_[ascending_[place]] = place;
    return {};
}

Status ValueLevels::list_elements(Stop stop) {
    const Strings sets = values_->strings();
    const std::span<const std::uint32_t> all(sets.symbols, sets.begins.back());
    std::uint32_t elements = 0;
    for (const std::uint32_t element : all) elements = std::max(elements, element + 1);
    element_begins_.assign(elements + 1, 0);
    for (const std::uint32_t element : all) ++element_begins_[element + 1];
    std::partial_sum(element_begins_.begin(), element_begins_.end(), element_begins_.begin());
    element_values_.resize(all.size());
    std::vector<std::uint64_t> next(element_begins_.begin(), element_begins_.end() - 1);
    for (std::uint32_t value = 0; value < values_->count(); ++value) {
        if (value % 65536 == 0 && stop()) return Status::cancelled();
        for (const std::uint32_t element : sets[value]) element_values_[next[element]++] = value;
    }
    return {};
}

bool ValueLevels::has_similar_values() const {
    return std::ranges::any_of(comparison_->conditions, [](const Condition& condition) {
        return condition.kind != ConditionKind::exact;
    });
}

int ValueLevels::level_of_equal(std::uint32_t value) const {
    for (int level = top_level(); level > 0; --level) {
        const Condition& condition = comparison_->condition(level);
        if (condition.kind != ConditionKind::overlap) return level;
        if (static_cast<double>(values_->strings().length(value)) >= condition.limit) return level;
    }
    return 0;
}

int ValueLevels::level_of_numbers(double a, double b, double exchanged) const {
    for (int level = top_level(); level > 0; --level) {
        const Condition& condition = comparison_->condition(level);
        if (condition.kind == ConditionKind::day_month_exchanged) {
            // What exchanges one of the two makes the other one of it.
            if (a == exchanged || b == exchanged) return level;
        } else if (holds(condition, a, b)) {
            return level;
        }
    }
    return 0;
}

double ValueLevels::exchanged_date(double days) const {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    constexpr double kMost = 1e7;  // years of std::chrono have five digits
    if (!exchanges_ || !(std::abs(days) < kMost)) return kNone;
    using namespace std::chrono;
    const year_month_day date{sys_days{std::chrono::days{static_cast<int>(days)}}};
    const unsigned day = static_cast<unsigned>(date.day());
    if (day > 12 || day == static_cast<unsigned>(date.month())) return kNone;
    const year_month_day exchanged{date.year(), month{day},
                                   std::chrono::day{static_cast<unsigned>(date.month())}};
    return static_cast<double>(sys_days{exchanged}.time_since_epoch().count());
}

std::size_t ValueLevels::place_of(double number) const {
    const std::span<const double> numbers = values_->numbers();
    const auto at = std::ranges::lower_bound(
        ascending_, number, {}, [&](std::uint32_t value) { return numbers[value]; });
    const bool found = at != ascending_.end() && numbers[*at] == number;
    return found ? static_cast<std::size_t>(at - ascending_.begin()) : ascending_.size();
}

int ValueLevels::level_of_overlap(std::size_t common) const {
    for (int level = top_level(); level > 0; --level) {
        const Condition& condition = comparison_->condition(level);
        if (condition.kind == ConditionKind::overlap &&
            static_cast<double>(common) >= condition.limit)
            return level;
    }
    return 0;
}

int ValueLevels::highest_level(std::size_t n, std::size_t m, std::size_t common,
                               bool same_begin) const {
    for (int level = top_level(); level > 0; --level) {
        const Condition& condition = comparison_->condition(level);
        const std::optional<StringMetric> metric = string_metric_of(condition.kind);
        if (metric && least_distance(*metric, n, m, common, same_begin ? kLongestPrefix : 0) <=
                          largest_distance(condition))
            return level;
    }
    return 0;
}

// ---- All similar values ----

Status ValueLevels::similar(std::uint32_t first, std::uint32_t last, int least, std::uint64_t most,
                            Execution& execution, SimilarValues& found) const {
    return status_or_exception([&]() -> Status {
        switch (values_->kind()) {
            case FieldKind::text:
                return similar_texts(first, last, least, most, execution, found);
            case FieldKind::number:
            case FieldKind::date:
                return similar_numbers(first, last, least, most, execution, found);
            case FieldKind::set:
                return similar_sets(first, last, least, most, execution, found);
            case FieldKind::other:
                break;
        }
        found = {};
        found.begins.assign(last - first + 1, 0);
        return Status();
    });
}

Status ValueLevels::similar_texts(std::uint32_t first, std::uint32_t last, int least,
                                  std::uint64_t most, Execution& execution,
                                  SimilarValues& found) const {
    const Strings all = values_->strings();
    const Strings queries{all.begins.subspan(first, last - first + 1), all.symbols};
    std::vector<Neighbors> lists;
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
        double radius = -1;
        for (int level = least; level <= top_level(); ++level)
            if (string_metric_of(comparison_->condition(level).kind) == metrics_[i])
                radius = std::max(radius, largest_distance(comparison_->condition(level)));
        NearestStringsParameters parameters;
        parameters.metric = metrics_[i];
        parameters.k = KnnParameters::all_items;
        parameters.radius = radius;
        // Each value is found as its own neighbor.
        parameters.answer_limit =
            most > SIZE_MAX / kBytesOfNeighbor - all.size()
                ? SIZE_MAX
                : static_cast<std::size_t>(most + (last - first)) * kBytesOfNeighbor;
        if (radius < 0) {
            lists.emplace_back().begins.assign(last - first + 1, 0);
            continue;
        }
        Result<Neighbors> neighbors = nearest_strings(parameters, queries, all, {}, {}, execution);
        if (!neighbors.ok()) return neighbors.status();
        lists.push_back(*std::move(neighbors));
    }
    const auto append = [&](std::uint32_t value, SimilarValues& part,
                            std::vector<std::int8_t>& best) {
        best.resize(values_->count(), 0);
        const std::size_t begin = part.values.size();
        for (std::size_t i = 0; i < lists.size(); ++i)
            for (std::uint64_t n = lists[i].begins[value - first];
                 n < lists[i].begins[value - first + 1]; ++n) {
                const std::uint32_t other = lists[i].items[n];
                if (other == value) continue;
                int level = top_level();
                while (level >= least) {
                    const Condition& condition = comparison_->condition(level);
                    if (string_metric_of(condition.kind) == metrics_[i] &&
                        lists[i].distances[n] <= largest_distance(condition))
                        break;
                    --level;
                }
                if (level < least) continue;
                if (best[other] == 0) part.values.push_back(other);
                best[other] = std::max(best[other], static_cast<std::int8_t>(level));
            }
        std::sort(part.values.begin() + static_cast<std::ptrdiff_t>(begin), part.values.end());
        for (std::size_t i = begin; i < part.values.size(); ++i) {
            part.levels.push_back(best[part.values[i]]);
            best[part.values[i]] = 0;
        }
    };
    return list_in_parts(first, last, most, execution, std::vector<std::int8_t>(), append, found);
}

Status ValueLevels::similar_numbers(std::uint32_t first, std::uint32_t last, int least,
                                    std::uint64_t most, Execution& execution,
                                    SimilarValues& found) const {
    const std::span<const double> numbers = values_->numbers();
    const auto at = [&](std::size_t place) { return numbers[ascending_[place]]; };
    const auto append = [&](std::uint32_t value, SimilarValues& part, int) {
        const std::size_t place = place_[value];
        if (place == ascending_.size()) return;
        const double exchanged = exchanged_date(at(place));
        const auto step = [&](std::size_t other) {
            const int level = level_of_numbers(at(place), at(other), exchanged);
            if (level >= least) {
                part.values.push_back(ascending_[other]);
                part.levels.push_back(static_cast<std::int8_t>(level));
            }
            return level >= least;
        };
        // Numbers that are further away are not more similar, but for an exchanged date.
        const std::size_t size = part.values.size();
        std::size_t begin = place, end = place + 1;
        while (begin > 0 && step(begin - 1)) --begin;
        while (end < ascending_.size() && step(end) && part.values.size() - size <= most) ++end;
        const std::size_t other = place_of(exchanged);
        if (other < ascending_.size() && (other < begin || other >= end)) step(other);
    };
    return list_in_parts(first, last, most, execution, 0, append, found);
}

Status ValueLevels::similar_sets(std::uint32_t first, std::uint32_t last, int least,
                                 std::uint64_t most, Execution& execution,
                                 SimilarValues& found) const {
    const Strings sets = values_->strings();
    const auto append = [&](std::uint32_t value, SimilarValues& part,
                            std::vector<std::uint32_t>& common) {
        common.resize(values_->count(), 0);
        std::vector<std::uint32_t> seen;
        for (const std::uint32_t element : sets[value])
            for (std::uint64_t i = element_begins_[element]; i < element_begins_[element + 1]; ++i)
                if (common[element_values_[i]]++ == 0) seen.push_back(element_values_[i]);
        std::ranges::sort(seen);
        for (const std::uint32_t other : seen) {
            const int level = level_of_overlap(common[other]);
            common[other] = 0;
            if (other == value || level < least) continue;
            part.values.push_back(other);
            part.levels.push_back(static_cast<std::int8_t>(level));
        }
    };
    return list_in_parts(first, last, most, execution, std::vector<std::uint32_t>(), append, found);
}

// ---- Counts ----

std::uint64_t LevelCounts::compared() const {
    return std::accumulate(pairs.begin(), pairs.end(), std::uint64_t{0});
}

/// How often values come in a pair's first and second record. In one table both are of all records.
struct Frequencies {
    std::vector<std::uint32_t> first, second;
    bool two_tables;

    Frequencies(const FieldValues& values, const Records& records)
        : first(values.frequencies(0, records.two_tables ? records.split : records.rows)),
          second(records.two_tables ? values.frequencies(records.split, records.rows) : first),
          two_tables(records.two_tables) {}

    /// Pairs of which both records have the value.
    std::uint64_t equal(std::uint32_t a) const {
        const std::uint64_t count = first[a];
        return two_tables ? count * second[a] : count * (count - 1) / 2;
    }
    /// Pairs whose first record has a and whose second one has b; in one table, b and a, too.
    std::uint64_t different(std::uint32_t a, std::uint32_t b) const {
        return std::uint64_t{first[a]} * second[b];
    }
    /// Pairs without a null.
    std::uint64_t compared() const {
        const std::uint64_t count = sum(first);
        if (two_tables) return count * sum(second);
        return count < 2 ? 0 : count * (count - 1) / 2;
    }

private:
    static std::uint64_t sum(const std::vector<std::uint32_t>& counts) {
        return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    }
};

Status ValueLevels::each_block(int least, Execution& execution, const BlockWork& work) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 24;
    constexpr std::uint32_t kLargest = 1 << 16;
    const std::uint32_t count = values_->count();
    execution.begin_phase("comparing values", count);
    SimilarValues found;
    std::uint32_t size = 1024;
    for (std::uint32_t first = 0; first < count;) {
        const std::uint32_t last = first + std::min(size, count - first);
        // What it shows of its progress is of the block alone.
        Execution part(execution.threads(), execution);
        const Status status =
            similar(first, last, least, std::max<std::uint64_t>(kMost, count), part, found);
        if (status.code() == ErrorCode::memory_limit && last - first > 1) {
            size = (last - first) / 2;
            continue;
        }
        GPUTEXT_TRY(status);
        GPUTEXT_TRY(work(first, found));
        GPUTEXT_TRY(execution.checkpoint(last - first));
        first = last;
        if (2 * found.values.size() < kMost) size = std::min(kLargest, 2 * size);
    }
    return {};
}

Result<LevelCounts> ValueLevels::count(const Records& records, Execution& execution) const {
    return status_or_exception([&]() -> Result<LevelCounts> {
        const Frequencies frequencies(*values_, records);
        LevelCounts counts;
        counts.pairs.resize(static_cast<std::size_t>(top_level()) + 1);
        const std::uint64_t compared = frequencies.compared();
        counts.nulls = records.pairs() - compared;
        for (std::uint32_t value = 0; value < values_->count(); ++value)
            counts.pairs[static_cast<std::size_t>(level_of_equal(value))] +=
                frequencies.equal(value);
        if (is_number(values_->kind())) {
            count_numbers(frequencies, counts);
        } else if (has_similar_values()) {
            GPUTEXT_TRY(each_block(1, execution, [&](std::uint32_t first,
                                                     const SimilarValues& similar) -> Status {
                for (std::size_t i = 0; i + 1 < similar.begins.size(); ++i) {
                    const auto a = first + static_cast<std::uint32_t>(i);
                    for (std::uint64_t n = similar.begins[i]; n < similar.begins[i + 1]; ++n) {
                        const std::uint32_t b = similar.values[n];
                        if (frequencies.two_tables || a < b)
                            counts.pairs[static_cast<std::size_t>(similar.levels[n])] +=
                                frequencies.different(a, b);
                    }
                }
                return {};
            }));
        }
        // All others are of level 0, beside equal ones of that level.
        counts.pairs[0] += compared - counts.compared();
        return counts;
    });
}

void ValueLevels::count_numbers(const Frequencies& frequencies, LevelCounts& counts) const {
    const std::span<const double> numbers = values_->numbers();
    const std::size_t size = ascending_.size();
    // Records with one of the first so many values, of either side
    std::vector<std::uint64_t> first(size + 1), second(size + 1);
    for (std::size_t place = 0; place < size; ++place) {
        first[place + 1] = first[place] + frequencies.first[ascending_[place]];
        second[place + 1] = second[place] + frequencies.second[ascending_[place]];
    }
    for (std::size_t place = 0; place < size; ++place) {
        const std::uint32_t value = ascending_[place];
        std::size_t reached = place + 1;
        for (int level = top_level(); level > 0; --level) {
            const Condition& condition = comparison_->condition(level);
            if (condition.kind == ConditionKind::day_month_exchanged) continue;
            const auto end = std::partition_point(
                ascending_.begin() + static_cast<std::ptrdiff_t>(reached), ascending_.end(),
                [&](std::uint32_t other) {
                    return holds(condition, numbers[value], numbers[other]);
                });
            const auto to = static_cast<std::size_t>(end - ascending_.begin());
            std::uint64_t& pairs = counts.pairs[static_cast<std::size_t>(level)];
            pairs += frequencies.first[value] * (second[to] - second[reached]);
            if (frequencies.two_tables)
                pairs += frequencies.second[value] * (first[to] - first[reached]);
            reached = to;
        }
        // A pair of exchanged dates may have been counted as near ones.
        const double exchanged = exchanged_date(numbers[value]);
        if (!(exchanged > numbers[value]) || place_of(exchanged) == size) continue;
        const std::uint32_t other = ascending_[place_of(exchanged)];
        const int level = level_of_numbers(numbers[value], exchanged, exchanged);
        const int near = level_of_numbers(numbers[value], exchanged,
                                          std::numeric_limits<double>::quiet_NaN());
        const std::uint64_t pairs =
            frequencies.different(value, other) +
            (frequencies.two_tables ? frequencies.different(other, value) : 0);
        if (near > 0) counts.pairs[static_cast<std::size_t>(near)] -= pairs;
        counts.pairs[static_cast<std::size_t>(level)] += pairs;
    }
}

}  // namespace gputext
