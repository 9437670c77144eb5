#include "extension/texts/text_chunk.hpp"

#include "cpp/base/memory_budget.hpp"

namespace gputext {
namespace {

template <class T>
std::span<const std::uint8_t> bytes_of(std::span<const T> values) {
    return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};
}

}  // namespace

Status TextChunk::write_words(const Vocabulary& vocabulary) {
    const Words words = vocabulary.words();
    const std::span begins(words.begins, words.size() + 1);
    GPUTEXT_TRY(words_file_.append(bytes_of(begins)));
    GPUTEXT_TRY(words_file_.append({words.bytes, words.byte_count()}));
    GPUTEXT_TRY(words_file_.seal());
    words_ = {words_file_.data() + begins.size_bytes(),
              reinterpret_cast<const std::uint64_t*>(words_file_.data()), words.size()};
    return {};
}

/// Records keep their sizes.
Status TextChunk::write_ends(const ChunkedTexts& texts) {
    std::uint64_t end = 0;
    for (const ChunkText& text : texts.texts) {
        end += text.size * sizeof(std::uint32_t);
        GPUTEXT_TRY(ends_file_.append(bytes_of(std::span<const std::uint64_t>(&end, 1))));
    }
    return ends_file_.seal();
}

void TextChunk::list_texts(const ChunkedTexts& texts) {
    const auto* record = reinterpret_cast<const std::uint32_t*>(records_.data());
    texts_.reserve(texts.texts.size());
    for (const ChunkText& text : texts.texts) {
        texts_.push_back({record, text.size, 0});
        record += text.size;
    }
}

Status TextChunk::make(const ChunkedTexts& texts, std::size_t limit, Execution& execution) {
    form_ = texts.form;
    size_ = texts.size;
    const std::uint64_t bytes = size_ * sizeof(std::uint32_t);
    Vocabulary vocabulary;
    ChunkNumbers numbers;
    if (bytes > limit) return over_memory_limit("the terms of texts", bytes, limit);
    GPUTEXT_TRY(merge_words(texts.chunks, vocabulary, numbers, execution));
    GPUTEXT_TRY(write_words(vocabulary));
    if (bytes + words_file_.size() > limit)
        return over_memory_limit("the terms of texts", bytes + words_file_.size(), limit);
    GPUTEXT_TRY(write_ends(texts));
    GPUTEXT_TRY(records_.create(bytes, (bytes / page_size() + 1) * page_size()));
    const auto sink = [this](std::uint64_t begin, std::span<const std::uint32_t> records) {
        return records_.write(begin * sizeof(std::uint32_t), bytes_of(records));
    };
    GPUTEXT_TRY(renumber_texts(texts, numbers, sink, execution));
    GPUTEXT_TRY(records_.seal());
    GPUTEXT_TRY(records_.map());
    list_texts(texts);
    return {};
}

AddTerms TextChunk::message() const {
    return {records_.size(), words_.size(), words_file_.size()};
}

TermFiles TextChunk::files() const {
    return {records_.parts().descriptors().front(), ends_file_.descriptor(),
            words_file_.descriptor()};
}

}  // namespace gputext
