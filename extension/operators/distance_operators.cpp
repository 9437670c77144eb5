#include "extension/base/postgres.hpp"

#include "cpp/knn/distance.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/sql_function.hpp"
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
SQL_FUNCTION(gputext_euclidean_distance) {
    return distance_by(Metric::euclidean, fcinfo);
}

SQL_FUNCTION(gputext_cosine_distance) {
    return distance_by(Metric::cosine, fcinfo);
}

SQL_FUNCTION(gputext_negative_inner_product) {
    return distance_by(Metric::inner_product, fcinfo);
}

SQL_FUNCTION(gputext_manhattan_distance) {
    return distance_by(Metric::manhattan, fcinfo);
}
}
