#include "extension/operators/scored_items.hpp"
#include "extension/server/computation.hpp"

#include <cmath>

namespace gputext {

Datum answer_with_scores(const InnerQuery& query, ScoredItems& work, SetCall& set) {
    run_vector_query(query, work.items);
    work.check();
    set.times().lap("reading rows");
    run_computation(work, set.times(), set.context());
    work.items.release_vectors();
    for (std::size_t row = 0; row < work.items.size(); ++row) {
        if (row % 1024 == 0) CHECK_FOR_INTERRUPTS();
        Datum values[2] = {work.items.id(row), Float8GetDatum(work.scores[row])};
        bool nulls[2] = {false, std::isnan(work.scores[row])};
        set.put(values, nulls);
    }
    work.items.release();
    set.end();
    return static_cast<Datum>(0);
}

}  // namespace gputext
