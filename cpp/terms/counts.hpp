// cpp/terms/counts.hpp - counts how often a text has each of its terms
//
// Collects the terms of one text after another, by their numbers, and gives each text's as a row of
// sparse vectors wants them (cpp/base/vectors.hpp).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gputext {

/// Takes 4 bytes for every term up to the largest number, and 8 for each of a text's.
class TermCounts {
public:
    /// Counts a term of the text. False when that makes too many for an int. Amortised O(1).
    [[nodiscard]] bool add(std::uint32_t term, std::uint32_t times = 1);

    /// Ends the text: its terms, in ascending order, and how often it has each, until the next
    /// text's are counted. O(n log n) of its different terms.
    void end_text();
    std::span<const std::uint32_t> terms() const { return terms_; }
    std::span<const std::int32_t> counts() const { return counts_; }

private:
    bool ended_ = true;
    std::vector<std::int32_t> by_term_;  // of the text's terms; 0 for all others between texts
    std::vector<std::uint32_t> terms_;
    std::vector<std::int32_t> counts_;
};

}  // namespace gputext
