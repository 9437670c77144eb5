// cpp/resident/chunk_filler.hpp - copies the values of a request into one chunk; the thread that
// does so behind the statements that asked for them

#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/resident_ranges.hpp"
#include "cpp/base/status.hpp"
#include "cpp/link/resident_values.hpp"
#include "cpp/resident/resident_chunk.hpp"
#include "cpp/resident/value_request.hpp"

namespace gputext {

/// Where the values of a request lie, none of which may be missing, in their order; it holds the
/// chunks. O(values). Error: cancelled.
Result<ResidentOrigin> origin_of(const ValueRequest& request, Stop stop);

/// Fills a reserved chunk, which is to hold values of that kind, with what its origin says, on the
/// execution's threads, a file each, and ends its filling. Of vectors it then knows the largest
/// magnitude. Waits for sources that are still being filled.
void fill(ResidentChunk& chunk, const ValueKind& kind, const ResidentOrigin& origin,
          Execution& execution) noexcept;

/// Lets a chunk of vectors know how large the magnitudes of its elements are at most, by what the
/// chunks know that they come from; those that do not know it are looked at where they have at most
/// a quarter of the bytes. Error: cancelled.
Status bound_magnitude(const ResidentChunk& chunk, const ValueKind& kind,
                       std::span<const std::shared_ptr<const ResidentChunk>> sources,
                       Execution& execution);

/// A reserved chunk, and what it is to be filled with.
struct FillingTask {
    FillingTask(unsigned threads, std::shared_ptr<ResidentChunk> reserved, const ValueKind& of,
                ResidentRanges::Origin from)
        : chunk(std::move(reserved)), kind(of), origin(std::move(from)), execution(threads) {}

    std::shared_ptr<ResidentChunk> chunk;
    ValueKind kind;
    ResidentRanges::Origin origin;
    /// Called first where there is one; an error is the filling's.
    std::function<Status(Execution&)> begin;
    Execution execution;
};

/// Fills one chunk after the other, in the order of their submission. Each task is held until its
/// chunk is filled; the chunks that it comes from stay longer where devices may make their copies
/// of theirs, until one has or kOriginStays has passed since.
class ChunkFiller {
public:
    static constexpr std::chrono::milliseconds kOriginStays{3000};

    /// `ranges` may be null. Throws std::system_error when the system gives no thread.
    explicit ChunkFiller(std::shared_ptr<ResidentRanges> ranges);
    /// As stop(), and waits for the thread.
    ~ChunkFiller();
    ChunkFiller(const ChunkFiller&) = delete;
    ChunkFiller& operator=(const ChunkFiller&) = delete;

    /// From then on the chunk's filling comes to its end, if only by stop().
    void submit(std::unique_ptr<FillingTask> task);
    /// Chunks that are not filled never will be. May be called by any thread.
    void stop();

private:
    struct StayingOrigin {
        std::uint64_t chunk;
        ResidentRanges::Origin origin;
        std::chrono::steady_clock::time_point until;
    };

    void work();
    void run(FillingTask& task);
    void keep_origin(FillingTask& task);
    void drop_origins(bool all);

    const std::shared_ptr<ResidentRanges> ranges_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::unique_ptr<FillingTask>> waiting_;
    FillingTask* running_ = nullptr;
    bool stopping_ = false;
    std::vector<StayingOrigin> origins_;  // the thread's alone
    std::thread thread_;                  // last: it uses what is above
};

}  // namespace gputext
