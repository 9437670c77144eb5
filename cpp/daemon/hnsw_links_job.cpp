#include <algorithm>
#include <cmath>

#include "cpp/base/large_pages.hpp"
#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/daemon/search_parts.hpp"
#include "cpp/hnsw/graph.hpp"

namespace gputext {

Status HnswLinksOnDevice::on_host(const HnswLinkParameters& parameters, const Vectors& values,
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

Status HnswLayerOnDevice::on_host(const HnswLinkParameters& parameters, const Vectors& values,
                                  std::span<std::uint32_t> neighbors, std::uint64_t memory,
                                  Execution& execution) {
    const auto linked = link_layer({within(parameters, memory), values, values.rows}, execution);
    if (!linked.ok()) return linked.status();
    std::copy(linked->rows.begin(), linked->rows.end(), neighbors.begin());
    return {};
}

/// On one device all at once. Else a round for links, of whose parts each has as many pairs of a
/// row and one before it, and one for links back.
template <>
class Job<SubmitHnswLinks> : public JobOf<SubmitHnswLinks> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override {
        return values_.map(request_.values, files, execution.stop());
    }
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        const std::size_t rows = request_.linked;
        const std::size_t count = std::clamp<std::size_t>(rows / kLeastRowsOfPart, 1, devices);
        for (std::size_t part = 0; part <= count; ++part)
            begins_.push_back(static_cast<std::size_t>(
                std::lround(static_cast<double>(rows) *
                            std::sqrt(static_cast<double>(part) / static_cast<double>(count)))));
        whole_ = count == 1 && request_.back;
        if (whole_) {
            if (!assign_pages(neighbors_, rows * places(), kNoElement, execution.stop()))
                return Status::cancelled();
            return 1;
        }
        if (!assign_pages(linked_.rows, rows * places(), kNoElement, execution.stop()) ||
            !assign_pages(linked_.distances, rows * places(), 0.0, execution.stop()))
            return Status::cancelled();
        return count;
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        const HnswLinkParameters& parameters = request_.parameters;
        const LayerRows rows{begins_[part], begins_[part + 1]};
        if (whole_) {
            const RowRange values(values_.vectors(), 0, rows.end);
            return device.compute<HnswLayerOnDevice>(parameters, values.vectors(),
                                                     std::span(neighbors_), memory, execution);
        }
        const std::size_t first = rows.begin * places(), count = rows.size() * places();
        if (linking_back_) {
            const RowRange values(values_.vectors(), 0, request_.linked);
            return device.compute<HnswLinksBackOnDevice>(
                parameters, values.vectors(), linked_.links(), rows,
                std::span(neighbors_).subspan(first, count), memory, execution);
        }
        const RowRange values(values_.vectors(), 0, rows.end);
        const HnswLinks all = linked_.links();
        return device.compute<HnswLinksOnDevice>(
            parameters, values.vectors(), rows,
            HnswLinks{all.rows.subspan(first, count), all.distances.subspan(first, count)}, memory,
            execution);
    }
    Result<std::size_t> next_round(Execution& execution) override {
        if (whole_ || linking_back_ || !request_.back) return 0;
        linking_back_ = true;
        if (!assign_pages(neighbors_, linked_.rows.size(), kNoElement, execution.stop()))
            return Status::cancelled();
        begins_ = even_parts(request_.linked, begins_.size() - 1);
        return begins_.size() - 1;
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        if (request_.back) return append_all(file, neighbors_, execution.stop());
        GPUTEXT_TRY(append_all(file, linked_.distances, execution.stop()));
        return append_all(file, linked_.rows, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return HnswLinksReply{report, request_.linked};
    }

private:
    static constexpr std::size_t kLeastRowsOfPart = 8192;

    std::size_t places() const { return request_.parameters.places; }

    MappedMatrix values_;
    std::vector<std::size_t> begins_;
    LayerLinks linked_;
    bool whole_ = false, linking_back_ = false;
    std::vector<std::uint32_t> neighbors_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitHnswLinks& request);

}  // namespace gputext
