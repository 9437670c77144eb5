#include "extension/inputs/training_vocabulary.hpp"

#include <algorithm>
#include <numeric>

#include "cpp/base/stoppable.hpp"
#include "extension/base/failure.hpp"

namespace gputext {
namespace {

/// Words between two looks for a cancel.
constexpr std::size_t kPart = std::size_t{1} << 12;

std::uint64_t sum_of_counts(std::uint64_t a, std::uint64_t b) {
    return std::min<std::uint64_t>(a + b, PG_INT64_MAX);
}

}  // namespace

std::span<const float> TrainingVocabulary::known_vectors() const {
    if (known.size() == 0) return {};
    return {reinterpret_cast<const float*>(known.data()), known.size() / sizeof(float)};
}

std::string_view TrainingVocabulary::word(std::uint32_t number) const {
    return number < known_words() ? model.vocabulary().term(rows_[number])
                                  : texts.vocabulary().term(chosen.numbers[number]);
}

bool TrainingVocabulary::more_frequent(std::uint32_t a, std::uint32_t b) const {
    return chosen.counts[a] != chosen.counts[b] ? chosen.counts[a] > chosen.counts[b]
                                                : word(a) < word(b);
}

std::vector<std::uint32_t> TrainingVocabulary::by_frequency() const {
    std::vector<std::uint32_t> order(size());
    std::iota(order.begin(), order.end(), 0u);
    std::inplace_merge(order.begin(), order.begin() + known_words(), order.end(),
                       [this](auto a, auto b) { return more_frequent(a, b); });
    return order;
}

void TrainingVocabulary::choose(std::uint32_t min_count) {
    attempt_or_raise([&] { choose_known(); });
    choose_new(min_count);
    pack_known();
    texts.take_chosen(chosen, tokens);
}

/// Inside attempt().
void TrainingVocabulary::choose_known() {
    struct Known {
        std::uint32_t row;
        std::uint32_t number;
        std::uint64_t count;
    };
    const Vocabulary& terms = model.vocabulary();
    std::vector<Known> words;
    const Stop stop = stop_on_interrupt();
    for (std::uint32_t row = 0; row < terms.size(); ++row) {
        if (row % kPart == 0 && stop()) return;
        const std::uint32_t number = texts.vocabulary().find(terms.term(row));
        const std::uint64_t more = number == Vocabulary::kNone ? 0 : texts.count(number);
        words.push_back({row, number, sum_of_counts(model.counts()[row], more)});
    }
    const auto before = [&terms](const Known& a, const Known& b) {
        return a.count != b.count ? a.count > b.count : terms.term(a.row) < terms.term(b.row);
    };
    if (!stoppable_sort(words.begin(), words.end(), before, stop)) return;
    for (const Known& word : words) {
        rows_.push_back(word.row);
        chosen.numbers.push_back(word.number);
        chosen.counts.push_back(word.count);
    }
}

void TrainingVocabulary::choose_new(std::uint32_t min_count) {
    texts.choose(min_count, SIZE_MAX, of_texts_);
    attempt_or_raise([&] {
        const Stop stop = stop_on_interrupt();
        for (std::size_t i = 0; i < of_texts_.numbers.size(); ++i) {
            if (i % kPart == 0 && stop()) return;
            const std::uint32_t number = of_texts_.numbers[i];
            const std::string_view term = texts.vocabulary().term(number);
            if (model.vocabulary().find(term) != Vocabulary::kNone) continue;
            chosen.numbers.push_back(number);
            chosen.counts.push_back(of_texts_.counts[i]);
        }
        of_texts_ = {};
    });
}

void TrainingVocabulary::pack_known() {
    const std::size_t dimensions = model.dimensions();
    for (const std::span<const float> vectors : {model.vectors(), model.output_vectors()})
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (i % kPart == 0) CHECK_FOR_INTERRUPTS();
            known.append(vectors.data() + rows_[i] * dimensions, dimensions * sizeof(float));
        }
    known.finish();
    model.release();
}

void TrainingVocabulary::release() {
    tokens.release();
    known.release();
}

}  // namespace gputext
