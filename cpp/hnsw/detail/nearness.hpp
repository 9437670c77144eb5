// cpp/hnsw/detail/nearness.hpp - whether rows are at most so far from each other
//
// As exact distances say it (cpp/knn/distance.hpp), but mostly found in single precision, which
// takes a quarter of the time: sums of d terms in floats are within a factor 1 +- g(d + 4) of the
// exact ones and 2 d 2^-126 (cpp/knn/float_bound.hpp has the proof), and only where that does not
// tell, the exact distance is computed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/hnsw/detail/difference_bound.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

/// Used by one thread.
class Nearness {
public:
    /// Dense rows, which outlive the object.
    Nearness(Metric metric, const Vectors& rows, Simd simd);

    /// The row that others are compared with. O(1), of halfvecs O(dimensions).
    void set(std::uint32_t row);
    /// Whether the other row is at most so far from it. O(dimensions).
    bool at_most(double distance, std::uint32_t other);
    /// The other row's exact distance; infinity where that is certainly more than this.
    double within(double distance, std::uint32_t other);

    /// Fetches the row's memory, which is anywhere, while others are compared.
    void prefetch(std::uint32_t row) const;

    /// Whether it computes in floats, and the row's, until another is set.
    bool has_floats() const { return sum_ != nullptr; }
    const float* floats() const { return row_floats_; }

    using Sum = float (*)(const float* a, const float* b, std::size_t dimensions);

private:
    /// Of the distance that is given, by what floats tell.
    SideOfLimit side_of(double distance, std::uint32_t other);
    double exact(std::uint32_t other);
    const float* floats(std::uint32_t row, std::vector<float>& scratch) const;

    Distances from_;
    const Vectors& rows_;
    Metric metric_;
    Sum sum_;       // null where floats do not tell
    double error_;  // g
    double underflow_;
    std::uint32_t row_ = 0;
    bool exact_is_set_ = false;
    const float* row_floats_ = nullptr;
    std::vector<float> row_scratch_, other_scratch_;
};

}  // namespace gputext
