#include "extension/values/row_fill.hpp"

extern "C" {
#include "utils/memutils.h"
}

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/types/text_arguments.hpp"
#include "extension/values/shared_array.hpp"
#include "extension/values/shared_rows.hpp"
#include "extension/values/toast_pages.hpp"
#include "extension/values/toast_stretch.hpp"

namespace gputext {
namespace {

/// Bytes that a process writes at once.
constexpr std::size_t kPiece = std::size_t{1} << 20;
using SharedExtents = SharedArray<Extent>;

/// What all processes know and change.
struct RowFill {
    StoredValueFiles values;
    LaidOutFiles target;
    SharedRows rows;       // to be read
    SharedNumbers chosen;  // their numbers; none for all rows

    SharedExtents extents;  // where they go; none for vectors side by side
    bool documents;
    // Of vectors:
    VectorType type;
    std::uint64_t dimensions, row_bytes;
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

/// Vectors that their TOAST tables' pages have not given.
struct LeftVectors {
    std::vector<std::uint32_t> rows;
    std::vector<Extent> places;
};

/// The work of one process.
struct Filler {
    RowFill& fill;
    unsigned process;
    StoredValueReader values;
    PieceWriter target;
    const std::uint32_t* chosen;
    const Extent* extents;
    MemoryContext row_context;
    ToastStretch stretch;
    std::uint64_t stretch_begin;

    bool open();
    std::uint64_t fill_stretch(std::uint64_t begin, std::uint64_t end);
    Datum value(std::uint64_t i) const { return stretch.at(i - stretch_begin); }
    bool fill_row(std::uint64_t i);
    bool fill_vector(std::uint64_t i);
    void fill_document(std::uint64_t i);
};

bool Filler::open() {
    chosen = fill.chosen.open(fill.values.session, process);
    extents = fill.extents.open(fill.values.session, process);
    const bool opened = (chosen != nullptr || fill.chosen.in_session == nullptr) &&
                        (extents != nullptr || fill.extents.in_session == nullptr);
    return opened && values.open(fill.values, process) && target.open(fill.target, process);
}

bool Filler::fill_vector(std::uint64_t i) {
    VectorValue vector;
    if (read_vector(fill.type, value(i), vector) != VectorFault::none ||
        vector.dimensions != fill.dimensions)
        return false;
    target.put(extents != nullptr ? extents[i].begin : i * fill.row_bytes, vector.elements,
               fill.row_bytes);
    return true;
}

void Filler::fill_document(std::uint64_t i) {
    const Bytes bytes = bytes_of(PG_DETOAST_DATUM_PACKED(value(i)));
    if (bytes.size() != extents[i].size)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                        errmsg("a document has %zu bytes, and not the %llu that its table says",
                               bytes.size(), static_cast<unsigned long long>(extents[i].size))));
    target.put(extents[i].begin, bytes.data(), bytes.size());
}

bool Filler::fill_row(std::uint64_t i) {
    CHECK_FOR_INTERRUPTS();
    const MemoryContext before = MemoryContextSwitchTo(row_context);
    bool good = true;
    if (fill.documents)
        fill_document(i);
    else
        good = fill_vector(i);
    MemoryContextSwitchTo(before);
    MemoryContextReset(row_context);
    return good;
}

/// Returns the first row that is wrong, or `end`.
std::uint64_t Filler::fill_stretch(std::uint64_t begin, std::uint64_t end) {
    stretch_begin = begin;
    stretch.fetch(values, chosen != nullptr ? chosen + begin : nullptr, begin, end - begin);
    for (std::uint64_t i = begin; i < end; ++i)
        if (!fill_row(i)) return i;
    target.flush();
    return end;
}

void fill_in_process(void* shared, unsigned process) {
    auto& fill = *static_cast<RowFill*>(shared);
    MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext rows", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext before = MemoryContextSwitchTo(context);
    Filler filler{fill, process, {}, {}, nullptr, nullptr, nullptr, {}, 0};
    filler.row_context = AllocSetContextCreate(context, "gputext row", ALLOCSET_DEFAULT_SIZES);
    if (filler.open())
        fill.rows.read(
            process, [] { return true; },
            [&](std::uint64_t begin, std::uint64_t end) {
                return filler.fill_stretch(begin, end);
            });
    filler.stretch.close();
    filler.values.close();
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
}

/// How many workers for these rows, as far as their share of all rows tells.
unsigned workers_for(const StoredValues& values, ChosenRows rows) {
    const double share =
        rows.empty() ? 1.0 : static_cast<double>(rows.size()) / static_cast<double>(values.size());
    return wanted_workers(values.seconds() * share);
}

/// Reads the values of these rows into `target`, which is large enough. `fill` says what they are.
/// Returns the first row that is wrong, or the number of all rows.
std::uint64_t run(RowFill& fill, StoredValues& values, ChosenRows rows,
                  std::span<const Extent> extents, unsigned workers, LaidOutBytes& target) {
    SharedArrays* const arrays =
        make_owned<SharedArrays>(CurrentMemoryContext, target.memory_limit());
    fill.values = values.files();
    fill.target = target.files();
    const std::uint64_t count = rows.empty() ? values.size() : rows.size();
    fill.chosen = arrays->share(rows);
    fill.extents = arrays->share(extents);
    const std::uint64_t row_bytes =
        fill.documents ? target.size() / std::max<std::uint64_t>(1, count) : fill.row_bytes;
    fill.rows.begin(count,
                    std::clamp<std::uint64_t>(kPiece / std::max<std::uint64_t>(1, row_bytes), 1,
                                              ToastStretch::kMost),
                    workers + 1);
    run_parallel_work({fill_in_process, "gputext_fill_rows_worker", &fill, sizeof fill}, workers);
    const std::uint64_t fault = fill.rows.end();
    target.finish();
    arrays->release();
    if (fault == count) return values.size();
    return rows.empty() ? fault : rows[fault];
}

}  // namespace

std::uint64_t fill_vectors(StoredValues& values, ChosenRows rows, const VectorType& type,
                           std::size_t dimensions, LaidOutBytes& elements) {
    RowFill fill{};
    fill.type = type;
    fill.dimensions = dimensions;
    fill.row_bytes = row_size(type.element, dimensions);
    const unsigned workers = workers_for(values, rows);
    // Pages that lie side by side may have rows of all places: fewer processes at a time then write
    // to one part.
    elements.create((rows.empty() ? values.size() : rows.size()) * fill.row_bytes,
                    2 * (workers + 1));
    LeftVectors& left = *make_owned<LeftVectors>(CurrentMemoryContext);
    if (!read_toast_pages(values, rows, type, dimensions, workers, elements, left.rows))
        return run(fill, values, rows, {}, workers, elements);
    if (left.rows.empty()) {
        elements.finish();
        return values.size();
    }
    attempt_or_raise([&] {
        for (std::uint32_t& row : left.rows) {
            left.places.push_back({row * fill.row_bytes, fill.row_bytes});
            if (!rows.empty()) row = rows[row];
        }
    });
    return run(fill, values, left.rows, left.places, workers_for(values, left.rows), elements);
}

std::uint64_t lay_out_documents(const StoredValues& values, ChosenRows rows,
                                std::vector<Extent>& extents) {
    const std::size_t count = rows.empty() ? values.size() : rows.size();
    attempt_or_raise([&] { extents.reserve(count); });
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t size = values.unpacked_size(rows.empty() ? i : rows[i]) - VARHDRSZ;
        extents.push_back({end, size});
        end += size;
    }
    return end;
}

void fill_documents(StoredValues& values, ChosenRows rows, std::span<const Extent> extents,
                    LaidOutBytes& bytes) {
    RowFill fill{};
    fill.documents = true;
    const unsigned workers = workers_for(values, rows);
    bytes.create(extents.empty() ? 0 : extents.back().begin + extents.back().size, workers + 1);
    run(fill, values, rows, extents, workers, bytes);
}

}  // namespace gputext

extern "C" PGDLLEXPORT void gputext_fill_rows_worker(dsm_segment*, shm_toc* toc) {
    gputext::work_in_worker(toc, gputext::fill_in_process);
}
