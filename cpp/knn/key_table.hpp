// cpp/knn/key_table.hpp - numbers keys of 64 bits, equal keys alike, on threads

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/hash_table.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// The different keys of some rows, each with a number below size(). Which number depends on the
/// threads of the execution, and whether two are equal does not.
class KeyTable {
public:
    /// Numbers the keys of all rows anew. `numbers` has room for as many. Time: O(n) on each thread
    /// to find the keys that are its own, which are hashed by one thread each. Memory: 32 bytes a
    /// different key on average. Errors: cancelled, and std::bad_alloc.
    Status number(std::span<const std::uint64_t> keys, std::span<std::uint32_t> numbers,
                  Execution& execution);
    /// Numbers of other rows' keys, `unknown` where no row of number() has the key. O(n) in all.
    /// Error: cancelled.
    Status look_up(std::span<const std::uint64_t> keys, std::span<std::uint32_t> numbers,
                   std::uint32_t unknown, Execution& execution) const;

    /// The different keys, by number, of which there is room for size(). O(size()) in all. Error:
    /// cancelled.
    Status keys(std::span<std::uint64_t> keys, Execution& execution) const;

    /// How many different keys there are.
    std::size_t size() const { return bases_.empty() ? 0 : bases_.back(); }
    std::size_t bytes() const;

private:
    struct Slot {
        std::uint64_t key;
        std::uint32_t number;  // within the part

        static Slot nothing() { return {0, UINT32_MAX}; }
        bool free() const { return number == UINT32_MAX; }
    };

    Status number_part(std::size_t part, std::span<const std::uint64_t> keys,
                       std::span<std::uint32_t> numbers, const Execution& execution);
    std::size_t part_of(std::uint64_t hash) const { return hash >> 32 & (parts_.size() - 1); }

    std::vector<HashTable<Slot>> parts_;  // by bits of the hash; their number is a power of two
    std::vector<std::uint32_t> bases_;    // the first number of each part, and of none behind them
};

}  // namespace gputext
