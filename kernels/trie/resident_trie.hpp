// kernels/trie/resident_trie.hpp - dictionaries that stay on a device between jobs

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include "cpp/base/secret_hash.hpp"
#include "cpp/trie/detail/symbol_table.hpp"
#include "cpp/trie/trie.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/trie/detail/front_coded_lookup.cuh"
#include "kernels/trie/detail/xbw_lookup.cuh"

namespace gputext::gpu {

/// A dictionary on the device: its image as it is, and what the kernels read of it. One of `front`
/// takes four bytes a word more than its image (kernels/trie/detail/front_coded_lookup.cuh).
class ResidentTrie {
public:
    /// Bytes of device memory for an image, of which only the header is looked at.
    static std::size_t bytes(std::span<const std::uint8_t> image);

    /// Checks the image as open_trie() does, and copies it. Errors: invalid_argument, cancelled,
    /// out_of_memory, device_error.
    static Result<std::unique_ptr<ResidentTrie>> load(std::span<const std::uint8_t> image,
                                                      std::uint64_t hash, cudaStream_t stream,
                                                      UploadRing& ring, Execution& execution);

    const TrieStats& stats() const { return stats_; }
    /// Finds a dictionary by the key that it was loaded with.
    std::uint64_t hash() const { return hash_; }
    /// The one of the dictionary's structure.
    const FrontCodedDictionary& front() const { return front_; }
    const XbwDictionary& xbw() const { return xbw_; }
    std::size_t bytes() const { return bytes_; }

private:
    ResidentTrie() = default;
    Status read_front(std::span<const std::uint8_t> image, cudaStream_t stream);
    Status read_xbw(std::span<const std::uint8_t> image, cudaStream_t stream);

    TrieStats stats_;
    std::uint64_t hash_ = 0;
    std::size_t bytes_ = 0;
    DeviceBuffer<std::uint8_t> image_;
    DeviceBuffer<SymbolTable> symbols_;
    DeviceBuffer<BucketLine> lines_;
    DeviceBuffer<std::uint16_t> table_;
    FrontCodedDictionary front_;
    XbwDictionary xbw_;
};

/// Whether there are kernels for the structure of an image that begins with a header.
bool has_kernels_for(std::span<const std::uint8_t> image);

/// The dictionaries that words were looked up in, the one used last first. Known by the checksum
/// and the size in their headers, and, as these can be made to fit, by a hash with a secret key.
class ResidentTries {
public:
    /// Several take at most so many bytes together; one may take more.
    explicit ResidentTries(std::size_t most) : most_(most) {}

    /// The dictionary, from the host's memory unless it is here. Others go as long as all together
    /// would take more than `limit` bytes. Valid until the next call of any function.
    Result<const ResidentTrie*> get(std::span<const std::uint8_t> image, std::size_t limit,
                                    cudaStream_t stream, UploadRing& ring, Execution& execution);

    /// By the header alone.
    bool has(std::span<const std::uint8_t> image) const;
    std::size_t bytes() const;
    std::size_t count() const { return tries_.size(); }
    void clear() { tries_.clear(); }

private:
    std::size_t most_;
    SecretHash hash_;
    std::list<std::unique_ptr<ResidentTrie>> tries_;
};

}  // namespace gputext::gpu
