// extension/inputs/string_rows.hpp - strings of an inner query, as metrics of strings compare them

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include "cpp/strings/string_distance.hpp"
#include "cpp/strings/strings.hpp"
#include "extension/inputs/trigram_reader.hpp"
#include "extension/inputs/vector_query.hpp"

namespace gputext {

/// The metric of strings of that name. None for another name.
std::optional<StringMetric> string_metric_of(const char* name);
const char* name_of(StringMetric metric);

/// What inner queries give with such a metric, in words.
extern const char* const kStringColumns;

/// How the bytes of a column's values are symbols.
enum class StringForm {
    characters,    // text
    unpadded,      // char(n), whose blanks at the end mean nothing
    bytes          // bytea
};

/// Raises an error for a type that is no string, and for bytea where the metric is of characters.
StringForm string_form_of(TupleDesc columns, StringMetric metric);

/// The symbols of strings, or their trigrams, in the order of their rows.
struct StringRows {
    std::vector<std::uint64_t> begins;
    std::vector<std::uint32_t> symbols;

    Strings view() const { return {begins, symbols.data()}; }
    void append(Symbols string) {
        if (begins.empty()) begins.push_back(0);
        symbols.insert(symbols.end(), string.begin(), string.end());
        begins.push_back(symbols.size());
    }
    void clear() {
        begins.clear();
        symbols.clear();
    }
    void release() { *this = {}; }
};

/// Reads the values of the rows that were collected, after VectorRows::end_rows(), which may then
/// be asked for ids alone. Trigrams are those that pg_trgm's function show_trgm() gives. Raises an
/// error where they would take more memory than the rows may, and for trigrams where pg_trgm is not
/// installed or may not be called.
void read_strings(StringForm form, StringMetric metric, VectorRows& rows, StringRows& strings);

/// The same of trigrams of type text, by `reader`, whoever may call that function. False where a
/// text has more than `longest` bytes, or all trigrams take more memory than the rows may: the rows
/// are then of no use but to be released.
bool read_trigrams_if_they_fit(TrigramReader& reader, std::size_t longest, VectorRows& rows,
                               StringRows& strings);

}  // namespace gputext
