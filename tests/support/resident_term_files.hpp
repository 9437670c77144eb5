// tests/support/resident_term_files.hpp - made-up terms of texts, and the files in which sessions
// hand them over

#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cpp/link/resident_answers.hpp"
#include "tests/support/resident_value_files.hpp"

namespace gputext::testing {

template <class T>
FileDescriptor sealed_array(const std::vector<T>& array) {
    return sealed_file(
        {reinterpret_cast<const std::uint8_t*>(array.data()), array.size() * sizeof(T)});
}

/// Terms of unlike sizes, which values of a table point to as those of some_values() do.
inline ResidentValueList some_terms(std::uint32_t table, std::uint32_t first, std::size_t count) {
    ResidentValueList values = some_values(table, first, count, 0);
    for (ResidentValue& value : values) value.size = 4 * (value.number * 7 % 50);
    return values;
}

/// Pointers say no sizes of terms.
inline FileDescriptor term_pointer_file(ResidentValueList values) {
    for (ResidentValue& value : values) value.size = 0;
    return pointer_file(values);
}

/// "NAME 0", "NAME 1", ...
inline std::vector<std::string> some_words(const std::string& name, std::size_t count) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < count; ++i) words.push_back(name + " " + std::to_string(i));
    return words;
}

inline ByteList word_file(const std::vector<std::string>& words) {
    std::vector<std::uint64_t> begins{0};
    std::string bytes;
    for (const std::string& word : words) {
        bytes += word;
        begins.push_back(bytes.size());
    }
    const auto* const first = reinterpret_cast<const std::uint8_t*>(begins.data());
    ByteList file(first, first + begins.size() * sizeof(begins[0]));
    file.insert(file.end(), bytes.begin(), bytes.end());
    return file;
}

/// What comes with AddTerms.
struct FilesOfTerms {
    FilesOfTerms(const ResidentValueList& values, std::span<const std::uint32_t> rows,
                 const std::vector<std::string>& words) {
        const ByteList bytes = bytes_of_rows(values, rows), list = word_file(words);
        std::vector<std::uint64_t> ends;
        std::uint64_t end = 0;
        for (const std::uint32_t row : rows) ends.push_back(end += values[row].size);
        message = {bytes.size(), words.size(), list.size()};
        files.push_back(sealed_file(bytes));
        files.push_back(sealed_array(ends));
        files.push_back(sealed_file(list));
    }

    TermFiles descriptors() const { return {files[0].get(), files[1].get(), files[2].get()}; }

    AddTerms message;
    std::vector<FileDescriptor> files;
};

/// Every row has the terms that it points to.
inline void expect_terms(const MappedTerms& terms, const ResidentValueList& values) {
    ASSERT_EQ(terms.places().size(), values.size());
    for (std::size_t row = 0; row < values.size(); ++row) {
        const auto bytes = terms.value(terms.places()[row]);
        EXPECT_EQ(ByteList(bytes.begin(), bytes.end()), bytes_of_all({values[row]})) << row;
    }
}

inline std::vector<std::string> words_of(const MappedTerms::Chunk& chunk) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < chunk.words.size(); ++i) words.emplace_back(chunk.words[i]);
    return words;
}

}  // namespace gputext::testing
