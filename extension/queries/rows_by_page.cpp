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
void for_each_place(std::span<const ItemPointerData> rows, std::span<const ItemPointerData> nulls,
                    const Work& work) {
    for (std::size_t i = 0; i < rows.size() + nulls.size(); ++i) {
        if (i % kPart == 0) CHECK_FOR_INTERRUPTS();
        if (i < rows.size())
            work(static_cast<std::uint32_t>(i), rows[i]);
        else
            work(RowsByPage::kNull, nulls[i - rows.size()]);
    }
}

/// Compares pages, one after the other, with what the scan has found there.
class PageReader {
public:
    PageReader(Relation table, const RowsByPage& earlier, TableChanges& changes)
        : table_(table),
          earlier_(earlier),
          changes_(changes),
          next_transaction_(U64FromFullTransactionId(ReadNextFullTransactionId())) {}

    /// False where there are too many changes by now.
    bool read(BlockNumber number);

private:
    static constexpr std::uint32_t kNoRow = 0;

    void set_rows(BlockNumber number);
    bool is_known(const HeapTupleData& tuple, OffsetNumber line);
    void append_removed();

    Relation table_;
    const RowsByPage& earlier_;
    TableChanges& changes_;
    std::uint64_t next_transaction_;
    std::size_t begin_ = 0, end_ = 0;  // of the page's rows
    /// For each line, the row that was found there, counted from 1; kNoRow for none, and for one
    /// that has been found again.
    std::uint32_t row_at_[MaxHeapTuplesPerPage + 1];
};

void PageReader::set_rows(BlockNumber number) {
    begin_ = earlier_.begin(number);
    end_ = earlier_.end(number);
    std::fill(std::begin(row_at_), std::end(row_at_), kNoRow);
    for (std::size_t i = begin_; i < end_; ++i)
        row_at_[earlier_[i].line] = static_cast<std::uint32_t>(i - begin_ + 1);
}

/// Whether the tuple is a row that the scan has found.
bool PageReader::is_known(const HeapTupleData& tuple, OffsetNumber line) {
    if (line > MaxHeapTuplesPerPage || row_at_[line] == kNoRow ||
        latest_it_can_be(HeapTupleHeaderGetRawXmin(tuple.t_data), next_transaction_) >=
            earlier_.horizon())
        return false;
    row_at_[line] = kNoRow;
    return true;
}

void PageReader::append_removed() {
    for (std::size_t i = begin_; i < end_; ++i) {
        const RowsByPage::Row row = earlier_[i];
        if (row_at_[row.line] == kNoRow) continue;
        if (row.number == RowsByPage::kNull)
            ++changes_.removed_nulls;
        else
            append_or_raise(changes_.removed, row.number);
    }
}

bool PageReader::read(BlockNumber number) {
    CHECK_FOR_INTERRUPTS();
    set_rows(number);
    const Buffer buffer = ReadBuffer(table_, number);
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    const Page page = BufferGetPage(buffer);
    // 0 for a new page, too.
    const OffsetNumber lines = PageGetMaxOffsetNumber(page);
    for (OffsetNumber line = FirstOffsetNumber; line <= lines; ++line) {
        const ItemId item = PageGetItemId(page, line);
        if (!ItemIdIsNormal(item)) continue;
        HeapTupleData tuple{};
        tuple.t_tableOid = RelationGetRelid(table_);
        tuple.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
        tuple.t_len = ItemIdGetLength(item);
        ItemPointerSet(&tuple.t_self, number, line);
        if (HeapTupleSatisfiesVisibility(&tuple, GetActiveSnapshot(), buffer) &&
            !is_known(tuple, line))
            append_or_raise(changes_.added, heap_copytuple(&tuple));
    }
    UnlockReleaseBuffer(buffer);
    append_removed();
    return changes_.added.size() <= kMostChanges && changes_.removed.size() <= kMostChanges;
}

}  // namespace

void RowsByPage::set(std::span<const ItemPointerData> rows, std::span<const ItemPointerData> nulls,
                     BlockNumber pages, std::uint64_t horizon) {
    const std::size_t count = rows.size() + nulls.size();
    begins_.clear();
    if (count >= kNull) return;
    attempt_or_raise([&] {
        begins_.resize(std::size_t{pages} + 2);
        numbers_.resize(count);
        lines_.resize(count);
    });
    // The rows of page p are counted at p + 2, so that their places can be counted up at p + 1.
    std::uint32_t* const begins = begins_.data();
    bool all = true;
    for_each_place(rows, nulls, [&](std::uint32_t, const ItemPointerData& place) {
        const BlockNumber page = ItemPointerGetBlockNumberNoCheck(&place);
        if (page < pages && ItemPointerGetOffsetNumberNoCheck(&place) <= MaxHeapTuplesPerPage)
            ++begins[page + 2];
        else
            all = false;
    });
    if (!all) return begins_.clear();
    for (std::size_t page = 2; page < begins_.size(); ++page) begins[page] += begins[page - 1];
    for_each_place(rows, nulls, [&](std::uint32_t number, const ItemPointerData& place) {
        const std::uint32_t at = begins[ItemPointerGetBlockNumberNoCheck(&place) + 1]++;
        numbers_.set(at, number);
        lines_.set(at, ItemPointerGetOffsetNumberNoCheck(&place));
    });
    begins_.resize(std::size_t{pages} + 1);
    horizon_ = horizon;
}

bool find_changes(Relation table, const TableState& now, const RowsByPage& earlier,
                  TableChanges& changes) {
    const GrowingArray<BlockNumber>& pages = now.pages_to_read();
    if (pages.empty()) return true;
    if (!earlier.known()) return false;
    PageReader reader(table, earlier, changes);
    for (std::size_t i = 0; i < pages.size(); ++i)
        if (!reader.read(pages[i])) return false;
    return true;
}

}  // namespace gputext
