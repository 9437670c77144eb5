// tests/support/plain_k_means.hpp - reference implementation of cpp/knn/k_means.hpp

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "cpp/base/counter_random.hpp"
#include "cpp/knn/k_means.hpp"
#include "tests/support/plain_knn.hpp"

namespace gputext::testing {

/// As the header says it, one sentence after the other. All distances are computed, and all weights
/// and sums from the beginning each time. Nothing where there are fewer distinct items than k.
class PlainKMeans {
public:
    PlainKMeans(const KMeansParameters& parameters, const DoubleRows& items)
        : p_(parameters), items_(items), n_(items.size()), d_(items[0].size()) {
        int bits = 0;
        while (n_ >> bits != 0) ++bits;
        b_ = std::min(50, 62 - bits);
    }

    std::optional<KMeans> run() {
        if (!choose()) return std::nullopt;
        KMeans answer;
        answer.dimensions = d_;
        while (answer.iterations < p_.iterations && !answer.converged) {
            fill_empty_clusters();
            set_means();
            const auto before = clusters_;
            assign(centroids_);
            ++answer.iterations;
            answer.converged = clusters_ == before;
        }
        answer.clusters = clusters_;
        answer.distances = distances_;
        answer.sizes = sizes();
        for (const auto& row : centroids_)
            for (const double element : row)
                answer.centroids.push_back(static_cast<float>(element));
        for (const double distance : distances_)
            answer.inertia += p_.metric == Metric::cosine ? distance : distance * distance;
        return answer;
    }

private:
    double distance(const DoubleRow& a, const DoubleRow& b) const {
        return *plain_distance(p_.metric, a, b);
    }

    std::uint64_t draw(std::uint64_t below) {
        __extension__ using Wide = unsigned __int128;
        const std::uint64_t r = random_bits(random_key(p_.seed, 0x6b6d, 0), draws_++);
        return static_cast<std::uint64_t>(Wide{r} * below >> 64);
    }

    double nearest(std::size_t item, const std::vector<std::size_t>& chosen) const {
        double least = std::numeric_limits<double>::infinity();
        for (const std::size_t c : chosen)
            least = std::min(least, distance(items_[item], items_[c]));
        return p_.metric == Metric::cosine && least < std::ldexp(1, -40) ? 0 : least;
    }

    std::uint64_t weight(double distance, int e) const {
        const double y = std::ldexp(distance, -e);
        const double w =
            p_.metric == Metric::cosine ? std::ldexp(y, b_ - 1) : std::ldexp(y * y, b_ - 2);
        return static_cast<std::uint64_t>(std::floor(w));
    }

    bool choose() {
        std::vector<std::size_t> chosen{draw(n_)};
        while (chosen.size() < p_.k) {
            std::vector<double> fixed;
            for (std::size_t i = 0; i < n_; ++i) fixed.push_back(nearest(i, chosen));
            const double largest = *std::max_element(fixed.begin(), fixed.end());
            if (largest == 0) return false;
            const int e = std::ilogb(largest);
            std::uint64_t total = 0;
            for (const double distance : fixed) total += weight(distance, e);
            std::size_t since = 0, void_draws = 0;
            while (chosen.size() < p_.k && since < 96 && void_draws < 64) {
                std::uint64_t u = draw(total);
                std::size_t item = 0;
                for (; u >= weight(fixed[item], e); ++item) u -= weight(fixed[item], e);
                if (u < weight(nearest(item, chosen), e)) {
                    chosen.push_back(item);
                    ++since;
                } else {
                    ++void_draws;
                }
            }
        }
        for (const std::size_t c : chosen) {
            centroids_.push_back(direction(items_[c]));
            for (double& element : centroids_.back()) element = static_cast<float>(element);
        }
        DoubleRows rows;
        for (const std::size_t c : chosen) rows.push_back(items_[c]);
        assign(rows);
        return true;
    }

    void assign(const DoubleRows& centroids) {
        clusters_.assign(n_, 0);
        distances_.assign(n_, std::numeric_limits<double>::infinity());
        for (std::size_t i = 0; i < n_; ++i)
            for (std::uint32_t c = 0; c < p_.k; ++c) {
                const double to = distance(items_[i], centroids[c]);
                if (to >= distances_[i]) continue;
                distances_[i] = to;
                clusters_[i] = c;
            }
    }

    std::vector<std::uint64_t> sizes() const {
        std::vector<std::uint64_t> sizes(p_.k);
        for (const std::uint32_t cluster : clusters_) ++sizes[cluster];
        return sizes;
    }

    void fill_empty_clusters() {
        for (std::uint32_t c = 0; c < p_.k; ++c) {
            if (sizes()[c] > 0) continue;
            std::optional<std::size_t> farthest;
            for (std::size_t i = 0; i < n_; ++i)
                if (sizes()[clusters_[i]] > 1 &&
                    (!farthest || distances_[i] > distances_[*farthest]))
                    farthest = i;
            clusters_[*farthest] = c;
        }
    }

    /// The row, for cosine divided by its length.
    DoubleRow direction(DoubleRow row) const {
        if (p_.metric != Metric::cosine) return row;
        const auto square = [&] {
            return plain_sum(row.size(), [&](auto i) { return row[i] * row[i]; });
        };
        if (!(square() >= std::ldexp(1, -300) && square() <= std::ldexp(1, 300))) {
            double largest = 0;
            for (const double element : row) largest = std::max(largest, std::fabs(element));
            for (double& element : row) element = std::ldexp(element, -std::ilogb(largest));
        }
        const double norm = std::sqrt(square());
        for (double& element : row) element /= norm;
        return row;
    }

    void set_means() {
        double largest = std::ldexp(1, -200);
        for (const auto& row : items_)
            for (const double element : row) largest = std::max(largest, std::fabs(element));
        const int e = b_ - 1 - (p_.metric == Metric::cosine ? 0 : std::ilogb(largest));
        for (std::size_t c = 0; c < p_.k; ++c) {
            std::vector<std::int64_t> sums(d_);
            std::int64_t size = 0;
            for (std::size_t i = 0; i < n_; ++i) {
                if (clusters_[i] != c) continue;
                const DoubleRow row = direction(items_[i]);
                for (std::size_t j = 0; j < d_; ++j) sums[j] += std::llrint(std::ldexp(row[j], e));
                ++size;
            }
            DoubleRow mean;
            bool zeros = true;
            for (std::size_t j = 0; j < d_; ++j) {
                mean.push_back(static_cast<float>(
                    std::ldexp(static_cast<double>(sums[j]) / static_cast<double>(size), -e)));
                zeros = zeros && mean.back() == 0;
            }
            if (!(p_.metric == Metric::cosine && zeros)) centroids_[c] = mean;
        }
    }

    const KMeansParameters& p_;
    const DoubleRows& items_;
    std::size_t n_, d_;
    int b_;
    std::uint64_t draws_ = 0;
    DoubleRows centroids_;
    std::vector<std::uint32_t> clusters_;
    std::vector<double> distances_;
};

}  // namespace gputext::testing
