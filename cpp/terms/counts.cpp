#include "cpp/terms/counts.hpp"

#include <algorithm>

namespace gputext {

bool TermCounts::add(std::uint32_t term, std::uint32_t times) {
    if (ended_) terms_.clear();
    ended_ = false;
    if (times == 0) return true;
    if (term >= by_term_.size())
        by_term_.resize(std::max(std::size_t{term} + 1, by_term_.size() + by_term_.size() / 2));
    std::int32_t& count = by_term_[term];
    if (times > static_cast<std::uint32_t>(INT32_MAX - count)) return false;
    if (count == 0) terms_.push_back(term);
    count += static_cast<std::int32_t>(times);
    return true;
}

void TermCounts::end_text() {
    if (ended_) terms_.clear();  // a text without terms
    ended_ = true;
    std::sort(terms_.begin(), terms_.end());
    counts_.resize(terms_.size());
    for (std::size_t i = 0; i < terms_.size(); ++i) {
        counts_[i] = by_term_[terms_[i]];
        by_term_[terms_[i]] = 0;
    }
}

}  // namespace gputext
