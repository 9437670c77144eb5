#include "kernels/knn/cosine_similarity.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/knn/detail/device_rows.hpp"
#include "kernels/knn/detail/fp16_product.cuh"
#include "kernels/knn/exact_distance.cuh"

namespace gputext::gpu {

// Cosine similarity of one query and many rows of float, at memory speed.
//
// A warp copies eight rows to shared memory, 512 bytes of each at a time and a few steps ahead, and
// so reads whole lines of memory. There four lanes share a row: lane q takes elements 4 q to 4 q +
// 3 of every sixteen and so the partial sums of the same numbers (cpp/knn/distance.hpp). Adding
// lanes q and q ^ 2, then q and q ^ 1, then the sums 0 and 2, 1 and 3 of a lane is the definition's
// tree. A row's square is 0 or above 2^-299, as float goes, and below 2^300: there is nothing to
// scale.

inline constexpr unsigned kQuad = 4;

/// The sums of products and of squares of a quad's row, four each.
struct QuadSums {
    double products[kQuad] = {};
    double squares[kQuad] = {};

    __device__ void add(const double* query, const float4& elements) {
        const double2 low = *reinterpret_cast<const double2*>(query);
        const double2 high = *reinterpret_cast<const double2*>(query + 2);
        const double a[kQuad] = {low.x, low.y, high.x, high.y};
        const float b[kQuad] = {elements.x, elements.y, elements.z, elements.w};
#pragma unroll
        for (unsigned i = 0; i < kQuad; ++i) {
            double sums[2] = {products[i], squares[i]};
            ProductAndSquareTerms::add(a[i], static_cast<double>(b[i]), sums);
            products[i] = sums[0];
            squares[i] = sums[1];
        }
    }

    __device__ static double total(double (&sums)[kQuad]) {
#pragma unroll
        for (unsigned distance = kQuad / 2; distance > 0; distance /= 2)
#pragma unroll
            for (double& sum : sums) sum = __dadd_rn(sum, __shfl_xor_sync(~0u, sum, distance));
        return __dadd_rn(__dadd_rn(sums[0], sums[2]), __dadd_rn(sums[1], sums[3]));
    }
};

/// A warp's eight rows, a part of each.
struct QuadStage {
    static constexpr unsigned rows = 32 / kQuad;
    static constexpr unsigned part = 128;         // elements
    static constexpr unsigned pitch = part + 16;  // two rows lie in different banks
    float elements[rows][pitch];
};

/// What a warp reads next: part after part of eight rows, then of the next eight that are its own.
struct QuadPlace {
    std::uint32_t eight;
    std::uint32_t begin = 0;  // of the part

    __device__ void advance(std::uint32_t dimensions, std::uint32_t stride) {
        begin += QuadStage::part;
        if (begin < dimensions) return;
        begin = 0;
        eight += stride;
    }
};

struct QuadShape {
    static constexpr unsigned warps = 8;
    static constexpr unsigned stages = 3;
    static constexpr unsigned threads = 32 * warps;
    static constexpr unsigned shared_bytes = warps * stages * sizeof(QuadStage);
};

/// Rows must be aligned to 16 bytes, and dimensions a multiple of four, not 0.
__global__ __launch_bounds__(QuadShape::threads) void quad_similarities(DeviceQueries query,
                                                                        const float* items,
                                                                        std::uint32_t rows,
                                                                        double* similarities) {
    extern __shared__ uint4 memory[];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    auto* stages = reinterpret_cast<QuadStage*>(memory) + warp * QuadShape::stages;
    const std::uint32_t dimensions = query.dimensions;
    const std::uint32_t eights = (rows + QuadStage::rows - 1) / QuadStage::rows;
    const std::uint32_t stride = gridDim.x * QuadShape::warps;
    QuadPlace next{blockIdx.x * QuadShape::warps + warp};
    QuadPlace now = next;
    const auto fetch = [&](QuadStage& stage) {
        const std::uint32_t at = next.begin + 4 * lane;
        const std::uint32_t first = next.eight * QuadStage::rows;
        const bool valid = next.eight < eights && at < dimensions;
#pragma unroll
        for (unsigned r = 0; r < QuadStage::rows; ++r) {
            const std::size_t row = min(first + r, rows - 1);
            copy_vector(&stage.elements[r][4 * lane], items + (valid ? row * dimensions + at : 0),
                        valid);
        }
        end_of_copies();
        next.advance(dimensions, stride);
    };
#pragma unroll
    for (unsigned s = 0; s + 1 < QuadShape::stages; ++s) fetch(stages[s]);

    QuadSums sums;
    for (unsigned s = 0; now.eight < eights; s = (s + 1) % QuadShape::stages) {
        __syncwarp();  // the stage that is fetched next has been read by all
        fetch(stages[(s + QuadShape::stages - 1) % QuadShape::stages]);
        wait_for_copies<QuadShape::stages - 1>();
        __syncwarp();
        const float* row = stages[s].elements[lane / kQuad];
#pragma unroll
        for (unsigned i = 0; i < QuadStage::part; i += 16) {
            // Zeros lie behind the last element.
            const unsigned at = i + lane % kQuad * 4;
            sums.add(query.elements + min(now.begin + at, dimensions - 4),
                     *reinterpret_cast<const float4*>(row + at));
        }
        const std::uint32_t item = now.eight * QuadStage::rows + lane / kQuad;
        now.advance(dimensions, stride);
        if (now.begin != 0) continue;
        const double products = QuadSums::total(sums.products);
        const double square = QuadSums::total(sums.squares);
        if (item < rows && lane % kQuad == 0)
            similarities[item] = similarity_of(products, query.squares[0], square);
        sums = {};
    }
    wait_for_copies<0>();
}

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kHalfWarps = kThreads / kHalfWarp;
constexpr unsigned kAtOnce = 4;  // items of a half warp, so that enough reads are under way
constexpr unsigned kItemsPerBlock = kHalfWarps * kAtOnce;
constexpr std::size_t kLeastBatch = 1024;
constexpr std::size_t kMostBatchBytes = std::size_t{1} << 30;  // a launch of a millisecond

template <class T>
__global__ __launch_bounds__(kThreads) void similarities_of_items(DeviceQueries query,
                                                                  const T* items,
                                                                  std::uint32_t rows,
                                                                  double* similarities) {
    const std::uint32_t first = blockIdx.x * kItemsPerBlock + threadIdx.x / kHalfWarp;
    const T* from[kAtOnce];
#pragma unroll
    for (unsigned n = 0; n < kAtOnce; ++n)
        from[n] = items + std::size_t{min(first + n * kHalfWarps, rows - 1)} * query.dimensions;
    const double similarity = exact_similarity({query.elements, query.squares[0]}, from,
                                               query.dimensions, half_warp_lanes());
    const std::uint32_t item = first + own_pair<kAtOnce>() * kHalfWarps;
    if (item < rows && threadIdx.x % (kHalfWarp / kAtOnce) == 0) similarities[item] = similarity;
}

/// Where the rows are of float, aligned, and the device can: `done` says so.
Status run_quads(const DeviceQueries& query, const DeviceRows& items, double* similarities,
                 cudaStream_t stream, bool& done) {
    constexpr int kBytes = QuadShape::shared_bytes;
    done = false;
    const auto* elements = static_cast<const float*>(items.elements);
    if (items.type != ElementType::float32 || items.dimensions == 0 ||
        items.dimensions % kQuad != 0 ||
        reinterpret_cast<std::uintptr_t>(elements) % sizeof(float4) != 0)
        return {};
    Fp16FilterDevice device;
    GPUTEXT_TRY(device.look());
    if (device.capability < 80 || device.shared_bytes < kBytes) return {};
    done = true;
    GPUTEXT_TRY(
        cuda_status(cudaFuncSetAttribute(quad_similarities,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
                    "asking for shared memory"));
    const auto at_once = static_cast<std::size_t>(device.processors) * 2;
    const auto blocks =
        std::min<std::size_t>(at_once, blocks_for(items.rows, QuadShape::warps * QuadStage::rows));
    quad_similarities<<<static_cast<unsigned>(blocks), QuadShape::threads, kBytes, stream>>>(
        query, elements, items.rows, similarities);
    return launched("computing similarities");
}

Status check(const Vectors& query, const Vectors& items) {
    if (query.sparse() || items.sparse())
        return {ErrorCode::invalid_argument, "sparse vectors are not compared on a GPU"};
    if (query.rows != 1) return {ErrorCode::invalid_argument, "there must be one query vector"};
    return items.rows > 0 ? check_comparable(query, items) : Status();
}

std::size_t row_bytes(const Vectors& vectors) {
    return vectors.dimensions * element_size(vectors.type);
}

std::size_t fixed_bytes(const Vectors& query) {
    return row_bytes(query) + query.dimensions * sizeof(double) + 4096;
}

/// Batch after batch: while one is computed, the next is copied behind it.
Status run(const Vectors& query, const Vectors& items, const DeviceWork& work, UploadRing& ring,
           Execution& execution, std::vector<double>& similarities) {
    const std::size_t per_item = row_bytes(items) + sizeof(double);
    const auto bytes = cosine_similarities_bytes(query, items);
    if (work.bytes < bytes.least)
        return too_little_memory("cosine similarities take", bytes.least, work.bytes);
    const std::size_t most = std::max(kLeastBatch, kMostBatchBytes / per_item);
    const std::size_t batch =
        std::min({items.rows, most, (work.bytes - fixed_bytes(query)) / (2 * per_item)});

    StreamEvent event;
    GPUTEXT_TRY(event.create());
    DeviceBuffer<std::uint8_t> raw_query, elements[2];
    DeviceBuffer<double> query_elements, query_square, results[2];
    const auto* from = static_cast<const std::uint8_t*>(query.elements);
    GPUTEXT_TRY(raw_query.upload({from, row_bytes(query)}, work.stream));
    GPUTEXT_TRY(query_elements.allocate(query.dimensions, work.stream));
    GPUTEXT_TRY(query_square.allocate(1, work.stream));
    const auto dimensions = static_cast<std::uint32_t>(query.dimensions);
    GPUTEXT_TRY(prepare_queries(Metric::cosine, {query.type, raw_query.data(), 1, dimensions},
                                query_elements.data(), query_square.data(), work.stream));
    for (int slot = 0; slot < 2; ++slot) {
        GPUTEXT_TRY(elements[slot].allocate(batch * row_bytes(items), work.stream));
        GPUTEXT_TRY(results[slot].allocate(batch, work.stream));
    }
    execution.begin_phase("computing similarities", (items.rows + batch - 1) / batch);
    int slot = 0;
    for (std::size_t begin = 0; begin < items.rows; begin += batch, slot ^= 1) {
        const std::size_t rows = std::min(batch, items.rows - begin);
        // The slot's last batch has been computed: its results were copied in between.
        if (begin == 0) GPUTEXT_TRY(event.hold(ring.stream(), work.stream));
        const auto* data = reinterpret_cast<const std::uint8_t*>(items.row_bytes(begin));
        if (row_bytes(items) > 0)
            GPUTEXT_TRY(
                ring.copy(elements[slot].data(), {data, rows * row_bytes(items)}, execution));
        if (begin > 0)
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(work.stream), "computing similarities"));
        GPUTEXT_TRY(event.hold(work.stream, ring.stream()));
        GPUTEXT_TRY(run_cosine_similarities(
            {1, dimensions, query_elements.data(), query_square.data(), nullptr},
            {items.type, elements[slot].data(), static_cast<std::uint32_t>(rows), dimensions},
            results[slot].data(), work.stream));
        GPUTEXT_TRY(
            cuda_status(cudaMemcpyAsync(similarities.data() + begin, results[slot].data(),
                                        rows * sizeof(double), cudaMemcpyDeviceToHost, work.stream),
                        "copying similarities from the device"));
        GPUTEXT_TRY(execution.checkpoint());
    }
    return {};
}

}  // namespace

SimilarityBytes cosine_similarities_bytes(const Vectors& query, const Vectors& items) {
    const std::size_t per_item = 2 * (row_bytes(items) + sizeof(double));
    return {fixed_bytes(query) + std::min(items.rows, kLeastBatch) * per_item,
            fixed_bytes(query) + items.rows * per_item};
}

Status run_cosine_similarities(const DeviceQueries& query, const DeviceRows& items,
                               double* similarities, cudaStream_t stream) {
    if (items.rows == 0) return {};
    bool done = false;
    GPUTEXT_TRY(run_quads(query, items, similarities, stream, done));
    if (done) return {};
    with_element_type(items.type, [&](auto element) {
        similarities_of_items<<<blocks_for(items.rows, kItemsPerBlock), kThreads, 0, stream>>>(
            query, static_cast<decltype(element)>(items.elements), items.rows, similarities);
    });
    return launched("computing similarities");
}

Result<std::vector<double>> cosine_similarities(const Vectors& query, const Vectors& items,
                                                const DeviceWork& work, UploadRing& ring,
                                                Execution& execution) {
    GPUTEXT_TRY(check(query, items));
    const auto largest_query = largest_magnitude(query, "query", execution);
    if (!largest_query.ok()) return largest_query.status();
    const auto largest_item = largest_magnitude(items, "item", execution);
    if (!largest_item.ok()) return largest_item.status();
    std::vector<double> similarities;
    try {
        similarities.resize(items.rows);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    if (items.rows == 0) return similarities;
    const Status status = run(query, items, work, ring, execution, similarities);
    GPUTEXT_TRY(finish_work(status, work.stream, "computing similarities"));
    return similarities;
}

}  // namespace gputext::gpu
