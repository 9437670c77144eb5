#include "extension/operators/knn_search.hpp"

#include <algorithm>
#include <utility>

#include "cpp/knn/added_neighbors.hpp"
#include "cpp/knn/keyed_knn.hpp"
#include "cpp/terms/keyed_knn.hpp"
#include "extension/base/failure.hpp"
#include "extension/server/settings.hpp"
#include "extension/values/row_threads.hpp"

namespace gputext {

namespace {

/// A block that was too large becomes so many times smaller: what was found of it is lost.
constexpr std::size_t kShrinking = 8;
/// While neighbors are found there may be lists twice as long.
constexpr std::size_t kMostOfNeighbor = 2 * kBytesOfNeighbor;

/// Queries whose neighbors surely fit into the limit, at least one; all of them where only the
/// search can tell.
std::size_t queries_at_once(const KnnRows& rows, std::size_t k, std::size_t memory_limit) {
    const std::size_t queries = rows.query_rows().size();
    const std::size_t neighbors = std::min(k, rows.items.size());
    // Keys can leave far fewer, which only the search can tell.
    if (k == KnnParameters::all_items || rows.match.given || neighbors == 0 ||
        queries <= memory_limit / kMostOfNeighbor / neighbors)
        return queries;
    // The block's queries are copied for a device.
    const std::size_t each =
        std::max<std::size_t>(kMostOfNeighbor * neighbors, rows.query_rows().bytes() / queries);
    return std::max<std::size_t>(1, memory_limit / each);
}

}  // namespace

KnnComputation::KnnComputation(KnnRows& rows, std::size_t k, std::size_t memory_limit)
    : rows_(rows), k_(k), most_queries_(queries_at_once(rows, k_of_search(), memory_limit)) {}

std::size_t KnnComputation::k_of_search() const {
    const std::size_t more = rows_.most_of_one_id + rows_.items.removed().size();
    return k_ < KnnParameters::all_items - more ? k_ + more : KnnParameters::all_items;
}

bool KnnComputation::next_block() {
    const std::size_t queries = rows_.query_rows().size();
    // Without queries there is still an empty answer to compute, once, for what it checks.
    if (end_ == queries && (queries > 0 || !answer.begins.empty())) return false;
    begin_ = end_;
    begin_block();
    return true;
}

void KnnComputation::begin_block() {
    const std::size_t queries = rows_.query_rows().size();
    end_ = std::min(queries, begin_ + most_queries_);
    answer = {};
    block_.reset();
    if (begin_ == 0 && end_ == queries) return;
    attempt_or_raise([&] { block_.emplace(rows_.query_rows().view(), begin_, end_); });
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
    if (!block_) return rows_.query_rows().files();
    return {block_->vectors(), -1, -1};
}

RowKeys KnnComputation::keys() const {
    return of_block(rows_.excluded());
}

MatchKeys KnnComputation::matches() const {
    return of_block(rows_.matches());
}

/// Items that were removed are left out of what was found, and pairs of equal ids where the search
/// left out equal keys: it has found as many more neighbors as can be such.
void KnnComputation::leave_out() {
    const RowKeys pairs = of_block(rows_.left_out());
    const std::span<const std::uint32_t> removed = rows_.items.removed();
    if (pairs.queries.empty() && removed.empty()) return;
    keep_nearest(
        k_,
        [&](std::size_t query, std::uint32_t item) {
            return pairs.differ(query, item) &&
                   !std::binary_search(removed.begin(), removed.end(), item);
        },
        answer);
}

Status KnnComputation::keep(Result<Neighbors> found) {
    if (!found.ok() && copes_with(found.status().code())) return {};
    if (!found.ok()) return found.status();
    answer = std::move(*found);
    leave_out();
    return {};
}

void KnnComputation::search_added() {
    const VectorRows* const added = rows_.items.added();
    if (added == nullptr || too_large_) return;
    run_on_rows((end_ - begin_) * added->size() * added->dimensions(),
                [this, added](Execution& execution) { return search_added(*added, execution); });
}

Status KnnComputation::search_added(const VectorRows& added, Execution& execution) {
    Result<Neighbors> found = search_among(added.view(), k_, of_block(rows_.added_matches()),
                                           of_block(rows_.added_excluded()), execution);
    if (!found.ok() && copes_with(found.status().code())) return {};
    if (!found.ok()) return found.status();
    return merge_added(*found, rows_.items.rows_before_added(), rows_.items.size(), k_,
                       execution.stop(), answer);
}

/// About: of all pairs of equal keys, the block's share.
double KnnComputation::pairs_of_block() const {
    const std::size_t queries = rows_.query_rows().size();
    return queries == 0 ? 0
                        : rows_.matching_pairs * static_cast<double>(end_ - begin_) /
                              static_cast<double>(queries);
}

double KnnComputation::searched_pairs() const {
    return rows_.match.given
               ? pairs_of_block()
               : static_cast<double>(end_ - begin_) * static_cast<double>(rows_.items.size());
}

JobSize KnnComputation::size_at(double cpu_seconds) const {
    const std::uint64_t query_bytes =
        block_ ? rows_.query_rows().bytes() / rows_.query_rows().size() * (end_ - begin_)
               : rows_.query_rows().bytes();
    return {end_ - begin_ + rows_.items.size(), query_bytes + rows_.items.bytes(), cpu_seconds, 0,
            rows_.items.resident_bytes()};
}

// ---- Vectors ----

JobSize VectorKnnComputation::size() const {
    const Vectors block = queries(), items = rows_.items.view();
    return size_at(rows_.match.given
                       ? keyed_knn_cpu_seconds(block, items, pairs_of_block(), cpu_threads())
                       : knn_cpu_seconds(block, items, cpu_threads()));
}

Status VectorKnnComputation::compute(Execution& execution) {
    return keep(
        keyed_knn(parameters_, queries(), rows_.items.view(), matches(), keys(), execution));
}

Result<Neighbors> VectorKnnComputation::search_among(const Vectors& added, std::size_t k,
                                                     const MatchKeys& matches, const RowKeys& keys,
                                                     Execution& execution) {
    KnnParameters parameters = parameters_;
    parameters.k = k;
    return keyed_knn(parameters, queries(), added, matches, keys, execution);
}

Status VectorKnnComputation::submit(DaemonConnection& connection, Stop stop) {
    KnnRequest request;
    request.parameters = parameters_;
    request.queries = query_files();
    request.items = rows_.items.files();
    request.keys = keys();
    request.matches = matches();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

// ---- Terms ----

JobSize TermKnnComputation::size() const {
    const Vectors block = queries(), items = rows_.items.view();
    return size_at(rows_.match.given
                       ? keyed_term_knn_cpu_seconds(block, items, pairs_of_block(), cpu_threads())
                       : term_knn_cpu_seconds(block, items, cpu_threads()));
}

Status TermKnnComputation::weigh_terms(WeighedItems& weighed, Execution& execution) const {
    const Vectors items = rows_.items.view();
    if (has_frequencies()) return weighed.set(weighting_, factors_, items, execution);
    const auto frequencies = document_frequencies(items, execution);
    if (!frequencies.ok()) return frequencies.status();
    return weighed.set(weighting_, term_factors(weighting_, *frequencies, items.rows), items,
                       execution);
}

Status TermKnnComputation::compute(Execution& execution) {
    WeighedItems weighed;
    GPUTEXT_TRY(weigh_terms(weighed, execution));
    return keep(keyed_term_knn(parameters_, weighed.factors(), queries(), weighed.items(),
                               matches(), keys(), execution));
}

Status TermKnnComputation::submit(DaemonConnection& connection, Stop stop) {
    TermKnnRequest request;
    request.terms = weighting_;
    if (has_frequencies()) request.factors = factors_;
    request.parameters = parameters_;
    request.queries = query_files();
    request.items = rows_.items.files();
    request.keys = keys();
    request.matches = matches();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

// ---- Strings ----

/// The block's queries. Their symbols stay where they are.
Strings StringKnnComputation::block() const {
    const Strings all = rows_.strings_of_queries().view();
    return {all.begins.subspan(first_query(), end_query() - first_query() + 1), all.symbols};
}

JobSize StringKnnComputation::size() const {
    const std::size_t queries = end_query() - first_query(), items = rows_.items.size();
    const double pairs = searched_pairs();
    const Strings some = block();
    const std::uint64_t symbols =
        some.begins.back() - some.begins.front() + rows_.item_strings.symbols.size();
    JobSize size{queries + items, symbols * sizeof(std::uint32_t)};
    size.cpu_seconds =
        nearest_strings_cpu_seconds(parameters_.metric, pairs, symbols, cpu_threads());
    size.device_seconds = nearest_strings_device_seconds(parameters_.metric, pairs, symbols,
                                                         rows_.match.given, cpu_threads());
    return size;
}

Status StringKnnComputation::compute(Execution& execution) {
    return keep(nearest_strings(parameters_, block(), rows_.item_strings.view(), matches(), keys(),
                                execution));
}

Status StringKnnComputation::submit(DaemonConnection& connection, Stop stop) {
    NearestStringsRequest request;
    request.parameters = parameters_;
    request.queries = block();
    request.items = rows_.item_strings.view();
    request.keys = keys();
    request.matches = matches();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

// ---- Bits ----

JobSize BitKnnComputation::size() const {
    const std::size_t bits = rows_.items.dimensions();
    JobSize size = size_at(nearest_bits_cpu_seconds(searched_pairs(), bits, cpu_threads()));
    size.device_seconds =
        nearest_bits_device_seconds(searched_pairs(), bits, rows_.match.given, cpu_threads());
    return size;
}

Status BitKnnComputation::compute(Execution& execution) {
    return keep(
        nearest_bits(parameters_, queries(), rows_.items.view(), matches(), keys(), execution));
}

Status BitKnnComputation::submit(DaemonConnection& connection, Stop stop) {
    NearestBitsRequest request;
    request.parameters = parameters_;
    request.queries = query_files();
    request.items = rows_.items.files();
    request.keys = keys();
    request.matches = matches();
    request.limits.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

}  // namespace gputext
