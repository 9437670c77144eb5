#include "cpp/link/resident_answers.hpp"

#include <utility>

#include "cpp/base/exception_status.hpp"
#include "cpp/link/input_files.hpp"
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

Result<ResidentTaken> read_reply(const TakenResident& reply, std::vector<FileDescriptor> files) {
    return ResidentTaken{reply, std::move(files)};
}

Result<ResidentTableList> read_reply(const ResidentTables& reply,
                                     std::vector<FileDescriptor> files) {
    ResidentTableList list{reply, {}};
    GPUTEXT_TRY(
        map_only_file(files, std::uint64_t{reply.tables} * sizeof(ResidentTable), list.file));
    return list;
}

Status check_places(std::span<const TermPlace> places, std::span<const MappedTerms::Chunk> chunks) {
    for (const TermPlace& place : places) {
        if (place.chunk >= chunks.size()) return broken("terms in no chunk");
        const std::uint64_t bytes = chunks[place.chunk].bytes.size();
        if (place.size > bytes || place.offset > bytes - place.size ||
            (place.offset | place.size) % sizeof(std::uint32_t) != 0)
            return broken("terms outside their chunk");
    }
    return {};
}

Status MappedTerms::add(const TermChunk& chunk, int bytes, int words) {
    if (!holds_words(chunk.words, chunk.word_bytes)) return broken("a list of too many words");
    auto values_file = MappedFile::map(bytes, chunk.bytes, Trust::sealed);
    if (!values_file.ok()) return values_file.status();
    auto words_file = MappedFile::map(words, chunk.word_bytes, Trust::sealed);
    if (!words_file.ok()) return words_file.status();
    const auto begins = words_file->array<std::uint64_t>(0, chunk.words + 1);
    const auto word_bytes = words_file->bytes().subspan(begins.size_bytes());
    GPUTEXT_TRY(check_word_begins(begins, word_bytes.size(), {}));
    chunks_.push_back(
        {chunk.id, values_file->bytes(), {word_bytes.data(), begins.data(), chunk.words}});
    files_.push_back(std::move(*values_file));
    files_.push_back(std::move(*words_file));
    return {};
}

Result<MappedTerms> TermsTaken::map() const noexcept {
    return status_or_exception([&]() -> Result<MappedTerms> {
        MappedTerms terms;
        auto list = MappedFile::map(files.front().get(), reply.list_bytes(), Trust::sealed);
        if (!list.ok()) return broken_reply(list.status());
        terms.list_ = std::move(*list);
        terms.places_ =
            terms.list_.array<TermPlace>(reply.chunks * sizeof(TermChunk), reply.values);
        const auto chunks = terms.list_.array<TermChunk>(0, reply.chunks);
        for (std::size_t i = 0; i < chunks.size(); ++i) {
            const Status status =
                terms.add(chunks[i], files[1 + 2 * i].get(), files[2 + 2 * i].get());
            if (!status.ok()) return broken_reply(status);
        }
        if (const Status status = check_places(terms.places_, terms.chunks_); !status.ok())
            return broken_reply(status);
        return terms;
    });
}

Result<TermsTaken> read_reply(const TakenTerms& reply, std::vector<FileDescriptor> files) {
    return TermsTaken{reply, std::move(files)};
}

}  // namespace gputext
