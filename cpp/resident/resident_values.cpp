#include "cpp/resident/resident_values.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cpp/base/exception_status.hpp"
#include "cpp/link/wire.hpp"
#include "cpp/resident/chunk_filler.hpp"
#include "cpp/resident/term_chunks.hpp"

namespace gputext {
namespace {

/// How many times the limit other sessions hand over before a chunk that nobody uses is as a new
/// one.
constexpr std::uint64_t kForgottenAfter = 2;

/// A device makes its copy of its copies of older chunks where these lack at most this part of the
/// bytes (a divisor), and pieces have so many bytes on average.
constexpr std::uint64_t kNotOnDevicesPart = 4;
constexpr std::uint64_t kLeastPiece = 256;

/// Parts may have this part of the limit (a divisor).
constexpr std::uint64_t kPartOfParts = 4;

/// Whether devices have copies of most of what the bytes come from.
bool helps_devices(const ResidentOrigin& origin, std::uint64_t bytes,
                   const ResidentChunks& chunks) {
    std::uint64_t not_there = 0;
    for (const ResidentOrigin::Source& source : origin.sources)
        if (chunks.on_devices(source.id) == 0) not_there += source.bytes.size();
    return not_there <= bytes / kNotOnDevicesPart && origin.pieces.size() <= bytes / kLeastPiece;
}

/// Whether so little of a chunk can still be found that its memory is worth more.
bool only_remains(const IndexedChunk& chunk) {
    return chunk.live_values == 0 || chunk.live_bytes < chunk.chunk->bytes().size() / 4;
}

/// Whether enough of a chunk of so many bytes can be found that it is worth its memory.
bool worth_its_memory(std::uint64_t live_values, std::uint64_t live_bytes, std::uint64_t bytes) {
    return live_values > 0 && live_bytes >= bytes / 2;
}

/// What a part of so many values has of the bytes that all values of a chunk share.
std::uint64_t share(std::uint64_t bytes, std::uint64_t values, std::uint64_t of_all) {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) *
                                      (static_cast<double>(values) / static_cast<double>(of_all)));
}

/// Calls each(i) for every value below `count`, and work(table) behind the last one of a run of
/// values that are of one table.
template <class TableOf, class Each, class Work>
void by_table(std::size_t count, const TableOf& table_of, const Each& each, const Work& work) {
    for (std::size_t i = 0; i < count;) {
        const std::uint32_t table = table_of(i);
        for (; i < count && table_of(i) == table; ++i) each(i);
        work(table);
    }
}

}  // namespace

ResidentValues::ResidentValues(ResidentLimits limits, std::shared_ptr<ResidentRanges> ranges)
    : limits_(limits),
      chunks_(ResidentChunks::create(std::move(ranges))),
      filler_(chunks_->ranges()) {}

template <class Work>
void ResidentValues::for_each_chunk(const Work& work) {
    for (auto& [kind, index] : kinds_)
        for (const std::unique_ptr<IndexedChunk>& chunk : index.chunks())
            if (chunk != nullptr) work(kind, index, *chunk);
}

// ---- What sessions ask for ----

Status ResidentValues::find(const FindValues& message, int pointers, ValueRequest& request,
                            Stop stop) {
    return status_or_exception([&]() -> Status {
        request = {};
        settle();
        if (message.run != run_) forget_all();
        run_ = message.run;
        auto read = read_request(message, pointers, stop);
        if (!read.ok()) return read.status();
        ValueRequest& begun = *read;
        begun.number = ++requests_;
        std::vector<IndexedChunk*> chunks;
        if (const auto kind = kinds_.find(message.kind); kind != kinds_.end())
            chunks = kind->second.find(begun, requests_, stop);
        if (stop()) return Status::cancelled();
        if (has_words(message.kind.form)) leave_out_smallest(begun, chunks);
        for (IndexedChunk* const chunk : chunks) use(*chunk);
        begun.found_bytes = begun.bytes - begun.missing_bytes;
        count_found(begun);
        request = std::move(begun);
        return {};
    });
}

std::vector<std::uint32_t> ResidentValues::missing(const ValueRequest& request) {
    std::vector<std::uint32_t> rows;
    rows.reserve(request.missing);
    for (std::uint32_t row = 0; row < request.places.size(); ++row)
        if (request.places[row].chunk == ValuePlace::missing) rows.push_back(row);
    return rows;
}

Result<std::uint64_t> ResidentValues::add(ValueRequest& request, const AddValues& message,
                                          std::vector<FileDescriptor> files) {
    return status_or_exception([&]() -> Result<std::uint64_t> {
        settle();
        if (request.missing == 0) return broken("values that are not missing");
        if (has_words(request.asked.kind.form)) return broken("values in place of terms");
        if (message.bytes != request.missing_bytes)
            return broken("values of another size than those that are missing");
        auto rows = missing(request);
        auto chunk = chunks_->adopt(std::move(files), message.parts, message.bytes);
        if (!chunk.ok()) return chunk.status();
        take_over(*chunk, request, rows);
        const std::uint64_t id = (*chunk)->id();
        if (rows.size() < request.places.size()) return add(*chunk, request, rows) ? id : 0;
        const bool adding = may_add(request, **chunk, rows);
        if (adding) unsettled_.emplace(Unsettled{*chunk, std::move(request), std::move(rows)});
        end(request, id);
        return adding ? id : 0;
    });
}

Result<std::uint64_t> ResidentValues::add_terms(ValueRequest& request, const AddTerms& message,
                                                std::vector<FileDescriptor> files) {
    return status_or_exception([&]() -> Result<std::uint64_t> {
        settle();
        if (request.missing == 0) return broken("terms that are not missing");
        if (!has_words(request.asked.kind.form)) return broken("terms in place of values");
        if (files.size() != AddTerms::files()) return broken("terms in another number of files");
        const auto rows = missing(request);
        const auto ends = map_ends(files[1].get(), rows.size(), message.bytes);
        if (!ends.ok()) return ends.status();
        ChunkWords words{std::move(files[2]), message.words, message.word_bytes};
        files.resize(1);
        auto chunk = chunks_->adopt(std::move(files), {}, message.bytes, std::move(words));
        if (!chunk.ok()) return chunk.status();
        set_sizes(ends->array<std::uint64_t>(0, rows.size()), rows, request);
        take_over(*chunk, request, rows);
        return add(*chunk, request, rows) ? (*chunk)->id() : 0;
    });
}

void ResidentValues::take_over(std::shared_ptr<const ResidentChunk> chunk, ValueRequest& request,
                               std::span<const std::uint32_t> rows) {
    const auto number = static_cast<std::uint32_t>(request.chunks.size());
    request.chunks.push_back(std::move(chunk));
    std::uint64_t offset = 0;
    for (const std::uint32_t row : rows) {
        ValuePlace& place = request.places[row];
        place = {number, place.size, offset, request.asked.horizon};
        offset += request.size_of(row);
    }
    request.missing = 0;
    request.missing_bytes = 0;
}

Result<ResidentValues::Taken> ResidentValues::take(ValueRequest& request, const TakeValues& message,
                                                   Execution& execution, BeginFilling begin) {
    return status_or_exception([&]() -> Result<Taken> {
        settle();
        Taken taken{request.number == 0 ? chunks_->find(request.ended_as) : nullptr};
        if (request.number == 0 && taken.chunk == nullptr) return broken("no request for values");
        if (has_words(request.asked.kind.form)) return broken("values in place of terms");
        if (request.missing > 0) return broken("values that are still missing");
        if (taken.chunk == nullptr) taken.chunk = chunk_of_all(request);
        if (taken.chunk != nullptr) {
            if (is_resident(taken.chunk->id())) taken.resident = taken.chunk->id();
        } else {
            auto found = gathered(request, message.again, execution, std::move(begin));
            if (!found.ok()) return found;
            taken = std::move(*found);
        }
        end(request, taken.chunk->id());
        if (!message.early) GPUTEXT_TRY(taken.chunk->filling().wait(execution.stop()));
        return taken;
    });
}

Result<ResidentValues::TakenChunks> ResidentValues::take_terms(ValueRequest& request) {
    return status_or_exception([&]() -> Result<TakenChunks> {
        if (request.number == 0) return broken("no request for terms");
        if (!has_words(request.asked.kind.form)) return broken("terms in place of values");
        if (request.missing > 0) return broken("terms that are still missing");
        MemoryFile list;
        GPUTEXT_TRY(write_list(request, list));
        TakenChunks taken{list.release_descriptor(), request.places.size(),
                          std::move(request.chunks)};
        request = {};
        return taken;
    });
}

Result<ResidentValues::Taken> ResidentValues::gathered(ValueRequest& request, bool again,
                                                       Execution& execution, BeginFilling begin) {
    const ValueKind kind = request.asked.kind;
    auto found = origin_of(request, execution.stop());
    if (!found.ok()) return found.status();
    const auto origin = std::make_shared<const ResidentOrigin>(std::move(*found));
    const std::uint64_t of_sources = bytes_of_sources(request);
    const bool worth = of_sources > 0 && request.bytes >= of_sources / 2;
    const bool few = of_sources == 0 || request.bytes < of_sources / 4 * 3;
    const bool shown = (worth || again) && helps_devices(*origin, request.bytes, *chunks_);
    auto chunk = chunks_->reserve(request.bytes, shown ? origin : nullptr);
    if (!chunk.ok()) return chunk.status();
    std::vector<std::uint32_t> all(request.places.size());
    std::iota(all.begin(), all.end(), 0);
    const bool part = again && few && may_add_part(request, **chunk);
    if (!part && !(worth && may_add(request, **chunk, all))) {
        if (begin) GPUTEXT_TRY(begin(execution));
        fill(**chunk, kind, *origin, execution);
        if (execution.stop_requested()) return Status::cancelled();
        GPUTEXT_TRY((*chunk)->filling().wait({}));
        return Taken{*chunk, 0};
    }
    GPUTEXT_TRY(bound_magnitude(**chunk, kind, request.chunks, execution));
    auto task = std::make_unique<FillingTask>(execution.threads(), *chunk, kind, origin);
    task->begin = std::move(begin);
    if (part) add_part(*chunk, request);
    filler_.submit(std::move(task));
    if (!part) unsettled_.emplace(Unsettled{*chunk, std::move(request), std::move(all)});
    return Taken{*chunk, (*chunk)->id()};
}

Result<std::shared_ptr<const ResidentChunk>> ResidentValues::take_resident(std::uint64_t id) {
    return status_or_exception([&]() -> Result<std::shared_ptr<const ResidentChunk>> {
        settle();
        const auto part = std::find_if(parts_.begin(), parts_.end(),
                                       [&](const Part& own) { return own.chunk->id() == id; });
        if (part != parts_.end()) {
            if (!part->chunk->filling().filled()) return std::shared_ptr<const ResidentChunk>();
            part->last_used = ++requests_;
            count_found(part->database, part->tables);
            return part->chunk;
        }
        const ValueKind* kind = nullptr;
        IndexedChunk* const found = find_resident(id, &kind);
        if (found == nullptr || !found->chunk->filling().filled())
            return std::shared_ptr<const ResidentChunk>();
        ++requests_;
        use(*found);
        count_found(kind->database, found->tables);
        return found->chunk;
    });
}

Status ResidentValues::await(std::uint64_t id, Stop stop) const {
    const auto chunk = chunks_->find(id);
    return chunk == nullptr ? Status() : chunk->filling().wait(stop);
}

/// What there is no memory for is not resident.
void ResidentValues::settle() {
    if (unsettled_) {
        const Unsettled last = std::move(*unsettled_);
        unsettled_.reset();
        [[maybe_unused]] const Status added = status_or_exception([&] {
            add(last.chunk, last.request, last.values);
            return Status();
        });
    }
    give_up_failed();
}

void ResidentValues::give_up_failed() {
    for_each_chunk([&](const ValueKind&, ValueIndex& index, IndexedChunk& chunk) {
        if (chunk.chunk->filling().failed()) give_up(index, chunk);
    });
    give_up_parts([](const Part& part) { return part.chunk->filling().failed(); });
    drop_empty();
}

// ---- Parts ----

std::uint64_t ResidentValues::bytes_of_parts() const {
    std::uint64_t bytes = 0;
    for (const Part& part : parts_) bytes += part.cost();
    return bytes;
}

template <class Which>
void ResidentValues::give_up_parts(const Which& which) {
    const auto count = std::count_if(parts_.begin(), parts_.end(), which);
    if (count == 0) return;
    // An exception amid them would leave parts without a chunk.
    given_up_.reserve(given_up_.size() + static_cast<std::size_t>(count));
    std::erase_if(parts_, [&](Part& part) {
        if (!which(part)) return false;
        given_up_.push_back(part.chunk);
        bytes_ -= part.cost();
        files_ -= part.chunk->files();
        return true;
    });
}

void ResidentValues::give_up(const Part& part) {
    const std::uint64_t id = part.chunk->id();
    give_up_parts([id](const Part& own) { return own.chunk->id() == id; });
}

const ResidentValues::Part& ResidentValues::oldest_part() const {
    return *std::min_element(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
        return a.last_used < b.last_used;
    });
}

/// Whether values of the request lie in the chunk.
bool ResidentValues::holds(const ValueRequest& request, const IndexedChunk& chunk) {
    return std::find(request.chunks.begin(), request.chunks.end(), chunk.chunk) !=
           request.chunks.end();
}

bool ResidentValues::may_add_part(const ValueRequest& request, const ResidentChunk& chunk) {
    // All that is not the request's can be given up.
    std::uint64_t bytes = chunk.bytes().size();
    std::size_t files = chunk.files();
    for_each_chunk([&](const ValueKind&, ValueIndex&, const IndexedChunk& own) {
        if (!holds(request, own)) return;
        bytes += own.cost();
        files += own.chunk->files();
    });
    return request.asked.run == run_ && chunk.bytes().size() <= limits_.bytes / kPartOfParts &&
           bytes <= limits_.bytes && files <= limits_.files;
}

void ResidentValues::add_part(std::shared_ptr<const ResidentChunk> chunk,
                              const ValueRequest& request) {
    Part part{std::move(chunk), request.asked.kind.database, {}, requests_};
    parts_.reserve(parts_.size() + 1);
    for (const ValuePointer& pointer : request.pointers) ++part.tables[pointer.table];
    while (bytes_of_parts() + part.cost() > limits_.bytes / kPartOfParts) give_up(oldest_part());
    give_up_to_limits(&request, &part);
    files_ += part.chunk->files();
    bytes_ += part.cost();
    parts_.push_back(std::move(part));
}

void ResidentValues::end(ValueRequest& request, std::uint64_t chunk) {
    request = {};
    request.ended_as = chunk;
}

/// What the resident chunks have that the values lie in, if a copy of them may be resident; else 0.
std::uint64_t ResidentValues::bytes_of_sources(const ValueRequest& request) const {
    for (std::size_t value = 0; value < request.places.size(); ++value)
        if (!request.may_add(value)) return 0;
    const auto kind = kinds_.find(request.asked.kind);
    if (kind == kinds_.end()) return 0;
    std::uint64_t live_bytes = 0;
    for (const auto& own : kind->second.chunks())
        if (own != nullptr && std::find(request.chunks.begin(), request.chunks.end(), own->chunk) !=
                                  request.chunks.end())
            live_bytes += own->live_bytes;
    return live_bytes;
}

// ---- What is resident ----

IndexedChunk* ResidentValues::find_resident(std::uint64_t id, const ValueKind** kind) const {
    for (const auto& [own_kind, index] : kinds_)
        for (const auto& own : index.chunks())
            if (own != nullptr && own->chunk->id() == id) {
                if (kind != nullptr) *kind = &own_kind;
                return own.get();
            }
    return nullptr;
}

void ResidentValues::use(IndexedChunk& chunk) {
    chunk.last_used = requests_;
    chunk.found_again = true;
    chunk.offered = offered_;
}

bool ResidentValues::may_add(const ValueRequest& request, const ResidentChunk& chunk,
                             std::span<const std::uint32_t> values) const {
    if (request.asked.run != run_ || chunk.files() > limits_.files ||
        IndexedChunk::cost_of(chunk, values.size()) > limits_.bytes)
        return false;
    std::uint64_t live_values = 0, live_bytes = 0;
    for (const std::uint32_t value : values)
        if (request.may_add(value)) {
            ++live_values;
            live_bytes += request.size_of(value);
        }
    return worth_its_memory(live_values, live_bytes, chunk.bytes().size());
}

bool ResidentValues::add(std::shared_ptr<const ResidentChunk> chunk, const ValueRequest& request,
                         std::span<const std::uint32_t> values) {
    const std::uint64_t id = chunk->id();
    if (!may_add(request, *chunk, values)) return false;
    auto own = std::make_unique<IndexedChunk>(std::move(chunk), request, values);
    const std::uint64_t cost = own->cost();
    const std::size_t files = own->chunk->files();
    count_added(request, *own);
    ValueIndex& index = kinds_[request.asked.kind];
    own->last_used = requests_;
    own->offered = offered_ + cost;
    own->found_again = request.found_bytes >= request.bytes / 2 && request.found_bytes > 0 &&
                       values.size() == request.places.size();
    IndexedChunk& added = *own;
    index.add(std::move(own));
    offered_ += cost;
    bytes_ += cost;
    files_ += files;
    if (!worth_its_memory(added.live_values, added.live_bytes, added.chunk->bytes().size()))
        give_up(index, added);
    give_up_remains(index);
    give_up_to_limits();
    drop_empty();
    return is_resident(id);
}

void ResidentValues::give_up(ValueIndex& index, const IndexedChunk& chunk) {
    given_up_.push_back(chunk.chunk);
    bytes_ -= chunk.cost();
    files_ -= chunk.chunk->files();
    index.remove(chunk);
}

/// Gives up the chunks of which other chunks have most of the values by now.
void ResidentValues::give_up_remains(ValueIndex& index) {
    for (const std::unique_ptr<IndexedChunk>& chunk : index.chunks())
        if (chunk != nullptr && only_remains(*chunk)) give_up(index, *chunk);
}

bool ResidentValues::is_new(const IndexedChunk& chunk) const {
    return !chunk.found_again || (offered_ - chunk.offered) / kForgottenAfter > limits_.bytes;
}

/// The chunk that is to go first, but for those that hold values of the request.
ResidentValues::Oldest ResidentValues::oldest_chunk(const ValueRequest* request) {
    Oldest of_new, of_used;
    std::uint64_t new_bytes = 0;
    for_each_chunk([&](const ValueKind&, ValueIndex& index, IndexedChunk& chunk) {
        Oldest& oldest = is_new(chunk) ? of_new : of_used;
        if (&oldest == &of_new) new_bytes += chunk.cost();
        if (request != nullptr && holds(*request, chunk)) return;
        if (oldest.chunk == nullptr || chunk.last_used < oldest.chunk->last_used)
            oldest = {&index, &chunk};
    });
    const bool take_new =
        of_used.chunk == nullptr ||
        (of_new.chunk != nullptr &&
         (new_bytes > limits_.bytes / 2 || of_new.chunk->last_used <= of_used.chunk->last_used));
    return take_new ? of_new : of_used;
}

void ResidentValues::give_up_to_limits(const ValueRequest* request, const Part* coming) {
    const std::uint64_t more_bytes = coming == nullptr ? 0 : coming->cost();
    const std::size_t more_files = coming == nullptr ? 0 : coming->chunk->files();
    while (bytes_ + more_bytes > limits_.bytes || files_ + more_files > limits_.files) {
        const Oldest oldest = oldest_chunk(request);
        if (!parts_.empty() &&
            (oldest.chunk == nullptr || oldest_part().last_used <= oldest.chunk->last_used))
            give_up(oldest_part());
        else
            give_up(*oldest.index, *oldest.chunk);
    }
}

void ResidentValues::drop_empty() {
    std::erase_if(kinds_, [](const auto& kind) { return kind.second.empty(); });
}

void ResidentValues::forget_all() {
    for_each_chunk(
        [&](const ValueKind&, ValueIndex& index, IndexedChunk& chunk) { give_up(index, chunk); });
    give_up_parts([](const Part&) { return true; });
    kinds_.clear();
    counts_.clear();
}

std::uint64_t ResidentValues::forget(std::uint32_t database, std::uint32_t table) {
    settle();
    std::uint64_t forgotten = 0;
    for_each_chunk([&](const ValueKind& kind, ValueIndex&, IndexedChunk& chunk) {
        if (kind.database != database) return;
        const std::uint64_t before = chunk.live_values;
        for (std::size_t row = 0; row < chunk.row_count(); ++row)
            if (table == 0 || chunk.rows[row].table == table) chunk.lose(row);
        forgotten += before - chunk.live_values;
    });
    give_up_parts([&](const Part& part) {
        return part.database == database && (table == 0 || part.tables.contains(table));
    });
    std::erase_if(counts_, [&](const auto& counts) {
        return counts.first.first == database && (table == 0 || counts.first.second == table);
    });
    for (auto& [kind, index] : kinds_) give_up_remains(index);
    drop_empty();
    return forgotten;
}

// ---- What is counted ----

void ResidentValues::count_found(const ValueRequest& request) {
    const auto now = Clock::now();
    const auto& pointers = request.pointers;
    std::uint64_t hits = 0, misses = 0;
    by_table(
        pointers.size(), [&](std::size_t i) { return pointers[i].table; },
        [&](std::size_t i) {
            const bool found = request.places[i].chunk != ValuePlace::missing;
            hits += found;
            misses += !found && pointers[i].since != ValuePointer::never &&
                      pointers[i].since < request.asked.horizon;
        },
        [&](std::uint32_t table) {
            const auto counts = counts_.find({request.asked.kind.database, table});
            if (counts != counts_.end()) {
                counts->second.hits += hits;
                counts->second.misses += misses;
                counts->second.asked = now;
            }
            hits = misses = 0;
        });
}

void ResidentValues::count_found(std::uint32_t database,
                                 const std::map<std::uint32_t, std::uint64_t>& tables) {
    const auto now = Clock::now();
    for (const auto& [table, values] : tables) {
        const auto counts = counts_.find({database, table});
        if (counts == counts_.end()) continue;
        counts->second.hits += values;
        counts->second.asked = now;
    }
}

/// A table's first values have been missing, too.
void ResidentValues::count_added(const ValueRequest& request, const IndexedChunk& chunk) {
    if (counts_.size() > most_counts_) drop_counts();
    const auto now = Clock::now();
    std::uint64_t values = 0;
    by_table(
        chunk.row_count(), [&](std::size_t i) { return chunk.rows[i].table; },
        [&](std::size_t i) { values += chunk.rows[i].horizon > 0; },
        [&](std::uint32_t table) {
            if (values > 0) {
                const auto [counts, first] = counts_.try_emplace(
                    {request.asked.kind.database, table}, Counts{0, 0, now, request.number});
                if (counts->second.first_request == request.number) counts->second.misses += values;
            }
            values = 0;
        });
}

std::vector<ResidentTable> ResidentValues::tables() {
    settle();
    return list_tables();
}

std::vector<ResidentTable> ResidentValues::list_tables() {
    const auto now = Clock::now();
    std::map<TableName, ResidentTable> tables;
    for_each_chunk([&](const ValueKind& kind, ValueIndex&, IndexedChunk& chunk) {
        const auto on_devices = static_cast<double>(chunks_->on_devices(chunk.chunk->id()));
        std::uint64_t values = 0, bytes = 0;
        by_table(
            chunk.row_count(), [&](std::size_t i) { return chunk.rows[i].table; },
            [&](std::size_t i) {
                if (chunk.rows[i].horizon == 0) return;
                ++values;
                bytes += chunk.size_of(i);
            },
            [&](std::uint32_t name) {
                if (values > 0) {
                    ResidentTable& table = tables[{kind.database, name}];
                    table.database = kind.database;
                    table.table = name;
                    table.values += values;
                    table.bytes +=
                        bytes + share(chunk.chunk->words().bytes, values, chunk.live_values);
                    if (bytes > 0)
                        table.device_bytes +=
                            static_cast<std::uint64_t>(on_devices * static_cast<double>(bytes) /
                                                       static_cast<double>(chunk.live_bytes));
                }
                values = bytes = 0;
            });
    });
    std::vector<ResidentTable> list;
    list.reserve(tables.size());
    for (auto& [name, table] : tables) {
        if (const auto counts = counts_.find(name); counts != counts_.end()) {
            table.hits = counts->second.hits;
            table.misses = counts->second.misses;
            table.idle_seconds = std::chrono::duration<double>(now - counts->second.asked).count();
        }
        list.push_back(table);
    }
    return list;
}

/// Of tables that nothing is resident of any more.
void ResidentValues::drop_counts() {
    const std::vector<ResidentTable> tables = list_tables();
    std::map<TableName, Counts> counts;
    for (const ResidentTable& table : tables)
        if (const auto own = counts_.find({table.database, table.table}); own != counts_.end())
            counts.insert(*own);
    counts_ = std::move(counts);
    most_counts_ = std::max(most_counts_, 2 * counts_.size());
}

}  // namespace gputext
