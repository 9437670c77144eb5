#include "cpp/documents/detail/signature_distance.hpp"

#include "cpp/documents/detail/bit_parallel.hpp"
#include "cpp/documents/detail/signature_alphabet.hpp"

namespace gputext {

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
