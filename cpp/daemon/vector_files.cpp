#include "cpp/daemon/vector_files.hpp"

namespace gputext {

Status MappedMatrix::map(const MatrixShape& shape, std::span<const FileDescriptor>& files,
                         Stop stop) {
    const auto own = files.first(shape.files());
    files = files.subspan(shape.files());
    const std::uint64_t size = shape.stored * element_size(shape.element);
    Status status = map_file(own[0], size, Trust::sealed_or_disk, elements_);
    vectors_ = {shape.element, shape.rows, shape.dimensions, elements_.bytes().data(), {}, {}};
    if (!status.ok() || !shape.sparse) return status;
    status =
        map_file(own[1], shape.stored * sizeof(std::uint32_t), Trust::sealed_or_disk, columns_);
    const std::size_t begins = std::size_t{shape.rows} + 1;
    if (status.ok())
        status = map_file(own[2], begins * sizeof(std::uint64_t), Trust::sealed, begins_);
    if (!status.ok()) return status;
    vectors_.columns = columns_.array<std::uint32_t>(0, shape.stored);
    vectors_.row_begins = begins_.array<std::uint64_t>(0, begins);
    return check_row_begins(vectors_.row_begins, shape.stored, stop);
}

Status MappedSearch::map_keys(const FileDescriptor& file, std::size_t queries, std::size_t items) {
    Status status =
        map_file(file, (queries + items) * sizeof(std::uint32_t), Trust::sealed, key_file_);
    if (!status.ok()) return status;
    keys_ = {key_file_.array<std::uint32_t>(0, queries),
             key_file_.array<std::uint32_t>(queries * sizeof(std::uint32_t), items)};
    return {};
}

Status append_neighbours(MemoryFile& file, const Neighbours& neighbours, Stop stop) {
    Status status = append_all(file, neighbours.begins, stop);
    if (status.ok()) status = append_all(file, neighbours.distances, stop);
    if (status.ok()) status = append_all(file, neighbours.items, stop);
    return status;
}

}  // namespace gputext
