#include "cpp/documents/detail/gram_set.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

std::uint32_t hash_of(const std::uint8_t* gram) {
    std::uint32_t word;
    static_assert(sizeof word == GramSet::gram);
    std::memcpy(&word, gram, sizeof word);
    word ^= word >> 15;
    return word * 0x9e3779b1u;
}

}  // namespace

bool GramSet::assign(Bytes document, Stop stop) {
    // Thirty-two bits a character: two or three of a hundred absent grams seem to occur.
    constexpr std::size_t least_bits = std::size_t{1} << 16, most_bits = std::size_t{1} << 25;
    const std::size_t wanted = std::bit_ceil(std::min(most_bits, 32 * document.size() + 1));
    const std::size_t bits = std::clamp(wanted, least_bits, most_bits);
    shift_ = static_cast<unsigned>(32 - std::countr_zero(bits));
    if (!stoppable_assign(bits_, bits / 64, std::uint64_t{0}, stop)) return false;
    for (std::size_t at = 0; at + gram <= document.size(); ++at) {
        if (at % kLookEvery == kLookEvery - 1 && stop()) return false;
        const std::uint32_t hash = hash_of(&document[at]) >> shift_;
        bits_[hash / 64] |= std::uint64_t{1} << hash % 64;
    }
    return true;
}

std::size_t GramSet::absent(Bytes other, std::size_t most, Stop stop) const {
    std::size_t count = 0;
    std::size_t next_look = kLookEvery;
    for (std::size_t at = 0; at + gram <= other.size();) {
        const std::uint32_t hash = hash_of(&other[at]) >> shift_;
        if ((bits_[hash / 64] >> hash % 64 & 1) != 0) {
            ++at;
        } else {
            if (++count > most) return count;
            at += gram;
        }
        if (at >= next_look) {
            if (stop()) return 0;
            next_look = at + kLookEvery;
        }
    }
    return count;
}

}  // namespace gputext
