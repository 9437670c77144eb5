#include <algorithm>
#include <cmath>

#include "cpp/base/large_pages.hpp"
#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/daemon/search_parts.hpp"
#include "cpp/hnsw/graph.hpp"
#include "cpp/knn/probed_clusters.hpp"

namespace gputext {

Status HnswLinksOnDevice::on_host(const HnswLinkParameters& parameters, const LayerValues& values,
                                  const LayerRows& rows, const HnswLinks& links,
                                  std::uint64_t memory, Execution& execution) {
    return link_to_earlier(within(parameters, memory), values, rows, links, execution);
}

Status HnswLinksBackOnDevice::on_host(const HnswLinkParameters& parameters, const Vectors& values,
                                      const HnswLinks& links, const LayerRows& rows,
                                      std::span<std::uint32_t> neighbors, std::uint64_t,
                                      Execution& execution) {
    return link_back(parameters, values, links, rows, neighbors, execution);
}

Status HnswLayerOnDevice::on_host(const HnswLinkParameters& parameters, const LayerValues& values,
                                  std::span<std::uint32_t> neighbors, std::uint64_t memory,
                                  Execution& execution) {
    const auto linked =
        link_layer({within(parameters, memory), values, values.rows.rows}, execution);
    if (!linked.ok()) return linked.status();
    std::copy(linked->begin(), linked->end(), neighbors.begin());
    return {};
}

/// On one device all at once. Else a round for links, of whose parts each has as many pairs of a
/// row and one that it is compared with, and one for links back.
template <>
class Job<SubmitHnswLinks> : public JobOf<SubmitHnswLinks> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override {
        GPUTEXT_TRY(values_.map(request_.values, files, execution.stop()));
        return centroids_.map(request_.centroids, files, execution.stop());
    }
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        const std::size_t rows = request_.linked;
        const std::size_t count = std::clamp<std::size_t>(rows / kLeastRowsOfPart, 1, devices);
        for (std::size_t part = 0; part <= count; ++part)
            begins_.push_back(
                begin_of_share(static_cast<double>(part) / static_cast<double>(count)));
        if (!assign_pages(neighbors_, rows * places(), kNoElement, execution.stop()))
            return Status::cancelled();
        whole_ = count == 1;
        if (whole_) return 1;
        if (!assign_pages(linked_, rows * places(), kNoElement, execution.stop()) ||
            !assign_pages(distances_, rows * places(), 0.0, execution.stop()))
            return Status::cancelled();
        return count;
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        const HnswLinkParameters& parameters = request_.parameters;
        const LayerRows rows{begins_[part], begins_[part + 1]};
        const std::size_t first = rows.begin * places(), count = rows.size() * places();
        if (linking_back_)
            return device.compute<HnswLinksBackOnDevice>(
                parameters, values(request_.linked).rows, HnswLinks{linked_, distances_}, rows,
                std::span(neighbors_).subspan(first, count), memory, execution);
        if (whole_)
            return device.compute<HnswLayerOnDevice>(parameters, values(rows.end),
                                                     std::span(neighbors_), memory, execution);
        return device.compute<HnswLinksOnDevice>(
            parameters, values(rows.end), rows,
            HnswLinks{std::span(linked_).subspan(first, count),
                      std::span(distances_).subspan(first, count)},
            memory, execution);
    }
    Result<std::size_t> next_round(Execution&) override {
        if (whole_ || linking_back_) return 0;
        linking_back_ = true;
        begins_ = even_parts(request_.linked, begins_.size() - 1);
        return begins_.size() - 1;
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        return append_all(file, neighbors_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return HnswLinksReply{report, request_.linked};
    }

private:
    static constexpr std::size_t kLeastRowsOfPart = 8192;

    std::size_t places() const { return request_.parameters.places; }
    /// Of the first rows.
    LayerValues values(std::size_t rows) const {
        return {RowRange(values_.vectors(), 0, rows).vectors(), centroids_.vectors()};
    }
    /// The row before which so much of all work is, where a row that probes clusters is compared
    /// with a part of those before it.
    std::size_t begin_of_share(double share) const {
        const HnswLinkParameters& parameters = request_.parameters;
        const auto square = [](double x) { return x * x; };
        const auto rows = static_cast<double>(request_.linked),
                   exact = static_cast<double>(values(request_.linked).exact_rows(parameters));
        const double part = static_cast<double>(ProbedClusters::probes) / ProbedClusters::clusters;
        const double work = share * (square(exact) + part * (square(rows) - square(exact)));
        if (work <= square(exact)) return static_cast<std::size_t>(std::lround(std::sqrt(work)));
        return static_cast<std::size_t>(
            std::lround(std::sqrt((work - square(exact)) / part + square(exact))));
    }

    MappedMatrix values_, centroids_;
    std::vector<std::size_t> begins_;
    std::vector<std::uint32_t> linked_, neighbors_;
    std::vector<double> distances_;
    bool whole_ = false, linking_back_ = false;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitHnswLinks& request);

}  // namespace gputext
