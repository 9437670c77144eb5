#include "cpp/terms/detail/filter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gputext {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float round_down(double number) {
    const auto rounded = static_cast<float>(number);
    return rounded > number ? std::nextafter(rounded, -kInfinity) : rounded;
}

/// Sets the scores to the sum of `count` columns' products, or adds them.
template <std::size_t count, bool add>
[[gnu::always_inline]] inline void columns_here(const std::uint16_t* const* columns,
                                                const float* weights, std::size_t rows,
                                                float* __restrict scores) {
    static_assert(count >= 1 && count <= 4);
    const std::uint16_t* __restrict a = columns[0];
    const std::uint16_t* __restrict b = columns[count > 1 ? 1 : 0];
    const std::uint16_t* __restrict c = columns[count > 2 ? 2 : 0];
    const std::uint16_t* __restrict d = columns[count > 3 ? 3 : 0];
    const float wa = weights[0], wb = weights[count > 1 ? 1 : 0], wc = weights[count > 2 ? 2 : 0],
                wd = weights[count > 3 ? 3 : 0];
    for (std::size_t i = 0; i < rows; ++i) {
        float sum = wa * static_cast<float>(static_cast<std::int32_t>(a[i]));
        if constexpr (count > 1) sum += wb * static_cast<float>(static_cast<std::int32_t>(b[i]));
        if constexpr (count > 2) sum += wc * static_cast<float>(static_cast<std::int32_t>(c[i]));
        if constexpr (count > 3) sum += wd * static_cast<float>(static_cast<std::int32_t>(d[i]));
        scores[i] = add ? scores[i] + sum : sum;
    }
}

template <bool add>
[[gnu::always_inline]] inline void some_columns_here(const std::uint16_t* const* columns,
                                                     const float* weights, std::size_t count,
                                                     std::size_t rows, float* scores) {
    switch (count) {
        case 1:
            return columns_here<1, add>(columns, weights, rows, scores);
        case 2:
            return columns_here<2, add>(columns, weights, rows, scores);
        case 3:
            return columns_here<3, add>(columns, weights, rows, scores);
        default:
            return columns_here<4, add>(columns, weights, rows, scores);
    }
}

[[gnu::always_inline]] inline void all_columns_here(const std::uint16_t* const* columns,
                                                    const float* weights, std::size_t count,
                                                    std::size_t rows, float* scores) {
    some_columns_here<false>(columns, weights, std::min<std::size_t>(4, count), rows, scores);
    for (std::size_t i = 4; i < count; i += 4)
        some_columns_here<true>(columns + i, weights + i, std::min<std::size_t>(4, count - i), rows,
                                scores);
}

[[gnu::always_inline]] inline bool none_here(const float* scores, float least) {
    int count = 0;
    for (std::size_t i = 0; i < TermFilter::step; ++i) count += scores[i] >= least;
    return count == 0;
}

// The loops above, compiled for each instruction set.

[[gnu::optimize("O3")]] void all_columns(const std::uint16_t* const* columns, const float* weights,
                                         std::size_t count, std::size_t rows, float* scores) {
    all_columns_here(columns, weights, count, rows, scores);
}
[[gnu::optimize("O3")]] bool none(const float* scores, float least) {
    return none_here(scores, least);
}

#ifdef GPUTEXT_X86
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void all_columns_avx2(
    const std::uint16_t* const* columns, const float* weights, std::size_t count, std::size_t rows,
    float* scores) {
    all_columns_here(columns, weights, count, rows, scores);
}
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 bool none_avx2(const float* scores, float least) {
    return none_here(scores, least);
}
[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 void
all_columns_avx512(const std::uint16_t* const* columns, const float* weights, std::size_t count,
                   std::size_t rows, float* scores) {
    all_columns_here(columns, weights, count, rows, scores);
}
[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 bool
none_avx512(const float* scores, float least) {
    return none_here(scores, least);
}
#endif

TermFilter::AddColumns add_columns_for(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return all_columns_avx512;
    if (simd == Simd::avx2) return all_columns_avx2;
#endif
    (void)simd;
    return all_columns;
}

TermFilter::None none_for(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return none_avx512;
    if (simd == Simd::avx2) return none_avx2;
#endif
    (void)simd;
    return none;
}

}  // namespace

ScoreBound::ScoreBound(std::size_t terms, double dense_weights, bool negative, double measure)
    : measure_(measure), negative_(negative) {
    const double u = (static_cast<double>(terms) + 8) * 0x1p-24;
    // With so many terms a sum of floats has no bound.
    relative_ = u < 0.5 ? u / (1 - u) : std::numeric_limits<double>::infinity();
    absolute_ = static_cast<double>(terms + 1) * 0x1p-38 +
                dense_weights * (1 + 0x1p-20) * InvertedIndex::dense_unit;
}

double ScoreBound::cosine_at_least(double score) const {
    return negative_ ? score - relative_ - absolute_ : (score - absolute_) / (1 + relative_);
}

float ScoreBound::score_of(double cosine) const {
    const double score =
        negative_ ? cosine - relative_ - absolute_ : cosine * (1 - relative_) - absolute_;
    // True for NaN as well: an infinite bound excludes nothing.
    if (!(score > -2)) return -kInfinity;
    return negative_ ? round_down(score) : std::max(round_down(score), 0.0f);
}

float ScoreBound::least_within(double distance) const {
    return score_of(measure_ > 0 ? -distance / measure_ : 1 - distance);
}

void IndexedQuery::set(const TermMatrix& queries, std::size_t row, double square,
                       const InvertedIndex& index, std::size_t first_tile, bool negative) {
    dense_.clear();
    dense_weights_.clear();
    frequent_.clear();
    rare_.clear();
    const double norm = std::sqrt(square);
    const auto first = static_cast<std::uint32_t>(first_tile * index.tile_rows());
    double dense_weights = 0;
    std::size_t terms = 0;
    queries.each(row, [&](std::uint32_t term, double weight) {
        const auto [kind, number] = index.place(term);
        if (kind == InvertedIndex::Kind::none) return;
        ++terms;
        auto unit = static_cast<float>(weight / norm);
        if (std::fabs(unit) < InvertedIndex::least_weight)
            unit = std::copysign(InvertedIndex::least_weight, unit);
        if (kind == InvertedIndex::Kind::dense) {
            dense_.push_back(number);
            dense_weights_.push_back(unit * static_cast<float>(InvertedIndex::dense_unit));
            dense_weights += unit;
        } else if (kind == InvertedIndex::Kind::frequent) {
            frequent_.push_back({number, unit});
        } else {
            const auto all = index.rare(number);
            const auto begin = std::partition_point(
                all.begin(), all.end(), [first](const auto& p) { return p.position < first; });
            if (begin != all.end()) rare_.push_back({&*begin, all.data() + all.size(), unit});
        }
    });
    bound_ = ScoreBound(terms, dense_weights, negative, norm * std::sqrt(index.common_square()));
}

TermFilter::TermFilter(const InvertedIndex& index, bool negative, Simd simd)
    : index_(index),
      negative_(negative),
      scores_(static_cast<float*>(
          ::operator new[](index.tile_rows() * sizeof(float), std::align_val_t(64)))),
      add_columns_(add_columns_for(simd)),
      none_(none_for(simd)) {}

bool TermFilter::touched(float score) const {
    return negative_ ? std::bit_cast<std::uint32_t>(score) != 0x80000000 : score > 0;
}

void TermFilter::score(IndexedQuery& query, std::size_t tile) {
    const std::size_t rows = index_.tile_rows();
    float* const scores = scores_.get();
    if (query.dense_.empty()) {
        std::fill_n(scores, rows, negative_ ? -0.0f : 0.0f);
    } else {
        columns_.clear();
        for (const std::uint32_t dense : query.dense_)
            columns_.push_back(index_.column(tile, dense));
        add_columns_(columns_.data(), query.dense_weights_.data(), columns_.size(), rows, scores);
    }
    // Lists lie anywhere in the tile's part of the index: ask for all before the first is read.
    lists_.clear();
    for (const auto& [number, weight] : query.frequent_) {
        lists_.push_back(index_.list(tile, number));
        __builtin_prefetch(lists_.back().rows);
        __builtin_prefetch(lists_.back().weights);
    }
    for (std::size_t l = 0; l < lists_.size(); ++l) {
        const InvertedIndex::List& list = lists_[l];
        const float weight = query.frequent_[l].weight;
        for (std::size_t i = 0; i < list.size; ++i)
            scores[list.rows[i]] += weight * list.weights[i];
    }
    const std::size_t first = tile * rows, end = first + rows;
    for (auto& [at, postings_end, weight] : query.rare_)
        for (; at != postings_end && at->position < end; ++at)
            scores[at->position - first] += weight * at->weight;
}

}  // namespace gputext
