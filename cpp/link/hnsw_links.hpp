// cpp/link/hnsw_links.hpp - link_layer() (cpp/hnsw/links.hpp) at gputextd

#pragma once

#include <cstdint>

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
            parameters.block_rows);
}

/// Files: the matrix of the values.
struct SubmitHnswLinks {
    static constexpr std::uint16_t type = 34;
    static constexpr const char* operation = "hnsw_links";
    JobLimits limits;
    MatrixShape values;
    HnswLinkParameters parameters;
    std::uint32_t linked = 0;  // rows from the first one on
    bool back = true;          // as in LayerToLink

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.values, self.parameters, self.linked, self.back);
    }
    bool consistent() const;
    std::size_t files() const { return values.files(); }
    std::uint64_t rows() const { return linked; }
    std::uint64_t bytes() const { return values.bytes(); }
};

/// File: double distances[links], unless neighbors are wanted, and u32 rows[links], in a sealed
/// memfd; links are as many as rows that are linked times places.
struct HnswLinksReply {
    static constexpr std::uint16_t type = 35;
    JobReport report;
    std::uint32_t linked = 0;

    static void fields(auto& archive, auto& self) { archive(self.report, self.linked); }
};

struct HnswLinksAnswer {
    std::uint32_t linked = 0;  // of the request
    std::uint64_t places = 0;  // the same
    bool back = true;          // the same
    HnswLinksReply summary;
    MappedFile file;

    // As in KnnAnswer.
    Result<std::uint64_t> file_size() const;
    Result<LayerLinks> read(Stop stop = {}) const noexcept;
};

struct HnswLinksRequest {
    using Packed = PackedRequest<SubmitHnswLinks, HnswLinksAnswer>;

    HnswLinkParameters parameters;  // simd is the server's own choice
    VectorFiles values;
    std::uint32_t linked = 0;  // as in SubmitHnswLinks
    bool back = true;          // the same
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const;
};

}  // namespace gputext
