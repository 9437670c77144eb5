#include "extension/inputs/model_query.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "extension/base/failure.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/types/column_types.hpp"
#include "extension/types/text_arguments.hpp"
#include "extension/types/vector_type.hpp"

namespace gputext {

/// Takes in the rows of a model.
class ModelReceiver final : public RowReceiver {
public:
    ModelReceiver(const ModelColumns& wanted, ModelRows& model) : wanted_(wanted), model_(model) {}

    WantedColumns wanted_columns() const override {
        return {1, WantedColumns::kAnyColumns, wanted_detail()};
    }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool*) const override { return false; }
    void take_row(const Datum* values, const bool* nulls) override;
    void report_nulls(int64, const char*) override {}

private:
    struct VectorColumn {
        int column = -1;
        VectorType type{};
    };

    const char* wanted_detail() const;
    void find_columns(TupleDesc columns);
    void set_vector_column(TupleDesc columns, VectorColumn& vector) const;
    void append_vector(const VectorColumn& from, const Datum* values, const varlena* word,
                       PackedBytes& to);
    void append_elements(const VectorColumn& from, const VectorValue& vector, const varlena* word,
                         PackedBytes& to) const;
    void add_word(const varlena* word, std::uint64_t count);

    const ModelColumns& wanted_;
    ModelRows& model_;
    int word_ = -1, count_ = -1;
    bool narrow_count_ = false;  // integer
    VectorColumn vector_, output_vector_;
};

namespace {

/// Bytes of a word in a message; what is longer is cut.
constexpr int kLongestName = 200;

/// Elements that are converted at a time.
constexpr std::size_t kConvertedElements = 256;

const char* const kVectorTypes =
    "Vectors are of type real[], double precision[], integer[], or pgvector's vector or halfvec.";

/// In double quotes.
const char* quoted(const varlena* word) {
    const char* const text = VARDATA_ANY(word);
    const int length = static_cast<int>(VARSIZE_ANY_EXHDR(word));
    if (length <= kLongestName) return psprintf("\"%.*s\"", length, text);
    return psprintf("\"%.*s...\"", pg_mbcliplen(text, length, kLongestName), text);
}

int column_named(TupleDesc columns, const char* name) {
    for (int i = 0; i < columns->natts; ++i)
        if (std::strcmp(NameStr(TupleDescAttr(columns, i)->attname), name) == 0) return i;
    return -1;
}

[[noreturn]] void raise_wrong_type(TupleDesc columns, int column, const char* name,
                                   const char* wanted, const char* cast) {
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("column %s of the model is of type %s", name,
                           format_type_be(TupleDescAttr(columns, column)->atttypid)),
                    errdetail("%s", wanted),
                    errhint("It can be cast in the inner query, as in %s.", cast)));
    pg_unreachable();
}

[[noreturn]] void raise_null(const char* column, const varlena* word) {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    word == nullptr ? errmsg("column %s of the model is null", column)
                                    : errmsg("column %s of the model is null for the word %s",
                                             column, quoted(word))));
    pg_unreachable();
}

}  // namespace

// ---- Columns ----

const char* ModelReceiver::wanted_detail() const {
    return psprintf(
        "The query must give the columns word%s, vector%s, as word2vec does; other columns are "
        "ignored.",
        wanted_.counts ? ", count" : "", wanted_.output_vectors ? ", output_vector" : "");
}

void ModelReceiver::check_columns(TupleDesc columns) {
    find_columns(columns);
    if (!IsBinaryCoercible(base_type_of_column(columns, word_), TEXTOID))
        raise_wrong_type(columns, word_, "word", "Words are of type text.", "number::text AS word");
    if (wanted_.counts) {
        const Oid type = base_type_of_column(columns, count_);
        narrow_count_ = type == INT4OID;
        if (!narrow_count_ && type != INT8OID)
            raise_wrong_type(columns, count_, "count", "Counts are of type bigint or integer.",
                             "frequency::bigint AS count");
    }
    set_vector_column(columns, vector_);
    if (wanted_.output_vectors) set_vector_column(columns, output_vector_);
}

void ModelReceiver::find_columns(TupleDesc columns) {
    struct NamedColumn {
        const char* name;
        int* column;
    };
    NamedColumn wanted[4] = {{"word", &word_}, {"count", &count_}, {"vector", &vector_.column}};
    wanted[3] = {"output_vector", &output_vector_.column};
    const auto* const end =
        std::remove_if(std::begin(wanted), std::end(wanted), [this](const NamedColumn& column) {
            return (column.column == &count_ && !wanted_.counts) ||
                   (column.column == &output_vector_.column && !wanted_.output_vectors);
        });
    const char* missing = nullptr;
    bool any_named = false;
    for (const NamedColumn* column = wanted; column != end; ++column) {
        *column->column = column_named(columns, column->name);
        if (*column->column >= 0)
            any_named = true;
        else if (missing == nullptr)
            missing = column->name;
    }
    if (missing == nullptr) return;
    if (any_named || columns->natts != end - wanted)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_COLUMN), errmsg("the model has no column %s", missing),
                 errdetail("%s", wanted_detail()),
                 errhint("Columns can be named in the inner query, as in SELECT term AS "
                         "word.")));
    int position = 0;
    for (const NamedColumn* column = wanted; column != end; ++column) *column->column = position++;
}

void ModelReceiver::set_vector_column(TupleDesc columns, VectorColumn& vector) const {
    const std::optional<VectorType> type =
        vector_type_of(base_type_of_column(columns, vector.column));
    if (!type || type->form == VectorType::Form::sparse)
        raise_wrong_type(columns, vector.column, &vector == &vector_ ? "vector" : "output_vector",
                         kVectorTypes, "embedding::real[] AS vector");
    vector.type = *type;
}

// ---- Rows ----

void ModelReceiver::take_row(const Datum* values, const bool* nulls) {
    if (nulls[word_]) raise_null("word", nullptr);
    const varlena* const word = PG_DETOAST_DATUM_PACKED(values[word_]);
    if (nulls[vector_.column]) raise_null("vector", word);
    int64 count = 0;
    if (wanted_.counts) {
        if (nulls[count_]) raise_null("count", word);
        count =
            narrow_count_ ? int64{DatumGetInt32(values[count_])} : DatumGetInt64(values[count_]);
        if (count < 0)
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("the count of the word %s is negative: %lld", quoted(word),
                                   static_cast<long long>(count))));
    }
    add_word(word, static_cast<std::uint64_t>(count));
    append_vector(vector_, values, word, model_.vectors_);
    if (wanted_.output_vectors) {
        if (nulls[output_vector_.column]) raise_null("output_vector", word);
        append_vector(output_vector_, values, word, model_.output_vectors_);
    }
    show_rows(model_.words(), model_.bytes());
}

void ModelReceiver::add_word(const varlena* word, std::uint64_t count) {
    const std::size_t before = model_.words();
    attempt_or_raise([&] {
        const std::uint32_t number = model_.vocabulary_.add(view_of(word));
        if (wanted_.repeated) model_.row_words_.push_back(number);
        if (wanted_.counts) model_.counts_.push_back(count);
    });
    if (model_.words() == before && !wanted_.repeated)
        ereport(ERROR, (errcode(ERRCODE_CARDINALITY_VIOLATION),
                        errmsg("the model has the word %s more than once", quoted(word))));
}

void ModelReceiver::append_vector(const VectorColumn& from, const Datum* values,
                                  const varlena* word, PackedBytes& to) {
    VectorValue vector;
    const VectorFault fault = read_vector(from.type, values[from.column], vector);
    if (fault != VectorFault::none)
        raise_vector_fault(fault, psprintf("the word %s", quoted(word)));
    if (model_.dimensions_ == 0) model_.dimensions_ = vector.dimensions;
    if (vector.dimensions != model_.dimensions_)
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                        errmsg("a vector of the word %s has %zu elements, and those before it have "
                               "%zu",
                               quoted(word), vector.dimensions, model_.dimensions_)));
    append_elements(from, vector, word, to);
}

void ModelReceiver::append_elements(const VectorColumn& from, const VectorValue& vector,
                                    const varlena* word, PackedBytes& to) const {
    if (from.type.element == ElementType::float32) {
        to.append(vector.elements, vector.dimensions * sizeof(float));
        return;
    }
    const Vectors row{from.type.element, 1, vector.dimensions, vector.elements, {}, {}};
    double wide[kConvertedElements];
    float converted[kConvertedElements];
    for (std::size_t begin = 0; begin < vector.dimensions; begin += kConvertedElements) {
        const std::size_t count = std::min(kConvertedElements, vector.dimensions - begin);
        copy_elements(row, begin, count, wide);
        for (std::size_t i = 0; i < count; ++i) {
            converted[i] = static_cast<float>(wide[i]);
            if (!std::isfinite(converted[i]))
                ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                                errmsg("the vector of the word %s has an element that is out of "
                                       "range for type real",
                                       quoted(word))));
        }
        to.append(converted, count * sizeof(float));
    }
}

// ---- The model ----

std::span<const float> ModelRows::floats(const PackedBytes& bytes) {
    if (bytes.size() == 0) return {};
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

void ModelRows::finish() {
    vectors_.finish();
    output_vectors_.finish();
}

void ModelRows::release() {
    vectors_.release();
    output_vectors_.release();
}

void read_model(const char* sql, const ModelColumns& wanted, ModelRows& model) {
    ModelReceiver receiver(wanted, model);
    run_inner_query({sql, InvalidOid}, receiver);
    model.finish();
}

}  // namespace gputext
