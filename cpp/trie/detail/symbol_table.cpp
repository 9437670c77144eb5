#include "cpp/trie/detail/symbol_table.hpp"

#include <algorithm>

#include "cpp/base/stoppable.hpp"
#include "cpp/trie/detail/first_bytes.hpp"

namespace gputext {
namespace {

constexpr int kRounds = 5;

/// Of what first_bytes() gives.
constexpr std::uint64_t kTwoBytes = 0xffff;

/// Numbers for what a string is cut into: codes, and behind them bytes without a symbol.
constexpr std::size_t kUnits = SymbolTable::kMost + 1 + 256;

std::uint64_t mask_of(std::size_t length) {
    return length >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * length) - 1;
}

/// A string of one to eight bytes as a number, whose order is the strings' except for trailing
/// zeros.
struct Piece {
    std::uint64_t bytes;  // the first one highest
    std::uint64_t count;
    std::uint32_t length;

    bool operator<(const Piece& other) const {
        return bytes != other.bytes ? bytes < other.bytes : length < other.length;
    }
    bool is(const Piece& other) const { return bytes == other.bytes && length == other.length; }
};

Piece piece_of(const SymbolTable& table, std::size_t unit) {
    if (unit > SymbolTable::kMost) return {(unit - SymbolTable::kMost - 1) << 56, 0, 1};
    return {__builtin_bswap64(table.bytes[unit]), 0, table.lengths[unit]};
}

/// How often the strings have each unit, and each pair of neighbors.
struct Counts {
    std::vector<std::uint32_t> units, pairs;

    Counts() : units(kUnits), pairs(kUnits * kUnits) {}
};

Counts count_units(std::span<const std::string> strings, const SymbolTable& table) {
    const SymbolEncoder encoder(table);
    Counts counts;
    for (const std::string_view text : strings) {
        std::size_t before = kUnits;
        for (std::size_t at = 0; at < text.size();) {
            const std::uint8_t code = encoder.code_at(text.substr(at));
            const bool escaped = code == SymbolTable::kEscape;
            const std::size_t unit =
                escaped ? SymbolTable::kMost + 1 + static_cast<std::uint8_t>(text[at]) : code;
            ++counts.units[unit];
            if (before != kUnits) ++counts.pairs[before * kUnits + unit];
            before = unit;
            at += escaped ? 1 : table.lengths[code];
        }
    }
    return counts;
}

/// Occurrences by string, in their order. The same string may be found as different pairs.
std::vector<Piece> candidates(const Counts& counts, const SymbolTable& table) {
    std::vector<Piece> found;
    for (std::size_t unit = 0; unit < kUnits; ++unit) {
        if (counts.units[unit] == 0) continue;
        Piece first = piece_of(table, unit);
        first.count = counts.units[unit];
        found.push_back(first);
        for (std::size_t next = 0; next < kUnits; ++next) {
            const std::uint32_t count = counts.pairs[unit * kUnits + next];
            if (count < 2) continue;
            const Piece second = piece_of(table, next);
            const std::uint32_t length = first.length + second.length;
            if (length <= SymbolTable::kLongest)
                found.push_back({first.bytes | second.bytes >> 8 * first.length, count, length});
        }
    }
    std::sort(found.begin(), found.end());
    std::size_t kept = 0;
    for (std::size_t i = 1; i < found.size(); ++i) {
        if (found[i].is(found[kept]))
            found[kept].count += found[i].count;
        else
            found[++kept] = found[i];
    }
    found.resize(found.empty() ? 0 : kept + 1);
    return found;
}

SymbolTable best_of(const std::vector<Piece>& found) {
    struct Candidate {
        std::uint64_t gain;
        const Piece* symbol;
    };
    std::vector<Candidate> best;
    for (const Piece& piece : found) {
        // A byte without a symbol takes two: what else the symbol is needed for counts for more.
        const std::uint64_t gain = piece.count * (piece.length == 1 ? 4 : piece.length);
        if (gain > 2 * (piece.length + 1)) best.push_back({gain, &piece});
    }
    std::stable_sort(best.begin(), best.end(),
                     [](const auto& a, const auto& b) { return a.gain > b.gain; });
    SymbolTable table;
    for (std::size_t i = 0; i < std::min(best.size(), SymbolTable::kMost); ++i) {
        const std::uint64_t bytes = __builtin_bswap64(best[i].symbol->bytes);
        table.add({reinterpret_cast<const char*>(&bytes), best[i].symbol->length});
    }
    return table;
}

}  // namespace

SymbolTable choose_symbols(std::span<const std::string> strings, Stop stop) {
    SymbolTable table;
    for (int round = 0; round < kRounds && !stop(); ++round)
        table = best_of(candidates(count_units(strings, table), table));
    return table;
}

SymbolEncoder::SymbolEncoder(const SymbolTable& table)
    : table_(table), begins_((std::size_t{1} << 16) + 1) {
    of_byte_.fill(SymbolTable::kEscape);
    for (std::uint32_t code = 0; code < table.size; ++code) {
        if (table.lengths[code] == 1)
            of_byte_[table.bytes[code]] = static_cast<std::uint8_t>(code);
        else
            symbols_.push_back({table.bytes[code], mask_of(table.lengths[code]),
                                static_cast<std::uint8_t>(code), table.lengths[code]});
    }
    std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
        const auto first_a = a.bytes & kTwoBytes, first_b = b.bytes & kTwoBytes;
        return first_a != first_b ? first_a < first_b : a.length > b.length;
    });
    std::size_t symbol = 0;
    for (std::size_t first = 0; first <= kTwoBytes; ++first) {
        while (symbol < symbols_.size() && (symbols_[symbol].bytes & kTwoBytes) == first) ++symbol;
        begins_[first + 1] = static_cast<std::uint8_t>(symbol);
    }
}

std::uint8_t SymbolEncoder::code_at(std::string_view text) const {
    const std::uint64_t bytes = first_bytes(text);
    const std::size_t first = bytes & kTwoBytes;
    for (std::size_t i = begins_[first]; i < begins_[first + 1]; ++i) {
        const Symbol& symbol = symbols_[i];
        if (symbol.length <= text.size() && (bytes & symbol.mask) == symbol.bytes)
            return symbol.code;
    }
    return of_byte_[bytes & 255];
}

bool SymbolEncoder::append(std::string_view text, std::string& codes, Stop stop) const {
    while (!text.empty()) {
        if (stop()) return false;
        const std::size_t rest = text.size() - std::min(text.size(), kLookEvery);
        while (text.size() > rest) {
            const std::uint8_t code = code_at(text);
            codes.push_back(static_cast<char>(code));
            if (code == SymbolTable::kEscape) codes.push_back(text[0]);
            text.remove_prefix(code == SymbolTable::kEscape ? 1 : table_.lengths[code]);
        }
    }
    return true;
}

}  // namespace gputext
