#include "cpp/hnsw/builder.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "cpp/base/counter_random.hpp"
#include "cpp/hnsw/detail/chosen_rows.hpp"

namespace gputext {
namespace {

/// A block is searched in itself by stretches of so many rows, and these by so many.
constexpr std::size_t kStretch = 2048, kLeaf = 256;

/// Of the choice among those that link back. With it searches with short lists find more, and
/// compare no more rows. So much is the best of 1 to 1.12; slack in the choice of a row's own
/// links, too, finds less.
constexpr double kSlack = 17.0 / 16;

std::vector<std::uint8_t> levels_of(const HnswParameters& parameters, std::size_t distinct,
                                    std::size_t elements) {
    constexpr std::uint64_t use = 0x686e7377;
    const std::uint64_t key = random_key(0, use, parameters.m);
    std::vector<std::uint64_t> below;  // random numbers of elements of layer 1, 2 ...
    for (std::uint64_t limit = UINT64_MAX / parameters.m;
         limit > 0 && below.size() < parameters.highest_level; limit /= parameters.m)
        below.push_back(limit);
    std::vector<std::uint8_t> levels(elements, 0);
    for (std::size_t element = 0; element < distinct; ++element) {
        const std::uint64_t random = random_bits(key, element);
        unsigned level = 0;
        while (level < below.size() && random < below[level]) ++level;
        levels[element] = static_cast<std::uint8_t>(level);
    }
    return levels;
}

}  // namespace

/// Chooses neighbors of rows, with the memory that this takes. Used by one thread.
class HnswBuilder::Chooser {
public:
    Chooser(const HnswParameters& parameters, const Vectors& values)
        : rows_(parameters.metric, values, parameters.simd) {}

    /// Choose() of the header, for a row. The list is sorted, and so is not what is returned.
    std::span<const Near> choose(std::uint32_t row, std::span<const Near> sorted, std::size_t limit,
                                 double slack) {
        if (sorted.size() <= limit) return sorted;
        rows_.begin(row);
        chosen_.clear();
        left_.clear();
        for (std::size_t i = 0; i < sorted.size() && chosen_.size() < limit; ++i) {
            if (i + kAhead < sorted.size()) rows_.nearness().prefetch(sorted[i + kAhead].row);
            if (rows_.has_nearer(sorted[i].row, sorted[i].distance, sorted[i].distance / slack)) {
                left_.push_back(sorted[i]);
            } else {
                chosen_.push_back(sorted[i]);
                rows_.choose();
            }
        }
        const std::size_t more = std::min(limit - chosen_.size(), left_.size());
        chosen_.insert(chosen_.end(), left_.begin(),
                       left_.begin() + static_cast<std::ptrdiff_t>(more));
        return chosen_;
    }

    /// The rows from `begin` on before this one that are at most so far from it, by their
    /// distances.
    void nearest_of(std::uint32_t row, std::size_t begin, double radius,
                    std::vector<Near>& nearest) {
        nearest.clear();
        Nearness& nearness = rows_.nearness();
        nearness.set(row);
        for (auto before = static_cast<std::uint32_t>(begin); before < row; ++before) {
            const double distance = nearness.within(radius, before);
            if (distance <= radius) nearest.push_back({distance, before});
        }
        std::sort(nearest.begin(), nearest.end());
    }

    /// Scratch for a list.
    std::vector<Near>& list() { return list_; }

private:
    static constexpr std::size_t kAhead = 4;  // rows are anywhere in memory

    ChosenRows rows_;
    std::vector<Near> list_, chosen_, left_;
};

HnswBuilder::HnswBuilder(const HnswParameters& parameters, const Vectors& values,
                         std::span<const std::uint32_t> copy_of)
    : parameters_(parameters),
      all_values_(values),
      copy_of_(copy_of),
      distinct_(values.rows - copy_of.size()) {}

Status HnswBuilder::begin(Execution& execution) {
    graph_ = HnswGraph(parameters_.m, levels_of(parameters_, distinct_, all_values_.rows));
    for (std::size_t element = 0; element < distinct_; ++element)
        to_search_ += 1 + graph_.level(element);
    done_ = distinct_ == 0;
    return done_ ? Status() : begin_layer(graph_.level(graph_.entry()), execution);
}

Status HnswBuilder::begin_layer(unsigned layer, Execution& execution) {
    layer_ = layer;
    places_ = graph_.places(layer);
    members_.clear();
    for (std::size_t element = 0; element < distinct_; ++element)
        if (graph_.level(element) >= layer) members_.push_back(static_cast<std::uint32_t>(element));
    Vectors distinct = all_values_;
    distinct.rows = distinct_;
    GPUTEXT_TRY(gathered_.set(distinct, members_, execution));
    values_ = gathered_.vectors();
    clusters_.clear();
    if (rows() > parameters_.exact_rows && parameters_.metric != Metric::inner_product)
        GPUTEXT_TRY(clusters_.set(values_, parameters_.simd, execution));
    links_.assign(rows() * places_, kNoElement);
    link_distances_.assign(rows() * places_, 0);
    begin_block(0);
    return {};
}

void HnswBuilder::begin_block(std::size_t begin) {
    block_begin_ = begin;
    block_end_ = end_of_block();
    nearest_.assign(block_end_ - block_begin_, {});
    searches_.clear();
    next_search_ = 0;
    if (!probes()) {
        const Range block{block_begin_, block_end_};
        const std::size_t parts = begin / parameters_.part_rows * parameters_.part_rows;
        if (parts > 0) searches_.push_back({block, {0, parts}});
        if (parts < begin) searches_.push_back({block, {parts, begin}});
    }
    search_halves(block_begin_, block_end_);
}

/// Plans the searches of these rows, from the beginning of a stretch on, among themselves, but for
/// those within stretches.
void HnswBuilder::search_halves(std::size_t begin, std::size_t end) {
    const std::size_t stretches = (end - begin + kStretch - 1) / kStretch;
    if (stretches < 2) return;
    const std::size_t middle = begin + std::bit_ceil(stretches) / 2 * kStretch;
    searches_.push_back({{middle, end}, {begin, middle}});
    search_halves(begin, middle);
    search_halves(middle, end);
}

KnnParameters HnswBuilder::search() const {
    KnnParameters parameters;
    parameters.k = parameters_.candidates;
    parameters.metric = parameters_.metric;
    parameters.memory_limit = parameters_.memory_limit;
    parameters.simd = parameters_.simd;
    return parameters;
}

std::size_t HnswBuilder::end_of_block() const {
    if (probes()) return std::min(rows(), block_begin_ + parameters_.probing_rows);
    return std::min(clusters_.empty() ? rows() : parameters_.exact_rows,
                    block_begin_ + parameters_.block_rows);
}

Vectors HnswBuilder::queries() const {
    const Range& of = searches_[next_search_].queries;
    return rows_of(of.begin, of.end);
}

Vectors HnswBuilder::items() const {
    const Range& of = searches_[next_search_].items;
    return rows_of(of.begin, of.end);
}

std::vector<double> HnswBuilder::radii() const {
    const Range& of = searches_[next_search_].queries;
    return radii_of(of.begin, of.end);
}

std::optional<HnswBuilder::Range> HnswBuilder::query_elements() const {
    if (layer_ > 0) return std::nullopt;
    return searches_[next_search_].queries;
}

std::optional<HnswBuilder::Range> HnswBuilder::item_elements() const {
    if (layer_ > 0) return std::nullopt;
    return searches_[next_search_].items;
}

/// The nearest of those that are known and of these, of which both are sorted.
void HnswBuilder::add(std::size_t row, std::span<const Near> found) {
    std::vector<Near>& known = nearest_[row - block_begin_];
    const auto middle = static_cast<std::ptrdiff_t>(known.size());
    known.insert(known.end(), found.begin(), found.end());
    std::inplace_merge(known.begin(), known.begin() + middle, known.end());
    if (known.size() > parameters_.candidates) known.resize(parameters_.candidates);
}

template <class Number>
void HnswBuilder::add(std::size_t row, const Neighbors& found, std::size_t query,
                      const Number& number) {
    std::vector<Near> nearest;
    nearest.reserve(found.begins[query + 1] - found.begins[query]);
    for (std::uint64_t i = found.begins[query]; i < found.begins[query + 1]; ++i)
        nearest.push_back({found.distances[i], static_cast<std::uint32_t>(number(found.items[i]))});
    add(row, nearest);
}

double HnswBuilder::radius_of(std::size_t row) const {
    const std::vector<Near>& known = nearest_[row - block_begin_];
    return known.size() == parameters_.candidates ? known.back().distance
                                                  : std::numeric_limits<double>::infinity();
}

std::vector<double> HnswBuilder::radii_of(std::size_t begin, std::size_t end) const {
    std::vector<double> radii(end - begin);
    for (std::size_t row = begin; row < end; ++row) radii[row - begin] = radius_of(row);
    return radii;
}

Status HnswBuilder::add(const Neighbors& found, Execution& execution) {
    const Search& search = searches_[next_search_++];
    const std::size_t queries = search.queries.end - search.queries.begin;
    const std::size_t tasks = (queries + kLeaf - 1) / kLeaf;
    execution.begin_phase("merging neighbors", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t query = task * kLeaf; query < std::min(queries, (task + 1) * kLeaf);
             ++query)
            add(search.queries.begin + query, found, query,
                [&](std::uint32_t item) { return search.items.begin + item; });
        return Status();
    });
}

/// For the block's rows that probe this cluster: those of it before the block that are nearer than
/// what is known.
Status HnswBuilder::search_cluster(std::size_t cluster, std::span<const std::uint32_t> probing,
                                   Execution& part) {
    const auto members = clusters_.members(cluster);
    const auto before = members.first(static_cast<std::size_t>(
        std::lower_bound(members.begin(), members.end(), block_begin_) - members.begin()));
    if (before.empty() || probing.empty()) return {};
    GatheredRows items, queries;
    GPUTEXT_TRY(items.set(values_, before, part));
    GPUTEXT_TRY(queries.set(values_, probing, part));
    std::vector<double> radii(probing.size());
    for (std::size_t i = 0; i < probing.size(); ++i) {
        const std::lock_guard lock(mutexes_[probing[i] % mutexes_.size()]);
        radii[i] = radius_of(probing[i]);
    }
    const auto found = knn_nearer(search(), radii, queries.vectors(), items.vectors(), part);
    if (!found.ok()) return found.status();
    for (std::size_t i = 0; i < probing.size(); ++i) {
        const std::lock_guard lock(mutexes_[probing[i] % mutexes_.size()]);
        add(probing[i], *found, i, [&](std::uint32_t item) { return before[item]; });
    }
    return {};
}

Status HnswBuilder::search_clusters(Execution& execution) {
    const std::size_t probes = std::min(ProbedClusters::probes, clusters_.size());
    const auto probed =
        clusters_.nearest(rows_of(block_begin_, block_end_), probes, parameters_.simd, execution);
    if (!probed.ok()) return probed.status();
    std::vector<std::vector<std::uint32_t>> probing(clusters_.size());
    for (std::size_t i = 0; i < probed->size(); ++i)
        probing[(*probed)[i]].push_back(static_cast<std::uint32_t>(block_begin_ + i / probes));
    execution.begin_phase("searching clusters", clusters_.size());
    return execution.parallel_for(clusters_.size(), [&](std::size_t cluster, unsigned) {
        Execution part(1, execution);
        return search_cluster(cluster, probing[cluster], part);
    });
}

/// For the block's rows [begin, end): those of rows [item_begin, begin) that are nearer than what
/// is known.
Status HnswBuilder::search_nearer(std::size_t begin, std::size_t end, std::size_t item_begin,
                                  Execution& execution) {
    if (item_begin == begin) return {};
    const auto found = knn_nearer(search(), radii_of(begin, end), rows_of(begin, end),
                                  rows_of(item_begin, begin), execution);
    if (!found.ok()) return found.status();
    for (std::size_t row = begin; row < end; ++row)
        add(row, *found, row - begin, [&](std::uint32_t item) { return item_begin + item; });
    return {};
}

/// What is left to be searched for these rows, a leaf of a stretch, and their links.
Status HnswBuilder::link_rows(std::size_t begin, std::size_t end, Chooser& chooser,
                              Execution& part) {
    const std::size_t stretch = block_begin_ + (begin - block_begin_) / kStretch * kStretch;
    GPUTEXT_TRY(search_nearer(begin, end, stretch, part));
    for (std::size_t row = begin; row < end; ++row) {
        GPUTEXT_TRY(part.checkpoint());
        chooser.nearest_of(static_cast<std::uint32_t>(row), begin, radius_of(row), chooser.list());
        add(row, chooser.list());
        const auto chosen = chooser.choose(static_cast<std::uint32_t>(row),
                                           nearest_[row - block_begin_], places_, 1);
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            links_of(row)[i] = chosen[i].row;
            link_distances_of(row)[i] = chosen[i].distance;
        }
        nearest_[row - block_begin_] = {};
    }
    return {};
}

Status HnswBuilder::end_block(Execution& execution) {
    if (probes()) GPUTEXT_TRY(search_clusters(execution));
    const std::size_t leaves = (block_end_ - block_begin_ + kLeaf - 1) / kLeaf;
    std::vector<Chooser> choosers(execution.threads(), Chooser(parameters_, values_));
    execution.begin_phase("choosing links", leaves);
    GPUTEXT_TRY(execution.parallel_for(leaves, [&](std::size_t leaf, unsigned worker) {
        const std::size_t begin = block_begin_ + leaf * kLeaf;
        Execution part(1, execution);
        return link_rows(begin, std::min(block_end_, begin + kLeaf), choosers[worker], part);
    }));
    searched_ += block_end_ - block_begin_;
    if (block_end_ < rows()) {
        begin_block(block_end_);
        return {};
    }
    GPUTEXT_TRY(link_back(execution));
    if (layer_ > 0) return begin_layer(layer_ - 1, execution);
    GPUTEXT_TRY(link_copies(execution));
    done_ = true;
    return {};
}

/// The layer's neighbors: of each row those that it links to, and that link to it.
Status HnswBuilder::link_back(Execution& execution) {
    std::vector<std::uint64_t> ends(rows() + 1, 0);
    for (const std::uint32_t to : links_)
        if (to != kNoElement) ++ends[to + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<std::uint32_t> linking(ends.back());
    GPUTEXT_TRY(execution.checkpoint(0));
    for (std::size_t row = 0; row < rows(); ++row)
        for (const std::uint32_t to : links_of(row))
            if (to != kNoElement) linking[ends[to]++] = static_cast<std::uint32_t>(row);
    // Now ends[row] is where those that link to the row end.
    std::vector<Chooser> choosers(execution.threads(), Chooser(parameters_, values_));
    const std::size_t tasks = (rows() + kLeaf - 1) / kLeaf;
    const double slack = parameters_.metric == Metric::inner_product ? 1 : kSlack;
    execution.begin_phase("linking back", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned worker) -> Status {
        for (std::size_t row = task * kLeaf; row < std::min(rows(), (task + 1) * kLeaf); ++row) {
            if (execution.stop_requested()) return Status::cancelled();
            std::vector<Near>& linked = choosers[worker].list();
            linked.clear();
            for (std::size_t i = 0; i < places_ && links_of(row)[i] != kNoElement; ++i)
                linked.push_back({link_distances_of(row)[i], links_of(row)[i]});
            for (std::uint64_t i = row == 0 ? 0 : ends[row - 1]; i < ends[row]; ++i) {
                // A distance has the same bits in both directions.
                const auto back = links_of(linking[i]);
                const auto place = std::find(back.begin(), back.end(), row) - back.begin();
                linked.push_back(
                    {link_distances_of(linking[i])[static_cast<std::size_t>(place)], linking[i]});
            }
            std::sort(linked.begin(), linked.end());
            const auto chosen =
                choosers[worker].choose(static_cast<std::uint32_t>(row), linked, places_, slack);
            const auto places = graph_.neighbors(members_[row], layer_);
            for (std::size_t i = 0; i < chosen.size(); ++i) places[i] = members_[chosen[i].row];
        }
        return {};
    });
}

Status HnswBuilder::link_copies(Execution& execution) {
    // The copies of an element, one behind the other
    std::vector<std::uint32_t> copies(copy_of_.size());
    std::iota(copies.begin(), copies.end(), static_cast<std::uint32_t>(distinct_));
    std::stable_sort(copies.begin(), copies.end(), [&](std::uint32_t a, std::uint32_t b) {
        return copy_of_[a - distinct_] < copy_of_[b - distinct_];
    });
    std::vector<std::uint32_t> chain, own;
    for (std::size_t begin = 0, end = 0; begin < copies.size(); begin = end) {
        GPUTEXT_TRY(execution.checkpoint());
        const std::uint32_t element = copy_of_[copies[begin] - distinct_];
        chain.assign(1, element);
        while (end < copies.size() && copy_of_[copies[end] - distinct_] == element)
            chain.push_back(copies[end++]);
        const auto before = graph_.neighbors(element, 0);
        own.assign(before.begin(), before.end());
        for (std::size_t at = 0; at < chain.size(); ++at) {
            const auto places = graph_.neighbors(chain[at], 0);
            std::size_t used = 0;
            for (std::size_t far = 1; far <= std::max(1u, parameters_.m / 2); ++far) {
                if (at >= far) places[used++] = chain[at - far];
                if (at + far < chain.size()) places[used++] = chain[at + far];
            }
            std::copy_n(own.begin(), places.size() - used,
                        places.begin() + static_cast<std::ptrdiff_t>(used));
        }
    }
    return {};
}

}  // namespace gputext
