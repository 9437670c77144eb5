// cpp/link/input_files.hpp - matrices and words in the files of requests
//
// A matrix (cpp/base/vectors.hpp) is its elements, in sealed memfds or a plain file
// (cpp/link/file_parts.hpp); when sparse, also u32 columns[stored], in such a file, and u64
// row_begins[rows + 1], in a sealed memfd. Words (cpp/base/words.hpp) are their bytes, in a sealed
// memfd or a plain file, and u64 begins[words + 1], in a sealed memfd. Sealed is: F_SEAL_SHRINK,
// F_SEAL_GROW and F_SEAL_WRITE. Then a mapping can never fault and what has been checked stays so.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/base/words.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/link/file_parts.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

// ---- What a message says of them ----

constexpr ElementType last_of(ElementType) {
    return ElementType::bit;
}

/// A matrix whose elements lie in files.
struct MatrixShape {
    ElementType element = ElementType::float32;
    std::uint32_t rows = 0;
    std::uint64_t dimensions = 0;
    bool sparse = false;
    std::uint64_t stored = 0;  // elements in all; of a dense matrix rows * dimensions
    PartsShape parts = {};     // of the elements
    /// What gputextd calls the elements' files (resident_values.hpp); 0 where it does not know
    /// them.
    std::uint64_t resident = 0;

    static void fields(auto& archive, auto& self) {
        archive(self.element, self.rows, self.dimensions, self.sparse, self.stored, self.parts,
                self.resident);
    }
    /// Whether vectors may have it.
    bool consistent() const;
    /// Whether rows of bits may have it.
    bool consistent_bits() const;
    /// Whether texts may have it, as counts or weights of their terms.
    bool consistent_texts() const;
    /// Whether the words of a model may have it.
    bool consistent_model() const;
    std::size_t files() const { return parts.parts + (sparse ? 2 : 0); }
    std::uint64_t element_bytes() const {
        return element == ElementType::bit ? rows * row_size(element, dimensions)
                                           : stored * element_size(element);
    }
    std::uint64_t bytes() const {
        return element_bytes() + (sparse ? stored * sizeof(std::uint32_t) : 0);
    }
};

/// Two matrices, and perhaps keys of their rows: u32[queries] and u32[items], in one sealed memfd
/// behind the files of the matrices. First those that exclude, then those that have to match.
struct SearchShape {
    MatrixShape queries;
    MatrixShape items;
    bool has_keys = false;     // RowKeys
    bool has_matches = false;  // MatchKeys

    static void fields(auto& archive, auto& self) {
        archive(self.queries, self.items, self.has_keys, self.has_matches);
    }
    std::size_t files() const {
        return queries.files() + items.files() + (has_keys ? 1 : 0) + (has_matches ? 1 : 0);
    }
    std::uint64_t rows() const { return std::uint64_t{queries.rows} + items.rows; }
    std::uint64_t bytes() const { return queries.bytes() + items.bytes(); }
};

/// How many words there are in files.
struct WordsShape {
    std::uint32_t words = 0;  // below 2^32 - 1
    std::uint64_t bytes = 0;  // of all of them

    static void fields(auto& archive, auto& self) { archive(self.words, self.bytes); }
    bool consistent() const { return words != UINT32_MAX && bytes <= kMostStored; }
    static constexpr std::size_t files() { return 2; }
    std::uint64_t input_bytes() const { return bytes + words * sizeof(std::uint64_t); }
};

/// Ok when a sparse matrix' rows begin one after the other, from the first element that is stored
/// to the last.
Status check_row_begins(std::span<const std::uint64_t> begins, std::uint64_t stored, Stop stop);

/// Ok when the words lie one after the other within so many bytes, and each is below 4 GB.
Status check_word_begins(std::span<const std::uint64_t> begins, std::uint64_t bytes, Stop stop);

// ---- What a session gives ----

/// Vectors, and the files that hold them where there are any: MemoryFiles or a PartedFile after
/// seal(), or plain files nobody changes. Vectors without files are copied into some when they are
/// submitted; the elements of others are not looked at, and their address may be null.
struct VectorFiles {
    Vectors vectors;
    FileParts elements;          // vectors.elements and nothing else
    int columns = -1;            // vectors.columns and nothing else; sparse vectors only
    std::uint64_t resident = 0;  // of the elements' files, as in MatrixShape
};

/// The vectors of a model's words, and the file that holds them.
inline VectorFiles model_files(const auto& words, int elements) {
    return {{ElementType::float32, words.words, words.dimensions, words.elements, {}, {}},
            elements,
            -1};
}

/// Words, and the files that hold them where there are any.
struct WordFiles {
    Words words;
    int bytes = -1;   // words.bytes and nothing else, as in VectorFiles; -1: they are copied
    int begins = -1;  // words.begins and nothing else, sealed; -1: they are copied
};

/// The files of a request in the order of its message, some of the session's and some that are made
/// for it. They are open as long as this object lives.
class RequestFiles {
public:
    /// A file of the session's, which stays open meanwhile.
    void add(int descriptor) { descriptors_.push_back(descriptor); }
    /// So many bytes in such files, and what is said of them. Error: invalid_argument.
    Status add(const FileParts& files, std::uint64_t size, PartsShape& shape);
    /// Copies bytes into a sealed file. Errors: cancelled; out_of_memory; io_error.
    Status add_copy(std::span<const std::uint8_t> bytes, Stop stop);
    template <class T>
    Status add_copy(std::span<const T> array, Stop stop) {
        return add_copy(
            std::span(reinterpret_cast<const std::uint8_t*>(array.data()), array.size_bytes()),
            stop);
    }
    /// The matrix, or the words, and what is said of them.
    Status add(const VectorFiles& files, MatrixShape& shape, Stop stop);
    Status add(const WordFiles& files, WordsShape& shape, Stop stop);
    Status add(const VectorFiles& queries, const VectorFiles& items, const RowKeys& keys,
               const MatchKeys& matches, SearchShape& shape, Stop stop);
    /// The keys of a search where there are any, and whether there are.
    Status add(const RowKeys& keys, const MatchKeys& matches, bool& has_keys, bool& has_matches,
               Stop stop);

    std::span<const int> descriptors() const { return descriptors_; }

private:
    /// Both arrays in one sealed file.
    Status add_copies(std::span<const std::uint32_t> queries, std::span<const std::uint32_t> items,
                      Stop stop);
    /// The session's file where there is one, or else a copy.
    Status add_or_copy(int given, std::span<const std::uint8_t> bytes, Stop stop);

    std::vector<int> descriptors_;
    std::deque<MemoryFile> copies_;
};

/// A request, ready to be sent: what its pack() fills. `expected` is the answer as far as the
/// request says what it has to be.
template <class Message, class ItsAnswer>
struct PackedRequest {
    using Submit = Message;
    using Answer = ItsAnswer;

    Submit message;
    RequestFiles files;
    Answer expected;
};

}  // namespace gputext
