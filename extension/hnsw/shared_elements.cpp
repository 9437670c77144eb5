#include "extension/hnsw/shared_elements.hpp"

extern "C" {
#include "miscadmin.h"
}

#include <fcntl.h>

#include <algorithm>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "extension/server/parallel_work.hpp"

namespace gputext::hnsw {
namespace {

template <class T>
Status append(MemoryFile& file, std::span<const T> array, Execution& execution) {
    std::span bytes(reinterpret_cast<const std::uint8_t*>(array.data()), array.size_bytes());
    while (!bytes.empty()) {
        GPUTEXT_TRY(execution.checkpoint(0));
        const auto part = bytes.first(std::min(bytes.size(), kLookEvery));
        GPUTEXT_TRY(file.append(part));
        bytes = bytes.subspan(part.size());
    }
    return {};
}

/// Maps files of the session's side by side.
Status map_files(const SharedElements& shared, const int* files, const PartsShape& parts,
                 std::uint64_t size, MappedFile& mapped) {
    std::vector<FileDescriptor> opened;
    std::vector<int> descriptors;
    for (std::uint32_t part = 0; part < parts.parts; ++part) {
        opened.emplace_back(open_file_of_session(shared.session, files[part], O_RDONLY));
        if (!opened.back().valid()) return {ErrorCode::io_error, "a file of the session"};
        descriptors.push_back(opened.back().get());
    }
    Result<MappedFile> found =
        MappedFile::map({descriptors, parts.part_bytes}, size, Trust::sealed_or_disk);
    if (!found.ok()) return found.status();
    mapped = std::move(*found);
    return {};
}

/// Takes an array of so many numbers that begins there, and moves the begin behind it.
template <class T>
void take(const MappedFile& file, std::size_t& begin, std::span<const T>& array,
          std::size_t numbers) {
    array = file.array<T>(begin, numbers);
    begin += numbers * sizeof(T);
}

}  // namespace

// The arrays, those of the largest numbers first: each begins where its numbers may.

Status FiledElements::set(const Elements& elements, const Layout& layout, const FileParts& values,
                          Execution& execution) {
    const HnswGraphView& graph = elements.graph;
    GPUTEXT_TRY(append(file_, elements.first_rows, execution));
    GPUTEXT_TRY(append(file_, elements.rows, execution));
    GPUTEXT_TRY(append(file_, layout.places, execution));
    GPUTEXT_TRY(append(file_, graph.levels(), execution));
    GPUTEXT_TRY(file_.seal());
    shared_.session = MyProcPid;
    shared_.file = file_.descriptor();
    std::copy(values.descriptors().begin(), values.descriptors().end(), shared_.value_files);
    shared_.value_parts = values.shape();
    shared_.type = elements.values.type;
    shared_.dimensions = elements.values.dimensions;
    shared_.m = graph.m();
    shared_.ef_construction = elements.ef_construction;
    shared_.entry = graph.entry();
    shared_.elements = graph.size();
    shared_.rows = elements.rows.size();
    shared_.sizes = layout.sizes;
    shared_.blocks = layout.blocks;
    return {};
}

Status FiledElements::set_links(const HnswGraphView& graph, Execution& execution) {
    GPUTEXT_TRY(append(links_file_, graph.upper_begins(), execution));
    GPUTEXT_TRY(append(links_file_, graph.links(), execution));
    GPUTEXT_TRY(links_file_.seal());
    shared_.links_file = links_file_.descriptor();
    shared_.links = graph.links().size();
    return {};
}

Status MappedElements::map(const SharedElements& shared) {
    const std::size_t count = shared.elements;
    Vectors& values = elements_.values;
    values.type = shared.type;
    values.rows = count;
    values.dimensions = shared.dimensions;
    GPUTEXT_TRY(map_files(shared, shared.value_files, shared.value_parts,
                          count * shared.dimensions * gputext::element_size(shared.type), values_));
    values.elements = values_.bytes().data();
    const std::size_t size =
        count * (sizeof(std::uint32_t) + sizeof(ItemPointerData) + sizeof(std::uint8_t)) +
        sizeof(std::uint32_t) + shared.rows * sizeof(ItemPointerData);
    GPUTEXT_TRY(map_files(shared, &shared.file, PartsShape(), size, file_));
    std::size_t begin = 0;
    std::span<const std::uint8_t> levels;
    take(file_, begin, elements_.first_rows, count + 1);
    take(file_, begin, elements_.rows, shared.rows);
    take(file_, begin, layout_.places, count);
    take(file_, begin, levels, count);
    elements_.graph = {shared.m, shared.entry, levels, {}, {}};
    elements_.ef_construction = shared.ef_construction;
    layout_.sizes = shared.sizes;
    layout_.blocks = shared.blocks;
    return {};
}

Status MappedElements::map_links(const SharedElements& shared) {
    const std::size_t count = shared.elements;
    GPUTEXT_TRY(map_files(shared, &shared.links_file, PartsShape(),
                          count * sizeof(std::uint64_t) + shared.links * sizeof(std::uint32_t),
                          links_file_));
    std::size_t begin = 0;
    std::span<const std::uint64_t> upper_begins;
    std::span<const std::uint32_t> links;
    take(links_file_, begin, upper_begins, count);
    take(links_file_, begin, links, shared.links);
    elements_.graph = {shared.m, shared.entry, elements_.graph.levels(), upper_begins, links};
    return {};
}

}  // namespace gputext::hnsw
