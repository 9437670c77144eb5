#include "cpp/term_weights.hpp"

#include <cmath>

#include "cpp/stoppable.hpp"

namespace gputext {

Result<std::vector<std::uint32_t>> document_frequencies(const Vectors& items,
                                                        Execution& execution) {
    std::vector<std::uint32_t> frequencies(items.dimensions);
    execution.begin_phase("counting terms", items.rows);
    for (std::size_t row = 0; row < items.rows; ++row) {
        if (Status status = execution.checkpoint(); !status.ok()) return status;
        const std::size_t end = items.begin(row) + items.stored(row);
        for (std::size_t i = items.begin(row); i < end; ++i) {
            double element;
            copy_elements(items, i, 1, &element);
            if (element != 0) ++frequencies[items.columns[i]];
        }
    }
    return frequencies;
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

}  // namespace gputext
