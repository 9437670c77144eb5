// cpp/base/vocabulary.hpp - hash table that numbers terms
//
// A term is any bytes. Terms are numbered from 0 in the order in which they came, so the numbers
// depend on nothing but that.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include "cpp/base/hash_table.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/base/words.hpp"

namespace gputext {

/// Takes the terms' bytes and about 30 more for each, both up to twice while it grows.
class Vocabulary {
public:
    /// Not the number of any term.
    static constexpr std::uint32_t kNone = UINT32_MAX;

    /// Its memory comes from there.
    explicit Vocabulary(std::pmr::memory_resource* memory = std::pmr::get_default_resource());

    /// The number of different terms.
    std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size() - 1); }

    /// The term's number, which is size() when it is new. Amortised O(bytes). Throws
    /// std::length_error for the term 2^32 - 1. A term of many millions of bytes may be stopped: it
    /// is not added then, and the result is kNone.
    std::uint32_t add(std::string_view term, Stop stop = {}) {
        return add(term, hash_of(term), stop);
    }
    /// Adds so many at once, and in less time each than one: they wait for memory together. False
    /// when stopped, after some of them.
    bool add_all(std::span<const std::string_view> terms, Stop stop = {});

    /// The term's number, or kNone.
    std::uint32_t find(std::string_view term) const { return find(term, hash_of(term)); }
    /// The same, of a term whose hash_of() is known.
    std::uint32_t find(std::string_view term, std::uint32_t hash) const;

    /// Well mixed in all of its bits.
    static std::uint32_t hash_of(std::string_view term);

    /// Makes room for so many more terms, so that adding them takes no longer than it has to.
    void reserve(std::uint32_t more);

    /// The term of a number below size(); valid until the next is added.
    std::string_view term(std::uint32_t number) const {
        return {characters_.data() + ends_[number],
                static_cast<std::size_t>(ends_[number + 1] - ends_[number])};
    }

    /// All terms, by their numbers; valid until the next is added.
    Words words() const {
        return {reinterpret_cast<const std::uint8_t*>(characters_.data()), ends_.data(), size()};
    }

    /// Memory in use.
    std::size_t bytes() const;

private:
    /// With the hash, so that a longer table is filled, and nearly every other term skipped,
    /// without comparing terms.
    struct Slot {
        std::uint32_t hash;
        std::uint32_t number;

        static Slot nothing() { return {0, kNone}; }
        bool free() const { return number == kNone; }
    };

    auto is_slot_of(std::string_view wanted, std::uint32_t hash) const {
        return [this, wanted, hash](const Slot& slot) {
            return slot.hash == hash && term(slot.number) == wanted;
        };
    }
    std::uint32_t add(std::string_view term, std::uint32_t hash, Stop stop);
    bool append(std::string_view term, Stop stop);
    bool make_room(std::size_t terms);

    std::pmr::vector<char> characters_;     // of all terms, one behind the other
    std::pmr::vector<std::uint64_t> ends_;  // of term n: [ends_[n], ends_[n + 1])
    HashTable<Slot, std::pmr::vector<Slot>> slots_;
};

}  // namespace gputext
