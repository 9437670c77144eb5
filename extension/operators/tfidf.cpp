#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include <algorithm>
#include <cstring>
#include <string_view>

#include "cpp/terms/tfidf.hpp"
#include "extension/base/owned.hpp"
#include "extension/rows/arguments.hpp"
#include "extension/rows/set_call.hpp"
#include "extension/rows/term_arguments.hpp"
#include "extension/rows/term_rows.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/run_computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give an id and a text or tsvector, in this order.";

/// What a call's arguments say.
struct TfidfArguments {
    InnerQuery items;
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
    TfidfComputation(const TfidfArguments& arguments, const IdType& id_type,
                     std::size_t memory_limit)
        : items("item", id_type, memory_limit),
          config(arguments.config),
          parameters_(arguments.parameters) {}

    VectorRows items;
    const Oid config;
    TermNumbers numbers;
    std::vector<double> factors;      // of the terms
    std::vector<WeightedTerm> terms;  // of the row on its way

    JobSize size() const override { return {items.size(), items.bytes(), 0}; }
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
    const Vectors vectors = items.view();
    const auto frequencies = document_frequencies(vectors, execution);
    if (!frequencies.ok()) return frequencies.status();
    factors = term_factors(parameters_, *frequencies, vectors.rows);
    return {};
}

Status TfidfComputation::weigh(std::size_t row) {
    const Vectors vectors = items.view();
    const std::size_t begin = vectors.begin(row);
    terms.clear();
    for (std::size_t i = begin; i < begin + vectors.stored(row); ++i) {
        double count;
        copy_elements(vectors, i, 1, &count);
        const double weight = count * factors[vectors.columns[i]];
        if (weight != 0) terms.push_back({weight, vectors.columns[i]});
    }
    const Vocabulary& vocabulary = numbers.vocabulary;
    std::sort(terms.begin(), terms.end(), [&](const WeightedTerm& a, const WeightedTerm& b) {
        return a.weight != b.weight ? a.weight > b.weight
                                    : vocabulary.term(a.term) < vocabulary.term(b.term);
    });
    return {};
}

class TextReceiver final : public RowReceiver {
public:
    explicit TextReceiver(TfidfComputation& work) : work_(work) {}

    WantedColumns wanted_columns() const override { return {2, 2, kWanted}; }
    int versioned_column() const override { return 1; }
    void check_columns(TupleDesc columns) override;
    bool takes_any_order() const override { return true; }
    void forget_row_versions() override { work_.items.forget_row_versions(); }
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool*) override {
        keep_terms(source_, values, query(), row(), work_.items);
        show_rows(work_.items.size(), work_.items.bytes());
    }
    void report_nulls(int64 rows) override { report_null_terms(source_, rows); }
    void end_rows() override {
        work_.items.end_rows(query());
        read_terms(source_, work_.config, work_.numbers, work_.items);
        work_.items.set_dimensions(work_.numbers.vocabulary.size());
    }

private:
    TfidfComputation& work_;
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
    set_term_type(source_, work_.items);
}

TfidfArguments read_arguments(const Arguments& given) {
    TfidfArguments arguments{};
    arguments.items.sql = given.text("items");
    arguments.items.id_type = id_type_argument(given);
    arguments.config = config_argument(given);
    arguments.parameters.weighting = TermWeighting::tf_idf;
    arguments.parameters.min_document_frequency = given.count("min_document_frequency");
    return arguments;
}

/// Text in memory that is used for many texts.
class ReusedText {
public:
    Datum of(std::string_view bytes) {
        const std::size_t size = VARHDRSZ + bytes.size();
        if (size > room_) {
            room_ = 2 * size;
            text_ = static_cast<text*>(text_ == nullptr ? palloc(room_) : repalloc(text_, room_));
        }
        SET_VARSIZE(text_, size);
        std::memcpy(VARDATA(text_), bytes.data(), bytes.size());
        return PointerGetDatum(text_);
    }

private:
    text* text_ = nullptr;
    std::size_t room_ = 0;
};

void put_row(TfidfComputation& work, std::size_t row, ReusedText& name, SetCall& set) {
    attempt_or_raise([&] { return work.weigh(row); });
    CHECK_FOR_INTERRUPTS();
    bool nulls[3] = {};
    for (const WeightedTerm& weighted : work.terms) {
        Datum values[3] = {work.items.id(row), name.of(work.numbers.vocabulary.term(weighted.term)),
                           Float8GetDatum(weighted.weight)};
        set.put(values, nulls);
    }
}

Datum answer(FunctionCallInfo fcinfo) {
    const TfidfArguments arguments = read_arguments(Arguments(fcinfo));
    SetCall set(fcinfo, "tfidf");
    TfidfComputation* work = make_owned<TfidfComputation>(
        set.context(), arguments, id_type_of(arguments.items.id_type), host_memory_limit());
    TextReceiver receiver(*work);
    run_inner_query(arguments.items, receiver);
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    ReusedText name;
    for (std::size_t row = 0; row < work->items.size(); ++row) put_row(*work, row, name, set);
    work->items.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_tfidf);
PG_FUNCTION_INFO_V1(gputext_tfidf_typed);

PGDLLEXPORT Datum gputext_tfidf(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}

PGDLLEXPORT Datum gputext_tfidf_typed(PG_FUNCTION_ARGS) {
    return answer(fcinfo);
}
}
