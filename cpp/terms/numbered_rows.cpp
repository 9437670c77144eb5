#include "cpp/terms/numbered_rows.hpp"

#include <algorithm>
#include <vector>

namespace gputext {
namespace {

std::uint64_t kept_terms(const ChunkText& text, const std::vector<std::uint32_t>& numbers) {
    const auto left_out = [&numbers](std::uint32_t term) { return numbers[term] == UINT32_MAX; };
    const std::uint32_t* const terms = text.record + 1;
    return *text.record -
           static_cast<std::uint64_t>(std::count_if(terms, terms + *text.record, left_out));
}

/// Puts rows together.
class RowsAtWork {
public:
    void clear() {
        columns_.clear();
        values_.clear();
    }
    void add(const ChunkText& text, const std::vector<std::uint32_t>& numbers) {
        const std::uint32_t count = *text.record;
        row_.clear();
        for (std::uint32_t i = 1; i <= count; ++i) {
            const std::uint64_t number = numbers[text.record[i]];
            if (number != UINT32_MAX) row_.push_back(number << 32 | text.record[count + i]);
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

Status count_terms(const NumberedTexts& rows, bool leaves_out, std::span<std::uint64_t> row_begins,
                   Execution& execution) {
    const auto count = [&](const TextPart& part, unsigned) -> Status {
        for (std::size_t row = part.begin; row < part.end; ++row) {
            const ChunkText& text = rows.texts.texts[row];
            row_begins[row + 1] =
                leaves_out ? kept_terms(text, (*rows.numbers)[text.chunk]) : *text.record;
        }
        return {};
    };
    GPUTEXT_TRY(for_texts(rows.texts, "counting terms of rows", count, execution));
    row_begins[0] = 0;
    for (std::size_t row = 1; row < row_begins.size(); ++row)
        row_begins[row] += row_begins[row - 1];
    return {};
}

Status number_terms(const NumberedTexts& rows, std::span<const std::uint64_t> row_begins,
                    const TermSink& sink, Execution& execution) {
    std::vector<RowsAtWork> of_worker(execution.threads());
    const auto number = [&](const TextPart& part, unsigned worker) {
        RowsAtWork& at_work = of_worker[worker];
        at_work.clear();
        for (std::size_t row = part.begin; row < part.end; ++row) {
            const ChunkText& text = rows.texts.texts[row];
            at_work.add(text, (*rows.numbers)[text.chunk]);
        }
        return sink(row_begins[part.begin], at_work.columns(), at_work.values());
    };
    return for_texts(rows.texts, "numbering terms of rows", number, execution);
}

}  // namespace gputext
