#include "extension/texts/token_reader.hpp"

extern "C" {
#include "catalog/pg_type.h"
}

#include <string_view>

#include "cpp/thesaurus/cooccurrences.hpp"
#include "extension/base/failure.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

/// Elements of an array between two looks for a cancel.
constexpr int kPart = 1 << 16;

}  // namespace

void check_positions(std::uint64_t positions) {
    if (positions > PG_UINT32_MAX - CooccurrenceShape::kMostWindow)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the texts have more than %u words", PG_UINT32_MAX)));
}

void TokenReader::add_piece() {
    const std::uint64_t before = positions_;  // those of the piece are counted from 1
    positions_ += parser_.positions();
    check_positions(positions_);
    attempt_or_raise([&] {
        for_each_lexeme([&](std::uint32_t word, const Lexeme& lexeme) {
            words_.push_back({word, static_cast<std::uint32_t>(before + lexeme.position)});
            return true;
        });
    });
}

void TokenReader::read_text(const varlena* text) {
    const std::string_view bytes = view_of(text);
    for (std::size_t begin = 0; begin < bytes.size();) {
        begin = parser_.parse(bytes, begin);
        add_piece();
    }
}

void TokenReader::read_array(const ArrayType* words) {
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(const_cast<ArrayType*>(words), ARR_ELEMTYPE(words), -1, false, TYPALIGN_INT,
                      &values, &nulls, &count);
    positions_ = static_cast<std::uint64_t>(count);
    for (int i = 0; i < count; ++i) {
        if (i % kPart == 0) CHECK_FOR_INTERRUPTS();
        if (nulls[i]) continue;
        const varlena* const word = PG_DETOAST_DATUM_PACKED(values[i]);
        attempt_or_raise([&] {
            words_.push_back({vocabulary_.add(view_of(word)), static_cast<std::uint32_t>(i + 1)});
        });
    }
}

void TokenReader::put_row() {
    const std::uint32_t head[] = {static_cast<std::uint32_t>(positions_),
                                  static_cast<std::uint32_t>(words_.size())};
    output_.append(head, sizeof head);
    output_.append(words_.data(), words_.size() * sizeof(PlacedWord));
}

bool TokenReader::read_row(const Datum* values) {
    words_.clear();
    positions_ = 0;
    if (kind_ == TextKind::words_of_array)
        read_array(DatumGetArrayTypeP(values[0]));
    else
        read_text(PG_DETOAST_DATUM_PACKED(values[0]));
    put_row();
    return true;
}

}  // namespace gputext
