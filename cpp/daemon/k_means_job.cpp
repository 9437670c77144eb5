#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/knn/shared_k_means.hpp"

namespace gputext {
namespace {

// What an H100 takes, about, in seconds.
constexpr double kLinkByte = 1 / 27e9;     // from the host to one device
constexpr double kPair = 1 / 1.2e12;       // of an item and a centroid, beside their products
constexpr double kProduct = 1 / 360e12;    // of elements in half precision
constexpr double kOwnElement = 4e-12;      // of an item, to compare it with its own centroid
constexpr double kBeginPart = 2e-3;        // on one more device
constexpr double kWaitForOthers = 200e-6;  // in each step, where there are others

/// How many devices have done it soonest.
std::size_t best_parts(const KMeansParameters& parameters, const Vectors& items,
                       std::size_t devices) {
    const auto n = static_cast<double>(items.rows), k = static_cast<double>(parameters.k);
    const double elements = n * static_cast<double>(items.dimensions);
    const double uploaded =  // devices may have what is kept already
        items.known != nullptr ? 0 : elements * static_cast<double>(element_size(items.type));
    const double step = k * (elements * kProduct + n * kPair) + elements * kOwnElement;
    const double steps = static_cast<double>(parameters.iterations) + 1;
    const auto seconds = [&](std::size_t parts) {
        const auto count = static_cast<double>(parts);
        const double shared = (uploaded * kLinkByte + steps * step) / count;
        return parts == 1 ? shared : shared + (count - 1) * kBeginPart + steps * kWaitForOthers;
    };
    std::size_t best = 1;
    for (std::size_t parts = 2; parts <= devices; ++parts)
        if (seconds(parts) < seconds(best)) best = parts;
    return best;
}

}  // namespace

Status KMeansOnDevice::on_host(const AssignmentTask& task, const UseAssignment& use, std::uint64_t,
                               Execution& execution) {
    return with_host_assignment(task, use, execution);
}

/// Each device takes part with some of the items; the first to come may have all of them.
template <>
class Job<SubmitKMeans> : public JobOf<SubmitKMeans> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override {
        return items_.map(request_.items, files, execution.stop());
    }
    Result<std::size_t> prepare(std::size_t devices, Execution&) override {
        const std::size_t parts = best_parts(request_.parameters, items_.vectors(), devices);
        shared_.emplace(request_.parameters, items_.vectors(), parts);
        return parts;
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return shared_->take_part(
            [&](const AssignmentTask& task, const UseAssignment& use) {
                note_share(device, task.clusters.clusters);
                return device.compute<KMeansOnDevice>(task, use, memory, execution);
            },
            execution);
    }
    /// One that came too late had no items.
    bool has_work_of(const Device& device) const override {
        return std::ranges::any_of(shares_,
                                   [&](const Share& share) { return share.device == &device; });
    }
    Status write(MemoryFile& file, Execution& execution) override {
        const KMeans& answer = shared_->answer();
        execution.begin_phase("returning rows", 0);
        GPUTEXT_TRY(append_all(file, answer.distances, execution.stop()));
        GPUTEXT_TRY(append_all(file, answer.sizes, execution.stop()));
        GPUTEXT_TRY(append_all(file, answer.clusters, execution.stop()));
        GPUTEXT_TRY(append_all(file, answer.centroids, execution.stop()));
        return {};
    }
    Message reply(const JobReport& report) const override {
        const KMeans& answer = shared_->answer();
        return KMeansReply{report,
                           request_.items.rows,
                           answer.sizes.size(),
                           answer.dimensions,
                           answer.iterations,
                           answer.converged,
                           answer.inertia,
                           answer.rescored};
    }

private:
    /// A device and its items.
    struct Share {
        const Device* device;
        std::size_t begin, end;
    };

    /// Where it began anew, all items are shared out again: who had any of these has them no more.
    void note_share(const Device& device, std::span<const std::uint32_t> clusters) {
        const auto begin =
            static_cast<std::size_t>(clusters.data() - shared_->answer().clusters.data());
        const std::size_t end = begin + clusters.size();
        const std::lock_guard lock(mutex_);
        std::erase_if(shares_,
                      [&](const Share& other) { return other.begin < end && begin < other.end; });
        shares_.push_back({&device, begin, end});
    }

    MappedMatrix items_;
    std::optional<SharedKMeans> shared_;
    std::mutex mutex_;  // of what follows
    std::vector<Share> shares_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitKMeans& request);

}  // namespace gputext
