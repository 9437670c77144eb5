#include "cpp/embeddings/word_movers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include "cpp/base/lane_sums.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/embeddings/detail/optimal_transport.hpp"

namespace gputext {
namespace {

/// Costs are scaled to at most about 2^kCostBits, which stands for twice the longest vector's
/// length.
constexpr int kCostBits = 29;
static_assert(kTransportCostEnd >= std::uint32_t{2} << kCostBits);

constexpr float kShortestModel = 0x1p-40f;

/// Costs that a thread computes between two looks, at most some of them.
constexpr std::size_t kCostsOfStep = 4096;

/// Appends (word, count) of sorted tokens, each count times `unit`.
class Counted {
public:
    Counted(std::span<const std::uint32_t> sorted, std::uint32_t unit)
        : sorted_(sorted), unit_(unit) {}

    /// Whether no word is left.
    bool end() const { return at_ == sorted_.size(); }
    std::uint32_t word() const { return sorted_[at_]; }
    /// The mass of word(), which it passes.
    std::uint32_t take_mass() {
        const std::size_t begin = at_;
        while (at_ < sorted_.size() && sorted_[at_] == sorted_[begin]) ++at_;
        return static_cast<std::uint32_t>(at_ - begin) * unit_;
    }

private:
    std::span<const std::uint32_t> sorted_;
    std::uint32_t unit_;
    std::size_t at_ = 0;
};

/// To the nearest integer, ties to even, of numbers from 0 to 2^51.
double rounded(double x) {
    constexpr double shift = 0x1p52;
    return (x + shift) - shift;
}

/// Computes one pair after the other on one thread.
class PairMover {
public:
    PairMover(const MoversParameters& parameters, const WordVectors& vectors, int scale)
        : parameters_(parameters),
          vectors_(vectors),
          unit_(std::ldexp(1.0, scale)),
          squared_distance_(lane_squared_distance_by(parameters.simd)),
          solver_(parameters.simd) {}

    Status measure(std::span<const WordMass> first, std::span<const WordMass> second, Stop stop,
                   std::uint64_t& cost) {
        cost = 0;
        if (first.empty()) return {};
        return parameters_.method == MoversMethod::exact ? exact(first, second, stop, cost)
                                                         : relaxed(first, second, stop, cost);
    }

private:
    std::uint32_t cost_of(const WordMass& a, const WordMass& b) const {
        const float square =
            squared_distance_(vectors_.of(a.word), vectors_.of(b.word), vectors_.dimensions);
        return static_cast<std::uint32_t>(rounded(double{std::sqrt(square)} * unit_));
    }

    Status exact(std::span<const WordMass> first, std::span<const WordMass> second, Stop stop,
                 std::uint64_t& cost);
    Status relaxed(std::span<const WordMass> first, std::span<const WordMass> second, Stop stop,
                   std::uint64_t& cost);

    const MoversParameters& parameters_;
    const WordVectors& vectors_;
    double unit_;  // a power of two
    LaneSum squared_distance_;
    OptimalTransport solver_;
    std::vector<std::uint32_t> supplies_, demands_, nearest_;
};

Status PairMover::exact(std::span<const WordMass> first, std::span<const WordMass> second,
                        Stop stop, std::uint64_t& cost) {
    // A search begins at each row: they are the fewer ones.
    if (first.size() > second.size()) std::swap(first, second);
    std::uint32_t* const costs = solver_.begin(first.size(), second.size());
    std::size_t since_look = 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
        for (std::size_t j = 0; j < second.size(); ++j)
            costs[i * solver_.stride() + j] = cost_of(first[i], second[j]);
        since_look += second.size();
        if (since_look < kCostsOfStep) continue;
        since_look = 0;
        if (stop()) return Status::cancelled();
    }
    supplies_.clear();
    demands_.clear();
    for (const WordMass& mass : first) supplies_.push_back(mass.mass);
    for (const WordMass& mass : second) demands_.push_back(mass.mass);
    return solver_.solve(supplies_, demands_, stop, cost);
}

Status PairMover::relaxed(std::span<const WordMass> first, std::span<const WordMass> second,
                          Stop stop, std::uint64_t& cost) {
    nearest_.assign(second.size(), UINT32_MAX);
    std::uint64_t forth = 0, back = 0;
    std::size_t since_look = 0;
    for (const WordMass& from : first) {
        std::uint32_t least = UINT32_MAX;
        for (std::size_t j = 0; j < second.size(); ++j) {
            const std::uint32_t here = cost_of(from, second[j]);
            least = std::min(least, here);
            nearest_[j] = std::min(nearest_[j], here);
        }
        forth += std::uint64_t{from.mass} * least;
        since_look += second.size();
        if (since_look < kCostsOfStep) continue;
        since_look = 0;
        if (stop()) return Status::cancelled();
    }
    for (std::size_t j = 0; j < second.size(); ++j)
        back += std::uint64_t{second[j].mass} * nearest_[j];
    cost = std::max(forth, back);
    return {};
}

Status too_large(std::size_t first, std::size_t second, std::uint64_t bytes) {
    constexpr std::uint64_t megabyte = std::uint64_t{1} << 20;
    return {ErrorCode::invalid_argument,
            "the exact distance of texts with " + std::to_string(first) + " and " +
                std::to_string(second) + " different words takes " +
                std::to_string((bytes + megabyte - 1) / megabyte) + " MB",
            "Raise gputext.host_memory_limit, or use method => 'relaxed'."};
}

Status broken_pair(const char* what) {
    return {ErrorCode::invalid_argument, what};
}

/// Computes the distances of all pairs.
class Movement {
public:
    Movement(const MoversParameters& parameters, const WordVectors& vectors, const TextPairs& pairs,
             int scale, Execution& execution)
        : parameters_(parameters),
          vectors_(vectors),
          pairs_(pairs),
          scale_(scale),
          execution_(execution),
          movers_(execution.threads()) {}

    Result<std::vector<double>> distances() {
        GPUTEXT_TRY(sort_out());
        distances_.resize(pairs_.size());
        GPUTEXT_TRY(measure_usual());
        for (const std::size_t pair : large_) {
            // Large pairs are computed one at a time, so that only one takes memory.
            movers_.clear();
            movers_.resize(1);
            GPUTEXT_TRY(measure(pair, 0));
            GPUTEXT_TRY(execution_.checkpoint());
        }
        return std::move(distances_);
    }

private:
    std::uint64_t bytes_of(std::size_t pair) const {
        return transport_bytes(pairs_.side(pair, 0).size(), pairs_.side(pair, 1).size());
    }

    /// Finds the pairs that are too large for each thread to have one.
    Status sort_out() {
        if (parameters_.method == MoversMethod::relaxed) return {};
        for (std::size_t pair = 0; pair < pairs_.size(); ++pair) {
            if (pair % 65536 == 0 && execution_.stop_requested()) return Status::cancelled();
            const std::uint64_t bytes = bytes_of(pair);
            if (bytes > parameters_.memory_limit)
                return too_large(pairs_.side(pair, 0).size(), pairs_.side(pair, 1).size(), bytes);
            if (bytes > parameters_.memory_limit / execution_.threads()) large_.push_back(pair);
        }
        return {};
    }

    Status measure_usual() {
        constexpr std::size_t step = 64;
        const std::size_t steps = (pairs_.size() + step - 1) / step;
        execution_.begin_phase("moving words", steps + large_.size());
        return execution_.parallel_for(steps, [&](std::size_t index, unsigned worker) -> Status {
            const std::size_t end = std::min(pairs_.size(), (index + 1) * step);
            auto next = std::lower_bound(large_.begin(), large_.end(), index * step);
            for (std::size_t pair = index * step; pair < end; ++pair) {
                if (next != large_.end() && *next == pair) {
                    ++next;
                    continue;
                }
                if (execution_.stop_requested()) return Status::cancelled();
                GPUTEXT_TRY(measure(pair, worker));
            }
            return {};
        });
    }

    Status measure(std::size_t pair, unsigned worker) {
        if (!movers_[worker])
            movers_[worker] = std::make_unique<PairMover>(parameters_, vectors_, scale_);
        std::uint64_t cost = 0;
        Status status = movers_[worker]->measure(pairs_.side(pair, 0), pairs_.side(pair, 1),
                                                 execution_.stop(), cost);
        distances_[pair] = movers_distance(cost, pairs_.totals[pair], scale_);
        return status;
    }

    const MoversParameters& parameters_;
    const WordVectors& vectors_;
    const TextPairs& pairs_;
    int scale_;
    Execution& execution_;
    std::vector<std::unique_ptr<PairMover>> movers_;  // of each thread
    std::vector<std::size_t> large_;                  // pairs, ascending
    std::vector<double> distances_;
};

}  // namespace

std::uint32_t append_masses(std::span<std::uint32_t> first_tokens,
                            std::span<std::uint32_t> second_tokens, std::vector<WordMass>& first,
                            std::vector<WordMass>& second) {
    if (first_tokens.empty() || second_tokens.empty()) return 0;
    std::sort(first_tokens.begin(), first_tokens.end());
    std::sort(second_tokens.begin(), second_tokens.end());
    const auto total = static_cast<std::uint32_t>(
        std::lcm<std::uint64_t>(first_tokens.size(), second_tokens.size()));
    Counted a(first_tokens, total / static_cast<std::uint32_t>(first_tokens.size()));
    Counted b(second_tokens, total / static_cast<std::uint32_t>(second_tokens.size()));
    while (!a.end() || !b.end()) {
        const std::uint32_t word = b.end()   ? a.word()
                                   : a.end() ? b.word()
                                             : std::min(a.word(), b.word());
        const std::uint32_t from = !a.end() && a.word() == word ? a.take_mass() : 0;
        const std::uint32_t to = !b.end() && b.word() == word ? b.take_mass() : 0;
        if (from > to) first.push_back({word, from - to});
        if (to > from) second.push_back({word, to - from});
    }
    return total;
}

namespace {

/// Of one of the pairs
Status check_text_pair(const TextPairs& pairs, std::size_t pair, std::size_t words) {
    std::uint64_t sums[2] = {};
    for (unsigned which = 0; which < 2; ++which) {
        const std::uint64_t begin = pairs.begins[2 * pair + which];
        const std::uint64_t end = pairs.begins[2 * pair + which + 1];
        if (end < begin || end > pairs.masses.size() || end - begin > kMostPairTokens)
            return broken_pair("a text outside its pair");
        const auto side = pairs.masses.subspan(begin, end - begin);
        for (std::size_t i = 0; i < side.size(); ++i) {
            if (side[i].word >= words || side[i].mass == 0 ||
                (i > 0 && side[i].word <= side[i - 1].word))
                return broken_pair("a word that its pair cannot have");
            sums[which] += side[i].mass;
        }
    }
    if (sums[0] != sums[1] || sums[0] > pairs.totals[pair])
        return broken_pair("a pair of different masses");
    return {};
}

}  // namespace

Status check_text_pairs(const TextPairs& pairs, std::size_t words, Execution& execution) {
    if (pairs.begins.size() != 2 * pairs.size() + 1 || pairs.begins.front() != 0 ||
        pairs.begins.back() != pairs.masses.size())
        return broken_pair("masses outside the pairs");
    constexpr std::size_t step = 4096;
    return execution.parallel_for(
        (pairs.size() + step - 1) / step, [&](std::size_t task, unsigned) -> Status {
            const std::size_t end = std::min(pairs.size(), (task + 1) * step);
            for (std::size_t pair = task * step; pair < end; ++pair)
                GPUTEXT_TRY(check_text_pair(pairs, pair, words));
            return {};
        });
}

Result<int> movers_scale(const WordVectors& vectors, Execution& execution) {
    const Result<float> longest = longest_vector(vectors, execution);
    if (!longest.ok()) return longest.status();
    if (*longest == 0) return 0;
    if (*longest < kShortestModel)
        return Status(ErrorCode::invalid_argument,
                      "the longest vector of the model is shorter than 2^-40",
                      "Multiply the vectors by a large number.");
    int exponent = 0;
    std::frexp(2 * *longest, &exponent);  // twice the longest is below 2^exponent
    return kCostBits - exponent;
}

double movers_distance(std::uint64_t cost, std::uint32_t total, int scale) {
    if (total == 0) return std::numeric_limits<double>::quiet_NaN();
    return std::ldexp(static_cast<double>(cost) / static_cast<double>(total), -scale);
}

std::uint64_t transport_bytes(std::size_t first_words, std::size_t second_words) {
    return OptimalTransport::bytes(std::min(first_words, second_words),
                                   std::max(first_words, second_words));
}

Result<std::vector<double>> word_movers_distances(const MoversParameters& parameters,
                                                  const WordVectors& vectors,
                                                  const TextPairs& pairs, Execution& execution) {
    const Result<int> scale = movers_scale(vectors, execution);
    if (!scale.ok()) return scale.status();
    return Movement(parameters, vectors, pairs, *scale, execution).distances();
}

}  // namespace gputext
