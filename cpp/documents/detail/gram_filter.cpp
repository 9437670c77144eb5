#include "cpp/documents/detail/gram_filter.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cpp/base/lanes.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr std::size_t kMaskWords = GramTile::most_columns / 64;
constexpr std::size_t kGroups = 8;  // gram lengths that are walked between two looks

unsigned width_of(std::size_t number) {
    return static_cast<unsigned>(std::bit_width(number));
}

/// Characters of one byte stay what they are.
std::uint8_t fold_character(std::uint32_t symbol) {
    return static_cast<std::uint8_t>(symbol < 256 ? symbol : symbol * 0x9e3779b1u >> 24);
}

constexpr std::size_t kHashed = 16;  // grams hashed at once

[[gnu::always_inline]] inline void load_symbols(const std::uint8_t* from,
                                                Vector<std::uint32_t, kHashed>& to) {
    Vector<std::uint8_t, kHashed> loaded;
    std::memcpy(&loaded, from, sizeof loaded);
    to = __builtin_convertvector(loaded, Vector<std::uint32_t, kHashed>);
}

/// Numbers of bins for the grams that begin at sixteen neighboring places.
template <unsigned Q>
[[gnu::always_inline]] inline void hash_grams(const std::uint8_t* symbols, unsigned bits,
                                              Vector<std::uint32_t, kHashed>& bins) {
    Vector<std::uint32_t, kHashed> hash, next;
    load_symbols(symbols, hash);
    load_symbols(symbols + 1, next);
    hash |= next << 8;
    if constexpr (Q > 2) {
        load_symbols(symbols + 2, next);
        hash |= next << 16;
    }
    if constexpr (Q > 3) {
        load_symbols(symbols + 3, next);
        hash |= next << 24;
    }
    hash *= 0x9e3779b1u;
    if constexpr (Q > 4) {
        load_symbols(symbols + 4, next);
        hash += next * 0x85ebca6bu;
    }
    if constexpr (Q > 5) {
        load_symbols(symbols + 5, next);
        hash += next * 0xc2b2ae35u;
    }
    bins = hash >> (32 - bits);
}

/// Calls use(place, bins) for grams from `begin` up to `end`, by sixteen; those beyond `end` are of
/// no use.
template <unsigned Q, class Use>
[[gnu::always_inline]] inline void hash_range(Bytes document, std::size_t begin, std::size_t end,
                                              unsigned bits, Use&& use) {
    constexpr std::size_t part = 128;
    std::uint8_t symbols[part + kHashed + Q] = {};
    for (std::size_t from = begin; from < end; from += part) {
        const std::size_t to = std::min(end, from + part);
        std::memcpy(symbols, document.data() + from, to - from + Q - 1);
        for (std::size_t at = from; at < to; at += kHashed) {
            Vector<std::uint32_t, kHashed> bins;
            hash_grams<Q>(symbols + (at - from), bits, bins);
            use(at, bins);
        }
    }
}

/// All bits of a vector together.
template <std::size_t W>
[[gnu::always_inline]] inline std::uint64_t any_bits(const Vector<std::uint64_t, W>& vector) {
    if constexpr (W == 1) {
        return vector[0];
    } else {
        Vector<std::uint64_t, W / 2> halves[2];
        std::memcpy(halves, &vector, sizeof halves);
        return any_bits<W / 2>(halves[0] | halves[1]);
    }
}

}  // namespace

Status FoldedDocuments::fold(const Documents& documents, std::span<const std::uint32_t> lengths,
                             Execution& execution) {
    std::size_t size = 0;
    if (!stoppable_assign(views_, documents.size(), {}, execution.stop()))
        return Status::cancelled();
    std::vector<std::uint64_t> begins;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        if (i % 65536 == 0 && execution.stop_requested()) return Status::cancelled();
        const bool narrow = documents[i].size() == lengths[i];
        views_[i] = {documents[i].data(), lengths[i], narrow};
        if (narrow) continue;
        begins.resize(documents.size());
        begins[i] = size;
        size += lengths[i];
    }
    if (size == 0) return {};
    if (!stoppable_assign(folded_, size, {}, execution.stop())) return Status::cancelled();
    execution.begin_phase("reading characters", documents.size());
    return execution.parallel_for(documents.size(), [&](std::size_t i, unsigned) {
        if (views_[i].narrow) return Status();
        std::uint8_t* to = folded_.data() + begins[i];
        views_[i].begin = to;
        const Bytes document = documents[i];
        for (std::size_t at = 0, count = 0; at < document.size(); ++count) {
            if (count % kLookEvery == 0 && execution.stop_requested()) return Status::cancelled();
            *to++ = fold_character(next_character(document, documents.characters, at));
        }
        return Status();
    });
}

/// The bins of all of a document's grams; room for fifteen more is written to. False if stopped.
bool GramTile::compute_bins(Bytes document, std::uint16_t* bins, Stop stop) const {
    const auto compute = [&]<unsigned Q>() {
        const std::size_t grams = document.size() - Q + 1;
        for (std::size_t begin = 0; begin < grams; begin += kLookEvery) {
            if (stop()) return false;
            hash_range<Q>(document, begin, std::min(grams, begin + kLookEvery), bin_bits_,
                          [&](std::size_t place, const Vector<std::uint32_t, kHashed>& hashed) {
                              const auto narrow =
                                  __builtin_convertvector(hashed, Vector<std::uint16_t, kHashed>);
                              std::memcpy(bins + place, &narrow, sizeof narrow);
                          });
        }
        return true;
    };
    switch (gram_) {
        case 2:
            return compute.template operator()<2>();
        case 3:
            return compute.template operator()<3>();
        case 4:
            return compute.template operator()<4>();
        case 5:
            return compute.template operator()<5>();
        default:
            return compute.template operator()<6>();
    }
}

bool GramTile::build(std::span<const Bytes> columns, unsigned gram, std::size_t longest,
                     std::size_t most_edits, std::size_t memory, Stop stop) {
    constexpr std::size_t most_blocks = 64;
    // A few columns take a word.
    row_words_ = columns.size() <= 64 ? 1 : kMaskWords;
    const std::size_t row_bytes = row_words_ * sizeof(std::uint64_t);
    gram_ = gram;
    columns_ = columns.size();
    longest_ = longest;
    // A block about as wide as the reach to either side.
    block_bits_ = std::max(5u, width_of(std::max(most_edits, 2 * longest / most_blocks))) - 1;
    const auto count_blocks = [&] { return (2 * longest >> block_bits_) + 1; };
    // So many bins that the grams within reach set few of them.
    const std::size_t window = most_edits + (std::size_t{1} << block_bits_) / 2;
    bin_bits_ = std::clamp(width_of(12 * window), 10u, 13u);
    while (bin_bits_ > 8 && (count_blocks() << bin_bits_) * row_bytes > memory) --bin_bits_;
    while (count_blocks() > 4 && (count_blocks() << bin_bits_) * row_bytes > memory) ++block_bits_;
    blocks_ = count_blocks();
    const std::size_t rows = blocks_ << bin_bits_;
    if (!stoppable_assign(table_words_, (rows + 1) * row_words_ + kMaskWords, std::uint64_t{0},
                          stop))
        return false;
    // Aligned, so that a row does not lie in two cache lines.
    const std::size_t beyond =
        reinterpret_cast<std::uintptr_t>(table_words_.data()) / sizeof(std::uint64_t) % kMaskWords;
    table_ = table_words_.data() + (kMaskWords - beyond) % kMaskWords;
    std::fill_n(table_ + rows * row_words_, row_words_, ~std::uint64_t{0});

    std::vector<std::size_t> begins;
    std::size_t total = 0;
    for (const Bytes column : columns) {
        begins.push_back(total);
        total += column.size() < gram ? 0 : column.size() - gram + 1;
    }
    begins.push_back(total);
    std::vector<std::uint16_t> bins;
    if (!stoppable_assign(bins, total + kHashed, std::uint16_t{0}, stop)) return false;
    for (std::size_t c = 0; c < columns.size(); ++c)
        if (begins[c] < begins[c + 1] && !compute_bins(columns[c], bins.data() + begins[c], stop))
            return false;
    // Block by block, whose part of the table then stays in the cache.
    const std::size_t width = std::size_t{1} << block_bits_;
    for (std::size_t block = 0; block < blocks_; ++block) {
        std::uint64_t* const part = table_ + (block << bin_bits_) * row_words_;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (stop()) return false;
            const std::size_t count = begins[c + 1] - begins[c];
            if (count == 0) continue;
            const std::uint64_t bit = std::uint64_t{1} << c % 64;
            std::uint64_t* const to = part + c / 64;
            // Place i lies at offset + 2 * i half characters; within reach of the block are those
            // from low to high.
            const std::size_t offset = longest - columns[c].size();
            const std::size_t low = block * width > most_edits ? block * width - most_edits : 0;
            const std::size_t high = (block + 1) * width - 1 + most_edits;
            if (high < offset) continue;
            const std::size_t first = low > offset ? (low - offset + 1) / 2 : 0;
            const std::size_t end = std::min(count, (high - offset) / 2 + 1);
            for (std::size_t i = first; i < end; ++i) {
                if (i % kLookEvery == 0 && stop()) return false;
                to[bins[begins[c] + i] * row_words_] |= bit;
            }
        }
    }
    return true;
}

/// What a walk along the row reads and writes.
struct GramTile::Walk {
    const std::uint64_t* table;
    std::size_t row_words;
    Bytes row;
    std::uint32_t* places;      // numbers of rows of the table, behind the padding; written to
    std::size_t* places_begin;  // the first place that has been written
    std::uint32_t first_place;  // of the row, in half characters
    unsigned block_bits, bin_bits;
    std::size_t grams;
    std::size_t planes;
    std::uint64_t first_count;  // overflows with the first edit too many
    const std::uint64_t* wanted;
    std::uint64_t* dead;  // columns whose counts have overflowed
    std::uint64_t* marks;
    std::size_t steps_a_mark;
    Stop stop;
};

struct GramTile::Walker {
    /// sum + x + y as two bits, in each place of the vectors.
    template <class V>
    [[gnu::always_inline]] static inline void add(V& sum, const V& x, const V& y, V& carry) {
        const V half = sum ^ x;
        carry = (sum & x) | (half & y);
        sum = half ^ y;
    }

    /// Writes the places of some grams before `at`, at least a step's if there are as many. Returns
    /// the first place that has been written.
    template <unsigned Q>
    [[gnu::always_inline]] static inline const std::uint32_t* prepare(const Walk& job,
                                                                      const std::uint32_t* at) {
        constexpr std::size_t part = 112;
        const auto end = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, at - job.places));
        const std::size_t begin = end < part ? 0 : end - part;
        if (begin < *job.places_begin) {
            alignas(64) std::uint32_t written[part + kHashed];
            const Vector<std::uint32_t, kHashed> steps{0,  2,  4,  6,  8,  10, 12, 14,
                                                       16, 18, 20, 22, 24, 26, 28, 30};
            hash_range<Q>(
                job.row, begin, end, job.bin_bits,
                [&](std::size_t place, const Vector<std::uint32_t, kHashed>& bins)
                    __attribute__((always_inline)) {
                        const Vector<std::uint32_t, kHashed> blocks =
                            (steps + (job.first_place + 2 * static_cast<std::uint32_t>(place))) >>
                            job.block_bits;
                        const Vector<std::uint32_t, kHashed> rows = blocks << job.bin_bits | bins;
                        std::memcpy(written + (place - begin), &rows, sizeof rows);
                    });
            std::memcpy(job.places + begin, written, (end - begin) * sizeof(std::uint32_t));
            *job.places_begin = begin;
        }
        // At the row's begin the padding is part of it.
        return begin == 0 ? job.places - kGroups * Q : job.places + begin;
    }

    /// W words of columns from word `part` on. Returns the number of marks written.
    template <std::size_t W, unsigned Q>
    [[gnu::always_inline]] static inline std::size_t walk(const Walk& job, std::size_t part) {
        using V = Vector<std::uint64_t, W>;
        constexpr std::size_t most_planes = 33;
        const V none{};
        V planes[most_planes];
        for (std::size_t i = 0; i < job.planes; ++i)
            planes[i] = (job.first_count >> i & 1) != 0 ? ~none : none;
        V wanted;
        std::memcpy(&wanted, job.wanted + part, sizeof wanted);
        V dead = ~wanted;
        V before[Q - 1];  // grams that were chosen at the last places
        for (V& chosen : before) chosen = none;

        constexpr std::size_t step = kGroups * Q;
        const std::size_t steps = (job.grams + step - 1) / step;
        const std::uint32_t* at = job.places + job.grams;
        const std::uint32_t* ready = at;  // places from here on have been written
        V ones = planes[0];
        V twos = planes[1];
        V fours = planes[2];
        std::size_t marks = 0;
        for (std::size_t done = 0; done < steps; ++done) {
            if (at - ready < static_cast<std::ptrdiff_t>(step)) ready = prepare<Q>(job, at);
            V any[kGroups];
#pragma GCC unroll 8
            for (V& group : any) {
                group = none;
#pragma GCC unroll 8
                for (unsigned i = 0; i < Q; ++i) {
                    V bits;
                    std::memcpy(&bits, job.table + *--at * job.row_words + part, sizeof bits);
                    V covered = bits;
#pragma GCC unroll 8
                    for (unsigned j = 0; j < Q - 1; ++j) covered |= before[j];
                    const V chosen = ~covered;
                    if constexpr (Q > 2) {
#pragma GCC unroll 8
                        for (unsigned j = Q - 2; j > 0; --j) before[j] = before[j - 1];
                    }
                    before[0] = chosen;
                    // At most one gram is chosen in each gram length of places.
                    group |= chosen;
                }
            }
            V c0, c1, c2, c3, d0, d1, carry;
            add(ones, any[0], any[1], c0);
            add(ones, any[2], any[3], c1);
            add(ones, any[4], any[5], c2);
            add(ones, any[6], any[7], c3);
            add(twos, c0, c1, d0);
            add(twos, c2, c3, d1);
            add(fours, d0, d1, carry);
            for (std::size_t i = 3; i < job.planes; ++i) {
                const V sum = planes[i] ^ carry;
                carry &= planes[i];
                planes[i] = sum;
            }
            dead |= carry;
            if (any_bits<W>(~dead) == 0) break;
            if ((done + 1) % job.steps_a_mark == 0) {
                planes[0] = ones;
                planes[1] = twos;
                planes[2] = fours;
                for (std::size_t i = 0; i < job.planes; ++i)
                    std::memcpy(job.marks + (marks * job.planes + i) * job.row_words + part,
                                &planes[i], sizeof(V));
                ++marks;
            }
            if (done % 65536 == 65535 && job.stop()) break;
        }
        planes[0] = ones;
        planes[1] = twos;
        planes[2] = fours;
        for (std::size_t i = 0; i < job.planes; ++i)
            std::memcpy(job.marks + (marks * job.planes + i) * job.row_words + part, &planes[i],
                        sizeof(V));
        std::memcpy(job.dead + part, &dead, sizeof dead);
        return marks + 1;
    }

    /// All columns are walked; unwanted ones count as excluded from the beginning.
    template <std::size_t W, unsigned Q>
    [[gnu::always_inline]] static inline std::size_t walk_all(const Walk& job) {
        std::size_t marks = 0;
        for (std::size_t part = 0; part < job.row_words; part += W)
            marks = std::max(marks, walk<W, Q>(job, part));
        return marks;
    }

    template <std::size_t W>
    [[gnu::always_inline]] static inline std::size_t walk_of(unsigned gram, const Walk& job) {
        switch (gram) {
            case 2:
                return walk_all<W, 2>(job);
            case 3:
                return walk_all<W, 3>(job);
            case 4:
                return walk_all<W, 4>(job);
            case 5:
                return walk_all<W, 5>(job);
            default:
                return walk_all<W, 6>(job);
        }
    }

    static std::size_t walk_portable(unsigned gram, const Walk& job) {
        return walk_of<2>(gram, job);
    }
#ifdef GPUTEXT_X86
    GPUTEXT_TARGET_AVX2 static std::size_t walk_avx2(unsigned gram, const Walk& job) {
        return walk_of<4>(gram, job);
    }
    GPUTEXT_TARGET_AVX512 static std::size_t walk_avx512(unsigned gram, const Walk& job) {
        return walk_of<8>(gram, job);
    }
#endif

    static std::size_t run(Simd simd, unsigned gram, const Walk& job) {
        if (job.row_words == 1) return walk_of<1>(gram, job);
#ifdef GPUTEXT_X86
        if (simd == Simd::avx512) return walk_avx512(gram, job);
        if (simd == Simd::avx2) return walk_avx2(gram, job);
#endif
        return walk_portable(gram, job);
    }
};

GramTile::Mask GramTile::may_be_within(Bytes row, std::size_t edits, const Mask& wanted,
                                       Stop stop) {
    const std::size_t padding = kGroups * gram_;
    row_grams_ = row.size() < gram_ ? 0 : row.size() - gram_ + 1;
    if (row_places_.size() < padding + row_grams_ &&
        !stoppable_assign(row_places_, padding + row_grams_, std::uint32_t{0}, stop))
        return {};
    // Before the row's begin every gram counts as present in all columns.
    std::fill_n(row_places_.begin(), padding, static_cast<std::uint32_t>(blocks_ << bin_bits_));
    std::size_t places_begin = row_grams_;
    planes_ = std::max(4u, width_of(edits));
    first_count_ = (std::uint64_t{1} << planes_) - 1 - edits;
    const std::size_t step = kGroups * gram_;
    const std::size_t steps = (row_grams_ + step - 1) / step;
    const std::size_t steps_a_mark = std::max<std::size_t>({1, 64 / step, steps / 64});
    mark_step_ = steps_a_mark * step;
    marks_.resize((steps / steps_a_mark + 2) * planes_ * row_words_);
    Mask dead;
    dead.fill(~std::uint64_t{0});
    const Walk job{table_,        row_words_,
                   row,           row_places_.data() + padding,
                   &places_begin, static_cast<std::uint32_t>(longest_ - row.size()),
                   block_bits_,   bin_bits_,
                   row_grams_,    planes_,
                   first_count_,  wanted.data(),
                   dead.data(),   marks_.data(),
                   steps_a_mark,  stop};
    marks_written_ = Walker::run(simd_, gram_, job);
    if (stop()) return {};
    for (std::uint64_t& word : dead) word = ~word;
    return dead;
}

std::size_t GramTile::least_edits_from(std::size_t column, std::size_t from) const {
    if (from >= row_grams_) return 0;
    std::size_t mark = marks_written_ - 1;
    if (from > 0) {
        const std::size_t marks = (row_grams_ - from) / mark_step_;
        if (marks == 0) return 0;
        mark = std::min(mark, marks - 1);
    }
    const std::uint64_t* plane = marks_.data() + mark * planes_ * row_words_ + column / 64;
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < planes_; ++i, plane += row_words_)
        count |= (*plane >> column % 64 & 1) << i;
    return count - first_count_;
}

std::size_t GramTile::least_edits_of(const Mask& columns) const {
    const auto columns_of = [](const Mask& mask) {
        return std::ranges::any_of(mask, [](std::uint64_t word) { return word != 0; });
    };
    if (!columns_of(columns)) return SIZE_MAX;
    Mask least = columns;
    std::uint64_t count = 0;
    for (std::size_t i = planes_; i-- > 0;) {
        const std::uint64_t* const plane =
            marks_.data() + ((marks_written_ - 1) * planes_ + i) * row_words_;
        Mask smaller{};
        for (std::size_t word = 0; word < row_words_; ++word)
            smaller[word] = least[word] & ~plane[word];
        if (columns_of(smaller))
            least = smaller;
        else
            count |= std::uint64_t{1} << i;
    }
    return count - first_count_;
}

std::uint64_t GramTile::sum_of_least_edits(Bytes row, Stop stop) {
    Mask wanted;
    wanted.fill(~std::uint64_t{0});
    may_be_within(row, row.size() + 1, wanted, stop);
    if (stop()) return 0;
    std::uint64_t sum = 0;
    for (std::size_t column = 0; column < columns_; ++column) sum += least_edits_from(column, 0);
    return sum;
}

}  // namespace gputext
