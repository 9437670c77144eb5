#include "extension/base/postgres.hpp"

#include "extension/base/owned.hpp"
#include "extension/operators/thesaurus_search.hpp"
#include "extension/rows/set_call.hpp"
#include "extension/rows/term_arguments.hpp"
#include "extension/rows/thesaurus_rows.hpp"
#include "extension/rows/token_query.hpp"
#include "extension/rows/word_arguments.hpp"
#include "extension/server/run_computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// What a call of word_cooccurrences says; a call of word_similarity says this and more.
struct WordCooccurrencesArguments {
    const char* docs;
    CooccurrenceShape shape;  // but for the number of words
    std::uint32_t vocabulary;
    std::uint32_t min_count;
    Oid config;
    WeightParameters weighting;
};

WordCooccurrencesArguments read_arguments(const Arguments& given, const WordPreset& preset) {
    WordCooccurrencesArguments arguments{};
    arguments.docs = given.text("docs");
    arguments.shape.window = window_argument(given, preset);
    arguments.vocabulary = given.count("vocabulary");
    arguments.min_count = given.count("min_count");
    arguments.weighting.weight = weight_argument(given, preset);
    arguments.shape.positions = positions_argument(given, preset);
    arguments.weighting.discount = discount_argument(given, preset);
    arguments.config = config_argument(given);
    return arguments;
}

/// The texts of a call until its last row; dies with the call's memory context.
struct Texts {
    Texts(const WordCooccurrencesArguments& arguments, std::size_t memory_limit)
        : words(arguments.config, memory_limit), tokens(memory_limit) {}

    TextWords words;
    ChosenWords chosen;
    TokenRows tokens;
};

/// Raises an error for more columns than there are numbers.
void check_columns(const CooccurrenceShape& shape) {
    attempt_or_raise([&] { return check_shape(shape); });
}

/// Reads the texts and numbers the words of the vocabulary.
void read_texts(const WordCooccurrencesArguments& arguments, Texts& texts, CooccurrenceShape& shape,
                SetCall& set) {
    read_tokens(arguments.docs, texts.words);
    set.times().lap("reading rows");
    texts.words.choose(arguments.min_count, arguments.vocabulary, texts.chosen);
    shape = arguments.shape;
    shape.words = static_cast<std::uint32_t>(texts.chosen.numbers.size());
    check_columns(shape);
    texts.words.take_chosen(texts.chosen, texts.tokens);
    set.times().lap("numbering words");
}

/// A thesaurus, as rows that `put` makes of it.
template <class Put>
Datum answer_thesaurus(FunctionCallInfo fcinfo, const char* operation, Put put) {
    const Arguments given(fcinfo);
    SimilarityParameters parameters;
    parameters.top_k = given.count("top_k");
    parameters.memory_limit = host_memory_limit();
    const WordPreset& preset = preset_argument(given);
    WordCooccurrencesArguments arguments = read_arguments(given, preset);
    arguments.weighting.features = features_argument(given);
    parameters.measure = measure_argument(given, preset);

    SetCall set(fcinfo, operation);
    Texts* texts = make_owned<Texts>(set.context(), arguments, host_memory_limit());
    CooccurrenceShape shape;
    read_texts(arguments, *texts, shape, set);
    check_thesaurus_memory(parameters, shape);
    WordSimilarityComputation* computation = make_owned<WordSimilarityComputation>(
        set.context(), texts->tokens, shape, arguments.weighting, parameters);
    run_computation(*computation, set.times(), set.context());
    put(word_values(texts->words.vocabulary(), texts->chosen.numbers), computation->answer, set);
    texts->tokens.release();
    set.end();
    PG_RETURN_NULL();
}

Datum answer_cooccurrences(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const WordCooccurrencesArguments arguments = read_arguments(given, preset_argument(given));

    SetCall set(fcinfo, "word_cooccurrences");
    Texts* texts = make_owned<Texts>(set.context(), arguments, host_memory_limit());
    CooccurrenceShape shape;
    read_texts(arguments, *texts, shape, set);
    WordCooccurrencesComputation* computation = make_owned<WordCooccurrencesComputation>(
        set.context(), texts->tokens, shape, arguments.weighting);
    run_computation(*computation, set.times(), set.context());
    put_cooccurrences(word_values(texts->words.vocabulary(), texts->chosen.numbers),
                      computation->counts, computation->weights,
                      weight_unit(arguments.weighting.weight), set);
    texts->tokens.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_word_similarity);
PG_FUNCTION_INFO_V1(gputext_word_similarity_pairs);
PG_FUNCTION_INFO_V1(gputext_word_cooccurrences);

PGDLLEXPORT Datum gputext_word_similarity(PG_FUNCTION_ARGS) {
    return answer_thesaurus(fcinfo, "word_similarity", put_neighbour_arrays);
}

PGDLLEXPORT Datum gputext_word_similarity_pairs(PG_FUNCTION_ARGS) {
    return answer_thesaurus(fcinfo, "word_similarity_pairs", put_neighbour_pairs);
}

PGDLLEXPORT Datum gputext_word_cooccurrences(PG_FUNCTION_ARGS) {
    return answer_cooccurrences(fcinfo);
}
}
