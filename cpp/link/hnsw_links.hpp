// cpp/link/hnsw_links.hpp - link_layer() (cpp/hnsw/links.hpp) at gputextd

#pragma once

#include <cstdint>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/hnsw/links.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/knn.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

void fields(auto& archive, Like<HnswLinkParameters> auto& parameters) {
    archive(parameters.metric, parameters.candidates, parameters.places, parameters.memory_limit,
            parameters.block_rows, parameters.exact_rows, parameters.probing_rows);
}

/// Files: the matrix of the values, and that of the centroids.
struct SubmitHnswLinks {
    static constexpr std::uint16_t type = 34;
    static constexpr const char* operation = "hnsw_links";
    JobLimits limits;
    MatrixShape values;
    MatrixShape centroids;
    HnswLinkParameters parameters;
    std::uint32_t linked = 0;  // rows from the first one on

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.values, self.centroids, self.parameters, self.linked);
    }
    bool consistent() const;
    std::size_t files() const { return values.files() + centroids.files(); }
    std::uint64_t rows() const { return linked; }
    std::uint64_t bytes() const { return values.bytes(); }
};

/// File: u32 neighbors[linked * places], in a sealed memfd.
struct HnswLinksReply {
    static constexpr std::uint16_t type = 35;
    JobReport report;
    std::uint32_t linked = 0;

    static void fields(auto& archive, auto& self) { archive(self.report, self.linked); }
};

struct HnswLinksAnswer {
    std::uint32_t linked = 0;  // of the request
    std::uint64_t places = 0;  // the same
    HnswLinksReply summary;
    MappedFile file;

    // As in KnnAnswer.
    Result<std::uint64_t> file_size() const;
    Result<std::vector<std::uint32_t>> read(Stop stop = {}) const noexcept;
};

struct HnswLinksRequest {
    using Packed = PackedRequest<SubmitHnswLinks, HnswLinksAnswer>;

    HnswLinkParameters parameters;  // simd is the server's own choice
    VectorFiles values;
    Vectors centroids = {};
    std::uint32_t linked = 0;  // as in SubmitHnswLinks
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const;
};

}  // namespace gputext
