#include "kernels/hnsw/links.hpp"

#include <algorithm>
#include <cub/device/device_merge_sort.cuh>
#include <limits>
#include <vector>

#include "cpp/hnsw/graph.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/hnsw/detail/choice.hpp"
#include "kernels/knn/earlier_search.hpp"
#include "kernels/knn/probing_search.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostLaunched = 16384;  // lists: some milliseconds
constexpr std::size_t kSmallBuffers = 1 << 20;
constexpr std::size_t kMostDimensions = 4096, kMostPlaces = 1024;  // for shared memory
constexpr std::uint64_t kMostLinked = 1 << 25;  // sorted together, some ten milliseconds

std::size_t bytes_of_link() {
    return sizeof(std::uint32_t) + sizeof(double);
}

std::size_t bytes_of_rows(const Vectors& values) {
    return values.rows * values.dimensions * element_size(values.type);
}

/// Which rows are compared with all before them, and how the others are.
struct SearchedRows {
    std::size_t exact;  // the first ones
    ProbingRows probing;

    SearchedRows(const HnswLinkParameters& parameters, const LayerValues& values)
        : exact(values.exact_rows(parameters)),
          probing{values.centroids, exact, parameters.probing_rows} {}
};

}  // namespace

bool has_kernels_for(const HnswLinkParameters& parameters, const LayerValues& values) {
    const Vectors& rows = values.rows;
    return (rows.type == ElementType::float32 || rows.type == ElementType::float16) &&
           rows.dimensions <= kMostDimensions && parameters.places <= kMostPlaces &&
           parameters.metric != Metric::cosine &&
           EarlierSearch::has_kernels_for(parameters.candidates, rows) &&
           (values.exact_rows(parameters) == rows.rows ||
            ProbingSearch::has_kernels_for(parameters.metric, parameters.candidates, rows));
}

// ---- Links to earlier rows ----

namespace {

/// Beside the rows. `per_row`: for each row of a tile.
std::size_t least_bytes_to_search(const HnswLinkParameters& parameters, const LayerValues& values,
                                  std::size_t per_row) {
    const SearchedRows searched(parameters, values);
    const RowRange before(values.rows, 0, searched.exact);
    const std::size_t exact =
        EarlierSearch(parameters.metric, parameters.candidates, before.vectors())
            .least_bytes(per_row);
    if (searched.exact == values.rows.rows) return exact;
    return std::max(
        exact,
        ProbingSearch(parameters.candidates, values.rows, searched.probing).least_bytes(per_row));
}

}  // namespace

std::size_t least_bytes_to_link(const HnswLinkParameters& parameters, const LayerValues& values) {
    return bytes_of_rows(values.rows) +
           least_bytes_to_search(parameters, values, parameters.places * bytes_of_link());
}

namespace {

/// Copies all rows to the device. The ring serves nothing else meanwhile.
Status copy_rows(const Vectors& values, DeviceBuffer<std::uint8_t>& elements, StreamEvent& event,
                 cudaStream_t stream, UploadRing& ring, Execution& execution) {
    execution.begin_phase("copying rows", 0);
    GPUTEXT_TRY(event.create());
    GPUTEXT_TRY(elements.allocate(bytes_of_rows(values), stream));
    GPUTEXT_TRY(event.hold(ring.stream(), stream));
    GPUTEXT_TRY(ring.copy(elements.data(),
                          {static_cast<const std::uint8_t*>(values.elements), elements.size()},
                          execution));
    return event.hold(stream, ring.stream());
}

DeviceRows device_rows(const Vectors& values, const DeviceBuffer<std::uint8_t>& elements) {
    return {values.type, elements.data(), static_cast<std::uint32_t>(values.rows),
            static_cast<std::uint32_t>(values.dimensions)};
}

/// Links of rows, on the device; those of consecutive tiles one behind the other, or in one place
/// for as many rows as tiles have at most, which it makes.
struct LinksOfTiles {
    DeviceBuffer<std::uint32_t>& rows;
    DeviceBuffer<double>& distances;
    bool all;

    Status make_room(std::size_t most_rows, std::size_t places, cudaStream_t stream) {
        if (all) return {};
        GPUTEXT_TRY(rows.allocate(most_rows * places, stream));
        return distances.allocate(most_rows * places, stream);
    }
};

/// Calls taken(first, count) when the links of these of the rows are there, of which the first have
/// been linked before.
template <class Search, class Taken>
Status link_tiles(const HnswLinkParameters& parameters, Search& search, const DeviceRows& all,
                  const LayerRows& rows, std::size_t before, const LinksOfTiles& to,
                  cudaStream_t stream, Execution& execution, const Taken& taken) {
    const std::size_t places = parameters.places;
    for (std::size_t begin = rows.begin; begin < rows.end;) {
        const std::size_t end = search.end_of_tile(begin, rows.end);
        const std::size_t first = before + begin - rows.begin;
        const std::size_t skipped = to.all ? first * places : 0;
        GPUTEXT_TRY(search.search(begin, end, execution));
        GPUTEXT_TRY(
            choose(ListsToChoose::of(search.lists().view(), static_cast<std::uint32_t>(begin)),
                   {parameters.metric, all, static_cast<std::uint32_t>(places), 1,
                    to.rows.data() + skipped, to.distances.data() + skipped},
                   0, static_cast<std::uint32_t>(end - begin), stream));
        GPUTEXT_TRY(taken(first, end - begin));
        GPUTEXT_TRY(execution.checkpoint(end - begin));
        begin = end;
    }
    return {};
}

/// The same by the searches that these rows want. `per_row`: bytes that `to` takes for each row of
/// a tile; `work` has what is left beside the rows, which are on the device.
template <class Taken>
Status link_rows(const HnswLinkParameters& parameters, const LayerValues& values,
                 const DeviceRows& all, const LayerRows& rows, LinksOfTiles to, std::size_t per_row,
                 const DeviceWork& work, Execution& execution, const Taken& taken) {
    const SearchedRows searched(parameters, values);
    const std::size_t middle = std::clamp(searched.exact, rows.begin, rows.end);
    const auto link = [&](auto& search, const DeviceRows& among, const LayerRows& some) {
        GPUTEXT_TRY(search.prepare(among, per_row, work, execution));
        if (some.begin == rows.begin) execution.begin_phase("linking rows", rows.size());
        GPUTEXT_TRY(to.make_room(search.most_rows(), parameters.places, work.stream));
        return link_tiles(parameters, search, all, some, some.begin - rows.begin, to, work.stream,
                          execution, taken);
    };
    if (rows.begin < middle) {
        const RowRange before(values.rows, 0, middle);
        EarlierSearch search(parameters.metric, parameters.candidates, before.vectors());
        DeviceRows exact = all;
        exact.rows = static_cast<std::uint32_t>(middle);
        GPUTEXT_TRY(link(search, exact, {rows.begin, middle}));
    }
    if (middle == rows.end) return {};
    ProbingSearch search(parameters.candidates, values.rows, searched.probing);
    return link(search, all, {middle, rows.end});
}

Status link(const HnswLinkParameters& parameters, const LayerValues& values, const LayerRows& rows,
            const HnswLinks& links, const DeviceWork& work, UploadRing& ring,
            Execution& execution) {
    const std::size_t places = parameters.places;
    StreamEvent event;
    DeviceBuffer<std::uint8_t> elements;
    DeviceBuffer<std::uint32_t> chosen;
    DeviceBuffer<double> distances;
    GPUTEXT_TRY(copy_rows(values.rows, elements, event, work.stream, ring, execution));
    const auto take = [&](std::size_t first, std::size_t count) {
        GPUTEXT_TRY(download(chosen.data(), links.rows.data() + first * places, count * places,
                             work.stream, "copying links from the device"));
        return download(distances.data(), links.distances.data() + first * places, count * places,
                        work.stream, "copying links from the device");
    };
    return link_rows(parameters, values, device_rows(values.rows, elements), rows,
                     {chosen, distances, false}, places * bytes_of_link(),
                     {work.stream, work.bytes - elements.size()}, execution, take);
}

}  // namespace

Status link_to_earlier(const HnswLinkParameters& parameters, const LayerValues& values,
                       const LayerRows& rows, const HnswLinks& links, const DeviceWork& work,
                       UploadRing& ring, Execution& execution) {
    if (rows.size() == 0) return {};
    const std::size_t least = least_bytes_to_link(parameters, values);
    if (work.bytes < least) return too_little_memory("linking rows takes", least, work.bytes);
    const Status status = link(parameters, values, rows, links, work, ring, execution);
    return finish_work(status, work.stream, "linking rows");
}

// ---- Links back ----

namespace {

/// That the row `item` of the layer is linked with a row: the number of this one in a part.
struct Linked {
    std::uint64_t key;  // ordered_bits of the distance
    std::uint32_t item;
    std::uint32_t row;
};

struct LinkedBefore {
    __device__ bool operator()(const Linked& a, const Linked& b) const {
        if (a.row != b.row) return a.row < b.row;
        return a.key != b.key ? a.key < b.key : a.item < b.item;
    }
};

/// Links of a layer, on the device.
struct DeviceLinks {
    const std::uint32_t* rows;
    const double* distances;
    std::uint64_t count;
    std::uint32_t places;
};

/// A thread for each link.
__global__ void count_linked(DeviceLinks links, std::uint32_t* counts) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at >= links.count || links.rows[at] == kNoElement) return;
    atomicAdd(&counts[links.rows[at]], 1u);
    atomicAdd(&counts[at / links.places], 1u);
}

/// A thread for each link, of which those of the rows [begin, end) count. What is linked with a row
/// goes to where it begins, in any order; `taken` of each row is 0 before.
__global__ void list_linked(DeviceLinks links, std::uint32_t begin, std::uint32_t end,
                            const std::uint64_t* begins, std::uint32_t* taken, Linked* to) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at >= links.count || links.rows[at] == kNoElement) return;
    const std::uint32_t item = links.rows[at], row = static_cast<std::uint32_t>(at / links.places);
    const std::uint64_t key =
        ordered_bits(static_cast<std::uint64_t>(__double_as_longlong(links.distances[at])));
    const auto put = [&](std::uint32_t of, std::uint32_t other) {
        if (of < begin || of >= end) return;
        const std::uint32_t number = of - begin;
        to[begins[number] + atomicAdd(&taken[number], 1u)] = {key, other, number};
    };
    put(row, item);
    put(item, row);
}

std::size_t fixed_bytes_of_linking_back(const HnswLinkParameters& parameters,
                                        const Vectors& values) {
    return kSmallBuffers + bytes_of_rows(values) +
           values.rows * (parameters.places * bytes_of_link() + sizeof(std::uint32_t));
}

/// With what sorting takes.
constexpr std::size_t kBytesOfLinked = 2 * sizeof(Linked) + 2;

std::size_t bytes_of_part_row(const HnswLinkParameters& parameters) {
    return sizeof(std::uint64_t) + sizeof(std::uint32_t) +
           parameters.places * sizeof(std::uint32_t);
}

class LinkingBack {
public:
    /// By the links of all rows, which lie on the device as these do. In so much memory besides.
    LinkingBack(const HnswLinkParameters& parameters, const DeviceRows& all,
                const DeviceLinks& links, std::span<std::uint32_t> neighbors, std::size_t memory,
                cudaStream_t stream, Execution& execution)
        : parameters_(parameters),
          all_(all),
          links_(links),
          neighbors_(neighbors),
          memory_(memory),
          stream_(stream),
          execution_(execution) {}

    Status run(const LayerRows& rows) {
        std::vector<std::uint32_t> counts(all_.rows);
        GPUTEXT_TRY(count(counts));
        execution_.begin_phase("linking back", rows.size());
        for (std::size_t begin = rows.begin; begin < rows.end;) {
            std::vector<std::uint64_t> begins(1, 0);
            std::size_t end = begin;
            for (; end < rows.end; ++end) {
                const std::uint64_t with = begins.back() + counts[end];
                const bool fits =
                    with * kBytesOfLinked + (end + 1 - begin) * bytes_of_part_row(parameters_) <=
                    memory_;
                if (end > begin && (!fits || with > kMostLinked)) break;
                begins.push_back(with);
            }
            GPUTEXT_TRY(link_part({begin, end}, begins, begin - rows.begin));
            begin = end;
        }
        return {};
    }

private:
    /// How many rows are linked with each.
    Status count(std::vector<std::uint32_t>& counts) {
        DeviceBuffer<std::uint32_t> counted;
        GPUTEXT_TRY(counted.allocate(counts.size(), stream_));
        GPUTEXT_TRY(cuda_status(
            cudaMemsetAsync(counted.data(), 0, counts.size() * sizeof(std::uint32_t), stream_),
            "clearing counts"));
        count_linked<<<blocks_for(links_.count, kThreads), kThreads, 0, stream_>>>(links_,
                                                                                   counted.data());
        GPUTEXT_TRY(launched("counting links"));
        return download(counted.data(), counts.data(), counts.size(), stream_, "counting links");
    }

    Status link_part(const LayerRows& rows, const std::vector<std::uint64_t>& begins,
                     std::size_t first) {
        const std::size_t places = parameters_.places;
        DeviceBuffer<std::uint64_t> list_begins;
        DeviceBuffer<std::uint32_t> taken, chosen;
        DeviceBuffer<Linked> linked;
        GPUTEXT_TRY(list_begins.upload(begins, stream_));
        GPUTEXT_TRY(taken.allocate(rows.size(), stream_));
        GPUTEXT_TRY(chosen.allocate(std::min(rows.size(), kMostLaunched) * places, stream_));
        GPUTEXT_TRY(linked.allocate(begins.back(), stream_));
        GPUTEXT_TRY(cuda_status(
            cudaMemsetAsync(taken.data(), 0, rows.size() * sizeof(std::uint32_t), stream_),
            "clearing counts"));
        list_linked<<<blocks_for(links_.count, kThreads), kThreads, 0, stream_>>>(
            links_, static_cast<std::uint32_t>(rows.begin), static_cast<std::uint32_t>(rows.end),
            list_begins.data(), taken.data(), linked.data());
        GPUTEXT_TRY(launched("listing links"));
        DeviceBuffer<std::uint8_t> scratch;
        GPUTEXT_TRY(with_scratch(scratch, stream_, [&](void* space, std::size_t& bytes) {
            return cub::DeviceMergeSort::SortKeys(space, bytes, linked.data(),
                                                  static_cast<int>(begins.back()), LinkedBefore(),
                                                  stream_);
        }));
        const ListsToChoose lists{&linked.data()->item,
                                  &linked.data()->key,
                                  sizeof(Linked) / sizeof(std::uint32_t),
                                  sizeof(Linked) / sizeof(std::uint64_t),
                                  list_begins.data(),
                                  0,
                                  nullptr,
                                  static_cast<std::uint32_t>(rows.begin)};
        const Choice choice{parameters_.metric,
                            all_,
                            static_cast<std::uint32_t>(places),
                            slack_of_neighbors(parameters_.metric),
                            chosen.data(),
                            nullptr};
        for (std::size_t begin = 0; begin < rows.size(); begin += kMostLaunched) {
            const std::size_t end = std::min(rows.size(), begin + kMostLaunched);
            GPUTEXT_TRY(choose(lists, choice, static_cast<std::uint32_t>(begin),
                               static_cast<std::uint32_t>(end), stream_));
            GPUTEXT_TRY(download(chosen.data(), neighbors_.data() + (first + begin) * places,
                                 (end - begin) * places, stream_,
                                 "copying neighbors from the device"));
            GPUTEXT_TRY(execution_.checkpoint(end - begin));
        }
        return {};
    }

    const HnswLinkParameters& parameters_;
    const DeviceRows all_;
    const DeviceLinks links_;
    std::span<std::uint32_t> neighbors_;
    std::size_t memory_;
    cudaStream_t stream_;
    Execution& execution_;
};

/// What is left of it for parts of the rows.
std::size_t memory_of_parts(const HnswLinkParameters& parameters, const Vectors& values,
                            const DeviceWork& work) {
    return work.bytes - std::min(work.bytes, fixed_bytes_of_linking_back(parameters, values));
}

/// The elements of a layer's rows, and their links.
struct LayerOnDevice {
    DeviceBuffer<std::uint8_t> elements;
    DeviceBuffer<std::uint32_t> linked;
    DeviceBuffer<double> distances;

    Status allocate_links(std::size_t links, cudaStream_t stream) {
        GPUTEXT_TRY(linked.allocate(links, stream));
        return distances.allocate(links, stream);
    }
};

/// Writes the neighbors of these rows.
Status link_back(const HnswLinkParameters& parameters, const Vectors& values,
                 const LayerOnDevice& layer, const LayerRows& rows,
                 std::span<std::uint32_t> neighbors, const DeviceWork& work, Execution& execution) {
    const DeviceLinks links{layer.linked.data(), layer.distances.data(), layer.linked.size(),
                            static_cast<std::uint32_t>(parameters.places)};
    return LinkingBack(parameters, device_rows(values, layer.elements), links, neighbors,
                       memory_of_parts(parameters, values, work), work.stream, execution)
        .run(rows);
}

Status copy_and_link_back(const HnswLinkParameters& parameters, const Vectors& values,
                          const HnswLinks& links, const LayerRows& rows,
                          std::span<std::uint32_t> neighbors, const DeviceWork& work,
                          UploadRing& ring, Execution& execution) {
    StreamEvent event;
    LayerOnDevice layer;
    GPUTEXT_TRY(layer.allocate_links(links.rows.size(), work.stream));
    GPUTEXT_TRY(copy_rows(values, layer.elements, event, work.stream, ring, execution));
    const auto upload = [&](void* to, const void* from, std::size_t bytes) {
        return ring.copy(static_cast<std::uint8_t*>(to),
                         {static_cast<const std::uint8_t*>(from), bytes}, execution);
    };
    GPUTEXT_TRY(upload(layer.linked.data(), links.rows.data(), links.rows.size_bytes()));
    GPUTEXT_TRY(
        upload(layer.distances.data(), links.distances.data(), links.distances.size_bytes()));
    GPUTEXT_TRY(event.hold(work.stream, ring.stream()));
    return link_back(parameters, values, layer, rows, neighbors, work, execution);
}

}  // namespace

std::size_t least_bytes_to_link_back(const HnswLinkParameters& parameters, const Vectors& values) {
    return fixed_bytes_of_linking_back(parameters, values) + bytes_of_part_row(parameters) +
           (values.rows + parameters.places) * kBytesOfLinked;
}

Status link_back(const HnswLinkParameters& parameters, const Vectors& values,
                 const HnswLinks& links, const LayerRows& rows, std::span<std::uint32_t> neighbors,
                 const DeviceWork& work, UploadRing& ring, Execution& execution) {
    if (rows.size() == 0) return {};
    const std::size_t least = least_bytes_to_link_back(parameters, values);
    if (work.bytes < least) return too_little_memory("linking back takes", least, work.bytes);
    return finish_work(
        copy_and_link_back(parameters, values, links, rows, neighbors, work, ring, execution),
        work.stream, "linking back");
}

// ---- A layer ----

namespace {

std::size_t bytes_of_links(const HnswLinkParameters& parameters, const Vectors& values) {
    return values.rows * parameters.places * bytes_of_link();
}

Status link_both_ways(const HnswLinkParameters& parameters, const LayerValues& values,
                      std::span<std::uint32_t> neighbors, const DeviceWork& work, UploadRing& ring,
                      Execution& execution) {
    const LayerRows rows{0, values.rows.rows};
    StreamEvent event;
    LayerOnDevice layer;
    GPUTEXT_TRY(layer.allocate_links(neighbors.size(), work.stream));
    GPUTEXT_TRY(copy_rows(values.rows, layer.elements, event, work.stream, ring, execution));
    const auto wait = [&](std::size_t, std::size_t) {
        return cuda_status(cudaStreamSynchronize(work.stream), "linking rows");
    };
    const std::size_t taken = layer.elements.size() + bytes_of_links(parameters, values.rows);
    GPUTEXT_TRY(link_rows(parameters, values, device_rows(values.rows, layer.elements), rows,
                          {layer.linked, layer.distances, true}, 0,
                          {work.stream, work.bytes - taken}, execution, wait));
    return link_back(parameters, values.rows, layer, rows, neighbors, work, execution);
}

}  // namespace

std::size_t least_bytes_to_link_layer(const HnswLinkParameters& parameters,
                                      const LayerValues& values) {
    return std::max(bytes_of_rows(values.rows) + bytes_of_links(parameters, values.rows) +
                        least_bytes_to_search(parameters, values, 0),
                    least_bytes_to_link_back(parameters, values.rows));
}

Status link_layer(const HnswLinkParameters& parameters, const LayerValues& values,
                  std::span<std::uint32_t> neighbors, const DeviceWork& work, UploadRing& ring,
                  Execution& execution) {
    if (values.rows.rows == 0) return {};
    const std::size_t least = least_bytes_to_link_layer(parameters, values);
    if (work.bytes < least) return too_little_memory("linking a layer takes", least, work.bytes);
    return finish_work(link_both_ways(parameters, values, neighbors, work, ring, execution),
                       work.stream, "linking a layer");
}

}  // namespace gputext::gpu
