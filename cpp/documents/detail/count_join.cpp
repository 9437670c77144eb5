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
        if (!sort_by_length()) return Status::cancelled();
        const std::size_t affordable = parameters_.memory_limit / sizeof(DocumentFeatures);
        const std::size_t all = order_.size();
        const std::size_t tile = affordable >= all ? all : std::max<std::size_t>(1, affordable / 2);
        for (std::size_t begin = 0; begin < all && !too_many_; begin += tile) {
            const Range rows{begin, std::min(all, begin + tile)};
            GPUTEXT_TRY(compute_features(rows, row_features_));
            GPUTEXT_TRY(join_tile(rows, rows, row_features_));
            const std::size_t last = end_of_comparable(rows.end - 1);
            for (std::size_t from = rows.end; from < last && !too_many_; from += tile) {
                const Range columns{from, std::min(last, from + tile)};
                GPUTEXT_TRY(compute_features(columns, column_features_));
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

    /// False if stopped.
    bool sort_by_length() {
        std::vector<std::uint64_t> keys(documents_.size());
        for (std::size_t i = 0; i < keys.size(); ++i)
            keys[i] = std::uint64_t{lengths_[i]} << 32 | i;
        if (!radix_sort(keys, execution_.stop())) return false;
        order_.resize(keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i)
            order_[i] = static_cast<std::uint32_t>(keys[i]);
        return true;
    }

    std::size_t length(std::size_t place) const { return lengths_[order_[place]]; }

    /// At least as many as the threshold allows, without its divisions.
    std::size_t enough_edits(std::size_t a, std::size_t b) const {
        const auto sum = static_cast<double>(length(a) + length(b));
        return static_cast<std::size_t>(parameters_.threshold * sum) + 1;
    }

    /// The first place, after this one, of a document too long to be near it. Whether one is too
    /// long changes once along the order, since a threshold is below 1.
    std::size_t end_of_comparable(std::size_t place) const {
        const auto comparable = [&](std::uint32_t other) {
            const std::size_t longer = lengths_[other];
            return longer - length(place) <=
                   most_edits_within(parameters_.threshold, longer + length(place));
        };
        const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(place);
        return static_cast<std::size_t>(std::partition_point(begin, order_.end(), comparable) -
                                        order_.begin());
    }

    Status compute_features(Range range, Features& features) {
        if (!stoppable_assign(features.documents, range.size(), {}, execution_.stop()))
            return Status::cancelled();
        features.classes.resize(range.size());
        execution_.begin_phase("counting characters", range.size());
        return execution_.parallel_for(range.size(), [&](std::size_t i, unsigned) {
            DocumentFeatures& document = features.documents[i];
            if (!document.set(documents_[order_[range.begin + i]], documents_.characters,
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
            if (!parameters_.rows.empty() && parameters_.rows[order_[row]] == 0) return Status();
            const auto classes = row_features_.classes.column(i);
            const std::size_t end = std::min(columns.end, end_of_comparable(row));
            std::array<std::uint32_t, CharacterClasses::vector + 1> hits;
            std::size_t next = std::max(columns.begin, row + 1);
            for (std::size_t looks = 0; next < end; next += CharacterClasses::vector, ++looks) {
                // A row of a million columns takes longer than a stop may wait.
                if (looks % 4096 == 4095 && execution_.stop_requested()) return Status::cancelled();
                if (looks % 64 == 0 && found_.too_many(worker)) too_many_ = true;
                if (too_many_) return Status();
                // Among these columns the first document, the shortest, has to share least.
                const std::size_t least =
                    length(next) - std::min(length(next), enough_edits(row, next));
                const std::size_t count =
                    filter_(classes, column_features.classes, next - columns.begin,
                            std::min(end, next + CharacterClasses::vector) - columns.begin,
                            static_cast<std::uint16_t>(std::min<std::size_t>(least, UINT16_MAX)),
                            hits.data());
                for (const std::uint32_t hit : std::span(hits).first(count)) {
                    const std::size_t column = columns.begin + hit;
                    if (may_be_within(shared_, row_features_.documents[i],
                                      column_features.documents[hit], length(column),
                                      enough_edits(row, column)))
                        found_.add(worker, order_[row], order_[column]);
                }
            }
            return Status();
        });
    }

    const DocumentJoin& parameters_;
    const Documents& documents_;
    std::span<const std::uint32_t> lengths_;
    Execution& execution_;
    ClassFilter filter_;
    SharedFeatures shared_;
    std::vector<std::uint32_t> order_;  // documents by length
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
