#include "cpp/knn/class_expansion.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// The neighbours of one query.
class Expansion {
public:
    Expansion(const KnnParameters& parameters, const RowKeys& keys, const DistinctRows& distinct)
        : k_(parameters.k), ties_(parameters.include_ties), keys_(keys), distinct_(distinct) {}

    /// As many neighbours as append() will append, or more.
    std::size_t most_neighbours(std::span<const Candidate> classes) const {
        std::size_t members = 0;
        for (std::size_t i = 0; i < classes.size() && (ties_ || members < k_); ++i)
            members += distinct_.members(classes[i].item_class).size();
        return ties_ ? members : std::min(members, k_);
    }

    /// Appends the nearest items, in order, given the nearest classes in theirs. False if stopped.
    bool append(std::size_t query, std::span<const Candidate> classes, Stop stop,
                std::vector<std::uint32_t>& items, std::vector<double>& distances) {
        const std::size_t begin = items.size();
        for (std::size_t i = 0; i < classes.size() && items.size() - begin < k_;) {
            // All classes at one distance: their items mix.
            std::size_t end = i;
            group_.clear();
            while (end < classes.size() && classes[end].distance == classes[i].distance)
                if (!append_members(query, classes[end++].item_class, stop)) return false;
            if (end - i > 1) std::sort(group_.begin(), group_.end());
            const std::size_t room = k_ - (items.size() - begin);
            if (!ties_ && group_.size() > room) group_.resize(room);
            items.insert(items.end(), group_.begin(), group_.end());
            distances.resize(items.size(), classes[i].distance);
            i = end;
        }
        return true;
    }

private:
    bool append_members(std::size_t query, std::size_t item_class, Stop stop) {
        std::size_t most = ties_ ? SIZE_MAX : k_;
        const auto members = distinct_.members(item_class);
        for (std::size_t i = 0; i < members.size() && most > 0; ++i) {
            if (i % kLookEvery == kLookEvery - 1 && stop()) return false;
            if (!keys_.differ(query, members[i])) continue;
            group_.push_back(members[i]);
            --most;
        }
        return true;
    }

    std::size_t k_;
    bool ties_;
    const RowKeys& keys_;
    const DistinctRows& distinct_;
    std::vector<std::uint32_t> group_;
};

/// A query's part of the answer, until all are put together.
struct Part {
    std::vector<std::uint32_t> items;
    std::vector<double> distances;

    /// Room for neighbours here and in the answer.
    Status reserve(std::size_t neighbours, MemoryBudget& budget) {
        GPUTEXT_TRY(budget.take(neighbours * kBytesOfNeighbour, "the neighbours"));
        items.reserve(neighbours);
        distances.reserve(neighbours);
        return {};
    }
};

}  // namespace

Status expand_classes(const KnnParameters& parameters, std::size_t queries, const RowKeys& keys,
                      const DistinctRows* distinct, const NearestClasses& classes_of,
                      MemoryBudget& budget, Execution& execution, Neighbours& answer) {
    const Stop stop = execution.stop();
    std::vector<Part> parts(queries);
    execution.begin_phase("ordering neighbours", queries);
    Status status = execution.parallel_for(queries, [&](std::size_t query, unsigned) {
        std::vector<Candidate> nearest;
        Status found = classes_of(query, nearest);
        if (!found.ok()) return found;
        Part& part = parts[query];
        if (distinct == nullptr) {
            found = part.reserve(nearest.size(), budget);
            if (!found.ok()) return found;
            for (const Candidate& candidate : nearest) {
                part.items.push_back(candidate.item);
                part.distances.push_back(candidate.distance);
            }
            return Status();
        }
        Expansion expansion(parameters, keys, *distinct);
        found = part.reserve(expansion.most_neighbours(nearest), budget);
        if (!found.ok()) return found;
        if (!expansion.append(query, nearest, stop, part.items, part.distances))
            return Status::cancelled();
        return Status();
    });
    if (!status.ok()) return status;

    answer.begins.assign(queries + 1, 0);
    for (std::size_t query = 0; query < queries; ++query)
        answer.begins[query + 1] = answer.begins[query] + parts[query].items.size();
    if (!stoppable_assign(answer.items, answer.begins.back(), {}, stop) ||
        !stoppable_assign(answer.distances, answer.begins.back(), {}, stop))
        return Status::cancelled();
    execution.begin_phase("collecting neighbours", queries);
    return execution.parallel_for(queries, [&](std::size_t query, unsigned) {
        const auto at = static_cast<std::ptrdiff_t>(answer.begins[query]);
        Part part = std::move(parts[query]);
        std::copy(part.items.begin(), part.items.end(), answer.items.begin() + at);
        std::copy(part.distances.begin(), part.distances.end(), answer.distances.begin() + at);
        return Status();
    });
}

}  // namespace gputext
