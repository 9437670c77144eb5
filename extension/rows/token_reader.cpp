#include "extension/rows/token_reader.hpp"

extern "C" {
#include "catalog/pg_type.h"
}

#include <utility>

#include "cpp/thesaurus/cooccurrences.hpp"
#include "extension/base/failure.hpp"
#include "extension/rows/text_arguments.hpp"

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

/// Inside attempt().
std::uint32_t TokenReader::number_of(std::string_view word) {
    const std::uint32_t number = vocabulary_.add(word);
    if (number == counts_.size()) counts_.push_back(0);
    return number;
}

std::uint32_t TokenReader::number_of(std::uint32_t lexeme) {
    if (lexeme >= TextParser::kLasting) return number_of(parser_.text(lexeme));
    std::uint32_t& number = numbers_[lexeme];
    if (number == Vocabulary::kNone) number = number_of(parser_.text(lexeme));
    return number;
}

void TokenReader::add_token(std::uint32_t number, std::uint64_t position) {
    ++counts_[number];
    tokens_.push_back({number, static_cast<std::uint32_t>(position)});
}

void TokenReader::append_tokens() {
    output_.append(tokens_.data(), tokens_.size() * sizeof(Token));
    tokens_.clear();
}

void TokenReader::add_piece() {
    const std::uint64_t first = next_ - 1;  // positions of the piece are counted from 1
    next_ += parser_.positions();
    check_positions(next_);
    attempt_or_raise([&] {
        numbers_.resize(parser_.lasting(), Vocabulary::kNone);
        for (const Lexeme& lexeme : parser_.lexemes())
            add_token(number_of(lexeme.number), first + lexeme.position);
    });
    append_tokens();
}

/// So far behind the text that no window reaches the next one.
void TokenReader::end_text(std::uint64_t next) {
    next_ = next + CooccurrenceShape::kMostWindow;
}

void TokenReader::read_text(const varlena* text) {
    const std::string_view bytes = view_of(text);
    for (std::size_t begin = 0; begin < bytes.size();) {
        begin = parser_.parse(bytes, begin);
        add_piece();
    }
    end_text(next_);
}

void TokenReader::read_array(const ArrayType* words) {
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(const_cast<ArrayType*>(words), ARR_ELEMTYPE(words), -1, false, TYPALIGN_INT,
                      &values, &nulls, &count);
    check_positions(next_ + count);
    for (int i = 0; i < count; ++i) {
        if (i % kPart == 0) CHECK_FOR_INTERRUPTS();
        if (nulls[i]) continue;
        const varlena* const word = PG_DETOAST_DATUM_PACKED(values[i]);
        attempt_or_raise([&] { add_token(number_of(view_of(word)), next_ + i); });
    }
    append_tokens();
    end_text(next_ + count);
}

bool TokenReader::read_row(const Datum* values) {
    if (kind_ == TextKind::words_of_array)
        read_array(DatumGetArrayTypeP(values[0]));
    else
        read_text(PG_DETOAST_DATUM_PACKED(values[0]));
    if (kind_ == TextKind::words_of_rows) {
        constexpr Token end{Token::kEndOfRow, 0};
        output_.append(&end, sizeof end);
    }
    return true;
}

std::uint64_t TokenReader::end_stretch() {
    return std::exchange(next_, 1) - 1;
}

}  // namespace gputext
