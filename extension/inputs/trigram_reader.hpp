// extension/inputs/trigram_reader.hpp - the trigrams that pg_trgm makes of texts
//
// pg_trgm splits a text into words, in lower case, by the database's locale, and its function
// show_trgm() says what trigrams it makes of them. A reader asks that function, but for texts of
// ASCII characters alone: what each of them becomes does not depend on the others, so that the
// reader asks once for each character and makes their trigrams itself.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "fmgr.h"
}

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cpp/base/characters.hpp"

namespace gputext {

/// pg_trgm's function show_trgm() in C, wherever it lies. Invalid where the database has none.
Oid trigram_function();

/// Functions raise errors.
class TrigramReader {
public:
    /// Of that function, which need not be one that the current role may call. Allocates in the
    /// memory that is current, and stays in it.
    explicit TrigramReader(Oid function);

    /// The different trigrams of a value of type text as numbers, ascending; valid until the next
    /// call. What the value is unpacked to stays in the memory that is current. O(n log n) time.
    std::span<const std::uint32_t> read(Datum value);

    /// The same of a text for which knows() is true, in any thread: writes up to one number more
    /// than it has bytes, and returns how many are different.
    std::size_t read_known(Bytes text, std::uint32_t* numbers) const;
    /// Whether the reader makes the trigrams of the text itself. O(bytes).
    bool knows(Bytes text) const;

private:
    std::span<const std::uint32_t> ask(Datum value);
    std::size_t read_ascii(Bytes text, std::uint32_t* numbers) const;
    std::optional<std::uint8_t> ask_character(char character);
    bool reads_as_asked();
    void learn_characters();
    void reserve(std::size_t count);

    MemoryContext context_;
    FmgrInfo function_;
    /// What each ASCII character becomes within a word; 0 for one that ends words.
    std::array<std::uint8_t, 128> characters_{};
    bool knows_characters_ = false;
    std::uint32_t* numbers_ = nullptr;
    std::size_t capacity_ = 0;
};

}  // namespace gputext
