#include "extension/index/open_index.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>

#include "extension/rows/text_arguments.hpp"

namespace gputext::index {

const CharacterLengths& OpenIndex::characters() const {
    static const CharacterLengths bytes = CharacterLengths::single_byte();
    return binary ? bytes : database_characters();
}

bool is_binary(Relation index) {
    return index->rd_opcintype[0] == BYTEAOID;
}

OpenIndex& open_index(Relation index) {
    if (index->rd_amcache == nullptr) {
        const Buffer buffer = ReadBuffer(index, kMetaBlock);
        LockBuffer(buffer, BUFFER_LOCK_SHARE);
        const SketchModel model = check_meta_page(index, BufferGetPage(buffer));
        auto* const opened =
            static_cast<OpenIndex*>(MemoryContextAlloc(index->rd_indexcxt, sizeof(OpenIndex)));
        opened->shape = model.shape();
        std::ranges::copy(model.numbers(), opened->numbers);
        UnlockReleaseBuffer(buffer);
        opened->binary = is_binary(index);
        std::fill_n(opened->targets, kNoClass, InvalidBlockNumber);
        index->rd_amcache = opened;
    }
    return *static_cast<OpenIndex*>(index->rd_amcache);
}

Buffer read_locked(Relation index, BlockNumber block, PageKind kind, int lock,
                   BufferAccessStrategy strategy) {
    const SketchShape shape = open_index(index).shape;
    const Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
    LockBuffer(buffer, lock);
    check_page(index, block, BufferGetPage(buffer), kind, shape);
    return buffer;
}

}  // namespace gputext::index
