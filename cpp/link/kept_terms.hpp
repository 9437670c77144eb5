// cpp/link/kept_terms.hpp - terms of texts that gputextd keeps, as a session takes them

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/words.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/resident_values.hpp"

namespace gputext {

/// Descriptors of the files of KeepTerms, which stay their owner's.
struct TermFiles {
    int bytes = -1;
    int ends = -1;
    int words = -1;
};

/// The terms of all texts that were asked for, mapped for reading for as long as this object lives.
class KeptTerms {
public:
    struct Chunk {
        std::uint64_t id = 0;
        std::span<const std::uint8_t> bytes;  // of values
        Words words;                          // what values' words are numbers of
    };

    /// Where each row's terms lie, in the order of the rows: within their chunks, from a multiple
    /// of 4 bytes on.
    std::span<const TermPlace> places() const { return places_; }
    std::span<const Chunk> chunks() const { return chunks_; }
    /// The bytes of a value. What lies in them is only what a session has said: whoever reads them
    /// checks it.
    std::span<const std::uint8_t> value(const TermPlace& place) const {
        return chunks_[place.chunk].bytes.subspan(place.offset, place.size);
    }

private:
    friend struct TermsTaken;
    Status add(const TermChunk& chunk, int bytes, int words);

    MappedFile list_;
    std::span<const TermPlace> places_;
    std::vector<Chunk> chunks_;
    std::vector<MappedFile> files_;
};

/// What gputextd has sent, before anything of it has been looked at.
struct TermsTaken {
    TakenTerms reply;
    std::vector<FileDescriptor> files;

    /// Maps the files, sealed ones of just the sizes that are said, and checks the places of values
    /// and words. O(values + words). Errors: unavailable when something is not as it has to be;
    /// out_of_memory.
    Result<KeptTerms> map() const noexcept;
};

Result<TermsTaken> read_reply(const TakenTerms& reply, std::vector<FileDescriptor> files);

/// Ok when each value lies within its chunk, and begins and ends at a multiple of 4 bytes.
Status check_places(std::span<const TermPlace> places, std::span<const KeptTerms::Chunk> chunks);

}  // namespace gputext
