#include "kernels/strings/detail/string_pairs.hpp"

#include <algorithm>
#include <climits>
#include <cmath>

#include "kernels/base/binary_search.cuh"
#include "kernels/base/bit_product.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/shared_memory.cuh"
#include "kernels/base/warp.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define GPUTEXT_BIT_PRODUCT 1
#else
#pragma nv_diag_suppress 177  // what is used by these kernels alone
#endif

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kProducts = 4;                       // of 16 rows, held by a warp
constexpr unsigned kWarpRows = 16 * kProducts;
static_assert(kBlockRows == kWarps * kWarpRows);
constexpr unsigned kHalves = 2 * kProducts;             // rows of a lane
/// Masks of so many tiles are on their way while those before are multiplied.
constexpr unsigned kStageTiles = 8;
constexpr unsigned kTileVectors = 2 * kTilePlaces;      // of 16 bytes
constexpr unsigned kStageVectors = kStageTiles * kTileVectors;
constexpr int kNever = INT_MIN / 2;
constexpr unsigned kMaskWords = 8;
/// Bits of a mask that count its excess, so that a product also gives the smaller of two; the others
/// are what strings share.
constexpr unsigned kExcessBits = 8;
constexpr unsigned kSharedBits = 32 * kMaskWords - kExcessBits;
/// Few different symbols are counted farther than many. Codes of so many bits are few.
constexpr unsigned kFewBits = 5;
constexpr double kFar = INFINITY;
/// More than all that is rounded where a bound follows from a limit.
constexpr double kSlack = 1e-6;

__host__ __device__ constexpr bool is_jaro(StringMetric metric) {
    return metric == StringMetric::jaro || metric == StringMetric::jaro_winkler;
}

// ---- Masks ----

__device__ std::uint32_t mixed(std::uint32_t value) {
    value *= 0x9e3779b1u;
    value ^= value >> 15;
    return value * 0x85ebca6bu;
}

struct Mask {
    std::uint32_t words[kMaskWords] = {};
    unsigned excess = 0;

    /// A bit for all values that are mixed alike.
    __device__ void set(std::uint32_t value) {
        const unsigned bit = (mixed(value) >> 16) * kSharedBits >> 16;
        const std::uint32_t one = 1u << bit % 32;
        // Indices that the compiler knows keep the words in registers.
#pragma unroll
        for (unsigned w = 0; w < kMaskWords; ++w) {
            if (w != bit / 32) continue;
            excess += (words[w] & one) != 0;
            words[w] |= one;
        }
    }
    /// The next free one of the bits for a kind of symbols, of which each kind has so many.
    template <unsigned Counts>
    __device__ void count(unsigned code) {
        constexpr unsigned kKindsOfWord = 32 / Counts;
        const unsigned kind = code % (kSharedBits / Counts);
        const unsigned shift = kind % kKindsOfWord * Counts;
#pragma unroll
        for (unsigned w = 0; w < kMaskWords; ++w) {
            if (w != kind / kKindsOfWord) continue;
            const unsigned taken = __popc(words[w] >> shift & ((1u << Counts) - 1));
            if (taken == Counts)
                ++excess;
            else
                words[w] |= 1u << (shift + taken);
        }
    }
    __device__ void count_all(const std::uint16_t* codes, unsigned length, unsigned bits) {
        for (unsigned i = 0; i < length; ++i) {
            if (bits <= kFewBits)
                count<8>(codes[i]);
            else
                count<4>(codes[i]);
        }
    }
    /// Writes it; of the excess what its bits do not count.
    __device__ void store(uint4* masks, std::uint16_t* rests, std::uint32_t place) {
        const unsigned counted = min(excess, kExcessBits);
        words[kMaskWords - 1] |= ((1u << counted) - 1) << (32 - kExcessBits);
        masks[2 * std::size_t{place}] = {words[0], words[1], words[2], words[3]};
        masks[2 * std::size_t{place} + 1] = {words[4], words[5], words[6], words[7]};
        rests[place] = static_cast<std::uint16_t>(excess - counted);
    }
};

__global__ __launch_bounds__(kThreads) void make_masks_kernel(StringMetric metric,
                                                              unsigned bits, StringSide side) {
    const std::uint32_t place = blockIdx.x * kThreads + threadIdx.x;
    if (place >= side.places) return;
    Mask mask;
    const unsigned length = side.lengths[place];
    const std::uint64_t begin = side.begins[place];
    if (length == kNoLength) {
    } else if (metric == StringMetric::trigram) {
        for (unsigned i = 0; i < length; ++i) mask.set(side.trigrams[begin + i]);
    } else if (is_jaro(metric)) {
        mask.count_all(side.codes + begin, length, bits);
    } else {
        std::uint32_t before = length > 0 ? side.codes[begin] : 0;
        for (unsigned i = 1; i < length; ++i) {
            const std::uint32_t code = side.codes[begin + i];
            mask.set(before << 16 | code);
            before = code;
        }
    }
    mask.store(side.masks, side.excess, place);
    if (side.letters == nullptr) return;
    Mask letters;
    if (length != kNoLength) letters.count_all(side.codes + begin, length, bits);
    letters.store(side.letters, side.letter_excess, place);
}

__device__ unsigned plane_words(unsigned length) {
    return (length + 63) / 64;
}

__global__ __launch_bounds__(kThreads) void make_planes_kernel(StringSide side, unsigned bits) {
    const std::uint32_t place = blockIdx.x * kThreads + threadIdx.x;
    if (place >= side.places) return;
    const unsigned length = side.lengths[place];
    if (length > kMostPlaneSymbols) return;
    const std::uint16_t* const codes = side.codes + side.begins[place];
    std::uint64_t* const planes = side.planes + side.plane_begins[place] * bits;
    const unsigned words = plane_words(length);
    for (unsigned bit = 0; bit < bits; ++bit)
        for (unsigned word = 0; word < words; ++word) {
            std::uint64_t plane = 0;
            for (unsigned i = 64 * word; i < min(length, 64 * word + 64); ++i)
                plane |= static_cast<std::uint64_t>(codes[i] >> bit & 1) << (i % 64);
            planes[bit * words + word] = plane;
        }
}

// ---- Bounds ----

/// The most edits whose distance is within the limit, or more.
__device__ int most_edits(StringMetric metric, int n, int m, double limit) {
    const double lengths = n + m;
    const double edits = metric == StringMetric::edit_rate ? limit * lengths : limit;
    return edits < lengths ? static_cast<int>(edits + kSlack) : n + m;
}

/// What strings of so many symbols have in common at least if their distance is within the limit;
/// above what they can have where it is not.
__device__ int least_common(StringMetric metric, int n, int m, double limit) {
    const int shorter = min(n, m), longer = max(n, m);
    if (limit < 0) return INT_MAX;
    if (counts_edits(metric)) {
        const int edits = most_edits(metric, n, m, limit);
        if (longer - shorter > edits) return INT_MAX;
        const int pairs = max(longer, 1) - 1, of_edit = metric == StringMetric::osa ? 3 : 2;
        const int least = pairs - of_edit * min(edits, pairs);
        return least > max(shorter, 1) - 1 ? INT_MAX : least;
    }
    const double similarity = fmax(1 - limit - kSlack, 0.0);  // a radius may be above 1
    if (shorter == 0)
        return similarity == 0 || (is_jaro(metric) && longer == 0) ? 0 : INT_MAX;
    double common;
    if (metric == StringMetric::trigram) {
        common = similarity * (n + m) / (1 + similarity);
    } else {
        double of_jaro = similarity;
        if (metric == StringMetric::jaro_winkler && similarity > 0.7) {
            const double bonus = 0.1 * min(shorter, static_cast<int>(kLongestPrefix));
            of_jaro = fmax(0.7 - kSlack, (similarity - bonus) / (1 - bonus));
        }
        common = (3 * of_jaro - 1) / (1.0 / n + 1.0 / m);
    }
    const int least = static_cast<int>(ceil(fmax(common - kSlack, 0.0)));
    return least > shorter ? INT_MAX : least;
}

/// How many symbols strings have in common at least, by metrics of edits, of which each takes one.
__device__ int least_letters(StringMetric metric, int n, int m, double limit) {
    return max(n, m) - most_edits(metric, n, m, limit);
}

/// About the least distance of strings that have so much in common.
__device__ float about_distance(StringMetric metric, int n, int m, int common) {
    const int shorter = min(n, m), longer = max(n, m);
    if (counts_edits(metric)) {
        const int changed = max(0, max(longer, 1) - 1 - common);
        const int edits = max(longer - shorter, (changed + 1) / 2);
        return metric == StringMetric::edit_rate
                   ? static_cast<float>(edits) / static_cast<float>(max(n + m, 1))
                   : static_cast<float>(edits);
    }
    common = min(common, shorter);
    if (shorter == 0) return longer == 0 ? 0.0f : 1.0f;
    const float c = static_cast<float>(common);
    if (metric == StringMetric::trigram) return 1 - c / static_cast<float>(n + m - common);
    return 1 - (c / static_cast<float>(n) + c / static_cast<float>(m) + 1) / 3;
}

// ---- Distances ----

/// Where a string of at most 64 * Words symbols has symbols of a code. `Bits` are at least those of
/// the codes; planes above these are zero, as are the codes' bits.
template <class Word, int Words, int Bits>
class CodePlaces {
public:
    __device__ CodePlaces(const std::uint64_t* planes, unsigned bits, unsigned words) {
#pragma unroll
        for (int bit = 0; bit < Bits; ++bit)
#pragma unroll
            for (int word = 0; word < Words; ++word)
                planes_[bit][word] = static_cast<unsigned>(bit) < bits &&
                                             static_cast<unsigned>(word) < words
                                         ? static_cast<Word>(planes[bit * words + word])
                                         : Word{0};
    }
    __device__ Word of(unsigned code, int word) const {
        Word places = ~Word{0};
#pragma unroll
        for (int bit = 0; bit < Bits; ++bit)
            places &= ~(planes_[bit][word] ^ (Word{0} - static_cast<Word>(code >> bit & 1)));
        return places;
    }

private:
    Word planes_[Bits][Words];
};

/// Calls body(code, j) for the codes of a string, until it returns false.
template <class Body>
__device__ void for_each_code(const std::uint16_t* codes, unsigned length, Body&& body) {
    for (unsigned begin = 0; begin < length; begin += kCodesTogether) {
        const ushort4 four = *reinterpret_cast<const ushort4*>(codes + begin);
        const unsigned some[kCodesTogether] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (unsigned i = 0; i < kCodesTogether; ++i)
            if (begin + i < length && !body(some[i], begin + i)) return;
    }
}

/// Edits of a string of at most one word of symbols and another one; above `most` something above
/// it.
template <class Word, int Bits, bool Transpositions>
__device__ unsigned edits_of_word(const CodePlaces<Word, 1, Bits>& places, unsigned n,
                                  const std::uint16_t* codes, unsigned m, unsigned most) {
    Word up = ~Word{0}, down = 0, diagonal = 0, before = 0;
    const Word last = Word{1} << (n - 1);
    unsigned edits = n;
    for_each_code(codes, m, [&](unsigned code, unsigned j) {
        const Word equal = places.of(code, 0);
        Word zero = (((equal & up) + up) ^ up) | equal | down;
        if constexpr (Transpositions) {
            zero |= ((~diagonal & equal) << 1) & before;
            before = equal;
        }
        diagonal = zero;
        Word right_up = down | ~(zero | up);
        Word right_down = zero & up;
        edits += (right_up & last) != 0;
        edits -= (right_down & last) != 0;
        right_up = right_up << 1 | 1;
        right_down <<= 1;
        up = right_down | ~(zero | right_up);
        down = right_up & zero;
        // Each symbol that is left lowers the last row by one at most.
        return edits <= most + (m - 1 - j);
    });
    return edits;
}

/// The same of several words, without transpositions.
template <int Words, int Bits>
__device__ unsigned edits_of_words(const CodePlaces<std::uint64_t, Words, Bits>& places, unsigned n,
                                   const std::uint16_t* codes, unsigned m, unsigned most) {
    std::uint64_t up[Words], down[Words];
#pragma unroll
    for (int w = 0; w < Words; ++w) up[w] = ~std::uint64_t{0}, down[w] = 0;
    const unsigned last_word = (n - 1) / 64;
    const std::uint64_t last = std::uint64_t{1} << ((n - 1) % 64);
    unsigned edits = n;
    for_each_code(codes, m, [&](unsigned code, unsigned j) {
        std::uint64_t carried_up = 1, carried_down = 0;
#pragma unroll
        for (int w = 0; w < Words; ++w) {
            const std::uint64_t equal = places.of(code, w);
            const std::uint64_t vertical = equal | down[w];
            const std::uint64_t with_carry = equal | carried_down;
            const std::uint64_t zero = (((with_carry & up[w]) + up[w]) ^ up[w]) | with_carry;
            std::uint64_t right_up = down[w] | ~(zero | up[w]);
            std::uint64_t right_down = up[w] & zero;
            if (static_cast<unsigned>(w) == last_word) {
                edits += (right_up & last) != 0;
                edits -= (right_down & last) != 0;
            }
            const std::uint64_t next_up = right_up >> 63, next_down = right_down >> 63;
            right_up = right_up << 1 | carried_up;
            right_down = right_down << 1 | carried_down;
            carried_up = next_up;
            carried_down = next_down;
            up[w] = right_down | ~(vertical | right_up);
            down[w] = right_up & vertical;
        }
        return edits <= most + (m - 1 - j);
    });
    return edits;
}

/// Places from `first` to `last` of a word.
__device__ std::uint64_t places_between(int first, int last) {
    if (last < 0 || first > 63 || first > last) return 0;
    const std::uint64_t up_to_last = last >= 63 ? ~std::uint64_t{0}
                                                : (std::uint64_t{1} << (last + 1)) - 1;
    return first <= 0 ? up_to_last : up_to_last & ~((std::uint64_t{1} << first) - 1);
}

/// Jaro's matches and how many of them are in order, of strings of at most 64 * Words symbols that
/// are not empty: matches | ordered << 10.
template <int Words, int Bits>
__device__ unsigned jaro_counts(const CodePlaces<std::uint64_t, Words, Bits>& places,
                                const std::uint16_t* a, int n, const std::uint16_t* b, int m) {
    const int window = max(max(n, m) / 2 - 1, 0);
    std::uint64_t of_a[Words] = {}, of_b[Words] = {};
    unsigned matches = 0;
    for_each_code(b, static_cast<unsigned>(m), [&](unsigned code, unsigned at) {
        const int j = static_cast<int>(at);
        bool matched = false;
#pragma unroll
        for (int w = 0; w < Words; ++w) {
            const std::uint64_t allowed = places_between(
                j - window - 64 * w, min(n - 1, j + window) - 64 * w);
            const std::uint64_t free = places.of(code, w) & ~of_a[w] & allowed;
            if (matched || free == 0) continue;
            of_a[w] |= free & (~free + 1);
            matched = true;
        }
        if (!matched) return true;
#pragma unroll
        for (int w = 0; w < Words; ++w)
            if (w == j / 64) of_b[w] |= std::uint64_t{1} << (j % 64);
        ++matches;
        return true;
    });
    unsigned differing = 0;
    if constexpr (Words == 1) {
        std::uint64_t left_of_a = of_a[0], left_of_b = of_b[0];
        while (left_of_a != 0) {
            differing += a[__ffsll(static_cast<long long>(left_of_a)) - 1] !=
                         b[__ffsll(static_cast<long long>(left_of_b)) - 1];
            left_of_a &= left_of_a - 1;
            left_of_b &= left_of_b - 1;
        }
    } else {
        int j = -1;
        for (int i = 0; i < n; ++i) {
            if ((of_a[i / 64] >> (i % 64) & 1) == 0) continue;
            do ++j;
            while ((of_b[j / 64] >> (j % 64) & 1) == 0);
            differing += a[i] != b[j];
        }
    }
    return matches | (matches - differing / 2) << 10;
}

__device__ unsigned common_prefix(const std::uint16_t* a, unsigned n, const std::uint16_t* b,
                                  unsigned m) {
    const unsigned most = min(min(n, m), static_cast<unsigned>(kLongestPrefix));
    unsigned prefix = 0;
    while (prefix < most && a[prefix] == b[prefix]) ++prefix;
    return prefix;
}

__device__ unsigned common_trigrams(const std::uint32_t* a, unsigned n, const std::uint32_t* b,
                                    unsigned m) {
    unsigned common = 0;
    for (unsigned i = 0, j = 0; i < n && j < m;) {
        const std::uint32_t of_a = a[i], of_b = b[j];
        common += of_a == of_b;
        i += of_a <= of_b;
        j += of_b <= of_a;
    }
    return common;
}

/// Counts of a pair that is too far to be within the limit.
constexpr std::uint32_t kTooFar = UINT32_MAX - 1;

/// A pair of strings that are no padding, as a thread compares it.
struct PairView {
    unsigned n, m;
    std::uint64_t row_begin, column_begin;

    __device__ PairView(const StringSearch& search, std::uint32_t row, std::uint32_t column)
        : n(search.rows.lengths[row]),
          m(search.columns.lengths[column]),
          row_begin(search.rows.begins[row]),
          column_begin(search.columns.begins[column]) {}

    /// Whether words of the usual size hold what is computed of it.
    template <StringMetric Metric>
    __device__ bool is_quick() const {
        return Metric == StringMetric::trigram ||
               (n <= kQuickSymbols && (!is_jaro(Metric) || m <= kQuickSymbols));
    }
};

/// What the distance of a pair follows from, or kTooFar, where more edits than `most` are not
/// counted. The pair is quick.
template <StringMetric Metric, int Bits>
__device__ std::uint32_t quick_counts(const StringSearch& search, const PairView& pair,
                                      std::uint32_t row, unsigned most) {
    const unsigned n = pair.n, m = pair.m, bits = search.bits;
    if constexpr (Metric == StringMetric::trigram) {
        return common_trigrams(search.rows.trigrams + pair.row_begin, n,
                               search.columns.trigrams + pair.column_begin, m);
    } else {
        const std::uint16_t* const a = search.rows.codes + pair.row_begin;
        const std::uint16_t* const b = search.columns.codes + pair.column_begin;
        const std::uint64_t* const planes =
            search.rows.planes + search.rows.plane_begins[row] * bits;
        if constexpr (is_jaro(Metric)) {
            if (n == 0 || m == 0) return 0;
            const unsigned prefix =
                Metric == StringMetric::jaro_winkler ? common_prefix(a, n, b, m) : 0;
            return jaro_counts(CodePlaces<std::uint64_t, 1, Bits>(planes, bits, 1), a,
                               static_cast<int>(n), b, static_cast<int>(m)) |
                   prefix << 20;
        } else {
            constexpr bool kTranspositions = Metric == StringMetric::osa;
            const unsigned edits =
                n == 0 || m == 0 ? n + m
                : n <= 32
                    ? edits_of_word<std::uint32_t, Bits, kTranspositions>(
                          CodePlaces<std::uint32_t, 1, Bits>(planes, bits, 1), n, b, m, most)
                    : edits_of_word<std::uint64_t, Bits, kTranspositions>(
                          CodePlaces<std::uint64_t, 1, Bits>(planes, bits, 1), n, b, m, most);
            return edits <= most ? edits : kTooFar;
        }
    }
}

/// The same of a pair that is not quick, or kNotCounted.
template <StringMetric Metric>
__device__ std::uint32_t slow_counts(const StringSearch& search, const PairView& pair,
                                     std::uint32_t row, unsigned most) {
    constexpr int kWords = kMostPlaneSymbols / 64;
    const unsigned n = pair.n, m = pair.m, bits = search.bits, words = plane_words(n);
    if constexpr (Metric == StringMetric::trigram || Metric == StringMetric::osa) {
        return kNotCounted;
    } else {
        const std::uint16_t* const a = search.rows.codes + pair.row_begin;
        const std::uint16_t* const b = search.columns.codes + pair.column_begin;
        const std::uint64_t* const planes =
            search.rows.planes + search.rows.plane_begins[row] * bits;
        if (n > kMostPlaneSymbols || (is_jaro(Metric) && m > kMostPlaneSymbols))
            return kNotCounted;
        if (n == 0 || m == 0) return is_jaro(Metric) ? 0 : n + m;
        const CodePlaces<std::uint64_t, kWords, kMostPlaneBits> places(planes, bits, words);
        if constexpr (is_jaro(Metric)) {
            const unsigned prefix =
                Metric == StringMetric::jaro_winkler ? common_prefix(a, n, b, m) : 0;
            return jaro_counts(places, a, static_cast<int>(n), b, static_cast<int>(m)) |
                   prefix << 20;
        } else {
            const unsigned edits = edits_of_words(places, n, b, m, most);
            return edits <= most ? edits : kTooFar;
        }
    }
}

/// The distance that follows, with the bits of distance_of_counts(): each operation is rounded by
/// itself.
__device__ double exact_distance(StringMetric metric, unsigned n, unsigned m,
                                 std::uint32_t counts) {
    if (metric == StringMetric::edit_rate)
        return n + m == 0 ? 0.0 : __ddiv_rn(counts, n + m);
    if (counts_edits(metric)) return counts;
    if (metric == StringMetric::trigram) {
        if (n == 0 || m == 0) return 1;
        const float similarity =
            __fdiv_rn(__uint2float_rn(counts), __uint2float_rn(n + m - counts));
        return __double2float_rn(__dsub_rn(1.0, static_cast<double>(similarity)));
    }
    if (n == 0 || m == 0) return n == m ? 0 : 1;
    const unsigned matches = counts & 1023, ordered = counts >> 10 & 1023, prefix = counts >> 20;
    double similarity = 0;
    if (matches > 0) {
        const double c = matches;
        const double sum = __dadd_rn(__dadd_rn(__ddiv_rn(c, n), __ddiv_rn(c, m)),
                                     __ddiv_rn(ordered, c));
        similarity = __ddiv_rn(sum, 3.0);
    }
    if (metric == StringMetric::jaro_winkler && similarity > 0.7)
        similarity = fmin(1.0, __dadd_rn(similarity, __dmul_rn(__dmul_rn(prefix, 0.1),
                                                               __dsub_rn(1.0, similarity))));
    return __dsub_rn(1.0, similarity);
}

__device__ bool excluded(const StringSearch& search, std::uint32_t row, std::uint32_t column) {
    return search.rows.keys != nullptr && search.rows.keys[row] == search.columns.keys[column];
}

/// Whether the pair is within the row's limit.
__device__ bool is_within(const StringSearch& search, const PairView& pair, std::uint32_t row,
                          std::uint32_t column, std::uint32_t counts) {
    const double distance = exact_distance(search.metric, pair.n, pair.m, counts);
    const double limit = search.limits[row];
    return distance < limit ||
           (distance == limit && search.columns.numbers[column] <= search.limit_numbers[row]);
}

// ---- Products ----

/// What a sum of the row and columns of that length begins with, so that its sign tells.
__device__ int start_of(const StringSearch& search, std::uint32_t row, std::uint32_t end,
                        unsigned m) {
    if (row >= end) return kNever;
    const unsigned n = search.rows.lengths[row];
    if (n == kNoLength) return kNever;
    const int least = least_common(search.metric, static_cast<int>(n), static_cast<int>(m),
                                   search.limits[row]);
    return least == INT_MAX ? kNever : static_cast<int>(search.rows.excess[row]) - least;
}

/// The same of the symbols alone, by metrics of edits.
__device__ int letter_start_of(const StringSearch& search, std::uint32_t row, std::uint32_t end,
                               unsigned m) {
    if (row >= end) return kNever;
    const unsigned n = search.rows.lengths[row];
    if (n == kNoLength) return kNever;
    return static_cast<int>(search.rows.letter_excess[row]) -
           least_letters(search.metric, static_cast<int>(n), static_cast<int>(m),
                         search.limits[row]);
}

/// What a lane has of a mask of the place, or zeros.
__device__ uint2 words_of_lane(const uint4* masks, std::uint32_t place, std::uint32_t end) {
    const unsigned lane = threadIdx.x % kWarp;
    if (place >= end) return {0, 0};
    return __ldg(reinterpret_cast<const uint2*>(masks) + 4 * std::size_t{place} + lane % 4);
}

struct WarpRows {
    std::uint32_t first;  // of a lane's rows, which are 8 apart
    std::uint32_t words[kProducts][4];

    __device__ WarpRows(const StringSide& side, std::uint32_t of_warp, std::uint32_t end) {
        first = of_warp + threadIdx.x % kWarp / 4;
#pragma unroll
        for (unsigned half = 0; half < kHalves; ++half) {
            const uint2 two = words_of_lane(side.masks, first + 8 * half, end);
            words[half / 2][half % 2] = two.x;
            words[half / 2][2 + half % 2] = two.y;
        }
    }
};

/// Lowers the sums of pairs below zero that have too few symbols in common. `starts` are those of a
/// lane's rows for sums of symbols.
__device__ void tell_by_letters(const StringSearch& search, const WarpRows& rows, std::uint32_t end,
                                std::uint32_t tile, const int (&starts)[kHalves],
                                int (&sums)[kProducts][4]) {
    const uint2 column = words_of_lane(search.columns.letters,
                                       tile + threadIdx.x % kWarp / 4, search.columns.places);
#pragma unroll
    for (unsigned t = 0; t < kProducts; ++t) {
        const uint2 upper = words_of_lane(search.rows.letters, rows.first + 16 * t, end);
        const uint2 lower = words_of_lane(search.rows.letters, rows.first + 16 * t + 8, end);
        const std::uint32_t words[4] = {upper.x, lower.x, upper.y, lower.y};
        const int start[4] = {starts[2 * t], starts[2 * t], starts[2 * t + 1], starts[2 * t + 1]};
        int letters[4];
        multiply_bits(letters, words, column, start);
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) sums[t][k] = min(sums[t][k], letters[k]);
    }
}

/// The part of the columns that is the block's, in whole tiles.
__device__ PlaceRange columns_of_block(const PlaceRange& columns) {
    const std::uint32_t tiles = (columns.end - columns.begin) / kTilePlaces;
    const std::uint32_t each = (tiles + gridDim.y - 1) / gridDim.y;
    return {columns.begin + kTilePlaces * min(tiles, blockIdx.y * each),
            columns.begin + kTilePlaces * min(tiles, (blockIdx.y + 1) * each)};
}

/// The masks of a warp's columns in shared memory.
struct ColumnStages {
    uint4 vectors[2][kStageVectors];
};

/// How many tiles are chosen before the tile.
__device__ std::uint32_t chosen_before(const TileChoice& tiles, std::uint32_t tile) {
    const std::uint32_t at = tile & (tiles.step - 1);
    return tile / tiles.step * tiles.count +
           (at > tiles.first ? min(at - tiles.first, tiles.count) : 0);
}

/// The chosen tile of that number.
__device__ std::uint32_t chosen_tile(const TileChoice& tiles, std::uint32_t number) {
    if (tiles.count == tiles.step) return number;
    return number / tiles.count * tiles.step + tiles.first + number % tiles.count;
}

/// Calls body(words, column) for each of the chosen tiles of columns from `from` to `to`; a lane's
/// words are of the column that its quarter of the warp has. Called by the whole warp.
template <class Body>
__device__ void for_each_tile(const StringSide& columns, std::uint32_t from, std::uint32_t to,
                              const TileChoice& tiles, ColumnStages& stages, Body&& body) {
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint32_t end = chosen_before(tiles, to / kTilePlaces);
    // Returns the tile that the stage has of the lane's number.
    const auto begin_copying = [&](std::uint32_t first, unsigned stage) {
        const std::uint32_t own = chosen_tile(tiles, first + lane % kStageTiles);
#pragma unroll
        for (unsigned i = 0; i < kStageVectors / kWarp; ++i) {
            const unsigned at = i * kWarp + lane, number = at / kTileVectors;
            const std::uint32_t tile = __shfl_sync(kAllLanes, own, number);
            if (first + number < end)
                copy_shared_vector(
                    &stages.vectors[stage][at],
                    columns.masks + std::size_t{kTileVectors} * tile + at % kTileVectors);
        }
        end_of_copies();
        return own;
    };
    std::uint32_t first = chosen_before(tiles, from / kTilePlaces);
    std::uint32_t next = begin_copying(first, 0);
    for (unsigned stage = 0; first < end; first += kStageTiles, stage ^= 1) {
        const std::uint32_t tile_of_lane = next;
        next = begin_copying(first + kStageTiles, stage ^ 1);
        wait_for_copies<1>();
        __syncwarp();
        const auto* const words = reinterpret_cast<const uint2*>(stages.vectors[stage]);
        const unsigned count = min(kStageTiles, end - first);
        for (unsigned i = 0; i < count; ++i)
            body(words[i * kWarp + lane],
                 kTilePlaces * __shfl_sync(kAllLanes, tile_of_lane, i));
        // The next copies come to where these masks were.
        __syncwarp();
    }
    wait_for_copies<0>();
}

template <class Body>
__device__ void for_each_group(const StringSearch& search, const PlaceRange& columns, Body&& body) {
    const auto before = [&](std::uint32_t group) {
        return search.groups[group].end <= columns.begin;
    };
    for (std::uint32_t group = partition_point(0u, search.group_count, before);
         group < search.group_count && search.groups[group].begin < columns.end; ++group) {
        const StringGroup of = search.groups[group];
        body(of.length, max(of.begin, columns.begin), min(of.end, columns.end));
    }
}

/// Called by whole warps; those with `is` append. Whether all of them had room, for each lane.
template <class T>
__device__ bool append(const FoundList<T>& list, bool is, const T& value) {
    const unsigned lanes = __ballot_sync(kAllLanes, is);
    if (lanes == 0) return true;
    const unsigned long long at = take_places(list.found, lanes, threadIdx.x % kWarp);
    const bool fits = !is || at < list.capacity;
    if (is && fits) list.data[at] = value;
    return __all_sync(kAllLanes, fits);
}

/// Pairs that a warp is to compare, in shared memory.
struct PairQueue {
    StringCandidate* entries;  // 2 * kWarp
    unsigned count = 0;

    /// Called by the whole warp; those lanes with `is` add a pair. There is room.
    __device__ void add(bool is, const StringCandidate& pair) {
        const unsigned lanes = __ballot_sync(kAllLanes, is);
        if (is) entries[count + lanes_before(lanes, threadIdx.x % kWarp)] = pair;
        count += __popc(lanes);
    }
    /// Takes a pair for each lane off, where there are so many.
    __device__ bool take(StringCandidate& pair) {
        const unsigned lane = threadIdx.x % kWarp;
        __syncwarp();
        const bool is = lane < count;
        if (is) pair = entries[lane];
        const StringCandidate rest = entries[kWarp + lane];
        __syncwarp();
        entries[lane] = rest;
        count -= min(count, kWarp);
        __syncwarp();
        return is;
    }
};

/// Compares a pair for each lane. False where a list is full.
template <StringMetric Metric, int Bits>
__device__ bool compare_queued(const StringSearch& search, PairQueue& queue,
                               const FoundList<StringPair>& pairs,
                               const FoundList<StringCandidate>& left) {
    StringCandidate candidate{0, 0};
    const bool is = queue.take(candidate) && !excluded(search, candidate.x, candidate.y);
    bool near = false, slow = false;
    std::uint32_t counts = kTooFar;
    if (is) {
        const PairView pair(search, candidate.x, candidate.y);
        slow = !pair.is_quick<Metric>();
        if (!slow) {
            unsigned most = UINT_MAX;
            if constexpr (counts_edits(Metric))
                most = static_cast<unsigned>(
                    most_edits(Metric, static_cast<int>(pair.n), static_cast<int>(pair.m),
                               search.limits[candidate.x]));
            counts = quick_counts<Metric, Bits>(search, pair, candidate.x, most);
            near = counts != kTooFar &&
                   is_within(search, pair, candidate.x, candidate.y, counts);
        }
    }
    const bool fit = append(pairs, near, StringPair{candidate.x, candidate.y, counts});
    return append(left, slow, candidate) && fit;
}

template <StringMetric Metric, int Bits>
__global__ __launch_bounds__(kThreads, 2) void pairs_kernel(
    const StringSearch search, const PlaceRange rows, const PlaceRange columns,
    const TileChoice tiles, const FoundList<StringPair> pairs,
    const FoundList<StringCandidate> left) {
#ifdef GPUTEXT_BIT_PRODUCT
    __shared__ StringCandidate queued[kWarps][2 * kWarp];
    __shared__ ColumnStages stages[kWarps];
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint32_t of_warp =
        rows.begin + blockIdx.x * kBlockRows + threadIdx.x / kWarp * kWarpRows;
    if (of_warp >= rows.end) return;
    const WarpRows own(search.rows, of_warp, rows.end);
    PairQueue queue{queued[threadIdx.x / kWarp]};
    PlaceRange block = columns_of_block(columns);
    // Pairs of the rows' own tiles are told one by one.
    if (search.triangle) block.begin = max(block.begin, of_warp);
    // What is found is of no use where a list is full, and all pairs may be near.
    bool fit = true;
    for_each_group(search, block, [&](unsigned length, std::uint32_t from, std::uint32_t to) {
        int starts[kHalves], letter_starts[kHalves];
        bool any = false;
#pragma unroll
        for (unsigned half = 0; half < kHalves; ++half) {
            const std::uint32_t row = own.first + 8 * half;
            starts[half] = start_of(search, row, rows.end, length);
            any |= starts[half] != kNever;
            if constexpr (counts_edits(Metric))
                letter_starts[half] = letter_start_of(search, row, rows.end, length);
        }
        if (!fit || !__any_sync(kAllLanes, any)) return;
        ColumnStages& own_stages = stages[threadIdx.x / kWarp];
        for_each_tile(search.columns, from, to, tiles, own_stages, [&](uint2 words,
                                                                       std::uint32_t tile) {
            if (!fit) return;
            int sums[kProducts][4];
            int all = -1;
#pragma unroll
            for (unsigned t = 0; t < kProducts; ++t) {
                const int start[4] = {starts[2 * t], starts[2 * t], starts[2 * t + 1],
                                      starts[2 * t + 1]};
                multiply_bits(sums[t], own.words[t], words, start);
                all &= sums[t][0] & sums[t][1] & sums[t][2] & sums[t][3];
            }
            if (!__any_sync(kAllLanes, all >= 0)) return;
            if constexpr (counts_edits(Metric))
                tell_by_letters(search, own, rows.end, tile, letter_starts, sums);
            unsigned passed = 0;
#pragma unroll
            for (unsigned t = 0; t < kProducts; ++t)
#pragma unroll
                for (unsigned k = 0; k < 4; ++k)
                    passed |= sums[t][k] >= 0 ? 1u << (4 * t + k) : 0u;
            while (fit && __any_sync(kAllLanes, passed != 0)) {
                const unsigned number = passed != 0 ? __ffs(static_cast<int>(passed)) - 1 : 0;
                const std::uint32_t row = own.first + number / 2 * 8;
                const std::uint32_t column = tile + lane % 4 * 2 + number % 2;
                queue.add(passed != 0 && (!search.triangle || row < column) &&
                              search.columns.lengths[column] != kNoLength,
                          StringCandidate{row, column});
                passed &= passed - 1;
                if (queue.count >= kWarp)
                    fit = compare_queued<Metric, Bits>(search, queue, pairs, left);
            }
        });
    });
    if (fit && queue.count > 0) compare_queued<Metric, Bits>(search, queue, pairs, left);
#endif
}

__global__ __launch_bounds__(kThreads) void probes_kernel(const StringSearch search,
                                                          const PlaceRange rows,
                                                          const PlaceRange columns,
                                                          std::uint32_t* probes) {
#ifdef GPUTEXT_BIT_PRODUCT
    __shared__ ColumnStages stages[kWarps];
    ColumnStages& own_stages = stages[threadIdx.x / kWarp];
    constexpr unsigned kTileBits = 22;
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint32_t of_warp =
        rows.begin + blockIdx.x * kBlockRows + threadIdx.x / kWarp * kWarpRows;
    if (of_warp >= rows.end) return;
    const WarpRows own(search.rows, of_warp, rows.end);
    float least[kHalves];
    std::uint32_t found[kHalves];
#pragma unroll
    for (unsigned half = 0; half < kHalves; ++half)
        least[half] = INFINITY, found[half] = kNoString;
    const auto of_group = [&](unsigned length, std::uint32_t from, std::uint32_t to) {
        // The largest sum of a row and column of a tile, and the tile.
        std::uint32_t largest[kHalves][2] = {};
        std::uint32_t tile = 0;
        for_each_tile(search.columns, from, to, TileChoice(), own_stages, [&](uint2 words,
                                                                              std::uint32_t) {
            constexpr int kZero[4] = {0, 0, 0, 0};
#pragma unroll
            for (unsigned t = 0; t < kProducts; ++t) {
                int sums[4];
                multiply_bits(sums, own.words[t], words, kZero);
#pragma unroll
                for (unsigned k = 0; k < 4; ++k) {
                    std::uint32_t& most = largest[2 * t + k / 2][k % 2];
                    most = max(most, static_cast<std::uint32_t>(sums[k]) << kTileBits | tile);
                }
            }
            ++tile;
        });
#pragma unroll
        for (unsigned half = 0; half < kHalves; ++half) {
            const std::uint32_t row = own.first + 8 * half;
            if (row >= rows.end) continue;
            const unsigned n = search.rows.lengths[row];
            if (n == kNoLength) continue;
#pragma unroll
            for (unsigned k = 0; k < 2; ++k) {
                const int common = static_cast<int>(largest[half][k] >> kTileBits) +
                                   static_cast<int>(search.rows.excess[row]);
                const float bound = about_distance(search.metric, static_cast<int>(n),
                                                   static_cast<int>(length), common);
                if (!(bound < least[half])) continue;
                least[half] = bound;
                found[half] = from +
                              (largest[half][k] & ((1u << kTileBits) - 1)) * kTilePlaces +
                              lane % 4 * 2 + k;
            }
        }
    };
    for_each_group(search, columns_of_block(columns), of_group);
    const std::size_t each = gridDim.y * kProbesOfBlock;
#pragma unroll
    for (unsigned half = 0; half < kHalves; ++half) {
        const std::uint32_t row = own.first + 8 * half;
        if (row < rows.end)
            probes[(row - rows.begin) * each + blockIdx.y * kProbesOfBlock + lane % 4] =
                found[half];
    }
#endif
}

// ---- Pairs that take longer, and probes ----

template <StringMetric Metric>
__global__ __launch_bounds__(kThreads) void left_kernel(const StringSearch search,
                                                        const StringCandidate* left,
                                                        std::uint64_t count,
                                                        const FoundList<StringPair> pairs) {
    const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
    for (std::uint64_t first = std::uint64_t{blockIdx.x} * kThreads; first < count; first += step) {
        const std::uint64_t at = first + threadIdx.x;
        StringPair found{0, 0, kTooFar};
        bool near = false;
        if (at < count) {
            found.row = left[at].x;
            found.column = left[at].y;
            const PairView pair(search, found.row, found.column);
            const auto most = static_cast<unsigned>(
                most_edits(Metric, static_cast<int>(pair.n), static_cast<int>(pair.m),
                           search.limits[found.row]));
            found.counts = slow_counts<Metric>(search, pair, found.row, most);
            near = found.counts == kNotCounted ||
                   (found.counts != kTooFar &&
                    is_within(search, pair, found.row, found.column, found.counts));
        }
        append(pairs, near, found);
    }
}

template <StringMetric Metric>
__global__ __launch_bounds__(kThreads) void probe_distances_kernel(
    const StringSearch search, std::uint32_t first_row, std::uint32_t each, std::uint64_t count,
    const std::uint32_t* probes, double* distances) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at >= count) return;
    const std::uint32_t row = first_row + static_cast<std::uint32_t>(at / each);
    const std::uint32_t column = probes[at];
    double distance = kFar;
    if (column != kNoString && search.rows.lengths[row] != kNoLength &&
        search.columns.lengths[column] != kNoLength && !excluded(search, row, column)) {
        const PairView pair(search, row, column);
        const unsigned most = pair.n + pair.m;
        const std::uint32_t counts =
            pair.is_quick<Metric>()
                ? quick_counts<Metric, kMostPlaneBits>(search, pair, row, most)
                : slow_counts<Metric>(search, pair, row, most);
        if (counts < kTooFar) distance = exact_distance(Metric, pair.n, pair.m, counts);
    }
    distances[at] = distance;
}

/// A warp lowers the limit of a row to the k-th of its distances, found bit by bit: none is below
/// zero.
__global__ __launch_bounds__(kThreads) void limits_kernel(double* limits, std::uint32_t first_row,
                                                          std::uint32_t rows, std::uint32_t each,
                                                          std::uint32_t k,
                                                          const double* distances) {
    const std::uint32_t row = (blockIdx.x * kThreads + threadIdx.x) / kWarp;
    if (row >= rows) return;
    const unsigned lane = threadIdx.x % kWarp;
    const auto* const own =
        reinterpret_cast<const unsigned long long*>(distances) + std::size_t{row} * each;
    unsigned long long kth = 0;  // the most bits such that fewer than k distances are below
    for (unsigned long long bit = 1ull << 62; bit != 0; bit >>= 1) {
        std::uint32_t below = 0;
        for (std::uint32_t i = lane; i < each; i += kWarp) below += own[i] < (kth | bit);
        if (warp_sum(below) < k) kth |= bit;
    }
    const double distance = __longlong_as_double(static_cast<long long>(kth));
    // Where there are fewer it is no number.
    if (lane == 0 && distance < limits[first_row + row]) limits[first_row + row] = distance;
}

/// Calls body.operator()<Bits>() with the fewest that hold the codes.
template <StringMetric Metric, class Body>
void with_bits(unsigned bits, Body&& body) {
    if constexpr (Metric == StringMetric::trigram)
        body.template operator()<1>();
    else if (bits <= 6)
        body.template operator()<6>();
    else if (bits <= 8)
        body.template operator()<8>();
    else
        body.template operator()<kMostPlaneBits>();
}

/// Calls body.operator()<Metric>().
template <class Body>
void with_metric(StringMetric metric, Body&& body) {
    switch (metric) {
        case StringMetric::edit_rate:
            return body.template operator()<StringMetric::edit_rate>();
        case StringMetric::levenshtein:
            return body.template operator()<StringMetric::levenshtein>();
        case StringMetric::osa:
            return body.template operator()<StringMetric::osa>();
        case StringMetric::jaro:
            return body.template operator()<StringMetric::jaro>();
        case StringMetric::jaro_winkler:
            return body.template operator()<StringMetric::jaro_winkler>();
        case StringMetric::trigram:
            return body.template operator()<StringMetric::trigram>();
    }
}

dim3 grid_of(const PlaceRange& rows, std::uint32_t splits) {
    return {(rows.end - rows.begin + kBlockRows - 1) / kBlockRows, splits};
}

}  // namespace

Status make_masks(StringMetric metric, unsigned bits, const StringSide& side,
                  cudaStream_t stream) {
    if (side.places == 0) return {};
    const unsigned blocks = blocks_for(side.places, kThreads);
    make_masks_kernel<<<blocks, kThreads, 0, stream>>>(metric, bits, side);
    GPUTEXT_TRY(launched("making masks of strings"));
    if (side.planes == nullptr) return {};
    make_planes_kernel<<<blocks, kThreads, 0, stream>>>(side, bits);
    return launched("making planes of strings");
}

Status find_probes(const StringSearch& search, const PlaceRange& rows, std::uint32_t splits,
                   std::uint32_t* probes, cudaStream_t stream) {
    probes_kernel<<<grid_of(rows, splits), kThreads, 0, stream>>>(
        search, rows, PlaceRange{0, search.columns.places}, probes);
    return launched("looking for near strings");
}

Status limit_by_probes(const StringSearch& search, const PlaceRange& rows,
                       std::uint32_t probe_count, std::uint32_t k, const std::uint32_t* probes,
                       double* distances, cudaStream_t stream) {
    const std::uint32_t count = rows.end - rows.begin;
    const std::uint64_t all = std::uint64_t{count} * probe_count;
    with_metric(search.metric, [&]<StringMetric Metric>() {
        probe_distances_kernel<Metric><<<blocks_for(all, kThreads), kThreads, 0, stream>>>(
            search, rows.begin, probe_count, all, probes, distances);
    });
    GPUTEXT_TRY(launched("comparing near strings"));
    limits_kernel<<<blocks_for(std::uint64_t{count} * kWarp, kThreads), kThreads, 0, stream>>>(
        search.limits, rows.begin, count, probe_count, k, distances);
    return launched("limiting a search of strings");
}

Status find_pairs(const StringSearch& search, const PlaceRange& rows, const PlaceRange& columns,
                  const TileChoice& tiles, std::uint32_t splits, const FoundList<StringPair>& pairs,
                  const FoundList<StringCandidate>& left, cudaStream_t stream) {
    with_metric(search.metric, [&]<StringMetric Metric>() {
        with_bits<Metric>(search.bits, [&]<int Bits>() {
            pairs_kernel<Metric, Bits><<<grid_of(rows, splits), kThreads, 0, stream>>>(
                search, rows, columns, tiles, pairs, left);
        });
    });
    return launched("filtering pairs of strings");
}

Status compare_left(const StringSearch& search, const StringCandidate* left, std::uint64_t count,
                    const FoundList<StringPair>& pairs, cudaStream_t stream) {
    if (count == 0) return {};
    constexpr std::uint64_t kMostBlocks = 1 << 14;
    const auto blocks =
        static_cast<unsigned>(std::min(kMostBlocks, (count + kThreads - 1) / kThreads));
    with_metric(search.metric, [&]<StringMetric Metric>() {
        left_kernel<Metric><<<blocks, kThreads, 0, stream>>>(search, left, count, pairs);
    });
    return launched("comparing strings");
}

}  // namespace gputext::gpu
