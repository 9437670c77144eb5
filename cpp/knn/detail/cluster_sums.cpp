#include "cpp/knn/detail/cluster_sums.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "cpp/base/lanes.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// Elements that a task adds at most, and items that it looks at.
constexpr std::size_t kTaskElements = std::size_t{1} << 22;
constexpr std::size_t kMostTaskRows = std::size_t{1} << 15;

/// Adds round(row[i] * scale) to sums[i]. A number below 2^50 that is added to 1.5 * 2^52 is
/// rounded to an integer, which the sum's last bits then are.
[[gnu::always_inline]] inline void add_here(const double* row, double scale, std::size_t count,
                                            std::int64_t* sums) {
    constexpr double shift = 0x1.8p52;
    for (std::size_t i = 0; i < count; ++i)
        sums[i] += std::bit_cast<std::int64_t>(row[i] * scale + shift) -
                   std::bit_cast<std::int64_t>(shift);
}

[[gnu::optimize("O3")]] void add_portable(const double* row, double scale, std::size_t count,
                                          std::int64_t* sums) {
    add_here(row, scale, count, sums);
}

#ifdef GPUTEXT_X86
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void add_avx2(const double* row, double scale,
                                                          std::size_t count, std::int64_t* sums) {
    add_here(row, scale, count, sums);
}

[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 void
add_avx512(const double* row, double scale, std::size_t count, std::int64_t* sums) {
    add_here(row, scale, count, sums);
}
#endif

auto add_for(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return add_avx512;
    if (simd == Simd::avx2) return add_avx2;
#endif
    (void)simd;
    return add_portable;
}

/// cpp/knn/distance.hpp's square of a row.
double square_of(std::span<const double> row) {
    Vector<double, 2> lanes[kLanes / 2] = {};
    double partial[kLanes] = {};
    for (std::size_t i = 0; i < row.size(); ++i) partial[i % kLanes] += row[i] * row[i];
    std::memcpy(lanes, partial, sizeof lanes);
    return sum_of_lanes<2>(lanes);
}

}  // namespace

void MeanElements::copy(std::size_t item, double* out) const {
    const std::size_t d = items_.dimensions;
    copy_elements(items_, items_.begin(item), d, out);
    if (metric_ != Metric::cosine) return;
    const std::span<double> row(out, d);
    double square = square_of(row);
    if (!(square >= 0x1p-300 && square <= 0x1p300)) {
        double largest = 0;
        for (const double element : row) largest = std::max(largest, std::fabs(element));
        const int exponent = std::ilogb(largest);
        for (double& element : row) element = std::scalbn(element, -exponent);
        square = square_of(row);
    }
    const double norm = std::sqrt(square);
    for (double& element : row) element /= norm;
}

ClusterSums::ClusterSums(Metric metric, const Vectors& items, const ClusterMeans& means,
                         std::size_t k, Simd simd)
    : items_(items),
      elements_(metric, items),
      scale_(std::scalbn(1.0, means.exponent())),
      add_(add_for(simd)),
      sums_(k * items.dimensions),
      sizes_(k) {}

std::size_t ClusterSums::rows_of_task() const {
    const std::size_t d = std::max<std::size_t>(1, items_.dimensions);
    return std::clamp<std::size_t>(kTaskElements / d, 16, kMostTaskRows);
}

std::size_t ClusterSums::bytes_of_thread(std::size_t dimensions) {
    return 2 * kMostTaskRows * sizeof(Change) +
           dimensions * (sizeof(double) + 2 * sizeof(std::int64_t));
}

Status ClusterSums::set(std::span<const std::uint32_t> clusters, Execution& execution) {
    const std::size_t n = items_.rows, step = rows_of_task();
    if (summed_.empty() && !stoppable_assign(summed_, n, kNone, execution.stop()))
        return Status::cancelled();
    return execution.parallel_for((n + step - 1) / step, [&](std::size_t task, unsigned) -> Status {
        std::vector<Change> changes;
        const std::size_t end = std::min(n, (task + 1) * step);
        for (std::size_t i = task * step; i < end; ++i) {
            if (summed_[i] == clusters[i]) continue;
            const auto item = static_cast<std::uint32_t>(i);
            if (summed_[i] != kNone) changes.push_back({summed_[i], item, true});
            changes.push_back({clusters[i], item, false});
            summed_[i] = clusters[i];
        }
        std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
            return a.cluster != b.cluster ? a.cluster < b.cluster : a.item < b.item;
        });
        std::vector<double> row(items_.dimensions);
        std::vector<std::int64_t> sums(items_.dimensions);
        for (std::size_t begin = 0, last = 0; begin < changes.size(); begin = last) {
            while (last < changes.size() && changes[last].cluster == changes[begin].cluster) ++last;
            add(std::span(changes).subspan(begin, last - begin), row, sums);
        }
        return {};
    });
}

/// Adds changes of one cluster up and then to its sums, which other threads may add to as well.
void ClusterSums::add(std::span<const Change> run, std::vector<double>& row,
                      std::vector<std::int64_t>& sums) {
    const std::size_t cluster = run.front().cluster, d = row.size();
    std::fill(sums.begin(), sums.end(), 0);
    std::int64_t size = 0;
    for (const Change& change : run) {
        elements_.copy(change.item, row.data());
        // Rounding to nearest is symmetric: -x is rounded to minus what x is.
        add_(row.data(), change.removed ? -scale_ : scale_, d, sums.data());
        size += change.removed ? -1 : 1;
    }
    for (std::size_t i = 0; i < d; ++i)
        if (sums[i] != 0)
            std::atomic_ref(sums_[cluster * d + i]).fetch_add(sums[i], std::memory_order_relaxed);
    std::atomic_ref(sizes_[cluster]).fetch_add(size, std::memory_order_relaxed);
}

}  // namespace gputext
