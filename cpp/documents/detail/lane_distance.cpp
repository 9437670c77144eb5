#include "cpp/documents/detail/lane_distance.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "cpp/base/lanes.hpp"
#include "cpp/documents/detail/bit_parallel.hpp"

namespace gputext {
namespace {

constexpr std::size_t kLooked = 16;  // columns between two looks at the band's lower end
constexpr std::size_t kChecks = 2;   // such parts between two looks at the whole band
constexpr std::size_t kPart = 16;    // rows whose smallest value is bounded together

/// Ones of each sixteen bits.
template <class V>
[[gnu::always_inline]] inline void count_ones(V& bits) {
    bits -= bits >> 1 & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    bits = (bits + (bits >> 8)) & 0x00ff00ff00ff00ffu;
}

/// Element i of vector j becomes element j of vector i.
template <std::size_t W>
[[gnu::always_inline]] inline void transpose(Vector<std::uint64_t, W> (&v)[W]) {
    using V = Vector<std::uint64_t, W>;
    if constexpr (W == 2) {
        const V a = v[0];
        v[0] = __builtin_shufflevector(a, v[1], 0, 2);
        v[1] = __builtin_shufflevector(a, v[1], 1, 3);
    } else if constexpr (W == 4) {
        V t[4];
        for (std::size_t i = 0; i < 4; i += 2) {
            t[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 4, 2, 6);
            t[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 1, 5, 3, 7);
        }
        for (std::size_t i = 0; i < 2; ++i) {
            v[i] = __builtin_shufflevector(t[i], t[i + 2], 0, 1, 4, 5);
            v[i + 2] = __builtin_shufflevector(t[i], t[i + 2], 2, 3, 6, 7);
        }
    } else {
        V t[8];
#pragma GCC unroll 4
        for (std::size_t i = 0; i < 8; i += 2) {
            t[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
            t[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
        }
        V s[8];
#pragma GCC unroll 2
        for (std::size_t i = 0; i < 8; i += 4) {
#pragma GCC unroll 2
            for (std::size_t j = 0; j < 2; ++j) {
                s[i + j] =
                    __builtin_shufflevector(t[i + j], t[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
                s[i + j + 2] =
                    __builtin_shufflevector(t[i + j], t[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
            }
        }
#pragma GCC unroll 4
        for (std::size_t i = 0; i < 4; ++i) {
            v[i] = __builtin_shufflevector(s[i], s[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
            v[i + 4] = __builtin_shufflevector(s[i], s[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        }
    }
}

}  // namespace

/// What a run of some lanes reads and writes.
struct LaneDistance::Job {
    const std::uint64_t* matches;
    const std::uint16_t* ids;
    std::size_t stride;
    std::size_t rows;
    std::uint64_t* column;
    const Text* texts;
    std::size_t count;          // of the texts, at most as many as there are lanes
    const std::uint32_t* rest;  // for the first of the texts
    std::uint32_t* distances;
    Stop stop;
};

template <std::size_t W>
struct BandOfLanes {
    using V = Vector<std::uint64_t, W>;
    using S = Vector<std::int64_t, W>;

    // Parameters of the run.
    std::uint64_t* column;
    const std::uint32_t* rest;
    S to_end;  // columns left minus rows left at row 0 of the current column
    S limits;  // below 0 for lanes without a text, and with one that is done
    // The band: words from first to last, and the value in the last one's last row.
    std::size_t first = 0;
    std::size_t last = 0;
    S score;

    [[gnu::always_inline]] void load(std::size_t word, V& up, V& down) const {
        std::memcpy(&up, column + 2 * W * word, sizeof up);
        std::memcpy(&down, column + 2 * W * word + W, sizeof down);
    }
    [[gnu::always_inline]] void store(std::size_t word, const V& up, const V& down) {
        std::memcpy(column + 2 * W * word, &up, sizeof up);
        std::memcpy(column + 2 * W * word + W, &down, sizeof down);
    }
    [[gnu::always_inline]] void open(std::size_t word) { store(word, ~V{}, V{}); }

    [[gnu::always_inline]] static bool any(const S& mask) {
        std::uint64_t bits = 0;
        for (std::size_t lane = 0; lane < W; ++lane) bits |= static_cast<std::uint64_t>(mask[lane]);
        return bits != 0;
    }

    /// Edits that a path from rows `low` to `high`, whose bound is the entry `step` of rest, needs.
    [[gnu::always_inline]] void edits_to_end(std::size_t low, std::size_t high, std::size_t step,
                                             S& edits) const {
        Vector<std::uint32_t, W> bounds;
        std::memcpy(&bounds, rest + step * lanes, sizeof bounds);
        edits = __builtin_convertvector(bounds, S);
        const S above = to_end + static_cast<std::int64_t>(low);
        const S below = -to_end - static_cast<std::int64_t>(high);
        edits = above > edits ? above : edits;
        edits = below > edits ? below : edits;
    }

    static constexpr std::size_t lanes = LaneDistance::lanes;

    /// Leaves out words at both ends that no path within a limit goes through. False if none is
    /// left.
    [[gnu::always_inline]] bool narrow() {
        std::size_t hopeful_first = SIZE_MAX;
        std::size_t hopeful_last = 0;
        S hopeful_score = score;
        S value = score;  // in the last row of the word
        for (std::size_t word = last + 1; word-- > first;) {
            V up, down;
            load(word, up, down);
            const S word_value = value;
            S hope{};
            // By how much the values rise over each part, and sixteen more.
            count_ones(up);
            count_ones(down);
            const V rises = up + 0x0010001000100010u - down;
#pragma GCC unroll 4
            for (std::size_t part = kBlockRows; part > 0; part -= kPart) {
                const S above = value + static_cast<std::int64_t>(kPart) -
                                reinterpret_cast<S>(rises >> (part - kPart) & 0xffffu);
                const S least = (value + above - static_cast<std::int64_t>(kPart)) >> 1;
                S edits;
                edits_to_end(kBlockRows * word + part - kPart, kBlockRows * word + part, word + 1,
                             edits);
                hope |= least + edits <= limits;
                value = above;
            }
            if (!any(hope)) continue;
            if (hopeful_first == SIZE_MAX) {
                hopeful_last = word;
                hopeful_score = word_value;
            }
            hopeful_first = word;
        }
        if (hopeful_first == SIZE_MAX) return false;
        first = hopeful_first;
        last = hopeful_last;
        score = hopeful_score;
        return true;
    }

    /// Opens words below the last one up to `lowest`, as long as a path may come there within the
    /// next `columns` columns, over which a value falls by one each at most.
    [[gnu::always_inline]] void open_below(std::size_t lowest, std::size_t columns) {
        while (last < lowest) {
            const std::size_t row = kBlockRows * (last + 1);
            S edits;
            edits_to_end(row - columns, row, last + 1, edits);
            const S least = score - static_cast<std::int64_t>(columns);
            if (!any(least + edits <= limits)) return;
            open(++last);
            score += static_cast<std::int64_t>(kBlockRows);
        }
    }

    /// Advances by one column. `matches` points for each lane to the words of its symbol.
    [[gnu::always_inline]] void advance(const std::uint64_t* const (&matches)[W]) {
        V in_up = V{} + 1;
        V in_down{};
        for (std::size_t begin = first; begin <= last; begin += W) {
            V equals[W];
#pragma GCC unroll 8
            for (std::size_t lane = 0; lane < W; ++lane)
                std::memcpy(&equals[lane], matches[lane] + begin, sizeof(V));
            transpose<W>(equals);
            const std::size_t count = std::min(W, last - begin + 1);
#pragma GCC unroll 8
            for (std::size_t i = 0; i < W; ++i) {
                if (i >= count) break;
                V up, down;
                load(begin + i, up, down);
                V equal = equals[i];
                const V vertical = equal | down;
                equal |= in_down;
                const V horizontal = (((equal & up) + up) ^ up) | equal;
                V right_up = down | ~(horizontal | up);
                V right_down = up & horizontal;
                const V out_up = right_up >> 63;
                const V out_down = right_down >> 63;
                right_up = right_up << 1 | in_up;
                right_down = right_down << 1 | in_down;
                store(begin + i, right_down | ~(vertical | right_up), right_up & vertical);
                in_up = out_up;
                in_down = out_down;
            }
        }
        score += reinterpret_cast<S>(in_up - in_down);
    }
};

struct LaneDistance::Runner {
    template <std::size_t W>
    [[gnu::always_inline]] static inline void run(const Job& job) {
        using Band = BandOfLanes<W>;
        const std::size_t words = (job.rows + kBlockRows - 1) / kBlockRows;
        Band band;
        band.column = job.column;
        band.rest = job.rest;
        band.limits = typename Band::S{} - 1;
        std::size_t low_slack = 0;
        std::size_t high_slack = 0;
        std::size_t ends[W];
        for (std::size_t lane = 0; lane < W; ++lane) {
            ends[lane] = 0;
            band.to_end[lane] = 0;
            if (lane >= job.count) continue;
            const Text& text = job.texts[lane];
            const auto limit = static_cast<std::int64_t>(text.limit);
            const std::int64_t difference = static_cast<std::int64_t>(text.symbols.size()) -
                                            static_cast<std::int64_t>(job.rows);
            ends[lane] = text.symbols.size();
            band.limits[lane] = limit;
            band.to_end[lane] = difference;  // at column 0, row 0
            low_slack = std::max(low_slack, static_cast<std::size_t>((limit - difference) / 2));
            high_slack = std::max(high_slack, static_cast<std::size_t>((limit + difference) / 2));
        }
        band.open(0);
        band.score = typename Band::S{} + static_cast<std::int64_t>(kBlockRows);
        std::size_t parts = 0;
        for (std::size_t column = 0;;) {
            // Up to the next text's end, or a few columns.
            std::size_t end = SIZE_MAX;
            for (std::size_t lane = 0; lane < job.count; ++lane)
                if (ends[lane] > column) end = std::min(end, ends[lane]);
            if (end == SIZE_MAX) return;
            end = std::min(end, column + kLooked);
            const std::size_t lowest = std::min(words - 1, (end + low_slack - 1) / kBlockRows);
            band.open_below(lowest, end - column);
            if (column + 1 > high_slack)
                band.first = std::max(band.first, (column - high_slack) / kBlockRows);
            if (band.first > band.last) return;
            for (; column < end; ++column) {
                const std::uint64_t* matches[W];
#pragma GCC unroll 8
                for (std::size_t lane = 0; lane < W; ++lane) {
                    const std::size_t id =
                        column < ends[lane] ? job.ids[job.texts[lane].symbols[column]] : 0;
                    matches[lane] = job.matches + id * job.stride;
                }
                band.advance(matches);
            }
            for (std::size_t lane = 0; lane < job.count; ++lane)
                band.to_end[lane] = static_cast<std::int64_t>(ends[lane]) -
                                    static_cast<std::int64_t>(column) -
                                    static_cast<std::int64_t>(job.rows);
            for (std::size_t lane = 0; lane < job.count; ++lane)
                if (ends[lane] == column) finish(job, band, words, lane);
            if (++parts % kChecks == 0 && (job.stop() || !band.narrow())) return;
        }
    }

    /// Takes a lane's distance where its text ends.
    template <class Band>
    [[gnu::always_inline]] static inline void finish(const Job& job, Band& band, std::size_t words,
                                                     std::size_t lane) {
        const std::int64_t limit = band.limits[lane];
        band.limits[lane] = INT64_MIN / 2;
        if (band.last + 1 < words) return;
        typename Band::V up, down;
        band.load(band.last, up, down);
        const Block block{up[lane], down[lane]};
        const std::int64_t distance = band.score[lane] - rise(block, rows_beyond(job.rows));
        if (distance <= limit) job.distances[lane] = static_cast<std::uint32_t>(distance);
    }

    static void run_portable(const Job& job) {
        run<2>(job);
    }
#ifdef GPUTEXT_X86
    GPUTEXT_TARGET_AVX2 static void run_avx2(const Job& job) {
        run<4>(job);
    }
    GPUTEXT_TARGET_AVX512 static void run_avx512(const Job& job) {
        run<8>(job);
    }
#endif
};

void LaneDistance::set_pattern(Bytes pattern) {
    rows_ = pattern.size();
    const std::size_t words = (rows_ + kBlockRows - 1) / kBlockRows;
    stride_ = words + lanes;  // a whole vector may be read from any word on
    ids_.fill(0);
    std::uint16_t ids = 1;
    for (const std::uint8_t symbol : pattern)
        if (ids_[symbol] == 0) ids_[symbol] = ids++;
    matches_.assign(ids * stride_, 0);
    for (std::size_t row = 0; row < rows_; ++row)
        matches_[ids_[pattern[row]] * stride_ + row / kBlockRows] |= std::uint64_t{1}
                                                                     << row % kBlockRows;
    column_.resize(2 * lanes * words + lanes);
    no_rest_.assign((words + 1) * lanes, 0);
}

std::array<std::uint32_t, LaneDistance::lanes> LaneDistance::operator()(
    std::span<const Text> texts, std::span<const std::uint32_t> rest, Stop stop) {
    std::array<std::uint32_t, lanes> distances;
    distances.fill(far);
    std::size_t width = 2;
    void (*run)(const Job&) = Runner::run_portable;
#ifdef GPUTEXT_X86
    if (simd_ == Simd::avx512) {
        width = 8;
        run = Runner::run_avx512;
    } else if (simd_ == Simd::avx2) {
        width = 4;
        run = Runner::run_avx2;
    }
#endif
    const std::size_t beyond =
        reinterpret_cast<std::uintptr_t>(column_.data()) / sizeof(std::uint64_t) % lanes;
    for (std::size_t begin = 0; begin < texts.size(); begin += width) {
        const std::uint32_t* const bounds = rest.empty() ? no_rest_.data() : rest.data();
        run({matches_.data(), ids_.data(), stride_, rows_,
             column_.data() + (lanes - beyond) % lanes, texts.data() + begin,
             std::min(width, texts.size() - begin), bounds + begin, distances.data() + begin,
             stop});
    }
    if (stop()) distances.fill(far);
    return distances;
}

}  // namespace gputext
