// kernels/thesaurus/word_similarity.hpp - cpp/thesaurus/word_similarity.hpp on a device
//
// Gives the CPU's answer, to the bit, at every size of memory. Words are compared a pair of tiles
// at a time: features of very many words by the tensor cores, once for both of a pair, the others
// by lists, and the nearest words of each are kept in lists that what is less similar never enters
// (kernels/thesaurus/detail/feature_index.hpp, kernels/thesaurus/detail/byte_product.hpp,
// kernels/thesaurus/detail/scores.hpp). With less memory fewer features are dense, or none; with
// still less the words whose neighbors are wanted are divided.
//
// Words whose sums do not fit into 32 bits, and cosines, have sums of 64: slower, and as exact.

#pragma once

#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/thesaurus/detail/cooccurrences.hpp"
#include "kernels/thesaurus/detail/feature_index.hpp"
#include "kernels/thesaurus/detail/feature_rows.hpp"

namespace gputext::gpu {

/// For those who measure, on the device.
struct WordTimes {
    double weigh_ms = 0, index_ms = 0, product_ms = 0, score_ms = 0, sort_ms = 0;
    CooccurrenceTimes count;
    WordIndexFacts facts;
    std::uint32_t dense = 0, divided = 0, tiles = 0, parts = 0;
    double product_operations = 0;  // multiplications and additions of dense features
    std::uint64_t stored = 0;       // features
};

/// What is chosen by itself, but for tests and those who measure.
struct WordChoices {
    double dense_share = 0;     // from which share of the words on a feature is dense; 0: by itself
    std::uint32_t tile = 0;     // words of a tile at most; 0: by itself
    bool no_product = false;    // no dense features
    std::uint64_t divided = 0;  // features from which on a word's are divided; 0: by itself
};

/// The fewest bytes of device memory, beside the features; and with which nothing is done twice.
struct WordSimilarityBytes {
    std::uint64_t least, good;
};
WordSimilarityBytes word_similarity_bytes(const SimilarityParameters& parameters,
                                          const FeatureRows& features);

/// As gputext::word_similarities, on the current device, in `work.bytes` of its memory beside the
/// features; of the parameters, memory_limit and simd are the CPU's and mean nothing here. With
/// `answer` null it stays on the device, for those who measure. Errors: the operator's;
/// out_of_memory, which says how much is needed; device_error, device_lost. Waits for the stream.
Status word_similarities(const SimilarityParameters& parameters, const FeatureRows& features,
                         const DeviceWork& work, Execution& execution, Thesaurus* answer,
                         WordTimes* times = nullptr, const WordChoices& choices = {});

/// Thesaurus from texts, and from counts. Everything within `work.bytes`. Counting is O(tokens *
/// window); comparing grows with how often words share features. Errors as above, and
/// those of counting; the ring serves nothing else meanwhile.
Result<Thesaurus> word_similarities(const SimilarityParameters& parameters,
                                    const WeightParameters& weights, const CooccurrenceShape& shape,
                                    const TokenStream& tokens, const DeviceWork& work,
                                    UploadRing& ring, Execution& execution,
                                    WordTimes* times = nullptr, const WordChoices& choices = {});
Result<Thesaurus> word_similarities(const SimilarityParameters& parameters,
                                    const WeightParameters& weights, const Cooccurrences& counts,
                                    const DeviceWork& work, UploadRing& ring, Execution& execution,
                                    WordTimes* times = nullptr, const WordChoices& choices = {});

/// gputext::count_cooccurrences on the device.
Result<Cooccurrences> count_cooccurrences(const CooccurrenceShape& shape, const TokenStream& tokens,
                                          const DeviceWork& work, UploadRing& ring,
                                          Execution& execution);

}  // namespace gputext::gpu
