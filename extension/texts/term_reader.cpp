#include "extension/texts/term_reader.hpp"

#include <algorithm>
#include <array>

#include "extension/base/failure.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

// ---- Weights ----

TermFault fault_of(VectorFault fault) {
    switch (fault) {
        case VectorFault::none:
        case VectorFault::empty:  // a row without terms
            return TermFault::none;
        case VectorFault::several_dimensions:
            return TermFault::several_dimensions;
        case VectorFault::null_element:
            return TermFault::null_element;
        default:
            return TermFault::not_finite;
    }
}

/// Bytes whose order is that of the numbers.
std::array<char, 4> bytes_of_number(std::int32_t number) {
    const std::uint32_t bits = static_cast<std::uint32_t>(number) ^ std::uint32_t{1} << 31;
    return {static_cast<char>(bits >> 24), static_cast<char>(bits >> 16),
            static_cast<char>(bits >> 8), static_cast<char>(bits)};
}

}  // namespace

void raise_term_fault(TermFault fault, const char* whose) {
    switch (fault) {
        case TermFault::too_often:
            ereport(ERROR,
                    (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                     errmsg("the text of %s has a term more than %d times", whose, PG_INT32_MAX)));
        case TermFault::several_dimensions:
            ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                            errmsg("the terms or weights of %s are an array of several dimensions",
                                   whose)));
        case TermFault::null_element:
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                            errmsg("a term or weight of %s is null", whose)));
        case TermFault::not_finite:
            ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                            errmsg("a weight of %s is NaN or infinite", whose)));
        case TermFault::different_lengths:
            ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                            errmsg("%s has different numbers of terms and weights", whose)));
        case TermFault::repeated:
            ereport(ERROR,
                    (errcode(ERRCODE_DATA_EXCEPTION), errmsg("%s has a term more than once", whose),
                     errhint("A term's weights can be added up in the inner query.")));
        case TermFault::none:
            break;
    }
    pg_unreachable();
}

void TermReader::put_row(std::span<const std::uint32_t> terms, const void* values) {
    const auto count = static_cast<std::uint32_t>(terms.size());
    output_.append(&count, sizeof count);
    output_.append(terms.data(), terms.size_bytes());
    output_.append(values, terms.size_bytes());
}

void TermReader::end_counted_row() {
    attempt_or_raise([&] { counts_.end_text(); });
    put_row(counts_.terms(), counts_.counts().data());
}

TermFault TermReader::read_text(const varlena* text) {
    const std::string_view bytes = view_of(text);
    for (std::size_t begin = 0; begin < bytes.size();) {
        begin = parser_.parse(bytes, begin);
        bool fits = true;
        attempt_or_raise([&] {
            fits = for_each_lexeme(
                [this](std::uint32_t term, const Lexeme&) { return counts_.add(term); });
        });
        if (!fits) return TermFault::too_often;
    }
    end_counted_row();
    return TermFault::none;
}

TermFault TermReader::read_tsvector(TSVector vector) {
    bool fits = true;
    attempt_or_raise([&] {
        const char* const lexemes = STRPTR(vector);
        for (const WordEntry *entry = ARRPTR(vector), *end = entry + vector->size;
             entry != end && fits; ++entry) {
            const std::uint32_t term = vocabulary_.add({lexemes + entry->pos, entry->len});
            fits = counts_.add(term, std::max(1, int{POSDATALEN(vector, entry)}));
        }
    });
    if (!fits) return TermFault::too_often;
    end_counted_row();
    return TermFault::none;
}

TermFault TermReader::read_weights(Datum terms, Datum weights) {
    static constexpr VectorType kTerms{VectorType::Form::array, ElementType::int32};
    static constexpr VectorType kWeights{VectorType::Form::array, ElementType::float32};
    VectorValue ids, values;
    if (TermFault fault = fault_of(read_vector(kTerms, terms, ids)); fault != TermFault::none)
        return fault;
    if (TermFault fault = fault_of(read_vector(kWeights, weights, values));
        fault != TermFault::none)
        return fault;
    if (ids.stored != values.stored) return TermFault::different_lengths;
    bool repeated = false;
    attempt_or_raise([&]() -> Status {
        given_.clear();
        numbered_.clear();
        for (std::size_t i = 0; i < ids.stored; ++i)
            given_.emplace_back(static_cast<const std::int32_t*>(ids.elements)[i],
                                static_cast<const float*>(values.elements)[i]);
        std::sort(given_.begin(), given_.end());
        const auto same_term = [](const auto& a, const auto& b) { return a.first == b.first; };
        repeated = std::adjacent_find(given_.begin(), given_.end(), same_term) != given_.end();
        if (repeated) return {};
        for (const auto& [id, weight] : given_) {
            const std::array<char, 4> bytes = bytes_of_number(id);
            if (weight != 0)
                numbered_.emplace_back(vocabulary_.add({bytes.data(), bytes.size()}), weight);
        }
        std::sort(numbered_.begin(), numbered_.end());
        terms_.clear();
        weights_.clear();
        for (const auto& [term, weight] : numbered_) {
            terms_.push_back(term);
            weights_.push_back(weight);
        }
        return {};
    });
    if (repeated) return TermFault::repeated;
    put_row(terms_, weights_.data());
    return TermFault::none;
}

TermFault TermReader::read(const Datum* values) {
    switch (source_) {
        case TermSource::text:
            return read_text(PG_DETOAST_DATUM_PACKED(values[0]));
        case TermSource::tsvector:
            return read_tsvector(DatumGetTSVector(values[0]));
        case TermSource::weights:
            return read_weights(values[0], values[1]);
    }
    pg_unreachable();
}

}  // namespace gputext
