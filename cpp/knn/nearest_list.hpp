// cpp/knn/nearest_list.hpp - the nearest items of one query so far, found by one thread

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {

/// An item that was compared, in the order of neighbors.
struct FoundItem {
    double distance;
    std::uint32_t item;

    bool operator<(const FoundItem& other) const {
        return distance != other.distance ? distance < other.distance : item < other.item;
    }
};

/// At most k items within a radius. Their memory is taken from the budget, which outlives the list.
class NearestList {
public:
    NearestList(std::size_t k, double radius, MemoryBudget& budget)
        : k_(k), radius_(radius), budget_(&budget) {}

    /// What is farther is no neighbor.
    double limit() const {
        return found_.size() < k_ ? radius_ : std::min(radius_, found_.front().distance);
    }

    Status add(const FoundItem& found) {
        if (found_.size() < k_) {
            GPUTEXT_TRY(make_room());
            found_.push_back(found);
            // Without a k-th nearest there is none to be found again and again.
            if (k_ != KnnParameters::all_items) std::push_heap(found_.begin(), found_.end());
        } else if (found < found_.front()) {
            std::pop_heap(found_.begin(), found_.end());
            found_.back() = found;
            std::push_heap(found_.begin(), found_.end());
        }
        return {};
    }

    /// False when stopped.
    bool sort(Stop stop) {
        return stoppable_sort(found_.begin(), found_.end(), std::less<FoundItem>(), stop);
    }
    const std::vector<FoundItem>& found() const { return found_; }

    /// Forgets the items, and takes the k-th distance for the radius.
    void keep_limit() {
        radius_ = limit();
        found_.clear();
    }

private:
    static constexpr std::size_t kRoom = 16;

    Status make_room() {
        if (found_.size() < found_.capacity()) return {};
        const std::size_t room = std::max(std::min(k_, kRoom), found_.size());
        GPUTEXT_TRY(budget_->take(room * kBytesOfNeighbor));
        found_.reserve(found_.size() + room);
        return {};
    }

    std::size_t k_;
    double radius_;
    MemoryBudget* budget_;
    std::vector<FoundItem> found_;  // a heap, the farthest first, where there is a k
};

/// Appends the neighbors of as many queries. False when stopped.
inline bool append_sorted(std::span<NearestList> lists, Stop stop, Neighbors& neighbors) {
    for (NearestList& list : lists) {
        if (!list.sort(stop)) return false;
        for (const FoundItem& found : list.found()) {
            neighbors.items.push_back(found.item);
            neighbors.distances.push_back(found.distance);
        }
        neighbors.begins.push_back(neighbors.items.size());
    }
    return true;
}

}  // namespace gputext
