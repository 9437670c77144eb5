// kernels/base/uploaded_bytes.hpp - how many bytes buffers have had from the host
//
// A device is used by one thread (cpp/daemon/device.hpp), which begins all uploads to it. So a
// count of the thread is a count of its device, and buffers need not know whose they are.

#pragma once

#include <cstdint>

namespace gputext {

/// Bytes that DeviceBuffer::upload() has had from the host on this thread, in all.
inline std::uint64_t& uploaded_to_buffers() {
    thread_local std::uint64_t bytes = 0;
    return bytes;
}

}  // namespace gputext
