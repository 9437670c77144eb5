#include "cpp/documents/ctph.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/bit_parallel.hpp"
#include "cpp/documents/detail/hash_batches.hpp"

namespace gputext {
namespace {

constexpr std::uint32_t kMultiplier = 0x01000193;  // FNV's prime: odd, and its powers spread well

/// kMultiplier to any power below 2^32, by the four bytes of the exponent.
constexpr auto power_tables() {
    std::array<std::array<std::uint32_t, 256>, 4> tables{};
    std::uint32_t base = kMultiplier;
    for (auto& table : tables) {
        table[0] = 1;
        for (std::size_t i = 1; i < 256; ++i) table[i] = table[i - 1] * base;
        base = table[255] * base;
    }
    return tables;
}

constexpr auto kPowers = power_tables();

std::uint32_t power(std::uint32_t exponent) {
    return kPowers[0][exponent & 255] * kPowers[1][exponent >> 8 & 255] *
           kPowers[2][exponent >> 16 & 255] * kPowers[3][exponent >> 24];
}

/// A position where a piece ends at every block size up to 2^level.
struct Trigger {
    std::uint32_t end;  // bytes up to and with the position
    std::uint32_t level;
};

/// Rolling hashes that end a piece at a level and above.
struct TriggerMark {
    std::uint32_t ones = 0;
    [[gnu::always_inline]] bool operator()(std::uint32_t hash) const {
        return (hash & ones) == ones;
    }
};

/// The triggers of a document, less those at block sizes already seen to be too small. Dropping
/// them is safe once their signature is longer than asked for, since it can only grow.
class Triggers {
public:
    explicit Triggers(std::size_t longest)
        : longest_(longest), capacity_(std::max<std::size_t>(2 * longest, 128)) {
        kept_.reserve(capacity_ + 1);
    }

    /// Only hashes that this marks are worth adding.
    const TriggerMark& mark() const { return mark_; }

    void add(std::size_t end, std::uint32_t rolling_hash) {
        kept_.push_back({static_cast<std::uint32_t>(end),
                         static_cast<std::uint32_t>(std::countr_one(rolling_hash))});
        while (kept_.size() > capacity_) {
            ++floor_;
            mark_.ones = floor_ < 32 ? (1u << floor_) - 1 : ~0u;
            drop_below_floor();
        }
    }

    /// The smallest level with a signature that is short enough.
    unsigned choose_level(std::size_t size) const {
        unsigned level = floor_;
        while (length_at(level, size) > longest_) ++level;
        return level;
    }

    template <class Visit>
    void for_each_at(unsigned level, Visit&& visit) const {
        for (const Trigger& trigger : kept_)
            if (trigger.level >= level) visit(trigger);
    }

private:
    std::size_t length_at(unsigned level, std::size_t size) const {
        std::size_t count = 0;
        std::size_t last_end = 0;
        for_each_at(level, [&](const Trigger& trigger) {
            ++count;
            last_end = trigger.end;
        });
        return count + (last_end < size ? 1 : 0);
    }

    void drop_below_floor() {
        std::size_t kept = 0;
        for (const Trigger& trigger : kept_) {
            // About half of the hashes are dropped, at random: a branch would often be
            // mispredicted.
            kept_[kept] = trigger;
            kept += trigger.level >= floor_;
        }
        kept_.resize(kept);
    }

    std::size_t longest_;
    std::size_t capacity_;
    unsigned floor_ = 0;
    TriggerMark mark_;
    std::vector<Trigger> kept_;
};

/// The hash of the document's first bytes, up to the place that was asked for last. Bytes count
/// from 1, so that a piece's leading zeros change its hash. Of no use once `stop` has said so.
class PrefixHash {
public:
    PrefixHash(Bytes document, Stop stop) : document_(document), stop_(stop) {}

    std::uint32_t advance_to(std::size_t end) {
        while (end - at_ > kLookEvery && !stop_()) advance_part(at_ + kLookEvery);
        if (end - at_ <= kLookEvery) advance_part(end);
        return hash_;
    }

private:
    void advance_part(std::size_t end) {
        // Eight bytes at a time wait for one multiplication and not for eight.
        for (; at_ + 8 <= end; at_ += 8) {
            std::uint32_t sum = 0;
#pragma GCC unroll 8
            for (std::size_t i = 0; i < 8; ++i)
                sum += (document_[at_ + i] + 1u) * kPowers[0][7 - i];
            hash_ = hash_ * kPowers[0][8] + sum;
        }
        for (; at_ < end; ++at_) hash_ = hash_ * kMultiplier + document_[at_] + 1u;
    }

    Bytes document_;
    Stop stop_;
    std::size_t at_ = 0;
    std::uint32_t hash_ = 0;
};

/// The letters at one block size, piece by piece.
class Letters {
public:
    void end_piece(std::uint32_t end, std::uint32_t prefix_hash) {
        const std::uint32_t piece_hash = prefix_hash - hash_before_ * power(end - begin_);
        // The product's top bits depend on all bits of the hash.
        letters_.push_back(kSignatureAlphabet[piece_hash * 0x9e3779b1u >> 26]);
        begin_ = end;
        hash_before_ = prefix_hash;
    }

    const std::string& letters() const { return letters_; }

private:
    std::string letters_;
    std::uint32_t begin_ = 0;  // of the piece that is open
    std::uint32_t hash_before_ = 0;
};

/// Both parts in one go: a piece's end at twice the block size is one at the block size too.
void hash_pieces(Bytes document, const Triggers& triggers, unsigned level, Letters& first,
                 Letters& second, Stop stop) {
    PrefixHash prefix(document, stop);
    std::size_t first_end = 0;
    std::size_t second_end = 0;
    triggers.for_each_at(level, [&](const Trigger& trigger) {
        const std::uint32_t hash = prefix.advance_to(trigger.end);
        first.end_piece(trigger.end, hash);
        first_end = trigger.end;
        if (trigger.level == level) return;
        second.end_piece(trigger.end, hash);
        second_end = trigger.end;
    });
    const auto end = static_cast<std::uint32_t>(document.size());
    if (first_end < end) first.end_piece(end, prefix.advance_to(end));
    if (second_end < end) second.end_piece(end, prefix.advance_to(end));
}

Status malformed(const char* what) {
    return {ErrorCode::invalid_argument, what};
}

}  // namespace

Result<Ctph> ctph_signature(Bytes document, std::size_t longest, Stop stop) {
    Triggers triggers(longest);
    const auto add = [&](std::size_t end, std::uint32_t rolling_hash) {
        // The batch may have been marked before the triggers asked for less.
        if (triggers.mark()(rolling_hash)) triggers.add(end, rolling_hash);
    };
    std::uint32_t last_hash;
    if (!for_each_marked(document, triggers.mark(), add, last_hash, stop))
        return Status::cancelled();
    const unsigned level = triggers.choose_level(document.size());
    Letters first;
    Letters second;
    hash_pieces(document, triggers, level, first, second, stop);
    if (stop()) return Status::cancelled();
    Ctph signature;
    signature.level = static_cast<std::uint8_t>(level);
    signature.first_length = static_cast<std::uint16_t>(first.letters().size());
    signature.letters = first.letters() + second.letters();
    return signature;
}

std::string format_ctph(const Ctph& signature) {
    std::string text = std::to_string(std::uint64_t{1} << signature.level);
    text += ':';
    text += signature.first();
    text += ':';
    text += signature.second();
    return text;
}

Result<Ctph> parse_ctph(std::string_view text) {
    std::uint64_t block_size = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, block_size);
    if (error != std::errc() || text[0] == '0' || !std::has_single_bit(block_size) ||
        std::countr_zero(block_size) > static_cast<int>(Ctph::max_level))
        return malformed("the block size is not a power of two from 1 to 8589934592");
    const std::string_view rest(after, static_cast<std::size_t>(end - after));
    const std::size_t colon = rest.find(':', 1);
    if (rest.empty() || rest[0] != ':' || colon == std::string_view::npos)
        return malformed("the block size and two parts must be separated by colons");
    const std::string_view first = rest.substr(1, colon - 1);
    const std::string_view second = rest.substr(colon + 1);
    if (first.size() > Ctph::max_length) return malformed("a part has more than 1024 letters");
    Ctph signature;
    signature.level = static_cast<std::uint8_t>(std::countr_zero(block_size));
    signature.first_length = static_cast<std::uint16_t>(first.size());
    signature.letters.append(first).append(second);
    GPUTEXT_TRY(check_ctph(signature));
    return signature;
}

Status check_ctph(const Ctph& signature) {
    if (signature.level > Ctph::max_level) return malformed("the block size is above 8589934592");
    if (signature.first_length > Ctph::max_length)
        return malformed("a part has more than 1024 letters");
    if (signature.first_length > signature.letters.size())
        return malformed("the first part is cut short");
    if (signature.second().size() > signature.first_length)
        return malformed("the second part is longer than the first");
    const auto is_letter = [](char c) { return signature_letter_value(c) != kNoLetter; };
    if (!std::all_of(signature.letters.begin(), signature.letters.end(), is_letter))
        return malformed("a part has a character outside A-Z, a-z, 0-9, + and /");
    return {};
}

int compare_ctph(const Ctph& a, const Ctph& b) {
    if (a.level != b.level) return a.level < b.level ? -1 : 1;
    if (const int order = a.first().compare(b.first()); order != 0) return order;
    return a.second().compare(b.second());
}

double edit_rate(const Ctph& a, const Ctph& b) {
    double smallest = 1;
    const auto consider = [&](std::string_view x, std::string_view y) {
        const std::size_t distance = SignaturePattern(x).distance(y);
        smallest = std::min(smallest, edit_rate(distance, x.size() + y.size()));
    };
    if (a.level == b.level) {
        consider(a.first(), b.first());
        consider(a.second(), b.second());
    } else if (a.level + 1 == b.level) {
        consider(a.second(), b.first());
    } else if (b.level + 1 == a.level) {
        consider(a.first(), b.second());
    }
    return smallest;
}

SignaturePattern::SignaturePattern(std::string_view pattern)
    : length_(pattern.size()),
      blocks_((length_ + kBlockRows - 1) / kBlockRows),
      matches_(kSignatureAlphabet.size() * blocks_) {
    for (std::size_t row = 0; row < length_; ++row)
        matches_[signature_letter_value(pattern[row]) * blocks_ + row / kBlockRows] |=
            std::uint64_t{1} << row % kBlockRows;
}

std::size_t SignaturePattern::distance(std::string_view text) const {
    if (length_ == 0) return text.size();
    std::array<Block, kMostSignatureLetters / kBlockRows> column{};
    auto score = static_cast<std::ptrdiff_t>(blocks_ * kBlockRows);
    for (const char letter : text) {
        const std::uint64_t* matches = matches_.data() + signature_letter_value(letter) * blocks_;
        Carry carry;
        for (std::size_t block = 0; block < blocks_; ++block)
            carry = advance(column[block], matches[block], carry);
        score += carry.value();
    }
    return static_cast<std::size_t>(score - rise(column[blocks_ - 1], rows_beyond(length_)));
}

}  // namespace gputext
