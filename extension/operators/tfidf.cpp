#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "cpp/terms/bm25.hpp"
#include "cpp/terms/tfidf.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/frequency_query.hpp"
#include "extension/inputs/reused_text.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/term_arguments.hpp"
#include "extension/inputs/term_rows.hpp"
#include "extension/inputs/vector_query.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

// ---- The texts ----

/// Rows of texts: for each the numbers of its terms, ascending, and how often it has them.
struct TfidfItems {
    TfidfItems(const IdType& id_type, std::size_t memory_limit)
        : rows("item", id_type, memory_limit) {}

    VectorRows rows;
    /// Numbered as the rows have them. With terms that are closed before, all others are left out.
    TermNumbers terms;
};

const char* const kWanted =
    "The inner query must give an id and a text or tsvector, in this order.";

class TextReceiver final : public RowReceiver {
public:
    TextReceiver(Oid config, TfidfItems& items) : config_(config), items_(items) {}

    WantedColumns wanted_columns() const override { return {2, 2, kWanted}; }
    int versioned_column() const override { return 1; }
    void check_columns(TupleDesc columns) override;
    bool takes_any_order() const override { return true; }
    void forget_row_versions() override { items_.rows.forget_row_versions(); }
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool*) override {
        collect_terms(source_, values, query(), row(), items_.rows);
        show_rows(items_.rows.size(), items_.rows.bytes());
    }
    void report_nulls(int64 rows, const char* among) override {
        report_null_terms(source_, rows, among);
    }
    void end_rows() override {
        items_.rows.end_rows(query());
        read_terms(source_, config_, items_.terms, items_.rows);
        items_.rows.set_dimensions(items_.terms.vocabulary.size());
    }

private:
    const Oid config_;
    TfidfItems& items_;
    TermSource source_{};
};

void TextReceiver::check_columns(TupleDesc columns) {
    const std::optional<TermSource> source = term_source_of(columns);
    if (!source)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the inner query gives no texts, but values of type %s",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                        errdetail("%s", kWanted),
                        errhint("Other types can be cast in the inner query, as in body::text.")));
    source_ = *source;
    set_term_type(source_, items_.rows);
}

void read_tfidf_items(const InnerQuery& query, Oid config, TfidfItems& items) {
    TextReceiver receiver(config, items);
    run_inner_query(query, receiver);
}

// ---- Weights of terms in texts ----

/// What a call's arguments say.
struct TfidfArguments {
    InnerQuery items;
    const char* frequencies;  // the inner query; null where the items have them
    Oid config;
    TermParameters parameters;
};

struct WeightedTerm {
    double weight;
    std::uint32_t term;
};

/// What a call needs until its last row; dies with the call's memory context.
class TfidfComputation final : public HostComputation {
public:
    TfidfComputation(const TermParameters& parameters, const IdType& id_type,
                     std::size_t memory_limit)
        : items(id_type, memory_limit), parameters_(parameters) {}

    TfidfItems items;
    GivenFrequencies frequencies;     // none where the items have them
    std::vector<double> factors;      // of the terms
    std::optional<Bm25> bm25;         // for weights by it
    std::vector<WeightedTerm> terms;  // of the row on its way

    JobSize size() const override { return {items.rows.size(), items.rows.bytes(), 0}; }
    Status compute(Execution& execution) override;

    /// Fills `terms` with those of a row that weigh something, the heaviest first, and of one
    /// weight in the order of their bytes.
    Status weigh(std::size_t row);

private:
    TermParameters parameters_;
};

Status TfidfComputation::compute(Execution& execution) {
    const Vectors vectors = items.rows.view();
    if (frequencies.given) {
        factors = term_factors(parameters_, frequencies.documents, frequencies.all);
        parameters_.average_length = frequencies.average_length;
    } else {
        const auto counted = document_frequencies(vectors, execution);
        if (!counted.ok()) return counted.status();
        factors = term_factors(parameters_, *counted, vectors.rows);
    }
    if (parameters_.weighting != TermWeighting::bm25) return {};
    std::int64_t length = 0;
    GPUTEXT_TRY(take_value(total_length(vectors, execution), length));
    bm25.emplace(parameters_, length, vectors.rows);
    return {};
}

Status TfidfComputation::weigh(std::size_t row) {
    const Vectors vectors = items.rows.view();
    const std::size_t begin = vectors.begin(row);
    const auto* const counts = static_cast<const std::int32_t*>(vectors.elements);
    const double of_length = bm25 ? bm25->of_length(text_length(vectors, row)) : 0;
    terms.clear();
    for (std::size_t i = begin; i < begin + vectors.stored(row); ++i) {
        const double factor = factors[vectors.columns[i]];
        const double weight =
            bm25 ? Bm25::weight(factor, counts[i], of_length) : counts[i] * factor;
        if (weight != 0) terms.push_back({weight, vectors.columns[i]});
    }
    const Vocabulary& vocabulary = items.terms.vocabulary;
    std::sort(terms.begin(), terms.end(), [&](const WeightedTerm& a, const WeightedTerm& b) {
        return a.weight != b.weight ? a.weight > b.weight
                                    : vocabulary.term(a.term) < vocabulary.term(b.term);
    });
    return {};
}

TfidfArguments read_arguments(const Arguments& given) {
    TfidfArguments arguments{};
    arguments.items.sql = given.text("items");
    arguments.items.id_type = id_type_argument(given);
    if (given.has("frequencies")) {
        arguments.frequencies = given.text("frequencies");
        arguments.items.id_type_place.after = "the inner queries";
    }
    arguments.config = config_argument(given);
    arguments.parameters =
        term_arguments(given, given.has("bm25") && given.flag("bm25"), "bm25 => true");
    return arguments;
}

void put_row(TfidfComputation& work, std::size_t row, ReusedText& name, SetCall& set) {
    attempt_or_raise([&] { return work.weigh(row); });
    CHECK_FOR_INTERRUPTS();
    bool nulls[3] = {};
    for (const WeightedTerm& weighted : work.terms) {
        Datum values[3] = {work.items.rows.id(row),
                           name.of(work.items.terms.vocabulary.term(weighted.term)),
                           Float8GetDatum(weighted.weight)};
        set.put(values, nulls);
    }
}

Datum answer_weights(FunctionCallInfo fcinfo) {
    const TfidfArguments arguments = read_arguments(Arguments(fcinfo));
    SetCall set(fcinfo, arguments.frequencies == nullptr ? "tfidf" : "tfidf_from_frequencies");
    TfidfComputation* work =
        make_owned<TfidfComputation>(set.context(), arguments.parameters,
                                     id_type_of(arguments.items.id_type), host_memory_limit());
    if (arguments.frequencies != nullptr)
        read_frequencies(arguments.frequencies,
                         arguments.parameters.weighting == TermWeighting::bm25, work->items.terms,
                         work->frequencies);
    read_tfidf_items(arguments.items, arguments.config, work->items);
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    ReusedText name;
    for (std::size_t row = 0; row < work->items.rows.size(); ++row) put_row(*work, row, name, set);
    work->items.rows.release();
    set.end();
    PG_RETURN_NULL();
}

// ---- Frequencies of terms ----

/// What a call needs until its last row; dies with the call's memory context.
class FrequencyComputation final : public HostComputation {
public:
    FrequencyComputation(const IdType& id_type, std::size_t memory_limit)
        : items(id_type, memory_limit) {}

    TfidfItems items;
    std::vector<std::uint32_t> documents;   // that have the term
    std::vector<std::uint32_t> first_rows;  // that has it
    std::vector<int64> occurrences;         // of the term in all documents

    JobSize size() const override { return {items.rows.size(), items.rows.bytes(), 0}; }
    Status compute(Execution& execution) override;
};

Status FrequencyComputation::compute(Execution& execution) {
    const Vectors vectors = items.rows.view();
    GPUTEXT_TRY(take_value(document_frequencies(vectors, execution), documents));
    // Terms are numbered in the order in which rows have them.
    first_rows.reserve(documents.size());
    occurrences.resize(documents.size());
    const auto* const counts = static_cast<const std::int32_t*>(vectors.elements);
    execution.begin_phase("finding first texts", vectors.rows);
    for (std::size_t row = 0; row < vectors.rows; ++row) {
        const std::size_t begin = vectors.begin(row);
        for (std::size_t i = begin; i < begin + vectors.stored(row); ++i) {
            occurrences[vectors.columns[i]] += counts[i];
            if (vectors.columns[i] == first_rows.size())
                first_rows.push_back(static_cast<std::uint32_t>(row));
        }
        GPUTEXT_TRY(execution.checkpoint());
    }
    return {};
}

/// The numbers of documents and of their terms, in a row whose term is null.
void put_documents(const FrequencyComputation& work, SetCall& set) {
    const int64 all = std::accumulate(work.occurrences.begin(), work.occurrences.end(), int64{0});
    Datum values[4] = {0, Int64GetDatum(static_cast<int64>(work.items.rows.size())), 0,
                       Int64GetDatum(all)};
    bool nulls[4] = {true, false, true, false};
    set.put(values, nulls);
}

void put_terms(const FrequencyComputation& work, SetCall& set) {
    const Vocabulary& vocabulary = work.items.terms.vocabulary;
    ReusedText name;
    bool nulls[4] = {};
    for (std::uint32_t term = 0; term < vocabulary.size(); ++term) {
        if (term % 1024 == 0) CHECK_FOR_INTERRUPTS();
        Datum values[4] = {name.of(vocabulary.term(term)), Int64GetDatum(work.documents[term]),
                           work.items.rows.id(work.first_rows[term]),
                           Int64GetDatum(work.occurrences[term])};
        set.put(values, nulls);
    }
}

Datum answer_frequencies(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const InnerQuery query{given.text("items"), id_type_argument(given)};
    const Oid config = config_argument(given);
    SetCall set(fcinfo, "tfidf_frequencies");
    auto* const work = make_owned<FrequencyComputation>(set.context(), id_type_of(query.id_type),
                                                        host_memory_limit());
    read_tfidf_items(query, config, work->items);
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    put_documents(*work, set);
    put_terms(*work, set);
    work->items.rows.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_tfidf) {
    return answer_weights(fcinfo);
}
SQL_ALIAS(gputext_tfidf_typed, gputext_tfidf);

SQL_FUNCTION(gputext_tfidf_from_frequencies) {
    return answer_weights(fcinfo);
}
SQL_ALIAS(gputext_tfidf_from_frequencies_typed, gputext_tfidf_from_frequencies);

SQL_FUNCTION(gputext_tfidf_frequencies) {
    return answer_frequencies(fcinfo);
}
SQL_ALIAS(gputext_tfidf_frequencies_typed, gputext_tfidf_frequencies);
}
