// cpp/trie/detail/symbol_table.hpp - compresses short strings with a table of frequent pieces
//
// Method: "FSST: Fast Random Access String Compression" (Boncz, Neumann, Leis; VLDB 2020). Every
// string is compressed by itself, so that any of them can be read alone: a code stands for one to
// eight bytes, and one code says that the byte behind it stands for itself.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpp/base/stop.hpp"

namespace gputext {

/// What the codes stand for. 2.3 kB, which stay in the first cache.
struct SymbolTable {
    static constexpr std::size_t kMost = 255;       // symbols
    static constexpr std::size_t kLongest = 8;      // bytes of a symbol
    static constexpr std::uint8_t kEscape = kMost;  // before a byte that stands for itself

    std::uint32_t size = 0;
    std::array<std::uint64_t, kMost + 1> bytes{};   // the first one lowest, zeros behind the last
    std::array<std::uint8_t, kMost + 1> lengths{};  // 0 for codes that are not used

    void add(std::string_view symbol) {
        std::memcpy(&bytes[size], symbol.data(), symbol.size());
        lengths[size++] = static_cast<std::uint8_t>(symbol.size());
    }
};

/// The symbols that make these strings short, found in five rounds: symbols that often follow one
/// another become one. The same strings in the same order give the same table. O(bytes) time. When
/// stopped, which is looked for between rounds, any table.
SymbolTable choose_symbols(std::span<const std::string> strings, Stop stop = {});

/// Compresses strings. Takes 64 kB.
class SymbolEncoder {
public:
    explicit SymbolEncoder(const SymbolTable& table);

    /// The code of the longest symbol that `text`, which is not empty, begins with, or kEscape.
    std::uint8_t code_at(std::string_view text) const;
    /// Appends the codes of `text`; false when stopped, after some of them.
    bool append(std::string_view text, std::string& codes, Stop stop = {}) const;

private:
    struct Symbol {
        std::uint64_t bytes, mask;
        std::uint8_t code, length;
    };

    const SymbolTable& table_;
    std::vector<Symbol> symbols_;       // of two bytes and more by the first two, the longest first
    std::vector<std::uint8_t> begins_;  // of those with the same two
    std::array<std::uint8_t, 256> of_byte_{};  // codes of the symbols of one byte, or kEscape
};

}  // namespace gputext
