#include "extension/index/vacuum.hpp"

extern "C" {
#include "access/generic_xlog.h"
#include "commands/vacuum.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
}

#include "extension/base/server_versions.hpp"
#include "extension/index/open_index.hpp"

namespace gputext::index {
namespace {

/// One walk over all sketch pages.
struct Walk {
    IndexVacuumInfo* info;
    IndexBulkDeleteResult* result;
    IndexBulkDeleteCallback is_dead;  // none: only count
    void* state;

    Relation index() const { return info->index; }

    void run() {
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

    void visit(BlockNumber block) {
        const Buffer buffer = read_sketches(index(), block, BUFFER_LOCK_EXCLUSIVE, info->strategy);
        const Page page = BufferGetPage(buffer);
        if (!is_in_use(page)) {
            ++result->pages_free;
            UnlockReleaseBuffer(buffer);
            return;
        }
        const SketchPages pages = open_index(index()).pages(trailer(page)->sketches.model);
        const bool was_full = trailer(page)->count == pages.capacity();
        const bool removed = is_dead != nullptr && remove_dead(buffer, pages);
        const std::uint16_t left = trailer(page)->count;
        result->num_index_tuples += left;
        UnlockReleaseBuffer(buffer);
        // An insert may have found the page full and have said so in the directory.
        if (is_dead != nullptr && (left == 0 || (removed && was_full))) update_directory(block);
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
    Walk{info, result, is_dead, state}.run();
    return result;
}

IndexBulkDeleteResult* end_vacuum(IndexVacuumInfo* info, IndexBulkDeleteResult* result) {
    if (info->analyze_only) return result;
    if (result == nullptr) {
        result = empty_result();
        Walk{info, result, nullptr, nullptr}.run();
    }
    return result;
}

}  // namespace gputext::index
