// bench/byte_queries.hpp - rows and queries of the benchmarks of codes of 8 bits, on the host

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/byte_codes.hpp"
#include "bench/options.hpp"
#include "bench/vector_files.hpp"

namespace gputext::bench {

/// What the arguments ask for: KIND [rows=N] [queries=N] [dimensions=N] [items=FILE asked=FILE]
/// [unit=1]. KIND is normal, clustered or file.
struct ByteInputs {
    MadeRows made;
    std::size_t rows;
    std::size_t queries;
    std::vector<float> items;  // of a file
    std::vector<float> asked;

    ByteInputs(int count, char** arguments) {
        const std::string kind = count > 1 ? arguments[1] : "";
        const Options options(count, arguments);
        if (kind != "normal" && kind != "clustered" && kind != "file") {
            std::fprintf(stderr,
                         "wanted: normal|clustered|file [rows=N] [queries=N] [dimensions=N] "
                         "[items=FILE asked=FILE] [unit=1]\n");
            std::exit(2);
        }
        made = {kind == "clustered", options.whole<std::uint32_t>("dimensions", 768)};
        rows = options.whole<std::size_t>("rows", 100'000);
        queries = options.whole<std::size_t>("queries", 16);
        if (made.dimensions == 0 || made.dimensions > kMostDimensions || rows == 0 ||
            rows > 0xf0000000 || queries == 0) {
            std::fprintf(stderr, "rows, queries or dimensions out of range\n");
            std::exit(2);
        }
        if (kind == "file") {
            const bool unit = options.whole<int>("unit", 0) != 0;
            items = from_file(options.text("items"), rows, unit);
            asked = from_file(options.text("asked"), queries, unit);
            return;
        }
        asked.resize(queries * made.dimensions);
        const std::vector<float> matrix = hidden_matrix();
        // Rows behind those that are searched
        for (std::size_t i = 0; i < queries; ++i)
            make(rows + i, matrix, asked.data() + i * made.dimensions);
    }

    /// Empty where rows have no hidden numbers.
    std::vector<float> hidden_matrix() const {
        if (!made.clustered) return {};
        std::vector<float> matrix(std::size_t{MadeRows::kHidden} * made.dimensions);
        for (std::uint32_t i = 0; i < MadeRows::kHidden; ++i)
            for (std::uint32_t j = 0; j < made.dimensions; ++j)
                matrix[std::size_t{i} * made.dimensions + j] = made.matrix(i, j);
        return matrix;
    }

    void make(std::size_t row, const std::vector<float>& matrix, float* to) const {
        for (std::uint32_t j = 0; j < made.dimensions; ++j) to[j] = made.alone(row, j);
        if (!made.clustered) return;
        for (std::uint32_t i = 0; i < MadeRows::kHidden; ++i) {
            const float hidden = made.hidden(row, i);
            for (std::uint32_t j = 0; j < made.dimensions; ++j)
                to[j] += hidden * matrix[std::size_t{i} * made.dimensions + j];
        }
    }

private:
    /// At most `count` rows; `count` becomes as many as there are.
    std::vector<float> from_file(const std::string& file, std::size_t& count, bool unit) const {
        std::error_code error;
        const auto bytes = std::filesystem::file_size(file, error);
        const std::size_t row_bytes = made.dimensions * sizeof(float);
        if (error || bytes < row_bytes || bytes % row_bytes != 0) {
            std::fprintf(stderr, "%s has no rows of %u floats\n", file.c_str(), made.dimensions);
            std::exit(1);
        }
        count = std::min<std::size_t>(count, bytes / row_bytes);
        std::vector<float> rows_of_file = floats(count * made.dimensions, 0, file.c_str());
        for (std::size_t row = 0; unit && row < count; ++row) {
            float* const begin = rows_of_file.data() + row * made.dimensions;
            double square = 0;
            for (std::uint32_t j = 0; j < made.dimensions; ++j)
                square += static_cast<double>(begin[j]) * static_cast<double>(begin[j]);
            for (std::uint32_t j = 0; square > 0 && j < made.dimensions; ++j)
                begin[j] = static_cast<float>(static_cast<double>(begin[j]) / std::sqrt(square));
        }
        return rows_of_file;
    }
};

/// A query's bytes, and what the bounds need of it.
struct QueryBytes {
    std::vector<std::int8_t> high, low;
    CodedQuery coded;

    QueryBytes(const float* query, std::uint32_t dimensions) : high(dimensions), low(dimensions) {
        float largest = 0;
        for (std::uint32_t i = 0; i < dimensions; ++i)
            largest = std::max(largest, std::fabs(query[i]));
        const float scale = code_scale(largest, kMostOfWord);
        CodeSums sums;
        for (std::uint32_t i = 0; i < dimensions; ++i) {
            const int word = code_of(query[i], scale, kMostOfWord);
            sums.add(query[i], word, scale);
            high[i] = static_cast<std::int8_t>(high_byte(word));
            low[i] = static_cast<std::int8_t>(low_byte(word));
        }
        const auto wide = static_cast<double>(scale);
        coded = {wide, sums.error(dimensions), wide * wide * sums.code,
                 (dimensions / 16.0 + 20) * 0x1p-52 + 0x1p-50};
    }
};

}  // namespace gputext::bench
