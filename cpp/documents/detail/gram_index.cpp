#include "cpp/documents/detail/gram_index.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/edit_distance.hpp"

namespace gputext {
namespace {

constexpr std::size_t kPadding = 32;       // symbols behind a loaded document
constexpr std::size_t kHitsAtOnce = 1024;  // whose texts are fetched together
constexpr std::size_t kScannedAtOnce = std::size_t{1} << 18;
constexpr std::size_t kKeysAtOnce = 64;  // whose entries are fetched together
constexpr std::size_t kRing = 6;         // chunks that are looked at to confirm a hit
constexpr std::size_t kMostCandidates = std::size_t{1} << 18;  // of several queries
constexpr std::size_t kSampledGrams = std::size_t{1} << 22;
constexpr unsigned kMostCountBits = 21;  // of which a processor's cache holds the counts
constexpr unsigned kMostProbeBits = 8;   // of parts of sorted keys
constexpr unsigned kMostPartBits = 4;    // of parts of the index that threads fill
/// Symbols whose grams are chosen together. The time for each grows with them.
constexpr std::size_t kChosenAtOnce = 384;

std::uint64_t load_word(const std::uint8_t* from) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

std::uint32_t key_of(std::uint64_t hash, std::size_t block) {
    return static_cast<std::uint32_t>(
        ((hash ^ block * 0xd6e8feb86659fd93u) * 0x9e3779b97f4a7c15u) >> 32);
}

/// Two bits of a word for a key.
std::uint64_t filter_of(std::uint32_t key) {
    return std::uint64_t{1} << key % 64 | std::uint64_t{1} << key / 64 % 64;
}

/// At least `size` elements, of any values, and no room for more.
template <class T>
void provide(std::vector<T>& elements, std::size_t size) {
    if (elements.size() >= size) return;
    elements = {};
    elements = std::vector<T>(size);
}

/// Length of what both begin with, at most `most`.
std::size_t common_prefix(const std::uint8_t* a, const std::uint8_t* b, std::size_t most) {
    std::size_t i = 0;
    for (; i + 8 <= most; i += 8) {
        const std::uint64_t differing = load_word(a + i) ^ load_word(b + i);
        if (differing != 0) return i + static_cast<std::size_t>(std::countr_zero(differing)) / 8;
    }
    while (i < most && a[i] == b[i]) ++i;
    return i;
}

/// How far edits get along a document, on its way to another one: the furthest reaching points on
/// diagonals (Ukkonen 1985).
class Reach {
public:
    Reach(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b, std::size_t b_size)
        : a_(a),
          b_(b),
          a_size_(static_cast<std::ptrdiff_t>(a_size)),
          b_size_(static_cast<std::ptrdiff_t>(b_size)) {
        points_.fill(kNowhere);
        points_[kMiddle] = furthest_ = slide(0, 0);
    }

    /// Symbols of a that the edits until now reach.
    std::size_t furthest() const { return static_cast<std::size_t>(furthest_); }

    /// Allows one more edit; at most kRing - 1 calls.
    void allow_edit() {
        ++edits_;
        const std::array<std::ptrdiff_t, kDiagonals> before = points_;
        for (std::ptrdiff_t diagonal = -edits_; diagonal <= edits_; ++diagonal) {
            const auto at = static_cast<std::size_t>(kMiddle + diagonal);
            const std::ptrdiff_t changed =
                std::max({before[at] + 1, before[at - 1], before[at + 1] + 1});
            if (changed < 0) continue;
            points_[at] = slide(changed, diagonal);
            furthest_ = std::max(furthest_, points_[at]);
        }
    }

private:
    static constexpr std::ptrdiff_t kNowhere = -1000;
    static constexpr std::ptrdiff_t kMiddle = kRing;
    static constexpr std::size_t kDiagonals = 2 * kRing + 1;

    std::ptrdiff_t slide(std::ptrdiff_t from, std::ptrdiff_t diagonal) const {
        const std::ptrdiff_t end = std::min(a_size_, b_size_ - diagonal);
        if (from >= end || from + diagonal < 0) return std::min(from, end);
        return from + static_cast<std::ptrdiff_t>(common_prefix(
                          a_ + from, b_ + from + diagonal, static_cast<std::size_t>(end - from)));
    }

    const std::uint8_t *a_, *b_;
    std::ptrdiff_t a_size_, b_size_;
    std::ptrdiff_t edits_ = 0, furthest_ = 0;
    std::array<std::ptrdiff_t, kDiagonals> points_;  // by diagonal; kNowhere, or symbols of a
};

}  // namespace

void GramIndex::Entry::set_next(std::uint64_t symbols) {
    const std::uint32_t hashes = hash_next(static_cast<std::uint32_t>(symbols)) << next_bits |
                                 hash_next(static_cast<std::uint32_t>(symbols >> 32));
    at_ |= 1u << 31 | hashes << place_bits;
}

bool GramIndex::Entry::is_near_next(const std::uint8_t* row) const {
    if (at_ >> 31 == 0) return true;
    constexpr std::uint32_t mask = (1u << next_bits) - 1;
    const std::uint64_t symbols = load_word(row);
    if ((at_ >> (place_bits + next_bits) & mask) == hash_next(static_cast<std::uint32_t>(symbols)))
        return true;
    const std::uint32_t second = at_ >> place_bits & mask;
    return second == hash_next(static_cast<std::uint32_t>(symbols >> 24)) ||
           second == hash_next(static_cast<std::uint32_t>(symbols >> 32)) ||
           second == hash_next(static_cast<std::uint32_t>(load_word(row + 1) >> 32));
}

std::size_t GramIndex::count_chunks(std::size_t length, double threshold, bool longer_rows) {
    const double longest = static_cast<double>(length) * (1 + threshold) / (1 - threshold);
    const std::size_t row = longer_rows ? static_cast<std::size_t>(longest) + 1 : length;
    return most_edits_within(threshold, length + row) + 1;
}

std::size_t GramIndex::gram_length(std::span<const PlacedDocument> places, PlaceRange columns,
                                   const ProbeRows& rows, double threshold) {
    if (places[columns.end - 1].size > longest_document ||
        rows.places[rows.range.end - 1].size > longest_document)
        return 0;
    double shortest = 2 * longest_gram;
    std::size_t last = SIZE_MAX;
    for (std::size_t column = columns.begin; column < columns.end; ++column) {
        if (places[column].size == last) continue;
        last = places[column].size;
        shortest = std::min(
            shortest, static_cast<double>(last) /
                          static_cast<double>(count_chunks(last, threshold, rows.may_be_longer)));
    }
    if (shortest < shortest_gram) return 0;
    // The ratio is measured on texts: the longer chunks are than grams, the rarer the grams that
    // can be chosen.
    return std::clamp(static_cast<std::size_t>(shortest * 7 / 8), shortest_gram, longest_gram);
}

std::size_t GramIndex::bytes_of(std::size_t grams) {
    constexpr std::size_t in_buckets = sizeof(std::uint32_t) / 2, in_filter = 2;
    return grams * (sizeof(Entry) + 2 * sizeof(std::uint32_t) + sizeof(std::uint16_t)) +
           std::bit_ceil(grams + 2) * (in_buckets + in_filter);
}

Chunks GramIndex::chunks(std::size_t column) const {
    const std::uint32_t* first = &firsts_[column - columns_.begin];
    return {std::span(grams_).subspan(first[0], first[1] - first[0]), places_[column].size};
}

std::uint64_t GramIndex::hash(const std::uint8_t* symbols) const {
    const std::uint64_t first = (load_word(symbols) & mask_) * 0x9e3779b97f4a7c15u;
    if (gram_ <= 8) return first ^ first >> 29;
    const std::uint64_t last = load_word(symbols + gram_ - 8) * 0xc2b2ae3d27d4eb4fu;
    return (first ^ first >> 29) + (last ^ last >> 31);
}

void GramIndex::load(const PlacedDocument& document, std::vector<std::uint8_t>& symbols) const {
    provide(symbols, document.size + kPadding);
    if (document.size > 0) std::memcpy(symbols.data(), document.symbols, document.size);
}

std::uint8_t& GramIndex::count_of(std::uint64_t hash) {
    return counts_[key_of(hash, 0) >> (32 - count_bits_)];
}

bool GramIndex::count_grams(Stop stop) {
    const PlaceRange rows = rows_.range;
    std::uint64_t all = 0;
    for (std::size_t row = rows.begin; row < rows.end; ++row) all += rows_.places[row].size;
    count_bits_ = std::clamp(static_cast<unsigned>(std::bit_width(all)), 8u, kMostCountBits);
    if (!assign_pages(counts_, std::size_t{1} << count_bits_, {}, stop)) return false;
    const std::size_t step = 1 + all / kSampledGrams;
    std::vector<std::uint8_t> symbols;
    for (std::size_t row = rows.begin; row < rows.end; row += step) {
        if (stop()) return false;
        load(rows_.places[row], symbols);
        for (std::size_t i = 0; i + gram_ <= rows_.places[row].size; ++i) {
            std::uint8_t& count = count_of(hash(symbols.data() + i));
            if (count < UINT8_MAX) ++count;
        }
    }
    return true;
}

/// Chooses grams inside of `symbols`, as many as `grams` has elements: those without an overlap
/// that have the least sum of counts. The time is about (symbols / 2)^2 / gram length.
///
/// All grams have one length, so where the i-th one begins is told by the sum of the gaps before
/// it. This sum does not fall from one gram to the next. sums[i][gap] is the least sum of counts of
/// the first i grams with gaps of at most `gap` symbols before the last one.
void GramIndex::choose_part(PlaceRange symbols, std::span<std::uint16_t> grams,
                            Probe& probe) const {
    const std::size_t gaps = symbols.size() - grams.size() * gram_;
    const std::size_t width = gaps + 1;
    provide(probe.sums_, (grams.size() + 1) * width);
    std::fill_n(probe.sums_.begin(), width, std::uint16_t{0});
    for (std::size_t i = 0; i < grams.size(); ++i) {
        const std::uint16_t* before = probe.sums_.data() + i * width;
        const std::uint16_t* counts = probe.counts_.data() + symbols.begin + i * gram_;
        std::uint16_t* sums = probe.sums_.data() + (i + 1) * width;
        unsigned least = UINT16_MAX;
        for (std::size_t gap = 0; gap < width; ++gap) {
            const unsigned sum = unsigned{before[gap]} + counts[gap];
            least = std::min(least, sum);
            sums[gap] = static_cast<std::uint16_t>(least);
        }
    }
    std::size_t gap = gaps;
    for (std::size_t i = grams.size(); i-- > 0;) {
        const std::uint16_t* sums = probe.sums_.data() + (i + 1) * width;
        while (gap > 0 && sums[gap - 1] == sums[gap]) --gap;
        grams[i] = static_cast<std::uint16_t>(symbols.begin + i * gram_ + gap);
    }
}

/// The document's grams, in parts, and their keys.
void GramIndex::choose_grams(std::size_t column, std::span<std::uint32_t> keys, Probe& probe) {
    const PlacedDocument& document = places_[column];
    load(document, probe.symbols_);
    const std::size_t all = document.size - gram_ + 1;
    provide(probe.counts_, all);
    for (std::size_t i = 0; i < all; ++i)
        probe.counts_[i] = count_of(hash(probe.symbols_.data() + i));
    const std::uint32_t first = firsts_[column - columns_.begin];
    const std::span<std::uint16_t> grams = std::span(grams_).subspan(first, keys.size());
    const std::size_t parts = (document.size + kChosenAtOnce - 1) / kChosenAtOnce;
    // A part has as many symbols as its share of the chunks.
    const auto chunk_of = [&](std::size_t part) { return grams.size() * part / parts; };
    const auto begin_of = [&](std::size_t part) {
        return document.size * chunk_of(part) / grams.size();
    };
    for (std::size_t part = 0; part < parts; ++part)
        choose_part({begin_of(part), begin_of(part + 1)},
                    grams.subspan(chunk_of(part), chunk_of(part + 1) - chunk_of(part)), probe);
    const std::size_t begin = longest_ - document.size;
    for (std::size_t chunk = 0; chunk < grams.size(); ++chunk)
        keys[chunk] = key_of(hash(probe.symbols_.data() + grams[chunk]),
                             (begin + 2 * std::size_t{grams[chunk]}) / block_);
}

GramIndex::Entry GramIndex::entry_of(std::uint32_t key, std::size_t column,
                                     std::size_t chunk) const {
    const PlacedDocument& document = places_[column];
    const Chunks chunks = this->chunks(column);
    Entry entry(key, column - columns_.begin, longest_ - document.size + 2 * chunks.gram(chunk));
    const std::size_t behind = chunks.gram(chunk) + gram_;
    if (chunk + 1 < chunks.count() && chunks.begin(chunk + 2) - behind >= sizeof(std::uint64_t))
        entry.set_next(load_word(document.symbols + behind));
    return entry;
}

/// Counts the entries of the buckets whose keys begin with the bits `part`, and fills the filter.
bool GramIndex::count_part(std::uint32_t part, std::span<const std::uint32_t> keys, Stop stop) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i % kLookEvery == 0 && stop()) return false;
        const std::uint32_t key = keys[i];
        if (part_of(key) != part) continue;
        ++begins_[key >> (32 - bucket_bits_)];
        filter_[key >> (32 - filter_bits_)] |= filter_of(key);
    }
    return true;
}

/// Fills these buckets, each from its end, so that the ends become begins. In a bucket columns
/// ascend.
bool GramIndex::fill_part(std::uint32_t part, std::span<const std::uint32_t> keys, Stop stop) {
    constexpr std::uint32_t ahead = 16;
    for (std::size_t column = columns_.end; column-- > columns_.begin;) {
        const std::uint32_t* first = &firsts_[column - columns_.begin];
        if (stop()) return false;
        for (std::uint32_t i = first[1]; i-- > first[0];) {
            if (i >= 2 * ahead && part_bits_ == 0) {
                __builtin_prefetch(bucket(keys[i - 2 * ahead]));
                const std::uint32_t slot = *bucket(keys[i - ahead]) - 1;
                __builtin_prefetch(entries_.get() + slot, 1);
                __builtin_prefetch(numbers_.get() + slot, 1);
            }
            const std::uint32_t key = keys[i];
            if (part_of(key) != part) continue;
            const std::uint32_t slot = --begins_[key >> (32 - bucket_bits_)];
            entries_[slot] = entry_of(key, column, i - first[0]);
            numbers_[slot] = i;
        }
    }
    return true;
}

/// Sorts the entries by bucket, after filling the filter.
Status GramIndex::sort_entries(std::span<const std::uint32_t> keys, Execution& execution) {
    const Stop stop = execution.stop();
    const unsigned bits = std::max(4u, static_cast<unsigned>(std::bit_width(keys.size())));
    bucket_bits_ = bits - 1;  // one or two entries a bucket
    filter_bits_ = bits - 3;  // words, that is eight to sixteen bits an entry
    // A part of the filter takes 64 KB.
    probe_bits_ = std::clamp(filter_bits_, 13u, 13 + kMostProbeBits) - 13;
    part_bits_ = std::min({kMostPartBits, filter_bits_, bucket_bits_,
                           static_cast<unsigned>(std::bit_width(execution.threads() - 1))});
    if (!assign_pages(begins_, (std::size_t{1} << bucket_bits_) + 1, {}, stop) ||
        !assign_pages(filter_, std::size_t{1} << filter_bits_, {}, stop))
        return Status::cancelled();
    entries_ = std::make_unique_for_overwrite<Entry[]>(keys.size());
    numbers_ = std::make_unique_for_overwrite<std::uint32_t[]>(keys.size());
    prefer_large_pages(entries_.get(), keys.size());
    prefer_large_pages(numbers_.get(), keys.size());
    const auto for_each_part = [&](auto&& of_part) {
        return execution.parallel_for(
            std::size_t{1} << part_bits_, [&](std::size_t part, unsigned) {
                return of_part(static_cast<std::uint32_t>(part)) ? Status() : Status::cancelled();
            });
    };
    GPUTEXT_TRY(for_each_part([&](std::uint32_t part) { return count_part(part, keys, stop); }));
    std::uint32_t before = 0;
    for (std::uint32_t& begin : begins_) begin = before += begin;
    return for_each_part([&](std::uint32_t part) { return fill_part(part, keys, stop); });
}

Status GramIndex::build(std::span<const PlacedDocument> places, PlaceRange columns,
                        const ProbeRows& rows, double threshold, Execution& execution) {
    places_ = places;
    columns_ = columns;
    rows_ = rows;
    threshold_ = threshold;
    gram_ = gram_length(places, columns, rows, threshold);
    mask_ = gram_ >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * gram_) - 1;
    longest_ = std::max(places[columns.end - 1].size, rows.places[rows.range.end - 1].size);
    // Wide blocks make fewer keys, narrow ones fewer entries out of reach.
    block_ = 6 * most_edits_within(threshold, 2 * longest_) + 1;
    execution.begin_phase("indexing documents", columns.size());
    if (!count_grams(execution.stop())) return Status::cancelled();
    firsts_.assign(columns.size() + 1, 0);
    for (std::size_t i = 0; i < columns.size(); ++i)
        firsts_[i + 1] =
            firsts_[i] + static_cast<std::uint32_t>(count_chunks(places[columns.begin + i].size,
                                                                 threshold, rows.may_be_longer));
    std::vector<std::uint32_t> keys;
    if (!stoppable_assign(grams_, firsts_.back(), std::uint16_t{0}, execution.stop()) ||
        !stoppable_assign(keys, firsts_.back(), std::uint32_t{0}, execution.stop()))
        return Status::cancelled();
    std::vector<Probe> probes(execution.threads());
    GPUTEXT_TRY(execution.parallel_for(columns.size(), [&](std::size_t i, unsigned worker) {
        choose_grams(columns.begin + i,
                     std::span(keys).subspan(firsts_[i], firsts_[i + 1] - firsts_[i]),
                     probes[worker]);
        return Status();
    }));
    counts_ = {};
    return sort_entries(keys, execution);
}

/// Sorts the candidates and removes repeated ones.
void GramIndex::Probe::sort_candidates() {
    std::sort(candidates_.begin(), candidates_.end());
    candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
}

/// The queries' documents, each with padding behind it.
void GramIndex::load_queries(std::span<const Query> queries, Probe& probe) const {
    std::size_t size = 0;
    probe.begins_.clear();
    for (const Query& query : queries) {
        probe.begins_.push_back(size);
        size += rows_.places[query.row].size + kPadding;
    }
    provide(probe.symbols_, size);
    // Each symbol has up to two keys.
    provide(probe.keys_, 2 * (size - queries.size() * kPadding));
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const PlacedDocument& row = rows_.places[queries[i].row];
        if (row.size > 0) std::memcpy(&probe.symbols_[probe.begins_[i]], row.symbols, row.size);
    }
}

/// Keys of the query's grams with the one or two blocks of places within reach of each.
void GramIndex::add_keys(const Query& query, std::uint16_t number, Probe& probe) const {
    const std::size_t size = rows_.places[query.row].size;
    if (size < gram_) return;
    const std::size_t grams = size - gram_ + 1;
    const std::uint8_t* symbols = &probe.symbols_[probe.begins_[number]];
    Probe::Key* to = probe.keys_.data() + probe.key_count_;
    const std::size_t begin = longest_ - size;
    std::size_t low = begin < query.edits ? 0 : (begin - query.edits) / block_;
    std::size_t high = (begin + query.edits) / block_;
    for (std::size_t i = 0; i < grams; ++i) {
        const std::size_t at = begin + 2 * i;
        while ((low + 1) * block_ + query.edits <= at) ++low;
        while ((high + 1) * block_ <= at + query.edits) ++high;
        const std::uint64_t hashed = hash(symbols + i);
        *to++ = {key_of(hashed, low), number, static_cast<std::uint16_t>(i)};
        if (high != low) *to++ = {key_of(hashed, high), number, static_cast<std::uint16_t>(i)};
    }
    probe.key_count_ = static_cast<std::size_t>(to - probe.keys_.data());
}

/// Sorts keys by parts of the filter, each of which fits a processor's cache.
void GramIndex::sort_keys(Probe& probe) const {
    const std::size_t parts = std::size_t{1} << probe_bits_;
    const auto part_of = [this](const Probe::Key& key) {
        return std::uint64_t{key.key} << probe_bits_ >> 32;
    };
    const std::span<const Probe::Key> keys = std::span(probe.keys_).first(probe.key_count_);
    probe.ends_.assign(parts + 1, 0);
    for (const Probe::Key& key : keys) ++probe.ends_[part_of(key) + 1];
    for (std::size_t part = 0; part < parts; ++part) probe.ends_[part + 1] += probe.ends_[part];
    provide(probe.sorted_, keys.size());
    for (const Probe::Key& key : keys) probe.sorted_[probe.ends_[part_of(key)]++] = key;
}

/// Sorted keys of the queries. False if stopped.
bool GramIndex::make_keys(std::span<const Query> queries, Probe& probe, Stop stop) const {
    load_queries(queries, probe);
    probe.key_count_ = 0;
    for (std::size_t i = 0; i < queries.size(); ++i) {
        if (stop()) return false;
        add_keys(queries[i], static_cast<std::uint16_t>(i), probe);
    }
    sort_keys(probe);
    return !stop();
}

/// The keys that the index may have, moved to the front. Their buckets are prefetched.
std::span<const GramIndex::Probe::Key> GramIndex::keys_that_exist(
    std::span<Probe::Key> keys) const {
    std::size_t kept = 0;
    for (const Probe::Key key : keys) {
        const std::uint64_t bits = filter_of(key.key);
        keys[kept] = key;
        kept += (~filter_[key.key >> (32 - filter_bits_)] & bits) == 0;
    }
    for (const Probe::Key& key : keys.first(kept)) __builtin_prefetch(bucket(key.key));
    return keys.first(kept);
}

std::uint64_t GramIndex::count_entries(std::span<const Query> queries, Probe& probe,
                                       Stop stop) const {
    if (!make_keys(queries, probe, stop)) return 0;
    std::uint64_t entries = 0;
    for (const Probe::Key& key : keys_that_exist(std::span(probe.sorted_).first(probe.key_count_)))
        entries += bucket(key.key)[1] - bucket(key.key)[0];
    return entries;
}

bool GramIndex::confirm(Bytes row, std::size_t row_at, std::uint32_t slot) const {
    const std::size_t place = columns_.begin + entries_[slot].column();
    const PlacedDocument& column = places_[place];
    const Chunks chunks = this->chunks(place);
    const std::size_t chunk = numbers_[slot] - firsts_[place - columns_.begin];
    const std::size_t begin = chunks.begin(chunk);
    const std::size_t before = chunks.gram(chunk) - begin;
    if (row_at < before) return false;
    const std::size_t row_begin = row_at - before;
    Reach reach(column.symbols + begin, column.size - begin, row.data() + row_begin,
                row.size() - row_begin);
    const std::size_t most = std::min(kRing, chunks.count());
    std::size_t m = 1;
    for (; m <= most && chunk + m <= chunks.count(); ++m) {
        if (m > 1) reach.allow_edit();
        if (begin + reach.furthest() < chunks.begin(chunk + m)) return false;
    }
    if (m > most) return true;
    Reach start(column.symbols, column.size, row.data(), row.size());
    for (std::size_t edits = 1; edits < m - 1; ++edits) start.allow_edit();
    for (; m <= most; ++m) {
        if (m > 1) start.allow_edit();
        if (start.furthest() < chunks.begin(chunk + m - chunks.count())) return false;
    }
    return true;
}

/// False if there are too many candidates. Each loop prefetches what the next one reads.
bool GramIndex::confirm_hits(std::span<const Query> queries, Probe& probe) const {
    std::size_t kept = 0;
    for (const Probe::Hit hit : probe.hits_) {
        const Entry& entry = entries_[hit.slot];
        if (!entry.is_near_next(probe.symbols_of(hit.query) + hit.at + gram_)) continue;
        probe.hits_[kept++] = hit;
        __builtin_prefetch(&places_[columns_.begin + entry.column()]);
        __builtin_prefetch(&firsts_[entry.column()]);
        __builtin_prefetch(&numbers_[hit.slot]);
    }
    probe.hits_.resize(kept);
    for (const Probe::Hit& hit : probe.hits_) {
        const Entry& entry = entries_[hit.slot];
        const PlacedDocument& column = places_[columns_.begin + entry.column()];
        __builtin_prefetch(column.symbols + (entry.at() - (longest_ - column.size)) / 2);
        __builtin_prefetch(&grams_[numbers_[hit.slot]]);
    }
    for (const Probe::Hit& hit : probe.hits_) {
        const std::uint32_t row = queries[hit.query].row;
        const Bytes symbols{probe.symbols_of(hit.query), rows_.places[row].size};
        if (!confirm(symbols, hit.at, hit.slot)) continue;
        const std::size_t column = columns_.begin + entries_[hit.slot].column();
        probe.candidates_.push_back({row, static_cast<std::uint32_t>(column)});
    }
    probe.hits_.clear();
    if (probe.candidates_.size() < probe.most_candidates_) return true;
    probe.sort_candidates();
    if (probe.candidates_.size() < probe.most_candidates_ / 2) return true;
    probe.most_candidates_ *= 2;
    // A single query has at most as many as there are columns.
    return queries.size() == 1;
}

/// Entries in the buckets of some keys. False if stopped, or if the candidates are too many.
bool GramIndex::look_up(std::span<const Query> queries, std::span<const Probe::Key> keys,
                        Probe& probe, Stop stop) const {
    std::array<std::pair<std::uint32_t, std::uint32_t>, kKeysAtOnce> buckets;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::uint32_t* begins = bucket(keys[i].key);
        buckets[i] = {begins[0], begins[1]};
        __builtin_prefetch(&entries_[begins[0]]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const Probe::Key key = keys[i];
        const Query& query = queries[key.query];
        auto [slot, end] = buckets[i];
        probe.scanned_ += end - slot;
        if (probe.scanned_ >= kScannedAtOnce) {
            if (stop()) return false;
            probe.scanned_ = 0;
        }
        const std::size_t at = longest_ - rows_.places[query.row].size + 2 * std::size_t{key.at};
        const std::size_t first_column = query.begin - columns_.begin;
        const std::uint32_t first = Entry::first_word(key.key, first_column);
        const auto columns = query.end - query.begin;
        // In a bucket columns ascend.
        if (end - slot > 16)
            slot = static_cast<std::uint32_t>(std::partition_point(&entries_[slot], &entries_[end],
                                                                   [&](const Entry& entry) {
                                                                       return entry.column() <
                                                                              first_column;
                                                                   }) -
                                              entries_.get());
        for (; slot < end; ++slot) {
            const Entry entry = entries_[slot];
            if (!entry.is_among(first, columns) || !entry.is_near(at, query.edits)) continue;
            ++probe.hit_count_;
            __builtin_prefetch(probe.symbols_of(key.query) + key.at + gram_);
            probe.hits_.push_back({slot, key.query, key.at});
            if (probe.hits_.size() == kHitsAtOnce && !confirm_hits(queries, probe)) return false;
        }
    }
    return true;
}

std::optional<std::span<const GramIndex::Candidate>> GramIndex::candidates(
    std::span<const Query> queries, Probe& probe, Stop stop) const {
    probe.hits_.clear();
    probe.candidates_.clear();
    probe.most_candidates_ = kMostCandidates;
    probe.scanned_ = 0;
    if (!make_keys(queries, probe, stop)) return {};
    std::size_t begin = 0;
    for (std::size_t part = 0; part >> probe_bits_ == 0; ++part) {
        const std::size_t end = probe.ends_[part];
        auto keys = keys_that_exist(std::span(probe.sorted_).subspan(begin, end - begin));
        begin = end;
        while (!keys.empty()) {
            const std::size_t count = std::min(keys.size(), kKeysAtOnce);
            if (!look_up(queries, keys.first(count), probe, stop)) return {};
            keys = keys.subspan(count);
        }
        if (stop()) return {};
    }
    if (!confirm_hits(queries, probe)) return {};
    probe.sort_candidates();
    return probe.candidates_;
}

}  // namespace gputext
