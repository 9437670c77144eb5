// cpp/daemon/search_parts.hpp - a search for nearest neighbors in parts, for several devices
//
// A search is shared out by its queries or by its items. By queries, each part searches all items,
// and the answers lie one behind the other. By items, each device needs only its own items, and the
// answers are merged. Either way the answer is that of the whole search, to the bit.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/neighbors.hpp"
#include "cpp/link/answers.hpp"

namespace gputext {

struct SearchShares {
    enum class By { queries, items };
    By by = By::queries;
    std::size_t parts = 1;
};

/// How a search of dense vectors is soonest done on up to so many devices, by what an H200 takes
/// and a host of so many threads: one part where a second device would take longer to begin than it
/// saves. `on_device`: whether devices may have the items already. O(devices).
SearchShares best_shares(const KnnParameters& parameters, const Vectors& queries,
                         const Vectors& items, bool on_device, std::size_t devices,
                         unsigned threads);

/// What answers may take: those of all parts and the whole one together, as long as there are both.
struct AnswerLimit {
    std::size_t k = 0;                 // for each query
    std::uint64_t bytes = UINT64_MAX;  // KnnParameters::answer_limit
};

/// The most parts by items whose answers are sure to fit; at least 1.
std::size_t most_item_parts(const AnswerLimit& limit, std::size_t queries, std::size_t items);

/// Where the parts begin that so many rows are shared out in, and the end: parts + 1 numbers.
std::vector<std::size_t> even_parts(std::size_t rows, std::size_t parts);

/// The parts of one search, and their answers. Different parts may be asked for, and answered, by
/// different threads at once.
class SearchParts {
public:
    /// Of no search.
    SearchParts() = default;
    /// Rows [begins[p], begins[p + 1]) of the queries or the items are part p's. A view of what is
    /// given.
    SearchParts(const Vectors& queries, const Vectors& items, const RowKeys& keys,
                SearchShares::By by, std::vector<std::size_t> begins);

    std::size_t size() const { return answers_.size(); }
    const Vectors& queries(std::size_t part) const {
        return by_ == SearchShares::By::queries ? rows_[part].vectors() : whole_;
    }
    const Vectors& items(std::size_t part) const {
        return by_ == SearchShares::By::items ? rows_[part].vectors() : whole_;
    }
    RowKeys keys(std::size_t part) const;

    Neighbors& answer(std::size_t part) { return answers_[part]; }
    /// Makes the whole answer of all parts': one, or several for consecutive queries. Errors:
    /// cancelled; memory_limit.
    Status merge(const AnswerLimit& limit, Execution& execution);
    /// After merge().
    std::span<const Neighbors> answers() const { return answers_; }

private:
    Status check_memory(const AnswerLimit& limit) const;

    SearchShares::By by_ = SearchShares::By::queries;
    Vectors whole_;  // what all parts have
    RowKeys keys_;
    std::vector<std::size_t> begins_;
    std::vector<RowRange> rows_;  // of each part
    std::vector<Neighbors> answers_;
};

/// The reply to a search whose answers these are, for consecutive queries.
KnnReply knn_reply(const JobReport& report, std::uint32_t queries,
                   std::span<const Neighbors> answers);

}  // namespace gputext
