#include "cpp/strings/detail/edit_tiles.hpp"

#include <algorithm>
#include <cstring>

namespace gputext {
namespace {

constexpr std::size_t kLanes = EditTiles::lanes;

std::uint8_t byte_of(std::uint32_t symbol) {
    return static_cast<std::uint8_t>(
        symbol < 128 ? symbol : 128 | symbol * std::uint32_t{0x9e3779b1} >> 25);
}

struct TileArguments {
    std::span<const std::uint8_t> query;
    const std::uint8_t* symbols;  // [symbol][lane]
    std::size_t length;
    std::size_t most;
    std::uint8_t* found;
};

/// So many bytes of lanes at once.
template <std::size_t Bytes, bool Transpositions>
[[gnu::always_inline]] inline void edits_of_lanes(const TileArguments& a) {
    using Lanes [[gnu::vector_size(Bytes)]] = std::uint8_t;
    // A cell is one more than its edits, at most the longer length. This is more.
    constexpr std::uint8_t far = 200;
    const std::size_t n = a.query.size(), m = a.length;
    // The diagonals that `most` edits leave
    const std::size_t more_rows = n > m ? n - m : 0, more_columns = m > n ? m - n : 0;
    const std::size_t slack = (std::min(a.most, std::max(n, m)) - more_rows - more_columns) / 2;
    const std::size_t above = more_columns + slack, below = more_rows + slack;
    for (std::size_t part = 0; part < kLanes; part += Bytes) {
        Lanes columns[2][EditTiles::longest + 2];
        for (std::size_t i = 0; i <= n; ++i) {
            columns[0][i] = Lanes{} + static_cast<std::uint8_t>(i + 1);
            columns[1][i] = Lanes{} + far;
        }
        Lanes symbols_before{};
        for (std::size_t j = 1; j <= m; ++j) {
            Lanes* const now = columns[j % 2];
            const Lanes* const before = columns[(j + 1) % 2];
            const std::size_t first = std::max(above + 1, j) - above, last = std::min(n, j + below);
            Lanes symbols;
            std::memcpy(&symbols, a.symbols + (j - 1) * kLanes + part, Bytes);
            // Of the column two before, of which `now` still has what follows
            Lanes two_before = now[first > 1 ? first - 2 : 0], next_two_before = now[first - 1];
            Lanes equal_above{};
            if (Transpositions && first > 1) equal_above = Lanes(symbols == a.query[first - 2]);
            const std::uint8_t top = first == 1 ? static_cast<std::uint8_t>(j + 1) : far;
            Lanes cell = Lanes{} + top;
            Lanes diagonal = before[first - 1];
            now[first - 1] = cell;
            for (std::size_t i = first; i <= last; ++i) {
                // All ones, which subtract 1
                const Lanes equal = Lanes(symbols == a.query[i - 1]);
                const Lanes left = before[i], unedited = diagonal + equal;
                Lanes least = left < unedited ? left : unedited;
                if constexpr (Transpositions) {
                    const Lanes exchanged =
                        two_before | ~(equal_above & Lanes(symbols_before == a.query[i - 1]));
                    least = exchanged < least ? exchanged : least;
                    equal_above = equal;
                    two_before = next_two_before;
                    next_two_before = now[i];
                }
                cell = (cell < least ? cell : least) + 1;
                diagonal = left;
                now[i] = cell;
            }
            if (last < n) now[last + 1] = Lanes{} + far;
            symbols_before = symbols;
        }
        const Lanes edits = columns[m % 2][n] - 1;
        std::memcpy(a.found + part, &edits, Bytes);
    }
}

template <bool Transpositions>
void edits_portable(const TileArguments& a) {
    edits_of_lanes<16, Transpositions>(a);
}

#ifdef GPUTEXT_X86

template <bool Transpositions>
GPUTEXT_TARGET_AVX2 void edits_avx2(const TileArguments& a) {
    edits_of_lanes<32, Transpositions>(a);
}

template <bool Transpositions>
GPUTEXT_TARGET_AVX512 void edits_avx512(const TileArguments& a) {
    edits_of_lanes<64, Transpositions>(a);
}

#endif

template <bool Transpositions>
void edits_of_tile(Simd simd, const TileArguments& arguments) {
#ifdef GPUTEXT_X86
    if (simd >= Simd::avx512) return edits_avx512<Transpositions>(arguments);
    if (simd >= Simd::avx2) return edits_avx2<Transpositions>(arguments);
#endif
    edits_portable<Transpositions>(arguments);
}

}  // namespace

Status EditTiles::set(const Strings& strings, const LengthOrder& order, Simd simd, Stop stop) {
    simd_ = simd;
    begins_.clear();
    std::size_t size = 0;
    for (const LengthGroup& group : order.groups()) {
        const std::size_t items = group.end - group.begin;
        const bool has = items >= lanes && group.length > 0 && group.length <= longest;
        begins_.push_back(has ? size : kNone);
        if (has) size += (items + lanes - 1) / lanes * lanes * group.length;
    }
    symbols_.assign(size, 0);
    for (std::size_t number = 0; number < order.groups().size(); ++number) {
        const LengthGroup& group = order.groups()[number];
        for (std::size_t place = group.begin; has(number) && place < group.end; ++place) {
            if (place % 1024 == 0 && stop()) return Status::cancelled();
            const std::size_t at = place - group.begin;
            std::uint8_t* to =
                symbols_.data() + begins_[number] + at / lanes * lanes * group.length + at % lanes;
            for (const std::uint32_t symbol : strings[order.item(place)]) {
                *to = byte_of(symbol);
                to += lanes;
            }
        }
    }
    return {};
}

std::vector<std::uint8_t> EditTiles::query(Symbols string) {
    std::vector<std::uint8_t> bytes(string.size());
    std::transform(string.begin(), string.end(), bytes.begin(), byte_of);
    return bytes;
}

bool EditTiles::is_exact(std::span<const std::uint8_t> query) {
    return std::all_of(query.begin(), query.end(), [](std::uint8_t byte) { return byte < 128; });
}

void EditTiles::edits(std::span<const std::uint8_t> query, std::size_t group, std::size_t length,
                      std::size_t tile, std::size_t most, bool transpositions,
                      std::uint8_t* found) const {
    const TileArguments arguments{
        query, symbols_.data() + begins_[group] + tile * lanes * length, length, most, found};
    if (transpositions)
        edits_of_tile<true>(simd_, arguments);
    else
        edits_of_tile<false>(simd_, arguments);
}

}  // namespace gputext
