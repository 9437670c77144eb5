#include "cpp/link/scores_answer.hpp"

#include "cpp/base/exception_status.hpp"

namespace gputext {

Result<std::uint64_t> ScoresAnswer::file_size() const {
    if (summary.rows != rows) return broken_reply(kOtherRows);
    return std::uint64_t{rows} * sizeof(double);
}

Result<std::vector<double>> ScoresAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<std::vector<double>> {
        std::vector<double> scores;
        if (!copy_array(file, 0, rows, scores, stop)) return Status::cancelled();
        return scores;
    });
}

}  // namespace gputext
