// cpp/trie/detail/xbw_layout.hpp - byte layout of the image of cpp/trie/detail/xbw.hpp, and the
// step from node to node
//
// Source: Hon, Ku, Shah, Thankachan, Vitter, "Faster compressed dictionary matching" (2013), in the
// form that Wakatsuki, Keyaki, Miyazaki gave it for GPUs (2016, sections 2.2.3, 2.2.4 and 3.4). Not
// from there: that superblocks without a child are left out, that the superblocks of all bytes lie
// together by node, which words end where, and the codes.
//
// The trie's nodes, one for each different prefix of a word, are numbered in the byte order of
// their prefixes read backwards; the root is 0. Bytes that occur in words are numbered in their
// order: symbols 0 .. symbols - 1. So the nodes that a symbol c leads to are C[c] .. C[c + 1] - 1,
// in the order of their parents, and with a bit vector B_c for each symbol, whose bit x is set when
// node x has a child by c,
//     child(x, c) = C[c] + (how many bits of B_c below x are set)     if bit x of B_c is set.
//
// A bit vector is cut into blocks of 15 bits and superblocks of 16 blocks, 240 bits. A block is
// stored as its class k, how many bits are set, and its number among the values of 15 bits with
// that class, in ascending order of these values, in kXbwWidths[k] bits.
//
// The image, all numbers little-endian, bits counted from the lowest of a byte or number. Each part
// begins at a multiple of 16 bytes from the image's beginning, with zeros between:
//   header     TrieHeader, 64 bytes; its `symbols` is the number of symbols, `symbol_bytes` 0
//   numbers    XbwNumbers, 64 bytes
//   symbols    uint8[256]: the symbol of each byte; 255 for a byte that does not occur (which no
//              symbol is, unless all 256 bytes occur: a byte occurs when its entry < symbols)
//   begins     uint32[symbols + 1]: C, and behind it the number of nodes
//   cells      XbwCell[superblocks * row_cells], row_cells = ceil(symbols / 32), superblocks =
//              ceil(nodes / 240): the cell of symbol c in superblock s is s * row_cells + c / 32.
//              Bit c % 32 is set when B_c has a set bit in the superblock, which then is number
//              base + (how many bits of the cell below that one are set) of those that are stored
//   stored     XbwSuperblock[stored], 16 bytes each, by superblock and then by symbol
//   payload    the blocks' numbers as a string of bits, superblock by superblock as stored and
//              block by block: that of bits p .. p + w - 1 is (uint32 at byte p / 8) >> p % 8, its
//              lowest w bits. At every superblock s that is a multiple of kXbwPart the string goes
//              on at a multiple of 8 bits. At least 8 zero bytes follow. Below 2^32 bits
//   ends       XbwLine[ceil(nodes / 224)]: whether a word ends in a node
//   codes      `code_bits` bits for each word, in the order of the nodes that they end in: its
//              code. code_bits = bits of (words - 1), 0 for less than two words. The code of word i
//              is (uint64 at byte i * code_bits / 8) >> i * code_bits % 8, its lowest code_bits
//              bits. At least 8 zero bytes follow
// And for the way back, from a code to its node and from a node to the root:
//   marks      XbwLine[ceil(words / 224)]: whether word i, in the order of nodes, has a shortcut
//   shortcuts  as codes, one for each mark. The cycle of i -> codes[i] from its lowest word on has
//              marks at its 1st, 17th, 33rd, ... word, if it has more than 16; the shortcut of
//              each is the word with a mark before it, and that of the first one the last one. The
//              word with code c is found from i = c on by i = codes[i] until codes[i] = c, but
//              once, at the first mark, by i = its shortcut: in at most 32 steps
//   samples    uint32[symbols * sample_groups], sample_groups = ceil(superblocks / 64): at
//              c * sample_groups + g the first node by symbol c whose parent is in superblock
//              64 g or behind it; C[c + 1] when there is none
// The image ends there, at a multiple of 16 bytes.
//
// One step, from node x by symbol c:
//   1. s = x / 240, the cell of c in s: 8 bytes. Its bit not set: no child.
//   2. The XbwSuperblock: 16 bytes. v = x % 240 / 15, k = class of block v. k = 0: no child.
//   3. p = payload + widths of the classes of the blocks before v; the block's number r from p.
//   4. The block is kXbwBlockValues[kXbwClassBegins[k] + r]. Its bit i = x % 15 not set: no child.
//   5. child + sum of the classes of the blocks before v + set bits of the block below i.
// The root is 0; when the word's last byte has led to node x and bit x of `ends` is set, x is the
// paper's identifier, and codes[rank of x in ends] is the code.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cpp/base/stop.hpp"
#include "cpp/trie/image.hpp"

namespace gputext {

constexpr std::uint32_t kXbwBlockBits = 15, kXbwBlocks = 16;
constexpr std::uint32_t kXbwSuperblockBits = kXbwBlockBits * kXbwBlocks;
constexpr std::uint32_t kXbwLineBits = 224;
constexpr std::uint32_t kXbwShortcut = 16;
constexpr std::uint32_t kXbwSampleSuperblocks = 64;
/// Superblocks whose blocks' numbers are one string of bits.
constexpr std::uint32_t kXbwPart = 1024;
constexpr std::uint32_t kXbwNone = UINT32_MAX;

/// Bits of a block's number, by class: the fewest that C(15, k) values need.
constexpr std::uint8_t kXbwWidths[16] = {0, 4, 7, 9, 11, 12, 13, 13, 13, 13, 12, 11, 9, 7, 4, 0};
/// Where the values of a class begin in kXbwBlockValues: the sums of C(15, 0 .. k - 1).
constexpr std::uint16_t kXbwClassBegins[17] = {0,     1,     16,    121,   576,   1941,
                                               4944,  9949,  16384, 22819, 27824, 30827,
                                               32192, 32647, 32752, 32767, 32768};

struct XbwNumbers {
    std::uint32_t nodes;      // the root too; below 2^32 - 1
    std::uint32_t stored;     // superblocks
    std::uint64_t payload;    // bytes, without the zeros behind them
    std::uint32_t shortcuts;  // how many
    std::uint32_t unused[11];
};
static_assert(sizeof(XbwNumbers) == 64);

struct XbwCell {
    std::uint32_t base, bits;
};
static_assert(sizeof(XbwCell) == 8);

struct XbwSuperblock {
    std::uint32_t child;    // C[c] + the set bits of B_c before this superblock
    std::uint32_t payload;  // the bit at which the numbers of its blocks begin
    std::uint64_t classes;  // of block v in bits 4v .. 4v + 3
};
static_assert(sizeof(XbwSuperblock) == 16);

/// 224 bits of a bit vector, bit i of the line in bits[i / 32].
struct XbwLine {
    std::uint32_t before;  // set bits in the lines before
    std::uint32_t bits[7];
};
static_assert(sizeof(XbwLine) == 32);

/// Where the parts begin, in bytes from the image's beginning, and how large they are. Plain data,
/// that can be handed to a kernel as it is.
struct XbwLayout {
    std::uint32_t words, nodes, symbols, superblocks, row_cells, stored, code_bits, shortcuts;
    std::uint32_t sample_groups;
    std::uint64_t payload_bytes;
    // Offsets
    std::uint64_t symbol_table, begins, cells, superblock_table, payload, ends, codes, marks;
    std::uint64_t shortcut_table, samples;
    std::uint64_t bytes;
};

/// Where the parts lie in an image with these headers: at most 256 symbols, and a payload of at
/// most kXbwMostPayload.
XbwLayout xbw_layout_of(const TrieHeader& header, const XbwNumbers& numbers);
constexpr std::uint64_t kXbwMostPayload = std::uint64_t{1} << 29;

/// Layout of an image whose header was checked. Checks that the parts fill it, not their contents.
Result<XbwLayout> read_xbw_layout(std::span<const std::uint8_t> image);

/// All values of 15 bits by class and then ascending: 64 KB.
extern const std::array<std::uint16_t, 1u << kXbwBlockBits> kXbwBlockValues;

// ---- Classes of a superblock, 16 numbers of four bits ----

/// Classes of the blocks before block `v`, and zeros for the others; v < 16.
constexpr std::uint64_t xbw_classes_before(std::uint64_t classes, std::uint32_t v) {
    return classes & ((std::uint64_t{1} << 4 * v) - 1);
}

/// The sum of 16 numbers of four bits that is below 256.
constexpr std::uint32_t xbw_sum(std::uint64_t numbers) {
    constexpr std::uint64_t lower = 0x0f0f0f0f0f0f0f0f;
    const std::uint64_t pairs = (numbers & lower) + (numbers >> 4 & lower);
    return static_cast<std::uint32_t>(pairs * 0x0101010101010101 >> 56);
}

/// kXbwWidths of each of the classes. Widths are symmetric, and as a polynomial in the bits of
/// m = k or 15 - k, the one below 8, 4 m0 + 7 m1 + 11 m2 - 2 m0 m1 - 3 m0 m2 - 5 m1 m2 + m0 m1 m2.
constexpr std::uint64_t xbw_widths(std::uint64_t classes) {
    constexpr std::uint64_t lowest = 0x1111111111111111;
    const std::uint64_t upper = classes >> 3 & lowest;
    const std::uint64_t folded = classes ^ upper * 15;
    const std::uint64_t m0 = folded & lowest, m1 = folded >> 1 & lowest, m2 = folded >> 2 & lowest;
    const std::uint64_t m01 = m0 & m1;
    return 4 * m0 + 7 * m1 + 11 * m2 - 2 * m01 - 3 * (m0 & m2) - 5 * (m1 & m2) + (m01 & m2);
}

// ---- On the host ----

template <class T>
T load_at(const std::uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// An image and its layout, for reading. An image may begin at any address here.
struct XbwImage {
    const std::uint8_t* bytes = nullptr;
    XbwLayout layout{};

    std::uint8_t symbol_of(std::uint8_t byte) const { return bytes[layout.symbol_table + byte]; }
    bool occurs(std::uint8_t byte) const { return symbol_of(byte) < layout.symbols; }
    /// C; of `symbols` the number of nodes
    std::uint32_t begin(std::uint32_t symbol) const {
        return load_at<std::uint32_t>(bytes + layout.begins + 4ull * symbol);
    }
    const std::uint8_t* cell_address(std::uint32_t superblock, std::uint32_t symbol) const {
        return bytes + layout.cells +
               8 * (std::uint64_t{superblock} * layout.row_cells + symbol / 32);
    }
    XbwCell cell(std::uint32_t superblock, std::uint32_t symbol) const {
        return load_at<XbwCell>(cell_address(superblock, symbol));
    }
    const std::uint8_t* superblock_address(std::uint32_t stored) const {
        return bytes + layout.superblock_table + 16ull * stored;
    }
    XbwSuperblock superblock(std::uint32_t stored) const {
        return load_at<XbwSuperblock>(superblock_address(stored));
    }
    /// Bits of a block of class 1 to 15 that begins at that bit of the payload.
    std::uint32_t block(std::uint32_t bit, std::uint32_t k) const {
        const auto bits = load_at<std::uint32_t>(bytes + layout.payload + bit / 8) >> bit % 8;
        return kXbwBlockValues[kXbwClassBegins[k] + (bits & ((1u << kXbwWidths[k]) - 1))];
    }
    const std::uint8_t* line_address(std::uint64_t lines, std::uint32_t i) const {
        return bytes + lines + 32ull * (i / kXbwLineBits);
    }
    /// Number i of packed ones.
    std::uint32_t packed(std::uint64_t numbers, std::uint32_t i) const {
        const std::uint64_t bit = std::uint64_t{i} * layout.code_bits;
        const auto bits = load_at<std::uint64_t>(bytes + numbers + bit / 8) >> bit % 8;
        return static_cast<std::uint32_t>(bits & ((std::uint64_t{1} << layout.code_bits) - 1));
    }
};

// ---- Builds the parts of an image that follow from other parts ----

/// The lines of a bit vector, all bits zero.
std::vector<XbwLine> xbw_lines(std::uint32_t size);

inline void set_bit(std::vector<XbwLine>& lines, std::uint32_t i) {
    lines[i / kXbwLineBits].bits[i % kXbwLineBits / 32] |= 1u << i % kXbwLineBits % 32;
}
inline bool has_bit(const std::vector<XbwLine>& lines, std::uint32_t i) {
    return (lines[i / kXbwLineBits].bits[i % kXbwLineBits / 32] >> i % kXbwLineBits % 32 & 1) != 0;
}

/// Once all bits are set: counts them. Returns how many there are.
std::uint32_t count_lines(std::vector<XbwLine>& lines);
/// The number of set bits below bit i, in lines that count_lines() has counted.
std::uint32_t rank_in(const std::vector<XbwLine>& lines, std::uint32_t i);

/// Writes number i of `bits` bits to zeros.
void pack_number(std::uint8_t* to, std::uint64_t i, std::uint32_t bits, std::uint32_t number);

/// What leads from a code back to its word: `marks` and `shortcuts` of the layout.
struct CodeShortcuts {
    std::vector<XbwLine> marks;
    std::vector<std::uint32_t> targets;
};

/// Shortcuts for the codes of all words in the order of nodes, a permutation. O(words) time, with
/// reads at random places; false when stopped.
bool find_shortcuts(std::span<const std::uint32_t> codes, CodeShortcuts& found, Stop stop);

}  // namespace gputext
