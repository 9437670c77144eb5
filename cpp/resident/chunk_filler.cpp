#include "cpp/resident/chunk_filler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/helper_threads.hpp"

namespace gputext {

namespace {

constexpr std::uint64_t kWriteAtOnce = std::uint64_t{1} << 20;  // and look at the stop request
constexpr std::uint64_t kShortPiece = std::uint64_t{64} << 10;  // shorter ones are put together
constexpr std::uint64_t kLookedAtPart = 4;                      // divisor of all bytes

/// Whether values have magnitudes.
bool are_numbers(const ValueKind& kind) {
    return kind.form == ValueForm::vector && kind.element != ElementType::bit;
}

/// A chunk's values as a matrix, as jobs have it.
Vectors vectors_of(const ResidentChunk& chunk, const ValueKind& kind) {
    const std::uint64_t row = row_size(kind.element, kind.dimensions);
    const auto bytes = chunk.bytes();
    return {kind.element,  row == 0 ? 0 : bytes.size() / row, kind.dimensions, bytes.data(), {}, {},
            &chunk.known()};
}

/// Writes a file of the chunk from its begin to its end.
class PartWriter {
public:
    PartWriter(ResidentChunk& chunk, const ValueKind& kind, std::uint64_t begin, Stop stop)
        : chunk_(chunk), kind_(kind), written_(begin), stop_(stop) {}

    Status append(Bytes bytes) {
        if (bytes.size() < kShortPiece) {
            if (buffer_.size() + bytes.size() > kWriteAtOnce) GPUTEXT_TRY(flush());
            buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
            return {};
        }
        GPUTEXT_TRY(flush());
        while (!bytes.empty()) {
            const auto now = bytes.first(std::min<std::size_t>(kWriteAtOnce, bytes.size()));
            GPUTEXT_TRY(write(now));
            bytes = bytes.subspan(now.size());
        }
        return {};
    }

    Status flush() {
        GPUTEXT_TRY(write(buffer_));
        buffer_.clear();
        return {};
    }

    /// The largest magnitude of an element that was written; infinity where one is not finite.
    double largest() const { return largest_; }

private:
    /// Files and pieces consist of whole elements.
    Status write(Bytes bytes) {
        if (stop_()) return Status::cancelled();
        GPUTEXT_TRY(chunk_.write(written_, bytes));
        written_ += bytes.size();
        if (!are_numbers(kind_)) return {};
        const double largest = largest_element(
            {kind_.element, 1, bytes.size() / element_size(kind_.element), bytes.data(), {}, {}},
            0);
        largest_ = std::isfinite(largest) ? std::max(largest_, largest)
                                          : std::numeric_limits<double>::infinity();
        return {};
    }

    ResidentChunk& chunk_;
    const ValueKind& kind_;
    std::uint64_t written_;
    Stop stop_;
    double largest_ = 0;
    std::vector<std::uint8_t> buffer_;
};

/// Appends the bytes of the pieces from `begin` to `end` of all.
Status append_pieces(const ResidentOrigin& origin, std::uint64_t begin, std::uint64_t end,
                     PartWriter& writer) {
    const auto& pieces = origin.pieces;
    auto piece = std::upper_bound(
        pieces.begin(), pieces.end(), begin,
        [](std::uint64_t at, const ResidentOrigin::Piece& other) { return at < other.end(); });
    for (; piece != pieces.end() && piece->begin < end; ++piece) {
        const std::uint64_t first = std::max(begin, piece->begin) - piece->begin;
        const std::uint64_t last = std::min(end, piece->end()) - piece->begin;
        GPUTEXT_TRY(writer.append(origin.bytes_of(*piece).subspan(first, last - first)));
    }
    return writer.flush();
}

Status copy_all(ResidentChunk& chunk, const ValueKind& kind, const ResidentOrigin& origin,
                Execution& execution) {
    for (const ResidentOrigin::Source& source : origin.sources)
        GPUTEXT_TRY(source.filling->wait(execution.stop()));
    const std::uint64_t size = chunk.bytes().size();
    const PartsShape shape = chunk.shape();
    std::vector<double> largest(chunk.files());
    GPUTEXT_TRY(execution.parallel_for(chunk.files(), [&](std::size_t i, unsigned) {
        const std::uint64_t begin = i * shape.part_bytes;
        PartWriter writer(chunk, kind, begin, execution.stop());
        const Status status = append_pieces(origin, begin, begin + shape.size_of(i, size), writer);
        largest[i] = writer.largest();
        return status;
    }));
    const double most = *std::max_element(largest.begin(), largest.end());
    if (are_numbers(kind) && std::isfinite(most))
        chunk.known().set_largest(vectors_of(chunk, kind), most);
    return {};
}

}  // namespace

Result<ResidentOrigin> origin_of(const ValueRequest& request, Stop stop) {
    ResidentOrigin origin;
    for (const auto& chunk : request.chunks)
        origin.sources.push_back({chunk->id(), chunk->bytes(), &chunk->filling(), chunk});
    ResidentOrigin::Piece piece;
    for (std::size_t value = 0; value < request.places.size(); ++value) {
        if (value % 65536 == 0 && stop()) return Status::cancelled();
        const ValuePlace& place = request.places[value];
        const std::uint64_t size = request.pointers[value].size;
        if (place.chunk == piece.source && place.offset == piece.offset + piece.size) {
            piece.size += size;
            continue;
        }
        if (piece.size > 0) origin.pieces.push_back(piece);
        piece = {piece.end(), size, place.offset, place.chunk};
    }
    if (piece.size > 0) origin.pieces.push_back(piece);
    return origin;
}

void fill(ResidentChunk& chunk, const ValueKind& kind, const ResidentOrigin& origin,
          Execution& execution) noexcept {
    chunk.end_filling(
        status_or_exception([&] { return copy_all(chunk, kind, origin, execution); }));
}

Status bound_magnitude(const ResidentChunk& chunk, const ValueKind& kind,
                       std::span<const std::shared_ptr<const ResidentChunk>> sources,
                       Execution& execution) {
    if (!are_numbers(kind)) return {};
    double bound = 0;
    std::uint64_t looked_at = 0;
    for (const auto& source : sources) {
        const Vectors vectors = vectors_of(*source, kind);
        std::optional<double> known = source->known().bound(vectors);
        if (!known) {
            looked_at += source->bytes().size();
            if (looked_at > chunk.bytes().size() / kLookedAtPart) return {};
            // What is wrong with an element is for the job to say.
            const auto found = largest_magnitude(vectors, "item", execution);
            if (!found.ok()) return execution.stop_requested() ? Status::cancelled() : Status();
            known = *found;
        }
        bound = std::max(bound, *known);
    }
    chunk.known().set_bound(vectors_of(chunk, kind), bound);
    return {};
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookForUsedOrigins{20};

}  // namespace

ChunkFiller::ChunkFiller(std::shared_ptr<ResidentRanges> ranges)
    : ranges_(std::move(ranges)), thread_(start_thread_without_signals([this] { work(); })) {}

ChunkFiller::~ChunkFiller() {
    stop();
    thread_.join();
}

void ChunkFiller::submit(std::unique_ptr<FillingTask> task) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return task->chunk->end_filling(Status::cancelled());
        waiting_.push_back(std::move(task));
    }
    changed_.notify_all();
}

void ChunkFiller::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        if (running_ != nullptr) running_->execution.request_stop();
        for (const auto& task : waiting_) task->execution.request_stop();
    }
    changed_.notify_all();
}

/// Tasks that wait at stop() have been stopped, and end at once.
void ChunkFiller::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        const auto awake = [this] { return stopping_ || !waiting_.empty(); };
        if (origins_.empty())
            changed_.wait(lock, awake);
        else
            changed_.wait_for(lock, kLookForUsedOrigins, awake);
        if (waiting_.empty() && stopping_) break;
        std::unique_ptr<FillingTask> task;
        if (!waiting_.empty()) {
            task = std::move(waiting_.front());
            waiting_.pop_front();
            running_ = task.get();
        }
        lock.unlock();
        if (task != nullptr) run(*task);
        drop_origins(false);
        lock.lock();
        running_ = nullptr;
        lock.unlock();
        task.reset();
        lock.lock();
    }
    lock.unlock();
    drop_origins(true);
}

void ChunkFiller::run(FillingTask& task) {
    const Status begun =
        task.begin ? status_or_exception([&] { return task.begin(task.execution); }) : Status();
    if (begun.ok())
        fill(*task.chunk, task.kind, *task.origin, task.execution);
    else
        task.chunk->end_filling(begun);
    keep_origin(task);
}

void ChunkFiller::keep_origin(FillingTask& task) {
    const std::uint64_t id = task.chunk->id();
    if (ranges_ == nullptr || !ranges_->has_origin(id)) return;
    const Status kept = status_or_exception([&] {
        if (task.chunk->filling().filled())
            origins_.push_back({id, task.origin, Clock::now() + kOriginStays});
        return Status();
    });
    if (!kept.ok() || !task.chunk->filling().filled()) ranges_->drop_origin(id);
}

/// This thread unmaps what nobody else holds any more.
void ChunkFiller::drop_origins(bool all) {
    const auto now = Clock::now();
    std::erase_if(origins_, [&](const StayingOrigin& staying) {
        if (all || now >= staying.until) ranges_->drop_origin(staying.chunk);
        return !ranges_->has_origin(staying.chunk);
    });
}

}  // namespace gputext
