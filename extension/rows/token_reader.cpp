#include "extension/rows/token_reader.hpp"

extern "C" {
#include "catalog/pg_type.h"
}

#include <algorithm>

#include "extension/base/failure.hpp"
#include "extension/rows/text_arguments.hpp"

namespace gputext {
namespace {

/// Tokens that are renumbered between two looks for a cancel.
constexpr std::size_t kPart = std::size_t{1} << 16;

}  // namespace

// ---- The chosen words ----

void TokenRows::append(const std::vector<std::uint32_t>& words,
                       const std::vector<std::uint32_t>& positions) {
    words_.append(words.data(), words.size() * sizeof(std::uint32_t));
    positions_.append(positions.data(), positions.size() * sizeof(std::uint32_t));
}

void TokenRows::finish() {
    words_.finish();
    positions_.finish();
}

void TokenRows::release() {
    words_.release();
    positions_.release();
}

TokenStream TokenRows::view() const {
    return {{reinterpret_cast<const std::uint32_t*>(words_.data()), size()},
            {reinterpret_cast<const std::uint32_t*>(positions_.data()), size()}};
}

// ---- All words ----

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
    packed_.append(tokens_.data(), tokens_.size() * sizeof(Token));
    tokens_.clear();
}

void TokenReader::add_piece() {
    const std::uint64_t first = next_ - 1;  // positions of the piece are counted from 1
    next_ += parser_.positions();
    if (next_ > PG_UINT32_MAX - CooccurrenceShape::kMostWindow)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the texts have more than %u words", PG_UINT32_MAX)));
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
    ++texts_;
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
    if (next_ + count > PG_UINT32_MAX - CooccurrenceShape::kMostWindow)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the texts have more than %u words", PG_UINT32_MAX)));
    for (int i = 0; i < count; ++i) {
        if (i % kPart == 0) CHECK_FOR_INTERRUPTS();
        if (nulls[i]) continue;
        const varlena* const word = PG_DETOAST_DATUM_PACKED(values[i]);
        attempt_or_raise([&] { add_token(number_of(view_of(word)), next_ + i); });
    }
    append_tokens();
    end_text(next_ + count);
}

void TokenReader::choose(std::uint64_t min_count, std::size_t most, ChosenWords& chosen) const {
    attempt_or_raise([&] {
        std::vector<std::uint32_t>& numbers = chosen.numbers;
        for (std::uint32_t i = 0; i < counts_.size(); ++i)
            if (counts_[i] >= min_count) numbers.push_back(i);
        const auto before = [this](std::uint32_t a, std::uint32_t b) {
            return counts_[a] != counts_[b] ? counts_[a] > counts_[b]
                                            : vocabulary_.term(a) < vocabulary_.term(b);
        };
        if (numbers.size() > most) {
            std::nth_element(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(most),
                             numbers.end(), before);
            numbers.resize(most);
        }
        std::sort(numbers.begin(), numbers.end(), before);
        for (const std::uint32_t number : numbers) chosen.counts.push_back(counts_[number]);
    });
}

void TokenReader::renumber(std::size_t begin, std::size_t end) {
    const auto* const tokens = reinterpret_cast<const Token*>(packed_.data());
    part_words_.clear();
    part_positions_.clear();
    for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t number = order_[tokens[i].number];
        if (number == Vocabulary::kNone) continue;
        part_words_.push_back(number);
        part_positions_.push_back(tokens[i].position);
    }
}

void TokenReader::take_chosen(const ChosenWords& chosen, TokenRows& rows) {
    packed_.finish();
    attempt_or_raise([&] {
        order_.assign(vocabulary_.size(), Vocabulary::kNone);
        for (std::uint32_t i = 0; i < chosen.numbers.size(); ++i)
            if (chosen.numbers[i] != Vocabulary::kNone) order_[chosen.numbers[i]] = i;
    });
    const std::size_t size = packed_.size() / sizeof(Token);
    for (std::size_t begin = 0; begin < size; begin += kPart) {
        CHECK_FOR_INTERRUPTS();
        attempt_or_raise([&] { renumber(begin, std::min(size, begin + kPart)); });
        rows.append(part_words_, part_positions_);
    }
    packed_.release();
    rows.finish();
}

}  // namespace gputext
