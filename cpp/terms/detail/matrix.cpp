#include "cpp/terms/detail/matrix.hpp"

#include <algorithm>
#include <bit>

#include "cpp/base/stoppable.hpp"

namespace gputext {

void QueryTerms::set(const TermMatrix& queries, std::size_t row) {
    // At most a quarter is taken: most of an item's terms are not here, and that must show at once.
    const std::size_t slots = std::bit_ceil(4 * std::max<std::size_t>(4, queries.stored(row)));
    mask_ = slots - 1;
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots));
    terms_.resize(slots);
    weights_.assign(slots, 0.0);
    ColumnSum square;
    queries.each(row, [&](std::uint32_t term, double weight) {
        std::size_t at = slot(term);
        while (weights_[at] != 0) at = (at + 1) & mask_;
        terms_[at] = term;
        weights_[at] = weight;
        square.add(term, weight * weight);
    });
    square_ = square();
}

namespace {

constexpr std::size_t kMostCounters = std::size_t{1} << 26;

/// Adds the counts of some of the rows to `counts`.
Status count(const Vectors& vectors, std::span<const std::uint32_t> rows, Execution& execution,
             std::vector<std::uint32_t>& counts) {
    // Shifted by a sign, every zero has no bits.
    const unsigned sign = vectors.type == ElementType::float32 ? 1 : 0;
    const auto* elements = static_cast<const std::uint32_t*>(vectors.elements);
    std::size_t since_look = 0, rows_since = 0;
    for (const std::uint32_t row : rows) {
        const std::size_t begin = vectors.begin(row), end = begin + vectors.stored(row);
        for (std::size_t i = begin; i < end; ++i)
            counts[vectors.columns[i]] += elements[i] << sign != 0;
        since_look += end - begin + 1, ++rows_since;
        if (since_look < kLookEvery / 8) continue;
        GPUTEXT_TRY(execution.checkpoint(rows_since));
        since_look = rows_since = 0;
    }
    return execution.checkpoint(rows_since);
}

}  // namespace

Result<std::vector<std::uint32_t>> column_counts(const Vectors& vectors,
                                                 std::span<const std::uint32_t> rows,
                                                 Execution& execution) {
    const std::size_t columns = vectors.dimensions;
    const std::size_t parts =
        std::clamp<std::size_t>(kMostCounters / (columns + 1), 1, execution.threads());
    std::vector<std::vector<std::uint32_t>> counts(parts);
    GPUTEXT_TRY(execution.parallel_for(parts, [&](std::size_t part, unsigned) {
        if (!stoppable_assign(counts[part], columns, 0u, execution.stop()))
            return Status::cancelled();
        const std::size_t begin = rows.size() * part / parts;
        const std::size_t end = rows.size() * (part + 1) / parts;
        return count(vectors, rows.subspan(begin, end - begin), execution, counts[part]);
    }));
    for (std::size_t part = 1; part < parts; ++part)
        for (std::size_t column = 0; column < columns; ++column) {
            if (column % kLookEvery == 0 && execution.stop_requested()) return Status::cancelled();
            counts[0][column] += counts[part][column];
        }
    return std::move(counts[0]);
}

}  // namespace gputext
