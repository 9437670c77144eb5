#include "extension/vector_query.hpp"

extern "C" {
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

#include "extension/activity.hpp"
#include "extension/failure.hpp"
#include "extension/vector_type.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "Wanted are an id and a vector of type real[], double precision[], integer[], or pgvector's "
    "vector, halfvec or sparsevec, in this order.";

const char* row_name(const char* word, Oid id_type, Datum id) {
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(id_type, &output, &is_varlena);
    return psprintf("%s %s", word, OidOutputFunctionCall(output, id));
}

[[noreturn]] void raise_different_dimensions(const char* name, std::size_t dimensions,
                                             const char* other_name, std::size_t other_dimensions) {
    ereport(ERROR,
            (errcode(ERRCODE_DATA_EXCEPTION),
             errmsg("the vectors of %s and %s have different numbers of elements: %zu and %zu",
                    name, other_name, dimensions, other_dimensions)));
    pg_unreachable();
}

}  // namespace

class VectorReceiver final : public RowReceiver {
public:
    VectorReceiver(VectorRows& rows, const RowsBefore& before) : rows_(rows), before_(before) {}

    void check_columns(TupleDesc columns) override;
    void take_row(const Datum* values, const bool* nulls) override;
    void report_nulls(int64 rows) override {
        ereport(
            NOTICE,
            (errmsg_plural("skipped %lld vector that is null", "skipped %lld vectors that are null",
                           static_cast<unsigned long>(rows), static_cast<long long>(rows))));
    }

private:
    VectorRows& rows_;
    RowsBefore before_;
    VectorType type_{};
};

void VectorReceiver::check_columns(TupleDesc columns) {
    if (columns->natts != 2)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg_plural("the inner query has %d column, not 2",
                                      "the inner query has %d columns, not 2",
                                      static_cast<unsigned long>(columns->natts), columns->natts),
                        errdetail("%s", kWanted)));
    const std::optional<VectorType> type = vector_type_of(base_type_of_column(columns, 1));
    if (!type)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the vectors of the inner query are of type %s",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                        errdetail("%s", kWanted),
                        errhint("Arrays of other numbers can be cast in the inner query, as in "
                                "embedding::real[].")));
    type_ = *type;
    rows_.type_ = type->element;
    rows_.sparse_ = type->form == VectorType::Form::sparse;
    Failure failure;
    if (rows_.sparse_ && !attempt(failure, [&]() -> Status {
            rows_.row_begins_.push_back(0);
            return {};
        }))
        raise_failure(failure);
}

void VectorReceiver::take_row(const Datum* values, const bool*) {
    VectorValue vector;
    const VectorFault fault = read_vector(type_, values[1], vector);
    if (fault != VectorFault::none)
        raise_vector_fault(fault, row_name(rows_.word(), rows_.id_type_.oid, values[0]));
    if (rows_.size() > 0 && vector.dimensions != rows_.dimensions_)
        raise_different_dimensions(rows_.name(0), rows_.dimensions_,
                                   row_name(rows_.word(), rows_.id_type_.oid, values[0]),
                                   vector.dimensions);
    rows_.dimensions_ = vector.dimensions;
    const std::size_t id_begin = append_id(rows_.ids_, rows_.id_type_, values[0]);
    rows_.elements.append(vector.elements, vector.stored * element_size(type_.element));
    if (rows_.sparse_) rows_.columns.append(vector.columns, vector.stored * sizeof(std::uint32_t));
    Failure failure;
    if (!attempt(failure, [&]() -> Status {
            rows_.id_begins_.push_back(id_begin);
            if (rows_.sparse_)
                rows_.row_begins_.push_back(rows_.row_begins_.back() + vector.stored);
            return {};
        }))
        raise_failure(failure);
    show_rows(before_.rows + rows_.size(), before_.bytes + rows_.bytes());
}

Vectors VectorRows::view() const {
    Vectors vectors{type_, size(), dimensions_, elements.data(), row_begins_, {}};
    if (sparse_)
        vectors.columns = {reinterpret_cast<const std::uint32_t*>(columns.data()),
                           columns.size() / sizeof(std::uint32_t)};
    return vectors;
}

const char* VectorRows::name(std::size_t row) const {
    return row_name(word_, id_type_.oid, id(row));
}

void VectorRows::finish() {
    elements.finish();
    columns.finish();
    ids_.finish();
}

void VectorRows::release() {
    elements.release();
    columns.release();
    ids_.release();
}

void run_vector_query(const InnerQuery& query, VectorRows& rows, const RowsBefore& before) {
    VectorReceiver receiver(rows, before);
    run_inner_query(query, receiver);
    rows.finish();
}

void check_same_dimensions(const VectorRows& a, const VectorRows& b) {
    if (a.size() == 0 || b.size() == 0) return;
    if (a.sparse() != b.sparse())
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("sparse vectors cannot be compared with dense ones"),
                        errhint("sparsevec can be cast in the inner query, as in "
                                "embedding::vector.")));
    if (a.dimensions() != b.dimensions())
        raise_different_dimensions(a.name(0), a.dimensions(), b.name(0), b.dimensions());
}

}  // namespace gputext
