#include "extension/operators/knn_search.hpp"

#include <algorithm>
#include <utility>

#include "extension/base/failure.hpp"
#include "extension/server/settings.hpp"

namespace gputext {

namespace {

/// A block that was too large becomes so many times smaller: what was found of it is lost.
constexpr std::size_t kShrinking = 8;
/// While neighbours are found there may be lists twice as long.
constexpr std::size_t kMostOfNeighbour = 2 * kBytesOfNeighbour;

/// Queries whose neighbours surely fit into the limit, at least one; all of them where only the
/// search can tell.
std::size_t queries_at_once(const KnnRows& rows, std::size_t k, std::size_t memory_limit) {
    const std::size_t queries = rows.queries.size();
    const std::size_t neighbours = std::min(k, rows.items.size());
    if (k == KnnParameters::all_items || neighbours == 0 ||
        queries <= memory_limit / kMostOfNeighbour / neighbours)
        return queries;
    // The block's queries are copied for a device.
    const std::size_t each =
        std::max<std::size_t>(kMostOfNeighbour * neighbours, rows.queries.bytes() / queries);
    return std::max<std::size_t>(1, memory_limit / each);
}

}  // namespace

KnnComputation::KnnComputation(KnnRows& rows, std::size_t k, std::size_t memory_limit)
    : rows_(rows), most_queries_(queries_at_once(rows, k, memory_limit)) {}

bool KnnComputation::next_block() {
    const std::size_t queries = rows_.queries.size();
    // Without queries there is still an empty answer to compute, once, for what it checks.
    if (end_ == queries && (queries > 0 || !answer.begins.empty())) return false;
    begin_ = end_;
    begin_block();
    return true;
}

void KnnComputation::begin_block() {
    const std::size_t queries = rows_.queries.size();
    end_ = std::min(queries, begin_ + most_queries_);
    answer = {};
    block_.reset();
    if (begin_ == 0 && end_ == queries) return;
    attempt_or_raise([&] { block_.emplace(rows_.queries.view(), begin_, end_); });
}

bool KnnComputation::block_was_too_large() {
    if (!std::exchange(too_large_, false)) return false;
    most_queries_ = std::max<std::size_t>(1, (end_ - begin_) / kShrinking);
    begin_block();
    return true;
}

bool KnnComputation::copes_with(ErrorCode failure) {
    too_large_ = failure == ErrorCode::memory_limit && end_ - begin_ > 1;
    return too_large_;
}

VectorFiles KnnComputation::query_files() const {
    if (!block_) return rows_.queries.files();
    return {block_->vectors(), -1, -1};
}

RowKeys KnnComputation::keys() const {
    RowKeys keys = rows_.keys();
    if (!keys.queries.empty()) keys.queries = keys.queries.subspan(begin_, end_ - begin_);
    return keys;
}

Status KnnComputation::keep(Result<Neighbours> found) {
    if (!found.ok() && copes_with(found.status().code())) return {};
    if (!found.ok()) return found.status();
    answer = std::move(*found);
    return {};
}

JobSize KnnComputation::size_at(double cpu_seconds) const {
    const std::uint64_t query_bytes =
        block_ ? rows_.queries.bytes() / rows_.queries.size() * (end_ - begin_)
               : rows_.queries.bytes();
    return {end_ - begin_ + rows_.items.size(), query_bytes + rows_.items.bytes(), cpu_seconds, 0,
            rows_.items.resident_bytes()};
}

// ---- Vectors ----

JobSize VectorKnnComputation::size() const {
    return size_at(knn_cpu_seconds(queries(), rows_.items.view(), cpu_threads()));
}

Status VectorKnnComputation::compute(Execution& execution) {
    return keep(knn(parameters_, queries(), rows_.items.view(), keys(), execution));
}

Status VectorKnnComputation::submit(DaemonConnection& connection, Stop stop) {
    KnnRequest request;
    request.parameters = parameters_;
    request.queries = query_files();
    request.items = rows_.items.files();
    request.keys = keys();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

// ---- Terms ----

JobSize TermKnnComputation::size() const {
    return size_at(term_knn_cpu_seconds(queries(), rows_.items.view(), cpu_threads()));
}

Status TermKnnComputation::compute(Execution& execution) {
    const Vectors items = rows_.items.view();
    const auto frequencies = document_frequencies(items, execution);
    if (!frequencies.ok()) return frequencies.status();
    const std::vector<double> factors = term_factors(weighting_, *frequencies, items.rows);
    return keep(term_knn(parameters_, factors, queries(), items, keys(), execution));
}

Status TermKnnComputation::submit(DaemonConnection& connection, Stop stop) {
    TermKnnRequest request;
    request.terms = weighting_;
    request.parameters = parameters_;
    request.queries = query_files();
    request.items = rows_.items.files();
    request.keys = keys();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

}  // namespace gputext
