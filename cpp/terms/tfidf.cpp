#include "cpp/terms/tfidf.hpp"

#include <cmath>
#include <numeric>

#include "cpp/terms/detail/matrix.hpp"

namespace gputext {

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
        factors[term] = parameters.weighting == TermWeighting::given
                            ? 1.0
                            : std::log(static_cast<double>(items) / frequency);
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
