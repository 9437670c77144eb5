#include "cpp/hnsw/builder.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cpp/base/counter_random.hpp"
#include "cpp/hnsw/detail/block_links.hpp"

namespace gputext {
namespace {

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

HnswBuilder::HnswBuilder(const HnswParameters& parameters, const Vectors& values,
                         std::span<const std::uint32_t> copy_of)
    : parameters_(parameters),
      all_values_(values),
      copy_of_(copy_of),
      distinct_(values.rows - copy_of.size()) {}

Status HnswBuilder::begin(Execution& execution) {
    graph_ = HnswGraph(parameters_.m, levels_of(parameters_, distinct_, all_values_.rows));
    for (std::size_t element = 0; element < distinct_; ++element)
        to_link_ += 1 + graph_.level(element);
    done_ = distinct_ == 0;
    return done_ ? Status() : begin_layer(graph_.level(graph_.entry()), execution);
}

Status HnswBuilder::begin_layer(unsigned layer, Execution& execution) {
    layer_ = layer;
    link_parameters_ = parameters_.links;
    link_parameters_.places = graph_.places(layer);
    members_.clear();
    for (std::size_t element = 0; element < distinct_; ++element)
        if (graph_.level(element) >= layer) members_.push_back(static_cast<std::uint32_t>(element));
    Vectors distinct = all_values_;
    distinct.rows = distinct_;
    GPUTEXT_TRY(gathered_.set(distinct, members_, execution));
    values_ = gathered_.vectors();
    clusters_.clear();
    if (rows() > parameters_.exact_rows && link_parameters_.metric != Metric::inner_product)
        GPUTEXT_TRY(clusters_.set(values_, link_parameters_.simd, execution));
    return {};
}

LayerToLink HnswBuilder::layer() const {
    return {link_parameters_, layer_ > 0 ? values_ : all_values_, exact_rows(),
            exact_rows() == rows()};
}

Status HnswBuilder::add(LayerLinks links, Execution& execution) {
    if (exact_rows() < rows()) GPUTEXT_TRY(link_probing(links, execution));
    const std::size_t places = link_parameters_.places;
    constexpr std::size_t together = 4096;
    const std::size_t tasks = (rows() + together - 1) / together;
    execution.begin_phase("copying neighbors", tasks);
    GPUTEXT_TRY(execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t row = task * together; row < std::min(rows(), (task + 1) * together);
             ++row) {
            const auto to = graph_.neighbors(members_[row], layer_);
            for (std::size_t i = 0; i < places; ++i) {
                const std::uint32_t neighbor = links.rows[row * places + i];
                to[i] = neighbor == kNoElement ? kNoElement : members_[neighbor];
            }
        }
        return Status();
    }));
    linked_ += rows();
    if (layer_ > 0) return begin_layer(layer_ - 1, execution);
    GPUTEXT_TRY(link_copies(execution));
    done_ = true;
    return {};
}

/// The links of rows that probe clusters, behind those of the others; then the neighbors of all in
/// place of these.
Status HnswBuilder::link_probing(LayerLinks& links, Execution& execution) {
    const std::size_t places = link_parameters_.places;
    links.rows.resize(rows() * places);
    links.distances.resize(rows() * places);
    for (std::size_t begin = exact_rows(); begin < rows(); begin += parameters_.probing_rows) {
        const LayerRows block{begin, std::min(rows(), begin + parameters_.probing_rows)};
        BlockLinks found(link_parameters_, values_, block);
        GPUTEXT_TRY(found.search_halves(execution, {}));
        GPUTEXT_TRY(search_clusters(block, found, execution));
        GPUTEXT_TRY(
            found.link({std::span(links.rows).subspan(begin * places, block.size() * places),
                        std::span(links.distances).subspan(begin * places, block.size() * places)},
                       begin, rows(), execution));
    }
    std::vector<std::uint32_t> neighbors(links.rows.size());
    GPUTEXT_TRY(
        link_back(link_parameters_, values_, links.links(), {0, rows()}, neighbors, execution));
    links.rows = std::move(neighbors);
    return {};
}

/// For the block's rows: those before the block of the clusters that each one probes.
Status HnswBuilder::search_clusters(const LayerRows& block, BlockLinks& found,
                                    Execution& execution) {
    const std::size_t probes = std::min(ProbedClusters::probes, clusters_.size());
    const auto probed = clusters_.nearest(RowRange(values_, block.begin, block.end).vectors(),
                                          probes, link_parameters_.simd, execution);
    if (!probed.ok()) return probed.status();
    std::vector<std::vector<std::uint32_t>> probing(clusters_.size());
    for (std::size_t i = 0; i < probed->size(); ++i)
        probing[(*probed)[i]].push_back(static_cast<std::uint32_t>(block.begin + i / probes));
    execution.begin_phase("searching clusters", clusters_.size());
    return execution.parallel_for(clusters_.size(), [&](std::size_t cluster, unsigned) {
        Execution part(1, execution);
        const auto members = clusters_.members(cluster);
        const auto before = std::lower_bound(members.begin(), members.end(), block.begin);
        return found.search_some(probing[cluster], {members.begin(), before}, part);
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
