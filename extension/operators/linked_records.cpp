#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
}

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cpp/records/linkage_model.hpp"
#include "cpp/records/linked_pairs.hpp"
#include "cpp/records/record_pairs.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/linkage_model_query.hpp"
#include "extension/inputs/record_rows.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// Pairs that are found are numbered with 32 bits.
constexpr std::int64_t kMostPairs = std::int64_t{PG_UINT32_MAX} - 1;

/// What a call's arguments say.
struct LinkedRecordsArguments {
    RecordQueries queries;
    LinkageModel model;
    double min_weight = 0;
    std::uint64_t max_pairs = 0;
};

void read_arguments(const Arguments& given, LinkedRecordsArguments& arguments) {
    record_arguments(given, "the model", arguments.queries);
    arguments.min_weight = given.number("min_weight");
    if (!(arguments.min_weight < std::numeric_limits<double>::infinity()))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("min_weight must be below Infinity, not %g", arguments.min_weight),
                        errhint("-Infinity gives all pairs.")));
    const std::int64_t max_pairs = given.big_integer("max_pairs");
    if (max_pairs < 1 || max_pairs > kMostPairs)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("max_pairs must be between 1 and %lld, not %lld",
                        static_cast<long long>(kMostPairs), static_cast<long long>(max_pairs))));
    arguments.max_pairs = static_cast<std::uint64_t>(max_pairs);
    read_linkage_model(given.text("model"), arguments.model);
}

// ---- The computation ----

/// What a call needs until its last row; dies with the call's memory context.
class LinkedRecordsComputation final : public HostComputation {
public:
    explicit LinkedRecordsComputation(std::size_t memory_limit) : memory_limit_(memory_limit) {}

    LinkedRecordsArguments arguments;
    std::optional<RecordRows> rows;
    std::vector<FieldWeights> weights;
    std::optional<LinkedPairs> pairs;
    PairSearchReport report;

    void read();

    JobSize size() const override { return {rows->size(), rows->bytes(), 0}; }
    Status compute(Execution& execution) override;

private:
    std::size_t memory_limit_;
};

void LinkedRecordsComputation::read() {
    const IdType id_type = id_type_of(arguments.queries.first.id_type);
    attempt_or_raise([&] { rows.emplace(id_type, memory_limit_); });
    rows->read(arguments.queries, arguments.model.fields);
}

Status LinkedRecordsComputation::compute(Execution& execution) {
    const LinkageModel& model = arguments.model;
    const Records records = rows->records();
    for (std::size_t field = 0; field < model.fields.size(); ++field)
        weights.emplace_back(model.fields[field], records.fields[field]);
    pairs.emplace(model.fields.size(), execution.threads(), arguments.max_pairs, memory_limit_);
    GPUTEXT_TRY(find_record_pairs(
        model, records,
        {.min_weight = arguments.min_weight, .keys = rows->keys(), .memory_limit = memory_limit_},
        execution,
        [this](const FoundPair& pair, unsigned worker) { return pairs->append(pair, worker); },
        report));
    return pairs->finish({rows->size(), rows->ranks()}, execution);
}

// ---- The answer ----

/// Arrays of as many elements as there are fields, the same memory for each row.
template <class Element>
class FieldArray {
public:
    FieldArray(std::size_t fields, Oid type, char align) {
        auto* const elements = static_cast<Datum*>(palloc0(sizeof(Datum) * fields));
        array_ =
            construct_array(elements, static_cast<int>(fields), type, sizeof(Element), true, align);
    }
    Element* elements() { return reinterpret_cast<Element*>(ARR_DATA_PTR(array_)); }
    Datum datum() const { return PointerGetDatum(array_); }

private:
    ArrayType* array_;
};

void put_pairs(const LinkedRecordsComputation& work, SetCall& set) {
    const RecordRows& rows = *work.rows;
    const std::span<const FieldValues> fields = rows.records().fields;
    FieldArray<int32> pattern(fields.size(), INT4OID, TYPALIGN_INT);
    FieldArray<double> weights(fields.size(), FLOAT8OID, TYPALIGN_DOUBLE);
    bool nulls[6] = {};
    for (std::size_t i = 0; i < work.pairs->size(); ++i) {
        if (i % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const LinkedPair& pair = work.pairs->pair(i);
        const std::int8_t* const levels = work.pairs->levels(i);
        for (std::size_t field = 0; field < fields.size(); ++field) {
            const std::uint32_t a = fields[field].of_rows()[pair.first];
            const std::uint32_t b = fields[field].of_rows()[pair.second];
            pattern.elements()[field] = levels[field];
            weights.elements()[field] = a == b && a != kNullValue
                                            ? work.weights[field].of_equal(a, levels[field])
                                            : work.weights[field].of(levels[field]);
        }
        Datum values[6] = {rows.id_at_rank(rows.rank(pair.first)),
                           rows.id_at_rank(rows.rank(pair.second)),
                           Float8GetDatum(pair.weight),
                           Float8GetDatum(match_probability(pair.weight)),
                           pattern.datum(),
                           weights.datum()};
        set.put(values, nulls);
    }
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    SetCall set(fcinfo, "linked_records");
    auto* const work = make_owned<LinkedRecordsComputation>(set.context(), host_memory_limit());
    read_arguments(given, work->arguments);
    work->read();
    set.times().lap("reading rows");
    work->rows->number_values();
    set.times().lap("numbering values");
    run_computation(*work, set.times(), set.context());
    ereport(DEBUG1,
            (errmsg("looked at " UINT64_FORMAT " pairs%s and compared " UINT64_FORMAT,
                    work->report.looked_at, work->report.looked_at_all ? ", which are all," : "",
                    work->report.compared)));
    put_pairs(*work, set);
    work->rows->release_ids();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_linked_records) {
    return answer(fcinfo);
}
SQL_ALIAS(gputext_linked_records_typed, gputext_linked_records);
SQL_ALIAS(gputext_linked_records_between, gputext_linked_records);
SQL_ALIAS(gputext_linked_records_between_typed, gputext_linked_records);
}
