#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
}

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/embeddings/word2vec.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/term_arguments.hpp"
#include "extension/inputs/token_query.hpp"
#include "extension/inputs/training_vocabulary.hpp"
#include "extension/inputs/word_arguments.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/vector_type.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {
namespace {

/// What a call's arguments say.
struct Word2VecArguments {
    const char* docs;
    const char* initial;  // null without
    std::uint32_t min_count;
    double sample;
    Oid config;
    bool own_batch;  // else by the size of the texts
    TrainingParameters parameters;
};

// ---- Arguments ----

WordModel model_argument(const Arguments& given) {
    const char* const name = given.text("model");
    if (std::strcmp(name, "skipgram") == 0) return WordModel::skipgram;
    if (std::strcmp(name, "cbow") == 0) return WordModel::cbow;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("model must be 'skipgram' or 'cbow', not \"%s\"", name)));
    pg_unreachable();
}

bool farthest_argument(const Arguments& given) {
    const char* const name = given.text("sampling");
    if (std::strcmp(name, "farthest") == 0) return true;
    if (std::strcmp(name, "unigram") == 0) return false;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("sampling must be 'unigram' or 'farthest', not \"%s\"", name)));
    pg_unreachable();
}

double sample_argument(const Arguments& given) {
    const double sample = given.number("sample");
    if (!(sample >= 0 && sample <= 1))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("sample must be from 0 to 1, not %g", sample)));
    return sample;
}

/// The model's usual rate where the argument is null.
float learning_rate_argument(const Arguments& given, WordModel model) {
    return given.is_null("learning_rate") ? usual_learning_rate(model)
                                          : static_cast<float>(given.number("learning_rate"));
}

/// The first epoch with farthest words, counted from 0: half of the epochs where it is null.
std::uint32_t farthest_from_argument(const Arguments& given, std::uint32_t epochs) {
    if (given.is_null("farthest_from_epoch")) return epochs / 2;
    const std::uint32_t epoch = given.count("farthest_from_epoch");
    if (epoch > epochs)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("farthest_from_epoch must be at most epochs, %u, not %u", epochs, epoch)));
    return epoch - 1;
}

void read_arguments(const Arguments& given, Word2VecArguments& arguments) {
    TrainingParameters& parameters = arguments.parameters;
    arguments.docs = given.text("docs");
    parameters.model = model_argument(given);
    parameters.dimensions = given.count("dimensions");
    parameters.window = given.count("window_size");
    parameters.negative = given.count("negative");
    const bool farthest = farthest_argument(given);
    arguments.min_count = given.count("min_count");
    arguments.sample = sample_argument(given);
    parameters.epochs = given.count("epochs");
    parameters.learning_rate = learning_rate_argument(given, parameters.model);
    parameters.seed = static_cast<std::uint64_t>(given.big_integer("seed"));
    arguments.config = config_argument(given);
    arguments.initial = given.is_null("initial") ? nullptr : given.text("initial");
    const std::uint32_t far_count = given.count("farthest");
    parameters.far_count = farthest ? far_count : 0;
    parameters.farthest_from = farthest_from_argument(given, parameters.epochs);
    parameters.replicas = given.count("replicas");
    arguments.own_batch = !given.is_null("batch");
    if (arguments.own_batch) parameters.batch = given.count("batch");
    attempt_or_raise([&] { return check_training(parameters, TrainingParameters::kMostWords); });
}

// ---- Words ----

void read_initial(const Word2VecArguments& arguments, TrainingVocabulary& words) {
    read_model(arguments.initial, {true, true}, words.model);
    const std::size_t dimensions = words.model.dimensions();
    if (words.model.words() > 0 && dimensions != arguments.parameters.dimensions)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("the vectors of initial have %zu dimensions, not %u", dimensions,
                        arguments.parameters.dimensions),
                 errhint("With dimensions => %zu training goes on from there.", dimensions)));
}

[[noreturn]] void raise_no_words(const Word2VecArguments& arguments,
                                 const TrainingVocabulary& words) {
    if (words.texts.vocabulary().size() == 0)
        ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND), errmsg("the texts have no words")));
    ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
                    errmsg("no word occurs %u times in the texts", arguments.min_count),
                    errhint("A smaller min_count keeps more of their %u different words.",
                            words.texts.vocabulary().size())));
    pg_unreachable();
}

/// Reads the model to go on from and the texts, and numbers their words.
void read_words(Word2VecArguments& arguments, TrainingVocabulary& words, SetCall& set) {
    if (arguments.initial != nullptr) read_initial(arguments, words);
    read_tokens(arguments.docs, words.texts);
    set.times().lap("reading rows");
    words.choose(arguments.min_count);
    set.times().lap("numbering words");
    if (words.tokens.size() == 0) raise_no_words(arguments, words);
    TrainingParameters& parameters = arguments.parameters;
    parameters.far_count = std::min(parameters.far_count, words.size() - 1);
    if (!arguments.own_batch)
        parameters.batch = usual_batch(words.tokens.size(), parameters.replicas);
}

// ---- The training ----

class Word2VecComputation final : public Computation {
public:
    /// All of them outlive this.
    Word2VecComputation(const TrainingParameters& parameters, double sample,
                        TrainingVocabulary& words)
        : parameters_(parameters), sample_(sample), words_(words) {}

    TrainingModel model;
    Training::Hub hub;

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override;
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& event, Stop stop) override;

private:
    TrainingParameters parameters_;
    double sample_;
    TrainingVocabulary& words_;
    FileDescriptor words_file_, positions_file_, known_file_;
};

JobSize Word2VecComputation::size() const {
    const std::size_t tokens = words_.tokens.size();
    return {tokens, words_.tokens.bytes() + words_.known.size(),
            word2vec_cpu_seconds(parameters_, tokens, cpu_threads()),
            word2vec_device_seconds(parameters_, tokens)};
}

Status Word2VecComputation::compute(Execution& execution) {
    TrainingRun run(
        {parameters_, sample_, words_.tokens.view(), words_.chosen.counts, words_.known_vectors()});
    GPUTEXT_TRY(run.prepare(execution));
    GPUTEXT_TRY(run.run_on_cpu(execution));
    model = run.model();
    hub = run.hub();
    return {};
}

void Word2VecComputation::prepare_for_device() {
    words_file_ = words_.tokens.words().share();
    positions_file_ = words_.tokens.positions().share();
    if (words_.known_words() > 0) known_file_ = words_.known.share();
}

Status Word2VecComputation::submit(DaemonConnection& connection, Stop stop) {
    Word2VecRequest request;
    request.parameters = parameters_;
    request.sample = sample_;
    request.tokens = words_.tokens.size();
    request.words = words_file_.get();
    request.positions = positions_file_.get();
    request.counts = words_.chosen.counts;
    request.known_words = words_.known_words();
    request.known = known_file_.get();
    request.host_memory_limit = host_memory_limit();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status Word2VecComputation::take(const DaemonEvent& event, Stop stop) {
    const auto& answer = std::get<Word2VecAnswer>(event);
    GPUTEXT_TRY(take_value(answer.read(stop), model));
    hub = {answer.summary.hub_lists, answer.summary.hub_of};
    return {};
}

/// Raises an error that says how much memory the training would take on the CPU, when
/// gputext.host_memory_limit is less.
void check_training_memory(const TrainingParameters& parameters, std::uint64_t words,
                           std::uint64_t tokens) {
    const std::uint64_t needed = training_bytes(parameters, words, tokens, cpu_threads());
    ereport(DEBUG1, (errmsg_internal("training " UINT64_FORMAT " words in %u dimensions takes "
                                     "" UINT64_FORMAT " bytes",
                                     words, parameters.dimensions, needed)));
    const std::uint64_t limit = host_memory_limit();
    if (needed <= limit) return;
    attempt_or_raise([&]() -> Status {
        const std::string what = "training " + std::to_string(words) + " words in " +
                                 std::to_string(parameters.dimensions) + " dimensions";
        const Status over = over_memory_limit(what.c_str(), needed, limit);
        return {over.code(), over.message(),
                "Fewer dimensions, a larger min_count or fewer replicas take less, or raise "
                "gputext.host_memory_limit."};
    });
}

// ---- Rows ----

void put_rows(const TrainingVocabulary& words, const TrainingModel& model, std::uint32_t dimensions,
              SetCall& set) {
    auto* order = make_owned<std::vector<std::uint32_t>>(set.context());
    attempt_or_raise([&] { *order = words.by_frequency(); });
    ArrayType* const vector = new_real_array(dimensions);
    ArrayType* const output = new_real_array(dimensions);
    const std::size_t bytes = dimensions * sizeof(float);
    bool nulls[4] = {};
    for (const std::uint32_t number : *order) {
        CHECK_FOR_INTERRUPTS();
        const std::string_view word = words.word(number);
        const std::size_t begin = std::size_t{number} * dimensions;
        std::memcpy(ARR_DATA_PTR(vector), model.vectors.data() + begin, bytes);
        std::memcpy(ARR_DATA_PTR(output), model.outputs.data() + begin, bytes);
        text* const name = cstring_to_text_with_len(word.data(), static_cast<int>(word.size()));
        Datum values[4] = {PointerGetDatum(name),
                           Int64GetDatum(static_cast<int64>(words.chosen.counts[number])),
                           PointerGetDatum(vector), PointerGetDatum(output)};
        set.put(values, nulls);
        pfree(name);
    }
}

/// Negatives that are always the same few words teach little.
void report_hub(const Training::Hub& hub) {
    if (hub.of == 0) return;
    ereport(NOTICE, (errmsg("a single word is among the farthest words of %.1f %% of the words",
                            100 * static_cast<double>(hub.lists) / static_cast<double>(hub.of))));
}

Datum answer(FunctionCallInfo fcinfo) {
    Word2VecArguments arguments{};
    read_arguments(Arguments(fcinfo), arguments);
    SetCall set(fcinfo, "word2vec");
    auto* words =
        make_owned<TrainingVocabulary>(set.context(), arguments.config, host_memory_limit());
    read_words(arguments, *words, set);
    check_training_memory(arguments.parameters, words->size(), words->tokens.size());
    auto* training = make_owned<Word2VecComputation>(set.context(), arguments.parameters,
                                                     arguments.sample, *words);
    run_computation(*training, set.times(), set.context());
    put_rows(*words, training->model, arguments.parameters.dimensions, set);
    report_hub(training->hub);
    words->release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_word2vec) {
    return answer(fcinfo);
}
}
