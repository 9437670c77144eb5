#include "cpp/trie/detail/front_coded.hpp"

#include <array>
#include <bit>
#include <bitset>
#include <string>

#include "cpp/base/stoppable.hpp"
#include "cpp/trie/detail/front_coded_layout.hpp"

namespace gputext {
namespace {

/// Lookups that wait for memory together.
constexpr std::size_t kGroup = 16;

constexpr std::uint64_t kMasks[] = {0,
                                    0xff,
                                    0xffff,
                                    0xffffff,
                                    0xffffffff,
                                    0xffffffffff,
                                    0xffffffffffff,
                                    0xffffffffffffff,
                                    ~std::uint64_t{0}};

enum class Order { before, equal, behind };

/// Where a word is, or would be.
struct Place {
    std::uint32_t code;
    bool found;
};

/// Byte `i` of a symbol.
std::uint8_t byte_of(std::uint64_t symbol, unsigned i) {
    return static_cast<std::uint8_t>(symbol >> 8 * i);
}

/// Order of the bucket's first word and the word looked up, which have equal separators.
Order order_of_first(const Bucket& bucket, std::string_view word) {
    const std::size_t length = FrontCodedLayout::tail_length(bucket.first_length);
    const std::string_view tail = word.substr(std::min(word.size(), kSeparatorBytes));
    const int order = std::memcmp(bucket.tail, tail.data(), std::min(length, tail.size()));
    if (order != 0) return order < 0 ? Order::before : Order::behind;
    if (bucket.first_length == word.size()) return Order::equal;
    return bucket.first_length < word.size() ? Order::before : Order::behind;
}

std::size_t common_length(const std::uint8_t* a, const char* b, std::size_t size) {
    std::size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        std::uint64_t x, y;
        std::memcpy(&x, a + at, 8);
        std::memcpy(&y, b + at, 8);
        if (x != y) return at + static_cast<std::size_t>(std::countr_zero(x ^ y)) / 8;
    }
    while (at < size && a[at] == static_cast<std::uint8_t>(b[at])) ++at;
    return at;
}

class FrontCodedTrie;

class FrontCodedCursor final : public TrieCursor {
public:
    FrontCodedCursor(const FrontCodedLayout& layout, std::uint32_t longest, CodeRange range)
        : layout_(layout), range_(range), characters_(longest + Trie::kSlack, '\0') {}

    bool next() override;

private:
    void step();
    void begin_bucket(std::uint32_t number);

    const FrontCodedLayout& layout_;
    CodeRange range_;
    std::string characters_;
    Bucket bucket_{};
    bool begun_ = false;
};

class FrontCodedTrie final : public Trie {
public:
    FrontCodedTrie(FrontCodedLayout layout, const TrieStats& stats) : layout_(std::move(layout)) {
        stats_ = stats;
    }

    void lookup(std::span<const std::string_view> words,
                std::span<std::uint32_t> codes) const override;
    std::uint32_t lower_bound(std::string_view word) const override;
    std::size_t decode(std::uint32_t code, char* out) const override;
    std::unique_ptr<TrieCursor> cursor(CodeRange range) const override {
        return std::make_unique<FrontCodedCursor>(layout_, stats_.longest, range);
    }

private:
    void find(std::span<const std::string_view> words, std::array<Place, kGroup>& places) const;
    Place place_in(std::uint32_t bucket, std::string_view word, const Separator& key) const;
    bool step_back(std::uint32_t& bucket, std::string_view word, const Separator& key) const;
    Order compare(const std::uint8_t* codes, std::uint32_t count, std::string_view word,
                  std::size_t& common) const;

    FrontCodedLayout layout_;
};

/// Writes what codes stand for, and up to seven bytes behind it; returns its end.
char* expand(const SymbolTable& symbols, const std::uint8_t* codes, std::uint32_t count,
             char* out) {
    for (const std::uint8_t* const end = codes + count; codes != end; ++codes) {
        if (*codes == SymbolTable::kEscape) {
            *out++ = static_cast<char>(*++codes);
            continue;
        }
        std::memcpy(out, &symbols.bytes[*codes], 8);
        out += symbols.lengths[*codes];
    }
    return out;
}

/// Writes the first `length` bytes of a bucket's first word, and perhaps some behind them.
void write_first(const FrontCodedLayout& layout, std::uint32_t number, const Bucket& bucket,
                 std::size_t length, char* out) {
    const Separator separator = layout.separator(number);
    const std::uint64_t parts[2] = {__builtin_bswap64(separator.high),
                                    __builtin_bswap64(separator.low)};
    std::memcpy(out, &parts[0], 8);
    if (length <= 8) return;
    if (length < kSeparatorBytes) {
        std::memcpy(out + 8, &parts[1], length - 8);
        return;
    }
    std::memcpy(out + 8, &parts[1], 8);
    std::memcpy(out + kSeparatorBytes, bucket.tail, length - kSeparatorBytes);
}

// ---- Looking words up ----

/// Order of `word` and the word that shares its first `common` bytes and continues with these
/// codes; `common` becomes the number of bytes that both share.
Order FrontCodedTrie::compare(const std::uint8_t* codes, std::uint32_t count, std::string_view word,
                              std::size_t& common) const {
    const SymbolTable& symbols = layout_.symbols;
    for (const std::uint8_t* const end = codes + count; codes != end; ++codes) {
        const bool escaped = *codes == SymbolTable::kEscape;
        if (escaped) ++codes;
        const std::uint64_t symbol = escaped ? *codes : symbols.bytes[*codes];
        const std::size_t length = escaped ? 1 : symbols.lengths[*codes];
        const std::size_t left = word.size() - common;
        std::uint64_t wanted = 0;
        if (left >= 8)
            std::memcpy(&wanted, word.data() + common, 8);
        else
            std::memcpy(&wanted, word.data() + common, left);
        const std::uint64_t different = (symbol ^ wanted) & kMasks[length];
        const std::size_t same =
            different == 0 ? length : static_cast<std::size_t>(std::countr_zero(different)) / 8;
        if (same >= left && left < length) {
            common = word.size();
            return Order::behind;
        }
        common += same;
        if (different != 0) {
            const auto i = static_cast<unsigned>(same);
            return byte_of(symbol, i) < byte_of(wanted, i) ? Order::before : Order::behind;
        }
    }
    return common == word.size() ? Order::equal : Order::before;
}

/// Makes `bucket`, which is the last one with a separator up to the key, the last one whose first
/// word is not behind `word`; false when there is none. Many buckets may have one separator.
bool FrontCodedTrie::step_back(std::uint32_t& bucket, std::string_view word,
                               const Separator& key) const {
    const auto fits = [&](std::uint32_t number) {
        const Separator separator = layout_.separator(number);
        if (separator != key) return separator <= key;
        return order_of_first(layout_.bucket(number), word) != Order::behind;
    };
    if (fits(bucket)) return true;
    // Usually it is the bucket before.
    std::uint32_t end = bucket;  // does not fit
    std::uint32_t step = 1;
    while (end >= step && !fits(end - step)) {
        end -= step;
        step *= 2;
    }
    std::uint32_t begin = end >= step ? end - step : 0;  // fits, or is the first one
    if (begin == 0 && !fits(0)) return false;
    while (end - begin > 1) {
        const std::uint32_t middle = begin + (end - begin) / 2;
        (fits(middle) ? begin : end) = middle;
    }
    bucket = begin;
    return true;
}

/// In the last bucket whose separator is not above the key, which is the word's.
Place FrontCodedTrie::place_in(std::uint32_t number, std::string_view word,
                               const Separator& key) const {
    const Separator separator = layout_.separator(number);
    if (!(separator <= key)) return {0, false};
    if (separator == key && !step_back(number, word, key)) return {0, false};
    const std::uint32_t base = number * kBucketWords;
    Bucket bucket = layout_.bucket(number);

    const Separator first = layout_.separator(number);
    std::size_t common =
        first.high != key.high
            ? static_cast<std::size_t>(std::countl_zero(first.high ^ key.high)) / 8
        : first.low != key.low
            ? 8 + static_cast<std::size_t>(std::countl_zero(first.low ^ key.low)) / 8
            : kSeparatorBytes;
    if (common == kSeparatorBytes && word.size() > kSeparatorBytes)
        common += common_length(bucket.tail, word.data() + kSeparatorBytes,
                                std::min(FrontCodedLayout::tail_length(bucket.first_length),
                                         word.size() - kSeparatorBytes));
    common = std::min({common, word.size(), std::size_t{bucket.first_length}});
    if (common == word.size() && common == bucket.first_length) return {base, true};

    // The word before shares `common` bytes with the word, which is behind it.
    const std::uint8_t* codes = bucket.codes;
    for (std::uint32_t i = 1; i < bucket.words; ++i) {
        const std::uint8_t head = bucket.heads[i - 1];
        const std::uint32_t shared = bucket.shared_of(head);
        const std::uint32_t count = bucket.codes_of(head);
        if (shared < common) return {base + i, false};
        if (shared == common) {
            const Order order = compare(codes, count, word, common);
            if (order != Order::before) return {base + i, order == Order::equal};
        }
        codes += count;
    }
    return {base + bucket.words, false};
}

/// Finds the codes of at most kGroup words. The dictionary is not empty.
void FrontCodedTrie::find(std::span<const std::string_view> words,
                          std::array<Place, kGroup>& places) const {
    std::array<Separator, kGroup> keys;
    std::array<std::uint32_t, kGroup> buckets{};
    const std::size_t size = words.size();
    for (std::size_t i = 0; i < size; ++i) keys[i] = separator_of(words[i]);
    for (std::uint32_t left = layout_.bucket_count; left > 1;) {
        const std::uint32_t half = left / 2;
        for (std::size_t i = 0; i < size; ++i)
            buckets[i] += layout_.separator(buckets[i] + half) <= keys[i] ? half : 0;
        left -= half;
    }
    for (std::size_t i = 0; i < size; ++i)
        __builtin_prefetch(layout_.offsets + buckets[i] * sizeof(std::uint32_t));
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint8_t* const bucket = layout_.buckets.data() + layout_.offset(buckets[i]);
        __builtin_prefetch(bucket);
        __builtin_prefetch(bucket + 64);
    }
    for (std::size_t i = 0; i < size; ++i) places[i] = place_in(buckets[i], words[i], keys[i]);
}

void FrontCodedTrie::lookup(std::span<const std::string_view> words,
                            std::span<std::uint32_t> codes) const {
    std::array<Place, kGroup> places;
    for (std::size_t begin = 0; begin < words.size(); begin += kGroup) {
        const std::size_t size = std::min(kGroup, words.size() - begin);
        if (layout_.words == 0)
            places.fill({0, false});
        else
            find(words.subspan(begin, size), places);
        for (std::size_t i = 0; i < size; ++i)
            codes[begin + i] = places[i].found ? places[i].code : kNone;
    }
}

std::uint32_t FrontCodedTrie::lower_bound(std::string_view word) const {
    if (layout_.words == 0) return 0;
    std::array<Place, kGroup> places;
    find({&word, 1}, places);
    return places[0].code;
}

// ---- Reading words ----

/// Only those words of the bucket are expanded of which the word has some bytes.
std::size_t FrontCodedTrie::decode(std::uint32_t code, char* out) const {
    struct Entry {
        const std::uint8_t* codes;
        std::uint32_t shared, count;
    };
    const std::uint32_t number = code / kBucketWords, wanted = code % kBucketWords;
    Bucket bucket = layout_.bucket(number);
    if (wanted == 0) {
        write_first(layout_, number, bucket, bucket.first_length, out);
        return bucket.first_length;
    }
    Entry entries[kBucketWords];
    const std::uint8_t* codes = bucket.codes;
    for (std::uint32_t i = 1; i <= wanted; ++i) {
        const std::uint8_t head = bucket.heads[i - 1];
        const std::uint32_t shared = bucket.shared_of(head);
        const std::uint32_t count = bucket.codes_of(head);
        entries[i] = {codes, shared, count};
        codes += count;
    }
    // From the last one back, those that have bytes before all that follow.
    std::uint32_t needed[kBucketWords];
    std::uint32_t count = 0, missing = UINT32_MAX;
    for (std::uint32_t i = wanted; i > 0 && missing > 0; --i) {
        if (entries[i].shared >= missing) continue;
        missing = entries[i].shared;
        needed[count++] = i;
    }
    if (missing > 0) write_first(layout_, number, bucket, missing, out);
    char* end = out;
    while (count > 0) {
        const Entry& entry = entries[needed[--count]];
        end = expand(layout_.symbols, entry.codes, entry.count, out + entry.shared);
    }
    return static_cast<std::size_t>(end - out);
}

void FrontCodedCursor::begin_bucket(std::uint32_t number) {
    bucket_ = layout_.bucket(number);
    write_first(layout_, number, bucket_, bucket_.first_length, characters_.data());
    word_ = {characters_.data(), bucket_.first_length};
}

/// To the next word of the bucket.
void FrontCodedCursor::step() {
    const std::uint8_t head = *bucket_.heads++;
    const std::uint32_t shared = bucket_.shared_of(head);
    const std::uint32_t count = bucket_.codes_of(head);
    char* const end = expand(layout_.symbols, bucket_.codes, count, characters_.data() + shared);
    bucket_.codes += count;
    word_ = {characters_.data(), static_cast<std::size_t>(end - characters_.data())};
}

bool FrontCodedCursor::next() {
    if (range_.first >= range_.end) return false;
    code_ = range_.first++;
    if (code_ % kBucketWords == 0) {
        begin_bucket(code_ / kBucketWords);
    } else if (begun_) {
        step();
    } else {
        begin_bucket(code_ / kBucketWords);
        for (std::uint32_t i = 0; i < code_ % kBucketWords; ++i) step();
    }
    begun_ = true;
    return true;
}

}  // namespace

Result<std::unique_ptr<Trie>> open_front_coded_trie(std::span<const std::uint8_t> image) {
    Result<FrontCodedLayout> layout = read_front_layout(image);
    if (!layout.ok()) return layout.status();
    const TrieStats stats = stats_of(load<TrieHeader>(image.data()));
    return std::unique_ptr<Trie>(std::make_unique<FrontCodedTrie>(std::move(*layout), stats));
}

namespace {

/// Words after which a stop request is looked for.
constexpr std::uint32_t kLookEveryBuckets = 1024;

/// Goes through all words, reading nothing before it is known to lie in its bucket.
class Checker {
public:
    Checker(const FrontCodedLayout& layout, const TrieHeader& header)
        : layout_(layout), header_(header) {}

    Status check(Stop stop);

private:
    Status check_bucket(std::uint32_t number);
    Status check_first(std::uint32_t number);
    Status check_word(std::uint8_t head);
    Status check_statistics() const;
    Status take(std::string_view rest, std::size_t shared);
    bool read_excess(std::uint64_t& number);
    bool expand(std::uint64_t count);

    const FrontCodedLayout& layout_;
    const TrieHeader& header_;

    // Unread bytes of the bucket lie between the two.
    const std::uint8_t* at_ = nullptr;
    const std::uint8_t* end_ = nullptr;

    std::string word_, rest_;  // the word that was read last, and what it has of its own
    bool any_ = false;
    std::uint64_t text_bytes_ = 0, longest_ = 0;
    std::bitset<256> alphabet_;
};

/// Reads the part of a number that its head has no room for; together they must fit 32 bits.
bool Checker::read_excess(std::uint64_t& number) {
    std::uint64_t excess = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        if (end_ == at_) return false;
        const std::uint8_t byte = *--end_;
        excess |= std::uint64_t{byte & 127u} << shift;
        if (byte >= 128) continue;
        number += excess;
        return number <= UINT32_MAX;
    }
    return false;
}

bool Checker::expand(std::uint64_t count) {
    if (count > static_cast<std::uint64_t>(end_ - at_)) return false;
    rest_.clear();
    for (const std::uint8_t* const end = at_ + count; at_ != end; ++at_) {
        if (*at_ == SymbolTable::kEscape) {
            if (++at_ == end) return false;
            rest_.push_back(static_cast<char>(*at_));
        } else if (*at_ >= layout_.symbols.size) {
            return false;
        } else {
            rest_.append(reinterpret_cast<const char*>(&layout_.symbols.bytes[*at_]),
                         layout_.symbols.lengths[*at_]);
        }
    }
    return true;
}

/// The next word: so much of the one before, and the rest.
Status Checker::take(std::string_view rest, std::size_t shared) {
    if (shared > word_.size()) return broken_trie("a word shares more than the one before has");
    if (any_ &&
        (rest.empty() || (shared < word_.size() && static_cast<std::uint8_t>(rest[0]) <=
                                                       static_cast<std::uint8_t>(word_[shared]))))
        return broken_trie("its words are not in order");
    word_.replace(shared, word_.npos, rest);
    if (word_.size() > header_.longest) return broken_trie("a word is longer than it says");
    for (const char byte : rest) alphabet_.set(static_cast<std::uint8_t>(byte));
    text_bytes_ += word_.size();
    longest_ = std::max<std::uint64_t>(longest_, word_.size());
    any_ = true;
    return {};
}

Status Checker::check_first(std::uint32_t number) {
    std::uint64_t length = *at_++;
    if (length == kMostFirst && !read_excess(length))
        return broken_trie("the length of a word is wrong");
    const std::uint32_t others = layout_.words_of(number) - 1;
    const std::uint64_t tail = FrontCodedLayout::tail_length(length);
    if (others + tail > static_cast<std::uint64_t>(end_ - at_))
        return broken_trie("a bucket is too short");
    const Separator separator = layout_.separator(number);
    const std::uint64_t parts[2] = {__builtin_bswap64(separator.high),
                                    __builtin_bswap64(separator.low)};
    std::string first(reinterpret_cast<const char*>(parts), sizeof parts);
    if (length < first.size()) {
        if (first.find_first_not_of('\0', length) != first.npos)
            return broken_trie("a separator is not that of its word");
        first.resize(length);
    }
    first.append(reinterpret_cast<const char*>(at_ + others), tail);
    std::size_t shared = 0;
    if (any_)
        while (shared < std::min(first.size(), word_.size()) && first[shared] == word_[shared])
            ++shared;
    return take(std::string_view(first).substr(shared), shared);
}

Status Checker::check_word(std::uint8_t head) {
    std::uint64_t shared = head >> 4;
    if (shared == kMostInHead && !read_excess(shared))
        return broken_trie("the head of a word is wrong");
    std::uint64_t count = (head & 15u) + 1;
    if (count == kMostInHead + 1 && !read_excess(count))
        return broken_trie("the head of a word is wrong");
    if (!expand(count)) return broken_trie("the codes of a word are wrong");
    return take(rest_, shared);
}

Status Checker::check_bucket(std::uint32_t number) {
    const std::uint32_t begin = layout_.offset(number), end = layout_.offset(number + 1);
    if (begin >= end || end > layout_.buckets.size())
        return broken_trie("its buckets overlap or are empty");
    at_ = layout_.buckets.data() + begin;
    end_ = layout_.buckets.data() + end;
    GPUTEXT_TRY(check_first(number));
    const std::uint8_t* const heads = layout_.buckets.data() + begin + 1;
    const std::uint32_t others = layout_.words_of(number) - 1;
    at_ = heads + others + FrontCodedLayout::tail_length(word_.size());
    for (std::uint32_t i = 0; i < others; ++i) GPUTEXT_TRY(check_word(heads[i]));
    return at_ == end_ ? Status() : broken_trie("a bucket has bytes to spare");
}

Status Checker::check_statistics() const {
    const bool right = text_bytes_ == header_.text_bytes && longest_ == header_.longest &&
                       alphabet_.count() == header_.alphabet;
    return right ? Status() : broken_trie("its statistics are wrong");
}

Status Checker::check(Stop stop) {
    if (layout_.offset(0) != 0) return broken_trie("its buckets do not fill it");
    for (std::uint32_t number = 0; number < layout_.bucket_count; ++number) {
        if (number % kLookEveryBuckets == 0 && stop()) return Status::cancelled();
        GPUTEXT_TRY(check_bucket(number));
    }
    return check_statistics();
}

}  // namespace

Status validate_front_coded_trie(std::span<const std::uint8_t> image, Stop stop) {
    const Result<FrontCodedLayout> layout = read_front_layout(image);
    if (!layout.ok()) return layout.status();
    const auto header = load<TrieHeader>(image.data());
    if (header.words == UINT32_MAX) return broken_trie("it has too many words");
    return Checker(*layout, header).check(stop);
}

}  // namespace gputext
