#include "extension/texts/text_words.hpp"

#include <algorithm>
#include <span>

#include "cpp/base/numbered_words.hpp"
#include "cpp/base/stoppable.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/server/session_job.hpp"
#include "extension/server/settings.hpp"
#include "extension/texts/token_reader.hpp"

namespace gputext {
namespace {

/// Parts of the texts whose words are chosen at once, for each thread.
constexpr std::size_t kPartsAtOnce = 8;

/// Those that a text takes: with so many behind it that no window reaches the next one.
std::uint64_t positions_of(const WordRecord& record) {
    return record.positions + std::uint64_t{CooccurrenceShape::kMostWindow};
}

/// The chosen words of a part of the texts.
struct ChosenPart {
    std::vector<std::uint32_t> words, positions;

    void take(const ChunkedTexts& texts, const TextPart& part, const ChunkNumbers& numbers,
              std::uint64_t position);
};

/// `position`: of the part's first text.
void ChosenPart::take(const ChunkedTexts& texts, const TextPart& part, const ChunkNumbers& numbers,
                      std::uint64_t position) {
    words.clear();
    positions.clear();
    for (std::size_t i = part.begin; i < part.end; ++i) {
        const WordRecord record(texts.texts[i].record);
        const std::vector<std::uint32_t>& chosen = numbers[texts.texts[i].chunk];
        for (const PlacedWord& placed : record.words) {
            if (chosen[placed.word] == Vocabulary::kNone) continue;
            words.push_back(chosen[placed.word]);
            positions.push_back(static_cast<std::uint32_t>(position + placed.position));
        }
        position += positions_of(record);
    }
}

}  // namespace

// ---- The chosen words ----

void TokenRows::append(std::span<const std::uint32_t> words,
                       std::span<const std::uint32_t> positions) {
    words_.append(words.data(), words.size_bytes());
    positions_.append(positions.data(), positions.size_bytes());
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

/// Says how often the texts have each word of their chunks, and where each part begins.
void TextWords::count_words() {
    std::uint64_t position = 0;
    const ChunkedTexts texts = texts_->texts();
    attempt_or_raise([&] {
        for (std::size_t i = 0, parts = texts.parts(); i < parts; ++i) {
            const TextPart part = texts.part(i);
            positions_.push_back(position);
            for (std::size_t text = part.begin; text < part.end; ++text)
                position += positions_of(WordRecord(texts.texts[text].record));
        }
    });
    check_positions(position);
    run_threaded([this, &texts](Execution& execution) {
        return gputext::count_words(texts, chunk_counts_, execution);
    });
}

/// Numbers the words that the texts have, chunk by chunk.
Status TextWords::add_words(Execution& execution) {
    const std::span<const Words> chunks = texts_->texts().chunks;
    std::vector<WordRun> runs;
    for (std::uint32_t chunk = 0; chunk < chunks.size(); ++chunk) {
        const std::vector<std::uint64_t>& counts = chunk_counts_[chunk];
        numbers_.emplace_back(counts.size(), Vocabulary::kNone);
        for (std::uint32_t word = 0; word < counts.size(); ++word)
            if (counts[word] > 0) append_word(runs, chunk, word);
    }
    GPUTEXT_TRY(number_words(chunks, runs, false, vocabulary_, numbers_, execution));
    counts_.resize(vocabulary_.size());
    for (const WordRun& run : runs)
        for (std::uint32_t word = run.begin; word < run.end; ++word)
            counts_[numbers_[run.list][word]] += chunk_counts_[run.list][word];
    return {};
}

void TextWords::read(StoredValues& texts, bool arrays) {
    attempt_or_raise([&] {
        texts_.emplace(arrays ? TextKind::words_of_array : TextKind::words_of_text, config_,
                       memory_limit_);
    });
    StoredValues* columns[] = {&texts};
    texts_->read(columns);
    texts.release();
    count_words();
    run_threaded([this](Execution& execution) { return add_words(execution); });
    chunk_counts_ = {};
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
        stoppable_sort(numbers.begin(), numbers.end(), before, stop_on_interrupt());
        for (const std::uint32_t number : numbers) chosen.counts.push_back(counts_[number]);
    });
}

void TextWords::take_chosen(const ChosenWords& chosen, TokenRows& rows) {
    attempt_or_raise([&] {
        std::vector<std::uint32_t> order(vocabulary_.size(), Vocabulary::kNone);
        for (std::uint32_t i = 0; i < chosen.numbers.size(); ++i)
            if (chosen.numbers[i] != Vocabulary::kNone) order[chosen.numbers[i]] = i;
        for (std::vector<std::uint32_t>& numbers : numbers_)
            for (std::uint32_t& number : numbers)
                if (number != Vocabulary::kNone) number = order[number];
    });
    const ChunkedTexts texts = texts_->texts();
    const std::size_t parts = texts.parts(), at_once = kPartsAtOnce * cpu_threads();
    auto& chosen_parts = *make_owned<std::vector<ChosenPart>>(CurrentMemoryContext, at_once);
    for (std::size_t begin = 0; begin < parts; begin += at_once) {
        const std::size_t count = std::min(parts - begin, at_once);
        run_threaded([&](Execution& execution) {
            return execution.parallel_for(count, [&](std::size_t i, unsigned) -> Status {
                chosen_parts[i].take(texts, texts.part(begin + i), numbers_, positions_[begin + i]);
                return {};
            });
        });
        for (std::size_t i = 0; i < count; ++i)
            rows.append(chosen_parts[i].words, chosen_parts[i].positions);
    }
    chosen_parts = {};
    release();
    rows.finish();
}

void TextWords::release() {
    if (texts_) texts_->release();
    texts_.reset();
    numbers_ = {};
    positions_ = {};
}

}  // namespace gputext
