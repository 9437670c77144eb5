#include "cpp/knn/detail/host_assignment.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What a query may have passed before its list is decided.
constexpr std::size_t kMostPassed = 512;

/// Elements of a block of items: about what a second-level cache holds, as floats.
constexpr std::size_t kBlockElements = std::size_t{1} << 15;
constexpr std::size_t kMostBlockRows = 256;

/// Bytes of centroids that are compared with all items of a block before the next ones: about a
/// first-level cache.
constexpr std::size_t kGroupBytes = std::size_t{1} << 15;

/// Exact distances between two looks at a stop request, times dimensions.
constexpr std::size_t kLookElements = std::size_t{1} << 18;

/// Far above the errors of distances in double precision, which are of (d / 16 + 20) 2^-52: of
/// themselves, or for cosine of 1.
constexpr double kRelative = 0x1p-30, kAbsolute = 0x1p-36;

float round_up(double number) {
    const auto rounded = static_cast<float>(number);
    return rounded < number ? std::nextafter(rounded, std::numeric_limits<float>::infinity())
                            : rounded;
}

float round_down(double number) {
    return -round_up(-number);
}

std::size_t rows_of_block(std::size_t dimensions) {
    const std::size_t rows = kBlockElements / std::max<std::size_t>(1, dimensions) / 8 * 8;
    return std::clamp<std::size_t>(rows, 8, kMostBlockRows);
}

std::size_t padded(std::size_t dimensions) {
    return (dimensions + 15) / 16 * 16;
}

}  // namespace

NearestCentroid::NearestCentroid(Metric metric, const Vectors& items, double largest, Simd simd,
                                 unsigned threads)
    : metric_(metric),
      items_(items),
      // Means may be a little greater than any item, when they are rounded to float.
      filtered_(FilterSpace::holds(largest, metric == Metric::cosine ? 1 : largest * 1.001,
                                   items.dimensions)),
      filter_(distance_filter<float>(Score::product, simd)),
      simd_(simd),
      block_rows_(rows_of_block(items.dimensions)),
      workers_(threads) {
    if (filtered_) space_.emplace(metric, items, largest, largest * 1.001, simd);
    const std::size_t panel_bytes = filter_.items.rows * items.dimensions * sizeof(float);
    group_panels_ = std::max<std::size_t>(1, kGroupBytes / std::max<std::size_t>(1, panel_bytes));
    const std::size_t width = padded(items.dimensions);
    for (Worker& worker : workers_) {
        worker.row.resize(width);
        worker.queries.resize(block_rows_);
        if (!filtered_) continue;
        worker.converted.resize(filter_.queries.rows * width);
        worker.panels = std::make_unique<float[]>(block_rows_ * items.dimensions);
        worker.bounds.resize(block_rows_);
        for (Query& query : worker.queries) {
            query.scores.resize(kMostPassed);
            query.positions.resize(kMostPassed);
        }
    }
}

std::size_t NearestCentroid::bytes_of_thread(std::size_t dimensions) {
    const std::size_t rows = rows_of_block(dimensions);
    return rows * (dimensions * sizeof(float) + sizeof(FilterRow) + sizeof(Query) +
                   kMostPassed * (sizeof(float) + sizeof(std::uint32_t))) +
           padded(dimensions) * (3 * sizeof(double) + 8 * sizeof(float));
}

Status NearestCentroid::set(const Vectors& centroids, std::uint32_t first, Execution& execution) {
    centroids_ = centroids;
    first_ = first;
    for (Worker& worker : workers_) worker.distances.emplace(metric_, items_, centroids_, simd_);
    if (!filtered_) return {};

    const std::size_t k = centroids.rows, d = centroids.dimensions, width = padded(d);
    const std::size_t columns = filter_.items.rows, panels = (k + columns - 1) / columns;
    std::vector<FilterRow> bounds(k);
    std::unique_ptr<float[]> converted = std::make_unique_for_overwrite<float[]>(k * width);
    constexpr std::size_t step = 16;
    Status status =
        execution.parallel_for((k + step - 1) / step, [&](std::size_t task, unsigned) -> Status {
            std::vector<double> row(width);
            for (std::size_t c = task * step; c < std::min(k, (task + 1) * step); ++c) {
                copy_elements(centroids, centroids.begin(c), d, row.data());
                std::fill(row.begin() + static_cast<std::ptrdiff_t>(d), row.end(), 0.0);
                bounds[c] = space_->convert(FilterSpace::Side::item, row.data(),
                                            converted.get() + c * width);
            }
            return {};
        });
    if (!status.ok()) return status;

    order_.resize(k);
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return bounds[a].norm != bounds[b].norm ? bounds[a].norm < bounds[b].norm : a < b;
    });
    if (panels_room_ < panels * columns * d) {
        panels_.reset();
        panels_room_ = panels * columns * d;
        panels_ = std::make_unique_for_overwrite<float[]>(panels_room_);
    }
    offsets_.assign(panels * columns, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t p = 0; p < k; ++p) offsets_[p] = static_cast<float>(bounds[order_[p]].offset);
    groups_.clear();
    for (std::size_t panel = 0; panel < panels; panel += group_panels_) {
        Group group{panel, std::min(panels, panel + group_panels_),
                    bounds[order_[panel * columns]]};
        for (std::size_t p = panel * columns; p < std::min(k, group.end_panel * columns); ++p) {
            const FilterRow& row = bounds[order_[p]];
            group.bounds.norm = std::max(group.bounds.norm, row.norm);
            group.bounds.least_norm = std::min(group.bounds.least_norm, row.least_norm);
            group.bounds.residual = std::max(group.bounds.residual, row.residual);
        }
        groups_.push_back(group);
    }
    return execution.parallel_for(panels, [&](std::size_t panel, unsigned) -> Status {
        float* const to = panels_.get() + panel * columns * d;
        for (std::size_t column = 0; column < columns; ++column) {
            const std::size_t position = panel * columns + column;
            const float* const from =
                position < k ? converted.get() + order_[position] * width : nullptr;
            for (std::size_t i = 0; i < d; ++i)
                to[i * columns + column] = from != nullptr ? from[i] : 0;
        }
        return {};
    });
}

double NearestCentroid::least_apart(double distance) const {
    if (metric_ == Metric::euclidean) return distance * (1 - kRelative);
    return std::sqrt(2 * std::max(0.0, distance - kAbsolute)) * (1 - kRelative);
}

double NearestCentroid::most_apart(double distance) const {
    if (metric_ == Metric::euclidean) return distance * (1 + kRelative);
    return std::sqrt(2 * (distance + kAbsolute)) * (1 + kRelative);
}

/// An upper bound of the exact distance of what the filter finds this far apart.
double NearestCentroid::distance_within(double apart) const {
    if (metric_ == Metric::euclidean) return apart * (1 + kRelative);
    return apart * apart / 2 * (1 + kRelative) + kAbsolute;
}

Status NearestCentroid::assign(unsigned number, Block& block, Stop stop) {
    Worker& worker = workers_[number];
    const std::size_t count = block.end - block.begin;
    for (std::size_t i = 0; i < count; ++i) worker.queries[i].item = block.begin + i;
    if (!filtered_) return search_plainly(worker, block, count, stop);
    convert(worker, count);
    for (std::size_t i = 0; i < count; ++i) {
        worker.queries[i].most = space_->most_of(worker.bounds[i], block.distances[i]);
        worker.queries[i].reach = -kInfinity;
    }
    return search(worker, block, count, nullptr, stop);
}

Status NearestCentroid::move(unsigned number, Block& block, float* lower, const Shifts& shifts,
                             double reach, Stop stop) {
    Worker& worker = workers_[number];
    Distances& distances = *worker.distances;
    std::size_t count = 0;
    for (std::size_t i = 0; i < block.end - block.begin; ++i) {
        distances.set_query(block.begin + i);
        block.distances[i] = distances(block.clusters[i] - first_);
        ++block.rescored;
        lower[i] = round_down(lower[i] - shifts.of_others(block.clusters[i]));
        if (most_apart(block.distances[i]) < lower[i]) continue;
        worker.queries[count++].item = block.begin + i;
    }
    block.searched += count;
    if (count == 0) return {};
    if (!filtered_) return search_plainly(worker, block, count, stop);
    convert(worker, count);
    for (std::size_t q = 0; q < count; ++q) {
        Query& query = worker.queries[q];
        const double distance = block.distances[query.item - block.begin];
        query.most = space_->most_of(worker.bounds[q], distance);
        const double within = distance_within(most_apart(distance) + reach);
        query.reach = std::max(query.most, space_->most_of(worker.bounds[q], within));
        // Everything that does not pass is farther than this bound.
        lower[query.item - block.begin] = round_down(least_apart(within));
    }
    return search(worker, block, count, lower, stop);
}

Status NearestCentroid::search_plainly(Worker& worker, Block& block, std::size_t count,
                                       Stop stop) const {
    const std::size_t look_every =
        std::max<std::size_t>(1, kLookElements / (items_.dimensions + 16));
    for (std::size_t q = 0; q < count; ++q) {
        const std::size_t item = worker.queries[q].item, at = item - block.begin;
        const std::uint32_t before = block.clusters[at];
        worker.distances->set_query(item);
        for (std::uint32_t c = 0; c < centroids_.rows; ++c) {
            if (c % look_every == 0 && stop()) return Status::cancelled();
            const double distance = (*worker.distances)(c);
            if (distance < block.distances[at] ||
                (distance == block.distances[at] && first_ + c < block.clusters[at])) {
                block.distances[at] = distance;
                block.clusters[at] = first_ + c;
            }
        }
        block.rescored += centroids_.rows;
        block.changed += block.clusters[at] != before;
    }
    return {};
}

void NearestCentroid::convert(Worker& worker, std::size_t count) const {
    const std::size_t d = items_.dimensions, width = padded(d), tile = filter_.queries.rows;
    for (std::size_t begin = 0; begin < count; begin += tile) {
        const std::size_t rows = std::min(tile, count - begin);
        for (std::size_t r = 0; r < rows; ++r) {
            copy_elements(items_, items_.begin(worker.queries[begin + r].item), d,
                          worker.row.data());
            std::fill(worker.row.begin() + static_cast<std::ptrdiff_t>(d), worker.row.end(), 0.0);
            worker.bounds[begin + r] = space_->convert(FilterSpace::Side::query, worker.row.data(),
                                                       worker.converted.data() + r * width);
        }
        fill_panel(worker.converted.data(), width, rows, d, filter_.queries,
                   worker.panels.get() + begin * d);
    }
}

Status NearestCentroid::search(Worker& worker, Block& block, std::size_t count, float* lower,
                               Stop stop) {
    std::vector<std::uint32_t> before(block.clusters, block.clusters + (block.end - block.begin));
    for (std::size_t q = 0; q < count; ++q) worker.queries[q].count = 0;
    const std::size_t tile = filter_.queries.rows;
    for (const Group& group : groups_)
        for (std::size_t begin = 0; begin < count; begin += tile) {
            if (begin % (8 * tile) == 0 && stop()) return Status::cancelled();
            const float* const panel = worker.panels.get() + begin * items_.dimensions;
            const std::size_t rows = std::min(tile, count - begin);
            PassedScores<float> passed{};
            for (std::size_t next = group.begin_panel; next < group.end_panel;) {
                for (std::size_t r = 0; r < tile; ++r) {
                    // Queries behind the last one are zeros, whose scores nothing passes.
                    Query& query = worker.queries[begin + std::min(r, rows - 1)];
                    passed.gate[r] =
                        r < rows
                            ? round_up(std::max(query.most, query.reach) +
                                       space_->bound<float>(worker.bounds[begin + r], group.bounds)
                                           .absolute)
                            : -std::numeric_limits<float>::infinity();
                    passed.scores[r] = query.scores.data();
                    passed.positions[r] = query.positions.data();
                    passed.count[r] = r < rows ? query.count : 0;
                    passed.capacity[r] = kMostPassed;
                }
                next = filter_.scan(panel, panels_.get(), offsets_.data(), items_.dimensions, next,
                                    group.end_panel, passed);
                for (std::size_t r = 0; r < rows; ++r) {
                    Query& query = worker.queries[begin + r];
                    query.count = passed.count[r];
                    if (query.count < filter_.items.rows) continue;
                    keep_possible(worker.bounds[begin + r], query);
                    if (query.count + filter_.items.rows <= kMostPassed) continue;
                    if (Status status = decide(worker, begin + r, block, lower, stop); !status.ok())
                        return status;
                }
            }
        }
    for (std::size_t q = 0; q < count; ++q) {
        keep_possible(worker.bounds[q], worker.queries[q]);
        if (Status status = decide(worker, q, block, lower, stop); !status.ok()) return status;
        const std::size_t at = worker.queries[q].item - block.begin;
        block.changed += block.clusters[at] != before[at];
    }
    return {};
}

/// Lowers query.most to the least upper bound of what passed, and drops what is certainly beyond
/// it, and out of reach.
void NearestCentroid::keep_possible(const FilterRow& bounds, Query& query) const {
    double most = query.most;
    for_each_passed(bounds, query, [&](std::size_t i, const FilterSpace::Bound& bound) {
        most = std::min(most, bound.most(query.scores[i]));
    });
    query.most = most;
    most = std::max(most, query.reach);
    std::size_t kept = 0;
    for_each_passed(bounds, query, [&](std::size_t i, const FilterSpace::Bound& bound) {
        if (bound.least(query.scores[i]) > most) return;
        query.scores[kept] = query.scores[i];
        query.positions[kept++] = query.positions[i];
    });
    query.count = kept;
}

/// Computes the distances that may be the least, empties the list, and lowers the item's bound to
/// what passed of other centroids.
Status NearestCentroid::decide(Worker& worker, std::size_t number, Block& block, float* lower,
                               Stop stop) const {
    Query& query = worker.queries[number];
    const FilterRow& bounds = worker.bounds[number];
    const std::size_t at = query.item - block.begin;
    const std::uint32_t before = block.clusters[at];
    const double distance_before = block.distances[at];
    block.passed += query.count;
    const std::size_t look_every =
        std::max<std::size_t>(1, kLookElements / (items_.dimensions + 16));
    bool is_set = false, stopped = false;
    for_each_passed(bounds, query, [&](std::size_t i, const FilterSpace::Bound& bound) {
        const std::uint32_t row = order_[query.positions[i]], cluster = first_ + row;
        if (stopped || cluster == before || bound.least(query.scores[i]) > query.most) return;
        if (!is_set) worker.distances->set_query(query.item);
        is_set = true;
        stopped = i % look_every == 0 && stop();
        const double distance = (*worker.distances)(row);
        ++block.rescored;
        if (distance < block.distances[at] ||
            (distance == block.distances[at] && cluster < block.clusters[at])) {
            block.distances[at] = distance;
            block.clusters[at] = cluster;
        }
    });
    if (stopped) return Status::cancelled();
    if (lower != nullptr) {
        double least_score = kInfinity;
        for_each_passed(bounds, query, [&](std::size_t i, const FilterSpace::Bound& bound) {
            if (first_ + order_[query.positions[i]] != block.clusters[at])
                least_score = std::min(least_score, bound.least(query.scores[i]));
        });
        double least = lower[at];
        if (least_score < kInfinity)
            least = std::min(least, least_apart(space_->least_distance(bounds, least_score)));
        if (block.clusters[at] != before) least = std::min(least, least_apart(distance_before));
        lower[at] = round_down(least);
    }
    query.most = std::min(query.most, space_->most_of(bounds, block.distances[at]));
    query.count = 0;
    return {};
}

HostAssignment::HostAssignment(const KMeansParameters& parameters, const Vectors& items,
                               double largest, const ClusterMeans& means, ItemClusters clusters,
                               unsigned threads)
    : metric_(parameters.metric),
      simd_(parameters.simd),
      items_(items),
      clusters_(clusters),
      nearest_(parameters.metric, items, largest, parameters.simd, threads),
      sums_(parameters.metric, items, means, parameters.k, parameters.simd) {}

std::uint64_t HostAssignment::bytes(const KMeansParameters& parameters, const Vectors& items,
                                    unsigned threads) {
    const std::uint64_t of_item = sizeof(float) + ClusterSums::bytes_of_item;
    const std::uint64_t of_element =
        sizeof(float) + NearestCentroid::bytes_of_element + ClusterSums::bytes_of_element;
    const std::uint64_t of_thread = NearestCentroid::bytes_of_thread(items.dimensions) +
                                    ClusterSums::bytes_of_thread(items.dimensions);
    return items.rows * of_item + parameters.k * items.dimensions * of_element +
           threads * of_thread;
}

std::size_t HostAssignment::blocks() const {
    const std::size_t rows = nearest_.block_rows();
    return (items_.rows + rows - 1) / rows;
}

NearestCentroid::Block HostAssignment::block(std::size_t number) {
    const std::size_t begin = number * nearest_.block_rows();
    return {begin, std::min(items_.rows, begin + nearest_.block_rows()),
            clusters_.clusters.data() + begin, clusters_.distances.data() + begin};
}

Status HostAssignment::add(const Vectors& centroids, std::uint32_t first, Execution& execution) {
    GPUTEXT_TRY(nearest_.set(centroids, first, execution));
    return execution.parallel_for(blocks(), [&](std::size_t number, unsigned worker) {
        auto some = block(number);
        Status status = nearest_.assign(worker, some, execution.stop());
        rescored_ += some.rescored;
        return status;
    });
}

Status HostAssignment::move(std::uint32_t item, std::uint32_t) {
    if (!lower_.empty()) lower_[item] = -1;
    return {};
}

Result<ClusterTotals> HostAssignment::totals(Execution& execution) {
    GPUTEXT_TRY(sums_.set(clusters_.clusters, execution));
    return ClusterTotals{sums_.sums(), sums_.sizes()};
}

Status HostAssignment::begin_bounds(Stop stop) {
    const auto some =
        clusters_.distances.first(std::min<std::size_t>(4096, clusters_.distances.size()));
    most_reach_ = nearest_.most_apart(*std::ranges::max_element(some)) / 64;
    return stoppable_assign(lower_, items_.rows, -1.0f, stop) ? Status() : Status::cancelled();
}

/// How far the centroids have moved since the last call of assign().
Status HostAssignment::set_shifts(const Vectors& centroids, NearestCentroid::Shifts& shifts,
                                  Execution& execution) const {
    Vectors before = centroids;
    before.elements = centroids_.data();
    std::vector<double> shift(centroids.rows);
    constexpr std::size_t step = 64;
    GPUTEXT_TRY(execution.parallel_for(
        (shift.size() + step - 1) / step, [&](std::size_t task, unsigned) -> Status {
            Distances distances(metric_, before, centroids, simd_);
            const std::size_t end = std::min(shift.size(), (task + 1) * step);
            for (std::size_t c = task * step; c < end; ++c) {
                distances.set_query(c);
                shift[c] = nearest_.most_apart(distances(c));
            }
            return {};
        }));
    for (std::uint32_t c = 0; c < shift.size(); ++c) {
        if (shift[c] > shifts.largest) {
            shifts.second = shifts.largest;
            shifts.largest = shift[c];
            shifts.of_largest = c;
        } else {
            shifts.second = std::max(shifts.second, shift[c]);
        }
    }
    return {};
}

Result<std::uint64_t> HostAssignment::assign(const Vectors& centroids, Execution& execution) {
    Execution part(execution.threads(), execution);  // for what does not count as progress
    NearestCentroid::Shifts shifts;
    const bool is_first = lower_.empty();  // nothing is known that shifts could change
    if (is_first)
        GPUTEXT_TRY(begin_bounds(execution.stop()));
    else
        GPUTEXT_TRY(set_shifts(centroids, shifts, part));
    const auto* elements = static_cast<const float*>(centroids.elements);
    centroids_.assign(elements, elements + centroids.rows * centroids.dimensions);
    GPUTEXT_TRY(nearest_.set(centroids, 0, part));

    // The next shift is about as large as this one. Looking farther than needed costs less than
    // looking again, unless there are many to be seen.
    const double reach = is_first ? most_reach_ : std::min(1.5 * shifts.largest, most_reach_);
    std::atomic<std::uint64_t> changed{0}, searched{0}, passed{0};
    GPUTEXT_TRY(execution.parallel_for(blocks(), [&](std::size_t number, unsigned worker) {
        auto some = block(number);
        Status status = nearest_.move(worker, some, lower_.data() + some.begin, shifts, reach,
                                      execution.stop());
        changed += some.changed;
        searched += some.searched;
        passed += some.passed;
        rescored_ += some.rescored;
        return status;
    }));
    if (passed > 4 * searched) most_reach_ = reach / 2;
    if (passed < 3 * searched) most_reach_ = 2 * reach;
    return changed.load();
}

}  // namespace gputext
