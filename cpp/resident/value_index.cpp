#include "cpp/resident/value_index.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gputext {
namespace {

constexpr std::size_t kMostAtOnce = 64;       // values that are looked up together
constexpr std::size_t kWalkAtOnce = 1 << 16;  // rows between two looks at a stop request
constexpr std::size_t kAhead = 16;            // rows between a prefetch and the use

}  // namespace

IndexedChunk::IndexedChunk(std::shared_ptr<const ResidentChunk> memory, const ValueRequest& request,
                           std::span<const std::uint32_t> values)
    : chunk(std::move(memory)) {
    rows.reserve(values.size() + 1);
    std::uint64_t offset = 0;
    auto table = tables.end();
    for (const std::uint32_t value : values) {
        const ValuePointer& pointer = request.pointers[value];
        if (table == tables.end() || table->first != pointer.table)
            table = tables.try_emplace(pointer.table, 0).first;
        ++table->second;
        const std::uint64_t size = request.size_of(value);
        const bool findable = request.may_add(value);
        rows.push_back(
            {pointer.table, pointer.number, findable ? request.places[value].horizon : 0, offset});
        live_values += findable;
        live_bytes += findable ? size : 0;
        offset += size;
    }
    rows.push_back({0, 0, 0, offset});
}

void IndexedChunk::lose(std::size_t row) {
    if (rows[row].horizon == 0) return;
    rows[row].horizon = 0;
    --live_values;
    live_bytes -= size_of(row);
}

// ---- Looking for values ----

/// One request's way through the chunks.
class ValueIndex::Search {
public:
    Search(const ValueIndex& index, ValueRequest& request, std::uint64_t number)
        : index_(index),
          request_(request),
          number_(number),
          sizes_known_(!has_words(request.asked.kind.form)) {}

    std::vector<IndexedChunk*> all(Stop stop) {
        const std::size_t count = request_.pointers.size();
        std::size_t at_once = 1;
        for (std::size_t at = 0, looked = 0; at < count;) {
            if (at >= looked) {
                if (stop()) return {};
                looked = at + kWalkAtOnce;
            }
            const std::size_t end = std::min(count, at + kWalkAtOnce);
            const std::size_t walked = walk(at, end);
            at += walked;
            if (at == end) continue;
            if (const std::size_t unknown = skip_unknown(at, end); unknown > 0) {
                at += unknown;
                continue;
            }
            // Few values lie elsewhere, or many one after the other.
            at_once = walked > 0 ? 1 : std::min(2 * at_once, kMostAtOnce);
            at += look_up(at, std::min(at_once, count - at));
        }
        return std::move(chunks_);
    }

private:
    bool is(const IndexedChunk::Row* row, const ValuePointer& pointer) const {
        return row->table == pointer.table && row->number == pointer.number &&
               pointer.since < row->horizon &&
               (!sizes_known_ || row[1].offset - row->offset == pointer.size);
    }
    static ValuePlace place_in(std::uint32_t chunk, const IndexedChunk::Row* row) {
        return {chunk, static_cast<std::uint32_t>(row[1].offset - row->offset), row->offset,
                row->horizon};
    }

    /// How many values from `at` on are the next rows of the chunk.
    std::size_t walk(std::size_t at, std::size_t end) {
        if (next_.chunk == nullptr) return 0;
        const std::size_t rows = next_.chunk->row_count() - next_.row;
        const std::size_t most = std::min(end - at, rows);
        const IndexedChunk::Row* const row = next_.chunk->rows.data() + next_.row;
        const ValuePointer* const pointer = request_.pointers.data() + at;
        ValuePlace* const place = request_.places.data() + at;
        std::uint64_t bytes = 0;
        std::size_t i = 0;
        for (; i < most && is(row + i, pointer[i]); ++i) {
            place[i] = place_in(next_.chunk->held_as, row + i);
            bytes += pointer[i].size;
        }
        count_found(i, bytes);
        next_.row += i;
        return i;
    }

    /// How many values from `at` on are of a table that no chunk has values of: a column that is
    /// asked for the first time.
    std::size_t skip_unknown(std::size_t at, std::size_t end) {
        const auto table_of = [&](std::size_t value) { return request_.pointers[value].table; };
        const std::uint32_t table = table_of(at);
        auto found = known_.find(table);
        if (found == known_.end()) found = known_.emplace(table, index_.has_table(table)).first;
        if (found->second) return 0;
        std::size_t next = at + 1;
        while (next < end && table_of(next) == table) ++next;
        return next - at;
    }

    std::size_t look_up(std::size_t at, std::size_t count) {
        const ValuePointer* const pointers = request_.pointers.data() + at;
        for (std::size_t i = 0; i < count; ++i)
            index_.slots_.prefetch(hash_of(pointers[i].table, pointers[i].number));
        std::array<Place, kMostAtOnce> places;
        for (std::size_t i = 0; i < count; ++i) {
            places[i] =
                index_.place_of(slot_in(index_.slots_, pointers[i].table, pointers[i].number));
            __builtin_prefetch(places[i].get());
        }
        for (std::size_t i = 0; i < count; ++i) {
            const IndexedChunk::Row* const row = places[i].get();
            if (row == nullptr || !is(row, pointers[i])) continue;
            request_.places[at + i] = place_in(hold(*places[i].chunk), row);
            count_found(1, pointers[i].size);
            next_ = {places[i].chunk, places[i].row + 1};
        }
        return count;
    }

    void count_found(std::size_t values, std::uint64_t bytes) {
        request_.missing -= static_cast<std::uint32_t>(values);
        request_.missing_bytes -= bytes;
    }

    /// The chunk among those that the request holds.
    std::uint32_t hold(IndexedChunk& chunk) {
        if (chunk.held_by == number_) return chunk.held_as;
        request_.chunks.push_back(chunk.chunk);
        chunks_.push_back(&chunk);
        chunk.held_by = number_;
        return chunk.held_as = static_cast<std::uint32_t>(chunks_.size() - 1);
    }

    const ValueIndex& index_;
    ValueRequest& request_;
    const std::uint64_t number_;
    const bool sizes_known_;  // by the pointers
    Place next_;              // what the next value is expected to be; its chunk is held
    std::map<std::uint32_t, bool> known_;  // tables, and whether a chunk has values of them
    std::vector<IndexedChunk*> chunks_;
};

std::vector<IndexedChunk*> ValueIndex::find(ValueRequest& request, std::uint64_t number,
                                            Stop stop) {
    return Search(*this, request, number).all(stop);
}

// ---- The table ----

ValueIndex::ValueIndex() : slots_(kMostAtOnce) {}

bool ValueIndex::has_table(std::uint32_t table) const {
    return std::any_of(chunks_.begin(), chunks_.end(), [&](const auto& chunk) {
        return chunk != nullptr && chunk->tables.contains(table);
    });
}

ValueIndex::Place ValueIndex::place_of(const Slot& slot) const {
    if (slot.chunk >= chunks_.size()) return {};
    IndexedChunk* const chunk = chunks_[slot.chunk].get();
    if (chunk == nullptr || slot.row >= chunk->row_count()) return {};
    return {chunk, slot.row};
}

ValueIndex::Place ValueIndex::live_place_of(const Slot& slot) const {
    const Place place = place_of(slot);
    const IndexedChunk::Row* const row = place.get();
    const bool live = row != nullptr && row->table == slot.table && row->number == slot.number &&
                      row->horizon > 0;
    return live ? place : Place();
}

void ValueIndex::add(std::unique_ptr<IndexedChunk> chunk) {
    auto place = std::find(chunks_.begin(), chunks_.end(), nullptr);
    if (place == chunks_.end()) {
        chunks_.reserve(chunks_.size() + 1);
        make_room(chunk->row_count());
        place = chunks_.insert(chunks_.end(), nullptr);
    } else {
        make_room(chunk->row_count());
    }
    *place = std::move(chunk);
    put(static_cast<std::uint32_t>(place - chunks_.begin()));
}

/// Points slots to the rows of a chunk that can be found, for which there is room.
void ValueIndex::put(std::uint32_t number) {
    IndexedChunk& chunk = *chunks_[number];
    const std::size_t rows = chunk.row_count();
    for (std::size_t row = 0; row < rows; ++row) {
        if (row + kAhead < rows)
            slots_.prefetch(
                hash_of(chunk.rows[row + kAhead].table, chunk.rows[row + kAhead].number));
        const IndexedChunk::Row& own = chunk.rows[row];
        if (own.horizon == 0) continue;
        Slot& slot = slot_in(slots_, own.table, own.number);
        taken_ += slot.free();
        if (const Place old = live_place_of(slot); old.chunk != nullptr) {
            // Twice in one chunk: the walk along its rows finds the second one, too.
            if (old.chunk == &chunk) continue;
            if (old.get()->horizon > own.horizon) {
                chunk.lose(row);
                continue;
            }
            old.chunk->lose(old.row);
        }
        slot = {own.number, own.table, number, static_cast<std::uint32_t>(row)};
    }
}

std::unique_ptr<IndexedChunk> ValueIndex::remove(const IndexedChunk& chunk) {
    for (std::unique_ptr<IndexedChunk>& own : chunks_)
        if (own.get() == &chunk) return std::move(own);
    return nullptr;
}

bool ValueIndex::empty() const {
    return std::all_of(chunks_.begin(), chunks_.end(),
                       [](const auto& chunk) { return chunk == nullptr; });
}

/// For so many more taken slots. Leaves out those that point to nothing any more when the table
/// becomes another one.
void ValueIndex::make_room(std::size_t more) {
    if (3 * (taken_ + more) <= 2 * (slots_.bytes() / sizeof(Slot))) return;
    std::size_t live = 0;
    for (const auto& chunk : chunks_) live += chunk == nullptr ? 0 : chunk->live_values;
    slots_ = HashTable<Slot>(live + more);
    taken_ = 0;
    for (std::uint32_t number = 0; number < chunks_.size(); ++number)
        if (chunks_[number] != nullptr) put(number);
}

}  // namespace gputext
