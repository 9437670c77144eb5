#include "cpp/daemon/job_files.hpp"

namespace gputext {

namespace {

Status map_side_by_side(std::span<const FileDescriptor> files, const PartsShape& parts,
                        std::uint64_t size, Trust trust, MappedFile& mapped) {
    std::vector<int> descriptors;
    for (const FileDescriptor& file : files) descriptors.push_back(file.get());
    Result<MappedFile> result = MappedFile::map({descriptors, parts.part_bytes}, size, trust);
    if (!result.ok()) return result.status();
    mapped = std::move(*result);
    return {};
}

}  // namespace

std::span<const FileDescriptor> JobFiles::take(std::size_t count) {
    const auto taken = files_.first(count);
    files_ = files_.subspan(count);
    return taken;
}

std::shared_ptr<const ResidentChunk> JobFiles::chunk(std::uint64_t resident,
                                                     std::span<const FileDescriptor> files,
                                                     std::uint64_t size) const {
    if (resident == 0 || chunks_ == nullptr) return nullptr;
    auto chunk = chunks_->find(resident);
    if (chunk == nullptr || chunk->bytes().size() != size || !chunk->has_files(files))
        return nullptr;
    return chunk;
}

Status InputBytes::map(JobFiles& files, const PartsShape& parts, std::uint64_t size,
                       std::uint64_t resident, Arrival arrival, Stop stop) {
    const auto own = files.take(parts.parts);
    chunk_ = files.chunk(resident, own, size);
    if (chunk_ != nullptr)
        return arrival == Arrival::later ? Status() : chunk_->filling().wait(stop);
    const Status mapped = map_side_by_side(own, parts, size, Trust::sealed_or_disk, own_);
    if (resident == 0 || mapped.code() != ErrorCode::invalid_argument) return mapped;
    // Nothing but their seals is missing where another gputextd was to fill them, or failed to.
    MappedFile unfilled;
    if (!map_side_by_side(own, parts, size, Trust::own, unfilled).ok()) return mapped;
    return {ErrorCode::unavailable, "gputextd does not have the values any more"};
}

Status map_next(JobFiles& files, std::uint64_t size, Trust trust, MappedFile& mapped) {
    return map_side_by_side(files.take(1), PartsShape(), size, trust, mapped);
}

Status MappedMatrix::map(const MatrixShape& shape, JobFiles& files, Stop stop, Arrival arrival) {
    GPUTEXT_TRY(elements_.map(files, shape.parts, shape.element_bytes(), shape.resident,
                              shape.sparse ? Arrival::awaited : arrival, stop));
    vectors_ = {shape.element, shape.rows, shape.dimensions, elements_.bytes().data(), {}, {}};
    if (!shape.sparse) {
        vectors_.known = elements_.known();
        return {};
    }
    GPUTEXT_TRY(map_next(files, shape.stored, Trust::sealed_or_disk, columns_, vectors_.columns));
    GPUTEXT_TRY(map_next(files, std::uint64_t{shape.rows} + 1, Trust::sealed, begins_,
                         vectors_.row_begins));
    return check_row_begins(vectors_.row_begins, shape.stored, stop);
}

Status MappedKeys::map(bool has_keys, bool has_matches, std::uint32_t queries,
                       std::uint32_t items, JobFiles& files) {
    const auto map_keys = [&](MappedFile& file, auto& keys) -> Status {
        std::span<const std::uint32_t> all;
        GPUTEXT_TRY(map_next(files, std::uint64_t{queries} + items, Trust::sealed, file, all));
        keys = {all.first(queries), all.subspan(queries)};
        return {};
    };
    if (has_keys) GPUTEXT_TRY(map_keys(key_file_, keys_));
    if (has_matches) GPUTEXT_TRY(map_keys(match_file_, matches_));
    return {};
}

Status MappedSearch::map(const SearchShape& shape, JobFiles& files, Stop stop, Arrival of_items) {
    GPUTEXT_TRY(queries_.map(shape.queries, files, stop));
    GPUTEXT_TRY(items_.map(shape.items, files, stop, of_items));
    return keys_.map(shape.has_keys, shape.has_matches, shape.queries.rows, shape.items.rows,
                     files);
}

Status MappedWords::map(const WordsShape& shape, JobFiles& files, Stop stop) {
    std::span<const std::uint64_t> begins;
    GPUTEXT_TRY(map_next(files, shape.bytes, Trust::sealed_or_disk, bytes_));
    GPUTEXT_TRY(map_next(files, std::uint64_t{shape.words} + 1, Trust::sealed, begins_, begins));
    static constexpr std::uint8_t nothing = 0;
    words_ = {shape.bytes == 0 ? &nothing : bytes_.bytes().data(), begins.data(), shape.words};
    return check_word_begins(begins, shape.bytes, stop);
}

Status append_neighbors(MemoryFile& file, std::span<const Neighbors> answers, Stop stop) {
    std::vector<std::uint64_t> begins(1, 0);
    for (const Neighbors& answer : answers) {
        const std::uint64_t first = begins.back();
        for (std::size_t i = 1; i < answer.begins.size(); ++i)
            begins.push_back(first + answer.begins[i]);
    }
    GPUTEXT_TRY(append_all(file, begins, stop));
    for (const Neighbors& answer : answers) GPUTEXT_TRY(append_all(file, answer.distances, stop));
    for (const Neighbors& answer : answers) GPUTEXT_TRY(append_all(file, answer.items, stop));
    return {};
}

}  // namespace gputext
