#include "kernels/documents/detail/signature_hash.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <string>

#include "kernels/base/binary_search.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/base/warp.cuh"

namespace gputext::gpu {

// The polynomial hash of pieces on the device.
//
// As in cpp/documents/ctph.cpp, but that a byte counts from 0 while prefixes are added up; pieces
// add what the 1 of each byte gives, so that bytes outside a document are just zeros.

inline constexpr std::uint32_t kPieceMultiplier = 0x01000193;

__host__ __device__ constexpr std::uint32_t constant_power(std::uint32_t exponent) {
    std::uint32_t power = 1;
    std::uint32_t base = kPieceMultiplier;
    for (; exponent != 0; exponent >>= 1, base *= base)
        if (exponent & 1) power *= base;
    return power;
}

/// Powers of the multiplier, and sums of the powers below, by the bytes of the exponent.
struct PowerTables {
    std::uint32_t powers[4][256];
    std::uint32_t sums[4][256];
};

constexpr PowerTables make_power_tables() {
    PowerTables tables{};
    std::uint32_t base = kPieceMultiplier;
    std::uint32_t sum = 1;  // of the powers below one step
    for (int t = 0; t < 4; ++t) {
        tables.powers[t][0] = 1;
        for (int i = 1; i < 256; ++i) {
            tables.powers[t][i] = tables.powers[t][i - 1] * base;
            tables.sums[t][i] = tables.sums[t][i - 1] * base + sum;
        }
        sum = tables.sums[t][255] * base + sum;
        base *= tables.powers[t][255];
    }
    return tables;
}

static __device__ const PowerTables power_tables = make_power_tables();

__device__ inline std::uint32_t power_of(std::uint32_t exponent) {
    std::uint32_t power = power_tables.powers[0][exponent & 255];
    for (int t = 1; t < 4 && (exponent >>= 8) != 0; ++t)
        power *= power_tables.powers[t][exponent & 255];
    return power;
}

/// Sum of all powers with smaller exponents.
__device__ inline std::uint32_t sum_of_powers(std::uint32_t exponent) {
    std::uint32_t sum = 0;
    for (int t = 3; t >= 0; --t) {
        const std::uint32_t digit = exponent >> 8 * t & 255;
        sum = sum * power_tables.powers[t][digit] + power_tables.sums[t][digit];
    }
    return sum;
}

/// Prefix hashes over the lanes of a warp, each of which hashed `Bytes` bytes: up to and with the
/// lane's own.
template <std::uint32_t Bytes>
__device__ std::uint32_t scan_hashes(std::uint32_t hash, unsigned lane) {
    const auto add = [&](unsigned distance, std::uint32_t power) {
        const std::uint32_t before = __shfl_up_sync(~0u, hash, distance);
        if (lane >= distance) hash += before * power;
    };
    constexpr std::uint32_t powers[] = {constant_power(Bytes), constant_power(2 * Bytes),
                                        constant_power(4 * Bytes), constant_power(8 * Bytes),
                                        constant_power(16 * Bytes)};
    add(1, powers[0]);
    add(2, powers[1]);
    add(4, powers[2]);
    add(8, powers[3]);
    add(16, powers[4]);
    return hash;
}

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kChunk = 32;          // bytes of one lane
constexpr unsigned kStep = 32 * kChunk;  // bytes of a warp
constexpr unsigned kTile = 16 * kStep;   // bytes of one warp's work
constexpr unsigned kTilesPerLaunch = (1u << 30) / kTile;
constexpr unsigned kLevels = Ctph::max_level + 1;
constexpr unsigned kEndLevel = Ctph::max_level;  // of the last byte, which ends a piece everywhere
constexpr std::uint32_t kInSecond = 1u << 31;    // of an end: also one at twice the block size
constexpr std::size_t kMostBatch = 1 << 18;      // documents

/// A batch of documents and all that hashing keeps of them.
struct Batch {
    const std::uint8_t* bytes;
    const Extent* extents;
    const std::uint32_t* first_tiles;  // documents + 1 of them
    std::uint32_t documents;
    std::uint32_t longest;
    std::uint32_t* histograms;  // [document][kLevels]
    std::uint8_t* floors;       // the lowest level that is counted
    std::uint8_t* pending;      // 1: to be counted again from a lower level
    std::uint32_t* counts;      // ends found
    std::uint32_t* ends;        // [document][longest], in no order between tiles
    std::uint32_t* hashes;      // of the tile up to there
    std::uint32_t* sorted_ends;
    std::uint32_t* sorted_hashes;
    std::uint32_t* tile_hashes;  // first of a tile's bytes, later of all tiles before it
    std::uint8_t* levels;
    std::uint16_t* first_lengths;
    std::uint16_t* second_lengths;
    char* letters;
    std::size_t pitch;
};

/// Bytes before the document in its first tile, whose begin is aligned.
__host__ __device__ constexpr unsigned skew_of(const Extent& extent) {
    return static_cast<unsigned>(extent.begin % kChunk);
}

__host__ __device__ constexpr std::uint32_t tiles_of(const Extent& extent) {
    return extent.size == 0
               ? 0
               : static_cast<std::uint32_t>((skew_of(extent) + extent.size + kTile - 1) / kTile);
}

__device__ std::uint32_t ones_of_level(unsigned level) {
    return level >= 32 ? ~0u : (1u << level) - 1;
}

__device__ std::uint32_t document_of_tile(const Batch& batch, std::uint32_t tile) {
    return part_with(batch.first_tiles, batch.documents, tile);
}

/// The bytes of a 32-bit word at `position` of the document that lie inside it.
__device__ std::uint32_t inside(std::uint32_t word, std::int64_t position, std::int64_t size) {
    const int before = static_cast<int>(min(max(-position, std::int64_t{0}), std::int64_t{4}));
    const int valid = static_cast<int>(min(max(size - position, std::int64_t{0}), std::int64_t{4}));
    word &= before == 4 ? 0 : ~0u << 8 * before;
    return valid == 4 ? word : word & ((1u << 8 * valid) - 1);
}

/// Eight bytes up to and with `at`, the document's first being `begin`, zeros before it.
__device__ uint2 window_at(const std::uint8_t* bytes, std::uint64_t begin, std::uint64_t at) {
    const std::uint64_t aligned = at & ~std::uint64_t{3};
    const auto word = [&](std::uint64_t where) {
        return *reinterpret_cast<const std::uint32_t*>(bytes + where);
    };
    const std::uint32_t last = word(aligned);
    const std::uint32_t middle = aligned > begin ? word(aligned - 4) : 0;
    const std::uint32_t first = aligned > begin + 4 ? word(aligned - 8) : 0;
    const unsigned shift = 8 * (static_cast<unsigned>(at % 4) + 1);
    uint2 window = {__funnelshift_rc(first, middle, shift), __funnelshift_rc(middle, last, shift)};
    const std::uint64_t count = at - begin + 1;
    if (count < 4) window.y &= ~0u << 8 * (4 - count);
    if (count < 8) window.x &= count <= 4 ? 0 : ~0u << 8 * (8 - count);
    return window;
}

/// The three sums of the rolling hash (cpp/documents/detail/hash_batches.hpp), carried from byte to
/// byte.
struct RollingHash {
    std::uint32_t sum, weighted, shifted;

    /// After the eight bytes of a window, of which the first does not matter.
    __device__ explicit RollingHash(uint2 window) {
        sum = __dp4a(window.y, 0x01010101u, __dp4a(window.x, 0x01010100u, 0u));
        weighted = __dp4a(window.y, 0x07060504u, __dp4a(window.x, 0x03020100u, 0u));
        shifted = 0;
#pragma unroll
        for (int i = 1; i < 8; ++i)
            shifted = shifted << 5 ^ ((i < 4 ? window.x : window.y) >> 8 * (i % 4) & 255);
    }

    __device__ void add(std::uint32_t byte, std::uint32_t seventh_before) {
        weighted += 7 * byte - sum;
        sum += byte - seventh_before;
        shifted = shifted << 5 ^ byte;
    }

    __device__ std::uint32_t value() const {
        return sum + weighted + shifted;
    }
};

/// One lane's 32 bytes with the eight before them; bytes outside the document are zero.
struct Chunk {
    std::uint32_t words[2 + kChunk / 4];

    __device__ std::uint32_t byte(int i) const { return words[2 + (i >> 2)] >> 8 * (i & 3) & 255; }

    /// `position` of the first byte in the document, which may be negative.
    __device__ void read(const std::uint8_t* bytes, const Extent& extent, std::int64_t position) {
        const auto size = static_cast<std::int64_t>(extent.size);
        const std::uint8_t* at = bytes + (static_cast<std::int64_t>(extent.begin) + position);
        uint4 halves[2] = {};
        uint2 before = {};
        if (position < size) {
            if (position + 16 > 0) halves[0] = *reinterpret_cast<const uint4*>(at);
            if (position + 16 < size) halves[1] = *reinterpret_cast<const uint4*>(at + 16);
            if (position > 0) before = *reinterpret_cast<const uint2*>(at - 8);
        }
        words[0] = before.x, words[1] = before.y;
        words[2] = halves[0].x, words[3] = halves[0].y, words[4] = halves[0].z;
        words[5] = halves[0].w, words[6] = halves[1].x, words[7] = halves[1].y;
        words[8] = halves[1].z, words[9] = halves[1].w;
        if (position >= 8 && position + kChunk <= size) return;
#pragma unroll
        for (int w = 0; w < 2 + static_cast<int>(kChunk) / 4; ++w)
            words[w] = inside(words[w], position + 4 * (w - 2), size);
    }

    /// Bit i: a piece ends with byte i, by the low bits of its hash or as the document ends.
    __device__ std::uint32_t find_ends(unsigned level, std::int64_t position,
                                       std::int64_t size) const {
        if (position >= size) return 0;
        RollingHash hash({words[0], words[1]});
        const std::uint32_t ones = ones_of_level(level);
        std::uint32_t ends = 0;
#pragma unroll
        for (int i = 0; i < static_cast<int>(kChunk); ++i) {
            hash.add(byte(i), byte(i - 7));
            if ((~hash.value() & ones) == 0) ends |= 1u << i;
        }
        if (level > 32) ends = 0;
        if (position < 0) ends &= ~0u << -position;
        if (position + kChunk < size) return ends;
        const int last = static_cast<int>(size - position) - 1;
        return (ends | 1u << last) & ~0u >> (31 - last);
    }
};

/// Level of the hash at a position, or of a document's last byte.
__device__ unsigned level_at(const Batch& batch, const Extent& extent, std::int64_t position) {
    if (position + 1 == static_cast<std::int64_t>(extent.size)) return kEndLevel;
    const RollingHash hash(window_at(batch.bytes, extent.begin, extent.begin + position));
    return static_cast<unsigned>(__ffs(static_cast<int>(~hash.value()))) - 1u & 63u;
}

__global__ void guess_floors(Batch batch) {
    const std::uint32_t document = blockIdx.x * kThreads + threadIdx.x;
    if (document >= batch.documents) return;
    unsigned level = 0;
    while (batch.extents[document].size >> (level + 1) >= 2 * batch.longest) ++level;
    batch.floors[document] = static_cast<std::uint8_t>(level);
    batch.pending[document] = 0;
    batch.counts[document] = 0;
    for (unsigned l = 0; l < kLevels; ++l)
        batch.histograms[document * std::size_t{kLevels} + l] = 0;
}

/// A warp's tile, or none.
struct Tile {
    std::uint32_t number, document;
    Extent extent;
    std::int64_t begin;  // in the document, of the lane's first chunk

    __device__ bool find(const Batch& batch, std::uint32_t first, std::uint32_t end) {
        number = first + blockIdx.x * kWarps + threadIdx.x / 32;
        if (number >= end) return false;
        document = document_of_tile(batch, number);
        extent = batch.extents[document];
        begin = std::int64_t{number - batch.first_tiles[document]} * kTile - skew_of(extent) +
                threadIdx.x % 32 * kChunk;
        return true;
    }
    __device__ std::int64_t size() const { return static_cast<std::int64_t>(extent.size); }
    /// Steps that reach the document, for all lanes alike.
    __device__ unsigned steps() const {
        const std::int64_t rest = size() - (begin - threadIdx.x % 32 * kChunk);
        return static_cast<unsigned>(min((rest + kStep - 1) / kStep, std::int64_t{kTile / kStep}));
    }
};

/// Counts ends by level. In later rounds only of the documents that were counted in vain.
__global__ __launch_bounds__(kThreads) void count_ends(const Batch batch, std::uint32_t first,
                                                       std::uint32_t end, bool again) {
    __shared__ std::uint32_t histograms[kWarps][kLevels];
    Tile tile;
    if (!tile.find(batch, first, end) || (again && batch.pending[tile.document] == 0)) return;
    const unsigned lane = threadIdx.x % 32;
    std::uint32_t* const histogram = histograms[threadIdx.x / 32];
    for (unsigned l = lane; l < kLevels; l += 32) histogram[l] = 0;
    __syncwarp();
    const unsigned floor = batch.floors[tile.document];
    const unsigned steps = tile.steps();
    for (unsigned step = 0; step < steps; ++step) {
        const std::int64_t position = tile.begin + step * std::int64_t{kStep};
        Chunk chunk;
        chunk.read(batch.bytes, tile.extent, position);
        std::uint32_t ends = chunk.find_ends(floor, position, tile.size());
        for (; ends != 0; ends &= ends - 1)
            atomicAdd(&histogram[level_at(batch, tile.extent, position + __ffs(ends) - 1)], 1u);
    }
    __syncwarp();
    for (unsigned l = lane; l < kLevels; l += 32)
        if (histogram[l] != 0)
            atomicAdd(&batch.histograms[tile.document * std::size_t{kLevels} + l], histogram[l]);
}

/// The smallest level with few enough ends; it must be above the floor, or the floor 0.
__global__ void choose_levels(Batch batch, unsigned round) {
    const std::uint32_t document = blockIdx.x * kThreads + threadIdx.x;
    if (document >= batch.documents) return;
    std::uint32_t* const histogram = batch.histograms + document * std::size_t{kLevels};
    const unsigned floor = batch.floors[document];
    unsigned level = kLevels;
    std::uint32_t count = 0;
    while (level > floor && count + histogram[level - 1] <= batch.longest)
        count += histogram[--level];
    const bool pending = level == floor && floor > 0;
    batch.pending[document] = pending;
    batch.levels[document] = static_cast<std::uint8_t>(level);
    if (!pending) return;
    batch.floors[document] = static_cast<std::uint8_t>(round == 0 && floor > 4 ? floor - 4 : 0);
    for (unsigned l = 0; l < kLevels; ++l) histogram[l] = 0;
}

/// Where in its document's list each lane's ends belong; ends of one step follow each other.
__device__ std::uint32_t reserve_slots(const Batch& batch, std::uint32_t document,
                                       std::uint32_t ends) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned own = __popc(ends);
    const unsigned up_to = sum_up_to_lane(own);
    std::uint32_t base = 0;
    if (lane == 31) base = atomicAdd(&batch.counts[document], up_to);
    return __shfl_sync(~0u, base, 31) + up_to - own;
}

/// Lists the ends at the level chosen, with the hash of the tile up to them.
__global__ __launch_bounds__(kThreads) void list_ends(const Batch batch, std::uint32_t first,
                                                      std::uint32_t end) {
    Tile tile;
    if (!tile.find(batch, first, end)) return;
    const unsigned lane = threadIdx.x % 32;
    const unsigned level = batch.levels[tile.document];
    const std::uint32_t lane_power = power_of(kChunk * lane);
    std::uint32_t tile_hash = 0;
    const unsigned steps = tile.steps();
    for (unsigned step = 0; step < steps; ++step) {
        const std::int64_t position = tile.begin + step * std::int64_t{kStep};
        Chunk chunk;
        chunk.read(batch.bytes, tile.extent, position);
        std::uint32_t ends = chunk.find_ends(level, position, tile.size());
        std::uint32_t hash = 0;
        std::uint32_t quarters[3];  // after 8, 16 and 24 bytes
#pragma unroll
        for (int i = 0; i < static_cast<int>(kChunk); ++i) {
            hash = hash * kPieceMultiplier + chunk.byte(i);
            if (i % 8 == 7 && i < 24) quarters[i / 8] = hash;
        }
        const std::uint32_t up_to = scan_hashes<kChunk>(hash, lane);
        const std::uint32_t lanes_before = __shfl_up_sync(~0u, up_to, 1);
        const std::uint32_t before = tile_hash * lane_power + (lane == 0 ? 0 : lanes_before);
        tile_hash = tile_hash * constant_power(kStep) + __shfl_sync(~0u, up_to, 31);
        if (!__any_sync(~0u, ends != 0)) continue;

        std::uint32_t slot = reserve_slots(batch, tile.document, ends);
        for (; ends != 0; ends &= ends - 1, ++slot) {
            const unsigned i = static_cast<unsigned>(__ffs(static_cast<int>(ends))) - 1;
            std::uint32_t piece = i < 8    ? 0
                                  : i < 16 ? quarters[0]
                                  : i < 24 ? quarters[1]
                                           : quarters[2];
            const std::uint8_t* at = batch.bytes + (std::int64_t(tile.extent.begin) + position);
            for (unsigned k = i & ~7u; k <= i; ++k)
                piece = piece * kPieceMultiplier + (position + k >= 0 ? at[k] : 0u);
            const bool in_second = level_at(batch, tile.extent, position + i) > level ||
                                   position + i + 1 == tile.size();
            const std::size_t where = tile.document * std::size_t{batch.longest} + slot;
            batch.ends[where] =
                static_cast<std::uint32_t>(position + i + 1) | (in_second ? kInSecond : 0);
            batch.hashes[where] = before * power_of(i + 1) + piece;
        }
    }
    if (lane == 0) batch.tile_hashes[tile.number] = tile_hash;
}

/// One warp a document of several tiles: hashes of tiles become those of all tiles before, and the
/// ends are sorted.
__global__ void join_tiles(Batch batch) {
    const std::uint32_t document = blockIdx.x * kWarps + threadIdx.x / 32;
    if (document >= batch.documents) return;
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t first = batch.first_tiles[document];
    const std::uint32_t end = batch.first_tiles[document + 1];
    if (end - first < 2) return;
    std::uint32_t carried = 0;
    const std::uint32_t lane_power = power_of(kTile * lane);
    for (std::uint32_t tile = first; tile < end; tile += 32) {
        const std::uint32_t own = tile + lane < end ? batch.tile_hashes[tile + lane] : 0;
        const std::uint32_t up_to = scan_hashes<kTile>(own, lane);
        const std::uint32_t lanes_before = __shfl_up_sync(~0u, up_to, 1);
        if (tile + lane < end)
            batch.tile_hashes[tile + lane] = carried * lane_power + (lane == 0 ? 0 : lanes_before);
        carried = carried * constant_power(32 * kTile) + __shfl_sync(~0u, up_to, 31);
    }
    const std::size_t list = document * std::size_t{batch.longest};
    const std::uint32_t count = batch.counts[document];
    for (std::uint32_t i = lane; i < count; i += 32) {
        const std::uint32_t own = batch.ends[list + i];
        std::uint32_t rank = 0;
        for (std::uint32_t k = 0; k < count; ++k)
            rank += (batch.ends[list + k] & ~kInSecond) < (own & ~kInSecond);
        batch.sorted_ends[list + rank] = own;
        batch.sorted_hashes[list + rank] = batch.hashes[list + i];
    }
}

__device__ char letter_of(std::uint32_t piece_hash) {
    const std::uint32_t value = piece_hash * 0x9e3779b1u >> 26;
    if (value < 26) return static_cast<char>('A' + value);
    if (value < 52) return static_cast<char>('a' + value - 26);
    if (value < 62) return static_cast<char>('0' + value - 52);
    return value == 62 ? '+' : '/';
}

/// A place in a document and the hash of all before it.
struct Prefix {
    std::uint32_t end, hash;

    __device__ char letter_since(const Prefix& begin) const {
        const std::uint32_t size = end - begin.end;
        return letter_of(hash - begin.hash * power_of(size) + sum_of_powers(size));
    }
    __device__ Prefix of_lane(int lane) const {
        return {__shfl_sync(~0u, end, lane), __shfl_sync(~0u, hash, lane)};
    }
};

/// One warp a document: the letters of both parts.
__global__ void write_letters(Batch batch) {
    const std::uint32_t document = blockIdx.x * kWarps + threadIdx.x / 32;
    if (document >= batch.documents) return;
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t first_tile = batch.first_tiles[document];
    const bool sorted = batch.first_tiles[document + 1] - first_tile > 1;
    const std::size_t list = document * std::size_t{batch.longest};
    const std::uint32_t* ends = (sorted ? batch.sorted_ends : batch.ends) + list;
    const std::uint32_t* hashes = (sorted ? batch.sorted_hashes : batch.hashes) + list;
    const unsigned skew = skew_of(batch.extents[document]);
    const std::uint32_t count = batch.counts[document];
    char* const first = batch.letters + document * batch.pitch;
    char* const second = first + count;
    std::uint32_t second_count = 0;
    Prefix last_first = {0, 0};
    Prefix last_second = {0, 0};
    for (std::uint32_t begin = 0; begin < count; begin += 32) {
        const std::uint32_t i = begin + lane;
        Prefix prefix = {0, 0};
        bool in_second = false;
        if (i < count) {
            prefix = {ends[i] & ~kInSecond, hashes[i]};
            in_second = (ends[i] & kInSecond) != 0;
            const std::uint32_t tile = (prefix.end - 1 + skew) / kTile;
            if (tile > 0)
                prefix.hash += batch.tile_hashes[first_tile + tile] *
                               power_of(prefix.end + skew - tile * kTile);
        }
        const Prefix before = prefix.of_lane(static_cast<int>(lane) - 1);
        if (i < count) first[i] = prefix.letter_since(lane == 0 ? last_first : before);
        const unsigned lanes = __ballot_sync(~0u, in_second);
        const unsigned below = lanes & ((1u << lane) - 1);
        const Prefix before_second = prefix.of_lane(31 - __clz(static_cast<int>(below)));
        if (in_second)
            second[second_count + __popc(below)] =
                prefix.letter_since(below == 0 ? last_second : before_second);
        second_count += __popc(lanes);
        last_first = prefix.of_lane(31);
        if (lanes != 0) last_second = prefix.of_lane(31 - __clz(static_cast<int>(lanes)));
    }
    if (lane != 0) return;
    batch.first_lengths[document] = static_cast<std::uint16_t>(count);
    batch.second_lengths[document] = static_cast<std::uint16_t>(second_count);
}

/// What hashing a batch keeps of each document, in bytes, next to 4 a tile.
std::size_t bytes_per_document(std::size_t longest) {
    return sizeof(Extent) + 4 + 4 * kLevels + 1 + 1 + 4 + 4 * 4 * longest;
}

Status too_little(std::size_t documents, std::size_t needed, const DeviceWork& work) {
    return {ErrorCode::out_of_memory,
            "hashing " + std::to_string(documents) + " documents needs " + std::to_string(needed) +
                " bytes of device memory, and may take " + std::to_string(work.bytes)};
}

/// The memory of one batch, and its launches.
class BatchWork {
public:
    Status prepare(std::span<const Extent> extents, std::size_t longest, cudaStream_t stream) {
        const std::size_t size = extents.size();
        documents_ = static_cast<std::uint32_t>(size);
        std::vector<std::uint32_t> tiles(size + 1);
        for (std::size_t i = 0; i < size; ++i) tiles[i + 1] = tiles[i] + tiles_of(extents[i]);
        tile_count_ = tiles.back();
        GPUTEXT_TRY(extents_.upload(extents, stream));
        GPUTEXT_TRY(first_tiles_.upload(tiles, stream));
        GPUTEXT_TRY(histograms_.allocate(size * kLevels, stream));
        GPUTEXT_TRY(floors_.allocate(size, stream));
        GPUTEXT_TRY(pending_.allocate(size, stream));
        GPUTEXT_TRY(counts_.allocate(size, stream));
        for (DeviceBuffer<std::uint32_t>* list : {&ends_, &hashes_, &sorted_ends_, &sorted_hashes_})
            GPUTEXT_TRY(list->allocate(size * longest, stream));
        return tile_hashes_.allocate(std::max(1u, tile_count_), stream);
    }

    Status run(const std::uint8_t* bytes, std::size_t longest, DeviceSignatures& out,
               std::size_t first, Execution& execution, cudaStream_t stream) {
        const std::uint32_t size = documents_;
        const Batch batch = {bytes,
                             extents_.data(),
                             first_tiles_.data(),
                             size,
                             static_cast<std::uint32_t>(longest),
                             histograms_.data(),
                             floors_.data(),
                             pending_.data(),
                             counts_.data(),
                             ends_.data(),
                             hashes_.data(),
                             sorted_ends_.data(),
                             sorted_hashes_.data(),
                             tile_hashes_.data(),
                             out.levels.data() + first,
                             out.first_lengths.data() + first,
                             out.second_lengths.data() + first,
                             out.letters.data() + first * out.pitch,
                             out.pitch};
        const unsigned threads = blocks_for(size, kThreads);
        const unsigned warps = blocks_for(size, kWarps);
        guess_floors<<<threads, kThreads, 0, stream>>>(batch);
        for (const unsigned round : {0u, 1u, 2u}) {
            GPUTEXT_TRY(for_tiles(execution, stream, [&](std::uint32_t begin, std::uint32_t end) {
                count_ends<<<blocks_for(end - begin, kWarps), kThreads, 0, stream>>>(
                    batch, begin, end, round > 0);
            }));
            choose_levels<<<threads, kThreads, 0, stream>>>(batch, round);
        }
        GPUTEXT_TRY(for_tiles(execution, stream, [&](std::uint32_t begin, std::uint32_t end) {
            list_ends<<<blocks_for(end - begin, kWarps), kThreads, 0, stream>>>(batch, begin, end);
        }));
        join_tiles<<<warps, kThreads, 0, stream>>>(batch);
        write_letters<<<warps, kThreads, 0, stream>>>(batch);
        return launched("hashing documents");
    }

private:
    template <class Launch>
    Status for_tiles(Execution& execution, cudaStream_t stream, Launch&& launch) const {
        for (std::uint32_t begin = 0; begin < tile_count_; begin += kTilesPerLaunch) {
            if (execution.stop_requested()) return Status::cancelled();
            // No more than one launch ahead, so that a stop takes effect soon.
            if (begin > 0)
                GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "hashing documents"));
            launch(begin, std::min(tile_count_, begin + kTilesPerLaunch));
            GPUTEXT_TRY(launched("hashing documents"));
        }
        return {};
    }

    std::uint32_t documents_ = 0;
    std::uint32_t tile_count_ = 0;
    DeviceBuffer<Extent> extents_;
    DeviceBuffer<std::uint8_t> floors_, pending_;
    DeviceBuffer<std::uint32_t> first_tiles_, histograms_, counts_, tile_hashes_;
    DeviceBuffer<std::uint32_t> ends_, hashes_, sorted_ends_, sorted_hashes_;
};

}  // namespace

Ctph PackedSignatures::operator[](std::size_t i) const {
    Ctph signature;
    signature.level = levels[i];
    signature.first_length = first_lengths[i];
    signature.letters.assign(&letters[i * pitch], first_lengths[i] + second_lengths[i]);
    return signature;
}

Status DeviceSignatures::allocate(std::size_t documents, std::size_t longest, cudaStream_t stream) {
    pitch = 2 * longest;
    GPUTEXT_TRY(levels.allocate(documents, stream));
    GPUTEXT_TRY(first_lengths.allocate(documents, stream));
    GPUTEXT_TRY(second_lengths.allocate(documents, stream));
    return letters.allocate(documents * pitch, stream);
}

Status DeviceSignatures::download(PackedSignatures& signatures, cudaStream_t stream) const {
    const auto copy = [&](auto& to, const auto& from) {
        to.resize(from.size());
        if (to.empty()) return Status();
        return cuda_status(cudaMemcpyAsync(to.data(), from.data(), to.size() * sizeof to[0],
                                           cudaMemcpyDeviceToHost, stream),
                           "copying signatures from the device");
    };
    signatures.pitch = pitch;
    GPUTEXT_TRY(copy(signatures.levels, levels));
    GPUTEXT_TRY(copy(signatures.first_lengths, first_lengths));
    GPUTEXT_TRY(copy(signatures.second_lengths, second_lengths));
    GPUTEXT_TRY(copy(signatures.letters, letters));
    return cuda_status(cudaStreamSynchronize(stream), "copying signatures from the device");
}

HashBytes hash_bytes(std::size_t documents, std::size_t longest) {
    const std::size_t results = documents * (1 + 2 + 2 + 2 * longest);
    const std::size_t tiles = std::size_t{8} << 20;  // hashes of those of a batch, and slack
    const std::size_t each = bytes_per_document(longest);
    return {results, results + tiles + each,
            results + tiles + each * std::min(documents, kMostBatch)};
}

Status hash_resident(const std::uint8_t* bytes, std::span<const Extent> extents,
                     std::size_t longest, const DeviceWork& work, Execution& execution,
                     DeviceSignatures& signatures, std::size_t first) {
    const HashBytes needed = hash_bytes(extents.size(), longest);
    if (work.bytes < needed.least) return too_little(extents.size(), needed.least, work);
    const std::size_t at_once =
        std::min(kMostBatch, 1 + (work.bytes - needed.least) / bytes_per_document(longest));
    for (std::size_t begin = 0; begin < extents.size(); begin += at_once) {
        const std::size_t size = std::min(at_once, extents.size() - begin);
        BatchWork batch;
        GPUTEXT_TRY(batch.prepare(extents.subspan(begin, size), longest, work.stream));
        GPUTEXT_TRY(batch.run(bytes, longest, signatures, first + begin, execution, work.stream));
    }
    return {};
}

namespace {

constexpr std::size_t kMostStreamBytes = std::size_t{512} << 20;  // of a batch, if memory allows
constexpr std::size_t kLeastStreamBytes = std::size_t{32} << 20;

/// Documents that follow each other in the host's memory, and the bytes from the first one's begin
/// to the last one's end.
struct StreamBatch {
    std::size_t first, end;  // documents
    std::uint64_t begin = UINT64_MAX;
    std::uint64_t bytes_end = 0;

    /// Bytes with the document as well.
    std::uint64_t size_with(const Extent& extent) const {
        if (extent.size == 0) return size();
        return std::max(bytes_end, extent.begin + extent.size) - std::min(begin, extent.begin);
    }
    std::uint64_t size() const { return bytes_end == 0 ? 0 : bytes_end - begin; }
    void add(const Extent& extent) {
        ++end;
        if (extent.size == 0) return;
        begin = std::min(begin, extent.begin);
        bytes_end = std::max(bytes_end, extent.begin + extent.size);
    }
};

std::vector<StreamBatch> stream_batches(std::span<const Extent> extents, std::size_t bytes) {
    std::vector<StreamBatch> batches;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        if (batches.empty() || batches.back().end - batches.back().first == kMostBatch ||
            (batches.back().size() > 0 && batches.back().size_with(extents[i]) > bytes))
            batches.push_back({i, i});
        batches.back().add(extents[i]);
    }
    return batches;
}

std::size_t largest_batch(std::span<const StreamBatch> batches) {
    std::uint64_t largest = 0;
    for (const StreamBatch& batch : batches) largest = std::max(largest, batch.size());
    return (largest + kChunk + 31) / 32 * 32;
}

/// Device memory for these batches, of which two are being worked on at once.
std::size_t bytes_with(std::span<const StreamBatch> batches, std::size_t documents,
                       std::size_t longest) {
    const HashBytes bytes = hash_bytes(documents, longest);
    return bytes.results + 2 * (bytes.good - bytes.results) + 2 * largest_batch(batches);
}

/// One of two buffers for batches of documents.
struct StreamSlot {
    DeviceBuffer<std::uint8_t> bytes;
    BatchWork work;
    StreamEvent ready, used;
};

/// Waits for the copies on a stream, whose targets would else be freed under them.
struct StreamFinish {
    cudaStream_t stream;
    ~StreamFinish() { cudaStreamSynchronize(stream); }
};

Status stream_through(const Documents& documents, std::span<const StreamBatch> batches,
                      std::size_t longest, const DeviceWork& work, UploadRing& ring,
                      Execution& execution, DeviceSignatures& signatures) {
    StreamSlot slots[2];
    const StreamFinish finish{ring.stream()};
    for (StreamSlot& slot : slots) {
        GPUTEXT_TRY(slot.bytes.allocate(largest_batch(batches), work.stream));
        GPUTEXT_TRY(slot.ready.create());
        GPUTEXT_TRY(slot.used.create());
        GPUTEXT_TRY(slot.used.hold(ring.stream(), work.stream));
    }
    std::uint64_t steps = 0;
    for (const StreamBatch& batch : batches)
        steps += (batch.size() + UploadRing::slice - 1) / UploadRing::slice;
    execution.begin_phase("computing signatures", steps);
    std::vector<Extent> extents;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        const StreamBatch& batch = batches[i];
        StreamSlot& slot = slots[i % 2];
        const auto own = documents.extents.subspan(batch.first, batch.end - batch.first);
        extents.assign(own.begin(), own.end());
        for (Extent& extent : extents)
            extent.begin -= extent.size == 0 ? extent.begin : batch.begin;
        if (batch.size() > 0)
            GPUTEXT_TRY(ring.copy(slot.bytes.data(), {documents.bytes + batch.begin, batch.size()},
                                  execution));
        // While the last slices are under way; earlier it would wait for the batch before.
        GPUTEXT_TRY(slot.work.prepare(extents, longest, work.stream));
        GPUTEXT_TRY(slot.ready.hold(work.stream, ring.stream()));
        GPUTEXT_TRY(slot.work.run(slot.bytes.data(), longest, signatures, batch.first, execution,
                                  work.stream));
        GPUTEXT_TRY(slot.used.hold(ring.stream(), work.stream));
    }
    return {};
}

}  // namespace

std::size_t stream_bytes(std::span<const Extent> extents, std::size_t longest) {
    return bytes_with(stream_batches(extents, kLeastStreamBytes), extents.size(), longest);
}

Status hash_documents(const Documents& documents, std::size_t longest, const DeviceWork& work,
                      UploadRing& ring, Execution& execution, PackedSignatures& signatures) {
    try {
        std::vector<StreamBatch> batches;
        std::size_t needed = SIZE_MAX;
        for (std::size_t bytes = kMostStreamBytes;
             needed > work.bytes && bytes >= kLeastStreamBytes; bytes /= 2) {
            batches = stream_batches(documents.extents, bytes);
            needed = bytes_with(batches, documents.size(), longest);
        }
        if (work.bytes < needed) return too_little(documents.size(), needed, work);
        DeviceSignatures found;
        GPUTEXT_TRY(found.allocate(documents.size(), longest, work.stream));
        GPUTEXT_TRY(stream_through(documents, batches, longest, work, ring, execution, found));
        return found.download(signatures, work.stream);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
}

}  // namespace gputext::gpu
