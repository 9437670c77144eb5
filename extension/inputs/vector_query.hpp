// extension/inputs/vector_query.hpp - packs the vectors that an inner query gives

#pragma once

#include "extension/base/postgres.hpp"

#include <memory>
#include <span>
#include <vector>

#include "cpp/base/filling.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/link/client.hpp"
#include "cpp/terms/chunked_texts.hpp"
#include "extension/order/key_column.hpp"
#include "extension/order/row_ids.hpp"
#include "extension/queries/collected_rows.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/queries/remembered_vectors.hpp"
#include "extension/types/vector_type.hpp"
#include "extension/values/laid_out_bytes.hpp"
#include "extension/values/packed_rows.hpp"
#include "extension/values/stored_values.hpp"

namespace gputext {

/// The vectors of an inner query, with their ids. They are collected as the executor gives them,
/// and read when the last row is known: dense ones in parallel workers.
class VectorRows {
public:
    /// `word` names one of the rows: "item".
    VectorRows(const char* word, const IdType& id_type, std::size_t memory_limit)
        : word_(word),
          memory_limit_(memory_limit),
          laid_out_(memory_limit),
          laid_out_columns_(memory_limit),
          elements_(memory_limit),
          columns_(memory_limit),
          rows_(id_type, memory_limit) {}

    /// Sets the type of all vectors. To be called before all other functions.
    void set_type(const VectorType& type);

    /// Collects a row, as CollectedRows does: its id, and a value or two, to be read later.
    void collect(Datum id, std::span<const Datum> values, const InnerQueryTraits& query,
                 const RowOrigin& row = {});
    /// As RowReceiver::forget_row_versions().
    void forget_row_versions() { rows_.forget_row_versions(); }
    /// After the last row: puts the rows into the order of their ids, where the query has no order
    /// of its own. From here on ids may be asked for.
    /// `keys` have a number for each row, and are put into the same order.
    void end_rows(const InnerQueryTraits& query, std::span<KeyColumn* const> keys = {}) {
        rows_.end(query.ordered, keys);
    }
    /// Reads the vectors that were collected, after end_rows(). Raises an error that names the
    /// first row whose vector has anything but finite numbers in one dimension, or another length
    /// than the first one. With Arrival::later, await_vectors() has to be called before the session
    /// reads an element; files() may be called without it.
    void read_vectors(Arrival arrival = Arrival::awaited);
    /// The same of dense vectors, awaited. False in place of those errors: the rows are then of no
    /// use but to be released.
    bool read_vectors_if_alike();
    /// Waits until the vectors may be read here. Raises the same errors.
    void await_vectors();
    /// After read_vectors(): copies the rows for statements to come. Null where gputextd does not
    /// keep the vectors, where the order of the rows is not that of their ids alone, or where the
    /// copy would have more than so many bytes, its keys included. Raises errors: `copied` must not
    /// lie on the stack.
    void copy(std::size_t most, std::shared_ptr<const RememberedVectors>& copied,
              const RememberedKeyColumns& keys = {}) const;
    /// Takes such a copy, and the vectors from gputextd, in place of all from collect() to
    /// read_vectors(). False, and nothing is taken, where gputextd keeps the vectors no more, or
    /// rows are of another type, or the session must not hold so much in memory.
    bool take(const std::shared_ptr<const RememberedVectors>& rows);
    /// The same with changes: the rows are those of the copy, of which those in removed() do not
    /// count, and those of added(). False, and nothing is taken, also where a vector that was added
    /// is not as the others, or where an id that was added is that of another row. `keys` are those
    /// of rows that were added, and are put into the order of added().
    bool take(const std::shared_ptr<const RememberedVectors>& rows, const RowChanges& changes,
              std::span<KeyColumn* const> keys = {});
    /// The same for who is not interested in ids, nor in an order of rows: ids of the copy may be of
    /// any type, and rows that were added come behind all others.
    bool take_without_order(const std::shared_ptr<const RememberedVectors>& rows,
                            const RowChanges& changes);

    // After that:

    /// Numbers of rows, ascending.
    std::span<const std::uint32_t> removed() const { return removed_; }
    /// More rows, in their order; null for none. To id() and ids() they are known by the numbers
    /// from size() on.
    VectorRows* added() const { return added_.get(); }
    /// For each of added(), how many of the rows below size() come before it.
    std::span<const std::uint32_t> rows_before_added() const { return rows_before_added_; }

    /// Before the first row: the rows are to be remembered. places() will be asked for, and gputextd
    /// keeps what it can of the vectors.
    void keep_places() {
        rows_.keep_places();
        again_ = true;
    }
    /// After end_rows(): as CollectedRows::places().
    std::span<const ItemPointerData> places() const { return rows_.places(); }

    /// The values that were collected in that column, for another reader of them; see append_row().
    StoredValues& values(std::size_t column) { return rows_.values(column); }
    void release_values() { rows_.release_values(); }

    /// Takes the terms of all rows, which another reader has read: on the session's threads. With
    /// `leaves_out` some terms have no number.
    void take_terms(const NumberedTexts& texts, bool leaves_out);
    /// Appends the next row: a sparse vector, or a single dense one whose id was collected
    /// without values.
    void append_row(const VectorValue& vector);
    /// Ends the appending, as PackedBytes::finish() does; what follows is for then.
    void finish();
    /// For sparse vectors of which nobody knew the length before: they were appended with 0.
    void set_dimensions(std::size_t dimensions) { dimensions_ = dimensions; }

    /// Without added().
    std::size_t size() const { return rows_.ids().size(); }
    std::size_t memory_limit() const { return memory_limit_; }
    std::uint64_t bytes() const;
    /// As JobSize::resident_bytes; not with vectors that were not read yet.
    std::uint64_t resident_bytes() const {
        return laid_out_.resident() == 0 ? 0 : laid_out_.size();
    }
    bool sparse() const { return type_.form == VectorType::Form::sparse; }
    std::size_t dimensions() const { return dimensions_; }
    /// Valid until release_vectors().
    Vectors view() const;

    const IdType& id_type() const { return rows_.ids().type(); }
    Datum id(std::size_t row) const {
        return row < size() ? rows_.ids().at(row) : added_->id(row - size());
    }
    /// As RowIds::at() of many rows.
    void ids(std::span<const std::uint32_t> rows, Datum* ids) const;
    /// "item 17" for the row with the id 17. Allocates.
    const char* name_of(Datum id) const { return rows_.ids().name_of(word_, id); }
    /// Name of the first row, when there is one, for error messages.
    const char* first_name() const { return name_of(id(first_row())); }

    /// Makes the vectors readable for another process, which files() then lets it have.
    void share();
    VectorFiles files() const;

    /// Gives the vectors back, as PackedBytes::release() does, and keeps the ids.
    void release_vectors();
    /// Gives all memory and files back.
    void release();

private:
    /// Reads the vector of a row that was collected; raises an error that names it.
    void read_collected(std::size_t row, VectorValue& vector);
    void check_read(std::uint64_t fault);
    void append_collected();
    bool take_vectors(const std::shared_ptr<const RememberedVectors>& rows);
    bool read_added(const RememberedVectors& rows, std::span<const AddedRow> added,
                    std::span<KeyColumn* const> keys);
    bool find_places_of_added(const RememberedVectors& rows);
    void forget_changes();
    std::size_t first_row() const;
    void release_added();

    const char* word_;
    std::size_t memory_limit_;
    VectorType type_{};
    std::size_t dimensions_ = 0;  // of all vectors; 0 before the first one
    bool again_ = false;          // as in read_column()
    std::uint64_t unpacked_ = 0;  // of the vectors that were read: StoredValues::unpacked_bytes()
    // Of vectors that were laid out:
    LaidOutBytes laid_out_, laid_out_columns_;
    // Of vectors that were appended:
    PackedBytes elements_;
    PackedBytes columns_;                    // of sparse vectors' elements
    std::vector<std::uint64_t> row_begins_;  // the same, as in Vectors
    CollectedRows rows_;
    FileDescriptor elements_file_, columns_file_;
    // Of rows that were taken with changes:
    std::vector<std::uint32_t> removed_, rows_before_added_;
    std::unique_ptr<VectorRows> added_;
};

/// Says how many rows were left out, since their vectors are null.
void report_null_vectors(int64 rows, const char* among);

/// The same of bit strings.
void report_null_bits(int64 rows, const char* among);

/// Packs the rows (id, vector) of the query into `rows`, showing meanwhile how many there are.
/// Vectors that are null are left out, with one NOTICE. Raises an error for other columns, and what
/// VectorRows::read_vectors() and run_inner_query() raise.
void run_vector_query(const InnerQuery& query, VectorRows& rows);

/// Raises an error when vectors of both cannot be compared. Nothing can be wrong with no rows.
/// `first_of_a` names a's first row where its id does not.
void check_same_dimensions(const VectorRows& a, const VectorRows& b,
                           const char* first_of_a = nullptr);

}  // namespace gputext
