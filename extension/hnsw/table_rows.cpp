#include "extension/hnsw/table_rows.hpp"

extern "C" {
#include "access/tableam.h"
#include "commands/progress.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>

#include "cpp/base/lanes.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/link/memory_file.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/hnsw/format.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/types/vector_type.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext::hnsw {

// ---- What one process reads ----

namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

/// What all processes have in common.
struct SharedRead {
    pid_t session;
    IndexKind kind;
    ReadFiles files;
};

/// As the server limits the temporary files of a session.
void check_temporary_bytes(std::uint64_t bytes) {
    if (temp_file_limit >= 0 && bytes > static_cast<std::uint64_t>(temp_file_limit) * 1024)
        ereport(ERROR,
                (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                 errmsg("temporary file size exceeds temp_file_limit (%dkB)", temp_file_limit),
                 errhint("Raise temp_file_limit, or maintenance_work_mem and "
                         "gputext.host_memory_limit so that the vectors of the index fit into "
                         "memory.")));
}

/// A file that grows, by a buffer.
class Appender {
public:
    void begin(int file, bool on_disk) {
        file_ = file;
        on_disk_ = on_disk;
        buffer_ = static_cast<char*>(palloc(kBufferBytes));
    }
    /// At most kBufferBytes.
    void append(const void* bytes, std::size_t size) {
        if (used_ + size > kBufferBytes) flush();
        std::memcpy(buffer_ + used_, bytes, size);
        used_ += size;
    }
    void flush() {
        written_ += used_;
        if (on_disk_) check_temporary_bytes(written_);
        for (std::size_t done = 0; done < used_;) {
            CHECK_FOR_INTERRUPTS();
            errno = ENOSPC;  // if it writes nothing
            const ssize_t written = write(file_, buffer_ + done, used_ - done);
            if (written > 0)
                done += static_cast<std::size_t>(written);
            else if (errno != EINTR)
                ereport(ERROR, (errcode_for_file_access(),
                                errmsg("could not keep the vectors of an index that is built: %m"),
                                errhint("Free memory or disk space, or set gputext.build_hnsw to "
                                        "off.")));
        }
        used_ = 0;
    }

private:
    int file_ = -1;
    bool on_disk_ = false;
    char* buffer_ = nullptr;
    std::size_t used_ = 0;
    std::uint64_t written_ = 0;
};

/// Takes the rows of one process. Has nothing to destroy.
class RowReader {
public:
    RowReader(const IndexKind& kind, const FoundRows& files, bool on_disk, bool shows_progress)
        : kind_(kind),
          type_{VectorType::Form::dense, kind.element},
          shows_progress_(shows_progress),
          row_context_(AllocSetContextCreate(CurrentMemoryContext, "gputext vector",
                                             ALLOCSET_DEFAULT_SIZES)),
          doubles_(static_cast<double*>(palloc(kind.dimensions * sizeof(double)))),
          unit_(static_cast<char*>(palloc(kind.row_bytes()))) {
        values_.begin(files.values, on_disk);
        places_.begin(files.places, on_disk);
    }

    void add(ItemPointerData place, Datum value) {
        const MemoryContext outside = MemoryContextSwitchTo(row_context_);
        VectorValue vector;
        const VectorFault fault = read_vector(type_, value, vector);
        if (fault != VectorFault::none) raise_vector_fault(fault, "a row");
        if (vector.dimensions != kind_.dimensions)
            ereport(ERROR,
                    (errcode(ERRCODE_DATA_EXCEPTION),
                     errmsg("expected %d dimensions, not %d", static_cast<int>(kind_.dimensions),
                            static_cast<int>(vector.dimensions))));
        const void* const elements = kind_.normalized ? normalize(vector) : vector.elements;
        if (elements != nullptr) {
            values_.append(elements, kind_.row_bytes());
            places_.append(&place, sizeof place);
            ++rows_;
        }
        MemoryContextSwitchTo(outside);
        MemoryContextReset(row_context_);
        if (shows_progress_)
            pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, static_cast<int64>(rows_));
    }
    void end() {
        values_.flush();
        places_.flush();
    }
    std::uint64_t rows() const { return rows_; }

private:
    /// The vector divided by its length, rounded as pgvector's l2_normalize() rounds it; null for
    /// length 0.
    const void* normalize(const VectorValue& vector) {
        Vectors row;
        row.type = kind_.element;
        row.rows = 1;
        row.dimensions = kind_.dimensions;
        row.elements = vector.elements;
        copy_elements(row, 0, kind_.dimensions, doubles_);
        double square = 0;
        for (std::size_t i = 0; i < kind_.dimensions; ++i) square += doubles_[i] * doubles_[i];
        const double length = std::sqrt(square);
        if (!(length > 0)) return nullptr;
        for (std::size_t i = 0; i < kind_.dimensions; ++i) {
            const auto single = static_cast<float>(doubles_[i] / length);
            if (kind_.element == ElementType::float32)
                std::memcpy(unit_ + i * sizeof single, &single, sizeof single);
            else
                reinterpret_cast<Half*>(unit_)[i] = half_near(single);
        }
        return unit_;
    }

    IndexKind kind_;
    VectorType type_;
    bool shows_progress_;
    MemoryContext row_context_;
    double* doubles_;
    char* unit_;
    Appender values_, places_;
    std::uint64_t rows_ = 0;
};

void add_row(Relation, ItemPointer row, Datum* values, bool* nulls, bool, void* reader) {
    if (!nulls[0]) static_cast<RowReader*>(reader)->add(*row, values[0]);
}

/// In a worker, the session's file; -1 where the system does not let it.
int file_here(const SharedRead& shared, unsigned process, int file) {
    return process == 0 ? file : open_file_of_session(shared.session, file, O_WRONLY);
}

BuildCounts read_part(const BuildProcess& process) {
    auto& shared = *static_cast<SharedRead*>(process.shared);
    FoundRows& found = shared.files.found[process.number];
    const FoundRows here{file_here(shared, process.number, found.values),
                         file_here(shared, process.number, found.places), 0};
    // Others read what this process does not.
    if (here.values < 0 || here.places < 0) return {};
    RowReader reader(shared.kind, here, shared.files.on_disk, process.number == 0);
    BuildCounts counts;
    // From the first block on, so that one process alone reads rows in their order.
    counts.rows = table_index_build_scan(process.table, process.index, process.info, false,
                                         process.number == 0, add_row, &reader, process.scan);
    reader.end();
    found.rows = reader.rows();
    counts.index_tuples = static_cast<double>(reader.rows());
    return counts;
}

}  // namespace

// ---- All processes ----

int open_file(bool on_disk, MemoryContext context) {
    auto* const file = make_owned<FileDescriptor>(context);
    if (on_disk) {
        // The server closes files when many are open, and deletes this one: here it stays open.
        PrepareTempTablespaces();
        const File temporary = OpenTemporaryFile(false);
        *file = FileDescriptor(fcntl(FileGetRawDesc(temporary), F_DUPFD_CLOEXEC, 0));
        FileClose(temporary);
        if (!file->valid())
            ereport(ERROR, (errcode_for_file_access(),
                            errmsg("could not keep a temporary file open: %m")));
    } else {
        attempt_or_raise([&]() -> Status {
            auto made = new_memory_file();
            if (made.ok()) *file = std::move(*made);
            return made.status();
        });
    }
    return file->get();
}

ReadFiles open_files(unsigned processes, bool on_disk, MemoryContext context) {
    ReadFiles files;
    files.processes = std::min(processes, ReadFiles::kMost);
    files.on_disk = on_disk;
    make_owned<DescriptorRoom>(context)->reserve(2 * files.processes);
    for (unsigned process = 0; process < files.processes; ++process)
        files.found[process] = {open_file(on_disk, context), open_file(on_disk, context), 0};
    return files;
}

BuildCounts read_rows(Relation table, Relation index, IndexInfo* info, const IndexKind& kind,
                      ReadFiles& files) {
    SharedRead shared{MyProcPid, kind, files};
    const int workers = static_cast<int>(files.processes) - 1;
    const BuildCounts counts =
        workers > 0 ? build_in_parallel(
                          table, index, info,
                          {read_part, "gputext_hnsw_build_worker", &shared, sizeof shared}, workers)
                    : read_part({table, index, info, nullptr, &shared, 0});
    files = shared.files;
    // They are written once more, in order.
    if (files.on_disk)
        check_temporary_bytes(files.rows() * (2 * kind.row_bytes() + sizeof(ItemPointerData)));
    return counts;
}

// ---- Their order ----

Status Mapping::map(int file, std::uint64_t size) {
    release();
    if (size == 0) return {};
    void* const mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return Status::out_of_memory();
    data_ = static_cast<const std::byte*>(mapped);
    size_ = size;
    return {};
}

void Mapping::release() {
    if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
    data_ = nullptr;
}

Status ValueRows::create(int file, std::uint64_t rows, std::size_t row_bytes,
                         std::size_t part_rows) {
    rows_ = rows;
    row_bytes_ = row_bytes;
    file_ = file;
    part_bytes_ = part_rows * row_bytes;
    if (file >= 0) return {};
    GPUTEXT_TRY(memory_.create(rows * row_bytes, part_bytes_));
    const auto files = memory_.parts().descriptors();
    files_.assign(files.begin(), files.end());
    return {};
}

Status ValueRows::write(std::uint64_t row, std::span<const std::uint8_t> bytes) {
    const std::uint64_t offset = row * row_bytes_;
    return file_ >= 0 ? write_file(file_, bytes, offset) : memory_.write(offset, bytes);
}

Status ValueRows::finish() {
    if (file_ >= 0) {
        on_disk_ = FileDescriptor(fcntl(file_, F_DUPFD_CLOEXEC, 0));
        if (!on_disk_.valid()) return Status::out_of_memory();
        return disk_.map(file_, rows_ * row_bytes_);
    }
    GPUTEXT_TRY(memory_.seal());
    return memory_.map();
}

const std::byte* ValueRows::data() const {
    return file_ >= 0 ? disk_.data() : reinterpret_cast<const std::byte*>(memory_.data());
}

FileParts ValueRows::parts() const {
    return files_.empty() ? FileParts(on_disk_.get()) : FileParts(files_, part_bytes_);
}

namespace {

/// Rows that a process has found one behind the other, in the order of their places.
struct Run {
    std::uint64_t place;  // of the first one
    std::uint32_t process;
    std::uint32_t row;    // the first one, of those that the process has found
    std::uint32_t begin;  // the same, of all rows in their order
    std::uint32_t rows;
};

std::uint64_t number_of(const ItemPointerData& place) {
    return std::uint64_t{ItemPointerGetBlockNumberNoCheck(&place)} << 16 |
           ItemPointerGetOffsetNumberNoCheck(&place);
}

/// The order of rows that processes have found. Each of them mostly has stretches of blocks, whose
/// rows it has found in their order.
class RowOrder {
public:
    /// Time: O(rows) on threads, and sorting the stretches. Memory: at most 24 bytes a row. Errors:
    /// cancelled, out_of_memory.
    Status set(std::span<const FoundRows> found, Execution& execution) {
        places_ = std::vector<Mapping>(found.size());
        for (std::size_t process = 0; process < found.size(); ++process)
            GPUTEXT_TRY(places_[process].map(found[process].places,
                                             found[process].rows * sizeof(ItemPointerData)));
        GPUTEXT_TRY(sort_runs(found, UINT32_MAX, execution));
        // Where processes have found rows among each other's, each row is put in order by itself.
        if (!in_order()) GPUTEXT_TRY(sort_runs(found, 1, execution));
        rows_ = 0;
        for (Run& run : runs_) {
            run.begin = static_cast<std::uint32_t>(rows_);
            rows_ += run.rows;
        }
        return {};
    }

    std::size_t rows() const { return rows_; }
    ItemPointerData place(std::uint32_t process, std::size_t row) const {
        return reinterpret_cast<const ItemPointerData*>(places_[process].data())[row];
    }

    /// Calls of(process, first, count) for what each process has found of the rows [begin, end),
    /// in their order.
    template <class Of>
    Status each(std::size_t begin, std::size_t end, const Of& of) const {
        auto run = std::upper_bound(
            runs_.begin(), runs_.end(), begin,
            [](std::size_t row, const Run& other) { return row < other.begin; });
        for (--run; begin < end; ++run) {
            const std::size_t skipped = begin - run->begin;
            const std::size_t count = std::min(end - begin, run->rows - skipped);
            GPUTEXT_TRY(of(run->process, run->row + skipped, count));
            begin += count;
        }
        return {};
    }

private:
    std::uint64_t number(std::uint32_t process, std::size_t row) const {
        return number_of(place(process, row));
    }

    /// Of at most so many rows each.
    Status sort_runs(std::span<const FoundRows> found, std::uint32_t most_rows,
                     Execution& execution) {
        std::vector<std::vector<Run>> of_processes(found.size());
        execution.begin_phase("finding the order", found.size());
        GPUTEXT_TRY(execution.parallel_for(found.size(), [&](std::size_t process, unsigned) {
            return add_runs(static_cast<std::uint32_t>(process), found[process].rows, most_rows,
                            execution, of_processes[process]);
        }));
        runs_.clear();
        for (const std::vector<Run>& runs : of_processes)
            runs_.insert(runs_.end(), runs.begin(), runs.end());
        const auto before = [](const Run& a, const Run& b) { return a.place < b.place; };
        return stoppable_sort(runs_.begin(), runs_.end(), before, execution.stop())
                   ? Status()
                   : Status::cancelled();
    }
    Status add_runs(std::uint32_t process, std::uint64_t rows, std::uint32_t most_rows,
                    const Execution& execution, std::vector<Run>& runs) const {
        std::uint64_t last = 0;
        for (std::uint32_t row = 0; row < rows; ++row) {
            if (row % kLookEvery == 0 && execution.stop_requested()) return Status::cancelled();
            const std::uint64_t here = number(process, row);
            // Blocks between are perhaps another process's.
            const bool follows = here > last && (here >> 16) - (last >> 16) <= 1;
            if (row == 0 || !follows || runs.back().rows == most_rows)
                runs.push_back({here, process, row, 0, 0});
            ++runs.back().rows;
            last = here;
        }
        return {};
    }
    bool in_order() const {
        for (std::size_t next = 1; next < runs_.size(); ++next) {
            const Run& run = runs_[next - 1];
            if (number(run.process, run.row + run.rows - 1) >= runs_[next].place) return false;
        }
        return true;
    }

    std::vector<Mapping> places_;
    std::vector<Run> runs_;
    std::size_t rows_ = 0;
};

/// Gives the memory of a file back, of which so many bytes are used. Error: cancelled.
Status make_empty(int file, std::uint64_t bytes, const Execution& execution) {
    constexpr std::uint64_t at_once = std::uint64_t{64} << 20;  // some milliseconds
    while (bytes > 0) {
        if (execution.stop_requested()) return Status::cancelled();
        bytes -= std::min(bytes, at_once);
        // Where that fails the file only goes later.
        if (ftruncate(file, static_cast<off_t>(bytes)) != 0) break;
    }
    return {};
}

/// The rows of a part: at least as many as are searched for at a time.
std::size_t rows_of_part(std::size_t rows) {
    constexpr std::size_t least = 16384;
    const std::size_t pages = page_size();  // so many rows have whole pages, whatever a row has
    return std::max(least, (rows / kMostParts + pages) / pages * pages);
}

/// Writes rows to `to`, which fill(first, bytes) gives, several at a time. One task after the other
/// is for another part, as threads wait for each other where they write the same file.
template <class Fill>
Status write_rows(std::size_t rows, std::size_t row_bytes, ValueRows& to, Execution& execution,
                  const Fill& fill) {
    const std::size_t part_rows = to.part_rows(), parts = (rows + part_rows - 1) / part_rows;
    const std::size_t together = std::max<std::size_t>(1, kBufferBytes / row_bytes);
    const std::size_t tasks = parts * ((part_rows + together - 1) / together);
    std::vector<std::vector<std::uint8_t>> buffers(execution.threads());
    execution.begin_phase("ordering vectors", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
        const std::size_t part = task % parts, within = task / parts * together;
        const std::size_t begin = part * part_rows + within;
        const std::size_t end = std::min({rows, begin + together, (part + 1) * part_rows});
        if (begin >= end) return Status();
        std::vector<std::uint8_t>& buffer = buffers[worker];
        buffer.resize((end - begin) * row_bytes);
        GPUTEXT_TRY(fill(begin, std::span(buffer)));
        return to.write(begin, buffer);
    });
}

}  // namespace

Status TableElements::put_in_order(std::span<const FoundRows> found, int file,
                                   std::vector<std::uint64_t>& hashes, Execution& execution) {
    RowOrder order;
    GPUTEXT_TRY(order.set(found, execution));
    const std::size_t rows = order.rows();
    rows_.resize(rows);
    hashes.resize(rows);
    stored_ = std::make_unique<ValueRows>();
    GPUTEXT_TRY(stored_->create(file, rows, row_bytes_, rows_of_part(rows)));
    const auto fill = [&](std::size_t row, std::span<std::uint8_t> to) {
        const auto take = [&](std::uint32_t process, std::size_t first, std::size_t count) {
            const auto values = to.first(count * row_bytes_);
            GPUTEXT_TRY(read_file(found[process].values, values, first * row_bytes_));
            for (std::size_t i = 0; i < count; ++i, ++row) {
                rows_[row] = order.place(process, first + i);
                hashes[row] =
                    hash_of_row(std::as_bytes(values.subspan(i * row_bytes_, row_bytes_)));
            }
            to = to.subspan(values.size());
            return Status();
        };
        return order.each(row, row + to.size() / row_bytes_, take);
    };
    GPUTEXT_TRY(write_rows(rows, row_bytes_, *stored_, execution, fill));
    execution.begin_phase("returning memory", found.size());
    GPUTEXT_TRY(execution.parallel_for(found.size(), [&](std::size_t process, unsigned) {
        return make_empty(found[process].values, found[process].rows * row_bytes_, execution);
    }));
    GPUTEXT_TRY(stored_->finish());
    values_.rows = rows;
    values_.elements = stored_->data();
    return {};
}

/// Leaves one row of values for each element.
Status TableElements::put_together(int file, std::span<const std::uint64_t> hashes,
                                   Execution& execution) {
    DistinctRows distinct;
    GPUTEXT_TRY(distinct.set(values_, hashes, execution));
    const std::size_t rows = values_.rows, classes = distinct.size();
    first_rows_.resize(rows + 1);
    std::iota(first_rows_.begin(), first_rows_.end(), 0u);
    if (classes == rows) return {};

    std::vector<ItemPointerData> ordered;
    ordered.reserve(rows);
    first_rows_.assign(1, 0);
    const auto add = [&](std::span<const std::uint32_t> members) {
        for (const std::uint32_t row : members) ordered.push_back(rows_[row]);
        first_rows_.push_back(static_cast<std::uint32_t>(ordered.size()));
    };
    for (std::size_t of = 0; of < classes; ++of) {
        GPUTEXT_TRY(execution.checkpoint(0));
        const auto members = distinct.members(of);
        add(members.first(std::min(kMostRows, members.size())));
    }
    for (std::size_t of = 0; of < classes; ++of) {
        GPUTEXT_TRY(execution.checkpoint(0));
        const auto members = distinct.members(of);
        for (std::size_t begin = kMostRows; begin < members.size(); begin += kMostRows) {
            add(members.subspan(begin, std::min(kMostRows, members.size() - begin)));
            copy_of_.push_back(static_cast<std::uint32_t>(of));
        }
    }
    rows_ = std::move(ordered);

    auto elements = std::make_unique<ValueRows>();
    const std::size_t count = classes + copy_of_.size();
    GPUTEXT_TRY(elements->create(file, count, row_bytes_, rows_of_part(count)));
    const auto fill = [&](std::size_t element, std::span<std::uint8_t> to) {
        for (; !to.empty(); to = to.subspan(row_bytes_), ++element) {
            const std::size_t of = element < classes ? element : copy_of_[element - classes];
            std::memcpy(to.data(), stored_->data() + distinct.firsts()[of] * row_bytes_,
                        row_bytes_);
        }
        return Status();
    };
    GPUTEXT_TRY(write_rows(count, row_bytes_, *elements, execution, fill));
    GPUTEXT_TRY(elements->finish());
    stored_ = std::move(elements);
    values_.rows = count;
    values_.elements = stored_->data();
    return {};
}

Status TableElements::set(std::span<const FoundRows> found, const IndexKind& kind, const Disk& disk,
                          Execution& execution) {
    row_bytes_ = kind.row_bytes();
    values_.type = kind.element;
    values_.dimensions = kind.dimensions;
    std::vector<std::uint64_t> hashes;
    GPUTEXT_TRY(put_in_order(found, disk.rows, hashes, execution));
    return put_together(disk.elements, hashes, execution);
}

VectorFiles TableElements::files() const {
    return {values_, stored_->parts(), -1};
}

}  // namespace gputext::hnsw

using namespace gputext::hnsw;

extern "C" {
PGDLLEXPORT void gputext_hnsw_build_worker(dsm_segment*, shm_toc* toc);

PGDLLEXPORT void gputext_hnsw_build_worker(dsm_segment*, shm_toc* toc) {
    gputext::build_in_worker(toc, read_part);
}
}
