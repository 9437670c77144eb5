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

}  // namespace

// The arrays, those of the largest numbers first: each begins where its numbers may.

Status FiledElements::set(const Elements& elements, const Layout& layout, const FileParts& values,
                          Execution& execution) {
    const HnswGraphView& graph = elements.graph;
    GPUTEXT_TRY(append(file_, graph.upper_begins(), execution));
    GPUTEXT_TRY(append(file_, graph.links(), execution));
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
    shared_.links = graph.links().size();
    shared_.sizes = layout.sizes;
    shared_.blocks = layout.blocks;
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
    const std::size_t size = count * (sizeof(std::uint64_t) + sizeof(std::uint32_t) +
                                      sizeof(ItemPointerData) + sizeof(std::uint8_t)) +
                             shared.links * sizeof(std::uint32_t) + sizeof(std::uint32_t) +
                             shared.rows * sizeof(ItemPointerData);
    GPUTEXT_TRY(map_files(shared, &shared.file, PartsShape(), size, file_));
    std::size_t begin = 0;
    const auto take = [&]<class T>(std::span<const T>& array, std::size_t numbers) {
        array = file_.array<T>(begin, numbers);
        begin += numbers * sizeof(T);
    };
    std::span<const std::uint64_t> upper_begins;
    std::span<const std::uint32_t> links;
    std::span<const std::uint8_t> levels;
    take(upper_begins, count);
    take(links, shared.links);
    take(elements_.first_rows, count + 1);
    take(elements_.rows, shared.rows);
    take(layout_.places, count);
    take(levels, count);
    elements_.graph = {shared.m, shared.entry, levels, upper_begins, links};
    elements_.ef_construction = shared.ef_construction;
    layout_.sizes = shared.sizes;
    layout_.blocks = shared.blocks;
    return {};
}

}  // namespace gputext::hnsw
