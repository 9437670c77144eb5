#include "extension/index/learn_model.hpp"

extern "C" {
#include "access/tableam.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/index/open_index.hpp"
#include "extension/rows/text_arguments.hpp"

namespace gputext::index {
namespace {

constexpr BlockNumber kMostBlocks = 400;
constexpr std::size_t kMostDocuments = 1600, kLeastDocuments = 100;
constexpr int kMostBytes = 32768;  // of a document

struct Sample {
    SketchModelLearner* learner;
    const CharacterLengths* characters;
    MemoryContext row_context;
    std::size_t most;  // documents of a block
    std::size_t taken;
};

void add_row(Relation, ItemPointer, Datum* values, bool* nulls, bool, void* state) {
    auto& sample = *static_cast<Sample*>(state);
    if (nulls[0] || sample.taken == sample.most) return;
    ++sample.taken;
    const MemoryContext outside = MemoryContextSwitchTo(sample.row_context);
    const varlena* const document = PG_DETOAST_DATUM_SLICE(values[0], 0, kMostBytes);
    attempt_or_raise(
        [&] { sample.learner->add(bytes_of(document), *sample.characters, stop_on_interrupt()); });
    MemoryContextSwitchTo(outside);
    MemoryContextReset(sample.row_context);
}

SketchModel copied(SketchShape shape, std::span<const std::uint16_t> numbers) {
    auto* const copy =
        static_cast<std::uint16_t*>(palloc(SketchModel::size(shape) * sizeof(std::uint16_t)));
    std::ranges::copy(numbers, copy);
    return {shape, copy};
}

}  // namespace

SketchModel general_model(SketchShape shape) {
    auto* const numbers = make_owned<std::vector<std::uint16_t>>(CurrentMemoryContext);
    attempt_or_raise([&] { *numbers = general_sketch_model(shape); });
    return copied(shape, *numbers);
}

SketchModel learn_model(Relation table, Relation index, IndexInfo* info, SketchShape shape) {
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext sample", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext outside = MemoryContextSwitchTo(context);
    const BlockNumber blocks = RelationGetNumberOfBlocks(table);
    const BlockNumber ranges = std::min(blocks, kMostBlocks);
    static const CharacterLengths bytes = CharacterLengths::single_byte();
    Sample sample{make_owned<SketchModelLearner>(context),
                  is_binary(index) ? &bytes : &database_characters(),
                  AllocSetContextCreate(context, "gputext document", ALLOCSET_DEFAULT_SIZES),
                  ranges == 0 ? 0 : kMostDocuments / ranges, 0};
    for (BlockNumber range = 0; range < ranges; ++range) {
        CHECK_FOR_INTERRUPTS();
        sample.taken = 0;
        const auto block = static_cast<BlockNumber>(std::uint64_t{range} * blocks / ranges);
        table_index_build_range_scan(table, index, info, false, false, false, block, 1, add_row,
                                     &sample, nullptr);
    }
    auto* const numbers = make_owned<std::vector<std::uint16_t>>(context);
    attempt_or_raise([&] {
        *numbers = sample.learner->documents() < kLeastDocuments ? general_sketch_model(shape)
                                                                 : sample.learner->learn(shape);
    });
    MemoryContextSwitchTo(outside);
    const SketchModel model = copied(shape, *numbers);
    MemoryContextDelete(context);
    return model;
}

}  // namespace gputext::index
