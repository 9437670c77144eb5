// tests/module/hnsw_walk.cpp - reads all of an HNSW index, whoever built it, and checks that
//
// Only the module of the tests has this function. Tests create the SQL function, as a superuser
// may.

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "funcapi.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <cstring>

#include "extension/hnsw/format.hpp"
#include "extension/hnsw/layout.hpp"

namespace gputext::hnsw {
namespace {

constexpr unsigned kMostLayers = 256;

/// What is known of an item of a page that is an element.
struct Known {
    bool linked;   // by a neighbor in layer 0
    bool reached;  // from the entry point in layer 0
};

struct Facts {
    std::int64_t elements = 0, deleted = 0, without_rows = 0, rows = 0, unused_pages = 0;
    int highest_level = -1;
    Datum links[kMostLayers] = {};  // bigint, by layer
    std::int64_t unlinked = 0, unreached = 0;
    bool laid_out = true;
};

[[noreturn]] void raise(Relation index, const char* what) {
    ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
                    errmsg("index \"%s\": %s", RelationGetRelationName(index), what)));
    pg_unreachable();
}

/// What the page says, if it is a meta page of the format that is known here; else null.
const MetaPage* known_meta(Page page) {
    const bool is_one = !PageIsNew(page) && PageGetSpecialSize(page) == sizeof(PageTrailer) &&
                        trailer(page)->page_id == kPageId && meta(page)->magic == kMagic &&
                        meta(page)->version == kMetaVersion;
    const auto* const end = reinterpret_cast<const char*>(meta(page) + 1);
    return is_one && reinterpret_cast<PageHeader>(page)->pd_lower == end - page ? meta(page)
                                                                                : nullptr;
}

/// The most neighbors in a layer.
std::size_t most_neighbors(unsigned m, unsigned layer) {
    return layer == 0 ? 2 * std::size_t{m} : m;
}

void* allocate(std::size_t count, std::size_t size) {
    return MemoryContextAllocExtended(CurrentMemoryContext, std::max<std::size_t>(count, 1) * size,
                                      MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

struct Walk {
    explicit Walk(Relation opened) : index(opened), blocks(RelationGetNumberOfBlocks(opened)) {}

    Relation index;
    BlockNumber blocks;
    char* pages = nullptr;          // all, as they were when they were read
    std::size_t* begins = nullptr;  // of each block, the number of its first item
    Known* known = nullptr;         // of each item
    bool* used = nullptr;           // of each item: a neighbor tuple that an element has
    MetaPage meta{};
    Facts facts;

    // ---- Pages ----

    Page page(BlockNumber block) const { return pages + std::size_t{block} * BLCKSZ; }

    [[noreturn]] void fail(ItemPointerData at, const char* what) const {
        ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
                        errmsg("index \"%s\", tuple (%u,%u): %s", RelationGetRelationName(index),
                               ItemPointerGetBlockNumberNoCheck(&at),
                               ItemPointerGetOffsetNumberNoCheck(&at), what)));
        pg_unreachable();
    }
    void require(bool holds, ItemPointerData at, const char* otherwise) const {
        if (!holds) fail(at, otherwise);
    }
    void require_page(bool holds, BlockNumber block, const char* otherwise) const {
        if (!holds)
            ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
                            errmsg("index \"%s\", block %u: %s", RelationGetRelationName(index),
                                   block, otherwise)));
    }

    void read_pages() {
        pages = static_cast<char*>(allocate(blocks, BLCKSZ));
        const BufferAccessStrategy ring = GetAccessStrategy(BAS_BULKREAD);
        for (BlockNumber block = 0; block < blocks; ++block) {
            CHECK_FOR_INTERRUPTS();
            const Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, ring);
            LockBuffer(buffer, BUFFER_LOCK_SHARE);
            std::memcpy(page(block), BufferGetPage(buffer), BLCKSZ);
            UnlockReleaseBuffer(buffer);
        }
        FreeAccessStrategy(ring);
    }

    void check_meta_page() {
        if (blocks < 2) raise(index, "it has fewer than two pages");
        const MetaPage* const found = known_meta(page(kMetaBlock));
        if (found == nullptr) raise(index, "the meta page is of another format");
        meta = *found;
        require_page(meta.m >= 2 && meta.m <= 100, 0, "m is not from 2 to 100");
        require_page(meta.insert_page >= kFirstElementBlock && meta.insert_page < blocks, 0,
                     "the insert page is none of the index");
        require_page(!PageIsNew(page(meta.insert_page)), 0, "the insert page is empty");
        require_page(trailer(page(0))->next == InvalidBlockNumber, 0, "the meta page has a next");
    }

    /// A page that was never written is what a crash can leave of an insert.
    void check_pages() {
        begins = static_cast<std::size_t*>(allocate(blocks + std::size_t{1}, sizeof *begins));
        for (BlockNumber block = kFirstElementBlock; block < blocks; ++block) {
            begins[block + 1] = begins[block];
            if (PageIsNew(page(block))) {
                ++facts.unused_pages;
                continue;
            }
            require_page(PageGetSpecialSize(page(block)) == sizeof(PageTrailer) &&
                             trailer(page(block))->page_id == kPageId,
                         block, "it is no page of an HNSW index");
            begins[block + 1] += PageGetMaxOffsetNumber(page(block));
        }
        BlockNumber in_chain = 0;
        for (BlockNumber block = kFirstElementBlock; block != InvalidBlockNumber;
             block = trailer(page(block))->next) {
            CHECK_FOR_INTERRUPTS();
            require_page(block >= kFirstElementBlock && block < blocks && !PageIsNew(page(block)),
                         block, "the chain of pages leads to none");
            require_page(++in_chain < blocks, block, "the chain of pages is a circle");
        }
        if (kFirstElementBlock + in_chain + facts.unused_pages != blocks)
            raise(index, "pages are missing in the chain");
    }

    // ---- Tuples ----

    bool is_item(ItemPointerData at) const {
        const BlockNumber block = ItemPointerGetBlockNumberNoCheck(&at);
        const OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(&at);
        return block >= kFirstElementBlock && block < blocks && offset >= FirstOffsetNumber &&
               offset <= begins[block + 1] - begins[block];
    }
    /// Requires is_item().
    std::size_t number_of(ItemPointerData at) const {
        return begins[ItemPointerGetBlockNumberNoCheck(&at)] +
               ItemPointerGetOffsetNumberNoCheck(&at) - 1;
    }
    ItemId item(ItemPointerData at) const {
        return PageGetItemId(page(ItemPointerGetBlockNumberNoCheck(&at)),
                             ItemPointerGetOffsetNumberNoCheck(&at));
    }
    template <class Tuple>
    const Tuple* tuple(ItemPointerData at) const {
        return reinterpret_cast<const Tuple*>(page(ItemPointerGetBlockNumberNoCheck(&at)) +
                                              ItemIdGetOffset(item(at)));
    }
    /// The tuple there if it is an element, deleted or not.
    const ElementTuple* element_at(ItemPointerData at) const {
        return is_item(at) && *tuple<std::uint8_t>(at) == kElementTuple ? tuple<ElementTuple>(at)
                                                                        : nullptr;
    }
    const NeighborTuple* neighbors_of(ItemPointerData at) const {
        return tuple<NeighborTuple>(tuple<ElementTuple>(at)->neighbors);
    }

    /// Calls work(place) for all items, or for all elements.
    template <class Work>
    void for_items(const Work& work) const {
        for (BlockNumber block = kFirstElementBlock; block < blocks; ++block) {
            CHECK_FOR_INTERRUPTS();
            const std::size_t count = begins[block + 1] - begins[block];
            for (std::size_t i = 1; i <= count; ++i) {
                ItemPointerData at;
                ItemPointerSet(&at, block, static_cast<OffsetNumber>(i));
                work(at);
            }
        }
    }
    template <class Work>
    void for_elements(const Work& work) const {
        for_items([&](ItemPointerData at) {
            const ElementTuple* const element = element_at(at);
            if (element != nullptr && !element->deleted) work(at, *element);
        });
    }

    void check_items() const {
        for_items([&](ItemPointerData at) {
            const ItemId found = item(at);
            require(ItemIdIsNormal(found), at, "the item is in no use");
            const unsigned offset = ItemIdGetOffset(found), length = ItemIdGetLength(found);
            require(offset == MAXALIGN(offset) && length == MAXALIGN(length) &&
                        offset >= SizeOfPageHeaderData &&
                        offset + length <= BLCKSZ - sizeof(PageTrailer),
                    at, "the item lies beside its page");
            const std::uint8_t type = *tuple<std::uint8_t>(at);
            require(type == kElementTuple || type == kNeighborTuple, at, "unknown type of tuple");
            require(length >= (type == kElementTuple ? sizeof(ElementTuple) + sizeof(VectorHeader)
                                                     : sizeof(NeighborTuple)),
                    at, "the tuple is too small");
        });
    }

    /// Types of dense vectors begin with a header that says their dimensions.
    void check_value(ItemPointerData at, const ElementTuple& element, std::size_t bytes) const {
        const auto* const header = reinterpret_cast<const VectorHeader*>(&element + 1);
        const std::size_t size = VARSIZE_ANY(header);
        require(element_size(size) == ItemIdGetLength(item(at)), at,
                "the element has another size than its value");
        if (bytes == 0) return;
        require(static_cast<std::uint32_t>(header->dimensions) == meta.dimensions, at,
                "the value has other dimensions than the index");
        require(size == sizeof *header + bytes * meta.dimensions, at,
                "the value has another size than its dimensions");
        require(header->unused == 0, at, "the header of the value is not clean");
    }

    void check_rows(ItemPointerData at, const ElementTuple& element) {
        std::size_t count = 0;
        while (count < kMostRows && ItemPointerIsValid(&element.rows[count])) ++count;
        for (std::size_t i = count; i < kMostRows; ++i)
            require(!ItemPointerIsValid(&element.rows[i]), at, "a row follows one that is none");
        facts.rows += static_cast<std::int64_t>(count);
        if (element.deleted)
            require(count == 0, at, "a deleted element has rows");
        else if (count == 0)
            ++facts.without_rows;
    }

    void check_element(ItemPointerData at, const ElementTuple& element, std::size_t bytes) {
        require(element.deleted <= 1, at, "it is neither deleted nor not");
        if (!element.deleted) check_value(at, element, bytes);
        check_rows(at, element);
        require(is_item(element.neighbors), at, "the element has no neighbor tuple");
        const std::size_t number = number_of(element.neighbors);
        const auto* const neighbors = tuple<NeighborTuple>(element.neighbors);
        require(neighbors->type == kNeighborTuple, at, "the element has no neighbor tuple");
        require(!used[number], at, "two elements have the same neighbor tuple");
        used[number] = true;
        require(neighbors->version == element.version, at,
                "element and neighbors have different versions");
        require(neighbors->count == neighbor_places(meta.m, element.level), at,
                "the number of places does not go with the level");
        require(ItemIdGetLength(item(element.neighbors)) == neighbors_size(meta.m, element.level),
                at, "the neighbor tuple has another size than its places");
        if (element.deleted) {
            ++facts.deleted;
        } else {
            ++facts.elements;
            facts.highest_level = std::max(facts.highest_level, int{element.level});
        }
    }

    void check_tuples() {
        const char* const type = format_type_be(TupleDescAttr(index->rd_att, 0)->atttypid);
        const std::size_t bytes = std::strstr(type, "halfvec") != nullptr     ? 2
                                  : std::strstr(type, "sparsevec") != nullptr ? 0
                                  : std::strstr(type, "vector") != nullptr    ? 4
                                                                              : 0;
        check_items();
        known = static_cast<Known*>(allocate(begins[blocks], sizeof *known));
        used = static_cast<bool*>(allocate(begins[blocks], sizeof *used));
        for_items([&](ItemPointerData at) {
            if (const ElementTuple* const element = element_at(at))
                check_element(at, *element, bytes);
        });
        for_items([&](ItemPointerData at) {
            if (element_at(at) == nullptr)
                require(used[number_of(at)], at, "neighbors of no element");
        });
    }

    // ---- The graph ----

    void check_links(ItemPointerData at, const ElementTuple& element, unsigned layer) {
        const ItemPointerData* const places =
            neighbor_places(neighbors_of(at)) + first_neighbor(meta.m, element.level, layer);
        const std::size_t most = most_neighbors(meta.m, layer);
        std::size_t count = 0;
        while (count < most && ItemPointerIsValid(&places[count])) ++count;
        for (std::size_t i = 0; i < most; ++i) {
            ItemPointerData to = places[i];
            if (i >= count) {
                require(!ItemPointerIsValid(&to), at, "a neighbor follows one that is none");
                continue;
            }
            const ElementTuple* const neighbor = element_at(to);
            require(neighbor != nullptr, at, "a neighbor is no element");
            require(!neighbor->deleted, at, "a neighbor is deleted");
            require(neighbor->level >= layer, at, "a neighbor is not in the layer");
            require(!ItemPointerEquals(&to, &at), at, "an element is its own neighbor");
            for (std::size_t before = 0; before < i; ++before) {
                ItemPointerData other = places[before];
                require(!ItemPointerEquals(&to, &other), at, "a neighbor comes twice");
            }
            if (layer == 0) known[number_of(to)].linked = true;
        }
        facts.links[layer] = Int64GetDatum(DatumGetInt64(facts.links[layer]) + count);
    }

    void check_entry() const {
        ItemPointerData at;
        ItemPointerSet(&at, meta.entry_block, meta.entry_offset);
        if (facts.highest_level < 0) {
            require_page(meta.entry_block == InvalidBlockNumber && meta.entry_level == -1, 0,
                         "an index without elements has an entry point");
            return;
        }
        const ElementTuple* const entry = element_at(at);
        require_page(entry != nullptr && !entry->deleted, 0, "the entry point is no element");
        require(entry->level == meta.entry_level, at, "the entry point has another level");
        require(entry->level == facts.highest_level, at,
                "the entry point has not the highest level");
    }

    /// Breadth first, from the entry point.
    void reach() {
        if (facts.elements == 0) return;
        auto* const queue = static_cast<ItemPointerData*>(
            allocate(static_cast<std::size_t>(facts.elements), sizeof(ItemPointerData)));
        std::size_t end = 0;
        const auto reach_one = [&](ItemPointerData at) {
            if (known[number_of(at)].reached) return;
            known[number_of(at)].reached = true;
            queue[end++] = at;
        };
        ItemPointerData entry;
        ItemPointerSet(&entry, meta.entry_block, meta.entry_offset);
        reach_one(entry);
        for (std::size_t begin = 0; begin < end; ++begin) {
            CHECK_FOR_INTERRUPTS();
            const ItemPointerData at = queue[begin];
            const unsigned level = tuple<ElementTuple>(at)->level;
            const ItemPointerData* const places =
                neighbor_places(neighbors_of(at)) + first_neighbor(meta.m, level, 0);
            for (std::size_t i = 0; i < most_neighbors(meta.m, 0); ++i)
                if (ItemPointerIsValid(&places[i])) reach_one(places[i]);
        }
    }

    void check_graph() {
        for_elements([&](ItemPointerData at, const ElementTuple& element) {
            for (unsigned layer = 0; layer <= element.level; ++layer)
                check_links(at, element, layer);
        });
        check_entry();
        reach();
        for_elements([&](ItemPointerData at, const ElementTuple&) {
            facts.unlinked += !known[number_of(at)].linked;
            facts.unreached += !known[number_of(at)].reached;
        });
    }

    void check_rows_are_distinct() const {
        auto* const rows = static_cast<ItemPointerData*>(
            allocate(static_cast<std::size_t>(facts.rows), sizeof(ItemPointerData)));
        std::size_t count = 0;
        for_elements([&](ItemPointerData, const ElementTuple& element) {
            for (std::size_t i = 0; i < kMostRows && ItemPointerIsValid(&element.rows[i]); ++i)
                rows[count++] = element.rows[i];
        });
        const auto compare = [](ItemPointerData a, ItemPointerData b) {
            return ItemPointerCompare(&a, &b);
        };
        std::sort(rows, rows + count, [&](const ItemPointerData& a, const ItemPointerData& b) {
            return compare(a, b) < 0;
        });
        for (std::size_t i = 1; i < count; ++i)
            if (compare(rows[i - 1], rows[i]) == 0)
                ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
                                errmsg("index \"%s\" has row (%u,%u) twice",
                                       RelationGetRelationName(index),
                                       ItemPointerGetBlockNumberNoCheck(&rows[i]),
                                       ItemPointerGetOffsetNumberNoCheck(&rows[i]))));
    }

    /// Whether all tuples lie where a build puts them, one element after the other.
    void compare_with_layout() {
        TupleSizes sizes{0, meta.m};
        Placer placer(sizes);
        for_items([&](ItemPointerData at) {
            const ElementTuple* const element = element_at(at);
            if (element == nullptr) return;
            if (sizes.element == 0) {
                sizes.element = ItemIdGetLength(item(at));
                placer = Placer(sizes);
            }
            ItemPointerData place = placer.next(element->level), neighbors = element->neighbors,
                            behind = sizes.neighbors_behind(place, element->level);
            if (!ItemPointerEquals(&at, &place) || !ItemPointerEquals(&neighbors, &behind))
                facts.laid_out = false;
        });
        if (placer.block() + 1 != blocks) facts.laid_out = false;
    }

    void all() {
        read_pages();
        check_meta_page();
        check_pages();
        check_tuples();
        compare_with_layout();
        check_graph();
        check_rows_are_distinct();
    }
};

}  // namespace
}  // namespace gputext::hnsw

using namespace gputext::hnsw;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_hnsw_walk);

/// (index regclass): one row. Raises an error for what no HNSW index may have.
///   dimensions, m, ef_construction integer - as the meta page has them
///   pages bigint, unused_pages bigint      - all; of these, those that were never written
///   elements, deleted, without_rows bigint - those not deleted; deleted; of the first, without
///   rows rows bigint                            - of the table, which all elements have
///   highest_level integer                  - also that of the entry point; -1: no elements
///   links bigint[]                         - in each layer, from layer 0
///   laid_out boolean                       - whether all tuples lie where a build puts them
///   unlinked, unreached bigint             - elements that no element links to in layer 0; that
///                                            are not reached from the entry point in layer 0
PGDLLEXPORT Datum gputext_hnsw_walk(PG_FUNCTION_ARGS) {
    TupleDesc columns;
    if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE)
        ereport(ERROR, (errmsg("the function returns a row")));
    const Relation index = index_open(PG_GETARG_OID(0), AccessShareLock);
    Walk walk(index);
    walk.all();
    index_close(index, AccessShareLock);

    Facts& facts = walk.facts;
    ArrayType* const links =
        construct_array(facts.links, facts.highest_level + 1, INT8OID, sizeof(std::int64_t),
                        FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
    Datum values[14] = {Int32GetDatum(static_cast<std::int32_t>(walk.meta.dimensions)),
                        Int32GetDatum(walk.meta.m),
                        Int32GetDatum(walk.meta.ef_construction),
                        Int64GetDatum(walk.blocks),
                        Int64GetDatum(facts.unused_pages),
                        Int64GetDatum(facts.elements),
                        Int64GetDatum(facts.deleted),
                        Int64GetDatum(facts.without_rows),
                        Int64GetDatum(facts.rows),
                        Int32GetDatum(facts.highest_level),
                        PointerGetDatum(links),
                        BoolGetDatum(facts.laid_out),
                        Int64GetDatum(facts.unlinked),
                        Int64GetDatum(facts.unreached)};
    bool nulls[14] = {};
    if (columns->natts != 14) ereport(ERROR, (errmsg("the row has 14 columns")));
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls)));
}
}
