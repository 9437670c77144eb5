#include "cpp/documents/detail/count_join.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include "cpp/base/radix_sort.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/count_filter.hpp"
#include "cpp/documents/edit_distance.hpp"

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
         std::span<const std::uint32_t> lengths, Execution& execution, std::uint64_t most)
        : parameters_(parameters),
          documents_(documents),
          lengths_(lengths),
          execution_(execution),
          filter_(class_filter(parameters.simd)),
          shared_(shared_features(parameters.simd)),
          found_(execution.threads(), most) {}

    Status run(std::vector<IndexPair>& candidates, bool& too_many) {
        const auto all = static_cast<std::uint32_t>(documents_.size());
        const auto split = static_cast<std::uint32_t>(parameters_.split);
        if (!sort_by_length(0, split > 0 ? split : all, rows_)) return Status::cancelled();
        if (split > 0 && !sort_by_length(split, all, other_columns_)) return Status::cancelled();
        columns_ = split > 0 ? other_columns_ : rows_;
        const std::size_t affordable = parameters_.memory_limit / sizeof(DocumentFeatures);
        const std::size_t tile = affordable >= all ? all : std::max<std::size_t>(1, affordable / 2);
        for (std::size_t begin = 0; begin < rows_.size() && !too_many_; begin += tile) {
            const Range rows{begin, std::min(rows_.size(), begin + tile)};
            GPUTEXT_TRY(compute_features(rows_, rows, row_features_));
            if (split == 0) GPUTEXT_TRY(join_tile(rows, rows, row_features_));
            const std::size_t last = end_of_comparable(rows.end - 1);
            for (std::size_t from = split == 0 ? rows.end : first_comparable(rows.begin);
                 from < last && !too_many_; from += tile) {
                const Range columns{from, std::min(last, from + tile)};
                GPUTEXT_TRY(compute_features(columns_, columns, column_features_));
                GPUTEXT_TRY(join_tile(rows, columns, column_features_));
            }
        }
        too_many = too_many_;
        return too_many ? Status() : found_.take(candidates, execution_.stop());
    }

private:
    /// Features of the documents of one range.
    struct Features {
        std::vector<DocumentFeatures> documents;
        CharacterClasses classes;
    };

    /// The documents from `begin` to `end`. False if stopped.
    bool sort_by_length(std::uint32_t begin, std::uint32_t end, std::vector<std::uint32_t>& order) {
        std::vector<std::uint64_t> keys;
        keys.reserve(end - begin);
        for (std::uint32_t i = begin; i < end; ++i)
            keys.push_back(std::uint64_t{lengths_[i]} << 32 | i);
        if (!radix_sort(keys, execution_.stop())) return false;
        order.reserve(keys.size());
        for (const std::uint64_t key : keys) order.push_back(static_cast<std::uint32_t>(key));
        return true;
    }

    std::size_t row_length(std::size_t row) const { return lengths_[rows_[row]]; }
    std::size_t length(std::size_t column) const { return lengths_[columns_[column]]; }

    /// At least as many as the threshold allows, without its divisions.
    std::size_t enough_edits(std::size_t a_length, std::size_t b_length) const {
        const auto sum = static_cast<double>(a_length + b_length);
        return static_cast<std::size_t>(parameters_.threshold * sum) + 1;
    }

    /// Whether one is too long changes once along the order, since a threshold is below 1.
    bool too_long(std::size_t longer, std::size_t shorter) const {
        return longer > shorter &&
               longer - shorter > most_edits_within(parameters_.threshold, longer + shorter);
    }

    /// The first column of a document that is not too short to be near the row.
    std::size_t first_comparable(std::size_t row) const {
        return static_cast<std::size_t>(
            std::ranges::partition_point(
                columns_,
                [&](std::uint32_t column) { return too_long(row_length(row), lengths_[column]); }) -
            columns_.begin());
    }

    /// The first column of a document that is too long to be near the row.
    std::size_t end_of_comparable(std::size_t row) const {
        return static_cast<std::size_t>(
            std::ranges::partition_point(columns_,
                                         [&](std::uint32_t column) {
                                             return !too_long(lengths_[column], row_length(row));
                                         }) -
            columns_.begin());
    }

    Status compute_features(std::span<const std::uint32_t> order, Range range, Features& features) {
        if (!stoppable_assign(features.documents, range.size(), {}, execution_.stop()))
            return Status::cancelled();
        features.classes.resize(range.size());
        execution_.begin_phase("counting characters", range.size());
        return execution_.parallel_for(range.size(), [&](std::size_t i, unsigned) {
            DocumentFeatures& document = features.documents[i];
            if (!document.set(documents_[order[range.begin + i]], documents_.characters,
                              execution_.stop()))
                return Status::cancelled();
            features.classes.set(i, document);
            return Status();
        });
    }

    Status join_tile(Range rows, Range columns, const Features& column_features) {
        execution_.begin_phase("comparing counts", rows.size());
        return execution_.parallel_for(rows.size(), [&](std::size_t i, unsigned worker) {
            const std::size_t row = rows.begin + i;
            if (!parameters_.rows.empty() && parameters_.rows[rows_[row]] == 0) return Status();
            const auto classes = row_features_.classes.column(i);
            const std::size_t end = std::min(columns.end, end_of_comparable(row));
            std::array<std::uint32_t, CharacterClasses::vector + 1> hits;
            std::size_t next =
                std::max(columns.begin, parameters_.split > 0 ? first_comparable(row) : row + 1);
            for (std::size_t looks = 0; next < end; next += CharacterClasses::vector, ++looks) {
                // A row of a million columns takes longer than a stop may wait.
                if (looks % 4096 == 4095 && execution_.stop_requested()) return Status::cancelled();
                if (looks % 64 == 0 && found_.too_many(worker)) too_many_ = true;
                if (too_many_) return Status();
                const std::size_t behind = std::min(end, next + CharacterClasses::vector);
                const std::size_t least = least_shared(row, {next, behind});
                const std::size_t count = filter_(
                    classes, column_features.classes, next - columns.begin, behind - columns.begin,
                    static_cast<std::uint16_t>(std::min<std::size_t>(least, UINT16_MAX)),
                    hits.data());
                for (const std::uint32_t hit : std::span(hits).first(count)) {
                    const std::size_t column = columns.begin + hit;
                    if (may_be_within(shared_, row_features_.documents[i],
                                      column_features.documents[hit],
                                      std::max(row_length(row), length(column)),
                                      enough_edits(row_length(row), length(column))))
                        found_.add(worker, rows_[row], columns_[column]);
                }
            }
            return Status();
        });
    }

    /// What a row shares at least with any of the columns: least with one that is as long, or
    /// nearly.
    std::size_t least_shared(std::size_t row, Range columns) const {
        const std::size_t own = row_length(row);
        const std::size_t other = std::clamp(own, length(columns.begin), length(columns.end - 1));
        const std::size_t longer = std::max(own, other);
        return longer - std::min(longer, enough_edits(own, other));
    }

    const DocumentJoin& parameters_;
    const Documents& documents_;
    std::span<const std::uint32_t> lengths_;
    Execution& execution_;
    ClassFilter filter_;
    SharedFeatures shared_;
    std::vector<std::uint32_t> rows_;           // documents by length
    std::vector<std::uint32_t> other_columns_;  // those behind the split
    std::span<const std::uint32_t> columns_;    // these, or the rows
    Features row_features_, column_features_;
    PairLists found_;
    std::atomic<bool> too_many_{false};
};

}  // namespace

Status join_documents(const DocumentJoin& parameters, const Documents& documents,
                      std::span<const std::uint32_t> lengths, Execution& execution,
                      std::vector<IndexPair>& candidates, std::uint64_t most, bool* too_many) {
    candidates.clear();
    bool more = false;
    Status status = Join(parameters, documents, lengths, execution, most).run(candidates, more);
    if (too_many != nullptr) *too_many = more;
    return status;
}

}  // namespace gputext
