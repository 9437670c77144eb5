#include "cpp/terms/chunked_texts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

namespace gputext {
namespace {

/// Texts of random terms in some chunks, and the matrix that they are.
struct Case {
    ChunkNumbers numbers;
    std::vector<std::vector<std::uint32_t>> records;  // of each text
    std::vector<ChunkText> texts;
    std::vector<std::uint64_t> begins{0};
    std::vector<std::uint32_t> columns, values;
    std::uint64_t size = 0;

    Case(unsigned seed, unsigned rows, bool leaves_out) {
        std::mt19937 random(seed);
        constexpr std::uint32_t terms = 50;
        for (int chunk = 0; chunk < 3; ++chunk) {
            std::vector<std::uint32_t>& mine = numbers.emplace_back(terms);
            std::iota(mine.begin(), mine.end(), 0u);
            std::shuffle(mine.begin(), mine.end(), random);
            for (std::uint32_t& number : mine)
                if (leaves_out && random() % 4 == 0) number = UINT32_MAX;
        }
        for (unsigned row = 0; row < rows; ++row) {
            const auto chunk = static_cast<std::uint32_t>(random() % numbers.size());
            add_row(numbers[chunk], records.emplace_back(), random);
            texts.push_back({nullptr, static_cast<std::uint32_t>(records[row].size()), chunk});
            size += records[row].size();
        }
        for (unsigned row = 0; row < rows; ++row) texts[row].record = records[row].data();
    }

    /// In parts of a single text, or in one part.
    NumberedTexts view(bool in_parts) const {
        return {{TextForm::terms, texts, {}, in_parts ? UINT64_MAX : size}, &numbers};
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

TEST(NumberedRows, AreTheRowsOfAllTexts) {
    for (const unsigned threads : {1u, 4u})
        for (const bool leaves_out : {false, true})
            for (unsigned seed = 0; seed < 50; ++seed) {
                const Case expected(seed, seed, leaves_out);
                const NumberedTexts rows = expected.view(seed % 2 == 0);
                Execution execution(threads);
                std::vector<std::uint64_t> begins(expected.begins.size(), 7);
                ASSERT_TRUE(count_terms(rows, leaves_out, begins, execution).ok());
                ASSERT_EQ(begins, expected.begins);
                std::vector<std::uint32_t> columns(begins.back()), values(begins.back());
                const auto sink = [&](std::uint64_t begin, auto its_columns, auto its_values) {
                    std::copy(its_columns.begin(), its_columns.end(),
                              columns.begin() + static_cast<std::ptrdiff_t>(begin));
                    std::copy(its_values.begin(), its_values.end(),
                              values.begin() + static_cast<std::ptrdiff_t>(begin));
                    return Status();
                };
                ASSERT_TRUE(number_terms(rows, begins, sink, execution).ok());
                EXPECT_EQ(columns, expected.columns);
                EXPECT_EQ(values, expected.values);
            }
}

TEST(NumberedRows, EndWithTheErrorOfTheSinkAndWhenStopped) {
    const Case texts(1, 10, false);
    const NumberedTexts rows = texts.view(true);
    Execution execution(2);
    std::vector<std::uint64_t> begins(texts.begins.size());
    ASSERT_TRUE(count_terms(rows, false, begins, execution).ok());
    const auto full = [](std::uint64_t, auto, auto) { return Status::out_of_memory(); };
    EXPECT_EQ(number_terms(rows, begins, full, execution).code(), ErrorCode::out_of_memory);
    execution.request_stop();
    EXPECT_EQ(count_terms(rows, false, begins, execution).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
