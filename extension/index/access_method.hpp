// extension/index/access_method.hpp - what the server calls of the access method gputext
//
// handler.cpp tells the server of these functions. Each section is a source file.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/relscan.h"
#include "access/sdir.h"
#include "access/skey.h"
#include "nodes/execnodes.h"
#include "nodes/tidbitmap.h"
#include "storage/shm_toc.h"
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

/// The part of a table's rows that is expected to be near a document.
inline constexpr double kNearSelectivity = 1e-5;

// ---- build.cpp ----

/// Time: about that of reading the table and 2 us for 2,000 characters, on all processes. Memory:
/// at most 4 MB a process for each model, and 15 MB for the sample that models are learned from.
IndexBuildResult* build_index(Relation table, Relation index, IndexInfo* info);

/// The pages of an index that has no rows, in the fork from which an unlogged index begins after a
/// crash.
void build_empty_index(Relation index);

/// What pg_stat_progress_create_index shows for a phase.
const char* build_phase_name(int64 phase);

// ---- insert.cpp ----

/// aminsert: adds the sketch of the row's document to a page of its kind, in one record of WAL.
/// About one page is read and locked, a directory page or more when that page is full.
bool insert_row(Relation index, Datum* values, bool* nulls, ItemPointer row, Relation table,
                IndexUniqueCheck, bool, IndexInfo* info);

// ---- scan.cpp ----

IndexScanDesc begin_scan(Relation index, int keys, int order_bys);
void restart_scan(IndexScanDesc scan, ScanKey keys, int key_count, ScanKey order_bys,
                  int order_by_count);
bool next_row(IndexScanDesc scan, ScanDirection direction);
int64 add_rows_to_bitmap(IndexScanDesc scan, TIDBitmap* bitmap);
void end_scan(IndexScanDesc scan);

// ---- vacuum.cpp ----

/// Removes the sketches of rows that the callback names. Reads every page once, and locks those for
/// itself that have such rows. A page without sketches may serve another length class afterwards; the
/// file does not shrink, which REINDEX does.
IndexBulkDeleteResult* remove_rows(IndexVacuumInfo* info, IndexBulkDeleteResult* result,
                                   IndexBulkDeleteCallback is_dead, void* state);

/// Where remove_rows() was not called, as no row is dead, counts pages and sketches by the
/// directory: reads only pages that are not full.
IndexBulkDeleteResult* end_vacuum(IndexVacuumInfo* info, IndexBulkDeleteResult* result);

}  // namespace gputext::index
