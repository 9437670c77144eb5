// extension/index/pages_ahead.hpp - pages that are in the processor's cache when they are read
//
// A search reads a sixth of a page whose sketches are all excluded, and reads it once. It mostly
// waits for memory: the server's table of buffers, a buffer's header, the page. So a session
// remembers in which buffer it last found a page, prefetches the pages that come next, and pins
// some of them early.

#pragma once

#include "extension/index/open_index.hpp"

namespace gputext::index {

/// A walk over blocks of an index. Pins of pages that were not taken are released by release(), or
/// when the transaction ends with an error.
class PagesAhead {
public:
    PagesAhead() = default;
    /// The blocks are not copied.
    PagesAhead(const BlockNumber* blocks, std::uint32_t count) : blocks_(blocks), count_(count) {}

    bool is_done() const { return taken_ == count_; }
    BlockNumber block() const { return blocks_[taken_]; }  // that take() gives

    /// The next page's buffer, which is pinned for the caller. Requires that it is not done.
    Buffer take(Relation index);

    void release();

private:
    static constexpr std::uint32_t kPinned = 4, kWanted = 16;

    void want(Relation index);
    void pin(Relation index);

    const BlockNumber* blocks_ = nullptr;
    std::uint32_t count_ = 0, wanted_ = 0, pinned_ = 0, taken_ = 0;
    Buffer buffers_[kPinned] = {};  // of block i at i % kPinned
};

}  // namespace gputext::index
