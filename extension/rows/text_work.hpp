// extension/rows/text_work.hpp - parses the texts of a column in parallel workers
//
// Processes take stretches of rows, in their order. Each process numbers the words that it finds by
// a vocabulary of its own, and leaves words, numbers, and a note about every stretch in a file of
// the session's. What all of them have found is the same whoever read which stretch: the session
// goes through the stretches in the order of rows, and a word that is new there is new to the
// process, too.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/words.hpp"
#include "extension/rows/packed_rows.hpp"
#include "extension/rows/stored_values.hpp"
#include "extension/rows/stretch_reader.hpp"

namespace gputext {

/// Rows that follow each other, read by one process.
struct TextStretch {
    std::uint32_t number;  // among the stretches of all rows
    std::uint32_t process;
    std::uint32_t rows;
    std::uint32_t begin_terms, end_terms;  // numbers of the words that were new to the process
    std::uint32_t zero;
    std::uint64_t begin, end;  // bytes of the process's output
    std::uint64_t positions;   // that the texts take
};

struct LeftBehind;

/// The words of the texts of a column. Functions raise errors.
class ReadTexts {
public:
    ReadTexts(TextKind kind, Oid config, std::size_t memory_limit)
        : kind_(kind), config_(config), memory_limit_(memory_limit) {}

    /// Reads all rows, whose columns these are. Returns the first row with which something is
    /// wrong, or the number of rows; anything else is of use only without one.
    std::uint64_t read(std::span<StoredValues* const> columns);

    /// In the order of rows.
    std::span<const TextStretch> stretches() const { return stretches_; }
    unsigned processes() const { return static_cast<unsigned>(parts_.size()); }
    /// The words that a process has found, by its numbers, and how often.
    Words words(unsigned process) const { return parts_[process].words; }
    std::span<const std::uint64_t> counts(unsigned process) const { return parts_[process].counts; }
    const std::uint8_t* output(unsigned process) const { return parts_[process].output; }

    void release();

private:
    /// What a process has found; lies in the reader of the session, or in a file.
    struct Part {
        Words words;
        std::span<const std::uint64_t> counts;
        const std::uint8_t* output;
    };

    void* new_work(std::span<StoredValues* const> columns, unsigned workers);
    bool try_read(std::span<StoredValues* const> columns, unsigned workers,
                  std::uint64_t& first_fault);
    void collect_own();
    void collect(const LeftBehind& left, const std::uint8_t* file);

    TextKind kind_;
    Oid config_;
    std::size_t memory_limit_;
    std::unique_ptr<StretchReader> session_reader_;
    std::vector<TextStretch> session_stretches_;
    std::vector<std::unique_ptr<PackedBytes>> files_;  // of the workers
    DescriptorRoom room_;                              // for them
    std::vector<Part> parts_;
    std::vector<TextStretch> stretches_;
};

}  // namespace gputext
