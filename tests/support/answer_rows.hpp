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
    std::vector<NearDuplicate> neighbors;
    for (std::uint32_t i = 0; i < answer.documents(); ++i) {
        answer.later_neighbors(i, neighbors);
        for (const NearDuplicate& neighbor : neighbors)
            result.emplace_back(i, neighbor.document, neighbor.edit_rate);
    }
    EXPECT_EQ(answer.pairs(), result.size());
    return result;
}

}  // namespace gputext::testing
