#include "cpp/knn/dbscan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cpp/base/large_pages.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {
namespace {

/// A block whose neighbors do not fit becomes so many times smaller. What was found of it is lost,
/// which is at most what does fit.
constexpr std::size_t kShrinking = 8;
/// With n times as many rows, blocks are as many as the root of n. More of them leave out more pairs
/// that are known, and devices get the rows once more for each.
constexpr double kRowsOfOneBlock = 1 << 14;
/// Rows of a task, and what follows a search at a time.
constexpr std::size_t kRowsOfTask = 64;
/// Vectors grow by doubling.
constexpr std::size_t kGrowth = 2;

Status invalid(const char* message) {
    return {ErrorCode::invalid_argument, message};
}

Status check(const DbscanParameters& parameters) {
    if (!(parameters.epsilon >= 0) || std::isinf(parameters.epsilon))
        return invalid("epsilon must be a finite number of at least 0");
    if (parameters.min_points == 0) return invalid("min_points must be at least 1");
    if (parameters.metric == Metric::inner_product)
        return invalid("an inner product is no distance");
    return {};
}

/// Calls body(row, worker) for rows [begin, end), many of them a task.
template <class Body>
Status for_each_row(const char* phase, std::size_t begin, std::size_t end, Execution& execution,
                    const Body& body) {
    const std::size_t tasks = (end - begin + kRowsOfTask - 1) / kRowsOfTask;
    const Stop stop = execution.stop();
    execution.begin_phase(phase, tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned worker) -> Status {
        const std::size_t first = begin + task * kRowsOfTask;
        for (std::size_t row = first; row < std::min(end, first + kRowsOfTask); ++row) {
            // One row may have millions of neighbors.
            if (stop()) return Status::cancelled();
            GPUTEXT_TRY(body(static_cast<std::uint32_t>(row), worker));
        }
        return {};
    });
}

}  // namespace

Status DbscanSearch::set(const DbscanParameters& parameters, const Vectors& items,
                         Execution& execution) {
    GPUTEXT_TRY(check(parameters));
    parameters_ = parameters;
    const auto largest = largest_magnitude(items, "item", execution);
    if (!largest.ok()) return largest.status();
    GPUTEXT_TRY(distinct_.set(items, execution));
    GPUTEXT_TRY(gathered_.set(items, distinct_.firsts(), execution));
    rows_ = gathered_.vectors();
    if (rows_.known == nullptr && !rows_.sparse()) {
        // The searches of all blocks look at the same rows.
        rows_.known = &known_;
        known_.set_largest(rows_, *largest);
    }
    if (!assign_pages(states_, rows_.rows, std::uint8_t{kUnknown}, execution.stop()))
        return Status::cancelled();
    sets_.emplace(rows_.rows);
    kept_.emplace(parameters.answer_limit);
    return {};
}

KnnParameters DbscanSearch::parameters() const {
    KnnParameters knn;
    knn.k = KnnParameters::all_items;
    knn.radius = parameters_.epsilon;
    knn.metric = parameters_.metric;
    knn.memory_limit = parameters_.memory_limit;
    knn.simd = parameters_.simd;
    knn.answer_limit = parameters_.answer_limit;
    return knn;
}

void DbscanSearch::share_out(std::size_t parts) {
    const auto rows = static_cast<double>(rows_.rows);
    // Where a row is compared with those behind it, the first rows take longest.
    const auto begin_of = [&](std::size_t part) {
        const double share = static_cast<double>(part) / static_cast<double>(parts);
        return static_cast<std::size_t>(
            rows * (neighbors_are_core() ? 1 - std::sqrt(1 - share) : share));
    };
    const double blocks =
        neighbors_are_core() ? std::max(1.0, std::sqrt(rows / kRowsOfOneBlock)) : 1;
    const auto most = std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(rows / blocks)));
    parts_.clear();
    for (std::size_t part = 0; part < parts; ++part)
        parts_.push_back({begin_of(part), part + 1 < parts ? begin_of(part + 1) : rows_.rows, most,
                          most, {}});
}

Status DbscanSearch::run(std::size_t part, const KnnFunction& search, Execution& execution) {
    Part& own = parts_[part];
    own.kept.resize(std::max<std::size_t>(own.kept.size(), execution.threads()));
    while (own.next < own.end) {
        const std::size_t end = own.next + std::min(own.step, own.end - own.next);
        const std::size_t first_item = neighbors_are_core() ? own.next : 0;
        KnnParameters knn = parameters();
        knn.answer_limit = (knn.answer_limit - kept_->used()) / parts_.size();
        auto found = search(knn, RowRange(rows_, own.next, end).vectors(),
                            RowRange(rows_, first_item, rows_.rows).vectors(), {});
        if (!found.ok()) {
            if (found.status().code() != ErrorCode::memory_limit || end - own.next == 1)
                return found.status();
            own.step = std::max<std::size_t>(1, (end - own.next) / kShrinking);
            continue;
        }
        GPUTEXT_TRY(take(own, first_item, *found, execution));
        // The next block is to fill half of the limit.
        const double of_each = static_cast<double>(found->items.size() * kBytesOfNeighbor) /
                               static_cast<double>(end - own.next);
        const double fit = static_cast<double>(knn.answer_limit) / 2 / std::max(of_each, 1.0);
        own.step = fit >= static_cast<double>(own.most)
                       ? own.most
                       : std::max<std::size_t>(1, static_cast<std::size_t>(fit));
        own.next = end;
    }
    return {};
}

/// Takes the neighbors of a block, which are numbered from first_item on.
Status DbscanSearch::take(Part& part, std::size_t first_item, Neighbors& found,
                          Execution& execution) {
    const std::size_t begin = part.next, end = begin + found.begins.size() - 1;
    const auto neighbors_of = [&](std::uint32_t row) {
        const std::uint64_t at = found.begins[row - begin];
        return std::span(found.items).subspan(at, found.begins[row - begin + 1] - at);
    };
    GPUTEXT_TRY(for_each_row(
        "counting neighbors", begin, end, execution, [&](std::uint32_t row, unsigned) -> Status {
            const auto neighbors = neighbors_of(row);
            for (std::uint32_t& neighbor : neighbors)
                neighbor += static_cast<std::uint32_t>(first_item);
            if (is_core(neighbors)) {
                state(row).store(kCore);
                if (neighbors_are_core())
                    for (const std::uint32_t neighbor : neighbors) state(neighbor).store(kCore);
            } else if (!neighbors_are_core()) {
                state(row).store(kNotCore);
            }
            return {};
        }));
    // Of two rows, each of which another thread joins, one at least sees the other's state: both
    // were stored, in one order for all threads, before either is loaded.
    return for_each_row("joining neighbors", begin, end, execution,
                        [&](std::uint32_t row, unsigned worker) {
                            return join(row, neighbors_of(row), part.kept[worker]);
                        });
}

bool DbscanSearch::is_core(std::span<const std::uint32_t> neighbors) const {
    std::size_t count = 0;
    for (const std::uint32_t neighbor : neighbors) {
        count += distinct_.members(neighbor).size();
        if (count >= parameters_.min_points) return true;
    }
    return false;
}

/// A core row with its neighbors that are known to be core; of another row those are kept that may
/// be.
Status DbscanSearch::join(std::uint32_t row, std::span<const std::uint32_t> neighbors,
                          std::vector<KeptNeighbor>& kept) {
    if (state(row).load() == kCore) {
        for (const std::uint32_t neighbor : neighbors)
            if (neighbor != row && state(neighbor).load() == kCore) sets_->join(row, neighbor);
        return {};
    }
    for (const std::uint32_t neighbor : neighbors) {
        if (state(neighbor).load() == kNotCore || neighbor == row) continue;
        if (kept.size() == kept.capacity()) {
            const std::size_t room = std::max<std::size_t>(kRowsOfTask, kGrowth * kept.size());
            GPUTEXT_TRY(kept_->take(room * sizeof(KeptNeighbor), "the neighbors of border points"));
            kept_->give_back(kept.capacity() * sizeof(KeptNeighbor));
            kept.reserve(room);
        }
        kept.push_back({row, neighbor});
    }
    return {};
}

Result<DbscanClusters> DbscanSearch::clusters(Execution& execution) {
    const Stop stop = execution.stop();
    // Parents of core rows are core, and lie before them.
    std::vector<std::uint32_t> numbers = sets_->release();
    DbscanClusters answer;
    execution.begin_phase("numbering clusters", numbers.size());
    for (std::size_t row = 0; row < numbers.size(); ++row) {
        if (row % kLookEvery == 0) GPUTEXT_TRY(execution.checkpoint(kLookEvery));
        if (states_[row] != kCore)
            numbers[row] = DbscanClusters::kNoise;
        else
            numbers[row] = numbers[row] == row ? answer.count++ : numbers[numbers[row]];
    }
    for (const Part& part : parts_)
        for (const auto& kept : part.kept)
            for (std::size_t i = 0; i < kept.size(); ++i) {
                if (i % kLookEvery == 0 && stop()) return Status::cancelled();
                const auto [row, neighbor] = kept[i];
                if (states_[neighbor] == kCore)
                    numbers[row] = std::min(numbers[row], numbers[neighbor]);
            }
    const auto classes = distinct_.classes();
    if (!assign_pages(answer.clusters, classes.size(), DbscanClusters::kNoise, stop) ||
        !assign_pages(answer.core, classes.size(), std::uint8_t{0}, stop))
        return Status::cancelled();
    for (std::size_t item = 0; item < classes.size(); ++item) {
        if (item % kLookEvery == 0 && stop()) return Status::cancelled();
        answer.clusters[item] = numbers[classes[item]];
        answer.core[item] = states_[classes[item]] == kCore ? 1 : 0;
    }
    return answer;
}

Result<DbscanClusters> dbscan(const DbscanParameters& parameters, const Vectors& items,
                              Execution& execution) {
    DbscanSearch search;
    GPUTEXT_TRY(search.set(parameters, items, execution));
    search.share_out(1);
    GPUTEXT_TRY(search.run(
        0,
        [&](const KnnParameters& wanted, const Vectors& queries, const Vectors& among,
            const RowKeys& keys) { return knn(wanted, queries, among, keys, execution); },
        execution));
    return search.clusters(execution);
}

}  // namespace gputext
