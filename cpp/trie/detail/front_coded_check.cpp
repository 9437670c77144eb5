// Checks images of unknown origin: cpp/trie/detail/front_coded.hpp.

#include <bitset>
#include <string>

#include "cpp/base/stoppable.hpp"
#include "cpp/trie/detail/front_coded.hpp"
#include "cpp/trie/detail/front_coded_layout.hpp"

namespace gputext {
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

/// A number above what the head has room for, which has to fit 32 bits with it.
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
