// extension/inputs/word_rows.hpp - packs the words of rows for cpp/ and devices to read

#pragma once

#include "extension/base/postgres.hpp"

#include <string_view>

#include "cpp/base/recent_words.hpp"
#include "cpp/base/words.hpp"
#include "cpp/link/client.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/memory_file.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {

/// Words in the order in which they came, numbered from 0; one that came not long ago keeps its
/// number, any other is there again. Functions raise errors.
class WordRows {
public:
    explicit WordRows(std::size_t memory_limit) : bytes_(memory_limit) {}

    /// The number of the word.
    std::uint32_t add(std::string_view word);
    std::uint32_t size() const { return size_; }
    /// Size of all words, and of the positions where they begin.
    std::uint64_t bytes() const { return bytes_.size() + begins_.size(); }

    /// Ends the adding; what follows is for then.
    void finish();
    /// Valid until share(), and no longer than this object.
    Words view() const;

    /// Makes the words readable for another process, which files() then lets it have.
    void share();
    WordFiles files() const { return {view(), file_.get(), begins_.descriptor()}; }

    /// Gives memory and file back, as PackedBytes::release() does.
    void release() { bytes_.release(); }

private:
    RecentWords recent_;
    std::uint32_t size_ = 0;
    PackedBytes bytes_;
    MemoryFile begins_;  // u64 of each word; once finished, and their end
    FileDescriptor file_;
};

}  // namespace gputext
