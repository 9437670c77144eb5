#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
}

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "cpp/records/linkage_model.hpp"
#include "cpp/records/model_estimate.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/record_rows.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/order/key_column.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/column_types.hpp"

namespace gputext {
namespace {

/// Ids between two looks for an interrupt.
constexpr std::size_t kPart = 1024;

const char* const kMatchesWanted =
    "The inner query for matches must give pairs of ids of records that match in its first two "
    "columns; those after them are not looked at.";

// ---- Arguments ----

/// What a call's arguments say.
struct LinkageModelArguments {
    RecordQueries queries;
    LinkageModel start;  // with the comparisons alone
    const char* matches = nullptr;
};

FieldModel* field_named(LinkageModel& model, const char* name) {
    const auto found = std::ranges::find(
        model.fields, name, [](const FieldModel& field) { return field.comparison.field; });
    return found == model.fields.end() ? nullptr : &*found;
}

Status take_comparisons(const TextArray& comparisons, LinkageModel& model) {
    if (comparisons.count == 0)
        return {ErrorCode::invalid_argument, "comparisons must have at least one element",
                "An element is such as 'surname: exact, jaro_winkler >= 0.92'."};
    if (comparisons.count > static_cast<int>(kMostFields))
        return {ErrorCode::invalid_argument, "there are " + std::to_string(comparisons.count) +
                                                 " comparisons, more than " +
                                                 std::to_string(kMostFields)};
    for (int i = 0; i < comparisons.count; ++i) {
        FieldModel field;
        GPUTEXT_TRY(take_value(read_comparison(comparisons.values[i]), field.comparison));
        if (field_named(model, field.comparison.field.c_str()) != nullptr)
            return {ErrorCode::invalid_argument,
                    "there are several comparisons of field \"" + field.comparison.field + "\"",
                    "Write all of its conditions into one of them."};
        model.fields.push_back(std::move(field));
    }
    return {};
}

Status take_term_frequencies(const TextArray& fields, LinkageModel& model) {
    for (int i = 0; i < fields.count; ++i) {
        FieldModel* const field = field_named(model, fields.values[i]);
        if (field == nullptr)
            return {ErrorCode::invalid_argument,
                    std::string("term_frequencies has \"") + fields.values[i] +
                        "\", which is no field of the comparisons",
                    "Its elements are names of fields."};
        if (field->comparison.conditions[0].kind != ConditionKind::exact)
            return {ErrorCode::invalid_argument,
                    "term frequencies need \"exact\" as the first condition of field \"" +
                        field->comparison.field + "\"",
                    "The frequency of a value says what equal values are worth."};
        field->term_frequencies = true;
    }
    return {};
}

void read_arguments(const Arguments& given, LinkageModelArguments& arguments) {
    record_arguments(given, "the comparisons", arguments.queries);
    const TextArray comparisons = given.texts("comparisons");
    const TextArray frequencies = given.texts("term_frequencies");
    if (!given.is_null("matches")) arguments.matches = given.text("matches");
    attempt_or_raise([&]() -> Status {
        GPUTEXT_TRY(take_comparisons(comparisons, arguments.start));
        return take_term_frequencies(frequencies, arguments.start);
    });
}

// ---- Pairs that are known to match ----

/// Records by their ids, which are equal as the type's default equality says.
class RecordNumbers {
public:
    RecordNumbers(MemoryContext context, std::size_t memory_limit)
        : numbers_(context, memory_limit) {}

    /// All ids of a query, the first of which is of that rank. Raises an error for one that comes
    /// twice.
    void set(const RecordRows& rows, std::uint32_t first_rank, const RowIds& ids, Oid collation);
    /// Raises an error for an id that no record has.
    std::uint32_t record_of(const RecordRows& rows, Datum id, const char* which);

private:
    KeyNumbers numbers_;
    std::uint32_t first_rank_ = 0;
};

void RecordNumbers::set(const RecordRows& rows, std::uint32_t first_rank, const RowIds& ids,
                        Oid collation) {
    numbers_.set_type(ids.type().oid, collation);
    first_rank_ = first_rank;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i % kPart == 0) CHECK_FOR_INTERRUPTS();
        const Datum id = rows.id_at_rank(first_rank + i);
        if (numbers_.number_of(id) != i)
            ereport(ERROR, (errcode(ERRCODE_CARDINALITY_VIOLATION),
                            errmsg("%s comes twice, and matches cannot tell the records apart",
                                   ids.name_of("the id", id)),
                            errhint("Give each record an id of its own.")));
    }
    numbers_.close();
}

std::uint32_t RecordNumbers::record_of(const RecordRows& rows, Datum id, const char* which) {
    const std::uint32_t number = numbers_.number_of(id);
    if (number == KeyNumbers::kNone)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s of matches is not among the %srecords",
                               rows.ids().name_of("the id", id), which),
                        errhint("Select the pairs whose records are both in the inner queries.")));
    return rows.at_rank(first_rank_ + number);
}

class MatchReceiver final : public RowReceiver {
public:
    MatchReceiver(const RecordQueries& queries, const RecordRows& rows,
                  std::vector<MatchedPair>& matches)
        : queries_(queries),
          rows_(rows),
          matches_(matches),
          first_(make_owned<RecordNumbers>(CurrentMemoryContext, CurrentMemoryContext,
                                           host_memory_limit())),
          second_(queries.two_tables
                      ? make_owned<RecordNumbers>(CurrentMemoryContext, CurrentMemoryContext,
                                                  host_memory_limit())
                      : first_) {}

    WantedColumns wanted_columns() const override {
        return {2, WantedColumns::kAnyColumns, kMatchesWanted};
    }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override { return nulls[0] || nulls[1]; }
    void take_row(const Datum* values, const bool*) override;
    void report_nulls(int64 rows, const char*) override {
        ereport(NOTICE,
                (errmsg_plural("skipped %lld match with an id that is null",
                               "skipped %lld matches with an id that is null",
                               static_cast<unsigned long>(rows), static_cast<long long>(rows))));
    }

private:
    const RecordQueries& queries_;
    const RecordRows& rows_;
    std::vector<MatchedPair>& matches_;
    RecordNumbers* first_;
    RecordNumbers* second_;
    Oid narrow_types_[2] = {};
};

void MatchReceiver::check_columns(TupleDesc columns) {
    for (int i = 0; i < 2; ++i)
        narrow_types_[i] =
            narrow_id_type(columns, i, queries_.first.id_type, queries_.first.id_type_place);
    const auto collation = [&](int column) { return TupleDescAttr(columns, column)->attcollation; };
    first_->set(rows_, 0, rows_.ids(), collation(0));
    if (queries_.two_tables)
        second_->set(rows_, static_cast<std::uint32_t>(rows_.ids().size()), rows_.second_ids(),
                     collation(1));
}

void MatchReceiver::take_row(const Datum* values, const bool*) {
    const bool two = queries_.two_tables;
    const Datum first = widened_id(values[0], narrow_types_[0]);
    const std::uint32_t a = first_->record_of(rows_, first, two ? "first " : "");
    const std::uint32_t b =
        second_->record_of(rows_, widened_id(values[1], narrow_types_[1]), two ? "second " : "");
    if (a == b)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a match is a record with itself: %s",
                               rows_.ids().name_of("the id", first))));
    attempt_or_raise([&] { matches_.emplace_back(std::min(a, b), std::max(a, b)); });
    show_rows(matches_.size(), matches_.size() * sizeof(MatchedPair));
}

// ---- The computation ----

/// What a call needs until its last row; dies with the call's memory context.
class LinkageModelComputation final : public HostComputation {
public:
    explicit LinkageModelComputation(std::size_t memory_limit) : memory_limit_(memory_limit) {}

    LinkageModelArguments arguments;
    std::optional<RecordRows> rows;
    std::vector<MatchedPair> matches;  // each once
    ModelEstimate estimate;

    void read();

    JobSize size() const override { return {rows->size(), rows->bytes(), 0}; }
    Status compute(Execution& execution) override;

private:
    std::size_t memory_limit_;
};

void LinkageModelComputation::read() {
    const IdType id_type = id_type_of(arguments.queries.first.id_type);
    attempt_or_raise([&] { rows.emplace(id_type, memory_limit_); });
    rows->read(arguments.queries, arguments.start.fields);
    if (arguments.matches == nullptr) return;
    MatchReceiver receiver(arguments.queries, *rows, matches);
    run_inner_query({arguments.matches, InvalidOid}, receiver);
    if (matches.empty())
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("there are no pairs in matches"),
                 errhint("Without pairs that are known to match leave matches out.")));
}

Status LinkageModelComputation::compute(Execution& execution) {
    if (!stoppable_sort(matches.begin(), matches.end(), std::less<>(), execution.stop()))
        return Status::cancelled();
    matches.erase(std::unique(matches.begin(), matches.end()), matches.end());
    EstimateParameters parameters;
    parameters.memory_limit = memory_limit_;
    parameters.matches = matches;
    parameters.keys = rows->keys();
    return take_value(
        estimate_model(std::move(arguments.start), rows->records(), parameters, execution),
        estimate);
}

// ---- The answer ----

/// What the estimate rests on, in words.
const char* base_of(const ModelEstimate& estimate) {
    return psprintf("%llu training %s of %llu, %.1f expected matches",
                    static_cast<unsigned long long>(estimate.training_pairs),
                    estimate.training_pairs == 1 ? "pair" : "pairs",
                    static_cast<unsigned long long>(estimate.pairs), estimate.convergence.matches);
}

void report(const ModelEstimate& estimate, bool has_keys) {
    const Convergence& convergence = estimate.convergence;
    if (estimate.training_pairs == 0)
        ereport(WARNING, (errmsg("EM had no training pairs: no pair of records is alike in enough "
                                 "of the fields to be taken for a match"),
                          errhint(has_keys ? "Compare more fields, or leave keys out."
                                           : "Compare more fields.")));
    else if (convergence.converged)
        ereport(NOTICE, (errmsg("EM converged after %u iterations: %s", convergence.iterations,
                                base_of(estimate))));
    else
        ereport(WARNING,
                (errmsg("EM did not converge in %u iterations: %s", convergence.iterations,
                        base_of(estimate)),
                 errdetail("The last iteration changed a probability by %g.", convergence.change)));
}

/// A row of probabilities; of the prior where there is no field.
void put_level(const FieldModel* field, int level, const char* condition,
               const LevelProbabilities& probabilities, SetCall& set) {
    const bool is_prior = field == nullptr;
    bool nulls[7] = {is_prior, is_prior, false, is_prior, false, false, false};
    Datum values[7] = {};
    if (!is_prior) {
        values[0] = CStringGetTextDatum(field->comparison.field.c_str());
        values[1] = Int32GetDatum(level);
        values[3] = BoolGetDatum(field->term_frequencies);
    }
    values[2] = CStringGetTextDatum(condition);
    values[4] = Float8GetDatum(probabilities.m);
    values[5] = Float8GetDatum(probabilities.u);
    values[6] = Float8GetDatum(probabilities.match_weight());
    set.put(values, nulls);
}

struct ConditionText {
    char text[64];
};

void put_model(const LinkageModel& model, SetCall& set) {
    put_level(nullptr, 0, "prior", {model.prior, 1 - model.prior}, set);
    for (const FieldModel& field : model.fields)
        for (int level = field.comparison.top_level(); level >= 0; --level) {
            ConditionText condition{"else"};
            if (level > 0)
                attempt_or_raise([&] {
                    copy_text(condition.text, text_of(field.comparison.condition(level)).c_str());
                });
            put_level(&field, level, condition.text, field.levels[static_cast<std::size_t>(level)],
                      set);
        }
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    SetCall set(fcinfo, "linkage_model");
    auto* const work = make_owned<LinkageModelComputation>(set.context(), host_memory_limit());
    read_arguments(given, work->arguments);
    work->read();
    set.times().lap("reading rows");
    work->rows->number_values();
    set.times().lap("numbering values");
    run_computation(*work, set.times(), set.context());
    report(work->estimate, !work->rows->keys().empty());
    put_model(work->estimate.model, set);
    work->rows->release_ids();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_linkage_model) {
    return answer(fcinfo);
}
SQL_ALIAS(gputext_linkage_model_typed, gputext_linkage_model);
SQL_ALIAS(gputext_linkage_model_between, gputext_linkage_model);
SQL_ALIAS(gputext_linkage_model_between_typed, gputext_linkage_model);
}
