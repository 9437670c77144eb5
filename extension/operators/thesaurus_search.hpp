// extension/operators/thesaurus_search.hpp - computes thesauri, on a device or on the CPU

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/thesaurus/cooccurrence_table.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"
#include "cpp/thesaurus/feature_weights.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "extension/rows/packed_rows.hpp"
#include "extension/rows/text_words.hpp"
#include "extension/server/computation.hpp"

namespace gputext {

/// How often words stand near one another in texts, and what that weighs.
class WordCooccurrencesComputation final : public Computation {
public:
    WordCooccurrencesComputation(TokenRows& tokens, const CooccurrenceShape& shape,
                                 const WeightParameters& weighting)
        : tokens_(tokens), shape_(shape), weighting_(weighting) {}

    Cooccurrences counts;
    std::vector<std::uint16_t> weights;

    JobSize size() const override { return {tokens_.size(), tokens_.bytes(), 0}; }
    Status compute(Execution& execution) override;
    // To send the counts back takes longer than to find them.
    bool has_device_job() const override { return false; }
    void prepare_for_device() override {}
    Status submit(DaemonConnection&, Stop) override { return {}; }
    Status take(const DaemonEvent&, Stop) override { return {}; }

private:
    TokenRows& tokens_;
    CooccurrenceShape shape_;
    WeightParameters weighting_;
};

/// A thesaurus of texts.
class WordSimilarityComputation final : public Computation {
public:
    WordSimilarityComputation(TokenRows& tokens, const CooccurrenceShape& shape,
                              const WeightParameters& weighting,
                              const SimilarityParameters& parameters)
        : tokens_(tokens), shape_(shape), weighting_(weighting), parameters_(parameters) {}

    Thesaurus answer;

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override;
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& event, Stop stop) override;

private:
    TokenRows& tokens_;
    CooccurrenceShape shape_;
    WeightParameters weighting_;
    SimilarityParameters parameters_;
    FileDescriptor words_file_, positions_file_;
};

/// A thesaurus of counts that were kept.
class WordSimilarityFromComputation final : public Computation {
public:
    /// The triples lie in `packed` (CountedTriple). Words are `order.size()`, numbered anew by it.
    WordSimilarityFromComputation(PackedBytes& packed, const std::vector<std::uint32_t>& order,
                                  const WeightParameters& weighting,
                                  const SimilarityParameters& parameters)
        : packed_(packed), order_(order), weighting_(weighting), parameters_(parameters) {}

    Thesaurus answer;

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override { file_ = packed_.share(); }
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& event, Stop stop) override;

private:
    std::span<const CountedTriple> triples() const;

    PackedBytes& packed_;
    const std::vector<std::uint32_t>& order_;
    WeightParameters weighting_;
    SimilarityParameters parameters_;
    FileDescriptor file_;
};

/// Raises an error that says how many bytes the answer and what is sorted for it would take, when
/// gputext.host_memory_limit is less.
void check_thesaurus_memory(const SimilarityParameters& parameters, const CooccurrenceShape& shape);

}  // namespace gputext
