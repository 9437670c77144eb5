// extension/operators/word2vec_training.hpp - trains word vectors on texts, on a device or on the
// CPU

#pragma once

#include "extension/base/postgres.hpp"

#include <optional>
#include <vector>

#include "cpp/embeddings/training_run.hpp"
#include "cpp/embeddings/word2vec.hpp"
#include "extension/rows/packed_rows.hpp"
#include "extension/rows/training_vocabulary.hpp"
#include "extension/server/computation.hpp"

namespace gputext {

class Word2VecComputation final : public Computation {
public:
    /// All of them outlive this.
    Word2VecComputation(const TrainingParameters& parameters, double sample,
                        TrainingVocabulary& words)
        : parameters_(parameters), sample_(sample), words_(words) {}

    TrainingModel model;
    Training::Hub hub;

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override;
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& event, Stop stop) override;

private:
    TrainingParameters parameters_;
    double sample_;
    TrainingVocabulary& words_;
    FileDescriptor words_file_, positions_file_, known_file_;
};

/// Raises an error that says how many bytes the training would take on the CPU, when
/// gputext.host_memory_limit is less.
void check_training_memory(const TrainingParameters& parameters, std::uint64_t words,
                           std::uint64_t tokens);

}  // namespace gputext
