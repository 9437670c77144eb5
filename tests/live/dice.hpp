// tests/live/dice.hpp - random numbers, and numbers that the environment may give

#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace gputext::live {

/// `name` of the environment, else `otherwise`.
inline std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
    const char* const value = std::getenv(name);
    return value == nullptr || *value == '\0' ? otherwise : std::stoull(value);
}

/// Of a random history that has a number of its own: GPUTEXT_TEST_SEED gives others.
inline std::uint32_t history_seed(unsigned history) {
    return static_cast<std::uint32_t>(1000 * number_from("GPUTEXT_TEST_SEED", 0) + history);
}

/// Gives the same numbers for the same seed with every library.
class Dice {
public:
    explicit Dice(std::uint64_t seed) : engine_(seed) {}

    std::size_t below(std::size_t n) { return n == 0 ? 0 : engine_() % n; }
    bool percent(unsigned likely) { return below(100) < likely; }
    template <class T>
    const T& of(const std::vector<T>& some) {
        return some[below(some.size())];
    }

private:
    std::mt19937_64 engine_;
};

}  // namespace gputext::live
