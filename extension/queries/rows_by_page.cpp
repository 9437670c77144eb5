#include "extension/queries/rows_by_page.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

#include <algorithm>

#include "cpp/base/prefetch.hpp"
#include "extension/base/failure.hpp"
#include "extension/values/row_versions.hpp"

namespace gputext {
namespace {

/// Rows between two looks for a cancel.
constexpr std::size_t kPart = 4096;
/// More rows gained or lost cost each statement more than one scan does.
constexpr std::size_t kMostChanges = 512;

/// Calls work(number, place) for each row.
template <class Work>
void for_each_place(const RowsByPage::Places& places, const Work& work) {
    std::uint32_t number = 0;
    for (const ItemPointerData& row : places.rows) {
        if (number % kPart == 0) CHECK_FOR_INTERRUPTS();
        work(number++, row);
    }
    const auto work_on_others = [&](std::span<const ItemPointerData> others, std::uint32_t kind) {
        for (std::size_t i = 0; i < others.size(); ++i) {
            if (i % kPart == 0) CHECK_FOR_INTERRUPTS();
            work(kind, others[i]);
        }
    };
    work_on_others(places.nulls, RowsByPage::kNull);
    work_on_others(places.left_out, RowsByPage::kLeftOut);
}

/// Compares pages, one after the other, with what the scan has found there.
class PageReader {
public:
    /// Tuples of transactions from `horizon` on are no rows that the scan has found; with kAll those
    /// of any transaction may be.
    PageReader(Relation table, const RowsByPage& earlier, std::uint64_t horizon, std::size_t pages)
        : table_(table),
          earlier_(earlier),
          next_(U64FromFullTransactionId(ReadNextFullTransactionId())),
          all_(horizon == kAll),
          age_(horizon < next_ ? next_ - horizon : 0),
          snapshot_(GetActiveSnapshot()),
          strategy_(pages > static_cast<std::size_t>(NBuffers) / 4
                        ? GetAccessStrategy(BAS_BULKREAD)
                        : nullptr) {}

    static constexpr std::uint64_t kAll = UINT64_MAX;

    /// Until close(), the page stays. `next` is the page to read after it, InvalidBlockNumber for
    /// none.
    void read(BlockNumber number, BlockNumber next);
    void close() { ReleaseBuffer(buffer_); }
    void end() {
        if (BufferIsValid(next_buffer_)) ReleaseBuffer(next_buffer_);
        if (strategy_ != nullptr) FreeAccessStrategy(strategy_);
    }

    /// Of the page that was read: how many tuples the scan has not found, and each of them.
    std::size_t new_tuples() const { return new_; }
    HeapTupleData new_tuple(std::size_t i) const { return tuple(new_lines_[i]); }
    /// Calls work(number) for each row that the scan has found and that is gone.
    template <class Work>
    void for_each_gone(const Work& work) const {
        if (missing_ == 0) return;
        for (std::size_t i = begin_; i < end_; ++i)
            if (row_at_[earlier_[i].line] != kNoRow) work(earlier_[i].number);
    }

private:
    static constexpr bool kNoRow = false;

    void set_rows();
    Buffer pin(BlockNumber number) const;
    bool is_old(TransactionId made_by) const;
    bool is_seen(HeapTupleHeader header, OffsetNumber line) const;
    HeapTupleData tuple(OffsetNumber line) const;
    bool is_known(HeapTupleHeader tuple, OffsetNumber line);

    Relation table_;
    const RowsByPage& earlier_;
    std::uint64_t next_;  // transaction
    bool all_;            // of any transaction
    std::uint64_t age_;   // that older transactions than the horizon have at least, if not more
    Snapshot snapshot_;
    BufferAccessStrategy strategy_;
    BlockNumber number_ = InvalidBlockNumber;
    Buffer buffer_ = InvalidBuffer;
    Buffer next_buffer_ = InvalidBuffer;  // of the page to read next
    std::size_t begin_ = 0, end_ = 0;     // of the page's rows
    std::size_t missing_ = 0;             // of these
    std::size_t new_ = 0;
    OffsetNumber new_lines_[MaxHeapTuplesPerPage];
    /// For each line, whether a row was found there by the scan, and has not been found again.
    bool row_at_[MaxHeapTuplesPerPage + 1];
};

void PageReader::set_rows() {
    begin_ = earlier_.begin(number_);
    end_ = earlier_.end(number_);
    missing_ = end_ - begin_;
    std::fill(std::begin(row_at_), std::end(row_at_), kNoRow);
    for (std::size_t i = begin_; i < end_; ++i) row_at_[earlier_[i].line] = !kNoRow;
}

/// Whether latest_it_can_be() of the transaction is below the horizon.
inline bool PageReader::is_old(TransactionId made_by) const {
    const std::uint32_t age = static_cast<std::uint32_t>(next_) - made_by;
    return TransactionIdIsNormal(made_by) && age > age_ && age <= next_;
}

/// As HeapTupleSatisfiesVisibility(), which is asked where hint bits do not tell.
inline bool PageReader::is_seen(HeapTupleHeader header, OffsetNumber line) const {
    if ((header->t_infomask & HEAP_XMIN_FROZEN) == HEAP_XMIN_COMMITTED &&
        (header->t_infomask & HEAP_XMAX_INVALID) != 0 &&
        TransactionIdPrecedes(HeapTupleHeaderGetRawXmin(header), snapshot_->xmin))
        return true;
    HeapTupleData asked = tuple(line);
    return HeapTupleSatisfiesVisibility(&asked, snapshot_, buffer_);
}

/// Whether the tuple is a row that the scan has found.
inline bool PageReader::is_known(HeapTupleHeader tuple, OffsetNumber line) {
    if (row_at_[line] == kNoRow || !(all_ || is_old(HeapTupleHeaderGetRawXmin(tuple))))
        return false;
    row_at_[line] = kNoRow;
    --missing_;
    return true;
}

HeapTupleData PageReader::tuple(OffsetNumber line) const {
    const Page page = BufferGetPage(buffer_);
    const ItemId item = PageGetItemId(page, line);
    HeapTupleData tuple{};
    tuple.t_tableOid = RelationGetRelid(table_);
    tuple.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
    tuple.t_len = ItemIdGetLength(item);
    ItemPointerSet(&tuple.t_self, number_, line);
    return tuple;
}

/// Has the processor fetch the page meanwhile: otherwise most of the time goes into waiting for it.
Buffer PageReader::pin(BlockNumber number) const {
    const Buffer buffer = ReadBufferExtended(table_, MAIN_FORKNUM, number, RBM_NORMAL, strategy_);
    prefetch(BufferGetPage(buffer), BLCKSZ);
    return buffer;
}

void PageReader::read(BlockNumber number, BlockNumber next) {
    CHECK_FOR_INTERRUPTS();
    number_ = number;
    buffer_ = BufferIsValid(next_buffer_) ? next_buffer_ : pin(number);
    next_buffer_ = BlockNumberIsValid(next) ? pin(next) : InvalidBuffer;
    set_rows();
    LockBuffer(buffer_, BUFFER_LOCK_SHARE);
    const Page page = BufferGetPage(buffer_);
    // As a scan does it (heapgetpage()).
    const bool all_visible = PageIsAllVisible(page) && !snapshot_->takenDuringRecovery;
    // 0 for a new page, too.
    const OffsetNumber lines =
        std::min<OffsetNumber>(PageGetMaxOffsetNumber(page), MaxHeapTuplesPerPage);
    new_ = 0;
    for (OffsetNumber line = FirstOffsetNumber; line <= lines; ++line) {
        const ItemId item = PageGetItemId(page, line);
        if (!ItemIdIsNormal(item)) continue;
        const auto header = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
        if ((all_visible || is_seen(header, line)) && !is_known(header, line))
            new_lines_[new_++] = line;
    }
    // Tuples stay where they are while the page is pinned.
    LockBuffer(buffer_, BUFFER_LOCK_UNLOCK);
}

/// Appends how the page differs. False where there are too many changes by now.
bool append_changes(const PageReader& page, BlockNumber number, RowCondition* condition,
                    TableChanges& changes) {
    const std::size_t before = changes.added.size() + changes.removed.size() + changes.removed_nulls;
    for (std::size_t i = 0; i < page.new_tuples(); ++i) {
        HeapTupleData tuple = page.new_tuple(i);
        if (condition != nullptr && !condition->holds(&tuple)) continue;
        append_or_raise(changes.added, heap_copytuple(&tuple));
    }
    page.for_each_gone([&](std::uint32_t number_of_row) {
        if (number_of_row == RowsByPage::kNull)
            ++changes.removed_nulls;
        else if (number_of_row != RowsByPage::kLeftOut)
            append_or_raise(changes.removed, number_of_row);
    });
    if (changes.added.size() + changes.removed.size() + changes.removed_nulls > before)
        append_or_raise(changes.pages, number);
    return changes.added.size() <= kMostChanges && changes.removed.size() <= kMostChanges;
}

}  // namespace

void RowsByPage::set(const Places& places, BlockNumber pages, std::uint64_t horizon) {
    const std::size_t count = places.rows.size() + places.nulls.size() + places.left_out.size();
    begins_.clear();
    if (count >= kLeftOut) return;
    attempt_or_raise([&] {
        begins_.resize(std::size_t{pages} + 2);
        numbers_.allot(count);
        lines_.allot(count);
    });
    // The rows of page p are counted at p + 2, so that their places can be counted up at p + 1.
    std::uint32_t* const begins = begins_.data();
    bool all = true;
    for_each_place(places, [&](std::uint32_t, const ItemPointerData& place) {
        const BlockNumber page = ItemPointerGetBlockNumberNoCheck(&place);
        if (page < pages && ItemPointerGetOffsetNumberNoCheck(&place) <= MaxHeapTuplesPerPage)
            ++begins[page + 2];
        else
            all = false;
    });
    if (!all) return begins_.clear();
    for (std::size_t page = 2; page < begins_.size(); ++page) begins[page] += begins[page - 1];
    for_each_place(places, [&](std::uint32_t number, const ItemPointerData& place) {
        const std::uint32_t at = begins[ItemPointerGetBlockNumberNoCheck(&place) + 1]++;
        numbers_.set(at, number);
        lines_.set(at, ItemPointerGetOffsetNumberNoCheck(&place));
    });
    begins_.resize(std::size_t{pages} + 1);
    horizon_ = horizon;
}

void RowsByPage::places_of_rows(GrowingArray<ItemPointerData>& places) const {
    attempt_or_raise([&] { places.resize(numbers_.size()); });
    std::size_t rows = 0;
    for (BlockNumber page = 0; page + 1 < begins_.size(); ++page) {
        if (page % kPart == 0) CHECK_FOR_INTERRUPTS();
        for (std::size_t i = begin(page); i < end(page); ++i) {
            if (numbers_[i] >= kLeftOut) continue;
            ItemPointerSet(&places.data()[numbers_[i]], page, lines_[i]);
            ++rows;
        }
    }
    places.resize(rows);
}

bool find_changes(Relation table, const TableState& now, const RowsByPage& earlier,
                  RowCondition* condition, TableChanges& changes) {
    const GrowingArray<BlockNumber>& pages = now.pages_to_read();
    if (pages.empty()) return true;
    if (!earlier.known()) return false;
    PageReader reader(table, earlier, earlier.horizon(), pages.size());
    bool few = true;
    for (std::size_t i = 0; i < pages.size() && few; ++i) {
        reader.read(pages[i], i + 1 < pages.size() ? pages[i + 1] : InvalidBlockNumber);
        few = append_changes(reader, pages[i], condition, changes);
        reader.close();
    }
    reader.end();
    return few;
}

void find_left_out(Relation table, const RowsByPage& found, BlockNumber pages,
                   GrowingArray<ItemPointerData>& left_out) {
    // What lies where the scan has found a row is that row, as its snapshot is still in use.
    PageReader reader(table, found, PageReader::kAll, pages);
    for (BlockNumber page = 0; page < pages; ++page) {
        reader.read(page, page + 1 < pages ? page + 1 : InvalidBlockNumber);
        for (std::size_t i = 0; i < reader.new_tuples(); ++i)
            append_or_raise(left_out, reader.new_tuple(i).t_self);
        reader.close();
    }
    reader.end();
}

}  // namespace gputext
