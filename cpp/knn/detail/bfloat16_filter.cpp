#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "cpp/knn/detail/distance_filter.hpp"

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

/// Rows and columns of sums in a tile register, and elements of a row of factors in one.
constexpr std::size_t kTile = 16, kDepth = 32, kTileElements = kTile * kDepth;
/// Panels of queries and items have two tiles each, whose four products are summed at a time.
constexpr std::size_t kRows = 2 * kTile;

#ifdef GPUTEXT_X86

/// What ldtilecfg reads: eight registers of sixteen rows of 64 bytes.
struct alignas(64) TileShapes {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {kTile, kTile, kTile, kTile, kTile, kTile, kTile, kTile};
};

/// The scores of two tiles of queries and two of items: row r of the former and column c of the
/// latter at [r / 16][c / 16][r % 16][c % 16].
struct alignas(64) Sums {
    float of[2][2][kTile][kTile];
};

/// Registers 0 to 3 are the sums, which begin as the items' offsets in every row, 4 and 5 the
/// queries, 6 and 7 the items.
[[gnu::always_inline]] inline GPUTEXT_TARGET_AMX void sum_products(const Bfloat16* query,
                                                                   const Bfloat16* item,
                                                                   const float* offsets,
                                                                   std::size_t steps, Sums& sums) {
    _tile_loadd(0, offsets, 0);
    _tile_loadd(1, offsets + kTile, 0);
    _tile_loadd(2, offsets, 0);
    _tile_loadd(3, offsets + kTile, 0);
    for (std::size_t step = 0; step < steps; ++step) {
        _tile_loadd(4, query, 64);
        _tile_loadd(6, item, 64);
        _tile_loadd(5, query + kTileElements, 64);
        _tile_loadd(7, item + kTileElements, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        query += 2 * kTileElements;
        item += 2 * kTileElements;
    }
    _tile_stored(0, sums.of[0][0], 64);
    _tile_stored(1, sums.of[0][1], 64);
    _tile_stored(2, sums.of[1][0], 64);
    _tile_stored(3, sums.of[1][1], 64);
}

/// Appends what the mask chooses, compressed in registers as cpp/knn/detail/distance_filter.cpp
/// does.
[[gnu::always_inline]] inline GPUTEXT_TARGET_AVX512 std::size_t append(__mmask16 chosen,
                                                                       __m512 values,
                                                                       std::uint32_t position,
                                                                       float* scores,
                                                                       std::uint32_t* positions) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i numbers = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(position)));
    _mm512_storeu_ps(scores, _mm512_maskz_compress_ps(chosen, values));
    _mm512_storeu_si512(positions, _mm512_maskz_compress_epi32(chosen, numbers));
    return static_cast<std::size_t>(std::popcount(static_cast<unsigned>(chosen)));
}

/// Appends those of a query's scores of a panel of items that pass its gate.
[[gnu::always_inline]] inline GPUTEXT_TARGET_AVX512 void pass(std::size_t query, __m512 low,
                                                              __m512 high, std::uint32_t position,
                                                              PassedScores<float>& passed) {
    const __m512 gate = _mm512_set1_ps(passed.gate[query]);
    const __mmask16 of_low = _mm512_cmp_ps_mask(low, gate, _CMP_LE_OQ);
    const __mmask16 of_high = _mm512_cmp_ps_mask(high, gate, _CMP_LE_OQ);
    if (_mm512_kunpackw(of_high, of_low) == 0) return;
    float* scores = passed.scores[query];
    std::uint32_t* positions = passed.positions[query];
    std::size_t& count = passed.count[query];
    count += append(of_low, low, position, scores + count, positions + count);
    count += append(of_high, high, position + kTile, scores + count, positions + count);
}

bool has_room(const PassedScores<float>& passed) {
    bool room = true;
    for (std::size_t q = 0; q < kRows; ++q) room &= passed.count[q] + kRows <= passed.capacity[q];
    return room;
}

template <class T>
std::size_t steps_of(std::size_t dimensions) {
    return (products_of<T> * dimensions + kDepth - 1) / kDepth;
}

template <class T>
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AMX std::size_t scan_by_tiles(
    const Bfloat16* queries, const Bfloat16* panels, const float* offsets, std::size_t dimensions,
    std::size_t begin, std::size_t end, PassedScores<float>& passed) {
    const TileShapes shapes;
    _tile_loadconfig(&shapes);
    const std::size_t steps = steps_of<T>(dimensions);
    Sums sums;
    std::size_t panel = begin;
    for (; panel < end && has_room(passed); ++panel) {
        sum_products(queries, panels + panel * steps * 2 * kTileElements, offsets + panel * kRows,
                     steps, sums);
        for (std::size_t q = 0; q < kRows; ++q)
            pass(q, _mm512_load_ps(sums.of[q / kTile][0][q % kTile]),
                 _mm512_load_ps(sums.of[q / kTile][1][q % kTile]),
                 static_cast<std::uint32_t>(panel * kRows), passed);
    }
    _tile_release();
    return panel;
}

/// Queries whose sums with a panel of items are in registers at a time.
constexpr std::size_t kQueriesAtOnce = 8;

/// The scores of these queries and a panel of items. A tile of items has, for each two numbers of a
/// row, a vector with these of all sixteen rows.
[[gnu::always_inline]] inline GPUTEXT_TARGET_BFLOAT16 void sum_pairs(
    const Bfloat16* query, const Bfloat16* item, const float* offsets, std::size_t steps,
    __m512 (&low)[kQueriesAtOnce], __m512 (&high)[kQueriesAtOnce]) {
    for (std::size_t q = 0; q < kQueriesAtOnce; ++q) {
        low[q] = _mm512_loadu_ps(offsets);
        high[q] = _mm512_loadu_ps(offsets + kTile);
    }
    for (std::size_t step = 0; step < steps; ++step) {
        for (std::size_t pair = 0; pair < kDepth / 2; ++pair) {
            const auto items_low =
                reinterpret_cast<__m512bh>(_mm512_loadu_si512(item + pair * kDepth));
            const auto items_high = reinterpret_cast<__m512bh>(
                _mm512_loadu_si512(item + kTileElements + pair * kDepth));
#pragma GCC unroll 8
            for (std::size_t q = 0; q < kQueriesAtOnce; ++q) {
                int numbers;
                std::memcpy(&numbers, query + q * kDepth + 2 * pair, sizeof numbers);
                const auto of_query = reinterpret_cast<__m512bh>(_mm512_set1_epi32(numbers));
                low[q] = _mm512_dpbf16_ps(low[q], of_query, items_low);
                high[q] = _mm512_dpbf16_ps(high[q], of_query, items_high);
            }
        }
        query += 2 * kTileElements;
        item += 2 * kTileElements;
    }
}

template <class T>
[[gnu::optimize("O3")]] GPUTEXT_TARGET_BFLOAT16 std::size_t scan_by_vectors(
    const Bfloat16* queries, const Bfloat16* panels, const float* offsets, std::size_t dimensions,
    std::size_t begin, std::size_t end, PassedScores<float>& passed) {
    const std::size_t steps = steps_of<T>(dimensions);
    std::size_t panel = begin;
    for (; panel < end && has_room(passed); ++panel) {
        const Bfloat16* const items = panels + panel * steps * 2 * kTileElements;
        for (std::size_t first = 0; first < kRows; first += kQueriesAtOnce) {
            __m512 low[kQueriesAtOnce], high[kQueriesAtOnce];
            sum_pairs(queries + first / kTile * kTileElements + first % kTile * kDepth, items,
                      offsets + panel * kRows, steps, low, high);
            for (std::size_t q = 0; q < kQueriesAtOnce; ++q)
                pass(first + q, low[q], high[q], static_cast<std::uint32_t>(panel * kRows), passed);
        }
    }
    return panel;
}

#endif

template <class T>
DistanceFilter<T> tile_filter([[maybe_unused]] Simd simd) {
    using Order = PanelShape::Order;
#ifdef GPUTEXT_X86
    const auto scan_panels = simd == Simd::amx ? scan_by_tiles<T> : scan_by_vectors<T>;
#else
    constexpr decltype(DistanceFilter<T>::scan) scan_panels = nullptr;
#endif
    return {{kRows, Order::left_tiles, products_of<T>},
            {kRows, Order::right_tiles, products_of<T>},
            scan_panels};
}

template <class T>
[[gnu::optimize("O3")]] void fill_tiles(const T* from, std::size_t stride, std::size_t count,
                                        std::size_t dimensions, const PanelShape& shape,
                                        Bfloat16* panel) {
    const bool left = shape.order == PanelShape::Order::left_tiles;
    constexpr std::uint32_t signs = 0x80008000;
    std::fill_n(panel, shape.size(dimensions), Bfloat16{0});
    std::vector<Bfloat16> numbers(shape.padded(dimensions), Bfloat16{0});
    for (std::size_t row = 0; row < count; ++row) {
        const T* elements = from + row * stride;
        if constexpr (std::is_same_v<T, Bfloat16Pair>) {
            for (std::size_t i = 0; i < dimensions; ++i) {
                const auto [high, low] = elements[i];
                numbers[i] = high;
                numbers[dimensions + i] = left ? high : low;
                numbers[2 * dimensions + i] = left ? low : high;
            }
        } else {
            std::copy_n(elements, dimensions, numbers.data());
        }
        // Two numbers at a time.
        Bfloat16* to = panel + row / kTile * kTileElements + row % kTile * (left ? kDepth : 2);
        const std::size_t step = left ? 2 : 2 * kTile;
        for (std::size_t i = 0; i < numbers.size(); i += 2) {
            std::uint32_t pair;
            std::memcpy(&pair, &numbers[i], sizeof pair);
            if (left) pair ^= signs;
            std::memcpy(to + i / kDepth * 2 * kTileElements + i % kDepth / 2 * step, &pair,
                        sizeof pair);
        }
    }
}

}  // namespace

bool bfloat16_filter_available(Score score, Simd simd) {
    return score == Score::product && simd >= Simd::bfloat16 && simd_available(simd);
}

template <>
DistanceFilter<Bfloat16> distance_filter(Score, Simd simd) {
    return tile_filter<Bfloat16>(simd);
}

template <>
DistanceFilter<Bfloat16Pair> distance_filter(Score, Simd simd) {
    return tile_filter<Bfloat16Pair>(simd);
}

template <>
void fill_panel(const Bfloat16* from, std::size_t stride, std::size_t count, std::size_t dimensions,
                const PanelShape& shape, Bfloat16* panel) {
    fill_tiles(from, stride, count, dimensions, shape, panel);
}

template <>
void fill_panel(const Bfloat16Pair* from, std::size_t stride, std::size_t count,
                std::size_t dimensions, const PanelShape& shape, Bfloat16* panel) {
    fill_tiles(from, stride, count, dimensions, shape, panel);
}

}  // namespace gputext
