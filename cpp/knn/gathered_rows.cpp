#include "cpp/knn/gathered_rows.hpp"

#include <algorithm>
#include <cstring>

#include "cpp/base/stoppable.hpp"

namespace gputext {

Status GatheredRows::set(const Vectors& vectors, std::span<const std::uint32_t> rows,
                         Execution& execution) {
    vectors_ = vectors;
    if (rows.size() == vectors.rows) return {};
    vectors_.rows = rows.size();
    vectors_.known = nullptr;
    return vectors.sparse() ? copy_sparse(vectors, rows, execution.stop())
                            : copy_dense(vectors, rows, execution);
}

Status GatheredRows::copy_dense(const Vectors& from, std::span<const std::uint32_t> rows,
                                Execution& execution) {
    const std::size_t bytes = from.dimensions * element_size(from.type);
    // Its pages are first touched by the threads that fill them.
    dense_ = std::make_unique_for_overwrite<std::byte[]>(rows.size() * bytes);
    vectors_.elements = dense_.get();
    const std::size_t step = std::max<std::size_t>(1, kLookEvery / (bytes + 1));
    const std::size_t tasks = (rows.size() + step - 1) / step;
    execution.begin_phase("copying vectors", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        const std::size_t end = std::min(rows.size(), (task + 1) * step);
        for (std::size_t row = task * step; row < end && bytes > 0; ++row)
            std::memcpy(dense_.get() + row * bytes, from.row_bytes(rows[row]), bytes);
        return Status();
    });
}

Status GatheredRows::copy_sparse(const Vectors& from, std::span<const std::uint32_t> rows,
                                 Stop stop) {
    elements_.clear();
    columns_.clear();
    row_begins_.assign(1, 0);
    const std::size_t look_every = 1 + kLookEvery / (from.dimensions + 1);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i % look_every == 0 && stop()) return Status::cancelled();
        const std::size_t row = rows[i], count = from.stored(row);
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
