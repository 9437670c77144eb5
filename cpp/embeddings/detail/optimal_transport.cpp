#include "cpp/embeddings/detail/optimal_transport.hpp"

#include <algorithm>
#include <bit>

#include "cpp/base/stoppable.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace gputext {
namespace {

/// Columns of a row are a multiple of these.
constexpr std::size_t kPadding = 16;

/// Rows in a word of a set.
constexpr std::size_t kBits = 64;

std::size_t padded(std::size_t columns) {
    return (columns + kPadding - 1) / kPadding * kPadding;
}

// ---- The loops over the columns, for each instruction set ----

[[gnu::always_inline]] inline void relax_here(const OptimalTransport::Columns& columns,
                                              const std::uint32_t* __restrict costs,
                                              std::uint32_t offset, std::uint32_t row) {
    std::uint32_t* __restrict const distances = columns.distances;
    std::uint32_t* __restrict const from = columns.from;
    const std::uint32_t* __restrict const closed = columns.closed;
    const std::int32_t* __restrict const potentials = columns.potentials;
    for (std::size_t j = 0; j < columns.stride; ++j) {
        const std::uint32_t candidate =
            (offset + costs[j] - static_cast<std::uint32_t>(potentials[j])) | closed[j];
        from[j] = candidate < distances[j] ? row : from[j];
        distances[j] = std::min(distances[j], candidate);
    }
}

/// Least distance among all open columns.
[[gnu::always_inline]] inline std::uint32_t least_distance(
    const OptimalTransport::Columns& columns) {
    const std::uint32_t* __restrict const distances = columns.distances;
    const std::uint32_t* __restrict const closed = columns.closed;
    std::uint32_t least = UINT32_MAX;
    for (std::size_t j = 0; j < columns.stride; ++j)
        least = std::min(least, distances[j] | closed[j]);
    return least;
}

[[gnu::optimize("O3")]] void relax_portable(const OptimalTransport::Columns& columns,
                                            const std::uint32_t* costs, std::uint32_t offset,
                                            std::uint32_t row) {
    relax_here(columns, costs, offset, row);
}

[[gnu::optimize("O3")]] std::size_t nearest_portable(const OptimalTransport::Columns& columns) {
    const std::uint32_t least = least_distance(columns);
    std::size_t nearest = columns.stride;
    for (std::size_t j = 0; j < columns.stride; ++j) {
        if ((columns.distances[j] | columns.closed[j]) != least) continue;
        if (columns.demands[j] > 0) return j;
        if (nearest == columns.stride) nearest = j;
    }
    return nearest;
}

#ifdef GPUTEXT_X86
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void relax_avx2(
    const OptimalTransport::Columns& columns, const std::uint32_t* costs, std::uint32_t offset,
    std::uint32_t row) {
    relax_here(columns, costs, offset, row);
}

GPUTEXT_TARGET_AVX2 inline __m256i load_eight(const std::uint32_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

/// A bit for each of eight numbers.
GPUTEXT_TARGET_AVX2 inline unsigned bits_of(__m256i mask) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}

GPUTEXT_TARGET_AVX2 std::size_t nearest_avx2(const OptimalTransport::Columns& columns) {
    __m256i least = _mm256_set1_epi32(-1);
    for (std::size_t j = 0; j < columns.stride; j += 8)
        least = _mm256_min_epu32(least, _mm256_or_si256(load_eight(columns.distances + j),
                                                        load_eight(columns.closed + j)));
    least = _mm256_min_epu32(least, _mm256_permute4x64_epi64(least, 0x4e));
    least = _mm256_min_epu32(least, _mm256_shuffle_epi32(least, 0x4e));
    least = _mm256_min_epu32(least, _mm256_shuffle_epi32(least, 0xb1));
    std::size_t nearest = columns.stride;
    for (std::size_t j = 0; j < columns.stride; j += 8) {
        const __m256i equal = _mm256_cmpeq_epi32(
            least,
            _mm256_or_si256(load_eight(columns.distances + j), load_eight(columns.closed + j)));
        const __m256i full =
            _mm256_cmpeq_epi32(load_eight(columns.demands + j), _mm256_setzero_si256());
        const unsigned any = bits_of(equal), lacking = any & ~bits_of(full);
        if (lacking != 0) return j + static_cast<std::size_t>(std::countr_zero(lacking));
        if (any != 0 && nearest == columns.stride)
            nearest = j + static_cast<std::size_t>(std::countr_zero(any));
    }
    return nearest;
}

[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 void
relax_avx512(const OptimalTransport::Columns& columns, const std::uint32_t* costs,
             std::uint32_t offset, std::uint32_t row) {
    relax_here(columns, costs, offset, row);
}

[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 std::size_t
nearest_avx512(const OptimalTransport::Columns& columns) {
    const __m512i least = _mm512_set1_epi32(static_cast<int>(least_distance(columns)));
    std::size_t nearest = columns.stride;
    for (std::size_t j = 0; j < columns.stride; j += kPadding) {
        const __m512i here = _mm512_or_si512(_mm512_loadu_si512(columns.distances + j),
                                             _mm512_loadu_si512(columns.closed + j));
        const __m512i demands = _mm512_loadu_si512(columns.demands + j);
        const unsigned any = _mm512_cmpeq_epu32_mask(here, least);
        const unsigned lacking = any & _mm512_test_epi32_mask(demands, demands);
        if (lacking != 0) return j + static_cast<std::size_t>(std::countr_zero(lacking));
        if (any != 0 && nearest == columns.stride)
            nearest = j + static_cast<std::size_t>(std::countr_zero(any));
    }
    return nearest;
}
#endif

OptimalTransport::Relax relax_by(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return relax_avx512;
    if (simd == Simd::avx2) return relax_avx2;
#endif
    (void)simd;
    return relax_portable;
}

OptimalTransport::Nearest nearest_by(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return nearest_avx512;
    if (simd == Simd::avx2) return nearest_avx2;
#endif
    (void)simd;
    return nearest_portable;
}

}  // namespace

OptimalTransport::OptimalTransport(Simd simd)
    : relax_(relax_by(simd)), nearest_(nearest_by(simd)) {}

std::uint64_t OptimalTransport::bytes(std::size_t rows, std::size_t columns) {
    constexpr std::uint64_t bytes_of_row = 25, bytes_of_column = 28;
    const std::uint64_t carriers = (rows + kBits - 1) / kBits * columns * sizeof(std::uint64_t);
    return rows * (padded(columns) + columns) * sizeof(std::uint32_t) + carriers +
           rows * bytes_of_row + padded(columns) * bytes_of_column;
}

std::uint32_t* OptimalTransport::begin(std::size_t rows, std::size_t columns) {
    rows_ = rows;
    columns_ = columns;
    stride_ = padded(columns);
    if (rows * stride_ > capacity_) {
        costs_.reset();
        costs_ = std::make_unique<std::uint32_t[]>(rows * stride_);
        capacity_ = rows * stride_;
    }
    return costs_.get();
}

Status OptimalTransport::solve(std::span<const std::uint32_t> supplies,
                               std::span<const std::uint32_t> demands, Stop stop,
                               std::uint64_t& total) {
    stop_ = stop;
    supplies_.assign(supplies.begin(), supplies.end());
    demands_.assign(demands.begin(), demands.end());
    demands_.resize(stride_, 0);
    carried_.assign(rows_ * columns_, 0);
    row_words_ = (rows_ + kBits - 1) / kBits;
    carriers_.assign(row_words_ * columns_, 0);
    is_reached_.assign(row_words_, 0);
    row_distances_.resize(rows_);
    row_from_.resize(rows_);
    reached_.clear();
    scanned_.clear();
    pad();
    GPUTEXT_TRY(set_potentials());
    GPUTEXT_TRY(carry_along_tight_arcs());
    for (std::uint32_t row = 0; row < rows_; ++row)
        while (supplies_[row] > 0) {
            std::size_t end = 0;
            GPUTEXT_TRY(search(row, end));
            change_potentials(row, end);
            augment(row, end);
        }
    // Costs equal the sum of the potentials wherever mass is carried.
    std::int64_t sum = 0;
    for (std::size_t row = 0; row < rows_; ++row) sum += std::int64_t{supplies[row]} * u_[row];
    for (std::size_t column = 0; column < columns_; ++column)
        sum += std::int64_t{demands[column]} * v_[column];
    total = static_cast<std::uint64_t>(sum);
    return {};
}

bool OptimalTransport::stopped_after(std::size_t costs) {
    since_look_ += costs;
    if (since_look_ < kLookEvery) return false;
    since_look_ = 0;
    return stop_();
}

/// Columns of the padding are closed for good.
void OptimalTransport::pad() {
    distances_.assign(stride_, 0);
    from_.assign(stride_, 0);
    v_.assign(stride_, 0);
    closed_.assign(stride_, 0);
    std::fill(closed_.begin() + static_cast<std::ptrdiff_t>(columns_), closed_.end(), UINT32_MAX);
    for (std::size_t row = 0; row < rows_; ++row)
        std::fill(costs_.get() + row * stride_ + columns_, costs_.get() + (row + 1) * stride_, 0u);
}

/// v: the least cost of each column; u: what that leaves of each row's least.
Status OptimalTransport::set_potentials() {
    std::copy_n(costs_of(0), columns_, v_.begin());
    for (std::size_t row = 1; row < rows_; ++row) {
        if (stopped_after(columns_)) return Status::cancelled();
        for (std::size_t column = 0; column < columns_; ++column)
            v_[column] = std::min(v_[column], static_cast<std::int32_t>(costs_of(row)[column]));
    }
    u_.resize(rows_);
    for (std::size_t row = 0; row < rows_; ++row) {
        if (stopped_after(columns_)) return Status::cancelled();
        std::int32_t least = INT32_MAX;
        for (std::size_t column = 0; column < columns_; ++column)
            least = std::min(least, static_cast<std::int32_t>(costs_of(row)[column]) - v_[column]);
        u_[row] = least;
    }
    return {};
}

Status OptimalTransport::carry_along_tight_arcs() {
    for (std::size_t row = 0; row < rows_; ++row) {
        if (stopped_after(columns_)) return Status::cancelled();
        for (std::size_t column = 0; column < columns_ && supplies_[row] > 0; ++column)
            if (static_cast<std::int32_t>(costs_of(row)[column]) == u_[row] + v_[column])
                carry(row, column, std::min(supplies_[row], demands_[column]));
    }
    return {};
}

OptimalTransport::Columns OptimalTransport::searched() {
    return {distances_.data(), from_.data(), closed_.data(), v_.data(), demands_.data(), stride_};
}

/// A negative amount, in unsigned arithmetic, takes mass back.
void OptimalTransport::add_carried(std::size_t row, std::size_t column, std::uint32_t mass) {
    std::uint32_t& there = carried_[column * rows_ + row];
    there += mass;
    const std::uint64_t bit = std::uint64_t{1} << row % kBits;
    std::uint64_t& carriers = carriers_[column * row_words_ + row / kBits];
    carriers = there > 0 ? carriers | bit : carriers & ~bit;
}

void OptimalTransport::carry(std::size_t row, std::size_t column, std::uint32_t mass) {
    add_carried(row, column, mass);
    supplies_[row] -= mass;
    demands_[column] -= mass;
}

/// `end`: the nearest column that lacks something; `scanned_` are those that were nearer.
Status OptimalTransport::search(std::uint32_t row, std::size_t& end) {
    for (const std::uint32_t column : scanned_) closed_[column] = 0;
    scanned_.clear();
    reached_.clear();
    std::fill(is_reached_.begin(), is_reached_.end(), 0);
    // What this row carries may be taken back as well, but leads nowhere.
    is_reached_[row / kBits] |= std::uint64_t{1} << row % kBits;
    std::fill(distances_.begin(), distances_.end(), UINT32_MAX);
    const Columns columns = searched();
    relax_(columns, costs_of(row), -static_cast<std::uint32_t>(u_[row]), row);
    for (;;) {
        if (stopped_after(stride_)) return Status::cancelled();
        end = nearest_(columns);
        if (demands_[end] > 0) return {};
        closed_[end] = UINT32_MAX;
        scanned_.push_back(static_cast<std::uint32_t>(end));
        GPUTEXT_TRY(reach_rows(static_cast<std::uint32_t>(end)));
    }
}

/// Reaches the rows that carry something to the column, from which it may be taken back.
Status OptimalTransport::reach_rows(std::uint32_t column) {
    const Columns columns = searched();
    const std::uint32_t distance = distances_[column];
    for (std::size_t word = 0; word < row_words_; ++word) {
        std::uint64_t rows = carriers_[column * row_words_ + word] & ~is_reached_[word];
        is_reached_[word] |= rows;
        for (; rows != 0; rows &= rows - 1) {
            if (stopped_after(stride_)) return Status::cancelled();
            const auto row = static_cast<std::uint32_t>(
                word * kBits + static_cast<std::size_t>(std::countr_zero(rows)));
            reached_.push_back(row);
            row_distances_[row] = distance;
            row_from_[row] = column;
            relax_(columns, costs_of(row), distance - static_cast<std::uint32_t>(u_[row]), row);
        }
    }
    return {};
}

void OptimalTransport::change_potentials(std::uint32_t row, std::size_t end) {
    const std::uint32_t length = distances_[end];
    for (const std::uint32_t column : scanned_)
        v_[column] -= static_cast<std::int32_t>(length - distances_[column]);
    for (const std::uint32_t reached : reached_)
        u_[reached] += static_cast<std::int32_t>(length - row_distances_[reached]);
    u_[row] += static_cast<std::int32_t>(length);
}

/// Carries as much as the path allows from the row to the column.
void OptimalTransport::augment(std::uint32_t row, std::size_t end) {
    std::uint32_t mass = std::min(supplies_[row], demands_[end]);
    for (std::uint32_t at = from_[end]; at != row; at = from_[row_from_[at]])
        mass = std::min(mass, carried(at, row_from_[at]));
    supplies_[row] -= mass;
    demands_[end] -= mass;
    std::size_t column = end;
    for (;;) {
        const std::uint32_t at = from_[column];
        add_carried(at, column, mass);
        if (at == row) return;
        column = row_from_[at];
        add_carried(at, column, -mass);
    }
}

}  // namespace gputext
