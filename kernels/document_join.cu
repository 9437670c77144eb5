#include "kernels/document_join.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "cpp/edit_distance.hpp"
#include "cpp/radix_sort.hpp"
#include "kernels/band_columns.cuh"
#include "kernels/device_buffer.hpp"
#include "kernels/document_features.cuh"
#include "kernels/wide_characters.cuh"

namespace gputext {
namespace {

using namespace device;

constexpr unsigned kRowBlock = 64;
constexpr unsigned kThreads = kColumnBlock / 2;  // two columns each
constexpr unsigned kRowsAtOnce = 16;             // between two looks at the hits
constexpr unsigned kBlockHits = kRowsAtOnce * kColumnBlock;
/// Up to this length no count is cut off, and the sums of classes fit 16 bits.
constexpr std::uint32_t kShortLength = DocumentFeatures::most_characters;
constexpr std::size_t kMostTiles = std::size_t{1} << 17;  // a launch: some milliseconds
constexpr std::size_t kLeastHits = std::size_t{kRowBlock} * kColumnBlock;
constexpr std::size_t kMostHits = std::size_t{1} << 23;

/// Of the documents in order of length; rows and columns are ranges of places in that order.
struct Order {
    const std::uint32_t* documents;
    const std::uint32_t* lengths;
    const std::uint32_t* ends;  // first place of a document too long to be near
    double threshold;
};

struct Range {
    std::uint32_t begin, end;
    std::uint32_t size() const { return end - begin; }
};

/// One side of a tile's comparison.
struct Side {
    const FeatureCounts* counts;
    const std::uint16_t* classes;
    std::size_t stride;
    Range range;
};

/// Tiles are numbered row block by row block: those of row block i begin at begins[i], with the
/// column block first_columns[i].
struct TileNumbers {
    const std::uint64_t* begins;
    const std::uint32_t* first_columns;
    std::uint32_t row_blocks;
};

/// A row and a column that may be near, counted from their ranges' begins.
struct Hit {
    std::uint32_t row, column;
};

struct Hits {
    Hit* hits;
    std::uint32_t* count;
    std::uint32_t room;
};

/// Not more than a near pair's characters in common and `allowance` of the shorter one make, for
/// the longer one. Rounded down by more than floating point may be off.
__device__ std::uint32_t wanted(std::uint32_t longer, double threshold) {
    const double share = longer * (1 - threshold);
    return share < 3 ? 0 : static_cast<std::uint32_t>(share) - 3;
}
__device__ std::uint32_t allowance(std::uint32_t shorter, double threshold) {
    return static_cast<std::uint32_t>(shorter * threshold) + 1;
}

/// Sums of what two columns share with a row by classes, 16 bits each.
__device__ std::uint32_t shared_classes(const std::uint32_t* row,
                                        const std::uint32_t (&columns)[kClassCount]) {
    std::uint32_t sum = 0;
#pragma unroll
    for (unsigned k = 0; k < kClassCount; ++k) sum += __vminu2(row[k], columns[k]);
    return sum;
}

/// The same with 32 bits, of the lower or the upper column.
__device__ std::uint32_t shared_classes(const std::uint32_t* row,
                                        const std::uint32_t (&columns)[kClassCount],
                                        unsigned shift) {
    std::uint32_t sum = 0;
#pragma unroll
    for (unsigned k = 0; k < kClassCount; ++k)
        sum += min(row[k] & 0xffff, columns[k] >> shift & 0xffff);
    return sum;
}

/// A block looks at kRowBlock rows and kColumnBlock columns.
class ClassBlock {
public:
    struct Shared {
        std::uint32_t rows[kRowBlock][kClassCount];  // twice in each word
        std::uint32_t allowances[kRowBlock];
        std::uint32_t hits[kBlockHits];
        std::uint32_t hit_count;
        std::uint32_t begin;  // of the block's hits among all
    };

    __device__ ClassBlock(Shared& shared, const Order& order, const Side& rows, const Side& columns,
                          std::uint32_t first_row, std::uint32_t first_column, const Hits& hits)
        : shared_(shared),
          order_(order),
          rows_(rows),
          columns_(columns),
          first_row_(first_row),
          first_column_(first_column),
          column_(first_column + 2 * threadIdx.x),
          hits_(hits) {}

    __device__ void run() {
        load_rows();
        load_columns();
        const std::uint32_t longest =
            min(columns_.range.end, columns_.range.begin + first_column_ + kColumnBlock) - 1;
        const bool all_short = order_.lengths[longest] <= kShortLength;
        const std::uint32_t rows = min(kRowBlock, rows_.range.end - rows_.range.begin - first_row_);
        for (std::uint32_t row = 0; row < rows; row += kRowsAtOnce) {
            __syncthreads();
            if (threadIdx.x == 0) shared_.hit_count = 0;
            __syncthreads();
            const std::uint32_t end = min(rows, row + kRowsAtOnce);
            if (all_short)
                look_short(row, end);
            else
                look_long(row, end);
            __syncthreads();
            hand_over();
        }
    }

private:
    __device__ void load_rows() {
        for (unsigned i = threadIdx.x; i < kRowBlock * kClassCount; i += kThreads) {
            const unsigned k = i / kRowBlock;
            const unsigned row = i % kRowBlock;
            const bool inside = first_row_ + row < rows_.stride;
            const std::uint32_t count =
                inside ? rows_.classes[k * rows_.stride + first_row_ + row] : 0;
            shared_.rows[row][k] = count | count << 16;
        }
        for (unsigned row = threadIdx.x; row < kRowBlock; row += kThreads) {
            const std::uint32_t place = rows_.range.begin + first_row_ + row;
            shared_.allowances[row] =
                place < rows_.range.end ? allowance(order_.lengths[place], order_.threshold) : 0;
        }
    }

    __device__ void load_columns() {
#pragma unroll
        for (unsigned k = 0; k < kClassCount; ++k)
            classes_[k] = *reinterpret_cast<const std::uint32_t*>(columns_.classes +
                                                                  k * columns_.stride + column_);
        for (unsigned i = 0; i < 2; ++i) {
            const std::uint32_t place = columns_.range.begin + column_ + i;
            wanted_[i] = place < columns_.range.end
                             ? wanted(order_.lengths[place], order_.threshold)
                             : UINT16_MAX;
        }
    }

    __device__ void look_short(std::uint32_t row, std::uint32_t end) {
        const std::uint32_t both_wanted = wanted_[0] | wanted_[1] << 16;
        for (; row < end; ++row) {
            const std::uint32_t allowed = shared_.allowances[row];
            const std::uint32_t sums =
                shared_classes(shared_.rows[row], classes_) + (allowed | allowed << 16);
            const std::uint32_t missing = __vminu2(sums, both_wanted) ^ both_wanted;
            if ((missing & 0xffff) == 0) add(row, 0);
            if (missing >> 16 == 0) add(row, 1);
        }
    }

    __device__ void look_long(std::uint32_t row, std::uint32_t end) {
        for (; row < end; ++row) {
            for (unsigned i = 0; i < 2; ++i) {
                const std::uint32_t sum = shared_classes(shared_.rows[row], classes_, 16 * i);
                // Classes may be cut off at the largest value.
                if (sum >= UINT16_MAX || sum + shared_.allowances[row] >= wanted_[i]) add(row, i);
            }
        }
    }

    __device__ void add(std::uint32_t row, unsigned i) {
        const std::uint32_t place = rows_.range.begin + first_row_ + row;
        const std::uint32_t other = columns_.range.begin + column_ + i;
        if (other <= place || other >= min(order_.ends[place], columns_.range.end)) return;
        const std::uint32_t at = atomicAdd(&shared_.hit_count, 1);
        shared_.hits[at] = row * kColumnBlock + (column_ + i - first_column_);
    }

    /// What does not fit is counted all the same.
    __device__ void hand_over() {
        const std::uint32_t count = shared_.hit_count;
        if (count == 0) return;
        if (threadIdx.x == 0) shared_.begin = atomicAdd(hits_.count, count);
        __syncthreads();
        for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) {
            const std::uint32_t at = shared_.begin + i;
            if (at >= hits_.room) break;
            const std::uint32_t hit = shared_.hits[i];
            hits_.hits[at] = {first_row_ + hit / kColumnBlock, first_column_ + hit % kColumnBlock};
        }
    }

    Shared& shared_;
    const Order& order_;
    const Side& rows_;
    const Side& columns_;
    std::uint32_t first_row_, first_column_, column_;
    const Hits& hits_;
    std::uint32_t classes_[kClassCount];
    std::uint32_t wanted_[2];
};

__global__ void __launch_bounds__(kThreads)
    compare_classes(Order order, Side rows, Side columns, TileNumbers numbers,
                    std::uint64_t first_tile, Hits hits) {
    __shared__ ClassBlock::Shared shared;
    const std::uint64_t tile = first_tile + blockIdx.x;
    std::uint32_t low = 0;
    std::uint32_t high = numbers.row_blocks;
    while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        (numbers.begins[middle] <= tile ? low : high) = middle;
    }
    const auto column_block =
        numbers.first_columns[low] + static_cast<std::uint32_t>(tile - numbers.begins[low]);
    ClassBlock(shared, order, rows, columns, low * kRowBlock, column_block * kColumnBlock, hits)
        .run();
}

__device__ std::uint32_t sum_of_halves(std::uint32_t x) {
    return (x & 0xffff) + (x >> 16);
}

/// By a warp: cpp's may_be_within.
__device__ bool share_enough(const FeatureCounts& a, const FeatureCounts& b, std::uint64_t longer,
                             std::uint64_t edits) {
    const unsigned lane = threadIdx.x % kWarp;
    const uint4 x = reinterpret_cast<const uint4*>(a.characters)[lane];
    const uint4 y = reinterpret_cast<const uint4*>(b.characters)[lane];
    std::uint32_t characters =
        sum_of_halves(__vminu2(x.x, y.x)) + sum_of_halves(__vminu2(x.y, y.y)) +
        sum_of_halves(__vminu2(x.z, y.z)) + sum_of_halves(__vminu2(x.w, y.w));
    characters = warp_sum(characters);
    const std::uint64_t shared_characters =
        std::uint64_t{characters} + min(a.character_excess, b.character_excess);
    if (shared_characters + edits < longer) return false;

    std::uint32_t trigrams = 0;
    const auto* u = reinterpret_cast<const uint4*>(a.trigrams);
    const auto* v = reinterpret_cast<const uint4*>(b.trigrams);
#pragma unroll 4
    for (unsigned i = lane; i < sizeof a.trigrams / sizeof(uint4); i += kWarp) {
        const uint4 p = u[i];
        const uint4 q = v[i];
        trigrams = __dp4a(__vminu4(p.x, q.x), 0x01010101u, trigrams);
        trigrams = __dp4a(__vminu4(p.y, q.y), 0x01010101u, trigrams);
        trigrams = __dp4a(__vminu4(p.z, q.z), 0x01010101u, trigrams);
        trigrams = __dp4a(__vminu4(p.w, q.w), 0x01010101u, trigrams);
    }
    trigrams = warp_sum(trigrams);
    return std::uint64_t{trigrams} + min(a.trigram_excess, b.trigram_excess) + 3 * edits + 2 >=
           longer;
}

constexpr unsigned kRefineThreads = 128;

/// A warp a hit.
__global__ void __launch_bounds__(kRefineThreads)
    refine_hits(Order order, Side rows, Side columns, const Hit* hits, std::uint32_t count,
                IndexPair* pairs, std::uint32_t* pair_count) {
    const std::uint32_t i = (blockIdx.x * kRefineThreads + threadIdx.x) / kWarp;
    if (i >= count) return;
    const Hit hit = hits[i];
    const std::uint32_t row = rows.range.begin + hit.row;
    const std::uint32_t column = columns.range.begin + hit.column;
    const std::uint64_t longer = order.lengths[column];
    const auto edits = static_cast<std::uint64_t>(
                           order.threshold * static_cast<double>(order.lengths[row] + longer)) +
                       1;
    if (!share_enough(rows.counts[hit.row], columns.counts[hit.column], longer, edits)) return;
    if (threadIdx.x % kWarp != 0) return;
    const std::uint32_t a = order.documents[row];
    const std::uint32_t b = order.documents[column];
    pairs[atomicAdd(pair_count, 1)] = {min(a, b), max(a, b)};
}

class DeviceJoin {
public:
    DeviceJoin(double threshold, const DeviceDocuments& documents,
               std::span<const std::uint32_t> lengths, std::size_t memory_limit,
               Execution& execution, cudaStream_t stream)
        : threshold_(threshold),
          documents_(documents),
          lengths_(lengths),
          memory_limit_(memory_limit),
          execution_(execution),
          stream_(stream),
          found_(1) {}

    Status run(std::vector<IndexPair>& candidates) {
        for (const auto step : {&DeviceJoin::sort_by_length, &DeviceJoin::allocate})
            if (Status status = (this->*step)(); !status.ok()) return status;
        if (Status status = find_wide_documents(documents_, execution_, stream_, wide_);
            !status.ok())
            return status;
        const auto all = static_cast<std::uint32_t>(order_.size());
        const std::size_t tile = documents_a_tile();
        for (std::size_t begin = 0; begin < all; begin += tile) {
            const Range rows = range(begin, begin + tile, all);
            if (Status status = compute(rows, row_features_); !status.ok()) return status;
            if (Status status = join(rows, row_features_, rows); !status.ok()) return status;
            const std::uint32_t last = ends_[rows.end - 1];
            for (std::size_t from = rows.end; from < last; from += tile) {
                const Range columns = range(from, from + tile, last);
                if (Status status = compute(columns, column_features_); !status.ok()) return status;
                if (Status status = join(rows, column_features_, columns); !status.ok())
                    return status;
            }
        }
        return found_.take(candidates, execution_.stop());
    }

    /// Beside the features: order, lengths and ends, and a row block's numbers.
    static constexpr std::size_t kOrderBytes = 4 * sizeof(std::uint32_t);
    static constexpr std::size_t kHitBytes = sizeof(Hit) + sizeof(IndexPair);

private:
    static Range range(std::size_t begin, std::size_t end, std::uint32_t all) {
        return {static_cast<std::uint32_t>(begin),
                static_cast<std::uint32_t>(std::min<std::size_t>(end, all))};
    }

    Status sort_by_length() {
        std::vector<std::uint64_t> keys(lengths_.size());
        for (std::size_t i = 0; i < keys.size(); ++i)
            keys[i] = std::uint64_t{lengths_[i]} << 32 | i;
        if (!radix_sort(keys, execution_.stop())) return Status::cancelled();
        order_.resize(keys.size());
        sorted_lengths_.resize(keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i) {
            order_[i] = static_cast<std::uint32_t>(keys[i]);
            sorted_lengths_[i] = static_cast<std::uint32_t>(keys[i] >> 32);
        }
        return find_ends();
    }

    /// Whether a document is too long changes once along the order, and later for longer rows.
    Status find_ends() {
        ends_.resize(order_.size());
        std::uint32_t end = 0;
        for (std::uint32_t row = 0; row < ends_.size(); ++row) {
            if (row % 65536 == 0 && execution_.stop_requested()) return Status::cancelled();
            end = std::max(end, row + 1);
            while (end < ends_.size() && comparable(sorted_lengths_[row], sorted_lengths_[end]))
                ++end;
            ends_[row] = end;
        }
        return {};
    }

    bool comparable(std::size_t shorter, std::size_t longer) const {
        return longer - shorter <= most_edits_below(threshold_, longer + shorter);
    }

    Status allocate() {
        if (Status status = device_order_.upload(order_, stream_); !status.ok()) return status;
        if (Status status = device_lengths_.upload(sorted_lengths_, stream_); !status.ok())
            return status;
        if (Status status = device_ends_.upload(ends_, stream_); !status.ok()) return status;
        const std::size_t room = std::clamp(memory_limit_ / 8 / kHitBytes, kLeastHits, kMostHits);
        if (Status status = hits_.allocate(room, stream_); !status.ok()) return status;
        if (Status status = pairs_.allocate(room, stream_); !status.ok()) return status;
        return counts_.allocate(2, stream_);
    }

    /// The whole order where the features of all documents fit.
    std::size_t documents_a_tile() const {
        const std::size_t used = order_.size() * kOrderBytes + hits_.size() * kHitBytes;
        const std::size_t left = memory_limit_ - std::min(memory_limit_, used);
        const std::size_t affordable =
            (left - left / 8) / FeatureTile::kDocumentBytes / kColumnBlock * kColumnBlock;
        if (affordable >= order_.size()) return order_.size();
        return std::max<std::size_t>(kColumnBlock, affordable / 2 / kColumnBlock * kColumnBlock);
    }

    Status compute(Range range, FeatureTile& features) {
        execution_.begin_phase("counting characters", range.size());
        return features.compute(documents_, std::span(order_).subspan(range.begin, range.size()),
                                wide_, memory_limit_ / 8, execution_, stream_);
    }

    static Side side(const FeatureTile& features, Range range) {
        return {features.counts(), features.classes(), features.stride(), range};
    }

    Status join(Range rows, const FeatureTile& column_features, Range columns) {
        number_tiles(rows, columns);
        if (Status status = device_begins_.upload(begins_, stream_); !status.ok()) return status;
        if (Status status = device_first_columns_.upload(first_columns_, stream_); !status.ok())
            return status;
        const Side row_side = side(row_features_, rows);
        const Side column_side = side(column_features, columns);
        const std::uint64_t all = begins_.back();
        execution_.begin_phase("comparing counts", all);
        std::size_t some = kMostTiles;
        for (std::uint64_t tile = 0; tile < all;) {
            const auto tiles = static_cast<unsigned>(std::min<std::uint64_t>(some, all - tile));
            std::uint32_t count = 0;
            if (Status status = look_at_tiles(row_side, column_side, tile, tiles, count);
                !status.ok())
                return status;
            if (count > hits_.size()) {
                // One tile's hits always fit.
                some = std::max<std::size_t>(1, std::min<std::size_t>(tiles, some) / 2);
                continue;
            }
            if (Status status = refine(row_side, column_side, count); !status.ok()) return status;
            execution_.advance(tiles);
            tile += tiles;
            if (count < hits_.size() / 4) some = std::min(kMostTiles, 2 * some);
        }
        return {};
    }

    void number_tiles(Range rows, Range columns) {
        begins_.assign(1, 0);
        first_columns_.clear();
        for (std::uint32_t row = rows.begin; row < rows.end; row += kRowBlock) {
            const std::uint32_t last_row = std::min(rows.end, row + kRowBlock) - 1;
            const std::uint32_t first = std::max(columns.begin, row + 1) - columns.begin;
            const std::uint32_t end = std::min(columns.end, ends_[last_row]);
            const std::uint32_t last = std::max(end, columns.begin) - columns.begin;
            const std::uint32_t first_block = first / kColumnBlock;
            const std::uint32_t end_block = (last + kColumnBlock - 1) / kColumnBlock;
            first_columns_.push_back(first_block);
            begins_.push_back(begins_.back() + (last > first ? end_block - first_block : 0));
        }
    }

    Order order() const {
        return {device_order_.data(), device_lengths_.data(), device_ends_.data(), threshold_};
    }

    Status look_at_tiles(const Side& rows, const Side& columns, std::uint64_t tile, unsigned tiles,
                         std::uint32_t& count) {
        const cudaError_t error =
            cudaMemsetAsync(counts_.data(), 0, 2 * sizeof(std::uint32_t), stream_);
        if (error != cudaSuccess) return cuda_status(error, "comparing counts");
        const TileNumbers numbers{device_begins_.data(), device_first_columns_.data(),
                                  static_cast<std::uint32_t>(first_columns_.size())};
        compare_classes<<<tiles, kThreads, 0, stream_>>>(
            order(), rows, columns, numbers, tile,
            Hits{hits_.data(), counts_.data(), static_cast<std::uint32_t>(hits_.size())});
        return download(&count, counts_.data(), 1);
    }

    Status refine(const Side& rows, const Side& columns, std::uint32_t count) {
        if (count == 0) return {};
        constexpr unsigned warps = kRefineThreads / kWarp;
        refine_hits<<<(count + warps - 1) / warps, kRefineThreads, 0, stream_>>>(
            order(), rows, columns, hits_.data(), count, pairs_.data(), counts_.data() + 1);
        std::uint32_t pairs = 0;
        if (Status status = download(&pairs, counts_.data() + 1, 1); !status.ok()) return status;
        host_pairs_.resize(pairs);
        if (Status status = download(host_pairs_.data(), pairs_.data(), pairs); !status.ok())
            return status;
        for (const IndexPair& pair : host_pairs_) found_.add(0, pair.first, pair.second);
        return {};
    }

    /// Waits for the stream and looks at the wish to stop.
    template <class T>
    Status download(T* to, const T* from, std::size_t count) {
        if (Status status = cuda_status(cudaGetLastError(), "comparing counts"); !status.ok())
            return status;
        const cudaError_t error =
            cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream_);
        if (error != cudaSuccess) return cuda_status(error, "comparing counts");
        if (Status status = cuda_status(cudaStreamSynchronize(stream_), "comparing counts");
            !status.ok())
            return status;
        return execution_.stop_requested() ? Status::cancelled() : Status();
    }

    double threshold_;
    const DeviceDocuments& documents_;
    std::span<const std::uint32_t> lengths_;
    std::size_t memory_limit_;
    Execution& execution_;
    cudaStream_t stream_;

    std::vector<std::uint32_t> order_, sorted_lengths_, ends_;  // by place
    std::vector<std::uint8_t> wide_;                            // by document
    std::vector<std::uint64_t> begins_;                         // by row block, and the end
    std::vector<std::uint32_t> first_columns_;                  // by row block
    std::vector<IndexPair> host_pairs_;
    PairLists found_;

    FeatureTile row_features_, column_features_;
    DeviceBuffer<std::uint32_t> device_order_, device_lengths_, device_ends_;
    DeviceBuffer<std::uint64_t> device_begins_;
    DeviceBuffer<std::uint32_t> device_first_columns_;
    DeviceBuffer<Hit> hits_;
    DeviceBuffer<IndexPair> pairs_;
    DeviceBuffer<std::uint32_t> counts_;  // of hits, of pairs
};

}  // namespace

std::size_t least_document_join_bytes(const DeviceDocuments& documents) {
    std::uint64_t longest = 0;
    for (const Extent& extent : documents.host_extents) longest = std::max(longest, extent.size);
    const std::size_t decoded = documents.characters.all_single() ? 0 : longest * 4 + 64;
    const std::size_t fixed = documents.size() * DeviceJoin::kOrderBytes +
                              kLeastHits * DeviceJoin::kHitBytes +
                              2 * kColumnBlock * FeatureTile::kDocumentBytes;
    return 8 * std::max(decoded, std::size_t{1} << 10) + fixed / 7 * 8;
}

std::size_t document_join_bytes(const DeviceDocuments& documents) {
    const std::size_t features = (documents.size() + kColumnBlock) * FeatureTile::kDocumentBytes;
    const std::size_t order = documents.size() * DeviceJoin::kOrderBytes;
    const std::size_t all = (features + order) / 3 * 4;
    return std::max(all + kLeastHits * DeviceJoin::kHitBytes, least_document_join_bytes(documents));
}

Status join_documents(double threshold, const DeviceDocuments& documents,
                      std::span<const std::uint32_t> lengths, std::size_t memory_limit,
                      Execution& execution, cudaStream_t stream,
                      std::vector<IndexPair>& candidates) try {
    candidates.clear();
    if (!any_rate_below(threshold) || documents.size() == 0) return {};
    if (memory_limit < least_document_join_bytes(documents))
        return {ErrorCode::invalid_argument,
                "too little device memory allowed to join these documents"};
    return DeviceJoin(threshold, documents, lengths, memory_limit, execution, stream)
        .run(candidates);
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

}  // namespace gputext
