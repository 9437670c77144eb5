#include "cpp/knn/detail/score_sample.hpp"

namespace gputext {

SamplePlan plan_sample(std::size_t items, std::size_t k, std::size_t dimensions,
                       std::size_t most_passed, std::size_t most_elements) {
    // Groups tell little about ranks above their number.
    constexpr double most_rank = GroupMinima<float>::groups, most_expected = 40;
    constexpr std::size_t fewest = 256;
    const auto n = static_cast<double>(items), wanted = static_cast<double>(k);
    const std::size_t sampled = std::min({items / 8, most_elements / dimensions,
                                          static_cast<std::size_t>(most_expected * n / wanted)});
    if (sampled < fewest) return {};
    const double share = static_cast<double>(sampled) / n, expected = wanted * share;
    // Of the k nearest, a sample has more than so many once in a thousand times or less.
    const double rank = expected + 3 * std::sqrt(expected) + 2;
    if (rank > most_rank || rank / share > static_cast<double>(most_passed)) return {};
    return {sampled, rank};
}

}  // namespace gputext
