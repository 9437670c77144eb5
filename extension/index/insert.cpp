// extension/index/insert.cpp - puts a row's sketch into an index

#include "extension/index/access_method.hpp"

extern "C" {
#include "access/generic_xlog.h"
#include "nodes/execnodes.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>

#include "extension/base/owned.hpp"
#include "extension/index/row_sketcher.hpp"

namespace gputext::index {
namespace {

/// Puts one row's sketch on a page.
class Insertion {
public:
    Insertion(Relation index, ItemPointerData row, SketchedDocument document,
              const std::uint8_t* sketch)
        : index_(index),
          pages_(open_index(index).pages(document.model)),
          row_(row),
          document_(document),
          sketch_(sketch),
          kind_{length_class(document.length), document.model} {}

    void run() {
        const BlockNumber target = open_index(index_).target(kind_);
        if (target != InvalidBlockNumber && put(target)) return;
        for (std::uint32_t group = 0;; ++group) {
            CHECK_FOR_INTERRUPTS();
            prepare_group(group);
            if (put_into_group(group)) return;
        }
    }

private:
    /// Whether the page has sketches of the kind and had room.
    bool put(BlockNumber block) {
        const Buffer buffer = read_sketches(index_, block, BUFFER_LOCK_EXCLUSIVE);
        const Page page = BufferGetPage(buffer);
        const bool fits = is_in_use(page) && trailer(page)->sketches == kind_ &&
                          trailer(page)->count < pages_.capacity();
        if (fits) {
            GenericXLogState* const log = GenericXLogStart(index_);
            pages_.append(GenericXLogRegisterBuffer(log, buffer, 0), row_, document_, sketch_);
            GenericXLogFinish(log);
            open_index(index_).target(kind_) = block;
        }
        UnlockReleaseBuffer(buffer);
        return fits;
    }

    /// Puts the sketch on a page of its kind that has room, or on one that is not in use. False if
    /// the group has neither.
    bool put_into_group(std::uint32_t group) {
        std::uint32_t entry = 0;
        bool has_unused = false;
        while (find_entry(group, entry, has_unused)) {
            if (put(block_of(group, entry))) return true;
            mark_full(group, entry);
            ++entry;
        }
        return has_unused && put_on_unused(group);
    }

    /// The next page of the kind that may have room, from an entry on.
    bool find_entry(std::uint32_t group, std::uint32_t& entry, bool& has_unused) const {
        const Buffer buffer = read_directory(index_, directory_block(group), BUFFER_LOCK_SHARE);
        const DirectoryEntry* const entries = directory_entries(BufferGetPage(buffer));
        for (; entry < kGroupEntries; ++entry) {
            if (entries[entry].length_class == kNoClass) has_unused = true;
            if (entries[entry].sketches() == kind_ && entries[entry].full == 0) break;
        }
        UnlockReleaseBuffer(buffer);
        return entry < kGroupEntries;
    }

    /// So that inserts do not look at the page again. Others may have emptied it meanwhile, and may
    /// have taken it for another kind.
    void mark_full(std::uint32_t group, std::uint32_t entry) {
        const Buffer directory =
            read_directory(index_, directory_block(group), BUFFER_LOCK_EXCLUSIVE);
        const Buffer buffer = read_sketches(index_, block_of(group, entry), BUFFER_LOCK_SHARE);
        const Page page = BufferGetPage(buffer);
        const DirectoryEntry& found = directory_entries(BufferGetPage(directory))[entry];
        if (is_in_use(page) && trailer(page)->count == pages_.capacity() &&
            found.sketches() == kind_ && found.full == 0) {
            GenericXLogState* const log = GenericXLogStart(index_);
            directory_entries(GenericXLogRegisterBuffer(log, directory, 0))[entry].full = 1;
            GenericXLogFinish(log);
        }
        UnlockReleaseBuffer(buffer);
        UnlockReleaseBuffer(directory);
    }

    /// The first page of the group that is not in use; InvalidBlockNumber for none.
    BlockNumber unused_page(std::uint32_t group, Buffer directory) const {
        const DirectoryEntry* const entries = directory_entries(BufferGetPage(directory));
        const DirectoryEntry* const unused = std::find_if(
            entries, entries + kGroupEntries,
            [](const DirectoryEntry& entry) { return entry.length_class == kNoClass; });
        return unused == entries + kGroupEntries
                   ? InvalidBlockNumber
                   : block_of(group, static_cast<std::uint32_t>(unused - entries));
    }

    /// The group's directory, locked for this process, and the page that unused_page() gives, which
    /// the relation has. InvalidBuffer if there is none.
    Buffer lock_unused(std::uint32_t group, BlockNumber& block) {
        for (;;) {
            const Buffer directory =
                read_directory(index_, directory_block(group), BUFFER_LOCK_EXCLUSIVE);
            block = unused_page(group, directory);
            if (block != InvalidBlockNumber && block < RelationGetNumberOfBlocks(index_))
                return directory;
            UnlockReleaseBuffer(directory);
            if (block == InvalidBlockNumber) return InvalidBuffer;
            // Others need the directory while the file grows, and may take the page then.
            CHECK_FOR_INTERRUPTS();
            extend_to(block);
        }
    }

    /// Takes a page that is not in use. False if others have taken all of them.
    bool put_on_unused(std::uint32_t group) {
        BlockNumber block;
        const Buffer directory = lock_unused(group, block);
        if (!BufferIsValid(directory)) return false;
        const std::uint32_t entry = entry_of(block);
        const Buffer buffer = read_sketches(index_, block, BUFFER_LOCK_EXCLUSIVE);
        if (is_in_use(BufferGetPage(buffer)))
            raise_damaged(index_, directory_block(group),
                          "It says of a page with sketches that it is not in use.");

        GenericXLogState* const log = GenericXLogStart(index_);
        directory_entries(GenericXLogRegisterBuffer(log, directory, 0))[entry] = {
            kind_.length_class, kind_.model, 0};
        const Page page = GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE);
        initialize_sketches(page, pages_.shape(), kind_);
        pages_.append(page, row_, document_, sketch_);
        GenericXLogFinish(log);
        open_index(index_).target(kind_) = block;
        UnlockReleaseBuffer(buffer);
        UnlockReleaseBuffer(directory);
        return true;
    }

    /// The relation is as long as its directories say, but for pages that were never in use.
    void extend_to(BlockNumber block) {
        if (block < RelationGetNumberOfBlocks(index_)) return;
        LockRelationForExtension(index_, ExclusiveLock);
        while (block >= RelationGetNumberOfBlocks(index_)) ReleaseBuffer(ReadBuffer(index_, P_NEW));
        UnlockRelationForExtension(index_, ExclusiveLock);
    }

    /// Makes sure that the group has a directory. A server that crashed may have left a page for it
    /// that was never written.
    void prepare_group(std::uint32_t group) {
        if (group >= kMostGroups)
            ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                            errmsg("index \"%s\" cannot grow any further",
                                   RelationGetRelationName(index_))));
        const BlockNumber block = directory_block(group);
        extend_to(block);
        Buffer buffer = read_directory(index_, block, BUFFER_LOCK_SHARE);
        if (PageIsNew(BufferGetPage(buffer))) {
            LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
            LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
            if (PageIsNew(BufferGetPage(buffer))) {
                GenericXLogState* const log = GenericXLogStart(index_);
                initialize_directory(
                    GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE));
                GenericXLogFinish(log);
            }
        }
        UnlockReleaseBuffer(buffer);
    }

    static BlockNumber block_of(std::uint32_t group, std::uint32_t entry) {
        return directory_block(group) + 1 + entry;
    }

    Relation index_;
    const SketchPages pages_;
    const ItemPointerData row_;
    const SketchedDocument document_;
    const std::uint8_t* sketch_;
    const SketchKind kind_;
};

/// The sketcher of a statement that inserts rows.
RowSketcher& sketcher_of(Relation index, IndexInfo* info) {
    if (info->ii_AmCache == nullptr)
        info->ii_AmCache = make_owned<RowSketcher>(info->ii_Context, open_index(index));
    return *static_cast<RowSketcher*>(info->ii_AmCache);
}

}  // namespace

bool insert_row(Relation index, Datum* values, bool* nulls, ItemPointer row, Relation,
                IndexUniqueCheck, bool, IndexInfo* info) {
    if (nulls[0]) return false;
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext document", ALLOCSET_SMALL_SIZES);
    const MemoryContext outside = MemoryContextSwitchTo(context);
    RowSketcher& sketcher = sketcher_of(index, info);
    const SketchedDocument document = sketcher.sketch(values[0]);
    Insertion(index, *row, document, sketcher.bytes()).run();
    MemoryContextSwitchTo(outside);
    MemoryContextDelete(context);
    return false;
}

}  // namespace gputext::index
