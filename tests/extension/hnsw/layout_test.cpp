// Pages of HNSW indexes: places beside a model of how the server adds tuples to pages, and what
// the pages say, read back.

// First, as PostgreSQL defines Max()
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "extension/hnsw/layout.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::hnsw {
namespace {

using testing::RandomStrings;

// ---- Places ----

/// A page by the rules of PageGetFreeSpace() and PageAddItem().
struct ModelPage {
    std::size_t lower = SizeOfPageHeaderData, upper = BLCKSZ - 8;
    unsigned items = 0;

    std::size_t free_space() const {
        const std::size_t space = upper - lower;
        return space < sizeof(ItemIdData) ? 0 : space - sizeof(ItemIdData);
    }
    bool add(std::size_t size) {
        if (lower + sizeof(ItemIdData) > upper - std::min(upper, size)) return false;
        lower += sizeof(ItemIdData);
        upper -= size;
        ++items;
        return true;
    }
};

using Place = std::pair<BlockNumber, OffsetNumber>;
Place place_of(ItemPointerData pointer) {
    const OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(&pointer);
    return {ItemPointerGetBlockNumberNoCheck(&pointer), offset};
}

/// Elements of random levels: each place, and that of the neighbors, as pages fill by the rule
/// that both tuples are to be on one page if they fit an empty one.
void expect_places_as_pages_fill(RandomStrings& random, std::size_t value, unsigned m,
                                 unsigned levels) {
    const TupleSizes sizes{element_size(value), m};
    ASSERT_LE(sizes.element, kMostTuple);
    Placer placer(sizes);
    std::vector<ModelPage> pages(1);
    for (int i = 0; i < 300; ++i) {
        const auto level =
            static_cast<unsigned>(random.below(std::min(levels, highest_level(m)) + 1));
        const std::size_t neighbors = sizes.neighbors(level);
        ModelPage both;
        const bool fit = both.add(sizes.element) && both.add(neighbors);
        ASSERT_EQ(sizes.side_by_side(level), fit) << value << ' ' << m << ' ' << level;
        ModelPage probe = pages.back();
        if (!(probe.add(sizes.element) && (!fit || probe.add(neighbors)))) pages.emplace_back();
        ASSERT_TRUE(pages.back().add(sizes.element));
        const Place expected{pages.size(), pages.back().items};
        if (pages.back().free_space() < neighbors) {
            ASSERT_FALSE(fit);
            pages.emplace_back();
        }
        ASSERT_TRUE(pages.back().add(neighbors));
        const ItemPointerData place = placer.next(level);
        ASSERT_EQ(place_of(place), expected) << value << ' ' << m << ' ' << level;
        ASSERT_EQ(placer.block(), pages.size());
        ASSERT_EQ(place_of(sizes.neighbors_behind(place, level)),
                  Place(pages.size(), pages.back().items));
    }
}

TEST(HnswLayout, PlacesAreThoseThatFillingPagesGives) {
    RandomStrings random;
    for (const unsigned m : {2u, 3u, 16u, 17u, 50u, 99u, 100u})
        for (const std::size_t dimensions : {1, 2, 3, 96, 384, 768, 960, 1024, 1536, 1900, 2000})
            for (const std::size_t bytes : {2, 4})
                for (const unsigned levels : {0u, 2u, 63u})
                    expect_places_as_pages_fill(random, sizeof(VectorHeader) + dimensions * bytes,
                                                m, levels);
    // Sizes around those at which both tuples fit a page, and a page is full
    for (std::size_t value = 3900; value < 4100; ++value)
        expect_places_as_pages_fill(random, value, 16, 3);
    for (std::size_t value = 7700; element_size(value) <= kMostTuple; ++value)
        expect_places_as_pages_fill(random, value, 16, 3);
}

TEST(HnswLayout, NeighborsOfTheHighestLevelFitAPage) {
    for (unsigned m = 2; m <= 100; ++m) {
        const unsigned level = highest_level(m);
        EXPECT_LE(neighbors_size(m, level), kMostTuple) << m;
        if (level < 63) {
            EXPECT_GT(neighbors_size(m, level + 1), kMostTuple) << m;
        }
    }
    EXPECT_EQ(highest_level(16), 63u);
    EXPECT_EQ(highest_level(100), 11u);
}

TEST(HnswLayout, BlocksAreCountedBeyondThoseThatHaveNumbers) {
    // Two pages an element
    Placer placer({element_size(8 + 4 * 2000), 100});
    for (int i = 0; i < 1000; ++i) placer.next(11);
    EXPECT_EQ(placer.block(), 2000u);
}

// ---- Pages ----

/// An index in memory.
struct Index {
    HnswGraph graph;
    std::vector<std::byte> values;
    std::vector<std::uint32_t> first_rows{0};
    std::vector<ItemPointerData> rows, places;
    Elements elements{};
    Layout layout{};

    Index(RandomStrings& random, std::size_t count, unsigned m, ElementType type,
          std::size_t dimensions)
        : graph(m, random_levels(random, count, m)), values(count * dimensions * size_of(type)) {
        for (std::byte& value : values) value = static_cast<std::byte>(random.below(256));
        for (std::size_t element = 0; element < count; ++element) {
            first_rows.push_back(first_rows.back() +
                                 static_cast<std::uint32_t>(1 + random.below(kMostRows)));
            for (unsigned layer = 0; layer <= graph.level(element); ++layer)
                link(random, element, layer);
        }
        for (std::uint32_t row = 0; row < first_rows.back(); ++row) {
            ItemPointerData place;
            ItemPointerSet(&place, row * 70000, static_cast<OffsetNumber>(1 + row % 290));
            rows.push_back(place);
        }
        Vectors matrix;
        matrix.type = type;
        matrix.rows = count;
        matrix.dimensions = dimensions;
        matrix.elements = values.data();
        elements = {graph.view(), 77, matrix, first_rows, rows};
        Placer placer(tuple_sizes(elements));
        for (std::size_t element = 0; element < count; ++element)
            places.push_back(placer.next(graph.level(element)));
        layout = {tuple_sizes(elements), places, static_cast<BlockNumber>(placer.block() + 1)};
    }
    Index(const Index&) = delete;

    static std::size_t size_of(ElementType type) { return type == ElementType::float16 ? 2 : 4; }

    static std::vector<std::uint8_t> random_levels(RandomStrings& random, std::size_t count,
                                                   unsigned m) {
        std::vector<std::uint8_t> levels;
        for (std::size_t i = 0; i < count; ++i)
            levels.push_back(static_cast<std::uint8_t>(
                random.below(random.below(4) == 0 ? highest_level(m) + 1 : 2)));
        return levels;
    }

    /// As many other elements of the layer as there are places, or fewer.
    void link(RandomStrings& random, std::size_t element, unsigned layer) {
        std::set<std::uint32_t> chosen;
        const std::size_t most = random.below(graph.places(layer) + 1);
        for (std::size_t i = 0; i < most; ++i) {
            const auto other = static_cast<std::uint32_t>(random.below(graph.size()));
            if (other != element && graph.level(other) >= layer) chosen.insert(other);
        }
        const auto places_of_layer = graph.neighbors(element, layer);
        std::fill(places_of_layer.begin(), places_of_layer.end(), kNoElement);
        std::copy(chosen.begin(), chosen.end(), places_of_layer.begin());
    }

    /// All pages, filled over memory that had these bytes.
    std::vector<PGAlignedBlock> pages(int before, Links links = Links::known) const {
        std::vector<PGAlignedBlock> filled(layout.blocks);
        std::memset(filled.data(), before, filled.size() * BLCKSZ);
        fill_meta_page(filled[0].data, elements, layout);
        std::size_t element = 0;
        for (BlockNumber block = 1; block < layout.blocks; ++block)
            element = fill_page(filled[block].data, block, element, elements, layout, links);
        EXPECT_EQ(element, graph.size());
        return filled;
    }
};

template <class T>
T* tuple_at(std::vector<PGAlignedBlock>& pages, Place place, std::size_t size) {
    const Page page = pages.at(place.first).data;
    EXPECT_GE(place.second, 1);
    EXPECT_LE(place.second, PageGetMaxOffsetNumber(page));
    const ItemId item = PageGetItemId(page, place.second);
    EXPECT_TRUE(ItemIdIsNormal(item));
    EXPECT_EQ(ItemIdGetLength(item), size);
    return reinterpret_cast<T*>(PageGetItem(page, item));
}

void expect_element(const Index& index, std::vector<PGAlignedBlock>& pages, std::size_t element) {
    const unsigned m = index.graph.m(), level = index.graph.level(element);
    const Vectors& values = index.elements.values;
    auto* const tuple =
        tuple_at<ElementTuple>(pages, place_of(index.places[element]), index.layout.sizes.element);
    EXPECT_EQ(tuple->type, kElementTuple);
    EXPECT_EQ(tuple->level, level);
    EXPECT_EQ(tuple->deleted, 0);
    EXPECT_EQ(tuple->version, 0);
    EXPECT_EQ(tuple->unused, 0);
    for (std::uint32_t i = 0; i < kMostRows; ++i) {
        const std::uint32_t row = index.first_rows[element] + i;
        if (row < index.first_rows[element + 1]) {
            EXPECT_EQ(place_of(tuple->rows[i]), place_of(index.rows[row]));
        } else {
            EXPECT_FALSE(ItemPointerIsValid(&tuple->rows[i]));
        }
    }
    auto* const header = reinterpret_cast<VectorHeader*>(tuple + 1);
    const std::size_t bytes = values.dimensions * Index::size_of(values.type);
    EXPECT_EQ(VARSIZE_ANY(header), sizeof *header + bytes);
    EXPECT_EQ(static_cast<std::size_t>(header->dimensions), values.dimensions);
    EXPECT_EQ(header->unused, 0);
    EXPECT_EQ(std::memcmp(header + 1, values.row_bytes(element), bytes), 0);

    auto* const neighbors =
        tuple_at<NeighborTuple>(pages, place_of(tuple->neighbors), neighbors_size(m, level));
    EXPECT_EQ(neighbors->type, kNeighborTuple);
    EXPECT_EQ(neighbors->version, 0);
    ASSERT_EQ(neighbors->count, (level + 2) * m);
    for (unsigned layer = 0; layer <= level; ++layer) {
        const ItemPointerData* places =
            neighbor_places(neighbors) + first_neighbor(m, level, layer);
        for (const std::uint32_t neighbor : index.graph.neighbors(element, layer)) {
            if (neighbor == kNoElement) {
                EXPECT_FALSE(ItemPointerIsValid(places));
            } else {
                EXPECT_EQ(place_of(*places), place_of(index.places[neighbor]));
            }
            ++places;
        }
    }
}

/// The changes make a page that was filled without links the one with them.
void expect_changes(const Index& index) {
    std::vector<PGAlignedBlock> known = index.pages(0xab),
                                unknown = index.pages(0xab, Links::unknown);
    std::vector<char> changes(kMostChanges);
    for (BlockNumber block = kFirstElementBlock; block < known.size(); ++block) {
        const Page page = unknown[block].data;
        bool has_neighbors = false;
        for (OffsetNumber item = 1; item <= PageGetMaxOffsetNumber(page); ++item)
            has_neighbors |= *PageGetItem(page, PageGetItemId(page, item)) == 0;
        const std::size_t size = write_changes(known[block].data, changes.data());
        EXPECT_EQ(size > 0, has_neighbors);
        ASSERT_LE(size, changes.size());
        for (std::size_t at = 0; at < size;) {
            OffsetNumber change[2];
            std::memcpy(change, &changes[at], sizeof change);
            at += sizeof change;
            ASSERT_LE(change[0] + change[1], BLCKSZ);
            std::memcpy(page + change[0], &changes[at], change[1]);
            at += change[1];
        }
    }
    EXPECT_EQ(std::memcmp(known.data(), unknown.data(), known.size() * BLCKSZ), 0);
}

void expect_pages(Index& index) {
    expect_changes(index);
    std::vector<PGAlignedBlock> pages = index.pages(0xab), again = index.pages(0xcd);
    ASSERT_EQ(std::memcmp(pages.data(), again.data(), pages.size() * BLCKSZ), 0);

    const MetaPage* const meta = hnsw::meta(pages[0].data);
    EXPECT_EQ(meta->magic, kMagic);
    EXPECT_EQ(meta->version, kMetaVersion);
    EXPECT_EQ(reinterpret_cast<PageHeader>(pages[0].data)->pd_lower,
              reinterpret_cast<const char*>(meta + 1) - pages[0].data);
    EXPECT_EQ(meta->dimensions, index.elements.values.dimensions);
    EXPECT_EQ(meta->m, index.graph.m());
    EXPECT_EQ(meta->ef_construction, 77);
    EXPECT_EQ(meta->insert_page, pages.size() - 1);
    const std::uint32_t entry = index.graph.entry();
    if (entry == kNoElement) {
        EXPECT_EQ(meta->entry_block, InvalidBlockNumber);
        EXPECT_EQ(meta->entry_offset, InvalidOffsetNumber);
        EXPECT_EQ(meta->entry_level, -1);
    } else {
        EXPECT_EQ(Place(meta->entry_block, meta->entry_offset), place_of(index.places[entry]));
        EXPECT_EQ(meta->entry_level, static_cast<int>(index.graph.level(entry)));
    }
    std::size_t tuples = 0;
    for (BlockNumber block = 0; block < pages.size(); ++block) {
        const Page page = pages[block].data;
        EXPECT_EQ(PageGetSpecialSize(page), sizeof(PageTrailer));
        EXPECT_EQ(trailer(page)->page_id, kPageId);
        EXPECT_EQ(trailer(page)->unused, 0);
        EXPECT_EQ(trailer(page)->next,
                  block == 0 || block + 1 == pages.size() ? InvalidBlockNumber : block + 1);
        if (block > 0) tuples += PageGetMaxOffsetNumber(page);
    }
    EXPECT_EQ(tuples, 2 * index.graph.size());
    for (std::size_t element = 0; element < index.graph.size(); ++element)
        expect_element(index, pages, element);
}

TEST(HnswPages, SayWhatTheElementsAre) {
    RandomStrings random;
    for (const unsigned m : {2u, 5u, 16u, 100u})
        for (const auto& [type, dimensions] :
             std::vector<std::pair<ElementType, std::size_t>>{{ElementType::float32, 1},
                                                              {ElementType::float32, 3},
                                                              {ElementType::float32, 100},
                                                              {ElementType::float32, 768},
                                                              {ElementType::float32, 1536},
                                                              {ElementType::float32, 2000},
                                                              {ElementType::float16, 1},
                                                              {ElementType::float16, 5},
                                                              {ElementType::float16, 1023},
                                                              {ElementType::float16, 4000}}) {
            Index index(random, 60, m, type, dimensions);
            expect_pages(index);
        }
}

TEST(HnswPages, OfAnIndexWithoutElementsAreTwo) {
    RandomStrings random;
    Index index(random, 0, 16, ElementType::float32, 10);
    EXPECT_EQ(index.layout.blocks, 2u);
    expect_pages(index);
}

}  // namespace
}  // namespace gputext::hnsw
