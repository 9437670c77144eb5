#include "cpp/trie/detail/word_sort.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/trie/detail/first_bytes.hpp"

namespace gputext {
namespace {

/// Words that a thread takes at once, and looks for a stop request between.
constexpr std::size_t kPart = std::size_t{1} << 14;
/// Words of a bucket, about: what the second cache of a core holds.
constexpr std::size_t kBucketWords = std::size_t{1} << 11;
constexpr std::size_t kMostBuckets = std::size_t{1} << 10;
/// Words that are looked at for each bucket.
constexpr std::size_t kSampled = 16;
/// Words whose buckets are found at once: their searches wait for one another's comparisons less
/// than each for its own.
constexpr std::size_t kLanes = 16;

constexpr std::size_t kKeyBytes = 7;

/// Seven bytes of a word from `at` on, zeros behind its end, and then how many there are, 8 for
/// more. Of words that are equal before, keys compare as the words do where they differ; equal ones
/// below 8 are of equal words.
std::uint64_t key_at(std::string_view word, std::size_t at) {
    const std::string_view rest = word.substr(at);
    return (__builtin_bswap64(first_bytes(rest)) & ~std::uint64_t{255}) |
           std::min(rest.size(), kKeyBytes + 1);
}

/// Whether words of this key go on behind it.
bool go_on(std::uint64_t key) {
    return (key & 255) > kKeyBytes;
}

struct Entry {
    std::uint64_t key;
    std::uint32_t word;
    bool again;  // whether it is the same word as the one before
};

/// Out of a comparison of long words, for which a thread looks for a stop request as well.
struct Stopped {};

/// Whether they are in order already and no two are equal; stopped.
Result<bool> are_sorted(std::span<const std::string_view> words, const Execution& execution) {
    for (std::size_t i = 1; i < words.size(); ++i) {
        if ((i % kPart == 0 || words[i].size() > kLookEvery) && execution.stop_requested())
            return Status::cancelled();
        if (!(words[i - 1] < words[i])) return false;
    }
    return true;
}

/// Divides the words into buckets of which each comes before the next (sample sort), and sorts the
/// buckets.
class WordSort {
public:
    WordSort(std::span<const std::string_view> words, Execution& execution)
        : words_(words),
          execution_(execution),
          part_words_(std::max(kPart, words.size() / kMostParts + 1)),
          parts_((words.size() + part_words_ - 1) / part_words_),
          buckets_(std::min(std::bit_ceil(words.size() / kBucketWords + 1), kMostBuckets)),
          bucket_of_(std::make_unique_for_overwrite<std::uint16_t[]>(words.size())),
          entries_(unwritten_pages<Entry>(words.size())),
          next_(parts_ * buckets_),
          ends_(buckets_),
          different_(buckets_) {}

    /// The different words in order.
    Result<std::vector<std::string_view>> run() {
        execution_.begin_phase("sorting words", 2 * parts_ + 2 * buckets_);
        choose_splitters();
        GPUTEXT_TRY(for_each(parts_, [this](std::size_t part) { divide(part); }));
        number_places();
        GPUTEXT_TRY(for_each(parts_, [this](std::size_t part) { place(part); }));
        GPUTEXT_TRY(for_each(buckets_, [this](std::size_t bucket) { sort(bucket); }));
        std::uint64_t total = 0;
        for (std::uint64_t& different : different_)
            different = std::exchange(total, total + different);
        std::vector<std::string_view> sorted;
        if (!assign_pages(sorted, total, std::string_view(), execution_.stop()))
            return Status::cancelled();
        GPUTEXT_TRY(for_each(buckets_, [&](std::size_t bucket) {
            std::string_view* to = sorted.data() + different_[bucket];
            for (const Entry& entry : entries_of(bucket))
                if (!entry.again) *to++ = words_[entry.word];
        }));
        return sorted;
    }

private:
    static constexpr std::size_t kMostParts = 1024;

    /// Entries whose words have the same first `at` bytes.
    struct Group {
        std::span<Entry> entries;
        std::size_t at;
    };

    template <class Work>
    Status for_each(std::size_t count, const Work& work) {
        return execution_.parallel_for(count, [&](std::size_t number, unsigned) -> Status {
            try {
                work(number);
                return {};
            } catch (const Stopped&) {
                return Status::cancelled();
            }
        });
    }
    void look_at_stop() const {
        if (execution_.stop_requested()) throw Stopped();
    }
    std::size_t end_of(std::size_t part) const {
        return std::min(words_.size(), (part + 1) * part_words_);
    }
    std::span<Entry> entries_of(std::size_t bucket) const {
        const std::size_t begin = bucket == 0 ? 0 : ends_[bucket - 1];
        return {entries_.get() + begin, ends_[bucket] - begin};
    }

    void choose_splitters();
    std::size_t place_among_splitters(std::string_view word) const;
    void divide(std::size_t part);
    void number_places();
    void place(std::size_t part);
    std::size_t shared_from(const Group& group, std::size_t at) const;
    void sort(std::size_t bucket);

    std::span<const std::string_view> words_;
    Execution& execution_;
    std::size_t part_words_, parts_, buckets_;
    std::vector<std::string_view> splitters_;  // of each bucket but the first, no word is less
    std::vector<std::uint64_t> splitter_keys_;
    std::unique_ptr<std::uint16_t[]> bucket_of_;  // by word
    std::unique_ptr<Entry[]> entries_;            // by bucket
    std::vector<std::uint64_t> next_;       // of each part and bucket, how many words; then where
    std::vector<std::uint64_t> ends_;       // of the buckets in entries_
    std::vector<std::uint64_t> different_;  // words of the buckets; then of those before
};

void WordSort::choose_splitters() {
    if (buckets_ == 1) return;
    const std::size_t sampled = kSampled * buckets_;
    std::vector<std::string_view> sample(sampled);
    for (std::size_t i = 0; i < sampled; ++i) sample[i] = words_[i * words_.size() / sampled];
    std::sort(sample.begin(), sample.end(), [this](std::string_view a, std::string_view b) {
        if (a.size() > kLookEvery) look_at_stop();
        return a < b;
    });
    for (std::size_t i = kSampled; i < sampled; i += kSampled) {
        splitters_.push_back(sample[i]);
        splitter_keys_.push_back(key_at(sample[i], 0));
    }
}

/// How many splitters are not behind the word.
std::size_t WordSort::place_among_splitters(std::string_view word) const {
    const auto behind = std::upper_bound(splitters_.begin(), splitters_.end(), word,
                                         [this](std::string_view a, std::string_view b) {
                                             if (a.size() > kLookEvery) look_at_stop();
                                             return a < b;
                                         });
    return static_cast<std::size_t>(behind - splitters_.begin());
}

/// Finds the buckets of a part's words, and counts these.
void WordSort::divide(std::size_t part) {
    std::uint64_t* const counts = next_.data() + part * buckets_;
    const std::size_t end = end_of(part);
    for (std::size_t begin = part * part_words_; begin < end; begin += kLanes) {
        std::uint64_t keys[kLanes] = {};
        std::size_t buckets[kLanes] = {};
        const std::size_t lanes = std::min(kLanes, end - begin);
        for (std::size_t i = 0; i < lanes; ++i) keys[i] = key_at(words_[begin + i], 0);
        for (std::size_t half = buckets_ / 2; half > 0; half /= 2)
            for (std::size_t i = 0; i < kLanes; ++i)
                // Not a branch, of which half would be taken as guessed.
                buckets[i] += half * (splitter_keys_[buckets[i] + half - 1] <= keys[i]);
        for (std::size_t i = 0; i < lanes; ++i) {
            std::size_t bucket = buckets[i];
            if (bucket > 0 && splitter_keys_[bucket - 1] == keys[i] && go_on(keys[i]))
                bucket = place_among_splitters(words_[begin + i]);
            bucket_of_[begin + i] = static_cast<std::uint16_t>(bucket);
            ++counts[bucket];
        }
    }
}

/// Counts become the places of each part's first word in each bucket.
void WordSort::number_places() {
    std::uint64_t place = 0;
    for (std::size_t bucket = 0; bucket < buckets_; ++bucket) {
        for (std::size_t part = 0; part < parts_; ++part) {
            std::uint64_t& next = next_[part * buckets_ + bucket];
            next = std::exchange(place, place + next);
        }
        ends_[bucket] = place;
    }
}

void WordSort::place(std::size_t part) {
    std::uint64_t* const next = next_.data() + part * buckets_;
    for (std::size_t i = part * part_words_; i < end_of(part); ++i)
        entries_[next[bucket_of_[i]]++] = {key_at(words_[i], 0), static_cast<std::uint32_t>(i),
                                           false};
}

/// How many bytes from `at` on all words of the group share, which are that long.
std::size_t WordSort::shared_from(const Group& group, std::size_t at) const {
    const std::string_view first = words_[group.entries[0].word];
    std::size_t least = first.size() - at;
    for (const Entry& entry : group.entries.subspan(1)) {
        const std::string_view rest = words_[entry.word].substr(at);
        least = std::min(least, rest.size());
        for (std::size_t from = 0; from < least; from += kLookEvery) {
            if (least > kLookEvery) look_at_stop();
            const std::size_t size = std::min(kLookEvery, least - from);
            const char* const a = first.data() + at + from;
            const auto other = std::mismatch(a, a + size, rest.data() + from).first;
            if (other != a + size) least = from + static_cast<std::size_t>(other - a);
        }
    }
    return least;
}

/// Sorts by keys, and what has equal ones and goes on by the keys behind what it shares.
void WordSort::sort(std::size_t bucket) {
    std::vector<Group> groups{{entries_of(bucket), 0}};
    std::uint64_t again = 0;
    while (!groups.empty()) {
        const auto [entries, at] = groups.back();
        groups.pop_back();
        look_at_stop();
        std::sort(entries.begin(), entries.end(),
                  [](const Entry& a, const Entry& b) { return a.key < b.key; });
        for (std::size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
            const std::uint64_t key = entries[begin].key;
            while (++end < entries.size() && entries[end].key == key) {
            }
            const Group alike{entries.subspan(begin, end - begin), at + kKeyBytes};
            if (alike.entries.size() == 1) continue;
            if (go_on(key)) {
                const std::size_t behind = alike.at + shared_from(alike, alike.at);
                for (Entry& entry : alike.entries) entry.key = key_at(words_[entry.word], behind);
                groups.push_back({alike.entries, behind});
            } else {
                for (Entry& entry : alike.entries.subspan(1)) entry.again = true;
                again += alike.entries.size() - 1;
            }
        }
    }
    different_[bucket] = entries_of(bucket).size() - again;
}

}  // namespace

Status sort_words(std::vector<std::string_view>& words, Execution& execution) {
    if (words.size() > UINT32_MAX)
        return {ErrorCode::invalid_argument, "there are more than 4294967295 words"};
    const Result<bool> sorted_already = are_sorted(words, execution);
    if (!sorted_already.ok()) return sorted_already.status();
    if (*sorted_already) return {};
    Result<std::vector<std::string_view>> sorted = WordSort(words, execution).run();
    if (!sorted.ok()) return sorted.status();
    words.swap(*sorted);
    return {};
}

}  // namespace gputext
