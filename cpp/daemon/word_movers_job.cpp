#include <algorithm>
#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/embeddings/word_movers.hpp"

namespace gputext {
namespace {

/// Pairs that are worth a device of their own.
constexpr std::size_t kLeastPart = std::size_t{1} << 16;

}  // namespace

Status WordMoversOnDevice::on_host(const MoversParameters& parameters, const WordVectors& vectors,
                                   const TextPairs& pairs, std::uint64_t, Execution& execution,
                                   std::span<double> distances) {
    const auto found = word_movers_distances(parameters, vectors, pairs, execution);
    if (!found.ok()) return found.status();
    std::copy(found->begin(), found->end(), distances.begin());
    return {};
}

template <>
class Job<SubmitWordMovers> : public ScoresJob<SubmitWordMovers> {
public:
    using ScoresJob::ScoresJob;

    Status read(JobFiles files, Execution& execution) override {
        const std::uint64_t pairs = request_.pairs;
        GPUTEXT_TRY(vectors_.map(request_.vectors, files, execution.stop()));
        GPUTEXT_TRY(map_next(files, 2 * pairs + 1, Trust::sealed, begins_, pairs_.begins));
        GPUTEXT_TRY(map_next(files, pairs, Trust::sealed, totals_, pairs_.totals));
        GPUTEXT_TRY(
            map_next(files, request_.masses, Trust::sealed_or_disk, masses_, pairs_.masses));
        return check_text_pairs(pairs_, request_.vectors.rows, execution);
    }
    Result<std::size_t> prepare(std::size_t devices, Execution&) override {
        scores_.resize(pairs_.size());
        return parts_ = std::clamp<std::size_t>(pairs_.size() / kLeastPart, 1, devices);
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        const std::size_t begin = pairs_.size() * part / parts_;
        const std::size_t end = pairs_.size() * (part + 1) / parts_;
        const TextPairs own{pairs_.begins.subspan(2 * begin, 2 * (end - begin) + 1), pairs_.masses,
                            pairs_.totals.subspan(begin, end - begin)};
        return device.compute<WordMoversOnDevice>(request_.parameters, vectors_.words(), own,
                                                  memory, execution,
                                                  std::span(scores_).subspan(begin, end - begin));
    }

private:
    MappedMatrix vectors_;
    MappedFile begins_, totals_, masses_;
    TextPairs pairs_;
    std::size_t parts_ = 1;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitWordMovers& request);

}  // namespace gputext
