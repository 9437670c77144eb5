#include "kernels/documents/detail/count_features.cuh"

#include <algorithm>

#include "kernels/documents/detail/band_columns.cuh"
#include "kernels/documents/detail/wide_characters.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kBlock = 256;
constexpr std::uint32_t kPart = 1u << 20;  // symbols that a block counts
constexpr unsigned kCharacterBins = DocumentFeatures::character_bins;
constexpr unsigned kTrigramBins = DocumentFeatures::trigram_bins;

/// How often each bin is met.
struct Histogram {
    std::uint32_t characters[kCharacterBins];
    std::uint32_t trigrams[kTrigramBins];
};
constexpr unsigned kBins = kCharacterBins + kTrigramBins;

__device__ std::uint32_t& bin_of(Histogram& histogram, unsigned bin) {
    return reinterpret_cast<std::uint32_t*>(&histogram)[bin];
}

/// A document to count, and its place in the tile.
struct CountTask {
    std::uint32_t document;  // or place among the decoded ones
    std::uint32_t column;
};

struct NarrowDocuments {
    const std::uint8_t* bytes;
    const Extent* extents;

    __device__ Symbols operator[](std::uint32_t document) const {
        const Extent extent = extents[document];
        return {bytes + extent.begin, static_cast<std::uint32_t>(extent.size), 0};
    }
};

struct DecodedDocuments {
    const DecodeTask* tasks;

    __device__ Symbols operator[](std::uint32_t place) const {
        return {tasks[place].symbols, tasks[place].count, 1};
    }
};

__device__ unsigned trigram_bin(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return (((a * 0x01000193u + b) * 0x01000193u + c) * 0x9e3779b1u) >> 20;
}

/// Counts the symbols from begin to end, and the trigrams that end there.
__device__ void count_part(const Symbols& symbols, std::uint32_t begin, std::uint32_t end,
                           Histogram& histogram) {
    for (std::uint32_t i = begin + threadIdx.x; i < end; i += kBlock) {
        const std::uint32_t symbol = symbols[i];
        atomicAdd(&histogram.characters[character_bin(symbol)], 1);
        if (i < 2) continue;
        atomicAdd(&histogram.trigrams[trigram_bin(symbols[i - 2], symbols[i - 1], symbol)], 1);
    }
}

__device__ void clear(Histogram& histogram) {
    for (unsigned bin = threadIdx.x; bin < kBins; bin += kBlock) bin_of(histogram, bin) = 0;
}

/// The classes of a document from its bins, kClassCount threads.
__device__ void store_classes(const Histogram& histogram, bool excess, std::uint16_t* classes,
                              std::size_t stride) {
    constexpr std::uint32_t most = UINT16_MAX;
    std::uint32_t sum = 0;
    for (unsigned bin = threadIdx.x; bin < kCharacterBins; bin += kClassCount)
        sum += histogram.characters[bin];
    classes[threadIdx.x * stride] = static_cast<std::uint16_t>(excess ? most : min(sum, most));
}

/// By a block. A count stops at the largest value of its type, and the rest counts as excess.
__device__ void store_features(const Histogram& histogram, FeatureCounts& counts,
                               std::uint16_t* classes, std::size_t stride) {
    __shared__ std::uint32_t excess[2];
    if (threadIdx.x < 2) excess[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < kCharacterBins; bin += kBlock) {
        const std::uint32_t count = histogram.characters[bin];
        const std::uint32_t kept = min(count, std::uint32_t{FeatureCounts::most_characters});
        counts.characters[bin] = static_cast<std::uint16_t>(kept);
        if (count > kept) atomicAdd(&excess[0], count - kept);
    }
    for (unsigned bin = threadIdx.x; bin < kTrigramBins; bin += kBlock) {
        const std::uint32_t count = histogram.trigrams[bin];
        const std::uint32_t kept = min(count, std::uint32_t{DocumentFeatures::most_trigrams});
        counts.trigrams[bin] = static_cast<std::uint8_t>(kept);
        if (count > kept) atomicAdd(&excess[1], count - kept);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        counts.character_excess = excess[0];
        counts.trigram_excess = excess[1];
    }
    if (threadIdx.x < kClassCount) store_classes(histogram, excess[0] > 0, classes, stride);
}

/// A block a document of up to kPart symbols.
template <class Source>
__global__ void __launch_bounds__(kBlock)
    count_documents(Source source, const CountTask* tasks, FeatureCounts* counts,
                    std::uint16_t* classes, std::size_t stride) {
    __shared__ Histogram histogram;
    const CountTask task = tasks[blockIdx.x];
    clear(histogram);
    __syncthreads();
    const Symbols symbols = source[task.document];
    count_part(symbols, 0, symbols.count, histogram);
    __syncthreads();
    store_features(histogram, counts[task.column], classes + task.column, stride);
}

/// A block a part of one long document.
template <class Source>
__global__ void __launch_bounds__(kBlock)
    count_parts(Source source, std::uint32_t document, Histogram* total) {
    __shared__ Histogram histogram;
    clear(histogram);
    __syncthreads();
    const Symbols symbols = source[document];
    const std::uint32_t begin = blockIdx.x * kPart;
    if (begin < symbols.count)
        count_part(symbols, begin, min(symbols.count - begin, kPart) + begin, histogram);
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < kBins; bin += kBlock)
        if (const std::uint32_t count = bin_of(histogram, bin); count > 0)
            atomicAdd(&bin_of(*total, bin), count);
}

__global__ void __launch_bounds__(kBlock) store_total(const Histogram* total, FeatureCounts* counts,
                                                      std::uint16_t* classes, std::size_t stride) {
    store_features(*total, *counts, classes, stride);
}

/// Fills one tile.
class Counting {
public:
    Counting(const DeviceDocuments& documents, FeatureCounts* counts, std::uint16_t* classes,
             std::size_t stride, const Execution& execution, cudaStream_t stream)
        : documents_(documents),
          counts_(counts),
          classes_(classes),
          stride_(stride),
          execution_(execution),
          stream_(stream) {}

    /// Computes the features of tasks whose documents are numbered as in `host_documents`.
    template <class Source>
    Status count(Source source, std::span<const CountTask> tasks,
                 std::span<const std::uint64_t> sizes) {
        std::vector<CountTask> short_ones;
        for (std::size_t i = 0; i < tasks.size(); ++i) {
            if (sizes[i] <= kPart) {
                short_ones.push_back(tasks[i]);
                continue;
            }
            GPUTEXT_TRY(count_long(source, tasks[i], sizes[i]));
        }
        DeviceBuffer<CountTask> resident;
        GPUTEXT_TRY(resident.upload(short_ones, stream_));
        // A launch of so many documents takes some 20 ms when all are as long as may be here.
        constexpr std::size_t at_once = 8192;
        for (std::size_t begin = 0; begin < short_ones.size(); begin += at_once) {
            const std::size_t some = std::min(at_once, short_ones.size() - begin);
            count_documents<<<static_cast<unsigned>(some), kBlock, 0, stream_>>>(
                source, resident.data() + begin, counts_, classes_, stride_);
            GPUTEXT_TRY(look());
        }
        return {};
    }

    /// Decodes documents that are not narrow, then counts them.
    Status count_wide(std::span<const CountTask> tasks) {
        std::vector<DecodeTask> decode;
        std::vector<CountTask> places;
        std::vector<std::uint64_t> sizes;
        std::uint64_t bytes = 0, longest = 0;
        for (const CountTask& task : tasks) {
            const Extent extent = documents_.host_extents[task.document];
            places.push_back({static_cast<std::uint32_t>(places.size()), task.column});
            sizes.push_back(extent.size);
            bytes += extent.size;
            longest = std::max(longest, extent.size);
        }
        DeviceBuffer<std::uint32_t> symbols;
        GPUTEXT_TRY(symbols.allocate(bytes, stream_));
        std::uint32_t* next = symbols.data();
        for (const CountTask& task : tasks) {
            const Extent extent = documents_.host_extents[task.document];
            decode.push_back({extent, next});
            next += extent.size;
        }
        DeviceBuffer<DecodeTask> resident;
        GPUTEXT_TRY(resident.upload(decode, stream_));
        GPUTEXT_TRY(decode_documents(documents_, resident.data(),
                                     static_cast<std::uint32_t>(decode.size()), longest, execution_,
                                     stream_));
        return count(DecodedDocuments{resident.data()}, places, sizes);
    }

private:
    template <class Source>
    Status count_long(Source source, CountTask task, std::uint64_t size) {
        DeviceBuffer<Histogram> total;
        GPUTEXT_TRY(total.allocate(1, stream_));
        GPUTEXT_TRY(cuda_status(cudaMemsetAsync(total.data(), 0, sizeof(Histogram), stream_),
                                "counting characters"));
        count_parts<<<static_cast<unsigned>((size + kPart - 1) / kPart), kBlock, 0, stream_>>>(
            source, task.document, total.data());
        store_total<<<1, kBlock, 0, stream_>>>(total.data(), counts_ + task.column,
                                               classes_ + task.column, stride_);
        return look();
    }

    Status look() {
        GPUTEXT_TRY(cuda_status(cudaGetLastError(), "counting characters"));
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "counting characters"));
        return execution_.stop_requested() ? Status::cancelled() : Status();
    }

    const DeviceDocuments& documents_;
    FeatureCounts* counts_;
    std::uint16_t* classes_;
    std::size_t stride_;
    const Execution& execution_;
    cudaStream_t stream_;
};

}  // namespace

Status FeatureTile::compute(const DeviceDocuments& documents, std::span<const std::uint32_t> which,
                            std::span<const std::uint8_t> wide, std::size_t memory_limit,
                            const Execution& execution, cudaStream_t stream) {
    const std::size_t columns = (which.size() + kColumnBlock - 1) / kColumnBlock * kColumnBlock;
    if (columns > stride_) {
        GPUTEXT_TRY(counts_.allocate(columns, stream));
        GPUTEXT_TRY(classes_.allocate(columns * kClassCount, stream));
        stride_ = columns;
    }
    GPUTEXT_TRY(cuda_status(
        cudaMemsetAsync(classes_.data(), 0, classes_.size() * sizeof(std::uint16_t), stream),
        "counting characters"));

    Counting counting(documents, counts_.data(), classes_.data(), stride_, execution, stream);
    std::vector<CountTask> narrow, decoded;
    std::vector<std::uint64_t> sizes;
    std::size_t bytes = 0;
    for (std::uint32_t column = 0; column < which.size(); ++column) {
        const std::uint32_t document = which[column];
        const std::uint64_t size = documents.host_extents[document].size;
        if (wide[document] == 0) {
            narrow.push_back({document, column});
            sizes.push_back(size);
            continue;
        }
        bytes += size * sizeof(std::uint32_t) + sizeof(DecodeTask);
        if (bytes > memory_limit && !decoded.empty()) {
            GPUTEXT_TRY(counting.count_wide(decoded));
            decoded.clear();
            bytes = size * sizeof(std::uint32_t) + sizeof(DecodeTask);
        }
        decoded.push_back({document, column});
    }
    if (!decoded.empty()) GPUTEXT_TRY(counting.count_wide(decoded));
    return counting.count(NarrowDocuments{documents.bytes, documents.extents}, narrow, sizes);
}

}  // namespace gputext::gpu
