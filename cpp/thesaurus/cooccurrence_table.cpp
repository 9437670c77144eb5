#include "cpp/thesaurus/cooccurrence_table.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/radix_sort.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// Triples or words that are looked at between two looks at a stop request.
constexpr std::size_t kTask = std::size_t{1} << 16;
constexpr std::size_t kTaskWords = 256;
constexpr std::size_t kMostBuckets = 2048;
/// Entries that a thread sorts by their digits, which takes some milliseconds.
constexpr std::size_t kFewByDigits = 64, kMostByDigits = std::size_t{1} << 20;

struct Entry {
    std::uint64_t count;
    std::uint32_t word, column;
};

/// Calls body(triple, chunk) for all triples, whose consecutive chunks threads share.
template <class Body>
Status for_each_triple(std::span<const CountedTriple> triples, std::size_t chunks,
                       Execution& execution, const Body& body) {
    return execution.parallel_for(chunks, [&](std::size_t chunk, unsigned) -> Status {
        const std::size_t begin = triples.size() * chunk / chunks;
        const std::size_t end = triples.size() * (chunk + 1) / chunks;
        for (std::size_t i = begin; i < end; ++i) {
            if (i % kTask == 0 && execution.stop_requested()) return Status::cancelled();
            GPUTEXT_TRY(body(triples[i], chunk));
        }
        return {};
    });
}

std::size_t chunks_of(std::span<const CountedTriple> triples, const Execution& execution) {
    return std::clamp<std::size_t>(triples.size() / kTask, 1, 4 * execution.threads());
}

/// Words are shared out to buckets one by one, as the first ones often have the most triples.
class Collector {
public:
    Collector(const CooccurrenceShape& shape, std::span<const CountedTriple> triples,
              Execution& execution)
        : shape_(shape),
          triples_(triples),
          execution_(execution),
          chunks_(chunks_of(triples, execution)),
          buckets_(std::clamp<std::size_t>(shape.words, 1, kMostBuckets)) {
        counts_.shape = shape;
    }

    Status number(std::span<const std::uint32_t> order);
    /// Triples by the buckets of their words.
    Status group();
    /// The triples of each word by their columns, equal ones added up.
    Status add_up();
    Status pack(Cooccurrences& counts);

private:
    std::size_t bucket_of(std::uint32_t word) const { return word % buckets_; }
    /// The place of a chunk's first entry in a bucket, of which it has so many while they are
    /// counted.
    std::uint64_t& place(std::size_t bucket, std::size_t chunk) {
        return places_[chunk * buckets_ + bucket];
    }
    /// By word and column; false if stopped.
    bool sort(std::span<Entry> entries, unsigned worker);
    Status add_up(std::uint64_t begin, std::uint64_t end, unsigned worker);

    CooccurrenceShape shape_;
    std::span<const CountedTriple> triples_;
    Execution& execution_;
    std::size_t chunks_, buckets_;
    std::vector<std::uint32_t> numbers_;  // new ones, by the old
    std::vector<std::uint64_t> places_;
    std::vector<std::uint64_t> begins_;  // of each word's entries
    std::vector<std::uint64_t> sizes_;   // how many are left of them
    std::unique_ptr<Entry[]> entries_;
    std::vector<std::vector<Entry>> scratch_;  // by worker
    Cooccurrences counts_;
};

Status Collector::number(std::span<const std::uint32_t> order) {
    constexpr std::uint32_t kNone = UINT32_MAX;
    const Status broken(ErrorCode::invalid_argument, "the order of the words is none");
    if (order.size() != shape_.words) return broken;
    numbers_.assign(order.size(), kNone);
    for (std::uint32_t i = 0; i < order.size(); ++i) {
        if (order[i] >= order.size() || numbers_[order[i]] != kNone) return broken;
        numbers_[order[i]] = i;
    }
    return {};
}

Status Collector::group() {
    execution_.begin_phase("sorting counts", 2 * chunks_);
    places_.assign(buckets_ * chunks_, 0);
    const auto count = [&](const CountedTriple& triple, std::size_t chunk) -> Status {
        if (triple.word >= shape_.words || triple.neighbor >= shape_.words)
            return {ErrorCode::invalid_argument, "a count is of a word that there is not"};
        ++place(bucket_of(numbers_[triple.word]), chunk);
        return {};
    };
    GPUTEXT_TRY(for_each_triple(triples_, chunks_, execution_, count));
    std::uint64_t all = 0;
    for (std::size_t bucket = 0; bucket < buckets_; ++bucket)
        for (std::size_t chunk = 0; chunk < chunks_; ++chunk)
            all += std::exchange(place(bucket, chunk), all);
    entries_ = unwritten_pages<Entry>(triples_.size());
    const auto put = [&](const CountedTriple& triple, std::size_t chunk) -> Status {
        const std::uint32_t word = numbers_[triple.word];
        const std::uint64_t relation = shape_.relation_of(triple.offset);
        entries_[place(bucket_of(word), chunk)++] = {
            triple.count, word,
            static_cast<std::uint32_t>(relation * shape_.words + numbers_[triple.neighbor])};
        return {};
    };
    return for_each_triple(triples_, chunks_, execution_, put);
}

Status Collector::add_up() {
    begins_.assign(shape_.words, 0);
    sizes_.assign(shape_.words, 0);
    execution_.begin_phase("adding up counts", buckets_);
    scratch_.resize(execution_.threads());
    return execution_.parallel_for(buckets_, [&](std::size_t bucket, unsigned worker) {
        // Each place has become the end of a chunk's entries.
        return add_up(bucket == 0 ? 0 : place(bucket - 1, chunks_ - 1), place(bucket, chunks_ - 1),
                      worker);
    });
}

bool Collector::sort(std::span<Entry> entries, unsigned worker) {
    if (entries.size() < kFewByDigits || entries.size() > kMostByDigits) {
        const auto less = [](const Entry& a, const Entry& b) {
            return std::tie(a.word, a.column) < std::tie(b.word, b.column);
        };
        return stoppable_sort(entries.begin(), entries.end(), less, execution_.stop());
    }
    // A bucket of several words has every kMostBuckets-th one.
    const auto column_bits = static_cast<unsigned>(std::bit_width(shape_.columns()));
    const auto word_bits = static_cast<unsigned>(std::bit_width(shape_.words / kMostBuckets));
    std::vector<Entry>& scratch = scratch_[worker];
    scratch.resize(std::max(scratch.size(), entries.size()));
    radix_sort(entries, std::span(scratch).first(entries.size()), column_bits + word_bits,
               [&](const Entry& entry) {
                   return entry.word / kMostBuckets << column_bits | entry.column;
               });
    return true;
}

Status Collector::add_up(std::uint64_t begin, std::uint64_t end, unsigned worker) {
    Entry* const entries = entries_.get();
    if (!sort({entries + begin, entries + end}, worker)) return Status::cancelled();
    for (std::uint64_t at = begin; at < end;) {
        const std::uint32_t word = entries[at].word;
        std::uint64_t out = begins_[word] = at;
        while (at < end && entries[at].word == word) {
            Entry sum = entries[at];
            while (++at < end && entries[at].word == word && entries[at].column == sum.column)
                if (__builtin_add_overflow(sum.count, entries[at].count, &sum.count))
                    sum.count = UINT64_MAX;
            if (sum.count > UINT32_MAX)
                return {ErrorCode::invalid_argument,
                        "a count of words beside each other is above 4294967295"};
            if (sum.count > 0) entries[out++] = sum;
        }
        sizes_[word] = out - begins_[word];
    }
    return {};
}

Status Collector::pack(Cooccurrences& counts) {
    const std::size_t words = shape_.words, tasks = (words + kTaskWords - 1) / kTaskWords;
    counts_.begins.assign(1, 0);
    for (const std::uint64_t size : sizes_) counts_.begins.push_back(counts_.begins.back() + size);
    resize_pages(counts_.columns, counts_.begins.back());
    resize_pages(counts_.counts, counts_.begins.back());
    execution_.begin_phase("gathering counts", tasks);
    GPUTEXT_TRY(execution_.parallel_for(tasks, [&](std::size_t task, unsigned) -> Status {
        const std::size_t end = std::min(words, (task + 1) * kTaskWords);
        for (std::size_t word = task * kTaskWords; word < end; ++word)
            for (std::uint64_t i = 0; i < sizes_[word]; ++i) {
                const Entry& entry = entries_[begins_[word] + i];
                counts_.columns[counts_.begins[word] + i] = entry.column;
                counts_.counts[counts_.begins[word] + i] = static_cast<std::uint32_t>(entry.count);
            }
        return {};
    }));
    counts = std::move(counts_);
    return {};
}

}  // namespace

Result<CooccurrenceShape> shape_of_triples(std::uint32_t words,
                                           std::span<const CountedTriple> triples,
                                           Execution& execution) {
    struct Seen {
        std::uint32_t farthest = 0;
        bool without = false;
    };
    std::vector<Seen> seen(chunks_of(triples, execution));
    execution.begin_phase("checking counts", seen.size());
    const auto look = [&](const CountedTriple& triple, std::size_t chunk) -> Status {
        const std::int64_t offset = triple.offset;
        if (offset == 0) seen[chunk].without = true;
        seen[chunk].farthest =
            std::max(seen[chunk].farthest, static_cast<std::uint32_t>(std::abs(offset)));
        return {};
    };
    GPUTEXT_TRY(for_each_triple(triples, seen.size(), execution, look));
    std::uint32_t farthest = 0;
    bool without = false;
    for (const Seen& one : seen) {
        farthest = std::max(farthest, one.farthest);
        without = without || one.without;
    }
    if (without && farthest > 0)
        return Status{ErrorCode::invalid_argument, "some counts have a position and some have none",
                      "Position 0 stands for all positions together, in all counts or in none."};
    if (farthest > CooccurrenceShape::kMostWindow)
        return Status{ErrorCode::invalid_argument,
                      "a position of " + std::to_string(farthest) +
                          " is beyond the widest window, " +
                          std::to_string(CooccurrenceShape::kMostWindow)};
    const CooccurrenceShape shape{words, std::max(farthest, 1u), !without};
    GPUTEXT_TRY(check_shape(shape));
    return shape;
}

Result<Cooccurrences> collect_triples(const CooccurrenceShape& shape,
                                      std::span<const std::uint32_t> order,
                                      std::span<const CountedTriple> triples,
                                      Execution& execution) {
    Collector collector(shape, triples, execution);
    Cooccurrences counts;
    GPUTEXT_TRY(collector.number(order));
    GPUTEXT_TRY(collector.group());
    GPUTEXT_TRY(collector.add_up());
    GPUTEXT_TRY(collector.pack(counts));
    return counts;
}

}  // namespace gputext
