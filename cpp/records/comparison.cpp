#include "cpp/records/comparison.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace gputext {
namespace {

const char* const kAllowed =
    "A condition is \"exact\"; of texts also \"jaro_winkler >= 0.92\", \"jaro >= 0.9\", "
    "\"levenshtein <= 2\", \"osa <= 2\" or \"edit_rate <= 0.1\"; of numbers and dates "
    "\"within 31\" or \"within 5 percent\", of dates also \"day_month_exchanged\"; of arrays "
    "\"overlap >= 1\".";

struct NamedCondition {
    ConditionKind kind;
    const char* name;
    const char* relation;  // between the name and the limit
    double least, most;    // limits
};

// within_percent follows within, whose name it shares.
constexpr std::array<NamedCondition, 10> kConditions = {{
    {ConditionKind::exact, "exact", "", 0, 0},
    {ConditionKind::jaro_winkler, "jaro_winkler", ">=", 0, 1},
    {ConditionKind::jaro, "jaro", ">=", 0, 1},
    {ConditionKind::levenshtein, "levenshtein", "<=", 0, 1e9},
    {ConditionKind::osa, "osa", "<=", 0, 1e9},
    {ConditionKind::edit_rate, "edit_rate", "<=", 0, 1},
    {ConditionKind::within, "within", "", 0, 1e300},
    {ConditionKind::within_percent, "within", "", 0, 99.999},
    {ConditionKind::day_month_exchanged, "day_month_exchanged", "", 0, 0},
    {ConditionKind::overlap, "overlap", ">=", 1, 1e9},
}};

const NamedCondition& named(ConditionKind kind) {
    return kConditions[static_cast<std::size_t>(kind)];
}

bool has_limit(ConditionKind kind) {
    return kind != ConditionKind::exact && kind != ConditionKind::day_month_exchanged;
}

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (static_cast<unsigned char>(c) >= 0x80);
}

/// Reads words, signs and numbers, and skips blanks before each.
class Reader {
public:
    explicit Reader(std::string_view text) : rest_(text) { skip(); }

    bool at_end() const { return rest_.empty(); }
    char next() const { return rest_.empty() ? '\0' : rest_.front(); }

    /// Whether the sign comes next, which is then read.
    bool sign(std::string_view wanted) {
        if (!rest_.starts_with(wanted)) return false;
        rest_.remove_prefix(wanted.size());
        skip();
        return true;
    }
    /// A name, perhaps in quotes. None where a quote is not closed; empty where there is no name.
    std::optional<std::string> name() {
        return next() == '"' ? quoted() : std::optional<std::string>(word());
    }
    std::string_view word() {
        std::size_t size = 0;
        while (size < rest_.size() && is_word(rest_[size])) ++size;
        return taken(size);
    }
    std::optional<double> number() {
        double value = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
        taken(static_cast<std::size_t>(end - rest_.data()));
        return value;
    }
    /// A name in double quotes, in which two of them are one.
    std::optional<std::string> quoted() {
        std::string name;
        for (std::size_t at = 1; at < rest_.size(); ++at) {
            if (rest_[at] != '"') {
                name.push_back(rest_[at]);
            } else if (at + 1 < rest_.size() && rest_[at + 1] == '"') {
                name.push_back(rest_[at++]);
            } else {
                taken(at + 1);
                return name;
            }
        }
        return std::nullopt;
    }

private:
    std::string_view taken(std::size_t size) {
        const std::string_view part = rest_.substr(0, size);
        rest_.remove_prefix(size);
        skip();
        return part;
    }
    void skip() {
        while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
    }

    std::string_view rest_;
};

Status wrong(std::string message) {
    return {ErrorCode::invalid_argument, std::move(message), kAllowed};
}

std::string in_quotes(std::string_view text) {
    return "\"" + std::string(text) + "\"";
}

std::string text_of(double number) {
    char digits[64];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
    return {digits, end};
}

Result<Condition> read_condition(Reader& reader, std::string_view whole) {
    const std::string_view name = reader.word();
    for (const NamedCondition& known : kConditions) {
        if (name != known.name) continue;
        if (!has_limit(known.kind)) return Condition{known.kind, 0};
        if (!reader.sign(known.relation))
            return wrong("after \"" + std::string(name) + "\" comes \"" + known.relation +
                         "\", in " + in_quotes(whole));
        const std::optional<double> limit = reader.number();
        if (!limit) return wrong("a number is missing in " + in_quotes(whole));
        Condition condition{known.kind, *limit};
        if (known.kind == ConditionKind::within) {
            Reader ahead = reader;
            if (ahead.word() == "percent") {
                reader = ahead;
                condition.kind = ConditionKind::within_percent;
            }
        }
        const NamedCondition& found = named(condition.kind);
        if (*limit < found.least || *limit > found.most)
            return wrong("the number in " + in_quotes(text_of(condition)) + " must be between " +
                         text_of(found.least) + " and " + text_of(found.most));
        return condition;
    }
    if (name.empty()) return wrong("a condition is missing in " + in_quotes(whole));
    return wrong("unknown condition " + in_quotes(name) + " in " + in_quotes(whole));
}

/// Whether every pair for which `later` holds is one for which `earlier` does.
bool hides(const Condition& earlier, const Condition& later) {
    // Equal values are within every limit, but equal sets may have too few elements for an overlap.
    if (later.kind == ConditionKind::exact) return earlier.kind != ConditionKind::overlap;
    if (earlier.kind != later.kind) return false;
    const bool least = std::string_view(named(earlier.kind).relation) == ">=";
    return least ? later.limit >= earlier.limit : later.limit <= earlier.limit;
}

}  // namespace

std::optional<StringMetric> string_metric_of(ConditionKind kind) {
    switch (kind) {
        case ConditionKind::jaro_winkler:
            return StringMetric::jaro_winkler;
        case ConditionKind::jaro:
            return StringMetric::jaro;
        case ConditionKind::levenshtein:
            return StringMetric::levenshtein;
        case ConditionKind::osa:
            return StringMetric::osa;
        case ConditionKind::edit_rate:
            return StringMetric::edit_rate;
        default:
            return std::nullopt;
    }
}

double largest_distance(const Condition& condition) {
    const bool similarity =
        condition.kind == ConditionKind::jaro_winkler || condition.kind == ConditionKind::jaro;
    return similarity ? 1 - condition.limit : condition.limit;
}

bool applies_to(ConditionKind condition, FieldKind field) {
    switch (condition) {
        case ConditionKind::exact:
            return true;
        case ConditionKind::within:
        case ConditionKind::within_percent:
            return is_number(field);
        case ConditionKind::day_month_exchanged:
            return field == FieldKind::date;
        case ConditionKind::overlap:
            return field == FieldKind::set;
        default:
            return field == FieldKind::text;
    }
}

std::string text_of(const Condition& condition) {
    const NamedCondition& known = named(condition.kind);
    std::string text = known.name;
    if (!has_limit(condition.kind)) return text;
    if (*known.relation != '\0') text += std::string(" ") + known.relation;
    text += " " + text_of(condition.limit);
    if (condition.kind == ConditionKind::within_percent) text += " percent";
    return text;
}

Result<Condition> read_condition(std::string_view text) {
    Reader reader(text);
    Result<Condition> condition = read_condition(reader, text);
    if (condition.ok() && !reader.at_end())
        return wrong("unexpected text after the condition in " + in_quotes(text));
    return condition;
}

Result<FieldComparison> read_comparison(std::string_view text) {
    const auto unreadable = [&](const char* what) {
        return Status(ErrorCode::invalid_argument, what + (" in the comparison " + in_quotes(text)),
                      "A comparison is a column of the inner query, a colon and conditions, the "
                      "most similar first, as in 'surname: exact, jaro_winkler >= 0.92'.");
    };
    Reader reader(text);
    FieldComparison comparison;
    std::optional<std::string> name = reader.name();
    if (!name) return unreadable("a double quote is not closed");
    comparison.field = *std::move(name);
    if (comparison.field.empty()) return unreadable("the name of a field is missing");
    if (!reader.sign(":")) return unreadable("a colon after the name of the field is missing");
    do {
        Result<Condition> condition = read_condition(reader, text);
        if (!condition.ok()) return condition.status();
        comparison.conditions.push_back(*condition);
    } while (reader.sign(","));
    if (!reader.at_end()) return unreadable("unexpected text after a condition");
    return comparison;
}

Result<std::vector<std::string>> read_names(std::string_view text) {
    const auto unreadable = [&](const char* what) {
        return Status(ErrorCode::invalid_argument,
                      what + (" in the list of columns " + in_quotes(text)),
                      "Columns are separated by commas, as in 'surname, birth_year'; a name with "
                      "other characters than letters, digits and underscores stands in double "
                      "quotes.");
    };
    Reader reader(text);
    std::vector<std::string> names;
    do {
        std::optional<std::string> name = reader.name();
        if (!name) return unreadable("a double quote is not closed");
        if (name->empty()) return unreadable("a name is missing");
        names.push_back(*std::move(name));
    } while (reader.sign(","));
    if (!reader.at_end()) return unreadable("unexpected text after a name");
    return names;
}

Status check_comparison(const FieldComparison& comparison, FieldKind kind) {
    const auto of_field = " of field " + in_quotes(comparison.field);
    const std::vector<Condition>& conditions = comparison.conditions;
    if (conditions.empty()) return wrong("there are no conditions" + of_field);
    if (conditions.size() > kMostConditions)
        return {ErrorCode::invalid_argument, "there are " + std::to_string(conditions.size()) +
                                                 " conditions" + of_field + ", more than " +
                                                 std::to_string(kMostConditions)};
    for (std::size_t i = 0; i < conditions.size(); ++i) {
        if (!applies_to(conditions[i].kind, kind)) {
            static constexpr std::array<const char*, 5> kinds = {
                "texts", "numbers", "dates", "arrays", "values that are only equal or not"};
            Status status = wrong("the condition " + in_quotes(text_of(conditions[i])) + of_field +
                                  " cannot compare its values, which are " +
                                  kinds[static_cast<std::size_t>(kind)]);
            if (kind == FieldKind::text && applies_to(conditions[i].kind, FieldKind::date))
                return {status.code(), status.message(),
                        "Texts that are dates or numbers can be cast in the inner query, as in "
                        "born::date AS born."};
            return status;
        }
        for (std::size_t before = 0; before < i; ++before)
            if (hides(conditions[before], conditions[i]))
                return {ErrorCode::invalid_argument,
                        "the condition " + in_quotes(text_of(conditions[i])) + of_field +
                            " never decides, as " + in_quotes(text_of(conditions[before])) +
                            " stands before it",
                        "Write the most similar condition first, and each one once."};
    }
    return {};
}

}  // namespace gputext
