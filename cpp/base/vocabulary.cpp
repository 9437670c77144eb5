#include "cpp/base/vocabulary.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr std::size_t kFirstTerms = 31;

/// Terms that add_all() looks for at once: more than a core waits for, and few enough that what was
/// fetched for the first is not driven out by the last.
constexpr std::size_t kAtOnce = 64;

}  // namespace

Vocabulary::Vocabulary(std::pmr::memory_resource* memory)
    : characters_(memory), ends_(1, memory), slots_(kFirstTerms, memory) {}

std::uint32_t Vocabulary::hash_of(std::string_view term) {
    const std::size_t hash = std::hash<std::string_view>{}(term);
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

void Vocabulary::reserve(std::uint32_t more) {
    make_room(std::size_t{size()} + more);
}

/// Returns true when slots have moved.
bool Vocabulary::make_room(std::size_t terms) {
    return slots_.grow(terms, [](const Slot& slot) { return slot.hash; });
}

/// Adds its bytes to those of all terms; false when stopped.
bool Vocabulary::append(std::string_view term, Stop stop) {
    characters_.resize(ends_.back());  // without what a call that threw or was stopped left
    if (term.size() > characters_.capacity() - characters_.size() &&
        characters_.size() + term.size() > kLookEvery) {
        std::pmr::vector<char> longer(characters_.get_allocator());
        longer.reserve(characters_.size() + std::max(characters_.size(), term.size()));
        if (!stoppable_append(longer, {characters_.data(), characters_.size()}, stop)) return false;
        characters_.swap(longer);
    }
    return stoppable_append(characters_, term, stop);
}

std::uint32_t Vocabulary::add(std::string_view term, std::uint32_t hash, Stop stop) {
    Slot* slot = &slots_.find(hash, is_slot_of(term, hash));
    if (!slot->free()) return slot->number;
    const std::uint32_t number = size();
    if (number == kNone) throw std::length_error("more than 4294967295 different terms");
    if (make_room(std::size_t{number} + 1)) slot = &slots_.find(hash, is_slot_of(term, hash));
    if (!append(term, stop)) return kNone;
    ends_.push_back(characters_.size());
    *slot = {hash, number};
    return number;
}

bool Vocabulary::add_all(std::span<const std::string_view> terms, Stop stop) {
    for (; !terms.empty(); terms = terms.subspan(std::min(kAtOnce, terms.size()))) {
        const std::span<const std::string_view> some = terms.first(std::min(kAtOnce, terms.size()));
        make_room(size() + some.size());
        std::uint32_t hashes[kAtOnce];
        for (std::size_t i = 0; i < some.size(); ++i) {
            hashes[i] = hash_of(some[i]);
            slots_.prefetch(hashes[i]);
        }
        for (std::size_t i = 0; i < some.size(); ++i)
            if (add(some[i], hashes[i], stop) == kNone) return false;
    }
    return true;
}

std::uint32_t Vocabulary::find(std::string_view term, std::uint32_t hash) const {
    return slots_.find(hash, is_slot_of(term, hash)).number;
}

std::size_t Vocabulary::bytes() const {
    return characters_.capacity() + ends_.capacity() * sizeof(std::uint64_t) + slots_.bytes();
}

}  // namespace gputext
