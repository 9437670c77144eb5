// cpp/documents/detail/signature_alphabet.hpp - the 64 letters of signatures, their values, and how
// many of them there are at most

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gputext {

/// Letters by value 0..63, as in RFC 4648.
inline constexpr std::string_view kSignatureAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline constexpr std::uint8_t kNoLetter = 64;

/// Letters of a part of a signature, at most.
inline constexpr std::size_t kMostSignatureLetters = 1024;

/// Values by byte, kNoLetter for what is no letter.
inline constexpr auto kSignatureLetterValues = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(kNoLetter);
    for (std::size_t i = 0; i < kSignatureAlphabet.size(); ++i)
        values[static_cast<std::uint8_t>(kSignatureAlphabet[i])] = static_cast<std::uint8_t>(i);
    return values;
}();

/// The value of a letter, or kNoLetter.
inline std::uint8_t signature_letter_value(char letter) {
    return kSignatureLetterValues[static_cast<std::uint8_t>(letter)];
}

}  // namespace gputext
