#include "cpp/daemon/shared_knn.hpp"

#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/knn/key_groups.hpp"

namespace gputext {

Result<std::size_t> SharedKnn::prepare(const KnnParameters& parameters, const Vectors& queries,
                                       const Vectors& items, const RowKeys& keys,
                                       std::size_t devices, Execution& execution) {
    GPUTEXT_TRY(check_search(parameters, queries, items, keys));
    parameters_ = parameters;
    Vectors shared_queries = queries, shared_items = items;
    SearchShares shares;
    if (devices > 1 && !items.sparse())
        shares = best_shares(parameters, queries, items, items.known != nullptr, devices,
                             execution.threads());
    if (shares.parts > 1) GPUTEXT_TRY(look_at_elements(shared_queries, shared_items, execution));
    const bool by_queries = shares.by == SearchShares::By::queries;
    parts_ = SearchParts(shared_queries, shared_items, keys, shares.by,
                         even_parts(by_queries ? queries.rows : items.rows, shares.parts));
    return shares.parts;
}

/// Once for all parts; and rows that are refused are named by their numbers in the whole.
Status SharedKnn::look_at_elements(Vectors& queries, Vectors& items, Execution& execution) {
    if (queries.known == nullptr) queries.known = &known_queries_;
    if (items.known == nullptr) items.known = &known_items_;
    const auto largest_query = largest_magnitude(queries, "query", execution);
    if (!largest_query.ok()) return largest_query.status();
    // Of the cosine's items, which may not be there so far, devices need no more than a bound.
    const auto largest_item = parameters_.metric == Metric::cosine
                                  ? magnitude_bound(items, "item", execution)
                                  : largest_magnitude(items, "item", execution);
    return largest_item.status();
}

Status SharedKnn::run(std::size_t part, Device& device, std::uint64_t memory,
                      Execution& execution) {
    return take_answer(
        device.compute<KnnOnDevice>(parameters_, parts_.queries(part), parts_.items(part),
                                    parts_.keys(part), memory, execution),
        parts_.answer(part));
}

Status SharedKnn::merge(Execution& execution) {
    return parts_.merge(limit(), execution);
}

Result<Neighbors> KeyedKnnOnDevice::on_host(const KnnParameters& parameters,
                                             const Vectors& queries, const Vectors& items,
                                             const KeyGroups& groups, const RowKeys& excluded,
                                             std::uint64_t memory, Execution& execution) {
    GroupNumbers numbers;
    GPUTEXT_TRY(numbers.set(groups, queries.rows, items.rows, execution));
    return keyed_knn(within(parameters, memory), queries, items, numbers.matches(), excluded,
                     execution);
}

Result<std::size_t> SharedKeyedKnn::prepare(const KnnParameters& parameters, const Vectors& queries,
                                            const Vectors& items, const MatchKeys& matches,
                                            const RowKeys& excluded, std::size_t devices,
                                            Execution& execution) {
    GPUTEXT_TRY(check_search(parameters, queries, items, excluded));
    GPUTEXT_TRY(check_match_keys(matches, queries.rows, items.rows));
    parameters_ = parameters;
    queries_ = queries;
    items_ = items;
    excluded_ = excluded;
    // Once for all parts.
    if (queries_.known == nullptr && !queries_.sparse()) queries_.known = &known_queries_;
    if (items_.known == nullptr && !items_.sparse()) items_.known = &known_items_;
    const auto largest_query = largest_magnitude(queries_, "query", execution);
    if (!largest_query.ok()) return largest_query.status();
    const auto largest_item = largest_magnitude(items_, "item", execution);
    if (!largest_item.ok()) return largest_item.status();
    return parts_.prepare(matches, queries_, items_, devices, execution);
}

Status SharedKeyedKnn::run(std::size_t part, Device& device, std::uint64_t memory,
                           Execution& execution) {
    return take_answer(
        device.compute<KeyedKnnOnDevice>(parameters_, queries_, items_, parts_.groups(part),
                                         excluded_, memory, execution),
        parts_.answer(part));
}

Status SharedKeyedKnn::merge(Execution& execution) {
    return parts_.merge({parameters_.k, parameters_.answer_limit}, execution);
}

}  // namespace gputext
