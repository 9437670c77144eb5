#include "extension/rows/vector_arguments.hpp"

#include <cstring>

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

}  // namespace

Metric metric_argument(const Arguments& arguments) {
    const char* const name = arguments.text("metric");
    for (const NamedMetric& known : kMetrics)
        if (std::strcmp(name, known.name) == 0) return known.metric;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("metric must be 'euclidean', 'cosine', 'inner_product' or 'manhattan', "
                           "not \"%s\"",
                           name)));
    pg_unreachable();
}

}  // namespace gputext
