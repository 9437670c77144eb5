#include "extension/base/postgres.hpp"

#include "cpp/knn/knn.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/term_arguments.hpp"
#include "extension/inputs/vector_arguments.hpp"
#include "extension/operators/knn_rows.hpp"
#include "extension/operators/knn_search.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// What a call's arguments say.
struct KnnArguments {
    const char* operation;
    KnnInput input;
    std::size_t k;
    double radius;
};

double radius_argument(const Arguments& given) {
    const double radius = given.number("radius");
    if (std::isnan(radius) || radius == -INFINITY)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("radius must be a number, not %g", radius)));
    return radius;
}

KnnArguments read_arguments(const Arguments& given, bool within) {
    KnnArguments arguments{};
    KnnInput& input = arguments.input;
    arguments.operation = within ? "gpu_knn_within" : "gpu_knn";
    input.queries.sql = given.text("queries");
    input.items.sql = given.text("items");
    input.queries.id_type = input.items.id_type = id_type_argument(given);
    input.queries.id_type_place = input.items.id_type_place = {"the inner queries", true};
    input.queries.among = " among the queries";
    input.items.among = " among the items";
    arguments.k = within ? KnnParameters::all_items : given.count("k");
    arguments.radius = within ? radius_argument(given) : INFINITY;
    const bool bm25 = std::strcmp(given.text("metric"), "bm25") == 0;
    input.string_metric = string_metric_of(given.text("metric"));
    input.bit_metric = bit_metric_of(given.text("metric"));
    if (bm25)
        input.metric = Metric::inner_product;
    else if (!input.string_metric && !input.bit_metric)
        input.metric = metric_argument(given, "For texts it is 'cosine', 'bm25', 'edit_rate', "
                                              "'levenshtein', 'osa', 'jaro', 'jaro_winkler' or "
                                              "'trigram', and for bit strings 'hamming' or "
                                              "'jaccard'.");
    input.exclude_self = given.flag("exclude_self");
    // The functions of release 0.1.0 do not have it.
    input.exclude_key = given.has("exclude_key") && given.flag("exclude_key");
    input.config = config_argument(given);
    input.terms = term_arguments(given, bm25, "metric => 'bm25'");
    if (given.has("frequencies") && !given.is_null("frequencies"))
        input.frequencies = given.text("frequencies");
    return arguments;
}

KnnComputation* new_vector_search(const KnnArguments& arguments, KnnRows& rows,
                                  MemoryContext context) {
    KnnParameters parameters;
    parameters.k = arguments.k;
    parameters.radius = arguments.radius;
    parameters.metric = arguments.input.metric;
    parameters.memory_limit = host_memory_limit();
    parameters.answer_limit = host_memory_limit();
    return make_owned<VectorKnnComputation>(context, rows, parameters);
}

KnnComputation* new_term_search(const KnnArguments& arguments, KnnRows& rows,
                                MemoryContext context) {
    TermKnnParameters parameters;
    parameters.k = arguments.k;
    parameters.radius = arguments.radius;
    parameters.metric = arguments.input.metric;
    parameters.memory_limit = host_memory_limit();
    parameters.answer_limit = host_memory_limit();
    TermParameters weighting = arguments.input.terms;
    if (rows.kind == RowKind::weights) weighting.weighting = TermWeighting::given;
    weighting.average_length = rows.frequencies.average_length;
    return make_owned<TermKnnComputation>(context, rows, parameters, weighting);
}

KnnComputation* new_string_search(const KnnArguments& arguments, KnnRows& rows,
                                  MemoryContext context) {
    NearestStringsParameters parameters;
    parameters.metric = *arguments.input.string_metric;
    parameters.k = arguments.k;
    parameters.radius = arguments.radius;
    parameters.answer_limit = host_memory_limit();
    return make_owned<StringKnnComputation>(context, rows, parameters);
}

KnnComputation* new_bit_search(const KnnArguments& arguments, KnnRows& rows,
                               MemoryContext context) {
    NearestBitsParameters parameters;
    parameters.metric = *arguments.input.bit_metric;
    parameters.k = arguments.k;
    parameters.radius = arguments.radius;
    parameters.answer_limit = host_memory_limit();
    return make_owned<BitKnnComputation>(context, rows, parameters);
}

KnnComputation* new_search(const KnnArguments& arguments, KnnRows& rows, MemoryContext context) {
    switch (rows.kind) {
        case RowKind::vectors:
            return new_vector_search(arguments, rows, context);
        case RowKind::strings:
            return new_string_search(arguments, rows, context);
        case RowKind::bits:
            return new_bit_search(arguments, rows, context);
        case RowKind::texts:
        case RowKind::weights:
            return new_term_search(arguments, rows, context);
    }
    pg_unreachable();
}

/// Rows between two looks for a cancel, whose ids are looked up at once.
constexpr std::size_t kRowsAtOnce = 512;

void check_ranks(const KnnRows& rows, const KnnComputation& search) {
    const std::vector<std::uint64_t>& begins = search.answer.begins;
    for (std::size_t number = 0; number + 1 < begins.size(); ++number)
        if (begins[number + 1] - begins[number] > PG_INT32_MAX)
            ereport(ERROR,
                    (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                     errmsg("%s has more than %d neighbors",
                            rows.query_rows().name_of(rows.query_rows().id(search.first_query() + number)),
                            PG_INT32_MAX)));
}

void put_neighbors(const KnnRows& rows, const KnnComputation& search, SetCall& set) {
    const Neighbors& answer = search.answer;
    check_ranks(rows, search);
    bool nulls[4] = {};
    Datum items[kRowsAtOnce];
    std::size_t query = 0;  // of the answer's
    Datum query_id = 0;
    for (std::size_t first = 0; first < answer.items.size(); first += kRowsAtOnce) {
        CHECK_FOR_INTERRUPTS();
        const std::size_t end = std::min(first + kRowsAtOnce, answer.items.size());
        rows.items.ids(std::span(answer.items).subspan(first, end - first), items);
        for (std::size_t i = first; i < end; ++i) {
            while (answer.begins[query + 1] <= i) ++query;
            const std::uint64_t rank = i - answer.begins[query];
            if (rank == 0) query_id = rows.query_rows().id(search.first_query() + query);
            Datum values[4] = {query_id, items[i - first],
                               Int32GetDatum(static_cast<int32>(rank + 1)),
                               Float8GetDatum(answer.distances[i])};
            set.put(values, nulls);
        }
    }
}

Datum answer(FunctionCallInfo fcinfo, bool within) {
    const KnnArguments arguments = read_arguments(Arguments(fcinfo), within);
    SetCall set(fcinfo, arguments.operation);
    // Both die with the call's memory context, the search first.
    KnnRows* rows =
        make_owned<KnnRows>(set.context(), set.context(), id_type_of(arguments.input.items.id_type),
                            host_memory_limit());
    read_knn_rows(arguments.input, *rows);
    set.times().lap("reading rows");
    KnnComputation* search = new_search(arguments, *rows, set.context());
    while (search->next_block()) {
        do {
            run_computation(*search, set.times(), set.context());
            search->search_added();
        } while (search->block_was_too_large());
        if (search->is_last_block()) {
            // Released here, so that gputextd, which may still have them, frees their pages.
            rows->queries.release_vectors();
            rows->items.release_vectors();
            rows->query_strings.release();
            rows->item_strings.release();
        }
        put_neighbors(*rows, *search, set);
    }
    rows->queries.release();
    rows->items.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_knn) {
    return answer(fcinfo, false);
}
SQL_ALIAS(gputext_knn_typed, gputext_knn);

SQL_FUNCTION(gputext_knn_within) {
    return answer(fcinfo, true);
}
SQL_ALIAS(gputext_knn_within_typed, gputext_knn_within);
}
