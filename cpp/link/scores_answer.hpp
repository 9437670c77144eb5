// cpp/link/scores_answer.hpp - the answer of every operator that returns a number for each row
//
// The reply comes with one file, a sealed memfd: double[rows].

#pragma once

#include <cstdint>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

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
