// cpp/link/near_duplicates.hpp - near_duplicates() (cpp/documents/near_duplicates.hpp) at gputextd

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

constexpr NearDuplicateMode last_of(NearDuplicateMode) {
    return NearDuplicateMode::exact;
}

void fields(auto& archive, Like<NearDuplicateParameters> auto& parameters) {
    archive(parameters.threshold, parameters.mode, parameters.signature_length, parameters.split,
            parameters.components_only, parameters.memory_limit);
}

/// Files: the documents' packed bytes, in sealed memfds or a plain file (cpp/link/file_parts.hpp);
/// Extent[documents], in a sealed memfd; with signatures PackedSignature[documents] and the letters
/// of all of them, in a sealed memfd.
struct SubmitNearDuplicates {
    static constexpr std::uint16_t type = 2;
    static constexpr const char* operation = "near_duplicates";
    JobLimits limits;
    std::uint32_t documents = 0;
    std::uint64_t bytes_size = 0;  // of the packed documents
    PartsShape bytes_parts = {};   // the same
    std::uint64_t resident = 0;    // the same, as in MatrixShape
    bool has_signatures = false;
    std::uint64_t signature_bytes = 0;  // size of that file; 0 without signatures
    NearDuplicateParameters parameters;
    std::array<std::uint8_t, 256> character_lengths{};

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.documents, self.bytes_size, self.bytes_parts, self.resident,
                self.has_signatures, self.signature_bytes, self.parameters, self.character_lengths);
    }
    bool consistent() const {
        return documents < UINT32_MAX && parameters.split <= documents &&
               bytes_parts.hold(bytes_size) && (has_signatures || signature_bytes == 0);
    }
    std::size_t files() const { return bytes_parts.parts + (has_signatures ? 2 : 1); }
    std::uint64_t rows() const { return documents; }
    std::uint64_t bytes() const { return bytes_size; }
};

/// File: u32 first_copies[documents], zeros up to a multiple of 8 bytes, NearPair[pairs], in a
/// sealed memfd.
struct NearDuplicatesReply {
    static constexpr std::uint16_t type = 4;
    JobReport report;
    std::uint32_t documents = 0;
    std::uint64_t pairs = 0;

    static void fields(auto& archive, auto& self) {
        archive(self.report, self.documents, self.pairs);
    }
};

/// The answer, still in the file that it came in.
struct NearDuplicatesAnswer {
    std::uint32_t documents = 0, split = 0;  // of the request
    NearDuplicatesReply summary;
    MappedFile file;

    /// Bytes of the file that belongs to the summary, or why that does not answer the request.
    Result<std::uint64_t> file_size() const;
    /// Checks and copies it, O(documents + pairs). Errors: unavailable for an answer that is none;
    /// cancelled; out_of_memory.
    Result<NearDuplicates> read(Stop stop = {}) const noexcept;
};

/// What to compute. Files and arrays stay the caller's and may go after submit(), which copies
/// extents and signatures.
struct NearDuplicatesRequest {
    using Packed = PackedRequest<SubmitNearDuplicates, NearDuplicatesAnswer>;

    NearDuplicateParameters parameters;  // simd is the server's own choice
    JobLimits limits = {};
    FileParts bytes_file;          // as in VectorFiles; there has to be one
    std::uint64_t bytes_size = 0;  // of all of it
    std::span<const Extent> extents;
    CharacterLengths characters = CharacterLengths::single_byte();
    GivenSignatures signatures;  // empty, or one a document
    std::uint64_t resident = 0;  // of bytes_file, as in VectorFiles

    Status pack(Packed& packed, Stop stop) const;
};

// ---- What lies in the files ----

/// Ok when every document lies within so many packed bytes and is below 2^31 bytes.
Status check_extents(std::span<const Extent> extents, std::uint64_t bytes);

struct PackedSignature {
    std::uint64_t begin;         // of the letters, counted from the first signature's
    std::uint16_t first_length;  // as in Ctph
    std::uint16_t length;        // of all letters
    std::uint8_t level;
    std::uint8_t present;  // 0: there is none, all else is 0 then; or 1
    std::uint16_t zero;
};
static_assert(sizeof(PackedSignature) == 16);

/// Packs signatures for a file. The result is of no use once `stop` has asked to stop.
std::vector<std::uint8_t> pack_signatures(GivenSignatures signatures, Stop stop = {});

/// The inverse, of a file for so many documents, on the execution's threads; invalid_argument for
/// anything that pack_signatures would not write; cancelled.
Result<std::vector<std::optional<Ctph>>> unpack_signatures(std::span<const std::uint8_t> file,
                                                           std::size_t documents,
                                                           Execution& execution);

/// Size of the file of a reply, and where the pairs begin. Null when no machine could hold it.
struct ReplyLayout {
    std::uint64_t pairs_begin;
    std::uint64_t size;
};
std::optional<ReplyLayout> reply_layout(std::uint32_t documents, std::uint64_t pairs);

}  // namespace gputext
