#include "extension/base/postgres.hpp"

#include <algorithm>
#include <vector>

#include "cpp/terms/tfidf.hpp"
#include "extension/base/owned.hpp"
#include "extension/operators/tfidf_items.hpp"
#include "extension/rows/arguments.hpp"
#include "extension/rows/frequency_query.hpp"
#include "extension/rows/reused_text.hpp"
#include "extension/rows/set_call.hpp"
#include "extension/rows/term_arguments.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/run_computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

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
class TfidfComputation final : public Computation {
public:
    TfidfComputation(const TermParameters& parameters, const IdType& id_type,
                     std::size_t memory_limit)
        : items(id_type, memory_limit), parameters_(parameters) {}

    TfidfItems items;
    GivenFrequencies frequencies;     // none where the items have them
    std::vector<double> factors;      // of the terms
    std::vector<WeightedTerm> terms;  // of the row on its way

    JobSize size() const override { return {items.rows.size(), items.rows.bytes(), 0}; }
    Status compute(Execution& execution) override;
    // Counting takes less than sending.
    bool has_device_job() const override { return false; }
    void prepare_for_device() override {}
    Status submit(DaemonConnection&, Stop) override { return {}; }
    Status take(const DaemonEvent&, Stop) override { return {}; }

    /// Fills `terms` with those of a row that weigh something, the heaviest first, and of one
    /// weight in the order of their bytes.
    Status weigh(std::size_t row);

private:
    TermParameters parameters_;
};

Status TfidfComputation::compute(Execution& execution) {
    if (frequencies.given) {
        factors = term_factors(parameters_, frequencies.documents, frequencies.all);
        return {};
    }
    const Vectors vectors = items.rows.view();
    const auto frequencies = document_frequencies(vectors, execution);
    if (!frequencies.ok()) return frequencies.status();
    factors = term_factors(parameters_, *frequencies, vectors.rows);
    return {};
}

Status TfidfComputation::weigh(std::size_t row) {
    const Vectors vectors = items.rows.view();
    const std::size_t begin = vectors.begin(row);
    terms.clear();
    for (std::size_t i = begin; i < begin + vectors.stored(row); ++i) {
        double count;
        copy_elements(vectors, i, 1, &count);
        const double weight = count * factors[vectors.columns[i]];
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
    arguments.parameters.weighting = TermWeighting::tf_idf;
    arguments.parameters.min_document_frequency = given.count("min_document_frequency");
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

Datum answer(FunctionCallInfo fcinfo) {
    const TfidfArguments arguments = read_arguments(Arguments(fcinfo));
    SetCall set(fcinfo, arguments.frequencies == nullptr ? "tfidf" : "tfidf_from");
    TfidfComputation* work =
        make_owned<TfidfComputation>(set.context(), arguments.parameters,
                                     id_type_of(arguments.items.id_type), host_memory_limit());
    if (arguments.frequencies != nullptr)
        read_frequencies(arguments.frequencies, work->items.terms, work->frequencies);
    read_tfidf_items(arguments.items, arguments.config, work->items);
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    ReusedText name;
    for (std::size_t row = 0; row < work->items.rows.size(); ++row) put_row(*work, row, name, set);
    work->items.rows.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_tfidf);
PG_FUNCTION_INFO_V1(gputext_tfidf_typed);
PG_FUNCTION_INFO_V1(gputext_tfidf_from);
PG_FUNCTION_INFO_V1(gputext_tfidf_from_typed);

PGDLLEXPORT Datum gputext_tfidf(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}

PGDLLEXPORT Datum gputext_tfidf_typed(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}

PGDLLEXPORT Datum gputext_tfidf_from(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}

PGDLLEXPORT Datum gputext_tfidf_from_typed(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}
}
