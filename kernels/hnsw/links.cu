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

}  // namespace

bool has_kernels_for(const HnswLinkParameters& parameters, const Vectors& values) {
    return (values.type == ElementType::float32 || values.type == ElementType::float16) &&
           values.dimensions <= kMostDimensions && parameters.places <= kMostPlaces &&
           parameters.metric != Metric::cosine &&
           EarlierSearch::has_kernels_for(parameters.candidates, values);
}

// ---- Links to earlier rows ----

std::size_t least_bytes_to_link(const HnswLinkParameters& parameters, const Vectors& values) {
    return EarlierSearch(parameters.metric, parameters.candidates, values)
        .least_bytes(parameters.places * bytes_of_link());
}

namespace {

Status link(const HnswLinkParameters& parameters, const Vectors& values, const LayerRows& rows,
            const HnswLinks& links, const DeviceWork& work, UploadRing& ring,
            Execution& execution) {
    const std::size_t places = parameters.places;
    EarlierSearch search(parameters.metric, parameters.candidates, values);
    execution.begin_phase("copying rows", 0);
    GPUTEXT_TRY(search.prepare(places * bytes_of_link(), work, ring, execution));
    DeviceBuffer<std::uint32_t> chosen;
    DeviceBuffer<double> distances;
    GPUTEXT_TRY(chosen.allocate(search.most_rows() * places, work.stream));
    GPUTEXT_TRY(distances.allocate(search.most_rows() * places, work.stream));
    execution.begin_phase("linking rows", rows.size());
    for (std::size_t begin = rows.begin; begin < rows.end;) {
        const std::size_t end = search.end_of_tile(begin, rows.end), first = begin - rows.begin;
        GPUTEXT_TRY(search.search(begin, end, execution));
        const auto count = static_cast<std::uint32_t>(end - begin);
        GPUTEXT_TRY(choose(ListsToChoose::of(search.lists().view()),
                           {parameters.metric, search.rows(), static_cast<std::uint32_t>(places), 1,
                            chosen.data(), distances.data()},
                           0, count, work.stream));
        GPUTEXT_TRY(download(chosen.data(), links.rows.data() + first * places, count * places,
                             work.stream, "copying links from the device"));
        GPUTEXT_TRY(download(distances.data(), links.distances.data() + first * places,
                             count * places, work.stream, "copying links from the device"));
        GPUTEXT_TRY(execution.checkpoint(count));
        begin = end;
    }
    return {};
}

}  // namespace

Status link_to_earlier(const HnswLinkParameters& parameters, const Vectors& values,
                       const LayerRows& rows, const HnswLinks& links, const DeviceWork& work,
                       UploadRing& ring, Execution& execution) {
    if (rows.size() == 0) return {};
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
    LinkingBack(const HnswLinkParameters& parameters, const Vectors& values,
                std::span<std::uint32_t> neighbors, const DeviceWork& work, Execution& execution)
        : parameters_(parameters),
          values_(values),
          neighbors_(neighbors),
          work_(work),
          stream_(work.stream),
          execution_(execution) {}

    Status run(const HnswLinks& links, const LayerRows& rows, UploadRing& ring) {
        execution_.begin_phase("copying rows", 0);
        GPUTEXT_TRY(copy(links, ring));
        std::vector<std::uint32_t> counts(values_.rows);
        GPUTEXT_TRY(count(counts));
        std::size_t left = work_.bytes;
        left -= std::min(left, fixed_bytes_of_linking_back(parameters_, values_));
        execution_.begin_phase("linking back", rows.size());
        for (std::size_t begin = rows.begin; begin < rows.end;) {
            std::vector<std::uint64_t> begins(1, 0);
            std::size_t end = begin;
            for (; end < rows.end; ++end) {
                const std::uint64_t with = begins.back() + counts[end];
                const bool fits =
                    with * kBytesOfLinked + (end + 1 - begin) * bytes_of_part_row(parameters_) <=
                    left;
                if (end > begin && (!fits || with > kMostLinked)) break;
                begins.push_back(with);
            }
            GPUTEXT_TRY(link_part({begin, end}, begins, begin - rows.begin));
            begin = end;
        }
        return {};
    }

private:
    Status copy(const HnswLinks& links, UploadRing& ring) {
        GPUTEXT_TRY(event_.create());
        GPUTEXT_TRY(elements_.allocate(bytes_of_rows(values_), stream_));
        GPUTEXT_TRY(rows_.allocate(links.rows.size() * sizeof(std::uint32_t), stream_));
        GPUTEXT_TRY(distances_.allocate(links.distances.size() * sizeof(double), stream_));
        GPUTEXT_TRY(event_.hold(ring.stream(), stream_));
        const auto upload = [&](DeviceBuffer<std::uint8_t>& to, const void* from) {
            return ring.copy(to.data(), {static_cast<const std::uint8_t*>(from), to.size()},
                             execution_);
        };
        GPUTEXT_TRY(upload(elements_, values_.elements));
        GPUTEXT_TRY(upload(rows_, links.rows.data()));
        GPUTEXT_TRY(upload(distances_, links.distances.data()));
        return event_.hold(stream_, ring.stream());
    }

    DeviceLinks links() const {
        return {reinterpret_cast<const std::uint32_t*>(rows_.data()),
                reinterpret_cast<const double*>(distances_.data()),
                rows_.size() / sizeof(std::uint32_t),
                static_cast<std::uint32_t>(parameters_.places)};
    }

    /// How many rows are linked with each.
    Status count(std::vector<std::uint32_t>& counts) {
        DeviceBuffer<std::uint32_t> counted;
        GPUTEXT_TRY(counted.allocate(counts.size(), stream_));
        GPUTEXT_TRY(cuda_status(
            cudaMemsetAsync(counted.data(), 0, counts.size() * sizeof(std::uint32_t), stream_),
            "clearing counts"));
        count_linked<<<blocks_for(links().count, kThreads), kThreads, 0, stream_>>>(links(),
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
        list_linked<<<blocks_for(links().count, kThreads), kThreads, 0, stream_>>>(
            links(), static_cast<std::uint32_t>(rows.begin), static_cast<std::uint32_t>(rows.end),
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
                                  nullptr};
        const DeviceRows all{values_.type, elements_.data(),
                             static_cast<std::uint32_t>(values_.rows),
                             static_cast<std::uint32_t>(values_.dimensions)};
        const Choice choice{parameters_.metric,
                            all,
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
    const Vectors& values_;
    std::span<std::uint32_t> neighbors_;
    const DeviceWork& work_;
    cudaStream_t stream_;
    Execution& execution_;
    StreamEvent event_;
    DeviceBuffer<std::uint8_t> elements_, rows_, distances_;
};

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
    LinkingBack linking(parameters, values, neighbors, work, execution);
    return finish_work(linking.run(links, rows, ring), work.stream, "linking back");
}

}  // namespace gputext::gpu
