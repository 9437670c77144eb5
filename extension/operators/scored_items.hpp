// extension/operators/scored_items.hpp - shared code of functions that return a number for each
// item of an inner query

#pragma once

#include "extension/base/postgres.hpp"

#include <vector>

#include "extension/base/failure.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/vector_query.hpp"
#include "extension/server/computation.hpp"

namespace gputext {

/// An operator says how it is computed, here or on a device.
class ScoredItems : public Computation {
public:
    ScoredItems(const IdType& id_type, std::size_t memory_limit)
        : items("item", id_type, memory_limit) {}

    VectorRows items;
    std::vector<double> scores;

    Status take(const DaemonEvent& event, Stop stop) override {
        return take_value(std::get<ScoresAnswer>(event).read(stop), scores);
    }

    /// After the items have been read: raises an error when there is something wrong with them.
    virtual void check() const {}
};

/// Reads the items, computes, and returns a row (id, score) for each of them, in their order; a
/// score that is NaN is null. Ends the call.
Datum answer_with_scores(const InnerQuery& query, ScoredItems& work, SetCall& set);

}  // namespace gputext
