// kernels/embeddings/detail/training_entries.hpp - finds the tokens that an epoch trains on, on a
// device
//
// The entries of cpp/embeddings/trainer.hpp: a replica's tokens that stay, with a break before each
// text. Each block of tokens counts its entries, the counts are added up, and each writes its own.

#pragma once

#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/embeddings/trainer.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// The entries of one replica in one epoch, and the tokens that they are made of: on the device,
/// or, where memory is short, copied there some at a time whenever entries are made.
class WordEntries {
public:
    /// A word's number and a bit that says whether a text begins with it.
    static constexpr std::uint32_t kBegins = std::uint32_t{1} << 31;

    WordEntries(const TrainerParameters& parameters, const TokenStream& tokens, UploadRing& ring,
                cudaStream_t stream)
        : parameters_(parameters), tokens_(tokens), ring_(ring), stream_(stream) {}

    /// Looks at all tokens. Errors: invalid_argument for a word that is not below `words`,
    /// cancelled. O(tokens) on the execution's threads.
    Status measure(std::uint32_t words, Execution& execution);
    /// Device memory, after measure().
    std::uint64_t bytes(bool resident) const;
    /// Copies the tokens to the device if they are to be resident. Errors: cancelled,
    /// out_of_memory, a device's.
    Status open(bool resident, Execution& execution);

    /// Makes the entries, unless they are there; `keep` is on the device, of each word. Waits for
    /// the stream. Errors as before.
    Status make(const std::uint32_t* keep, std::uint32_t epoch, std::uint32_t replica,
                Execution& execution);

    const std::uint32_t* data() const { return entries_.data(); }
    std::uint64_t size() const { return size_; }

private:
    /// Tokens that are taken at once.
    std::uint64_t chunk() const;
    Status copy_tokens(std::uint64_t begin, std::uint64_t end, std::uint32_t* to,
                       Execution& execution);
    Status copy_packed(std::uint64_t begin, std::uint64_t end, std::uint32_t* to,
                       Execution& copying);

    const TrainerParameters parameters_;
    const TokenStream tokens_;
    UploadRing& ring_;
    const cudaStream_t stream_;
    std::uint64_t texts_ = 0;
    bool resident_ = false;
    std::vector<std::uint32_t> packed_;      // on the host, on their way
    DeviceBuffer<std::uint32_t> on_device_;  // with kBegins
    DeviceBuffer<std::uint32_t> begins_;     // of each block's entries
    DeviceBuffer<std::uint8_t> scratch_;
    DeviceBuffer<std::uint32_t> entries_;
    std::uint64_t size_ = 0;
    bool made_ = false;
    std::uint32_t epoch_ = 0, replica_ = 0;  // that they are of
};

/// Device memory of the entries of so many tokens and texts.
std::uint64_t entry_bytes(const TrainerParameters& parameters, std::uint64_t tokens,
                          std::uint64_t texts, bool resident);

}  // namespace gputext::gpu
