// kernels/trie/detail/front_coded_encoder.cuh - computes the sizes of the words of a bucket of
// cpp/trie/detail/front_coded.hpp, and writes them
//
// One thread a word, one warp a bucket: where a thread writes, it knows from the sizes of the words
// before its own.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cpp/trie/detail/front_coded_layout.hpp"
#include "kernels/trie/detail/device_words.cuh"

namespace gputext::gpu {

/// The symbols by first byte, the longest of each first, as SymbolEncoder has them.
struct CodeTable {
    std::uint64_t bytes[SymbolTable::kMost + 1];
    std::uint8_t lengths[SymbolTable::kMost + 1];
    std::uint8_t codes[SymbolTable::kMost + 1];
    std::uint16_t begins[257];  // of those with one first byte
};

inline CodeTable code_table_of(const SymbolTable& symbols) {
    std::vector<std::uint8_t> order(symbols.size);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint8_t>(i);
    const auto first_of = [&](std::uint8_t code) { return symbols.bytes[code] & 255; };
    std::stable_sort(order.begin(), order.end(), [&](std::uint8_t a, std::uint8_t b) {
        return first_of(a) != first_of(b) ? first_of(a) < first_of(b)
                                          : symbols.lengths[a] > symbols.lengths[b];
    });
    CodeTable table{};
    for (std::size_t i = 0; i < order.size(); ++i) {
        table.bytes[i] = symbols.bytes[order[i]];
        table.lengths[i] = symbols.lengths[order[i]];
        table.codes[i] = order[i];
        ++table.begins[first_of(order[i]) + 1];
    }
    for (std::size_t byte = 0; byte < 256; ++byte)
        table.begins[byte + 1] =
            static_cast<std::uint16_t>(table.begins[byte + 1] + table.begins[byte]);
    return table;
}

/// A symbol that a text begins with.
struct EncodedSymbol {
    std::uint8_t code;
    std::uint32_t length;  // 1 behind kEscape
};

/// The longest of a text of `left` bytes, at least 1, of which `text` are the first eight.
__host__ __device__ inline EncodedSymbol symbol_of(const CodeTable& table, std::uint64_t text,
                                                   std::uint32_t left) {
    const std::uint32_t first = text & 255;
    for (std::uint32_t i = table.begins[first]; i < table.begins[first + 1]; ++i) {
        const std::uint32_t length = table.lengths[i];
        if (length <= left && lowest_bytes(text, length) == table.bytes[i])
            return {table.codes[i], length};
    }
    return {SymbolTable::kEscape, 1};
}

/// A sorted word.
struct FrontCodedWord {
    const std::uint8_t* bytes = nullptr;
    std::uint32_t length = 0;
};

__host__ __device__ inline std::uint32_t tail_length(std::uint32_t first_length) {
    const auto separator = static_cast<std::uint32_t>(kSeparatorBytes);
    return first_length > separator ? first_length - separator : 0;
}

/// Bytes of a number as a varint.
__host__ __device__ inline std::uint32_t varint_bytes(std::uint32_t number) {
    std::uint32_t bytes = 1;
    for (; number >= 128; number >>= 7) ++bytes;
    return bytes;
}

/// Sizes of a word that is not the first of its bucket: bytes shared with the word before it,
/// bytes of codes, and bytes of the excess for which its head has no room.
struct WordSizes {
    std::uint32_t shared = 0, codes = 0, excess = 0;
};

__host__ __device__ inline std::uint32_t excess_of(std::uint32_t number, std::uint32_t most) {
    return number >= most ? varint_bytes(number - most) : 0;
}

__host__ __device__ inline WordSizes sizes_of(const CodeTable& table, const FrontCodedWord& before,
                                              const FrontCodedWord& word) {
    WordSizes sizes;
    sizes.shared = common_bytes(before.bytes, word.bytes,
                                before.length < word.length ? before.length : word.length);
    for (std::uint32_t at = sizes.shared; at < word.length;) {
        const std::uint32_t left = word.length - at;
        const EncodedSymbol symbol =
            symbol_of(table, load_up_to_eight(word.bytes + at, left), left);
        sizes.codes += symbol.code == SymbolTable::kEscape ? 2 : 1;
        at += symbol.length;
    }
    sizes.excess = excess_of(sizes.shared, kMostInHead) + excess_of(sizes.codes - 1, kMostInHead);
    return sizes;
}

/// Writes the codes of the word's own bytes.
__host__ __device__ inline void write_codes(const CodeTable& table, const FrontCodedWord& word,
                                            std::uint32_t shared, std::uint8_t* to) {
    for (std::uint32_t at = shared; at < word.length;) {
        const std::uint32_t left = word.length - at;
        const std::uint64_t text = load_up_to_eight(word.bytes + at, left);
        const EncodedSymbol symbol = symbol_of(table, text, left);
        *to++ = symbol.code;
        if (symbol.code == SymbolTable::kEscape) *to++ = static_cast<std::uint8_t>(text);
        at += symbol.length;
    }
}

/// Writes a number that has `most` or more downwards from `end` on; returns the lowest byte.
__host__ __device__ inline std::uint8_t* write_excess(std::uint32_t number, std::uint32_t most,
                                                      std::uint8_t* end) {
    if (number < most) return end;
    for (number -= most; number >= 128; number >>= 7)
        *--end = static_cast<std::uint8_t>((number & 127) | 128);
    *--end = static_cast<std::uint8_t>(number);
    return end;
}

__host__ __device__ inline std::uint8_t head_of(const WordSizes& sizes) {
    const std::uint32_t shared = sizes.shared < kMostInHead ? sizes.shared : kMostInHead;
    const std::uint32_t codes = sizes.codes - 1 < kMostInHead ? sizes.codes - 1 : kMostInHead;
    return static_cast<std::uint8_t>(shared << 4 | codes);
}

}  // namespace gputext::gpu
