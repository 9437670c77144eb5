#include "extension/values/toast_pages.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "cpp/base/large_pages.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/values/row_threads.hpp"
#include "extension/values/shared_array.hpp"
#include "extension/values/shared_rows.hpp"

namespace gputext {
namespace {

/// Fewer values are found in less time by the index.
constexpr std::size_t kFewest = 1024;
/// A value that is larger takes longer to copy than to find.
constexpr std::size_t kLargest = std::size_t{1} << 18;
/// Tables whose pages are read: partitions of one table, mostly.
constexpr unsigned kMostTables = 64;
/// The part of a table's bytes that has to be wanted: to find a value by the index takes as long as
/// to read some pages.
constexpr std::uint64_t kPart = 4;
/// Pages that a process takes at a time.
constexpr std::uint64_t kStretch = 32;

/// Rows, or slots, that a thread works on at a time.
constexpr std::size_t kRowsAtOnce = std::size_t{1} << 16;

constexpr std::uint32_t kNone = UINT32_MAX;
/// In the number of a value's chunks: one of them is not as it should be.
constexpr std::uint16_t kNeverComplete = 0x8000;

// The elements of a chunk are checked where it was copied to.
static_assert(TOAST_MAX_CHUNK_SIZE % sizeof(std::uint32_t) == 0);

/// A row of which the value is wanted. Threads put slots in their places as a whole.
struct alignas(std::uint64_t) Slot {
    Oid number;  // of the value
    std::uint32_t row;

    bool free() const { return row == kNone; }
};

/// Where the slot of the value in a hash table, whose size is a power of two, begins to be looked
/// for. Neighbors among the numbers, as values have that were stored one after the other, are
/// neighbors in the table.
std::size_t first_slot(Oid number) {
    constexpr Oid line = 64 / sizeof(Slot);  // of the processor's cache
    return (number / line * std::size_t{0x9e3779b97f4a7c15} >> 32) * line + number % line;
}

/// The row of which the value is wanted, or kNone.
std::uint32_t row_of(std::span<const Slot> slots, Oid number) {
    const std::size_t mask = slots.size() - 1;
    std::size_t slot = first_slot(number);
    while (!slots[slot & mask].free() && slots[slot & mask].number != number) ++slot;
    return slots[slot & mask].row;
}

/// False where another row has the value. For all threads.
bool put(std::span<Slot> slots, const Slot& wanted) {
    const std::size_t mask = slots.size() - 1;
    for (std::size_t slot = first_slot(wanted.number);; ++slot) {
        const std::atomic_ref place(slots[slot & mask]);
        Slot there = place.load(std::memory_order_relaxed);
        if (there.free() && place.compare_exchange_strong(there, wanted, std::memory_order_relaxed))
            return true;
        if (there.number == wanted.number) return false;
    }
}

/// A TOAST table of which the pages are read.
struct Table {
    Oid table;
    BlockNumber pages;
    std::uint64_t values;  // that are wanted
    std::uint64_t first_slot, slots;
};

/// What all processes know and change; behind it, of each row, the number of chunks that have been
/// copied.
struct PageFill {
    LaidOutFiles target;
    SharedArray<Slot> slots;  // of all tables, one behind the other
    SharedRows pages;         // of all tables, one behind the other
    Table tables[kMostTables];
    VectorType type;
    std::uint64_t dimensions, header_bytes, row_bytes;

    std::uint64_t value_bytes() const { return header_bytes + row_bytes; }
    std::uint32_t chunks() const {
        return static_cast<std::uint32_t>((value_bytes() - 1) / TOAST_MAX_CHUNK_SIZE + 1);
    }
    std::uint16_t* arrived() { return reinterpret_cast<std::uint16_t*>(this + 1); }
};

/// Collects what lies side by side, of several places at a time, and writes it in pieces. Rows that
/// were inserted by several sessions side by side come from several places.
class PieceWriters {
public:
    bool open(const LaidOutFiles& files, unsigned process) {
        buffers_ = static_cast<char*>(palloc(kPieces * kBytes));
        prefer_large_pages(buffers_, kPieces * kBytes);
        return target_.open(files, process);
    }
    /// Returns where the bytes have been copied to for now. At most kBytes.
    const char* put(std::uint64_t begin, const void* bytes, std::size_t size) {
        if (ends_[last_] != begin) last_ = piece_for(begin);
        std::size_t& used = used_[last_];
        if (used + size > kBytes) flush(last_);
        char* const to = buffers_ + last_ * kBytes + used;
        std::memcpy(to, bytes, size);
        used += size;
        ends_[last_] = begin + size;
        uses_[last_] = ++use_;
        return to;
    }
    void flush() {
        for (std::size_t piece = 0; piece < kPieces; ++piece) flush(piece);
    }

private:
    static constexpr std::size_t kPieces = 32;
    static constexpr std::size_t kBytes = std::size_t{1} << 16;

    std::size_t piece_for(std::uint64_t begin) {
        const auto* const same = std::find(ends_, ends_ + kPieces, begin);
        if (same != ends_ + kPieces) return static_cast<std::size_t>(same - ends_);
        const auto oldest =
            static_cast<std::size_t>(std::min_element(uses_, uses_ + kPieces) - uses_);
        flush(oldest);
        return oldest;
    }
    void flush(std::size_t piece) {
        const std::size_t size = used_[piece];
        if (size > 0) target_.write(ends_[piece] - size, buffers_ + piece * kBytes, size);
        used_[piece] = 0;
    }

    LaidOutWriter target_;
    char* buffers_ = nullptr;
    std::uint64_t ends_[kPieces] = {};  // in the target
    std::uint64_t uses_[kPieces] = {};
    std::size_t used_[kPieces] = {};  // bytes
    std::uint64_t use_ = 0;
    std::size_t last_ = 0;
};

/// The work of one process.
class PageReader {
public:
    explicit PageReader(PageFill& fill)
        : fill_(fill), snapshot_(snapshot_of_values(room_of_snapshot_)) {}

    bool open(unsigned process);
    /// Pages of all tables.
    void read(std::uint64_t begin, std::uint64_t end);
    void close();

private:
    void open_table(const Table& table);
    void close_table();
    void read_page(BlockNumber page);
    void take_chunk(HeapTuple chunk);
    bool copy_chunk(HeapTuple chunk);

    PageFill& fill_;
    const Slot* all_slots_ = nullptr;
    std::span<const Slot> slots_;  // of the table
    PieceWriters target_;
    SnapshotData room_of_snapshot_;
    Snapshot snapshot_;
    Relation relation_ = nullptr;
    BufferAccessStrategy strategy_ = nullptr;
    Oid last_number_ = InvalidOid;
    std::uint32_t last_row_ = kNone;
};

bool PageReader::open(unsigned process) {
    all_slots_ = fill_.slots.open(fill_.target.session, process);
    return all_slots_ != nullptr && target_.open(fill_.target, process);
}

void PageReader::open_table(const Table& table) {
    if (relation_ != nullptr && RelationGetRelid(relation_) == table.table) return;
    close_table();
    relation_ = table_open(table.table, AccessShareLock);
    // As for a scan of the table
    if (table.pages > static_cast<BlockNumber>(NBuffers) / 4)
        strategy_ = GetAccessStrategy(BAS_BULKREAD);
    slots_ = {all_slots_ + table.first_slot, table.slots};
    last_number_ = InvalidOid;
}

void PageReader::close_table() {
    if (strategy_ != nullptr) FreeAccessStrategy(strategy_);
    strategy_ = nullptr;
    if (relation_ != nullptr) table_close(relation_, AccessShareLock);
    relation_ = nullptr;
}

void PageReader::close() {
    close_table();
    target_.flush();
}

void PageReader::read(std::uint64_t begin, std::uint64_t end) {
    std::uint64_t first = 0;  // page of the table
    for (const Table& table : fill_.tables) {
        const std::uint64_t from = std::max(begin, first), to = std::min(end, first + table.pages);
        if (from < to) open_table(table);
        for (std::uint64_t page = from; page < to; ++page)
            read_page(static_cast<BlockNumber>(page - first));
        first += table.pages;
    }
}

void PageReader::read_page(BlockNumber number) {
    CHECK_FOR_INTERRUPTS();
    const Buffer buffer =
        ReadBufferExtended(relation_, MAIN_FORKNUM, number, RBM_NORMAL, strategy_);
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    const Page page = BufferGetPage(buffer);
    // 0 for a new page, too.
    const OffsetNumber lines =
        std::min<OffsetNumber>(PageGetMaxOffsetNumber(page), MaxHeapTuplesPerPage);
    HeapTupleData chunks[MaxHeapTuplesPerPage];
    std::size_t count = 0;
    for (OffsetNumber line = FirstOffsetNumber; line <= lines; ++line) {
        const ItemId item = PageGetItemId(page, line);
        if (!ItemIdIsNormal(item)) continue;
        HeapTupleData& chunk = chunks[count];
        chunk.t_tableOid = RelationGetRelid(relation_);
        chunk.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
        chunk.t_len = ItemIdGetLength(item);
        ItemPointerSet(&chunk.t_self, number, line);
        if (HeapTupleSatisfiesVisibility(&chunk, snapshot_, buffer)) ++count;
    }
    // Chunks stay where they are while the page is pinned.
    LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
    for (std::size_t i = 0; i < count; ++i) take_chunk(&chunks[i]);
    ReleaseBuffer(buffer);
}

/// Copies a chunk to its place if it is as it should be. A value of which one is not is read again,
/// as is one whose number an older one had, which has not been vacuumed: it gets more chunks than
/// it has.
void PageReader::take_chunk(HeapTuple chunk) {
    const TupleDesc columns = RelationGetDescr(relation_);
    bool null = false;
    const Oid number = DatumGetObjectId(fastgetattr(chunk, 1, columns, &null));
    if (number != last_number_) {
        last_row_ = row_of(slots_, number);
        last_number_ = number;
    }
    if (last_row_ == kNone) return;
    const std::atomic_ref arrived(fill_.arrived()[last_row_]);
    if (copy_chunk(chunk))
        arrived.fetch_add(1, std::memory_order_relaxed);
    else
        arrived.fetch_or(kNeverComplete, std::memory_order_relaxed);
}

/// Of a value that is wanted. False where the chunk is not as it should be.
bool PageReader::copy_chunk(HeapTuple chunk) {
    const TupleDesc columns = RelationGetDescr(relation_);
    bool null = false;
    const auto place =
        static_cast<std::uint32_t>(DatumGetInt32(fastgetattr(chunk, 2, columns, &null))) *
        static_cast<std::uint64_t>(TOAST_MAX_CHUNK_SIZE);
    const auto* const value =
        reinterpret_cast<const varlena*>(DatumGetPointer(fastgetattr(chunk, 3, columns, &null)));
    if (place >= fill_.value_bytes() || VARATT_IS_EXTERNAL(value) || VARATT_IS_COMPRESSED(value))
        return false;
    const char* bytes = VARDATA_ANY(value);
    std::size_t size = VARSIZE_ANY_EXHDR(value);
    if (size != std::min<std::uint64_t>(TOAST_MAX_CHUNK_SIZE, fill_.value_bytes() - place))
        return false;
    std::uint64_t to = last_row_ * fill_.row_bytes + place - fill_.header_bytes;
    if (place == 0) {
        if (!is_plain_header(fill_.type, bytes, fill_.dimensions)) return false;
        bytes += fill_.header_bytes;
        size -= fill_.header_bytes;
        to += fill_.header_bytes;
    }
    return all_finite(fill_.type.element, target_.put(to, bytes, size),
                      size / element_size(fill_.type.element));
}

void fill_in_process(void* shared, unsigned process) {
    auto& fill = *static_cast<PageFill*>(shared);
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext pages", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext before = MemoryContextSwitchTo(context);
    PageReader reader(fill);
    if (reader.open(process)) {
        fill.pages.read(
            process, [] { return true; },
            [&](std::uint64_t begin, std::uint64_t end) {
                reader.read(begin, end);
                return end;
            });
        reader.close();
    }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
}

std::size_t parts_of(std::size_t count) {
    return (count + kRowsAtOnce - 1) / kRowsAtOnce;
}

/// Calls work(begin, end) for parts of so many elements, on threads.
template <class Work>
Status in_parts(std::size_t count, Execution& execution, const Work& work) {
    return execution.parallel_for(parts_of(count), [&](std::size_t part, unsigned) {
        work(part * kRowsAtOnce, std::min(count, (part + 1) * kRowsAtOnce));
        return Status();
    });
}

/// What the session prepares.
class Preparation {
public:
    Preparation(const StoredValues& values, ChosenRows rows, PageFill& fill)
        : values_(values),
          rows_(rows),
          fill_(fill),
          count_(rows.empty() ? values.size() : rows.size()) {}

    /// Finds the tables, and opens them. False where it is not worth it.
    bool open_tables();
    /// Gives all back.
    void close();
    /// Fills the slots. False where several rows have one value.
    bool fill_slots();
    std::span<const Slot> slots() const { return {slots_.get(), slot_count_}; }

private:
    const StoredValue& stored(std::size_t i) const {
        return values_.stored(rows_.empty() ? i : rows_[i]);
    }
    /// Whether the value is as long as usual, and not compressed.
    bool is_plain(const StoredValue& value) const {
        return value.out_of_line() &&
               static_cast<std::uint64_t>(value.pointer.size) == fill_.value_bytes() + VARHDRSZ &&
               (value.pointer.stored_size & VARLENA_EXTSIZE_MASK) == fill_.value_bytes();
    }
    /// `last` is the table of the value before, or null.
    Table* table_of(const StoredValue& value, Table* last) const {
        if (last != nullptr && last->table == value.relation) return last;
        Table* const end = fill_.tables + tables_;
        Table* const found = std::find_if(
            fill_.tables, end, [&](const Table& table) { return table.table == value.relation; });
        return found == end ? nullptr : found;
    }
    void count_values();
    std::uint64_t put_values(std::size_t begin, std::size_t end) const;

    const StoredValues& values_;
    ChosenRows rows_;
    PageFill& fill_;
    std::size_t count_;
    unsigned tables_ = 0;
    Relation relations_[kMostTables] = {};
    std::uint64_t wanted_ = 0;  // values
    std::unique_ptr<Slot[]> slots_;
    std::size_t slot_count_ = 0;
};

void Preparation::count_values() {
    Table* table = nullptr;
    for (std::size_t i = 0; i < count_; ++i) {
        const StoredValue& value = stored(i);
        if (!is_plain(value)) continue;
        table = table_of(value, table);
        if (table == nullptr) {
            if (tables_ == kMostTables) continue;
            table = &fill_.tables[tables_++];
            table->table = value.relation;
        }
        ++table->values;
    }
}

bool Preparation::open_tables() {
    count_values();
    const unsigned found = tables_;
    tables_ = 0;
    for (unsigned i = 0; i < found; ++i) {
        Table table = fill_.tables[i];
        const Relation relation = table_open(table.table, AccessShareLock);
        table.pages = RelationGetNumberOfBlocks(relation);
        // A table of another access method may have another one for its TOAST table, too.
        if (relation->rd_rel->relam != HEAP_TABLE_AM_OID ||
            table.values * fill_.value_bytes() * kPart < std::uint64_t{table.pages} * BLCKSZ) {
            table_close(relation, AccessShareLock);
            continue;
        }
        table.first_slot = slot_count_;
        table.slots = std::bit_ceil(table.values + table.values / 2 + 1);
        slot_count_ += table.slots;
        wanted_ += table.values;
        relations_[tables_] = relation;
        fill_.tables[tables_++] = table;
    }
    std::fill(fill_.tables + tables_, fill_.tables + kMostTables, Table{});
    if (wanted_ >= kFewest) return true;
    close();
    return false;
}

void Preparation::close() {
    for (unsigned i = 0; i < tables_; ++i) table_close(relations_[i], AccessShareLock);
    slots_.reset();
}

/// Returns how many values of these rows no other row has.
std::uint64_t Preparation::put_values(std::size_t begin, std::size_t end) const {
    std::uint64_t put_so_far = 0;
    Table* table = nullptr;
    for (std::size_t i = begin; i < end; ++i) {
        const StoredValue& value = stored(i);
        if (!is_plain(value)) continue;
        table = table_of(value, table);
        if (table != nullptr)
            put_so_far += put({slots_.get() + table->first_slot, table->slots},
                              {value.pointer.id, static_cast<std::uint32_t>(i)});
    }
    return put_so_far;
}

bool Preparation::fill_slots() {
    attempt_or_raise([&] { slots_ = unwritten_pages<Slot>(slot_count_); });
    std::atomic<std::uint64_t> filled = 0;
    run_on_rows(count_, [&](Execution& execution) {
        execution.begin_phase("preparing pages", parts_of(slot_count_) + parts_of(count_));
        GPUTEXT_TRY(in_parts(slot_count_, execution, [&](std::size_t begin, std::size_t end) {
            std::fill_n(slots_.get() + begin, end - begin, Slot{InvalidOid, kNone});
        }));
        return in_parts(count_, execution, [&](std::size_t begin, std::size_t end) {
            filled += put_values(begin, end);
        });
    });
    return filled >= wanted_ - wanted_ / 8;
}

void read_pages(PageFill& fill, std::size_t size, std::span<const Slot> slots, unsigned workers,
                std::size_t memory_limit) {
    instr_time begin, end;
    INSTR_TIME_SET_CURRENT(begin);
    SharedArrays* const arrays = make_owned<SharedArrays>(CurrentMemoryContext, memory_limit);
    fill.slots = arrays->share(slots);
    std::uint64_t pages = 0;
    for (const Table& table : fill.tables) pages += table.pages;
    fill.pages.begin(pages, kStretch, workers + 1, "reading pages");
    run_parallel_work({fill_in_process, "gputext_fill_pages_worker", &fill, size}, workers);
    fill.pages.end();
    arrays->release();
    INSTR_TIME_SET_CURRENT(end);
    INSTR_TIME_SUBTRACT(end, begin);
    ereport(DEBUG1, (errmsg("read %llu pages of TOAST tables in %.1f ms",
                            static_cast<unsigned long long>(pages), INSTR_TIME_GET_MILLISEC(end))));
}

void find_left(PageFill& fill, std::size_t count, std::vector<std::uint32_t>& left) {
    for (std::size_t i = 0; i < count; ++i)
        if (fill.arrived()[i] != fill.chunks()) left.push_back(static_cast<std::uint32_t>(i));
}

}  // namespace

bool read_toast_pages(const StoredValues& values, ChosenRows rows, const VectorType& type,
                      std::size_t dimensions, unsigned workers, LaidOutBytes& elements,
                      std::vector<std::uint32_t>& left) {
    const std::size_t count = rows.empty() ? values.size() : rows.size();
    const std::size_t header_bytes = plain_header_size(type);
    const std::size_t row_bytes = row_size(type.element, dimensions);
    if (header_bytes == 0 || row_bytes > kLargest || count < kFewest) return false;
    const std::size_t size = sizeof(PageFill) + count * sizeof(std::uint16_t);
    PageFill& fill = *static_cast<PageFill*>(
        MemoryContextAllocExtended(CurrentMemoryContext, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
    fill.type = type;
    fill.dimensions = dimensions;
    fill.header_bytes = header_bytes;
    fill.row_bytes = row_bytes;
    Preparation& preparation = *make_owned<Preparation>(CurrentMemoryContext, values, rows, fill);
    if (!preparation.open_tables()) return false;
    const bool worth_it = preparation.fill_slots();
    if (worth_it) {
        fill.target = elements.files();
        read_pages(fill, size, preparation.slots(), workers, elements.memory_limit());
        attempt_or_raise([&] { find_left(fill, count, left); });
    }
    preparation.close();
    pfree(&fill);
    if (worth_it && !left.empty())
        ereport(DEBUG1,
                (errmsg("%zu of %zu vectors are not in them as usual", left.size(), count)));
    return worth_it;
}

}  // namespace gputext

extern "C" PGDLLEXPORT void gputext_fill_pages_worker(dsm_segment*, shm_toc* toc) {
    gputext::work_in_worker(toc, gputext::fill_in_process);
}
