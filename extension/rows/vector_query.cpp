#include "extension/rows/vector_query.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include "extension/base/failure.hpp"
#include "extension/rows/vector_type.hpp"
#include "extension/server/activity.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give an id and a vector of type real[], double precision[], integer[], "
    "or pgvector's "
    "vector, halfvec or sparsevec, in this order.";

[[noreturn]] void raise_different_dimensions(const char* name, std::size_t dimensions,
                                             const char* other_name, std::size_t other_dimensions) {
    ereport(ERROR,
            (errcode(ERRCODE_DATA_EXCEPTION),
             errmsg("the vectors of %s and %s have different numbers of elements: %zu and %zu",
                    name, other_name, dimensions, other_dimensions)));
    pg_unreachable();
}

class VectorReceiver final : public RowReceiver {
public:
    explicit VectorReceiver(VectorRows& rows) : rows_(rows) {}

    WantedColumns wanted_columns() const override { return {2, 2, kWanted}; }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool* nulls) override;
    void report_nulls(int64 rows) override { report_null_vectors(rows); }

private:
    VectorRows& rows_;
    VectorType type_{};  // of the column
};

void VectorReceiver::check_columns(TupleDesc columns) {
    const std::optional<VectorType> type = vector_type_of(base_type_of_column(columns, 1));
    if (!type)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the vectors of the inner query are of type %s",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                        errdetail("%s", kWanted),
                        errhint("Arrays of other numbers can be cast in the inner query, as in "
                                "embedding::real[].")));
    type_ = *type;
    rows_.set_type(type_);
}

void VectorReceiver::take_row(const Datum* values, const bool*) {
    append_vector(type_, values, rows_);
    show_rows(rows_.size(), rows_.bytes());
}

}  // namespace

void VectorRows::set_type(const VectorType& type) {
    type_ = type;
    Failure failure;
    if (sparse() && !attempt(failure, [&]() -> Status {
            row_begins_.assign(1, 0);
            return {};
        }))
        raise_failure(failure);
}

void VectorRows::append(Datum id, const VectorValue& vector) {
    if (size() > 0 && vector.dimensions != dimensions_)
        raise_different_dimensions(first_name(), dimensions_, name_of(id), vector.dimensions);
    const char* const name = size() == 0 ? name_of(id) : nullptr;
    dimensions_ = vector.dimensions;
    ids_.append(id);
    elements_.append(vector.elements, vector.stored * element_size(type_.element));
    if (sparse()) columns_.append(vector.columns, vector.stored * sizeof(std::uint32_t));
    attempt_or_raise([&] {
        if (name != nullptr) first_name_ = name;
        if (sparse()) row_begins_.push_back(row_begins_.back() + vector.stored);
    });
}

void VectorRows::finish() {
    elements_.finish();
    columns_.finish();
    ids_.finish();
}

Vectors VectorRows::view() const {
    Vectors vectors{type_.element, size(), dimensions_, elements_.data(), row_begins_, {}};
    if (sparse())
        vectors.columns = {reinterpret_cast<const std::uint32_t*>(columns_.data()),
                           columns_.size() / sizeof(std::uint32_t)};
    return vectors;
}

void VectorRows::share() {
    elements_file_ = elements_.share();
    if (sparse()) columns_file_ = columns_.share();
}

void VectorRows::release() {
    elements_.release();
    columns_.release();
    ids_.release();
}

void append_vector(const VectorType& type, const Datum* values, VectorRows& rows) {
    VectorValue vector;
    const VectorFault fault = read_vector(type, values[1], vector);
    if (fault != VectorFault::none) raise_vector_fault(fault, rows.name_of(values[0]));
    rows.append(values[0], vector);
}

void report_null_vectors(int64 rows) {
    ereport(NOTICE,
            (errmsg_plural("skipped %lld vector that is null", "skipped %lld vectors that are null",
                           static_cast<unsigned long>(rows), static_cast<long long>(rows))));
}

void run_vector_query(const InnerQuery& query, VectorRows& rows) {
    VectorReceiver receiver(rows);
    run_inner_query(query, receiver);
    rows.finish();
}

void check_same_dimensions(const VectorRows& a, const VectorRows& b, const char* first_of_a) {
    if (a.size() == 0 || b.size() == 0) return;
    if (a.sparse() != b.sparse())
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("sparse vectors cannot be compared with dense ones"),
                        errhint("sparsevec can be cast in the inner query, as in "
                                "embedding::vector.")));
    if (a.dimensions() != b.dimensions())
        raise_different_dimensions(first_of_a != nullptr ? first_of_a : a.first_name(),
                                   a.dimensions(), b.first_name(), b.dimensions());
}

}  // namespace gputext
