#include "cpp/daemon/job_files.hpp"

namespace gputext {

Status map_next(JobFiles& files, std::uint64_t size, Trust trust, MappedFile& mapped) {
    Result<MappedFile> result = MappedFile::map(files.front().get(), size, trust);
    files = files.subspan(1);
    if (!result.ok()) return result.status();
    mapped = std::move(*result);
    return {};
}

Status MappedMatrix::map(const MatrixShape& shape, JobFiles& files, Stop stop) {
    const std::uint64_t size = shape.stored * element_size(shape.element);
    Status status = map_next(files, size, Trust::sealed_or_disk, elements_);
    vectors_ = {shape.element, shape.rows, shape.dimensions, elements_.bytes().data(), {}, {}};
    if (!status.ok() || !shape.sparse) return status;
    status = map_next(files, shape.stored, Trust::sealed_or_disk, columns_, vectors_.columns);
    if (status.ok())
        status = map_next(files, std::uint64_t{shape.rows} + 1, Trust::sealed, begins_,
                          vectors_.row_begins);
    return status.ok() ? check_row_begins(vectors_.row_begins, shape.stored, stop) : status;
}

Status MappedSearch::map(const SearchShape& shape, JobFiles& files, Stop stop) {
    Status status = queries_.map(shape.queries, files, stop);
    if (status.ok()) status = items_.map(shape.items, files, stop);
    if (!status.ok() || !shape.has_keys) return status;
    std::span<const std::uint32_t> keys;
    status = map_next(files, shape.rows(), Trust::sealed, key_file_, keys);
    if (status.ok()) keys_ = {keys.first(shape.queries.rows), keys.subspan(shape.queries.rows)};
    return status;
}

Status MappedWords::map(const WordsShape& shape, JobFiles& files, Stop stop) {
    std::span<const std::uint64_t> begins;
    Status status = map_next(files, shape.bytes, Trust::sealed_or_disk, bytes_);
    if (status.ok())
        status = map_next(files, std::uint64_t{shape.words} + 1, Trust::sealed, begins_, begins);
    if (!status.ok()) return status;
    static constexpr std::uint8_t nothing = 0;
    words_ = {shape.bytes == 0 ? &nothing : bytes_.bytes().data(), begins.data(), shape.words};
    return check_word_begins(begins, shape.bytes, stop);
}

Status append_neighbours(MemoryFile& file, const Neighbours& neighbours, Stop stop) {
    Status status = append_all(file, neighbours.begins, stop);
    if (status.ok()) status = append_all(file, neighbours.distances, stop);
    if (status.ok()) status = append_all(file, neighbours.items, stop);
    return status;
}

}  // namespace gputext
