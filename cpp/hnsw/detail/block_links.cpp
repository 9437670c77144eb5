#include "cpp/hnsw/detail/block_links.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "cpp/hnsw/graph.hpp"
#include "cpp/knn/distinct_rows.hpp"

namespace gputext {
namespace {

constexpr std::size_t kStretch = 2048;

Vectors rows_of(const Vectors& values, const LayerRows& rows) {
    return RowRange(values, rows.begin, rows.end).vectors();
}

}  // namespace

KnnParameters BlockLinks::search_parameters() const {
    KnnParameters parameters;
    parameters.k = parameters_.candidates;
    parameters.metric = parameters_.metric;
    parameters.memory_limit = parameters_.memory_limit;
    parameters.simd = parameters_.simd;
    return parameters;
}

void BlockLinks::add(std::size_t row, std::span<const NearRow> found) {
    std::vector<NearRow>& known = nearest_[row - block_.begin];
    const auto middle = static_cast<std::ptrdiff_t>(known.size());
    known.insert(known.end(), found.begin(), found.end());
    std::inplace_merge(known.begin(), known.begin() + middle, known.end());
    if (known.size() > parameters_.candidates) known.resize(parameters_.candidates);
}

template <class Number>
void BlockLinks::add(std::size_t row, const Neighbors& found, std::size_t query,
                     const Number& number) {
    std::vector<NearRow> nearest;
    nearest.reserve(found.begins[query + 1] - found.begins[query]);
    for (std::uint64_t i = found.begins[query]; i < found.begins[query + 1]; ++i)
        nearest.push_back({found.distances[i], static_cast<std::uint32_t>(number(found.items[i]))});
    add(row, nearest);
}

double BlockLinks::radius_of(std::size_t row) const {
    const std::vector<NearRow>& known = nearest_[row - block_.begin];
    return known.size() == parameters_.candidates ? known.back().distance
                                                  : std::numeric_limits<double>::infinity();
}

std::vector<double> BlockLinks::radii_of(const LayerRows& rows) const {
    std::vector<double> radii(rows.size());
    for (std::size_t row = rows.begin; row < rows.end; ++row)
        radii[row - rows.begin] = radius_of(row);
    return radii;
}

Status BlockLinks::search(const LayerRows& queries, const LayerRows& items, Execution& execution,
                          const RadiusSearch& search) {
    if (items.size() == 0) return {};
    const Vectors of = rows_of(values_, queries), among = rows_of(values_, items);
    const std::vector<double> radii = radii_of(queries);
    const auto found = search != nullptr
                           ? search(search_parameters(), radii, of, among)
                           : knn_nearer(search_parameters(), radii, of, among, execution);
    if (!found.ok()) return found.status();
    const std::size_t tasks = (queries.size() + kLeafRows - 1) / kLeafRows;
    execution.begin_phase("merging neighbors", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t query = task * kLeafRows;
             query < std::min(queries.size(), (task + 1) * kLeafRows); ++query)
            add(queries.begin + query, *found, query,
                [&](std::uint32_t item) { return items.begin + item; });
        return Status();
    });
}

Status BlockLinks::search_halves(const LayerRows& rows, Execution& execution,
                                 const RadiusSearch& search) {
    const std::size_t stretches = (rows.size() + kStretch - 1) / kStretch;
    if (stretches < 2) return {};
    const std::size_t middle = rows.begin + std::bit_ceil(stretches) / 2 * kStretch;
    GPUTEXT_TRY(this->search({middle, rows.end}, {rows.begin, middle}, execution, search));
    GPUTEXT_TRY(search_halves({rows.begin, middle}, execution, search));
    return search_halves({middle, rows.end}, execution, search);
}

Status BlockLinks::search_some(std::span<const std::uint32_t> queries,
                               std::span<const std::uint32_t> items, Execution& execution) {
    if (items.empty() || queries.empty()) return {};
    GatheredRows among, of;
    GPUTEXT_TRY(among.set(values_, items, execution));
    GPUTEXT_TRY(of.set(values_, queries, execution));
    std::vector<double> radii(queries.size());
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const std::lock_guard lock(mutexes_[queries[i] % mutexes_.size()]);
        radii[i] = radius_of(queries[i]);
    }
    const auto found =
        knn_nearer(search_parameters(), radii, of.vectors(), among.vectors(), execution);
    if (!found.ok()) return found.status();
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const std::lock_guard lock(mutexes_[queries[i] % mutexes_.size()]);
        add(queries[i], *found, i, [&](std::uint32_t item) { return items[item]; });
    }
    return {};
}

/// What is left to be searched for these rows, and their links.
Status BlockLinks::link_leaf(const LayerRows& leaf, Chooser& chooser, const HnswLinks& links,
                             Execution& part) {
    const std::size_t stretch = block_.begin + (leaf.begin - block_.begin) / kStretch * kStretch;
    GPUTEXT_TRY(search(leaf, {stretch, leaf.begin}, part, {}));
    for (std::size_t row = leaf.begin; row < leaf.end; ++row) {
        GPUTEXT_TRY(part.checkpoint());
        chooser.nearest_of(static_cast<std::uint32_t>(row), leaf.begin, radius_of(row),
                           chooser.list());
        add(row, chooser.list());
        std::vector<NearRow>& nearest = nearest_[row - block_.begin];
        const std::size_t places = parameters_.places;
        const auto chosen = chooser.choose(static_cast<std::uint32_t>(row), nearest, places, 1);
        const std::size_t first = (row - block_.begin) * places;
        for (std::size_t i = 0; i < places; ++i) {
            links.rows[first + i] = i < chosen.size() ? chosen[i].row : kNoElement;
            links.distances[first + i] = i < chosen.size() ? chosen[i].distance : 0;
        }
        nearest = {};
    }
    return {};
}

Status BlockLinks::link(const HnswLinks& links, std::uint64_t done, std::uint64_t all,
                        Execution& execution) {
    const std::size_t leaves = (block_.size() + kLeafRows - 1) / kLeafRows;
    std::vector<Chooser> choosers(execution.threads(),
                                  Chooser(parameters_.metric, values_, parameters_.simd));
    execution.begin_phase("linking rows", all);
    execution.advance(done);
    return execution.parallel_for(leaves, [&](std::size_t leaf, unsigned worker) {
        const std::size_t begin = block_.begin + leaf * kLeafRows;
        const LayerRows rows{begin, std::min(block_.end, begin + kLeafRows)};
        Execution part(1, execution);
        GPUTEXT_TRY(link_leaf(rows, choosers[worker], links, part));
        execution.advance(rows.size() - 1);
        return Status();
    });
}

}  // namespace gputext
