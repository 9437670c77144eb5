#include "cpp/daemon/shared_keyed_knn.hpp"

#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/keyed_knn_on_device.hpp"
#include "cpp/knn/group_numbers.hpp"

namespace gputext {

Result<Neighbours> KeyedKnnOnDevice::on_host(const KnnParameters& parameters,
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
    return keep(device.compute<KeyedKnnOnDevice>(parameters_, queries_, items_, parts_.groups(part),
                                                 excluded_, memory, execution),
                parts_.answer(part));
}

Status SharedKeyedKnn::merge(Execution& execution) {
    return parts_.merge({parameters_.k, parameters_.answer_limit}, execution);
}

}  // namespace gputext
