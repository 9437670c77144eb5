// cpp/knn/detail/score_sample.hpp - where the scores of a query's nearest items end, by a sample
//
// A search that begins with a limit just above the k-th least score meets hardly more than k items
// that pass, where one that learns its limit on the way meets about k (1 + ln(n / k)) and sorts out
// what passed again and again (Guess-Verify-Refine, 2026; Floyd and Rivest, Expected time bounds
// for selection, 1975). The limit is a guess that counting proves: k items have upper bounds up to
// it, or the query is searched again without.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "cpp/knn/detail/filter_space.hpp"

namespace gputext {

/// Items of a sample, and how many of their upper bounds the limit is above; no items where a
/// sample does not pay.
struct SamplePlan {
    std::size_t items = 0;
    double rank = 0;
};

/// The least bounds of each of 64 groups of scores. They tell about how many scores are below a
/// number, and the other way round, without a selection among all scores.
template <class S>
class GroupMinima {
public:
    static constexpr std::size_t groups = 64;

    void clear() {
        std::fill_n(least_, groups, std::numeric_limits<S>::infinity());
        std::fill_n(most_, groups, std::numeric_limits<S>::infinity());
    }

    /// Scores that a bound is of, one a group in turn.
    [[gnu::optimize("O3")]] void add(std::span<const S> scores, const FilterSpace::Bound& bound) {
        const S less = static_cast<S>(1 - bound.relative),
                more = static_cast<S>(1 + bound.relative);
        const S absolute = static_cast<S>(bound.absolute);
        for (std::size_t begin = 0; begin < scores.size(); begin += groups) {
            const S* score = scores.data() + begin;
            const std::size_t count = std::min(groups, scores.size() - begin);
            for (std::size_t i = 0; i < count; ++i) {
                const S least = score[i] * less - absolute, most = score[i] * more + absolute;
                least_[i] = least < least_[i] ? least : least_[i];
                most_[i] = most < most_[i] ? most : most_[i];
            }
        }
    }

    /// About the rank-th least upper bound.
    double most(double rank) const {
        // The expected number of groups that `rank` random scores fall into.
        const double met = groups * -std::expm1(-rank / groups);
        S most[groups];
        std::copy_n(most_, groups, most);
        S* const at = most + std::min(groups - 1, static_cast<std::size_t>(met));
        std::nth_element(most, at, most + groups);
        return *at;
    }

    /// About how many lower bounds are not above a number; infinity where these are nearly all.
    double count_up_to(double number) const {
        std::size_t met = 0;
        for (const S least : least_) met += least <= number;
        return -std::log1p(-static_cast<double>(met) / groups) * groups;
    }

private:
    S least_[groups], most_[groups];
};

/// `most_passed` is how many items may pass without being sorted out, `most_elements` what a sample
/// may have: its scores take time as all others do.
inline SamplePlan plan_sample(std::size_t items, std::size_t k, std::size_t dimensions,
                              std::size_t most_passed, std::size_t most_elements) {
    // Groups tell little about ranks above their number.
    constexpr double most_rank = GroupMinima<float>::groups, most_expected = 40;
    constexpr std::size_t fewest = 256;
    const auto n = static_cast<double>(items), wanted = static_cast<double>(k);
    const std::size_t sampled = std::min({items / 8, most_elements / dimensions,
                                          static_cast<std::size_t>(most_expected * n / wanted)});
    if (sampled < fewest) return {};
    const double share = static_cast<double>(sampled) / n, expected = wanted * share;
    // At most one sample in a thousand has more than `rank` of the k nearest items.
    const double rank = expected + 3 * std::sqrt(expected) + 2;
    if (rank > most_rank || rank / share > static_cast<double>(most_passed)) return {};
    return {sampled, rank};
}

}  // namespace gputext
