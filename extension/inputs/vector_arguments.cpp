#include "extension/inputs/vector_arguments.hpp"

#include <cstring>

#include "extension/types/vector_type.hpp"

namespace gputext {
namespace {

struct NamedMetric {
    const char* name;
    Metric metric;
};

constexpr NamedMetric kMetrics[] = {{"euclidean", Metric::euclidean},
                                    {"cosine", Metric::cosine},
                                    {"inner_product", Metric::inner_product},
                                    {"manhattan", Metric::manhattan}};

struct NamedBitMetric {
    const char* name;
    BitMetric metric;
};

constexpr NamedBitMetric kBitMetrics[] = {{"hamming", BitMetric::hamming},
                                          {"jaccard", BitMetric::jaccard}};

/// An argument that is an array of numbers, as a matrix of one row.
Vectors vector_argument(FunctionCallInfo fcinfo, int argument, const char* name) {
    VectorType type;
    VectorValue vector;
    const VectorFault fault = read_array(PG_GETARG_DATUM(argument), type, vector);
    if (fault != VectorFault::none) raise_vector_fault(fault, name);
    return {type.element, 1, vector.dimensions, vector.elements, {}, {}};
}

}  // namespace

std::optional<Metric> metric_of(const char* name) {
    for (const NamedMetric& known : kMetrics)
        if (std::strcmp(name, known.name) == 0) return known.metric;
    return std::nullopt;
}

Metric metric_argument(const Arguments& arguments, const char* detail) {
    const char* const name = arguments.text("metric");
    const std::optional<Metric> metric = metric_of(name);
    if (!metric)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("metric must be 'euclidean', 'cosine', 'inner_product' or 'manhattan', "
                        "not \"%s\"",
                        name),
                 detail != nullptr ? errdetail("%s", detail) : 0));
    return *metric;
}

Metric distance_argument(const Arguments& arguments) {
    const char* const name = arguments.text("metric");
    const std::optional<Metric> metric = metric_of(name);
    if (!metric || metric == Metric::inner_product)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("metric must be 'euclidean', 'cosine' or 'manhattan', not \"%s\"", name),
                 metric ? errdetail("The inner product is not a distance.") : 0));
    return *metric;
}

std::optional<BitMetric> bit_metric_of(const char* name) {
    for (const NamedBitMetric& known : kBitMetrics)
        if (std::strcmp(name, known.name) == 0) return known.metric;
    return std::nullopt;
}

const char* name_of(BitMetric metric) {
    return kBitMetrics[static_cast<std::size_t>(metric)].name;
}

VectorPair vector_pair(FunctionCallInfo fcinfo) {
    const VectorPair pair{vector_argument(fcinfo, 0, "argument a"),
                          vector_argument(fcinfo, 1, "argument b")};
    if (pair.a.dimensions != pair.b.dimensions)
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                        errmsg("the vectors have different numbers of elements: %zu and %zu",
                               pair.a.dimensions, pair.b.dimensions)));
    return pair;
}

}  // namespace gputext
