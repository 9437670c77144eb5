#include "extension/knn_search.hpp"

#include "extension/settings.hpp"

namespace gputext {

Status KnnSearch::keep(Result<Neighbours> found) {
    if (!found.ok()) return found.status();
    answer = std::move(*found);
    return {};
}

JobSize KnnSearch::size_at(double cpu_seconds) const {
    return {rows_.queries.size() + rows_.items.size(), rows_.queries.bytes() + rows_.items.bytes(),
            cpu_seconds};
}

// ---- Vectors ----

JobSize VectorSearch::size() const {
    return size_at(knn_cpu_seconds(rows_.queries.view(), rows_.items.view(), cpu_threads()));
}

Status VectorSearch::compute(Execution& execution) {
    return keep(nearest_neighbours(parameters_, rows_.queries.view(), rows_.items.view(),
                                   rows_.keys(), execution));
}

Status VectorSearch::submit(DaemonConnection& connection, Stop stop) {
    NeighboursRequest request;
    request.parameters = parameters_;
    request.queries = rows_.queries.files();
    request.items = rows_.items.files();
    request.keys = rows_.keys();
    request.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

// ---- Terms ----

JobSize TermSearch::size() const {
    return size_at(term_knn_cpu_seconds(rows_.queries.view(), rows_.items.view(), cpu_threads()));
}

Status TermSearch::compute(Execution& execution) {
    const Vectors items = rows_.items.view();
    const auto frequencies = document_frequencies(items, execution);
    if (!frequencies.ok()) return frequencies.status();
    const std::vector<double> factors = term_factors(weighting_, *frequencies, items.rows);
    return keep(term_neighbours(parameters_, factors, rows_.queries.view(), items, rows_.keys(),
                                execution));
}

Status TermSearch::submit(DaemonConnection& connection, Stop stop) {
    TermNeighboursRequest request;
    request.terms = weighting_;
    request.parameters = parameters_;
    request.queries = rows_.queries.files();
    request.items = rows_.items.files();
    request.keys = rows_.keys();
    request.device_memory_limit = gpu_memory_limit();
    return connection.submit(request, stop);
}

}  // namespace gputext
