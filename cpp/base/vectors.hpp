// cpp/base/vectors.hpp - view of the vectors of one job: a matrix of rows, dense or sparse
//
// Every element, of whatever type, is a double exactly, and whatever is computed of vectors is
// defined on those doubles: it does not depend on how a row is stored.

#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/filling.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// IEEE 754 binary16 (pgvector's halfvec), binary32 (real, vector, sparsevec), binary64, and int.
/// Bits are no numbers, and in dense matrices of cpp/bits alone.
enum class ElementType : std::uint8_t { float16, float32, float64, int32, bit };

/// Bytes of an element that is no bit.
std::size_t element_size(ElementType type);
/// Bytes of a dense row. Bits are padded by zeros to words of 32.
std::size_t row_size(ElementType type, std::size_t dimensions);

class KnownElements;

/// A view: whoever made it keeps the memory. At most 2^32 - 2 rows, of one length; rows are
/// numbered from 0 in input order. Elements are aligned as their type wants.
struct Vectors {
    ElementType type = ElementType::float32;
    std::size_t rows = 0;
    std::size_t dimensions = 0;
    /// Dense: rows * dimensions elements, row by row. Sparse: the elements that are not zero.
    const void* elements = nullptr;
    /// Sparse only: row r has the elements [row_begins[r], row_begins[r + 1]) in the columns of the
    /// same positions, which ascend strictly within a row. A dense matrix has no row_begins.
    std::span<const std::uint64_t> row_begins;
    std::span<const std::uint32_t> columns;
    /// Elements that stay as they are from job to job may have a memory of what was found of them,
    /// which also knows whether they are there: see await_elements().
    KnownElements* known = nullptr;

    bool sparse() const { return !row_begins.empty(); }
    /// The row's elements that are stored: their number, and the first one's position.
    std::size_t stored(std::size_t row) const {
        return sparse() ? row_begins[row + 1] - row_begins[row] : dimensions;
    }
    std::size_t begin(std::size_t row) const {
        return sparse() ? row_begins[row] : row * dimensions;
    }
    /// Elements that are stored for a row on average, rounded down; of at least one row.
    std::size_t average_stored() const {
        return sparse() ? (row_begins[rows] - row_begins[0]) / rows : dimensions;
    }
    const std::byte* row_bytes(std::size_t row) const {
        return static_cast<const std::byte*>(elements) +
               (sparse() ? begin(row) * element_size(type) : row * row_size(type, dimensions));
    }
};

/// What was found of a dense matrix that stays as it is, for the next one who wants to know. For
/// all threads.
class KnownElements {
public:
    /// `filling` is that of the elements' memory, and lives as long; null where they are there.
    explicit KnownElements(const Filling* filling = nullptr) : filling_(filling) {}

    const Filling* filling() const { return filling_; }

    /// What largest_magnitude() has found, if it was of these vectors or of more rows, these among
    /// them. When it is known, the elements are there.
    std::optional<double> largest(const Vectors& vectors) const;
    void set_largest(const Vectors& vectors, double largest);

    /// An upper bound, for elements that may not have been copied yet; all of them are finite.
    std::optional<double> bound(const Vectors& vectors) const;
    void set_bound(const Vectors& vectors, double bound);

private:
    bool are_among_those(const Vectors& vectors) const;

    const Filling* const filling_;
    mutable std::mutex mutex_;
    Vectors vectors_;
    std::optional<double> largest_;
    std::optional<double> bound_;
};

/// Waits until the elements are there. Whoever has vectors of which it may be otherwise calls it
/// before the host reads an element. Errors: cancelled; unavailable.
Status await_elements(const Vectors& vectors, Stop stop);

/// Copies the elements at positions [begin, begin + count) of the matrix, as doubles.
void copy_elements(const Vectors& vectors, std::size_t begin, std::size_t count, double* out);

/// Whether all of a row's elements are zero.
bool zero_row(const Vectors& vectors, std::size_t row);

/// Whether rows of both can be compared by a metric of cpp/knn/distance.hpp: of the same
/// dimensions, both dense or both sparse, and sparse ones of type float32. Error: invalid_argument.
Status check_comparable(const Vectors& queries, const Vectors& items);

/// The largest magnitude of an element, 0 where there is none. Errors: invalid_argument for the
/// first row with NaN or infinity, with columns out of order or beyond the dimensions, for
/// row_begins that do not ascend, for sparse rows of neither float32 nor int32, and for too many
/// rows; cancelled; unavailable. The messages name a row as `row_name` and its number: "item 17
/// ...". O(elements); awaits the elements. O(1) where it is known (KnownElements), perhaps of more
/// rows than these: it is then at least the largest of these.
Result<double> largest_magnitude(const Vectors& vectors, const char* row_name,
                                 Execution& execution);

/// The same, or more where the elements are not there so far but known to be finite.
Result<double> magnitude_bound(const Vectors& vectors, const char* row_name, Execution& execution);

/// The largest magnitude of a row's elements; infinity or NaN where one is not finite.
double largest_element(const Vectors& vectors, std::size_t row);

// ---- Consecutive rows of a matrix as a matrix of their own ----

/// Rows [begin, end) of a matrix, which keeps its memory. Begins of some of its sparse rows are
/// copied, as they count from 0 in each matrix: O(rows).
class RowRange {
public:
    RowRange(const Vectors& matrix, std::size_t begin, std::size_t end) : vectors_(matrix) {
        if (begin == 0 && end == matrix.rows) return;
        vectors_.rows = end - begin;
        vectors_.elements = matrix.row_bytes(begin);
        if (!matrix.sparse()) return;
        const std::uint64_t stored = matrix.row_begins[begin];
        begins_.reserve(end - begin + 1);
        for (std::size_t row = begin; row <= end; ++row)
            begins_.push_back(matrix.row_begins[row] - stored);
        vectors_.columns = matrix.columns.subspan(stored, begins_.back());
        vectors_.row_begins = begins_;
    }
    RowRange(RowRange&&) = default;

    const Vectors& vectors() const { return vectors_; }

private:
    std::vector<std::uint64_t> begins_;
    Vectors vectors_;
};

}  // namespace gputext
