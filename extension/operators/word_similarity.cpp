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

/// A thesaurus, as rows that `put` makes of it. Arguments: docs, top_k, window_size, vocabulary,
/// min_count, features, measure, weight, positions, discount, config, preset.
template <class Put>
Datum answer_thesaurus(FunctionCallInfo fcinfo, const char* operation, Put put) {
    TextCall call{};
    call.docs = text_argument(fcinfo, 0, "docs");
    SimilarityParameters parameters;
    parameters.top_k = count_argument(fcinfo, 1, "top_k");
    parameters.memory_limit = host_memory_limit();
    const WordPreset& preset = preset_argument(fcinfo, 11);
    call.shape.window = window_argument(fcinfo, 2, preset);
    call.vocabulary = count_argument(fcinfo, 3, "vocabulary");
    call.min_count = count_argument(fcinfo, 4, "min_count");
    call.weighting.features = features_argument(fcinfo, 5);
    parameters.measure = measure_argument(fcinfo, 6, preset);
    call.weighting.weight = weight_argument(fcinfo, 7, preset);
    call.shape.positions = positions_argument(fcinfo, 8, preset);
    call.weighting.discount = discount_argument(fcinfo, 9, preset);
    call.config = config_argument(fcinfo, 10);

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

/// Arguments: docs, window_size, vocabulary, min_count, weight, positions, discount, config,
/// preset.
Datum answer_cooccurrences(FunctionCallInfo fcinfo) {
    TextCall call{};
    call.docs = text_argument(fcinfo, 0, "docs");
    const WordPreset& preset = preset_argument(fcinfo, 8);
    call.shape.window = window_argument(fcinfo, 1, preset);
    call.vocabulary = count_argument(fcinfo, 2, "vocabulary");
    call.min_count = count_argument(fcinfo, 3, "min_count");
    call.weighting.weight = weight_argument(fcinfo, 4, preset);
    call.shape.positions = positions_argument(fcinfo, 5, preset);
    call.weighting.discount = discount_argument(fcinfo, 6, preset);
    call.config = config_argument(fcinfo, 7);

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
