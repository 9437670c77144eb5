// kernels/documents/detail/folded_documents.cuh - documents as filters read them: one byte a
// character, and their grams
//
// A filter may take different characters for equal ones, since that only makes two documents look
// nearer. So each character is folded into a byte, and each gram of letters (3 or 4 of them) into a
// bin, and nothing here differs between narrow documents and others.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/documents/detail/device_documents.hpp"

namespace gputext::gpu {

/// Longer documents are not folded, since one warp reads a document.
inline constexpr std::uint32_t kMostLetters = 1u << 16;
/// A group of documents has one set of grams: a word for each bin, a bit of it for each document.
inline constexpr unsigned kGroup = 32;
/// Letters may be read up to here behind the end of a document, by 16 at a time.
inline constexpr std::uint32_t kLetterPadding = 256;

/// Documents by their places in some order. All on the device.
struct FoldedView {
    const std::uint8_t* letters;
    const std::uint64_t* begins;      // by place: a multiple of 16
    const std::uint32_t* sets;        // of bins
    const std::uint64_t* set_begins;  // by group of places
    const std::uint8_t* set_bits;     // by group: the bins' number is 1 << this
    std::uint32_t places;             // all that are folded are among the first so many
    unsigned gram;                    // letters of a gram, 3 or 4
};

/// The bin of the gram whose letters are the lowest bytes of `letters`.
__device__ inline std::uint32_t gram_bin(std::uint32_t letters, unsigned gram, unsigned bits) {
    if (gram == 3) letters &= 0xffffffu;
    return letters * 0x9e3779b1u >> (32 - bits);
}

class DeviceFoldedDocuments {
public:
    /// Device memory for documents of these lengths, but for those that are decoded.
    static std::size_t bytes_needed(std::span<const std::uint32_t> lengths);

    /// `order` has the documents by place, `lengths` their characters, which are best about alike
    /// for neighbors; `wide` tells by document which are not narrow. Decodes as many of those at a
    /// time as `decode_limit` holds, or one. O(bytes). Waits for the stream. Errors: cancelled,
    /// out_of_memory, device_error.
    Status build(const DeviceDocuments& documents, std::span<const std::uint32_t> order,
                 std::span<const std::uint32_t> lengths, std::span<const std::uint8_t> wide,
                 unsigned gram, std::size_t decode_limit, const Execution& execution,
                 cudaStream_t stream);

    FoldedView view() const;

private:
    void plan(std::span<const std::uint32_t> lengths);
    Status copy_narrow(const DeviceDocuments& documents, std::span<const std::uint32_t> order,
                       std::span<const std::uint8_t> wide);
    Status fold_wide(const DeviceDocuments& documents, std::span<const std::uint32_t> order,
                     std::span<const std::uint8_t> wide, std::size_t decode_limit,
                     const Execution& execution);
    Status fold_some(const DeviceDocuments& documents, std::span<const std::uint32_t> order,
                     std::span<const std::uint32_t> places, const Execution& execution);
    Status fill_sets();

    cudaStream_t stream_ = nullptr;
    unsigned gram_ = 4;
    std::vector<std::uint64_t> begins_{0}, set_begins_{0};  // with an end each
    std::vector<std::uint8_t> set_bits_;
    DeviceBuffer<std::uint8_t> letters_, device_set_bits_;
    DeviceBuffer<std::uint32_t> sets_, device_lengths_;
    DeviceBuffer<std::uint64_t> device_begins_, device_set_begins_;
};

}  // namespace gputext::gpu
