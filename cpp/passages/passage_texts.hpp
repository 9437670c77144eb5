// cpp/passages/passage_texts.hpp - documents as sequences of symbols that are compared, and where
// each symbol stands in its document

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/documents.hpp"

namespace gputext {

enum class PassageUnit : std::uint8_t {
    characters,
    words  // runs of letters, digits and all beyond ASCII, without regard to what is between them
};

struct PassageForm {
    PassageUnit unit = PassageUnit::characters;
    /// Whether letters of both cases are one, as far as ASCII has them.
    bool fold_case = false;
    /// Whether blanks that follow each other are one blank. Of characters.
    bool fold_blanks = false;
};

/// Where a stretch of symbols stands in its document, in characters from 0.
struct Place {
    std::uint64_t start, length;
};

/// The symbols of all documents, one document after the other.
class PassageTexts {
public:
    /// O(bytes) time. A byte a symbol where all characters have one byte and nothing is folded,
    /// else 4, and with folding or words 8 more for the places. Errors: cancelled;
    /// out_of_memory.
    Status set(const Documents& documents, const PassageForm& form, bool with_places,
               Execution& execution);

    std::size_t documents() const { return begins_.size() - 1; }
    std::uint64_t symbols() const { return begins_.back(); }
    /// Document d has the symbols [begin(d), begin(d + 1)).
    std::uint64_t begin(std::size_t document) const { return begins_[document]; }
    std::size_t document_of(std::uint64_t symbol) const;

    /// Whether there are characters between symbols, as between words, that are part of none.
    bool has_gaps() const { return has_gaps_; }

    /// Whether a symbol is a byte. Then bytes() are all of them, else numbers().
    bool narrow() const { return numbers_ == nullptr; }
    const std::uint8_t* bytes() const { return bytes_.get(); }
    const std::uint32_t* numbers() const { return numbers_.get(); }

    // Of texts with places
    /// `length` is at least 1.
    Place place(std::size_t document, std::uint64_t first, std::uint64_t length) const;
    /// Characters of a document.
    std::uint64_t characters(std::size_t document) const { return characters_[document]; }

private:
    Status set_narrow(const Documents& documents, Execution& execution);
    Status index_documents(Stop stop);

    bool has_gaps_ = false;
    std::unique_ptr<std::uint8_t[]> bytes_;
    std::unique_ptr<std::uint32_t[]> numbers_;
    std::vector<std::uint64_t> begins_ = {0};
    std::vector<std::uint64_t> characters_;
    /// The document of each so many symbols' first one, and the last document.
    std::vector<std::uint32_t> documents_of_blocks_;
    // Of a symbol: the characters before it in its document, and those it takes; not there where a
    // symbol is a character, and without places.
    std::unique_ptr<std::uint32_t[]> starts_, lengths_;
};

}  // namespace gputext
