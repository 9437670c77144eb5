#include "extension/rows/token_reader.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/memutils.h"
}

#include <algorithm>

#include "extension/base/failure.hpp"
#include "extension/rows/parsed_pieces.hpp"
#include "extension/rows/text_arguments.hpp"

namespace gputext {
namespace {

/// Tokens that are renumbered between two looks for a cancel.
constexpr std::size_t kPart = std::size_t{1} << 16;

std::string_view view_of(const ParsedWord& word) {
    return {word.word, word.len};
}

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
void TokenReader::add_token(std::string_view word, std::uint64_t position) {
    const std::uint32_t number = vocabulary_.add(word);
    if (number == counts_.size()) counts_.push_back(0);
    ++counts_[number];
    tokens_.push_back({number, static_cast<std::uint32_t>(position)});
}

void TokenReader::append_tokens() {
    packed_.append(tokens_.data(), tokens_.size() * sizeof(Token));
    tokens_.clear();
}

/// Positions are kept with the 16 lowest bits: those of neighbouring words are less than that
/// apart.
void TokenReader::add(const ParsedText& parsed) {
    const std::uint64_t first = next_ - 1;  // tokens are counted from 1
    next_ += static_cast<std::uint64_t>(std::int64_t{parsed.pos} - PG_INT32_MIN);
    if (next_ > PG_UINT32_MAX - CooccurrenceShape::kMostWindow)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the texts have more than %u words", PG_UINT32_MAX)));
    attempt_or_raise([&] {
        std::uint64_t place = 0;
        for (int32 i = 0; i < parsed.curwords; ++i) {
            place += static_cast<std::uint16_t>(parsed.words[i].pos.pos - place);
            if (!seen_at_position(parsed.words, i))
                add_token(view_of(parsed.words[i]), first + place);
        }
    });
    append_tokens();
}

/// In a memory context of its own.
void TokenReader::read_pieces(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
        CHECK_FOR_INTERRUPTS();
        const std::size_t end = end_of_piece(text, begin);
        add(parse_piece(config_, text.substr(begin, end - begin)));
        MemoryContextReset(CurrentMemoryContext);
        begin = end;
    }
}

/// So far behind the text that no window reaches the next one.
void TokenReader::end_text(std::uint64_t next) {
    next_ = next + CooccurrenceShape::kMostWindow;
    ++texts_;
}

void TokenReader::read_text(const varlena* text) {
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext piece", ALLOCSET_DEFAULT_SIZES);
    MemoryContext before = MemoryContextSwitchTo(context);
    read_pieces(gputext::view_of(text));
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
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
        attempt_or_raise([&] { add_token(gputext::view_of(word), next_ + i); });
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
