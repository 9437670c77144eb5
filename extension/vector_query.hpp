// extension/vector_query.hpp - packs the vectors that an inner query gives

#pragma once

#include "extension/inner_query.hpp"
#include "extension/packed_rows.hpp"

#include "cpp/vectors.hpp"

namespace gputext {

/// The vectors of an inner query, with their ids.
class VectorRows {
public:
    /// `word` names one of the rows: "item".
    VectorRows(const char* word, const IdType& id_type, std::size_t memory_limit)
        : elements(memory_limit),
          columns(memory_limit),
          word_(word),
          id_type_(id_type),
          ids_(memory_limit) {}

    PackedBytes elements;
    PackedBytes columns;  // of sparse vectors' elements

    std::size_t size() const { return id_begins_.size(); }
    std::uint64_t bytes() const { return elements.size() + columns.size() + ids_.size(); }
    bool sparse() const { return sparse_; }
    std::size_t dimensions() const { return dimensions_; }
    /// Valid until elements or columns are shared, and no longer than this object.
    Vectors view() const;

    const IdType& id_type() const { return id_type_; }
    Datum id(std::size_t row) const { return id_at(id_type_, ids_.data() + id_begins_[row]); }
    const char* word() const { return word_; }
    /// "item 17", where 17 is the row's id. Allocates.
    const char* name(std::size_t row) const;

    /// Ends the appending, as PackedBytes::finish() does.
    void finish();
    /// Gives memory and files back, as PackedBytes::release() does.
    void release();

private:
    friend class VectorReceiver;

    const char* word_;
    IdType id_type_;
    ElementType type_ = ElementType::float32;
    bool sparse_ = false;
    std::size_t dimensions_ = 0;             // of all rows; 0 before the first one
    std::vector<std::uint64_t> row_begins_;  // sparse only, as in Vectors
    PackedBytes ids_;
    std::vector<std::uint64_t> id_begins_;  // in ids_
};

/// What another inner query of the same call has given before.
struct RowsBefore {
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
};

/// Packs the rows (id, vector) of the query into `rows`, showing meanwhile how many there are.
/// Vectors that are null are left out, with one NOTICE. Raises an error for other columns, for
/// vectors with anything but finite numbers in one dimension and for those of different lengths,
/// naming the row, and what run_inner_query() raises.
void run_vector_query(const InnerQuery& query, VectorRows& rows, const RowsBefore& before = {});

/// Raises an error when vectors of both cannot be compared. Nothing can be wrong with no rows.
void check_same_dimensions(const VectorRows& a, const VectorRows& b);

}  // namespace gputext
