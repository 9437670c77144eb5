// tests/support/plain_rates.hpp - edit rates of all pairs of texts, the oracle of near-duplicates

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cpp/documents/documents.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "tests/support/answer_rows.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

/// Of UTF-8 texts, by the dynamic program. Computed once for the same texts, as the tests of each
/// instruction set have the same: O(the square of all their characters).
inline const std::vector<Row>& plain_rates(const std::vector<std::string>& texts) {
    static std::map<std::vector<std::string>, std::vector<Row>> known;
    const auto [found, is_new] = known.try_emplace(texts);
    std::vector<Row>& rates = found->second;
    if (!is_new) return rates;
    std::vector<std::vector<std::uint32_t>> symbols(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i)
        decode_characters(bytes_of(texts[i]), CharacterLengths::utf8(), symbols[i]);
    for (std::uint32_t i = 0; i < texts.size(); ++i)
        for (std::uint32_t j = i + 1; j < texts.size(); ++j)
            rates.emplace_back(i, j,
                               edit_rate(plain_edit_distance(symbols[i], symbols[j]),
                                         symbols[i].size() + symbols[j].size()));
    return rates;
}

inline std::vector<Row> within(std::vector<Row> rates, double threshold) {
    std::erase_if(rates, [=](const Row& row) { return std::get<2>(row) > threshold; });
    return rates;
}

}  // namespace gputext::testing
