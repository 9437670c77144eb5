#include "cpp/base/vocabulary.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr std::size_t kFirstSlots = 64;

std::uint32_t hash_of(std::string_view term) {
    const std::size_t hash = std::hash<std::string_view>{}(term);
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace

Vocabulary::Vocabulary() : ends_(1), slots_(kFirstSlots, Slot{0, kNone}) {}

/// Where the term is, or where it is to go.
std::size_t Vocabulary::slot_of(std::string_view term_wanted, std::uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
        const Slot& slot = slots_[at];
        if (slot.number == kNone) return at;
        if (slot.hash == hash && term(slot.number) == term_wanted) return at;
    }
}

void Vocabulary::lengthen() {
    std::vector<Slot> longer(2 * slots_.size(), Slot{0, kNone});
    const std::size_t mask = longer.size() - 1;
    for (const Slot& slot : slots_) {
        if (slot.number == kNone) continue;
        std::size_t at = slot.hash & mask;
        while (longer[at].number != kNone) at = (at + 1) & mask;
        longer[at] = slot;
    }
    slots_.swap(longer);
}

/// Adds its bytes to those of all terms; false when stopped.
bool Vocabulary::append(std::string_view term, Stop stop) {
    characters_.resize(ends_.back());  // without what a call that threw or was stopped left
    if (term.size() > characters_.capacity() - characters_.size() &&
        characters_.size() + term.size() > kLookEvery) {
        std::vector<char> longer;
        longer.reserve(characters_.size() + std::max(characters_.size(), term.size()));
        if (!stoppable_append(longer, {characters_.data(), characters_.size()}, stop)) return false;
        characters_.swap(longer);
    }
    return stoppable_append(characters_, term, stop);
}

std::uint32_t Vocabulary::add(std::string_view term, Stop stop) {
    const std::uint32_t hash = hash_of(term);
    std::size_t at = slot_of(term, hash);
    if (slots_[at].number != kNone) return slots_[at].number;
    const std::uint32_t number = size();
    if (number == kNone) throw std::length_error("more than 4294967295 different terms");
    if (3 * (std::size_t{number} + 1) > 2 * slots_.size()) {
        lengthen();
        at = slot_of(term, hash);
    }
    if (!append(term, stop)) return kNone;
    ends_.push_back(characters_.size());
    slots_[at] = {hash, number};
    return number;
}

std::uint32_t Vocabulary::find(std::string_view term) const {
    return slots_[slot_of(term, hash_of(term))].number;
}

std::size_t Vocabulary::bytes() const {
    return characters_.capacity() + ends_.capacity() * sizeof(std::uint64_t) +
           slots_.capacity() * sizeof(Slot);
}

}  // namespace gputext
