#include "cpp/embeddings/word2vec.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/large_pages.hpp"

namespace gputext {
namespace {

const char* const kPhase = "training";

/// Values of the model that a thread computes at once.
constexpr std::size_t kValuesAtOnce = std::size_t{1} << 16;

/// How long a thread that has nothing to do waits before it looks at the stop request.
constexpr std::chrono::milliseconds kLook{10};

Status refused(std::string message, std::string hint = {}) {
    return {ErrorCode::invalid_argument, std::move(message), std::move(hint)};
}

/// Exact in double, as the numerator has 24 bits.
float start_value(std::uint64_t bits, std::uint32_t dimensions) {
    const double within = static_cast<double>(bits >> 40) * 0x1p-24 - 0.5;
    return static_cast<float>(within / dimensions);
}

std::uint32_t parts_of_epoch(const TrainingParameters& parameters, std::uint64_t tokens) {
    if (parameters.replicas == 1) return 1;
    const std::uint64_t replica = tokens / parameters.replicas;
    return static_cast<std::uint32_t>(replica / parameters.average_every + 1);
}

/// The largest number of lists that one word is in.
std::uint64_t lists_of_hub(std::span<const std::uint32_t> farthest, std::uint64_t words) {
    std::vector<std::uint32_t> lists(words);
    for (const std::uint32_t word : farthest) ++lists[word];
    return *std::max_element(lists.begin(), lists.end());
}

Status train_part(const TrainingPart& part, WordTrainer& trainer, Execution& execution,
                  TrainingCount& count) {
    TrainingCount own;
    Status status = trainer.train(part, execution, own);
    if (status.ok() && own.steps > 0)
        execution.show_training(part.epoch + 1, own.loss / static_cast<double>(own.steps));
    count.add(own);
    return status;
}

}  // namespace

Status check_training(const TrainingParameters& p, std::uint64_t words) {
    const auto range = [](const char* name, std::uint64_t value, std::uint64_t most) -> Status {
        if (value >= 1 && value <= most) return {};
        return refused(std::string(name) + " must be from 1 to " + std::to_string(most) + ", not " +
                       std::to_string(value));
    };
    GPUTEXT_TRY(range("dimensions", p.dimensions, TrainerParameters::kMostDimensions));
    GPUTEXT_TRY(range("window_size", p.window, TrainerParameters::kMostWindow));
    GPUTEXT_TRY(range("negative", p.negative, TrainerParameters::kMostNegative));
    GPUTEXT_TRY(range("epochs", p.epochs, TrainingParameters::kMostEpochs));
    GPUTEXT_TRY(range("replicas", p.replicas, TrainingParameters::kMostReplicas));
    GPUTEXT_TRY(range("batch", p.batch, TrainingParameters::kMostBatch));
    if (!(p.learning_rate > 0 && p.learning_rate <= 1))
        return refused("learning_rate must be above 0 and at most 1");
    if (words == 0) return refused("there are no words to train on");
    if (words > TrainingParameters::kMostWords)
        return refused("there are " + std::to_string(words) + " words, more than " +
                       std::to_string(TrainingParameters::kMostWords));
    if (p.far_count >= words && p.far_count > 0)
        return refused("there are only " + std::to_string(words) + " words, of which each has " +
                       "fewer than " + std::to_string(p.far_count) + " farthest ones");
    return {};
}

Status start_vectors(const TrainingParameters& parameters, std::uint64_t words,
                     TrainingModel& model, Execution& execution) {
    const std::size_t size = words * parameters.dimensions;
    const std::size_t known = model.vectors.size();
    for (std::vector<float>* vectors : {&model.vectors, &model.outputs}) {
        vectors->reserve(size);
        prefer_large_pages(vectors->data() + known, size - known);
        vectors->resize(size, 0.0f);
    }
    const std::uint64_t key = random_key(parameters.seed, TrainerParameters::kStartUse, 0);
    const std::size_t parts = (size - known + kValuesAtOnce - 1) / kValuesAtOnce;
    execution.begin_phase("starting vectors", parts);
    return execution.parallel_for(parts, [&](std::size_t part, unsigned) -> Status {
        const std::size_t begin = known + part * kValuesAtOnce;
        const std::size_t end = std::min(size, begin + kValuesAtOnce);
        for (std::size_t i = begin; i < end; ++i)
            model.vectors[i] = start_value(random_bits(key, i), parameters.dimensions);
        return {};
    });
}

FarthestSearch farthest_search(const TrainingParameters& parameters, NearestSearch nearest) {
    return [dimensions = parameters.dimensions, k = parameters.far_count,
            nearest = std::move(nearest)](const TrainingModel& model, Execution& execution,
                                          std::vector<std::uint32_t>& farthest) -> Status {
        std::vector<float> negated(model.vectors.size());
        std::transform(model.vectors.begin(), model.vectors.end(), negated.begin(),
                       [](float element) { return -element; });
        Vectors items;
        items.rows = model.vectors.size() / dimensions;
        items.dimensions = dimensions;
        items.elements = model.vectors.data();
        Vectors queries = items;
        queries.elements = negated.data();
        KnnParameters search;
        search.k = k;
        Neighbors found;
        GPUTEXT_TRY(nearest(search, queries, items, execution, found));
        farthest.resize(items.rows * k);
        for (std::size_t word = 0; word < items.rows; ++word) {
            const auto list = farthest.begin() + static_cast<std::ptrdiff_t>(word * k);
            std::fill_n(list, k, static_cast<std::uint32_t>(word));
            std::copy(found.items.begin() + static_cast<std::ptrdiff_t>(found.begins[word]),
                      found.items.begin() + static_cast<std::ptrdiff_t>(found.begins[word + 1]),
                      list);
        }
        return {};
    };
}

Status nearest_on_cpu(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                      Execution& execution, Neighbors& answer) {
    auto found = knn(parameters, queries, items, {}, execution);
    if (found.ok()) answer = std::move(*found);
    return found.status();
}

Training::Training(const TrainingParameters& parameters, std::uint64_t words, std::uint64_t tokens,
                   TrainingModel model)
    : parameters_(parameters),
      words_(words),
      tokens_(tokens * parameters.epochs),
      parts_(parts_of_epoch(parameters, tokens)),
      model_(std::move(model)),
      states_(parameters.replicas, State::open),
      trained_(parameters.replicas) {}

TrainingCount Training::count() const {
    const std::lock_guard lock(mutex_);
    return count_;
}

Training::Hub Training::hub() const {
    const std::lock_guard lock(mutex_);
    return hub_;
}

Status Training::take_part(WordTrainer& trainer, const FarthestSearch& search,
                           Execution& execution) {
    std::uint64_t held = 0;  // which version of the model the trainer has
    std::unique_lock lock(mutex_);
    while (!finished()) {
        if (execution.stop_requested()) return Status::cancelled();
        Status status;
        if (const bool needed = search_needed(); needed && search_ == State::open) {
            status = search_farthest(lock, search, execution);
        } else if (const auto open = std::find(states_.begin(), states_.end(), State::open);
                   open != states_.end() && !(needed && search_ == State::running)) {
            const auto replica = static_cast<std::uint32_t>(open - states_.begin());
            status = train_replica(lock, replica, trainer, held, execution);
        } else {
            changed_.wait_for(lock, kLook);
        }
        if (!status.ok()) return status;
    }
    return {};
}

bool Training::search_needed() const {
    return parameters_.far_count > 0 && epoch_ >= parameters_.farthest_from;
}

Status Training::search_farthest(std::unique_lock<std::mutex>& lock, const FarthestSearch& search,
                                 Execution& execution) {
    search_ = State::running;
    lock.unlock();
    std::vector<std::uint32_t> found;
    std::uint64_t lists = 0;
    // Wakes threads that wait for this one, also after an error.
    const Status status = status_or_exception([&] {
        Status searched = search(model_, execution, found);
        if (searched.ok()) lists = lists_of_hub(found, words_);
        return searched;
    });
    lock.lock();
    search_ = status.ok() ? State::done : State::open;
    if (status.ok()) {
        farthest_ = std::move(found);
        hub_.lists += lists;
        hub_.of += words_;
    }
    changed_.notify_all();
    return status;
}

/// What others have done until now counts, too, and what a failure has undone no more; a search has
/// had phases of its own.
void Training::show(Execution& execution) const {
    if (std::strcmp(execution.phase(), kPhase) != 0 || execution.done() > count_.tokens)
        execution.begin_phase(kPhase, tokens_);
    if (count_.tokens > execution.done()) execution.advance(count_.tokens - execution.done());
    const double loss = execution.loss();
    execution.show_training(epoch_ + 1, std::isnan(loss) ? loss_ : loss);
}

std::uint32_t Training::end_of_round() const {
    if (states_.size() > 1 || search_needed()) return epoch_ + 1;
    return parameters_.far_count == 0 ? parameters_.epochs
                                      : std::min(parameters_.farthest_from, parameters_.epochs);
}

/// Nobody writes the model or the lists while a replica is open or running.
Status Training::train_replica(std::unique_lock<std::mutex>& lock, std::uint32_t replica,
                               WordTrainer& trainer, std::uint64_t& held, Execution& execution) {
    states_[replica] = State::running;
    TrainingPart part{epoch_, replica, part_, parts_, {}};
    if (search_needed()) part.farthest = farthest_;
    const std::uint32_t end = end_of_round();
    const bool load = held != version_;
    TrainingModel trained = std::move(trained_[replica]);  // its memory, where it had some before
    show(execution);
    lock.unlock();
    TrainingCount count;
    held = 0;
    const Status status = status_or_exception([&] {
        Status done = load ? trainer.load(model_) : Status();
        for (; part.epoch < end && done.ok(); ++part.epoch)
            done = train_part(part, trainer, execution, count);
        return done.ok() ? trainer.store(trained) : done;
    });
    lock.lock();
    states_[replica] = status.ok() ? State::done : State::open;
    if (status.ok()) {
        count_.add(count);
        if (count.steps > 0) loss_ = count.loss / static_cast<double>(count.steps);
        trained_[replica] = std::move(trained);
        if (std::all_of(states_.begin(), states_.end(),
                        [](State state) { return state == State::done; }))
            end_round(end, execution.threads());
        if (states_.size() == 1) held = version_;  // an average is of others, too
    }
    changed_.notify_all();
    return status;
}

void Training::end_round(std::uint32_t end, unsigned threads) {
    average(threads);
    ++version_;
    std::fill(states_.begin(), states_.end(), State::open);
    if (++part_ < parts_) return;
    part_ = 0;
    epoch_ = end;
    search_ = State::open;
}

/// Averages in the order of the replicas, whichever trainer had them. Does not fail: std::ref()
/// leaves parallel_for() nothing to allocate.
void Training::average(unsigned threads) {
    if (trained_.size() == 1) {
        std::swap(model_, trained_[0]);
        return;
    }
    const std::size_t size = model_.vectors.size();
    const std::size_t tasks = (size + kValuesAtOnce - 1) / kValuesAtOnce;
    const auto mean = [&](std::size_t task, unsigned) {
        const auto rows = task < tasks ? &TrainingModel::vectors : &TrainingModel::outputs;
        const std::size_t begin = task % tasks * kValuesAtOnce;
        const std::span means =
            std::span(model_.*rows).subspan(begin, std::min(kValuesAtOnce, size - begin));
        std::ranges::fill(means, 0.0f);
        for (const TrainingModel& one : trained_)
            for (std::size_t i = 0; i < means.size(); ++i) means[i] += (one.*rows)[begin + i];
        for (float& value : means) value /= static_cast<float>(trained_.size());
        return Status();
    };
    (void)Execution(threads).parallel_for(2 * tasks, std::ref(mean));
}

std::uint64_t training_bytes(const TrainingParameters& parameters, std::uint64_t words,
                             std::uint64_t tokens, unsigned threads) {
    const std::uint64_t size = (parameters.dimensions + 31) / 32 * 32;
    const std::uint64_t model = 2 * words * size * sizeof(float);
    // The model, the trainer's, one of each replica; the entries, with a break for every word at
    // most; what each thread has met in a step.
    const std::uint64_t rows_of_window = 2 * parameters.window + 1 + parameters.negative;
    const std::uint64_t used = trainer_threads(parameters.batch, threads);
    const std::uint64_t windows = (parameters.batch + used - 1) / used;
    const std::uint64_t met = std::min<std::uint64_t>(2 * words, windows * rows_of_window);
    const std::uint64_t thread = 2 * words * 8 + 2 * met * (size + 2) * sizeof(std::int32_t);
    return model * (2 + parameters.replicas) + 8 * tokens / parameters.replicas + used * thread +
           words * parameters.far_count * (2 * sizeof(std::uint32_t) + kBytesOfNeighbor);
}

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
