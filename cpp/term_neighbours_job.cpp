#include <cstdint>
#include <vector>

#include "cpp/operator_job.hpp"
#include "cpp/term_knn.hpp"
#include "cpp/term_weights.hpp"
#include "cpp/vector_files.hpp"

namespace gputext {
namespace {

class TermNeighboursJob : public OperatorJob {
public:
    explicit TermNeighboursJob(const SubmitTermNeighbours& request) : request_(request) {
        parameters_.k = request.k;
        parameters_.radius = request.radius;
        parameters_.memory_limit = request.host_memory_limit;
    }

    const char* operation() const override { return "term_neighbours"; }
    std::uint16_t request_type() const override { return SubmitTermNeighbours::type; }
    const JobLimits& limits() const override { return request_; }
    std::uint64_t rows() const override {
        return std::uint64_t{request_.queries.rows} + request_.items.rows;
    }
    std::uint64_t bytes() const override {
        return request_.queries.bytes() + request_.items.bytes();
    }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override {
        return search_.map(request_, files, execution.stop());
    }
    Status run(Device& device, std::uint64_t memory, Execution& execution) override {
        if (Status status = weigh_terms(execution); !status.ok()) return status;
        return device.term_neighbours(parameters_, factors_, search_.queries(), search_.items(),
                                      search_.keys(), memory, execution, answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbours", 0);
        return append_neighbours(file, answer_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return NeighboursReply{report, request_.queries.rows, answer_.items.size(),
                               answer_.rescored, answer_.escalated};
    }

private:
    /// Once, as the factors stay when a device runs out of memory.
    Status weigh_terms(Execution& execution) {
        const Vectors& items = search_.items();
        if (factors_.size() == items.dimensions) return {};
        if (auto largest = largest_magnitude(items, "item", execution); !largest.ok())
            return largest.status();
        const auto frequencies = document_frequencies(items, execution);
        if (!frequencies.ok()) return frequencies.status();
        factors_ = term_factors({request_.weighting, request_.min_document_frequency}, *frequencies,
                                items.rows);
        return {};
    }

    const SubmitTermNeighbours request_;
    TermKnnParameters parameters_;
    MappedSearch search_;
    std::vector<double> factors_;
    Neighbours answer_;
};

}  // namespace

std::unique_ptr<OperatorJob> term_neighbours_job(const SubmitTermNeighbours& request) {
    return std::make_unique<TermNeighboursJob>(request);
}

}  // namespace gputext
