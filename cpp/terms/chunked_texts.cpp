#include "cpp/terms/chunked_texts.hpp"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <vector>

#include "cpp/base/numbered_words.hpp"

namespace gputext {
namespace {

/// Numbers of four bytes that a thread takes at once, about.
constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 16;
/// Words that a thread adds up at once.
constexpr std::size_t kWordsAtOnce = std::size_t{1} << 14;
constexpr std::uint32_t kNoText = UINT32_MAX;

/// Where the words of each chunk begin among those of all, and their end.
std::vector<std::size_t> word_begins(std::span<const Words> chunks) {
    std::vector<std::size_t> begins{0};
    for (const Words& words : chunks) begins.push_back(begins.back() + words.size());
    return begins;
}

std::span<const std::uint32_t> terms_of(const ChunkText& text) {
    return {text.record + 1, text.record[0]};
}

bool right_terms(const ChunkText& text, std::size_t words) {
    if (text.size < 1 || text.size != size_of_record(TextForm::terms, text.record)) return false;
    std::uint64_t least = 0;
    for (const std::uint32_t term : terms_of(text)) {
        if (term < least || term >= words) return false;
        least = std::uint64_t{term} + 1;
    }
    return true;
}

bool right_words(const ChunkText& text, std::size_t words) {
    if (text.size < 2 || text.size != size_of_record(TextForm::words, text.record)) return false;
    const WordRecord record(text.record);
    std::uint32_t least = 1;
    for (const PlacedWord& placed : record.words) {
        if (placed.word >= words || placed.position < least || placed.position > record.positions)
            return false;
        least = placed.position;
    }
    return true;
}

/// Notes that the text has a word of which no earlier text is noted.
void note_first(std::uint32_t& first, std::uint32_t text) {
    const std::atomic_ref<std::uint32_t> shared(first);
    std::uint32_t earliest = shared.load(std::memory_order_relaxed);
    while (text < earliest &&
           !shared.compare_exchange_weak(earliest, text, std::memory_order_relaxed)) {
    }
}

void append_terms(const ChunkText& text, const std::vector<std::uint32_t>& numbers,
                  std::vector<std::uint64_t>& row, std::vector<std::uint32_t>& records) {
    const std::uint32_t count = text.record[0];
    const std::uint32_t* const values = text.record + 1 + count;
    row.clear();
    for (std::uint32_t i = 0; i < count; ++i)
        row.push_back(std::uint64_t{numbers[text.record[1 + i]]} << 32 | values[i]);
    std::sort(row.begin(), row.end());
    records.push_back(count);
    for (const std::uint64_t element : row)
        records.push_back(static_cast<std::uint32_t>(element >> 32));
    for (const std::uint64_t element : row) records.push_back(static_cast<std::uint32_t>(element));
}

void append_words(const ChunkText& text, const std::vector<std::uint32_t>& numbers,
                  std::vector<std::uint32_t>& records) {
    const WordRecord record(text.record);
    records.insert(records.end(), text.record, text.record + 2);
    for (const PlacedWord& placed : record.words) {
        records.push_back(numbers[placed.word]);
        records.push_back(placed.position);
    }
}

}  // namespace

std::size_t ChunkedTexts::at_once() const {
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(
        kAtOnce * texts.size() / std::max<std::uint64_t>(1, size), 1, kAtOnce));
}

Status for_texts(const ChunkedTexts& texts, const char* phase, const TextBody& body,
                 Execution& execution) {
    execution.begin_phase(phase, texts.parts());
    return execution.parallel_for(
        texts.parts(), [&](std::size_t i, unsigned worker) { return body(texts.part(i), worker); });
}

Status check_texts(const ChunkedTexts& texts, Execution& execution) {
    return for_texts(
        texts, "checking texts",
        [&](const TextPart& part, unsigned) -> Status {
            for (std::size_t i = part.begin; i < part.end; ++i) {
                const ChunkText& text = texts.texts[i];
                const std::size_t words = texts.chunks[text.chunk].size();
                if (!(texts.form == TextForm::terms ? right_terms(text, words)
                                                    : right_words(text, words)))
                    return {ErrorCode::invalid_argument, "a text that is not of its form"};
            }
            return {};
        },
        execution);
}

Status list_words(const ChunkedTexts& texts, std::vector<std::vector<ChunkWord>>& lists,
                  Execution& execution) {
    const std::vector<std::size_t> begins = word_begins(texts.chunks);
    std::vector<std::uint32_t> first(begins.back(), kNoText);
    GPUTEXT_TRY(for_texts(
        texts, "finding words",
        [&](const TextPart& part, unsigned) -> Status {
            for (std::size_t i = part.begin; i < part.end; ++i) {
                const ChunkText& text = texts.texts[i];
                for (const std::uint32_t term : terms_of(text))
                    note_first(first[begins[text.chunk] + term], static_cast<std::uint32_t>(i));
            }
            return {};
        },
        execution));
    lists.resize(texts.parts());
    return for_texts(
        texts, "listing words",
        [&](const TextPart& part, unsigned) -> Status {
            std::vector<ChunkWord>& list = lists[part.number];
            for (std::size_t i = part.begin; i < part.end; ++i) {
                const ChunkText& text = texts.texts[i];
                const Words& words = texts.chunks[text.chunk];
                const auto before = static_cast<std::ptrdiff_t>(list.size());
                for (const std::uint32_t term : terms_of(text))
                    if (first[begins[text.chunk] + term] == i) list.push_back({text.chunk, term});
                std::sort(list.begin() + before, list.end(),
                          [&words](const ChunkWord& a, const ChunkWord& b) {
                              return words[a.word] < words[b.word];
                          });
            }
            return {};
        },
        execution);
}

Status count_words(const ChunkedTexts& texts, std::vector<std::vector<std::uint64_t>>& counts,
                   Execution& execution) {
    const std::vector<std::size_t> begins = word_begins(texts.chunks);
    std::vector<std::vector<std::uint32_t>> of_worker(execution.threads());
    GPUTEXT_TRY(for_texts(
        texts, "counting words",
        [&](const TextPart& part, unsigned worker) -> Status {
            std::vector<std::uint32_t>& mine = of_worker[worker];
            mine.resize(begins.back());
            for (std::size_t i = part.begin; i < part.end; ++i) {
                const ChunkText& text = texts.texts[i];
                std::uint32_t* const of_chunk = mine.data() + begins[text.chunk];
                for (const PlacedWord& placed : WordRecord(text.record).words)
                    ++of_chunk[placed.word];
            }
            return {};
        },
        execution));
    counts.clear();
    for (const Words& words : texts.chunks) counts.emplace_back(words.size());
    for (std::size_t chunk = 0; chunk < counts.size(); ++chunk) {
        std::vector<std::uint64_t>& sums = counts[chunk];
        const std::size_t parts = (sums.size() + kWordsAtOnce - 1) / kWordsAtOnce;
        const auto add_up = [&](std::size_t part, unsigned) -> Status {
            const std::size_t end = std::min(sums.size(), (part + 1) * kWordsAtOnce);
            for (const std::vector<std::uint32_t>& mine : of_worker) {
                if (mine.empty()) continue;
                const std::uint32_t* const of_chunk = mine.data() + begins[chunk];
                for (std::size_t word = part * kWordsAtOnce; word < end; ++word)
                    sums[word] += of_chunk[word];
            }
            return {};
        };
        GPUTEXT_TRY(execution.parallel_for(parts, add_up));
    }
    return {};
}

Status merge_words(std::span<const Words> chunks, Vocabulary& vocabulary, ChunkNumbers& numbers,
                   Execution& execution) {
    numbers.clear();
    std::vector<WordRun> runs;
    for (const Words& words : chunks) {
        const auto count = static_cast<std::uint32_t>(words.size());
        runs.push_back({static_cast<std::uint32_t>(numbers.size()), 0, count});
        numbers.emplace_back(count);
    }
    return number_words(chunks, runs, false, vocabulary, numbers, execution);
}

Status renumber_texts(const ChunkedTexts& texts, const ChunkNumbers& numbers,
                      const RecordSink& sink, Execution& execution) {
    // Records keep their sizes, so each part begins where the sizes before it end.
    std::vector<std::uint64_t> begins;
    std::uint64_t size = 0;
    for (std::size_t i = 0, parts = texts.parts(); i < parts; ++i) {
        const TextPart part = texts.part(i);
        begins.push_back(size);
        for (std::size_t text = part.begin; text < part.end; ++text) size += texts.texts[text].size;
    }
    struct Scratch {
        std::vector<std::uint64_t> row;
        std::vector<std::uint32_t> records;
    };
    std::vector<Scratch> of_worker(execution.threads());
    return for_texts(
        texts, "numbering words",
        [&](const TextPart& part, unsigned worker) -> Status {
            Scratch& scratch = of_worker[worker];
            scratch.records.clear();
            for (std::size_t i = part.begin; i < part.end; ++i) {
                const ChunkText& text = texts.texts[i];
                if (texts.form == TextForm::terms)
                    append_terms(text, numbers[text.chunk], scratch.row, scratch.records);
                else
                    append_words(text, numbers[text.chunk], scratch.records);
            }
            return sink(begins[part.number], scratch.records);
        },
        execution);
}

namespace {

std::uint64_t kept_terms(const ChunkText& text, const std::vector<std::uint32_t>& numbers) {
    const auto left_out = [&numbers](std::uint32_t term) { return numbers[term] == UINT32_MAX; };
    const std::uint32_t* const terms = text.record + 1;
    return *text.record -
           static_cast<std::uint64_t>(std::count_if(terms, terms + *text.record, left_out));
}

/// Assembles the rows of the matrix.
class RowsAtWork {
public:
    void clear() {
        columns_.clear();
        values_.clear();
    }
    void add(const ChunkText& text, const std::vector<std::uint32_t>& numbers) {
        const std::uint32_t count = *text.record;
        row_.clear();
        for (std::uint32_t i = 1; i <= count; ++i) {
            const std::uint64_t number = numbers[text.record[i]];
            if (number != UINT32_MAX) row_.push_back(number << 32 | text.record[count + i]);
        }
        std::sort(row_.begin(), row_.end());
        for (const std::uint64_t element : row_) {
            columns_.push_back(static_cast<std::uint32_t>(element >> 32));
            values_.push_back(static_cast<std::uint32_t>(element));
        }
    }
    std::span<const std::uint32_t> columns() const { return columns_; }
    std::span<const std::uint32_t> values() const { return values_; }

private:
    std::vector<std::uint64_t> row_;
    std::vector<std::uint32_t> columns_, values_;
};

}  // namespace

Status count_terms(const NumberedTexts& rows, bool leaves_out, std::span<std::uint64_t> row_begins,
                   Execution& execution) {
    const auto count = [&](const TextPart& part, unsigned) -> Status {
        for (std::size_t row = part.begin; row < part.end; ++row) {
            const ChunkText& text = rows.texts.texts[row];
            row_begins[row + 1] =
                leaves_out ? kept_terms(text, (*rows.numbers)[text.chunk]) : *text.record;
        }
        return {};
    };
    GPUTEXT_TRY(for_texts(rows.texts, "counting terms of rows", count, execution));
    row_begins[0] = 0;
    for (std::size_t row = 1; row < row_begins.size(); ++row)
        row_begins[row] += row_begins[row - 1];
    return {};
}

Status number_terms(const NumberedTexts& rows, std::span<const std::uint64_t> row_begins,
                    const TermSink& sink, Execution& execution) {
    std::vector<RowsAtWork> of_worker(execution.threads());
    const auto number = [&](const TextPart& part, unsigned worker) {
        RowsAtWork& at_work = of_worker[worker];
        at_work.clear();
        for (std::size_t row = part.begin; row < part.end; ++row) {
            const ChunkText& text = rows.texts.texts[row];
            at_work.add(text, (*rows.numbers)[text.chunk]);
        }
        return sink(row_begins[part.begin], at_work.columns(), at_work.values());
    };
    return for_texts(rows.texts, "numbering terms of rows", number, execution);
}

}  // namespace gputext
