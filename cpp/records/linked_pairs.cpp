#include "cpp/records/linked_pairs.hpp"

#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {

/// Twice what the pairs take, as a vector has its elements twice while it grows, and as much is
/// needed to sort them.
Status LinkedPairs::make_room(Part& part) {
    if (room_.fetch_add(kStep, std::memory_order_relaxed) >= most_ + parts_.size() * kStep) {
        too_many_.store(true, std::memory_order_relaxed);
        return {};
    }
    part.room += kStep;
    const Status taken =
        memory_.take(2 * kStep * (sizeof(LinkedPair) + fields_), "the pairs of records");
    if (taken.ok()) return {};
    return {taken.code(), taken.message(), "Raise min_weight, or gputext.host_memory_limit."};
}

Status LinkedPairs::append(const FoundPair& pair, unsigned worker) {
    Part& part = parts_[worker];
    ++part.found;
    if (!too_many_.load(std::memory_order_relaxed) && part.pairs.size() == part.room)
        GPUTEXT_TRY(make_room(part));
    if (too_many_.load(std::memory_order_relaxed)) {
        part.pairs = {};
        part.levels = {};
        return {};
    }
    part.pairs.push_back({pair.first, pair.second, pair.weight});
    part.levels.insert(part.levels.end(), pair.levels, pair.levels + fields_);
    return {};
}

Status LinkedPairs::check_count() {
    std::uint64_t found = 0;
    for (Part& part : parts_) {
        part.begin = found;
        found += part.found;
    }
    if (found <= most_) return {};
    return {ErrorCode::invalid_argument,
            std::to_string(found) +
                " pairs have at least that match weight, more than max_pairs, " +
                std::to_string(most_),
            "Raise min_weight, or max_pairs."};
}

/// Counts the pairs by the rank of their first record, which comes first from here on.
Status LinkedPairs::count_first(const RecordRanks& ranks, std::vector<std::uint32_t>& begins,
                                Stop stop) {
    begins.assign(ranks.records + 1, 0);
    for (Part& part : parts_)
        for (std::size_t i = 0; i < part.pairs.size(); ++i) {
            if (i % kStep == 0 && stop()) return Status::cancelled();
            LinkedPair& pair = part.pairs[i];
            if (ranks.of(pair.first) > ranks.of(pair.second)) std::swap(pair.first, pair.second);
            ++begins[ranks.of(pair.first) + 1];
        }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    return {};
}

Status LinkedPairs::sort(const RecordRanks& ranks, Execution& execution) {
    const Stop stop = execution.stop();
    std::vector<std::uint32_t> begins;
    GPUTEXT_TRY(count_first(ranks, begins, stop));
    // The rank of a pair's second record above its number.
    std::vector<std::uint64_t> entries(begins.back());
    std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
    for (const Part& part : parts_)
        for (std::size_t i = 0; i < part.pairs.size(); ++i) {
            if (i % kStep == 0 && stop()) return Status::cancelled();
            const LinkedPair& pair = part.pairs[i];
            entries[next[ranks.of(pair.first)]++] =
                std::uint64_t{ranks.of(pair.second)} << 32 | (part.begin + i);
        }
    order_.resize(entries.size());
    const std::size_t steps = (ranks.records + kStep - 1) / kStep;
    execution.begin_phase("sorting pairs", steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
        const std::size_t end = std::min(ranks.records, (step + 1) * kStep);
        for (std::size_t rank = step * kStep; rank < end; ++rank) {
            const auto first = entries.begin() + begins[rank];
            const auto last = entries.begin() + begins[rank + 1];
            if (!stoppable_sort(first, last, std::less<>(), stop)) return Status::cancelled();
            std::transform(first, last, order_.begin() + begins[rank],
                           [](std::uint64_t entry) { return static_cast<std::uint32_t>(entry); });
        }
        return {};
    });
}

Status LinkedPairs::finish(const RecordRanks& ranks, Execution& execution) {
    return status_or_exception([&]() -> Status {
        GPUTEXT_TRY(check_count());
        return sort(ranks, execution);
    });
}

}  // namespace gputext
