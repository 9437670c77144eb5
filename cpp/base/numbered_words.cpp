#include "cpp/base/numbered_words.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <string_view>

#include "cpp/base/hash_table.hpp"

namespace gputext {
namespace {

/// Words that are numbered before the next ones are looked at, which bounds the memory.
constexpr std::size_t kBatch = std::size_t{1} << 20;
/// Words of a batch that a thread takes at once.
constexpr std::size_t kPart = std::size_t{1} << 14;
/// Partitions of the hashes, each of which one thread takes at once: by the highest bits, as hash
/// tables use the lowest.
constexpr unsigned kMostPartitionBits = 6;

/// The words of runs, one behind the other.
class WordOrder {
public:
    explicit WordOrder(std::span<const WordRun> runs) : runs_(runs) {
        begins_.reserve(runs.size() + 1);
        begins_.push_back(0);
        for (const WordRun& run : runs) begins_.push_back(begins_.back() + (run.end - run.begin));
    }

    std::uint64_t size() const { return begins_.back(); }

    /// Calls body(list, word) for the words from the place `begin` up to `end`. O(log(runs)) for
    /// the first one.
    template <class Body>
    void visit(std::uint64_t begin, std::uint64_t end, const Body& body) const {
        const auto behind = std::upper_bound(begins_.begin(), begins_.end(), begin);
        auto run = static_cast<std::size_t>(behind - begins_.begin()) - 1;
        for (std::uint64_t place = begin; place < end; ++run) {
            const WordRun& its = runs_[run];
            const std::uint64_t first = its.begin + (place - begins_[run]);
            const std::uint64_t last = std::min<std::uint64_t>(its.end, first + (end - place));
            for (std::uint64_t word = first; word < last; ++word) body(its.list, word);
            place += last - first;
        }
    }

private:
    std::span<const WordRun> runs_;
    std::vector<std::uint64_t> begins_;
};

/// A word of the batch; its place is counted from the batch's first word.
struct HashedWord {
    std::uint32_t hash;
    std::uint32_t place;

    static HashedWord nothing() { return {0, UINT32_MAX}; }
    bool free() const { return place == UINT32_MAX; }
};

struct Numbering {
    std::span<const Words> lists;
    const WordOrder& order;
    bool closed;
    Vocabulary& vocabulary;
    std::span<std::vector<std::uint32_t>> numbers;
    Execution& execution;
};

Status number_one_by_one(const Numbering& work) {
    work.execution.begin_phase("numbering words", work.order.size());
    for (std::uint64_t begin = 0; begin < work.order.size(); begin += kPart) {
        const std::uint64_t end = std::min<std::uint64_t>(work.order.size(), begin + kPart);
        work.order.visit(begin, end, [&](std::uint32_t list, std::uint64_t word) {
            const std::string_view bytes = work.lists[list][word];
            work.numbers[list][word] = work.closed
                                           ? work.vocabulary.find(bytes)
                                           : work.vocabulary.add(bytes, work.execution.stop());
        });
        GPUTEXT_TRY(work.execution.checkpoint(end - begin));
    }
    return {};
}

/// Numbers batches of words, one after the other.
class BatchNumbering {
public:
    BatchNumbering(const Numbering& work, std::size_t most)
        : work_(work),
          words_(std::make_unique_for_overwrite<std::string_view[]>(most)),
          divided_(std::make_unique_for_overwrite<HashedWord[]>(most)),
          first_(std::make_unique_for_overwrite<std::uint32_t[]>(most)),
          numbers_(std::make_unique_for_overwrite<std::uint32_t[]>(most)),
          tables_(work.execution.threads()) {}

    /// The words from the place `begin` of the order up to `end`.
    Status number(std::uint64_t begin, std::uint64_t end);

private:
    std::size_t partitions() const { return std::size_t{1} << partition_bits_; }
    std::size_t partition_of(std::uint32_t hash) const {
        return std::uint64_t{hash} << partition_bits_ >> 32;
    }
    std::size_t begin_of(std::size_t part) const { return part * kPart; }
    std::size_t end_of(std::size_t part) const { return std::min(size_, (part + 1) * kPart); }
    /// The words of a part that are in the partition.
    std::span<const HashedWord> words_of(std::size_t part, std::size_t partition) const {
        const std::uint32_t* const end = ends_.data() + part * partitions() + partition;
        const std::size_t begin = partition == 0 ? begin_of(part) : end[-1];
        return {divided_.get() + begin, *end - begin};
    }
    void divide(std::size_t part);
    Status find_first(std::size_t partition, HashTable<HashedWord>& table);
    Status add_new();
    void hand_out(std::size_t part);

    Numbering work_;
    std::uint64_t begin_ = 0;  // of the batch in the order
    std::size_t size_ = 0;     // of the batch
    std::size_t parts_ = 0;
    unsigned partition_bits_ = 0;
    // By places:
    std::unique_ptr<std::string_view[]> words_;
    std::unique_ptr<HashedWord[]> divided_;      // each part's words, by partitions
    std::unique_ptr<std::uint32_t[]> first_;     // the first place of the same word
    std::unique_ptr<std::uint32_t[]> numbers_;   // of words at their first places
    std::vector<std::uint32_t> ends_;            // in divided_, of each part and partition
    std::vector<HashTable<HashedWord>> tables_;  // of the threads
    std::atomic<std::uint32_t> new_{0};          // words that the vocabulary does not have
};

/// Hashes the words of a part, and puts them in the order of their partitions.
void BatchNumbering::divide(std::size_t part) {
    const std::size_t begin = begin_of(part), end = end_of(part);
    std::uint32_t* const ends = ends_.data() + part * partitions();
    std::uint32_t hashes[kPart];
    std::uint32_t next[std::size_t{1} << kMostPartitionBits] = {};
    std::size_t place = begin;
    work_.order.visit(begin_ + begin, begin_ + end, [&](std::uint32_t list, std::uint64_t word) {
        words_[place] = work_.lists[list][word];
        const std::uint32_t hash = Vocabulary::hash_of(words_[place]);
        hashes[place++ - begin] = hash;
        ++next[partition_of(hash)];
    });
    auto before = static_cast<std::uint32_t>(begin);
    for (std::size_t partition = 0; partition < partitions(); ++partition) {
        const std::uint32_t count = next[partition];
        next[partition] = before;
        before += count;
        ends[partition] = before;
    }
    for (place = begin; place < end; ++place) {
        const std::uint32_t hash = hashes[place - begin];
        divided_[next[partition_of(hash)]++] = {hash, static_cast<std::uint32_t>(place)};
    }
}

/// Finds the first place of each word of a partition, and its number where the vocabulary has it.
Status BatchNumbering::find_first(std::size_t partition, HashTable<HashedWord>& table) {
    std::size_t count = 0;
    for (std::size_t part = 0; part < parts_; ++part) count += words_of(part, partition).size();
    if (!table.reset(count, work_.execution.stop())) return Status::cancelled();
    std::uint32_t unknown = 0;
    for (std::size_t part = 0; part < parts_; ++part)
        for (const HashedWord& word : words_of(part, partition)) {
            const std::string_view bytes = words_[word.place];
            HashedWord& slot = table.find(word.hash, [&](const HashedWord& other) {
                return other.hash == word.hash && words_[other.place] == bytes;
            });
            if (slot.free()) {
                slot = word;
                const std::uint32_t number = work_.vocabulary.find(bytes, word.hash);
                numbers_[word.place] = number;
                unknown += number == Vocabulary::kNone ? 1 : 0;
            }
            first_[word.place] = slot.place;
        }
    new_.fetch_add(unknown, std::memory_order_relaxed);
    return {};
}

/// Adds the words that the vocabulary does not have, in the order of their first places.
Status BatchNumbering::add_new() {
    work_.vocabulary.reserve(new_.exchange(0, std::memory_order_relaxed));
    for (std::size_t part = 0; part < parts_; ++part) {
        for (std::size_t place = begin_of(part); place < end_of(part); ++place) {
            if (first_[place] != place || numbers_[place] != Vocabulary::kNone) continue;
            numbers_[place] = work_.vocabulary.add(words_[place], work_.execution.stop());
        }
        GPUTEXT_TRY(work_.execution.checkpoint());
    }
    return {};
}

/// Gives the words of a part their numbers.
void BatchNumbering::hand_out(std::size_t part) {
    std::size_t place = begin_of(part);
    work_.order.visit(begin_ + place, begin_ + end_of(part),
                      [&](std::uint32_t list, std::uint64_t word) {
                          work_.numbers[list][word] = numbers_[first_[place++]];
                      });
}

Status BatchNumbering::number(std::uint64_t begin, std::uint64_t end) {
    begin_ = begin;
    size_ = end - begin;
    parts_ = (size_ + kPart - 1) / kPart;
    partition_bits_ = static_cast<unsigned>(
        std::min<std::size_t>(std::bit_width(parts_ - 1), kMostPartitionBits));
    ends_.resize(parts_ * partitions());
    Execution& execution = work_.execution;
    execution.begin_phase("numbering words", (work_.closed ? 2 : 3) * parts_ + partitions());
    GPUTEXT_TRY(execution.parallel_for(parts_, [this](std::size_t part, unsigned) -> Status {
        divide(part);
        return {};
    }));
    GPUTEXT_TRY(
        execution.parallel_for(partitions(), [this](std::size_t partition, unsigned worker) {
            return find_first(partition, tables_[worker]);
        }));
    if (!work_.closed) GPUTEXT_TRY(add_new());
    return execution.parallel_for(parts_, [this](std::size_t part, unsigned) -> Status {
        hand_out(part);
        return {};
    });
}

}  // namespace

Status number_words(std::span<const Words> lists, std::span<const WordRun> runs, bool closed,
                    Vocabulary& vocabulary, std::span<std::vector<std::uint32_t>> numbers,
                    Execution& execution) {
    const WordOrder order(runs);
    const Numbering work{lists, order, closed, vocabulary, numbers, execution};
    // On one thread it takes longer to find the first place of each word than to look words up.
    if (execution.threads() == 1 || order.size() <= kPart) return number_one_by_one(work);
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(order.size(), kBatch));
    BatchNumbering batches(work, most);
    for (std::uint64_t begin = 0; begin < order.size(); begin += kBatch)
        GPUTEXT_TRY(batches.number(begin, std::min<std::uint64_t>(order.size(), begin + kBatch)));
    return {};
}

}  // namespace gputext
