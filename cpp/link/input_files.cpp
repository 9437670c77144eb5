#include "cpp/link/input_files.hpp"

#include <algorithm>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

bool possible(const MatrixShape& matrix) {
    constexpr std::uint64_t most_dimensions = std::uint64_t{1} << 31;
    return matrix.rows != UINT32_MAX && matrix.dimensions <= most_dimensions &&
           matrix.stored <= kMostStored && matrix.parts.hold(matrix.element_bytes());
}

MatrixShape shape_of(const Vectors& vectors) {
    MatrixShape shape;
    shape.element = vectors.type;
    shape.rows = static_cast<std::uint32_t>(vectors.rows);
    shape.dimensions = vectors.dimensions;
    shape.sparse = vectors.sparse();
    shape.stored = shape.sparse ? vectors.row_begins.back() : vectors.rows * vectors.dimensions;
    return shape;
}

template <class T>
std::span<const std::uint8_t> bytes_of(std::span<const T> array) {
    return {reinterpret_cast<const std::uint8_t*>(array.data()), array.size_bytes()};
}

Status append(MemoryFile& file, std::span<const std::uint8_t> bytes, Stop stop) {
    while (!bytes.empty()) {
        if (stop()) return Status::cancelled();
        const auto part = bytes.first(std::min(kLookEvery, bytes.size()));
        GPUTEXT_TRY(file.append(part));
        bytes = bytes.subspan(part.size());
    }
    return stop() ? Status::cancelled() : Status();
}

}  // namespace

bool MatrixShape::consistent() const {
    if (!possible(*this) || element == ElementType::bit) return false;
    return sparse ? element == ElementType::float32 : stored == rows * dimensions;
}

bool MatrixShape::consistent_bits() const {
    return possible(*this) && !sparse && element == ElementType::bit &&
           stored == rows * dimensions;
}

bool MatrixShape::consistent_texts() const {
    return possible(*this) && sparse &&
           (element == ElementType::float32 || element == ElementType::int32);
}

bool MatrixShape::consistent_model() const {
    return consistent() && !sparse && element == ElementType::float32;
}

Status check_row_begins(std::span<const std::uint64_t> begins, std::uint64_t stored, Stop stop) {
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < begins.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        if (begins[i] < last || begins[i] > stored) return broken("a row outside its matrix");
        last = begins[i];
    }
    if (begins.empty() || begins.front() != 0 || last != stored)
        return broken("elements outside the rows");
    return {};
}

Status check_word_begins(std::span<const std::uint64_t> begins, std::uint64_t bytes, Stop stop) {
    if (begins.empty() || begins.front() != 0 || begins.back() != bytes)
        return broken("bytes outside the words");
    for (std::size_t i = 1; i < begins.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        // A word that begins before the last one would be longer than any.
        if (begins[i] - begins[i - 1] > UINT32_MAX) return broken("a word of impossible length");
    }
    return {};
}

Status RequestFiles::add(const FileParts& files, std::uint64_t size, PartsShape& shape) {
    shape = files.shape();
    if (!shape.hold(size)) return broken("files of another size than their input");
    for (const int descriptor : files.descriptors()) add(descriptor);
    return {};
}

Status RequestFiles::add_copy(std::span<const std::uint8_t> bytes, Stop stop) {
    MemoryFile& copy = copies_.emplace_back();
    GPUTEXT_TRY(append(copy, bytes, stop));
    GPUTEXT_TRY(copy.seal());
    add(copy.descriptor());
    return {};
}

Status RequestFiles::add_or_copy(int given, std::span<const std::uint8_t> bytes, Stop stop) {
    if (given < 0) return add_copy(bytes, stop);
    add(given);
    return {};
}

Status RequestFiles::add(const VectorFiles& files, MatrixShape& shape, Stop stop) {
    const Vectors& vectors = files.vectors;
    if (vectors.rows >= UINT32_MAX) return too_many("rows");
    shape = shape_of(vectors);
    if (files.elements.none()) {
        const auto* const elements = static_cast<const std::uint8_t*>(vectors.elements);
        GPUTEXT_TRY(add_copy(std::span(elements, shape.element_bytes()), stop));
    } else {
        GPUTEXT_TRY(add(files.elements, shape.element_bytes(), shape.parts));
        shape.resident = files.resident;
    }
    if (!shape.sparse) return {};
    GPUTEXT_TRY(add_or_copy(files.columns, bytes_of(vectors.columns), stop));
    return add_copy(vectors.row_begins, stop);
}

Status RequestFiles::add(const WordFiles& files, WordsShape& shape, Stop stop) {
    const Words& words = files.words;
    if (words.size() >= UINT32_MAX) return too_many("words");
    shape = {static_cast<std::uint32_t>(words.size()), words.byte_count()};
    GPUTEXT_TRY(add_or_copy(files.bytes, std::span(words.bytes, shape.bytes), stop));
    const std::uint64_t none = 0;
    const std::span begins(words.size() == 0 ? &none : words.begins, words.size() + 1);
    return add_or_copy(files.begins, bytes_of(begins), stop);
}

Status RequestFiles::add(const VectorFiles& queries, const VectorFiles& items, const RowKeys& keys,
                         const MatchKeys& matches, SearchShape& shape, Stop stop) {
    GPUTEXT_TRY(add(queries, shape.queries, stop));
    GPUTEXT_TRY(add(items, shape.items, stop));
    return add(keys, matches, shape.has_keys, shape.has_matches, stop);
}

Status RequestFiles::add(const RowKeys& keys, const MatchKeys& matches, bool& has_keys,
                         bool& has_matches, Stop stop) {
    has_keys = !keys.queries.empty() || !keys.items.empty();
    has_matches = !matches.none();
    if (has_keys) GPUTEXT_TRY(add_copies(keys.queries, keys.items, stop));
    if (has_matches) GPUTEXT_TRY(add_copies(matches.queries, matches.items, stop));
    return {};
}

Status RequestFiles::add_copies(std::span<const std::uint32_t> queries,
                                std::span<const std::uint32_t> items, Stop stop) {
    MemoryFile& copy = copies_.emplace_back();
    GPUTEXT_TRY(append(copy, bytes_of(queries), stop));
    GPUTEXT_TRY(append(copy, bytes_of(items), stop));
    GPUTEXT_TRY(copy.seal());
    add(copy.descriptor());
    return {};
}

}  // namespace gputext
