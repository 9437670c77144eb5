// extension/queries/bundle_plan.hpp - lets the parallel workers of an inner query pack its rows
//
// PostgreSQL charges a plan for each row that a worker hands to the session, so that it reads a
// whole table in the session alone, and a worker that did hand on each row would save nothing.
// Below the Gather node of a plan made for it, a custom node packs the rows of a worker in bundles
// (row_bundle.hpp), or has them reduced there (reduced_rows.hpp). A million rows with a vector out
// of line came to the session in 76 to 139 ms by 8 workers, where its own scan took 143 to 227
// (bench/sql_nearest on 16 cores, 2026-11-25).

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/params.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
}

#include <span>

#include "extension/queries/executed_rows.hpp"
#include "extension/queries/row_bundle.hpp"
#include "extension/queries/row_reducer.hpp"

namespace gputext {

/// One worker saves no time: beside it the session spends on taking rows out of the queue what it
/// saves by reading fewer. For a million short rows the session took 1.04 s of a processor with one
/// worker and 1.04 s without (means of 5 pairs), and the query ended later with it in 9 of 10 pairs
/// (two cores that other work kept busy, 2026-11-26).
inline constexpr unsigned kFewestBundlers = 2;

/// Fewer rows of a plan that hands on most of what it reads are handed on in less time than workers
/// take to start.
inline constexpr double kFewestBundled = 20000;

/// Makes the node known: once in a session or a worker.
void register_bundle_node();

/// A plan whose result is bundles, and the columns that rows in them have.
struct BundlePlan {
    PlannedStmt* statement = nullptr;
    TupleDesc columns = nullptr;
    int value = -1;  // as in BundledRows

    bool known() const { return statement != nullptr; }
    int workers() const;  // that it asks for
};

/// A statement that only reads, as the planner takes it.
struct PlannedQuery {
    const Query* query;
    const char* sql;
    int cursor_options;
    ParamListInfo parameters;
};

/// A plan of the statement whose workers bundle its rows, in the memory that is current. Not known
/// where that is of no use: `plain`, its usual plan, gives fewer rows than the fewest, there are
/// not as many workers to be had as the fewest that are worth it, or the planner does not let
/// workers do all of it. The order of rows is that of their coming.
BundlePlan bundle_plan(const PlannedQuery& query, const PlannedStmt& plain, const BundledRows& rows,
                       unsigned fewest_workers = kFewestBundlers,
                       double fewest_rows = kFewestBundled);

/// Has the processes of the plan reduce its rows, in place of bundling them: the result is a
/// ReducerReport of each process, in a value of type bytea. `files` are descriptors of this
/// session, one for each process, which the reducers' output goes to.
void reduce_rows_of(const BundlePlan& plan, const RowReduction& reduction,
                    std::span<const int> files);

/// Lets the executor run the plan to its end, as SPI runs a statement that only reads. `done` says
/// what the workers have done with rows, in a message of level DEBUG1.
void run_with_workers(const BundlePlan& plan, const char* sql, const char* done,
                      ExecutedRows& rows);

}  // namespace gputext
