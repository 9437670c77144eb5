#include "kernels/knn/probing_search.hpp"

#include <algorithm>
#include <limits>

#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/knn/detail/neighbor_search.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kLeastTileRows = 256;
constexpr std::size_t kSmallBuffers = 1 << 20;
constexpr double kWorkOfLaunch = 8e12;  // pairs times dimensions: about 30 ms

/// A thread for each probe of the selected queries. Counts them by cluster, or writes the query to
/// the cluster's next place.
template <bool Write>
__global__ void each_probe(ListsView probes, QuerySelection selection, std::uint32_t* places,
                           std::uint32_t* queries) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at >= std::uint64_t{selection.count} * probes.k) return;
    const std::uint32_t query = selection[static_cast<std::uint32_t>(at / probes.k)];
    const auto probe = static_cast<std::uint32_t>(at % probes.k);
    if (probe >= probes.kept[query]) return;
    const std::uint32_t cluster = probes.items[std::size_t{query} * probes.capacity + probe];
    const std::uint32_t place = atomicAdd(&places[cluster], 1u);
    if constexpr (Write) queries[place] = query;
}

/// The first item of each list.
__global__ void take_firsts(ListsView lists, std::uint32_t count, std::uint16_t* to) {
    const std::uint32_t at = blockIdx.x * kThreads + threadIdx.x;
    if (at < count)
        to[at] = static_cast<std::uint16_t>(lists.items[std::size_t{at} * lists.capacity]);
}

}  // namespace

bool ProbingSearch::has_kernels_for(Metric metric, std::size_t k, const Vectors& values) {
    Fp16FilterDevice device;
    return metric == Metric::euclidean && !values.sparse() && k <= kMostShortK &&
           Fp16Space::padded_of(values.dimensions) > 64 && device.look().ok() &&
           device.can_filter(Fp16Space::padded_of(values.dimensions));
}

// ---- Memory ----

NeighborLists::Shape ProbingSearch::shape() const {
    const std::size_t k = std::min(k_, values_.rows);
    NeighborLists::Shape shape = short_lists(static_cast<std::uint32_t>(k), values_.rows);
    shape.scored = true;
    return shape;
}

NeighborLists::Shape ProbingSearch::probe_shape() const {
    return {static_cast<std::uint32_t>(probes_of_row()), 2 * ProbedClusters::probes, false, false};
}

std::size_t ProbingSearch::bytes_of_tile_row(std::size_t per_row) const {
    const std::size_t half_row = Fp16Space::padded_of(values_.dimensions) * sizeof(__half);
    // Probes are listed anew for lists that overflow.
    return per_row + DeviceQueries::bytes_per_row(values_.dimensions) +
           NeighborLists::bytes_per_query(shape()) + NeighborLists::bytes_per_query(probe_shape()) +
           2 * probes_of_row() * sizeof(std::uint32_t) + half_row + sizeof(Fp16QueryBound) + 64 +
           Fp16Search::bytes(values_).per_query;
}

std::size_t ProbingSearch::bytes_of_rows() const {
    const Fp16Search::Bytes block = Fp16Search::bytes(values_);
    const std::size_t half_row = Fp16Space::padded_of(values_.dimensions) * sizeof(__half);
    return kSmallBuffers +
           values_.rows * (half_row + sizeof(Fp16ItemBound) + sizeof(std::uint32_t)) +
           probing_.block_rows * block.per_item + block.samples +
           probing_.centroids.rows *
               (values_.dimensions * sizeof(float) + 2 * sizeof(Fp16FilterPart));
}

std::size_t ProbingSearch::least_bytes(std::size_t per_row) const {
    return bytes_of_rows() + kLeastTileRows * bytes_of_tile_row(per_row);
}

DeviceRows ProbingSearch::rows_of(std::size_t begin, std::size_t end) const {
    DeviceRows rows = rows_;
    rows.elements = rows_.row_bytes(begin);
    rows.rows = static_cast<std::uint32_t>(end - begin);
    return rows;
}

DeviceRows ProbingSearch::centroids() const {
    return {ElementType::float32, centroids_.data(),
            static_cast<std::uint32_t>(probing_.centroids.rows), rows_.dimensions};
}

// ---- Rows ----

Status ProbingSearch::prepare(const DeviceRows& rows, std::size_t per_row, const DeviceWork& work,
                              Execution& execution) {
    rows_ = rows;
    stream_ = work.stream;
    if (work.bytes < least_bytes(per_row))
        return too_little_memory("probing clusters takes", least_bytes(per_row), work.bytes);
    tile_rows_ =
        std::min((work.bytes - bytes_of_rows()) / bytes_of_tile_row(per_row), probing_.block_rows);
    const auto tile = static_cast<std::uint32_t>(tile_rows_);
    GPUTEXT_TRY(device_.look());
    GPUTEXT_TRY(query_elements_.allocate(tile_rows_ * values_.dimensions, stream_));
    GPUTEXT_TRY(query_squares_.allocate(tile_rows_, stream_));
    GPUTEXT_TRY(rescored_.allocate(1, stream_));
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(rescored_.data(), 0, sizeof(unsigned long long), stream_),
                    "clearing a count"));
    const auto* const elements = static_cast<const float*>(probing_.centroids.elements);
    GPUTEXT_TRY(centroids_.upload(std::span(elements, probing_.centroids.rows * values_.dimensions),
                                  stream_));
    GPUTEXT_TRY(assign_rows(execution));
    GPUTEXT_TRY(lay_out_rows());

    GPUTEXT_TRY(lists_.allocate(shape(), tile, stream_));
    GPUTEXT_TRY(probe_lists_.allocate(probe_shape(), tile, stream_));
    GPUTEXT_TRY(query_rows_.allocate(tile_rows_ * choice_.space().padded, stream_));
    GPUTEXT_TRY(query_bounds_.allocate(tile_rows_, stream_));
    GPUTEXT_TRY(groups_.allocate(blocks_for(tile_rows_, kGroupQueries), stream_));
    GPUTEXT_TRY(gates_.allocate(tile_rows_, stream_));
    GPUTEXT_TRY(widths_.allocate(tile_rows_, stream_));
    GPUTEXT_TRY(crowded_.allocate(1 + tile_rows_, stream_));
    GPUTEXT_TRY(counts_.allocate(probing_.centroids.rows, stream_));
    GPUTEXT_TRY(parts_.allocate(probing_.centroids.rows, stream_));
    GPUTEXT_TRY(block_.prepare(Metric::euclidean, values_, device_, nullptr, stream_));
    return block_.allocate(tile_rows_, probing_.block_rows);
}

/// The cluster of each row.
Status ProbingSearch::assign_rows(Execution& execution) {
    NeighborLists nearest;
    DeviceBuffer<std::uint16_t> firsts;
    const auto tile = static_cast<std::uint32_t>(tile_rows_);
    GPUTEXT_TRY(nearest.allocate({1, 64, false, false}, tile, stream_));
    GPUTEXT_TRY(firsts.allocate(tile_rows_, stream_));
    NeighborSearch search(
        nearest, nullptr, rescored_.data(), [] { return Status(); }, execution, stream_);
    std::vector<std::uint16_t> own(values_.rows);
    for (std::size_t begin = 0; begin < values_.rows; begin += tile_rows_) {
        const std::size_t end = std::min(values_.rows, begin + tile_rows_);
        const auto count = static_cast<std::uint32_t>(end - begin);
        GPUTEXT_TRY(load_tile(begin, end));
        GPUTEXT_TRY(nearest.reset(count, std::numeric_limits<double>::infinity()));
        GPUTEXT_TRY(search.search_directly({Metric::euclidean, tile_, centroids(), 0, nullptr},
                                           {nullptr, count}, 0, centroids().rows, true));
        take_firsts<<<blocks_for(count, kThreads), kThreads, 0, stream_>>>(nearest.view(), count,
                                                                           firsts.data());
        GPUTEXT_TRY(launched("assigning rows"));
        GPUTEXT_TRY(download(firsts.data(), own.data() + begin, count, stream_, "assigning rows"));
        GPUTEXT_TRY(execution.checkpoint(0));
    }
    clusters_.set(probing_.centroids.rows, std::move(own));
    return members_.upload(clusters_.members(), stream_);
}

/// All rows in half precision.
Status ProbingSearch::lay_out_rows() {
    GPUTEXT_TRY(choice_.choose(Metric::euclidean, values_, stream_));
    GPUTEXT_TRY(item_rows_.allocate(values_.rows * choice_.space().padded, stream_));
    GPUTEXT_TRY(item_bounds_.allocate(values_.rows, stream_));
    GPUTEXT_TRY(largest_.allocate(2, stream_));
    return convert_items(choice_.space(), rows_, members_.data(), rows_.rows, item_rows_.data(),
                         item_bounds_.data(), largest_.data(), stream_);
}

// ---- A tile ----

std::size_t ProbingSearch::end_of_tile(std::size_t begin, std::size_t end) const {
    return std::min({end, begin + tile_rows_, probing_.block_of(begin) + probing_.block_rows});
}

Status ProbingSearch::load_tile(std::size_t begin, std::size_t end) {
    tile_ = {static_cast<std::uint32_t>(end - begin), rows_.dimensions, query_elements_.data(),
             query_squares_.data(), nullptr};
    return prepare_queries(Metric::euclidean, rows_of(begin, end), query_elements_.data(),
                           query_squares_.data(), stream_);
}

Status ProbingSearch::search(std::size_t begin, std::size_t end, Execution& execution) {
    GPUTEXT_TRY(load_tile(begin, end));
    GPUTEXT_TRY(lists_.reset(tile_.rows, std::numeric_limits<double>::infinity()));
    GPUTEXT_TRY(find_probes(execution));
    GPUTEXT_TRY(search_clusters(probing_.block_of(begin), execution));
    return search_block(begin, end, execution);
}

Status ProbingSearch::find_probes(Execution& execution) {
    const QuerySelection all{nullptr, tile_.rows};
    GPUTEXT_TRY(probe_lists_.reset(tile_.rows, std::numeric_limits<double>::infinity()));
    NeighborSearch search(
        probe_lists_, nullptr, rescored_.data(), [] { return Status(); }, execution, stream_);
    GPUTEXT_TRY(search.search_directly({Metric::euclidean, tile_, centroids(), 0, nullptr}, all, 0,
                                       centroids().rows, true));
    return list_probes(all, probes_);
}

Status ProbingSearch::list_probes(const QuerySelection& selection, Probes& probes) {
    const std::size_t clusters = clusters_.size();
    const ListsView view = probe_lists_.view();
    const unsigned blocks = blocks_for(std::uint64_t{selection.count} * view.k, kThreads);
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(counts_.data(), 0, clusters * sizeof(std::uint32_t), stream_),
                    "clearing counts"));
    each_probe<false><<<blocks, kThreads, 0, stream_>>>(view, selection, counts_.data(), nullptr);
    GPUTEXT_TRY(launched("counting probes"));
    probes.begins.assign(clusters + 1, 0);
    GPUTEXT_TRY(
        download(counts_.data(), probes.begins.data() + 1, clusters, stream_, "counting probes"));
    for (std::size_t cluster = 0; cluster < clusters; ++cluster)
        probes.begins[cluster + 1] += probes.begins[cluster];
    if (probes.queries.size() < probes.begins.back())
        GPUTEXT_TRY(probes.queries.allocate(probes.begins.back(), stream_));
    GPUTEXT_TRY(counts_.upload(std::span(probes.begins).first(clusters), stream_));
    each_probe<true>
        <<<blocks, kThreads, 0, stream_>>>(view, selection, counts_.data(), probes.queries.data());
    return launched("listing probes");
}

GateJob ProbingSearch::gate_job() const {
    return {choice_.space(), {query_rows_.data(), query_bounds_.data(), groups_.data()},
            tile_.rows,      lists_.view().limits,
            largest_.data(), gates_.data(),
            widths_.data()};
}

/// The rows before `end`.
Status ProbingSearch::search_clusters(std::size_t end, Execution& execution) {
    const QuerySelection all{nullptr, tile_.rows};
    GPUTEXT_TRY(convert_queries(choice_.space(), tile_, query_rows_.data(), query_bounds_.data(),
                                groups_.data(), stream_));
    GPUTEXT_TRY(unite_groups(groups_.data(), tile_.rows, stream_));
    GPUTEXT_TRY(open_gates(gate_job(), stream_));
    // Of a range that is n times as long as what was searched, about n times k items are near.
    const std::size_t capacity = lists_.shape().capacity;
    const std::size_t growth =
        std::clamp<std::size_t>(1 + capacity / (2 * lists_.shape().k), 2, 11);
    std::size_t last = capacity;
    for (std::size_t begin = 0; begin < end; begin = last, last *= growth) {
        if (last + last / 2 > end) last = end;
        GPUTEXT_TRY(search_range(all, probes_, begin, last, execution));
    }
    GPUTEXT_TRY(unsettle(lists_.view(), tile_.rows, stream_));
    return merge(all);
}

/// Adds rows [begin, end), which are searched again in halves for lists that overflow.
Status ProbingSearch::search_range(const QuerySelection& selection, const Probes& probes,
                                   std::size_t begin, std::size_t end, Execution& execution) {
    GPUTEXT_TRY(filter(probes, begin, end, execution));
    GPUTEXT_TRY(settle_found(selection));
    // A list keeps half of what it has room for, at most.
    if (end - begin <= lists_.shape().capacity / 2) return {};
    DeviceBuffer<std::uint32_t> failed;
    std::uint32_t count = 0;
    GPUTEXT_TRY(failed.allocate(selection.count, stream_));
    GPUTEXT_TRY(lists_.take_failed(selection, nullptr, nullptr, failed.data(), count));
    if (count == 0) return {};
    const QuerySelection again{failed.data(), count};
    const std::size_t middle = begin + (end - begin) / 2;
    Probes of_failed;
    GPUTEXT_TRY(list_probes(again, of_failed));
    GPUTEXT_TRY(search_range(again, of_failed, begin, middle, execution));
    return search_range(again, of_failed, middle, end, execution);
}

Status ProbingSearch::filter(const Probes& probes, std::size_t begin, std::size_t end,
                             Execution& execution) {
    const std::uint32_t padded = choice_.space().padded;
    const double work_of_block =
        static_cast<double>(Fp16FilterPart::block_queries) * Fp16FilterPart::block_items * padded;
    const auto most_blocks = static_cast<std::uint32_t>(kWorkOfLaunch / work_of_block) + 1;
    Fp16FilterJob job{};
    job.queries = gate_job().queries;
    job.rows = tile_.rows;
    job.gates = gates_.data();
    job.items = {item_rows_.data(), item_bounds_.data(), largest_.data()};
    job.lists = lists_.view();

    std::vector<Fp16FilterPart> parts;
    std::vector<std::size_t> launches(1, 0);  // the first part of each
    std::uint32_t blocks = 0;
    for (std::size_t cluster = 0; cluster < clusters_.size(); ++cluster) {
        const std::size_t first = clusters_.begin_of(cluster);
        const Fp16FilterPart part{
            0, probes.begins[cluster], probes.begins[cluster + 1],
            static_cast<std::uint32_t>(first + clusters_.members_before(cluster, begin).size()),
            static_cast<std::uint32_t>(first + clusters_.members_before(cluster, end).size())};
        if (part.blocks() == 0) continue;
        if (blocks > 0 && blocks + part.blocks() > most_blocks) {
            launches.push_back(parts.size());
            blocks = 0;
        }
        parts.push_back(part);
        parts.back().first_block = blocks;
        blocks += part.blocks();
    }
    launches.push_back(parts.size());
    GPUTEXT_TRY(parts_.upload(parts, stream_));
    for (std::size_t launch = 0; launch + 1 < launches.size(); ++launch) {
        const std::size_t first = launches[launch], last = launches[launch + 1];
        if (first == last) continue;
        job.parts = {parts_.data() + first, static_cast<std::uint32_t>(last - first),
                     parts[last - 1].first_block + parts[last - 1].blocks(), probes.queries.data(),
                     members_.data()};
        GPUTEXT_TRY(run_fp16_filter(device_, job, padded, stream_));
        // A queue of long launches could not be stopped, nor may the parts go before they are read.
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "filtering neighbors"));
        GPUTEXT_TRY(execution.checkpoint(0));
    }
    return {};
}

Status ProbingSearch::settle_found(const QuerySelection& selection) {
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(crowded_.data(), 0, sizeof(std::uint32_t), stream_),
                            "clearing a count"));
    GPUTEXT_TRY(settle(gate_job(), lists_.view(), selection, lists_.shape().capacity / 2,
                       crowded_.data(), stream_));
    std::uint32_t count = 0;
    GPUTEXT_TRY(download(crowded_.data(), &count, 1, stream_, "settling lists"));
    if (count == 0) return {};
    const QuerySelection crowded{crowded_.data() + 1, count};
    GPUTEXT_TRY(merge(crowded));
    return raise_gates(gate_job(), crowded, stream_);
}

Status ProbingSearch::merge(const QuerySelection& selection) {
    return lists_.merge({Metric::euclidean, tile_, rows_, 0, nullptr, widths_.data()}, selection,
                        rescored_.data());
}

/// The rows of the tile's block, before each row of the tile.
Status ProbingSearch::search_block(std::size_t begin, std::size_t end, Execution& execution) {
    const std::size_t block = probing_.block_of(begin);
    const DeviceRows items = rows_of(block, std::min(values_.rows, block + probing_.block_rows));
    if (block != block_begin_) {
        GPUTEXT_TRY(block_.load_items(items, static_cast<std::uint32_t>(block)));
        block_begin_ = block;
    }
    GPUTEXT_TRY(block_.load_queries(tile_));
    NeighborSearch search(
        lists_, nullptr, rescored_.data(), [] { return Status(); }, execution, stream_);
    const auto first = static_cast<std::uint32_t>(begin);
    const DirectFilterInput input{
        Metric::euclidean, tile_, items, static_cast<std::uint32_t>(block), nullptr, first};
    StreamTimer timer(false, stream_);
    std::uint64_t escalated = 0;
    if (block < begin)
        GPUTEXT_TRY(search.search(input, block_, static_cast<std::uint32_t>(block), first, false,
                                  timer, escalated));
    GPUTEXT_TRY(search.search(input, block_, first, static_cast<std::uint32_t>(end), false, timer,
                              escalated));
    return execution.checkpoint(0);
}

}  // namespace gputext::gpu
