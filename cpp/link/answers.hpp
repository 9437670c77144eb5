// cpp/link/answers.hpp - the answers that several operators have
//
// The reply comes with one file, a sealed memfd.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/knn/neighbors.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

/// Neighbors, in a file: u64 begins[queries + 1], double distances[neighbors], u32
/// items[neighbors].
struct KnnReply {
    static constexpr std::uint16_t type = 14;
    JobReport report;
    std::uint32_t queries = 0;
    std::uint64_t neighbors = 0;
    std::uint64_t rescored = 0;  // as in Neighbors
    std::uint64_t escalated = 0;

    static void fields(auto& archive, auto& self) {
        archive(self.report, self.queries, self.neighbors, self.rescored, self.escalated);
    }
};

struct KnnAnswer {
    std::uint32_t queries = 0;  // of the request
    std::uint32_t items = 0;    // the same
    KnnReply summary;
    MappedFile file;

    /// Bytes of the file that belongs to the summary, or why that does not answer the request.
    Result<std::uint64_t> file_size() const;
    /// Checks and copies it, O(queries + neighbors). Errors: unavailable for an answer that is
    /// none; cancelled; out_of_memory.
    Result<Neighbors> read(Stop stop = {}) const noexcept;
};

/// Layout of a reply's file. Null when no machine could hold it.
struct NeighborsLayout {
    std::uint64_t distances_begin;
    std::uint64_t items_begin;
    std::uint64_t size;
};
std::optional<NeighborsLayout> neighbors_layout(std::uint32_t queries, std::uint64_t neighbors);

/// The neighbors in a file of that layout, aligned; invalid_argument for any that are not of so
/// many queries and items; cancelled. O(queries + neighbors).
Result<Neighbors> unpack_neighbors(std::span<const std::uint8_t> file, std::uint32_t queries,
                                     std::uint32_t items, std::uint64_t neighbors, Stop stop = {});

/// A number for each row, in a file: double[rows].
struct ScoresReply {
    static constexpr std::uint16_t type = 17;
    JobReport report;
    std::uint32_t rows = 0;

    static void fields(auto& archive, auto& self) { archive(self.report, self.rows); }
};

struct ScoresAnswer {
    std::uint32_t rows = 0;  // of the request
    ScoresReply summary;
    MappedFile file;

    // As in KnnAnswer.
    Result<std::uint64_t> file_size() const;
    Result<std::vector<double>> read(Stop stop = {}) const noexcept;
};

}  // namespace gputext
