// cpp/terms/tfidf.hpp - weights of the terms of texts, by tf-idf or BM25
//
// Texts are sparse vectors (cpp/base/vectors.hpp): a column is a term, an element how often the
// text has it. A term's factor is computed from the items alone and weighs their terms and the
// queries'.
//
// By BM25 that is not all of a weight: cpp/terms/bm25.hpp.
//
// Source: Amorim, 2019, FaSST-kNN, chapter 6: term frequency times log(N / df).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext {

/// given: the elements are weights as they are. tf_idf, bm25: they are counts.
enum class TermWeighting : std::uint8_t { given, tf_idf, bm25 };

struct TermParameters {
    TermWeighting weighting = TermWeighting::tf_idf;
    /// Terms that fewer items have weigh nothing.
    std::uint32_t min_document_frequency = 1;
    // Of bm25:
    double k1 = 1.2;            // at least 0, finite
    double b = 0.75;            // from 0 to 1
    double average_length = 0;  // of the texts of a larger collection; 0: of the items

    bool valid() const;
};

/// For each column in how many rows it is not zero. Rows are checked by largest_magnitude().
/// O(stored elements) time. Error: cancelled.
Result<std::vector<std::uint32_t>> document_frequencies(const Vectors& items, Execution& execution);

/// For each column what its elements are multiplied by, rounded to the nearest double: 0 where
/// fewer items than min_document_frequency have the term or none at all; else 1 for given weights,
/// for tf_idf the C library's log(items / document frequency), which is 0 for a term that every
/// item has, and for bm25 log(1 + (items - document frequency + 0.5) / (document frequency + 0.5)).
std::vector<double> term_factors(const TermParameters& parameters,
                                 std::span<const std::uint32_t> document_frequencies,
                                 std::size_t items);

/// Ok for what term_factors() may give: no factor is negative, NaN or infinite. Error:
/// invalid_argument.
Status check_term_factors(std::span<const double> factors);

}  // namespace gputext
