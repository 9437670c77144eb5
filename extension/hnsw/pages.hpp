// extension/hnsw/pages.hpp - the pages of an index of pgvector's access method hnsw, in the server
//
// Where a page has what is in format.hpp and layout.hpp, which need no server.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/relcache.h"
}

#include "extension/hnsw/layout.hpp"

namespace gputext::hnsw {

/// What writing pages took, in milliseconds.
struct PageTimes {
    double placing = 0, waiting = 0, logging = 0, extending = 0;
};

/// Writes all pages of an index that has none, and logs them if the index is logged. The same
/// elements give the same bytes, but for the places in WAL that logged pages have. The pages do not
/// go through shared buffers, and are written once. Requires that no other session uses the index;
/// allocates 6 bytes an element. Reports the rows of the pages written, of all rows, as progress of
/// CREATE INDEX. Errors: values too large for a page; more pages than an index may have; whatever
/// extending the index raises, such as that the disk is full.
PageTimes write_pages(Relation index, const Elements& elements);

}  // namespace gputext::hnsw
