#include "cpp/knn/outlier_factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/memory_budget.hpp"

namespace gputext {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Some members of a class, all at one distance.
struct NearClass {
    std::uint32_t item_class;
    std::uint32_t count;
    double distance;
};

/// The neighbors of all classes, in answers for consecutive ones.
class FoundNeighbors {
public:
    explicit FoundNeighbors(std::span<const Neighbors> answers) : answers_(answers) {
        for (const Neighbors& answer : answers) {
            first_classes_.push_back(classes_);
            first_neighbors_.push_back(size_);
            classes_ += answer.begins.size() - 1;
            size_ += answer.items.size();
        }
    }

    std::uint64_t size() const { return size_; }

    struct OfClass {
        std::uint64_t begin;  // how many neighbors the classes before it have
        std::span<const std::uint32_t> items;
        std::span<const double> distances;
    };
    OfClass of(std::size_t c) const {
        const auto after = std::upper_bound(first_classes_.begin(), first_classes_.end(), c);
        const auto number = static_cast<std::size_t>(after - first_classes_.begin()) - 1;
        const Neighbors& answer = answers_[number];
        const std::size_t own = c - first_classes_[number];
        const std::uint64_t begin = answer.begins[own], count = answer.begins[own + 1] - begin;
        return {first_neighbors_[number] + begin, std::span(answer.items).subspan(begin, count),
                std::span(answer.distances).subspan(begin, count)};
    }

private:
    std::span<const Neighbors> answers_;
    std::vector<std::size_t> first_classes_;  // by answer
    std::vector<std::uint64_t> first_neighbors_;
    std::size_t classes_ = 0;
    std::uint64_t size_ = 0;
};

/// Calls body(class) for all classes, many of them a step.
template <class Body>
Status for_each_class(std::size_t classes, const char* phase, Execution& execution, Body&& body) {
    constexpr std::size_t step = 256;
    const std::size_t tasks = (classes + step - 1) / step;
    execution.begin_phase(phase, tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t c = task * step; c < std::min(classes, (task + 1) * step); ++c) body(c);
        return Status();
    });
}

/// All members of a class have the same neighbors but for themselves, and so the same factor:
/// everything is computed by class.
class Factors {
public:
    Factors(const OutlierParameters& parameters, const Vectors& items, const DistinctRows& distinct,
            const FoundNeighbors& of_distinct)
        : k_(parameters.k),
          all_ties_(parameters.ties == TieRule::breunig),
          zero_rows_left_out_(parameters.metric == Metric::cosine),
          items_(items),
          distinct_(distinct),
          found_(of_distinct),
          has_copies_(distinct.size() < distinct.classes().size()),
          k_distance_(distinct.size(), kNone),
          density_(distinct.size(), kNone) {
        if (!has_copies_) return;
        near_ = unwritten_pages<NearClass>(of_distinct.size() + distinct.size());
        near_sizes_.resize(distinct.size());
    }

    Status run(Execution& execution, std::vector<double>& factors) {
        const std::size_t classes = distinct_.size();
        GPUTEXT_TRY(for_each_class(classes, "counting neighbors", execution, [this](std::size_t c) {
            if (has_copies_)
                collect(c);
            else
                look_at_last(c);
        }));
        GPUTEXT_TRY(for_each_class(classes, "computing densities", execution,
                                   [this](std::size_t c) { density_[c] = density(c); }));
        std::vector<double> of_class(classes);
        GPUTEXT_TRY(for_each_class(classes, "computing factors", execution,
                                   [&](std::size_t c) { of_class[c] = factor(c); }));
        factors.resize(distinct_.classes().size());
        for (std::size_t row = 0; row < factors.size(); ++row)
            factors[row] = of_class[distinct_.classes()[row]];
        return {};
    }

private:
    /// Calls visit(class, members, distance) for the neighbors of a class.
    template <class Visit>
    void for_each_near(std::size_t c, const Visit& visit) const {
        const auto [first, items, distances] = found_.of(c);
        if (has_copies_) {
            for (const NearClass& other : std::span(near_.get() + first + c, near_sizes_[c]))
                visit(other.item_class, other.count, other.distance);
        } else {
            for (std::size_t i = 0; i < items.size(); ++i) visit(items[i], 1u, distances[i]);
        }
    }

    /// As collect(), where each row is a class of its own: what was found is what is near.
    void look_at_last(std::size_t c) {
        const auto distances = found_.of(c).distances;
        if (!distances.empty()) k_distance_[c] = distances[std::min(k_, distances.size()) - 1];
    }

    /// Fills near_ and k_distance_ for a class: the other members of the class, then those of
    /// others.
    void collect(std::size_t c) {
        const auto [first, items, distances] = found_.of(c);
        NearClass* const near = near_.get() + first + c;
        std::size_t count = 0;
        const auto add = [&](std::uint32_t item_class, std::size_t members, double distance) {
            if (members == 0) return;
            near[near_sizes_[c]++] = {item_class, static_cast<std::uint32_t>(members), distance};
            if (count < k_) k_distance_[c] = distance;
            count += members;
        };
        const std::size_t others = distinct_.members(c).size() - 1;
        if (zero_rows_left_out_ && items.empty() && zero_row(items_, distinct_.firsts()[c])) return;
        add(static_cast<std::uint32_t>(c), all_ties_ ? others : std::min(others, k_), 0);
        for (std::size_t i = 0; i < items.size();) {
            if (count >= k_ && !(all_ties_ && distances[i] == k_distance_[c])) break;
            std::size_t group_end = i;
            while (group_end < items.size() && distances[group_end] == distances[i]) ++group_end;
            const auto group = items.subspan(i, group_end - i);
            const std::size_t most = all_ties_ ? SIZE_MAX : k_ - count;
            // Nearly all groups have one member, and then no memory is needed.
            if (group.size() == 1) {
                add(group[0], std::min(distinct_.members(group[0]).size(), most), distances[i]);
            } else {
                for (const auto& [item_class, members] : members_of(group, most))
                    add(item_class, members, distances[i]);
            }
            i = group_end;
        }
    }

    using Members = std::vector<std::pair<std::uint32_t, std::size_t>>;

    /// How many of each class are among the first `most` rows of the classes together.
    Members members_of(std::span<const std::uint32_t> classes, std::size_t most) const {
        Members members;
        std::size_t all = 0;
        for (const std::uint32_t c : classes) {
            members.emplace_back(c, distinct_.members(c).size());
            all += members.back().second;
        }
        if (all <= most) return members;
        std::vector<std::pair<std::uint32_t, std::size_t>> rows;  // and the place of their class
        for (std::size_t place = 0; place < classes.size(); ++place) {
            const auto of = distinct_.members(classes[place]);
            for (const std::uint32_t row : of.first(std::min(of.size(), most)))
                rows.emplace_back(row, place);
            members[place].second = 0;
        }
        const auto end = rows.begin() + static_cast<std::ptrdiff_t>(most);
        std::nth_element(rows.begin(), end, rows.end());
        for (auto row = rows.begin(); row != end; ++row) ++members[row->second].second;
        return members;
    }

    double density(std::size_t c) const {
        double sum = 0, count = 0;
        for_each_near(c, [&](std::uint32_t other, std::uint32_t members, double distance) {
            sum += members * std::max(k_distance_[other], distance);
            count += members;
        });
        if (count == 0) return kNone;
        if (!all_ties_) return 1 / (sum / count + 1e-10);
        return sum > 0 ? count / sum : kInfinity;
    }

    double factor(std::size_t c) const {
        if (all_ties_ && density_[c] == kInfinity) return 1;
        double sum = 0, count = 0;
        for_each_near(c, [&](std::uint32_t other, std::uint32_t members, double) {
            sum += members * (density_[other] / density_[c]);
            count += members;
        });
        return count == 0 ? kNone : sum / count;
    }

    std::size_t k_;
    bool all_ties_;
    bool zero_rows_left_out_;
    const Vectors& items_;
    const DistinctRows& distinct_;
    const FoundNeighbors& found_;
    const bool has_copies_;
    // With copies, the neighbors of a class: no more than were found for it, and itself.
    std::unique_ptr<NearClass[]> near_;
    std::vector<std::uint32_t> near_sizes_;
    std::vector<double> k_distance_, density_;
};

/// An error where so many neighbors, beside what is collected of them, would take too much.
Status check_memory(const OutlierParameters& parameters, std::uint64_t neighbors) {
    constexpr std::uint64_t each = kBytesOfNeighbor / 2 + sizeof(NearClass);
    if (neighbors <= parameters.answer_limit / each) return {};
    return over_memory_limit("the neighbors", neighbors * each, parameters.answer_limit);
}

}  // namespace

Status OutlierSearch::set(const OutlierParameters& parameters, const Vectors& items,
                          Execution& execution) {
    if (parameters.k == 0) return Status(ErrorCode::invalid_argument, "k must be at least 1");
    if (parameters.metric == Metric::inner_product)
        return Status(ErrorCode::invalid_argument, "an inner product is no distance");
    parameters_ = parameters;
    items_ = items;
    const auto largest = largest_magnitude(items, "item", execution);
    if (!largest.ok()) return largest.status();
    GPUTEXT_TRY(distinct_.set(items, execution));
    GPUTEXT_TRY(rows_.set(items, distinct_.firsts(), execution));

    // All but a row of zeros, of which there is one at most, have as many neighbors as are wanted.
    const std::uint64_t rows = distinct_.size() - std::min<std::size_t>(distinct_.size(), 1);
    const std::uint64_t of_each =
        std::min<std::uint64_t>(parameters.k, rows - std::min<std::uint64_t>(rows, 1));
    GPUTEXT_TRY(check_memory(parameters, rows * of_each));
    own_.resize(distinct_.size());
    std::iota(own_.begin(), own_.end(), 0u);
    return {};
}

KnnParameters OutlierSearch::parameters() const {
    KnnParameters knn;
    knn.k = parameters_.k;
    knn.metric = parameters_.metric;
    knn.include_ties = parameters_.ties == TieRule::breunig;
    knn.memory_limit = parameters_.memory_limit;
    knn.simd = parameters_.simd;
    knn.answer_limit = parameters_.answer_limit;
    return knn;
}

Result<std::vector<double>> OutlierSearch::factors(std::span<const Neighbors> of_rows,
                                                   Execution& execution) const {
    const FoundNeighbors found(of_rows);
    GPUTEXT_TRY(check_memory(parameters_, found.size()));
    std::vector<double> factors;
    GPUTEXT_TRY(Factors(parameters_, items_, distinct_, found).run(execution, factors));
    return factors;
}

Result<std::vector<double>> local_outlier_factors(const OutlierParameters& parameters,
                                                  const Vectors& items, Execution& execution) {
    OutlierSearch search;
    GPUTEXT_TRY(search.set(parameters, items, execution));
    const auto neighbors =
        knn(search.parameters(), search.rows(), search.rows(), search.keys(), execution);
    if (!neighbors.ok()) return neighbors.status();
    return search.factors({&*neighbors, 1}, execution);
}

}  // namespace gputext
