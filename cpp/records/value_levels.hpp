// cpp/records/value_levels.hpp - levels of two values of a field, and all values that are similar to
// some of them

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/records/comparison.hpp"
#include "cpp/records/field_values.hpp"

namespace gputext {

/// For each of some values those that have at least a certain level with it, without itself.
struct SimilarValues {
    std::vector<std::uint64_t> begins;
    std::vector<std::uint32_t> values;
    std::vector<std::int8_t> levels;
};

/// Pairs of records by their level in a field.
struct LevelCounts {
    std::vector<std::uint64_t> pairs;  // [level], from 0
    std::uint64_t nulls = 0;           // pairs of which one record or both have a null

    std::uint64_t compared() const;
};

/// Compares values of one field. A view of the values and of the comparison. Functions may be
/// called by several threads.
class ValueLevels {
public:
    /// The comparison has been checked for the kind of the values. O(values log values). Errors:
    /// cancelled; out_of_memory.
    static Result<ValueLevels> of(const FieldComparison& comparison, const FieldValues& values,
                                  Stop stop);

    const FieldComparison& comparison() const { return *comparison_; }
    const FieldValues& values() const { return *values_; }
    int top_level() const { return comparison_->top_level(); }

    /// Whether different values may have a level above 0.
    bool has_similar_values() const;
    /// The level of a value with itself.
    int level_of_equal(std::uint32_t value) const;

    /// The level of two numbers that differ; `exchanged` is exchanged_date() of one of them.
    int level_of_numbers(double a, double b, double exchanged) const;
    /// The date with day and month exchanged; NaN where that is none, or the same one, or no
    /// condition asks for it.
    double exchanged_date(double days) const;

    /// The values of numbers by number, without NaN.
    std::span<const std::uint32_t> ascending() const { return ascending_; }
    /// Where a value stands among these; their count for NaN.
    std::uint32_t place(std::uint32_t value) const { return place_[value]; }
    /// In ascending(), of a number that is a value; else its size.
    std::size_t place_of(double number) const;

    /// What a thread needs to compare values that differ; it keeps what it knows of the last first
    /// value.
    class Comparer {
    public:
        explicit Comparer(const ValueLevels& levels);
        ~Comparer();
        Comparer(Comparer&&) noexcept;

        /// The level of two values that are not null. Time: that of StringDistance for each metric
        /// of the conditions; O(1) for numbers, O(elements) for sets. Errors: cancelled;
        /// out_of_memory.
        Status level(std::uint32_t a, std::uint32_t b, Stop stop, int& level);

    private:
        struct Metrics;

        const ValueLevels* levels_;
        std::unique_ptr<Metrics> metrics_;
    };

    /// The values that are similar to each of [first, last), of level `least` (at least 1) or
    /// above, ascending. For texts a search as nearest_strings() does it, over all values; for
    /// numbers and sets the similar ones alone are looked at. Errors: cancelled; out_of_memory;
    /// memory_limit where there are more than `most`.
    Status similar(std::uint32_t first, std::uint32_t last, int least, std::uint64_t most,
                   Execution& execution, SimilarValues& found) const;

    /// Calls work(first, similar) for blocks of all values, the first ones first: what similar()
    /// finds for those from `first` on. Blocks are as large as some tens of megabytes allow.
    /// Errors: those of similar() and of work().
    using BlockWork = std::function<Status(std::uint32_t first, const SimilarValues& similar)>;
    Status each_block(int least, Execution& execution, const BlockWork& work) const;

    /// Counts all pairs of the records by their level, exactly. Time and memory: those of
    /// each_block(); for numbers O(values log values). Errors: the same.
    Result<LevelCounts> count(const Records& records, Execution& execution) const;

    /// The highest level that the conditions allow a pair of sizes n and m with at most so many
    /// common characters, whose first characters differ or may be equal. Of texts.
    int highest_level(std::size_t n, std::size_t m, std::size_t common, bool same_begin) const;

private:
    friend class Comparer;

    ValueLevels(const FieldComparison& comparison, const FieldValues& values);
    Status sort_numbers(Stop stop);
    Status list_elements(Stop stop);
    Status similar_texts(std::uint32_t first, std::uint32_t last, int least, std::uint64_t most,
                         Execution& execution, SimilarValues& found) const;
    Status similar_numbers(std::uint32_t first, std::uint32_t last, int least, std::uint64_t most,
                           Execution& execution, SimilarValues& found) const;
    Status similar_sets(std::uint32_t first, std::uint32_t last, int least, std::uint64_t most,
                        Execution& execution, SimilarValues& found) const;
    void count_numbers(const struct Frequencies& frequencies, LevelCounts& counts) const;
    int level_of_overlap(std::size_t common) const;

    const FieldComparison* comparison_;
    const FieldValues* values_;
    std::vector<StringMetric> metrics_;     // of the conditions, each once
    std::vector<double> radii_;             // the widest of each
    bool exchanges_ = false;                // a condition is day_month_exchanged
    std::vector<std::uint32_t> ascending_;  // numbers' values by number, without NaN
    std::vector<std::uint32_t> place_;      // of each value in ascending_; its size for NaN
    // Of sets: the values of each element
    std::vector<std::uint64_t> element_begins_;
    std::vector<std::uint32_t> element_values_;
};

}  // namespace gputext
