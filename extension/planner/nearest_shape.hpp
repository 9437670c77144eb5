// extension/planner/nearest_shape.hpp - recognises a subquery that gives the nearest items of each
// row of the relations before it, or of one vector or text
//
//   SELECT ... FROM u, LATERAL (SELECT b.id, b.e <=> u.e AS distance FROM base b
//                               WHERE b.size > 3 ORDER BY b.e <=> u.e LIMIT 10) n
//   SELECT ... FROM (SELECT id, e <=> $1 AS distance FROM base
//                    WHERE size > 3 ORDER BY e <=> $1 LIMIT 10) n
//
// The shape. The subquery is sorted by one distance alone, nearest first, of a vector or text of
// its own and one that is made from columns of the outer relations, or depends on no row. Nothing
// else of it depends on the outer relations but keys and what it shows. A key is a condition of its
// WHERE, joined by AND, that an expression of its own columns equals one of outer columns by the
// default equality of their type. Beside a key, all that the item query computes is known to raise
// no errors: the key does not keep rows away from it any more. What it shows may be any expressions
// of its own columns, the outer ones and the distance. It has LIMIT, perhaps OFFSET, which depend
// on no row. It has no grouping, no windows, no DISTINCT, set operations, samples, set-returning
// functions among its columns, locks of rows, volatile functions, or CTEs of its own or from
// outside.
//
// Then all of its rows but for keys, the sort and LIMIT are the same for each outer row: they are
// read once, by the item query, and the nearest of them are found for all outer rows at once.
// Whatever cannot be answered so, such as an outer row without one, is answered by the planner's
// own plan of the subquery. What the subquery shows is computed for the rows that are found alone.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
}

#include "extension/planner/distance_operators.hpp"

namespace gputext {

/// All nodes are in the memory that was current.
struct NearestShape {
    DistanceOperator distance;
    bool item_is_left;  // operand of the operator
    /// Of the item query: its columns, and behind them the vector or text and the keys.
    Query* items;
    int columns;
    /// What the subquery shows, with nulls in the place of columns that nobody uses. An outer
    /// column is a Var of OUTER_VAR whose number is its place in `outer`, from 1; INNER_VAR has the
    /// item query's columns by their numbers, and behind them, at `columns` + 1, the distance.
    List* shown;
    Expr* query;  // the vector or text that items are compared with, in the same form
    List* keys;   // what the item query's keys have to be equal to, in the same form
    Node* limit;
    Node* offset;  // null for none
    /// The outer columns, as Vars of the outer query.
    List* outer;
};

/// Whether a query is sorted as the shape asks and has LIMIT: all others have another shape. Looks
/// up catalogs, and changes nothing.
bool is_sorted_by_distance(const Query* query);

/// Null where the relation, a subquery in FROM, has another shape. Nothing is changed.
NearestShape* nearest_shape_of(const RangeTblEntry* from, const RelOptInfo* relation);

}  // namespace gputext
