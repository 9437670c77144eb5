#include "extension/texts/text_work.hpp"

extern "C" {
#include "port/atomics.h"
#include "utils/memutils.h"
}

#include <fcntl.h>

#include <algorithm>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/server/session_job.hpp"
#include "extension/texts/term_reader.hpp"
#include "extension/texts/token_reader.hpp"
#include "extension/values/shared_rows.hpp"

namespace gputext {

/// What a worker has left behind its output, and where.
struct LeftBehind {
    std::uint64_t size;  // of the file; 0: the worker has read nothing
    std::uint64_t stretches_begin, stretches;
    std::uint64_t terms;
    std::uint64_t ends_begin, characters_begin;
};

namespace {

/// Bytes of texts that a process takes at once, about.
constexpr std::uint64_t kStretch = std::uint64_t{1} << 18;
constexpr unsigned kMostColumns = 2;
/// A byte of text seldom makes more bytes of output.
constexpr double kOutputOfText = 2;

/// Bytes a second that one process parses, about.
double parse_rate(TextKind kind) {
    switch (kind) {
        case TextKind::words_of_text:
        case TextKind::terms_of_text:
            return 60e6;
        case TextKind::words_of_array:
        case TextKind::terms_of_tsvector:
        case TextKind::terms_of_weights:
            return 100e6;
    }
    pg_unreachable();
}

std::unique_ptr<StretchReader> new_reader(TextKind kind, Oid config, std::size_t memory_limit) {
    switch (kind) {
        case TextKind::words_of_text:
        case TextKind::words_of_array:
            return std::make_unique<TokenReader>(kind, config, memory_limit);
        case TextKind::terms_of_text:
            return std::make_unique<TermReader>(TermSource::text, config, memory_limit);
        case TextKind::terms_of_tsvector:
            return std::make_unique<TermReader>(TermSource::tsvector, config, memory_limit);
        case TextKind::terms_of_weights:
            return std::make_unique<TermReader>(TermSource::weights, config, memory_limit);
    }
    pg_unreachable();
}

/// What all processes know and change.
struct TextWork {
    StoredValueFiles columns[kMostColumns];
    unsigned column_count;
    TextKind kind;
    Oid config;
    SharedRows rows;             // to be read
    SharedNumbers chosen;        // their numbers; none for all rows
    std::uint64_t output_limit;  // of all workers together
    pid_t session;
    int outputs[kMostReaders];  // of the workers; open in the session
    // Of the session:
    StretchReader* session_reader;
    std::vector<TextStretch>* session_stretches;

    pg_atomic_uint64 output;  // bytes of all workers
    LeftBehind left[kMostReaders];
};

bool too_much_output(TextWork& work) {
    return pg_atomic_read_u64(&work.output) > work.output_limit;
}

/// The work of one process.
struct Reading {
    TextWork& work;
    unsigned process;
    StretchReader& reader;
    std::vector<TextStretch>& stretches;
    StoredValueReader columns[kMostColumns];
    const std::uint32_t* chosen;
    MemoryContext row_context;

    bool open() {
        chosen = work.chosen.open(work.session, process);
        if (chosen == nullptr && work.chosen.in_session != nullptr) return false;
        for (unsigned column = 0; column < work.column_count; ++column)
            if (!columns[column].open(work.columns[column], process)) return false;
        return true;
    }
    std::uint64_t read_stretch(std::uint64_t begin, std::uint64_t end);
    bool read_row(std::uint64_t i);
};

bool Reading::read_row(std::uint64_t i) {
    const std::uint64_t row = chosen == nullptr ? i : chosen[i];
    CHECK_FOR_INTERRUPTS();
    const MemoryContext before = MemoryContextSwitchTo(row_context);
    Datum values[kMostColumns] = {};
    for (unsigned column = 0; column < work.column_count; ++column)
        values[column] = columns[column].at(row);
    const bool good = reader.read_row(values);
    MemoryContextSwitchTo(before);
    MemoryContextReset(row_context);
    return good;
}

/// Returns the first row that is wrong, or `end`.
std::uint64_t Reading::read_stretch(std::uint64_t begin, std::uint64_t end) {
    TextStretch stretch{};
    stretch.number = static_cast<std::uint32_t>(begin / work.rows.stretch_rows());
    stretch.process = process;
    stretch.rows = static_cast<std::uint32_t>(end - begin);
    stretch.begin = reader.output().size();
    for (std::uint64_t row = begin; row < end; ++row)
        if (!read_row(row)) return row;
    stretch.end = reader.output().size();
    attempt_or_raise([&] { stretches.push_back(stretch); });
    if (process > 0)
        pg_atomic_fetch_add_u64(&work.output, static_cast<int64>(stretch.end - stretch.begin));
    return end;
}

void read_in_process(TextWork& work, unsigned process, StretchReader& reader,
                     std::vector<TextStretch>& stretches) {
    Reading reading{work, process, reader, stretches, {}, nullptr, nullptr};
    if (!reading.open()) return;
    reading.row_context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);
    work.rows.read(
        process, [&] { return !too_much_output(work); },
        [&](std::uint64_t begin, std::uint64_t end) { return reading.read_stretch(begin, end); });
    for (unsigned column = 0; column < work.column_count; ++column) reading.columns[column].close();
    MemoryContextDelete(reading.row_context);
}

template <class T>
std::uint64_t append_aligned(PackedBytes& output, std::span<const T> values) {
    static const char zeros[MAXIMUM_ALIGNOF] = {};
    output.append(zeros, MAXALIGN(output.size()) - output.size());
    const std::uint64_t begin = output.size();
    output.append(values.data(), values.size_bytes());
    return begin;
}

void leave(StretchReader& reader, const std::vector<TextStretch>& stretches, LeftBehind& left) {
    PackedBytes& output = reader.output();
    const Words words = reader.vocabulary().words();
    left.stretches = stretches.size();
    left.stretches_begin = append_aligned(output, std::span<const TextStretch>(stretches));
    left.terms = words.size();
    left.ends_begin =
        append_aligned(output, std::span<const std::uint64_t>(words.begins, words.size() + 1));
    left.characters_begin =
        append_aligned(output, std::span<const std::uint8_t>(words.bytes, words.byte_count()));
    output.finish();
    left.size = output.size();
}

void read_in_worker(TextWork& work, unsigned process) {
    auto* const stretches = make_owned<std::vector<TextStretch>>(CurrentMemoryContext);
    auto* const reader = make_owned<std::unique_ptr<StretchReader>>(CurrentMemoryContext);
    attempt_or_raise([&] { *reader = new_reader(work.kind, work.config, SIZE_MAX); });
    if (!(*reader)->output().borrow(
            open_file_of_session(work.session, work.outputs[process], O_RDWR)))
        return;
    read_in_process(work, process, **reader, *stretches);
    if (!stretches->empty()) leave(**reader, *stretches, work.left[process]);
}

void read_texts(void* shared, unsigned process) {
    auto& work = *static_cast<TextWork*>(shared);
    if (process == 0)
        read_in_process(work, 0, *work.session_reader, *work.session_stretches);
    else
        read_in_worker(work, process);
}

}  // namespace

/// What the workers and the session share, in memory of the current context.
void* ReadTexts::new_work(std::span<StoredValues* const> columns, ChosenRows rows,
                          unsigned workers) {
    auto* const work = static_cast<TextWork*>(palloc0(sizeof(TextWork)));
    work->column_count = static_cast<unsigned>(columns.size());
    std::uint64_t bytes = 0;
    for (std::size_t column = 0; column < columns.size(); ++column) {
        work->columns[column] = columns[column]->files();
        bytes += columns[column]->unpacked_bytes();
    }
    work->kind = kind_;
    work->config = config_;
    work->rows.begin(rows.empty() ? columns[0]->size() : rows.size(),
                     std::max<std::uint64_t>(
                         1, kStretch * columns[0]->size() / std::max<std::uint64_t>(1, bytes)),
                     1);
    work->chosen = chosen_.share(rows);
    work->output_limit = memory_limit_;
    work->session = MyProcPid;
    room_.reserve(workers);
    for (unsigned worker = 0; worker < workers; ++worker)
        work->outputs[worker + 1] = files_[worker]->lend();
    work->session_reader = session_reader_.get();
    work->session_stretches = &session_stretches_;
    pg_atomic_init_u64(&work->output, 0);
    return work;
}

/// What the session has read itself. Inside attempt().
void ReadTexts::collect_own() {
    words_.push_back(session_reader_->vocabulary().words());
    outputs_.push_back(session_reader_->output().data());
    stretches_ = session_stretches_;
}

/// What a worker has left in its file. Inside attempt().
void ReadTexts::collect(const LeftBehind& left, const std::uint8_t* file) {
    static constexpr std::uint64_t nothing = 0;
    outputs_.push_back(file);
    if (left.size == 0) return words_.push_back({nullptr, &nothing, 0});
    const auto* const stretches = reinterpret_cast<const TextStretch*>(file + left.stretches_begin);
    stretches_.insert(stretches_.end(), stretches, stretches + left.stretches);
    words_.push_back({file + left.characters_begin,
                      reinterpret_cast<const std::uint64_t*>(file + left.ends_begin), left.terms});
}

/// Finds the records of rows. On a thread of the session.
Status ReadTexts::list_texts(Execution& execution) {
    std::vector<std::size_t> first{0};
    for (const TextStretch& stretch : stretches_) {
        first.push_back(first.back() + stretch.rows);
        size_ += (stretch.end - stretch.begin) / sizeof(std::uint32_t);
    }
    texts_.resize(first.back());
    execution.begin_phase("finding texts", stretches_.size());
    return execution.parallel_for(stretches_.size(), [&](std::size_t i, unsigned) -> Status {
        const TextStretch& stretch = stretches_[i];
        const auto* record =
            reinterpret_cast<const std::uint32_t*>(outputs_[stretch.process] + stretch.begin);
        for (std::uint32_t row = 0; row < stretch.rows; ++row) {
            const std::uint64_t size = size_of_record(form_of(kind_), record);
            texts_[first[i] + row] = {record, static_cast<std::uint32_t>(size), stretch.process};
            record += size;
        }
        return {};
    });
}

ChunkedTexts ReadTexts::texts() const {
    return {form_of(kind_), texts_, words_, size_};
}

/// False when the workers' output does not fit into the limit.
bool ReadTexts::try_read(std::span<StoredValues* const> columns, ChosenRows rows, unsigned workers,
                         std::uint64_t& first_fault) {
    attempt_or_raise([&] {
        session_reader_ = new_reader(kind_, config_, memory_limit_);
        for (unsigned worker = 0; worker < workers; ++worker)
            files_.push_back(std::make_unique<PackedBytes>(SIZE_MAX));
    });
    auto* const work = static_cast<TextWork*>(new_work(columns, rows, workers));
    run_parallel_work({read_texts, "gputext_read_texts_worker", work, sizeof *work}, workers);
    first_fault = work->rows.first_fault();
    // Stretches that nobody has read, since there was no room, may have a fault before that one.
    if (workers > 0 && too_much_output(*work)) return false;
    if (work->rows.end() < work->rows.rows()) return true;
    for (unsigned worker = 0; worker < workers; ++worker)
        files_[worker]->take_back(work->left[worker + 1].size);
    session_reader_->output().finish();
    attempt_or_raise([&] {
        collect_own();
        for (unsigned worker = 0; worker < workers; ++worker)
            collect(work->left[worker + 1], files_[worker]->data());
        std::sort(stretches_.begin(), stretches_.end(),
                  [](const TextStretch& a, const TextStretch& b) { return a.number < b.number; });
    });
    run_threaded([this](Execution& execution) { return list_texts(execution); });
    pfree(work);
    return true;
}

double seconds_of_parsing(TextKind kind, const StoredValues& values) {
    return values.seconds() + static_cast<double>(values.unpacked_bytes()) / parse_rate(kind);
}

std::uint64_t ReadTexts::read(std::span<StoredValues* const> columns, ChosenRows rows) {
    const std::uint64_t all = columns[0]->size();
    const double share =
        rows.empty() ? 1.0 : static_cast<double>(rows.size()) / static_cast<double>(all);
    double seconds = 0, bytes = 0;
    for (const StoredValues* column : columns) {
        seconds += share * seconds_of_parsing(kind_, *column);
        bytes += share * static_cast<double>(column->unpacked_bytes());
    }
    // Words take about 8 bytes each, and mostly come from less.
    const bool fits = kOutputOfText * bytes < static_cast<double>(memory_limit_);
    std::uint64_t first_fault = 0;
    if (!try_read(columns, rows, fits ? wanted_workers(seconds) : 0, first_fault)) {
        ereport(DEBUG1, (errmsg("reading rows again in the session alone"),
                         errdetail("What the parallel workers have read does not fit into "
                                   "gputext.host_memory_limit.")));
        release();
        try_read(columns, rows, 0, first_fault);
    }
    chosen_.release();
    if (rows.empty()) return first_fault;
    return first_fault < rows.size() ? rows[first_fault] : all;
}

void ReadTexts::release() {
    if (session_reader_) session_reader_->output().release();
    for (const std::unique_ptr<PackedBytes>& file : files_) file->release();
    session_reader_.reset();
    files_.clear();
    room_.give_back();
    words_ = {};
    outputs_ = {};
    texts_ = {};
    size_ = 0;
    stretches_ = {};
    session_stretches_ = {};
}

}  // namespace gputext

extern "C" PGDLLEXPORT void gputext_read_texts_worker(dsm_segment*, shm_toc* toc) {
    gputext::work_in_worker(toc, gputext::read_texts);
}
