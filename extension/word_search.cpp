#include "extension/word_search.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include <algorithm>
#include <span>

#include "extension/settings.hpp"

namespace gputext {
namespace {

Status keep_thesaurus(Result<Thesaurus> found, Thesaurus& answer) {
    if (!found.ok()) return found.status();
    answer = std::move(*found);
    return {};
}

Status compare(const WeightParameters& weighting, const SimilarityParameters& parameters,
               const Cooccurrences& counts, Execution& execution, Thesaurus& answer) {
    const auto features = weigh_features(weighting, counts, execution);
    if (!features.ok()) return features.status();
    return keep_thesaurus(word_similarities(parameters, *features, execution), answer);
}

}  // namespace

Status CooccurrenceCount::compute(Execution& execution) {
    auto found = count_cooccurrences(shape_, tokens_.view(), host_memory_limit(), execution);
    if (!found.ok()) return found.status();
    counts = std::move(*found);
    auto weighed = weigh_counts(weighting_, counts, execution);
    if (!weighed.ok()) return weighed.status();
    weights = std::move(*weighed);
    return {};
}

JobSize WordSearch::size() const {
    return {tokens_.size(), tokens_.bytes(), 0};
}

Status WordSearch::compute(Execution& execution) {
    const auto counts =
        count_cooccurrences(shape_, tokens_.view(), parameters_.memory_limit, execution);
    if (!counts.ok()) return counts.status();
    return compare(weighting_, parameters_, *counts, execution, answer);
}

std::span<const CountedTriple> CountedSearch::triples() const {
    return {reinterpret_cast<const CountedTriple*>(packed_.data()),
            packed_.size() / sizeof(CountedTriple)};
}

JobSize CountedSearch::size() const {
    return {triples().size(), packed_.size(), 0};
}

Status CountedSearch::compute(Execution& execution) {
    const auto shape =
        shape_of_triples(static_cast<std::uint32_t>(order_.size()), triples(), execution);
    if (!shape.ok()) return shape.status();
    const auto counts = collect_triples(*shape, order_, triples(), execution);
    if (!counts.ok()) return counts.status();
    return compare(weighting_, parameters_, *counts, execution, answer);
}

void check_thesaurus_memory(const SimilarityParameters& parameters, std::size_t words) {
    SimilarityParameters within = parameters;
    within.top_k = static_cast<std::uint32_t>(
        std::min<std::size_t>(parameters.top_k, std::max<std::size_t>(words, 1)));
    const std::uint64_t needed = similarity_bytes(within, static_cast<std::uint32_t>(words), 0);
    ereport(DEBUG1, (errmsg_internal("comparing %zu words takes " UINT64_FORMAT
                                     " bytes beside their counts",
                                     words, needed)));
    if (needed <= host_memory_limit()) return;
    ereport(ERROR,
            (errcode(ERRCODE_OUT_OF_MEMORY),
             errmsg("the %u nearest of %zu words would take " UINT64_FORMAT " bytes of memory",
                    within.top_k, words, needed),
             errdetail("gputext.host_memory_limit is %zu bytes.", host_memory_limit()),
             errhint("A smaller vocabulary or top_k takes less, or raise the limit.")));
}

}  // namespace gputext
