#include "cpp/knn/float_bound.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gputext {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr std::size_t kMostDimensions = std::size_t{1} << 14;
/// Elements that a task reads.
constexpr std::size_t kElementsAtOnce = std::size_t{1} << 18;

/// g(n) of the proof.
double relative_error(std::size_t roundings) {
    const double error = kUnit * static_cast<double>(roundings);
    return error / (1 - error);
}

double least_cosine(std::size_t dimensions, double exact) {
    const double error = relative_error(dimensions + 6);
    const double similarity = 1 - exact + error;
    const double most = similarity >= 0 ? similarity / (1 - error) : similarity / (1 + error);
    // A similarity beyond -1 counts as -1.
    return std::min(2.0, 1 - most);
}

}  // namespace

double norm_square(const Vectors& vectors, std::size_t row) {
    constexpr std::size_t kPart = 512;
    double part[kPart];
    double square = 0;
    for (std::size_t begin = 0; begin < vectors.dimensions; begin += kPart) {
        const std::size_t count = std::min(kPart, vectors.dimensions - begin);
        copy_elements(vectors, vectors.begin(row) + begin, count, part);
        for (std::size_t i = 0; i < count; ++i) square += part[i] * part[i];
    }
    return square;
}

Result<NormRange> norm_range(const Vectors& vectors, Execution& execution) {
    NormRange whole;
    if (vectors.rows == 0) return whole;
    GPUTEXT_TRY(await_elements(vectors, execution.stop()));
    const std::size_t step = std::max<std::size_t>(1, kElementsAtOnce / (vectors.dimensions + 1));
    const std::size_t tasks = (vectors.rows + step - 1) / step;
    std::vector<NormRange> ranges(execution.threads());
    execution.begin_phase("measuring vectors", tasks);
    GPUTEXT_TRY(execution.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
        const std::size_t end = std::min(vectors.rows, (task + 1) * step);
        for (std::size_t row = task * step; row < end; ++row)
            ranges[worker].add(norm_square(vectors, row));
        return Status();
    }));
    for (const NormRange& range : ranges) {
        whole.least = std::min(whole.least, range.least);
        whole.largest = std::max(whole.largest, range.largest);
    }
    return whole;
}

std::optional<double> least_in_single_precision(Metric metric, std::size_t dimensions, double exact,
                                                double query_square, const NormRange& items) {
    NormRange query;
    query.add(query_square);
    if (dimensions > kMostDimensions || !query.fits() || !items.fits()) return std::nullopt;
    const double error = relative_error(dimensions + 4);
    const double underflow = 0x1p-125 * static_cast<double>(dimensions);
    switch (metric) {
        case Metric::euclidean:
            return std::sqrt(std::max(0.0, exact * exact * (1 - error) - underflow));
        case Metric::manhattan:
            return std::max(0.0, exact * (1 - error) - underflow);
        case Metric::inner_product:
            return exact - error * std::sqrt(query_square * items.largest) - underflow;
        case Metric::cosine:
            return least_cosine(dimensions, exact);
    }
    return std::nullopt;
}

}  // namespace gputext
