// cpp/link/resident_answers.hpp - what gputextd says of values that it keeps, with the files that
// came with it

#pragma once

#include <cstdint>
#include <vector>

#include "cpp/base/status.hpp"
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

/// Bytes that gputextd keeps, or no files where it does not.
struct KeptTaken {
    TakenKept reply;
    std::vector<FileDescriptor> files;
};

/// What gputextd keeps.
struct TablesKept {
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
Result<KeptTaken> read_reply(const TakenKept& reply, std::vector<FileDescriptor> files);
Result<TablesKept> read_reply(const ResidentTables& reply, std::vector<FileDescriptor> files);

/// Ok when the numbers ascend and are below `values`.
Status check_missing(std::span<const std::uint32_t> missing, std::uint32_t values);

}  // namespace gputext
