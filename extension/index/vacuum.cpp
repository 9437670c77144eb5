#include "extension/index/access_method.hpp"

extern "C" {
#include "access/generic_xlog.h"
#include "commands/vacuum.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
}

#include <algorithm>

#include "extension/base/server_versions.hpp"
#include "extension/index/open_index.hpp"

namespace gputext::index {
namespace {

/// One walk over the sketch pages.
struct Walk {
    IndexVacuumInfo* info;
    IndexBulkDeleteResult* result;
    IndexBulkDeleteCallback is_dead;
    void* state;

    Relation index() const { return info->index; }

    /// All pages, without those of rows that are dead.
    void remove() {
        result->num_index_tuples = 0;
        result->pages_free = 0;
        // Rows of pages that come later are newer than this VACUUM.
        const BlockNumber blocks = RelationGetNumberOfBlocks(index());
        for (BlockNumber block = kMetaBlock + 1; block < blocks; ++block) {
            delay_vacuum();
            if (!is_directory(block) && !is_model(open_index(index()), block)) visit(block);
        }
        result->num_pages = RelationGetNumberOfBlocks(index());
    }

    /// Reads the directory, and only pages that it does not call full.
    void count() {
        const BlockNumber blocks = RelationGetNumberOfBlocks(index());
        for (std::uint32_t group = 0; group < groups_in(blocks); ++group)
            count_group(group, blocks);
        result->num_pages = blocks;
    }

    void count_group(std::uint32_t group, BlockNumber blocks) {
        DirectoryEntry entries[kGroupEntries];
        const BlockNumber first = directory_block(group) + 1;
        const Buffer directory = read_directory(index(), first - 1, BUFFER_LOCK_SHARE);
        const bool is_new = PageIsNew(BufferGetPage(directory));
        if (!is_new)
            std::copy_n(directory_entries(BufferGetPage(directory)), kGroupEntries, entries);
        UnlockReleaseBuffer(directory);
        if (is_new) return;
        for (std::uint32_t i = 0; i < kGroupEntries && first + i < blocks; ++i) {
            const DirectoryEntry& entry = entries[i];
            delay_vacuum();
            if (entry.length_class == kNoClass)
                ++result->pages_free;
            else if (entry.length_class != kModelClass)
                result->num_index_tuples += sketches_on(first + i, entry);
        }
    }

    std::uint16_t sketches_on(BlockNumber block, const DirectoryEntry& entry) {
        const OpenIndex& opened = open_index(index());
        if (entry.full != 0 && entry.model < opened.model_count)
            return opened.pages(entry.model).capacity();
        const Buffer buffer = read_sketches(index(), block, BUFFER_LOCK_SHARE, info->strategy);
        const Page page = BufferGetPage(buffer);
        const std::uint16_t found = is_in_use(page) ? trailer(page)->count : 0;
        UnlockReleaseBuffer(buffer);
        return found;
    }

    void visit(BlockNumber block) {
        const Buffer buffer = read_sketches(index(), block, BUFFER_LOCK_SHARE, info->strategy);
        const Page page = BufferGetPage(buffer);
        if (!is_in_use(page)) {
            ++result->pages_free;
            UnlockReleaseBuffer(buffer);
            return;
        }
        const SketchPages pages = open_index(index()).pages(trailer(page)->sketches.model);
        bool was_full = false, removed = false;
        if (has_dead(page, pages)) {
            // Others may have added sketches meanwhile; only VACUUM takes some away.
            LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
            LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
            was_full = trailer(page)->count == pages.capacity();
            removed = remove_dead(buffer, pages);
        }
        const std::uint16_t left = trailer(page)->count;
        result->num_index_tuples += left;
        UnlockReleaseBuffer(buffer);
        // An insert may have found the page full and have said so in the directory.
        if (left == 0 || (removed && was_full)) update_directory(block);
    }

    bool has_dead(Page page, const SketchPages& pages) {
        ItemPointerData* const rows = pages.rows(page);
        return std::any_of(rows, rows + trailer(page)->count,
                           [this](ItemPointerData& row) { return is_dead(&row, state); });
    }

    /// The last sketch takes the place of one that is removed.
    bool remove_dead(Buffer buffer, const SketchPages& pages) {
        const Page page = BufferGetPage(buffer);
        GenericXLogState* log = nullptr;
        Page changed = page;
        for (std::uint16_t place = 0; place < trailer(changed)->count;) {
            if (!is_dead(&pages.rows(changed)[place], state)) {
                ++place;
                continue;
            }
            if (log == nullptr) {
                log = GenericXLogStart(index());
                changed = GenericXLogRegisterBuffer(log, buffer, 0);
            }
            const auto last = static_cast<std::uint16_t>(trailer(changed)->count - 1);
            if (place < last) pages.move(changed, last, place);
            trailer(changed)->count = last;
            ++result->tuples_removed;
        }
        if (log == nullptr) return false;
        GenericXLogFinish(log);
        return true;
    }

    /// Says that a page has room, or gives it back if it has no sketches.
    void update_directory(BlockNumber block) {
        const BlockNumber group_block = directory_block(group_of(block));
        const Buffer directory = read_directory(index(), group_block, BUFFER_LOCK_EXCLUSIVE);
        if (PageIsNew(BufferGetPage(directory)))
            raise_damaged(index(), group_block, "The page is empty.");
        const Buffer buffer = read_sketches(index(), block, BUFFER_LOCK_EXCLUSIVE);
        const Page page = BufferGetPage(buffer);
        const std::uint32_t entry = entry_of(block);
        const DirectoryEntry& found = directory_entries(BufferGetPage(directory))[entry];
        if (is_in_use(page)) {
            const bool empty = trailer(page)->count == 0;
            if (empty || found.full != 0) {
                GenericXLogState* const log = GenericXLogStart(index());
                DirectoryEntry& changed =
                    directory_entries(GenericXLogRegisterBuffer(log, directory, 0))[entry];
                changed.full = 0;
                if (empty) {
                    changed.length_class = kNoClass;
                    trailer(GenericXLogRegisterBuffer(log, buffer, 0))->kind = PageKind::unused;
                    ++result->pages_newly_deleted;
                    ++result->pages_free;
                }
                GenericXLogFinish(log);
            }
        }
        UnlockReleaseBuffer(buffer);
        UnlockReleaseBuffer(directory);
    }
};

IndexBulkDeleteResult* empty_result() {
    return static_cast<IndexBulkDeleteResult*>(palloc0(sizeof(IndexBulkDeleteResult)));
}

}  // namespace

IndexBulkDeleteResult* remove_rows(IndexVacuumInfo* info, IndexBulkDeleteResult* result,
                                   IndexBulkDeleteCallback is_dead, void* state) {
    if (result == nullptr) result = empty_result();
    Walk{info, result, is_dead, state}.remove();
    return result;
}

IndexBulkDeleteResult* end_vacuum(IndexVacuumInfo* info, IndexBulkDeleteResult* result) {
    if (info->analyze_only) return result;
    if (result == nullptr) {
        result = empty_result();
        Walk{info, result, nullptr, nullptr}.count();
    }
    return result;
}

}  // namespace gputext::index
