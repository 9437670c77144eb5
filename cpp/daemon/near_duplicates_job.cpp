#include <algorithm>
#include <optional>
#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/near_duplicates_on_device.hpp"

namespace gputext {

Result<NearDuplicates> NearDuplicatesOnDevice::on_host(const NearDuplicateParameters& parameters,
                                                       const Documents& documents,
                                                       GivenSignatures signatures,
                                                       std::uint64_t memory, Execution& execution) {
    return near_duplicates(within(parameters, memory), documents, signatures, execution);
}

template <>
class Job<SubmitNearDuplicates> : public JobOf<SubmitNearDuplicates> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override;
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return keep(device.compute<NearDuplicatesOnDevice>(request_.parameters, documents_,
                                                           signatures_, memory, execution),
                    answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override;
    Message reply(const JobReport& report) const override {
        return NearDuplicatesReply{report, static_cast<std::uint32_t>(answer_.documents()),
                                   answer_.near_pair_count()};
    }

private:
    // The documents and signatures point into the files.
    InputBytes bytes_;
    MappedFile extents_, signature_file_;
    std::vector<std::optional<Ctph>> signatures_;
    Documents documents_;
    NearDuplicates answer_;
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
        auto signatures =
            unpack_signatures(signature_file_.bytes(), request_.documents, execution.stop());
        if (!signatures.ok()) return signatures.status();
        signatures_ = std::move(*signatures);
    }
    documents_ = {bytes_.bytes().data(), extents, CharacterLengths(request_.character_lengths)};
    return {};
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
