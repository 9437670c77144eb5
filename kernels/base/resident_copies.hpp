// kernels/base/resident_copies.hpp - a device's copies of memory that stays as it is
//
// What lies in resident memory (cpp/base/resident_ranges.hpp) is uploaded once, and then copied
// within the device, where a job would have it uploaded. cpp/base/device_copies.hpp says which
// ranges are copied, and which copies go. Where a range has been put together from older ones that
// there are copies of, its copy is made of those, even before its bytes are there on the host.
//
// Copies outlive the jobs that have them made, also times without jobs. A job takes no more memory
// than it may: what it has made copies in counts as taken, and they leave at least as much again. A
// limit of the device's memory holds for copies and job together.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "cpp/base/characters.hpp"
#include "cpp/base/device_copies.hpp"
#include "cpp/base/resident_ranges.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/device_pieces.hpp"

namespace gputext::gpu {

/// The copies on one device, which is the current one in all calls. Used by one thread.
class ResidentCopies {
public:
    /// `device` is CUDA's number, `limit` of the device's memory in all, or 0.
    ResidentCopies(std::shared_ptr<ResidentRanges> ranges, std::uint32_t device,
                   std::uint64_t limit = 0)
        : ranges_(std::move(ranges)), device_(device), limit_(limit) {}
    ResidentCopies(const ResidentCopies&) = delete;
    ResidentCopies& operator=(const ResidentCopies&) = delete;
    ~ResidentCopies() { clear(); }

    enum class New { made, refused };
    /// The jobs before have come to their end. This one may take so many bytes of device memory,
    /// and makes copies or not. Gives up copies of ranges that are gone.
    Status begin_job(std::uint64_t memory, New copies = New::made);

    /// What fills a copy, on the stream of find().
    class Filler {
    public:
        /// From the host, as UploadRing::copy() does.
        virtual Status upload(std::uint8_t* to, Bytes from) = 0;
        /// Within the device; kPieceSlack bytes follow the memory that pieces are copied from.
        virtual Status copy(std::span<const DevicePiece> pieces) = 0;
        virtual Stop stop() const = 0;

    protected:
        ~Filler() = default;
    };
    /// Where bytes of resident memory, some of which the job asks for, lie on the device, for what
    /// comes on `stream` from now on, until the next job begins; null where there is no copy. Makes
    /// the copy where it is due. `stream` is always the same one, and lives until clear(). Where
    /// there is no copy, the bytes are there on the host when it returns. Errors: those of
    /// `filler`; cancelled; unavailable; device_error. Too little memory for a copy is no error.
    Result<const std::uint8_t*> find(Bytes bytes, std::uint64_t asked, cudaStream_t stream,
                                     Filler& filler);

    /// The resident memory that all these bytes lie in, if there is one.
    std::optional<ResidentRanges::Range> range_of(Bytes bytes) const {
        return ranges_->containing(bytes.data(), bytes.size());
    }
    /// Whether there is resident memory at all.
    bool any() const { return !ranges_->empty(); }
    /// Whether all these bytes lie in one range of it.
    bool in_one_range(Bytes bytes) const { return range_of(bytes).has_value(); }
    /// Whether there is a copy of a range, by its id.
    bool has(std::uint64_t id) const { return copies_.contains(id); }
    std::uint64_t bytes() const { return kept_.bytes(); }
    void drop_gone();
    void clear();

private:
    struct Memory {
        std::uint64_t all = 0;   // of the device that this process has, or may have
        std::uint64_t used = 0;  // by its jobs and by what it keeps
    };

    Result<const std::uint8_t*> make(const ResidentRanges::Range& range, cudaStream_t stream,
                                     Filler& filler);
    Status fill(const ResidentRanges::Range& range, std::uint8_t* to, cudaStream_t stream,
                Filler& filler);
    Result<bool> gather(const ResidentOrigin& origin, std::uint64_t size, std::uint8_t* to,
                        cudaStream_t stream, Filler& filler);
    Result<DeviceCopies::Room> room() const;
    Result<Memory> memory() const;
    void drop(std::uint64_t id);

    std::shared_ptr<ResidentRanges> ranges_;
    std::uint32_t device_;
    std::uint64_t limit_;
    DeviceCopies kept_;
    std::map<std::uint64_t, DeviceBuffer<std::uint8_t>> copies_;  // by id
    std::uint64_t job_memory_ = 0;
    std::uint64_t used_before_ = 0;
    New new_copies_ = New::refused;
};

}  // namespace gputext::gpu
