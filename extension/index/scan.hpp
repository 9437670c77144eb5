// extension/index/scan.hpp - searches of an index
//
// A search reads the directory, then each page with sketches of a length that a near-duplicate of
// the document may have, and gives the rows whose sketches do not exclude them. The executor
// fetches these rows and evaluates the condition, so that the answer is exact. A search for an
// exclusion constraint gives only rows that it has compared by itself (constraint_check.hpp).

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/relscan.h"
#include "access/sdir.h"
#include "access/skey.h"
#include "nodes/tidbitmap.h"
}

namespace gputext::index {

/// The operators that an index answers, by their numbers in operator classes.
enum Strategy : StrategyNumber {
    // document ~= document: at gputext.near_duplicate_threshold in queries, at the index's
    // threshold
    // in its exclusion constraint
    kNearStrategy = 1,
    kNearQueryStrategy = 2  // document @~ near_duplicate_query
};

IndexScanDesc begin_scan(Relation index, int keys, int order_bys);
void restart_scan(IndexScanDesc scan, ScanKey keys, int key_count, ScanKey order_bys,
                  int order_by_count);
bool next_row(IndexScanDesc scan, ScanDirection direction);
int64 add_rows_to_bitmap(IndexScanDesc scan, TIDBitmap* bitmap);
void end_scan(IndexScanDesc scan);

}  // namespace gputext::index
