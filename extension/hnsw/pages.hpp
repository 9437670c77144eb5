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

/// What processes did with pages, and how long, all processes together: milliseconds.
struct WriteTimes {
    BlockNumber pages = 0;
    double filling = 0, logging = 0, writing = 0;

    void add(const WriteTimes& other);
};

/// What writing the pages of an index took.
struct PageTimes {
    double placing = 0, sharing = 0;  // milliseconds
    WriteTimes before_links, with_links;
};

/// Parallel workers that may write pages, too.
struct PageWorkers {
    int most = 0;
    FileParts values;         // of the elements, which workers read
    bool concurrent = false;  // IndexInfo::ii_Concurrent
    /// Whether they begin before the links are known: where these are found elsewhere, and soon.
    bool early = false;
};

/// The pages of an index, between begin_pages() and end_pages().
struct BegunPages;

/// Begins to write the pages of an index that has none. The links of the graph need not be known
/// yet; all else is. Requires that no other session changes the index. Allocates in the current
/// memory context: 6 bytes an element, and where there are workers the bytes of all but the values.
/// The session may be in parallel mode from then on. Errors: values too large for a page; more pages
/// than an index may have; whatever extending the index raises, such as that the disk is full.
BegunPages* begin_pages(Relation index, const Elements& elements, const PageWorkers& workers);

/// Writes all pages, and logs them if the index is logged. `graph` is that of the elements, with
/// its links. The same elements give the same bytes, but for the places in WAL that logged pages
/// have. The pages do not go through shared buffers, which have none in the end. They are written
/// once, but for the last one of each segment and those that workers have written before the links
/// were known. Reports the rows of the pages written, of all rows, as progress of CREATE INDEX.
PageTimes end_pages(BegunPages* begun, const HnswGraphView& graph);

}  // namespace gputext::hnsw
