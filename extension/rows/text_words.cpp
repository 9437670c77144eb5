#include "extension/rows/text_words.hpp"

#include <algorithm>
#include <span>

#include "extension/base/failure.hpp"
#include "extension/rows/token_reader.hpp"

namespace gputext {
namespace {

/// Tokens that are renumbered, and words that are numbered, between two looks for a cancel.
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

/// Numbers the words that a process has found.
void TextWords::add_words(unsigned process) {
    const Words words = texts_->words(process);
    const std::span<const std::uint64_t> counts = texts_->counts(process);
    std::vector<std::uint32_t>& numbers = numbers_[process];
    attempt_or_raise([&] { numbers.resize(words.size()); });
    for (std::size_t begin = 0; begin < words.size(); begin += kPart) {
        CHECK_FOR_INTERRUPTS();
        attempt_or_raise([&] {
            const std::size_t end = std::min<std::size_t>(words.size(), begin + kPart);
            for (std::size_t word = begin; word < end; ++word) {
                const std::uint32_t number = vocabulary_.add(words[word]);
                if (number == counts_.size()) counts_.push_back(0);
                counts_[number] += counts[word];
                numbers[word] = number;
            }
        });
    }
}

void TextWords::read(StoredValues& texts, bool arrays) {
    attempt_or_raise([&] {
        texts_.emplace(arrays ? TextKind::words_of_array : TextKind::words_of_text, config_,
                       memory_limit_);
    });
    StoredValues* columns[] = {&texts};
    texts_->read(columns);
    texts.release();
    attempt_or_raise([&] { numbers_.resize(texts_->processes()); });
    for (unsigned process = 0; process < texts_->processes(); ++process) add_words(process);
}

void TextWords::choose(std::uint64_t min_count, std::size_t most, ChosenWords& chosen) const {
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

void TextWords::renumber(const TextStretch& stretch, std::size_t begin, std::size_t end,
                         std::uint64_t position) {
    const auto* const tokens =
        reinterpret_cast<const Token*>(texts_->output(stretch.process) + stretch.begin);
    const std::vector<std::uint32_t>& numbers = numbers_[stretch.process];
    part_words_.clear();
    part_positions_.clear();
    for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t number = numbers[tokens[i].number];
        if (number == Vocabulary::kNone) continue;
        part_words_.push_back(number);
        part_positions_.push_back(static_cast<std::uint32_t>(position + tokens[i].position));
    }
}

void TextWords::take_chosen(const ChosenWords& chosen, TokenRows& rows) {
    attempt_or_raise([&] {
        std::vector<std::uint32_t> order(vocabulary_.size(), Vocabulary::kNone);
        for (std::uint32_t i = 0; i < chosen.numbers.size(); ++i)
            if (chosen.numbers[i] != Vocabulary::kNone) order[chosen.numbers[i]] = i;
        for (std::vector<std::uint32_t>& numbers : numbers_)
            for (std::uint32_t& number : numbers) number = order[number];
    });
    std::uint64_t position = 0;
    for (const TextStretch& stretch : texts_->stretches()) {
        check_positions(position + stretch.positions);
        const std::size_t size = (stretch.end - stretch.begin) / sizeof(Token);
        for (std::size_t begin = 0; begin < size; begin += kPart) {
            CHECK_FOR_INTERRUPTS();
            attempt_or_raise(
                [&] { renumber(stretch, begin, std::min(size, begin + kPart), position); });
            rows.append(part_words_, part_positions_);
        }
        position += stretch.positions;
    }
    texts_->release();
    texts_.reset();
    numbers_ = {};
    rows.finish();
}

}  // namespace gputext
