// extension/inputs/record_rows.hpp - the records of one inner query or of two, as fields and keys

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "cpp/records/field_values.hpp"
#include "cpp/records/linkage_model.hpp"
#include "cpp/records/record_pairs.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/record_columns.hpp"
#include "extension/order/row_ids.hpp"
#include "extension/queries/inner_query.hpp"

namespace gputext {

/// The inner queries of a call, and which of their columns are wanted.
struct RecordQueries {
    InnerQuery first, second;
    bool two_tables = false;
    /// Columns that a pair has to agree in, of each key.
    std::vector<std::vector<std::string>> keys;
};

/// Reads the arguments records, or records1 and records2, keys and id_type. `id_type_after` names
/// what stands before id_type. Raises errors.
void record_arguments(const Arguments& given, const char* id_type_after, RecordQueries& queries);

/// Records as they came, those of the second query behind those of the first. Their order is that
/// of their ranks.
class RecordRows {
public:
    RecordRows(const IdType& id_type, std::size_t memory_limit)
        : ids_(id_type, memory_limit),
          second_ids_(id_type, memory_limit),
          memory_limit_(memory_limit) {}

    /// Runs the queries, showing meanwhile how many rows there are. Fields are those of the model, in their order; keys those of the queries. Columns are known
    /// by their names, and others are not looked at. Raises an error for a column that is missing,
    /// or there twice, or of a kind that its comparison does not apply to, and what
    /// run_inner_query() raises.
    void read(const RecordQueries& queries, std::span<const FieldModel> fields);

    /// After read(): numbers the values, on threads, and gives back what was read of them.
    void number_values();

    /// After number_values()
    Records records() const { return {fields_, size(), two_tables_, ids_.size()}; }
    std::span<const RecordKey> keys() const { return key_views_; }
    std::size_t size() const { return ids_.size() + second_ids_.size(); }
    /// Size of what was read.
    std::uint64_t bytes() const { return bytes_; }

    /// Whether the record comes before the other one.
    bool before(std::uint32_t a, std::uint32_t b) const { return rank(a) < rank(b); }
    /// The record's place in the order of rows.
    std::uint32_t rank(std::uint32_t record) const {
        return ranks_.empty() ? record : ranks_[record];
    }
    /// Of all records; empty where each has the rank of its number.
    std::span<const std::uint32_t> ranks() const { return ranks_; }
    /// The record at that place.
    std::uint32_t at_rank(std::uint32_t rank) const { return order_.empty() ? rank : order_[rank]; }
    Datum id_at_rank(std::size_t rank) const {
        return rank < ids_.size() ? ids_.at(rank) : second_ids_.at(rank - ids_.size());
    }
    const RowIds& ids() const { return ids_; }
    const RowIds& second_ids() const { return second_ids_; }

    /// As PackedBytes::release().
    void release_ids() {
        ids_.release();
        second_ids_.release();
    }

private:
    friend class RecordReceiver;

    void want(const RecordQueries& queries, std::span<const FieldModel> fields);
    std::size_t place_of_key(const std::string& name, std::span<const FieldModel> fields);
    void end_rows(RowIds& ids, bool ordered);
    void fill_order(std::size_t end);
    void finish_order();

    RowIds ids_, second_ids_;
    std::size_t memory_limit_;
    bool two_tables_ = false;
    std::uint64_t bytes_ = 0;
    DescriptorRoom descriptors_;
    std::deque<RecordColumn> columns_;  // of the fields, and then those that keys alone have
    std::vector<std::vector<std::size_t>> key_columns_;  // of each key
    std::vector<FieldValues> fields_;
    std::vector<std::vector<std::uint32_t>> keys_;
    std::vector<RecordKey> key_views_;
    std::vector<std::uint32_t> ranks_, order_;  // empty where records came in their order
};

}  // namespace gputext
