// kernels/thesaurus/detail/byte_product.hpp - products of dense matrices of bytes, summed as
// integers
//
// Frequent features are dense columns, for the tensor cores. A weight of 16 bits is two digits of
// eight, in two matrices, and a third one says where a feature is at all; products of digits and
// these are summed in 32 bits, exactly. The sum of a[f] + b[f] over the features that both words
// have is (A * One^T + One * A^T) of the upper digits, times 256, and the same of the lower ones.
//
// Matrices lie in blocks of 128 rows and 128 columns, 16 KiB each, as the tensor cores want them in
// shared memory: a block is one copy. Compute capability 9.0 alone; elsewhere no feature is dense.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/host_device.hpp"
#include "cpp/base/status.hpp"

namespace gputext::gpu {

/// Rows of dense matrices are multiples of this for each tile of words.
inline constexpr std::uint32_t kProductTile = 256;
inline constexpr std::uint32_t kBlockBytes = 128 * 128;

/// Where a byte of a matrix with so many blocks of columns lies. Of 16 bytes the places follow one
/// another; the eight vectors of a row are exchanged by the lower bits of its number.
GPUTEXT_HOST_DEVICE inline std::size_t place_in_blocks(std::uint32_t row, std::uint32_t column,
                                                       std::uint32_t column_blocks) {
    const std::size_t block = std::size_t{row / 128} * column_blocks + column / 128;
    const std::uint32_t in_row = row % 128, vector = column % 128 / 16;
    return block * kBlockBytes + in_row * 128 + ((vector ^ in_row % 8) * 16) + column % 16;
}

/// Computes the sum over segments of left * right^T, of which those of the first `upper` segments
/// count 256 times.
struct WordProductJob {
    struct Segment {
        const std::uint8_t* left;  // their first blocks
        const std::uint8_t* right;
    };
    static constexpr unsigned kMostSegments = 4;

    Segment segments[kMostSegments];
    unsigned count = 0, upper = 0;  // segments, and how many of them are times 256
    std::uint32_t column_blocks = 0;
    std::uint32_t left_rows = 0, right_rows = 0;  // multiples of kProductTile
    /// Left and right are the same words, and the product is symmetric: half of it is computed.
    bool symmetric = false;
    /// A row of sums for each left row; and, unless null, one for each right row.
    void* sums = nullptr;
    void* mirrored = nullptr;
    std::size_t stride = 0, mirrored_stride = 0;  // elements
    /// Sums of 64 bits: what is found is shifted, and added to what is there if so asked.
    bool wide = false;
    bool add = false;
    unsigned shift = 0;
};

/// Whether the current device has what run_word_product() needs.
bool has_word_product();

Status run_word_product(const WordProductJob& job, cudaStream_t stream);

}  // namespace gputext::gpu
