// The kernels of all operators that a GPU has any for. Each one is given to a device as the
// function that cpp/daemon/on_device.hpp describes.

#include <algorithm>
#include <memory>
#include <vector>

#include "cpp/daemon/on_device.hpp"
#include "cpp/hnsw/links.hpp"
#include "cpp/knn/distinct_search.hpp"
#include "kernels/bits/nearest_bits.hpp"
#include "kernels/daemon/cuda_device.hpp"
#include "kernels/documents/near_duplicates.hpp"
#include "kernels/embeddings/sequence_probability.hpp"
#include "kernels/embeddings/trainer.hpp"
#include "kernels/embeddings/word_movers.hpp"
#include "kernels/hnsw/links.hpp"
#include "kernels/knn/cosine_similarity.hpp"
#include "kernels/knn/k_means.hpp"
#include "kernels/knn/keyed_knn.hpp"
#include "kernels/knn/knn.hpp"
#include "kernels/strings/nearest_strings.hpp"
#include "kernels/terms/knn.hpp"
#include "kernels/thesaurus/word_similarity.hpp"
#include "kernels/trie/resident_trie.hpp"
#include "kernels/trie/trie_build.hpp"
#include "kernels/trie/word_lookup.hpp"

namespace gputext {
namespace {

Status first_job(CudaDevice& device, NearDuplicateMode mode) {
    const std::uint8_t bytes[] = "one document, one documents";
    const Extent extents[] = {{0, 12}, {14, 13}};
    Execution execution(1);
    return device
        .compute<NearDuplicatesOnDevice>(NearDuplicateParameters{0.3, mode},
                                         Documents{bytes, extents}, GivenSignatures(),
                                         std::uint64_t{1} << 29, execution)
        .status();
}

void provide_near_duplicates(CudaDevice& device) {
    device.provide<NearDuplicatesOnDevice>(
        [&device](const NearDuplicateParameters& parameters, const Documents& documents,
                  GivenSignatures signatures, std::uint64_t memory,
                  Execution& execution) -> Result<NearDuplicates> {
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::near_duplicates(parameters, documents, signatures, work, device.ring(),
                                            execution);
            });
        });
    device.provide<NearPairsOnDevice>([&device](const NearDuplicateParameters& parameters,
                                                const DistinctDocuments& documents,
                                                const PairPart& part, std::uint64_t memory,
                                                Execution& execution) -> Result<PartPairs> {
        return device.run(memory, [&](const gpu::DeviceWork& work) {
            return gpu::near_pairs(parameters, documents, part, work, device.ring(), execution);
        });
    });
    device.provide<SignaturesOnDevice>(
        [&device](const Documents& documents, std::size_t longest, std::uint64_t memory,
                  Execution& execution) -> Result<std::vector<Ctph>> {
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::ctph_signatures(documents, longest, work, device.ring(), execution);
            });
        });
    for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact})
        device.warm_up([&device, mode] { return first_job(device, mode); });
}

/// Divisor of the device's memory: the part that rows in half precision of resident items may take.
constexpr std::uint64_t kPartForItems = 8;

// Sparse vectors that are not texts are computed on the host's threads.
void provide_knn(CudaDevice& device) {
    const auto cache = std::make_shared<gpu::ItemCache>(device.info().memory / kPartForItems);
    device.add_cache({[cache] { return cache->bytes(); }, [cache] { cache->clear(); }});
    device.provide<KnnOnDevice>([&device, cache](const KnnParameters& parameters,
                                                 const Vectors& queries, const Vectors& items,
                                                 const RowKeys& keys, std::uint64_t memory,
                                                 Execution& execution) -> Result<Neighbors> {
        if (queries.sparse() || items.sparse())
            return KnnOnDevice::on_host(parameters, queries, items, keys, memory, execution);
        cache->drop_gone(device.ranges());
        return device.run(memory, [&](const gpu::DeviceWork& work) {
            const auto search = [&](const KnnParameters& wanted, const Vectors& of,
                                    const Vectors& among, const RowKeys& own) {
                return gpu::knn(wanted, of, among, own, work, device.ring(), execution, nullptr,
                                cache.get());
            };
            return search_distinct_if_it_pays(parameters, queries, items, keys, search, execution);
        });
    });
    device.provide<KeyedKnnOnDevice>(
        [&device, cache](const KnnParameters& parameters, const Vectors& queries,
                         const Vectors& items, const KeyGroups& groups, const RowKeys& excluded,
                         std::uint64_t memory, Execution& execution) -> Result<Neighbors> {
            if (queries.sparse() || items.sparse())
                return KeyedKnnOnDevice::on_host(parameters, queries, items, groups, excluded,
                                                 memory, execution);
            cache->drop_gone(device.ranges());
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::keyed_knn(parameters, queries, items, groups, excluded, work,
                                      device.ring(), execution, nullptr, cache.get());
            });
        });
}

void provide_term_knn(CudaDevice& device) {
    device.provide<TermKnnOnDevice>(
        [&device](const TermKnnParameters& parameters, std::span<const double> factors,
                  const Vectors& queries, const Vectors& items, const RowKeys& keys,
                  std::uint64_t memory, Execution& execution) -> Result<Neighbors> {
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::term_knn(parameters, factors, queries, items, keys, work, device.ring(),
                                     execution);
            });
        });
}

// Strings within equal keys are searched on the host's threads.
void provide_nearest_strings(CudaDevice& device) {
    device.provide<NearestStringsOnDevice>(
        [&device](const NearestStringsParameters& parameters, const Strings& queries,
                  const Strings& items, const MatchKeys& match, const RowKeys& excluded,
                  std::uint64_t memory, Execution& execution) -> Result<Neighbors> {
            if (!match.none() || !gpu::has_kernels_for(parameters, items))
                return NearestStringsOnDevice::on_host(parameters, queries, items, match, excluded,
                                                       memory, execution);
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::nearest_strings(parameters, queries, items, excluded, work,
                                            device.ring(), execution);
            });
        });
}

// Bits within equal keys are searched on the host's threads.
void provide_nearest_bits(CudaDevice& device) {
    device.provide<NearestBitsOnDevice>(
        [&device](const NearestBitsParameters& parameters, const Vectors& queries,
                  const Vectors& items, const MatchKeys& match, const RowKeys& excluded,
                  std::uint64_t memory, Execution& execution) -> Result<Neighbors> {
            if (!match.none() || !gpu::has_kernels_for(parameters, items))
                return NearestBitsOnDevice::on_host(parameters, queries, items, match, excluded,
                                                    memory, execution);
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::nearest_bits(parameters, queries, items, excluded, work, device.ring(),
                                         execution);
            });
        });
}

void provide_cosine_similarity(CudaDevice& device) {
    device.provide<CosineSimilarityOnDevice>(
        [&device](const Vectors& query, const Vectors& items, std::uint64_t memory,
                  Execution& execution) -> Result<std::vector<double>> {
            if (query.sparse() || items.sparse())
                return CosineSimilarityOnDevice::on_host(query, items, memory, execution);
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::cosine_similarities(query, items, work, device.ring(), execution);
            });
        });
}

void provide_k_means(CudaDevice& device) {
    device.provide<KMeansOnDevice>([&device](const AssignmentTask& task, const UseAssignment& use,
                                             std::uint64_t memory, Execution& execution) {
        return device.run(memory, [&](const gpu::DeviceWork& work) {
            return gpu::with_assignment(task, use, work, device.ring(), execution);
        });
    });
}

/// Rows before a block are copied to the device once for all of it.
constexpr std::size_t kBlockOfDevice = 65536;

/// By the functions for the two steps, where the links between them have no room on the device.
Status link_layer_in_steps(CudaDevice& device, const HnswLinkParameters& parameters,
                           const LayerValues& values, std::span<std::uint32_t> neighbors,
                           std::uint64_t memory, Execution& execution) {
    const LayerRows all{0, values.rows.rows};
    std::vector<std::uint32_t> linked(neighbors.size());
    std::vector<double> distances(neighbors.size());
    const HnswLinks links{linked, distances};
    GPUTEXT_TRY(
        device.compute<HnswLinksOnDevice>(parameters, values, all, links, memory, execution));
    return device.compute<HnswLinksBackOnDevice>(parameters, values.rows, links, all, neighbors,
                                                 memory, execution);
}

// Where not all rows fit into the device's memory, it searches blocks of them, and threads of the
// host choose links.
void provide_hnsw_links(CudaDevice& device) {
    device.provide<HnswLinksOnDevice>([&device](const HnswLinkParameters& parameters,
                                                const LayerValues& values, const LayerRows& rows,
                                                const HnswLinks& links, std::uint64_t memory,
                                                Execution& execution) -> Status {
        return device.run(memory, [&](const gpu::DeviceWork& work) {
            if (gpu::has_kernels_for(parameters, values) &&
                work.bytes >= gpu::least_bytes_to_link(parameters, values))
                return gpu::link_to_earlier(parameters, values, rows, links, work, device.ring(),
                                            execution);
            const auto search = [&](const KnnParameters& wanted, std::span<const double>,
                                    const Vectors& queries, const Vectors& items) {
                return gpu::knn(wanted, queries, items, {}, work, device.ring(), execution);
            };
            HnswLinkParameters larger = parameters;
            larger.block_rows = std::max(larger.block_rows, kBlockOfDevice);
            return link_to_earlier(larger, values, rows, links, execution, search);
        });
    });
    device.provide<HnswLinksBackOnDevice>(
        [&device](const HnswLinkParameters& parameters, const Vectors& values,
                  const HnswLinks& links, const LayerRows& rows, std::span<std::uint32_t> neighbors,
                  std::uint64_t memory, Execution& execution) -> Status {
            if (!gpu::has_kernels_for(parameters, {values}) ||
                memory < gpu::least_bytes_to_link_back(parameters, values))
                return HnswLinksBackOnDevice::on_host(parameters, values, links, rows, neighbors,
                                                      memory, execution);
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::link_back(parameters, values, links, rows, neighbors, work,
                                      device.ring(), execution);
            });
        });
    device.provide<HnswLayerOnDevice>([&device](const HnswLinkParameters& parameters,
                                                const LayerValues& values,
                                                std::span<std::uint32_t> neighbors,
                                                std::uint64_t memory,
                                                Execution& execution) -> Status {
        if (!gpu::has_kernels_for(parameters, values) ||
            memory < gpu::least_bytes_to_link_layer(parameters, values))
            return link_layer_in_steps(device, parameters, values, neighbors, memory, execution);
        return device.run(memory, [&](const gpu::DeviceWork& work) {
            return gpu::link_layer(parameters, values, neighbors, work, device.ring(), execution);
        });
    });
}

/// Divisor of the device's memory: the part that resident dictionaries may take.
constexpr std::uint64_t kPartForTries = 8;

void provide_word_lookup(CudaDevice& device) {
    const auto tries = std::make_shared<gpu::ResidentTries>(device.info().memory / kPartForTries);
    device.add_cache({[tries] { return tries->bytes(); }, [tries] { tries->clear(); }});
    device.provide<WordLookupOnDevice>([&device, tries](std::span<const std::uint8_t> dictionary,
                                                        const Words& words, std::uint64_t memory,
                                                        Execution& execution,
                                                        std::span<std::uint32_t> codes) -> Status {
        if (!gpu::has_kernels_for(dictionary))
            return WordLookupOnDevice::on_host(dictionary, words, memory, execution, codes);
        return device.run(memory, [&](const gpu::DeviceWork& work) {
            return gpu::lookup_words(dictionary, words, *tries, work, device.ring(), execution,
                                     codes);
        });
    });
}

void provide_trie_build(CudaDevice& device) {
    device.provide<TrieBuildOnDevice>(
        [&device](TrieStructure structure, const Words& words, std::uint64_t memory,
                  Execution& execution) -> Result<std::vector<std::uint8_t>> {
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::build_trie(structure, words, work, device.ring(), execution);
            });
        });
}

void provide_word_similarity(CudaDevice& device) {
    device.provide<WordSimilarityOnDevice>(
        [&device](const SimilarityParameters& parameters, const WeightParameters& weights,
                  const CooccurrenceShape& shape, const TokenStream& tokens, std::uint64_t memory,
                  Execution& execution) -> Result<Thesaurus> {
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::word_similarities(parameters, weights, shape, tokens, work,
                                              device.ring(), execution);
            });
        });
    device.provide<CountedSimilarityOnDevice>(
        [&device](const SimilarityParameters& parameters, const WeightParameters& weights,
                  const Cooccurrences& counts, std::uint64_t memory,
                  Execution& execution) -> Result<Thesaurus> {
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::word_similarities(parameters, weights, counts, work, device.ring(),
                                              execution);
            });
        });
}

void provide_word2vec(CudaDevice& device) {
    device.provide<Word2VecOnDevice>(
        [&device](const TrainerParameters& parameters, const WordSampling& sampling,
                  const TokenStream& tokens, std::uint64_t memory,
                  Execution& execution) -> Result<std::unique_ptr<WordTrainer>> {
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::word_trainer(parameters, sampling, tokens, work, device.ring(),
                                         execution);
            });
        });
}

void provide_word_movers(CudaDevice& device) {
    device.provide<WordMoversOnDevice>([&device](const MoversParameters& parameters,
                                                 const WordVectors& vectors, const TextPairs& pairs,
                                                 std::uint64_t memory, Execution& execution,
                                                 std::span<double> distances) {
        return device.run(memory, [&](const gpu::DeviceWork& work) {
            return gpu::word_movers_distances(parameters, vectors, pairs, work, device.ring(),
                                              execution, distances);
        });
    });
}

void provide_sequence_probability(CudaDevice& device) {
    device.provide<ContextSumsOnDevice>(
        [&device](const NextWordModel& model, std::span<const std::uint32_t> contexts,
                  std::uint64_t memory, Execution& execution) -> Result<std::vector<ContextSum>> {
            if (model.vectors.dimensions > gpu::kMostNextWordDimensions)
                return ContextSumsOnDevice::on_host(model, contexts, memory, execution);
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::context_sums(model, contexts, work, device.ring(), execution);
            });
        });
    device.provide<SequenceProbabilityOnDevice>(
        [&device](const NextWordModel& model, const TokenSequences& sequences,
                  std::span<const ContextSum> sums, std::uint64_t memory,
                  Execution& execution) -> Result<SequenceProbabilities> {
            if (model.vectors.dimensions > gpu::kMostNextWordDimensions)
                return SequenceProbabilityOnDevice::on_host(model, sequences, sums, memory,
                                                            execution);
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::sequence_probabilities(model, sequences, sums, work, device.ring(),
                                                   execution);
            });
        });
}

}  // namespace

void provide_kernels(CudaDevice& device) {
    provide_near_duplicates(device);
    provide_knn(device);
    provide_term_knn(device);
    provide_nearest_strings(device);
    provide_nearest_bits(device);
    provide_cosine_similarity(device);
    provide_k_means(device);
    provide_hnsw_links(device);
    provide_word_lookup(device);
    provide_trie_build(device);
    provide_word_similarity(device);
    provide_word2vec(device);
    provide_word_movers(device);
    provide_sequence_probability(device);
}

}  // namespace gputext
