// cpp/knn/nearest_lists.hpp - lists of the nearest items found so far, one for each query

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

/// A class of equal items beside a query: the first item of it that the query may have, its
/// distance, and the class.
struct Candidate {
    double distance;
    std::uint32_t item;
    std::uint32_t item_class;

    bool operator<(const Candidate& other) const {
        return distance != other.distance ? distance < other.distance : item < other.item;
    }
};

/// Lists that threads add to at once. Which candidates stay does not depend on their order. Their
/// memory is taken from the budget, which outlives them.
class NearestLists {
public:
    NearestLists(std::size_t queries, std::size_t k, double radius, bool include_ties,
                 MemoryBudget& budget)
        : k_(k),
          radius_(radius),
          include_ties_(include_ties),
          budget_(budget),
          lists_(queries),
          limits_(queries, radius) {}

    std::size_t queries() const { return lists_.size(); }
    std::size_t k() const { return k_; }
    MemoryBudget& budget() { return budget_; }
    /// Before anything is added: the query needs no candidates that are farther.
    void set_limit(std::size_t query, double limit) {
        limits_[query] = std::min(limits_[query], limit);
    }
    /// Candidates farther than this need not be added: the radius, or less.
    double limit(std::size_t query) const;
    /// Empties `candidates`. Errors: cancelled, memory_limit.
    Status add(std::size_t query, std::vector<Candidate>& candidates, Stop stop);
    /// The k nearest of all that were added, in order. To be called once a query, after all add().
    /// Gives the memory of the query's list back to the budget.
    Status take(std::size_t query, std::vector<Candidate>& nearest, Stop stop);

private:
    Status make_room(std::vector<Candidate>& list, std::size_t more);
    Status cut(std::vector<Candidate>& list, Stop stop) const;

    std::size_t k_;
    double radius_;
    bool include_ties_;
    MemoryBudget& budget_;
    std::vector<std::vector<Candidate>> lists_;
    std::vector<double> limits_;
    mutable std::array<std::mutex, 64> mutexes_;  // one for many queries
};

// ---- Sorts a query's neighbors without a branch on a distance ----
//
// A processor predicts every other comparison of a sort wrongly, which takes longer than to compare
// each of a few distances with all of them in vectors.

/// The most that are sorted so: it takes the square of their number.
inline constexpr std::size_t kFewCandidates = 256;

/// Sorts as std::sort would; no distance may be NaN. False, and nothing done, where there are more
/// than kFewCandidates, or the vectors are not wide enough to pay.
bool sort_few(std::vector<Candidate>& list, Simd simd);

}  // namespace gputext
