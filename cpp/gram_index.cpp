#include "cpp/gram_index.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "cpp/edit_distance.hpp"
#include "cpp/stoppable.hpp"

namespace gputext {
namespace {

constexpr std::size_t kPadding = 32;       // symbols behind a loaded document
constexpr std::size_t kHitsAtOnce = 1024;  // whose texts are fetched together
constexpr std::size_t kScannedAtOnce = std::size_t{1} << 18;
constexpr std::size_t kRing = 6;           // chunks that are looked at to confirm a hit
constexpr std::size_t kPreferredGram = 9;  // longer grams leave less choice of rare ones
constexpr std::size_t kSampledGrams = std::size_t{1} << 23;

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

/// As stoppable_assign, into large pages where the system has them: the index is read at places
/// all over its memory, and most of the time would go into finding the pages.
template <class T>
bool assign_pages(std::vector<T>& elements, std::size_t size, Stop stop) {
    constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
    elements = {};
    elements.reserve(size);
    const auto begin = reinterpret_cast<std::uintptr_t>(elements.data());
    const std::uintptr_t first = (begin + page - 1) & ~(page - 1);
    const std::uintptr_t end = (begin + size * sizeof(T)) & ~(page - 1);
    // It is as good without.
    if (first < end) (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
    return stoppable_assign(elements, size, T{}, stop);
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

/// Whether at most one edit may lead from eight symbols to those from `row` on. Reads nine bytes.
bool near_next(std::uint64_t next, const std::uint8_t* row) {
    const std::uint64_t symbols = load_word(row);
    if (static_cast<std::uint32_t>(next) == static_cast<std::uint32_t>(symbols)) return true;
    const auto second_half = static_cast<std::uint32_t>(next >> 32);
    return second_half == static_cast<std::uint32_t>(symbols >> 24) ||
           second_half == static_cast<std::uint32_t>(symbols >> 32) ||
           second_half == static_cast<std::uint32_t>(load_word(row + 1) >> 32);
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

    /// One more edit, at most kRing - 1 of them.
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

Chunks GramIndex::chunks_of(std::size_t length, double threshold) {
    return {length, most_edits_within(threshold, 2 * length) + 1};
}

std::size_t GramIndex::gram_length(std::span<const PlacedDocument> places, PlaceRange columns,
                                   double threshold) {
    std::size_t shortest = longest_gram, last = SIZE_MAX;
    for (std::size_t column = columns.begin; column < columns.end; ++column) {
        if (places[column].size == last) continue;
        last = places[column].size;
        shortest = std::min(shortest, chunks_of(last, threshold).shortest());
    }
    shortest = std::min(shortest, kPreferredGram);
    return shortest < shortest_gram ? 0 : shortest;
}

std::size_t GramIndex::bytes_of(std::size_t grams) {
    return grams * sizeof(Entry) + std::bit_ceil(grams + 2) * (sizeof(std::uint32_t) + 2);
}

std::uint64_t GramIndex::hash(const std::uint8_t* symbols) const {
    const std::uint64_t first = (load_word(symbols) & mask_) * 0x9e3779b97f4a7c15u;
    if (gram_ <= 8) return first ^ first >> 29;
    const std::uint64_t last = load_word(symbols + gram_ - 8) * 0xc2b2ae3d27d4eb4fu;
    return (first ^ first >> 29) + (last ^ last >> 31);
}

void GramIndex::load(const PlacedDocument& document, std::vector<std::uint8_t>& symbols) const {
    if (symbols.size() < document.size + kPadding) symbols.resize(document.size + kPadding);
    if (document.size > 0) std::memcpy(symbols.data(), document.symbols, document.size);
}

bool GramIndex::count_grams(PlaceRange rows, Stop stop) {
    std::uint64_t all = 0;
    for (std::size_t row = rows.begin; row < rows.end; ++row) all += places_[row].size;
    count_bits_ = std::clamp(static_cast<unsigned>(std::bit_width(all)), 8u, 22u);
    if (!assign_pages(counts_, std::size_t{1} << count_bits_, stop)) return false;
    const std::size_t step = 1 + all / kSampledGrams;
    std::vector<std::uint8_t> symbols;
    for (std::size_t row = rows.begin; row < rows.end; row += step) {
        if (stop()) return false;
        load(places_[row], symbols);
        for (std::size_t i = 0; i + gram_ <= places_[row].size; ++i) {
            std::uint16_t& count =
                counts_[key_of(hash(symbols.data() + i), 0) >> (32 - count_bits_)];
            if (count < UINT16_MAX) ++count;
        }
    }
    return true;
}

/// The rarest gram of each chunk.
void GramIndex::choose_grams(std::size_t column, std::size_t first, Probe& probe) {
    const PlacedDocument& document = places_[column];
    const Chunks chunks = chunks_of(document.size, threshold_);
    load(document, probe.symbols);
    for (std::size_t chunk = 0; chunk < chunks.count(); ++chunk) {
        const std::size_t end = chunks.begin(chunk + 1) - gram_ + 1;
        std::size_t best = 0;
        std::uint64_t best_hash = 0;
        unsigned least = UINT32_MAX;
        for (std::size_t i = chunks.begin(chunk); i < end; ++i) {
            const std::uint64_t hashed = hash(probe.symbols.data() + i);
            const unsigned count = counts_[key_of(hashed, 0) >> (32 - count_bits_)];
            if (count >= least) continue;
            least = count;
            best = i;
            best_hash = hashed;
        }
        const std::size_t at = longest_ - document.size + 2 * best;
        const std::size_t behind = best + gram_;
        Entry& entry = entries_[first + chunk];
        entry.key = key_of(best_hash, at / block_);
        entry.column = static_cast<std::uint32_t>(column);
        entry.at = static_cast<std::uint32_t>(at);
        entry.chunk = chunk & 0x7fffffff;
        entry.has_next =
            chunk + 1 < chunks.count() && chunks.begin(chunk + 2) - behind >= sizeof entry.next;
        entry.next = entry.has_next ? load_word(probe.symbols.data() + behind) : 0;
    }
}

/// By bucket, with the filter in front.
bool GramIndex::sort_entries(Stop stop) {
    bucket_bits_ = std::max(1u, static_cast<unsigned>(std::bit_width(entries_.size())));
    // Some eight to sixteen bits an entry, in words.
    filter_bits_ = std::max(4u, bucket_bits_) - 3;
    if (!assign_pages(begins_, (std::size_t{1} << bucket_bits_) + 1, stop) ||
        !assign_pages(filter_, std::size_t{1} << filter_bits_, stop))
        return false;
    std::vector<Entry> sorted;
    if (!assign_pages(sorted, entries_.size(), stop)) return false;
    const auto bucket_of = [&](const Entry& entry) { return entry.key >> (32 - bucket_bits_); };
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (i % kLookEvery == 0 && stop()) return false;
        ++begins_[bucket_of(entries_[i])];
        filter_[entries_[i].key >> (32 - filter_bits_)] |= filter_of(entries_[i].key);
    }
    std::uint32_t before = 0;
    for (std::uint32_t& begin : begins_) begin = before += begin;
    // Each bucket is filled from its end, so that the ends become begins.
    for (std::size_t i = entries_.size(); i-- > 0;) {
        if (i % kLookEvery == 0 && stop()) return false;
        sorted[--begins_[bucket_of(entries_[i])]] = entries_[i];
    }
    entries_.swap(sorted);
    return true;
}

Status GramIndex::build(std::span<const PlacedDocument> places, PlaceRange columns, PlaceRange rows,
                        double threshold, Execution& execution) {
    places_ = places;
    columns_ = columns;
    threshold_ = threshold;
    gram_ = gram_length(places, columns, threshold);
    mask_ = gram_ >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * gram_) - 1;
    longest_ = places[columns.end - 1].size;
    block_ = 2 * most_edits_within(threshold, 2 * longest_) + 1;
    execution.begin_phase("indexing documents", columns.size());
    if (!count_grams(rows, execution.stop())) return Status::cancelled();
    std::vector<std::size_t> firsts(columns.size() + 1);
    for (std::size_t i = 0; i < columns.size(); ++i)
        firsts[i + 1] = firsts[i] + chunks_of(places[columns.begin + i].size, threshold).count();
    if (!assign_pages(entries_, firsts.back(), execution.stop())) return Status::cancelled();
    std::vector<Probe> probes(execution.threads());
    Status status = execution.parallel_for(columns.size(), [&](std::size_t i, unsigned worker) {
        choose_grams(columns.begin + i, firsts[i], probes[worker]);
        return Status();
    });
    if (!status.ok()) return status;
    counts_ = {};
    return sort_entries(execution.stop()) ? Status() : Status::cancelled();
}

/// Keys that the index may have, with the places of their grams.
void GramIndex::make_keys(std::size_t row, std::size_t edits, Probe& probe) const {
    const PlacedDocument& document = places_[row];
    load(document, probe.symbols);
    const std::size_t grams = document.size < gram_ ? 0 : document.size - gram_ + 1;
    probe.keys.resize(2 * grams);
    probe.places.resize(2 * grams);
    const auto word_of = [&](std::uint32_t key) { return key >> (32 - filter_bits_); };
    const std::size_t begin = longest_ - document.size;
    std::size_t low = begin < edits ? 0 : (begin - edits) / block_;
    std::size_t high = (begin + edits) / block_;
    for (std::size_t i = 0; i < grams; ++i) {
        const std::size_t at = begin + 2 * i;
        while ((low + 1) * block_ + edits <= at) ++low;
        while ((high + 1) * block_ <= at + edits) ++high;
        const std::uint64_t hashed = hash(probe.symbols.data() + i);
        probe.keys[2 * i] = key_of(hashed, low);
        probe.keys[2 * i + 1] = key_of(hashed, high);
        __builtin_prefetch(filter_.data() + word_of(probe.keys[2 * i]));
        __builtin_prefetch(filter_.data() + word_of(probe.keys[2 * i + 1]));
    }
    std::size_t kept = 0;
    std::uint32_t before = 0;
    for (std::size_t i = 0; i < 2 * grams; ++i) {
        const std::uint32_t key = probe.keys[i];
        const bool present = (~filter_[word_of(key)] & filter_of(key)) == 0;
        // Both blocks are often one.
        const bool again = i % 2 == 1 && key == before;
        before = key;
        if (!present || again) continue;
        probe.places[kept] = static_cast<std::uint32_t>(i / 2);
        probe.keys[kept++] = key;
        __builtin_prefetch(bucket(key));
    }
    probe.keys.resize(kept);
    probe.places.resize(kept);
}

std::uint64_t GramIndex::count_hits(std::size_t row, std::size_t edits, Probe& probe) const {
    make_keys(row, edits, probe);
    std::uint64_t hits = 0;
    for (const std::uint32_t key : probe.keys) hits += bucket(key)[1] - bucket(key)[0];
    return hits;
}

bool GramIndex::confirm(const PlacedDocument& row, std::size_t row_at, const Entry& entry) const {
    const PlacedDocument& column = places_[entry.column];
    const Chunks chunks = chunks_of(column.size, threshold_);
    const std::size_t at = (entry.at - (longest_ - column.size)) / 2;
    const std::size_t begin = chunks.begin(entry.chunk);
    const std::size_t before = at - begin;
    if (row_at < before) return false;
    const std::size_t row_begin = row_at - before;
    Reach reach(column.symbols + begin, column.size - begin, row.symbols + row_begin,
                row.size - row_begin);
    const std::size_t most = std::min(kRing, chunks.count());
    std::size_t m = 1;
    for (; m <= most && entry.chunk + m <= chunks.count(); ++m) {
        if (m > 1) reach.allow_edit();
        if (begin + reach.furthest() < chunks.begin(entry.chunk + m)) return false;
    }
    if (m > most) return true;
    Reach start(column.symbols, column.size, row.symbols, row.size);
    for (std::size_t edits = 1; edits < m - 1; ++edits) start.allow_edit();
    for (; m <= most; ++m) {
        if (m > 1) start.allow_edit();
        if (start.furthest() < chunks.begin(entry.chunk + m - chunks.count())) return false;
    }
    return true;
}

void GramIndex::confirm_hits(std::size_t row, Probe& probe) const {
    for (const Probe::Hit& hit : probe.hits) {
        const PlacedDocument& column = places_[hit.entry->column];
        __builtin_prefetch(column.symbols + (hit.entry->at - (longest_ - column.size)) / 2);
    }
    for (const Probe::Hit& hit : probe.hits)
        if (confirm(places_[row], hit.at, *hit.entry)) probe.columns.push_back(hit.entry->column);
    probe.hits.clear();
    std::sort(probe.columns.begin(), probe.columns.end());
    probe.columns.erase(std::unique(probe.columns.begin(), probe.columns.end()),
                        probe.columns.end());
}

/// Those in the key's bucket whose columns lie behind `row`.
std::span<const GramIndex::Entry> GramIndex::entries_after(std::size_t row,
                                                           std::uint32_t key) const {
    const Entry* begin = entries_.data() + bucket(key)[0];
    const Entry* const end = entries_.data() + bucket(key)[1];
    // In a bucket columns ascend.
    const auto is_before = [row](const Entry& entry) { return entry.column <= row; };
    if (end - begin > 16)
        begin = std::partition_point(begin, end, is_before);
    else
        while (begin < end && is_before(*begin)) ++begin;
    return {begin, end};
}

std::span<const std::uint32_t> GramIndex::candidates(std::size_t row, std::size_t end,
                                                     std::size_t edits, Probe& probe,
                                                     Stop stop) const {
    make_keys(row, edits, probe);
    probe.columns.clear();
    probe.hits.clear();
    for (const std::uint32_t key : probe.keys) __builtin_prefetch(entries_.data() + bucket(key)[0]);
    const std::size_t row_begin = longest_ - places_[row].size;
    std::size_t scanned = 0;
    for (std::size_t i = 0; i < probe.keys.size(); ++i) {
        const std::uint32_t key = probe.keys[i];
        const std::size_t at = row_begin + 2 * probe.places[i];
        scanned += bucket(key)[1] - bucket(key)[0];
        if (scanned >= kScannedAtOnce) {
            if (stop()) return {};
            scanned = 0;
        }
        for (const Entry& entry : entries_after(row, key)) {
            if (entry.column >= end) break;
            if (entry.key != key || entry.at + edits < at || entry.at > at + edits) continue;
            ++probe.hit_count;
            if (entry.has_next &&
                !near_next(entry.next, probe.symbols.data() + probe.places[i] + gram_))
                continue;
            __builtin_prefetch(&places_[entry.column]);
            probe.hits.push_back({&entry, probe.places[i]});
            if (probe.hits.size() < kHitsAtOnce) continue;
            confirm_hits(row, probe);
            if (stop()) return {};
        }
    }
    confirm_hits(row, probe);
    return probe.columns;
}

}  // namespace gputext
