// kernels/terms/detail/gates.cuh - gates of queries, for kernels

#pragma once

#include <cstdint>

#include "kernels/knn/kth_score.cuh"
#include "kernels/terms/detail/queries.hpp"

namespace gputext::gpu {

/// The bound that queries.hpp begins with. The last factor covers the rounding of the lengths
/// themselves.
__device__ inline double error_of(const TermGates& job, std::uint32_t query) {
    const TermError& error = job.error;
    const double items = sqrt(__longlong_as_double(static_cast<long long>(*error.items)));
    const double own = error.residuals[query];
    double bound = items + (1 + items) * own + error.fixed;
    if (error.lengths != nullptr) bound += error.lengths[query] * (1 + items) * error.per_length;
    return bound * (1 + 0x1p-20) + 0x1p-22;
}

__device__ inline double scale_of(const TermGates& job) {
    return kItemScale * job.queries.scale;
}

/// A gate, from a bound in units of scores.
__device__ inline float gate_at(double score) {
    const float gate = floorf(__double2float_rd(score));
    return gate < 1 ? -INFINITY : gate;
}

/// The least cosine of an item within a limit; of a query without weights nothing is asked.
__device__ inline double cosine_within(const TermGates& job, std::uint32_t query, double limit) {
    if (job.item_square == nullptr) return 1 - limit;
    const double square = job.queries.rows.squares[query] * *job.item_square;
    return square > 0 ? -limit / sqrt(square) : 0;
}

__device__ inline float gate_of_limit(const TermGates& job, std::uint32_t query, double limit) {
    return gate_at((cosine_within(job, query, limit) - error_of(job, query)) * scale_of(job));
}

/// A query's gate for its limit, or a higher one if a score suggests it, as ordered_float() or 0.
/// Both parts of the bound are known before the score is.
struct GuessedGate {
    float sure = -INFINITY;
    double width = 0;

    GuessedGate() = default;
    __device__ GuessedGate(const TermGates& job, std::uint32_t query, double limit)
        : sure(gate_of_limit(job, query, limit)), width(2 * error_of(job, query) * scale_of(job)) {}

    __device__ float at(unsigned score) const {
        const double reached = score == 0 ? 0 : static_cast<double>(float_of_ordered(score));
        return fmaxf(sure, gate_at(reached - width));
    }
};

}  // namespace gputext::gpu
