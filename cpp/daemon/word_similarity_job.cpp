#include <algorithm>
#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/thesaurus/cooccurrence_table.hpp"
#include "cpp/thesaurus/word_similarity.hpp"

namespace gputext {
namespace {

/// Tokens or triples that are worth a device of their own: each one counts all of them again.
constexpr std::uint64_t kLeastPart = std::uint64_t{1} << 20;

}  // namespace

Result<Thesaurus> WordSimilarityOnDevice::on_host(const SimilarityParameters& parameters,
                                                  const WeightParameters& weights,
                                                  const CooccurrenceShape& shape,
                                                  const TokenStream& tokens, std::uint64_t memory,
                                                  Execution& execution) {
    const auto counts =
        count_cooccurrences(shape, tokens, memory, execution, parameters.memory_limit);
    if (!counts.ok()) return counts.status();
    return CountedSimilarityOnDevice::on_host(parameters, weights, *counts, memory, execution);
}

Result<Thesaurus> CountedSimilarityOnDevice::on_host(const SimilarityParameters& parameters,
                                                     const WeightParameters& weights,
                                                     const Cooccurrences& counts,
                                                     std::uint64_t memory, Execution& execution) {
    const auto features = weigh_features(weights, counts, execution);
    if (!features.ok()) return features.status();
    return word_similarities(within(parameters, memory), *features, execution);
}

template <>
class Job<SubmitWordSimilarity> : public JobOf<SubmitWordSimilarity> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution&) override {
        return request_.counted ? map_counts(files) : map_tokens(files);
    }
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        if (request_.counted) GPUTEXT_TRY(collect(execution));
        parts_.resize(std::clamp<std::uint64_t>(request_.count / kLeastPart, 1, devices));
        return parts_.size();
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        SimilarityParameters own = request_.parameters;
        const std::uint64_t words = request_.shape.words;
        own.first = static_cast<std::uint32_t>(words * part / parts_.size());
        own.end = static_cast<std::uint32_t>(words * (part + 1) / parts_.size());
        if (request_.counted)
            return take_answer(device.compute<CountedSimilarityOnDevice>(
                                   own, request_.weighting, counts_, memory, execution),
                               parts_[part]);
        return take_answer(device.compute<WordSimilarityOnDevice>(
                               own, request_.weighting, request_.shape, tokens_, memory, execution),
                           parts_[part]);
    }
    /// Each part has lists of its own words alone, one part behind the other.
    Status merge(Execution& execution) override {
        answer_ = std::move(parts_[0]);
        for (std::size_t part = 1; part < parts_.size(); ++part) {
            if (execution.stop_requested()) return Status::cancelled();
            const Thesaurus& next = parts_[part];
            for (std::size_t word = 0; word < next.begins.size(); ++word)
                answer_.begins[word] += next.begins[word];
            answer_.neighbors.insert(answer_.neighbors.end(), next.neighbors.begin(),
                                      next.neighbors.end());
            answer_.similarities.insert(answer_.similarities.end(), next.similarities.begin(),
                                        next.similarities.end());
        }
        return {};
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbors", 0);
        GPUTEXT_TRY(append_all(file, answer_.begins, execution.stop()));
        GPUTEXT_TRY(append_all(file, answer_.similarities, execution.stop()));
        return append_all(file, answer_.neighbors, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return KnnReply{report, request_.shape.words, answer_.neighbors.size(), 0, 0};
    }

private:
    Status map_tokens(JobFiles files) {
        const std::uint64_t count = request_.count;
        GPUTEXT_TRY(map_next(files, count, Trust::sealed_or_disk, first_, tokens_.words));
        return map_next(files, count, Trust::sealed_or_disk, second_, tokens_.positions);
    }

    Status map_counts(JobFiles files) {
        GPUTEXT_TRY(map_next(files, request_.count, Trust::sealed_or_disk, first_, triples_));
        return map_next(files, request_.shape.words, Trust::sealed, second_, order_);
    }

    Status collect(Execution& execution) {
        const auto shape = shape_of_triples(request_.shape.words, triples_, execution);
        if (!shape.ok()) return shape.status();
        auto counts = collect_triples(*shape, order_, triples_, execution);
        if (!counts.ok()) return counts.status();
        counts_ = std::move(*counts);
        return {};
    }

    MappedFile first_, second_;
    TokenStream tokens_;
    std::span<const CountedTriple> triples_;  // when counted
    std::span<const std::uint32_t> order_;    // of the words that are counted
    Cooccurrences counts_;                    // of triples
    std::vector<Thesaurus> parts_;
    Thesaurus answer_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitWordSimilarity& request);

}  // namespace gputext
