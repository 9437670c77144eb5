// extension/texts/text_work.hpp - parses the texts of a column in parallel workers
//
// Processes take stretches of rows, in their order. Each process numbers the words that it finds by
// a vocabulary of its own, and leaves words, records of rows, and a note about every stretch in a
// file of the session's. So each process's output is a chunk (cpp/terms/chunked_texts.hpp).

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/words.hpp"
#include "cpp/terms/chunked_texts.hpp"
#include "extension/texts/stretch_reader.hpp"
#include "extension/values/packed_rows.hpp"
#include "extension/values/shared_array.hpp"
#include "extension/values/stored_values.hpp"

namespace gputext {

/// Rows that follow each other, read by one process.
struct TextStretch {
    std::uint32_t number;  // among the stretches of all rows
    std::uint32_t process;
    std::uint32_t rows;
    std::uint32_t zero;
    std::uint64_t begin, end;  // bytes of the process's output
};

struct LeftBehind;

/// Seconds that one process takes to fetch, unpack and parse the values, about.
double seconds_of_parsing(TextKind kind, const StoredValues& values);

/// The words of the texts of a column. Functions raise errors.
class ReadTexts {
public:
    ReadTexts(TextKind kind, Oid config, std::size_t memory_limit)
        : kind_(kind), config_(config), memory_limit_(memory_limit), chosen_(memory_limit) {}

    /// Reads these rows, whose columns these are; all columns have as many rows. Returns the first
    /// row with which something is wrong, or the number of all rows; anything else is of use only
    /// without one.
    std::uint64_t read(std::span<StoredValues* const> columns, ChosenRows rows = {});

    /// What was read, in the order of rows; valid until release().
    ChunkedTexts texts() const;

    void release();

private:
    void* new_work(std::span<StoredValues* const> columns, ChosenRows rows, unsigned workers);
    bool try_read(std::span<StoredValues* const> columns, ChosenRows rows, unsigned workers,
                  std::uint64_t& first_fault);
    void collect_own();
    void collect(const LeftBehind& left, const std::uint8_t* file);
    Status list_texts(Execution& execution);

    TextKind kind_;
    Oid config_;
    std::size_t memory_limit_;
    std::unique_ptr<StretchReader> session_reader_;
    std::vector<TextStretch> session_stretches_;
    std::vector<std::unique_ptr<PackedBytes>> files_;  // of the workers
    DescriptorRoom room_;                              // for them
    SharedArrays chosen_;
    std::vector<TextStretch> stretches_;  // in the order of rows
    // What processes have found; lies in the reader of the session, or in files.
    std::vector<Words> words_;
    std::vector<const std::uint8_t*> outputs_;
    std::vector<ChunkText> texts_;
    std::uint64_t size_ = 0;
};

}  // namespace gputext
