#include "cpp/link/resident_answers.hpp"

#include <utility>

#include "cpp/base/exception_status.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {
namespace {

/// The only file of a reply, of exactly so many bytes; an empty one where the reply has none.
Status map_only_file(std::span<const FileDescriptor> files, std::uint64_t size, MappedFile& file) {
    if (files.empty()) return {};
    Result<MappedFile> mapped = MappedFile::map(files.front().get(), size, Trust::sealed);
    if (!mapped.ok()) return broken_reply(mapped.status());
    file = std::move(*mapped);
    return {};
}

}  // namespace

Status check_missing(std::span<const std::uint32_t> missing, std::uint32_t values) {
    std::uint64_t least = 0;
    for (const std::uint32_t row : missing) {
        if (row < least || row >= values) return broken("rows that are missing in a wrong order");
        least = std::uint64_t{row} + 1;
    }
    return {};
}

Result<std::vector<std::uint32_t>> ValuesFound::missing() const noexcept {
    return status_or_exception([&]() -> Result<std::vector<std::uint32_t>> {
        std::vector<std::uint32_t> rows(reply.missing);
        if (reply.missing < reply.values) {
            const auto numbers = file.array<std::uint32_t>(0, reply.missing);
            rows.assign(numbers.begin(), numbers.end());
        } else {
            for (std::uint32_t row = 0; row < reply.values; ++row) rows[row] = row;
        }
        if (Status status = check_missing(rows, reply.values); !status.ok())
            return broken_reply(status);
        return rows;
    });
}

Result<MappedFile> ValuesTaken::map() const noexcept {
    return status_or_exception([&]() -> Result<MappedFile> {
        std::vector<int> descriptors;
        for (const FileDescriptor& file : files) descriptors.push_back(file.get());
        auto mapped =
            MappedFile::map({descriptors, reply.parts.part_bytes}, reply.bytes, Trust::sealed);
        if (!mapped.ok()) return broken_reply(mapped.status());
        return mapped;
    });
}

Result<ValuesFound> read_reply(const FoundValues& reply, std::vector<FileDescriptor> files) {
    ValuesFound found{reply, {}};
    GPUTEXT_TRY(
        map_only_file(files, std::uint64_t{reply.missing} * sizeof(std::uint32_t), found.file));
    return found;
}

Result<ValuesTaken> read_reply(const TakenValues& reply, std::vector<FileDescriptor> files) {
    return ValuesTaken{reply, std::move(files)};
}

Result<KeptTaken> read_reply(const TakenKept& reply, std::vector<FileDescriptor> files) {
    return KeptTaken{reply, std::move(files)};
}

Result<TablesKept> read_reply(const ResidentTables& reply, std::vector<FileDescriptor> files) {
    TablesKept kept{reply, {}};
    GPUTEXT_TRY(
        map_only_file(files, std::uint64_t{reply.tables} * sizeof(ResidentTable), kept.file));
    return kept;
}

}  // namespace gputext
