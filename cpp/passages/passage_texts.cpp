#include "cpp/passages/passage_texts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/large_pages.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/base/vocabulary.hpp"

namespace gputext {
namespace {

constexpr std::size_t kDocumentsOfStep = 64;
constexpr unsigned kBlockBits = 10;

constexpr std::size_t kBlock = 64;

/// A bit for each byte of a block: whether it is of a word. All bytes of a character beyond ASCII
/// are beyond ASCII, in each encoding that a server may store.
std::uint64_t word_bits(const std::uint8_t* block) {
    constexpr std::uint64_t kBytesToBits = 0x0102040810204080;
    std::uint8_t of_word[kBlock];
    for (std::size_t i = 0; i < kBlock; ++i) {
        const auto letter = static_cast<std::uint8_t>((block[i] | 0x20) - 'a');
        const auto digit = static_cast<std::uint8_t>(block[i] - '0');
        of_word[i] = static_cast<std::uint8_t>((letter < 26) | (digit < 10) | block[i] >> 7);
    }
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < kBlock; i += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, of_word + i, sizeof eight);
        bits |= eight * kBytesToBits >> 56 << i;
    }
    return bits;
}

bool is_ascii(const std::uint8_t* block) {
    std::uint8_t all = 0;
    for (std::size_t i = 0; i < kBlock; ++i) all |= block[i];
    return all < 0x80;
}

bool is_blank(std::uint32_t character) {
    return character == ' ' || (character >= '\t' && character <= '\r');
}

std::uint32_t folded(std::uint32_t character) {
    return character >= 'A' && character <= 'Z' ? character + ('a' - 'A') : character;
}

Bytes bytes_of(const Documents& documents, std::size_t document) {
    const Extent& extent = documents.extents[document];
    return {documents.bytes + extent.begin, static_cast<std::size_t>(extent.size)};
}

/// Whether all characters of all documents are a byte each.
Status look_at_characters(const Documents& documents, Execution& execution, bool& narrow) {
    std::vector<std::uint8_t> wide(execution.threads());
    const std::size_t steps = (documents.size() + kDocumentsOfStep - 1) / kDocumentsOfStep;
    execution.begin_phase("looking at characters", steps);
    GPUTEXT_TRY(execution.parallel_for(steps, [&](std::size_t step, unsigned worker) {
        const std::size_t end = std::min(documents.size(), (step + 1) * kDocumentsOfStep);
        for (std::size_t d = step * kDocumentsOfStep; d < end && !wide[worker]; ++d)
            wide[worker] =
                !is_narrow(bytes_of(documents, d), documents.characters, execution.stop());
        return execution.stop_requested() ? Status::cancelled() : Status();
    }));
    narrow = std::ranges::find(wide, 1) == wide.end();
    return {};
}

/// The symbols of documents that follow each other, and where they stand in them.
struct Part {
    std::size_t first = 0, end = 0;  // documents
    std::vector<std::uint32_t> numbers, starts, lengths;
    // If the numbers are words
    Vocabulary words;
    std::vector<std::uint32_t> by_hash;      // words by the first bits of their hash
    std::vector<std::uint32_t> hash_begins;  // of those with the same bits, and the end
    std::vector<std::uint32_t> numbers_of;   // what each word's number is in all parts
};

/// How a part is read, and what a thread keeps meanwhile.
struct PartReader {
    PassageForm form;
    bool with_places;
    std::string folding;
};

std::vector<Part> divided(const Documents& documents) {
    constexpr std::uint64_t kBytes = 1 << 22;  // enough for most words to come several times
    std::vector<Part> parts;
    std::uint64_t bytes = kBytes;
    for (std::size_t d = 0; d < documents.size(); ++d) {
        if (bytes >= kBytes) {
            parts.emplace_back().first = d;
            bytes = 0;
        }
        parts.back().end = d + 1;
        bytes += documents.extents[d].size;
    }
    return parts;
}

/// Returns the number of characters.
std::uint64_t read_characters(Bytes text, const CharacterLengths& lengths, PartReader& reader,
                              Part& symbols, Stop stop) {
    const PassageForm& form = reader.form;
    bool after_blank = false;
    std::uint64_t characters = 0;
    for (std::size_t at = 0; at < text.size(); ++characters) {
        if (characters % (1 << 20) == (1 << 20) - 1 && stop()) return characters;
        std::uint32_t character = next_character(text, lengths, at);
        if (form.fold_case) character = folded(character);
        if (form.fold_blanks && is_blank(character)) {
            character = ' ';
            if (after_blank) {
                if (reader.with_places) ++symbols.lengths.back();
                continue;
            }
        }
        after_blank = form.fold_blanks && character == ' ';
        symbols.numbers.push_back(character);
        if (!reader.with_places) continue;
        symbols.starts.push_back(static_cast<std::uint32_t>(characters));
        symbols.lengths.push_back(1);
    }
    return characters;
}

/// Calls word(begin, end, ascii) for each word. Each byte between words is a character; `ascii` says
/// that those of the word are, too. Ends early when stopped.
template <class Word>
void each_word(Bytes text, Stop stop, const Word& word) {
    std::size_t begin = 0;
    bool within = false, ascii = true;
    for (std::size_t at = 0; at < text.size(); at += kBlock) {
        if (at % kLookEvery == 0 && stop()) return;
        std::uint8_t last[kBlock] = {};
        const std::uint8_t* block = last;
        if (text.size() - at >= kBlock)
            block = &text[at];
        else
            std::memcpy(last, &text[at], text.size() - at);
        const std::uint64_t bits = word_bits(block);
        const bool block_is_ascii = is_ascii(block);
        ascii &= block_is_ascii;
        for (std::uint64_t changes = bits ^ (bits << 1 | within); changes != 0;
             changes &= changes - 1) {
            const auto place = static_cast<unsigned>(std::countr_zero(changes));
            if (bits >> place & 1) {
                begin = at + place;
                ascii = block_is_ascii;
            } else {
                word(begin, at + place, ascii);
            }
        }
        within = bits >> (kBlock - 1);
    }
    if (within) word(begin, text.size(), ascii);
}

/// Numbers of words are of the part alone. Returns the number of characters.
std::uint64_t read_words(Bytes text, const CharacterLengths& lengths, PartReader& reader,
                         Part& symbols, Stop stop) {
    std::uint64_t characters = 0;
    std::size_t end_before = 0;
    each_word(text, stop, [&](std::size_t begin, std::size_t end, bool ascii) {
        const Bytes word = text.subspan(begin, end - begin);
        std::string_view spelled(reinterpret_cast<const char*>(word.data()), word.size());
        if (reader.form.fold_case) {
            reader.folding.assign(spelled);
            for (char& c : reader.folding)
                c = static_cast<char>(folded(static_cast<std::uint8_t>(c)));
            spelled = reader.folding;
        }
        symbols.numbers.push_back(symbols.words.add(spelled, stop));
        if (!reader.with_places) return;
        const std::size_t length = ascii ? word.size() : count_characters(word, lengths, stop);
        characters += begin - end_before;
        symbols.starts.push_back(static_cast<std::uint32_t>(characters));
        symbols.lengths.push_back(static_cast<std::uint32_t>(length));
        characters += length;
        end_before = end;
    });
    return characters + text.size() - end_before;
}

// ---- Words of all parts ----

constexpr unsigned kHashBits = 8;
constexpr std::size_t kHashes = std::size_t{1} << kHashBits;

void sort_by_hash(Part& part) {
    const std::uint32_t count = part.words.size();
    const auto bits_of = [&](std::uint32_t word) {
        return Vocabulary::hash_of(part.words.term(word)) >> (32 - kHashBits);
    };
    std::vector<std::uint32_t>& begins = part.hash_begins;
    begins.assign(kHashes + 1, 0);
    for (std::uint32_t word = 0; word < count; ++word) ++begins[bits_of(word)];
    // Ends, which become begins as places are taken from behind
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    part.by_hash.resize(count);
    for (std::uint32_t word = count; word-- > 0;) part.by_hash[--begins[bits_of(word)]] = word;
    part.numbers_of.resize(count);
}

/// Gives words numbers that depend on the parts alone. Threads number words of different hashes.
Status number_words(std::vector<Part>& parts, Execution& execution) {
    const auto words_of = [](const Part& part, std::size_t hash) {
        return std::span(part.by_hash)
            .subspan(part.hash_begins[hash], part.hash_begins[hash + 1] - part.hash_begins[hash]);
    };
    std::vector<std::uint64_t> begins(kHashes + 1);
    execution.begin_phase("numbering words", kHashes);
    GPUTEXT_TRY(execution.parallel_for(kHashes, [&](std::size_t hash, unsigned) -> Status {
        Vocabulary words;
        for (Part& part : parts) {
            if (execution.stop_requested()) return Status::cancelled();
            for (const std::uint32_t word : words_of(part, hash))
                part.numbers_of[word] = words.add(part.words.term(word));
        }
        begins[hash + 1] = words.size();
        return {};
    }));
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    if (begins.back() > UINT32_MAX)
        return {ErrorCode::memory_limit, "texts have more than 4294967295 different words"};
    return execution.parallel_for(parts.size(), [&](std::size_t i, unsigned) -> Status {
        for (std::size_t hash = 0; hash < kHashes; ++hash)
            for (const std::uint32_t word : words_of(parts[i], hash))
                parts[i].numbers_of[word] += static_cast<std::uint32_t>(begins[hash]);
        for (std::uint32_t& number : parts[i].numbers) number = parts[i].numbers_of[number];
        return {};
    });
}

}  // namespace

std::size_t PassageTexts::document_of(std::uint64_t symbol) const {
    const std::uint32_t* const block = documents_of_blocks_.data() + (symbol >> kBlockBits);
    const auto next =
        std::upper_bound(begins_.begin() + block[0], begins_.begin() + block[1] + 1, symbol);
    return static_cast<std::size_t>(next - begins_.begin()) - 1;
}

Status PassageTexts::index_documents(Stop stop) {
    documents_of_blocks_.clear();
    if (symbols() == 0) return {};
    std::uint32_t document = 0;
    for (std::uint64_t symbol = 0; symbol < symbols(); symbol += std::uint64_t{1} << kBlockBits) {
        if (documents_of_blocks_.size() % 4096 == 0 && stop()) return Status::cancelled();
        while (begins_[document + 1] <= symbol) ++document;
        documents_of_blocks_.push_back(document);
    }
    documents_of_blocks_.push_back(static_cast<std::uint32_t>(documents() - 1));
    return {};
}

Place PassageTexts::place(std::size_t document, std::uint64_t first, std::uint64_t length) const {
    if (starts_ == nullptr) return {first - begins_[document], length};
    const std::uint64_t last = first + length - 1;
    return {starts_[first], std::uint64_t{starts_[last]} + lengths_[last] - starts_[first]};
}

Status PassageTexts::set_narrow(const Documents& documents, Execution& execution) {
    for (std::size_t d = 0; d < documents.size(); ++d) {
        characters_[d] = documents.extents[d].size;
        begins_[d + 1] = begins_[d] + characters_[d];
    }
    bytes_ = unwritten_pages<std::uint8_t>(begins_.back());
    const std::size_t steps = (documents.size() + kDocumentsOfStep - 1) / kDocumentsOfStep;
    execution.begin_phase("reading characters", steps);
    GPUTEXT_TRY(execution.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
        const std::size_t end = std::min(documents.size(), (step + 1) * kDocumentsOfStep);
        for (std::size_t d = step * kDocumentsOfStep; d < end; ++d)
            std::ranges::copy(bytes_of(documents, d), bytes_.get() + begins_[d]);
        return {};
    }));
    return index_documents(execution.stop());
}

Status PassageTexts::set(const Documents& documents, const PassageForm& form, bool with_places,
                         Execution& execution) {
    return status_or_exception([&]() -> Status {
        const Stop stop = execution.stop();
        const std::size_t count = documents.size();
        has_gaps_ = form.unit == PassageUnit::words;
        begins_.assign(count + 1, 0);
        characters_.assign(count, 0);
        const bool plain =
            form.unit == PassageUnit::characters && !form.fold_case && !form.fold_blanks;
        if (plain) {
            bool narrow = false;
            GPUTEXT_TRY(look_at_characters(documents, execution, narrow));
            if (narrow) return set_narrow(documents, execution);
        }
        with_places &= !plain;
        std::vector<Part> parts = divided(documents);
        execution.begin_phase("reading characters", parts.size());
        GPUTEXT_TRY(execution.parallel_for(parts.size(), [&](std::size_t i, unsigned) -> Status {
            Part& part = parts[i];
            PartReader reader{form, with_places, {}};
            const auto read = form.unit == PassageUnit::words ? read_words : read_characters;
            for (std::size_t d = part.first; d < part.end; ++d) {
                characters_[d] =
                    read(bytes_of(documents, d), documents.characters, reader, part, stop);
                begins_[d + 1] = part.numbers.size();
                if (stop()) return Status::cancelled();
            }
            if (form.unit == PassageUnit::words) sort_by_hash(part);
            return {};
        }));
        if (form.unit == PassageUnit::words) GPUTEXT_TRY(number_words(parts, execution));
        std::vector<std::uint64_t> begins_of;
        std::uint64_t symbols = 0;
        for (const Part& part : parts) {
            begins_of.push_back(symbols);
            for (std::size_t d = part.first; d < part.end; ++d) begins_[d + 1] += symbols;
            symbols += part.numbers.size();
        }
        numbers_ = unwritten_pages<std::uint32_t>(symbols);
        if (with_places) {
            starts_ = unwritten_pages<std::uint32_t>(symbols);
            lengths_ = unwritten_pages<std::uint32_t>(symbols);
        }
        GPUTEXT_TRY(execution.parallel_for(parts.size(), [&](std::size_t i, unsigned) -> Status {
            std::ranges::copy(parts[i].numbers, numbers_.get() + begins_of[i]);
            if (with_places) {
                std::ranges::copy(parts[i].starts, starts_.get() + begins_of[i]);
                std::ranges::copy(parts[i].lengths, lengths_.get() + begins_of[i]);
            }
            parts[i] = Part();
            return {};
        }));
        return index_documents(stop);
    });
}

}  // namespace gputext
