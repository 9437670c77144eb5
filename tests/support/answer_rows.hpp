// tests/support/answer_rows.hpp - pairs of an answer as SQL returns them

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "cpp/documents/near_duplicates.hpp"

namespace gputext::testing {

/// Two documents, the first one earlier, and their edit rate.
using Row = std::tuple<std::uint32_t, std::uint32_t, double>;

inline std::vector<Row> rows(const NearDuplicates& answer) {
    std::vector<Row> result;
    std::vector<NearDuplicate> neighbours;
    for (std::uint32_t i = 0; i < answer.documents(); ++i) {
        answer.later_neighbours(i, neighbours);
        for (const NearDuplicate& neighbour : neighbours)
            result.emplace_back(i, neighbour.document, neighbour.edit_rate);
    }
    EXPECT_EQ(answer.pairs(), result.size());
    return result;
}

}  // namespace gputext::testing
