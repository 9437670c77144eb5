#include "extension/inputs/linkage_model_query.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/types/column_types.hpp"

namespace gputext {
namespace {

/// Match weights that were stored as text, or rounded to real, may differ by less.
constexpr double kSameWeight = 1e-6;
constexpr double kSameProbability = 1e-6;
/// Rows of the largest model.
constexpr std::size_t kMostRows = 1 + kMostFields * (kMostConditions + 1);

const char* const kWanted =
    "The query of the model must give the columns field, level, condition, term_frequency, m and "
    "u, as linkage_model does, and may give match_weight; other columns are ignored.";

const char* const kPrior =
    "In the row whose field is null m is the probability that a pair matches, and u is 1 - m.";

struct ModelRow {
    std::optional<std::string> field;
    std::optional<std::int64_t> level;
    std::optional<std::string> condition;
    bool term_frequencies = false;
    std::optional<double> m, u, match_weight;
};

// ---- Rows ----

enum class ColumnKind { text, integer, number, flag };

struct Column {
    const char* name;
    ColumnKind kind;
    const char* cast;  // for hints
    bool required = true;
    int place = -1;
    Oid type = InvalidOid;
};

class LinkageModelReceiver final : public RowReceiver {
public:
    explicit LinkageModelReceiver(std::vector<ModelRow>& rows) : rows_(rows) {}

    WantedColumns wanted_columns() const override {
        return {1, WantedColumns::kAnyColumns, kWanted};
    }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool*) const override { return false; }
    void take_row(const Datum* values, const bool* nulls) override;
    void report_nulls(int64, const char*) override {}

private:
    enum Place { field, level, condition, term_frequencies, m, u, match_weight, kColumns };

    const varlena* text(Place place, const Datum* values, const bool* nulls) const;
    /// False where it is null or missing.
    bool number(Place place, const Datum* values, const bool* nulls, double& number) const;

    std::vector<ModelRow>& rows_;
    Column columns_[kColumns] = {
        {"field", ColumnKind::text, "field::text"},
        {"level", ColumnKind::integer, "level::integer"},
        {"condition", ColumnKind::text, "condition::text"},
        {"term_frequency", ColumnKind::flag, "term_frequency::boolean"},
        {"m", ColumnKind::number, "m::double precision"},
        {"u", ColumnKind::number, "u::double precision"},
        {"match_weight", ColumnKind::number, "match_weight::double precision", false},
    };
};

bool is_integer(Oid type) {
    return type == INT2OID || type == INT4OID || type == INT8OID;
}

bool is_of_kind(Oid type, ColumnKind kind) {
    switch (kind) {
        case ColumnKind::text:
            return IsBinaryCoercible(type, TEXTOID);
        case ColumnKind::flag:
            return type == BOOLOID;
        case ColumnKind::integer:
            return is_integer(type);
        case ColumnKind::number:
            return is_integer(type) || type == FLOAT4OID || type == FLOAT8OID || type == NUMERICOID;
    }
    return false;
}

void LinkageModelReceiver::check_columns(TupleDesc columns) {
    for (Column& wanted : columns_) {
        for (int i = 0; i < columns->natts; ++i) {
            if (std::strcmp(NameStr(TupleDescAttr(columns, i)->attname), wanted.name) != 0)
                continue;
            if (wanted.place >= 0)
                ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_COLUMN),
                                errmsg("the model has several columns \"%s\"", wanted.name),
                                errhint("Give all but one of them another name.")));
            wanted.place = i;
        }
        if (wanted.place < 0 && wanted.required)
            ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                            errmsg("the model has no column \"%s\"", wanted.name),
                            errdetail("%s", kWanted)));
        if (wanted.place < 0) continue;
        wanted.type = base_type_of_column(columns, wanted.place);
        if (!is_of_kind(wanted.type, wanted.kind))
            ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                            errmsg("column %s of the model is of type %s", wanted.name,
                                   format_type_be(TupleDescAttr(columns, wanted.place)->atttypid)),
                            errhint("It can be cast in the inner query, as in %s.", wanted.cast)));
    }
}

const varlena* LinkageModelReceiver::text(Place place, const Datum* values,
                                          const bool* nulls) const {
    const int column = columns_[place].place;
    return nulls[column] ? nullptr : PG_DETOAST_DATUM_PACKED(values[column]);
}

bool LinkageModelReceiver::number(Place place, const Datum* values, const bool* nulls,
                                  double& number) const {
    const Column& column = columns_[place];
    if (column.place < 0 || nulls[column.place]) return false;
    const Datum value = values[column.place];
    switch (column.type) {
        case INT2OID:
            number = DatumGetInt16(value);
            break;
        case INT4OID:
            number = DatumGetInt32(value);
            break;
        case INT8OID:
            number = static_cast<double>(DatumGetInt64(value));
            break;
        case FLOAT4OID:
            number = static_cast<double>(DatumGetFloat4(value));
            break;
        case FLOAT8OID:
            number = DatumGetFloat8(value);
            break;
        default:
            number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
    }
    return true;
}

void LinkageModelReceiver::take_row(const Datum* values, const bool* nulls) {
    if (rows_.size() == kMostRows)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the model has more than %zu rows", kMostRows),
                        errhint("A model has at most %zu fields of %zu conditions. A table of "
                                "several models needs a WHERE in the inner query.",
                                kMostFields, kMostConditions)));
    const varlena* const field_name = text(field, values, nulls);
    const varlena* const words = text(condition, values, nulls);
    double numbers[kColumns];
    bool has[kColumns];
    for (const Place place : {level, m, u, match_weight})
        has[place] = number(place, values, nulls, numbers[place]);
    const int flag = columns_[term_frequencies].place;
    const bool frequencies = !nulls[flag] && DatumGetBool(values[flag]);
    attempt_or_raise([&] {
        ModelRow& row = rows_.emplace_back();
        const auto copy = [](const varlena* value) {
            return std::string(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
        };
        if (field_name != nullptr) row.field = copy(field_name);
        if (words != nullptr) row.condition = copy(words);
        if (has[level]) row.level = static_cast<std::int64_t>(numbers[level]);
        row.term_frequencies = frequencies;
        if (has[m]) row.m = numbers[m];
        if (has[u]) row.u = numbers[u];
        if (has[match_weight]) row.match_weight = numbers[match_weight];
    });
}

// ---- The model of the rows ----

Status wrong(std::string message, std::string hint = {}) {
    return {ErrorCode::invalid_argument, std::move(message), std::move(hint)};
}

std::string number_text(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.15g", number);
    return text;
}

/// m and u of a row, whose weight is theirs if it is given.
Status take_probabilities(const ModelRow& row, const std::string& of, LevelProbabilities& level) {
    const auto check = [&](const char* name, const std::optional<double>& given) -> Status {
        if (!given) return wrong(std::string(name) + of + " is null");
        if (!(*given > 0 && *given <= 1))
            return wrong(std::string(name) + of + " is " + number_text(*given) +
                             ", not above 0 and at most 1",
                         "m is the probability of the level among pairs that match, u among those "
                         "that do not. A level that never occurs gets a small one, such as 1e-6.");
        return {};
    };
    GPUTEXT_TRY(check("m", row.m));
    GPUTEXT_TRY(check("u", row.u));
    level = {*row.m, *row.u};
    const double weight = level.match_weight();
    if (row.match_weight && !(std::abs(*row.match_weight - weight) <= kSameWeight))
        return wrong("match_weight" + of + " is " + number_text(*row.match_weight) +
                         ", and log2(m / u) is " + number_text(weight),
                     "Change m and u, and leave match_weight out of the query of the model, or "
                     "compute it anew as ln(m / u) / ln(2).");
    return {};
}

Status take_prior(const std::vector<ModelRow>& rows, LinkageModel& model) {
    const ModelRow* prior = nullptr;
    for (const ModelRow& row : rows) {
        if (row.field) continue;
        if (prior != nullptr)
            return wrong("the model has several rows whose field is null", kPrior);
        prior = &row;
    }
    if (prior == nullptr) return wrong("the model has no row of the prior probability", kPrior);
    LevelProbabilities probabilities;
    GPUTEXT_TRY(take_probabilities(*prior, " of the prior", probabilities));
    if (probabilities.m >= 1 || std::abs(probabilities.m + probabilities.u - 1) > kSameProbability)
        return wrong("m and u of the prior are " + number_text(probabilities.m) + " and " +
                         number_text(probabilities.u) + ", whose sum is not 1",
                     kPrior);
    model.prior = probabilities.m;
    return {};
}

/// The condition of a level, which is "else" at level 0.
Status take_condition(const ModelRow& row, const std::string& of, std::int64_t level,
                      FieldComparison& comparison) {
    const std::string text = row.condition.value_or("");
    if (level == 0) {
        if (text == "else") return {};
        return wrong("the condition" + of + " is \"" + text + "\", not \"else\"",
                     "Level 0 is of the pairs for which no condition holds.");
    }
    const Result<Condition> condition = read_condition(text);
    if (!condition.ok())
        return wrong(condition.status().message() + ", the condition" + of,
                     condition.status().hint());
    comparison.conditions.push_back(*condition);
    return {};
}

/// The levels of a field, by their rows.
Status take_levels(std::vector<const ModelRow*> rows, FieldModel& field) {
    const std::string of_field = " of field \"" + field.comparison.field + "\"";
    for (const ModelRow* const row : rows)
        if (!row->level) return wrong("a level" + of_field + " is null");
    std::ranges::sort(rows, {}, [](const ModelRow* row) { return *row->level; });
    field.term_frequencies = rows[0]->term_frequencies;
    field.levels.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::int64_t level = *rows[i]->level;
        const std::string of = " of level " + std::to_string(level) + of_field;
        if (i > 0 && level == *rows[i - 1]->level) return wrong("the model has several rows" + of);
        if (level != static_cast<std::int64_t>(i))
            return wrong("the model has no row of level " + std::to_string(i) + of_field,
                         "Levels are numbered from 0, \"else\", without a gap.");
        if (rows[i]->term_frequencies != field.term_frequencies)
            return wrong("term_frequency" + of + " is not that of its other levels");
        GPUTEXT_TRY(take_probabilities(*rows[i], of, field.levels[i]));
        GPUTEXT_TRY(take_condition(*rows[i], of, level, field.comparison));
    }
    std::ranges::reverse(field.comparison.conditions);
    return {};
}

Status make_model(const std::vector<ModelRow>& rows, LinkageModel& model) {
    GPUTEXT_TRY(take_prior(rows, model));
    std::vector<std::vector<const ModelRow*>> of_fields;
    for (const ModelRow& row : rows) {
        if (!row.field) continue;
        std::size_t i = 0;
        while (i < model.fields.size() && model.fields[i].comparison.field != *row.field) ++i;
        if (i == model.fields.size()) {
            model.fields.emplace_back().comparison.field = *row.field;
            of_fields.emplace_back();
        }
        of_fields[i].push_back(&row);
    }
    if (model.fields.empty())
        return wrong("the model has no fields", "linkage_model estimates a model.");
    for (std::size_t i = 0; i < model.fields.size(); ++i)
        GPUTEXT_TRY(take_levels(of_fields[i], model.fields[i]));
    return check_model(model);
}

}  // namespace

void read_linkage_model(const char* sql, LinkageModel& model) {
    auto* const rows = make_owned<std::vector<ModelRow>>(CurrentMemoryContext);
    LinkageModelReceiver receiver(*rows);
    run_inner_query({sql, InvalidOid}, receiver);
    attempt_or_raise([&] { return make_model(*rows, model); });
}

}  // namespace gputext
