// kernels/documents/detail/signature_hash.hpp - computes the signatures of cpp/documents/ctph.hpp
// for many documents on one device
//
// Gives the level and letters of ctph_signature. The rolling hash at a position depends on seven
// bytes, so that positions are hashed side by side: a warp reads a tile of 16 KB, 32 bytes a lane
// at a time. Documents are read twice. The first pass counts where pieces end at a block size
// guessed to be two to four times too fine and above; where that was too coarse (few pieces, as in
// a file of zeros) the document is counted again from a finer one, and at last from 1. The second
// pass, at the block size that the counts choose, keeps each piece's end and the polynomial hash of
// the tile before it; hashes of pieces then follow from differences of prefixes, as on the CPU.
//
// Time: about 11 operations a byte and pass. Launches take at most 1 GB each.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/documents.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// Signatures of many documents, packed: those of document i have their letters at
/// letters[i * pitch], first those of the first part and then those of the second.
struct PackedSignatures {
    std::size_t pitch = 0;
    std::vector<std::uint8_t> levels;
    std::vector<std::uint16_t> first_lengths;
    std::vector<std::uint16_t> second_lengths;
    std::vector<char> letters;

    std::size_t size() const { return levels.size(); }
    Ctph operator[](std::size_t i) const;
};

/// Signatures on the device.
struct DeviceSignatures {
    std::size_t pitch = 0;
    DeviceBuffer<std::uint8_t> levels;
    DeviceBuffer<std::uint16_t> first_lengths;
    DeviceBuffer<std::uint16_t> second_lengths;
    DeviceBuffer<char> letters;

    Status allocate(std::size_t documents, std::size_t longest, cudaStream_t stream);
    /// Waits for the stream.
    Status download(PackedSignatures& signatures, cudaStream_t stream) const;
};

/// Device memory for `documents` documents, without their bytes: the results, and what hashing
/// takes while it runs, at least and at best.
struct HashBytes {
    std::size_t results;
    std::size_t least;  // results included
    std::size_t good;
};
HashBytes hash_bytes(std::size_t documents, std::size_t longest);

/// Documents whose bytes are on the device: extent i lies at bytes[extents[i].begin]. `bytes` is
/// aligned to 32, and whole 16-byte words that hold a document's bytes are readable. The extents
/// are the host's. 1 <= longest <= Ctph::max_length; documents are below 2^31 bytes. Writes the
/// signatures of the documents to those from `first` on. Returns with the work under way on the
/// stream. Errors: out_of_memory, cancelled, device_error.
Status hash_resident(const std::uint8_t* bytes, std::span<const Extent> extents,
                     std::size_t longest, const DeviceWork& work, Execution& execution,
                     DeviceSignatures& signatures, std::size_t first = 0);

/// Documents in the host's memory, which stream through the ring while others are hashed. Takes two
/// batches of documents on the device, each of 32 to 512 MB or the largest document: with the
/// smallest, stream_bytes in all at least. The ring must not be in use otherwise. Errors as above.
std::size_t stream_bytes(std::span<const Extent> extents, std::size_t longest);
Status hash_documents(const Documents& documents, std::size_t longest, const DeviceWork& work,
                      UploadRing& ring, Execution& execution, PackedSignatures& signatures);

}  // namespace gputext::gpu
