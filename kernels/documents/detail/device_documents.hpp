// kernels/documents/detail/device_documents.hpp - the documents of one job, resident on a device

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/documents/documents.hpp"

namespace gputext {

/// A view of packed documents whose bytes lie on the device; whoever made it keeps the memory.
/// The bounds of Documents hold. The extents are needed on both sides.
struct DeviceDocuments {
    const std::uint8_t* bytes = nullptr;   // on the device
    const Extent* extents = nullptr;       // on the device
    std::span<const Extent> host_extents;  // the same ones
    CharacterLengths characters = CharacterLengths::single_byte();

    std::size_t size() const { return host_extents.size(); }
};

}  // namespace gputext
