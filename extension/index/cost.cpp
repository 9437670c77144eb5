#include "extension/index/cost.hpp"

extern "C" {
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"
}

#include <algorithm>

namespace gputext::index {
namespace {

/// Of a document whose lengths are not known: the part of the pages whose lengths allow the rate
/// (measured 0.10 to 0.15 of abstracts and of program files at a threshold of 0.05; documents of
/// one length are all read).
constexpr double kPagesRead = 0.15;

/// The part of the rows whose sketches do not exclude them: these are fetched and rechecked. Less
/// of abstracts and programs, more of texts in few letters (docs/near-duplicate-index.md).
constexpr double kRowsLeft = 1e-4;

/// In units of cpu_operator_cost (about 50 ns): to prepare a search, and to look at a sketch, of
/// which letters leave few for the bigrams.
constexpr double kPrepareOperators = 100, kSketchOperators = 0.05;

}  // namespace

void estimate_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup_cost,
                   Cost* total_cost, Selectivity* selectivity, double* correlation, double* pages) {
    const IndexOptInfo* const info = path->indexinfo;
    GenericCosts costs = {};
    genericcostestimate(root, path, loop_count, &costs);

    const double pages_read = std::min<double>(info->pages, 2 + kPagesRead * info->pages);
    const double rows_left = std::min(1.0, kRowsLeft + 1.0 / std::max(info->tuples, 1.0));
    double random_page_cost, sequential_page_cost;
    get_tablespace_page_costs(info->reltablespace, &random_page_cost, &sequential_page_cost);
    // Searches that follow each other find the pages in memory.
    const double page_cost = sequential_page_cost / std::max(1.0, std::min(loop_count, 10.0));

    *startup_cost =
        kPrepareOperators * cpu_operator_cost +
        index_other_operands_eval_cost(root, get_quals_from_indexclauses(path->indexclauses));
    *total_cost = *startup_cost + pages_read * page_cost +
                  kPagesRead * info->tuples * kSketchOperators * cpu_operator_cost +
                  rows_left * info->tuples * cpu_index_tuple_cost;
    *selectivity = std::max(rows_left, costs.indexSelectivity);
    *correlation = 0;
    *pages = pages_read;
}

}  // namespace gputext::index
