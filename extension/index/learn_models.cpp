#include "extension/index/learn_models.hpp"

extern "C" {
#include "access/tableam.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/index/open_index.hpp"
#include "extension/server/session_job.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext::index {
namespace {

constexpr BlockNumber kMostBlocks = 400;
constexpr std::size_t kMostDocuments = 3200, kLeastDocuments = 100;

/// Rows for each model: a page of each length class is not full.
constexpr double kRowsForModel = 20000;
constexpr int kMostBytes = 32768;  // of a document

struct Sample {
    SketchModelLearner* learner;
    const CharacterLengths* characters;
    MemoryContext row_context;
    std::size_t most;  // documents of a block
    std::size_t taken;
    double rows;  // of all blocks that were read
};

void add_row(Relation, ItemPointer, Datum* values, bool* nulls, bool, void* state) {
    auto& sample = *static_cast<Sample*>(state);
    if (nulls[0]) return;
    ++sample.rows;
    if (sample.taken == sample.most) return;
    ++sample.taken;
    const MemoryContext outside = MemoryContextSwitchTo(sample.row_context);
    const varlena* const document = PG_DETOAST_DATUM_SLICE(values[0], 0, kMostBytes);
    attempt_or_raise(
        [&] { sample.learner->add(bytes_of(document), *sample.characters, stop_on_interrupt()); });
    MemoryContextSwitchTo(outside);
    MemoryContextReset(sample.row_context);
}

SketchModel copied(const OwnedSketchModel& model) {
    auto* const copy =
        static_cast<std::uint16_t*>(palloc(model.numbers.size() * sizeof(std::uint16_t)));
    std::ranges::copy(model.numbers, copy);
    return {model.shape, copy};
}

}  // namespace

SketchModel general_model(std::size_t bins) {
    auto* const model = make_owned<OwnedSketchModel>(CurrentMemoryContext);
    attempt_or_raise([&] { *model = general_sketch_model(bins); });
    return copied(*model);
}

std::span<const SketchModel> learn_models(Relation table, Relation index, IndexInfo* info,
                                          std::size_t bins) {
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext sample", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext outside = MemoryContextSwitchTo(context);
    const BlockNumber blocks = RelationGetNumberOfBlocks(table);
    const BlockNumber ranges = std::min(blocks, kMostBlocks);
    static const CharacterLengths bytes = CharacterLengths::single_byte();
    Sample sample{make_owned<SketchModelLearner>(context),
                  is_binary(index) ? &bytes : &database_characters(),
                  AllocSetContextCreate(context, "gputext document", ALLOCSET_DEFAULT_SIZES),
                  ranges == 0 ? 0 : kMostDocuments / ranges,
                  0,
                  0};
    for (BlockNumber range = 0; range < ranges; ++range) {
        CHECK_FOR_INTERRUPTS();
        sample.taken = 0;
        const auto block = static_cast<BlockNumber>(std::uint64_t{range} * blocks / ranges);
        table_index_build_range_scan(table, index, info, false, false, false, block, 1, add_row,
                                     &sample, nullptr);
    }
    const double rows = ranges == 0 ? 0 : sample.rows / ranges * blocks;
    const auto most_models = static_cast<std::size_t>(
        std::clamp(rows / kRowsForModel, 1.0, static_cast<double>(kMostSketchModels)));
    auto* const learned = make_owned<std::vector<OwnedSketchModel>>(context);
    if (sample.learner->documents() < kLeastDocuments) {
        attempt_or_raise([&] { learned->push_back(general_sketch_model(bins)); });
    } else {
        const SketchModelLearner* const learner = sample.learner;
        run_threaded([=](Execution& execution) {
            return take_value(learner->learn(bins, most_models, execution), *learned);
        });
    }
    MemoryContextSwitchTo(outside);
    auto* const models = static_cast<SketchModel*>(palloc(learned->size() * sizeof(SketchModel)));
    for (std::size_t i = 0; i < learned->size(); ++i)
        new (&models[i]) SketchModel(copied((*learned)[i]));
    const std::size_t count = learned->size();
    MemoryContextDelete(context);
    return {models, count};
}

}  // namespace gputext::index
