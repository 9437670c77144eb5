// cpp/link/k_means.hpp - k_means() (cpp/knn/k_means.hpp) at gputextd

#pragma once

#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/knn/k_means.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/knn.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

void fields(auto& archive, Like<KMeansParameters> auto& parameters) {
    archive(parameters.k, parameters.metric, parameters.seed, parameters.iterations,
            parameters.memory_limit);
}

/// Files: the matrix of the items.
struct SubmitKMeans {
    static constexpr std::uint16_t type = 30;
    static constexpr const char* operation = "k_means";
    JobLimits limits;
    MatrixShape items;
    KMeansParameters parameters;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.items, self.parameters);
    }
    bool consistent() const {
        return items.consistent() && parameters.k >= 1 && parameters.k <= items.rows;
    }
    std::size_t files() const { return items.files(); }
    std::uint64_t rows() const { return items.rows; }
    std::uint64_t bytes() const { return items.bytes(); }
};

/// File: double distances[rows], u64 sizes[k], u32 clusters[rows] and float centroids[k *
/// dimensions], in a sealed memfd.
struct KMeansReply {
    static constexpr std::uint16_t type = 31;
    JobReport report;
    std::uint32_t rows = 0;
    std::uint64_t k = 0;  // the rest as in KMeans
    std::uint64_t dimensions = 0;
    std::uint64_t iterations = 0;
    bool converged = false;
    double inertia = 0;
    std::uint64_t rescored = 0;

    static void fields(auto& archive, auto& self) {
        archive(self.report, self.rows, self.k, self.dimensions, self.iterations, self.converged,
                self.inertia, self.rescored);
    }
};

struct KMeansAnswer {
    std::uint32_t rows = 0;        // of the request
    std::uint64_t k = 0;           // the same
    std::uint64_t dimensions = 0;  // the same
    KMeansReply summary;
    MappedFile file;

    // As in KnnAnswer.
    Result<std::uint64_t> file_size() const;
    Result<KMeans> read(Stop stop = {}) const noexcept;
};

struct KMeansRequest {
    using Packed = PackedRequest<SubmitKMeans, KMeansAnswer>;

    KMeansParameters parameters;  // simd is the server's own choice
    VectorFiles items;
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const;
};

}  // namespace gputext
