// cpp/groups/detail/key_parts.hpp - division of keys by their highest bits

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gputext {

/// Divides keys by their highest bits, so that the parts are in the order of their keys.
class KeyParts {
public:
    /// For so many keys: about six a part, where keys up to `greatest`, which is above 0, and so
    /// many bits allow it.
    KeyParts(std::uint64_t greatest, std::size_t keys, unsigned most_bits) {
        const auto key_bits = static_cast<unsigned>(std::bit_width(greatest));
        const auto wanted = static_cast<unsigned>(std::bit_width(keys / 8));
        const unsigned bits = std::min({key_bits, most_bits, std::max(wanted, 1u)});
        shift_ = key_bits - bits;
        count_ = (greatest >> shift_) + 1;
    }

    std::size_t of(std::uint64_t key) const { return key >> shift_; }
    std::size_t count() const { return count_; }

    /// The bits of a key that its part does not tell, and how many they are.
    std::uint64_t rest(std::uint64_t key) const { return key & ((std::uint64_t{1} << shift_) - 1); }
    unsigned rest_bits() const { return shift_; }
    std::uint64_t key(std::size_t part, std::uint64_t rest) const { return part << shift_ | rest; }

private:
    unsigned shift_;
    std::size_t count_;
};

/// Ends of parts that lie one behind the other, from their sizes.
template <class Size>
void sum_up(std::span<Size> sizes) {
    Size end = 0;
    for (Size& size : sizes) size = end += size;
}

}  // namespace gputext
