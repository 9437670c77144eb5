#include "cpp/embeddings/training_run.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gputext {
namespace {

constexpr std::uint64_t kStepsOfEpoch = 2000;
constexpr std::uint64_t kLeastBatch = 4, kMostBatch = 4096;

Status wrong(const char* what) {
    return {ErrorCode::invalid_argument, what};
}

}  // namespace

Status TrainingRun::prepare(Execution& execution) {
    const TrainingParameters& parameters = input_.parameters;
    const std::span<const float> known = input_.known;
    const std::uint64_t words = input_.counts.size();
    GPUTEXT_TRY(check_training(parameters, words));
    if (!(parameters.damping >= 0) || parameters.average_every == 0)
        return wrong("damping must be at least 0 and average_every at least 1");
    const std::size_t both = std::size_t{2} * parameters.dimensions;
    if (known.size() % both != 0 || known.size() / both > words)
        return wrong("known vectors in a wrong number");
    if (!std::all_of(known.begin(), known.end(), [](float x) { return std::isfinite(x); }))
        return wrong("a known vector is not finite");
    if (std::all_of(input_.counts.begin(), input_.counts.end(), [](auto n) { return n == 0; }))
        return wrong("words that do not occur");
    sampling_ = word_sampling(input_.counts, input_.sample);
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    TrainingModel model{{known.begin(), middle}, {middle, known.end()}};
    GPUTEXT_TRY(start_vectors(parameters, words, model, execution));
    training_.emplace(parameters, words, input_.tokens.words.size(), std::move(model));
    return {};
}

Status TrainingRun::take_part(const MakeTrainer& make_trainer, const NearestSearch& nearest,
                              Execution& execution) {
    if (finished_) return {};
    const auto trainer = make_trainer(input_.parameters, sampling_, input_.tokens, execution);
    if (!trainer.ok()) return trainer.status();
    Status status =
        training_->take_part(**trainer, farthest_search(input_.parameters, nearest), execution);
    if (status.ok()) finished_ = true;
    return status;
}

Status TrainingRun::run_on_cpu(Execution& execution) {
    return take_part([](const TrainerParameters& parameters, const WordSampling& sampling,
                        const TokenStream& tokens,
                        Execution&) { return cpu_word_trainer(parameters, sampling, tokens); },
                     nearest_on_cpu, execution);
}

float usual_learning_rate(WordModel model) {
    return model == WordModel::cbow ? 0.075f : TrainerParameters().learning_rate;
}

std::uint32_t usual_batch(std::uint64_t tokens, std::uint32_t replicas) {
    const std::uint64_t of_replica = tokens / std::max(1u, replicas);
    return static_cast<std::uint32_t>(
        std::clamp(of_replica / kStepsOfEpoch, kLeastBatch, kMostBatch));
}

}  // namespace gputext
