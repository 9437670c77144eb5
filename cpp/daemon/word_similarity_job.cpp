#include <algorithm>
#include <vector>

#include "cpp/daemon/operator_job.hpp"
#include "cpp/daemon/vector_files.hpp"
#include "cpp/thesaurus/cooccurrence_table.hpp"
#include "cpp/thesaurus/word_similarity.hpp"

namespace gputext {
namespace {

/// Tokens or triples that are worth a device of their own: each one counts all of them again.
constexpr std::uint64_t kLeastPart = std::uint64_t{1} << 20;

class WordSimilarityJob : public OperatorJob {
public:
    explicit WordSimilarityJob(const SubmitWordSimilarity& request) : request_(request) {
        weighting_.weight = request.weight;
        weighting_.discount = request.discount;
        weighting_.features = request.features;
        parameters_.measure = request.measure;
        parameters_.top_k = request.top_k;
        parameters_.memory_limit = request.host_memory_limit;
    }

    const char* operation() const override { return "word_similarity"; }
    std::uint16_t request_type() const override { return SubmitWordSimilarity::type; }
    const JobLimits& limits() const override { return request_; }
    std::uint64_t rows() const override { return request_.rows; }
    std::uint64_t bytes() const override {
        return request_.rows *
               (request_.counted ? sizeof(CountedTriple) : 2 * sizeof(std::uint32_t));
    }

    Status read(std::span<const FileDescriptor> files, Execution&) override {
        return request_.counted ? map_counts(files) : map_tokens(files);
    }
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        if (request_.counted)
            if (Status status = collect(execution); !status.ok()) return status;
        parts_.resize(std::clamp<std::uint64_t>(request_.rows / kLeastPart, 1, devices));
        return parts_.size();
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        SimilarityParameters own = parameters_;
        const std::uint64_t words = request_.words;
        own.first = static_cast<std::uint32_t>(words * part / parts_.size());
        own.end = static_cast<std::uint32_t>(words * (part + 1) / parts_.size());
        if (request_.counted)
            return device.word_similarities(own, weighting_, counts_, memory, execution,
                                            parts_[part]);
        const CooccurrenceShape shape{request_.words, request_.window, request_.positions};
        return device.word_similarities(own, weighting_, shape, tokens_, memory, execution,
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
            answer_.neighbours.insert(answer_.neighbours.end(), next.neighbours.begin(),
                                      next.neighbours.end());
            answer_.similarities.insert(answer_.similarities.end(), next.similarities.begin(),
                                        next.similarities.end());
        }
        return {};
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbours", 0);
        Status status = append_all(file, answer_.begins, execution.stop());
        if (status.ok()) status = append_all(file, answer_.similarities, execution.stop());
        if (status.ok()) status = append_all(file, answer_.neighbours, execution.stop());
        return status;
    }
    Message reply(const JobReport& report) const override {
        return KnnReply{report, request_.words, answer_.neighbours.size(), 0, 0};
    }

private:
    Status map_tokens(std::span<const FileDescriptor> files) {
        const std::uint64_t bytes = request_.rows * sizeof(std::uint32_t);
        Status status = map_file(files[0], bytes, Trust::sealed_or_disk, first_);
        if (status.ok()) status = map_file(files[1], bytes, Trust::sealed_or_disk, second_);
        if (!status.ok()) return status;
        tokens_ = {first_.array<std::uint32_t>(0, request_.rows),
                   second_.array<std::uint32_t>(0, request_.rows)};
        return {};
    }

    Status map_counts(std::span<const FileDescriptor> files) {
        Status status = map_file(files[0], request_.rows * sizeof(CountedTriple),
                                 Trust::sealed_or_disk, first_);
        if (status.ok())
            status =
                map_file(files[1], request_.words * sizeof(std::uint32_t), Trust::sealed, second_);
        return status;
    }

    Status collect(Execution& execution) {
        const auto triples = first_.array<CountedTriple>(0, request_.rows);
        const auto shape = shape_of_triples(request_.words, triples, execution);
        if (!shape.ok()) return shape.status();
        auto counts = collect_triples(*shape, second_.array<std::uint32_t>(0, request_.words),
                                      triples, execution);
        if (!counts.ok()) return counts.status();
        counts_ = std::move(*counts);
        return {};
    }

    const SubmitWordSimilarity request_;
    WeightParameters weighting_;
    SimilarityParameters parameters_;
    MappedFile first_, second_;
    TokenStream tokens_;
    Cooccurrences counts_;  // of triples
    std::vector<Thesaurus> parts_;
    Thesaurus answer_;
};

}  // namespace

std::unique_ptr<OperatorJob> word_similarity_job(const SubmitWordSimilarity& request) {
    return std::make_unique<WordSimilarityJob>(request);
}

}  // namespace gputext
