// cpp/link/resident_answers.hpp - what gputextd says of resident values, with the files that came
// with it

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/words.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/file_parts.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/resident_values.hpp"

namespace gputext {

/// Which of the values that were asked for are missing.
struct ValuesFound {
    FoundValues reply;
    MappedFile file;  // of the reply, if it has one

    /// The numbers of their rows, ascending, all below reply.values. Errors: unavailable when the
    /// file says something else; out_of_memory.
    Result<std::vector<std::uint32_t>> missing() const noexcept;
};

/// The bytes of all values that were asked for.
struct ValuesTaken {
    TakenValues reply;
    std::vector<FileDescriptor> files;

    /// Maps the files, sealed ones of just these bytes. Errors: unavailable when they are not;
    /// out_of_memory.
    Result<MappedFile> map() const noexcept;
};

/// Bytes of a resident chunk, or no files where it is not resident any more.
struct ResidentTaken {
    TakenResident reply;
    std::vector<FileDescriptor> files;
};

/// What is resident.
struct ResidentTableList {
    ResidentTables reply;
    MappedFile file;  // of the reply, if it has one

    std::span<const ResidentTable> tables() const {
        return file.array<ResidentTable>(0, reply.tables);
    }
};

/// What the files of a reply hold. Errors: unavailable when they are not what the reply says;
/// out_of_memory.
Result<ValuesFound> read_reply(const FoundValues& reply, std::vector<FileDescriptor> files);
Result<ValuesTaken> read_reply(const TakenValues& reply, std::vector<FileDescriptor> files);
Result<ResidentTaken> read_reply(const TakenResident& reply, std::vector<FileDescriptor> files);
Result<ResidentTableList> read_reply(const ResidentTables& reply,
                                     std::vector<FileDescriptor> files);

/// Ok when the numbers ascend and are below `values`.
Status check_missing(std::span<const std::uint32_t> missing, std::uint32_t values);

/// Descriptors of the files of AddTerms, which stay their owner's.
struct TermFiles {
    int bytes = -1;
    int ends = -1;
    int words = -1;
};

/// The terms of all texts that were asked for, mapped for reading for as long as this object lives.
class MappedTerms {
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
    Result<MappedTerms> map() const noexcept;
};

Result<TermsTaken> read_reply(const TakenTerms& reply, std::vector<FileDescriptor> files);

/// Ok when each value lies within its chunk, and begins and ends at a multiple of 4 bytes.
Status check_places(std::span<const TermPlace> places, std::span<const MappedTerms::Chunk> chunks);

}  // namespace gputext
