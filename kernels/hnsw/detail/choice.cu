#include "kernels/hnsw/detail/choice.hpp"

#include "cpp/hnsw/graph.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/knn/exact_distance.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kHalfWarps = kThreads / kHalfWarp;
constexpr unsigned kNone = UINT32_MAX;

/// One list.
struct List {
    const std::uint32_t* items;
    const std::uint64_t* keys;
    std::uint32_t stride_of_items, stride_of_keys;
    std::uint32_t count;

    __device__ List(const ListsToChoose& lists, std::uint32_t number)
        : stride_of_items(lists.stride_of_items), stride_of_keys(lists.stride_of_keys) {
        const bool packed = lists.begins != nullptr;
        const std::uint64_t begin =
            packed ? lists.begins[number] : std::uint64_t{number} * lists.capacity;
        items = lists.items + begin * stride_of_items;
        keys = lists.keys + begin * stride_of_keys;
        count = packed ? static_cast<std::uint32_t>(lists.begins[number + 1] - begin)
                       : lists.kept[number];
    }
    __device__ std::uint32_t item(std::uint32_t i) const {
        return items[std::size_t{i} * stride_of_items];
    }
    __device__ double distance(std::uint32_t i) const {
        return __longlong_as_double(
            static_cast<long long>(bits_of_ordered(keys[std::size_t{i} * stride_of_keys])));
    }
};

/// Has a row brought near by the block, while another one is compared.
template <class T>
__device__ void fetch_ahead(const T* row, unsigned dimensions) {
    constexpr unsigned kLine = 128;
    const auto* const bytes = reinterpret_cast<const char*>(row);
    for (unsigned at = threadIdx.x * kLine; at < dimensions * sizeof(T); at += kThreads * kLine)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(bytes + at));
}

__device__ void write(const Choice& choice, const List& list, std::size_t place, unsigned from) {
    choice.chosen[place] = from == kNone ? kNoElement : list.item(from);
    if (choice.distances != nullptr)
        choice.distances[place] = from == kNone ? 0.0 : list.distance(from);
}

/// A block for each list. A candidate is compared with as many of the chosen rows at a time as the
/// block has half warps, first with the one that another candidate was near to last.
template <class T>
__global__ __launch_bounds__(kThreads) void choose_of_lists(ListsToChoose lists, Choice choice,
                                                            std::uint32_t first) {
    extern __shared__ double memory[];
    __shared__ unsigned nearer;
    const std::uint32_t number = first + blockIdx.x, dimensions = choice.rows.dimensions;
    const unsigned limit = choice.limit, lanes = half_warp_lanes();
    double* const candidate = memory;
    // Places in the list: of the chosen rows, of these in the order of comparisons, of left ones
    auto* const chosen = reinterpret_cast<unsigned*>(memory + dimensions);
    unsigned* const order = chosen + limit;
    unsigned* const left = order + limit;
    const auto* const rows = static_cast<const T*>(choice.rows.elements);
    const List list(lists, number);
    const std::size_t to = std::size_t{blockIdx.x} * limit;
    if (list.count <= limit) {
        for (unsigned i = threadIdx.x; i < limit; i += kThreads)
            write(choice, list, to + i, i < list.count ? i : kNone);
        return;
    }
    unsigned chosen_count = 0, left_count = 0;
    for (unsigned i = 0; i < list.count && chosen_count < limit; ++i) {
        const T* const row = rows + std::size_t{list.item(i)} * dimensions;
        for (unsigned d = threadIdx.x; d < dimensions; d += kThreads)
            candidate[d] = as_double(row[d]);
        if (i + 1 < list.count)
            fetch_ahead(rows + std::size_t{list.item(i + 1)} * dimensions, dimensions);
        if (threadIdx.x == 0) nearer = kNone;
        const double most = __ddiv_rn(list.distance(i), choice.slack);
        __syncthreads();
        bool found = false;
        for (unsigned base = 0; base < chosen_count && !found; base += kHalfWarps) {
            const unsigned at = base + threadIdx.x / kHalfWarp;
            bool is_nearer = false;
            if (at < chosen_count) {
                const T* const other[1] = {rows + std::size_t{list.item(order[at])} * dimensions};
                is_nearer = exact_distance(choice.metric, ExactQuery{candidate, 0}, other,
                                           dimensions, lanes) <= most;
            }
            if (is_nearer && threadIdx.x % kHalfWarp == 0) atomicMin(&nearer, at);
            found = __syncthreads_or(is_nearer) != 0;
        }
        if (threadIdx.x == 0) {
            if (!found) {
                chosen[chosen_count] = order[chosen_count] = i;
            } else {
                const unsigned last = order[nearer];
                order[nearer] = order[0];
                order[0] = last;
                if (left_count < limit) left[left_count] = i;
            }
        }
        ++(found ? left_count : chosen_count);
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < limit; i += kThreads) {
        const unsigned more = i - chosen_count;
        write(choice, list, to + i,
              i < chosen_count    ? chosen[i]
              : more < left_count ? left[more]
                                  : kNone);
    }
}

}  // namespace

Status choose(const ListsToChoose& lists, const Choice& choice, std::uint32_t begin,
              std::uint32_t end, cudaStream_t stream) {
    if (begin == end) return {};
    const std::size_t bytes =
        choice.rows.dimensions * sizeof(double) + 3 * std::size_t{choice.limit} * sizeof(unsigned);
    const auto run = [&](auto element) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(element)>>;
        GPUTEXT_TRY(allow_shared_bytes(choose_of_lists<T>, bytes));
        choose_of_lists<T><<<end - begin, kThreads, bytes, stream>>>(lists, choice, begin);
        return launched("choosing links");
    };
    return choice.rows.type == ElementType::float16 ? run(static_cast<const __half*>(nullptr))
                                                    : run(static_cast<const float*>(nullptr));
}

}  // namespace gputext::gpu
