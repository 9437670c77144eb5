// bench/corpus_reader.hpp - reads the documents of a benchmark corpus

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gputext::bench {

static_assert(std::endian::native == std::endian::little, "documents.bin is little-endian");

/// Reads documents.bin (bench/README.md): for each document a uint32 length and its bytes.
/// Document i has the id i + 1 in documents.tsv and truth.tsv.
class Corpus {
public:
    /// Throws std::runtime_error when the file is missing or truncated.
    explicit Corpus(const std::filesystem::path& path) : file_(read_file(path)) {
        std::size_t at = 0;
        while (at < file_.size()) {
            const std::size_t length = read_length(at);
            at += sizeof(std::uint32_t);
            if (file_.size() - at < length) throw std::runtime_error("truncated: " + path.string());
            documents_.emplace_back(file_.data() + at, length);
            at += length;
            bytes_ += length;
        }
    }

    // The documents are views into the corpus, which therefore stays where it is.
    Corpus(const Corpus&) = delete;
    Corpus& operator=(const Corpus&) = delete;

    const std::vector<std::string_view>& documents() const { return documents_; }
    /// Sum of the documents' lengths.
    std::size_t bytes() const { return bytes_; }

private:
    static std::string read_file(const std::filesystem::path& path) {
        std::ifstream file(path, std::ios::binary);
        if (!file) throw std::runtime_error("cannot read: " + path.string());
        std::string data(std::filesystem::file_size(path), '\0');
        if (!file.read(data.data(), static_cast<std::streamsize>(data.size()))) {
            throw std::runtime_error("cannot read: " + path.string());
        }
        return data;
    }

    std::size_t read_length(std::size_t at) const {
        std::uint32_t length = 0;
        if (file_.size() - at < sizeof length) throw std::runtime_error("truncated length");
        std::memcpy(&length, file_.data() + at, sizeof length);
        return length;
    }

    std::string file_;
    std::vector<std::string_view> documents_;
    std::size_t bytes_ = 0;
};

}  // namespace gputext::bench
