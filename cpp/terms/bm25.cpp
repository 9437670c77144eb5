#include "cpp/terms/bm25.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// Rows of a task.
constexpr std::size_t kRowsAtOnce = 1024;

/// Calls function(row) for all rows, in parallel. Error: cancelled.
template <class Function>
Status each_row(const Vectors& rows, const char* phase, Execution& execution, Function&& function) {
    const std::size_t tasks = (rows.rows + kRowsAtOnce - 1) / kRowsAtOnce;
    execution.begin_phase(phase, tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        const std::size_t end = std::min(rows.rows, (task + 1) * kRowsAtOnce);
        std::size_t since_look = 0;
        for (std::size_t row = task * kRowsAtOnce; row < end; ++row) {
            function(row);
            since_look += rows.stored(row) + 1;
            if (since_look < kLookEvery / 8) continue;
            since_look = 0;
            if (execution.stop_requested()) return Status::cancelled();
        }
        return Status();
    });
}

}  // namespace

Bm25::Bm25(const TermParameters& parameters, std::int64_t total_length, std::size_t items)
    : k1_(parameters.k1),
      b_(parameters.b),
      average_(parameters.average_length > 0
                   ? parameters.average_length
                   : static_cast<double>(total_length) / static_cast<double>(items)) {}

double Bm25::of_length(std::int64_t length) const {
    return k1_ * (1 - b_ + b_ * static_cast<double>(length) / average_);
}

std::int64_t text_length(const Vectors& items, std::size_t row) {
    const auto* const counts = static_cast<const std::int32_t*>(items.elements);
    const std::size_t begin = items.begin(row), end = begin + items.stored(row);
    std::int64_t length = 0;
    for (std::size_t i = begin; i < end; ++i) length += counts[i];
    return length;
}

Result<std::int64_t> total_length(const Vectors& items, Execution& execution) {
    std::atomic<std::int64_t> total{0};
    GPUTEXT_TRY(each_row(items, "measuring texts", execution,
                         [&](std::size_t row) { total += text_length(items, row); }));
    return total.load();
}

Status WeighedItems::set(const TermParameters& parameters, std::vector<double> factors,
                         const Vectors& items, Execution& execution) {
    if (!parameters.valid())
        return {ErrorCode::invalid_argument, "k1, b or the average length is out of range"};
    items_ = items;
    factors_ = std::move(factors);
    weights_.reset();
    if (parameters.weighting != TermWeighting::bm25 || items.rows == 0) return {};
    if (items.type != ElementType::int32 || items.dimensions != factors_.size())
        return {ErrorCode::invalid_argument, "BM25 is of counts, and has a factor for each term"};
    return weigh(parameters, execution);
}

Status WeighedItems::weigh(const TermParameters& parameters, Execution& execution) {
    const Vectors counts = items_;
    const auto total = total_length(counts, execution);
    if (!total.ok()) return total.status();
    const Bm25 bm25(parameters, *total, counts.rows);
    weights_ = std::make_unique_for_overwrite<float[]>(counts.row_begins.back());
    const auto* const elements = static_cast<const std::int32_t*>(counts.elements);
    GPUTEXT_TRY(each_row(counts, "weighing texts", execution, [&](std::size_t row) {
        const double of_length = bm25.of_length(text_length(counts, row));
        const std::size_t begin = counts.begin(row), end = begin + counts.stored(row);
        for (std::size_t i = begin; i < end; ++i)
            weights_[i] = Bm25::weight(factors_[counts.columns[i]], elements[i], of_length);
    }));
    items_.type = ElementType::float32;
    items_.elements = weights_.get();
    items_.known = nullptr;
    for (double& factor : factors_) factor = factor > 0;
    return {};
}

}  // namespace gputext
