#include "cpp/training_run.hpp"

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

Status TrainingRun::prepare() {
    const TrainingParameters& parameters = input_.parameters;
    const std::span<const float> known = input_.known;
    if (Status status = check_training(parameters, input_.counts.size()); !status.ok())
        return status;
    const std::size_t all = input_.counts.size() * parameters.dimensions;
    if (known.size() % (std::size_t{2} * parameters.dimensions) != 0 || known.size() > 2 * all)
        return wrong("known vectors in a wrong number");
    if (!std::all_of(known.begin(), known.end(), [](float x) { return std::isfinite(x); }))
        return wrong("a known vector is not finite");
    if (std::all_of(input_.counts.begin(), input_.counts.end(), [](auto n) { return n == 0; }))
        return wrong("words that do not occur");
    sampling_ = word_sampling(input_.counts, input_.sample);
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    WordVectors model{{known.begin(), middle}, {middle, known.end()}};
    start_vectors(parameters, input_.counts.size(), model);
    training_.emplace(parameters, input_.counts.size(), input_.tokens.words.size(),
                      std::move(model));
    return {};
}

Status TrainingRun::take_part(const MakeTrainer& make_trainer, const NeighbourSearch& search,
                              Execution& execution) {
    if (all_begun_) return {};
    const auto trainer = make_trainer(input_.parameters, sampling_, input_.tokens, execution);
    if (!trainer.ok()) return trainer.status();
    const FarthestSearch farthest = [&](const WordVectors& model, std::uint32_t k, Execution& on,
                                        std::vector<std::uint32_t>& found) {
        return find_farthest(search, model, k, on, found);
    };
    Status status = training_->take_part(**trainer, farthest, execution);
    if (status.ok()) all_begun_ = true;
    return status;
}

Status TrainingRun::find_farthest(const NeighbourSearch& search, const WordVectors& model,
                                  std::uint32_t k, Execution& execution,
                                  std::vector<std::uint32_t>& farthest) {
    const std::size_t dimensions = input_.parameters.dimensions;
    const std::size_t words = model.vectors.size() / dimensions;
    std::vector<float> negated(model.vectors.size());
    std::transform(model.vectors.begin(), model.vectors.end(), negated.begin(),
                   [](float x) { return -x; });
    const Vectors items{ElementType::float32, words, dimensions, model.vectors.data(), {}, {}};
    const Vectors queries{ElementType::float32, words, dimensions, negated.data(), {}, {}};
    KnnParameters parameters;
    parameters.k = k;
    parameters.metric = Metric::cosine;
    Neighbours found;
    if (Status status = search(parameters, queries, items, execution, found); !status.ok())
        return status;
    // A vector of zeros has no neighbours and is none. What is missing is the word itself, which
    // is no negative of its own.
    farthest.resize(words * k);
    for (std::size_t word = 0; word < words; ++word) {
        const auto list =
            std::span(found.items)
                .subspan(found.begins[word], found.begins[word + 1] - found.begins[word]);
        const auto end = std::copy(list.begin(), list.end(), farthest.begin() + word * k);
        std::fill(end, farthest.begin() + (word + 1) * k, static_cast<std::uint32_t>(word));
    }
    count_hub(found.items);
    return {};
}

void TrainingRun::count_hub(std::span<const std::uint32_t> farthest) {
    if (farthest.empty()) return;
    std::vector<std::uint32_t> lists(input_.counts.size());
    for (const std::uint32_t word : farthest) ++lists[word];
    const auto most = std::max_element(lists.begin(), lists.end());
    const FarthestHub hub{static_cast<std::uint32_t>(most - lists.begin()), *most};
    const std::lock_guard lock(hub_mutex_);
    if (hub.lists > hub_.lists || (hub.lists == hub_.lists && hub.word < hub_.word)) hub_ = hub;
}

Status run_on_cpu(TrainingRun& run, Execution& execution) {
    const auto trainer = [](const TrainerParameters& parameters, const WordSampling& sampling,
                            const TokenStream& tokens,
                            Execution&) { return cpu_word_trainer(parameters, sampling, tokens); };
    const auto search = [](const KnnParameters& parameters, const Vectors& queries,
                           const Vectors& items, Execution& on, Neighbours& answer) -> Status {
        auto found = nearest_neighbours(parameters, queries, items, {}, on);
        if (!found.ok()) return found.status();
        answer = std::move(*found);
        return {};
    };
    return run.take_part(trainer, search, execution);
}

float usual_learning_rate(WordModel model) {
    return model == WordModel::cbow ? 0.05f : 0.025f;
}

std::uint32_t usual_batch(std::uint64_t tokens, std::uint32_t shards) {
    const std::uint64_t of_shard = tokens / std::max(1u, shards);
    return static_cast<std::uint32_t>(
        std::clamp(of_shard / kStepsOfEpoch, kLeastBatch, kMostBatch));
}

}  // namespace gputext
