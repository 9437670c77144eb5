#include "cpp/terms/numbered_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

namespace gputext {
namespace {

/// Rows of random terms, read in stretches by some processes, and the matrix that they are.
struct Case {
    std::vector<std::vector<std::uint32_t>> numbers;  // of each process's terms
    std::vector<std::vector<std::uint32_t>> records;  // of each stretch
    std::vector<TermStretch> stretches;
    std::vector<std::uint64_t> begins{0};
    std::vector<std::uint32_t> columns, values;

    Case(unsigned seed, unsigned stretch_count, bool leaves_out) {
        std::mt19937 random(seed);
        constexpr std::uint32_t terms = 50;
        for (int process = 0; process < 3; ++process) {
            std::vector<std::uint32_t>& mine = numbers.emplace_back(terms);
            std::iota(mine.begin(), mine.end(), 0u);
            std::shuffle(mine.begin(), mine.end(), random);
            for (std::uint32_t& number : mine)
                if (leaves_out && random() % 4 == 0) number = UINT32_MAX;
        }
        for (unsigned i = 0; i < stretch_count; ++i) {
            const std::vector<std::uint32_t>& mine = numbers[random() % numbers.size()];
            std::vector<std::uint32_t>& record = records.emplace_back();
            const auto rows = static_cast<std::uint32_t>(random() % 5);
            for (std::uint32_t row = 0; row < rows; ++row) add_row(mine, record, random);
            stretches.push_back({nullptr, rows, mine.data()});
        }
        for (unsigned i = 0; i < stretch_count; ++i) stretches[i].records = records[i].data();
    }

    void add_row(const std::vector<std::uint32_t>& mine, std::vector<std::uint32_t>& record,
                 std::mt19937& random) {
        std::vector<std::uint32_t> row(mine.size());
        std::iota(row.begin(), row.end(), 0u);
        std::shuffle(row.begin(), row.end(), random);
        row.resize(random() % 10);
        std::map<std::uint32_t, std::uint32_t> expected;
        record.push_back(static_cast<std::uint32_t>(row.size()));
        record.insert(record.end(), row.begin(), row.end());
        for (const std::uint32_t term : row) {
            const auto value = static_cast<std::uint32_t>(random());
            record.push_back(value);
            if (mine[term] != UINT32_MAX) expected[mine[term]] = value;
        }
        for (const auto& [column, value] : expected) {
            columns.push_back(column);
            values.push_back(value);
        }
        begins.push_back(columns.size());
    }
};

TEST(NumberedRows, AreTheRowsOfAllStretches) {
    for (const unsigned threads : {1u, 4u})
        for (const bool leaves_out : {false, true})
            for (unsigned seed = 0; seed < 50; ++seed) {
                const Case expected(seed, seed % 20, leaves_out);
                Execution execution(threads);
                std::vector<std::uint64_t> begins(expected.begins.size(), 7);
                ASSERT_TRUE(count_terms(expected.stretches, leaves_out, begins, execution).ok());
                ASSERT_EQ(begins, expected.begins);
                std::vector<std::uint32_t> columns(begins.back()), values(begins.back());
                const auto sink = [&](std::uint64_t begin, auto its_columns, auto its_values) {
                    std::copy(its_columns.begin(), its_columns.end(),
                              columns.begin() + static_cast<std::ptrdiff_t>(begin));
                    std::copy(its_values.begin(), its_values.end(),
                              values.begin() + static_cast<std::ptrdiff_t>(begin));
                    return Status();
                };
                ASSERT_TRUE(number_terms(expected.stretches, begins, sink, execution).ok());
                EXPECT_EQ(columns, expected.columns);
                EXPECT_EQ(values, expected.values);
            }
}

TEST(NumberedRows, EndWithTheErrorOfTheSinkAndWhenStopped) {
    const Case rows(1, 10, false);
    Execution execution(2);
    std::vector<std::uint64_t> begins(rows.begins.size());
    ASSERT_TRUE(count_terms(rows.stretches, false, begins, execution).ok());
    const auto full = [](std::uint64_t, auto, auto) { return Status::out_of_memory(); };
    EXPECT_EQ(number_terms(rows.stretches, begins, full, execution).code(),
              ErrorCode::out_of_memory);
    execution.request_stop();
    EXPECT_EQ(count_terms(rows.stretches, false, begins, execution).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
