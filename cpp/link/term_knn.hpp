// cpp/link/term_knn.hpp - term_knn() (cpp/terms/knn.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/link/answers.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/knn.hpp"
#include "cpp/link/wire.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/terms/tfidf.hpp"

namespace gputext {

constexpr TermWeighting last_of(TermWeighting) {
    return TermWeighting::bm25;
}

void fields(auto& archive, Like<TermParameters> auto& terms) {
    archive(terms.weighting, terms.min_document_frequency, terms.k1, terms.b, terms.average_length);
}

void fields(auto& archive, Like<TermKnnParameters> auto& parameters) {
    archive(parameters.k, parameters.radius, parameters.metric, parameters.memory_limit);
}

/// Texts: sparse matrices of float32 or int32. Files: of the search, see SearchShape; behind them,
/// with has_factors, double[dimensions of the items], in a sealed memfd.
struct SubmitTermKnn {
    static constexpr std::uint16_t type = 18;
    static constexpr const char* operation = "term_knn";
    JobLimits limits;
    SearchShape search;
    bool has_factors = false;  // in place of those that `terms` and the items give
    TermParameters terms;
    TermKnnParameters parameters;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.search, self.has_factors, self.terms, self.parameters);
    }
    bool consistent() const {
        return terms.valid() && search.queries.consistent_texts() &&
               search.items.consistent_texts();
    }
    std::size_t files() const { return search.files() + (has_factors ? 1 : 0); }
    std::uint64_t rows() const { return search.rows(); }
    std::uint64_t bytes() const { return search.bytes(); }
};

/// Texts, as the counts or weights of their terms.
struct TermKnnRequest {
    using Packed = PackedRequest<SubmitTermKnn, KnnAnswer>;

    TermParameters terms;
    TermKnnParameters parameters;  // simd and answer_limit are the server's own choice
    VectorFiles queries;
    VectorFiles items;
    RowKeys keys;
    MatchKeys matches;  // none, or those of keyed_term_knn()
    /// What the elements of each column are multiplied by: of a collection of which the items are a
    /// part. None: those that `terms` and the items give.
    std::span<const double> factors = {};
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const {
        SubmitTermKnn& message = packed.message;
        message.terms = terms;
        message.parameters = parameters;
        message.has_factors = !factors.empty();
        GPUTEXT_TRY(packed.files.add(queries, items, keys, matches, message.search, stop));
        if (message.has_factors) GPUTEXT_TRY(packed.files.add_copy(factors, stop));
        packed.expected.queries = message.search.queries.rows;
        packed.expected.items = message.search.items.rows;
        return {};
    }
};

}  // namespace gputext
