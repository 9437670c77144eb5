#include "cpp/strings/detail/string_index.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "cpp/base/stoppable.hpp"

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

// ---- Counts of symbols ----

constexpr std::size_t kKinds = 32;
/// Places after the last one that may be read.
constexpr std::size_t kBeyond = 8;

/// Letters of ASCII have a kind each, whatever their case.
std::size_t kind_of(std::uint32_t symbol) {
    return (symbol < 128 ? symbol : symbol * std::uint32_t{0x9e3779b1} >> 16) % kKinds;
}

/// Sets the bits of a string in `depth` words, which are zero, and returns its excess.
std::size_t set_bits(Symbols string, std::size_t depth, std::uint64_t* words) {
    const std::size_t bits = depth * 64 / kKinds;
    std::uint32_t counts[kKinds] = {};
    std::size_t excess = 0;
    for (const std::uint32_t symbol : string) {
        const std::size_t kind = kind_of(symbol);
        if (counts[kind] == bits) {
            ++excess;
            continue;
        }
        const std::size_t bit = kind * bits + counts[kind]++;
        words[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
    return excess;
}

/// A multiple of 32 kinds: more words where most strings need more than two bits a kind.
std::size_t depth_for(double average_length) {
    if (average_length <= 12) return 1;
    return average_length <= 40 ? 2 : 4;
}

struct CountArguments {
    const std::uint64_t* query;
    const std::uint64_t* words;  // of the first place
    std::size_t stride;
    std::size_t count;
    std::uint8_t* counts;
};

template <std::size_t Depth>
[[gnu::always_inline]] inline void count_each(const CountArguments& a) {
    for (std::size_t place = 0; place < a.count; ++place) {
        int ones = 0;
        for (std::size_t word = 0; word < Depth; ++word)
            ones += std::popcount(a.query[word] & a.words[word * a.stride + place]);
        a.counts[place] = static_cast<std::uint8_t>(std::min<int>(ones, LetterIndex::most));
    }
}

template <std::size_t Depth>
void count_portable(const CountArguments& a) {
    count_each<Depth>(a);
}

#ifdef GPUTEXT_X86

template <std::size_t Depth>
GPUTEXT_TARGET_AVX2 void count_avx2(const CountArguments& a) {
    count_each<Depth>(a);
}

/// Writes up to seven counts more.
template <std::size_t Depth>
GPUTEXT_TARGET_AVX512 void count_avx512(const CountArguments& a) {
    __m512i query[Depth];
    for (std::size_t word = 0; word < Depth; ++word)
        query[word] = _mm512_set1_epi64(static_cast<long long>(a.query[word]));
    for (std::size_t place = 0; place < a.count; place += 8) {
        __m512i ones = _mm512_setzero_si512();
        for (std::size_t word = 0; word < Depth; ++word) {
            const __m512i bits = _mm512_loadu_si512(a.words + word * a.stride + place);
            ones =
                _mm512_add_epi64(ones, _mm512_popcnt_epi64(_mm512_and_si512(bits, query[word])));
        }
        _mm_storel_epi64(reinterpret_cast<__m128i*>(a.counts + place),
                         _mm512_maskz_cvtusepi64_epi8(255, ones));
    }
}

#endif

template <std::size_t Depth>
void count_common(Simd simd, const CountArguments& arguments) {
#ifdef GPUTEXT_X86
    if (simd >= Simd::avx512) return count_avx512<Depth>(arguments);
    if (simd >= Simd::avx2) return count_avx2<Depth>(arguments);
#endif
    count_portable<Depth>(arguments);
}

}  // namespace

// ---- Items by length ----

Status LengthOrder::set(const Strings& strings, std::span<const std::uint32_t> items, Stop stop) {
    items_.assign(items.begin(), items.end());
    const auto shorter = [&](std::uint32_t a, std::uint32_t b) {
        const std::size_t of_a = strings.length(a), of_b = strings.length(b);
        return of_a != of_b ? of_a < of_b : a < b;
    };
    if (!stoppable_sort(items_.begin(), items_.end(), shorter, stop)) return Status::cancelled();
    groups_.clear();
    blocks_.clear();
    for (std::size_t begin = 0; begin < items_.size();) {
        const std::size_t length = strings.length(items_[begin]);
        const std::size_t most = std::min(items_.size(), (begin / block_places + 1) * block_places);
        std::size_t end = begin + 1;
        while (end < most && strings.length(items_[end]) == length) ++end;
        if (begin % block_places == 0) blocks_.push_back({groups_.size(), 0});
        groups_.push_back({begin, end, length, 0});
        blocks_.back().end_group = groups_.size();
        begin = end;
    }
    return {};
}

Status LetterIndex::set(const Strings& strings, LengthOrder& order, Simd simd, Stop stop) {
    double symbols = 0;
    for (const LengthGroup& group : order.groups())
        symbols += static_cast<double>(group.length) * static_cast<double>(group.end - group.begin);
    const std::size_t count = order.size();
    depth_ = depth_for(count == 0 ? 0 : symbols / static_cast<double>(count));
    stride_ = count + kBeyond;
    simd_ = simd;
    words_.assign(stride_ * depth_, 0);
    excess_.assign(count, 0);
    for (LengthGroup& group : order.groups()) {
        for (std::size_t place = group.begin; place < group.end; ++place) {
            if (place % 1024 == 0 && stop()) return Status::cancelled();
            std::uint64_t words[4] = {};
            const std::size_t excess = set_bits(strings[order.item(place)], depth_, words);
            for (std::size_t word = 0; word < depth_; ++word)
                words_[word * stride_ + place] = words[word];
            excess_[place] = static_cast<std::uint32_t>(excess);
            group.excess = std::max(group.excess, excess);
        }
    }
    return {};
}

LetterIndex::Query LetterIndex::query(Symbols string) const {
    Query query{};
    query.excess_ = set_bits(string, depth_, query.words_);
    return query;
}

void LetterIndex::count(const Query& query, std::size_t begin, std::size_t end,
                        std::uint8_t* counts) const {
    const CountArguments arguments{query.words_, words_.data() + begin, stride_, end - begin,
                                   counts};
    if (depth_ == 1)
        count_common<1>(simd_, arguments);
    else if (depth_ == 2)
        count_common<2>(simd_, arguments);
    else
        count_common<4>(simd_, arguments);
}

// ---- Pairs of adjacent symbols, and beginnings ----

PairIndex::Pairs PairIndex::of(Symbols string) {
    Pairs pairs{};
    for (std::size_t i = 0; i + 1 < string.size(); ++i) {
        const std::uint32_t both = string[i] * std::uint32_t{0x85ebca6b} + string[i + 1];
        const std::uint32_t bit = both * std::uint32_t{0x9e3779b1} >> 24;
        std::uint64_t& word = pairs.words[bit / 64];
        const std::uint64_t mask = std::uint64_t{1} << bit % 64;
        pairs.excess += (word & mask) != 0;
        word |= mask;
    }
    return pairs;
}

namespace {

[[gnu::always_inline]] inline std::size_t common_pairs(const PairIndex::Pairs& a,
                                                       const PairIndex::Pairs& b) {
    std::size_t ones = std::min(a.excess, b.excess);
    for (std::size_t word = 0; word < std::size(a.words); ++word)
        ones += static_cast<std::size_t>(std::popcount(a.words[word] & b.words[word]));
    return ones;
}

std::size_t common_portable(const PairIndex::Pairs& a, const PairIndex::Pairs& b) {
    return common_pairs(a, b);
}

#ifdef GPUTEXT_X86
/// The same with the processor's own count of ones.
GPUTEXT_TARGET_AVX2 std::size_t common_avx2(const PairIndex::Pairs& a, const PairIndex::Pairs& b) {
    return common_pairs(a, b);
}
#endif

}  // namespace

Status PairIndex::set(const Strings& strings, const LengthOrder& order, Simd simd, Stop stop) {
    common_ = common_portable;
#ifdef GPUTEXT_X86
    if (simd >= Simd::avx2) common_ = common_avx2;
#endif
    pairs_.resize(order.size());
    for (std::size_t place = 0; place < order.size(); ++place) {
        if (place % 1024 == 0 && stop()) return Status::cancelled();
        pairs_[place] = of(strings[order.item(place)]);
    }
    return {};
}

std::uint32_t PrefixIndex::of(Symbols string) {
    std::uint32_t prefix = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(string.size(), 4); ++i)
        prefix |= (string[i] & 0xff) << 8 * i;
    return prefix;
}

Status PrefixIndex::set(const Strings& strings, const LengthOrder& order, Stop stop) {
    prefixes_.resize(order.size());
    for (std::size_t place = 0; place < order.size(); ++place) {
        if (place % 1024 == 0 && stop()) return Status::cancelled();
        prefixes_[place] = of(strings[order.item(place)]);
    }
    return {};
}

std::size_t PrefixIndex::common(std::uint32_t query, std::size_t place) const {
    return static_cast<std::size_t>(std::countr_zero(query ^ prefixes_[place])) / 8;
}

// ---- Common trigrams ----

Status TrigramIndex::set(const Strings& strings, const LengthOrder& order, Stop stop) {
    struct Entry {
        std::uint32_t trigram, place;
    };
    std::size_t size = 0;
    for (std::size_t place = 0; place < order.size(); ++place)
        size += strings.length(order.item(place));
    std::vector<Entry> entries;
    entries.reserve(size);
    for (std::size_t place = 0; place < order.size(); ++place) {
        if (place % 64 == 0 && stop()) return Status::cancelled();
        const Symbols trigrams = strings[order.item(place)];
        wide_ |= trigrams.size() > UINT8_MAX;
        for (const std::uint32_t trigram : trigrams)
            entries.push_back({trigram, static_cast<std::uint32_t>(place)});
    }
    const auto before = [](const Entry& a, const Entry& b) {
        return a.trigram != b.trigram ? a.trigram < b.trigram : a.place < b.place;
    };
    if (!stoppable_sort(entries.begin(), entries.end(), before, stop)) return Status::cancelled();
    places_.reserve(entries.size());
    for (const Entry& entry : entries) {
        if (trigrams_.empty() || trigrams_.back() != entry.trigram) {
            trigrams_.push_back(entry.trigram);
            begins_.push_back(places_.size());
        }
        places_.push_back(entry.place);
    }
    begins_.push_back(places_.size());
    return {};
}

void TrigramIndex::find(Symbols query, std::vector<Places>& found) const {
    found.clear();
    auto from = trigrams_.begin();
    for (const std::uint32_t trigram : query) {
        from = std::lower_bound(from, trigrams_.end(), trigram);
        if (from == trigrams_.end()) return;
        if (*from != trigram) continue;
        const auto at = static_cast<std::size_t>(from - trigrams_.begin());
        found.push_back(Places(places_).subspan(begins_[at], begins_[at + 1] - begins_[at]));
    }
}

}  // namespace gputext
