#include "extension/hnsw/layout.hpp"

#include <cstring>

namespace gputext::hnsw {

std::size_t value_size(const Vectors& values) {
    return sizeof(VectorHeader) + values.dimensions * gputext::element_size(values.type);
}

TupleSizes tuple_sizes(const Elements& elements) {
    return {element_size(value_size(elements.values)), elements.graph.m()};
}

ItemPointerData TupleSizes::neighbors_behind(ItemPointerData place, unsigned level) const {
    if (side_by_side(level))
        ItemPointerSetOffsetNumber(&place, ItemPointerGetOffsetNumberNoCheck(&place) + 1);
    else
        ItemPointerSet(&place, ItemPointerGetBlockNumberNoCheck(&place) + 1, FirstOffsetNumber);
    return place;
}

// ---- Places ----

void Placer::take(std::size_t size) {
    free_ -= size + sizeof(ItemIdData);
    ++items_;
}

void Placer::turn_page() {
    ++block_;
    free_ = kPageRoom;
    items_ = 0;
}

ItemPointerData Placer::next(unsigned level) {
    const std::size_t neighbors = sizes_.neighbors(level);
    const bool beside = sizes_.side_by_side(level);
    const std::size_t wanted =
        beside ? sizes_.element + neighbors + sizeof(ItemIdData) : sizes_.element;
    // PageGetFreeSpace() leaves out one item identifier; `wanted` has the other one.
    if (free_ < wanted + sizeof(ItemIdData)) turn_page();
    ItemPointerData place;
    ItemPointerSet(&place, static_cast<BlockNumber>(block_), items_ + 1);
    take(sizes_.element);
    if (!beside) turn_page();
    take(neighbors);
    return place;
}

// ---- Pages ----

namespace {

void initialize_page(Page page, BlockNumber next) {
    PageInit(page, BLCKSZ, sizeof(PageTrailer));
    *trailer(page) = {next, 0, kPageId};
}

/// Room for the next tuple of an initialized page, all zeros. Requires that there is room.
char* add_tuple(Page page, std::size_t size) {
    auto* const header = reinterpret_cast<PageHeader>(page);
    header->pd_upper = static_cast<LocationIndex>(header->pd_upper - size);
    auto* const item = reinterpret_cast<ItemId>(page + header->pd_lower);
    ItemIdSetNormal(item, header->pd_upper, static_cast<unsigned>(size));
    header->pd_lower = static_cast<LocationIndex>(header->pd_lower + sizeof(ItemIdData));
    return page + header->pd_upper;
}

void add_element(Page page, std::size_t element, const Elements& elements, const Layout& layout) {
    char* const room = add_tuple(page, layout.sizes.element);
    auto* const tuple = reinterpret_cast<ElementTuple*>(room);
    tuple->type = kElementTuple;
    tuple->level = static_cast<std::uint8_t>(elements.graph.level(element));
    tuple->version = kFirstVersion;
    const std::uint32_t first = elements.first_rows[element];
    const std::uint32_t count = elements.first_rows[element + 1] - first;
    for (std::uint32_t i = 0; i < kMostRows; ++i)
        if (i < count)
            tuple->rows[i] = elements.rows[first + i];
        else
            ItemPointerSetInvalid(&tuple->rows[i]);
    tuple->neighbors = layout.sizes.neighbors_behind(layout.places[element], tuple->level);

    auto* const header = reinterpret_cast<VectorHeader*>(tuple + 1);
    const std::size_t size = value_size(elements.values);
    SET_VARSIZE(header, size);
    header->dimensions = static_cast<std::int16_t>(elements.values.dimensions);
    std::memcpy(header + 1, elements.values.row_bytes(element), size - sizeof *header);
}

void add_neighbors(Page page, std::size_t element, const Elements& elements, const Layout& layout,
                   Links links) {
    const HnswGraphView& graph = elements.graph;
    const unsigned level = graph.level(element);
    auto* const tuple =
        reinterpret_cast<NeighborTuple*>(add_tuple(page, layout.sizes.neighbors(level)));
    if (links == Links::unknown) return;
    tuple->type = kNeighborTuple;
    tuple->version = kFirstVersion;
    tuple->count = static_cast<std::uint16_t>(neighbor_places(graph.m(), level));
    ItemPointerData* place = neighbor_places(tuple);
    for (unsigned layer = level + 1; layer-- > 0;)
        for (const std::uint32_t neighbor : graph.neighbors(element, layer)) {
            if (neighbor != kNoElement)
                *place = layout.places[neighbor];
            else
                ItemPointerSetInvalid(place);
            ++place;
        }
}

}  // namespace

std::size_t fill_page(Page page, BlockNumber block, std::size_t first, const Elements& elements,
                      const Layout& layout, Links links) {
    const HnswGraphView& graph = elements.graph;
    initialize_page(page, block + 1 < layout.blocks ? block + 1 : InvalidBlockNumber);
    if (first > 0) {
        const ItemPointerData before =
            layout.sizes.neighbors_behind(layout.places[first - 1], graph.level(first - 1));
        if (ItemPointerGetBlockNumberNoCheck(&before) == block)
            add_neighbors(page, first - 1, elements, layout, links);
    }
    std::size_t element = first;
    for (; element < graph.size() &&
           ItemPointerGetBlockNumberNoCheck(&layout.places[element]) == block;
         ++element) {
        add_element(page, element, elements, layout);
        if (layout.sizes.side_by_side(graph.level(element)))
            add_neighbors(page, element, elements, layout, links);
    }
    return element;
}

void fill_meta_page(Page page, const Elements& elements, const Layout& layout) {
    initialize_page(page, InvalidBlockNumber);
    MetaPage* const made = meta(page);
    made->magic = kMagic;
    made->version = kMetaVersion;
    made->dimensions = static_cast<std::uint32_t>(elements.values.dimensions);
    made->m = static_cast<std::uint16_t>(elements.graph.m());
    made->ef_construction = static_cast<std::uint16_t>(elements.ef_construction);
    made->entry_block = InvalidBlockNumber;
    made->entry_level = -1;
    if (const std::uint32_t entry = elements.graph.entry(); entry != kNoElement) {
        made->entry_block = ItemPointerGetBlockNumberNoCheck(&layout.places[entry]);
        made->entry_offset = ItemPointerGetOffsetNumberNoCheck(&layout.places[entry]);
        made->entry_level = static_cast<std::int16_t>(elements.graph.level(entry));
    }
    made->insert_page = layout.blocks - 1;
    reinterpret_cast<PageHeader>(page)->pd_lower =
        static_cast<LocationIndex>(reinterpret_cast<char*>(made + 1) - page);
}

// ---- Changes ----

std::size_t write_changes(Page page, char* to) {
    char* end = to;
    for (OffsetNumber item = FirstOffsetNumber; item <= PageGetMaxOffsetNumber(page); ++item) {
        const ItemId id = PageGetItemId(page, item);
        const char* const tuple = PageGetItem(page, id);
        if (static_cast<std::uint8_t>(*tuple) != kNeighborTuple) continue;
        const OffsetNumber change[2] = {static_cast<OffsetNumber>(ItemIdGetOffset(id)),
                                        static_cast<OffsetNumber>(ItemIdGetLength(id))};
        std::memcpy(end, change, sizeof change);
        std::memcpy(end + sizeof change, tuple, change[1]);
        end += sizeof change + change[1];
    }
    return static_cast<std::size_t>(end - to);
}

}  // namespace gputext::hnsw
