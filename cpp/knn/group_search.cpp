#include "cpp/knn/group_search.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/nearest_lists.hpp"

namespace gputext {
namespace {

/// Costs are counted in elements that a distance reads, with this for the distance itself.
constexpr double kCostOfPair = 16;
/// A task of this cost takes about a millisecond.
constexpr double kCostOfTask = 1 << 22;
/// Below this cost a search of the group as matrices would take longer than its distances.
constexpr double kWorthSearching = 1 << 21;
/// Below this cost all threads together would wait for one another.
constexpr double kWorthAllThreads = 1 << 28;
/// Fewer queries than these are not filtered: see knn().
constexpr std::size_t kFewQueries = 4;

/// Items whose distances are computed at once.
constexpr std::size_t kItemsAtOnce = 1024;
/// Rows that are fetched before they are needed.
constexpr std::size_t kRowsAhead = 48;
/// Queries between two looks for a stop request, where these have few items.
constexpr std::size_t kLookQueries = 4096;

/// Queries of consecutive groups, or of a part of one, and what was found for them: one after the
/// other, in the order of KeyGroups::queries.
struct Task {
    std::size_t first_group;
    std::uint64_t begin, end;  // among KeyGroups::queries
    std::vector<std::uint32_t> items;
    std::vector<double> distances;
};

/// Leaves the k nearest, in order, and those just as far as the k-th where these count.
void keep_nearest(const KnnParameters& parameters, std::vector<Candidate>& candidates) {
    std::sort(candidates.begin(), candidates.end());
    if (candidates.size() <= parameters.k) return;
    std::size_t size = parameters.k;
    while (parameters.include_ties && size < candidates.size() &&
           candidates[size].distance == candidates[size - 1].distance)
        ++size;
    candidates.resize(size);
}

/// The searches of one call.
class Groups {
public:
    Groups(const GroupSearch& search, const KeyGroups& groups, Execution& execution)
        : search_(search),
          parameters_(search.parameters),
          groups_(groups),
          execution_(execution),
          budget_(search.parameters.answer_limit),
          workers_(execution.threads()) {}

    Result<Neighbors> run() {
        if (!assign_pages(answer_.begins, search_.queries.rows + 1, {}, execution_.stop()))
            return Status::cancelled();
        plan();
        for (Task& task : alone_) GPUTEXT_TRY(search_alone(task));
        GPUTEXT_TRY(search_each());
        GPUTEXT_TRY(search_directly());
        GPUTEXT_TRY(collect());
        answer_.rescored = rescored_;
        for (const Worker& worker : workers_) answer_.rescored += worker.rescored;
        answer_.escalated = escalated_;
        return std::move(answer_);
    }

private:
    struct alignas(64) Worker {
        std::unique_ptr<RowDistances> distances;
        std::vector<double> buffer;
        std::vector<Candidate> candidates;
        std::uint64_t rescored = 0;
    };

    double cost_of_pair() const {
        return kCostOfPair + static_cast<double>(search_.items.average_stored());
    }
    double pairs_of(std::size_t group) const {
        return static_cast<double>(groups_.queries_of(group).size()) *
               static_cast<double>(groups_.items_of(group).size());
    }
    /// What a row takes, copied; of sparse rows, on average.
    static std::size_t bytes_of_row(const Vectors& vectors) {
        const std::size_t element =
            element_size(vectors.type) + (vectors.sparse() ? sizeof(std::uint32_t) : 0);
        return vectors.average_stored() * element + sizeof(std::uint64_t);
    }
    bool worth_searching(std::size_t group) const {
        return groups_.queries_of(group).size() >= kFewQueries &&
               pairs_of(group) * cost_of_pair() >= kWorthSearching;
    }

    void plan();
    void add_direct(std::size_t group);
    Status search_alone(Task& task);
    Status search_each();
    Status search_directly();
    Status search_gathered(Task& task, std::size_t memory_limit, Execution& execution);
    Status search_queries(Task& task, std::span<const std::uint32_t> queries,
                          const KnnParameters& parameters, std::size_t item_rows,
                          Execution& execution);
    Status run_task(Task& task, Worker& worker);
    Status search_query(std::uint32_t query, std::span<const std::uint32_t> items, Worker& worker,
                        Task& task);
    Status find_nearest(std::uint32_t query, std::span<const std::uint32_t> items, Worker& worker);
    Status append(Task& task, std::uint32_t query, std::span<const Candidate> nearest);
    Status make_room(Task& task, std::size_t more);
    Status collect();
    Status copy_found(Task& task);

    const GroupSearch& search_;
    const KnnParameters& parameters_;
    const KeyGroups& groups_;
    Execution& execution_;
    MemoryBudget budget_;
    std::vector<Worker> workers_;
    std::vector<Task> direct_, each_, alone_;
    double direct_cost_ = 0;  // of the last direct task
    Neighbors answer_;       // begins: counts at first, each behind its query's place
    std::atomic<std::uint64_t> rescored_{0}, escalated_{0};
};

/// Groups that are searched directly become tasks of about one cost, of several groups or of a part
/// of one.
void Groups::add_direct(std::size_t group) {
    const std::uint64_t begin = groups_.query_begins[group], end = groups_.query_begins[group + 1];
    const double of_query =
        kCostOfPair + static_cast<double>(groups_.items_of(group).size()) * cost_of_pair();
    for (std::uint64_t at = begin; at < end;) {
        if (direct_.empty() || direct_cost_ >= kCostOfTask || direct_.back().end != at) {
            direct_.push_back({group, at, at, {}, {}});
            direct_cost_ = 0;
        }
        const auto room =
            static_cast<std::uint64_t>(std::max(1.0, (kCostOfTask - direct_cost_) / of_query));
        const std::uint64_t count = std::min(end - at, room);
        direct_cost_ += static_cast<double>(count) * of_query;
        direct_.back().end = at += count;
    }
}

void Groups::plan() {
    double searched = 0;
    for (std::size_t group = 0; group < groups_.size(); ++group)
        if (worth_searching(group)) searched += pairs_of(group);
    const std::size_t share = parameters_.memory_limit / execution_.threads();
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        if (!worth_searching(group)) {
            add_direct(group);
            continue;
        }
        const std::size_t bytes = groups_.items_of(group).size() * bytes_of_row(search_.items) +
                                  groups_.queries_of(group).size() * bytes_of_row(search_.queries);
        const bool most = pairs_of(group) * cost_of_pair() >= kWorthAllThreads &&
                          pairs_of(group) * 4 * execution_.threads() >= searched;
        (most || bytes > share / 2 ? alone_ : each_)
            .push_back(
                {group, groups_.query_begins[group], groups_.query_begins[group + 1], {}, {}});
    }
}

// ---- Groups as matrices ----

Status Groups::search_alone(Task& task) {
    return search_gathered(task, parameters_.memory_limit, execution_);
}

Status Groups::search_each() {
    if (each_.empty()) return {};
    const std::size_t share = parameters_.memory_limit / execution_.threads();
    // The largest first, so that no thread begins it when the others are ready.
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < each_.size(); ++i)
        order.emplace_back(-pairs_of(each_[i].first_group), i);
    std::sort(order.begin(), order.end());
    execution_.begin_phase("searching keys", each_.size());
    return execution_.parallel_for(each_.size(), [&](std::size_t i, unsigned) {
        Execution of_group(1, execution_);
        return search_gathered(each_[order[i].second], share, of_group);
    });
}

/// The group's rows are copied in parts of which one of each side takes at most half of the limit.
Status Groups::search_gathered(Task& task, std::size_t memory_limit, Execution& execution) {
    const auto queries = groups_.queries_of(task.first_group);
    const std::size_t of_items = groups_.items_of(task.first_group).size();
    const std::size_t quarter = memory_limit / 4;
    const auto rows_at_once = [quarter](const Vectors& all, std::size_t rows) {
        if (rows == all.rows) return rows;  // they are not copied
        return std::clamp<std::size_t>(quarter / bytes_of_row(all), 1, rows);
    };
    const std::size_t query_rows = rows_at_once(search_.queries, queries.size());
    const std::size_t item_rows = rows_at_once(search_.items, of_items);
    KnnParameters parameters = parameters_;
    parameters.memory_limit = memory_limit / 2;
    for (std::size_t begin = 0; begin < queries.size(); begin += query_rows) {
        const std::size_t count = std::min(query_rows, queries.size() - begin);
        GPUTEXT_TRY(
            search_queries(task, queries.subspan(begin, count), parameters, item_rows, execution));
    }
    return {};
}

/// The keys of some rows.
void gather_keys(std::span<const std::uint32_t> keys, std::span<const std::uint32_t> rows,
                 std::vector<std::uint32_t>& gathered) {
    gathered.clear();
    if (keys.empty()) return;
    for (const std::uint32_t row : rows) gathered.push_back(keys[row]);
}

Status Groups::search_queries(Task& task, std::span<const std::uint32_t> queries,
                              const KnnParameters& parameters, std::size_t item_rows,
                              Execution& execution) {
    const auto items = groups_.items_of(task.first_group);
    GatheredRows gathered_queries;
    GPUTEXT_TRY(gathered_queries.set(search_.queries, queries, execution));
    std::vector<std::uint32_t> query_keys, item_keys;
    gather_keys(search_.excluded.queries, queries, query_keys);
    std::vector<Neighbors> parts;
    for (std::size_t begin = 0; begin < items.size(); begin += item_rows) {
        const auto part = items.subspan(begin, std::min(item_rows, items.size() - begin));
        GatheredRows gathered_items;
        GPUTEXT_TRY(gathered_items.set(search_.items, part, execution));
        gather_keys(search_.excluded.items, part, item_keys);
        KnnParameters of_part = parameters;
        of_part.answer_limit = budget_.limit() - std::min(budget_.limit(), budget_.used());
        Result<Neighbors> found =
            search_.search(of_part, gathered_queries.vectors(), gathered_items.vectors(),
                           {query_keys, item_keys}, execution);
        if (!found.ok()) return found.status();
        Neighbors& neighbors = *found;
        for (std::uint32_t& item : neighbors.items) item = part[item];
        rescored_ += found->rescored;
        escalated_ += found->escalated;
        parts.push_back(std::move(*found));
        if (execution.stop_requested()) return Status::cancelled();
    }
    std::vector<Candidate> nearest;
    const std::size_t look_every = std::max<std::size_t>(1, kLookQueries / parts.size());
    for (std::size_t q = 0; q < queries.size(); ++q) {
        if (q % look_every == 0 && execution.stop_requested()) return Status::cancelled();
        nearest.clear();
        for (const Neighbors& part : parts)
            for (std::uint64_t i = part.begins[q]; i < part.begins[q + 1]; ++i)
                nearest.push_back({part.distances[i], part.items[i], 0});
        if (parts.size() > 1) keep_nearest(parameters_, nearest);
        GPUTEXT_TRY(append(task, queries[q], nearest));
    }
    return {};
}

// ---- Pairs of rows ----

Status Groups::search_directly() {
    execution_.begin_phase("computing distances", direct_.size());
    return execution_.parallel_for(direct_.size(), [&](std::size_t i, unsigned number) {
        Worker& worker = workers_[number];
        if (!worker.distances) {
            worker.distances = search_.distances();
            worker.buffer.resize(kItemsAtOnce);
        }
        return run_task(direct_[i], worker);
    });
}

Status Groups::run_task(Task& task, Worker& worker) {
    const RowDistances& rows = *worker.distances;
    std::size_t expected = task.first_group;  // the next group whose rows are to be fetched
    std::size_t ahead = 0;                    // rows of groups from `group` to it
    const auto rows_of = [&](std::size_t group) {
        return groups_.queries_of(group).size() + groups_.items_of(group).size();
    };
    const auto expect = [&](std::size_t group) {
        const std::uint64_t begin = std::max(task.begin, groups_.query_begins[group]);
        const std::uint64_t end = std::min(task.end, groups_.query_begins[group + 1]);
        const auto queries = std::span(groups_.queries).subspan(begin, end - begin);
        const auto items = groups_.items_of(group);
        for (const std::uint32_t item : items.first(std::min(kRowsAhead, items.size())))
            rows.expect_item(item);
        for (const std::uint32_t query : queries.first(std::min(kRowsAhead, queries.size())))
            rows.expect_query(query);
    };
    std::uint64_t at = task.begin;
    for (std::size_t group = task.first_group; at < task.end; ++group) {
        while (ahead < kRowsAhead && groups_.query_begins[expected] < task.end) {
            expect(expected);
            ahead += rows_of(expected++);
        }
        ahead -= rows_of(group);
        const auto items = groups_.items_of(group);
        const std::uint64_t end = std::min(task.end, groups_.query_begins[group + 1]);
        for (; at < end; ++at) {
            if (at % kLookQueries == 0 && execution_.stop_requested()) return Status::cancelled();
            if (at + kRowsAhead < end) rows.expect_query(groups_.queries[at + kRowsAhead]);
            GPUTEXT_TRY(search_query(groups_.queries[at], items, worker, task));
        }
    }
    return {};
}

Status Groups::search_query(std::uint32_t query, std::span<const std::uint32_t> items,
                            Worker& worker, Task& task) {
    GPUTEXT_TRY(find_nearest(query, items, worker));
    return append(task, query, worker.candidates);
}

/// Leaves the query's neighbors as the worker's candidates.
Status Groups::find_nearest(std::uint32_t query, std::span<const std::uint32_t> items,
                            Worker& worker) {
    std::vector<Candidate>& candidates = worker.candidates;
    candidates.clear();
    worker.distances->set_query(query);
    double limit = parameters_.radius;
    const bool one = parameters_.k == 1 && !parameters_.include_ties;
    // Sorted out when there are twice as many; all of them may be as far as the k-th.
    std::size_t most = 2 * std::min(parameters_.k, items.size()) + kItemsAtOnce;
    for (std::size_t begin = 0; begin < items.size(); begin += kItemsAtOnce) {
        if (begin > 0 && execution_.stop_requested()) return Status::cancelled();
        const auto some = items.subspan(begin, std::min(kItemsAtOnce, items.size() - begin));
        double* const distances = worker.buffer.data();
        worker.distances->to_items(some, limit, distances);
        for (std::size_t i = 0; i < some.size(); ++i) {
            if (!(distances[i] <= limit) || !search_.excluded.differ(query, some[i])) continue;
            if (one) {
                // Items ascend: of those at one distance the first one stays.
                if (!candidates.empty() && candidates[0].distance == distances[i]) continue;
                candidates.assign(1, {distances[i], some[i], 0});
                limit = distances[i];
            } else {
                candidates.push_back({distances[i], some[i], 0});
            }
        }
        if (candidates.size() < most) continue;
        keep_nearest(parameters_, candidates);
        if (candidates.size() >= parameters_.k) limit = candidates[parameters_.k - 1].distance;
        most = std::max(most, 2 * candidates.size());
    }
    worker.rescored += items.size();
    if (!one) keep_nearest(parameters_, candidates);
    return {};
}

// ---- The answer ----

/// Of a task's part of the answer, and of the answer's.
Status Groups::make_room(Task& task, std::size_t more) {
    const std::size_t wanted = task.items.size() + more, before = task.items.capacity();
    if (wanted <= before) return {};
    const std::size_t room = std::max(wanted, before + before / 2);
    GPUTEXT_TRY(budget_.take((room - before) * kBytesOfNeighbor, "the neighbors"));
    task.items.reserve(room);
    task.distances.reserve(room);
    return {};
}

Status Groups::append(Task& task, std::uint32_t query, std::span<const Candidate> nearest) {
    GPUTEXT_TRY(make_room(task, nearest.size()));
    for (const Candidate& candidate : nearest) {
        task.items.push_back(candidate.item);
        task.distances.push_back(candidate.distance);
    }
    answer_.begins[query + 1] = nearest.size();
    return {};
}

Status Groups::copy_found(Task& task) {
    std::uint64_t from = 0;
    for (std::uint64_t at = task.begin; at < task.end; ++at) {
        if (at % kLookQueries == 0 && execution_.stop_requested()) return Status::cancelled();
        const std::uint32_t query = groups_.queries[at];
        const std::uint64_t begin = answer_.begins[query];
        const std::uint64_t count = answer_.begins[query + 1] - begin;
        std::copy_n(task.items.begin() + static_cast<std::ptrdiff_t>(from), count,
                    answer_.items.begin() + static_cast<std::ptrdiff_t>(begin));
        std::copy_n(task.distances.begin() + static_cast<std::ptrdiff_t>(from), count,
                    answer_.distances.begin() + static_cast<std::ptrdiff_t>(begin));
        from += count;
    }
    task.items = {};
    task.distances = {};
    return {};
}

/// Puts what the tasks found in the order of the queries.
Status Groups::collect() {
    const Stop stop = execution_.stop();
    for (std::size_t query = 0; query + 1 < answer_.begins.size(); ++query) {
        if (query % kLookEvery == 0 && stop()) return Status::cancelled();
        answer_.begins[query + 1] += answer_.begins[query];
    }
    if (!assign_pages(answer_.items, answer_.begins.back(), {}, stop) ||
        !assign_pages(answer_.distances, answer_.begins.back(), {}, stop))
        return Status::cancelled();
    std::vector<Task*> tasks;
    for (std::vector<Task>* some : {&alone_, &each_, &direct_})
        for (Task& task : *some) tasks.push_back(&task);
    execution_.begin_phase("collecting neighbors", tasks.size());
    return execution_.parallel_for(tasks.size(),
                                   [&](std::size_t i, unsigned) { return copy_found(*tasks[i]); });
}

}  // namespace

Result<Neighbors> search_groups(const GroupSearch& search, const KeyGroups& groups,
                                 Execution& execution) {
    return Groups(search, groups, execution).run();
}

}  // namespace gputext
