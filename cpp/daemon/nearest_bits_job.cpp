#include <algorithm>
#include <utility>
#include <vector>

#include "cpp/bits/nearest_bits.hpp"
#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/daemon/search_parts.hpp"

namespace gputext {
namespace {

/// Pairs that are worth a device of their own.
constexpr double kLeastPart = 1e11;

}  // namespace

Result<Neighbors> NearestBitsOnDevice::on_host(const NearestBitsParameters& parameters,
                                               const Vectors& queries, const Vectors& items,
                                               const MatchKeys& match, const RowKeys& excluded,
                                               std::uint64_t, Execution& execution) {
    return nearest_bits(parameters, queries, items, match, excluded, execution);
}

/// Shared out by its queries.
template <>
class Job<SubmitNearestBits> : public JobOf<SubmitNearestBits> {
public:
    explicit Job(const SubmitNearestBits& request)
        : JobOf(request), parameters_(request.parameters) {}

    Status read(JobFiles files, Execution& execution) override {
        return search_.map(request_.search, files, execution.stop());
    }
    Result<std::size_t> prepare(std::size_t devices, Execution&) override {
        const Vectors& queries = search_.queries();
        const double pairs =
            static_cast<double>(queries.rows) * static_cast<double>(search_.items().rows);
        const auto worth = static_cast<std::size_t>(
            std::min(pairs / kLeastPart, static_cast<double>(devices)));
        begins_ = even_parts(queries.rows, std::max<std::size_t>(worth, 1));
        parts_ = SearchParts(queries, search_.items(), search_.keys(), SearchShares::By::queries,
                             begins_);
        return parts_.size();
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        MatchKeys matches = search_.matches();
        if (!matches.none())
            matches.queries =
                matches.queries.subspan(begins_[part], begins_[part + 1] - begins_[part]);
        return take_answer(device.compute<NearestBitsOnDevice>(
                               parameters_, parts_.queries(part), parts_.items(part), matches,
                               parts_.keys(part), memory, execution),
                           parts_.answer(part));
    }
    Status merge(Execution& execution) override {
        return parts_.merge({parameters_.k, parameters_.answer_limit}, execution);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbors", 0);
        return append_neighbors(file, parts_.answers(), execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return knn_reply(report, request_.search.queries.rows, parts_.answers());
    }

private:
    NearestBitsParameters parameters_;
    MappedSearch search_;
    std::vector<std::size_t> begins_;
    SearchParts parts_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitNearestBits& request);

}  // namespace gputext
