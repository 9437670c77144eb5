#include "extension/index/pages_ahead.hpp"

extern "C" {
#include "storage/buf_internals.h"
}

#include "extension/base/server_versions.hpp"

namespace gputext::index {
namespace {

constexpr std::size_t kCacheLine = 64;

/// What is read of a sketch page to see which sketches its letters leave: the columns before the
/// bigrams, which take a sixth of the room if sketches have the usual size, and the trailer.
void prefetch(const char* page) {
    for (std::size_t at = 0; at < kPageRoom / 6; at += kCacheLine) __builtin_prefetch(page + at);
    __builtin_prefetch(page + BLCKSZ - 1);
}

/// Where this session last found the page, InvalidBuffer for nowhere.
Buffer* recent_buffer(OpenIndex& opened, BlockNumber block) {
    return block < opened.recent_count ? &opened.recent[block] : nullptr;
}

}  // namespace

void PagesAhead::want(Relation index) {
    OpenIndex& opened = open_index(index);
    for (; wanted_ < count_ && wanted_ - taken_ < kWanted; ++wanted_) {
        const Buffer* const recent = recent_buffer(opened, blocks_[wanted_]);
        if (recent == nullptr || *recent <= 0) continue;  // a local one is below zero
        // It may have another page by now, which is as good to read.
        __builtin_prefetch(GetBufferDescriptor(*recent - 1), 1);
        prefetch(static_cast<const char*>(BufferGetBlock(*recent)));
    }
}

void PagesAhead::pin(Relation index) {
    OpenIndex& opened = open_index(index);
    for (; pinned_ < count_ && pinned_ - taken_ < kPinned; ++pinned_) {
        const BlockNumber block = blocks_[pinned_];
        Buffer* const recent = recent_buffer(opened, block);
        Buffer& buffer = buffers_[pinned_ % kPinned];
        if (recent != nullptr && *recent != InvalidBuffer &&
            ReadRecentBuffer(files_of(index), MAIN_FORKNUM, block, *recent)) {
            buffer = *recent;
            continue;
        }
        buffer = ReadBuffer(index, block);
        prefetch(static_cast<const char*>(BufferGetBlock(buffer)));
        if (recent != nullptr) *recent = buffer;
    }
}

Buffer PagesAhead::take(Relation index) {
    want(index);
    pin(index);
    return buffers_[taken_++ % kPinned];
}

void PagesAhead::release() {
    for (; taken_ < pinned_; ++taken_) ReleaseBuffer(buffers_[taken_ % kPinned]);
}

}  // namespace gputext::index
