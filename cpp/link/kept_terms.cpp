#include "cpp/link/kept_terms.hpp"

#include <utility>

#include "cpp/base/exception_status.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

Status check_places(std::span<const TermPlace> places, std::span<const KeptTerms::Chunk> chunks) {
    for (const TermPlace& place : places) {
        if (place.chunk >= chunks.size()) return broken("terms in no chunk");
        const std::uint64_t bytes = chunks[place.chunk].bytes.size();
        if (place.size > bytes || place.offset > bytes - place.size ||
            (place.offset | place.size) % sizeof(std::uint32_t) != 0)
            return broken("terms outside their chunk");
    }
    return {};
}

Status KeptTerms::add(const TermChunk& chunk, int bytes, int words) {
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

Result<KeptTerms> TermsTaken::map() const noexcept {
    return status_or_exception([&]() -> Result<KeptTerms> {
        KeptTerms terms;
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
