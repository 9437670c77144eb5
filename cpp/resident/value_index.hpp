// cpp/resident/value_index.hpp - finds the values of one kind by their pointers

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/hash_table.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/link/resident_values.hpp"
#include "cpp/resident/resident_chunk.hpp"
#include "cpp/resident/value_request.hpp"

namespace gputext {

/// A chunk of the store, with what lies in it.
struct IndexedChunk {
    /// A value. The next row begins where it ends.
    struct Row {
        std::uint32_t table;
        std::uint64_t number;
        std::uint64_t horizon;  // found where `since` is below; 0: never
        std::uint64_t offset;
    };

    /// The values of a request that lie in the chunk, in their order there: those at `values`,
    /// whose sizes add up to the chunk's. Values that may not be resident are rows that are never
    /// found.
    IndexedChunk(std::shared_ptr<const ResidentChunk> memory, const ValueRequest& request,
                 std::span<const std::uint32_t> values);

    std::size_t row_count() const { return rows.size() - 1; }
    std::uint64_t size_of(std::size_t row) const { return rows[row + 1].offset - rows[row].offset; }
    /// What counts against the store's limit, in bytes: also words, and the rows and their slots.
    static std::uint64_t cost_of(const ResidentChunk& chunk, std::size_t rows) {
        return chunk.bytes().size() + chunk.words().bytes + 96 * rows;
    }
    std::uint64_t cost() const { return cost_of(*chunk, row_count()); }
    /// Makes a row one that is never found.
    void lose(std::size_t row);

    std::shared_ptr<const ResidentChunk> chunk;
    std::vector<Row> rows;  // and one more, which begins at the end of the last
    std::map<std::uint32_t, std::uint64_t> tables;  // how many values of each there are
    std::uint64_t live_values = 0;                  // rows that can be found
    std::uint64_t live_bytes = 0;                   // of these

    // For the order in which chunks are given up (resident_values.hpp).
    std::uint64_t last_used = 0;  // a number that grows with each request
    bool found_again = false;     // by another request than the one that added it
    std::uint64_t offered = 0;    // bytes that the store had been offered when it was last used

    // Where the request that looks for values now has it.
    std::uint64_t held_by = 0;  // the request's number; 0: by none
    std::uint32_t held_as = 0;
};

/// Rows by their pointers. A chunk's rows are walked along as long as a request asks for what comes
/// next there; any other value is looked up in a hash table, many of them at once, so that memory
/// is waited for once for all. One thread at a time.
class ValueIndex {
public:
    ValueIndex();

    /// Looks for the values of the request that are missing, all of them, as none is found yet; it
    /// then holds the chunks that they lie in. Returns these, in the order of request.chunks; none
    /// when it was stopped. `number` is no other request's. O(values).
    std::vector<IndexedChunk*> find(ValueRequest& request, std::uint64_t number, Stop stop);

    /// Adds a chunk. Of two values with one pointer, the one with the later horizon can be found
    /// from then on, of equals the chunk's; other chunks lose the one that cannot. O(rows). Throws
    /// std::bad_alloc, and has changed nothing then.
    void add(std::unique_ptr<IndexedChunk> chunk);
    /// Gives up a chunk, and returns what held it. O(chunks)
    std::unique_ptr<IndexedChunk> remove(const IndexedChunk& chunk);

    /// Null where one has been given up.
    std::span<const std::unique_ptr<IndexedChunk>> chunks() const { return chunks_; }
    bool empty() const;

private:
    struct Slot {
        std::uint64_t number;
        std::uint32_t table;
        std::uint32_t chunk;  // of chunks_
        std::uint32_t row;    // of the chunk

        static Slot nothing() { return {0, 0, UINT32_MAX, 0}; }
        bool free() const { return chunk == UINT32_MAX; }
    };
    /// A row of a chunk, or none.
    struct Place {
        IndexedChunk* chunk = nullptr;
        std::size_t row = 0;

        const IndexedChunk::Row* get() const {
            return chunk == nullptr ? nullptr : &chunk->rows[row];
        }
    };
    class Search;

    static std::uint64_t hash_of(std::uint32_t table, std::uint64_t number) {
        std::uint64_t hash = (number ^ std::uint64_t{table} << 40) * 0x9e3779b97f4a7c15;
        hash = (hash ^ hash >> 32 ^ table) * 0xd6e8feb86659fd93;
        return hash ^ hash >> 32;
    }
    /// The slot of that pointer, or the free one where it is to go.
    static auto& slot_in(auto& slots, std::uint32_t table, std::uint64_t number) {
        return slots.find(hash_of(table, number), [=](const Slot& slot) {
            return slot.table == table && slot.number == number;
        });
    }
    /// What a slot points to. Slots outlive chunks and the rows of other chunks come in their
    /// place, so that the row has to be looked at, whether it is the one that is meant.
    Place place_of(const Slot& slot) const;
    Place live_place_of(const Slot& slot) const;
    bool has_table(std::uint32_t table) const;
    void put(std::uint32_t chunk);
    void make_room(std::size_t more);

    HashTable<Slot> slots_;
    std::size_t taken_ = 0;  // slots, those too that point to nothing any more
    std::vector<std::unique_ptr<IndexedChunk>> chunks_;
};

}  // namespace gputext
