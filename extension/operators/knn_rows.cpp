#include "extension/operators/knn_rows.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
}

#include <algorithm>
#include <atomic>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/inputs/term_rows.hpp"
#include "extension/inputs/vector_arguments.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/column_types.hpp"
#include "extension/types/vector_type.hpp"
#include "extension/values/row_threads.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give an id and a vector of type real[], double precision[], integer[], "
    "or pgvector's vector, halfvec or sparsevec; or an id and a text or tsvector; or an id, terms "
    "of type "
    "integer[] and their weights of type real[]; in this order, and after them a key of rows that "
    "may be neighbors, if wanted, and with exclude_key one of rows that may not.";

const char* const kBitColumns =
    "With this metric the inner query must give an id and a bit string of type bit or bit varying, "
    "in "
    "this order, and after them a key of rows that may be neighbors, if wanted, and with "
    "exclude_key "
    "one of rows that may not.";

const char* name_of(RowKind kind) {
    switch (kind) {
        case RowKind::vectors:
            return "vectors";
        case RowKind::texts:
            return "texts";
        case RowKind::weights:
            return "weights of terms";
        case RowKind::strings:
            return "strings";
        case RowKind::bits:
            return "bit strings";
    }
    pg_unreachable();
}

class KnnReceiver final : public RepeatReceiver {
public:
    /// Appends to `side`, which is one of the `rows`.
    KnnReceiver(const KnnInput& input, KnnRows& rows, VectorRows& side)
        : input_(input), rows_(rows), side_(side) {}

    WantedColumns wanted_columns() const override {
        return {2, (may_be_weights() ? 4 : 3) + (input_.exclude_key ? 1 : 0), wanted()};
    }
    int versioned_column() const override { return 1; }
    void forget_row_versions() override { side_.forget_row_versions(); }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override {
        return has_terms() ? terms_are_null(source_, nulls) : nulls[1];
    }
    void take_row(const Datum* values, const bool* nulls) override;
    void end_rows() override;
    bool takes_any_order() const override { return true; }
    bool take_remembered(const std::shared_ptr<const RememberedVectors>& rows) override {
        if (!has_vectors() || !side_.take(rows)) return false;
        take_keys(rows->keys);
        show_rows(all_rows(), all_bytes());
        return true;
    }
    bool take_changed(const std::shared_ptr<const RememberedVectors>& rows,
                      const RowChanges& changes) override;
    void keep_places() override {
        side_.keep_places();
        keeps_ = true;
    }
    std::span<const ItemPointerData> places() const override { return side_.places(); }
    void copy_rows(std::size_t most,
                   std::shared_ptr<const RememberedVectors>& copied) const override {
        if (has_vectors() && (keeps_keys() || !has_keys()))
            side_.copy(most, copied, rows_.kept_keys);
    }
    void report_nulls(int64 rows, const char* among) override {
        if (for_items()) rows_.left_out_items = rows;
        if (kind_ == RowKind::vectors)
            report_null_vectors(rows, among);
        else if (kind_ == RowKind::bits)
            report_null_bits(rows, among);
        else
            report_null_terms(source_, rows, among);
    }

private:
    const char* wanted() const {
        return input_.string_metric ? kStringColumns : input_.bit_metric ? kBitColumns : kWanted;
    }
    /// Whether the metric is one of weights of terms, which have a column more than other rows.
    bool may_be_weights() const {
        return !input_.string_metric && !input_.bit_metric && !input_.bm25() &&
               (input_.metric == Metric::cosine || input_.metric == Metric::inner_product);
    }
    bool has_terms() const { return kind_ == RowKind::texts || kind_ == RowKind::weights; }
    /// Whether they are read as vectors are.
    bool has_vectors() const { return kind_ == RowKind::vectors || kind_ == RowKind::bits; }
    void set_types(TupleDesc columns);
    void set_keys(TupleDesc columns);
    void set_key(TupleDesc columns, int column, KnnKeys& keys) const;
    bool has_keys() const { return match_column_ != kNoColumn || exclude_column_ != kNoColumn; }
    /// Whether keys may be remembered with the rows.
    bool keeps_keys() const { return keeps_ && has_vectors() && has_keys(); }
    KeyColumn& column_of(KnnKeys& keys) const { return for_items() ? keys.items : keys.queries; }
    /// Calls work(keys, column, none) for each column of keys. `none` is the number of a row whose
    /// key is null, and of a query whose key no item has.
    template <class Work>
    void each_key(const Work& work) const;
    void take_key(const Datum* values, const bool* nulls, int column, KnnKeys& keys,
                  std::uint32_t none);
    void end_key(KnnKeys& keys, std::uint32_t none);
    void end_kept_key(KnnKeys& keys, std::uint32_t none);
    void end_kept_keys();
    bool may_keep(std::size_t bytes_of_keys) const;
    void look_at_own_keys();
    void take_keys(const RememberedKeyColumns& kept, std::span<const AddedRow> added = {});
    bool for_items() const { return &side_ == &rows_.items; }
    void check_call() const;
    std::uint64_t all_rows() const { return rows_.items.size() + rows_.queries.size(); }
    std::uint64_t all_bytes() const { return rows_.items.bytes() + rows_.queries.bytes(); }

    const KnnInput& input_;
    KnnRows& rows_;
    VectorRows& side_;
    RowKind kind_{};
    TermSource source_{};
    StringForm form_{};
    int match_column_ = kNoColumn, exclude_column_ = kNoColumn;
    bool keeps_ = false;  // rows are to be remembered
};

[[noreturn]] void raise_wrong_types(TupleDesc columns) {
    const char* const second = format_type_be(TupleDescAttr(columns, 1)->atttypid);
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("the inner query gives neither vectors nor texts, but values of type %s",
                           second),
                    errdetail("%s", kWanted),
                    errhint("Other types can be cast in the inner query, as in embedding::real[] "
                            "or body::text.")));
    pg_unreachable();
}

/// Raises an error for what looks like terms and weights of another type, rather than take the
/// weights for a key.
void check_weights(TupleDesc columns) {
    if (columns->natts < 3 || base_type_of_column(columns, 1) != INT4ARRAYOID) return;
    const Oid third = base_type_of_column(columns, 2);
    if (third == FLOAT8ARRAYOID || third == NUMERICARRAYOID)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the inner query gives %s and %s, not terms of type integer[] and "
                               "weights of type real[]",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid),
                               format_type_be(TupleDescAttr(columns, 2)->atttypid)),
                        errdetail("%s", kWanted)));
}

/// The type of a column of bits. Raises an error where the column or the metric is another one.
VectorType bits_of(TupleDesc columns, const KnnInput& input) {
    const std::optional<VectorType> type = bit_type_of(base_type_of_column(columns, 1));
    if (type && input.bit_metric) return *type;
    const char* const name = format_type_be(TupleDescAttr(columns, 1)->atttypid);
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             input.bit_metric ? errmsg("metric '%s' compares bit strings, not values of type %s",
                                       name_of(*input.bit_metric), name)
                              : errmsg("values of type %s cannot be compared by this metric", name),
             input.bit_metric ? errdetail("%s", kBitColumns) : 0,
             input.bit_metric
                 ? errhint("Hashes of type bigint can be cast in the inner query, as in "
                           "hash::bit(64), and vectors of pgvector be turned into bits, as in "
                           "binary_quantize(embedding).")
                 : errhint("The metrics of bit strings are 'hamming' and 'jaccard'.")));
    pg_unreachable();
}

/// Sets `kind_` and the types of one inner query from its columns.
void KnnReceiver::set_types(TupleDesc columns) {
    if (input_.string_metric) {
        kind_ = RowKind::strings;
        source_ = TermSource::text;
        form_ = string_form_of(columns, *input_.string_metric);
        side_.set_type({VectorType::Form::dense, ElementType::int32});
        return;
    }
    if (input_.bit_metric || bit_type_of(base_type_of_column(columns, 1))) {
        kind_ = RowKind::bits;
        side_.set_type(bits_of(columns, input_));
        return;
    }
    check_weights(columns);
    const std::optional<TermSource> source = term_source_of(columns);
    const auto vector = source == TermSource::weights
                            ? std::optional<VectorType>()
                            : vector_type_of(base_type_of_column(columns, 1));
    if (vector) {
        kind_ = RowKind::vectors;
        side_.set_type(*vector);
        return;
    }
    if (!source) raise_wrong_types(columns);
    kind_ = *source == TermSource::weights ? RowKind::weights : RowKind::texts;
    source_ = *source;
    set_term_type(source_, side_);
}

/// What of the call depends on what the rows are.
void KnnReceiver::check_call() const {
    if (input_.bm25() && kind_ != RowKind::texts)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("metric 'bm25' is not for %s", name_of(kind_)),
                 errdetail("It weighs the terms of texts and tsvector."),
                 errhint("Inner products of vectors, and of weights that you have computed, are of "
                         "metric 'inner_product'.")));
    if (kind_ == RowKind::texts && !input_.bm25() && input_.metric != Metric::cosine)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("metric must be 'cosine', 'bm25' or one of strings, as "
                               "'edit_rate', for texts")));
    if (kind_ == RowKind::weights && !may_be_weights())
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("metric must be 'cosine' or 'inner_product' for %s", name_of(kind_))));
    if (!has_terms() && input_.terms.min_document_frequency != 1)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("min_document_frequency is not for %s", name_of(kind_)),
                 has_vectors() ? errdetail("It is for texts and for weights of terms.")
                               : errdetail("It is for texts by metric 'cosine' or 'bm25', and for "
                                           "weights of terms.")));
    if (kind_ != RowKind::texts && input_.frequencies != nullptr)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("frequencies are not for %s", name_of(kind_)),
                        errdetail("They are the document frequencies of the terms of texts.")));
}

/// Which of the columns behind vectors, texts or weights are keys.
void KnnReceiver::set_keys(TupleDesc columns) {
    const int first = kind_ == RowKind::weights ? 3 : 2, last = columns->natts - 1;
    if (input_.exclude_key) {
        if (last < first)
            ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                            errmsg("the inner query has no column with the key that excludes"),
                            errdetail("With exclude_key the last column is a key: rows of equal "
                                      "keys are no neighbors."),
                            errhint("Add the key after the other columns, as in SELECT id, "
                                    "embedding, author FROM ...")));
        exclude_column_ = last;
    }
    if (last - (input_.exclude_key ? 1 : 0) >= first) match_column_ = first;
    const int most = first + (match_column_ != kNoColumn) + (exclude_column_ != kNoColumn);
    if (columns->natts != most)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the inner query has %d columns, not %d or %d", columns->natts,
                               most - 1, most),
                        errdetail("%s", wanted()),
                        errhint("Several columns can be one key, as in ROW(country, language).")));
    set_key(columns, match_column_, rows_.match);
    set_key(columns, exclude_column_, rows_.exclude);
}

/// Of the items at first; of the queries it has to be the same.
void KnnReceiver::set_key(TupleDesc columns, int column, KnnKeys& keys) const {
    const bool given = column != kNoColumn;
    const Oid collation = given ? TupleDescAttr(columns, column)->attcollation : InvalidOid;
    if (for_items()) {
        keys.given = given;
        if (given) keys.numbers.set_type(base_type_of_column(columns, column), collation);
        return;
    }
    if (given != keys.given)
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("only the inner query of the %s has a key", given ? "queries" : "items"),
                 errdetail("Only a query and an item of equal keys can be neighbors."),
                 errhint("Add the key to both inner queries, or to none.")));
    if (!given) return;
    const Oid type = base_type_of_column(columns, column);
    if (type != keys.numbers.type())
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("keys of type %s cannot be compared with keys of type %s",
                               format_type_be(type), format_type_be(keys.numbers.type())),
                        errdetail("The keys of queries and items must be of one type."),
                        errhint("Keys can be cast in the inner queries, as in key::bigint.")));
    common_collation(collation, keys.numbers.collation(), "keys", "key");
    keys.numbers.close();
    if (keeps_keys()) keys.own.set_type(type, collation);
}

void KnnReceiver::check_columns(TupleDesc columns) {
    set_types(columns);
    if (for_items()) {
        rows_.kind = kind_;
        check_call();
    } else if (kind_ != rows_.kind) {
        const bool text_for_vector = kind_ != RowKind::weights && rows_.kind != RowKind::weights;
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("queries that are %s cannot be compared with items that are %s",
                        name_of(kind_), name_of(rows_.kind)),
                 text_for_vector ? errhint("A vector that is written as text can be cast in the "
                                           "inner query, as in '{0.1,0.2}'::real[].")
                                 : 0));
    }
    if (kind_ == RowKind::strings) {
        const bool bytes = form_ == StringForm::bytes;
        if (!for_items() && bytes != rows_.bytes)
            ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                            errmsg("queries that are %s cannot be compared with items that are %s",
                                   bytes ? "bytea" : "texts", rows_.bytes ? "bytea" : "texts")));
        rows_.bytes = bytes;
    }
    set_keys(columns);
    (for_items() ? rows_.item_collation : rows_.query_collation) =
        TupleDescAttr(columns, 0)->attcollation;
}

/// Numbers that no key has: an item's and a query's are never equal.
constexpr std::uint32_t kItemAlone = UINT32_MAX, kQueryAlone = UINT32_MAX - 1;
// So items have the numbers of keys that are kept.
static_assert(kNoKey == RememberedKeys::kNull && kItemAlone == RememberedKeys::kNull);

template <class Work>
void KnnReceiver::each_key(const Work& work) const {
    if (match_column_ != kNoColumn) work(rows_.match, match_column_, kNoKey);
    if (exclude_column_ != kNoColumn)
        work(rows_.exclude, exclude_column_, for_items() ? kItemAlone : kQueryAlone);
}

void KnnReceiver::take_key(const Datum* values, const bool* nulls, int column, KnnKeys& keys,
                           std::uint32_t none) {
    KeyColumn& side = column_of(keys);
    if (keys.numbers.bitwise())
        side.append(keys.numbers, values[column], nulls[column]);
    else if (keeps_keys())
        side.append(for_items() ? keys.numbers : keys.own, values[column], nulls[column],
                    RememberedKeys::kNull, none);
    else
        side.append(keys.numbers, values[column], nulls[column], none, none);
}

/// Behind the last row.
void KnnReceiver::end_key(KnnKeys& keys, std::uint32_t none) {
    if (!keys.numbers.bitwise()) return;
    if (for_items())
        keys.items.number_by(keys.table, keys.numbers, none);
    else if (keeps_keys())
        keys.queries.number_by(keys.own_table, keys.numbers, RememberedKeys::kNull);
    else
        keys.queries.look_up_in(keys.table, none, none);
}

/// When keys are numbered that are to be remembered: those of queries get the numbers of the
/// items'.
void KnnReceiver::end_kept_key(KnnKeys& keys, std::uint32_t none) {
    if (for_items()) {
        keys.items.keep(keys.numbers, keys.table);
        keys.items.use_own_numbers();
        return;
    }
    keys.queries.keep(keys.own, keys.own_table);
    keys.release_own();
    keys.queries.look_up_kept(keys.numbers, keys.table, none, none);
}

/// In place of all rows, some of which were added.
void KnnReceiver::take_keys(const RememberedKeyColumns& kept, std::span<const AddedRow> added) {
    each_key([&](KnnKeys& keys, int column, std::uint32_t none) {
        const auto at = static_cast<std::size_t>(column - 2);
        KeyColumn& side = column_of(keys);
        side.take(kept[at]);
        if (!for_items()) return side.look_up_kept(keys.numbers, keys.table, none, none);
        const bool bitwise = keys.numbers.bitwise();
        if (bitwise)
            for (const AddedRow& row : added)
                keys.added.append(keys.numbers, row.keys[at].value, row.keys[at].isnull);
        side.number_kept(keys.numbers, keys.table, none, keys.added);
        if (bitwise) return;
        for (const AddedRow& row : added)
            keys.added.append(keys.numbers, row.keys[at].value, row.keys[at].isnull, none, none);
    });
}

bool KnnReceiver::take_changed(const std::shared_ptr<const RememberedVectors>& rows,
                               const RowChanges& changes) {
    // Where both ids and keys exclude, the search leaves out one of them alone.
    if (!for_items() || kind_ != RowKind::vectors || (input_.exclude_self && input_.exclude_key))
        return false;
    take_keys(rows->keys, changes.added);
    KeyColumn* columns[2];
    std::size_t count = 0;
    each_key([&](KnnKeys& keys, int, std::uint32_t) { columns[count++] = &keys.added; });
    if (!side_.take(rows, changes, {columns, changes.added.empty() ? 0 : count})) {
        each_key([](KnnKeys& keys, int, std::uint32_t) {
            keys.items.clear();
            keys.added.clear();
        });
        return false;
    }
    show_rows(all_rows(), all_bytes());
    return true;
}

/// When keys of all rows are numbered and in order.
void KnnReceiver::end_kept_keys() {
    rows_.kept_keys = {};
    if (!keeps_keys()) return;
    each_key([&](KnnKeys& keys, int column, std::uint32_t none) {
        end_kept_key(keys, none);
        rows_.kept_keys[static_cast<std::size_t>(column - 2)] = column_of(keys).kept();
    });
}

/// Whether keys of so many bytes can be remembered with the rows so far.
bool KnnReceiver::may_keep(std::size_t bytes_of_keys) const {
    const std::size_t columns = (match_column_ != kNoColumn) + (exclude_column_ != kNoColumn);
    const std::size_t rows = side_.size() * (sizeof(Datum) + columns * sizeof(std::uint32_t));
    return rows + bytes_of_keys <= std::min(scan_memory(), side_.memory_limit() / 2);
}

/// Where queries have too many keys to be remembered, those that no item has are forgotten: that
/// they are to be remembered is no reason for an error.
void KnnReceiver::look_at_own_keys() {
    constexpr std::size_t kRowsBetweenLooks = 256;
    constexpr std::size_t kBytesOfNumbering = 48;  // of a key in a table of different ones
    if (for_items() || !keeps_keys()) return;
    const std::size_t own = rows_.match.own.bytes() + rows_.exclude.own.bytes();
    if (side_.size() % kRowsBetweenLooks != 0 && own < side_.memory_limit() / 8) return;
    std::size_t numbering = 0;
    each_key([&](const KnnKeys& keys, int, std::uint32_t) {
        if (keys.numbers.bitwise()) numbering += kBytesOfNumbering * side_.size();
    });
    if (may_keep(own) && numbering <= side_.memory_limit() / 2) return;
    each_key([&](KnnKeys& keys, int, std::uint32_t none) {
        if (keys.numbers.bitwise()) return;
        end_kept_key(keys, none);
        keys.queries.keep_no_more();
    });
    keeps_ = false;
}

void KnnReceiver::take_row(const Datum* values, const bool* nulls) {
    if (has_keys())
        each_key([&](KnnKeys& keys, int column, std::uint32_t none) {
            take_key(values, nulls, column, keys, none);
        });
    if (has_terms())
        collect_terms(source_, values, query(), row(), side_);
    else
        side_.collect(values[0], {values + 1, 1}, query(), row());
    look_at_own_keys();
    show_rows_so_far(all_rows(), [this] { return all_bytes(); });
}

void KnnReceiver::end_rows() {
    show_rows(all_rows(), all_bytes());
    if (for_items() && !may_keep(rows_.match.numbers.bytes() + rows_.exclude.numbers.bytes()))
        keeps_ = false;
    KeyColumn* columns[2];
    std::size_t count = 0;
    each_key([&](KnnKeys& keys, int, std::uint32_t none) {
        end_key(keys, none);
        columns[count++] = &column_of(keys);
    });
    side_.end_rows(query(), {columns, count});
    end_kept_keys();
    // Where a device searches, the session itself looks at no item.
    const bool later = for_items() && device_setting() != DeviceSetting::cpu;
    if (has_vectors())
        side_.read_vectors(later ? Arrival::later : Arrival::awaited);
    else if (kind_ == RowKind::strings)
        read_strings(form_, *input_.string_metric, side_,
                     for_items() ? rows_.item_strings : rows_.query_strings);
    else
        read_terms(source_, input_.config, *rows_.terms, side_);
}

/// Calls count(number) for each of the rows' numbers below `most`.
template <class Count>
void each_number(std::span<const std::uint32_t> numbers, std::size_t most, const Count& count) {
    for (const std::uint32_t number : numbers)
        if (number < most) count(number);
}

/// Calls work(numbers) for parts of the numbers, on the execution's threads.
template <class Work>
Status each_part(std::span<const std::uint32_t> numbers, Execution& execution, const Work& work) {
    constexpr std::size_t kPart = std::size_t{1} << 16;
    const std::size_t parts = (numbers.size() + kPart - 1) / kPart;
    execution.begin_phase("counting pairs", parts);
    return execution.parallel_for(parts, [&](std::size_t part, unsigned) {
        const std::size_t begin = part * kPart;
        work(numbers.subspan(begin, std::min(kPart, numbers.size() - begin)));
        return Status();
    });
}

/// Pairs of a query and an item of equal keys.
double pairs_of(const KnnKeys& keys) {
    std::atomic<std::uint64_t> pairs = 0;
    auto& items = *make_owned<std::vector<std::uint32_t>>(CurrentMemoryContext);
    attempt_or_raise([&] { items.resize(keys.size()); });
    const auto& of_items = keys.items.numbers();
    const auto& of_queries = keys.queries.numbers();
    run_on_rows(of_items.size() + of_queries.size(), [&](Execution& execution) -> Status {
        GPUTEXT_TRY(each_part(of_items, execution, [&](std::span<const std::uint32_t> part) {
            each_number(part, items.size(), [&](std::uint32_t number) {
                std::atomic_ref(items[number]).fetch_add(1, std::memory_order_relaxed);
            });
        }));
        return each_part(of_queries, execution, [&](std::span<const std::uint32_t> part) {
            std::uint64_t some = 0;
            each_number(part, items.size(), [&](std::uint32_t number) { some += items[number]; });
            pairs.fetch_add(some, std::memory_order_relaxed);
        });
    });
    items = {};
    return static_cast<double>(pairs);
}

/// Items of the id that most items have. Ids are numbered by rows of both sides.
std::uint32_t most_of_one_id(const NumberedIds& ids) {
    std::uint32_t most = 0;
    attempt_or_raise([&]() -> Status {
        std::vector<std::uint32_t> items(ids.queries.size() + ids.items.size());
        const Stop stop = stop_on_interrupt();
        for (std::size_t row = 0; row < ids.items.size(); ++row) {
            if (row % kLookEvery == 0 && stop()) return Status::cancelled();
            most = std::max(most, ++items[ids.items[row]]);
        }
        return {};
    });
    return most;
}

/// Whether the rows of the items that were read are those that the queries' inner query gives.
bool are_queries_too(const KnnInput& input, const KnnRows& rows, const InnerQueryTraits& query) {
    return std::strcmp(input.queries.sql, input.items.sql) == 0 && query.repeatable &&
           !rows.match.given && !rows.exclude.given && rows.items.added() == nullptr &&
           rows.items.removed().empty();
}

/// The items' rows are there.
void take_items_as_queries(const KnnInput& input, KnnReceiver& receiver, KnnRows& rows) {
    rows.one_side = true;
    rows.query_collation = rows.item_collation;
    // The session looks at queries.
    rows.items.await_vectors();
    if (rows.left_out_items > 0) receiver.report_nulls(rows.left_out_items, input.queries.among);
}

void read_both_sides(const KnnInput& input, KnnRows& rows) {
    KnnReceiver items(input, rows, rows.items);
    run_inner_query(input.items, items);
    rows.terms->closed = true;
    if (are_queries_too(input, rows, items.query()))
        return take_items_as_queries(input, items, rows);
    KnnReceiver queries(input, rows, rows.queries);
    run_inner_query(input.queries, queries);
}

}  // namespace

void read_knn_rows(const KnnInput& input, KnnRows& rows) {
    if (input.frequencies != nullptr)
        read_frequencies(input.frequencies, input.bm25(), *rows.terms, rows.frequencies);
    read_both_sides(input, rows);
    if (rows.kind == RowKind::vectors || rows.kind == RowKind::bits) {
        check_same_dimensions(rows.query_rows(), rows.items);
    } else if (rows.kind != RowKind::strings) {
        rows.items.set_dimensions(rows.terms->vocabulary.size());
        rows.query_rows().set_dimensions(rows.terms->vocabulary.size());
    }
    rows.terms.reset();
    if (rows.match.given) rows.matching_pairs = pairs_of(rows.match);
    for (KnnKeys* keys : {&rows.match, &rows.exclude}) keys->release_keys();
    if (input.exclude_self) {
        const Oid collation =
            common_collation(rows.query_collation, rows.item_collation, "ids", "id");
        number_ids(rows.query_rows(), rows.items, collation, rows.numbers);
        if (rows.items.added() != nullptr)
            number_ids(rows.query_rows(), *rows.items.added(), collation, rows.added_numbers);
    }
    if (input.exclude_self && input.exclude_key) rows.most_of_one_id = most_of_one_id(rows.numbers);
}

}  // namespace gputext
