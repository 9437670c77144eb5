#include "extension/base/postgres.hpp"

#include "extension/base/owned.hpp"
#include "extension/operators/thesaurus_search.hpp"
#include "extension/rows/set_call.hpp"
#include "extension/rows/term_arguments.hpp"
#include "extension/rows/thesaurus_rows.hpp"
#include "extension/rows/token_query.hpp"
#include "extension/rows/word_arguments.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// What a call's arguments say of the texts.
struct TextCall {
    const char* docs;
    CooccurrenceShape shape;  // but for the number of words
    std::uint32_t vocabulary;
    std::uint32_t min_count;
    Oid config;
    WeightParameters weighting;
};

/// The texts of a call until its last row; dies with the call's memory context.
struct Texts {
    Texts(const TextCall& call, std::size_t memory_limit)
        : reader(call.config, memory_limit), tokens(memory_limit) {}

    TokenReader reader;
    ChosenWords chosen;
    TokenRows tokens;
};

/// Raises an error for more columns than there are numbers.
void check_columns(const CooccurrenceShape& shape) {
    Failure failure;
    if (!attempt(failure, [&] { return check_shape(shape); })) raise_failure(failure);
}

/// Reads the texts and numbers the words of the vocabulary.
void read_texts(const TextCall& call, Texts& texts, CooccurrenceShape& shape, SetCall& set) {
    read_tokens(call.docs, texts.reader);
    set.times().lap("reading rows");
    texts.reader.choose(call.min_count, call.vocabulary, texts.chosen);
    shape = call.shape;
    shape.words = static_cast<std::uint32_t>(texts.chosen.numbers.size());
    check_columns(shape);
    texts.reader.take_chosen(texts.chosen, texts.tokens);
    set.times().lap("numbering words");
}

/// A thesaurus, as rows that `put` makes of it.
template <class Put>
Datum answer_thesaurus(FunctionCallInfo fcinfo, const char* operation, Put put) {
    const Arguments given(fcinfo);
    TextCall call{};
    call.docs = given.text("docs");
    SimilarityParameters parameters;
    parameters.top_k = given.count("top_k");
    parameters.memory_limit = host_memory_limit();
    const WordPreset& preset = preset_argument(given);
    call.shape.window = window_argument(given, preset);
    call.vocabulary = given.count("vocabulary");
    call.min_count = given.count("min_count");
    call.weighting.features = features_argument(given);
    parameters.measure = measure_argument(given, preset);
    call.weighting.weight = weight_argument(given, preset);
    call.shape.positions = positions_argument(given, preset);
    call.weighting.discount = discount_argument(given, preset);
    call.config = config_argument(given);

    SetCall set(fcinfo, operation);
    Texts* texts = make_owned<Texts>(set.context(), call, host_memory_limit());
    CooccurrenceShape shape;
    read_texts(call, *texts, shape, set);
    check_thesaurus_memory(parameters, shape);
    WordSearch* search =
        make_owned<WordSearch>(set.context(), texts->tokens, shape, call.weighting, parameters);
    run_computation(*search, set.times(), set.context());
    put(word_values(texts->reader.vocabulary(), texts->chosen.numbers), search->answer, set);
    texts->tokens.release();
    set.end();
    PG_RETURN_NULL();
}

Datum answer_cooccurrences(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    TextCall call{};
    call.docs = given.text("docs");
    const WordPreset& preset = preset_argument(given);
    call.shape.window = window_argument(given, preset);
    call.vocabulary = given.count("vocabulary");
    call.min_count = given.count("min_count");
    call.weighting.weight = weight_argument(given, preset);
    call.shape.positions = positions_argument(given, preset);
    call.weighting.discount = discount_argument(given, preset);
    call.config = config_argument(given);

    SetCall set(fcinfo, "word_cooccurrences");
    Texts* texts = make_owned<Texts>(set.context(), call, host_memory_limit());
    CooccurrenceShape shape;
    read_texts(call, *texts, shape, set);
    CooccurrenceCount* count =
        make_owned<CooccurrenceCount>(set.context(), texts->tokens, shape, call.weighting);
    run_computation(*count, set.times(), set.context());
    put_cooccurrences(word_values(texts->reader.vocabulary(), texts->chosen.numbers), count->counts,
                      count->weights, weight_unit(call.weighting.weight), set);
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
