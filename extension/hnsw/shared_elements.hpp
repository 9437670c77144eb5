// extension/hnsw/shared_elements.hpp - the elements of an index in files, so that parallel workers
// can make its pages, too

#pragma once

#include "extension/hnsw/layout.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/memory_file.hpp"

namespace gputext::hnsw {

/// What a worker has to know to find them. Plain memory. The files are the session's.
struct SharedElements {
    pid_t session;
    int file, links_file;  // of all but the values; of the links
    int value_files[kMostParts];
    PartsShape value_parts;

    ElementType type;
    std::size_t dimensions;
    unsigned m, ef_construction;
    std::uint32_t entry;
    std::size_t elements, rows;
    std::size_t links;  // in the file of links
    TupleSizes sizes;
    BlockNumber blocks;
};

/// The session's side.
class FiledElements {
public:
    /// Copies all but the links and the values, whose files these are. O(elements). Errors:
    /// cancelled, out_of_memory, io_error.
    Status set(const Elements& elements, const Layout& layout, const FileParts& values,
               Execution& execution);
    /// Copies the links. O(graph). Errors: the same.
    Status set_links(const HnswGraphView& graph, Execution& execution);
    /// As long as this object and the values' files.
    const SharedElements& shared() const { return shared_; }

private:
    SharedElements shared_{};
    MemoryFile file_, links_file_;
};

/// A worker's side.
class MappedElements {
public:
    /// All but the links; then these. Error: where the system does not let it.
    Status map(const SharedElements& shared);
    Status map_links(const SharedElements& shared);
    const Elements& elements() const { return elements_; }
    const Layout& layout() const { return layout_; }

private:
    MappedFile file_, links_file_, values_;
    Elements elements_{};
    Layout layout_{};
};

}  // namespace gputext::hnsw
