// extension/rows/row_ids.hpp - stores the ids of an inner query's rows, of any type

#pragma once

#include "extension/base/postgres.hpp"

#include <vector>

#include "extension/rows/packed_rows.hpp"

namespace gputext {

/// Functions raise errors.
class RowIds {
public:
    RowIds(const IdType& type, std::size_t memory_limit) : type_(type), bytes_(memory_limit) {}

    void append(Datum id);
    const IdType& type() const { return type_; }
    std::size_t size() const { return begins_.size(); }
    std::uint64_t bytes() const { return bytes_.size(); }

    /// Ends the appending; what follows is for then.
    void finish() { bytes_.finish(); }
    /// Puts the rows into this order of their numbers so far; none leaves them as they are.
    void reorder(const std::vector<std::uint32_t>& order);
    Datum at(std::size_t row) const { return id_at(type_, bytes_.data() + begins_[row]); }

    /// "pair 17" for the row with the id 17, where `word` is "pair". Allocates. During the
    /// appending, too.
    const char* name_of(const char* word, Datum id) const;

    /// As PackedBytes::release().
    void release() { bytes_.release(); }

private:
    IdType type_;
    PackedBytes bytes_;
    std::vector<std::uint64_t> begins_;
};

}  // namespace gputext
