// bench/gpu_bytes_bench.cu - exact nearest rows by codes of 8 bits on one GPU, beside a plain read
// of the codes
//
// Arguments: those of bench/byte_queries.hpp, floats=host to keep the rows themselves in pinned
// memory of the host, check=N to compare N queries (16) with a search in all rows, and runs=N (20).
// A prototype: gpu_knn does not use it.
//
// The search for 1 or 16 queries at a time:
//
//   1. the bounds (bench/byte_codes.hpp) of some 65,536 rows; the k-th smallest upper bound of them
//   is a first limit
//   2. the scan: all codes are read once, and rows that may be within the limit are kept, with
//   their bounds
//   3. the k-th smallest upper bound of those that were kept, which is that of all rows
//   4. rows whose lower bound is not above it are ranked by their distances, to the bit those of
//   cpp/knn/distance.hpp
//
// The scan for 1 query multiplies by dp4a, that for 16 on tensor cores, both exactly. If more rows
// are kept than there is room for, what was kept gives a nearer limit, and the scan is repeated.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/byte_queries.hpp"
#include "bench/gpu_resources.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/knn/exact_distance.cuh"

using namespace gputext;

namespace {

using bench::Bounds;
using bench::check;
using bench::Clock;
using bench::CodeDistance;
using bench::CodedQuery;
using bench::CodedRow;

constexpr unsigned kThreads = 256;
constexpr unsigned kSelectThreads = 1024;
constexpr unsigned kTogether = 16;      // queries of a scan
constexpr unsigned kUnit = 64;          // bytes that rows are filled up to
constexpr unsigned kRowsTogether = 32;  // of a warp; the table is filled up to them
constexpr unsigned kSamples = 65536;
constexpr unsigned kMostKept = 1 << 20;  // of a query
constexpr int kMostScans = 8;

void check_cuda(cudaError_t error, const char* operation) {
    check(cuda_status(error, operation));
}

struct Kept {
    float lower, upper;
    std::uint32_t row;
};

struct Ranked {
    double distance;
    std::uint32_t row;

    bool operator<(const Ranked& other) const {
        return distance != other.distance ? distance < other.distance : row < other.row;
    }
    bool operator==(const Ranked& other) const {
        return distance == other.distance && row == other.row;
    }
};

/// The rows on the device; their floats there or on the host.
struct Table {
    const std::int8_t* codes;
    const CodedRow* rows;
    const float* floats;
    std::uint32_t size;
    std::uint32_t dimensions;
    std::uint32_t padded;  // bytes of a row's codes
};

/// Queries on the device. Bytes of the first one lie in their order, those of all as lanes take
/// them: see multiply_bytes().
struct Queries {
    const CodedQuery* coded;
    const double* elements;
    const std::int8_t* high;
    const std::int8_t* low;
    const uint4* fragments;
    unsigned count;
};

/// Rows of a scan: number i is row i * stride.
struct Rows {
    std::uint32_t count;
    std::uint32_t stride;
};

/// Takes all bounds, those of a query side by side.
struct AllBounds {
    Bounds* bounds;

    __device__ void take(unsigned query, std::uint32_t number, std::uint32_t, const Rows& rows,
                         const CodeDistance& distance) const {
        bounds[std::size_t{query} * rows.count + number] = distance.bounds();
    }
};

/// Takes rows that may be within their query's limit.
struct WithinLimit {
    const float* limits;
    Kept* kept;
    std::uint32_t* counts;  // also of those that had no room

    __device__ void take(unsigned query, std::uint32_t, std::uint32_t row, const Rows&,
                         const CodeDistance& distance) const {
        if (!distance.may_be_within(limits[query])) return;
        const Bounds bounds = distance.bounds();
        const std::uint32_t place = atomicAdd(&counts[query], 1u);
        if (place < kMostKept)
            kept[std::size_t{query} * kMostKept + place] = {bounds.lower, bounds.upper, row};
    }
};

/// A load that leaves the cache to the queries.
__device__ uint4 streamed(const std::int8_t* from) {
    return __ldcs(reinterpret_cast<const uint4*>(from));
}

__device__ int multiply(uint4 a, uint4 b, int sum) {
    sum = __dp4a(static_cast<int>(a.x), static_cast<int>(b.x), sum);
    sum = __dp4a(static_cast<int>(a.y), static_cast<int>(b.y), sum);
    sum = __dp4a(static_cast<int>(a.z), static_cast<int>(b.z), sum);
    return __dp4a(static_cast<int>(a.w), static_cast<int>(b.w), sum);
}

/// Bounds of one query. A half warp takes four rows at a time, its lanes 16 bytes of each.
template <class Sink>
__global__ void __launch_bounds__(kThreads)
    scan_for_one(Table table, Queries queries, Rows rows, Sink sink) {
    constexpr unsigned kOwn = 4;
    const unsigned lane = threadIdx.x % gpu::kHalfWarp;
    const CodedQuery query = queries.coded[0];
    const std::uint32_t groups = gridDim.x * (kThreads / gpu::kHalfWarp);
    // All lanes of a warp go on together: its two half warps begin kOwn rows apart.
    for (std::uint64_t first =
             std::uint64_t{(blockIdx.x * kThreads + threadIdx.x) / gpu::kWarp} * 2 * kOwn;
         first < rows.count; first += std::uint64_t{groups} * kOwn) {
        const std::uint64_t own = first + threadIdx.x / gpu::kHalfWarp % 2 * kOwn;
        const std::int8_t* codes[kOwn];
        std::uint32_t number[kOwn];
#pragma unroll
        for (unsigned i = 0; i < kOwn; ++i) {
            number[i] = static_cast<std::uint32_t>(own + i < rows.count ? own + i : rows.count - 1);
            codes[i] = table.codes + std::size_t{number[i]} * rows.stride * table.padded;
        }
        int high[kOwn] = {}, low[kOwn] = {};
        for (std::uint32_t at = lane * 16; at < table.padded; at += gpu::kHalfWarp * 16) {
            uint4 of_row[kOwn];
#pragma unroll
            for (unsigned i = 0; i < kOwn; ++i) of_row[i] = streamed(codes[i] + at);
            const uint4 of_high = *reinterpret_cast<const uint4*>(queries.high + at);
            const uint4 of_low = *reinterpret_cast<const uint4*>(queries.low + at);
#pragma unroll
            for (unsigned i = 0; i < kOwn; ++i) {
                high[i] = multiply(of_high, of_row[i], high[i]);
                low[i] = multiply(of_low, of_row[i], low[i]);
            }
        }
        int own_high = 0, own_low = 0;
#pragma unroll
        for (unsigned i = 0; i < kOwn; ++i) {
            const int all_high = gpu::warp_sum<gpu::kHalfWarp>(high[i]);
            const int all_low = gpu::warp_sum<gpu::kHalfWarp>(low[i]);
            if (lane == i) {
                own_high = all_high;
                own_low = all_low;
            }
        }
        if (lane >= kOwn || own + lane >= rows.count) continue;
        const auto own_number = static_cast<std::uint32_t>(own + lane);
        const std::uint32_t row = own_number * rows.stride;
        sink.take(0, own_number, row, rows,
                  CodeDistance(query, table.rows[row], own_high, own_low));
    }
}

/// sums += a b, of 16 queries by 8 rows in 32 bytes of each: mma.m16n8k32. By the PTX manual, lane
/// 4 g + t has of `a` the bytes 4 t to 4 t + 3 of queries g and g + 8 in a[0] and a[1], and those
/// 16 further in a[2] and a[3]; of row g the same bytes in b0 and b1; of `sums` queries g (the
/// first two) and g + 8, rows 2 t and 2 t + 1. Which bytes of a row the 32 are does not matter, if
/// those of the queries are the same.
__device__ void multiply_bytes(int (&sums)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                               std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    __trap();  // main() asks for the processor's capability
#endif
}

/// Of 64 bytes, lane 4 g + t has bytes 16 t to 16 t + 15 of row g, and of queries g (`first`) and g
/// + 8 (`second`).
__device__ void multiply_bytes(int (&sums)[4], uint4 first, uint4 second, uint4 row) {
    multiply_bytes(sums, first.x, second.x, first.y, second.y, row.x, row.y);
    multiply_bytes(sums, first.z, second.z, first.w, second.w, row.z, row.w);
}

/// Bounds of up to 16 queries. A warp takes 32 rows at a time, as four times 8 columns of the
/// product.
template <class Sink>
__global__ void __launch_bounds__(kThreads)
    scan_for_many(Table table, Queries queries, Rows rows, Sink sink) {
    constexpr unsigned kTiles = kRowsTogether / 8;
    const unsigned lane = threadIdx.x % gpu::kWarp;
    const std::uint64_t step = std::uint64_t{gridDim.x} * (kThreads / gpu::kWarp) * kRowsTogether;
    const std::uint32_t chunks = table.padded / kUnit;
    for (std::uint64_t first =
             std::uint64_t{(blockIdx.x * kThreads + threadIdx.x) / gpu::kWarp} * kRowsTogether;
         first < rows.count; first += step) {
        const std::int8_t* codes[kTiles];
#pragma unroll
        for (unsigned tile = 0; tile < kTiles; ++tile) {
            const std::uint64_t number = first + tile * 8 + lane / 4;
            const std::uint64_t existing = number < rows.count ? number : rows.count - 1;
            codes[tile] = table.codes + existing * rows.stride * table.padded + lane % 4 * 16;
        }
        int high[kTiles][4] = {}, low[kTiles][4] = {};
        uint4 next[kTiles];
#pragma unroll
        for (unsigned tile = 0; tile < kTiles; ++tile) next[tile] = streamed(codes[tile]);
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
            uint4 of_rows[kTiles];
#pragma unroll
            for (unsigned tile = 0; tile < kTiles; ++tile) {
                of_rows[tile] = next[tile];
                if (chunk + 1 < chunks) next[tile] = streamed(codes[tile] + (chunk + 1) * kUnit);
            }
            const uint4* const own = queries.fragments + chunk * 4 * gpu::kWarp + lane;
            const uint4 high_first = own[0], high_second = own[gpu::kWarp];
            const uint4 low_first = own[2 * gpu::kWarp], low_second = own[3 * gpu::kWarp];
#pragma unroll
            for (unsigned tile = 0; tile < kTiles; ++tile) {
                multiply_bytes(high[tile], high_first, high_second, of_rows[tile]);
                multiply_bytes(low[tile], low_first, low_second, of_rows[tile]);
            }
        }
        CodedQuery own_queries[2];
#pragma unroll
        for (unsigned half = 0; half < 2; ++half)
            own_queries[half] = queries.coded[lane / 4 + half * 8];
#pragma unroll
        for (unsigned tile = 0; tile < kTiles; ++tile)
#pragma unroll
            for (unsigned column = 0; column < 2; ++column) {
                const std::uint64_t number = first + tile * 8 + lane % 4 * 2 + column;
                if (number >= rows.count) continue;
                const auto row = static_cast<std::uint32_t>(number * rows.stride);
                const CodedRow coded = table.rows[row];
#pragma unroll
                for (unsigned half = 0; half < 2; ++half) {
                    const unsigned query = lane / 4 + half * 8;
                    if (query >= queries.count) continue;
                    sink.take(query, static_cast<std::uint32_t>(number), row, rows,
                              CodeDistance(own_queries[half], coded, high[tile][half * 2 + column],
                                           low[tile][half * 2 + column]));
                }
            }
    }
}

/// The k-th smallest of numbers that are not negative, 1 <= k <= size, by the block: eight bits of
/// it at a time.
template <class NumberOf>
__device__ float kth_smallest(std::uint32_t size, std::uint32_t k, NumberOf number_of) {
    __shared__ std::uint32_t counts[256];
    __shared__ std::uint32_t chosen, left;
    std::uint32_t prefix = 0, known = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (threadIdx.x < 256) counts[threadIdx.x] = 0;
        __syncthreads();
        for (std::uint32_t begin = 0; begin < size; begin += kSelectThreads) {
            const std::uint32_t i = begin + threadIdx.x;
            const std::uint32_t bits = i < size ? __float_as_uint(number_of(i)) : 0;
            // Most numbers have the same first bits: a warp adds up those that are alike.
            const bool counted = i < size && (bits & known) == prefix;
            const std::uint32_t digit = counted ? bits >> shift & 255 : 256;
            const unsigned alike = __match_any_sync(gpu::kAllLanes, digit);
            if (counted && threadIdx.x % gpu::kWarp == __ffs(static_cast<int>(alike)) - 1)
                atomicAdd(&counts[digit], static_cast<std::uint32_t>(__popc(alike)));
        }
        __syncthreads();
        if (threadIdx.x < gpu::kWarp) {
            std::uint32_t own = 0;
            for (unsigned i = 0; i < 8; ++i) own += counts[threadIdx.x * 8 + i];
            const std::uint32_t up_to = gpu::sum_up_to_lane(own);
            if (up_to >= k && up_to - own < k) {
                std::uint32_t digit = threadIdx.x * 8, before = up_to - own;
                while (before + counts[digit] < k) before += counts[digit++];
                chosen = digit;
                left = k - before;
            }
        }
        __syncthreads();
        prefix |= chosen << shift;
        known |= 255u << shift;
        k = left;
    }
    return __uint_as_float(prefix);
}

/// A block for each query.
__global__ void __launch_bounds__(kSelectThreads)
    limit_of_samples(const Bounds* bounds, std::uint32_t samples, std::uint32_t k, float* limits) {
    const Bounds* const own = bounds + std::size_t{blockIdx.x} * samples;
    const float limit = kth_smallest(samples, k, [=](std::uint32_t i) { return own[i].upper; });
    if (threadIdx.x == 0) limits[blockIdx.x] = limit;
}

__global__ void __launch_bounds__(kSelectThreads)
    limit_of_kept(const Kept* kept, const std::uint32_t* counts, std::uint32_t k, float* limits) {
    const Kept* const own = kept + std::size_t{blockIdx.x} * kMostKept;
    const std::uint32_t size = min(counts[blockIdx.x], kMostKept);
    if (size < k) return;  // never: k rows are within the limit that the scan had
    const float limit = kth_smallest(size, k, [=](std::uint32_t i) { return own[i].upper; });
    if (threadIdx.x == 0) limits[blockIdx.x] = limit;
}

__device__ double distance_of(const Table& table, const double* query, std::uint32_t row,
                              unsigned lanes) {
    const float* const rows[1] = {table.floats + std::size_t{row} * table.dimensions};
    return gpu::exact_distance<1>(Metric::euclidean, gpu::ExactQuery{query, 0}, rows,
                                  table.dimensions, lanes);
}

/// Distances of the rows whose lower bound is not above the limit, a half warp each; blockIdx.y is
/// the query.
__global__ void __launch_bounds__(kThreads)
    rank_kept(Table table, Queries queries, const Kept* kept, const std::uint32_t* counts,
              const float* limits, Ranked* ranked, std::uint32_t* ranked_counts) {
    const unsigned query = blockIdx.y;
    const unsigned lanes = gpu::half_warp_lanes();
    const std::size_t begin = std::size_t{query} * kMostKept;
    const std::uint32_t size = min(counts[query], kMostKept);
    const float limit = limits[query];
    const double* const elements = queries.elements + std::size_t{query} * table.dimensions;
    for (std::uint32_t i = (blockIdx.x * kThreads + threadIdx.x) / gpu::kHalfWarp; i < size;
         i += gridDim.x * (kThreads / gpu::kHalfWarp)) {
        const Kept own = kept[begin + i];
        if (own.lower > limit) continue;
        const double distance = distance_of(table, elements, own.row, lanes);
        if (threadIdx.x % gpu::kHalfWarp == 0)
            ranked[begin + atomicAdd(&ranked_counts[query], 1u)] = {distance, own.row};
    }
}

/// The distances of all rows from one query, and how many are outside their bounds.
__global__ void __launch_bounds__(kThreads)
    rank_all(Table table, const double* elements, const Bounds* bounds, double* distances,
             unsigned long long* outside) {
    const unsigned lanes = gpu::half_warp_lanes();
    for (std::uint64_t row = (blockIdx.x * std::uint64_t{kThreads} + threadIdx.x) / gpu::kHalfWarp;
         row < table.size; row += std::uint64_t{gridDim.x} * (kThreads / gpu::kHalfWarp)) {
        const double distance =
            distance_of(table, elements, static_cast<std::uint32_t>(row), lanes);
        if (threadIdx.x % gpu::kHalfWarp != 0) continue;
        distances[row] = distance;
        if (distance < static_cast<double>(bounds[row].lower) ||
            distance > static_cast<double>(bounds[row].upper))
            atomicAdd(outside, 1ull);
    }
}

/// What a scan reads, and no more.
__global__ void __launch_bounds__(kThreads)
    read_all(const uint4* from, std::uint64_t size, unsigned* result) {
    unsigned all = 0;
    const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
    std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
    for (; i + 3 * step < size; i += 4 * step) {
        uint4 own[4];
#pragma unroll
        for (unsigned n = 0; n < 4; ++n) own[n] = __ldcs(from + i + n * step);
#pragma unroll
        for (unsigned n = 0; n < 4; ++n) all ^= own[n].x ^ own[n].y ^ own[n].z ^ own[n].w;
    }
    for (; i < size; i += step) {
        const uint4 own = __ldcs(from + i);
        all ^= own.x ^ own.y ^ own.z ^ own.w;
    }
    if (all == 0x5bd1e995) *result = all;  // so that the reads are not left out
}

/// A block for each row.
__global__ void __launch_bounds__(kThreads)
    make_rows(bench::MadeRows made, const float* matrix, std::uint64_t first, float* to) {
    __shared__ float hidden[bench::MadeRows::kHidden];
    const std::uint64_t row = first + blockIdx.x;
    if (made.clustered && threadIdx.x < bench::MadeRows::kHidden)
        hidden[threadIdx.x] = made.hidden(row, threadIdx.x);
    __syncthreads();
    for (std::uint32_t j = threadIdx.x; j < made.dimensions; j += kThreads) {
        float number = made.alone(row, j);
        for (std::uint32_t i = 0; made.clustered && i < bench::MadeRows::kHidden; ++i)
            number += hidden[i] * matrix[std::size_t{i} * made.dimensions + j];
        to[std::size_t{blockIdx.x} * made.dimensions + j] = number;
    }
}

/// A warp for each row.
__global__ void __launch_bounds__(kThreads)
    code_rows(const float* from, std::uint32_t count, std::uint32_t dimensions,
              std::uint32_t padded, std::int8_t* codes, CodedRow* rows) {
    const std::uint32_t row = (blockIdx.x * kThreads + threadIdx.x) / gpu::kWarp;
    const unsigned lane = threadIdx.x % gpu::kWarp;
    if (row >= count) return;
    const float* const numbers = from + std::size_t{row} * dimensions;
    std::int8_t* const to = codes + std::size_t{row} * padded;
    float largest = 0;
    for (std::uint32_t i = lane; i < dimensions; i += gpu::kWarp)
        largest = fmaxf(largest, fabsf(numbers[i]));
    const float scale = bench::code_scale(gpu::warp_max(largest), bench::kMostOfByte);
    bench::CodeSums sums;
    for (std::uint32_t i = lane; i < padded; i += gpu::kWarp) {
        int code = 0;
        if (i < dimensions) {
            code = bench::code_of(numbers[i], scale, bench::kMostOfByte);
            sums.add(numbers[i], code, scale);
        }
        to[i] = static_cast<std::int8_t>(code);
    }
    sums.residual = gpu::warp_sum(sums.residual);
    sums.code = gpu::warp_sum(sums.code);
    if (lane == 0) rows[row] = bench::coded_row(scale, sums, dimensions);
}

/// Memory of the device, or pinned memory of the host, until the end of the program.
template <class T>
T* memory(std::size_t size, bool on_host = false) {
    void* data = nullptr;
    if (on_host)
        check_cuda(cudaMallocHost(&data, size * sizeof(T)), "allocating host memory");
    else
        check_cuda(cudaMalloc(&data, size * sizeof(T)), "allocating device memory");
    return static_cast<T*>(data);
}

/// As many blocks as run side by side.
template <class Kernel>
unsigned blocks_of(Kernel* kernel) {
    int device = 0, processors = 0, blocks = 0;
    check_cuda(cudaGetDevice(&device), "asking for the device");
    check_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
               "asking for the device");
    check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel,
                                                             static_cast<int>(kThreads), 0),
               "asking for blocks");
    return static_cast<unsigned>(std::max(1, blocks) * processors);
}

template <class Sink>
void scan(const Table& table, const Queries& queries, const Rows& rows, const Sink& sink) {
    static const unsigned one = blocks_of(scan_for_one<Sink>);
    static const unsigned many = blocks_of(scan_for_many<Sink>);
    if (queries.count == 1)
        scan_for_one<<<one, kThreads, 0, bench::stream()>>>(table, queries, rows, sink);
    else
        scan_for_many<<<many, kThreads, 0, bench::stream()>>>(table, queries, rows, sink);
    check(gpu::launched("scanning codes"));
}

/// Codes of all rows, made a piece at a time.
Table coded_table(const bench::ByteInputs& inputs, bool floats_on_host) {
    constexpr std::size_t kPiece = 1 << 17;
    const std::uint32_t dimensions = inputs.made.dimensions;
    const std::uint32_t padded = (dimensions + kUnit - 1) / kUnit * kUnit;
    auto* const codes = memory<std::int8_t>(inputs.rows * padded);
    auto* const rows = memory<CodedRow>(inputs.rows);
    auto* const floats = memory<float>(inputs.rows * dimensions, floats_on_host);
    float* const piece =
        floats_on_host ? memory<float>(std::min(kPiece, inputs.rows) * dimensions) : nullptr;
    const std::vector<float> host_matrix = inputs.hidden_matrix();
    float* matrix = nullptr;
    if (!host_matrix.empty()) {
        matrix = memory<float>(host_matrix.size());
        check_cuda(cudaMemcpyAsync(matrix, host_matrix.data(), host_matrix.size() * sizeof(float),
                                   cudaMemcpyHostToDevice, bench::stream()),
                   "copying the matrix");
    }
    for (std::size_t first = 0; first < inputs.rows; first += kPiece) {
        const auto count = static_cast<std::uint32_t>(std::min(kPiece, inputs.rows - first));
        const std::size_t bytes = std::size_t{count} * dimensions * sizeof(float);
        float* const at = floats_on_host ? piece : floats + first * dimensions;
        if (inputs.items.empty()) {
            make_rows<<<count, kThreads, 0, bench::stream()>>>(inputs.made, matrix, first, at);
            check(gpu::launched("making rows"));
        } else {
            check_cuda(cudaMemcpyAsync(at, inputs.items.data() + first * dimensions, bytes,
                                       cudaMemcpyHostToDevice, bench::stream()),
                       "copying rows");
        }
        code_rows<<<gpu::blocks_for(std::size_t{count} * gpu::kWarp, kThreads), kThreads, 0,
                    bench::stream()>>>(at, count, dimensions, padded, codes + first * padded,
                                       rows + first);
        check(gpu::launched("coding rows"));
        if (floats_on_host)
            check_cuda(cudaMemcpyAsync(floats + first * dimensions, at, bytes,
                                       cudaMemcpyDeviceToHost, bench::stream()),
                       "copying rows to the host");
        bench::wait();
    }
    return {codes, rows, floats, static_cast<std::uint32_t>(inputs.rows), dimensions, padded};
}

/// Codes some queries and searches for their nearest rows.
class Search {
public:
    explicit Search(const Table& table)
        : table_(table),
          uploaded_(sizeof(CodedQuery) * kTogether + sizeof(double) * kTogether * table.dimensions +
                    std::size_t{2} * table.padded + std::size_t{2} * kTogether * table.padded),
          on_host_(memory<std::byte>(uploaded_, true)),
          on_device_(memory<std::byte>(uploaded_)),
          sample_stride_(std::max(1u, table.size / kSamples)),
          samples_((table.size + sample_stride_ - 1) / sample_stride_),
          sample_bounds_(memory<Bounds>(std::size_t{samples_} * kTogether)),
          limits_(memory<float>(kTogether)),
          nearer_limits_(memory<float>(kTogether)),
          kept_(memory<Kept>(std::size_t{kMostKept} * kTogether)),
          ranked_(memory<Ranked>(std::size_t{kMostKept} * kTogether)),
          counts_(memory<std::uint32_t>(2 * kTogether)),
          host_counts_(memory<std::uint32_t>(2 * kTogether, true)),
          host_ranked_(memory<Ranked>(std::size_t{kMostKept}, true)) {
        for (cudaEvent_t& event : events_) check_cuda(cudaEventCreate(&event), "making events");
    }

    struct Times {
        double sample = 0, scan = 0, ranking = 0, whole = 0;  // milliseconds
    };
    struct Answer {
        std::vector<std::vector<Ranked>> nearest;
        std::size_t kept = 0, ranked = 0, most_ranked = 0;  // of all queries; of one
        int scans = 0;
        Times times;
    };

    Answer search(const float* queries, unsigned count, std::uint32_t k) {
        Answer answer;
        const Clock clock;
        const Queries asked = upload(queries, count);
        record(0);
        const Rows samples{samples_, sample_stride_};
        scan(table_, asked, samples, AllBounds{sample_bounds_});
        limit_of_samples<<<count, kSelectThreads, 0, bench::stream()>>>(sample_bounds_, samples_, k,
                                                                        limits_);
        check(gpu::launched("choosing a limit"));
        do {
            if (answer.scans == kMostScans) {
                std::fprintf(stderr, "more than %u rows cannot be told apart\n", kMostKept);
                std::exit(1);
            }
            check_cuda(
                cudaMemsetAsync(counts_, 0, 2 * kTogether * sizeof(std::uint32_t), bench::stream()),
                "clearing counts");
            record(1);
            scan(table_, asked, Rows{table_.size, 1}, WithinLimit{limits_, kept_, counts_});
            record(2);
            limit_of_kept<<<count, kSelectThreads, 0, bench::stream()>>>(kept_, counts_, k,
                                                                         nearer_limits_);
            check(gpu::launched("choosing the limit"));
            rank_kept<<<dim3(32, count), kThreads, 0, bench::stream()>>>(
                table_, asked, kept_, counts_, nearer_limits_, ranked_, counts_ + kTogether);
            check(gpu::launched("ranking rows"));
            record(3);
            check_cuda(cudaMemcpyAsync(host_counts_, counts_, 2 * kTogether * sizeof(std::uint32_t),
                                       cudaMemcpyDeviceToHost, bench::stream()),
                       "copying counts");
            bench::wait();
            ++answer.scans;
            if (answer.scans == 1) answer.times.sample = between(0, 1);
            answer.times.scan += between(1, 2);
            answer.times.ranking += between(2, 3);
            std::swap(limits_, nearer_limits_);
        } while (*std::max_element(host_counts_, host_counts_ + count) > kMostKept);
        for (unsigned query = 0; query < count; ++query) {
            const std::size_t ranked = host_counts_[kTogether + query];
            check_cuda(
                cudaMemcpyAsync(host_ranked_, ranked_ + std::size_t{query} * kMostKept,
                                ranked * sizeof(Ranked), cudaMemcpyDeviceToHost, bench::stream()),
                "copying rows");
            bench::wait();
            if (ranked < k) {
                std::fprintf(stderr, "only %zu rows were ranked\n", ranked);
                std::exit(1);
            }
            std::partial_sort(host_ranked_, host_ranked_ + k, host_ranked_ + ranked);
            answer.nearest.emplace_back(host_ranked_, host_ranked_ + k);
            answer.kept += host_counts_[query];
            answer.ranked += ranked;
            answer.most_ranked = std::max(answer.most_ranked, ranked);
        }
        answer.times.whole = clock.seconds() * 1e3;
        return answer;
    }

    /// Codes queries as the kernels read them.
    Queries upload(const float* queries, unsigned count) {
        const std::uint32_t padded = table_.padded;
        std::memset(on_host_, 0, uploaded_);
        std::byte* at = on_host_;
        const auto place = [&]<class T>(std::size_t size, const T*& on_device) {
            on_device = reinterpret_cast<const T*>(on_device_ + (at - on_host_));
            T* const here = reinterpret_cast<T*>(at);
            at += size * sizeof(T);
            return here;
        };
        Queries asked{};
        asked.count = count;
        // The largest alignment comes first, and all sizes are multiples of 16.
        uint4* const fragments =
            place(std::size_t{2} * kTogether * padded / sizeof(uint4), asked.fragments);
        std::int8_t* const high = place(padded, asked.high);
        std::int8_t* const low = place(padded, asked.low);
        CodedQuery* const coded = place(kTogether, asked.coded);
        double* const elements = place(std::size_t{kTogether} * table_.dimensions, asked.elements);
        for (unsigned query = 0; query < count; ++query) {
            const float* const numbers = queries + std::size_t{query} * table_.dimensions;
            const bench::QueryBytes bytes(numbers, table_.dimensions);
            coded[query] = bytes.coded;
            std::copy(numbers, numbers + table_.dimensions,
                      elements + std::size_t{query} * table_.dimensions);
            if (query == 0) {
                std::copy(bytes.high.begin(), bytes.high.end(), high);
                std::copy(bytes.low.begin(), bytes.low.end(), low);
            }
            // Of each 64 bytes: 32 lanes with high bytes of queries 0 to 7, of 8 to 15, and the
            // same of low bytes; lane 4 g + t has bytes 16 t to 16 t + 15 of query g of the eight.
            auto* const to = reinterpret_cast<std::int8_t*>(fragments);
            for (std::uint32_t i = 0; i < table_.dimensions; ++i) {
                const std::size_t lane = query % 8 * 4 + i % kUnit / 16;
                const std::size_t part = std::size_t{i / kUnit} * 4 + query / 8;
                const std::size_t place_of_high = (part * gpu::kWarp + lane) * 16 + i % 16;
                to[place_of_high] = bytes.high[i];
                to[place_of_high + std::size_t{2} * gpu::kWarp * 16] = bytes.low[i];
            }
        }
        check_cuda(cudaMemcpyAsync(on_device_, on_host_, uploaded_, cudaMemcpyHostToDevice,
                                   bench::stream()),
                   "copying queries");
        return asked;
    }

private:
    void record(unsigned event) {
        check_cuda(cudaEventRecord(events_[event], bench::stream()), "recording an event");
    }
    double between(unsigned from, unsigned to) {
        float milliseconds = 0;
        check_cuda(cudaEventElapsedTime(&milliseconds, events_[from], events_[to]),
                   "reading events");
        return static_cast<double>(milliseconds);
    }

    Table table_;
    std::size_t uploaded_;
    std::byte* on_host_;
    std::byte* on_device_;
    std::uint32_t sample_stride_, samples_;
    Bounds* sample_bounds_;
    float* limits_;
    float* nearer_limits_;
    Kept* kept_;
    Ranked* ranked_;
    std::uint32_t* counts_;  // rows that were kept, of each query, and rows that were ranked
    std::uint32_t* host_counts_;
    Ranked* host_ranked_;
    cudaEvent_t events_[4];
};

/// Answers of a search in all rows, and how many distances are outside their bounds.
class Oracle {
public:
    explicit Oracle(const Table& table)
        : table_(table),
          distances_(memory<double>(table.size)),
          outside_(memory<unsigned long long>(1)) {
        check_cuda(cudaMemsetAsync(outside_, 0, sizeof *outside_, bench::stream()),
                   "clearing a count");
    }

    /// `bounds` has those of all queries, by either kernel.
    std::vector<Ranked> nearest(const Queries& asked, const Bounds* bounds, unsigned query,
                                std::uint32_t k) {
        static const unsigned blocks = blocks_of(rank_all);
        rank_all<<<blocks, kThreads, 0, bench::stream()>>>(
            table_, asked.elements + std::size_t{query} * table_.dimensions,
            bounds + std::size_t{query} * table_.size, distances_, outside_);
        check(gpu::launched("ranking all rows"));
        std::vector<double> distances(table_.size);
        check(gpu::download(distances_, distances.data(), distances.size(), bench::stream(),
                            "copying distances"));
        std::vector<Ranked> ranked(table_.size);
        for (std::uint32_t row = 0; row < table_.size; ++row) ranked[row] = {distances[row], row};
        std::partial_sort(ranked.begin(), ranked.begin() + k, ranked.end());
        ranked.resize(k);
        return ranked;
    }
    unsigned long long outside() const {
        unsigned long long count = 0;
        check(gpu::download_value(outside_, count, bench::stream(), "copying a count"));
        return count;
    }

private:
    Table table_;
    double* distances_;
    unsigned long long* outside_;
};

/// Milliseconds, the least of some runs.
double reading_alone(const Table& table, std::size_t bytes, int runs) {
    static const unsigned blocks = blocks_of(read_all);
    auto* const result = memory<unsigned>(1);
    cudaEvent_t begin, end;
    check_cuda(cudaEventCreate(&begin), "making events");
    check_cuda(cudaEventCreate(&end), "making events");
    float least = 0;
    for (int run = 0; run < runs; ++run) {
        check_cuda(cudaEventRecord(begin, bench::stream()), "recording an event");
        read_all<<<blocks, kThreads, 0, bench::stream()>>>(
            reinterpret_cast<const uint4*>(table.codes),
            std::uint64_t{table.size} * table.padded / sizeof(uint4), result);
        check(gpu::launched("reading codes"));
        read_all<<<blocks, kThreads, 0, bench::stream()>>>(
            reinterpret_cast<const uint4*>(table.rows),
            std::uint64_t{table.size} * sizeof(CodedRow) / sizeof(uint4), result);
        check(gpu::launched("reading scales"));
        check_cuda(cudaEventRecord(end, bench::stream()), "recording an event");
        bench::wait();
        float milliseconds = 0;
        check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), "reading events");
        if (run == 0 || milliseconds < least) least = milliseconds;
    }
    std::printf("reading %.3f GB of codes and scales once: %.3f ms, %.0f GB/s\n",
                1e-9 * static_cast<double>(bytes), static_cast<double>(least),
                1e-6 * static_cast<double>(bytes) / static_cast<double>(least));
    return static_cast<double>(least);
}

}  // namespace

int main(int count, char** arguments) {
    const bench::ByteInputs inputs(count, arguments);
    const bench::Options options(count, arguments);
    const bool floats_on_host = options.text("floats", "device") == "host";
    const int runs = std::max(1, options.whole<int>("runs", 20));
    const auto checked = std::min(options.whole<std::size_t>("check", 16), inputs.queries);

    cudaDeviceProp device;
    check_cuda(cudaGetDeviceProperties(&device, 0), "asking for the device");
    if (device.major < 8) {
        std::fprintf(stderr, "%s has no product of bytes\n", device.name);
        return 1;
    }
    const Clock making;
    const Table table = coded_table(inputs, floats_on_host);
    const std::size_t bytes = inputs.rows * (table.padded + sizeof(CodedRow));
    std::printf("%s; %s, %zu rows, d = %u, floats on the %s; made and coded in %.1f s\n",
                device.name, arguments[1], inputs.rows, table.dimensions,
                floats_on_host ? "host" : "device", making.seconds());
    const double reading = reading_alone(table, bytes, runs);

    Search search(table);
    Oracle oracle(table);
    bool right = true;
    for (const unsigned together : {1u, kTogether}) {
        if (together > inputs.queries) continue;
        const std::size_t calls = inputs.queries / together;
        for (const std::uint32_t k : {10u, 100u}) {
            if (k > table.size) continue;
            std::vector<Search::Times> times;
            std::size_t ranked = 0, most = 0, kept = 0, queries = 0;
            int scans = 1;
            for (int run = 0; run < runs; ++run) {
                const std::size_t call = static_cast<std::size_t>(run) % calls;
                const auto answer = search.search(
                    inputs.asked.data() + call * together * table.dimensions, together, k);
                times.push_back(answer.times);
                ranked += answer.ranked;
                kept += answer.kept;
                queries += together;
                most = std::max(most, answer.most_ranked);
                scans = std::max(scans, answer.scans);
            }
            const auto median = [&](double Search::Times::*part) {
                std::vector<double> all;
                for (const Search::Times& of_run : times) all.push_back(of_run.*part);
                std::sort(all.begin(), all.end());
                return all[all.size() / 2];
            };
            const double scanning = median(&Search::Times::scan);
            const auto average = [&](std::size_t sum) {
                return static_cast<double>(sum) / static_cast<double>(queries);
            };
            std::printf(
                "%u queries, k = %u: scan %.3f ms, %.0f GB/s, %.2f times reading alone; first "
                "limit %.3f ms; limit and ranking %.3f ms; whole call "
                "%.3f ms (medians of %d); kept %.0f rows, ranked %.1f, %zu at most, %.5f %% of "
                "all; scans %d\n",
                together, k, scanning, 1e-6 * static_cast<double>(bytes) / scanning,
                scanning / reading, median(&Search::Times::sample), median(&Search::Times::ranking),
                median(&Search::Times::whole), runs, average(kept), average(ranked), most,
                100 * average(ranked) / static_cast<double>(table.size), scans);
        }
    }

    // Both kernels' bounds and answers, against all rows.
    auto* const bounds = memory<Bounds>(std::size_t{table.size} * kTogether);
    for (const unsigned together : {1u, kTogether}) {
        std::size_t compared = 0, differ = 0;
        for (std::size_t first = 0; first < checked; first += together) {
            const auto some =
                static_cast<unsigned>(std::min<std::size_t>(together, checked - first));
            const float* const queries = inputs.asked.data() + first * table.dimensions;
            const std::uint32_t least = std::min(10u, table.size),
                                most = std::min(100u, table.size);
            const auto nearest = search.search(queries, some, least).nearest;
            const auto more = search.search(queries, some, most).nearest;
            const Queries asked = search.upload(queries, some);
            scan(table, asked, Rows{table.size, 1}, AllBounds{bounds});
            for (unsigned query = 0; query < some; ++query, compared += 2) {
                std::vector<Ranked> wanted = oracle.nearest(asked, bounds, query, most);
                differ += more[query] != wanted;
                wanted.resize(least);
                differ += nearest[query] != wanted;
            }
        }
        std::printf(
            "%u queries together, k = 10 and 100: %zu of %zu answers differ from a search in all "
            "rows; %llu distances are outside their bounds\n",
            together, differ, compared, oracle.outside());
        right = right && differ == 0 && oracle.outside() == 0;
    }
    return right ? 0 : 1;
}
