#include "cpp/records/detail/search_cuts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gputext {
namespace {

constexpr double kStepsOfBit = 32;
/// What two texts' bounds cost where similar values are searched, in pairs of records looked at.
constexpr double kCostOfTexts = 0.1;

/// A cut and what it costs.
struct Choice {
    double cut, cost;
    std::size_t steps;
};

std::vector<Choice> choices_of(const FieldEvents& field, std::size_t most_steps) {
    std::vector<CutEvent> events = field.events;
    std::ranges::sort(events, std::ranges::greater(), &CutEvent::weight);
    std::vector<Choice> choices;
    const auto add = [&](double cut, double cost) {
        cut = std::max(cut, field.least);
        const double steps = std::ceil(cut * kStepsOfBit);
        if (steps <= static_cast<double>(most_steps))
            choices.push_back({cut, cost, static_cast<std::size_t>(steps)});
    };
    double cost = 0;
    bool similar = false;
    for (const CutEvent& event : events) {
        if (event.weight <= field.least) break;
        add(event.weight, cost);
        cost += event.pairs;
        if (event.similar && !similar) cost += field.similar_cost;
        similar |= event.similar;
    }
    add(field.least, cost);
    return choices;
}

}  // namespace

void EventTiers::add(double weight, double pairs) {
    constexpr double kTiersOfBit = 4;
    if (pairs == 0) return;
    CutEvent& tier = tiers_
                         .try_emplace(std::ceil(weight * kTiersOfBit), CutEvent{weight, 0, false})
                         .first->second;
    tier.weight = std::max(tier.weight, weight);
    tier.pairs += pairs;
}

FieldEvents EventTiers::events() const {
    FieldEvents events;
    for (const auto& [rounded, tier] : tiers_) events.events.push_back(tier);
    return events;
}

void add_similar_events(const ValueLevels& levels, const FieldModel& model,
                        const FieldWeights& weights, double pairs, FieldEvents& events) {
    for (int level = 1; level <= levels.top_level(); ++level)
        if (levels.comparison().condition(level).kind != ConditionKind::exact)
            events.events.push_back({weights.of(level),
                                     model.levels[static_cast<std::size_t>(level)].u * pairs,
                                     true});
}

FieldEvents events_of(const ValueLevels& levels, const FieldModel& model,
                      const FieldWeights& weights, const Records& records) {
    const FieldValues& values = levels.values();
    const std::size_t split = records.two_tables ? records.split : records.rows;
    const std::vector<std::uint32_t> first = values.frequencies(0, split);
    const std::vector<std::uint32_t> second =
        records.two_tables ? values.frequencies(split, records.rows) : first;
    EventTiers tiers;
    for (std::uint32_t value = 0; value < values.count(); ++value) {
        const double pairs = first[value] * static_cast<double>(second[value]);
        tiers.add(weights.of_equal(value, levels.level_of_equal(value)),
                  records.two_tables ? pairs : (pairs - first[value]) / 2);
    }
    FieldEvents events = tiers.events();
    events.least = std::max(0.0, weights.of(0));
    add_similar_events(levels, model, weights, static_cast<double>(records.pairs()), events);
    const double count = values.count();
    if (values.kind() == FieldKind::text) events.similar_cost = kCostOfTexts * count * count;
    return events;
}

std::optional<std::vector<double>> choose_cuts(std::span<const FieldEvents> fields, double sum,
                                               double most) {
    if (sum < 0) return std::nullopt;
    constexpr double kNever = std::numeric_limits<double>::infinity();
    constexpr double kMostSteps = 1 << 16;
    const auto steps = static_cast<std::size_t>(std::min(std::floor(sum * kStepsOfBit), kMostSteps));
    // best[s]: the least cost of the fields before, with cuts of s steps in all
    std::vector<double> best(steps + 1, kNever);
    best[0] = 0;
    std::vector<std::vector<Choice>> choices;
    std::vector<std::vector<std::uint32_t>> chosen;  // [field][steps]
    for (const FieldEvents& field : fields) {
        choices.push_back(choices_of(field, steps));
        std::vector<double> next(steps + 1, kNever);
        std::vector<std::uint32_t>& choice = chosen.emplace_back(steps + 1);
        for (std::uint32_t i = 0; i < choices.back().size(); ++i) {
            const Choice& one = choices.back()[i];
            for (std::size_t s = one.steps; s <= steps; ++s)
                if (best[s - one.steps] + one.cost < next[s]) {
                    next[s] = best[s - one.steps] + one.cost;
                    choice[s] = i;
                }
        }
        best.swap(next);
    }
    auto at = static_cast<std::size_t>(std::ranges::min_element(best) - best.begin());
    if (!(best[at] < most)) return std::nullopt;
    std::vector<double> cuts(fields.size());
    for (std::size_t field = fields.size(); field-- > 0;) {
        const Choice& one = choices[field][chosen[field][at]];
        cuts[field] = one.cut;
        at -= one.steps;
    }
    return cuts;
}

}  // namespace gputext
