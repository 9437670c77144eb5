#include "extension/planner/distance_from.hpp"

#include <limits>

#include "cpp/base/simd.hpp"
#include "extension/base/failure.hpp"
#include "extension/server/session_job.hpp"

namespace gputext {

bool DistanceFrom::set(const QueryValue& query) {
    if (!distance_.trigrams) {
        const std::optional<VectorValue> vector = query.vector();
        if (!vector) return false;
        const Vectors one_row{distance_.type.element, 1,  vector->dimensions,
                              vector->elements,       {}, {}};
        attempt_or_raise([&] {
            query_ = item_ = one_row;
            vectors_.emplace(distance_.metric, query_, item_, best_simd());
            vectors_->set_query(0);
        });
        return true;
    }
    const Oid function = trigram_function();
    const std::optional<Datum> text = query.compute();
    if (!text || !OidIsValid(function) || is_long_text(*text)) return false;
    reader_.emplace(function);
    const std::span<const std::uint32_t> trigrams = reader_->read(*text);
    attempt_or_raise([&] {
        trigrams_.assign(trigrams.begin(), trigrams.end());
        texts_.emplace(StringMetric::trigram);
        texts_->set_query(trigrams_);
    });
    return true;
}

bool DistanceFrom::measure(Datum item, double& distance) {
    return distance_.trigrams ? measure_text(item, distance) : measure_vector(item, distance);
}

bool DistanceFrom::measure_vector(Datum item, double& distance) {
    VectorValue vector;
    if (read_vector(distance_.type, item, vector) != VectorFault::none ||
        vector.dimensions != item_.dimensions)
        return false;
    item_.elements = vector.elements;
    attempt_or_raise([&] { distance = (*vectors_)(0); });
    return true;
}

bool DistanceFrom::measure_text(Datum item, double& distance) {
    if (is_long_text(item)) return false;
    const std::span<const std::uint32_t> trigrams = reader_->read(item);
    attempt_or_raise([&] {
        return (*texts_)(trigrams, std::numeric_limits<double>::infinity(), stop_on_interrupt(),
                         distance);
    });
    return true;
}

}  // namespace gputext
