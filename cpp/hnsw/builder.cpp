#include "cpp/hnsw/builder.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cpp/base/counter_random.hpp"
#include "cpp/knn/probed_clusters.hpp"

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
    centroids_.clear();
    if (rows() > link_parameters_.exact_rows && link_parameters_.metric != Metric::inner_product) {
        auto centroids = ProbedClusters::centroids_of(values_, link_parameters_.simd, execution);
        if (!centroids.ok()) return centroids.status();
        centroids_ = std::move(*centroids);
    }
    return {};
}

LayerToLink HnswBuilder::layer() const {
    Vectors centroids;
    centroids.dimensions = values_.dimensions;
    centroids.rows = values_.dimensions == 0 ? 0 : centroids_.size() / values_.dimensions;
    centroids.elements = centroids_.data();
    return {link_parameters_, {layer_ > 0 ? values_ : all_values_, centroids}, rows()};
}

Status HnswBuilder::add(std::span<const std::uint32_t> neighbors, Execution& execution) {
    const std::size_t places = link_parameters_.places;
    constexpr std::size_t together = 4096;
    const std::size_t tasks = (rows() + together - 1) / together;
    execution.begin_phase("copying neighbors", tasks);
    GPUTEXT_TRY(execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t row = task * together; row < std::min(rows(), (task + 1) * together);
             ++row) {
            const auto to = graph_.neighbors(members_[row], layer_);
            for (std::size_t i = 0; i < places; ++i) {
                const std::uint32_t neighbor = neighbors[row * places + i];
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
