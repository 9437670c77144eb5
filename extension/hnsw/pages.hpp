// extension/hnsw/pages.hpp - the pages of an index of pgvector's access method hnsw, in the server
//
// Where a page has what is in format.hpp and layout.hpp, which need no server.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/relcache.h"
}

#include "cpp/link/file_parts.hpp"
#include "extension/hnsw/layout.hpp"

namespace gputext::hnsw {

/// What writing pages took, in milliseconds.
struct PageTimes {
    double placing = 0, sharing = 0;
    // Of the session, without its workers
    BlockNumber pages = 0;
    double filling = 0, logging = 0, writing = 0;
};

/// Parallel workers that may write pages, too.
struct PageWorkers {
    int most = 0;
    FileParts values;         // of the elements, which workers read
    bool concurrent = false;  // IndexInfo::ii_Concurrent
};

/// Writes all pages of an index that has none, and logs them if the index is logged. The same
/// elements give the same bytes, but for the places in WAL that logged pages have. The pages do not
/// go through shared buffers, and are written once, but for the last one of each segment. Requires
/// that no other session uses the index; allocates 6 bytes an element, and where there are workers
/// the bytes of all but the values. Reports the rows of the pages written, of all rows, as progress
/// of CREATE INDEX. Errors: values too large for a page; more pages than an index may have;
/// whatever extending the index raises, such as that the disk is full.
PageTimes write_pages(Relation index, const Elements& elements, const PageWorkers& workers);

}  // namespace gputext::hnsw
