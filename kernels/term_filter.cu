#include "kernels/term_filter.hpp"

#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "kernels/launch.hpp"
#include "kernels/term_rows.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = kTermGroups;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kMostLists = 1024;  // laid end to end at a time
constexpr unsigned kAhead = 4;         // postings of a lane that are under way
constexpr double kLaunchWork = 3e9;    // postings, or sums looked at: some 10 ms
constexpr std::uint32_t kMostTiles = 65535;

/// Posting lists of a tile, laid end to end.
struct ListsInTile {
    std::uint32_t* begins;   // where each begins among all, and the end of the last
    std::uint32_t* sources;  // its first posting's place in the index, less `begins`
    int* parts;              // the query's
    unsigned count;
    std::uint32_t total;
};

using Scan = cub::BlockScan<std::uint64_t, kThreads>;

/// The lists of terms [begin, end) of a query, at most `most`. By the block, which they are ready
/// for when it returns.
__device__ void lay_lists(const TermIndex& index, const TermQueries& queries, std::uint32_t tile,
                          std::uint64_t begin, std::uint64_t end, unsigned most,
                          Scan::TempStorage& storage, ListsInTile& lists) {
    constexpr unsigned kEach = kMostLists / kThreads;
    std::uint32_t first[kEach], size[kEach];
    int part[kEach];
    std::uint64_t own = 0;  // lists << 32 | postings
#pragma unroll
    for (unsigned i = 0; i < kEach; ++i) {
        const std::uint64_t at = begin + i * kThreads + threadIdx.x;
        part[i] = i * kThreads < most && at < end ? queries.parts[at] : 0;
        size[i] = 0;
        if (part[i] == 0) continue;
        const std::size_t list = std::size_t{tile} * index.terms + queries.rows.columns[at];
        first[i] = index.begins[list];
        size[i] = index.begins[list + 1] - first[i];
        if (size[i] > 0) own += std::uint64_t{1} << 32 | size[i];
    }
    std::uint64_t before, all;
    Scan(storage).ExclusiveSum(own, before, all);
#pragma unroll
    for (unsigned i = 0; i < kEach; ++i) {
        if (size[i] == 0) continue;
        const auto list = static_cast<unsigned>(before >> 32);
        const auto place = static_cast<std::uint32_t>(before);
        lists.begins[list] = place;
        lists.sources[list] = first[i] - place;
        lists.parts[list] = part[i];
        before += std::uint64_t{1} << 32 | size[i];
    }
    lists.count = static_cast<unsigned>(all >> 32);
    lists.total = static_cast<std::uint32_t>(all);
    if (threadIdx.x == 0) lists.begins[lists.count] = lists.total;
    __syncthreads();
}

/// The last list that begins at `place` or before it, of lists [low, high].
__device__ unsigned list_at(const ListsInTile& lists, std::uint32_t place, unsigned low,
                            unsigned high) {
    while (low < high) {
        const unsigned middle = (low + high + 1) / 2;
        if (lists.begins[middle] <= place)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/// Adds all postings' products to the sums. `magnitudes`: as if no weight were negative.
__device__ void add_postings(const ListsInTile& lists, const std::uint32_t* postings,
                             bool magnitudes, int* sums) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    const std::uint32_t each = ((lists.total + kWarps - 1) / kWarps + 31) / 32 * 32;
    const std::uint32_t end = min(lists.total, (warp + 1) * each);
    std::uint32_t base = warp * each;
    if (base >= end) return;
    unsigned low = list_at(lists, base, 0, lists.count - 1);
    for (; base < end; base += 32 * kAhead) {
        // The list that the last of these postings is of.
        const std::uint32_t last = min(end, base + 32 * kAhead) - 1;
        unsigned high = low;
        for (;;) {
            const unsigned next = high + 1 + lane;
            const unsigned begun =
                __popc(__ballot_sync(~0u, next < lists.count && lists.begins[next] <= last));
            high += begun;
            if (begun < 32) break;
        }
        std::uint32_t posting[kAhead];
        int part[kAhead];
#pragma unroll
        for (unsigned i = 0; i < kAhead; ++i) {
            const std::uint32_t place = base + 32 * i + lane;
            part[i] = 0;
            if (place >= end) continue;
            const unsigned list = list_at(lists, place, low, high);
            posting[i] = postings[lists.sources[list] + place];
            part[i] = lists.parts[list];
        }
#pragma unroll
        for (unsigned i = 0; i < kAhead; ++i) {
            if (part[i] == 0) continue;
            const int product = (static_cast<int>(posting[i]) >> 16) * part[i];
            atomicAdd(&sums[posting[i] & 0xffff], magnitudes ? abs(product) : product);
        }
        low = high;
    }
}

/// Sums of one query and one tile in `sums`, from those that are there. By the block.
__device__ void add_terms(const TermFilterJob& job, std::uint32_t query, std::uint32_t tile,
                          unsigned most_lists, bool magnitudes, int* sums) {
    __shared__ Scan::TempStorage storage;
    auto* const memory = reinterpret_cast<std::uint32_t*>(sums + kTermTile);
    ListsInTile lists{memory, memory + most_lists + 1,
                      reinterpret_cast<int*>(memory + 2 * most_lists + 1), 0, 0};
    const RowSpan span = span_of_row(job.queries.rows, query);
    for (std::uint64_t begin = span.begin; begin < span.end; begin += most_lists) {
        lay_lists(job.index, job.queries, tile, begin, span.end, most_lists, storage, lists);
        add_postings(lists, job.index.postings, magnitudes, sums);
        __syncthreads();
    }
}

__device__ void clear_sums(int* sums) {
    auto* const vectors = reinterpret_cast<int4*>(sums);
#pragma unroll
    for (unsigned i = 0; i < kTermTile / 4 / kThreads; ++i)
        vectors[i * kThreads + threadIdx.x] = {0, 0, 0, 0};
    __syncthreads();
}

__device__ bool same_keys(const TermFilterJob& job, std::uint32_t query, std::uint32_t in_index) {
    return job.queries.rows.keys != nullptr &&
           job.queries.rows.keys[query] == job.index.items.keys[in_index];
}

/// Blocks of one y take one tile.
__global__ __launch_bounds__(kThreads) void filter_terms(TermFilterJob job, unsigned most_lists,
                                                         std::uint32_t first_query,
                                                         std::uint32_t first_tile) {
    extern __shared__ __align__(16) int sums[];
    const std::uint32_t query = job.selection[first_query + blockIdx.x];
    const std::uint32_t tile = first_tile + blockIdx.y;
    if (job.lists.counts[query] > job.lists.capacity) return;  // it is searched again anyway
    const float gate = job.gates[query];
    const bool complete = !(gate >= 1);
    const int least = complete ? 1 : static_cast<int>(gate);
    clear_sums(sums);
    add_terms(job, query, tile, most_lists, complete, sums);
    const auto* const vectors = reinterpret_cast<const int4*>(sums);
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < kTermTile / 4; i += kThreads) {
        const int4 four = vectors[i];
        if (max(max(four.x, four.y), max(four.z, four.w)) < least) continue;
        const int each[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) {
            const std::uint32_t in_index = tile * kTermTile + 4 * i + j;
            const std::uint32_t item = job.first_item + in_index;
            if (each[j] < least || item < job.begin || item >= job.end) continue;
            if (same_keys(job, query, in_index)) continue;
            add_found(job.lists, query, item, __int2float_rd(each[j]));
        }
    }
}

/// Blocks of one y take one sampled tile; a thread's items are a group.
__global__ __launch_bounds__(kThreads) void sample(TermFilterJob job, unsigned most_lists,
                                                   std::uint32_t first_query, float* sampled) {
    extern __shared__ __align__(16) int sums[];
    const std::uint32_t query = job.selection[first_query + blockIdx.x];
    const auto tile = static_cast<std::uint32_t>(
        (std::uint64_t{blockIdx.y} * job.index.tiles + job.index.tiles / 2) / gridDim.y);
    clear_sums(sums);
    add_terms(job, query, tile, most_lists, false, sums);
    const auto* const vectors = reinterpret_cast<const int4*>(sums);
    int most = 0;
    for (unsigned i = threadIdx.x; i < kTermTile / 4; i += kThreads) {
        const int4 four = vectors[i];
        most = max(most, max(max(four.x, four.y), max(four.z, four.w)));
    }
    sampled[(std::size_t{query} * gridDim.y + blockIdx.y) * kTermGroups + threadIdx.x] =
        __int2float_rd(most);
}

/// A block for each query.
__global__ __launch_bounds__(kThreads) void count_work(TermFilterJob job,
                                                       unsigned long long* work) {
    const std::uint32_t query = job.selection[blockIdx.x];
    const RowSpan span = span_of_row(job.queries.rows, query);
    unsigned long long own = 0;
    // In one tile of all: the others are about as full.
    const std::size_t lists = std::size_t{job.index.tiles / 2} * job.index.terms;
    for (std::uint64_t at = span.begin + threadIdx.x; at < span.end; at += kThreads) {
        const std::size_t list = lists + job.queries.rows.columns[at];
        own += job.index.begins[list + 1] - job.index.begins[list];
    }
    for (unsigned distance = 16; distance > 0; distance /= 2)
        own += __shfl_xor_sync(~0u, own, distance);
    if (threadIdx.x % 32 == 0) atomicAdd(work, own * job.index.tiles);
}

/// Lists that are laid at a time: a multiple of the threads.
unsigned lists_at_once(const TermFilterJob& job) {
    return std::min(kMostLists, std::max(1u, blocks_for(job.most_terms, kThreads)) * kThreads);
}

std::size_t shared_bytes(unsigned most_lists) {
    return (kTermTile + 3 * most_lists + 1) * sizeof(std::uint32_t);
}

}  // namespace

Status run_term_filter(const TermFilterJob& job, double work, Stop stop, cudaStream_t stream) {
    if (job.selection.count == 0 || job.begin >= job.end) return {};
    const unsigned most_lists = lists_at_once(job);
    const std::uint32_t first_tile = (job.begin - job.first_item) / kTermTile;
    const std::uint32_t end_tile = (job.end - job.first_item - 1) / kTermTile + 1;
    const std::uint32_t queries = job.selection.count;
    // What a block does, with what it takes for looking at sums.
    const double of_block = work / job.index.tiles / queries + kTermTile / 2;
    const auto most_blocks = static_cast<std::uint64_t>(std::max(1.0, kLaunchWork / of_block));
    const auto query_step =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(queries, most_blocks));
    const auto tile_step = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(most_blocks / query_step, 1, kMostTiles));
    for (std::uint32_t tile = first_tile; tile < end_tile; tile += tile_step)
        for (std::uint32_t query = 0; query < queries; query += query_step) {
            if (tile > first_tile || query > 0) {
                // A queue of long launches could not be stopped.
                GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "filtering neighbours"));
                if (stop()) return Status::cancelled();
            }
            const dim3 blocks(std::min(query_step, queries - query),
                              std::min(tile_step, end_tile - tile));
            filter_terms<<<blocks, kThreads, shared_bytes(most_lists), stream>>>(job, most_lists,
                                                                                 query, tile);
            GPUTEXT_TRY(launched("filtering neighbours"));
        }
    return {};
}

Status sample_terms(const TermFilterJob& job, std::uint32_t tiles, float* sampled,
                    cudaStream_t stream) {
    if (job.selection.count == 0) return {};
    const unsigned most_lists = lists_at_once(job);
    const dim3 blocks(job.selection.count, tiles);
    sample<<<blocks, kThreads, shared_bytes(most_lists), stream>>>(job, most_lists, 0, sampled);
    return launched("sampling scores");
}

Status count_term_work(const TermFilterJob& job, unsigned long long* work, cudaStream_t stream) {
    if (job.selection.count == 0) return {};
    count_work<<<job.selection.count, kThreads, 0, stream>>>(job, work);
    return launched("counting postings");
}

}  // namespace gputext::gpu
