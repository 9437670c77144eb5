#include "cpp/embeddings/average.hpp"

#include <algorithm>

#include "cpp/base/memory_budget.hpp"

namespace gputext {
namespace {

/// Words of a step of parallel work.
constexpr std::size_t kWordsOfStep = 64;

struct Weighted {
    float value;
    double weight;

    friend bool operator<(const Weighted& a, const Weighted& b) {
        return a.value != b.value ? a.value < b.value : a.weight < b.weight;
    }
};

/// The rows of each word, side by side.
struct RowsOfWords {
    std::vector<std::uint64_t> begins;  // words + 1
    std::vector<std::uint32_t> rows;
};

RowsOfWords rows_of_words(const AveragedRows& rows) {
    RowsOfWords found;
    found.begins.resize(std::size_t{rows.words} + 1);
    for (const std::uint32_t word : rows.row_words) ++found.begins[word + 1];
    for (std::size_t word = 0; word < rows.words; ++word)
        found.begins[word + 1] += found.begins[word];
    found.rows.resize(rows.row_words.size());
    std::vector<std::uint64_t> next(found.begins.begin(), found.begins.end() - 1);
    for (std::uint32_t row = 0; row < rows.row_words.size(); ++row)
        found.rows[next[rows.row_words[row]]++] = row;
    return found;
}

float mean_of(std::span<Weighted> values) {
    std::sort(values.begin(), values.end());
    double sum = 0, weights = 0;
    for (const Weighted& one : values) {
        sum += one.weight * static_cast<double>(one.value);
        weights += one.weight;
    }
    return static_cast<float>(sum / weights);
}

/// The means of one word. `values` is scratch.
void average_word(const AveragedRows& rows, std::span<const std::uint32_t> own,
                  std::span<const float> vectors, std::vector<Weighted>& values, float* means) {
    const bool weighted = !rows.weights.empty() &&
                          std::any_of(own.begin(), own.end(),
                                      [&](std::uint32_t row) { return rows.weights[row] > 0; });
    values.resize(own.size());
    for (std::size_t i = 0; i < rows.dimensions; ++i) {
        for (std::size_t j = 0; j < own.size(); ++j)
            values[j] = {vectors[own[j] * rows.dimensions + i],
                         weighted ? static_cast<double>(rows.weights[own[j]]) : 1.0};
        means[i] = mean_of(values);
    }
}

}  // namespace

Status average_rows(const AveragedRows& rows, std::span<const float> vectors,
                    std::size_t memory_limit, Execution& execution, std::vector<float>& means) {
    MemoryBudget budget(memory_limit);
    const std::size_t size = rows.words * rows.dimensions;
    GPUTEXT_TRY(budget.take(size * sizeof(float), "the averaged vectors"));
    means.resize(size);
    const RowsOfWords found = rows_of_words(rows);
    const std::size_t steps = (rows.words + kWordsOfStep - 1) / kWordsOfStep;
    execution.begin_phase("averaging vectors", steps);
    std::vector<std::vector<Weighted>> scratch(execution.threads());
    return execution.parallel_for(steps, [&](std::size_t step, unsigned worker) {
        const std::size_t end = std::min<std::size_t>(rows.words, (step + 1) * kWordsOfStep);
        for (std::size_t word = step * kWordsOfStep; word < end; ++word)
            average_word(
                rows,
                std::span(found.rows)
                    .subspan(found.begins[word], found.begins[word + 1] - found.begins[word]),
                vectors, scratch[worker], means.data() + word * rows.dimensions);
        return Status();
    });
}

}  // namespace gputext
