// kernels/base/device_pieces.hpp - copies of many pieces within the device

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"

namespace gputext::gpu {

/// Bytes on the device that are to be copied to another place on it, which they do not overlap.
struct DevicePiece {
    std::uint8_t* to;
    const std::uint8_t* from;
    std::uint64_t size;
};

/// Bytes that must follow the memory that pieces are copied from: it is read in whole words.
constexpr std::size_t kPieceSlack = 4;

/// Copies pieces that are listed on the device, a warp each: pieces of some 16 KB at most keep all
/// processors busy.
Status copy_listed_pieces(const DevicePiece* pieces, std::size_t count, cudaStream_t stream);

}  // namespace gputext::gpu
