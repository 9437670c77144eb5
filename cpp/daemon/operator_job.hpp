// cpp/daemon/operator_job.hpp - jobs of gputextd: one class for each operator
//
// A job goes from the request's files to the reply's file. What is the same for all, the device,
// its memory, faults, retries, errors, is in cpp/daemon/device_workers.hpp.

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/daemon/device.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/link/protocol.hpp"

namespace gputext {

/// Used by one thread at a time, but for run(); the functions in this order.
class OperatorJob {
public:
    virtual ~OperatorJob() = default;

    /// Name of the request's operation; may be called at any time and from any thread.
    virtual const char* operation() const = 0;
    virtual std::uint16_t request_type() const = 0;
    virtual const JobLimits& limits() const = 0;
    virtual std::uint64_t rows() const = 0;
    virtual std::uint64_t bytes() const = 0;

    /// Maps and checks the request's files, as many as descriptors_of() says.
    virtual Status read(std::span<const FileDescriptor> files, Execution& execution) = 0;
    /// What run() needs besides; returns in how many parts it is worth to be done, at most
    /// `devices`.
    virtual Result<std::size_t> prepare([[maybe_unused]] std::size_t devices,
                                        [[maybe_unused]] Execution& execution) {
        return 1;
    }
    /// Computes a part of the answer in so much memory of the device. May be called again when that
    /// has not sufficed. Different parts may run on different threads at once.
    virtual Status run(std::size_t part, Device& device, std::uint64_t memory,
                       Execution& execution) = 0;
    /// Makes the answer of its parts.
    virtual Status merge([[maybe_unused]] Execution& execution) { return {}; }
    /// Appends the answer to the reply's file.
    virtual Status write(MemoryFile& file, Execution& execution) = 0;
    /// The reply's message.
    virtual Message reply(const JobReport& report) const = 0;
};

/// The job that a message submits, or null.
std::unique_ptr<OperatorJob> operator_job(const Message& message);

// The kinds.
std::unique_ptr<OperatorJob> near_duplicates_job(const SubmitNearDuplicates& request);
std::unique_ptr<OperatorJob> neighbours_job(const SubmitNeighbours& request);
std::unique_ptr<OperatorJob> term_knn_job(const SubmitTermNeighbours& request);
std::unique_ptr<OperatorJob> outlier_factor_job(const SubmitOutliers& request);
std::unique_ptr<OperatorJob> similarities_job(const SubmitSimilarities& request);
std::unique_ptr<OperatorJob> word_similarity_job(const SubmitWordSimilarity& request);
std::unique_ptr<OperatorJob> word_lookup_job(const SubmitWordLookup& request);
std::unique_ptr<OperatorJob> trie_build_job(const SubmitTrieBuild& request);
std::unique_ptr<OperatorJob> word2vec_job(const SubmitTraining& request);
std::unique_ptr<OperatorJob> word_movers_job(const SubmitWordMovers& request);
std::unique_ptr<OperatorJob> sequence_probability_job(const SubmitSequenceProbabilities& request);

/// For read(): maps one file.
Status map_file(const FileDescriptor& from, std::uint64_t size, Trust trust, MappedFile& mapped);

/// For write().
Status append_array(MemoryFile& file, const void* data, std::size_t bytes);

}  // namespace gputext
