#include "kernels/base/resident_copies.hpp"

#include <algorithm>
#include <vector>

namespace gputext::gpu {
namespace {

/// A copy is made of older copies where at most this part of it (a divisor) has to be uploaded.
constexpr std::uint64_t kUploadedPart = 4;

Status wait_for_host(const ResidentRanges::Range& range, Stop stop) {
    return range.filling == nullptr ? Status() : range.filling->wait(stop);
}

}  // namespace

Status ResidentCopies::begin_job(std::uint64_t memory_of_job, New copies) {
    drop_gone();
    kept_.begin_job();
    new_copies_ = copies;
    job_memory_ = memory_of_job;
    if (!any()) return {};
    const Result<Memory> now = memory();
    if (!now.ok()) return now.status();
    used_before_ = now->used;
    return {};
}

Result<const std::uint8_t*> ResidentCopies::find(Bytes bytes, std::uint64_t asked,
                                                 cudaStream_t stream, Filler& filler) {
    const std::uint8_t* at = nullptr;
    const auto range = ranges_->containing(bytes.data(), bytes.size());
    if (!range || bytes.empty()) return at;
    if (kept_.ask(*range, asked)) {
        at = copies_.at(range->id).data();
    } else if (new_copies_ == New::made && kept_.wanted(*range)) {
        const auto made = make(*range, stream, filler);
        if (!made.ok()) return made.status();
        at = *made;
        if (at == nullptr) kept_.refuse(*range);
    }
    if (at != nullptr) return at + (bytes.data() - range->begin);
    GPUTEXT_TRY(wait_for_host(*range, filler.stop()));
    return at;
}

/// Null where there is no room.
Result<const std::uint8_t*> ResidentCopies::make(const ResidentRanges::Range& range,
                                                 cudaStream_t stream, Filler& filler) {
    const std::uint8_t* nowhere = nullptr;
    const Result<DeviceCopies::Room> now = room();
    if (!now.ok()) return now.status();
    const auto going = kept_.make_room(range, *now);
    if (!going) return nowhere;
    for (const std::uint64_t id : *going) drop(id);
    DeviceBuffer<std::uint8_t> copy;
    const Status allocated = copy.allocate(range.size + kPieceSlack, stream);
    if (allocated.code() == ErrorCode::out_of_memory) return nowhere;
    GPUTEXT_TRY(allocated);
    GPUTEXT_TRY(fill(range, copy.data(), stream, filler));
    const std::uint8_t* const at =
        copies_.insert_or_assign(range.id, std::move(copy)).first->second.data();
    kept_.add(range);
    ranges_->set_kept(device_, range.id, range.size);
    ranges_->origin_used(device_, range.id);
    return at;
}

Status ResidentCopies::fill(const ResidentRanges::Range& range, std::uint8_t* to,
                            cudaStream_t stream, Filler& filler) {
    if (const auto origin = ranges_->origin(range.id); origin != nullptr) {
        const auto gathered = gather(*origin, range.size, to, stream, filler);
        if (!gathered.ok()) return gathered.status();
        if (*gathered) return {};
    }
    GPUTEXT_TRY(wait_for_host(range, filler.stop()));
    return filler.upload(to, {range.begin, range.size});
}

/// From the copies of what the bytes come from; sources without a copy are uploaded as a whole,
/// for the time being. False where that is too much, or there is no room for it.
Result<bool> ResidentCopies::gather(const ResidentOrigin& origin, std::uint64_t size,
                                    std::uint8_t* to, cudaStream_t stream, Filler& filler) {
    std::uint64_t missing = 0;
    for (const ResidentOrigin::Source& source : origin.sources)
        if (!copies_.contains(source.id)) missing += source.bytes.size();
    if (missing > size / kUploadedPart) return false;
    std::vector<DeviceBuffer<std::uint8_t>> uploaded;
    std::vector<const std::uint8_t*> from;
    for (const ResidentOrigin::Source& source : origin.sources) {
        const auto copy = copies_.find(source.id);
        if (copy == copies_.end()) {
            const Status allocated =
                uploaded.emplace_back().allocate(source.bytes.size() + kPieceSlack, stream);
            if (allocated.code() == ErrorCode::out_of_memory) return false;
            GPUTEXT_TRY(allocated);
            if (source.filling != nullptr) GPUTEXT_TRY(source.filling->wait(filler.stop()));
            GPUTEXT_TRY(filler.upload(uploaded.back().data(), source.bytes));
        }
        from.push_back(copy == copies_.end() ? uploaded.back().data() : copy->second.data());
    }
    std::vector<DevicePiece> pieces;
    pieces.reserve(origin.pieces.size());
    for (const ResidentOrigin::Piece& piece : origin.pieces)
        pieces.push_back({to + piece.begin, from[piece.source] + piece.offset, piece.size});
    GPUTEXT_TRY(filler.copy(pieces));
    return true;
}

Result<DeviceCopies::Room> ResidentCopies::room() const {
    const Result<Memory> now = memory();
    if (!now.ok()) return now.status();
    const std::uint64_t all = limit_ == 0 ? now->all : std::min(now->all, limit_);
    // Less is used than before where copies have gone since.
    const std::uint64_t may = job_memory_ + used_before_;
    return DeviceCopies::Room{all / 2, may > now->used ? may - now->used : 0};
}

Result<ResidentCopies::Memory> ResidentCopies::memory() const {
    cudaMemPool_t pool = nullptr;
    std::size_t available = 0;
    std::size_t total = 0;
    std::uint64_t reserved = 0;
    std::uint64_t used = 0;
    const char* const asking = "asking for the device's memory";
    GPUTEXT_TRY(cuda_status(cudaDeviceGetDefaultMemPool(&pool, static_cast<int>(device_)), asking));
    GPUTEXT_TRY(cuda_status(cudaMemGetInfo(&available, &total), asking));
    GPUTEXT_TRY(cuda_status(
        cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), asking));
    GPUTEXT_TRY(
        cuda_status(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), asking));
    return Memory{available + reserved, used};
}

void ResidentCopies::drop(std::uint64_t id) {
    kept_.remove(id);
    copies_.erase(id);
    ranges_->set_kept(device_, id, 0);
}

void ResidentCopies::drop_gone() {
    for (const std::uint64_t id : kept_.gone(*ranges_)) drop(id);
}

void ResidentCopies::clear() {
    while (!copies_.empty()) drop(copies_.begin()->first);
}

}  // namespace gputext::gpu
