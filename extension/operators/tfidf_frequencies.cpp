#include "extension/base/postgres.hpp"

#include <cstdint>
#include <vector>

#include "cpp/terms/tfidf.hpp"
#include "extension/base/owned.hpp"
#include "extension/operators/tfidf_items.hpp"
#include "extension/rows/arguments.hpp"
#include "extension/rows/reused_text.hpp"
#include "extension/rows/set_call.hpp"
#include "extension/rows/term_arguments.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/run_computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// What a call needs until its last row; dies with the call's memory context.
class FrequencyComputation final : public Computation {
public:
    FrequencyComputation(const IdType& id_type, std::size_t memory_limit)
        : items(id_type, memory_limit) {}

    TfidfItems items;
    std::vector<std::uint32_t> documents;   // that have the term
    std::vector<std::uint32_t> first_rows;  // that has it

    JobSize size() const override { return {items.rows.size(), items.rows.bytes(), 0}; }
    Status compute(Execution& execution) override;
    // Counting takes less than sending.
    bool has_device_job() const override { return false; }
    void prepare_for_device() override {}
    Status submit(DaemonConnection&, Stop) override { return {}; }
    Status take(const DaemonEvent&, Stop) override { return {}; }
};

Status FrequencyComputation::compute(Execution& execution) {
    const Vectors vectors = items.rows.view();
    auto counted = document_frequencies(vectors, execution);
    if (!counted.ok()) return counted.status();
    documents = std::move(*counted);
    // Terms are numbered in the order in which rows have them.
    first_rows.reserve(documents.size());
    execution.begin_phase("finding first texts", vectors.rows);
    for (std::size_t row = 0; row < vectors.rows; ++row) {
        const std::size_t begin = vectors.begin(row);
        for (std::size_t i = begin; i < begin + vectors.stored(row); ++i)
            if (vectors.columns[i] == first_rows.size())
                first_rows.push_back(static_cast<std::uint32_t>(row));
        GPUTEXT_TRY(execution.checkpoint());
    }
    return {};
}

/// The number of documents, in a row whose term is null.
void put_documents(const FrequencyComputation& work, SetCall& set) {
    Datum values[3] = {0, Int64GetDatum(static_cast<int64>(work.items.rows.size())), 0};
    bool nulls[3] = {true, false, true};
    set.put(values, nulls);
}

void put_terms(const FrequencyComputation& work, SetCall& set) {
    const Vocabulary& vocabulary = work.items.terms.vocabulary;
    ReusedText name;
    bool nulls[3] = {};
    for (std::uint32_t term = 0; term < vocabulary.size(); ++term) {
        if (term % 1024 == 0) CHECK_FOR_INTERRUPTS();
        Datum values[3] = {name.of(vocabulary.term(term)), Int64GetDatum(work.documents[term]),
                           work.items.rows.id(work.first_rows[term])};
        set.put(values, nulls);
    }
}

Datum answer(FunctionCallInfo fcinfo) {
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
PG_FUNCTION_INFO_V1(gputext_tfidf_frequencies);
PG_FUNCTION_INFO_V1(gputext_tfidf_frequencies_typed);

PGDLLEXPORT Datum gputext_tfidf_frequencies(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}

PGDLLEXPORT Datum gputext_tfidf_frequencies_typed(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}
}
