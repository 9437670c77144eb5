#include "extension/index/open_index.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <cstring>
#include <new>

#include "extension/types/text_arguments.hpp"

namespace gputext::index {

const CharacterLengths& OpenIndex::characters() const {
    static const CharacterLengths bytes = CharacterLengths::single_byte();
    return binary ? bytes : database_characters();
}

bool is_binary(Relation index) {
    return index->rd_opcintype[0] == BYTEAOID;
}

namespace {

constexpr BlockNumber kMostRecent = 1 << 22;  // buffers that a session remembers: 16 MB

Buffer read_shared(Relation index, BlockNumber block) {
    const Buffer buffer = ReadBuffer(index, block);
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    return buffer;
}

/// A copy in the current memory context.
SketchModel read_model(Relation index, std::uint8_t number) {
    const Buffer buffer = read_shared(index, model_block(number));
    const SketchModel model = check_model_page(index, number, BufferGetPage(buffer));
    const std::size_t size = model.numbers().size_bytes();
    auto* const numbers = static_cast<std::uint16_t*>(palloc(size));
    std::memcpy(numbers, model.numbers().data(), size);
    UnlockReleaseBuffer(buffer);
    return {model.shape(), numbers};
}

/// Allocates all parts in one piece, since the relation cache frees one piece.
OpenIndex* assemble(MemoryContext context, std::span<const SketchModel> models,
                    BlockNumber recent) {
    const std::size_t targets = models.size() * kLengthClasses;
    std::size_t numbers = 0;
    for (const SketchModel& model : models) numbers += model.numbers().size();
    const std::size_t models_at = MAXALIGN(sizeof(OpenIndex));
    const std::size_t targets_at = models_at + MAXALIGN(models.size_bytes());
    const std::size_t recent_at = targets_at + targets * sizeof(BlockNumber);
    const std::size_t numbers_at = recent_at + recent * sizeof(Buffer);
    auto* const memory = static_cast<char*>(
        MemoryContextAlloc(context, numbers_at + numbers * sizeof(std::uint16_t)));
    auto* const list = reinterpret_cast<SketchModel*>(memory + models_at);
    auto* number = reinterpret_cast<std::uint16_t*>(memory + numbers_at);
    for (std::size_t i = 0; i < models.size(); ++i) {
        std::ranges::copy(models[i].numbers(), number);
        new (&list[i]) SketchModel(models[i].shape(), number);
        number += models[i].numbers().size();
    }
    auto* const opened = reinterpret_cast<OpenIndex*>(memory);
    *opened = {false,  models.size(),
               list,   reinterpret_cast<BlockNumber*>(memory + targets_at),
               recent, reinterpret_cast<Buffer*>(memory + recent_at)};
    std::fill_n(opened->recent, recent, InvalidBuffer);
    std::fill_n(opened->targets, targets, InvalidBlockNumber);
    return opened;
}

OpenIndex* read_index(Relation index) {
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext models", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext outside = MemoryContextSwitchTo(context);
    const Buffer buffer = read_shared(index, kMetaBlock);
    const std::size_t count = check_meta_page(index, BufferGetPage(buffer));
    UnlockReleaseBuffer(buffer);
    auto* const models = static_cast<SketchModel*>(palloc(count * sizeof(SketchModel)));
    for (std::size_t i = 0; i < count; ++i)
        new (&models[i]) SketchModel(read_model(index, static_cast<std::uint8_t>(i)));
    // An index that grows is opened anew from time to time.
    OpenIndex* const opened = assemble(index->rd_indexcxt, {models, count},
                                       std::min(RelationGetNumberOfBlocks(index), kMostRecent));
    opened->binary = is_binary(index);
    MemoryContextSwitchTo(outside);
    MemoryContextDelete(context);
    return opened;
}

Buffer read_locked(Relation index, BlockNumber block, BufferLock lock,
                   BufferAccessStrategy strategy) {
    const Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
    LockBuffer(buffer, lock);
    return buffer;
}

}  // namespace

OpenIndex& open_index(Relation index) {
    if (index->rd_amcache == nullptr) index->rd_amcache = read_index(index);
    return *static_cast<OpenIndex*>(index->rd_amcache);
}

Buffer read_directory(Relation index, BlockNumber block, BufferLock lock) {
    const Buffer buffer = read_locked(index, block, lock, nullptr);
    check_directory(index, block, BufferGetPage(buffer));
    return buffer;
}

Buffer read_sketches(Relation index, BlockNumber block, BufferLock lock,
                     BufferAccessStrategy strategy) {
    const std::span<const SketchModel> models = open_index(index).models();
    const Buffer buffer = read_locked(index, block, lock, strategy);
    check_sketches(index, block, BufferGetPage(buffer), models);
    return buffer;
}

}  // namespace gputext::index
