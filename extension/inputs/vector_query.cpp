#include "extension/inputs/vector_query.hpp"

extern "C" {
#include "utils/builtins.h"
#include "utils/memutils.h"
}

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/order/row_order.hpp"
#include "extension/resident/resident_column.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/session_job.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/column_types.hpp"
#include "extension/values/row_fill.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give an id and a vector of type real[], double precision[], integer[], "
    "or pgvector's "
    "vector, halfvec or sparsevec, in this order.";

[[noreturn]] void raise_different_lengths(const char* name, std::size_t bits,
                                          const char* other_name, std::size_t other_bits) {
    ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                    errmsg("the bit strings of %s and %s have different lengths: %zu and %zu", name,
                           other_name, bits, other_bits),
                    errhint("They can be cast to one length in the inner query, as in "
                            "hash::bit(64), which cuts bits off on the right or appends zeros.")));
    pg_unreachable();
}

[[noreturn]] void raise_different_dimensions(const char* name, std::size_t dimensions,
                                             const char* other_name, std::size_t other_dimensions) {
    ereport(ERROR,
            (errcode(ERRCODE_DATA_EXCEPTION),
             errmsg("the vectors of %s and %s have different numbers of elements: %zu and %zu",
                    name, other_name, dimensions, other_dimensions)));
    pg_unreachable();
}

std::span<const std::uint8_t> bytes_of(std::span<const std::uint32_t> values) {
    return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};
}

/// Dense vectors of one type and length, as gputextd may keep them.
class DenseVectors final : public ColumnReader {
public:
    DenseVectors(StoredValues& values, const VectorType& type, std::size_t dimensions)
        : values_(values), type_(type), dimensions_(dimensions) {}

    ValueKind kind() const override {
        return {MyDatabaseId, ValueForm::vector, type_.element, dimensions_, 0};
    }
    std::uint64_t size(std::size_t) const override {
        return row_size(type_.element, dimensions_);
    }
    std::uint64_t read(ChosenRows rows, LaidOutBytes& bytes) const override {
        return fill_vectors(values_, rows, type_, dimensions_, bytes);
    }

private:
    StoredValues& values_;
    const VectorType& type_;
    std::size_t dimensions_;
};

class VectorReceiver final : public RepeatReceiver {
public:
    explicit VectorReceiver(VectorRows& rows) : rows_(rows) {}

    WantedColumns wanted_columns() const override { return {2, 2, kWanted}; }
    void check_columns(TupleDesc columns) override;
    int versioned_column() const override { return 1; }
    void forget_row_versions() override { rows_.forget_row_versions(); }
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool* nulls) override;
    void end_rows() override {
        show_rows(rows_.size(), rows_.bytes());
        rows_.end_rows(query());
        rows_.read_vectors();
    }
    bool takes_any_order() const override { return true; }
    bool take_remembered(const std::shared_ptr<const RememberedVectors>& rows) override {
        if (!rows_.take(rows)) return false;
        show_rows(rows_.size(), rows_.bytes());
        return true;
    }
    void keep_places() override { rows_.keep_places(); }
    std::span<const ItemPointerData> places() const override { return rows_.places(); }
    void copy_rows(std::size_t most,
                   std::shared_ptr<const RememberedVectors>& copied) const override {
        rows_.copy(most, copied);
    }
    void report_nulls(int64 rows, const char* among) override { report_null_vectors(rows, among); }

private:
    VectorRows& rows_;
};

void VectorReceiver::check_columns(TupleDesc columns) {
    const std::optional<VectorType> type = vector_type_of(base_type_of_column(columns, 1));
    if (!type)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the vectors of the inner query are of type %s",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                        errdetail("%s", kWanted),
                        vector_type_of(base_type_of_column(columns, 0))
                            ? errhint("Write the id before the vector, as in SELECT id, embedding.")
                            : errhint("Arrays of other numbers can be cast in the inner query, as "
                                      "in embedding::real[].")));
    rows_.set_type(*type);
}

void VectorReceiver::take_row(const Datum* values, const bool*) {
    rows_.collect(values[0], {values + 1, 1}, query(), row());
    show_rows_so_far(rows_.size(), [this] { return rows_.bytes(); });
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

void VectorRows::collect(Datum id, std::span<const Datum> values, const InnerQueryTraits& query,
                         const RowOrigin& row) {
    rows_.append_id(id);
    rows_.append_values(values, query, row);
}

void VectorRows::read_collected(std::size_t row, VectorValue& vector) {
    const VectorFault fault = read_vector(type_, rows_.values(0).detoasted(row), vector);
    if (fault == VectorFault::empty && type_.form == VectorType::Form::bits)
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                        errmsg("the bit string of %s has no bits", name_of(id(row)))));
    if (fault != VectorFault::none) raise_vector_fault(fault, name_of(id(row)));
    if (row == 0 || vector.dimensions == dimensions_) return;
    if (type_.form == VectorType::Form::bits)
        raise_different_lengths(first_name(), dimensions_, name_of(id(row)), vector.dimensions);
    else
        raise_different_dimensions(first_name(), dimensions_, name_of(id(row)), vector.dimensions);
}

/// Sparse vectors, each of which has as many elements as it has.
void VectorRows::append_collected() {
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);
    MemoryContext before = MemoryContextSwitchTo(context);
    for (std::size_t row = 0; row < size(); ++row) {
        CHECK_FOR_INTERRUPTS();
        VectorValue vector;
        read_collected(row, vector);
        append_row(vector);
        MemoryContextReset(context);
        show_step({"reading rows", row, size(), kNowhereYet});
    }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
}

/// `fault` is the first row that is no such vector, or the number of all rows.
void VectorRows::check_read(std::uint64_t fault) {
    if (fault == size()) return;
    VectorValue wrong;
    read_collected(fault, wrong);
    elog(ERROR, "the vector of %s was wrong and is right", name_of(id(fault)));
}

void VectorRows::read_vectors(Arrival arrival) {
    if (size() > 0) {
        VectorValue first;
        read_collected(0, first);
        dimensions_ = first.dimensions;
        if (sparse()) {
            append_collected();
        } else {
            const DenseVectors vectors(rows_.values(0), type_, dimensions_);
            unpacked_ = rows_.values(0).unpacked_bytes();
            check_read(read_column(rows_.values(0), vectors, laid_out_, arrival, again_));
        }
    }
    if (laid_out_.arrived()) rows_.release_values();
    finish();
}

bool VectorRows::read_vectors_if_alike() {
    if (size() > 0) {
        VectorValue first;
        if (read_vector(type_, rows_.values(0).detoasted(0), first) != VectorFault::none)
            return false;
        dimensions_ = first.dimensions;
        const DenseVectors vectors(rows_.values(0), type_, dimensions_);
        unpacked_ = rows_.values(0).unpacked_bytes();
        if (read_column(rows_.values(0), vectors, laid_out_, Arrival::awaited, again_) != size())
            return false;
    }
    rows_.release_values();
    finish();
    return true;
}

void VectorRows::await_vectors() {
    if (laid_out_.arrived()) return;
    const DenseVectors vectors(rows_.values(0), type_, dimensions_);
    check_read(await_column(rows_.values(0), vectors, laid_out_));
    rows_.release_values();
}

void VectorRows::copy(std::size_t most, std::shared_ptr<const RememberedVectors>& copied,
                      const RememberedKeyColumns& keys) const {
    copied.reset();
    if (resident_bytes() == 0 || rows_.ids().bytes() > most || !have_one_order(rows_.ids())) return;
    attempt_or_raise([&] {
        copied = std::make_shared<const RememberedVectors>(RememberedVectors{
            type_, dimensions_, laid_out_.resident(), unpacked_, rows_.ids().copy(), keys});
        if (copied->memory() > most) copied.reset();
    });
}

bool VectorRows::take(const std::shared_ptr<const RememberedVectors>& rows) {
    return rows->ids.type.oid == id_type().oid && take_vectors(rows);
}

bool VectorRows::take_vectors(const std::shared_ptr<const RememberedVectors>& rows) {
    if (rows->type.form != type_.form || rows->type.element != type_.element ||
        rows->ids.bytes > memory_limit_ ||
        !take_resident_column(rows->resident, rows->bytes(), rows->unpacked, laid_out_))
        return false;
    dimensions_ = rows->dimensions;
    unpacked_ = rows->unpacked;
    rows_.ids().take({rows, &rows->ids});
    finish();
    return true;
}

/// Whether the rows that were added have been read.
bool VectorRows::read_added(const RememberedVectors& rows, std::span<const AddedRow> added,
                            std::span<KeyColumn* const> keys) {
    if (added.empty()) return true;
    attempt_or_raise(
        [&] { added_ = std::make_unique<VectorRows>(word_, id_type(), memory_limit_); });
    added_->set_type(type_);
    const InnerQueryTraits plain{false, true};
    for (const AddedRow& row : added) added_->collect(row.id, {&row.value, 1}, plain);
    added_->end_rows(plain, keys);
    return added_->read_vectors_if_alike() && added_->dimensions() == rows.dimensions;
}

bool VectorRows::find_places_of_added(const RememberedVectors& rows) {
    if (added_ == nullptr) return true;
    auto* const ids = make_owned<RowIds>(CurrentMemoryContext, id_type(), memory_limit_);
    // The rows outlive this function, which is all that the ids are for.
    attempt_or_raise([&] { ids->take({std::shared_ptr<void>(), &rows.ids}); });
    return find_places(*ids, removed_, added_->rows_.ids(), rows_before_added_);
}

bool VectorRows::take(const std::shared_ptr<const RememberedVectors>& rows,
                      const RowChanges& changes, std::span<KeyColumn* const> keys) {
    attempt_or_raise([&] { removed_.assign(changes.removed.begin(), changes.removed.end()); });
    if (rows->ids.type.oid == id_type().oid && read_added(*rows, changes.added, keys) &&
        find_places_of_added(*rows) && take(rows))
        return true;
    forget_changes();
    return false;
}

bool VectorRows::take_without_order(const std::shared_ptr<const RememberedVectors>& rows,
                                    const RowChanges& changes) {
    attempt_or_raise([&] {
        removed_.assign(changes.removed.begin(), changes.removed.end());
        rows_before_added_.assign(changes.added.size(), static_cast<std::uint32_t>(rows->ids.size));
    });
    if (read_added(*rows, changes.added, {})) {
        const IdType own = id_type();
        attempt_or_raise([&] { rows_.set_id_type(rows->ids.type); });
        if (take_vectors(rows)) return true;
        attempt_or_raise([&] { rows_.set_id_type(own); });
    }
    forget_changes();
    return false;
}

void VectorRows::forget_changes() {
    removed_.clear();
    rows_before_added_.clear();
    release_added();
}

/// In the order of all rows.
std::size_t VectorRows::first_row() const {
    std::size_t first = 0;
    while (first < removed_.size() && removed_[first] == first) ++first;
    return !rows_before_added_.empty() && rows_before_added_[0] <= first ? size() : first;
}

void VectorRows::ids(std::span<const std::uint32_t> rows, Datum* ids) const {
    if (added_ == nullptr) return rows_.ids().at(rows, ids);
    for (std::size_t i = 0; i < rows.size(); ++i) ids[i] = id(rows[i]);
}

void VectorRows::release_added() {
    if (added_ != nullptr) added_->release();
    added_.reset();
}

void VectorRows::append_row(const VectorValue& vector) {
    dimensions_ = vector.dimensions;
    elements_.append(vector.elements, vector.stored * element_size(type_.element));
    if (!sparse()) return;
    columns_.append(vector.columns, vector.stored * sizeof(std::uint32_t));
    attempt_or_raise([&] { row_begins_.push_back(row_begins_.back() + vector.stored); });
}

void VectorRows::finish() {
    elements_.finish();
    columns_.finish();
}

std::uint64_t VectorRows::bytes() const {
    std::uint64_t bytes = laid_out_.size() + laid_out_columns_.size() + elements_.size() +
                          columns_.size() + rows_.ids().bytes();
    if (laid_out_.size() + elements_.size() == 0) bytes += rows_.unpacked_bytes();
    return bytes;
}

Vectors VectorRows::view() const {
    const bool laid_out = laid_out_.size() > 0;
    Vectors vectors{type_.element, size(),
                    dimensions_,   laid_out ? laid_out_.data() : elements_.data(),
                    row_begins_,   {}};
    if (sparse())
        vectors.columns = {reinterpret_cast<const std::uint32_t*>(
                               laid_out ? laid_out_columns_.data() : columns_.data()),
                           row_begins_.back()};
    return vectors;
}

void VectorRows::share() {
    if (laid_out_.size() > 0) return;
    elements_file_ = elements_.share();
    if (sparse()) columns_file_ = columns_.share();
}

VectorFiles VectorRows::files() const {
    if (laid_out_.size() == 0) return {view(), elements_file_.get(), columns_file_.get()};
    return {view(), laid_out_.share(),
            sparse() ? laid_out_columns_.share().descriptors().front() : -1, laid_out_.resident()};
}

/// On threads: what LaidOutBytes raises as errors is a status there.
void VectorRows::take_terms(const NumberedTexts& texts, bool leaves_out) {
    attempt_or_raise([&] { row_begins_.resize(size() + 1); });
    run_threaded([&](Execution& execution) {
        return count_terms(texts, leaves_out, row_begins_, execution);
    });
    if (row_begins_.back() == 0) return;
    const std::uint64_t bytes = row_begins_.back() * sizeof(std::uint32_t);
    laid_out_.create(bytes, cpu_threads());
    laid_out_columns_.create(bytes, 1);
    run_threaded([&](Execution& execution) {
        const auto sink = [this](std::uint64_t begin, std::span<const std::uint32_t> columns,
                                 std::span<const std::uint32_t> values) -> Status {
            const std::uint64_t at = begin * sizeof(std::uint32_t);
            GPUTEXT_TRY(laid_out_columns_.write(at, bytes_of(columns)));
            return laid_out_.write(at, bytes_of(values));
        };
        return number_terms(texts, row_begins_, sink, execution);
    });
    laid_out_.finish();
    laid_out_columns_.finish();
}

void VectorRows::release_vectors() {
    if (added_ != nullptr) added_->release_vectors();
    rows_.release_values();
    laid_out_.release();
    laid_out_columns_.release();
    elements_.release();
    columns_.release();
    elements_file_.reset();
    columns_file_.reset();
}

void VectorRows::release() {
    release_vectors();
    release_added();
    rows_.ids().release();
}

void report_null_vectors(int64 rows, const char* among) {
    ereport(
        NOTICE,
        (errmsg_plural("skipped %lld vector that is null%s", "skipped %lld vectors that are null%s",
                       static_cast<unsigned long>(rows), static_cast<long long>(rows), among)));
}

void report_null_bits(int64 rows, const char* among) {
    ereport(NOTICE, (errmsg_plural("skipped %lld bit string that is null%s",
                                   "skipped %lld bit strings that are null%s",
                                   static_cast<unsigned long>(rows), static_cast<long long>(rows),
                                   among)));
}

void run_vector_query(const InnerQuery& query, VectorRows& rows) {
    VectorReceiver receiver(rows);
    run_inner_query(query, receiver);
}

void check_same_dimensions(const VectorRows& a, const VectorRows& b, const char* first_of_a) {
    if (a.size() == 0 || b.size() == 0) return;
    if (a.sparse() != b.sparse())
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("sparse vectors cannot be compared with dense ones"),
                        errhint("sparsevec can be cast in the inner query, as in "
                                "embedding::vector.")));
    if (a.dimensions() == b.dimensions()) return;
    if (a.view().type == ElementType::bit)
        raise_different_lengths(a.first_name(), a.dimensions(), b.first_name(), b.dimensions());
    else
        raise_different_dimensions(first_of_a != nullptr ? first_of_a : a.first_name(),
                                   a.dimensions(), b.first_name(), b.dimensions());
}

}  // namespace gputext
