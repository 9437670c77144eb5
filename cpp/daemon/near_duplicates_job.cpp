#include <algorithm>
#include <optional>
#include <vector>

#include "cpp/daemon/operator_job.hpp"

namespace gputext {
namespace {

class NearDuplicatesJob : public OperatorJob {
public:
    explicit NearDuplicatesJob(const SubmitNearDuplicates& request) : request_(request) {}

    const char* operation() const override { return "near_duplicates"; }
    std::uint16_t request_type() const override { return SubmitNearDuplicates::type; }
    const JobLimits& limits() const override { return request_; }
    std::uint64_t rows() const override { return request_.documents; }
    std::uint64_t bytes() const override { return request_.bytes; }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override;
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return device.near_duplicates(parameters(), documents_, signatures_, memory, execution,
                                      answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override;
    Message reply(const JobReport& report) const override {
        return NearDuplicatesReply{report, static_cast<std::uint32_t>(answer_.documents()),
                                   answer_.near_pair_count()};
    }

private:
    NearDuplicateParameters parameters() const;

    SubmitNearDuplicates request_;
    // The documents and signatures point into the files.
    MappedFile bytes_, extents_, signature_file_;
    std::vector<std::optional<Ctph>> signatures_;
    Documents documents_;
    NearDuplicates answer_;
};

NearDuplicateParameters NearDuplicatesJob::parameters() const {
    NearDuplicateParameters parameters;
    parameters.threshold = request_.threshold;
    parameters.mode = request_.mode;
    parameters.signature_length = request_.signature_length;
    parameters.memory_limit = request_.host_memory_limit;
    return parameters;
}

Status NearDuplicatesJob::read(std::span<const FileDescriptor> files, Execution& execution) {
    const std::uint64_t extents_size = std::uint64_t{request_.documents} * sizeof(Extent);
    Status status = map_file(files[0], request_.bytes, Trust::sealed_or_disk, bytes_);
    if (status.ok()) status = map_file(files[1], extents_size, Trust::sealed, extents_);
    if (status.ok() && request_.has_signatures)
        status = map_file(files[2], request_.signature_bytes, Trust::sealed, signature_file_);
    if (!status.ok()) return status;

    const auto extents = extents_.array<Extent>(0, request_.documents);
    if (status = check_extents(extents, request_.bytes); !status.ok()) return status;
    if (request_.has_signatures) {
        auto signatures =
            unpack_signatures(signature_file_.bytes(), request_.documents, execution.stop());
        if (!signatures.ok()) return signatures.status();
        signatures_ = std::move(*signatures);
    }
    documents_ = {bytes_.bytes().data(), extents, CharacterLengths(request_.character_lengths)};
    return {};
}

Status NearDuplicatesJob::write(MemoryFile& file, Execution& execution) {
    constexpr std::uint32_t step = 4096;
    constexpr std::uint8_t zeros[8] = {};
    const auto first_copies = answer_.first_copies();
    const auto layout =
        reply_layout(static_cast<std::uint32_t>(first_copies.size()), answer_.near_pair_count());
    if (!layout) return Status::out_of_memory();
    execution.begin_phase("returning pairs", first_copies.size());
    Status status = append_array(file, first_copies.data(), first_copies.size_bytes());
    if (status.ok()) status = append_array(file, zeros, layout->pairs_begin - file.size());
    for (std::uint32_t begin = 0; status.ok() && begin < first_copies.size();) {
        const auto end = static_cast<std::uint32_t>(
            std::min<std::size_t>(first_copies.size(), std::size_t{begin} + step));
        const auto pairs = answer_.near_pairs_of(begin, end);
        status = append_array(file, pairs.data(), pairs.size() * sizeof(NearPair));
        if (status.ok()) status = execution.checkpoint(end - begin);
        begin = end;
    }
    return status;
}

}  // namespace

std::unique_ptr<OperatorJob> near_duplicates_job(const SubmitNearDuplicates& request) {
    return std::make_unique<NearDuplicatesJob>(request);
}

}  // namespace gputext
