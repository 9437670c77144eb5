// extension/index/open_index.hpp - what a session keeps of an index while its relation is open

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "storage/bufmgr.h"
#include "utils/relcache.h"
}

#include "cpp/base/characters.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/index/format.hpp"

namespace gputext::index {

/// Kept beside the relation's entry in the relation cache, for as long as that is valid.
struct OpenIndex {
    bool binary;  // documents are bytea, and compared by bytes
    std::size_t model_count;
    const SketchModel* model_list;  // behind this struct, as is what follows
    BlockNumber* targets;
    // For each block, the buffer where this session last found it, or InvalidBuffer.
    BlockNumber recent_count;
    Buffer* recent;

    std::span<const SketchModel> models() const { return {model_list, model_count}; }
    SketchPages pages(std::uint8_t model) const { return SketchPages(model_list[model].shape()); }
    /// Where this session last put a sketch of this kind, InvalidBlockNumber for nowhere.
    BlockNumber& target(SketchKind sketches) {
        return targets[sketches.model * kLengthClasses + sketches.length_class];
    }
    const CharacterLengths& characters() const;
};

/// Reads the meta page and the models if need be. Raises an error if it is damaged.
OpenIndex& open_index(Relation index);

/// A pinned buffer, locked as `lock` says (BUFFER_LOCK_SHARE or BUFFER_LOCK_EXCLUSIVE), whose page
/// passes check_directory() or check_sketches().
Buffer read_directory(Relation index, BlockNumber block, BufferLock lock);
Buffer read_sketches(Relation index, BlockNumber block, BufferLock lock,
                     BufferAccessStrategy strategy = nullptr);

/// Whether the block is the page of one of the models.
inline bool is_model(const OpenIndex& opened, BlockNumber block) {
    return block >= kFirstModelBlock && block - kFirstModelBlock < opened.model_count;
}

/// Whether documents of the index are bytea.
bool is_binary(Relation index);

}  // namespace gputext::index
