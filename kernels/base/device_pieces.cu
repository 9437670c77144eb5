#include "kernels/base/device_pieces.hpp"

#include <algorithm>

#include "kernels/base/launch.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarp = 32;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kWord = sizeof(std::uint32_t);

/// Copies a piece by a warp, in whole words of the destination. The bytes of such a word lie in two
/// words of the source, which are loaded and shifted.
__device__ void copy_piece(const DevicePiece& piece, unsigned lane) {
    const auto to_begin = reinterpret_cast<std::uintptr_t>(piece.to);
    const std::uint64_t before = (kWord - to_begin % kWord) % kWord;
    const std::uint64_t head = before < piece.size ? before : piece.size;
    const std::uint64_t words = (piece.size - head) / kWord;
    const std::uint64_t tail = head + words * kWord;
    if (lane < head) piece.to[lane] = piece.from[lane];
    auto* const to = reinterpret_cast<std::uint32_t*>(piece.to + head);
    const auto from_begin = reinterpret_cast<std::uintptr_t>(piece.from + head);
    const auto shift = static_cast<unsigned>(from_begin % kWord);
    const auto* const from = reinterpret_cast<const std::uint32_t*>(from_begin - shift);
    for (std::uint64_t i = lane; i < words; i += kWarp) {
        const std::uint32_t low = from[i];
        const std::uint32_t high = shift == 0 ? 0 : from[i + 1];
        to[i] = __funnelshift_r(low, high, 8 * shift);
    }
    if (tail + lane < piece.size) piece.to[tail + lane] = piece.from[tail + lane];
}

__global__ __launch_bounds__(kThreads) void copy_pieces(const DevicePiece* pieces,
                                                        std::uint32_t count) {
    const std::uint32_t i = blockIdx.x * kWarps + threadIdx.x / kWarp;
    if (i < count) copy_piece(pieces[i], threadIdx.x % kWarp);
}

}  // namespace

Status copy_listed_pieces(const DevicePiece* pieces, std::size_t count, cudaStream_t stream) {
    if (count == 0) return {};
    copy_pieces<<<blocks_for(count, kWarps), kThreads, 0, stream>>>(
        pieces, static_cast<std::uint32_t>(count));
    return launched("copying within the device");
}

}  // namespace gputext::gpu
