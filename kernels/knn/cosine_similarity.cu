#include "kernels/knn/cosine_similarity.hpp"

#include <algorithm>
#include <new>

#include "kernels/base/job_status.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/knn/detail/quad_similarities.cuh"
#include "kernels/knn/exact_distance.cuh"

namespace gputext::gpu {
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
