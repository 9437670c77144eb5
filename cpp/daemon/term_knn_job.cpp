#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/keyed_parts.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/daemon/search_parts.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/terms/bm25.hpp"
#include "cpp/terms/keyed_knn.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/terms/tfidf.hpp"

namespace gputext {
namespace {

/// Elements of the items that are worth a device of their own.
constexpr std::size_t kLeastPart = std::size_t{1} << 20;

/// Where parts of about as many elements begin: what a device does follows from them, and not from
/// the number of items.
std::vector<std::size_t> parts_by_elements(const Vectors& items, std::size_t parts) {
    const auto begins = items.row_begins;
    std::vector<std::size_t> found(1, 0);
    for (std::size_t part = 1; part < parts; ++part) {
        const auto at =
            std::lower_bound(begins.begin(), begins.end() - 1, begins.back() / parts * part);
        found.push_back(static_cast<std::size_t>(at - begins.begin()));
    }
    found.push_back(items.rows);
    return found;
}

/// There are no kernels for it: gputextd searches on its threads.
Result<Neighbors> search_within_keys(const TermKnnParameters& parameters,
                                     std::span<const double> factors, const Vectors& queries,
                                     const Vectors& items, const KeyGroups& groups,
                                     const RowKeys& excluded, Execution& execution) {
    GroupNumbers numbers;
    GPUTEXT_TRY(numbers.set(groups, queries.rows, items.rows, execution));
    return keyed_term_knn(parameters, factors, queries, items, numbers.matches(), excluded,
                          execution);
}

}  // namespace

Result<Neighbors> TermKnnOnDevice::on_host(const TermKnnParameters& parameters,
                                           std::span<const double> factors, const Vectors& queries,
                                           const Vectors& items, const RowKeys& keys,
                                           std::uint64_t memory, Execution& execution) {
    return term_knn(within(parameters, memory), factors, queries, items, keys, execution);
}

template <>
class Job<SubmitTermKnn> : public JobOf<SubmitTermKnn> {
public:
    explicit Job(const SubmitTermKnn& request) : JobOf(request), parameters_(request.parameters) {
        parameters_.answer_limit = request.parameters.memory_limit;
    }

    Status read(JobFiles files, Execution& execution) override {
        GPUTEXT_TRY(search_.map(request_.search, files, execution.stop()));
        if (!request_.has_factors) return {};
        MappedFile file;
        std::span<const double> factors;
        GPUTEXT_TRY(
            map_next(files, request_.search.items.dimensions, Trust::sealed, file, factors));
        factors_.assign(factors.begin(), factors.end());
        return check_term_factors(factors_);
    }
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        GPUTEXT_TRY(weigh_terms(execution));
        const Vectors &queries = search_.queries(), &items = weighed_.items();
        if (keyed()) {
            GPUTEXT_TRY(
                check_term_search(parameters_, weighed_.factors(), queries, items, search_.keys()));
            GPUTEXT_TRY(check_match_keys(search_.matches(), queries.rows, items.rows));
            return keyed_parts_.prepare(search_.matches(), queries, items, devices, execution);
        }
        std::size_t most = devices;
        if (limit().k < items.rows)
            most = std::min(most, most_item_parts(limit(), queries.rows, items.rows));
        const auto count =
            std::clamp<std::size_t>(request_.search.items.stored / kLeastPart, 1, most);
        parts_ = SearchParts(queries, items, search_.keys(), SearchShares::By::items,
                             parts_by_elements(items, count));
        return count;
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        if (keyed())
            return take_answer(
                search_within_keys(within(parameters_, memory), weighed_.factors(),
                                   search_.queries(), weighed_.items(), keyed_parts_.groups(part),
                                   search_.keys(), execution),
                keyed_parts_.answer(part));
        return take_answer(device.compute<TermKnnOnDevice>(parameters_, weighed_.factors(),
                                                           parts_.queries(part), parts_.items(part),
                                                           parts_.keys(part), memory, execution),
                           parts_.answer(part));
    }
    Status merge(Execution& execution) override {
        return keyed() ? keyed_parts_.merge(limit(), execution) : parts_.merge(limit(), execution);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbors", 0);
        return append_neighbors(file, answers(), execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return knn_reply(report, request_.search.queries.rows, answers());
    }

private:
    bool keyed() const { return request_.search.has_matches; }
    std::span<const Neighbors> answers() const {
        return keyed() ? keyed_parts_.answers() : parts_.answers();
    }
    Status weigh_terms(Execution& execution) {
        const Vectors& items = search_.items();
        if (auto largest = largest_magnitude(items, "item", execution); !largest.ok())
            return largest.status();
        std::vector<double> factors = factors_;
        if (!request_.has_factors) {
            const auto frequencies = document_frequencies(items, execution);
            if (!frequencies.ok()) return frequencies.status();
            factors = term_factors(request_.terms, *frequencies, items.rows);
        }
        return weighed_.set(request_.terms, std::move(factors), items, execution);
    }

    AnswerLimit limit() const { return {parameters_.k, parameters_.answer_limit}; }

    TermKnnParameters parameters_;
    MappedSearch search_;
    std::vector<double> factors_;  // that came with the request
    WeighedItems weighed_;
    SearchParts parts_;
    KeyedParts keyed_parts_;  // in place of the other, with keys that have to match
};

template std::unique_ptr<OperatorJob> new_job(const SubmitTermKnn& request);

}  // namespace gputext
