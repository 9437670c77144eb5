// cpp/base/hash_table.hpp - hash table with open addressing, whose keys its user compares
//
// What a slot holds is up to the user: a key, or only the number of something that lies elsewhere.
// Slots are a power of two. A search begins at the slot that the lowest bits of the hash name, and
// goes on to the next one (linear probing), so these bits have to be well mixed. Nothing is ever
// removed. One thread at a time may change a table.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpp/base/stop.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {

/// Slot::nothing() is a free slot, and free() says of any slot whether it is one. The time of a
/// search is O(1) on average, as at most half of the slots are taken, or two thirds where grow()
/// makes room. Functions that allocate throw std::bad_alloc. `Slots` is a vector of slots.
template <class Slot, class Slots = std::vector<Slot>>
class HashTable {
public:
    static_assert(std::is_trivial_v<Slot>, "vectors of such slots are filled much faster");

    HashTable() = default;
    explicit HashTable(std::size_t most, typename Slots::allocator_type allocator = {})
        : slots_(slots_for(most), Slot::nothing(), allocator) {}

    /// Frees all slots, and makes room for `most` taken ones. Returns false when stopped.
    bool reset(std::size_t most, Stop stop) {
        return stoppable_assign(slots_, slots_for(most), Slot::nothing(), stop);
    }

    /// The taken slot of the hash for which is(slot) holds; without one, the free slot where it is
    /// to go. There has to be a free slot.
    template <class Is>
    Slot& find(std::uint64_t hash, const Is& is) {
        return slots_[place_of(hash, is)];
    }
    template <class Is>
    const Slot& find(std::uint64_t hash, const Is& is) const {
        return slots_[place_of(hash, is)];
    }

    /// Has the processor fetch where a search for the hash begins, for a search soon after. GCC
    /// drops calls of functions that do nothing else.
    [[gnu::always_inline]] void prefetch(std::uint64_t hash) const {
        const Slot* const slot = slots_.data() + (hash & (slots_.size() - 1));
        __builtin_prefetch(slot);
        __builtin_prefetch(reinterpret_cast<const char*>(slot + 1) - 1);
    }

    /// Makes room for `taken` slots: returns true when it has doubled the number of slots, as often
    /// as need be, and moved what they hold. hash_of(slot) is the hash of a taken one.
    template <class HashOf>
    bool grow(std::size_t taken, const HashOf& hash_of) {
        if (3 * taken <= 2 * slots_.size()) return false;
        std::size_t size = 2 * slots_.size();
        while (3 * taken > 2 * size) size *= 2;
        HashTable longer(Slots(size, Slot::nothing(), slots_.get_allocator()));
        for (const Slot& slot : slots_)
            if (!slot.free()) longer.find(hash_of(slot), [](const Slot&) { return false; }) = slot;
        slots_.swap(longer.slots_);
        return true;
    }

    /// Calls work(slot) for each taken slot, in no order.
    template <class Work>
    void each(const Work& work) const {
        for (const Slot& slot : slots_)
            if (!slot.free()) work(slot);
    }

    /// Memory in use.
    std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

private:
    explicit HashTable(Slots slots) : slots_(std::move(slots)) {}

    static std::size_t slots_for(std::size_t most) { return std::bit_ceil(2 * most + 1); }

    template <class Is>
    std::size_t place_of(std::uint64_t hash, const Is& is) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = hash & mask;
        while (!slots_[at].free() && !is(slots_[at])) at = (at + 1) & mask;
        return at;
    }

    Slots slots_;
};

/// A slot that holds the number of something, below 2^32 - 1.
struct NumberSlot {
    static constexpr std::uint32_t kNone = UINT32_MAX;

    std::uint32_t number;

    static NumberSlot nothing() { return {kNone}; }
    bool free() const { return number == kNone; }
};

}  // namespace gputext
