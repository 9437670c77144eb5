#include "kernels/documents/detail/exact_join.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cpp/base/radix_sort.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "kernels/base/binary_search.cuh"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/documents/detail/band_columns.cuh"
#include "kernels/documents/detail/count_features.cuh"
#include "kernels/documents/detail/distance_bounds.cuh"
#include "kernels/documents/detail/folded_documents.cuh"
#include "kernels/documents/detail/wide_characters.cuh"

namespace gputext {
namespace {

using namespace gpu;

constexpr unsigned kThreads = kColumnBlock / 2;  // two columns each
static_assert(kColumnBlock == kTileColumns && kColumnBlock % kGroup == 0);
/// Up to this length no count is cut off, and the sums of classes fit 16 bits.
constexpr std::uint32_t kShortLength = FeatureCounts::most_characters;
constexpr std::size_t kLeastTiles = 16;  // a launch
constexpr std::size_t kMostTiles = std::size_t{1} << 17;
constexpr std::size_t kLeastRoom = std::size_t{1} << 12;  // for pairs
constexpr std::size_t kMostRoom = std::size_t{1} << 20;
constexpr std::size_t kBatch = std::size_t{1} << 20;  // pairs that are handed on together, at least
constexpr std::uint64_t kLaunchTime = 15000000;       // nanoseconds
/// From here on unrelated documents share more trigrams than the filter asks for.
constexpr double kTrigramThreshold = 0.1;
/// What comparing the features of a pair costs, in steps through a text's grams.
constexpr std::uint64_t kPairCost = 256;
/// Up to so many pairs a document are near ones, as a rule, when their features are alike.
constexpr std::uint64_t kFewRefined = 4;

/// Documents in order of length; rows and columns are ranges of places in that order. With columns
/// of their own the rows have the first places and the columns those behind them, each of them in
/// order of length.
struct Order {
    const std::uint32_t* documents;
    const std::uint32_t* lengths;
    const std::uint32_t* begins;  // first place of a document that is longer, or as long and later
    const std::uint32_t* ends;    // first place of a document too long to be near
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

/// Which pairs of the tiles of a launch are in question, and how many.
struct TileWords {
    TilePlace* places;
    std::uint32_t* words;
    std::uint32_t* pairs;
    std::uint32_t* any;  // words that are not 0
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

/// As above with 32 bits, for the lower or the upper column.
__device__ std::uint32_t shared_classes(const std::uint32_t* row,
                                        const std::uint32_t (&columns)[kClassCount],
                                        unsigned shift) {
    std::uint32_t sum = 0;
#pragma unroll
    for (unsigned k = 0; k < kClassCount; ++k)
        sum += min(row[k] & 0xffff, columns[k] >> shift & 0xffff);
    return sum;
}

/// A block looks at a tile, a thread at two columns of it.
class ClassBlock {
public:
    struct Shared {
        std::uint32_t rows[kTileRows][kClassCount];  // twice in each word
        std::uint32_t allowances[kTileRows];
        std::uint32_t begins[kTileRows], ends[kTileRows];
    };

    __device__ ClassBlock(Shared& shared, const Order& order, const Side& rows, const Side& columns,
                          std::uint32_t first_row, std::uint32_t first_column)
        : shared_(shared),
          order_(order),
          rows_(rows),
          columns_(columns),
          first_row_(first_row),
          first_column_(first_column),
          column_(first_column + 2 * threadIdx.x) {}

    __device__ void run(const TileWords& tiles) {
        load_rows();
        load_columns();
        __syncthreads();
        const std::uint32_t longest =
            min(columns_.range.end, columns_.range.begin + first_column_ + kColumnBlock) - 1;
        const bool all_short = order_.lengths[longest] <= kShortLength;
        const std::uint64_t possible[2] = {possible_rows(0), possible_rows(1)};
        std::uint32_t* words = tiles.words + std::size_t{blockIdx.x} * kTileWords + 2 * threadIdx.x;
        std::uint32_t pairs = 0, any = 0;
        for (unsigned group = 0; group < kTileGroups; ++group) {
            uint2 found = all_short ? look_short(group * kGroup) : look_long(group * kGroup);
            found.x &= static_cast<std::uint32_t>(possible[0] >> group * kGroup);
            found.y &= static_cast<std::uint32_t>(possible[1] >> group * kGroup);
            *reinterpret_cast<uint2*>(words + group * kTileColumns) = found;
            pairs += __popc(found.x) + __popc(found.y);
            any += (found.x != 0) + (found.y != 0);
        }
        pairs = warp_sum(pairs);
        any = warp_sum(any);
        if (threadIdx.x % kWarp == 0 && any > 0) {
            atomicAdd(tiles.pairs, pairs);
            atomicAdd(tiles.any, any);
        }
        if (threadIdx.x == 0)
            tiles.places[blockIdx.x] = {rows_.range.begin + first_row_,
                                        columns_.range.begin + first_column_};
    }

private:
    __device__ void load_rows() {
        for (unsigned i = threadIdx.x; i < kTileRows * kClassCount; i += kThreads) {
            const unsigned k = i / kTileRows;
            const unsigned row = i % kTileRows;
            const bool inside = first_row_ + row < rows_.stride;
            const std::uint32_t count =
                inside ? rows_.classes[k * rows_.stride + first_row_ + row] : 0;
            shared_.rows[row][k] = count | count << 16;
        }
        for (unsigned row = threadIdx.x; row < kTileRows; row += kThreads) {
            const std::uint32_t place = rows_.range.begin + first_row_ + row;
            const bool inside = place < rows_.range.end;
            shared_.allowances[row] =
                inside ? allowance(order_.lengths[place], order_.threshold) : 0;
            shared_.begins[row] = inside ? order_.begins[place] : 0;
            shared_.ends[row] = inside ? order_.ends[place] : 0;
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

    /// Bit by bit the rows before a column whose lengths allow its length: those from some row up
    /// to some other one, since begins and ends ascend.
    __device__ std::uint64_t possible_rows(unsigned i) const {
        const std::uint32_t place = columns_.range.begin + column_ + i;
        const std::uint32_t first = rows_.range.begin + first_row_;
        if (place >= columns_.range.end) return 0;
        const std::uint32_t rows =
            partition_point(0u, min(kTileRows, rows_.range.end - first),
                            [&](std::uint32_t row) { return shared_.begins[row] <= place; });
        if (rows == 0) return 0;
        const std::uint32_t begin = partition_point(
            0u, rows, [&](std::uint32_t row) { return shared_.ends[row] <= place; });
        const std::uint64_t below = rows == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rows) - 1;
        return begin == 64 ? 0 : below >> begin << begin;
    }

    __device__ uint2 look_short(std::uint32_t first) const {
        const std::uint32_t both_wanted = wanted_[0] | wanted_[1] << 16;
        uint2 found{0, 0};
        for (std::uint32_t row = 0; row < kGroup; ++row) {
            const std::uint32_t allowed = shared_.allowances[first + row];
            const std::uint32_t sums =
                shared_classes(shared_.rows[first + row], classes_) + (allowed | allowed << 16);
            const std::uint32_t missing = __vminu2(sums, both_wanted) ^ both_wanted;
            if ((missing & 0xffff) == 0) found.x |= 1u << row;
            if (missing >> 16 == 0) found.y |= 1u << row;
        }
        return found;
    }

    __device__ uint2 look_long(std::uint32_t first) const {
        return {look_long(first, 0), look_long(first, 1)};
    }

    __device__ std::uint32_t look_long(std::uint32_t first, unsigned i) const {
        std::uint32_t found = 0;
        for (std::uint32_t row = 0; row < kGroup; ++row) {
            const std::uint32_t sum = shared_classes(shared_.rows[first + row], classes_, 16 * i);
            // Classes may be cut off at the largest value.
            if (sum >= UINT16_MAX || sum + shared_.allowances[first + row] >= wanted_[i])
                found |= 1u << row;
        }
        return found;
    }

    Shared& shared_;
    const Order& order_;
    const Side& rows_;
    const Side& columns_;
    std::uint32_t first_row_, first_column_, column_;
    std::uint32_t classes_[kClassCount];
    std::uint32_t wanted_[2];
};

__global__ void __launch_bounds__(kThreads)
    compare_classes(Order order, Side rows, Side columns, TileNumbers numbers,
                    std::uint64_t first_tile, TileWords tiles) {
    __shared__ ClassBlock::Shared shared;
    const std::uint64_t tile = first_tile + blockIdx.x;
    const std::uint32_t row_block = part_with(numbers.begins, numbers.row_blocks, tile);
    const auto column_block = numbers.first_columns[row_block] +
                              static_cast<std::uint32_t>(tile - numbers.begins[row_block]);
    ClassBlock(shared, order, rows, columns, row_block * kTileRows, column_block * kColumnBlock)
        .run(tiles);
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

/// A warp looks at the pairs of 32 columns and a group of rows, and keeps those that share enough.
__global__ void __launch_bounds__(kRefineThreads)
    refine_words(Order order, Side rows, Side columns, TileWords tiles, std::uint32_t count,
                 std::uint32_t* left_in_question) {
    const std::uint32_t i = (blockIdx.x * kRefineThreads + threadIdx.x) / kWarp;
    if (i >= count) return;
    const unsigned lane = threadIdx.x % kWarp;
    std::uint32_t& word = tiles.words[std::size_t{i} * kWarp + lane];
    std::uint32_t own = word;
    if (__ballot_sync(kAllLanes, own != 0) == 0) return;
    const TilePlace tile = tiles.places[i / (kTileWords / kWarp)];
    const std::uint32_t in_tile = i % (kTileWords / kWarp) * kWarp;
    const std::uint32_t first_row = tile.first_row + in_tile / kTileColumns * kGroup;
    const std::uint32_t first_column = tile.first_column + in_tile % kTileColumns;
    for (unsigned left = __ballot_sync(kAllLanes, own != 0); left != 0; left &= left - 1) {
        const unsigned at = __ffs(static_cast<int>(left)) - 1;
        const std::uint32_t column = first_column + at;
        const std::uint64_t longer = order.lengths[column];
        std::uint32_t kept = 0;
        for (std::uint32_t bits = __shfl_sync(kAllLanes, own, at); bits != 0; bits &= bits - 1) {
            const std::uint32_t row = first_row + __ffs(static_cast<int>(bits)) - 1;
            const auto edits =
                static_cast<std::uint64_t>(order.threshold *
                                           static_cast<double>(order.lengths[row] + longer)) +
                1;
            if (share_enough(rows.counts[row - rows.range.begin],
                             columns.counts[column - columns.range.begin], longer, edits))
                kept |= bits & (~bits + 1);
        }
        if (lane == at) own = kept;
    }
    word = own;
    const std::uint32_t pairs = warp_sum(__popc(own));
    if (lane == 0 && pairs > 0) atomicAdd(left_in_question, pairs);
}

class DeviceJoin {
public:
    DeviceJoin(double threshold, const DeviceDocuments& documents,
               std::span<const std::uint32_t> lengths, std::size_t memory_limit,
               Execution& execution, cudaStream_t stream, const TakeCandidates& take,
               std::span<const std::uint8_t> rows, std::span<const std::uint8_t> columns)
        : threshold_(threshold),
          documents_(documents),
          lengths_(lengths),
          memory_limit_(memory_limit),
          execution_(execution),
          stream_(stream),
          take_(take),
          rows_(rows),
          columns_(columns) {}

    Status run() {
        GPUTEXT_TRY(sort_by_length());
        if (row_places_.size() == 0 || column_places_.size() == 0) return {};
        for (const auto step : {&DeviceJoin::allocate, &DeviceJoin::plan_folding,
                                &DeviceJoin::join_all, &DeviceJoin::hand_on})
            GPUTEXT_TRY((this->*step)());
        return {};
    }

    /// Beside the features: order, lengths, begins and ends, and a row block's numbers.
    static constexpr std::size_t kOrderBytes = 5 * sizeof(std::uint32_t);
    static constexpr std::size_t kTileBytes =
        kTileWords * sizeof(std::uint32_t) + kTileItems * sizeof(std::uint32_t) + sizeof(TilePlace);
    static constexpr std::size_t kLeastBytes =
        kLeastTiles * kTileBytes + kLeastRoom * sizeof(IndexPair);

private:
    static Range range(std::size_t begin, std::size_t end, std::uint32_t all) {
        return {static_cast<std::uint32_t>(begin),
                static_cast<std::uint32_t>(std::min<std::size_t>(end, all))};
    }

    bool has_own_columns() const { return !columns_.empty(); }

    Status sort_by_length() {
        if (!has_own_columns()) {
            GPUTEXT_TRY(append_sorted({}, row_places_));
            column_places_ = row_places_;
        } else {
            GPUTEXT_TRY(append_sorted(rows_, row_places_));
            // Tiles of rows begin at a multiple of their size, and columns are rows, too.
            while (order_.size() % kColumnBlock != 0) {
                order_.push_back(order_.front());
                sorted_lengths_.push_back(0);
            }
            GPUTEXT_TRY(append_sorted(columns_, column_places_));
        }
        begins_.resize(order_.size());
        ends_.resize(order_.size());
        GPUTEXT_TRY(find_ends(row_places_, column_places_));
        return has_own_columns() ? find_ends(column_places_, row_places_) : Status();
    }

    /// The documents that have 1, or all without such a list.
    Status append_sorted(std::span<const std::uint8_t> wanted, Range& places) {
        std::vector<std::uint64_t> keys;
        for (std::size_t i = 0; i < lengths_.size(); ++i)
            if (wanted.empty() || wanted[i] != 0)
                keys.push_back(std::uint64_t{lengths_[i]} << 32 | i);
        if (!radix_sort(keys, execution_.stop())) return Status::cancelled();
        places.begin = static_cast<std::uint32_t>(order_.size());
        for (const std::uint64_t key : keys) {
            order_.push_back(static_cast<std::uint32_t>(key));
            sorted_lengths_.push_back(static_cast<std::uint32_t>(key >> 32));
            sum_of_lengths_ += sorted_lengths_.back();
            longest_ = std::max(longest_, sorted_lengths_.back());
        }
        places.end = static_cast<std::uint32_t>(order_.size());
        return {};
    }

    /// Whether a document is too long changes once along the order, and later for longer rows.
    Status find_ends(Range rows, Range columns) {
        const auto before = [&](std::uint32_t a, std::uint32_t b) {
            return std::pair(sorted_lengths_[a], order_[a]) <
                   std::pair(sorted_lengths_[b], order_[b]);
        };
        std::uint32_t begin = columns.begin, end = columns.begin;
        for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
            if (row % 65536 == 0 && execution_.stop_requested()) return Status::cancelled();
            while (begin < columns.end && !before(row, begin)) ++begin;
            end = std::max(end, begin);
            while (end < columns.end && comparable(sorted_lengths_[row], sorted_lengths_[end]))
                ++end;
            begins_[row] = begin;
            ends_[row] = end;
        }
        return {};
    }

    bool comparable(std::size_t shorter, std::size_t longer) const {
        return longer - shorter <= most_edits_within(threshold_, longer + shorter);
    }

    Status allocate() {
        GPUTEXT_TRY(device_order_.upload(order_, stream_));
        GPUTEXT_TRY(device_lengths_.upload(sorted_lengths_, stream_));
        GPUTEXT_TRY(device_first_places_.upload(begins_, stream_));
        GPUTEXT_TRY(device_ends_.upload(ends_, stream_));
        const std::size_t spare =
            bytes_left(kLeastBytes + 2 * kColumnBlock * FeatureTile::kDocumentBytes);
        const std::size_t tiles = std::min(kMostTiles, kLeastTiles + spare / 8 / kTileBytes);
        room_ = static_cast<std::uint32_t>(
            std::min(kMostRoom, kLeastRoom + spare / 8 / sizeof(IndexPair)));
        GPUTEXT_TRY(tile_places_.allocate(tiles, stream_));
        GPUTEXT_TRY(words_.allocate(tiles * kTileWords, stream_));
        GPUTEXT_TRY(items_.allocate(tiles * kTileItems, stream_));
        GPUTEXT_TRY(pairs_.allocate(room_, stream_));
        GPUTEXT_TRY(counts_.allocate(kCounts, stream_));
        return find_wide_documents(documents_, execution_, stream_, wide_);
    }

    /// What may still be allocated beside `more` bytes, and an eighth of all for decoding.
    std::size_t bytes_left(std::size_t more) const {
        const std::size_t used = order_.size() * kOrderBytes + tile_places_.size() * kTileBytes +
                                 pairs_.size() * sizeof(IndexPair) + folded_bytes_ +
                                 memory_limit_ / 8 + more;
        return memory_limit_ - std::min(memory_limit_, used);
    }

    /// Whether the memory suffices for folded documents: without, more pairs are in question.
    Status plan_folding() {
        const std::size_t spare = bytes_left(2 * kColumnBlock * FeatureTile::kDocumentBytes);
        const std::size_t needed = DeviceFoldedDocuments::bytes_needed(sorted_lengths_);
        scratch_ = std::min(spare / 8, kMostScratch);
        may_fold_ = needed <= spare / 3;
        if (may_fold_) folded_bytes_ = needed + scratch_;
        return filter_.plan(longest_, 0, room_, stream_);
    }

    /// When they are needed first.
    Status fold() {
        folded_already_ = true;
        // A text has at most one missing gram in so many letters as a gram has.
        const unsigned gram = 8 * threshold_ < 1 ? 4 : 3;
        GPUTEXT_TRY(folded_.build(documents_, order_, sorted_lengths_, wide_, gram,
                                  memory_limit_ / 8, execution_, stream_));
        return filter_.plan(longest_, scratch_, room_, stream_);
    }

    Status join_all() {
        GPUTEXT_TRY(join_all(row_places_));
        return has_own_columns() ? join_all(column_places_) : Status();
    }

    /// These rows with the columns behind them in order of length.
    Status join_all(Range all) {
        const std::size_t tile = documents_a_tile();
        for (std::size_t begin = all.begin; begin < all.end; begin += tile) {
            const Range rows = range(begin, begin + tile, all.end);
            GPUTEXT_TRY(compute(rows, row_features_));
            if (!has_own_columns()) GPUTEXT_TRY(join(rows, row_features_, rows));
            const std::uint32_t last = ends_[rows.end - 1];
            for (std::size_t from = has_own_columns() ? begins_[rows.begin] : rows.end; from < last;
                 from += tile) {
                const Range columns = range(from, from + tile, last);
                GPUTEXT_TRY(compute(columns, column_features_));
                GPUTEXT_TRY(join(rows, column_features_, columns));
            }
        }
        return {};
    }

    /// The whole order where the features of all documents fit.
    std::size_t documents_a_tile() const {
        const std::size_t affordable =
            bytes_left(0) / FeatureTile::kDocumentBytes / kColumnBlock * kColumnBlock;
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
        GPUTEXT_TRY(device_tile_begins_.upload(tile_begins_, stream_));
        GPUTEXT_TRY(device_first_columns_.upload(first_columns_, stream_));
        const Side row_side = side(row_features_, rows);
        const Side column_side = side(column_features, columns);
        const std::uint64_t all = tile_begins_.back();
        execution_.begin_phase(kComparing, all);
        for (std::uint64_t tile = 0; tile < all;) {
            const auto tiles =
                static_cast<unsigned>(std::min<std::uint64_t>(tile_places_.size(), all - tile));
            GPUTEXT_TRY(look_at_tiles(row_side, column_side, tile, tiles));
            tile += tiles;
            GPUTEXT_TRY(filter(tile, all));
            execution_.advance(tiles);
        }
        return {};
    }

    void number_tiles(Range rows, Range columns) {
        tile_begins_.assign(1, 0);
        first_columns_.clear();
        for (std::uint32_t row = rows.begin; row < rows.end; row += kTileRows) {
            const std::uint32_t last_row = std::min(rows.end, row + kTileRows) - 1;
            const std::uint32_t first = std::max(columns.begin, begins_[row]) - columns.begin;
            const std::uint32_t end = std::min(columns.end, ends_[last_row]);
            const std::uint32_t last = std::max(end, columns.begin) - columns.begin;
            const std::uint32_t first_block = first / kColumnBlock;
            const std::uint32_t end_block = (last + kColumnBlock - 1) / kColumnBlock;
            first_columns_.push_back(first_block);
            const bool wanted = last > first && has_rows(row, last_row + 1);
            tile_begins_.push_back(tile_begins_.back() + (wanted ? end_block - first_block : 0));
        }
    }

    /// Whether a document at one of these places is a row.
    bool has_rows(std::uint32_t begin, std::uint32_t end) const {
        return rows_.empty() || has_own_columns() ||
               std::any_of(order_.begin() + begin, order_.begin() + end,
                           [&](std::uint32_t i) { return rows_[i] != 0; });
    }

    /// Row blocks may have rows that are not wanted, too.
    void drop_other_rows() {
        if (rows_.empty() || has_own_columns()) return;
        std::erase_if(found_, [&](const IndexPair& pair) {
            const bool second_is_shorter = lengths_[pair.second] < lengths_[pair.first];
            return rows_[second_is_shorter ? pair.second : pair.first] == 0;
        });
    }

    Order order() const {
        return {device_order_.data(), device_lengths_.data(), device_first_places_.data(),
                device_ends_.data(), threshold_};
    }

    /// Leaves the numbers of the words in question in items_.
    Status look_at_tiles(const Side& rows, const Side& columns, std::uint64_t tile,
                         unsigned tiles) {
        GPUTEXT_TRY(cuda_status(
            cudaMemsetAsync(counts_.data(), 0, kCounts * sizeof(std::uint32_t), stream_),
            kComparing));
        const TileNumbers numbers{device_tile_begins_.data(), device_first_columns_.data(),
                                  static_cast<std::uint32_t>(first_columns_.size())};
        const TileWords words{tile_places_.data(), words_.data(), counts_.data() + kPairs,
                              counts_.data() + kAny};
        compare_classes<<<tiles, kThreads, 0, stream_>>>(order(), rows, columns, numbers, tile,
                                                         words);
        GPUTEXT_TRY(look());
        lists_all_ = !may_fold_;
        if (compares_features()) {
            const std::uint32_t count = tiles * (kTileWords / kWarp);
            constexpr unsigned warps = kRefineThreads / kWarp;
            refine_words<<<(count + warps - 1) / warps, kRefineThreads, 0, stream_>>>(
                order(), rows, columns, words, count, counts_.data() + kRefined);
            GPUTEXT_TRY(look());
            lists_all_ = lists_all_ || seen_[kRefined] < kFewRefined * order_.size();
        }
        if (seen_[kAny] == 0) return {};
        if (!lists_all_ && !folded_already_) GPUTEXT_TRY(fold());
        return launch_item_search(words_.data(), tiles, items_.data(), counts_.data() + kItems,
                                  stream_);
    }

    /// Whether that costs less than looking at the grams of each word's text at once, and may
    /// exclude a pair.
    bool compares_features() const {
        if (seen_[kAny] == 0) return false;
        if (!may_fold_) return true;
        const std::uint64_t length = sum_of_lengths_ / order_.size();
        return threshold_ < kTrigramThreshold && seen_[kPairs] * kPairCost < seen_[kAny] * length;
    }

    /// Filters the items of the tiles up to `tile` of `all`, and takes what they leave.
    Status filter(std::uint64_t tile, std::uint64_t all) {
        if (seen_[kAny] == 0) return {};
        const FilterInput input{device_order_.data(),   device_lengths_.data(), threshold_,
                                tile_places_.data(),    words_.data(),          items_.data(),
                                counts_.data() + kItems};
        const FilterOutput output{pairs_.data(), room_, counts_.data() + kFound,
                                  counts_.data() + kTaken};
        const FoldedView folded = folded_.view();
        do {
            cudaMemsetAsync(output.count, 0, sizeof *output.count, stream_);
            GPUTEXT_TRY(filter_.launch(input, lists_all_ ? nullptr : &folded, output, kLaunchTime,
                                       stream_));
            GPUTEXT_TRY(look());
            GPUTEXT_TRY(fetch_pairs(tile, all));
        } while (seen_[kTaken] < seen_[kItems]);
        return {};
    }

    Status fetch_pairs(std::uint64_t tile, std::uint64_t all) {
        const std::size_t before = found_.size();
        found_.resize(before + seen_[kFound]);
        GPUTEXT_TRY(
            download(pairs_.data(), found_.data() + before, seen_[kFound], stream_, kComparing));
        if (found_.size() < kBatch) return {};
        GPUTEXT_TRY(hand_on());
        execution_.begin_phase(kComparing, all);
        execution_.advance(tile);
        return {};
    }

    /// In ascending order, so that near pairs need not be sorted when they come at once.
    Status hand_on() {
        drop_other_rows();
        if (found_.empty()) return {};
        std::vector<std::uint64_t> keys(found_.size());
        for (std::size_t i = 0; i < keys.size(); ++i)
            keys[i] = std::uint64_t{found_[i].first} << 32 | found_[i].second;
        if (!radix_sort(keys, execution_.stop())) return Status::cancelled();
        for (std::size_t i = 0; i < keys.size(); ++i)
            found_[i] = {static_cast<std::uint32_t>(keys[i] >> 32),
                         static_cast<std::uint32_t>(keys[i])};
        const Status status = take_(found_);
        found_.clear();
        return status;
    }

    /// Waits for the stream and looks at the counters and the wish to stop.
    Status look() {
        GPUTEXT_TRY(cuda_status(cudaGetLastError(), kComparing));
        GPUTEXT_TRY(download(counts_.data(), seen_.data(), kCounts, stream_, kComparing));
        return execution_.stop_requested() ? Status::cancelled() : Status();
    }

    static constexpr const char* kComparing = "comparing documents";
    /// For as many warps as an H200 runs.
    static constexpr std::size_t kMostScratch = std::size_t{1} << 30;
    /// What counts_ counts: pairs and words in question, pairs whose features leave them there,
    /// items, items taken, pairs found.
    enum Count : unsigned { kPairs, kAny, kRefined, kItems, kTaken, kFound, kCounts };

    double threshold_;
    const DeviceDocuments& documents_;
    std::span<const std::uint32_t> lengths_;
    std::size_t memory_limit_;
    Execution& execution_;
    cudaStream_t stream_;
    const TakeCandidates& take_;
    std::span<const std::uint8_t> rows_, columns_;  // by document; or none

    std::vector<std::uint32_t> order_, sorted_lengths_, begins_, ends_;  // by place, as in Order
    Range row_places_{0, 0}, column_places_{0, 0};
    std::uint64_t sum_of_lengths_ = 0;
    std::uint32_t longest_ = 0;
    std::vector<std::uint8_t> wide_;             // by document
    std::vector<std::uint64_t> tile_begins_;     // by row block, and the end
    std::vector<std::uint32_t> first_columns_;   // by row block
    std::vector<IndexPair> found_;               // not handed on yet
    std::array<std::uint32_t, kCounts> seen_{};  // of counts_
    std::uint32_t room_ = 0;                     // for pairs
    bool may_fold_ = false;
    bool folded_already_ = false;
    bool lists_all_ = false;  // pairs in question of this launch: they need no other filter
    std::size_t folded_bytes_ = 0, scratch_ = 0;

    FeatureTile row_features_, column_features_;
    DeviceFoldedDocuments folded_;
    DistanceFilter filter_;
    DeviceBuffer<std::uint32_t> device_order_, device_lengths_, device_first_places_, device_ends_;
    DeviceBuffer<std::uint64_t> device_tile_begins_;
    DeviceBuffer<std::uint32_t> device_first_columns_;
    DeviceBuffer<TilePlace> tile_places_;
    DeviceBuffer<std::uint32_t> words_, items_;
    DeviceBuffer<IndexPair> pairs_;
    DeviceBuffer<std::uint32_t> counts_;
};

}  // namespace

std::size_t least_document_join_bytes(const DeviceDocuments& documents) {
    std::uint64_t longest = 0;
    for (const Extent& extent : documents.host_extents) longest = std::max(longest, extent.size);
    const std::size_t decoded = documents.characters.all_single() ? 0 : longest * 4 + 64;
    const std::size_t fixed = documents.size() * DeviceJoin::kOrderBytes + DeviceJoin::kLeastBytes +
                              2 * kColumnBlock * FeatureTile::kDocumentBytes;
    return 8 * std::max(decoded, std::size_t{1} << 10) + fixed / 7 * 8;
}

Status join_documents(double threshold, const DeviceDocuments& documents,
                      std::span<const std::uint32_t> lengths, std::size_t memory_limit,
                      Execution& execution, cudaStream_t stream, const TakeCandidates& take,
                      std::span<const std::uint8_t> rows,
                      std::span<const std::uint8_t> columns) try {
    if (documents.size() == 0) return {};
    if (memory_limit < least_document_join_bytes(documents))
        return {ErrorCode::invalid_argument,
                "too little device memory allowed to join these documents"};
    return DeviceJoin(threshold, documents, lengths, memory_limit, execution, stream, take, rows,
                      columns)
        .run();
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

}  // namespace gputext
