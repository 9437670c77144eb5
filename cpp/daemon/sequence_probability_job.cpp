#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/embeddings/sequence_probability.hpp"

namespace gputext {
namespace {

/// Words that something follows, for which a part goes through the whole vocabulary, that are worth
/// a device of their own.
constexpr std::size_t kLeastPart = 1 << 12;

/// Some of the sequences, as sequences of their own.
class SequencePart {
public:
    SequencePart(const TokenSequences& all, std::size_t begin, std::size_t end) : part_(all) {
        if (begin == 0 && end == all.size()) return;
        const std::uint64_t first = all.begins[begin];
        begins_.reserve(end - begin + 1);
        for (std::size_t i = begin; i <= end; ++i) begins_.push_back(all.begins[i] - first);
        part_ = {begins_, all.tokens.subspan(first, begins_.back())};
    }
    SequencePart(SequencePart&&) = default;

    const TokenSequences& sequences() const { return part_; }

private:
    std::vector<std::uint64_t> begins_;
    TokenSequences part_;
};

}  // namespace

Result<std::vector<ContextSum>> ContextSumsOnDevice::on_host(
    const NextWordModel& model, std::span<const std::uint32_t> contexts, std::uint64_t,
    Execution& execution) {
    return context_sums(model, contexts, best_simd(), execution);
}

Result<SequenceProbabilities> SequenceProbabilityOnDevice::on_host(const NextWordModel& model,
                                                                   const TokenSequences& sequences,
                                                                   std::span<const ContextSum> sums,
                                                                   std::uint64_t,
                                                                   Execution& execution) {
    return sums.empty() ? sequence_probabilities(model, sequences, best_simd(), execution)
                        : sequence_probabilities(model, sequences, sums, best_simd(), execution);
}

/// On one device all at once. Else a round for the sums, of whose parts each has some of the words
/// that another one follows, and one for the sequences.
template <>
class Job<SubmitSequenceProbability> : public JobOf<SubmitSequenceProbability> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override {
        GPUTEXT_TRY(vectors_.map(request_.vectors, files, execution.stop()));
        GPUTEXT_TRY(outputs_.map(request_.outputs, files, execution.stop()));
        GPUTEXT_TRY(map_next(files, std::uint64_t{request_.sequences} + 1, Trust::sealed, begins_,
                             sequences_.begins));
        GPUTEXT_TRY(
            map_next(files, request_.tokens, Trust::sealed_or_disk, tokens_, sequences_.tokens));
        return check_sequences(sequences_, request_.vectors.rows, execution.stop());
    }
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        auto contexts = contexts_of(sequences_, request_.vectors.rows, execution.stop());
        if (!contexts.ok()) return contexts.status();
        contexts_ = std::move(*contexts);
        share_out(std::clamp<std::size_t>(contexts_.size() / kLeastPart, 1, devices));
        sums_of_parts_.resize(parts_.size());
        summing_ = parts_.size() > 1;
        return parts_.size();
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        const NextWordModel model{vectors_.words(), outputs_.words()};
        if (summing_)
            return take_answer(
                device.compute<ContextSumsOnDevice>(model, contexts(part), memory, execution),
                sums_of_parts_[part]);
        return take_answer(device.compute<SequenceProbabilityOnDevice>(
                               model, parts_[part].sequences(), sums_, memory, execution),
                           answers_[part]);
    }
    Result<std::size_t> next_round(Execution&) override {
        if (!summing_) return 0;
        summing_ = false;
        sums_.resize(request_.vectors.rows);
        for (std::size_t part = 0; part < parts_.size(); ++part) {
            const auto own = contexts(part);
            for (std::size_t i = 0; i < own.size(); ++i) sums_[own[i]] = sums_of_parts_[part][i];
        }
        return parts_.size();
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        for (const auto& answer : answers_)
            GPUTEXT_TRY(append_all(file, answer.sequences, execution.stop()));
        for (const auto& answer : answers_)
            GPUTEXT_TRY(append_all(file, answer.tokens, execution.stop()));
        return {};
    }
    Message reply(const JobReport& report) const override {
        return SequenceProbabilityReply{report, request_.sequences, request_.tokens};
    }

private:
    std::span<const std::uint32_t> contexts(std::size_t part) const {
        const std::size_t begin = contexts_.size() * part / parts_.size();
        const std::size_t end = contexts_.size() * (part + 1) / parts_.size();
        return std::span(contexts_).subspan(begin, end - begin);
    }

    /// By tokens.
    void share_out(std::size_t count) {
        const auto begins = sequences_.begins;
        std::size_t begin = 0;
        for (std::size_t part = 1; part <= count; ++part) {
            const auto found =
                std::lower_bound(begins.begin(), begins.end() - 1, begins.back() * part / count);
            const auto end = part == count ? sequences_.size()
                                           : static_cast<std::size_t>(found - begins.begin());
            parts_.emplace_back(sequences_, begin, end);
            begin = end;
        }
        answers_.resize(count);
    }

    MappedMatrix vectors_, outputs_;
    MappedFile begins_, tokens_;
    TokenSequences sequences_;
    std::vector<std::uint32_t> contexts_;
    bool summing_ = false;  // in a round of its own
    std::vector<std::vector<ContextSum>> sums_of_parts_;
    std::vector<ContextSum> sums_;  // by word, after that round
    std::vector<SequencePart> parts_;
    std::vector<SequenceProbabilities> answers_;  // of each part
};

template std::unique_ptr<OperatorJob> new_job(const SubmitSequenceProbability& request);

}  // namespace gputext
