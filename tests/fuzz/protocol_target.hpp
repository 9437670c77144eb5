// tests/fuzz/protocol_target.hpp - gives any bytes to everything that reads from the link

#pragma once

#include <cstdlib>
#include <cstring>

#include "cpp/daemon/fault.hpp"
#include "cpp/embeddings/sequence_probability.hpp"
#include "cpp/embeddings/word_movers.hpp"
#include "cpp/link/protocol.hpp"
#include "cpp/link/resident_answers.hpp"
#include "cpp/resident/term_chunks.hpp"
#include "cpp/resident/value_request.hpp"

namespace gputext::testing {

inline void require(bool condition) {
    if (!condition) std::abort();
}

/// What is decoded, encodes to what decodes to the same bytes again.
inline void read_message(std::span<const std::uint8_t> bytes, std::size_t descriptors) {
    const Result<Message> message = decode(bytes, descriptors);
    if (!message.ok()) return;
    require(descriptors_of(*message) == descriptors);
    const auto packet = encode(*message);
    require(packet.size() == bytes.size());
    const Result<Message> again = decode(packet, descriptors);
    require(again.ok() && encode(*again) == packet);
    if (const auto* inject = std::get_if<InjectFault>(&*message))
        static_cast<void>(parse_fault(inject->fault).ok());
}

template <class T>
std::vector<T> array_of(std::span<const std::uint8_t> bytes) {
    std::vector<T> array(bytes.size() / sizeof(T));
    if (!array.empty()) std::memcpy(array.data(), bytes.data(), array.size() * sizeof(T));
    return array;
}

inline void read_extents(std::span<const std::uint8_t> bytes, std::uint64_t size) {
    const auto extents = array_of<Extent>(bytes);
    if (!check_extents(extents, size).ok()) return;
    for (const Extent& extent : extents) require(extent.begin + extent.size <= size);
}

inline void read_signatures(std::span<const std::uint8_t> bytes, std::size_t documents) {
    Execution execution(1);
    const auto signatures = unpack_signatures(bytes, documents, execution);
    if (!signatures.ok()) return;
    const auto packed = pack_signatures(*signatures);
    require(packed.size() == bytes.size());
    require(packed.empty() || std::memcmp(packed.data(), bytes.data(), packed.size()) == 0);
}

/// An answer that is accepted can be asked everything.
inline void read_answer(std::span<const std::uint8_t> bytes, std::size_t documents) {
    if (documents * sizeof(std::uint32_t) > bytes.size()) return;
    const auto first_copies =
        array_of<std::uint32_t>(bytes.first(documents * sizeof(std::uint32_t)));
    const auto pairs = array_of<NearPair>(bytes.subspan(documents * sizeof(std::uint32_t)));
    for (const std::size_t split : {std::size_t{0}, documents / 2, documents}) {
        const auto answer =
            NearDuplicates::from_parts(first_copies, pairs, static_cast<std::uint32_t>(split));
        if (!answer.ok()) return;
        std::uint64_t count = 0;
        std::vector<NearDuplicate> neighbors;
        for (std::uint32_t i = 0; i < documents; ++i) {
            answer->later_neighbors(i, neighbors);
            count += neighbors.size();
        }
        require(answer->pairs() == count);
        require(answer->near_pair_count() == pairs.size());
        require(split > 0 || answer->components().ok());
    }
}

/// Rows that are accepted are all of the elements, once.
inline void read_row_begins(std::span<const std::uint8_t> bytes, std::uint64_t stored) {
    const auto begins = array_of<std::uint64_t>(bytes);
    if (!check_row_begins(begins, stored, {}).ok()) return;
    std::uint64_t sum = 0;
    for (std::size_t row = 0; row + 1 < begins.size(); ++row) sum += begins[row + 1] - begins[row];
    require(sum == stored);
}

/// So many queries; how many neighbors there are follows from the size.
inline void read_neighbors(std::span<const std::uint8_t> bytes, std::uint32_t queries) {
    constexpr std::uint32_t items = 5;
    const std::size_t begins = (queries + std::size_t{1}) * sizeof(std::uint64_t);
    if (bytes.size() < begins) return;
    const std::uint64_t neighbors = (bytes.size() - begins) / 12;
    const auto answer = unpack_neighbors(bytes, queries, items, neighbors);
    if (!answer.ok()) return;
    require(answer->begins.size() == queries + std::size_t{1});
    std::uint64_t count = 0;
    for (std::uint32_t query = 0; query < queries; ++query)
        for (auto i = answer->begins[query]; i < answer->begins[query + 1]; ++i, ++count)
            require(answer->items.at(i) < items && answer->distances.size() > i);
    require(count == neighbors);
}

/// Words that are accepted are all of the bytes, once.
inline void read_word_begins(std::span<const std::uint8_t> bytes, std::uint64_t size) {
    const auto begins = array_of<std::uint64_t>(bytes);
    if (!check_word_begins(begins, size, {}).ok()) return;
    std::uint64_t sum = 0;
    for (std::size_t word = 0; word + 1 < begins.size(); ++word) {
        require(begins[word] <= begins[word + 1] && begins[word + 1] <= size);
        sum += begins[word + 1] - begins[word];
    }
    require(sum == size);
}

/// As many codes as fit, of so many words.
inline void read_codes(std::span<const std::uint8_t> bytes, std::uint32_t words) {
    const auto count = static_cast<std::uint32_t>(bytes.size() / sizeof(std::uint32_t));
    const auto codes = unpack_codes(bytes, count, words);
    if (!codes.ok()) return;
    require(codes->size() == count && bytes.size() % sizeof(std::uint32_t) == 0);
    for (const std::uint32_t code : *codes) require(code < words || code == Trie::kNone);
}

/// Numbers at the front of `bytes`, which they are taken from; none where there are too few.
template <class T>
std::vector<T> take_array(std::span<const std::uint8_t>& bytes, std::size_t count) {
    if (bytes.size() / sizeof(T) < count) return {};
    auto array = array_of<T>(bytes.first(count * sizeof(T)));
    bytes = bytes.subspan(count * sizeof(T));
    return array;
}

/// Pairs that are accepted have distances; so many of them, and the rest is masses.
inline void read_text_pairs(std::span<const std::uint8_t> bytes, std::size_t pairs) {
    constexpr std::size_t words = 40;
    const auto begins = take_array<std::uint64_t>(bytes, 2 * pairs + 1);
    const auto totals = take_array<std::uint32_t>(bytes, pairs);
    const auto masses = array_of<WordMass>(bytes);
    const TextPairs view{begins, masses, totals};
    Execution execution(1);
    if (begins.empty() || totals.size() != pairs || !check_text_pairs(view, words, execution).ok())
        return;
    std::vector<float> elements(words);
    for (std::size_t i = 0; i < words; ++i) elements[i] = static_cast<float>(i * i % 17);
    const auto exact = word_movers_distances({}, {elements.data(), words, 1}, view, execution);
    MoversParameters parameters;
    parameters.method = MoversMethod::relaxed;
    const auto relaxed =
        word_movers_distances(parameters, {elements.data(), words, 1}, view, execution);
    require(exact.ok() && relaxed.ok() && exact->size() == pairs);
    for (std::size_t i = 0; i < pairs; ++i) require(!((*relaxed)[i] > (*exact)[i]));
}

/// Sequences that are accepted have probabilities; so many of them, and the rest is tokens.
inline void read_sequences(std::span<const std::uint8_t> bytes, std::size_t sequences) {
    constexpr std::size_t words = 40;
    const auto begins = take_array<std::uint64_t>(bytes, sequences + 1);
    const auto tokens = array_of<std::uint32_t>(bytes);
    const TokenSequences view{begins, tokens};
    if (begins.empty() || !check_sequences(view, words, {}).ok()) return;
    const std::vector<float> elements(words, 0.5f);
    const WordVectors model{elements.data(), words, 1};
    Execution execution(1);
    const auto answer = sequence_probabilities({model, model}, view, best_simd(), execution);
    require(answer.ok() && answer->sequences.size() == sequences);
    require(answer->tokens.size() == tokens.size());
}

/// Rows that are accepted ascend.
inline void read_missing(std::span<const std::uint8_t> bytes, std::uint32_t values) {
    const auto missing = array_of<std::uint32_t>(bytes);
    if (!check_missing(missing, values).ok()) return;
    for (std::size_t i = 0; i < missing.size(); ++i)
        require(missing[i] < values && (i == 0 || missing[i] > missing[i - 1]));
}

/// Places that are accepted lie in their chunks: the first one of so many bytes, the second one of
/// a quarter of them.
inline void read_places(std::span<const std::uint8_t> bytes, std::size_t chunk_bytes) {
    const std::vector<std::uint8_t> chunk(chunk_bytes);
    const MappedTerms::Chunk chunks[] = {{1, chunk, {}},
                                         {2, std::span(chunk).first(chunk_bytes / 4), {}}};
    const auto places = array_of<TermPlace>(bytes);
    if (!check_places(places, chunks).ok()) return;
    for (const TermPlace& place : places) {
        require(place.chunk < std::size(chunks));
        require(place.offset + place.size <= chunks[place.chunk].bytes.size());
        require(place.offset % 4 == 0 && place.size % 4 == 0);
    }
}

/// Values whose ends are accepted lie one behind the other, and have so many words in all.
inline void read_ends(std::span<const std::uint8_t> bytes, std::uint64_t words) {
    const auto ends = array_of<std::uint64_t>(bytes);
    if (!check_ends(ends, 4 * words).ok()) return;
    std::uint64_t begin = 0;
    for (const std::uint64_t end : ends) {
        require(begin <= end && end <= 4 * words && end % 4 == 0);
        begin = end;
    }
    require(begin == 4 * words);
}

/// Pointers that are accepted have sizes that add up, and fit vectors of so many dimensions or, for
/// 0, documents.
inline void read_pointers(std::span<const std::uint8_t> bytes, std::uint64_t dimensions) {
    ValueKind kind;
    kind.form = dimensions == 0 ? ValueForm::document : ValueForm::vector;
    kind.dimensions = dimensions;
    const auto pointers = array_of<ValuePointer>(bytes);
    const auto sum = sum_of_sizes(kind, pointers, {});
    if (!sum.ok()) return;
    std::uint64_t bytes_of_all = 0;
    for (const ValuePointer& pointer : pointers) {
        require(dimensions == 0 || pointer.size == dimensions * sizeof(float));
        require(!__builtin_add_overflow(bytes_of_all, pointer.size, &bytes_of_all));
    }
    require(*sum == bytes_of_all);
}

/// The first byte says what the rest is, the second one is a number for it.
inline void read_anything(std::span<const std::uint8_t> bytes) {
    if (bytes.size() < 2) return;
    const std::uint8_t number = bytes[1];
    const auto rest = bytes.subspan(2);
    switch (bytes[0] % 14) {
        case 0:
            return read_message(rest, number % (kMaxDescriptors + 1));
        case 1:
            return read_extents(rest, std::uint64_t{1} << number % 64);
        case 2:
            return read_signatures(rest, number);
        case 3:
            return read_answer(rest, number);
        case 4:
            return read_row_begins(rest, number);
        case 5:
            return read_neighbors(rest, number);
        case 6:
            return read_word_begins(rest, number);
        case 7:
            return read_codes(rest, number);
        case 8:
            return read_text_pairs(rest, number % 16);
        case 9:
            return read_sequences(rest, number % 16);
        case 10:
            return read_missing(rest, number);
        case 11:
            return read_pointers(rest, number);
        case 12:
            return read_places(rest, number);
        default:
            return read_ends(rest, number);
    }
}

}  // namespace gputext::testing
