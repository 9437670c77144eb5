#include "cpp/hnsw/links.hpp"

#include <algorithm>
#include <numeric>

#include "cpp/base/large_pages.hpp"
#include "cpp/hnsw/detail/block_links.hpp"
#include "cpp/hnsw/graph.hpp"
#include "cpp/knn/probed_clusters.hpp"

namespace gputext {

namespace {

/// For the block's rows: those before `end` of the clusters that each one probes.
Status search_clusters(const HnswLinkParameters& parameters, const Vectors& values,
                       const ProbedClusters& clusters, const LayerRows& block, std::size_t end,
                       BlockLinks& found, Execution& execution) {
    const std::size_t probes = clusters.probes_of_row();
    const auto probed = clusters.nearest(RowRange(values, block.begin, block.end).vectors(), probes,
                                         parameters.simd, execution);
    if (!probed.ok()) return probed.status();
    std::vector<std::vector<std::uint32_t>> probing(clusters.size());
    for (std::size_t i = 0; i < probed->size(); ++i)
        probing[(*probed)[i]].push_back(static_cast<std::uint32_t>(block.begin + i / probes));
    execution.begin_phase("searching clusters", clusters.size());
    return execution.parallel_for(clusters.size(), [&](std::size_t cluster, unsigned) {
        Execution part(1, execution);
        return found.search_some(probing[cluster], clusters.members_before(cluster, end), part);
    });
}

}  // namespace

Status link_to_earlier(const HnswLinkParameters& parameters, const LayerValues& values,
                       const LayerRows& rows, const HnswLinks& links, Execution& execution,
                       const RadiusSearch& search) {
    const std::size_t exact_rows = values.exact_rows(parameters);
    ProbedClusters clusters;
    if (rows.end > exact_rows)
        GPUTEXT_TRY(clusters.set(values.centroids, RowRange(values.rows, 0, rows.end).vectors(),
                                 parameters.simd, execution));
    for (std::size_t begin = rows.begin, end = begin; begin < rows.end; begin = end) {
        // The first row that all rows of the block are compared with
        std::size_t all_from = 0;
        end = std::min(rows.end, begin + parameters.block_rows);
        if (begin < exact_rows) {
            end = std::min(end, exact_rows);
        } else {
            all_from = begin - (begin - exact_rows) % parameters.probing_rows;
            end = std::min(end, all_from + parameters.probing_rows);
        }
        const LayerRows block{begin, end};
        const std::uint64_t done = begin - rows.begin;
        const std::size_t first = done * parameters.places,
                          count = block.size() * parameters.places;
        BlockLinks found(parameters, values.rows, block);
        GPUTEXT_TRY(found.search(block, {all_from, begin}, execution, search));
        GPUTEXT_TRY(found.search_halves(execution, search));
        if (all_from > 0)
            GPUTEXT_TRY(search_clusters(parameters, values.rows, clusters, block, all_from, found,
                                        execution));
        GPUTEXT_TRY(
            found.link({links.rows.subspan(first, count), links.distances.subspan(first, count)},
                       done, rows.size(), execution));
    }
    return {};
}

namespace {

/// The rows that link to each of some rows.
class LinkingRows {
public:
    Status set(std::span<const std::uint32_t> links, std::size_t places, const LayerRows& rows,
               const Execution& execution) {
        begin_ = rows.begin;
        ends_.assign(rows.size() + 1, 0);
        GPUTEXT_TRY(each(links, places, rows, execution,
                         [&](std::size_t to, std::uint32_t) { ++ends_[to + 1]; }));
        std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
        linking_.resize(ends_.back());
        // Then ends_[row] is where those that link to the row end.
        return each(links, places, rows, execution,
                    [&](std::size_t to, std::uint32_t from) { linking_[ends_[to]++] = from; });
    }
    std::span<const std::uint32_t> to(std::size_t row) const {
        const std::size_t at = row - begin_, first = at == 0 ? 0 : ends_[at - 1];
        return std::span(linking_).subspan(first, ends_[at] - first);
    }

private:
    /// Calls of(number among the rows, linking row) for each link to one of the rows.
    template <class Of>
    static Status each(std::span<const std::uint32_t> links, std::size_t places,
                       const LayerRows& rows, const Execution& execution, const Of& of) {
        for (std::size_t first = 0; first < links.size(); first += places) {
            if (first / places % 4096 == 0 && execution.stop_requested())
                return Status::cancelled();
            for (std::size_t i = first; i < first + places; ++i)
                if (links[i] >= rows.begin && links[i] < rows.end)
                    of(links[i] - rows.begin, static_cast<std::uint32_t>(first / places));
        }
        return {};
    }

    std::size_t begin_ = 0;
    std::vector<std::uint64_t> ends_;
    std::vector<std::uint32_t> linking_;
};

/// The rows that a row links to, and those that link to it, by their distances.
void set_linked(const HnswLinks& links, std::size_t places, std::uint32_t row,
                std::span<const std::uint32_t> linking, std::vector<NearRow>& linked) {
    linked.clear();
    const std::size_t own = row * places;
    for (std::size_t i = own; i < own + places && links.rows[i] != kNoElement; ++i)
        linked.push_back({links.distances[i], links.rows[i]});
    for (const std::uint32_t from : linking) {
        // A distance has the same bits in both directions.
        const auto back = links.rows.subspan(from * places, places);
        const auto place =
            static_cast<std::size_t>(std::find(back.begin(), back.end(), row) - back.begin());
        linked.push_back({links.distances[from * places + place], from});
    }
    std::sort(linked.begin(), linked.end());
}

}  // namespace

Status link_back(const HnswLinkParameters& parameters, const Vectors& values,
                 const HnswLinks& links, const LayerRows& rows, std::span<std::uint32_t> neighbors,
                 Execution& execution) {
    if (rows.size() == 0) return {};
    const std::size_t places = parameters.places;
    // Each thread looks at all links, for some of the rows.
    const std::size_t shares = std::min<std::size_t>(execution.threads(), rows.size());
    const auto begin_of = [&](std::size_t share) {
        return rows.begin + rows.size() * share / shares;
    };
    std::vector<LinkingRows> linking(shares);
    execution.begin_phase("finding links back", shares);
    GPUTEXT_TRY(execution.parallel_for(shares, [&](std::size_t share, unsigned) {
        return linking[share].set(links.rows, places, {begin_of(share), begin_of(share + 1)},
                                  execution);
    }));
    std::vector<Chooser> choosers(execution.threads(),
                                  Chooser(parameters.metric, values, parameters.simd));
    const double slack = slack_of_neighbors(parameters.metric);
    const std::size_t tasks = (rows.size() + kLeafRows - 1) / kLeafRows;
    execution.begin_phase("linking back", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned worker) -> Status {
        const std::size_t begin = rows.begin + task * kLeafRows;
        std::size_t share = 0;
        for (std::size_t row = begin; row < std::min(rows.end, begin + kLeafRows); ++row) {
            if (execution.stop_requested()) return Status::cancelled();
            while (row >= begin_of(share + 1)) ++share;
            const auto number = static_cast<std::uint32_t>(row);
            std::vector<NearRow>& linked = choosers[worker].list();
            set_linked(links, places, number, linking[share].to(row), linked);
            const auto chosen = choosers[worker].choose(number, linked, places, slack);
            const auto to = neighbors.subspan((row - rows.begin) * places, places);
            std::fill(to.begin(), to.end(), kNoElement);
            for (std::size_t i = 0; i < chosen.size(); ++i) to[i] = chosen[i].row;
        }
        return {};
    });
}

Result<std::vector<std::uint32_t>> link_layer(const LayerToLink& layer, Execution& execution) {
    const LayerRows all{0, layer.rows};
    const RowRange rows(layer.values.rows, 0, layer.rows);
    const LayerValues values{rows.vectors(), layer.values.centroids};
    const std::size_t links = layer.rows * layer.parameters.places;
    std::vector<std::uint32_t> linked, neighbors;
    std::vector<double> distances;
    if (!assign_pages(linked, links, kNoElement, execution.stop()) ||
        !assign_pages(distances, links, 0.0, execution.stop()))
        return Status::cancelled();
    GPUTEXT_TRY(link_to_earlier(layer.parameters, values, all, {linked, distances}, execution));
    if (!assign_pages(neighbors, links, kNoElement, execution.stop())) return Status::cancelled();
    GPUTEXT_TRY(
        link_back(layer.parameters, values.rows, {linked, distances}, all, neighbors, execution));
    return neighbors;
}

}  // namespace gputext
