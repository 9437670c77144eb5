#include "kernels/documents/detail/document_slots.hpp"

#include <algorithm>

#include "kernels/base/launch.hpp"

namespace gputext::gpu {

DocumentGroups group_documents(std::span<const Extent> extents, std::vector<std::uint32_t> order,
                               const GroupLimits& limits) {
    DocumentGroups groups{std::move(order), {0}};
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < groups.order.size(); ++i) {
        const std::uint64_t own = extents[groups.order[i]].size;
        const std::size_t size = i - groups.begins.back();
        if (size > 0 && (sum + own > limits.bytes || size == limits.documents)) {
            groups.begins.push_back(i);
            sum = 0;
        }
        sum += own;
        groups.largest = std::max(groups.largest, sum);
    }
    if (!groups.order.empty()) groups.begins.push_back(groups.order.size());
    return groups;
}

Status DocumentSlots::allocate(std::size_t slots, std::uint64_t bytes) {
    // Whole words of up to 32 bytes are read.
    slot_size_ = (bytes + 63) / 32 * 32;
    GPUTEXT_TRY(event_.create());
    return bytes_.allocate(slots * slot_size_, stream_);
}

Status DocumentSlots::load(std::size_t slot, std::span<const std::uint32_t> documents,
                           Execution& execution) {
    std::uint64_t bytes = 0;
    for (const std::uint32_t document : documents) bytes += documents_.extents[document].size;
    execution.begin_phase("copying documents to the device",
                          (bytes + UploadRing::slice - 1) / UploadRing::slice);
    GPUTEXT_TRY(upload(bytes_.data() + slot * slot_size_, documents, execution));
    return place(slot, documents);
}

Status DocumentSlots::upload(std::uint8_t* to, std::span<const std::uint32_t> documents,
                             Execution& execution) {
    std::vector<Bytes> pieces;
    for (const std::uint32_t document : documents) {
        const Bytes bytes = documents_[document];
        // Documents mostly follow each other in the host's memory too.
        if (!pieces.empty() && pieces.back().data() + pieces.back().size() == bytes.data())
            pieces.back() = {pieces.back().data(), pieces.back().size() + bytes.size()};
        else
            pieces.push_back(bytes);
    }
    GPUTEXT_TRY(event_.hold(ring_.stream(), stream_));
    GPUTEXT_TRY(ring_.copy_pieces(to, pieces, execution));
    return event_.hold(stream_, ring_.stream());
}

Status DocumentSlots::place(std::size_t slot, std::span<const std::uint32_t> documents) {
    if (slot == 0) in_first_ = 0;
    numbers_.resize(in_first_);
    extents_.resize(in_first_);
    std::uint64_t begin = slot * slot_size_;
    for (const std::uint32_t document : documents) {
        const std::uint64_t size = documents_.extents[document].size;
        numbers_.push_back(document);
        extents_.push_back({begin, size});
        begin += size;
    }
    if (slot == 0) in_first_ = numbers_.size();
    return device_extents_.upload(extents_, stream_);
}

DeviceDocuments DocumentSlots::view() const {
    return {bytes_.data(), device_extents_.data(), extents_, documents_.characters};
}

}  // namespace gputext::gpu
