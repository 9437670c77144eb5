#include "cpp/trie/detail/xbw_steps.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "cpp/base/simd.hpp"

// Compiled into both versions of each step.
#define GPUTEXT_INLINE [[gnu::always_inline]] inline

namespace gputext {
namespace {

/// Words that take their steps together.
constexpr std::size_t kLanes = 24;

GPUTEXT_INLINE std::uint32_t count_bits(std::uint32_t bits) {
    return static_cast<std::uint32_t>(__builtin_popcount(bits));
}

/// The lowest `count` bits set; count < 32.
GPUTEXT_INLINE std::uint32_t below(std::uint32_t count) {
    return (1u << count) - 1;
}

/// A node's place in the bit vectors.
struct Position {
    explicit Position(std::uint32_t node)
        : superblock(node / kXbwSuperblockBits),
          block(node % kXbwSuperblockBits / kXbwBlockBits),
          bit(node % kXbwSuperblockBits % kXbwBlockBits) {}

    std::uint32_t superblock, block, bit;
};

GPUTEXT_INLINE std::uint32_t class_of(const XbwSuperblock& superblock, std::uint32_t block) {
    return static_cast<std::uint32_t>(superblock.classes >> 4 * block & 15);
}

/// The bit at which the number of a block begins.
GPUTEXT_INLINE std::uint32_t payload_of(const XbwSuperblock& superblock, std::uint32_t block) {
    return superblock.payload + xbw_sum(xbw_widths(xbw_classes_before(superblock.classes, block)));
}

/// In a superblock that is stored.
GPUTEXT_INLINE std::uint32_t child_in(const XbwImage& image, const XbwSuperblock& superblock,
                                      const Position& position) {
    const std::uint32_t k = class_of(superblock, position.block);
    if (k == 0) return kXbwNone;
    const std::uint32_t block = image.block(payload_of(superblock, position.block), k);
    if ((block >> position.bit & 1) == 0) return kXbwNone;
    return superblock.child + xbw_sum(xbw_classes_before(superblock.classes, position.block)) +
           count_bits(block & below(position.bit));
}

GPUTEXT_INLINE std::uint32_t child_of(const XbwImage& image, std::uint32_t node,
                                      std::uint32_t symbol) {
    const Position position(node);
    const XbwCell cell = image.cell(position.superblock, symbol);
    if ((cell.bits >> symbol % 32 & 1) == 0) return kXbwNone;
    const std::uint32_t stored = cell.base + count_bits(cell.bits & below(symbol % 32));
    return child_in(image, image.superblock(stored), position);
}

GPUTEXT_INLINE XbwChild next_of(const XbwImage& image, std::uint32_t node, std::uint32_t from) {
    const Position position(node);
    const std::uint32_t symbols = image.layout.symbols;
    for (std::uint32_t first = from / 32 * 32; first < symbols; first += 32) {
        const XbwCell cell = image.cell(position.superblock, first);
        std::uint32_t bits = first < from ? cell.bits & ~below(from % 32) : cell.bits;
        std::uint32_t stored = cell.base + count_bits(cell.bits ^ bits);
        for (; bits != 0; bits &= bits - 1, ++stored) {
            const std::uint32_t child = child_in(image, image.superblock(stored), position);
            if (child != kXbwNone)
                return {first + static_cast<std::uint32_t>(std::countr_zero(bits)), child};
        }
    }
    return {};
}

GPUTEXT_INLINE XbwChild last_of(const XbwImage& image, std::uint32_t node, std::uint32_t end) {
    const Position position(node);
    for (std::uint32_t first = (end + 31) / 32 * 32; first > 0;) {
        first -= 32;
        const XbwCell cell = image.cell(position.superblock, first);
        std::uint32_t bits = end - first < 32 ? cell.bits & below(end - first) : cell.bits;
        std::uint32_t behind = cell.base + count_bits(bits);
        while (bits != 0) {
            const auto symbol = 31 - static_cast<std::uint32_t>(std::countl_zero(bits));
            const std::uint32_t child = child_in(image, image.superblock(--behind), position);
            if (child != kXbwNone) return {first + symbol, child};
            bits ^= 1u << symbol;
        }
    }
    return {};
}

/// The node below whose bits of the symbol's vector there are so many set ones, in this superblock:
/// the one of the child `node`.
GPUTEXT_INLINE std::uint32_t parent_in(const XbwImage& image, std::uint32_t number,
                                       const XbwSuperblock& superblock, std::uint32_t node) {
    std::uint32_t left = node - superblock.child, block = 0;
    for (; block + 1 < kXbwBlocks && left >= class_of(superblock, block); ++block)
        left -= class_of(superblock, block);
    const std::uint32_t k = class_of(superblock, block);
    std::uint32_t bits = image.block(payload_of(superblock, block), k);
    for (; left > 0; --left) bits &= bits - 1;
    return number * kXbwSuperblockBits + block * kXbwBlockBits +
           static_cast<std::uint32_t>(std::countr_zero(bits));
}

/// In which of the superblocks from `begin` on and below `end`, 64 at most, the symbol's vector has
/// a set bit.
GPUTEXT_INLINE std::uint64_t presence(const XbwImage& image, std::uint32_t begin, std::uint32_t end,
                                      std::uint32_t symbol) {
    const std::uint8_t* at = image.cell_address(begin, symbol) + offsetof(XbwCell, bits);
    const std::size_t row = sizeof(XbwCell) * image.layout.row_cells;
    std::uint64_t bits = 0;
    for (std::uint32_t i = 0; i < end - begin; ++i, at += row)
        bits |= std::uint64_t{load_at<std::uint32_t>(at) >> symbol % 32 & 1} << i;
    return bits;
}

GPUTEXT_INLINE XbwSuperblock present(const XbwImage& image, std::uint32_t number,
                                     std::uint32_t symbol) {
    const XbwCell cell = image.cell(number, symbol);
    return image.superblock(cell.base + count_bits(cell.bits & below(symbol % 32)));
}

/// By a search among the samples, then among the superblocks from one sample to the next.
GPUTEXT_INLINE std::uint32_t parent_of(const XbwImage& image, std::uint32_t node,
                                       std::uint32_t symbol) {
    const std::uint8_t* const samples =
        image.bytes + image.layout.samples + 4ull * symbol * image.layout.sample_groups;
    std::uint32_t group = 0;
    for (std::uint32_t left = image.layout.sample_groups; left > 1;) {
        const std::uint32_t half = left / 2;
        group += load_at<std::uint32_t>(samples + 4ull * (group + half)) <= node ? half : 0;
        left -= half;
    }
    const std::uint32_t first = group * kXbwSampleSuperblocks;
    const std::uint32_t behind = std::min(first + kXbwSampleSuperblocks, image.layout.superblocks);
    const std::uint64_t set = presence(image, first, behind, symbol);
    auto begin = static_cast<std::uint32_t>(std::countr_zero(set)), end = behind - first;
    XbwSuperblock found = present(image, first + begin, symbol);
    // The one at `begin` has the node or is before it; those at `end` and behind are behind it.
    while (end - begin > 1) {
        const std::uint32_t middle = begin + (end - begin) / 2;
        const std::uint64_t left = set >> middle;
        const std::uint32_t tried =
            left == 0 ? end : middle + static_cast<std::uint32_t>(std::countr_zero(left));
        if (tried >= end) {
            end = middle;
            continue;
        }
        const XbwSuperblock superblock = present(image, first + tried, symbol);
        if (superblock.child <= node) {
            begin = tried;
            found = superblock;
        } else {
            end = middle;
        }
    }
    return parent_in(image, first + begin, found, node);
}

GPUTEXT_INLINE std::uint32_t rank_of(const XbwImage& image, std::uint64_t lines, std::uint32_t i,
                                     bool& set) {
    const auto line = load_at<XbwLine>(image.line_address(lines, i));
    const std::uint32_t bit = i % kXbwLineBits;
    std::uint32_t rank = line.before;
    for (std::uint32_t word = 0; word < bit / 32; ++word) rank += count_bits(line.bits[word]);
    const std::uint32_t own = line.bits[bit / 32];
    set = (own >> bit % 32 & 1) != 0;
    return rank + count_bits(own & below(bit % 32));
}

/// The state of a word's lookup.
struct Lane {
    const char* at;
    const char* end;
    std::uint32_t* result;
    std::uint32_t node, symbol, stored, payload;
    XbwSuperblock superblock;
};

GPUTEXT_INLINE void walk_of(const XbwImage& image, std::span<const std::string_view> words,
                            std::uint32_t* nodes) {
    std::array<Lane, kLanes> lanes;
    std::size_t next = 0, size = 0;
    const auto refill = [&](Lane & lane) __attribute__((always_inline)) {
        for (; next < words.size(); ++next) {
            const std::string_view word = words[next];
            nodes[next] = 0;
            if (word.empty()) continue;
            lane.at = word.data();
            lane.end = word.data() + word.size();
            lane.result = nodes + next++;
            lane.node = 0;
            return true;
        }
        return false;
    };
    while (size < kLanes && refill(lanes[size])) ++size;
    while (size > 0) {
        for (std::size_t i = 0; i < size; ++i) {
            Lane& lane = lanes[i];
            lane.symbol = image.symbol_of(static_cast<std::uint8_t>(*lane.at));
            if (lane.symbol >= image.layout.symbols) continue;
            __builtin_prefetch(image.cell_address(lane.node / kXbwSuperblockBits, lane.symbol));
        }
        for (std::size_t i = 0; i < size; ++i) {
            Lane& lane = lanes[i];
            lane.stored = kXbwNone;
            if (lane.symbol >= image.layout.symbols) continue;
            const XbwCell cell = image.cell(lane.node / kXbwSuperblockBits, lane.symbol);
            if ((cell.bits >> lane.symbol % 32 & 1) == 0) continue;
            lane.stored = cell.base + count_bits(cell.bits & below(lane.symbol % 32));
            __builtin_prefetch(image.superblock_address(lane.stored));
        }
        for (std::size_t i = 0; i < size; ++i) {
            Lane& lane = lanes[i];
            if (lane.stored == kXbwNone) continue;
            lane.superblock = image.superblock(lane.stored);
            lane.payload = payload_of(lane.superblock, Position(lane.node).block);
            __builtin_prefetch(image.bytes + image.layout.payload + lane.payload / 8);
        }
        for (std::size_t i = 0; i < size;) {
            Lane& lane = lanes[i];
            std::uint32_t node = kXbwNone;
            if (lane.stored != kXbwNone) {
                const Position position(lane.node);
                const std::uint32_t k = class_of(lane.superblock, position.block);
                const std::uint32_t block = image.block(lane.payload, k);
                if ((block >> position.bit & 1) != 0)
                    node = lane.superblock.child +
                           xbw_sum(xbw_classes_before(lane.superblock.classes, position.block)) +
                           count_bits(block & below(position.bit));
            }
            lane.node = node;
            if (node != kXbwNone && ++lane.at != lane.end) {
                ++i;
                continue;
            }
            *lane.result = node;
            if (refill(lane))
                ++i;
            else
                lane = lanes[--size];
        }
    }
}

namespace portable {
void walk(const XbwImage& image, std::span<const std::string_view> words, std::uint32_t* nodes) {
    walk_of(image, words, nodes);
}
std::uint32_t child(const XbwImage& image, std::uint32_t node, std::uint32_t symbol) {
    return child_of(image, node, symbol);
}
XbwChild next_child(const XbwImage& image, std::uint32_t node, std::uint32_t from) {
    return next_of(image, node, from);
}
XbwChild last_child(const XbwImage& image, std::uint32_t node, std::uint32_t end) {
    return last_of(image, node, end);
}
std::uint32_t parent(const XbwImage& image, std::uint32_t node, std::uint32_t symbol) {
    return parent_of(image, node, symbol);
}
std::uint32_t rank(const XbwImage& image, std::uint64_t lines, std::uint32_t i, bool& set) {
    return rank_of(image, lines, i, set);
}
constexpr XbwSteps kSteps{walk, child, next_child, last_child, parent, rank};
}  // namespace portable

#ifdef GPUTEXT_X86
namespace counting {
GPUTEXT_TARGET_AVX2 void walk(const XbwImage& image, std::span<const std::string_view> words,
                              std::uint32_t* nodes) {
    walk_of(image, words, nodes);
}
GPUTEXT_TARGET_AVX2 std::uint32_t child(const XbwImage& image, std::uint32_t node,
                                        std::uint32_t symbol) {
    return child_of(image, node, symbol);
}
GPUTEXT_TARGET_AVX2 XbwChild next_child(const XbwImage& image, std::uint32_t node,
                                        std::uint32_t from) {
    return next_of(image, node, from);
}
GPUTEXT_TARGET_AVX2 XbwChild last_child(const XbwImage& image, std::uint32_t node,
                                        std::uint32_t end) {
    return last_of(image, node, end);
}
GPUTEXT_TARGET_AVX2 std::uint32_t parent(const XbwImage& image, std::uint32_t node,
                                         std::uint32_t symbol) {
    return parent_of(image, node, symbol);
}
GPUTEXT_TARGET_AVX2 std::uint32_t rank(const XbwImage& image, std::uint64_t lines, std::uint32_t i,
                                       bool& set) {
    return rank_of(image, lines, i, set);
}
constexpr XbwSteps kSteps{walk, child, next_child, last_child, parent, rank};
}  // namespace counting
#endif

}  // namespace

const XbwSteps& xbw_steps() {
#ifdef GPUTEXT_X86
    static const bool counting = simd_available(Simd::avx2);
    if (counting) return counting::kSteps;
#endif
    return portable::kSteps;
}

std::uint32_t xbw_symbol_of(const XbwImage& image, std::uint32_t node) {
    std::uint32_t symbol = 0;
    for (std::uint32_t left = image.layout.symbols; left > 1;) {
        const std::uint32_t half = left / 2;
        symbol += image.begin(symbol + half) <= node ? half : 0;
        left -= half;
    }
    return symbol;
}

}  // namespace gputext
