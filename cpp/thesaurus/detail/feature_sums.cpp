#include "cpp/thesaurus/detail/feature_sums.hpp"

#include <immintrin.h>
#include <algorithm>

#include "cpp/base/stoppable.hpp"

#ifdef GPUTEXT_X86
#pragma GCC diagnostic push
#ifndef __clang__  // of gcc 12 about _mm512_undefined_ps() and the like
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#endif

namespace gputext {
namespace {

[[gnu::optimize("O3")]] void pairs_portable(const std::uint32_t* cells, const DenseTerm* terms,
                                            std::size_t count, std::uint32_t* __restrict sums) {
    std::fill_n(sums, kBlockWords, 0u);
    for (std::size_t t = 0; t < count; ++t) {
        const std::uint32_t* const column = cells + terms[t].column * kBlockWords;
        const std::uint32_t has = terms[t].factor & 0xffff, weight = terms[t].factor >> 16;
        for (std::size_t i = 0; i < kBlockWords; ++i)
            sums[i] += (column[i] & (0u - has) & 0xffff) + ((0u - (column[i] >> 16)) & weight);
    }
}

[[gnu::optimize("O3")]] void products_portable(const std::uint32_t* cells, const DenseTerm* terms,
                                               std::size_t count, double* __restrict sums) {
    std::fill_n(sums, kBlockWords, 0.0);
    for (std::size_t t = 0; t < count; ++t) {
        const std::uint32_t* const column = cells + terms[t].column * kBlockWords;
        const auto factor = static_cast<double>(terms[t].factor);
        for (std::size_t i = 0; i < kBlockWords; ++i)
            sums[i] += factor * static_cast<std::int32_t>(column[i]);
    }
}

template <bool product, class Sum>
std::uint64_t passing_portable(const Sum* sums, const float* sizes, const float* gates, float size,
                               float gate) {
    std::uint64_t passing = 0;
    for (std::size_t i = 0; i < 64; ++i) {
        const float both = product ? sizes[i] * size : sizes[i] + size;
        const bool passes = static_cast<float>(sums[i]) >= std::min(gates[i], gate) * both;
        passing |= std::uint64_t{passes} << i;
    }
    return passing;
}

#ifdef GPUTEXT_X86

// O3 unrolls the loops over registers, without which these would be memory.

#define GPUTEXT_TARGET_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

[[gnu::optimize("O3")]] GPUTEXT_TARGET_VNNI void pairs_vnni(const std::uint32_t* cells,
                                                            const DenseTerm* terms,
                                                            std::size_t count,
                                                            std::uint32_t* sums) {
    constexpr std::size_t n = kBlockWords / 16;
    __m512i all[n];
    for (auto& some : all) some = _mm512_setzero_si512();
    for (std::size_t t = 0; t < count; ++t) {
        const std::uint32_t* const column = cells + terms[t].column * kBlockWords;
        const __m512i factor = _mm512_set1_epi32(static_cast<int>(terms[t].factor));
        for (std::size_t i = 0; i < n; ++i)
            all[i] = _mm512_dpwssd_epi32(all[i], _mm512_loadu_si512(column + 16 * i), factor);
    }
    for (std::size_t i = 0; i < n; ++i) _mm512_storeu_si512(sums + 16 * i, all[i]);
}

[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX512 void pairs_avx512(const std::uint32_t* cells,
                                                                const DenseTerm* terms,
                                                                std::size_t count,
                                                                std::uint32_t* sums) {
    constexpr std::size_t n = kBlockWords / 16;
    __m512i all[n];
    for (auto& some : all) some = _mm512_setzero_si512();
    for (std::size_t t = 0; t < count; ++t) {
        const std::uint32_t* const column = cells + terms[t].column * kBlockWords;
        const __m512i factor = _mm512_set1_epi32(static_cast<int>(terms[t].factor));
        for (std::size_t i = 0; i < n; ++i)
            all[i] = _mm512_add_epi32(
                all[i], _mm512_madd_epi16(_mm512_loadu_si512(column + 16 * i), factor));
    }
    for (std::size_t i = 0; i < n; ++i) _mm512_storeu_si512(sums + 16 * i, all[i]);
}

[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void pairs_avx2(const std::uint32_t* cells,
                                                            const DenseTerm* terms,
                                                            std::size_t count,
                                                            std::uint32_t* sums) {
    constexpr std::size_t n = 8, words = 8 * n;  // that registers suffice for
    for (std::size_t first = 0; first < kBlockWords; first += words) {
        __m256i all[n];
        for (auto& some : all) some = _mm256_setzero_si256();
        for (std::size_t t = 0; t < count; ++t) {
            const auto* const column =
                reinterpret_cast<const __m256i*>(cells + terms[t].column * kBlockWords + first);
            const __m256i factor = _mm256_set1_epi32(static_cast<int>(terms[t].factor));
            for (std::size_t i = 0; i < n; ++i)
                all[i] = _mm256_add_epi32(
                    all[i], _mm256_madd_epi16(_mm256_loadu_si256(column + i), factor));
        }
        for (std::size_t i = 0; i < n; ++i)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + first + 8 * i), all[i]);
    }
}

// Sums are whole numbers below 2^53: whether a product and a sum are rounded together makes no
// difference.

[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX512 void products_avx512(const std::uint32_t* cells,
                                                                   const DenseTerm* terms,
                                                                   std::size_t count,
                                                                   double* sums) {
    constexpr std::size_t n = kBlockWords / 8;
    __m512d all[n];
    for (auto& some : all) some = _mm512_setzero_pd();
    for (std::size_t t = 0; t < count; ++t) {
        const std::uint32_t* const column = cells + terms[t].column * kBlockWords;
        const __m512d factor = _mm512_set1_pd(terms[t].factor);
        for (std::size_t i = 0; i < n; ++i)
            all[i] = _mm512_fmadd_pd(_mm512_cvtepi32_pd(_mm256_loadu_si256(
                                         reinterpret_cast<const __m256i*>(column + 8 * i))),
                                     factor, all[i]);
    }
    for (std::size_t i = 0; i < n; ++i) _mm512_storeu_pd(sums + 8 * i, all[i]);
}

[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void products_avx2(const std::uint32_t* cells,
                                                               const DenseTerm* terms,
                                                               std::size_t count, double* sums) {
    constexpr std::size_t n = 8, words = 4 * n;  // that registers suffice for
    for (std::size_t first = 0; first < kBlockWords; first += words) {
        __m256d all[n];
        for (auto& some : all) some = _mm256_setzero_pd();
        for (std::size_t t = 0; t < count; ++t) {
            const std::uint32_t* const column = cells + terms[t].column * kBlockWords + first;
            const __m256d factor = _mm256_set1_pd(terms[t].factor);
            for (std::size_t i = 0; i < n; ++i)
                all[i] = _mm256_fmadd_pd(_mm256_cvtepi32_pd(_mm_loadu_si128(
                                             reinterpret_cast<const __m128i*>(column + 4 * i))),
                                         factor, all[i]);
        }
        for (std::size_t i = 0; i < n; ++i) _mm256_storeu_pd(sums + first + 4 * i, all[i]);
    }
}

GPUTEXT_TARGET_AVX512 inline __m512 sixteen(const std::uint32_t* sums) {
    return _mm512_cvtepu32_ps(_mm512_loadu_si512(sums));
}
GPUTEXT_TARGET_AVX512 inline __m512 sixteen(const double* sums) {
    const __m256 low = _mm512_cvtpd_ps(_mm512_loadu_pd(sums));
    const __m256 high = _mm512_cvtpd_ps(_mm512_loadu_pd(sums + 8));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

template <bool product, class Sum>
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX512 std::uint64_t passing_avx512(const Sum* sums,
                                                                           const float* sizes,
                                                                           const float* gates,
                                                                           float size, float gate) {
    const __m512 its_size = _mm512_set1_ps(size), its_gate = _mm512_set1_ps(gate);
    std::uint64_t passing = 0;
    for (std::size_t i = 0; i < 64; i += 16) {
        const __m512 other = _mm512_loadu_ps(sizes + i);
        const __m512 both =
            product ? _mm512_mul_ps(other, its_size) : _mm512_add_ps(other, its_size);
        const __m512 least =
            _mm512_mul_ps(_mm512_min_ps(_mm512_loadu_ps(gates + i), its_gate), both);
        passing |= std::uint64_t{_mm512_cmp_ps_mask(sixteen(sums + i), least, _CMP_GE_OQ)} << i;
    }
    return passing;
}

GPUTEXT_TARGET_AVX2 inline __m256 eight(const std::uint32_t* sums) {
    // AVX2 cannot convert unsigned numbers: halves are converted, and the sum is rounded once.
    const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
    const __m256 high = _mm256_cvtepi32_ps(_mm256_srli_epi32(all, 16));
    const __m256 low = _mm256_cvtepi32_ps(_mm256_and_si256(all, _mm256_set1_epi32(0xffff)));
    return _mm256_fmadd_ps(high, _mm256_set1_ps(65536), low);
}
GPUTEXT_TARGET_AVX2 inline __m256 eight(const double* sums) {
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(sums + 4)),
                           _mm256_cvtpd_ps(_mm256_loadu_pd(sums)));
}

template <bool product, class Sum>
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 std::uint64_t passing_avx2(const Sum* sums,
                                                                       const float* sizes,
                                                                       const float* gates,
                                                                       float size, float gate) {
    const __m256 its_size = _mm256_set1_ps(size), its_gate = _mm256_set1_ps(gate);
    std::uint64_t passing = 0;
    for (std::size_t i = 0; i < 64; i += 8) {
        const __m256 other = _mm256_loadu_ps(sizes + i);
        const __m256 both =
            product ? _mm256_mul_ps(other, its_size) : _mm256_add_ps(other, its_size);
        const __m256 least =
            _mm256_mul_ps(_mm256_min_ps(_mm256_loadu_ps(gates + i), its_gate), both);
        const int bits = _mm256_movemask_ps(_mm256_cmp_ps(eight(sums + i), least, _CMP_GE_OQ));
        passing |= static_cast<std::uint64_t>(bits) << i;
    }
    return passing;
}

#pragma GCC diagnostic pop
#endif

}  // namespace

// What makes a feature dense is about where adding a block takes as long as adding its words one by
// one does, measured.

SumKernels<std::uint32_t> pair_kernels(Simd simd, bool vnni) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512)
        return {vnni && __builtin_cpu_supports("avx512vnni") ? pairs_vnni : pairs_avx512,
                passing_avx512<false, std::uint32_t>, passing_avx512<true, std::uint32_t>, 12};
    if (simd == Simd::avx2)
        return {pairs_avx2, passing_avx2<false, std::uint32_t>, passing_avx2<true, std::uint32_t>,
                8};
#endif
    (void)simd, (void)vnni;
    return {pairs_portable, passing_portable<false, std::uint32_t>,
            passing_portable<true, std::uint32_t>, 2};
}

SumKernels<double> product_kernels(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512)
        return {products_avx512, passing_avx512<false, double>, passing_avx512<true, double>, 12};
    if (simd == Simd::avx2)
        return {products_avx2, passing_avx2<false, double>, passing_avx2<true, double>, 6};
#endif
    (void)simd;
    return {products_portable, passing_portable<false, double>, passing_portable<true, double>, 2};
}

namespace {

/// More cells a word than these, and a block of words leaves a processor's second cache.
constexpr std::size_t kMostDense = 2000;

/// Ranges of columns for each thread.
constexpr std::size_t kRangesOfThread = 4;

}  // namespace

/// Calls take(word, i) for each feature of the range's columns, word by word.
template <class Take>
Status WordTile::each_of(const WordFeatures& features, const ColumnRange& range, Stop stop,
                         Take&& take) const {
    const std::uint32_t* const columns = features.columns.data();
    std::size_t since_look = 0;
    for (std::uint32_t word = begin_; word < end_; ++word) {
        const std::uint64_t row_end = features.begins[word + 1];
        auto i = static_cast<std::uint64_t>(
            std::lower_bound(columns + features.begins[word], columns + row_end, range.begin) -
            columns);
        for (; i < row_end && columns[i] < range.end; ++i, ++since_look) take(word, i);
        since_look += 16;
        if (since_look < kLookEvery) continue;
        since_look = 0;
        if (stop()) return Status::cancelled();
    }
    return {};
}

Status WordTile::build(const WordFeatures& features, const Choice& choice, std::uint32_t begin,
                       std::uint32_t end, Execution& execution) {
    begin_ = begin, end_ = end;
    const std::uint64_t columns = features.shape.columns();
    if (list_begins_.size() != columns + 1)
        if (!stoppable_assign(list_begins_, columns + 1, 0u, execution.stop()) ||
            !stoppable_assign(dense_of_, columns, std::uint16_t{0}, execution.stop()))
            return Status::cancelled();

    std::vector<ColumnRange> ranges(kRangesOfThread * execution.threads());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        ranges[i].begin = columns * i / ranges.size();
        ranges[i].end = columns * (i + 1) / ranges.size();
    }
    const std::size_t blocks = (size() + kBlockWords - 1) / kBlockWords;
    execution.begin_phase("indexing words", 2 * ranges.size() + blocks);
    GPUTEXT_TRY(execution.parallel_for(ranges.size(), [&](std::size_t range, unsigned) {
        return count(features, choice, ranges[range], execution.stop());
    }));
    choose_dense(choice, ranges);
    std::uint64_t postings = 0;
    for (ColumnRange& range : ranges) {
        const std::uint64_t before = postings;
        postings += range.postings;
        range.postings = before;
    }
    list_begins_[columns] = static_cast<std::uint32_t>(postings);
    if (postings_.size() < postings) {
        postings_ = {};
        if (!stoppable_assign(postings_, postings, 0u, execution.stop()))
            return Status::cancelled();
    }
    GPUTEXT_TRY(execution.parallel_for(ranges.size(), [&](std::size_t range, unsigned) {
        return fill_lists(features, choice, ranges[range], execution.stop());
    }));

    dense_columns_ = 0;
    for (Dense& dense : dense_) {
        dense.first = static_cast<std::uint32_t>(dense_columns_);
        dense_columns_ += dense.columns;
    }
    const std::size_t cells = blocks * dense_columns_ * kBlockWords;
    if (cells_.size() < cells) {
        cells_ = {};
        if (!stoppable_assign(cells_, cells, 0u, execution.stop())) return Status::cancelled();
    }
    if (!any_dense()) return {};
    return execution.parallel_for(blocks, [&](std::size_t block, unsigned) {
        return fill_block(features, choice, block, execution.stop());
    });
}

/// How many words have each column, in list_begins_.
Status WordTile::count(const WordFeatures& features, const Choice& choice, ColumnRange& range,
                       Stop stop) {
    std::fill(list_begins_.begin() + static_cast<std::ptrdiff_t>(range.begin),
              list_begins_.begin() + static_cast<std::ptrdiff_t>(range.end), 0u);
    std::fill(dense_of_.begin() + static_cast<std::ptrdiff_t>(range.begin),
              dense_of_.begin() + static_cast<std::ptrdiff_t>(range.end), std::uint16_t{0});
    GPUTEXT_TRY(each_of(features, range, stop, [&](std::uint32_t, std::uint64_t i) {
        ++list_begins_[features.columns[i]];
        ++range.postings;
    }));
    if (choice.dense_part == 0) return {};
    const std::size_t least = std::max<std::size_t>(1, size() / choice.dense_part);
    for (std::uint64_t column = range.begin; column < range.end; ++column)
        if (list_begins_[column] >= least)
            range.frequent.push_back(static_cast<std::uint32_t>(column));
    return {};
}

/// The most frequent ones of the features that may be dense, as many as there is memory for.
void WordTile::choose_dense(const Choice& choice, std::span<ColumnRange> ranges) {
    dense_.clear();
    std::vector<std::uint32_t> dense;
    for (const ColumnRange& range : ranges)
        dense.insert(dense.end(), range.frequent.begin(), range.frequent.end());
    const std::size_t most = std::min(
        kMostDense, choice.dense_memory / (sizeof(std::uint32_t) * (size() + kBlockWords)));
    if (dense.size() > most) {
        const auto end = dense.begin() + static_cast<std::ptrdiff_t>(most);
        std::nth_element(dense.begin(), end, dense.end(), [&](std::uint32_t a, std::uint32_t b) {
            return list_begins_[a] != list_begins_[b] ? list_begins_[a] > list_begins_[b] : a < b;
        });
        dense.resize(most);
        std::sort(dense.begin(), dense.end());
    }
    std::size_t range = 0;
    for (const std::uint32_t column : dense) {
        while (column >= ranges[range].end) ++range;
        ranges[range].postings -= list_begins_[column];
        dense_.push_back({0, 1});
        dense_of_[column] = static_cast<std::uint16_t>(dense_.size());
    }
}

/// Makes list_begins_ of the counts, and for dense features columns enough for their weights.
Status WordTile::fill_lists(const WordFeatures& features, const Choice& choice,
                            const ColumnRange& range, Stop stop) {
    // First where each list ends; filled from behind, begins are left.
    auto next = static_cast<std::uint32_t>(range.postings);
    for (std::uint64_t column = range.begin; column < range.end; ++column) {
        const std::uint32_t words = dense_of_[column] == 0 ? list_begins_[column] : 0;
        list_begins_[column] = next;
        next += words;
    }
    Status status = each_of(features, range, stop, [&](std::uint32_t word, std::uint64_t i) {
        const std::uint32_t column = features.columns[i];
        const std::uint32_t weight = choice.ones ? 1 : features.weights[i];
        if (dense_of_[column] == 0)
            postings_[list_begins_[column]++] = (word - begin_) | weight << 16;
        else if (!choice.products && weight > kMostPairWeight)
            dense_[dense_of_[column] - 1].columns =
                std::max(dense_[dense_of_[column] - 1].columns,
                         (weight + kMostPairWeight - 1) / kMostPairWeight);
    });
    // Each end has become the begin of the next list.
    auto before = static_cast<std::uint32_t>(range.postings);
    for (std::uint64_t column = range.begin; column < range.end; ++column)
        std::swap(before, list_begins_[column]);
    return status;
}

Status WordTile::fill_block(const WordFeatures& features, const Choice& choice, std::size_t block,
                            Stop stop) {
    std::uint32_t* const cells = cells_.data() + block * dense_columns_ * kBlockWords;
    std::fill_n(cells, dense_columns_ * kBlockWords, 0u);
    const auto first = static_cast<std::uint32_t>(begin_ + block * kBlockWords);
    for (std::uint32_t word = first; word < std::min<std::uint64_t>(first + kBlockWords, end_);
         ++word) {
        if (stop()) return Status::cancelled();
        for (auto i = features.begins[word]; i < features.begins[word + 1]; ++i) {
            const Dense* const its = dense(features.columns[i]);
            if (its == nullptr) continue;
            const std::uint32_t weight = choice.ones ? 1 : features.weights[i];
            std::uint32_t* cell = cells + its->first * kBlockWords + (word - first);
            if (choice.products) {
                *cell = weight;
                continue;
            }
            std::uint32_t left = weight;
            for (std::uint32_t c = 0; c < its->columns; ++c, cell += kBlockWords) {
                const std::uint32_t part = std::min(left, kMostPairWeight);
                *cell = pair_cell(part, c == 0);
                left -= part;
            }
        }
    }
    return {};
}

}  // namespace gputext
