#include "extension/base/postgres.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cpp/records/field_values.hpp"
#include "cpp/sets/similar_sets.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/passage_arguments.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/set_rows.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

/// What a call's arguments say.
struct SimilarSetsArguments {
    InnerQueries queries;
    SimilarSetsParameters sets;
    PassageForm texts;
    std::size_t shingle = 0;
    bool by_rarity = false;
};

/// What a call needs until its last row; dies with the call's memory context.
class SimilarSetsComputation final : public HostComputation {
public:
    SimilarSetsComputation(const SimilarSetsArguments& given, IdType id_type, std::size_t limit)
        : arguments(given), rows(id_type, limit), memory_limit_(limit) {}

    SimilarSetsArguments arguments;
    SetRows rows;
    SetCollection sets;
    SimilarPairs answer;

    void read();

    JobSize size() const override { return {rows.size(), rows.bytes(), 0}; }
    Status compute(Execution& execution) override;

private:
    Status make_shingles(Execution& execution);
    Status make_sets(Execution& execution);

    std::size_t memory_limit_;
};

SetMeasure measure_argument(const Arguments& given) {
    struct NamedMeasure {
        const char* name;
        SetMeasure measure;
    };
    static constexpr NamedMeasure measures[] = {{"jaccard", SetMeasure::jaccard},
                                                {"containment", SetMeasure::containment},
                                                {"cosine", SetMeasure::cosine},
                                                {"overlap", SetMeasure::overlap}};
    const char* const name = given.text("measure");
    for (const NamedMeasure& known : measures)
        if (std::strcmp(name, known.name) == 0) return known.measure;
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("measure must be 'jaccard', 'containment', 'cosine' or 'overlap', not \"%s\"",
                    name)));
    pg_unreachable();
}

double threshold_argument(const Arguments& given, SetMeasure measure, bool by_rarity) {
    constexpr double kAboveAll = 1e12;  // what no set has in common with another one
    refuse_null_after_queries(given, "threshold");
    const double threshold = given.number("threshold");
    const bool is_share = measure != SetMeasure::overlap, counts = !is_share && !by_rarity;
    const bool in_range = counts ? threshold >= 1 : threshold > 0 && !(is_share && threshold > 1);
    if (!in_range)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 counts     ? errmsg("threshold must be at least 1 with measure 'overlap', not %g",
                                     threshold)
                 : is_share ? errmsg("threshold must be above 0 and at most 1, not %g", threshold)
                            : errmsg("threshold must be above 0, not %g", threshold),
                 counts           ? errhint("It counts common elements.")
                 : threshold <= 0 ? errhint("All pairs of sets would have at least 0.")
                 : threshold > 1  ? errhint("Only with measure 'overlap' it counts common elements.")
                                  : 0));
    return std::min(threshold, kAboveAll);
}

SimilarSetsArguments read_arguments(const Arguments& given) {
    SimilarSetsArguments arguments{};
    arguments.queries = inner_queries_argument(given, "sets", "sets");
    arguments.sets.two_tables = arguments.queries.two;
    arguments.sets.measure = measure_argument(given);
    arguments.by_rarity = given.flag("idf");
    arguments.sets.threshold =
        threshold_argument(given, arguments.sets.measure, arguments.by_rarity);
    if (arguments.queries.two && !given.is_null("k")) arguments.sets.nearest = given.count("k");
    arguments.sets.most_pairs = max_pairs_argument(given);
    arguments.sets.memory_limit = host_memory_limit();
    arguments.shingle = given.count("shingle");
    arguments.texts = passage_form_argument(given);
    return arguments;
}

void SimilarSetsComputation::read() {
    rows.read(arguments.queries);
    arguments.sets.split = rows.split();
    database_characters();  // known before threads ask for them
}

/// Of texts, in the order of rows.
Status SimilarSetsComputation::make_shingles(Execution& execution) {
    const FieldRows values = rows.values();
    std::vector<Extent> extents;
    extents.reserve(rows.size());
    for (std::size_t place = 0; place < rows.size(); ++place) {
        const std::uint64_t begin = values.bytes.begins[rows.row(place)];
        extents.push_back({begin, values.bytes.begins[rows.row(place) + 1] - begin});
    }
    PassageTexts texts;
    GPUTEXT_TRY(texts.set({values.bytes.bytes, extents, database_characters()}, arguments.texts,
                          false, execution));
    // How many sets have a shingle is known where it need not be in both tables.
    const bool two_tables = arguments.sets.two_tables && !arguments.by_rarity;
    const Status made = shingle_sets(texts,
                                     {.length = arguments.shingle,
                                      .two_tables = two_tables,
                                      .split = arguments.sets.split,
                                      .memory_limit = memory_limit_},
                                     execution, sets);
    if (made.code() != ErrorCode::memory_limit) return made;
    return {ErrorCode::memory_limit, made.message(),
            "Raise shingle, as longer ones are rarer, or gputext.host_memory_limit."};
}

/// Of arrays, in the order of rows.
Status SimilarSetsComputation::make_sets(Execution& execution) {
    const Result<FieldValues> values =
        FieldValues::of(rows.values(), database_characters(), execution.stop());
    if (!values.ok()) return values.status();
    const Strings elements = values->strings();
    for (std::size_t place = 0; place < rows.size(); ++place) {
        if (place % 1024 == 0 && execution.stop_requested()) return Status::cancelled();
        const Symbols set = elements[values->of_rows()[rows.row(place)]];
        sets.tokens.insert(sets.tokens.end(), set.begin(), set.end());
        sets.begins.push_back(sets.tokens.size());
        sets.sizes.push_back(static_cast<std::uint32_t>(set.size()));
    }
    return {};
}

Status SimilarSetsComputation::compute(Execution& execution) {
    GPUTEXT_TRY(rows.arrays() ? make_sets(execution) : make_shingles(execution));
    if (arguments.by_rarity) GPUTEXT_TRY(weigh_by_rarity(sets, execution.stop()));
    Result<SimilarPairs> found = similar_sets(sets, arguments.sets, execution);
    if (found.status().code() == ErrorCode::memory_limit)
        return {ErrorCode::memory_limit, found.status().message(),
                "Raise threshold, or gputext.host_memory_limit."};
    if (!found.ok()) return found.status();
    answer = *std::move(found);
    if (answer.count <= arguments.sets.most_pairs) return {};
    return {ErrorCode::invalid_argument,
            std::to_string(answer.count) + " pairs are as similar, more than max_pairs, " +
                std::to_string(arguments.sets.most_pairs),
            "Raise threshold, or max_pairs."};
}

void put_pairs(const SimilarSetsComputation& work, SetCall& set) {
    bool nulls[6] = {};
    for (std::size_t i = 0; i < work.answer.pairs.size(); ++i) {
        if (i % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const SimilarPair& pair = work.answer.pairs[i];
        Datum values[6] = {work.rows.id(pair.first),
                           work.rows.id(pair.second),
                           Float8GetDatum(pair.similarity),
                           Int32GetDatum(static_cast<int32>(pair.common)),
                           Int32GetDatum(static_cast<int32>(work.sets.sizes[pair.first])),
                           Int32GetDatum(static_cast<int32>(work.sets.sizes[pair.second]))};
        set.put(values, nulls);
    }
}

Datum answer(FunctionCallInfo fcinfo) {
    const SimilarSetsArguments arguments = read_arguments(Arguments(fcinfo));
    SetCall set(fcinfo, "similar_sets");
    auto* const work = make_owned<SimilarSetsComputation>(
        set.context(), arguments, id_type_of(arguments.queries.first.id_type), host_memory_limit());
    work->read();
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    work->rows.release_values();
    put_pairs(*work, set);
    work->rows.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_similar_sets) {
    return answer(fcinfo);
}
SQL_ALIAS(gputext_similar_sets_typed, gputext_similar_sets);
SQL_ALIAS(gputext_similar_sets_between, gputext_similar_sets);
SQL_ALIAS(gputext_similar_sets_between_typed, gputext_similar_sets);
}
