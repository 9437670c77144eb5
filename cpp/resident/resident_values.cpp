#include "cpp/resident/resident_values.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cpp/base/exception_status.hpp"
#include "cpp/link/wire.hpp"
#include "cpp/resident/gathered_values.hpp"

namespace gputext {
namespace {

/// How many times the limit other sessions hand over before a chunk that nobody uses is as a new
/// one.
constexpr std::uint64_t kForgottenAfter = 2;

/// Whether so little of a chunk can still be found that its memory is worth more.
bool only_remains(const KeptChunk& chunk) {
    return chunk.live_values == 0 || chunk.live_bytes < chunk.chunk->bytes().size() / 4;
}

/// Whether enough of a chunk can be found that it is worth to be kept.
bool worth_its_memory(const KeptChunk& chunk) {
    return chunk.live_values > 0 && chunk.live_bytes >= chunk.chunk->bytes().size() / 2;
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
    : limits_(limits), chunks_(ResidentChunks::create(std::move(ranges))) {}

template <class Work>
void ResidentValues::for_each_chunk(const Work& work) {
    for (auto& [kind, index] : kinds_)
        for (const std::unique_ptr<KeptChunk>& chunk : index.chunks())
            if (chunk != nullptr) work(kind, index, *chunk);
}

// ---- What sessions ask for ----

Status ResidentValues::find(const FindValues& message, int pointers, ValueRequest& request,
                            Stop stop) {
    return status_or_exception([&]() -> Status {
        request = {};
        if (message.run != run_) forget_all();
        run_ = message.run;
        auto read = read_request(message, pointers, stop);
        if (!read.ok()) return read.status();
        ValueRequest& begun = *read;
        begun.number = ++requests_;
        if (const auto kind = kinds_.find(message.kind); kind != kinds_.end())
            for (KeptChunk* const chunk : kind->second.find(begun, requests_, stop)) use(*chunk);
        if (stop()) return Status::cancelled();
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

Result<std::uint64_t> ResidentValues::keep(ValueRequest& request, const KeepValues& message,
                                           std::vector<FileDescriptor> files) {
    return status_or_exception([&]() -> Result<std::uint64_t> {
        if (request.missing == 0) return broken("values that are not missing");
        if (message.bytes != request.missing_bytes)
            return broken("values of another size than those that are missing");
        const auto rows = missing(request);
        auto chunk = chunks_->adopt(std::move(files), message.parts, message.bytes);
        if (!chunk.ok()) return chunk.status();
        const auto number = static_cast<std::uint32_t>(request.chunks.size());
        request.chunks.push_back(*chunk);
        std::uint64_t offset = 0;
        for (const std::uint32_t row : rows) {
            request.places[row] = {number, offset, request.asked.horizon};
            offset += request.pointers[row].size;
        }
        request.missing = 0;
        request.missing_bytes = 0;
        const std::uint64_t id = (*chunk)->id();
        const bool kept = add(*chunk, request, rows);
        if (rows.size() == request.places.size()) end(request, id);
        return kept ? id : 0;
    });
}

Result<ResidentValues::Taken> ResidentValues::take(ValueRequest& request, Execution& execution) {
    return status_or_exception([&]() -> Result<Taken> {
        if (request.number == 0) {
            const auto chunk = chunks_->find(request.ended_as);
            if (chunk == nullptr) return broken("no request for values");
            return Taken{chunk, is_kept(chunk->id()) ? chunk->id() : 0};
        }
        if (request.missing > 0) return broken("values that are still missing");
        Taken taken{chunk_of_all(request), 0};
        if (taken.chunk != nullptr) {
            if (is_kept(taken.chunk->id())) taken.resident = taken.chunk->id();
        } else {
            auto gathered = gather(request, *chunks_, execution);
            if (!gathered.ok()) return gathered.status();
            taken.chunk = *gathered;
            if (worth_keeping(request)) {
                std::vector<std::uint32_t> all(request.places.size());
                std::iota(all.begin(), all.end(), 0);
                if (add(taken.chunk, request, all)) taken.resident = taken.chunk->id();
            }
        }
        end(request, taken.chunk->id());
        return taken;
    });
}

void ResidentValues::end(ValueRequest& request, std::uint64_t chunk) {
    request = {};
    request.ended_as = chunk;
}

/// Whether a copy of all values may come in the place of the chunks that they lie in.
bool ResidentValues::worth_keeping(const ValueRequest& request) const {
    for (std::size_t value = 0; value < request.places.size(); ++value)
        if (!request.may_keep(value)) return false;
    const auto kind = kinds_.find(request.asked.kind);
    if (kind == kinds_.end()) return false;
    std::uint64_t live_bytes = 0;
    for (const auto& kept : kind->second.chunks())
        if (kept != nullptr && std::find(request.chunks.begin(), request.chunks.end(),
                                         kept->chunk) != request.chunks.end())
            live_bytes += kept->live_bytes;
    return request.bytes >= live_bytes / 2;
}

// ---- What is kept ----

bool ResidentValues::is_kept(std::uint64_t id) const {
    for (const auto& [kind, index] : kinds_)
        for (const auto& kept : index.chunks())
            if (kept != nullptr && kept->chunk->id() == id) return true;
    return false;
}

void ResidentValues::use(KeptChunk& chunk) {
    chunk.last_used = requests_;
    chunk.found_again = true;
    chunk.offered = offered_;
}

bool ResidentValues::add(std::shared_ptr<const ResidentChunk> chunk, const ValueRequest& request,
                         std::span<const std::uint32_t> values) {
    const std::uint64_t id = chunk->id();
    if (request.asked.run != run_ || chunk->bytes().size() > limits_.bytes ||
        chunk->files() > limits_.files)
        return false;
    auto own = std::make_unique<KeptChunk>(std::move(chunk), request, values);
    const std::uint64_t cost = own->cost();
    const std::size_t files = own->chunk->files();
    if (cost > limits_.bytes || !worth_its_memory(*own)) return false;
    count_kept(request, *own);
    ValueIndex& index = kinds_[request.asked.kind];
    own->last_used = requests_;
    own->offered = offered_ + cost;
    own->found_again = request.found_bytes >= request.bytes / 2 && request.found_bytes > 0 &&
                       values.size() == request.places.size();
    KeptChunk& kept = *own;
    index.add(std::move(own));
    offered_ += cost;
    bytes_ += cost;
    files_ += files;
    if (!worth_its_memory(kept)) give_up(index, kept);
    give_up_remains(index);
    give_up_to_limits();
    drop_empty();
    return is_kept(id);
}

void ResidentValues::give_up(ValueIndex& index, const KeptChunk& chunk) {
    bytes_ -= chunk.cost();
    files_ -= chunk.chunk->files();
    given_up_.push_back(std::move(index.remove(chunk)->chunk));
}

/// Gives up the chunks of which other chunks have most of the values by now.
void ResidentValues::give_up_remains(ValueIndex& index) {
    for (const std::unique_ptr<KeptChunk>& chunk : index.chunks())
        if (chunk != nullptr && only_remains(*chunk)) give_up(index, *chunk);
}

bool ResidentValues::is_new(const KeptChunk& chunk) const {
    return !chunk.found_again || (offered_ - chunk.offered) / kForgottenAfter > limits_.bytes;
}

void ResidentValues::give_up_to_limits() {
    while (bytes_ > limits_.bytes || files_ > limits_.files) {
        struct Oldest {
            ValueIndex* index = nullptr;
            KeptChunk* chunk = nullptr;
        };
        Oldest of_new, of_used;
        std::uint64_t new_bytes = 0;
        for_each_chunk([&](const ValueKind&, ValueIndex& index, KeptChunk& chunk) {
            Oldest& oldest = is_new(chunk) ? of_new : of_used;
            if (&oldest == &of_new) new_bytes += chunk.cost();
            if (oldest.chunk == nullptr || chunk.last_used < oldest.chunk->last_used)
                oldest = {&index, &chunk};
        });
        const bool take_new =
            of_used.chunk == nullptr ||
            (of_new.chunk != nullptr && (new_bytes > limits_.bytes / 2 ||
                                         of_new.chunk->last_used <= of_used.chunk->last_used));
        const Oldest& oldest = take_new ? of_new : of_used;
        give_up(*oldest.index, *oldest.chunk);
    }
}

void ResidentValues::drop_empty() {
    std::erase_if(kinds_, [](const auto& kind) { return kind.second.empty(); });
}

void ResidentValues::forget_all() {
    for_each_chunk(
        [&](const ValueKind&, ValueIndex& index, KeptChunk& chunk) { give_up(index, chunk); });
    kinds_.clear();
    counts_.clear();
}

std::uint64_t ResidentValues::forget(std::uint32_t database, std::uint32_t table) {
    std::uint64_t forgotten = 0;
    for_each_chunk([&](const ValueKind& kind, ValueIndex&, KeptChunk& chunk) {
        if (kind.database != database) return;
        const std::uint64_t before = chunk.live_values;
        for (std::size_t row = 0; row < chunk.row_count(); ++row)
            if (table == 0 || chunk.rows[row].table == table) chunk.lose(row);
        forgotten += before - chunk.live_values;
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

/// A table's first values have been missing, too.
void ResidentValues::count_kept(const ValueRequest& request, const KeptChunk& chunk) {
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
    const auto now = Clock::now();
    std::map<TableName, ResidentTable> tables;
    for_each_chunk([&](const ValueKind& kind, ValueIndex&, KeptChunk& chunk) {
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
                    table.bytes += bytes;
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

/// Of tables that nothing is kept of any more.
void ResidentValues::drop_counts() {
    const std::vector<ResidentTable> kept = tables();
    std::map<TableName, Counts> counts;
    for (const ResidentTable& table : kept)
        if (const auto own = counts_.find({table.database, table.table}); own != counts_.end())
            counts.insert(*own);
    counts_ = std::move(counts);
    most_counts_ = std::max(most_counts_, 2 * counts_.size());
}

}  // namespace gputext
