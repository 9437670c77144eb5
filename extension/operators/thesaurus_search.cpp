#include "extension/operators/thesaurus_search.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include <algorithm>
#include <span>

#include "extension/server/settings.hpp"

namespace gputext {
namespace {

Status keep_thesaurus(Result<Thesaurus> found, Thesaurus& answer) {
    if (!found.ok()) return found.status();
    answer = std::move(*found);
    return {};
}

Status take_thesaurus(const DaemonEvent& event, Stop stop, Thesaurus& answer) {
    auto read = std::get<KnnAnswer>(event).read(stop);
    if (!read.ok()) return read.status();
    answer = {std::move(read->begins), std::move(read->items), std::move(read->distances)};
    return {};
}

Status compare(const WeightParameters& weighting, const SimilarityParameters& parameters,
               const Cooccurrences& counts, Execution& execution, Thesaurus& answer) {
    const auto features = weigh_features(weighting, counts, execution);
    if (!features.ok()) return features.status();
    return keep_thesaurus(word_similarities(parameters, *features, execution), answer);
}

}  // namespace

Status WordCooccurrencesComputation::compute(Execution& execution) {
    auto found = count_cooccurrences(shape_, tokens_.view(), host_memory_limit(), execution,
                                     host_memory_limit());
    if (!found.ok()) return found.status();
    counts = std::move(*found);
    auto weighed = weigh_counts(weighting_, counts, execution);
    if (!weighed.ok()) return weighed.status();
    weights = std::move(*weighed);
    return {};
}

JobSize WordSimilarityComputation::size() const {
    return {tokens_.size(), tokens_.bytes(),
            word_similarity_cpu_seconds(tokens_.size(), shape_, cpu_threads())};
}

void WordSimilarityComputation::prepare_for_device() {
    words_file_ = tokens_.words().share();
    positions_file_ = tokens_.positions().share();
}

Status WordSimilarityComputation::submit(DaemonConnection& connection, Stop stop) {
    WordSimilarityRequest request;
    request.shape = shape_;
    request.rows = tokens_.size();
    request.first = words_file_.get();
    request.second = positions_file_.get();
    request.weighting = weighting_;
    request.parameters = parameters_;
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status WordSimilarityComputation::take(const DaemonEvent& event, Stop stop) {
    return take_thesaurus(event, stop, answer);
}

Status WordSimilarityComputation::compute(Execution& execution) {
    const auto counts = count_cooccurrences(shape_, tokens_.view(), parameters_.memory_limit,
                                            execution, parameters_.memory_limit);
    if (!counts.ok()) return counts.status();
    return compare(weighting_, parameters_, *counts, execution, answer);
}

std::span<const CountedTriple> WordSimilarityFromComputation::triples() const {
    return {reinterpret_cast<const CountedTriple*>(packed_.data()),
            packed_.size() / sizeof(CountedTriple)};
}

JobSize WordSimilarityFromComputation::size() const {
    const std::size_t counts = triples().size();
    return {counts, packed_.size(), counted_similarity_cpu_seconds(counts, cpu_threads())};
}

Status WordSimilarityFromComputation::submit(DaemonConnection& connection, Stop stop) {
    WordSimilarityRequest request;
    request.shape.words = static_cast<std::uint32_t>(order_.size());
    request.counted = true;
    request.rows = triples().size();
    request.first = file_.get();
    request.order = order_;
    request.weighting = weighting_;
    request.parameters = parameters_;
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

Status WordSimilarityFromComputation::take(const DaemonEvent& event, Stop stop) {
    return take_thesaurus(event, stop, answer);
}

Status WordSimilarityFromComputation::compute(Execution& execution) {
    const auto shape =
        shape_of_triples(static_cast<std::uint32_t>(order_.size()), triples(), execution);
    if (!shape.ok()) return shape.status();
    const auto counts = collect_triples(*shape, order_, triples(), execution);
    if (!counts.ok()) return counts.status();
    return compare(weighting_, parameters_, *counts, execution, answer);
}

void check_thesaurus_memory(const SimilarityParameters& parameters,
                            const CooccurrenceShape& shape) {
    const std::uint32_t words = shape.words;
    SimilarityParameters within = parameters;
    within.memory_limit = 0;  // what it takes beside does with what there is
    within.top_k = std::min(parameters.top_k, std::max(words, 1u));
    const std::uint64_t needed = similarity_bytes(within, shape, 0);
    ereport(DEBUG1,
            (errmsg_internal("comparing %u words takes " UINT64_FORMAT " bytes beside their counts",
                             words, needed)));
    if (needed <= host_memory_limit()) return;
    ereport(ERROR,
            (errcode(ERRCODE_OUT_OF_MEMORY),
             errmsg("the %u nearest of %u words would take " UINT64_FORMAT " bytes of memory",
                    within.top_k, words, needed),
             errdetail("gputext.host_memory_limit is %zu bytes.", host_memory_limit()),
             errhint("A smaller vocabulary or top_k takes less, or raise gputext.host_memory_limit.")));
}

}  // namespace gputext
