#include "cpp/base/secret_hash.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <tuple>

namespace gputext {
namespace {

using Wide = unsigned __int128;

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
/// Polynomials that are evaluated beside each other, as a product waits for the one before, and how
/// many numbers each of them takes at once.
constexpr std::size_t kLanes = 4, kAtOnce = 4;

/// Below 2^61 + 8, and the same modulo the prime, for numbers below 2^123.
std::uint64_t fold(Wide number) {
    const auto low = static_cast<std::uint64_t>(number) & kPrime;
    const std::uint64_t sum = low + static_cast<std::uint64_t>(number >> 61);
    return (sum & kPrime) + (sum >> 61);
}

std::uint64_t multiply_add(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return fold(static_cast<Wide>(a % kPrime) * b + c % kPrime) % kPrime;
}

std::uint64_t random_place() {
    std::random_device random;
    const std::uint64_t high = random();
    return (high << 32 | random()) % kPrime;
}

}  // namespace

SecretHash::SecretHash() : combining_(random_place()) {
    powers_[0] = random_place();
    for (std::size_t i = 1; i < kAtOnce; ++i)
        powers_[i] = multiply_add(powers_[i - 1], powers_[0], 0);
}

std::uint64_t SecretHash::operator()(std::span<const std::uint8_t> bytes) const {
    static_assert(std::tuple_size_v<decltype(powers_)> == kAtOnce);
    std::array<std::uint64_t, kLanes> lanes{};
    std::uint32_t numbers[kLanes][kAtOnce];
    for (std::size_t at = 0; at < bytes.size(); at += sizeof numbers) {
        const std::size_t left = bytes.size() - at;
        if (left < sizeof numbers) std::memset(numbers, 0, sizeof numbers);
        std::memcpy(numbers, bytes.data() + at, std::min(left, sizeof numbers));
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const auto& next = numbers[lane];
            lanes[lane] = fold(static_cast<Wide>(lanes[lane]) * powers_[3] +
                               static_cast<Wide>(next[0]) * powers_[2] +
                               static_cast<Wide>(next[1]) * powers_[1] +
                               static_cast<Wide>(next[2]) * powers_[0] + next[3]);
        }
    }
    std::uint64_t hash = bytes.size() % kPrime;
    for (const std::uint64_t lane : lanes) hash = multiply_add(hash, combining_, lane);
    return hash;
}

}  // namespace gputext
