// cpp/terms/chunked_texts.hpp - texts as numbers of their words, in chunks with words of their own
//
// Texts are parsed by several processes, and at several times. What one of them has made of its
// texts is a chunk: a list of words, and texts that number words by their places in that list. The
// texts of a query lie in some chunks, in any order. A text is a record of one of two forms:
//
//   TextForm::terms  u32 n; u32 terms[n], each once and ascending; i32 counts[n], or f32 weights[n]
//   TextForm::words  u32 positions, which the text takes; u32 n; n times {u32 word, u32 position},
//                    positions ascending and counted from 1
//
// Terms of the query are numbered in the order of its texts, so what is computed of them does not
// depend on how texts are spread over chunks.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vocabulary.hpp"
#include "cpp/base/words.hpp"

namespace gputext {

enum class TextForm { terms, words };

struct ChunkText {
    const std::uint32_t* record;
    std::uint32_t size;  // of the record, in numbers of four bytes
    std::uint32_t chunk;
};

/// Texts that one thread takes at once: those from `begin` up to `end`.
struct TextPart {
    std::size_t number, begin, end;
};

/// A view: whoever made it keeps the memory.
struct ChunkedTexts {
    TextForm form = TextForm::terms;
    std::span<const ChunkText> texts;  // at most 2^32 - 2, in the order of rows
    std::span<const Words> chunks;
    std::uint64_t size = 0;  // of all records

    /// How many texts a thread takes at once, at least one; and in how many parts that are all.
    std::size_t at_once() const;
    std::size_t parts() const { return (texts.size() + at_once() - 1) / at_once(); }
    TextPart part(std::size_t number) const {
        const std::size_t begin = number * at_once();
        return {number, begin, std::min(texts.size(), begin + at_once())};
    }
};

/// A word of a text in its order.
struct PlacedWord {
    std::uint32_t word, position;
};

/// The parts of a record of TextForm::words.
struct WordRecord {
    std::uint32_t positions;
    std::span<const PlacedWord> words;

    explicit WordRecord(const std::uint32_t* record)
        : positions(record[0]), words(reinterpret_cast<const PlacedWord*>(record + 2), record[1]) {}
};

/// Size of a record that is of the form, in numbers of four bytes.
inline std::uint64_t size_of_record(TextForm form, const std::uint32_t* record) {
    return form == TextForm::terms ? 1 + 2 * std::uint64_t{record[0]}
                                   : 2 + 2 * std::uint64_t{record[1]};
}

/// Numbers of the words of each chunk, by which a word of one chunk is that of another.
using ChunkNumbers = std::vector<std::vector<std::uint32_t>>;

/// Calls body(part, worker) for all parts of the texts, as Execution::parallel_for() does.
using TextBody = std::function<Status(const TextPart& part, unsigned worker)>;
Status for_texts(const ChunkedTexts& texts, const char* phase, const TextBody& body,
                 Execution& execution);

/// Whether the records are what the form says, with words that their chunks have. For records that
/// another process has made. O(size), in threads. Errors: invalid_argument; cancelled.
Status check_texts(const ChunkedTexts& texts, Execution& execution);

/// A word of a chunk.
struct ChunkWord {
    std::uint32_t chunk, word;
};

/// Lists the words of each chunk that the texts have, in the order in which the texts have them;
/// those that a text is the first to have, in the order of their bytes. The lists are to be read
/// one behind the other. O(size), in threads; takes 4 bytes for each word of the chunks. Error:
/// cancelled. For TextForm::terms.
Status list_words(const ChunkedTexts& texts, std::vector<std::vector<ChunkWord>>& lists,
                  Execution& execution);

/// How often the texts have each word, by chunks. O(size) in threads, and O(words) for each of
/// them; takes 4 bytes for each thread and word. Requires that the texts take less than 2^32
/// positions in all. Error: cancelled. For TextForm::words.
Status count_words(const ChunkedTexts& texts, std::vector<std::vector<std::uint64_t>>& counts,
                   Execution& execution);

/// Numbers all words by a vocabulary of all chunks, in threads. Errors: as number_words()
/// (cpp/base/numbered_words.hpp).
Status merge_words(std::span<const Words> chunks, Vocabulary& vocabulary, ChunkNumbers& numbers,
                   Execution& execution);

/// Takes records of texts that follow each other, from that place on, in numbers of four bytes.
/// Called by several threads at once.
using RecordSink =
    std::function<Status(std::uint64_t begin, std::span<const std::uint32_t> records)>;

/// Gives all records to the sink, one behind the other, with these numbers in place of their words.
/// O(n log n) of a text's terms, in threads. Errors: cancelled; the sink's.
Status renumber_texts(const ChunkedTexts& texts, const ChunkNumbers& numbers,
                      const RecordSink& sink, Execution& execution);

// ---- Rows of terms by the numbers of a common vocabulary ----
//
// Texts lie in chunks that number terms by words of their own. Here they become rows of one sparse
// matrix (cpp/base/vectors.hpp).

/// Texts of TextForm::terms, and the number that each term has in the matrix, or UINT32_MAX for one
/// that is left out. A view.
struct NumberedTexts {
    ChunkedTexts texts;
    const ChunkNumbers* numbers;
};

/// Fills row_begins of all rows, one more than there are: what of their terms is not left out, one
/// row behind the other. O(rows), and O(terms) with `leaves_out`. Error: cancelled.
Status count_terms(const NumberedTexts& rows, bool leaves_out, std::span<std::uint64_t> row_begins,
                   Execution& execution);

/// Takes the columns and the values of rows, from that place of the matrix on. Called by several
/// threads at once.
using TermSink = std::function<Status(std::uint64_t begin, std::span<const std::uint32_t> columns,
                                      std::span<const std::uint32_t> values)>;

/// Gives all rows to the sink, each with its columns in ascending order. O(n log n) of a row's
/// terms; takes 16 bytes for each term of the texts at work. Errors: cancelled; the sink's.
Status number_terms(const NumberedTexts& rows, std::span<const std::uint64_t> row_begins,
                    const TermSink& sink, Execution& execution);

}  // namespace gputext
