// cpp/resident/resident_values.hpp - the columns that gputextd keeps between statements: resident
// values
//
// Sessions' requests (cpp/link/resident_values.hpp) come here one at a time. What a session hands
// over stays in its files, as a chunk; values that lie in several chunks are copied into one, when
// a session asks for all of them, so that the next one finds them side by side. Terms of texts are
// not copied, as their chunks have words of their own: a session takes them as they lie.
//
// A statement waits neither for the index of a chunk that it has read, which the store makes after
// its answer (settle()), nor for a copy that is to be kept, unless it asks for the bytes: a thread
// fills such a chunk (chunk_filler.hpp), while a device makes its copy of the copies that it has of
// the older chunks. A chunk whose filling fails is given up at the next request.
//
// A session may ask for some of the values, and say that it will ask for the same again, by the
// name of their bytes (TakeValues::again). Then their copy stays as a part: values are not found in
// it, and it is there beside the chunks that they come from. Parts have at most a fourth of the
// limit together; where they would have more, the one that was used longest ago goes first.
//
// What is given up when there is more than the limit: chunks and parts, the one that was used
// longest ago first, but not those that the values of a new part come from. A chunk that no later
// request has found a value in is new. When other chunks are there, new ones have at most half of
// the limit together, and the oldest of them goes first when they have more: a scan of a large
// table that is read once does not push out what is used again and again. A chunk that has not been
// used while twice the limit was handed over counts as new again, so that what is of no use any
// more cannot hold others off for ever.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/resident_ranges.hpp"
#include "cpp/base/status.hpp"
#include "cpp/link/resident_values.hpp"
#include "cpp/resident/chunk_filler.hpp"
#include "cpp/resident/resident_chunk.hpp"
#include "cpp/resident/value_index.hpp"
#include "cpp/resident/value_request.hpp"

namespace gputext {

struct ResidentLimits {
    std::uint64_t bytes = 0;    // of chunks, and 96 bytes a value for finding it; 0: nothing stays
    std::size_t files = 16384;  // descriptors and mappings; a chunk has up to kMostParts
};

/// Used by one thread at a time, but for chunks(). Whatever the messages and files say, nothing
/// outside the chunks is read; what cannot be right is an invalid_argument. Functions that return
/// no Status throw std::bad_alloc, and the others return out_of_memory; the store stays as it was.
class ResidentValues {
public:
    using Clock = std::chrono::steady_clock;

    /// `ranges` learns of all chunks; it may be null.
    explicit ResidentValues(ResidentLimits limits, std::shared_ptr<ResidentRanges> ranges = {});

    /// All chunks, for the jobs. May be used by other threads and be kept longer than this object.
    const std::shared_ptr<ResidentChunks>& chunks() const { return chunks_; }

    /// Begins a request with its file. Forgets all values first when the message names another run
    /// than the last one. O(values); values that are asked for in the order of a chunk take the
    /// least time. Errors: invalid_argument; cancelled.
    Status find(const FindValues& message, int pointers, ValueRequest& request, Stop stop);
    /// The rows that are missing, ascending.
    static std::vector<std::uint32_t> missing(const ValueRequest& request);

    /// Takes over what was missing, which becomes resident at the next settle() where it may: what
    /// the files are called from now on, or 0. When all values of the request were missing it is at
    /// its end then. Errors: invalid_argument when nothing is missing, or for files that are not
    /// sealed or have another size than what is missing.
    Result<std::uint64_t> add(ValueRequest& request, const AddValues& message,
                              std::vector<FileDescriptor> files);

    /// The same of terms, but the request stays as it is until they are taken. Errors besides:
    /// invalid_argument when the ends of the values do not ascend to that of their bytes.
    Result<std::uint64_t> add_terms(ValueRequest& request, const AddTerms& message,
                                    std::vector<FileDescriptor> files);

    struct Taken {
        std::shared_ptr<const ResidentChunk> chunk;  // with all values and nothing else
        std::uint64_t resident = 0;                  // its id where it is, or is to be, resident
    };
    /// How a chunk is filled: see FillingTask::begin.
    using BeginFilling = std::function<Status(Execution&)>;

    /// All values of the request in one chunk, which is at its end then: a chunk that has just
    /// these, or a copy on the execution's threads. The copy becomes resident instead of the chunks
    /// that the values come from when it has at least half of what they have, as after an update of
    /// some rows; with `again` one that has less than three quarters becomes a part, where there is
    /// room. With `early` the chunk may be one that is still being filled. Errors: invalid_argument
    /// when values are missing; cancelled; out_of_memory; io_error; unavailable when the chunk's
    /// filling has failed.
    Result<Taken> take(ValueRequest& request, const TakeValues& message, Execution& execution,
                       BeginFilling begin = {});
    /// The chunk or part of that id where it is resident and filled, null where it is not. Each of
    /// its values counts as found. O(resident chunks). Error: out_of_memory.
    Result<std::shared_ptr<const ResidentChunk>> take_resident(std::uint64_t id);
    /// Waits until the chunk is filled, if there is one of that id. Errors: cancelled; unavailable.
    Status await(std::uint64_t id, Stop stop) const;

    /// Does what the last request has left to be done behind its answer: the next request does it
    /// where it has not been done. O(values) of that request.
    void settle();
    /// Chunks that are being filled never will be. May be called by any thread.
    void stop_filling() { filler_.stop(); }

    struct TakenChunks {
        FileDescriptor list;  // as in TakenTerms
        std::uint64_t values = 0;
        std::vector<std::shared_ptr<const ResidentChunk>> chunks;
    };
    /// The terms of all texts, where they lie; the request is at its end then. O(values). Errors:
    /// invalid_argument when some are missing, or values were asked for that are no terms;
    /// io_error.
    Result<TakenChunks> take_terms(ValueRequest& request);

    /// What is resident, table by table in their order. O(resident values).
    std::vector<ResidentTable> tables();
    /// How many values have been forgotten; `table` 0 is all of the database. O(resident values).
    std::uint64_t forget(std::uint32_t database, std::uint32_t table);

    std::uint64_t bytes() const { return bytes_; }
    std::uint64_t limit() const { return limits_.bytes; }

    /// The chunks that have been given up since the last call. Whoever lets go of them last unmaps
    /// them, which takes a while.
    std::vector<std::shared_ptr<const ResidentChunk>> given_up() {
        return std::exchange(given_up_, {});
    }

private:
    /// What is counted of a table.
    struct Counts {
        std::uint64_t hits = 0;
        std::uint64_t misses = 0;
        Clock::time_point asked;
        std::uint64_t first_request = 0;  // that a resident value is of
    };
    using TableName = std::pair<std::uint32_t, std::uint32_t>;  // database and table

    /// Values that are to be resident, and the request that read them, which holds their chunks.
    struct Unsettled {
        std::shared_ptr<const ResidentChunk> chunk;
        ValueRequest request;
        std::vector<std::uint32_t> values;
    };

    /// A copy of values that lie in chunks, too.
    struct Part {
        std::shared_ptr<const ResidentChunk> chunk;
        std::uint32_t database;
        std::map<std::uint32_t, std::uint64_t> tables;  // how many values of each there are
        std::uint64_t last_used;
        std::uint64_t cost() const { return chunk->bytes().size(); }
    };

    /// The request's values in one new chunk.
    Result<Taken> gathered(ValueRequest& request, bool again, Execution& execution,
                           BeginFilling begin);
    /// Whether there is room for a part of the request's values.
    bool may_add_part(const ValueRequest& request, const ResidentChunk& chunk);
    void add_part(std::shared_ptr<const ResidentChunk> chunk, const ValueRequest& request);
    /// Those for which `which` holds.
    template <class Which>
    void give_up_parts(const Which& which);
    void give_up(const Part& part);
    const Part& oldest_part() const;  // where there are parts
    std::uint64_t bytes_of_parts() const;
    static bool holds(const ValueRequest& request, const IndexedChunk& chunk);
    /// Whether add() has a chance to add such a chunk.
    bool may_add(const ValueRequest& request, const ResidentChunk& chunk,
                 std::span<const std::uint32_t> values) const;
    void give_up_failed();
    void forget_all();
    void use(IndexedChunk& chunk);
    void count_found(const ValueRequest& request);
    void count_found(std::uint32_t database, const std::map<std::uint32_t, std::uint64_t>& tables);
    void count_added(const ValueRequest& request, const IndexedChunk& chunk);
    /// Adds those of the request's values that lie in the chunk, if that is allowed and worth it.
    /// Returns whether the chunk is resident then.
    bool add(std::shared_ptr<const ResidentChunk> chunk, const ValueRequest& request,
             std::span<const std::uint32_t> values);
    /// The chunk has the rows of the request that were missing.
    static void take_over(std::shared_ptr<const ResidentChunk> chunk, ValueRequest& request,
                          std::span<const std::uint32_t> rows);
    bool is_resident(std::uint64_t id) const { return find_resident(id) != nullptr; }
    /// Null where it is not resident. The kind is that of its values.
    IndexedChunk* find_resident(std::uint64_t id, const ValueKind** kind = nullptr) const;
    /// The request holds nothing any more.
    static void end(ValueRequest& request, std::uint64_t chunk);
    void give_up(ValueIndex& index, const IndexedChunk& chunk);
    void give_up_remains(ValueIndex& index);
    struct Oldest {
        ValueIndex* index = nullptr;
        IndexedChunk* chunk = nullptr;
    };
    Oldest oldest_chunk(const ValueRequest* request);
    /// Nothing that the request, if there is one, has values in. There is room for the part that is
    /// to come then, too.
    void give_up_to_limits(const ValueRequest* request = nullptr, const Part* coming = nullptr);
    bool is_new(const IndexedChunk& chunk) const;
    std::uint64_t bytes_of_sources(const ValueRequest& request) const;
    void drop_empty();
    std::vector<ResidentTable> list_tables();
    void drop_counts();
    template <class Work>
    void for_each_chunk(const Work& work);

    const ResidentLimits limits_;
    const std::shared_ptr<ResidentChunks> chunks_;
    std::map<ValueKind, ValueIndex> kinds_;
    std::vector<Part> parts_;
    std::map<TableName, Counts> counts_;  // of tables that values are or were resident of
    std::size_t most_counts_ = 1024;      // before those without values are dropped
    std::uint64_t run_ = 0;
    std::uint64_t requests_ = 0;  // that there have been: the number of the last one
    std::uint64_t offered_ = 0;   // bytes of chunks that were to be resident
    std::uint64_t bytes_ = 0;     // that chunks and parts cost
    std::size_t files_ = 0;       // that they have
    std::vector<std::shared_ptr<const ResidentChunk>> given_up_;
    std::optional<Unsettled> unsettled_;
    ChunkFiller filler_;
};

}  // namespace gputext
