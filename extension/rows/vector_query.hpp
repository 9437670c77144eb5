// extension/rows/vector_query.hpp - packs the vectors that an inner query gives

#pragma once

#include "extension/base/postgres.hpp"

#include <string>
#include <vector>

#include "cpp/base/vectors.hpp"
#include "cpp/link/client.hpp"
#include "extension/rows/inner_query.hpp"
#include "extension/rows/packed_rows.hpp"
#include "extension/rows/row_ids.hpp"
#include "extension/rows/vector_type.hpp"

namespace gputext {

/// The vectors of an inner query, with their ids.
class VectorRows {
public:
    /// `word` names one of the rows: "item".
    VectorRows(const char* word, const IdType& id_type, std::size_t memory_limit)
        : word_(word),
          elements_(memory_limit),
          columns_(memory_limit),
          ids_(id_type, memory_limit) {}

    /// Sets the type of all vectors. To be called before all other functions.
    void set_type(const VectorType& type);
    /// Raises an error when the vector is of another length than those before.
    void append(Datum id, const VectorValue& vector);
    /// Ends the appending, as PackedBytes::finish() does; what follows is for then.
    void finish();
    /// For sparse vectors of which nobody knew the length before: they were appended with 0.
    void set_dimensions(std::size_t dimensions) { dimensions_ = dimensions; }

    std::size_t size() const { return ids_.size(); }
    std::uint64_t bytes() const { return elements_.size() + columns_.size() + ids_.bytes(); }
    bool sparse() const { return type_.form == VectorType::Form::sparse; }
    std::size_t dimensions() const { return dimensions_; }
    /// Valid until share(), and no longer than this object.
    Vectors view() const;

    const IdType& id_type() const { return ids_.type(); }
    Datum id(std::size_t row) const { return ids_.at(row); }
    /// "item 17" for the row with the id 17. Allocates. May be called during the appending, too.
    const char* name_of(Datum id) const { return ids_.name_of(word_, id); }
    /// Name of the first row, when there is one, for error messages.
    const char* first_name() const { return first_name_.c_str(); }

    /// Makes the vectors readable for another process, which files() then lets it have.
    void share();
    VectorFiles files() const { return {view(), elements_file_.get(), columns_file_.get()}; }

    /// Gives memory and files back, as PackedBytes::release() does.
    void release();

private:
    const char* word_;
    VectorType type_{};
    std::size_t dimensions_ = 0;  // of all vectors; 0 before the first one
    std::string first_name_;
    PackedBytes elements_;
    PackedBytes columns_;                    // of sparse vectors' elements
    std::vector<std::uint64_t> row_begins_;  // the same, as in Vectors
    RowIds ids_;
    FileDescriptor elements_file_, columns_file_;
};

/// Reads a row (id, vector) of that type and appends it. Raises an error that names the row for
/// vectors with anything but finite numbers in one dimension and for those of different lengths.
void append_vector(const VectorType& type, const Datum* values, VectorRows& rows);

/// Says how many rows were left out, since their vectors are null.
void report_null_vectors(int64 rows);

/// Packs the rows (id, vector) of the query into `rows`, showing meanwhile how many there are.
/// Vectors that are null are left out, with one NOTICE. Raises an error for other columns, and what
/// append_vector() and run_inner_query() raise.
void run_vector_query(const InnerQuery& query, VectorRows& rows);

/// Raises an error when vectors of both cannot be compared. Nothing can be wrong with no rows.
/// `first_of_a` names a's first row where its id does not.
void check_same_dimensions(const VectorRows& a, const VectorRows& b,
                           const char* first_of_a = nullptr);

}  // namespace gputext
