#include "cpp/terms/tfidf.hpp"

#include <cmath>
#include <numeric>

#include "cpp/terms/detail/matrix.hpp"

namespace gputext {
namespace {

double factor(TermWeighting weighting, double items, double frequency) {
    switch (weighting) {
        case TermWeighting::given:
            return 1;
        case TermWeighting::tf_idf:
            return std::log(items / frequency);
        case TermWeighting::bm25:
            return std::log(1 + (items - frequency + 0.5) / (frequency + 0.5));
    }
    __builtin_unreachable();
}

}  // namespace

bool TermParameters::valid() const {
    return k1 >= 0 && std::isfinite(k1) && b >= 0 && b <= 1 && average_length >= 0 &&
           std::isfinite(average_length);
}

Result<std::vector<std::uint32_t>> document_frequencies(const Vectors& items,
                                                        Execution& execution) {
    execution.begin_phase("counting terms", items.rows);
    std::vector<std::uint32_t> rows(items.rows);
    std::iota(rows.begin(), rows.end(), 0u);
    return column_counts(items, rows, execution);
}

std::vector<double> term_factors(const TermParameters& parameters,
                                 std::span<const std::uint32_t> document_frequencies,
                                 std::size_t items) {
    std::vector<double> factors(document_frequencies.size());
    for (std::size_t term = 0; term < factors.size(); ++term) {
        const std::uint32_t frequency = document_frequencies[term];
        if (frequency == 0 || frequency < parameters.min_document_frequency) continue;
        factors[term] = factor(parameters.weighting, static_cast<double>(items), frequency);
    }
    return factors;
}

Status check_term_factors(std::span<const double> factors) {
    for (const double factor : factors)
        if (!(factor >= 0) || std::isinf(factor))
            return {ErrorCode::invalid_argument,
                    "factors of terms must be finite and not negative"};
    return {};
}

}  // namespace gputext
