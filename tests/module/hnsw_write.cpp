// tests/module/hnsw_write.cpp - writes HNSW indexes of made-up elements, and damages indexes
//
// Only the module of the tests has these functions. Tests create the SQL functions, as a superuser
// may.

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/xlog.h"
#include "catalog/storage.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <ctime>
#include <vector>

#include "cpp/base/counter_random.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/hnsw/pages.hpp"

namespace gputext::hnsw {
namespace {

struct MadeUp {
    HnswGraph graph;
    std::vector<float> values;
    std::vector<std::uint32_t> first_rows;
    std::vector<ItemPointerData> rows;
};

/// Elements in as many layers as those of an index are, with as many neighbors as there is room
/// for, which are not near at all: the next ones in their layer. Element e has 1 + e % 3 rows.
void make_up(MadeUp& made, std::size_t count, std::size_t dimensions, unsigned m) {
    const auto random = [&](std::size_t i) { return random_bits(random_key(0, 1, 1), i); };
    std::vector<std::vector<std::uint32_t>> layers;
    std::vector<std::uint8_t> levels(count);
    for (std::uint32_t element = 0; element < count; ++element) {
        unsigned level = 0;
        for (std::uint64_t limit = UINT64_MAX / m; random(element) < limit; limit /= m) ++level;
        level = std::min(level, highest_level(m));
        levels[element] = static_cast<std::uint8_t>(level);
        if (layers.size() <= level) layers.resize(level + 1);
        for (unsigned layer = 0; layer <= level; ++layer) layers[layer].push_back(element);
    }
    made.graph = HnswGraph(m, std::move(levels));
    for (unsigned layer = 0; layer < layers.size(); ++layer) {
        const std::vector<std::uint32_t>& all = layers[layer];
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto places = made.graph.neighbors(all[i], layer);
            // Far apart in memory, as nearest neighbors are
            const std::size_t step = all.size() / (places.size() + 1) | 1;
            for (std::size_t j = 0; j < std::min(places.size(), all.size() / 2); ++j)
                places[j] = all[(i + 1 + j * step) % all.size()];
        }
    }
    made.values.resize(count * dimensions);
    for (std::size_t i = 0; i < made.values.size(); ++i)
        made.values[i] = static_cast<float>(random(i) >> 40);
    made.first_rows.push_back(0);
    for (std::size_t element = 0; element < count; ++element) {
        for (std::size_t row = 0; row <= element % 3; ++row) {
            ItemPointerData place;
            ItemPointerSet(&place, static_cast<BlockNumber>(made.rows.size() / 100),
                           static_cast<OffsetNumber>(1 + made.rows.size() % 100));
            made.rows.push_back(place);
        }
        made.first_rows.push_back(static_cast<std::uint32_t>(made.rows.size()));
    }
}

double processor_seconds() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace
}  // namespace gputext::hnsw

using namespace gputext;
using namespace gputext::hnsw;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_hnsw_write);
PG_FUNCTION_INFO_V1(gputext_set_page_byte);

/// (index regclass, elements integer, dimensions integer, m integer): double precision. Writes
/// pages in place of those of the index, of whatever access method it is, which is of no use from
/// then on but to gputext_hnsw_walk(). Returns the seconds of processor time that this took.
PGDLLEXPORT Datum gputext_hnsw_write(PG_FUNCTION_ARGS) {
    const Relation index = index_open(PG_GETARG_OID(0), AccessExclusiveLock);
    const auto count = static_cast<std::size_t>(PG_GETARG_INT32(1));
    Vectors values;
    values.rows = count;
    values.dimensions = static_cast<std::size_t>(PG_GETARG_INT32(2));
    const auto m = static_cast<unsigned>(PG_GETARG_INT32(3));
    auto* const made = make_owned<MadeUp>(CurrentMemoryContext);
    attempt_or_raise([=] { make_up(*made, count, values.dimensions, m); });
    values.elements = made->values.data();

    RelationTruncate(index, 0);
    const double begin = processor_seconds();
    const HnswGraphView graph = made->graph.view();
    end_pages(begin_pages(index, {graph, 64, values, made->first_rows, made->rows}, {}), graph);
    // Not up to where the next record will begin, which may be behind the header of a page to come.
    if (RelationNeedsWAL(index)) XLogFlush(XactLastRecEnd);
    const double seconds = processor_seconds() - begin;
    index_close(index, NoLock);
    PG_RETURN_FLOAT8(seconds);
}

/// (index regclass, block bigint, place integer, value integer): integer, the byte of the page that
/// was there. Not logged.
PGDLLEXPORT Datum gputext_set_page_byte(PG_FUNCTION_ARGS) {
    const Relation index = index_open(PG_GETARG_OID(0), AccessExclusiveLock);
    const Buffer buffer = ReadBuffer(index, static_cast<BlockNumber>(PG_GETARG_INT64(1)));
    LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
    auto* const byte = reinterpret_cast<std::uint8_t*>(BufferGetPage(buffer)) + PG_GETARG_INT32(2);
    const std::uint8_t before = *byte;
    *byte = static_cast<std::uint8_t>(PG_GETARG_INT32(3));
    MarkBufferDirty(buffer);
    UnlockReleaseBuffer(buffer);
    index_close(index, NoLock);
    PG_RETURN_INT32(before);
}
}
