#include "kernels/documents/detail/distance_bounds.cuh"

#include <algorithm>

#include "kernels/base/warp.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kWarps = kItemColumns;  // one a text
constexpr unsigned kBlock = kWarps * kWarp;
constexpr int kRows = 128;  // of a strip
constexpr int kParts = kRows / 32;
constexpr int kChunk = 32;  // columns between two looks
/// Longer texts are compared by grams alone.
constexpr std::uint32_t kMostStripText = 1 << 14;
/// Chunks of columns that a warp works through for a text. Pairs that are still in question then
/// are verified, so that no block works longer than tens of milliseconds on an item.
constexpr int kMostChunks = 6144;
/// Unrelated texts lack at least one gram in so many letters, and need at least one edit in so many
/// rows. Where it is fewer, strips exclude a pair late or never.
constexpr int kLettersPerGram = 12;
constexpr int kRowsPerEdit = 4;
/// After so many rows the number of edits tells whether texts are unrelated.
constexpr int kTellingRows = 256;
constexpr int kForetellingRows = 384;
/// Verifying a pair costs about the square of its limit over so many chunks' work.
constexpr long long kLimitSquarePerChunk = 30000;

__device__ inline std::uint64_t now_nanoseconds() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

/// Of each lane, the rows whose letter has this low half, and those whose letter has this high
/// half. Rows that hold a letter are in both.
struct Tables {
    uint4 rows[2][16][kWarp];
};

/// What a warp keeps of its text while it works on strips, for each chunk of columns.
struct Chunk {
    uint2 steps[kWarp];  // along the last strip's lowest row, +1 and -1, first column highest
    std::uint16_t grams[kWarp];  // missing ones taken before this chunk
};

/// The lowest sum of two neighboring values in a chunk, each 8 columns from the next.
struct ChunkValues {
    int end;
    int lowest;  // not above any value from the chunk's begin to its end
};

__device__ inline ChunkValues values_of(int begin, uint2 steps) {
    int before = begin;
    int sum = INT32_MAX;
#pragma unroll
    for (int part = 1; part <= kChunk / 8; ++part) {
        const std::uint32_t mask = part == 4 ? ~0u : ~(~0u >> 8 * part);
        const int here = begin + __popc(steps.x & mask) - __popc(steps.y & mask);
        sum = min(sum, before + here);
        before = here;
    }
    return {before, (sum - 8) >> 1};
}

/// The pair of the warp's text and this lane's document.
struct LanePair {
    int limit;
    int rows;  // letters of the lane's document
};

/// The warps of a block, each with a text, and one group of documents.
class FilterBlock {
public:
    struct Shared {
        Tables tables;
        std::uint32_t item;
    };

    __device__ FilterBlock(Shared& shared, const FilterInput& input, const FoldedView& folded,
                           const FilterOutput& output, Chunk* chunks, std::uint32_t chunk_count)
        : shared_(shared),
          input_(input),
          folded_(folded),
          output_(output),
          chunks_(chunks),
          chunk_count_(chunk_count),
          lane_(threadIdx.x % kWarp),
          warp_(threadIdx.x / kWarp) {}

    __device__ void run(std::uint64_t deadline) {
        const std::uint32_t items = *input_.item_count;
        for (;;) {
            __syncthreads();
            if (threadIdx.x == 0) shared_.item = take_item(items, deadline);
            __syncthreads();
            if (shared_.item == UINT32_MAX) return;
            begin(shared_.item);
            if (folded_.gram != 0) exclude();
            list();
        }
    }

private:
    /// Takes an item only where there is room for the pairs of the items of all blocks.
    __device__ std::uint32_t take_item(std::uint32_t items, std::uint64_t deadline) const {
        const std::uint32_t count = *static_cast<volatile std::uint32_t*>(output_.count);
        if (output_.room - count < gridDim.x * kItemPairs) return UINT32_MAX;
        if (now_nanoseconds() >= deadline) return UINT32_MAX;
        if (*static_cast<volatile std::uint32_t*>(output_.taken) >= items) return UINT32_MAX;
        const std::uint32_t at = atomicAdd(output_.taken, 1);
        // The last ones have the longest texts.
        return at < items ? input_.items[items - 1 - at] : UINT32_MAX;
    }

    __device__ void begin(std::uint32_t item) {
        const TilePlace tile = input_.tiles[item / kTileItems];
        const std::uint32_t in_tile = item % kTileItems;
        const std::uint32_t words_before = in_tile * kItemColumns + warp_;
        text_ = tile.first_column + words_before % kTileColumns;
        const std::uint32_t first = tile.first_row + words_before / kTileColumns * kGroup;
        place_ = first + lane_;
        group_ = first / kGroup;
        const std::uint32_t word = input_.words[std::size_t{item} * kItemColumns + warp_];
        alive_ = (word >> lane_ & 1) != 0;
        near_ = false;
        length_ = word != 0 ? static_cast<int>(input_.lengths[text_]) : 0;
        pair_ = {-1, 0};
        if (!alive_) return;
        pair_.rows = static_cast<int>(input_.lengths[place_]);
        // Rounded up by more than floating point may be off.
        const double most = input_.threshold * (static_cast<double>(length_) + pair_.rows);
        pair_.limit = static_cast<int>(most) + 1;
    }

    __device__ void exclude() {
        const bool folded =
            length_ > 0 && length_ <= static_cast<int>(kMostLetters) && text_ < folded_.places;
        letters_ = folded ? folded_.letters + folded_.begins[text_] : nullptr;
        last_chunk_ = (length_ + kChunk - 1) / kChunk - 1;
        const bool strips = folded && length_ <= static_cast<int>(kMostStripText) &&
                            static_cast<std::uint32_t>(last_chunk_ + 1) < chunk_count_;
        if (folded) look_at_grams(strips);
        look_at_strips(strips);
    }

    // ---- Grams ----

    __device__ static std::uint32_t warp_max(int x) {
        return ~warp_min(~static_cast<std::uint32_t>(x));
    }

    /// Excludes pairs by them; with `keep`, leaves their counts with the chunks.
    __device__ void look_at_grams(bool keep) {
        const int grams = length_ - static_cast<int>(folded_.gram) + 1;
        const unsigned bits = folded_.set_bits[group_];
        const std::uint32_t* set = folded_.sets + folded_.set_begins[group_];
        int taken = 0;
        unsigned covered = 0;  // of the next chunk's places, by the gram that was taken last
        for (int chunk = 0; chunk <= last_chunk_; ++chunk) {
            if (keep) chunks_[chunk].grams[lane_] = static_cast<std::uint16_t>(taken);
            const int place = chunk * kChunk + static_cast<int>(lane_);
            std::uint32_t present = ~0u;
            if (place < grams) present = set[gram_bin(letters_from(place), folded_.gram, bits)];
            take_missing(~transposed(present), taken, covered);
            const int left = (grams - (chunk + 1) * kChunk + static_cast<int>(folded_.gram) - 1) /
                             static_cast<int>(folded_.gram);
            const bool excluded = taken > pair_.limit;
            if (__all_sync(kAllLanes, !alive_ || excluded)) break;
            if (!keep && __all_sync(kAllLanes, !alive_ || taken + max(left, 0) <= pair_.limit))
                break;
        }
        taken_ = taken;
        if (keep) chunks_[last_chunk_ + 1].grams[lane_] = static_cast<std::uint16_t>(taken);
        alive_ = alive_ && taken <= pair_.limit;
        if (alive_ && kLettersPerGram * taken <= length_) finish_lane();
    }

    /// The four letters from a place on, the first one lowest.
    __device__ std::uint32_t letters_from(int place) const {
        const auto* words = reinterpret_cast<const std::uint32_t*>(letters_) + place / 4;
        return __funnelshift_r(words[0], words[1], 8 * (place % 4));
    }

    /// Bit p of lane l becomes bit l of lane p.
    __device__ std::uint32_t transposed(std::uint32_t x) const {
        constexpr std::uint32_t masks[5] = {0x0000ffffu, 0x00ff00ffu, 0x0f0f0f0fu, 0x33333333u,
                                            0x55555555u};
#pragma unroll
        for (int i = 0; i < 5; ++i) {
            const int half = 16 >> i;
            const std::uint32_t other = __shfl_xor_sync(kAllLanes, x, half);
            x = (lane_ & half) == 0 ? (x & masks[i]) | (other & masks[i]) << half
                                    : (x & ~masks[i]) | (other >> half & masks[i]);
        }
        return x;
    }

    /// Takes missing grams from the first one on that do not overlap the one taken before.
    __device__ void take_missing(std::uint32_t missing, int& taken, unsigned& covered) const {
        missing &= ~0u << covered;
        covered = 0;
        while (missing != 0) {
            const unsigned behind = __ffs(static_cast<int>(missing)) - 1 + folded_.gram;
            ++taken;
            covered = behind > kChunk ? behind - kChunk : 0;
            missing = behind >= kChunk ? 0 : missing & ~0u << behind;
        }
    }

    // ---- Strips ----

    __device__ void look_at_strips(bool wanted) {
        first_chunk_ = 0;
        previous_end_ = -1;  // above the first strip every column is one more than that before
        // Above it a value and what remains are above the limit from here on.
        const int last_column = alive_ ? (pair_.limit + length_ - pair_.rows) / 2 : 0;
        last_live_ = min(last_chunk_, static_cast<int>(warp_max(last_column)) / kChunk);
        top_ = 0;
        int chunks = 0;
        for (int strip = 0;; ++strip) {
            const int begin = strip * kRows;
            // A path to the end of a shorter document does not leave the strip.
            if (alive_ && pair_.rows < begin + kRows) finish_lane();
            if (chunks > worth()) finish_lane();
            const bool works = wanted && __any_sync(kAllLanes, alive_);
            if (!__syncthreads_or(works)) break;
            fill_tables(begin);
            if (works) chunks += run_strip(begin);
        }
    }

    /// How many chunks of strips cost as much as verifying the pairs in question: when that is
    /// spent these are left to verification, so that strips at most double its costs.
    __device__ int worth() const {
        const long long limit = static_cast<int>(warp_max(alive_ ? pair_.limit : 0));
        const int pairs = __popc(__ballot_sync(kAllLanes, alive_));
        const long long chunks = pairs * limit * limit / kLimitSquarePerChunk;
        return static_cast<int>(min(chunks, static_cast<long long>(kMostChunks)));
    }

    /// The lane's pair, if it is in question, is not excluded.
    __device__ void finish_lane() {
        near_ |= alive_;
        alive_ = false;
    }

    /// The tables of the group's rows from `begin` on. Each thread fills half a word of its lane's.
    __device__ void fill_tables(int begin) {
        auto* all = &shared_.tables.rows[0][0][0];
        for (unsigned i = threadIdx.x; i < sizeof(Tables) / sizeof(uint4); i += kBlock)
            all[i] = uint4{0, 0, 0, 0};
        __syncthreads();
        const std::uint32_t place = group_ * kGroup + lane_;
        if (place < folded_.places) {
            const auto* letters = reinterpret_cast<const uint4*>(
                folded_.letters + folded_.begins[place] + begin + 16 * warp_);
            // Rows behind a document's end are never looked at, but lie within the letters' padding
            // only if they are near it.
            const bool inside =
                begin + 16 * static_cast<int>(warp_) < static_cast<int>(input_.lengths[place]);
            const uint4 own = inside ? *letters : uint4{0, 0, 0, 0};
            const std::uint32_t words[4] = {own.x, own.y, own.z, own.w};
            auto* halves = reinterpret_cast<std::uint16_t*>(all);
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                const std::uint32_t letter = words[i / 4] >> 8 * (i % 4) & 0xff;
                halves[((letter & 15) * kWarp + lane_) * 8 + warp_] |=
                    static_cast<std::uint16_t>(1u << i);
                halves[((16 + (letter >> 4)) * kWarp + lane_) * 8 + warp_] |=
                    static_cast<std::uint16_t>(1u << i);
            }
        }
        __syncthreads();
    }

    /// What remains at least from columns of the text on: the first `chunk` whole chunks lie
    /// behind.
    __device__ int grams_from(int chunk) const {
        return taken_ - chunks_[chunk].grams[lane_];
    }

    /// The least difference of what remains, between rows from `row` on and columns from `column`
    /// on, `span` of them in all.
    __device__ int least_difference(int row, int column, int rows, int columns) const {
        const int at_first = (length_ - column) - (pair_.rows - row);
        // It falls by one a column, and rises by one a row.
        return max(0, max(at_first - columns, -(at_first + rows)));
    }

    /// Returns how many chunks it took.
    __device__ int run_strip(int begin) {
        LaneRows<kParts / 2> state;
        state.reset();
        int above = top_;          // value in the row above, at the chunk's first border
        int below = top_ + kRows;  // value in the strip's lowest row
        int least = INT32_MAX;     // of the values below
        int first_live = -1, last_live = -1;
        int next_top = 0;
        bool lives = false;
        const int first = first_chunk_;
        int chunk = first;
        for (; chunk <= last_chunk_; ++chunk) {
            const uint2 from_above =
                chunk <= previous_end_ ? chunks_[chunk].steps[lane_] : uint2{~0u, 0};
            uint2 steps{0, 0};
            run_chunk(state, chunk, from_above, steps);
            chunks_[chunk].steps[lane_] = steps;
            above += __popc(from_above.x) - __popc(from_above.y);

            const int remains = grams_from(chunk + 1);
            const ChunkValues values = values_of(below, steps);
            const int difference = least_difference(begin + kRows, chunk * kChunk, 0, kChunk);
            const bool live = alive_ && values.lowest + max(remains, difference) <= pair_.limit;
            least = min(least, values.lowest);
            lives |= live;
            if (__any_sync(kAllLanes, live)) {
                if (first_live < 0) {
                    first_live = chunk;
                    next_top = below;
                }
                last_live = chunk;
            }
            below = values.end;
            if (chunk >= last_live_ &&
                !__any_sync(kAllLanes, alive_ && column_lives(state, above, begin, chunk, remains)))
                break;
        }
        previous_end_ = min(chunk, last_chunk_);
        first_chunk_ = first_live;
        last_live_ = last_live;
        top_ = next_top;
        alive_ = alive_ && lives;
        if (alive_ && looks_near(least, begin + kRows)) finish_lane();
        return previous_end_ + 1 - first;
    }

    /// Whether a pair is not worth more strips, by the least value after some rows: either it is
    /// not that of unrelated texts, or it foretells a distance of half of the limit.
    __device__ bool looks_near(int least, int rows) const {
        if (rows >= kTellingRows && kRowsPerEdit * least <= rows) return true;
        return rows >= kForetellingRows &&
               2ll * least * pair_.rows <= static_cast<long long>(pair_.limit) * rows;
    }

    /// A chunk's columns.
    __device__ void run_chunk(LaneRows<kParts / 2>& state, int chunk, uint2 from_above,
                              uint2& steps) const {
        const auto* text = reinterpret_cast<const uint4*>(letters_ + chunk * kChunk);
        const auto* tables = reinterpret_cast<const char*>(&shared_.tables.rows[0][0][lane_]);
        constexpr unsigned digit_bytes = 16 * kWarp * sizeof(uint4);
#pragma unroll 1
        for (int quarter = 0; quarter < 2; ++quarter) {
            const uint4 letters = text[quarter];
            const std::uint32_t words[4] = {letters.x, letters.y, letters.z, letters.w};
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                constexpr unsigned row = kWarp * sizeof(uint4);  // 512 bytes
                const std::uint32_t word = words[i / 4];
                const int shift = 8 * (i % 4);
                const unsigned low =
                    (shift < 9 ? word << (9 - shift) : word >> (shift - 9)) & 15 * row;
                const unsigned high =
                    (shift + 4 < 9 ? word << (5 - shift) : word >> (shift - 5)) & 15 * row;
                const uint4 a = *reinterpret_cast<const uint4*>(tables + low);
                const uint4 b = *reinterpret_cast<const uint4*>(tables + digit_bytes + high);
                std::uint32_t equal[kParts] = {a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w};
                step(state, equal, from_above, steps);
            }
        }
    }

    /// One column: the highest bits of `from_above` are its, and go.
    __device__ static void step(LaneRows<kParts / 2>& state, std::uint32_t (&equal)[kParts],
                                uint2& from_above, uint2& steps) {
        std::uint32_t out_up, out_down;
        state.advance(equal, from_above.x, from_above.y >> 31, out_up, out_down);
        from_above.x <<= 1;
        from_above.y <<= 1;
        steps.x = __funnelshift_l(out_up, steps.x, 1);
        steps.y = __funnelshift_l(out_down, steps.y, 1);
    }

    /// Whether a cell of the column behind a chunk is live. `above` is the value above the strip.
    __device__ bool column_lives(const LaneRows<kParts / 2>& state, int above, int begin, int chunk,
                                 int remains) const {
        bool any = false;
        int before = above;
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            const int here = before + __popc(state.up[part]) - __popc(state.down[part]);
            const int lowest = (before + here - 32) >> 1;
            const int difference = least_difference(begin + 32 * part, (chunk + 1) * kChunk, 32, 0);
            any |= lowest + max(remains, difference) <= pair_.limit;
            before = here;
        }
        return any;
    }

    // ---- Pairs ----

    __device__ void list() {
        const bool mine = alive_ || near_;
        const unsigned found = __ballot_sync(kAllLanes, mine);
        if (found == 0) return;
        const std::uint32_t at = take_places(output_.count, found, lane_);
        if (!mine) return;
        const std::uint32_t a = input_.documents[place_];
        const std::uint32_t b = input_.documents[text_];
        output_.pairs[at] = {min(a, b), max(a, b)};
    }

    Shared& shared_;
    const FilterInput& input_;
    const FoldedView& folded_;
    const FilterOutput& output_;
    Chunk* chunks_;
    std::uint32_t chunk_count_;
    unsigned lane_, warp_;

    // State of the warp.
    std::uint32_t text_ = 0, group_ = 0;  // a place; a group of places
    const std::uint8_t* letters_ = nullptr;
    int length_ = 0;                       // of the text
    int last_chunk_ = 0;                   // of the text
    int first_chunk_ = 0, last_live_ = 0;  // that a path may come through from the strip above
    int previous_end_ = 0;                 // last chunk of the strip above

    // State of the lane.
    std::uint32_t place_ = 0;
    LanePair pair_{};
    bool alive_ = false;  // in question
    bool near_ = false;   // not to be excluded
    int taken_ = 0;       // missing grams
    int top_ = 0;         // value above the strip where it begins
};

__global__ void __launch_bounds__(kBlock, 4)
    filter_distances(FilterInput input, FoldedView folded, FilterOutput output, Chunk* chunks,
                     std::uint32_t chunk_count, std::uint64_t nanoseconds) {
    __shared__ FilterBlock::Shared shared;
    const std::size_t warp = std::size_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
    FilterBlock(shared, input, folded, output, chunks + warp * chunk_count, chunk_count)
        .run(now_nanoseconds() + nanoseconds);
}

/// A thread an item, up to `count`.
__global__ void find_items(const std::uint32_t* words, std::uint32_t count, std::uint32_t* items,
                           std::uint32_t* item_count) {
    const std::uint32_t item = blockIdx.x * kBlock + threadIdx.x;
    bool any = false;
    if (item < count) {
        const auto* own = reinterpret_cast<const uint4*>(words + std::size_t{item} * kItemColumns);
        const uint4 a = own[0], b = own[1];
        any = (a.x | a.y | a.z | a.w | b.x | b.y | b.z | b.w) != 0;
    }
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned found = __ballot_sync(kAllLanes, any);
    if (found == 0) return;
    const std::uint32_t at = take_places(item_count, found, lane);
    if (any) items[at] = item;
}

}  // namespace

Status launch_item_search(const std::uint32_t* words, std::uint32_t tiles, std::uint32_t* items,
                          std::uint32_t* item_count, cudaStream_t stream) {
    const std::uint32_t count = tiles * kTileItems;
    find_items<<<(count + kBlock - 1) / kBlock, kBlock, 0, stream>>>(words, count, items,
                                                                     item_count);
    return cuda_status(cudaGetLastError(), "comparing documents");
}

Status DistanceFilter::plan(std::uint32_t longest_text, std::size_t memory_limit,
                            std::uint32_t room, cudaStream_t stream) {
    int device = 0, processors = 0, blocks = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, filter_distances, kBlock, 0);
    if (error != cudaSuccess) return cuda_status(error, "planning the comparison of documents");
    // Half of the room stays for the pairs of blocks that have an item already.
    blocks_ = std::clamp(static_cast<unsigned>(processors * blocks), 1u,
                         std::max(1u, room / kItemPairs / 2));
    // One more for the end of the last one.
    const std::uint32_t chunks = (std::min(longest_text, kMostStripText) + kChunk - 1) / kChunk + 2;
    const std::size_t block_bytes = std::size_t{kWarps} * chunks * sizeof(Chunk);
    const std::size_t affordable = memory_limit / block_bytes;
    chunks_ = affordable == 0 ? 0 : chunks;
    if (affordable == 0) return {};
    blocks_ = static_cast<unsigned>(std::min<std::size_t>(blocks_, affordable));
    return scratch_.allocate(blocks_ * block_bytes, stream);
}

Status DistanceFilter::launch(const FilterInput& input, const FoldedView* folded,
                              const FilterOutput& output, std::uint64_t nanoseconds,
                              cudaStream_t stream) {
    const FoldedView none{};
    filter_distances<<<blocks_, kBlock, 0, stream>>>(
        input, folded != nullptr ? *folded : none, output,
        reinterpret_cast<Chunk*>(scratch_.data()), chunks_, nanoseconds);
    return cuda_status(cudaGetLastError(), "comparing documents");
}

}  // namespace gputext::gpu
