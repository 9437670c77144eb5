// kernels/documents/detail/wide_characters.cuh - characters of several bytes, read on the device

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "kernels/base/cuda_status.hpp"
#include "kernels/documents/detail/device_documents.hpp"

namespace gputext::gpu {

/// For each document, 1 when a byte of it may be part of a longer character (cpp's is_narrow).
/// O(bytes). Waits for the stream. Errors: cancelled, out_of_memory, device_error.
Status find_wide_documents(const DeviceDocuments& documents, const Execution& execution,
                           cudaStream_t stream, std::vector<std::uint8_t>& wide);

/// A document to decode and where its symbols go: room for one a byte.
struct DecodeTask {
    Extent extent;
    std::uint32_t* symbols;
    // What the launches so far have done.
    std::uint64_t next = 0;   // byte at which the next character begins
    std::uint32_t count = 0;  // characters so far
};

/// Fills the symbols of the tasks, which lie on the device, as cpp's decode_characters does, and
/// their counts. `longest` is the largest extent. O(bytes).
Status decode_documents(const DeviceDocuments& documents, DecodeTask* tasks, std::uint32_t count,
                        std::uint64_t longest, const Execution& execution, cudaStream_t stream);

}  // namespace gputext::gpu
