// extension/values/row_threads.hpp - work on rows that threads share where rows are many

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/row_buckets.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/growing_array.hpp"
#include "extension/server/session_job.hpp"

namespace gputext {

/// Fewer rows are put in order in less time than threads take to start.
inline constexpr std::size_t kRowsForThreads = std::size_t{1} << 16;

/// As run_threaded(), but that the session itself works on few rows.
template <class Work>
void run_on_rows(std::size_t rows, const Work& work) {
    if (rows >= kRowsForThreads) return run_threaded(work);
    attempt_or_raise([&] {
        Execution execution(1);
        return work(execution);
    });
}

/// Puts values of rows into this order of their numbers so far.
template <class Value>
Status put_in_order(GrowingArray<Value>& values, const std::vector<std::uint32_t>& order,
                    Execution& execution) {
    GrowingArray<Value> ordered;
    ordered.allot(order.size());
    GPUTEXT_TRY(gather(
        order, ordered.data(), [&](std::uint32_t row) { return values[row]; }, execution));
    values.swap(ordered);
    return {};
}

}  // namespace gputext
