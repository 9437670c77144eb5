#include "extension/operators/merge_scan.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
}

#include <fcntl.h>

#include <cmath>

#include "extension/base/owned.hpp"
#include "extension/rows/id_column.hpp"
#include "extension/rows/key_column.hpp"
#include "extension/server/parallel_work.hpp"

namespace gputext {
namespace {

/// What it takes one process to read a page of answers, about.
constexpr double kSecondsOfPage = 2e-5;

/// Rows between two looks at what other processes say.
constexpr std::uint64_t kRowsAtOnce = 1024;

/// What the processes share.
struct ScanWork {
    TableScans scans;
    MergeColumns columns;
    std::size_t memory_limit;  // of each process
    pid_t session;
    pg_atomic_uint64 rows;
    pg_atomic_uint32 gave_up;  // a row is not to be read here
    int outputs[kMostReaders];
    std::uint64_t sizes[kMostReaders];
    PackedBytes* session_output;
};

/// The neighbours that one process keeps.
struct KeptAnswers {
    KeptAnswers(MemoryContext context, std::size_t k, std::size_t limit)
        : numbers(context, limit), answers(k, FoundTies::by_item, limit) {}

    KeyNumbers numbers;  // of the queries
    std::vector<std::int64_t> queries;
    PartialAnswers answers;
    Failure failure;

    /// False where there is no room for it.
    bool add(std::int64_t query, FoundItem found) {
        const std::uint32_t number = numbers.number_of(Int64GetDatum(query));
        if (number < queries.size() && !answers.wants(number, found.distance)) return true;
        return attempt(failure, [&] {
            if (number == queries.size()) queries.push_back(query);
            return answers.add(number, found);
        });
    }
};

std::int64_t id_in(Datum value, Oid narrow_type) {
    return DatumGetInt64(OidIsValid(narrow_type) ? widened_id(value, narrow_type) : value);
}

/// Takes in the rows that this process gets. False where one is not to be read here.
bool take_rows(ScanWork& work, TableScanReader& reader, KeptAnswers& kept) {
    const MergeColumns& columns = work.columns;
    Datum values[TableScan::kMostColumns];
    bool nulls[TableScan::kMostColumns];
    std::uint64_t rows = 0;
    bool took = true;
    while (took && reader.next(values, nulls)) {
        const double distance = DatumGetFloat8(values[columns.distance]);
        took = !nulls[0] && !nulls[1] && !nulls[columns.distance] && !std::isnan(distance) &&
               kept.add(id_in(values[0], columns.narrow_query),
                        {distance, unsigned_id(id_in(values[1], columns.narrow_item))});
        if (++rows % kRowsAtOnce == 0 && pg_atomic_read_u32(&work.gave_up) != 0) took = false;
    }
    if (!took) reader.close();
    pg_atomic_fetch_add_u64(&work.rows, static_cast<std::int64_t>(rows));
    return took;
}

void leave(const KeptAnswers& kept, PackedBytes& output) {
    for (std::uint32_t query = 0; query < kept.queries.size(); ++query) {
        const std::span<const FoundItem> found = kept.answers.of(query);
        const MergeScan::KeptQuery header{kept.queries[query], found.size()};
        output.append(&header, sizeof header);
        output.append(found.data(), found.size_bytes());
    }
}

void read_in_process(ScanWork& work, PackedBytes& output) {
    auto* const kept = make_owned<KeptAnswers>(CurrentMemoryContext, CurrentMemoryContext,
                                               work.columns.k, work.memory_limit);
    kept->numbers.set_type(INT8OID, InvalidOid);
    TableScanReader reader(work.scans);
    if (take_rows(work, reader, *kept))
        leave(*kept, output);
    else
        pg_atomic_write_u32(&work.gave_up, 1);
    kept->numbers.release();
}

void read_answers(void* shared, unsigned process) {
    auto& work = *static_cast<ScanWork*>(shared);
    if (process == 0) return read_in_process(work, *work.session_output);
    auto* const output = make_owned<PackedBytes>(CurrentMemoryContext, SIZE_MAX);
    // Other processes read what this one does not.
    if (!output->borrow(open_file_of_session(work.session, work.outputs[process], O_RDWR))) return;
    read_in_process(work, *output);
    output->finish();
    work.sizes[process] = output->size();
}

}  // namespace

bool MergeScan::read(const TableScans& scans, const MergeColumns& columns,
                     std::size_t memory_limit) {
    const unsigned workers = wanted_workers(kSecondsOfPage * static_cast<double>(scans.pages));
    if (workers == 0) return false;
    attempt_or_raise([&] {
        for (unsigned process = 0; process <= workers; ++process)
            files_.push_back(std::make_unique<PackedBytes>(process == 0 ? memory_limit : SIZE_MAX));
    });
    auto* const work = static_cast<ScanWork*>(palloc0(sizeof(ScanWork)));
    work->scans = scans;
    work->columns = columns;
    work->memory_limit = memory_limit / (workers + 1);
    work->session = MyProcPid;
    work->session_output = files_[0].get();
    pg_atomic_init_u64(&work->rows, 0);
    pg_atomic_init_u32(&work->gave_up, 0);
    room_.reserve(workers);
    for (unsigned worker = 1; worker <= workers; ++worker)
        work->outputs[worker] = files_[worker]->lend();
    run_parallel_work({read_answers, "gputext_merge_scan_worker", work, sizeof *work}, workers);
    files_[0]->finish();
    for (unsigned worker = 1; worker <= workers; ++worker)
        files_[worker]->take_back(work->sizes[worker]);
    const bool read = pg_atomic_read_u32(&work->gave_up) == 0;
    rows_ = pg_atomic_read_u64(&work->rows);
    pfree(work);
    if (!read) release();
    return read;
}

void MergeScan::release() {
    for (const std::unique_ptr<PackedBytes>& file : files_) file->release();
    files_.clear();
    room_.give_back();
}

}  // namespace gputext

extern "C" PGDLLEXPORT void gputext_merge_scan_worker(dsm_segment*, shm_toc* toc) {
    gputext::work_in_worker(toc, gputext::read_answers);
}
