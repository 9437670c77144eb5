#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/row_range.hpp"
#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/term_knn_on_device.hpp"
#include "cpp/knn/merge_neighbours.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/terms/tfidf.hpp"

namespace gputext {
namespace {

/// Elements of the items that are worth a device of their own.
constexpr std::size_t kLeastPart = std::size_t{1} << 20;

/// Some of the items, as a matrix of their own.
class ItemPart {
public:
    ItemPart(const Vectors& items, const RowKeys& keys, std::size_t begin, std::size_t end)
        : first_(static_cast<std::uint32_t>(begin)), keys_(keys), rows_(items, begin, end) {
        if (!keys.items.empty()) keys_.items = keys.items.subspan(begin, end - begin);
    }

    std::uint32_t first() const { return first_; }
    const Vectors& vectors() const { return rows_.vectors(); }
    const RowKeys& keys() const { return keys_; }

private:
    std::uint32_t first_;
    RowKeys keys_;
    RowRange rows_;
};

}  // namespace

Result<Neighbours> TermKnnOnDevice::on_host(const TermKnnParameters& parameters,
                                            std::span<const double> factors, const Vectors& queries,
                                            const Vectors& items, const RowKeys& keys,
                                            std::uint64_t memory, Execution& execution) {
    return term_knn(within(parameters, memory), factors, queries, items, keys, execution);
}

template <>
class Job<SubmitTermKnn> : public JobOf<SubmitTermKnn> {
public:
    explicit Job(const SubmitTermKnn& request) : JobOf(request), parameters_(request.parameters) {}

    Status read(JobFiles files, Execution& execution) override {
        return search_.map(request_.search, files, execution.stop());
    }
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        GPUTEXT_TRY(weigh_terms(execution));
        share_out(std::clamp<std::size_t>(request_.search.items.stored / kLeastPart, 1, devices));
        parameters_.answer_limit = parameters_.memory_limit / answers_.size();
        return answers_.size();
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        const bool whole = parts_.empty();
        return keep(device.compute<TermKnnOnDevice>(
                        parameters_, factors_, search_.queries(),
                        whole ? search_.items() : parts_[part].vectors(),
                        whole ? search_.keys() : parts_[part].keys(), memory, execution),
                    answers_[part]);
    }
    Status merge(Execution& execution) override {
        if (parts_.empty()) {
            answer_ = std::move(answers_[0]);
            return {};
        }
        std::vector<std::uint32_t> firsts;
        for (const ItemPart& part : parts_) firsts.push_back(part.first());
        GPUTEXT_TRY(check_memory());
        return merge_neighbours(answers_, firsts, parameters_.k, execution, answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbours", 0);
        return append_neighbours(file, answer_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return KnnReply{report, request_.search.queries.rows, answer_.items.size(),
                        answer_.rescored, answer_.escalated};
    }

private:
    Status weigh_terms(Execution& execution) {
        const Vectors& items = search_.items();
        if (auto largest = largest_magnitude(items, "item", execution); !largest.ok())
            return largest.status();
        const auto frequencies = document_frequencies(items, execution);
        if (!frequencies.ok()) return frequencies.status();
        factors_ = term_factors(request_.terms, *frequencies, items.rows);
        return {};
    }

    /// While answers are merged there are those of the parts, and the whole one.
    Status check_memory() const {
        std::uint64_t found = 0;
        for (const Neighbours& part : answers_) found += part.items.size();
        const std::uint64_t rows = request_.search.queries.rows;
        const std::uint64_t merged =
            parameters_.k < found / std::max<std::uint64_t>(rows, 1) ? rows * parameters_.k : found;
        const std::uint64_t bytes = kBytesOfNeighbour / 2 * found + kBytesOfNeighbour * merged;
        if (bytes <= parameters_.memory_limit) return {};
        return over_memory_limit("the neighbours", bytes, parameters_.memory_limit);
    }

    /// By elements: what a device does follows from them, and not from the number of items.
    void share_out(std::size_t count) {
        answers_.resize(count);
        if (count == 1) return;
        const auto begins = search_.items().row_begins;
        std::size_t begin = 0;
        for (std::size_t part = 0; part < count; ++part) {
            const std::uint64_t stored = begins.back() / count * (part + 1);
            const auto found = std::lower_bound(begins.begin(), begins.end() - 1, stored);
            std::size_t end = static_cast<std::size_t>(found - begins.begin());
            if (part + 1 == count) end = begins.size() - 1;
            parts_.emplace_back(search_.items(), search_.keys(), begin, end);
            begin = end;
        }
    }

    TermKnnParameters parameters_;
    MappedSearch search_;
    std::vector<double> factors_;
    std::vector<ItemPart> parts_;  // none where a device gets all items
    std::vector<Neighbours> answers_;
    Neighbours answer_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitTermKnn& request);

}  // namespace gputext
