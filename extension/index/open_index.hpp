// extension/index/open_index.hpp - what a session keeps of an index while its relation is open

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "storage/bufmgr.h"
#include "utils/relcache.h"
}

#include "cpp/base/characters.hpp"
#include "extension/index/format.hpp"

namespace gputext::index {

/// Kept beside the relation's entry in the relation cache, for as long as that is valid.
struct OpenIndex {
    SketchShape shape;
    std::uint16_t numbers[SketchModel::size({SketchShape::most_bins})];  // of the model
    bool binary;  // documents are bytea, and compared by bytes
    /// By length class: where this session last put a sketch, InvalidBlockNumber for nowhere.
    BlockNumber targets[kNoClass];

    SketchModel model() const { return SketchModel(shape, numbers); }
    SketchPages pages() const { return SketchPages(shape); }
    const CharacterLengths& characters() const;
};

/// Reads the meta page if need be. Raises an error if it is damaged.
OpenIndex& open_index(Relation index);

/// A pinned buffer, locked as `lock` says (BUFFER_LOCK_SHARE or BUFFER_LOCK_EXCLUSIVE), whose page
/// passes check_page().
Buffer read_locked(Relation index, BlockNumber block, PageKind kind, int lock,
                   BufferAccessStrategy strategy = nullptr);

/// Whether documents of the index are bytea.
bool is_binary(Relation index);

}  // namespace gputext::index
