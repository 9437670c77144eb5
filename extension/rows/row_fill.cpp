#include "extension/rows/row_fill.hpp"

extern "C" {
#include "port/atomics.h"
#include "utils/memutils.h"
}

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/rows/text_arguments.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/parallel_work.hpp"

namespace gputext {
namespace {

/// Bytes that a process writes at once.
constexpr std::size_t kPiece = std::size_t{1} << 20;
/// Ranges of rows, in each of which processes take stretches: as many as processes at most.
constexpr unsigned kMostRanges = kMostReaders;

/// What all processes know and change.
struct RowFill {
    StoredValueFiles values;
    LaidOutFiles target;
    std::uint64_t rows;
    std::uint64_t stretch_rows;  // that a process takes at once
    unsigned ranges;

    bool documents;
    // Of vectors:
    VectorType type;
    std::uint64_t dimensions, row_bytes;
    // Of documents: an Extent a row, in a file of the session.
    int extents;
    const Extent* session_extents;

    pg_atomic_uint64 taken[kMostRanges];  // rows of each range
    pg_atomic_uint64 done;                // rows
    pg_atomic_uint64 first_fault;         // the first row that is wrong; `rows` for none
};

/// Collects what lies side by side, and writes it in pieces.
class PieceWriter {
public:
    bool open(const LaidOutFiles& files, unsigned process) {
        if (!target_.open(files, process)) return false;
        piece_ = static_cast<char*>(palloc(kPiece));
        return true;
    }
    void put(std::uint64_t begin, const void* bytes, std::size_t size) {
        if (begin != begin_ + size_ || size_ + size > kPiece) flush();
        if (size > kPiece) return target_.write(begin, bytes, size);
        if (size_ == 0) begin_ = begin;
        std::memcpy(piece_ + size_, bytes, size);
        size_ += size;
    }
    void flush() {
        if (size_ > 0) target_.write(begin_, piece_, size_);
        size_ = 0;
    }

private:
    LaidOutWriter target_;
    char* piece_ = nullptr;
    std::uint64_t begin_ = 0;
    std::size_t size_ = 0;
};

/// The work of one process.
struct Filler {
    RowFill& fill;
    unsigned process;
    StoredValueReader values;
    PieceWriter target;
    const Extent* extents;
    MemoryContext row_context;

    bool open();
    void fill_range(unsigned range);
    void fill_stretch(std::uint64_t begin, std::uint64_t end);
    bool fill_row(std::uint64_t row);
    bool fill_vector(std::uint64_t row);
    void fill_document(std::uint64_t row);
};

bool Filler::open() {
    extents = process == 0 || !fill.documents
                  ? fill.session_extents
                  : static_cast<const Extent*>(map_file_of_session(
                        fill.values.session, fill.extents, fill.rows * sizeof(Extent)));
    return (extents != nullptr || !fill.documents) && values.open(fill.values, process) &&
           target.open(fill.target, process);
}

bool Filler::fill_vector(std::uint64_t row) {
    VectorValue vector;
    if (read_vector(fill.type, values.at(row), vector) != VectorFault::none ||
        vector.dimensions != fill.dimensions)
        return false;
    target.put(row * fill.row_bytes, vector.elements, fill.row_bytes);
    return true;
}

void Filler::fill_document(std::uint64_t row) {
    const Bytes bytes = bytes_of(PG_DETOAST_DATUM_PACKED(values.at(row)));
    if (bytes.size() != extents[row].size)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                        errmsg("a document has %zu bytes, and not the %llu that its table says",
                               bytes.size(), static_cast<unsigned long long>(extents[row].size))));
    target.put(extents[row].begin, bytes.data(), bytes.size());
}

bool Filler::fill_row(std::uint64_t row) {
    CHECK_FOR_INTERRUPTS();
    const MemoryContext before = MemoryContextSwitchTo(row_context);
    bool good = true;
    if (fill.documents)
        fill_document(row);
    else
        good = fill_vector(row);
    MemoryContextSwitchTo(before);
    MemoryContextReset(row_context);
    return good;
}

void Filler::fill_stretch(std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t row = begin; row < end; ++row)
        if (!fill_row(row)) return note_fault(fill.first_fault, row);
    target.flush();
    const std::uint64_t before =
        pg_atomic_fetch_add_u64(&fill.done, static_cast<int64>(end - begin));
    if (process == 0) show_step({"reading rows", before + end - begin, fill.rows, kNowhereYet});
}

void Filler::fill_range(unsigned range) {
    const std::uint64_t first = fill.rows * range / fill.ranges;
    const std::uint64_t count = fill.rows * (range + 1) / fill.ranges - first;
    for (;;) {
        const std::uint64_t begin =
            pg_atomic_fetch_add_u64(&fill.taken[range], static_cast<int64>(fill.stretch_rows));
        if (begin >= count) return;
        // What follows a row that is wrong does not matter any more. A row that precedes it may be
        // wrong, too, and then the error is about that one.
        if (first + begin > pg_atomic_read_u64(&fill.first_fault)) return;
        fill_stretch(first + begin, first + std::min(count, begin + fill.stretch_rows));
    }
}

void fill_in_process(void* shared, unsigned process) {
    auto& fill = *static_cast<RowFill*>(shared);
    Filler filler{fill, process, {}, {}, nullptr, nullptr};
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext rows", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext before = MemoryContextSwitchTo(context);
    filler.row_context = AllocSetContextCreate(context, "gputext row", ALLOCSET_DEFAULT_SIZES);
    if (filler.open())
        for (unsigned i = 0; i < fill.ranges; ++i) filler.fill_range((process + i) % fill.ranges);
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
}

/// Fills `target`, which is large enough for all values. `fill` says what they are.
void run(RowFill& fill, StoredValues& values, unsigned workers, LaidOutBytes& target) {
    fill.values = values.files();
    fill.target = target.files();
    fill.rows = values.size();
    const std::uint64_t row_bytes = target.size() / std::max<std::uint64_t>(1, fill.rows);
    fill.stretch_rows = std::max<std::uint64_t>(1, kPiece / std::max<std::uint64_t>(1, row_bytes));
    fill.ranges = std::min(workers + 1, kMostRanges);
    for (pg_atomic_uint64& taken : fill.taken) pg_atomic_init_u64(&taken, 0);
    pg_atomic_init_u64(&fill.done, 0);
    pg_atomic_init_u64(&fill.first_fault, fill.rows);
    run_parallel_work({fill_in_process, "gputext_fill_rows_worker", &fill, sizeof fill}, workers);
    if (pg_atomic_read_u64(&fill.first_fault) == fill.rows)
        check_all_read(pg_atomic_read_u64(&fill.done), fill.rows);
    target.finish();
}

}  // namespace

std::uint64_t fill_vectors(StoredValues& values, const VectorType& type, std::size_t dimensions,
                           LaidOutBytes& elements) {
    RowFill fill{};
    fill.type = type;
    fill.dimensions = dimensions;
    fill.row_bytes = dimensions * element_size(type.element);
    const unsigned workers = wanted_workers(values.seconds());
    elements.create(values.size() * fill.row_bytes, workers + 1);
    run(fill, values, workers, elements);
    return pg_atomic_read_u64(&fill.first_fault);
}

void fill_documents(StoredValues& values, std::vector<Extent>& extents, LaidOutBytes& bytes) {
    attempt_or_raise([&] { extents.reserve(values.size()); });
    std::uint64_t end = 0;
    for (std::size_t row = 0; row < values.size(); ++row) {
        const std::uint64_t size = values.unpacked_size(row) - VARHDRSZ;
        extents.push_back({end, size});
        end += size;
    }
    const unsigned workers = wanted_workers(values.seconds());
    bytes.create(end, workers + 1);
    RowFill fill{};
    fill.documents = true;
    fill.session_extents = extents.data();
    PackedBytes* const shared = make_owned<PackedBytes>(CurrentMemoryContext, bytes.memory_limit());
    shared->append(extents.data(), extents.size() * sizeof(Extent));
    shared->finish();
    FileDescriptor* const file = make_owned<FileDescriptor>(CurrentMemoryContext);
    *file = shared->share();
    fill.extents = file->get();
    run(fill, values, workers, bytes);
    shared->release();
    file->reset();
}

}  // namespace gputext

extern "C" PGDLLEXPORT void gputext_fill_rows_worker(dsm_segment*, shm_toc* toc) {
    gputext::work_in_worker(toc, gputext::fill_in_process);
}
