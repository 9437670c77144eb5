#include "cpp/thesaurus/cooccurrence_table.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>

namespace gputext {
namespace {

/// Triples or rows that are looked at between two looks at a stop request.
constexpr std::size_t kTask = std::size_t{1} << 16;
constexpr std::size_t kTaskRows = 256;

struct Entry {
    std::uint64_t count;
    std::uint32_t column;
};

class Collector {
public:
    Collector(const CooccurrenceShape& shape, std::span<const CountedTriple> triples,
              Execution& execution)
        : shape_(shape), triples_(triples), execution_(execution) {
        counts_.shape = shape;
    }

    Status number(std::span<const std::uint32_t> order);
    /// Triples by their words, in the order in which they came.
    Status group();
    /// The triples of each word by their columns, equal ones added up.
    Status add_up();
    Status pack(Cooccurrences& counts);

private:
    CooccurrenceShape shape_;
    std::span<const CountedTriple> triples_;
    Execution& execution_;
    std::vector<std::uint32_t> numbers_;  // new ones, by the old
    std::vector<std::uint64_t> begins_;   // of each word's entries
    std::vector<std::uint64_t> sizes_;    // how many are left of them
    std::vector<Entry> entries_;
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
    for (std::size_t i = 0; i < triples_.size(); ++i) {
        if (i % kTask == 0 && execution_.stop_requested()) return Status::cancelled();
        if (triples_[i].word >= shape_.words || triples_[i].neighbor >= shape_.words)
            return {ErrorCode::invalid_argument, "a count is of a word that there is not"};
    }
    return {};
}

Status Collector::group() {
    begins_.assign(std::size_t{shape_.words} + 1, 0);
    for (std::size_t i = 0; i < triples_.size(); ++i) {
        if (i % kTask == 0 && execution_.stop_requested()) return Status::cancelled();
        ++begins_[numbers_[triples_[i].word] + 1];
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    std::vector<std::uint64_t> next(begins_.begin(), begins_.end() - 1);
    entries_.resize(triples_.size());
    for (std::size_t i = 0; i < triples_.size(); ++i) {
        if (i % kTask == 0 && execution_.stop_requested()) return Status::cancelled();
        const CountedTriple& triple = triples_[i];
        const std::uint64_t relation = shape_.relation_of(triple.offset);
        entries_[next[numbers_[triple.word]]++] = {
            triple.count,
            static_cast<std::uint32_t>(relation * shape_.words + numbers_[triple.neighbor])};
    }
    return {};
}

Status Collector::add_up() {
    sizes_.resize(shape_.words);
    const std::size_t tasks = (shape_.words + kTaskRows - 1) / kTaskRows;
    execution_.begin_phase("adding up counts", tasks);
    return execution_.parallel_for(tasks, [&](std::size_t task, unsigned) -> Status {
        const std::size_t end = std::min<std::size_t>(shape_.words, (task + 1) * kTaskRows);
        for (std::size_t word = task * kTaskRows; word < end; ++word) {
            Entry* const first = entries_.data() + begins_[word];
            Entry* const last = entries_.data() + begins_[word + 1];
            std::sort(first, last,
                      [](const Entry& a, const Entry& b) { return a.column < b.column; });
            Entry* out = first;
            for (const Entry* entry = first; entry != last;) {
                Entry sum = *entry;
                while (++entry != last && entry->column == sum.column)
                    if (__builtin_add_overflow(sum.count, entry->count, &sum.count))
                        sum.count = UINT64_MAX;
                if (sum.count > UINT32_MAX)
                    return {ErrorCode::invalid_argument,
                            "a count of words beside each other is above 4294967295"};
                if (sum.count > 0) *out++ = sum;
            }
            sizes_[word] = static_cast<std::uint64_t>(out - first);
        }
        return {};
    });
}

Status Collector::pack(Cooccurrences& counts) {
    counts_.begins.assign(1, 0);
    for (const std::uint64_t size : sizes_) counts_.begins.push_back(counts_.begins.back() + size);
    counts_.columns.resize(counts_.begins.back());
    counts_.counts.resize(counts_.begins.back());
    for (std::size_t word = 0; word < sizes_.size(); ++word) {
        if (word % kTaskRows == 0 && execution_.stop_requested()) return Status::cancelled();
        for (std::uint64_t i = 0; i < sizes_[word]; ++i) {
            const Entry& entry = entries_[begins_[word] + i];
            counts_.columns[counts_.begins[word] + i] = entry.column;
            counts_.counts[counts_.begins[word] + i] = static_cast<std::uint32_t>(entry.count);
        }
    }
    counts = std::move(counts_);
    return {};
}

}  // namespace

Result<CooccurrenceShape> shape_of_triples(std::uint32_t words,
                                           std::span<const CountedTriple> triples,
                                           Execution& execution) {
    std::uint32_t farthest = 0;
    bool without = false;
    for (std::size_t i = 0; i < triples.size(); ++i) {
        if (i % kTask == 0 && execution.stop_requested()) return Status::cancelled();
        const std::int64_t offset = triples[i].offset;
        if (offset == 0) without = true;
        farthest = std::max(farthest, static_cast<std::uint32_t>(std::abs(offset)));
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
    execution.begin_phase("sorting counts", 0);
    Collector collector(shape, triples, execution);
    Cooccurrences counts;
    GPUTEXT_TRY(collector.number(order));
    GPUTEXT_TRY(collector.group());
    GPUTEXT_TRY(collector.add_up());
    GPUTEXT_TRY(collector.pack(counts));
    return counts;
}

}  // namespace gputext
