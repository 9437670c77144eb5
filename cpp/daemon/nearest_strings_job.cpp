#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/daemon/search_parts.hpp"
#include "cpp/strings/nearest_strings.hpp"

namespace gputext {
namespace {

/// Pairs that are worth a device of their own.
constexpr double kLeastPart = 1e9;

/// The strings that a request's files hold.
class MappedStrings {
public:
    Status map(const StringsShape& shape, StringMetric metric, JobFiles& files, Stop stop) {
        std::span<const std::uint32_t> symbols;
        GPUTEXT_TRY(map_next(files, std::uint64_t{shape.strings} + 1, Trust::sealed, begins_,
                             strings_.begins));
        GPUTEXT_TRY(map_next(files, shape.symbols, Trust::sealed, symbols_, symbols));
        strings_.symbols = symbols.data();
        GPUTEXT_TRY(check_row_begins(strings_.begins, shape.symbols, stop));
        return metric == StringMetric::trigram ? check_ascending(stop) : Status();
    }

    const Strings& strings() const { return strings_; }

private:
    Status check_ascending(Stop stop) const {
        for (std::size_t i = 0; i < strings_.size(); ++i) {
            if (i % (kLookEvery / 64) == 0 && stop()) return Status::cancelled();
            const Symbols trigrams = strings_[i];
            for (std::size_t at = 1; at < trigrams.size(); ++at)
                if (trigrams[at - 1] >= trigrams[at]) return broken("trigrams in another order");
        }
        return {};
    }

    MappedFile begins_, symbols_;
    Strings strings_;
};

}  // namespace

Result<Neighbors> NearestStringsOnDevice::on_host(const NearestStringsParameters& parameters,
                                                  const Strings& queries, const Strings& items,
                                                  const MatchKeys& match, const RowKeys& excluded,
                                                  std::uint64_t, Execution& execution) {
    return nearest_strings(parameters, queries, items, match, excluded, execution);
}

/// Shared out by its queries.
template <>
class Job<SubmitNearestStrings> : public JobOf<SubmitNearestStrings> {
public:
    explicit Job(const SubmitNearestStrings& request)
        : JobOf(request), parameters_(request.parameters) {}

    Status read(JobFiles files, Execution& execution) override {
        const Stop stop = execution.stop();
        GPUTEXT_TRY(queries_.map(request_.queries, parameters_.metric, files, stop));
        GPUTEXT_TRY(items_.map(request_.items, parameters_.metric, files, stop));
        return keys_.map(request_.has_keys, request_.has_matches, request_.queries.strings,
                         request_.items.strings, files);
    }
    Result<std::size_t> prepare(std::size_t devices, Execution&) override {
        const double pairs = static_cast<double>(request_.queries.strings) *
                             static_cast<double>(request_.items.strings);
        const auto worth = static_cast<std::size_t>(
            std::min(pairs / kLeastPart, static_cast<double>(devices)));
        begins_ = even_parts(request_.queries.strings, std::max<std::size_t>(worth, 1));
        answers_.resize(begins_.size() - 1);
        return answers_.size();
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        const std::size_t begin = begins_[part], count = begins_[part + 1] - begin;
        const Strings& all = queries_.strings();
        const auto of_part = [&](auto keys) {
            if (!keys.queries.empty()) keys.queries = keys.queries.subspan(begin, count);
            return keys;
        };
        return take_answer(device.compute<NearestStringsOnDevice>(
                               parameters_,
                               Strings{all.begins.subspan(begin, count + 1), all.symbols},
                               items_.strings(), of_part(keys_.matches()), of_part(keys_.keys()),
                               memory, execution),
                           answers_[part]);
    }
    Status merge(Execution&) override {
        std::uint64_t found = 0;
        for (const Neighbors& answer : answers_) found += answer.items.size();
        const std::uint64_t bytes = kBytesOfNeighbor * found;
        return bytes <= parameters_.answer_limit
                   ? Status()
                   : over_memory_limit("the neighbors", bytes, parameters_.answer_limit);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbors", 0);
        return append_neighbors(file, answers_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return knn_reply(report, request_.queries.strings, answers_);
    }

private:
    NearestStringsParameters parameters_;
    MappedStrings queries_, items_;
    MappedKeys keys_;
    std::vector<std::size_t> begins_;
    std::vector<Neighbors> answers_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitNearestStrings& request);

}  // namespace gputext
