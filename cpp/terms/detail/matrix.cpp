#include "cpp/terms/detail/matrix.hpp"

#include <algorithm>
#include <bit>

namespace gputext {

void QueryTerms::set(const TermMatrix& queries, std::size_t row) {
    // At most a quarter is taken: most of an item's terms are not here, and that must show at once.
    const std::size_t slots = std::bit_ceil(4 * std::max<std::size_t>(4, queries.stored(row)));
    mask_ = slots - 1;
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots));
    terms_.resize(slots);
    weights_.assign(slots, 0.0);
    ColumnSum square;
    queries.each(row, [&](std::uint32_t term, double weight) {
        std::size_t at = slot(term);
        while (weights_[at] != 0) at = (at + 1) & mask_;
        terms_[at] = term;
        weights_[at] = weight;
        square.add(term, weight * weight);
    });
    square_ = square();
}

}  // namespace gputext
