// cpp/sets/set_collection.hpp - sets of numbered tokens

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/passages/passage_texts.hpp"
#include "cpp/passages/shared_windows.hpp"

namespace gputext {

/// Sets in input order. Only tokens that two sets have or more, with two tables one of each, need
/// to be there: the others count in the sizes alone.
struct SetCollection {
    std::vector<std::uint64_t> begins = {0};  // set i has the tokens [begins[i], begins[i + 1])
    std::vector<std::uint32_t> tokens;        // of a set: each once, in any order
    /// How many distinct tokens a set has in all; of one without tokens here, 0 may stand for them.
    std::vector<std::uint32_t> sizes;
    /// What a token counts, in parts of kWeightUnit; empty where each counts 1.
    std::vector<std::uint32_t> weights;
    std::uint32_t lone_weight = 1;  // of a token that only its set has

    static constexpr std::uint32_t kWeightUnit = 1 << 16;

    std::size_t size() const { return sizes.size(); }
    std::span<const std::uint32_t> operator[](std::size_t i) const {
        return std::span(tokens).subspan(begins[i], begins[i + 1] - begins[i]);
    }
};

/// Tokens count by their rarity from here on: ln(sets / sets that have it), rounded. Requires that
/// all tokens that two sets have are there.
Status weigh_by_rarity(SetCollection& sets, Stop stop);

/// The shingles of each document: the windows of so many symbols, each shingle once. A document of
/// fewer symbols has none. With two tables only shingles that both have are tokens. Time: that of
/// each_shared_window(), and O(symbols log symbols) for documents that have tokens. Memory: that of
/// each_shared_window(), and within as much again 24 bytes for each shingle that stands in several
/// documents, and 20 for each symbol of the longest document, by thread. Errors: cancelled;
/// out_of_memory; memory_limit.
Status shingle_sets(const PassageTexts& texts, const SharedWindowsParameters& parameters,
                    Execution& execution, SetCollection& sets);

}  // namespace gputext
