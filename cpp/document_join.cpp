#include "cpp/document_join.hpp"

#include <algorithm>
#include <numeric>

#include "cpp/document_filter.hpp"
#include "cpp/edit_distance.hpp"
#include "cpp/stoppable.hpp"

namespace gputext {
namespace {

/// A range of documents in order of length.
struct Range {
    std::size_t begin, end;
    std::size_t size() const { return end - begin; }
};

class Join {
public:
    Join(const DocumentJoin& parameters, const Documents& documents,
         std::span<const std::uint32_t> lengths, Execution& execution)
        : parameters_(parameters),
          documents_(documents),
          lengths_(lengths),
          execution_(execution),
          shared_(shared_features(parameters.simd)),
          order_(documents.size()),
          found_(execution.threads()),
          symbols_(execution.threads()) {}

    Status run() {
        std::iota(order_.begin(), order_.end(), 0u);
        const auto shorter = [&](std::uint32_t a, std::uint32_t b) {
            return std::pair(lengths_[a], a) < std::pair(lengths_[b], b);
        };
        if (!stoppable_sort(order_, shorter, execution_.stop())) return Status::cancelled();
        const std::size_t affordable = parameters_.memory_limit / sizeof(DocumentFeatures);
        const std::size_t all = order_.size();
        const std::size_t tile = affordable >= all ? all : std::max<std::size_t>(1, affordable / 2);
        for (std::size_t begin = 0; begin < all; begin += tile) {
            const Range rows{begin, std::min(all, begin + tile)};
            if (Status status = compute_features(rows, row_features_); !status.ok()) return status;
            if (Status status = join_tile(rows, rows, row_features_); !status.ok()) return status;
            const std::size_t last = end_of_comparable(rows.end - 1);
            for (std::size_t from = rows.end; from < last; from += tile) {
                const Range columns{from, std::min(last, from + tile)};
                if (Status status = compute_features(columns, column_features_); !status.ok())
                    return status;
                if (Status status = join_tile(rows, columns, column_features_); !status.ok())
                    return status;
            }
        }
        return {};
    }

    Status take_candidates(std::vector<IndexPair>& candidates) {
        return collect_pairs(found_, execution_.stop(), candidates);
    }

private:
    using Features = std::vector<DocumentFeatures>;

    std::size_t length(std::size_t place) const { return lengths_[order_[place]]; }

    std::size_t most_edits(std::size_t a, std::size_t b) const {
        return most_edits_below(parameters_.threshold, length(a) + length(b));
    }

    /// The first place, after this one, of a document too long to be near it. Whether one is too
    /// long changes once along the order, since a threshold is below 1.
    std::size_t end_of_comparable(std::size_t place) const {
        const auto comparable = [&](std::uint32_t other) {
            const std::size_t longer = lengths_[other];
            return longer - length(place) <=
                   most_edits_below(parameters_.threshold, longer + length(place));
        };
        const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(place);
        return static_cast<std::size_t>(std::partition_point(begin, order_.end(), comparable) -
                                        order_.begin());
    }

    Status compute_features(Range range, Features& features) {
        if (!stoppable_assign(features, range.size(), {}, execution_.stop()))
            return Status::cancelled();
        execution_.begin_phase("counting characters", range.size());
        return execution_.parallel_for(range.size(), [&](std::size_t i, unsigned worker) {
            features[i].set(documents_[order_[range.begin + i]], documents_.characters,
                            symbols_[worker], execution_.stop());
            return Status();
        });
    }

    Status join_tile(Range rows, Range columns, const Features& column_features) {
        execution_.begin_phase("comparing counts", rows.size());
        return execution_.parallel_for(rows.size(), [&](std::size_t i, unsigned worker) {
            const std::size_t row = rows.begin + i;
            const Range compared{std::max(columns.begin, row + 1),
                                 std::min(columns.end, end_of_comparable(row))};
            for (std::size_t column = compared.begin; column < compared.end; ++column) {
                if (may_be_within(shared_, row_features_[i],
                                  column_features[column - columns.begin], length(column),
                                  most_edits(row, column))) {
                    const auto [first, second] = std::minmax(order_[row], order_[column]);
                    found_[worker].push_back({first, second});
                }
                // A row of a million columns takes longer than a stop may wait.
                if (column % 65536 == 0 && execution_.stop_requested()) return Status::cancelled();
            }
            return Status();
        });
    }

    const DocumentJoin& parameters_;
    const Documents& documents_;
    std::span<const std::uint32_t> lengths_;
    Execution& execution_;
    SharedFeatures shared_;
    std::vector<std::uint32_t> order_;  // documents by length
    Features row_features_, column_features_;
    std::vector<std::vector<IndexPair>> found_;        // by worker
    std::vector<std::vector<std::uint32_t>> symbols_;  // by worker
};

}  // namespace

Status join_documents(const DocumentJoin& parameters, const Documents& documents,
                      std::span<const std::uint32_t> lengths, Execution& execution,
                      std::vector<IndexPair>& candidates) {
    candidates.clear();
    if (!any_rate_below(parameters.threshold)) return {};
    Join join(parameters, documents, lengths, execution);
    if (Status status = join.run(); !status.ok()) return status;
    return join.take_candidates(candidates);
}

}  // namespace gputext
