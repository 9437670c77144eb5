#include "cpp/embeddings/detail/sampling.hpp"

#include <cmath>
#include <cstddef>

namespace gputext {
namespace {

constexpr double kDraws = 0x1p32;

/// The last of the 2^32 numbers, counted from 0, that a share of all draws takes; at least 0.
std::uint32_t last_of(double share) {
    if (!(share < 1)) return UINT32_MAX;
    const double numbers = share * kDraws;
    return numbers < 1 ? 0 : static_cast<std::uint32_t>(numbers) - 1;
}

/// x to the power of 3/4 from square roots, which are rounded alike everywhere.
double three_quarters(double x) {
    const double root = std::sqrt(x);
    return root * std::sqrt(root);
}

double sum_of(std::span<const double> values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
}

/// Vose's construction: places that are too full give to those that are not.
void fill_places(std::span<const double> weights, WordSampling& sampling) {
    const std::size_t words = weights.size();
    const double mean = sum_of(weights) / static_cast<double>(words);
    sampling.own.assign(words, UINT32_MAX);
    sampling.other.resize(words);
    std::vector<double> share(words);
    std::vector<std::uint32_t> small, large;
    for (std::uint32_t word = 0; word < words; ++word) {
        sampling.other[word] = word;
        share[word] = weights[word] / mean;
        (share[word] < 1 ? small : large).push_back(word);
    }
    while (!small.empty() && !large.empty()) {
        const std::uint32_t taker = small.back(), giver = large.back();
        small.pop_back();
        sampling.own[taker] = last_of(share[taker]);
        sampling.other[taker] = giver;
        share[giver] -= 1 - share[taker];
        if (share[giver] >= 1) continue;
        large.pop_back();
        small.push_back(giver);
    }
}

}  // namespace

WordSampling word_sampling(std::span<const std::uint64_t> counts, double sample) {
    WordSampling sampling;
    std::vector<double> weights;
    double total = 0;
    for (const std::uint64_t count : counts) total += static_cast<double>(count);
    for (const std::uint64_t count : counts) {
        const auto occurrences = static_cast<double>(count);
        const double ratio = sample * total / occurrences;
        sampling.keep.push_back(sample > 0 && count > 0 ? last_of(std::sqrt(ratio) + ratio)
                                                        : UINT32_MAX);
        weights.push_back(three_quarters(occurrences));
    }
    fill_places(weights, sampling);
    return sampling;
}

}  // namespace gputext
