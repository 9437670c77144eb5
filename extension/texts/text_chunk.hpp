// extension/texts/text_chunk.hpp - texts in one chunk, in files that gputextd can keep

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/link/resident_answers.hpp"
#include "cpp/link/resident_values.hpp"
#include "cpp/terms/chunked_texts.hpp"

namespace gputext {

/// A chunk with a list of words of its own, as AddTerms wants it.
class TextChunk {
public:
    /// Copies the texts into the chunk. Calls nothing of PostgreSQL. O(size of the texts), in
    /// threads, and O(bytes of their words). Errors: memory_limit where the chunk would take more
    /// than `limit` bytes, and then there is none; out_of_memory; io_error; cancelled.
    Status make(const ChunkedTexts& texts, std::size_t limit, Execution& execution);

    // After make(), and valid as long as this object:

    ChunkedTexts texts() const { return {form_, texts_, {&words_, 1}, size_}; }
    AddTerms message() const;
    TermFiles files() const;

private:
    Status write_words(const Vocabulary& vocabulary);
    Status write_ends(const ChunkedTexts& texts);
    void list_texts(const ChunkedTexts& texts);

    TextForm form_ = TextForm::terms;
    std::uint64_t size_ = 0;
    PartedFile records_;  // in one part
    MemoryFile ends_file_, words_file_;
    Words words_;
    std::vector<ChunkText> texts_;
};

}  // namespace gputext
