// extension/inputs/model_query.hpp - reads a model of words, as word2vec() returns it, from an
// inner query

#pragma once

#include "extension/base/postgres.hpp"

#include <span>
#include <vector>

#include "cpp/base/vocabulary.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {

/// What is to be read beside `word` and `vector`.
struct ModelColumns {
    bool counts = false;          // column count
    bool output_vectors = false;  // column output_vector
    bool repeated = false;        // a word may come several times: the rows of several models
};

/// The words of a model, numbered from 0 in the order in which they come first, and what its rows
/// have of them: a row a word, unless words are repeated.
/// Functions raise errors.
class ModelRows {
public:
    explicit ModelRows(std::size_t memory_limit)
        : vectors_(memory_limit), output_vectors_(memory_limit) {}

    const Vocabulary& vocabulary() const { return vocabulary_; }
    std::size_t words() const { return vocabulary_.size(); }
    /// Dimensions of all vectors; 0 while there are no words.
    std::size_t dimensions() const { return dimensions_; }
    std::uint64_t bytes() const { return vectors_.size() + output_vectors_.size(); }
    /// The word of each row, where ModelColumns lets words come several times.
    std::span<const std::uint32_t> row_words() const { return row_words_; }
    /// Count of each row's word, where ModelColumns asked for counts.
    std::span<const std::uint64_t> counts() const { return counts_; }

    /// dimensions() finite numbers for each row, row by row; valid until share().
    std::span<const float> vectors() const { return floats(vectors_); }
    std::span<const float> output_vectors() const { return floats(output_vectors_); }

    /// For another process: the same in files, as PackedBytes::share() does.
    FileDescriptor share_vectors() { return vectors_.share(); }
    FileDescriptor share_output_vectors() { return output_vectors_.share(); }

    /// Gives memory and files back, as PackedBytes::release() does.
    void release();

private:
    friend class ModelReceiver;
    friend void read_model(const char* sql, const ModelColumns& wanted, ModelRows& model);

    void finish();
    static std::span<const float> floats(const PackedBytes& bytes);

    Vocabulary vocabulary_;
    std::size_t dimensions_ = 0;
    std::vector<std::uint32_t> row_words_;
    std::vector<std::uint64_t> counts_;
    PackedBytes vectors_, output_vectors_;
};

/// Reads the model that the query gives, showing meanwhile how many words there are. Columns are
/// known by their names, `word`, `vector` and those of `wanted`, and others are not looked at; when
/// none has such a name and there are just as many columns, they are taken in the order word,
/// count, vector, output_vector. Vectors are of the types of extension/types/vector_type.hpp but
/// for sparsevec; their elements are rounded to real. Raises an error for columns that are missing
/// or of other types, for a null, a word that comes twice, a negative count, vectors of different
/// lengths, and elements that are NaN or infinite, or so as real.
void read_model(const char* sql, const ModelColumns& wanted, ModelRows& model);

}  // namespace gputext
