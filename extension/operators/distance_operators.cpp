#include "extension/base/postgres.hpp"

#include "cpp/knn/distance.hpp"
#include "extension/base/failure.hpp"
#include "extension/inputs/vector_arguments.hpp"

namespace gputext {
namespace {

Datum distance_by(Metric metric, FunctionCallInfo fcinfo) {
    const VectorPair pair = vector_pair(fcinfo);
    double answer = 0;
    attempt_or_raise([&] { answer = distance(metric, pair.a, pair.b); });
    return Float8GetDatum(answer);
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_euclidean_distance);
PG_FUNCTION_INFO_V1(gputext_cosine_distance);
PG_FUNCTION_INFO_V1(gputext_negative_inner_product);
PG_FUNCTION_INFO_V1(gputext_manhattan_distance);

PGDLLEXPORT Datum gputext_euclidean_distance(PG_FUNCTION_ARGS) {
    return distance_by(Metric::euclidean, fcinfo);
}

PGDLLEXPORT Datum gputext_cosine_distance(PG_FUNCTION_ARGS) {
    return distance_by(Metric::cosine, fcinfo);
}

PGDLLEXPORT Datum gputext_negative_inner_product(PG_FUNCTION_ARGS) {
    return distance_by(Metric::inner_product, fcinfo);
}

PGDLLEXPORT Datum gputext_manhattan_distance(PG_FUNCTION_ARGS) {
    return distance_by(Metric::manhattan, fcinfo);
}
}
