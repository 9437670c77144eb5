#include "cpp/documents/detail/signature_join.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "cpp/base/radix_sort.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

constexpr std::size_t kVector = 8;  // columns of the widest vector

template <std::size_t Depth>
std::int64_t common_letters(const std::uint64_t* row, const std::uint64_t* words,
                            std::size_t stride, std::size_t column) {
    std::int64_t ones = 0;
    for (std::size_t word = 0; word < Depth; ++word)
        ones += std::popcount(row[word] & words[word * stride + column]);
    return ones;
}

template <std::size_t Depth>
std::size_t filter_portable(const std::uint64_t* row, const LetterCounts& columns,
                            std::size_t begin, std::size_t end, const std::int64_t* least,
                            std::uint32_t* hits) {
    std::size_t count = 0;
    for (std::size_t column = begin; column < end; ++column) {
        hits[count] = static_cast<std::uint32_t>(column);
        count += common_letters<Depth>(row, columns.words(), columns.stride(), column) >=
                 least[column - begin];
    }
    return count;
}

#ifdef GPUTEXT_X86

/// Appends the columns whose bit of `mask` is set.
inline std::size_t append_hits(unsigned mask, std::size_t column, std::uint32_t* hits,
                               std::size_t count) {
    for (; mask != 0; mask &= mask - 1)
        hits[count++] = static_cast<std::uint32_t>(column + std::countr_zero(mask));
    return count;
}

/// Ones of each byte, by looking up its two halves.
GPUTEXT_TARGET_AVX2 inline __m256i ones_of_bytes(__m256i bits) {
    const __m256i ones_of_half =
        _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                         0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i half = _mm256_set1_epi8(15);
    const __m256i low = _mm256_shuffle_epi8(ones_of_half, _mm256_and_si256(bits, half));
    const __m256i high =
        _mm256_shuffle_epi8(ones_of_half, _mm256_and_si256(_mm256_srli_epi16(bits, 4), half));
    return _mm256_add_epi8(low, high);
}

template <std::size_t Depth>
GPUTEXT_TARGET_AVX2 std::size_t filter_avx2(const std::uint64_t* row, const LetterCounts& columns,
                                            std::size_t begin, std::size_t end,
                                            const std::int64_t* least, std::uint32_t* hits) {
    const std::uint64_t* words = columns.words();
    const std::size_t stride = columns.stride();
    std::size_t count = 0;
    std::size_t column = begin;
    for (; column + 4 <= end; column += 4) {
        // A byte holds at most 8 * Depth ones; sums of bytes are taken before it overflows.
        __m256i ones = _mm256_setzero_si256();
        for (std::size_t from = 0; from < Depth; from += 16) {
            __m256i bytes = _mm256_setzero_si256();
            for (std::size_t word = from; word < std::min(Depth, from + 16); ++word) {
                const __m256i bits = _mm256_loadu_si256(
                    reinterpret_cast<const __m256i*>(words + word * stride + column));
                bytes = _mm256_add_epi8(
                    bytes, ones_of_bytes(_mm256_and_si256(
                               bits, _mm256_set1_epi64x(static_cast<long long>(row[word])))));
            }
            ones = _mm256_add_epi64(ones, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
        }
        const __m256i wanted =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(least + (column - begin)));
        const __m256i too_few = _mm256_cmpgt_epi64(wanted, ones);
        const auto mask = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(too_few)));
        if (mask != 15) count = append_hits(~mask & 15, column, hits, count);
    }
    const std::size_t rest =
        filter_portable<Depth>(row, columns, column, end, least + (column - begin), hits + count);
    return count + rest;
}

template <std::size_t Depth>
GPUTEXT_TARGET_AVX512 std::size_t filter_avx512(const std::uint64_t* row,
                                                const LetterCounts& columns, std::size_t begin,
                                                std::size_t end, const std::int64_t* least,
                                                std::uint32_t* hits) {
    const std::uint64_t* words = columns.words();
    const std::size_t stride = columns.stride();
    std::size_t count = 0;
    for (std::size_t column = begin; column < end; column += kVector) {
        __m512i ones = _mm512_setzero_si512();
        for (std::size_t word = 0; word < Depth; ++word) {
            const __m512i bits = _mm512_loadu_si512(words + word * stride + column);
            const __m512i common =
                _mm512_and_si512(bits, _mm512_set1_epi64(static_cast<long long>(row[word])));
            ones = _mm512_add_epi64(ones, _mm512_popcnt_epi64(common));
        }
        const auto inside =
            static_cast<__mmask8>(end - column >= kVector ? 255u : (1u << (end - column)) - 1u);
        const __m512i wanted = _mm512_maskz_loadu_epi64(inside, least + (column - begin));
        const unsigned mask = _mm512_mask_cmpge_epi64_mask(inside, ones, wanted);
        if (mask != 0) count = append_hits(mask, column, hits, count);
    }
    return count;
}

#endif

/// The filter written for just this depth.
template <std::size_t Depth>
LetterFilter filter_of_depth(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return filter_avx512<Depth>;
    if (simd == Simd::avx2) return filter_avx2<Depth>;
#endif
    return filter_portable<Depth>;
}

}  // namespace

LetterCounts::LetterCounts(std::size_t count, std::size_t depth)
    : depth_(depth),
      // A whole vector may be read from any column on.
      stride_((count + 2 * kVector - 1) / kVector * kVector),
      words_(stride_ * depth_),
      excess_(count) {}

void LetterCounts::set(std::size_t column, std::string_view letters) {
    for (const char letter : letters) {
        const std::uint64_t bit = std::uint64_t{1} << signature_letter_value(letter);
        std::size_t word = 0;
        while (word < depth_ && (words_[word * stride_ + column] & bit) != 0) ++word;
        if (word < depth_)
            words_[word * stride_ + column] |= bit;
        else
            ++excess_[column];
    }
}

void LetterCounts::copy_column(std::size_t column, std::uint64_t* words) const {
    for (std::size_t word = 0; word < depth_; ++word) words[word] = words_[word * stride_ + column];
}

std::size_t letter_filter_depth(std::size_t longest_signature) {
    // Letters occur length / 64 times on average; about twice and a half as often is rare.
    std::size_t depth = 4;
    while (depth < LetterCounts::max_depth && depth * 26 < longest_signature) depth *= 2;
    return depth;
}

LetterFilter letter_filter(Simd simd, std::size_t depth) {
    switch (depth) {
        case 4:
            return filter_of_depth<4>(simd);
        case 8:
            return filter_of_depth<8>(simd);
        case 16:
            return filter_of_depth<16>(simd);
        default:
            return filter_of_depth<32>(simd);
    }
}

namespace {

/// One part of one signature, in the order in which the join looks at them.
struct Entry {
    std::string_view letters;
    std::uint32_t index;  // in the caller's input
};

/// The entries of one block size: joined with themselves, or between two sides with others.
struct Entries {
    std::vector<Entry> rows;
    std::vector<Entry> others;
};

/// Entries of one block size, sorted by length, rows joined with columns: with the rows behind
/// them, or with the other entries, which follow the rows. Features are set by the caller, entry by
/// entry, before the first block is run.
class Join {
public:
    Join(Entries entries, bool between_sides, double rate, Simd simd)
        : entries_(std::move(entries.rows)),
          rows_(entries_.size()),
          between_sides_(between_sides),
          rate_(rate),
          longest_(longest_of(entries_, entries.others)),
          counts_(entries_.size() + entries.others.size(), letter_filter_depth(longest_)),
          filter_(letter_filter(simd, counts_.depth())) {
        entries_.insert(entries_.end(), entries.others.begin(), entries.others.end());
    }

    std::size_t entries() const { return entries_.size(); }

    void set_features(std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) counts_.set(i, entries_[i].letters);
    }

    /// Blocks of the part's rows: at most kBlockOfRows entries of one length and one stripe. The
    /// entries' stripes are numbered from `stripes` on, which counts them.
    std::size_t blocks(const PairPart& part, std::uint64_t& stripes) {
        for (std::size_t begin = 0; begin < rows_;) {
            std::size_t end = begin + 1;
            while (end < rows_ && end - begin < kBlockOfRows && end % kSignatureStripe != 0 &&
                   length(end) == length(begin))
                ++end;
            if (has_stripe(part, stripes + begin / kSignatureStripe))
                blocks_.push_back({begin, end});
            begin = end;
        }
        stripes += (rows_ + kSignatureStripe - 1) / kSignatureStripe;
        return blocks_.size();
    }

    /// Ends early when stopped.
    void run_block(std::size_t block, unsigned worker, Stop stop, PairLists& pairs) const {
        const auto [begin, end] = blocks_[block];
        const std::size_t columns_end = end_of_comparable(length(begin));
        std::array<std::int64_t, kBlockOfColumns> least;
        std::array<std::uint32_t, kBlockOfColumns + 1> hits;
        for (std::size_t from = begin_of_columns(begin); from < columns_end;
             from += kBlockOfColumns) {
            const std::size_t to = std::min(columns_end, from + kBlockOfColumns);
            set_least_common(length(begin), from, to, least);
            for (std::size_t row = begin; row < end && row + 1 < to; ++row) {
                // All columns may have to be verified.
                if (stop() || pairs.too_many(worker)) return;
                const std::size_t after_row = std::max(from, row + 1);
                std::array<std::uint64_t, LetterCounts::max_depth> words;
                counts_.copy_column(row, words.data());
                const std::size_t count = filter_(words.data(), counts_, after_row, to,
                                                  least.data() + (after_row - from), hits.data());
                verify(row, std::span(hits).first(count), worker, pairs);
            }
        }
    }

private:
    static constexpr std::size_t kBlockOfRows = 64;
    static constexpr std::size_t kBlockOfColumns = 1024;  // whose features stay in the L1 cache

    struct Rows {
        std::size_t begin, end;
    };

    std::size_t length(std::size_t entry) const { return entries_[entry].letters.size(); }

    std::size_t most_edits(std::size_t a_length, std::size_t b_length) const {
        return most_edits_within(rate_, a_length + b_length);
    }

    static std::size_t longest_of(std::span<const Entry> rows, std::span<const Entry> others) {
        return std::max(rows.empty() ? 0 : rows.back().letters.size(),
                        others.empty() ? 0 : others.back().letters.size());
    }

    /// The entry's column that comes first: of the others one that is not too short to be within
    /// the rate.
    std::size_t begin_of_columns(std::size_t row) const {
        if (!between_sides_) return row + 1;
        std::size_t shortest = length(row);
        while (shortest > 0 &&
               length(row) - (shortest - 1) <= most_edits(length(row), shortest - 1))
            --shortest;
        return rows_ + place_of(others(), [=](std::size_t length) { return length < shortest; });
    }

    /// The first column too long to be within the rate of a row of this length.
    std::size_t end_of_comparable(std::size_t row_length) const {
        std::size_t longest = row_length;
        while (longest < longest_ &&
               longest + 1 - row_length <= most_edits(row_length, longest + 1))
            ++longest;
        const std::size_t begin = between_sides_ ? rows_ : 0;
        return begin + place_of(std::span(entries_).subspan(begin),
                                [=](std::size_t length) { return length <= longest; });
    }

    std::span<const Entry> others() const { return std::span(entries_).subspan(rows_); }

    /// How many of the entries, which are sorted by length, have lengths below some length.
    template <class Below>
    static std::size_t place_of(std::span<const Entry> entries, Below&& below) {
        return static_cast<std::size_t>(
            std::ranges::partition_point(entries, below,
                                         [](const Entry& entry) { return entry.letters.size(); }) -
            entries.begin());
    }

    /// Least number of counted letters in common for columns [from, to) beside rows of one length.
    void set_least_common(std::size_t row_length, std::size_t from, std::size_t to,
                          std::array<std::int64_t, kBlockOfColumns>& least) const {
        std::size_t last_length = SIZE_MAX;
        std::int64_t least_common = 0;
        for (std::size_t column = from; column < to; ++column) {
            if (length(column) != last_length) {
                last_length = length(column);
                least_common = static_cast<std::int64_t>(std::max(row_length, last_length)) -
                               static_cast<std::int64_t>(most_edits(row_length, last_length));
            }
            least[column - from] = least_common - counts_.excess(column);
        }
    }

    void verify(std::size_t row, std::span<const std::uint32_t> columns, unsigned worker,
                PairLists& pairs) const {
        if (columns.empty()) return;
        const SignaturePattern pattern(entries_[row].letters);
        for (const std::uint32_t column : columns) {
            const std::size_t distance = pattern.distance(entries_[column].letters);
            // A signature on both sides meets itself.
            if (entries_[row].index != entries_[column].index &&
                edit_rate(distance, length(row) + length(column)) <= rate_)
                pairs.add(worker, entries_[row].index, entries_[column].index);
        }
    }

    std::vector<Entry> entries_;  // rows, then others
    std::size_t rows_;
    bool between_sides_;
    double rate_;
    std::size_t longest_;
    LetterCounts counts_;
    LetterFilter filter_;
    std::vector<Rows> blocks_;
};

/// By length, then by index. False if stopped.
bool sort_entries(std::vector<Entry>& entries, Stop stop) {
    std::vector<std::uint64_t> keys(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i)
        keys[i] = std::uint64_t{entries[i].letters.size()} << 32 | i;
    if (!radix_sort(keys, stop)) return false;
    std::vector<Entry> sorted(entries.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
        sorted[i] = entries[static_cast<std::uint32_t>(keys[i])];
    entries = std::move(sorted);
    return true;
}

/// A part of a join's work: columns whose features are to be set, or a block of rows.
struct Task {
    Join* join;
    std::size_t number;
};

Status set_features(std::span<Join> joins, Execution& execution) {
    constexpr std::size_t step = 4096;
    std::vector<Task> tasks;
    for (Join& join : joins)
        for (std::size_t begin = 0; begin < join.entries(); begin += step)
            tasks.push_back({&join, begin});
    execution.begin_phase("counting letters", tasks.size());
    return execution.parallel_for(tasks.size(), [&](std::size_t i, unsigned) {
        const auto [join, begin] = tasks[i];
        join->set_features(begin, std::min(join->entries(), begin + step));
        return Status();
    });
}

/// Joins each list of entries.
Status run_joins(std::vector<Entries> lists, bool between_sides, double rate, Simd simd,
                 Execution& execution, std::vector<IndexPair>& pairs, const PairPart& part = {},
                 std::uint64_t most = UINT64_MAX, bool* too_many = nullptr) {
    pairs.clear();
    std::vector<Join> joins;
    joins.reserve(lists.size());
    for (Entries& list : lists) {
        if (!sort_entries(list.rows, execution.stop()) ||
            !sort_entries(list.others, execution.stop()))
            return Status::cancelled();
        joins.emplace_back(std::move(list), between_sides, rate, simd);
    }
    GPUTEXT_TRY(set_features(joins, execution));

    std::vector<Task> tasks;
    std::uint64_t stripes = 0;
    for (Join& join : joins) {
        const std::size_t blocks = join.blocks(part, stripes);
        for (std::size_t block = 0; block < blocks; ++block) tasks.push_back({&join, block});
    }
    // Two signatures of one block size may be found at that size and at the next.
    PairLists found(execution.threads(), most);
    execution.begin_phase("comparing signatures", tasks.size());
    GPUTEXT_TRY(execution.parallel_for(tasks.size(), [&](std::size_t i, unsigned worker) {
        tasks[i].join->run_block(tasks[i].number, worker, execution.stop(), found);
        return Status();
    }));
    if (found.too_many(0)) {
        *too_many = true;
        return {};
    }
    return found.take(pairs, execution.stop());
}

}  // namespace

Status join_signatures(std::span<const Ctph> signatures, double rate, Simd simd,
                       Execution& execution, std::vector<IndexPair>& pairs, std::uint64_t most,
                       bool* too_many, const PairPart& part, std::span<const std::uint8_t> sides) {
    std::vector<Entries> by_level(Ctph::max_level + 2);
    const std::uint8_t rows = row_side(sides);
    const auto add = [&](std::size_t level, const Entry& entry) {
        const std::uint8_t side = sides.empty() ? rows : sides[entry.index];
        if ((side & rows) != 0) by_level[level].rows.push_back(entry);
        if ((side & ~rows) != 0) by_level[level].others.push_back(entry);
    };
    for (std::uint32_t i = 0; i < signatures.size(); ++i)
        add(signatures[i].level, {signatures[i].first(), i});
    for (std::uint32_t i = 0; i < signatures.size(); ++i)
        add(signatures[i].level + 1u, {signatures[i].second(), i});
    return run_joins(std::move(by_level), !sides.empty(), rate, simd, execution, pairs, part, most,
                     too_many);
}

Status join_letters(std::span<const std::string_view> strings, double rate, Simd simd,
                    Execution& execution, std::vector<IndexPair>& pairs) {
    std::vector<Entries> lists(1);
    for (std::size_t i = 0; i < strings.size(); ++i)
        lists[0].rows.push_back({strings[i], static_cast<std::uint32_t>(i)});
    return run_joins(std::move(lists), false, rate, simd, execution, pairs);
}

}  // namespace gputext
