#include "cpp/terms/numbered_rows.hpp"

#include <algorithm>
#include <vector>

namespace gputext {
namespace {

const std::uint32_t* next_record(const std::uint32_t* record) {
    return record + 1 + 2 * std::size_t{*record};
}

std::uint64_t kept_terms(const TermStretch& stretch, const std::uint32_t* record) {
    const auto left_out = [&stretch](std::uint32_t term) {
        return stretch.numbers[term] == UINT32_MAX;
    };
    return *record -
           static_cast<std::uint64_t>(std::count_if(record + 1, record + 1 + *record, left_out));
}

/// The first row of each stretch, and their end.
std::vector<std::uint64_t> first_rows(std::span<const TermStretch> stretches) {
    std::vector<std::uint64_t> first{0};
    for (const TermStretch& stretch : stretches) first.push_back(first.back() + stretch.rows);
    return first;
}

/// Puts the rows of a stretch together.
class StretchRows {
public:
    void clear() {
        columns_.clear();
        values_.clear();
    }
    void add(const TermStretch& stretch, const std::uint32_t* record) {
        const std::uint32_t count = *record;
        row_.clear();
        for (std::uint32_t i = 1; i <= count; ++i) {
            const std::uint64_t number = stretch.numbers[record[i]];
            if (number != UINT32_MAX) row_.push_back(number << 32 | record[count + i]);
        }
        std::sort(row_.begin(), row_.end());
        for (const std::uint64_t element : row_) {
            columns_.push_back(static_cast<std::uint32_t>(element >> 32));
            values_.push_back(static_cast<std::uint32_t>(element));
        }
    }
    std::span<const std::uint32_t> columns() const { return columns_; }
    std::span<const std::uint32_t> values() const { return values_; }

private:
    std::vector<std::uint64_t> row_;
    std::vector<std::uint32_t> columns_, values_;
};

}  // namespace

Status count_terms(std::span<const TermStretch> stretches, bool leaves_out,
                   std::span<std::uint64_t> row_begins, Execution& execution) {
    const std::vector<std::uint64_t> first = first_rows(stretches);
    execution.begin_phase("counting terms of rows", stretches.size());
    GPUTEXT_TRY(execution.parallel_for(stretches.size(), [&](std::size_t i, unsigned) -> Status {
        const TermStretch& stretch = stretches[i];
        const std::uint32_t* record = stretch.records;
        for (std::uint32_t row = 0; row < stretch.rows; ++row, record = next_record(record))
            row_begins[first[i] + row + 1] = leaves_out ? kept_terms(stretch, record) : *record;
        return {};
    }));
    row_begins[0] = 0;
    for (std::size_t row = 1; row < row_begins.size(); ++row)
        row_begins[row] += row_begins[row - 1];
    return {};
}

Status number_terms(std::span<const TermStretch> stretches,
                    std::span<const std::uint64_t> row_begins, const TermSink& sink,
                    Execution& execution) {
    const std::vector<std::uint64_t> first = first_rows(stretches);
    std::vector<StretchRows> of_worker(execution.threads());
    execution.begin_phase("numbering terms of rows", stretches.size());
    return execution.parallel_for(stretches.size(), [&](std::size_t i, unsigned worker) {
        const TermStretch& stretch = stretches[i];
        StretchRows& rows = of_worker[worker];
        rows.clear();
        const std::uint32_t* record = stretch.records;
        for (std::uint32_t row = 0; row < stretch.rows; ++row, record = next_record(record))
            rows.add(stretch, record);
        return sink(row_begins[first[i]], rows.columns(), rows.values());
    });
}

}  // namespace gputext
