#include "cpp/distinct_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "cpp/stoppable.hpp"

namespace gputext {
namespace {

constexpr std::uint32_t kEmpty = UINT32_MAX;

/// A row's bytes: of its elements and, when sparse, of their columns.
struct RowBytes {
    std::span<const std::byte> elements, columns;

    RowBytes(const Vectors& vectors, std::size_t row) {
        const std::size_t count = vectors.stored(row);
        elements = {vectors.row_bytes(row), count * element_size(vectors.type)};
        if (vectors.sparse())
            columns = std::as_bytes(vectors.columns.subspan(vectors.begin(row), count));
    }
};

/// Any hash does: rows with equal hashes are compared. Four words at a time, as each step waits for
/// the one before.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
    constexpr std::size_t words = 4;
    std::uint64_t hash[words] = {seed, seed + 1, seed + 2, seed + 3};
    const auto mix = [&hash](const std::byte* at) {
        for (std::size_t i = 0; i < words; ++i) {
            std::uint64_t word;
            std::memcpy(&word, at + i * sizeof word, sizeof word);
            hash[i] = std::rotl((hash[i] ^ word) * 0x9e3779b97f4a7c15u, 29);
        }
    };
    constexpr std::size_t step = words * sizeof(std::uint64_t);
    std::size_t at = 0;
    for (; at + step <= bytes.size(); at += step) mix(bytes.data() + at);
    std::byte rest[step] = {};
    if (at < bytes.size()) {
        std::memcpy(rest, bytes.data() + at, bytes.size() - at);
        mix(rest);
    }
    std::uint64_t all = bytes.size();
    for (const std::uint64_t part : hash) {
        all = (all ^ part) * 0xff51afd7ed558ccdu;
        all ^= all >> 32;
    }
    return all;
}

std::uint64_t hash_row(const Vectors& vectors, std::size_t row) {
    const RowBytes bytes(vectors, row);
    return hash_bytes(bytes.columns, hash_bytes(bytes.elements, 0));
}

bool equal_rows(const Vectors& vectors, std::size_t a, std::size_t b) {
    const auto equal = [](std::span<const std::byte> x, std::span<const std::byte> y) {
        return x.size() == y.size() &&
               (x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0);
    };
    const RowBytes of_a(vectors, a), of_b(vectors, b);
    return equal(of_a.elements, of_b.elements) && equal(of_a.columns, of_b.columns);
}

}  // namespace

Status DistinctRows::set(const Vectors& vectors, Execution& execution) {
    const std::size_t rows = vectors.rows;
    std::vector<std::uint64_t> hashes(rows);
    const std::size_t step =
        rows == 0 ? 1 : std::max<std::size_t>(1, (kLookEvery / 8) / (vectors.average_stored() + 1));
    const std::size_t tasks = (rows + step - 1) / step;
    execution.begin_phase("hashing vectors", tasks);
    Status status = execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t row = task * step; row < std::min(rows, (task + 1) * step); ++row)
            hashes[row] = hash_row(vectors, row);
        return Status();
    });
    if (!status.ok()) return status;

    // Open addressing. Rows come in input order, so a class is entered by its first one.
    std::vector<std::uint32_t> table(std::bit_ceil(2 * rows + 1), kEmpty);
    const std::size_t mask = table.size() - 1;
    class_.resize(rows);
    firsts_.clear();
    for (std::size_t row = 0; row < rows; ++row) {
        if (row % (kLookEvery / 256) == 0 && execution.stop_requested()) return Status::cancelled();
        std::size_t at = hashes[row] & mask;
        while (table[at] != kEmpty && !(hashes[firsts_[table[at]]] == hashes[row] &&
                                        equal_rows(vectors, firsts_[table[at]], row)))
            at = (at + 1) & mask;
        if (table[at] == kEmpty) {
            table[at] = static_cast<std::uint32_t>(firsts_.size());
            firsts_.push_back(static_cast<std::uint32_t>(row));
        }
        class_[row] = table[at];
    }

    begins_.assign(firsts_.size() + 1, 0);
    for (const std::uint32_t of : class_) ++begins_[of + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    members_.resize(rows);
    std::vector<std::uint32_t> next(begins_.begin(), begins_.end() - 1);
    for (std::uint32_t row = 0; row < rows; ++row) members_[next[class_[row]]++] = row;
    return {};
}

}  // namespace gputext
