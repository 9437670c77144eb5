// cpp/sets/set_collection.hpp - sets of numbered tokens

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/passages/passage_texts.hpp"
#include "cpp/passages/shared_windows.hpp"

namespace gputext {

/// Sets in input order. Only tokens that two sets have or more, with two tables one of each, need
/// to be there: the others count in the sizes alone.
struct SetCollection {
    std::vector<std::uint64_t> begins = {0};  // set i has the tokens [begins[i], begins[i + 1])
    std::vector<std::uint32_t> tokens;        // of a set: each once, in any order
    std::vector<std::uint32_t> sizes;         // how many distinct tokens a set has in all

    std::size_t size() const { return sizes.size(); }
    std::span<const std::uint32_t> operator[](std::size_t i) const {
        return std::span(tokens).subspan(begins[i], begins[i + 1] - begins[i]);
    }
};

/// The shingles of each document: the windows of so many symbols, each shingle once. A document of
/// fewer symbols has none. With two tables only shingles that both have are tokens. Time and
/// memory: those of each_shared_window(), and 16 bytes for each shingle that stands in several
/// documents. Errors: cancelled; out_of_memory.
Status shingle_sets(const PassageTexts& texts, const SharedWindowsParameters& parameters,
                    Execution& execution, SetCollection& sets);

}  // namespace gputext
