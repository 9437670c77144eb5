// cpp/link/dbscan.hpp - dbscan() (cpp/knn/dbscan.hpp) at gputextd

#pragma once

#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/knn/dbscan.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/knn.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

void fields(auto& archive, Like<DbscanParameters> auto& parameters) {
    archive(parameters.epsilon, parameters.min_points, parameters.metric, parameters.memory_limit);
}

/// Files: the matrix of the items.
struct SubmitDbscan {
    static constexpr std::uint16_t type = 32;
    static constexpr const char* operation = "dbscan";
    JobLimits limits;
    MatrixShape items;
    DbscanParameters parameters;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.items, self.parameters);
    }
    bool consistent() const { return items.consistent(); }
    std::size_t files() const { return items.files(); }
    std::uint64_t rows() const { return items.rows; }
    std::uint64_t bytes() const { return items.bytes(); }
};

/// File: u32 clusters[rows] and u8 core[rows], in a sealed memfd.
struct DbscanReply {
    static constexpr std::uint16_t type = 33;
    JobReport report;
    std::uint32_t rows = 0;
    std::uint32_t count = 0;  // as in DbscanClusters

    static void fields(auto& archive, auto& self) {
        archive(self.report, self.rows, self.count);
    }
};

struct DbscanAnswer {
    std::uint32_t rows = 0;  // of the request
    DbscanReply summary;
    MappedFile file;

    // As in KnnAnswer.
    Result<std::uint64_t> file_size() const;
    Result<DbscanClusters> read(Stop stop = {}) const noexcept;
};

struct DbscanRequest {
    using Packed = PackedRequest<SubmitDbscan, DbscanAnswer>;

    DbscanParameters parameters;  // simd and answer_limit are the server's own choice
    VectorFiles items;
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const;
};

}  // namespace gputext
