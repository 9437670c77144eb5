#include "cpp/daemon/job_files.hpp"

namespace gputext {

Status map_next(JobFiles& files, std::uint64_t size, Trust trust, MappedFile& mapped) {
    return map_next(files, PartsShape(), size, trust, mapped);
}

Status map_next(JobFiles& files, const PartsShape& parts, std::uint64_t size, Trust trust,
                MappedFile& mapped) {
    std::vector<int> descriptors;
    for (const FileDescriptor& file : files.first(parts.parts)) descriptors.push_back(file.get());
    files = files.subspan(parts.parts);
    Result<MappedFile> result = MappedFile::map({descriptors, parts.part_bytes}, size, trust);
    if (!result.ok()) return result.status();
    mapped = std::move(*result);
    return {};
}

Status MappedMatrix::map(const MatrixShape& shape, JobFiles& files, Stop stop) {
    GPUTEXT_TRY(
        map_next(files, shape.parts, shape.element_bytes(), Trust::sealed_or_disk, elements_));
    vectors_ = {shape.element, shape.rows, shape.dimensions, elements_.bytes().data(), {}, {}};
    if (!shape.sparse) return {};
    GPUTEXT_TRY(map_next(files, shape.stored, Trust::sealed_or_disk, columns_, vectors_.columns));
    GPUTEXT_TRY(map_next(files, std::uint64_t{shape.rows} + 1, Trust::sealed, begins_,
                         vectors_.row_begins));
    return check_row_begins(vectors_.row_begins, shape.stored, stop);
}

Status MappedSearch::map(const SearchShape& shape, JobFiles& files, Stop stop) {
    GPUTEXT_TRY(queries_.map(shape.queries, files, stop));
    GPUTEXT_TRY(items_.map(shape.items, files, stop));
    if (!shape.has_keys) return {};
    std::span<const std::uint32_t> keys;
    GPUTEXT_TRY(map_next(files, shape.rows(), Trust::sealed, key_file_, keys));
    keys_ = {keys.first(shape.queries.rows), keys.subspan(shape.queries.rows)};
    return {};
}

Status MappedWords::map(const WordsShape& shape, JobFiles& files, Stop stop) {
    std::span<const std::uint64_t> begins;
    GPUTEXT_TRY(map_next(files, shape.bytes, Trust::sealed_or_disk, bytes_));
    GPUTEXT_TRY(map_next(files, std::uint64_t{shape.words} + 1, Trust::sealed, begins_, begins));
    static constexpr std::uint8_t nothing = 0;
    words_ = {shape.bytes == 0 ? &nothing : bytes_.bytes().data(), begins.data(), shape.words};
    return check_word_begins(begins, shape.bytes, stop);
}

Status append_neighbours(MemoryFile& file, const Neighbours& neighbours, Stop stop) {
    GPUTEXT_TRY(append_all(file, neighbours.begins, stop));
    GPUTEXT_TRY(append_all(file, neighbours.distances, stop));
    return append_all(file, neighbours.items, stop);
}

}  // namespace gputext
