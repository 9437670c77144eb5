#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/documents/near_duplicate_cost.hpp"

namespace gputext {

Result<NearDuplicates> NearDuplicatesOnDevice::on_host(const NearDuplicateParameters& parameters,
                                                       const Documents& documents,
                                                       GivenSignatures signatures,
                                                       std::uint64_t memory, Execution& execution) {
    return near_duplicates(within(parameters, memory), documents, signatures, execution);
}

Result<PartPairs> NearPairsOnDevice::on_host(const NearDuplicateParameters& parameters,
                                             const DistinctDocuments& documents,
                                             const PairPart& part, std::uint64_t memory,
                                             Execution& execution) {
    return near_pairs(within(parameters, memory), documents, part, execution);
}

Result<std::vector<Ctph>> SignaturesOnDevice::on_host(const Documents& documents,
                                                      std::size_t longest, std::uint64_t,
                                                      Execution& execution) {
    return ctph_signatures(documents, longest, execution);
}

/// One device does the whole job. For several, the distinct documents are found first. Then, in
/// mode ctph, a round of parts computes the signatures that are missing, each part those of some
/// documents, and the next one the near pairs; where signatures make too many pairs candidates,
/// another one finds them among the documents. Where only components are wanted, each part gives
/// pairs that connect what its pairs connect, and one device does the job if there are large
/// clusters.
template <>
class Job<SubmitNearDuplicates> : public JobOf<SubmitNearDuplicates> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override;
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override;
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override;
    Result<std::size_t> next_round(Execution& execution) override;
    Status merge(Execution& execution) override;
    Status write(MemoryFile& file, Execution& execution) override;
    Message reply(const JobReport& report) const override {
        return NearDuplicatesReply{report, static_cast<std::uint32_t>(answer_.documents()),
                                   answer_.near_pair_count()};
    }

private:
    enum class Round { whole, signatures, pairs };

    std::size_t worthwhile_parts(std::size_t devices) const;
    void share_out_missing(std::size_t parts);
    Status take_signatures(const Execution& execution);

    // The documents and signatures point into the files.
    InputBytes bytes_;
    MappedFile extents_, signature_file_;
    std::vector<std::optional<Ctph>> signatures_;
    Documents documents_;
    NearDuplicates answer_;

    // Of a job in parts.
    Round round_ = Round::whole;
    NearDuplicateParameters parameters_;  // of each part
    FirstCopies copies_;
    DistinctDocuments distinct_;
    std::vector<std::uint32_t> sets_;          // of distinct documents, where components are wanted
    std::vector<std::uint32_t> missing_;       // distinct documents without a signature
    std::vector<Extent> missing_extents_;      // of these
    std::vector<std::size_t> missing_begins_;  // by part, and the end
    std::vector<std::vector<Ctph>> computed_;  // by part
    std::vector<const Ctph*> all_signatures_;  // of distinct documents
    PairSource source_ = PairSource::documents;
    std::vector<PartPairs> found_;  // by part
};

Status Job<SubmitNearDuplicates>::read(JobFiles files, Execution& execution) {
    std::span<const Extent> extents;
    GPUTEXT_TRY(bytes_.map(files, request_.bytes_parts, request_.bytes_size, request_.resident,
                           Arrival::awaited, execution.stop()));
    GPUTEXT_TRY(map_next(files, request_.documents, Trust::sealed, extents_, extents));
    if (request_.has_signatures)
        GPUTEXT_TRY(map_next(files, request_.signature_bytes, Trust::sealed, signature_file_));
    GPUTEXT_TRY(check_extents(extents, request_.bytes_size));
    if (request_.has_signatures) {
        auto signatures = unpack_signatures(signature_file_.bytes(), request_.documents, execution);
        if (!signatures.ok()) return signatures.status();
        signatures_ = std::move(*signatures);
    }
    documents_ = {bytes_.bytes().data(), extents, CharacterLengths(request_.character_lengths)};
    return {};
}

std::size_t Job<SubmitNearDuplicates>::worthwhile_parts(std::size_t devices) const {
    if (devices == 1 || request_.parameters.threshold == 0) return 1;
    const auto seconds =
        estimate_near_duplicates(documents_.extents, request_.parameters.threshold,
                                 request_.has_signatures, request_.parameters.split);
    const double parts =
        first_source(request_.parameters) == PairSource::signatures
            ? (seconds.signatures_first - seconds.signature_pairs) / NearDuplicateParts::least +
                  seconds.signature_pairs / NearDuplicateParts::least_of_signatures
            : seconds.exact / NearDuplicateParts::least;
    return static_cast<std::size_t>(std::clamp(parts, 1.0, static_cast<double>(devices)));
}

Result<std::size_t> Job<SubmitNearDuplicates>::prepare(std::size_t devices, Execution& execution) {
    GPUTEXT_TRY(check_near_duplicates(request_.parameters, documents_.size()));
    const std::size_t parts = worthwhile_parts(devices);
    if (parts == 1) return 1;
    parameters_ = request_.parameters;
    parameters_.memory_limit /= parts;
    GPUTEXT_TRY(copies_.find(documents_, signatures_, parameters_.split, execution));
    distinct_ = copies_.distinct();
    if (parameters_.components_only) {
        const auto clusters = has_large_clusters(parameters_, distinct_, execution);
        if (!clusters.ok()) return clusters.status();
        if (*clusters) return 1;
        sets_.resize(distinct_.size());
        std::iota(sets_.begin(), sets_.end(), 0u);
        distinct_.sets = sets_;
    }
    found_.resize(parts);
    source_ = first_source(parameters_);
    round_ = Round::pairs;
    if (source_ == PairSource::signatures) share_out_missing(parts);
    return parts;
}

/// Missing signatures, by the documents' bytes, if there are any.
void Job<SubmitNearDuplicates>::share_out_missing(std::size_t parts) {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < distinct_.size(); ++i) {
        if (distinct_.signature(i) != nullptr) continue;
        missing_.push_back(i);
        missing_extents_.push_back(distinct_.documents.extents[i]);
        bytes += missing_extents_.back().size;
    }
    if (missing_.empty()) return;
    round_ = Round::signatures;
    computed_.resize(parts);
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < missing_.size(); ++i) {
        while (before >= bytes / parts * missing_begins_.size() && missing_begins_.size() < parts)
            missing_begins_.push_back(i);
        before += missing_extents_[i].size;
    }
    missing_begins_.resize(parts + 1, missing_.size());
}

Status Job<SubmitNearDuplicates>::run(std::size_t part, Device& device, std::uint64_t memory,
                                      Execution& execution) {
    if (round_ == Round::whole)
        return take_answer(device.compute<NearDuplicatesOnDevice>(request_.parameters, documents_,
                                                                  signatures_, memory, execution),
                           answer_);
    if (round_ == Round::signatures) {
        const std::size_t begin = missing_begins_[part];
        const Documents own{
            documents_.bytes,
            std::span(missing_extents_).subspan(begin, missing_begins_[part + 1] - begin),
            documents_.characters};
        return take_answer(device.compute<SignaturesOnDevice>(own, parameters_.signature_length,
                                                              memory, execution),
                           computed_[part]);
    }
    const PairPart own{static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(found_.size()),
                       source_};
    return take_answer(
        device.compute<NearPairsOnDevice>(parameters_, distinct_, own, memory, execution),
        found_[part]);
}

Result<std::size_t> Job<SubmitNearDuplicates>::next_round(Execution& execution) {
    if (round_ == Round::signatures) {
        GPUTEXT_TRY(take_signatures(execution));
        round_ = Round::pairs;
        return found_.size();
    }
    if (std::ranges::none_of(found_, &PartPairs::too_many)) return 0;
    source_ = PairSource::documents;
    return found_.size();
}

/// From here on all distinct documents have their signatures.
Status Job<SubmitNearDuplicates>::take_signatures(const Execution& execution) {
    all_signatures_.resize(distinct_.size());
    for (std::uint32_t i = 0; i < distinct_.size(); ++i)
        all_signatures_[i] = distinct_.signature(i);
    auto next = missing_.begin();
    for (const std::vector<Ctph>& part : computed_) {
        if (execution.stop_requested()) return Status::cancelled();
        for (const Ctph& signature : part) all_signatures_[*next++] = &signature;
    }
    distinct_.signatures = all_signatures_;
    return {};
}

Status Job<SubmitNearDuplicates>::merge(Execution& execution) {
    if (round_ == Round::whole) return {};
    std::vector<NearPair> pairs;
    for (PartPairs& part : found_) {
        pairs.insert(pairs.end(), part.pairs.begin(), part.pairs.end());
        part = {};
    }
    return take_answer(copies_.answer(std::move(pairs), execution), answer_);
}

Status Job<SubmitNearDuplicates>::write(MemoryFile& file, Execution& execution) {
    constexpr std::uint32_t step = 4096;
    constexpr std::uint8_t zeros[8] = {};
    const Stop stop = execution.stop();
    const auto first_copies = answer_.first_copies();
    const auto layout =
        reply_layout(static_cast<std::uint32_t>(first_copies.size()), answer_.near_pair_count());
    if (!layout) return Status::out_of_memory();
    execution.begin_phase("returning pairs", first_copies.size());
    GPUTEXT_TRY(append_all(file, first_copies, stop));
    GPUTEXT_TRY(append_all(file, std::span(zeros).first(layout->pairs_begin - file.size()), stop));
    for (std::uint32_t begin = 0; begin < first_copies.size();) {
        const auto end = static_cast<std::uint32_t>(
            std::min<std::size_t>(first_copies.size(), std::size_t{begin} + step));
        GPUTEXT_TRY(append_all(file, answer_.near_pairs_of(begin, end), stop));
        GPUTEXT_TRY(execution.checkpoint(end - begin));
        begin = end;
    }
    return {};
}

template std::unique_ptr<OperatorJob> new_job(const SubmitNearDuplicates& request);

}  // namespace gputext
