#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
}

#include "cpp/knn/cosine_similarity.hpp"

#include <optional>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/vector_arguments.hpp"
#include "extension/inputs/vector_query.hpp"
#include "extension/operators/scored_items.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/vector_type.hpp"

namespace gputext {
namespace {

// ---- Of two vectors ----

/// Nothing when one of them is zero.
std::optional<double> similarity_of(const Vectors& a, const Vectors& b) {
    std::optional<double> similarity;
    attempt_or_raise([&] { similarity = cosine_similarity(a, b); });
    return similarity;
}

// ---- Of one vector and all items ----

/// Type of the query's id, which is not returned.
constexpr IdType kNumber{INT8OID, sizeof(int64), FLOAT8PASSBYVAL};

/// What a call needs until its last row; dies with the call's memory context.
class CosineSimilarityComputation : public ScoredItems {
public:
    CosineSimilarityComputation(const IdType& id_type, std::size_t memory_limit)
        : ScoredItems(id_type, memory_limit), query("query", kNumber, memory_limit) {}

    VectorRows query;  // one row

    void check() const override { check_same_dimensions(query, items, "the query"); }
    JobSize size() const override {
        return {items.size(), items.bytes(), similarities_cpu_seconds(items.view(), cpu_threads()),
                0, items.resident_bytes()};
    }
    Status compute(Execution& execution) override {
        return take_value(cosine_similarities(query.view(), items.view(), best_simd(), execution),
                          scores);
    }
    void prepare_for_device() override {
        query.share();
        items.share();
    }
    Status submit(DaemonConnection& connection, Stop stop) override {
        return connection.submit(
            CosineSimilarityRequest{query.files(), items.files(), {gpu_memory_limit(), -1}}, stop);
    }
};

void set_query(Datum array, VectorRows& query) {
    VectorType type;
    VectorValue vector;
    const VectorFault fault = read_array(array, type, vector);
    if (fault != VectorFault::none) raise_vector_fault(fault, "the query");
    query.set_type(type);
    query.collect(Int64GetDatum(0), {}, {});
    query.append_row(vector);
    query.finish();
}

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const Datum array = given.value("query");
    InnerQuery query{given.text("items"), id_type_argument(given)};
    SetCall set(fcinfo, "cosine_similarities");
    CosineSimilarityComputation* work = make_owned<CosineSimilarityComputation>(
        set.context(), id_type_of(query.id_type), host_memory_limit());
    set_query(array, work->query);
    return answer_with_scores(query, *work, set);
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_cosine_similarity) {
    const VectorPair pair = vector_pair(fcinfo);
    const std::optional<double> similarity = similarity_of(pair.a, pair.b);
    if (!similarity) PG_RETURN_NULL();
    PG_RETURN_FLOAT8(*similarity);
}

SQL_FUNCTION(gputext_cosine_similarities) {
    return answer(fcinfo);
}
SQL_ALIAS(gputext_cosine_similarities_typed, gputext_cosine_similarities);
}
