#include "cpp/knn/distinct_matrix.hpp"

#include <algorithm>
#include <cstring>

#include "cpp/base/stoppable.hpp"

namespace gputext {

Status DistinctMatrix::set(const Vectors& vectors, const DistinctRows& distinct,
                           Execution& execution) {
    vectors_ = vectors;
    if (distinct.size() == vectors.rows) return {};
    vectors_.rows = distinct.size();
    return vectors.sparse() ? copy_sparse(vectors, distinct, execution.stop())
                            : copy_dense(vectors, distinct, execution);
}

Status DistinctMatrix::copy_dense(const Vectors& from, const DistinctRows& distinct,
                                  Execution& execution) {
    const std::size_t rows = distinct.size();
    const std::size_t bytes = from.dimensions * element_size(from.type);
    // Its pages are first touched by the threads that fill them.
    dense_ = std::make_unique_for_overwrite<std::byte[]>(rows * bytes);
    vectors_.elements = dense_.get();
    const std::size_t step = std::max<std::size_t>(1, kLookEvery / (bytes + 1));
    const std::size_t tasks = (rows + step - 1) / step;
    execution.begin_phase("copying distinct vectors", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t c = task * step; c < std::min(rows, (task + 1) * step) && bytes > 0; ++c)
            std::memcpy(dense_.get() + c * bytes, from.row_bytes(distinct.firsts()[c]), bytes);
        return Status();
    });
}

Status DistinctMatrix::copy_sparse(const Vectors& from, const DistinctRows& distinct, Stop stop) {
    elements_.clear();
    columns_.clear();
    row_begins_.assign(1, 0);
    const std::size_t look_every = 1 + kLookEvery / (from.dimensions + 1);
    for (std::size_t c = 0; c < distinct.size(); ++c) {
        if (c % look_every == 0 && stop()) return Status::cancelled();
        const std::size_t row = distinct.firsts()[c], count = from.stored(row);
        const std::byte* bytes = from.row_bytes(row);
        elements_.insert(elements_.end(), bytes, bytes + count * element_size(from.type));
        const auto columns = from.columns.subspan(from.begin(row), count);
        columns_.insert(columns_.end(), columns.begin(), columns.end());
        row_begins_.push_back(columns_.size());
    }
    vectors_.elements = elements_.data();
    vectors_.row_begins = row_begins_;
    vectors_.columns = columns_;
    return {};
}

}  // namespace gputext
