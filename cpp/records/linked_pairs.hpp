// cpp/records/linked_pairs.hpp - pairs of records as they are found, and in the order of the records

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/records/record_pairs.hpp"

namespace gputext {

struct LinkedPair {
    std::uint32_t first, second;
    double weight;
};

/// The place of each record in the order of records; empty where they are in their order.
struct RecordRanks {
    std::size_t records = 0;
    std::span<const std::uint32_t> ranks = {};

    std::uint32_t of(std::uint32_t record) const {
        return ranks.empty() ? record : ranks[record];
    }
};

/// Pairs with their levels, as threads find them, fewer than 2^32. Beyond the most that are wanted,
/// they are counted alone.
class LinkedPairs {
public:
    LinkedPairs(std::size_t fields, unsigned threads, std::uint64_t most, std::size_t memory_limit)
        : fields_(fields), most_(most), memory_(memory_limit), parts_(threads) {}

    /// A worker's calls come one after the other. Errors: memory_limit.
    Status append(const FoundPair& pair, unsigned worker);
    /// After the last pair: puts them into the order of their first and then their second records,
    /// the first one being that which comes first. O(pairs log pairs). Errors: cancelled;
    /// invalid_argument where there are more than the most.
    Status finish(const RecordRanks& ranks, Execution& execution);

    std::size_t size() const { return order_.size(); }
    const LinkedPair& pair(std::size_t i) const {
        const Part& part = part_of(order_[i]);
        return part.pairs[order_[i] - part.begin];
    }
    /// Of each field.
    const std::int8_t* levels(std::size_t i) const {
        const Part& part = part_of(order_[i]);
        return part.levels.data() + (order_[i] - part.begin) * fields_;
    }

private:
    /// Those of one thread.
    struct alignas(64) Part {
        std::vector<LinkedPair> pairs;
        std::vector<std::int8_t> levels;
        std::uint64_t found = 0;
        std::size_t room = 0;     // pairs that memory was taken for
        std::uint64_t begin = 0;  // number of the first one
    };
    const Part& part_of(std::uint64_t number) const {
        return *std::prev(std::ranges::upper_bound(parts_, number, {}, &Part::begin));
    }

    Status make_room(Part& part);
    Status check_count();
    Status count_first(const RecordRanks& ranks, std::vector<std::uint32_t>& begins, Stop stop);
    Status sort(const RecordRanks& ranks, Execution& execution);

    static constexpr std::size_t kStep = 4096;  // pairs that memory is taken for at a time

    const std::size_t fields_;
    const std::uint64_t most_;
    MemoryBudget memory_;
    std::vector<Part> parts_;
    std::atomic<std::uint64_t> room_{0};  // of all parts
    std::atomic<bool> too_many_{false};
    std::vector<std::uint32_t> order_;  // numbers of the pairs
};

}  // namespace gputext
