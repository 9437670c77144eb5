// kernels/documents/detail/document_slots.hpp - copies the documents that an operator works on to
// the device
//
// All of them at once where memory allows, else a group of them in each of two slots, so that every
// pair of documents is there together at some time.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/documents.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/documents/detail/device_documents.hpp"

namespace gputext::gpu {

/// Documents in groups that follow each other.
struct DocumentGroups {
    std::vector<std::uint32_t> order;
    std::vector<std::size_t> begins;  // in `order`, and the end
    std::uint64_t largest = 0;        // bytes of a group

    std::size_t size() const { return begins.size() - 1; }
    std::span<const std::uint32_t> operator[](std::size_t group) const {
        return std::span(order).subspan(begins[group], begins[group + 1] - begins[group]);
    }
};

struct GroupLimits {
    std::uint64_t bytes = UINT64_MAX;
    std::uint64_t documents = UINT64_MAX;
};

/// As large as the limits allow, or of one document.
DocumentGroups group_documents(std::span<const Extent> extents, std::vector<std::uint32_t> order,
                               const GroupLimits& limits);

class DocumentSlots {
public:
    DocumentSlots(const Documents& documents, UploadRing& ring, cudaStream_t stream)
        : documents_(documents), ring_(ring), stream_(stream) {}

    /// Room for groups of at most `bytes`, in one slot or two.
    /// Errors: out_of_memory, device_error.
    Status allocate(std::size_t slots, std::uint64_t bytes);

    /// Replaces the documents of a slot; those of the first one also empty the second. What is on
    /// the stream by now still finds what was there before.
    /// Errors: cancelled, out_of_memory, device_error.
    Status load(std::size_t slot, std::span<const std::uint32_t> documents, Execution& execution);

    /// The documents of the first slot and then those of the second, as the stream finds them.
    DeviceDocuments view() const;
    /// Which documents these are.
    std::span<const std::uint32_t> numbers() const { return numbers_; }
    std::size_t in_first() const { return in_first_; }
    /// Memory of the slots and of what tells where their documents lie.
    std::uint64_t bytes() const { return bytes_.size() + numbers_.size() * sizeof(Extent); }

private:
    Status upload(std::uint8_t* to, std::span<const std::uint32_t> documents, Execution& execution);
    Status place(std::size_t slot, std::span<const std::uint32_t> documents);

    const Documents& documents_;
    UploadRing& ring_;
    cudaStream_t stream_;
    StreamEvent event_;
    std::uint64_t slot_size_ = 0;
    std::size_t in_first_ = 0;  // documents in the first slot
    std::vector<std::uint32_t> numbers_;
    std::vector<Extent> extents_;
    DeviceBuffer<std::uint8_t> bytes_;
    DeviceBuffer<Extent> device_extents_;
};

}  // namespace gputext::gpu
