#include "cpp/strings/string_distance.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "cpp/base/hash_table.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/edit_distance.hpp"

namespace gputext {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::size_t kWord = 64;
/// Symbols below it have a table of their own.
constexpr std::uint32_t kLow = 256;

// ---- Where symbols stand in a string of at most 64 ----

/// A bit for each place of a symbol.
class SymbolPlaces {
public:
    void set(Symbols string) {
        for (const std::uint32_t symbol : low_symbols_) low_[symbol] = 0;
        if (!high_.empty()) high_.assign(high_.size(), {});
        low_symbols_.clear();
        std::uint64_t bit = 1;
        for (const std::uint32_t symbol : string) {
            if (symbol < kLow)
                low_symbols_.push_back(symbol);
            else if (high_.empty())
                high_.resize(kSlots);
            place(symbol) |= bit;
            bit <<= 1;
        }
    }

    std::uint64_t operator[](std::uint32_t symbol) const {
        if (symbol < kLow) return low_[symbol];
        if (high_.empty()) return 0;
        for (std::size_t at = slot_of(symbol);; at = (at + 1) % kSlots) {
            if (high_[at].symbol == symbol) return high_[at].places;
            if (high_[at].symbol == 0) return 0;
        }
    }

private:
    static constexpr std::size_t kSlots = 2 * kWord;  // half of them are taken at most

    struct Slot {
        std::uint32_t symbol = 0;  // 0 is below kLow, and so in no slot
        std::uint64_t places = 0;
    };

    std::uint64_t& place(std::uint32_t symbol) {
        if (symbol < kLow) return low_[symbol];
        std::size_t at = slot_of(symbol);
        while (high_[at].symbol != symbol && high_[at].symbol != 0) at = (at + 1) % kSlots;
        high_[at].symbol = symbol;
        return high_[at].places;
    }
    static std::size_t slot_of(std::uint32_t symbol) {
        static_assert(kSlots == 128);
        return symbol * std::uint32_t{0x9e3779b1} >> 25;
    }

    std::array<std::uint64_t, kLow> low_{};
    std::vector<std::uint32_t> low_symbols_;
    std::vector<Slot> high_;  // none while there is no such symbol
};

// ---- Edits ----

constexpr std::size_t kTooMany = SIZE_MAX;

/// Levenshtein, or with transpositions. kTooMany above `limit`. 0 < n <= 64.
template <bool Transpositions>
std::size_t edits_of_word(const SymbolPlaces& places, std::size_t n, Symbols item,
                          std::size_t limit) {
    std::uint64_t up = ~std::uint64_t{0}, down = 0, diagonal = 0, places_before = 0;
    const unsigned last = static_cast<unsigned>(n - 1);
    std::size_t edits = n;
    std::size_t rest = item.size();
    for (const std::uint32_t symbol : item) {
        const std::uint64_t equal = places[symbol];
        std::uint64_t zero = (((equal & up) + up) ^ up) | equal | down;
        if constexpr (Transpositions) {
            zero |= ((~diagonal & equal) << 1) & places_before;
            places_before = equal;
        }
        diagonal = zero;
        std::uint64_t right_up = down | ~(zero | up);
        std::uint64_t right_down = zero & up;
        edits += right_up >> last & 1;
        edits -= right_down >> last & 1;
        // Each symbol that is left lowers the last row by one at most.
        --rest;
        if (edits > limit + rest) return kTooMany;
        right_up = right_up << 1 | 1;
        right_down <<= 1;
        up = right_down | ~(zero | right_up);
        down = right_up & zero;
    }
    return edits <= limit ? edits : kTooMany;
}

/// Optimal string alignment of one string of any length and others: bit-parallel in blocks of 64
/// rows, of which each goes along the columns that the limit leaves. So only what a block passes
/// down to the next one is kept, and the places of symbols of some blocks.
class LongAlignment {
public:
    void set(Symbols rows) {
        rows_ = rows;
        for (Slot& slot : slots_) slot.block = kNone;
    }

    /// kTooMany above the limit.
    Status edits(Symbols columns, std::size_t limit, Stop stop, std::size_t& edits) {
        const std::size_t n = rows_.size(), m = columns.size();
        const std::size_t difference = n > m ? n - m : m - n;
        limit = std::min(limit, std::max(n, m));
        edits = kTooMany;
        if (difference > limit) return {};
        slots_.resize(std::min(kSlots, (n + kWord - 1) / kWord));
        // A band for few edits costs little.
        for (std::size_t guess = 2 * difference + kFirstGuess;; guess *= 2) {
            const std::size_t bound = std::min(guess, limit);
            GPUTEXT_TRY(within(columns, bound, stop, edits));
            if (edits != kTooMany || bound == limit) return {};
        }
    }

private:
    static constexpr std::size_t kSlots = 16, kNone = SIZE_MAX, kFirstGuess = 256;

    struct Slot {
        std::size_t block = kNone;
        SymbolPlaces places;
    };

    const SymbolPlaces& places_of(std::size_t block) {
        Slot& slot = slots_[block % kSlots];
        if (slot.block != block) {
            const std::size_t begin = block * kWord;
            slot.places.set(rows_.subspan(begin, std::min(kWord, rows_.size() - begin)));
            slot.block = block;
        }
        return slot.places;
    }

    /// What a block passes down in each column: whether the cell of its last row is one more, or
    /// one less, than that of the column before, and whether its last symbol and the first one of
    /// the next block may be exchanged.
    enum : std::uint8_t { kUp = 1, kDown = 2, kExchange = 4 };

    /// kTooMany above the limit, which is at least the difference of the lengths. A cell to the left
    /// or to the right of those that are computed counts as its neighbor above or to the left of it
    /// plus one. This is never too low, and no path within the limit goes through such a cell.
    Status within(Symbols columns, std::size_t limit, Stop stop, std::size_t& edits) {
        const std::size_t n = rows_.size(), m = columns.size();
        const std::size_t more_rows = n > m ? n - m : 0, more_columns = m > n ? m - n : 0;
        const std::size_t slack = (limit - more_rows - more_columns) / 2;
        // An exchange of symbols of two blocks looks at one diagonal more on either side.
        const std::size_t left = more_rows + slack + 1, right = more_columns + slack + 1;
        edits = kTooMany;
        if (!stoppable_assign(passed_, m + 1, std::uint8_t{kUp}, stop)) return Status::cancelled();
        std::size_t corner = 0;  // the cell before a block's first column, and above its first row
        for (std::size_t block = 0; block * kWord < n; ++block) {
            const std::size_t end_row = std::min(n, (block + 1) * kWord);
            const std::size_t first = std::max(block * kWord, left) - left + 1;
            const std::size_t last = std::min(m, end_row + right);
            corner += end_row - block * kWord;
            Ends ends{corner, kTooMany};
            if (!advance(block, columns, first, last, stop, ends)) return Status::cancelled();
            if (ends.least > limit) return {};
            if (end_row == n) edits = ends.last <= limit ? ends.last : kTooMany;
            const std::size_t next = std::max(end_row, left) - left + 1;
            for (std::size_t j = first; j < next; ++j)
                corner += (passed_[j] & kUp) - (passed_[j] & kDown) / kDown;
        }
        return {};
    }

    struct Ends {
        std::size_t last;   // the cell of the block's last row in a column
        std::size_t least;  // the least of such cells, and what it takes at least to the last one
    };

    /// Moves a block along the columns from `first` to `last`; ends.last is the cell before.
    /// False when stopped.
    bool advance(std::size_t block, Symbols columns, std::size_t first, std::size_t last, Stop stop,
                 Ends& ends) {
        const SymbolPlaces& places = places_of(block);
        const std::size_t rows = std::min(kWord, rows_.size() - block * kWord);
        const auto last_bit = static_cast<unsigned>(rows - 1);
        // Columns that lie behind the last cell's diagonal, and so are edits
        auto behind = static_cast<std::ptrdiff_t>(first + rows_.size()) -
                      static_cast<std::ptrdiff_t>(1 + block * kWord + rows + columns.size());
        std::size_t cell = ends.last;
        std::size_t least = cell + static_cast<std::size_t>(std::abs(behind));
        std::uint64_t up = ~std::uint64_t{0}, down = 0, diagonal = up, places_before = 0;
        for (std::size_t j = first; j <= last;) {
            if (stop()) return false;
            const std::size_t end = std::min(last + 1, j + kLookEvery / 8);
            for (; j < end; ++j) {
                const std::uint64_t above = passed_[j];
                const std::uint64_t above_up = above & kUp, above_down = above / kDown & 1;
                const std::uint64_t symbol = places[columns[j - 1]], equal = symbol | above_down;
                const std::uint64_t exchanged = ~diagonal & symbol;
                const std::uint64_t zero = (((equal & up) + up) ^ up) | equal | down |
                                           ((exchanged << 1 | above / kExchange) & places_before);
                places_before = symbol;
                diagonal = zero;
                std::uint64_t right_up = down | ~(zero | up), right_down = up & zero;
                const std::uint64_t more = right_up >> last_bit & 1, less = right_down >> last_bit & 1;
                passed_[j] = static_cast<std::uint8_t>(more * kUp | less * kDown |
                                                       (exchanged >> (kWord - 1)) * kExchange);
                cell += more - less;
                least = std::min(least, cell + static_cast<std::size_t>(std::abs(++behind)));
                right_up = right_up << 1 | above_up;
                right_down = right_down << 1 | above_down;
                up = right_down | ~(zero | right_up);
                down = right_up & zero;
            }
        }
        ends = {cell, least};
        return true;
    }

    Symbols rows_;
    std::vector<Slot> slots_;           // of block b where b % kSlots says
    std::vector<std::uint8_t> passed_;  // by column, from 1
};

// ---- Matches ----

/// Of so many matches, of which `ordered` are left without transpositions.
double jaro_of(std::size_t n, std::size_t m, std::size_t matches, std::size_t ordered) {
    if (matches == 0) return 0;
    const auto c = static_cast<double>(matches);
    return ((c / static_cast<double>(n) + c / static_cast<double>(m)) +
            static_cast<double>(ordered) / c) /
           3;
}

double with_prefix(double similarity, std::size_t prefix) {
    if (!(similarity > 0.7)) return similarity;
    return std::min(1.0,
                    similarity + static_cast<double>(prefix) * 0.1 * (1 - similarity));
}

std::size_t common_prefix(Symbols a, Symbols b) {
    const std::size_t most = std::min({a.size(), b.size(), kLongestPrefix});
    std::size_t prefix = 0;
    while (prefix < most && a[prefix] == b[prefix]) ++prefix;
    return prefix;
}

std::size_t window_of(std::size_t n, std::size_t m) {
    const std::size_t half = std::max(n, m) / 2;
    return half == 0 ? 0 : half - 1;
}

/// Fewer matches than this give a similarity whose distance is above the limit.
std::size_t least_matches(std::size_t n, std::size_t m, std::size_t prefix, double limit) {
    const double bonus = 0.1 * static_cast<double>(prefix);
    const double similarity = (1 - limit - bonus) / (1 - bonus);
    const double matches = (3 * similarity - 1) /
                           (1 / static_cast<double>(n) + 1 / static_cast<double>(m));
    // One less than that, whatever was rounded
    return matches > 2 ? static_cast<std::size_t>(matches) - 1 : 0;
}

/// Similarity of a string of at most 64 symbols and another such, 0 where they have less than
/// `least` matches. Neither is empty.
double jaro_of_words(const SymbolPlaces& places, Symbols a, Symbols b, std::size_t least) {
    const std::size_t n = a.size(), m = b.size(), window = window_of(n, m);
    std::size_t misses_left = m - std::min(least, m), matches = 0;
    std::uint64_t of_a = 0, of_b = 0;
    // a has no symbol after its last one that could match.
    std::uint64_t within = window + 1 >= kWord ? ~std::uint64_t{0}
                                               : (std::uint64_t{1} << (window + 1)) - 1;
    for (std::size_t j = 0; j < m; ++j) {
        const std::uint64_t free = places[b[j]] & ~of_a & within;
        within = within << 1 | static_cast<std::uint64_t>(j < window);
        if (free == 0) {
            if (misses_left-- == 0) return 0;
            continue;
        }
        of_a |= free & (~free + 1);
        of_b |= std::uint64_t{1} << j;
        ++matches;
    }
    std::size_t differing = 0;
    while (of_a != 0) {
        differing += a[static_cast<std::size_t>(std::countr_zero(of_a))] !=
                     b[static_cast<std::size_t>(std::countr_zero(of_b))];
        of_a &= of_a - 1;
        of_b &= of_b - 1;
    }
    return jaro_of(n, m, matches, matches - differing / 2);
}

/// The same of strings of any length. Windows never move back, so that a symbol's places are
/// matched in their order, and each is looked at once.
class LongJaro {
public:
    Status set(Symbols a, Stop stop) {
        a_ = a;
        order_.resize(a.size());
        std::iota(order_.begin(), order_.end(), 0u);
        const auto before = [&](std::uint32_t x, std::uint32_t y) {
            return a[x] != a[y] ? a[x] < a[y] : x < y;
        };
        if (!stoppable_sort(order_.begin(), order_.end(), before, stop))
            return Status::cancelled();
        symbols_.clear();
        begins_.clear();
        for (std::uint32_t at = 0; at < order_.size(); ++at) {
            if (at % kLookEvery == 0 && stop()) return Status::cancelled();
            if (at > 0 && a[order_[at]] == symbols_.back()) continue;
            symbols_.push_back(a[order_[at]]);
            begins_.push_back(at);
        }
        begins_.push_back(static_cast<std::uint32_t>(order_.size()));
        return {};
    }

    Status similarity(Symbols b, Stop stop, double& similarity) {
        const std::size_t n = a_.size(), m = b.size(), window = window_of(n, m);
        next_.assign(begins_.begin(), begins_.end() - 1);
        matched_.assign(n, 0);
        of_b_.clear();
        for (std::size_t j = 0; j < m; ++j) {
            if (j % (kLookEvery / 16) == 0 && stop()) return Status::cancelled();
            const auto found = std::lower_bound(symbols_.begin(), symbols_.end(), b[j]);
            if (found == symbols_.end() || *found != b[j]) continue;
            const auto symbol = static_cast<std::size_t>(found - symbols_.begin());
            std::uint32_t& next = next_[symbol];
            const std::uint32_t end = begins_[symbol + 1];
            while (next < end && order_[next] + window < j) ++next;
            if (next == end || order_[next] > j + window) continue;
            matched_[order_[next++]] = 1;
            of_b_.push_back(b[j]);
        }
        std::size_t differing = 0, at = 0;
        for (std::size_t i = 0; i < n; ++i) {
            if (i % kLookEvery == 0 && stop()) return Status::cancelled();
            if (matched_[i]) differing += a_[i] != of_b_[at++];
        }
        similarity = jaro_of(n, m, of_b_.size(), of_b_.size() - differing / 2);
        return {};
    }

private:
    Symbols a_;
    std::vector<std::uint32_t> order_;    // places, by their symbols
    std::vector<std::uint32_t> symbols_;  // distinct, ascending
    std::vector<std::uint32_t> begins_;   // of a symbol's places, and the end
    std::vector<std::uint32_t> next_;     // of a symbol's places
    std::vector<char> matched_;
    std::vector<std::uint32_t> of_b_;  // matched symbols
};

// ---- Trigrams ----

std::size_t common_numbers(Symbols a, Symbols b) {
    std::size_t common = 0;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        common += a[i] == b[j];
        const bool a_first = a[i] <= b[j], b_first = b[j] <= a[i];
        i += a_first;
        j += b_first;
    }
    return common;
}

double trigram_distance(std::size_t n, std::size_t m, std::size_t common) {
    if (n == 0 || m == 0) return 1;
    const float similarity = static_cast<float>(common) / static_cast<float>(n + m - common);
    return static_cast<float>(1.0 - static_cast<double>(similarity));
}

/// The most edits whose distance is within the limit.
std::size_t edits_within(StringMetric metric, double limit, std::size_t lengths) {
    if (!(limit >= 0)) return kTooMany;
    if (lengths == 0) return 0;
    const double most = metric == StringMetric::edit_rate ? 1.0 : static_cast<double>(lengths);
    if (limit >= most) return lengths;
    return metric == StringMetric::edit_rate ? most_edits_within(limit, lengths)
                                             : static_cast<std::size_t>(limit);
}

double distance_of_edits(StringMetric metric, std::size_t edits, std::size_t lengths) {
    return metric == StringMetric::edit_rate ? edit_rate(edits, lengths)
                                             : static_cast<double>(edits);
}

}  // namespace

// ---- One string and many ----

struct StringDistance::Scratch {
    Symbols query;
    SymbolPlaces places;
    EditDistance edit_distance;
    LongAlignment long_alignment;
    LongJaro long_jaro;
    bool long_jaro_set = false;
    std::size_t work = 0;  // trigrams since the last look

    bool is_word() const { return query.size() <= kWord; }
    Status edits(StringMetric metric, Symbols item, double limit, Stop stop, double& distance);
    Status jaro(Symbols item, std::size_t prefix, double limit, Stop stop, double& similarity);
};

StringDistance::StringDistance(StringMetric metric)
    : scratch_(std::make_unique<Scratch>()), metric_(metric) {}
StringDistance::~StringDistance() = default;
StringDistance::StringDistance(StringDistance&&) noexcept = default;

void StringDistance::set_query(Symbols query) {
    scratch_->query = query;
    scratch_->long_jaro_set = false;
    if (metric_ == StringMetric::osa) scratch_->long_alignment.set(query);
    if (metric_ != StringMetric::trigram && scratch_->is_word()) scratch_->places.set(query);
}

Status StringDistance::Scratch::edits(StringMetric metric, Symbols item, double limit, Stop stop,
                                      double& distance) {
    const std::size_t lengths = query.size() + item.size();
    const std::size_t most = edits_within(metric, limit, lengths);
    if (most == kTooMany) return {};
    std::size_t edits = kTooMany;
    if (query.empty() || item.empty()) {
        edits = lengths <= most ? lengths : kTooMany;
    } else if (is_word() && item.size() <= kLookEvery) {
        edits = metric == StringMetric::osa
                    ? edits_of_word<true>(places, query.size(), item, most)
                    : edits_of_word<false>(places, query.size(), item, most);
    } else if (metric == StringMetric::osa) {
        GPUTEXT_TRY(long_alignment.edits(item, most, stop, edits));
    } else {
        const auto found = edit_distance(query, item, most, stop);
        if (!found.ok()) return found.status();
        edits = *found <= most ? *found : kTooMany;
    }
    if (edits != kTooMany) distance = distance_of_edits(metric, edits, lengths);
    return {};
}

/// The similarity, or 0 where its distance is above the limit.
Status StringDistance::Scratch::jaro(Symbols item, std::size_t prefix, double limit, Stop stop,
                                     double& similarity) {
    const std::size_t n = query.size(), m = item.size();
    if (n == 0 || m == 0) {
        similarity = n == m ? 1 : 0;
        return {};
    }
    if (is_word() && m <= kWord) {
        similarity = jaro_of_words(places, query, item, least_matches(n, m, prefix, limit));
        return {};
    }
    if (!long_jaro_set) GPUTEXT_TRY(long_jaro.set(query, stop));
    long_jaro_set = true;
    return long_jaro.similarity(item, stop, similarity);
}

Status StringDistance::operator()(Symbols item, double limit, Stop stop, double& distance) {
    distance = kFar;
    Scratch& scratch = *scratch_;
    if (metric_ == StringMetric::trigram) {
        scratch.work += scratch.query.size() + item.size();
        if (scratch.work >= kLookEvery) {
            if (stop()) return Status::cancelled();
            scratch.work = 0;
        }
        distance = trigram_distance(scratch.query.size(), item.size(),
                                    common_numbers(scratch.query, item));
    } else if (metric_ == StringMetric::jaro || metric_ == StringMetric::jaro_winkler) {
        const bool winkler = metric_ == StringMetric::jaro_winkler;
        const std::size_t prefix = winkler ? common_prefix(scratch.query, item) : 0;
        double similarity = 0;
        GPUTEXT_TRY(scratch.jaro(item, prefix, limit, stop, similarity));
        distance = 1 - (winkler ? with_prefix(similarity, prefix) : similarity);
    } else {
        return scratch.edits(metric_, item, limit, stop, distance);
    }
    if (!(distance <= limit)) distance = kFar;
    return {};
}

double distance_of_counts(StringMetric metric, std::size_t n, std::size_t m,
                          std::uint32_t counts) {
    if (metric == StringMetric::trigram) return trigram_distance(n, m, counts);
    if (metric != StringMetric::jaro && metric != StringMetric::jaro_winkler)
        return distance_of_edits(metric, counts, n + m);
    if (n == 0 || m == 0) return n == m ? 0 : 1;
    const double similarity = jaro_of(n, m, counts & 1023, counts >> 10 & 1023);
    return 1 - (metric == StringMetric::jaro ? similarity : with_prefix(similarity, counts >> 20));
}

// ---- Two strings ----

Result<double> jaro_similarity(Symbols a, Symbols b, Stop stop) {
    if (a.empty() || b.empty()) return a.size() == b.size() ? 1.0 : 0.0;
    if (a.size() <= kWord && b.size() <= kWord) {
        SymbolPlaces places;
        places.set(a);
        return jaro_of_words(places, a, b, 0);
    }
    LongJaro jaro;
    GPUTEXT_TRY(jaro.set(a, stop));
    double similarity = 0;
    GPUTEXT_TRY(jaro.similarity(b, stop, similarity));
    return similarity;
}

Result<double> jaro_winkler_similarity(Symbols a, Symbols b, Stop stop) {
    Result<double> jaro = jaro_similarity(a, b, stop);
    if (jaro.ok()) *jaro = with_prefix(*jaro, common_prefix(a, b));
    return jaro;
}

Result<std::size_t> osa_distance(Symbols a, Symbols b, Stop stop) {
    StringDistance distance(StringMetric::osa);
    distance.set_query(a);
    double edits = 0;
    GPUTEXT_TRY(distance(b, kFar, stop, edits));
    return static_cast<std::size_t>(edits);
}

Result<std::size_t> damerau_levenshtein(Symbols a, Symbols b, Stop stop) {
    const std::size_t n = a.size(), m = b.size();
    if (n == 0 || m == 0) return n + m;
    std::vector<std::uint32_t> rows[3];
    // Of each column: the last row above whose symbol is the column's, and the cell before both.
    std::vector<std::uint32_t> row_of, before;
    for (auto* cells : {&rows[0], &rows[1], &rows[2], &row_of, &before})
        if (!stoppable_assign(*cells, m + 1, 0u, stop)) return Status::cancelled();
    std::iota(rows[0].begin(), rows[0].end(), 0u);
    std::size_t work = 0;  // cells since the last look
    for (std::uint32_t i = 1; i <= n; ++i) {
        std::vector<std::uint32_t>& row = rows[i % 3];
        const std::vector<std::uint32_t>&above = rows[(i + 2) % 3], &two_above = rows[(i + 1) % 3];
        row[0] = i;
        std::uint32_t column_of = 0;  // the last column before whose symbol is the row's
        for (std::uint32_t j = 1; j <= m; ++j) {
            if (++work == kLookEvery / 8) {
                if (stop()) return Status::cancelled();
                work = 0;
            }
            if (a[i - 1] == b[j - 1]) {
                row[j] = above[j - 1];
                row_of[j] = i;
                before[j] = j > 1 ? above[j - 2] : 0;
                column_of = j;
                continue;
            }
            std::uint32_t cell = 1 + std::min({above[j - 1], above[j], row[j - 1]});
            const std::uint32_t k = row_of[j], l = column_of;
            if (k > 0 && l > 0) {
                if (l == j - 1)
                    cell = std::min(cell, before[j] + (i - k));
                else if (k == i - 1)
                    cell = std::min(cell, two_above[l - 1] + (j - l));
            }
            row[j] = cell;
        }
    }
    return rows[n % 3][m];
}

// ---- Bounds ----

double least_distance(StringMetric metric, std::size_t n, std::size_t m, std::size_t common,
                      std::size_t prefix) {
    common = std::min({common, n, m});
    switch (metric) {
        case StringMetric::edit_rate:
        case StringMetric::levenshtein:
        case StringMetric::osa:
            return distance_of_edits(metric, std::max(n, m) - common, n + m);
        case StringMetric::jaro:
        case StringMetric::jaro_winkler: {
            if (n == 0 || m == 0) return n == m ? 0 : 1;
            const double similarity = jaro_of(n, m, common, common);
            if (metric == StringMetric::jaro) return 1 - similarity;
            // What rounding does to a longer sum is less than this.
            return 1 - with_prefix(similarity, prefix) - 0x1p-40;
        }
        case StringMetric::trigram:
            return trigram_distance(n, m, common);
    }
    return 0;
}

double least_distance_of_pairs(StringMetric metric, std::size_t n, std::size_t m,
                               std::size_t common) {
    const std::size_t pairs = std::max({n, m, std::size_t{1}}) - 1;
    const std::size_t of_edit = metric == StringMetric::osa ? 3 : 2;
    const std::size_t changed = pairs - std::min(common, pairs);
    return distance_of_edits(metric, (changed + of_edit - 1) / of_edit, n + m);
}

}  // namespace gputext
