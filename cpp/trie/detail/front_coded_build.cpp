// Builds images: cpp/trie/detail/front_coded.hpp.

#include <bitset>
#include <string>

#include "cpp/base/stoppable.hpp"
#include "cpp/trie/detail/front_coded.hpp"
#include "cpp/trie/detail/front_coded_build.hpp"
#include "cpp/trie/detail/front_coded_layout.hpp"

namespace gputext {
namespace {

/// Buckets of a task.
constexpr std::size_t kTaskBuckets = 256;

/// Bytes of a word that are looked at to choose symbols.
constexpr std::size_t kSampleBytes = 64;

using Words = std::span<const std::string_view>;

/// What one task has made.
struct Part {
    std::string bytes;
    std::vector<std::uint32_t> sizes;  // of its buckets
    std::bitset<256> alphabet;
    std::uint64_t text_bytes = 0, longest = 0;
};

std::size_t shared_length(std::string_view a, std::string_view b) {
    const std::size_t size = std::min(a.size(), b.size());
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.begin() + size, b.begin()).first -
                                    a.begin());
}

Words bucket_of(Words words, std::size_t bucket) {
    const std::size_t begin = bucket * kBucketWords;
    return words.subspan(begin, std::min<std::size_t>(kBucketWords, words.size() - begin));
}

SymbolTable symbols_for(Words words, std::size_t buckets, Stop stop) {
    std::vector<std::string_view> sample;
    const std::size_t step = sample_step(buckets);
    for (std::size_t bucket = 0; bucket < buckets; bucket += step) {
        const Words own = bucket_of(words, bucket);
        sample.insert(sample.end(), own.begin(), own.end());
    }
    return front_coded_symbols(sample, stop);
}

class BucketWriter {
public:
    explicit BucketWriter(const SymbolEncoder& encoder) : encoder_(encoder) {}

    /// False when stopped, after some of it.
    bool append(Words words, std::string& out, Stop stop);

private:
    void put_excess(std::size_t number) {
        for (; number >= 128; number >>= 7)
            excess_.push_back(static_cast<char>((number & 127) | 128));
        excess_.push_back(static_cast<char>(number));
    }
    /// The part of the number that goes into the head.
    unsigned head_of(std::size_t number) {
        if (number >= kMostInHead) put_excess(number - kMostInHead);
        return static_cast<unsigned>(std::min<std::size_t>(number, kMostInHead));
    }

    const SymbolEncoder& encoder_;
    std::string heads_, codes_, excess_;
};

bool BucketWriter::append(Words words, std::string& out, Stop stop) {
    heads_.clear();
    codes_.clear();
    excess_.clear();
    const std::string_view first = words[0];
    if (first.size() >= kMostFirst) put_excess(first.size() - kMostFirst);
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (stop()) return false;
        const std::size_t shared = shared_length(words[i - 1], words[i]);
        const std::size_t before = codes_.size();
        if (!encoder_.append(words[i].substr(shared), codes_, stop)) return false;
        const unsigned upper = head_of(shared);
        heads_.push_back(static_cast<char>(upper << 4 | head_of(codes_.size() - before - 1)));
    }
    const std::string_view rest = first.substr(std::min(first.size(), kSeparatorBytes));
    // Reserved, so that it is not copied each time that it grows.
    if (rest.size() + codes_.size() > kLookEvery)
        out.reserve(out.size() + heads_.size() + rest.size() + codes_.size() + excess_.size() + 1);
    out.push_back(static_cast<char>(std::min<std::size_t>(first.size(), kMostFirst)));
    out += heads_;
    if (!stoppable_append(out, rest, stop) || !stoppable_append(out, codes_, stop)) return false;
    out.append(excess_.rbegin(), excess_.rend());
    return true;
}

/// False when stopped.
bool count_words(Words words, Part& part, Stop stop) {
    for (std::string_view word : words) {
        part.text_bytes += word.size();
        part.longest = std::max<std::uint64_t>(part.longest, word.size());
        for (; !word.empty(); word.remove_prefix(std::min(kLookEvery, word.size()))) {
            if (word.size() > kLookEvery && stop()) return false;
            for (const char byte : word.substr(0, kLookEvery))
                part.alphabet.set(static_cast<std::uint8_t>(byte));
        }
    }
    return true;
}

Result<std::vector<Part>> make_parts(Words words, std::size_t buckets, const SymbolTable& symbols,
                                     Execution& execution) {
    const SymbolEncoder encoder(symbols);
    std::vector<Part> parts((buckets + kTaskBuckets - 1) / kTaskBuckets);
    execution.begin_phase("packing words", parts.size());
    Status status = execution.parallel_for(parts.size(), [&](std::size_t task, unsigned) -> Status {
        BucketWriter writer(encoder);
        Part& part = parts[task];
        const std::size_t end = std::min(buckets, (task + 1) * kTaskBuckets);
        for (std::size_t bucket = task * kTaskBuckets; bucket < end; ++bucket) {
            const std::size_t before = part.bytes.size();
            const Words own = bucket_of(words, bucket);
            // Words lie all over the memory.
            if (bucket + 1 < end)
                for (const std::string_view word : bucket_of(words, bucket + 1))
                    __builtin_prefetch(word.data());
            if (!writer.append(own, part.bytes, execution.stop()) ||
                !count_words(own, part, execution.stop()))
                return Status::cancelled();
            if (part.bytes.size() - before > UINT32_MAX)
                return {ErrorCode::invalid_argument, "the words of a dictionary are too long"};
            part.sizes.push_back(static_cast<std::uint32_t>(part.bytes.size() - before));
        }
        return {};
    });
    if (!status.ok()) return status;
    return parts;
}

/// Appends the bytes of a value.
template <class T>
void put(std::vector<std::uint8_t>& image, const T& value) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&value);
    image.insert(image.end(), bytes, bytes + sizeof value);
}

TrieHeader header_of(Words words, const SymbolTable& symbols, const std::vector<Part>& parts) {
    std::bitset<256> alphabet;
    std::uint64_t text_bytes = 0, longest = 0, payload = 0;
    for (const Part& part : parts) {
        alphabet |= part.alphabet;
        text_bytes += part.text_bytes;
        longest = std::max(longest, part.longest);
        payload += part.bytes.size();
    }
    TrieHeader header = front_coded_header(words.size(), symbols, payload);
    header.longest = static_cast<std::uint32_t>(longest);
    header.alphabet = static_cast<std::uint32_t>(alphabet.count());
    header.text_bytes = text_bytes;
    return header;
}

Result<std::vector<std::uint8_t>> assemble(TrieHeader header, Words words, std::size_t buckets,
                                           const SymbolTable& symbols, std::vector<Part>& parts,
                                           Stop stop) {
    std::vector<std::uint8_t> image;
    image.reserve(header.bytes);
    put(image, header);
    for (std::size_t bucket = 0; bucket < buckets; ++bucket)
        put(image, separator_of(words[bucket * kBucketWords]));
    std::uint32_t offset = 0;
    for (const Part& part : parts)
        for (const std::uint32_t size : part.sizes) {
            put(image, offset);
            offset += size;
        }
    put(image, offset);
    image.resize(FrontCodedPlaces(header).buckets);
    write_symbols(symbols, image.data() + FrontCodedPlaces(header).symbols);
    for (Part& part : parts) {
        if (!stoppable_append(image, part.bytes, stop)) return Status::cancelled();
        part.bytes = {};
    }
    header.checksum = trie_checksum(image);
    std::memcpy(image.data(), &header, sizeof header);
    return image;
}

}  // namespace

std::size_t sample_step(std::size_t buckets) {
    return (buckets + kSampleBuckets - 1) / kSampleBuckets;
}

SymbolTable front_coded_symbols(std::span<const std::string_view> sample, Stop stop) {
    std::vector<std::string> rests;
    for (std::size_t i = 0; i < sample.size(); ++i)
        if (i % kBucketWords != 0)
            rests.emplace_back(
                sample[i].substr(shared_length(sample[i - 1], sample[i])).substr(0, kSampleBytes));
    return choose_symbols(rests, stop);
}

TrieHeader front_coded_header(std::size_t words, const SymbolTable& symbols,
                              std::uint64_t payload) {
    TrieHeader header{};
    std::memcpy(header.magic, TrieHeader::kMagic, sizeof header.magic);
    header.version = TrieHeader::kVersion;
    header.structure = static_cast<std::uint32_t>(TrieStructure::front);
    header.words = static_cast<std::uint32_t>(words);
    header.symbols = symbols.size;
    for (const std::uint8_t length : symbols.lengths) header.symbol_bytes += length;
    header.bytes = FrontCodedPlaces(header).buckets + payload;
    return header;
}

void write_symbols(const SymbolTable& symbols, std::uint8_t* to) {
    to = std::copy_n(symbols.lengths.begin(), symbols.size, to);
    for (std::uint32_t i = 0; i < symbols.size; ++i)
        to = std::copy_n(reinterpret_cast<const std::uint8_t*>(&symbols.bytes[i]),
                         symbols.lengths[i], to);
}

Status check_front_size(std::uint64_t payload, std::uint64_t longest) {
    if (payload <= UINT32_MAX && longest <= UINT32_MAX - Trie::kSlack) return {};
    return {ErrorCode::invalid_argument, "the words of a dictionary are too long",
            "Together they may take 4 GB when they are packed."};
}

Result<std::vector<std::uint8_t>> build_front_coded_trie(std::span<const std::string_view> words,
                                                         Execution& execution) {
    const std::size_t buckets = (words.size() + kBucketWords - 1) / kBucketWords;
    execution.begin_phase("choosing symbols", 0);
    const SymbolTable symbols = symbols_for(words, buckets, execution.stop());
    auto parts = make_parts(words, buckets, symbols, execution);
    if (!parts.ok()) return parts.status();
    std::uint64_t payload = 0;
    std::uint64_t longest = 0;
    for (const Part& part : *parts) {
        payload += part.bytes.size();
        longest = std::max(longest, part.longest);
    }
    GPUTEXT_TRY(check_front_size(payload, longest));
    const TrieHeader header = header_of(words, symbols, *parts);
    return assemble(header, words, buckets, symbols, *parts, execution.stop());
}

}  // namespace gputext
