// cpp/records/detail/search_cuts.hpp - which values of which fields lead a search to its pairs

#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "cpp/records/linkage_model.hpp"
#include "cpp/records/value_levels.hpp"

namespace gputext {

/// Pairs of a field with a match weight up to this one.
struct CutEvent {
    double weight;
    double pairs;  // of records that have it, about
    bool similar;  // not of equal values
};

/// What a field of two records may say.
struct FieldEvents {
    std::vector<CutEvent> events;  // in any order
    double least = 0;              // no cut is below: what other pairs have at most
    double similar_cost = 0;       // of finding similar values, in pairs
};

/// Puts events of equal values together, as term frequencies give each value a weight of its own.
class EventTiers {
public:
    void add(double weight, double pairs);
    FieldEvents events() const;

private:
    std::map<double, CutEvent> tiers_;
};

/// Adds those of values that differ, for so many pairs of records.
void add_similar_events(const ValueLevels& levels, const FieldModel& model,
                        const FieldWeights& weights, double pairs, FieldEvents& events);

/// The events of a field; O(values log values).
FieldEvents events_of(const ValueLevels& levels, const FieldModel& model,
                      const FieldWeights& weights, const Records& records);

/// A cut for each field, whose sum is at most `sum`, so that the pairs above a cut are fewest,
/// about. None where all such cuts cost as much as `most` pairs. O(fields * events * steps of the
/// sum).
std::optional<std::vector<double>> choose_cuts(std::span<const FieldEvents> fields, double sum,
                                               double most);

}  // namespace gputext
