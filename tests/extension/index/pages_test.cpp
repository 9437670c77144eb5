// Inserts and VACUUM on an index whose pages lie in memory, in place of the server's buffers: what
// they leave, and in which order they lock pages.

// First, as PostgreSQL defines Max()
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/generic_xlog.h"
#include "commands/vacuum.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
}

#include "extension/base/failure.hpp"
#include "extension/index/access_method.hpp"
#include "extension/index/open_index.hpp"
#include "extension/types/text_arguments.hpp"
#include "tests/extension/server.hpp"

namespace gputext {
namespace {

constexpr std::size_t kMostBlocks = 64;
constexpr std::size_t kBins = 1024;  // few sketches fill a page

PGAlignedBlock blocks[kMostBlocks];
BlockNumber block_count = 0;
std::set<BlockNumber> locked;
std::string wrong_order;  // the first lock that was asked for while another one was held
/// What another session does as soon as a page is unlocked, once.
BlockNumber others_wait_for = InvalidBlockNumber;
std::function<void()> others_work;
MemoryContextData context{};

BlockNumber block_of(Buffer buffer) {
    return static_cast<BlockNumber>(buffer) - 1;
}
Buffer buffer_of(BlockNumber block) {
    return static_cast<Buffer>(block) + 1;
}

/// Of a directory page and a sketch page that it describes, the directory page is locked first, and
/// two pages at most.
void lock(BlockNumber block) {
    const bool right =
        locked.empty() ||
        (locked.size() == 1 && index::is_directory(*locked.begin()) &&
         !index::is_directory(block) && index::group_of(block) == index::group_of(*locked.begin()));
    if (!right && wrong_order.empty())
        wrong_order = std::to_string(block) + " after " + std::to_string(*locked.begin());
    locked.insert(block);
}

void unlock(BlockNumber block) {
    locked.erase(block);
    if (block != others_wait_for) return;
    others_wait_for = InvalidBlockNumber;
    others_work();
}

index::OpenIndex& opened() {
    static const OwnedSketchModel model = general_sketch_model(kBins);
    static const SketchModel view = model.view();
    static BlockNumber targets[kLengthClasses];
    static index::OpenIndex made = [] {
        std::fill_n(targets, kLengthClasses, InvalidBlockNumber);
        return index::OpenIndex{true, 1, &view, targets, 0, nullptr};
    }();
    return made;
}

}  // namespace

// ---- In the place of extension/ ----

Interruption interruption;
Stop stop_on_interrupt() {
    return {};
}
void raise_failure(const Failure& failure) {
    throw testing::ServerError(failure.message);
}

namespace index {

OpenIndex& open_index(Relation) {
    return opened();
}
const CharacterLengths& OpenIndex::characters() const {
    static const CharacterLengths bytes = CharacterLengths::single_byte();
    return bytes;
}
Buffer read_directory(Relation, BlockNumber block, int) {
    lock(block);
    return buffer_of(block);
}
Buffer read_sketches(Relation, BlockNumber block, int, BufferAccessStrategy) {
    lock(block);
    return buffer_of(block);
}

}  // namespace index
}  // namespace gputext

using namespace gputext;

// ---- In the place of the server ----

extern "C" {
char* BufferBlocks = blocks[0].data;
Block* LocalBufferBlockPointers = nullptr;
volatile sig_atomic_t InterruptPending = false;
MemoryContext CurrentMemoryContext = &context;
ResourceOwner CurrentResourceOwner = nullptr;

void ProcessInterrupts() {}
void LockBuffer(Buffer buffer, int mode) {
    if (mode == BUFFER_LOCK_UNLOCK)
        unlock(block_of(buffer));
    else
        lock(block_of(buffer));
}
void UnlockReleaseBuffer(Buffer buffer) {
    unlock(block_of(buffer));
}
void ReleaseBuffer(Buffer) {}
Buffer ReadBuffer(Relation, BlockNumber block) {
    return buffer_of(block == P_NEW ? block_count++ : block);
}
BlockNumber RelationGetNumberOfBlocksInFork(Relation, ForkNumber) {
    return block_count;
}
void LockRelationForExtension(Relation, LOCKMODE) {
    EXPECT_TRUE(locked.empty());
}
void UnlockRelationForExtension(Relation, LOCKMODE) {}
GenericXLogState* GenericXLogStart(Relation) {
    static char log;
    return reinterpret_cast<GenericXLogState*>(&log);
}
Page GenericXLogRegisterBuffer(GenericXLogState*, Buffer buffer, int) {
    EXPECT_TRUE(locked.count(block_of(buffer)));
    return blocks[block_of(buffer)].data;
}
XLogRecPtr GenericXLogFinish(GenericXLogState*) {
    return 1;
}
MemoryContext AllocSetContextCreateInternal(MemoryContext, const char*, Size, Size, Size) {
    return &context;
}
void MemoryContextDelete(MemoryContext) {}
void* MemoryContextAllocZero(MemoryContext, Size size) {
    return memset(palloc(size), 0, size);
}
void* palloc0(Size size) {
    return memset(palloc(size), 0, size);
}
void MemoryContextRegisterResetCallback(MemoryContext, MemoryContextCallback*) {}
varlena* pg_detoast_datum_packed(varlena* value) {
    return value;
}
#if PG_VERSION_NUM >= 180000
void vacuum_delay_point(bool) {}
#else
void vacuum_delay_point() {}
#endif
}

namespace gputext::index {
namespace {

class IndexPages : public ::testing::Test {
protected:
    IndexPages() {
        block_count = 3;
        std::memset(blocks, 0, sizeof blocks);
        locked.clear();
        wrong_order.clear();
        initialize_meta_page(blocks[0].data, 1);
        initialize_directory(blocks[1].data);
        directory_entries(blocks[1].data)[0] = {kModelClass, 0, 0};
        initialize_model_page(blocks[2].data, 0, opened().models()[0]);
        std::fill_n(opened().targets, kLengthClasses, InvalidBlockNumber);
    }
    ~IndexPages() override {
        EXPECT_EQ(wrong_order, "");
        EXPECT_TRUE(locked.empty());
        EXPECT_EQ(others_wait_for, InvalidBlockNumber);
    }

    /// Inserts a row whose document has so many characters.
    void insert(std::uint32_t row, std::size_t length) {
        std::vector<char> document(VARHDRSZ + length, 'a');
        SET_VARSIZE(document.data(), document.size());
        ItemPointerData place;
        ItemPointerSet(&place, row, 1);
        Datum value = PointerGetDatum(document.data());
        bool null = false;
        insert_row(index_, &value, &null, &place, nullptr, UNIQUE_CHECK_NO, false, &info_);
        rows_.insert(row);
    }

    /// VACUUM, where these rows are dead.
    void remove(const std::set<std::uint32_t>& dead) {
        IndexVacuumInfo info{};
        info.index = index_;
        const auto is_dead = [](ItemPointer row, void* state) {
            return static_cast<const std::set<std::uint32_t>*>(state)->count(
                       ItemPointerGetBlockNumber(row)) > 0;
        };
        const IndexBulkDeleteResult* const result =
            remove_rows(&info, nullptr, is_dead, const_cast<std::set<std::uint32_t>*>(&dead));
        for (const std::uint32_t row : dead) rows_.erase(row);
        EXPECT_EQ(result->tuples_removed, dead.size());
        EXPECT_EQ(result->num_index_tuples, rows_.size());
    }

    /// The rows of a page.
    static std::set<std::uint32_t> rows_of(BlockNumber block) {
        std::set<std::uint32_t> rows;
        const Page page = blocks[block].data;
        if (!is_in_use(page)) return rows;
        const SketchPages pages = opened().pages(0);
        for (std::uint16_t i = 0; i < trailer(page)->count; ++i)
            rows.insert(ItemPointerGetBlockNumber(&pages.rows(page)[i]));
        return rows;
    }

    /// Each row is on one page, and the directory says what each page is for.
    void expect_sound() {
        std::set<std::uint32_t> found;
        std::size_t count = 0;
        for (BlockNumber block = 3; block < block_count; ++block) {
            const DirectoryEntry entry = directory_entries(blocks[1].data)[entry_of(block)];
            const Page page = blocks[block].data;
            ASSERT_EQ(is_in_use(page), entry.length_class != kNoClass) << block;
            if (!is_in_use(page)) continue;
            EXPECT_EQ(trailer(page)->sketches, entry.sketches()) << block;
            EXPECT_GT(trailer(page)->count, 0) << block;
            if (entry.full != 0) {
                EXPECT_EQ(trailer(page)->count, capacity()) << block;
            }
            const std::set<std::uint32_t> rows = rows_of(block);
            found.insert(rows.begin(), rows.end());
            count += rows.size();
        }
        EXPECT_EQ(found, rows_);
        EXPECT_EQ(count, rows_.size());
    }

    static std::uint16_t capacity() { return opened().pages(0).capacity(); }

    testing::NamedRelation index_{"docs_body"};
    IndexInfo info_{};
    std::set<std::uint32_t> rows_;
};

TEST_F(IndexPages, InsertsFillOnePageAfterTheOther) {
    for (std::uint32_t row = 0; row < 3u * capacity(); ++row) insert(row, 100);
    expect_sound();
    EXPECT_EQ(block_count, 3u + 3);
    insert(1000, 100);
    EXPECT_EQ(block_count, 3u + 4);
    EXPECT_EQ(directory_entries(blocks[1].data)[entry_of(3)].full, 1);
    expect_sound();
}

TEST_F(IndexPages, EachClassOfLengthsHasPagesOfItsOwn) {
    for (std::uint32_t row = 0; row < 40; ++row) insert(row, row % 2 == 0 ? 100 : 3000);
    expect_sound();
    for (BlockNumber block = 3; block < block_count; ++block) {
        const std::set<std::uint32_t> rows = rows_of(block);
        const std::uint32_t first = *rows.begin() % 2;
        EXPECT_TRUE(std::all_of(rows.begin(), rows.end(),
                                [first](std::uint32_t row) { return row % 2 == first; }));
    }
}

TEST_F(IndexPages, VacuumMakesRoomThatInsertsTake) {
    for (std::uint32_t row = 0; row < 4u * capacity(); ++row) insert(row, 100);
    insert(1000, 100);
    // Of the second page one row, of the third all
    std::set<std::uint32_t> dead = rows_of(5);
    dead.insert(*rows_of(4).begin());
    remove(dead);
    expect_sound();
    EXPECT_FALSE(is_in_use(blocks[5].data));
    EXPECT_EQ(directory_entries(blocks[1].data)[entry_of(4)].full, 0);
    const BlockNumber before = block_count;
    for (std::uint32_t row = 0; row < 2u * capacity(); ++row) insert(2000 + row, 100);
    expect_sound();
    EXPECT_EQ(block_count, before);
    EXPECT_EQ(rows_of(4).size(), capacity());
    EXPECT_EQ(rows_of(5).size(), capacity());
}

TEST_F(IndexPages, VacuumLooksAtTheSketchThatTakesTheRoomOfAnother) {
    for (std::uint32_t row = 0; row < capacity(); ++row) insert(row, 100);
    std::set<std::uint32_t> dead = rows_;
    dead.erase(3);
    remove(dead);
    expect_sound();
    EXPECT_EQ(rows_of(3), std::set<std::uint32_t>{3});
    remove({3});
    EXPECT_FALSE(is_in_use(blocks[3].data));
    insert(5, 3000);  // the page serves another class
    expect_sound();
    EXPECT_EQ(rows_of(3), std::set<std::uint32_t>{5});
}

TEST_F(IndexPages, AnotherSessionMayHaveBegunTheDirectory) {
    std::memset(blocks[1].data, 0, sizeof blocks[1]);
    others_wait_for = 1;
    others_work = [this] {
        initialize_directory(blocks[1].data);
        directory_entries(blocks[1].data)[0] = {kModelClass, 0, 0};
        insert(1, 100);
    };
    insert(2, 3000);
    expect_sound();
    EXPECT_EQ(rows_of(3), std::set<std::uint32_t>{1});
    EXPECT_EQ(rows_of(4), std::set<std::uint32_t>{2});
}

TEST_F(IndexPages, APageThatServesAnotherClassByNowIsNotMarkedAsFull) {
    for (std::uint32_t row = 0; row < capacity(); ++row) insert(row, 100);
    std::fill_n(opened().targets, kLengthClasses, InvalidBlockNumber);
    // VACUUM has emptied the page, and sketches of a model that has more room came.
    others_wait_for = 3;
    others_work = [] {
        const SketchKind other{length_class(3000), 1};
        trailer(blocks[3].data)->sketches = other;
        directory_entries(blocks[1].data)[entry_of(3)] = {other.length_class, other.model, 0};
    };
    insert(1000, 100);
    EXPECT_EQ(directory_entries(blocks[1].data)[entry_of(3)].full, 0);
    EXPECT_EQ(rows_of(4), std::set<std::uint32_t>{1000});
}

}  // namespace
}  // namespace gputext::index
