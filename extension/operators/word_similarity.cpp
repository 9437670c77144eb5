#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
}

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/thesaurus/cooccurrence_table.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"
#include "cpp/thesaurus/feature_weights.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/term_arguments.hpp"
#include "extension/inputs/thesaurus_rows.hpp"
#include "extension/inputs/token_query.hpp"
#include "extension/inputs/word_arguments.hpp"
#include "extension/inputs/word_counts.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/texts/text_words.hpp"
#include "extension/types/column_types.hpp"
#include "extension/types/count_column.hpp"
#include "extension/types/text_arguments.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {
namespace {

// ---- The searches ----

/// How often words stand near one another in texts, and what that weighs.
class WordCooccurrencesComputation final : public HostComputation {
public:
    WordCooccurrencesComputation(TokenRows& tokens, const CooccurrenceShape& shape,
                                 const WeightParameters& weighting)
        : tokens_(tokens), shape_(shape), weighting_(weighting) {}

    Cooccurrences counts;
    std::vector<std::uint16_t> weights;

    JobSize size() const override { return {tokens_.size(), tokens_.bytes(), 0}; }
    Status compute(Execution& execution) override;

private:
    TokenRows& tokens_;
    CooccurrenceShape shape_;
    WeightParameters weighting_;
};

/// A thesaurus of texts.
class WordSimilarityComputation final : public Computation {
public:
    WordSimilarityComputation(TokenRows& tokens, const CooccurrenceShape& shape,
                              const WeightParameters& weighting,
                              const SimilarityParameters& parameters)
        : tokens_(tokens), shape_(shape), weighting_(weighting), parameters_(parameters) {}

    Thesaurus answer;

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override;
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& event, Stop stop) override;

private:
    TokenRows& tokens_;
    CooccurrenceShape shape_;
    WeightParameters weighting_;
    SimilarityParameters parameters_;
    FileDescriptor words_file_, positions_file_;
};

/// A thesaurus of counts that were kept.
class WordSimilarityFromComputation final : public Computation {
public:
    /// The triples lie in `packed` (CountedTriple). Words are `order.size()`, numbered anew by it.
    WordSimilarityFromComputation(PackedBytes& packed, const std::vector<std::uint32_t>& order,
                                  const WeightParameters& weighting,
                                  const SimilarityParameters& parameters)
        : packed_(packed), order_(order), weighting_(weighting), parameters_(parameters) {}

    Thesaurus answer;

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override { file_ = packed_.share(); }
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& event, Stop stop) override;

private:
    std::span<const CountedTriple> triples() const;

    PackedBytes& packed_;
    const std::vector<std::uint32_t>& order_;
    WeightParameters weighting_;
    SimilarityParameters parameters_;
    FileDescriptor file_;
};

Status take_thesaurus(const DaemonEvent& event, Stop stop, Thesaurus& answer) {
    auto read = std::get<KnnAnswer>(event).read(stop);
    if (!read.ok()) return read.status();
    answer = {std::move(read->begins), std::move(read->items), std::move(read->distances)};
    return {};
}

Status compare(const WeightParameters& weighting, const SimilarityParameters& parameters,
               const Cooccurrences& counts, Execution& execution, Thesaurus& answer) {
    const auto features = weigh_features(weighting, counts, execution);
    if (!features.ok()) return features.status();
    return take_value(word_similarities(parameters, *features, execution), answer);
}

Status WordCooccurrencesComputation::compute(Execution& execution) {
    GPUTEXT_TRY(take_value(count_cooccurrences(shape_, tokens_.view(), host_memory_limit(),
                                               execution, host_memory_limit()),
                           counts));
    return take_value(weigh_counts(weighting_, counts, execution), weights);
}

JobSize WordSimilarityComputation::size() const {
    return {tokens_.size(), tokens_.bytes(),
            word_similarity_cpu_seconds(tokens_.size(), shape_, cpu_threads())};
}

void WordSimilarityComputation::prepare_for_device() {
    words_file_ = tokens_.words().share();
    positions_file_ = tokens_.positions().share();
}

Status WordSimilarityComputation::submit(DaemonConnection& connection, Stop stop) {
    WordSimilarityRequest request;
    request.shape = shape_;
    request.rows = tokens_.size();
    request.first = words_file_.get();
    request.second = positions_file_.get();
    request.weighting = weighting_;
    request.parameters = parameters_;
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status WordSimilarityComputation::take(const DaemonEvent& event, Stop stop) {
    return take_thesaurus(event, stop, answer);
}

Status WordSimilarityComputation::compute(Execution& execution) {
    const auto counts = count_cooccurrences(shape_, tokens_.view(), parameters_.memory_limit,
                                            execution, parameters_.memory_limit);
    if (!counts.ok()) return counts.status();
    return compare(weighting_, parameters_, *counts, execution, answer);
}

std::span<const CountedTriple> WordSimilarityFromComputation::triples() const {
    return {reinterpret_cast<const CountedTriple*>(packed_.data()),
            packed_.size() / sizeof(CountedTriple)};
}

JobSize WordSimilarityFromComputation::size() const {
    const std::size_t counts = triples().size();
    return {counts, packed_.size(), counted_similarity_cpu_seconds(counts, cpu_threads())};
}

Status WordSimilarityFromComputation::submit(DaemonConnection& connection, Stop stop) {
    WordSimilarityRequest request;
    request.shape.words = static_cast<std::uint32_t>(order_.size());
    request.counted = true;
    request.rows = triples().size();
    request.first = file_.get();
    request.order = order_;
    request.weighting = weighting_;
    request.parameters = parameters_;
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status WordSimilarityFromComputation::take(const DaemonEvent& event, Stop stop) {
    return take_thesaurus(event, stop, answer);
}

Status WordSimilarityFromComputation::compute(Execution& execution) {
    const auto shape =
        shape_of_triples(static_cast<std::uint32_t>(order_.size()), triples(), execution);
    if (!shape.ok()) return shape.status();
    const auto counts = collect_triples(*shape, order_, triples(), execution);
    if (!counts.ok()) return counts.status();
    return compare(weighting_, parameters_, *counts, execution, answer);
}

/// Raises an error that says how many bytes the answer and what is sorted for it would take, when
/// gputext.host_memory_limit is less.
void check_thesaurus_memory(const SimilarityParameters& parameters,
                            const CooccurrenceShape& shape) {
    const std::uint32_t words = shape.words;
    SimilarityParameters within = parameters;
    within.memory_limit = 0;  // what it takes beside does with what there is
    within.top_k = std::min(parameters.top_k, std::max(words, 1u));
    const std::uint64_t needed = similarity_bytes(within, shape, 0);
    ereport(DEBUG1,
            (errmsg_internal("comparing %u words takes " UINT64_FORMAT " bytes beside their counts",
                             words, needed)));
    const std::uint64_t limit = host_memory_limit();
    if (needed <= limit) return;
    attempt_or_raise([&]() -> Status {
        const std::string what = "the " + std::to_string(within.top_k) + " nearest of " +
                                 std::to_string(words) + " words";
        const Status over = over_memory_limit(what.c_str(), needed, limit);
        return {over.code(), over.message(),
                "A smaller vocabulary or top_k takes less, or raise gputext.host_memory_limit."};
    });
}

// ---- Of texts ----

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

// ---- Of counts that word_cooccurrences gave ----

constexpr int kColumns = 4;

const char* const kWanted =
    "The inner query must give a word, a position (integer), a neighbor and a count (bigint), as "
    "word_cooccurrences gives them; further columns are ignored.";

/// The counts of a call; dies with the call's memory context.
struct Counts {
    explicit Counts(std::size_t memory_limit) : triples(memory_limit) {}

    Vocabulary vocabulary;
    bool closed = false;                // counts of other words are not looked at
    std::vector<std::uint64_t> totals;  // of the counts of each word
    std::vector<std::uint32_t> order;   // of the words, the most frequent first
    PackedBytes triples;                // CountedTriple

    Status set_order();
};

Status Counts::set_order() {
    order.resize(vocabulary.size());
    std::iota(order.begin(), order.end(), 0u);
    if (closed) return {};
    const auto before = [this](std::uint32_t a, std::uint32_t b) {
        return totals[a] != totals[b] ? totals[a] > totals[b]
                                      : vocabulary.term(a) < vocabulary.term(b);
    };
    const bool sorted = stoppable_sort(order.begin(), order.end(), before, stop_on_interrupt());
    return sorted ? Status() : Status::cancelled();
}

class CountReceiver final : public RowReceiver {
public:
    explicit CountReceiver(Counts& counts) : counts_(counts) {}

    WantedColumns wanted_columns() const override {
        return {kColumns, WantedColumns::kAnyColumns, kWanted};
    }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override {
        return std::any_of(nulls, nulls + kColumns, [](bool null) { return null; });
    }
    void take_row(const Datum* values, const bool*) override;
    void report_nulls(int64 rows, const char*) override {
        ereport(NOTICE,
                (errmsg_plural("skipped %lld count that is null in a column",
                               "skipped %lld counts that are null in a column",
                               static_cast<unsigned long>(rows), static_cast<long long>(rows))));
    }

private:
    /// Inside attempt().
    std::uint32_t number_of(const varlena* word);

    Counts& counts_;
    std::uint64_t rows_ = 0;
    Oid count_type_ = InvalidOid;
};

void CountReceiver::check_columns(TupleDesc columns) {
    count_type_ = base_type_of_column(columns, 3);
    const bool fits[kColumns] = {IsBinaryCoercible(base_type_of_column(columns, 0), TEXTOID),
                                 base_type_of_column(columns, 1) == INT4OID,
                                 IsBinaryCoercible(base_type_of_column(columns, 2), TEXTOID),
                                 is_count_type(count_type_)};
    for (int i = 0; i < kColumns; ++i)
        if (!fits[i])
            ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                            errmsg("column %d of the inner query is of type %s", i + 1,
                                   format_type_be(TupleDescAttr(columns, i)->atttypid)),
                            errdetail("%s", kWanted)));
}

std::uint32_t CountReceiver::number_of(const varlena* word) {
    if (counts_.closed) return counts_.vocabulary.find(view_of(word));
    const std::uint32_t number = counts_.vocabulary.add(view_of(word));
    if (number == counts_.totals.size()) counts_.totals.push_back(0);
    return number;
}

void CountReceiver::take_row(const Datum* values, const bool*) {
    const varlena* const word = PG_DETOAST_DATUM_PACKED(values[0]);
    const varlena* const neighbor = PG_DETOAST_DATUM_PACKED(values[2]);
    const int64 count = count_of(count_type_, values[3]);
    if (count < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a count of the inner query is negative: %lld",
                               static_cast<long long>(count))));
    CountedTriple triple;
    triple.count = static_cast<std::uint64_t>(count);
    triple.offset = DatumGetInt32(values[1]);
    attempt_or_raise([&] {
        triple.word = number_of(word);
        triple.neighbor = number_of(neighbor);
        if (counts_.closed) return;
        std::uint64_t& total = counts_.totals[triple.word];
        if (__builtin_add_overflow(total, triple.count, &total)) total = UINT64_MAX;
    });
    if (triple.word == Vocabulary::kNone || triple.neighbor == Vocabulary::kNone) return;
    counts_.triples.append(&triple, sizeof triple);
    show_rows(++rows_, counts_.triples.size());
}

Datum answer_from_counts(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const char* const query = given.text("cooccurrences");
    SimilarityParameters parameters;
    parameters.top_k = given.count("top_k");
    parameters.memory_limit = host_memory_limit();
    WeightParameters weighting;
    weighting.features = features_argument(given);
    const WordPreset& preset = preset_argument(given);
    parameters.measure = measure_argument(given, preset);
    weighting.weight = weight_argument(given, preset);
    weighting.discount = discount_argument(given, preset);
    // The other function of this name does not have it.
    const char* const words = given.has("words") ? given.text("words") : nullptr;
    const std::uint32_t most = words == nullptr ? 0 : given.count("vocabulary");
    const std::uint32_t min_count = words == nullptr ? 0 : given.count("min_count");

    SetCall set(fcinfo, "word_similarity_from_counts");
    Counts* counts = make_owned<Counts>(set.context(), host_memory_limit());
    if (words != nullptr) {
        read_word_counts(words, min_count, most, counts->vocabulary);
        counts->closed = true;
    }
    CountReceiver receiver(*counts);
    run_inner_query({query, InvalidOid}, receiver);
    counts->triples.finish();
    attempt_or_raise([&] { return counts->set_order(); });
    set.times().lap("reading rows");
    // Only the search finds out which positions there are.
    check_thesaurus_memory(parameters, {static_cast<std::uint32_t>(counts->order.size()), 1});
    WordSimilarityFromComputation* computation = make_owned<WordSimilarityFromComputation>(
        set.context(), counts->triples, counts->order, weighting, parameters);
    run_computation(*computation, set.times(), set.context());
    put_neighbor_arrays(word_values(counts->vocabulary, counts->order), computation->answer, set);
    counts->triples.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_word_similarity) {
    return answer_thesaurus(fcinfo, "word_similarity", put_neighbor_arrays);
}

SQL_FUNCTION(gputext_word_similarity_pairs) {
    return answer_thesaurus(fcinfo, "word_similarity_pairs", put_neighbor_pairs);
}

SQL_FUNCTION(gputext_word_cooccurrences) {
    return answer_cooccurrences(fcinfo);
}

/// The name in 0.1.0.
SQL_FUNCTION(gputext_word_similarity_from) {
    ereport(NOTICE, (errmsg("word_similarity_from is deprecated"),
                     errhint("Use word_similarity_from_counts, whose column is named neighbors.")));
    return answer_from_counts(fcinfo);
}

SQL_FUNCTION(gputext_word_similarity_from_counts) {
    return answer_from_counts(fcinfo);
}

SQL_FUNCTION(gputext_word_similarity_from_words) {
    return answer_from_counts(fcinfo);
}
}
