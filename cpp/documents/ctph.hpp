// cpp/documents/ctph.hpp - context-triggered piecewise hashes: a short signature of a document's
// pieces
//
// Source: the 2015 thesis, section 4.3, algorithm CTPH. The thesis leaves both hashes open. Here
// the rolling hash is the spamsum one (cpp/documents/detail/hash_batches.hpp); a piece's hash is a
// polynomial over its bytes modulo 2^32, because then the hash of any piece follows from two prefix
// hashes, which both block sizes of a signature share.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/edit_distance.hpp"

namespace gputext {

// ---- The 64 letters of signatures, their values, and how many of them there are at most ----

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

/// The signature of one document at two neighboring block sizes. At block size B = 2^level a
/// piece ends where the rolling hash is B - 1 modulo B, and at the document's end; each piece is
/// one letter.
struct Ctph {
    static constexpr unsigned max_level = 33;  // no position of any document triggers above it
    static constexpr std::size_t max_length = kMostSignatureLetters;

    std::uint8_t level = 0;          // 0..max_level
    std::uint16_t first_length = 0;  // 0..max_length; letters at block size 2^level
    std::string letters;             // those, then at most as many at block size 2^(level + 1)

    std::string_view first() const { return std::string_view(letters).substr(0, first_length); }
    std::string_view second() const { return std::string_view(letters).substr(first_length); }
};

/// The smallest block size, from 1 up by doubling, whose signature has at most `longest` letters.
/// An empty document has an empty signature. Requires 1 <= longest <= Ctph::max_length.
/// Documents are below 2^32 bytes. One pass finds where pieces end at every block size, another
/// hashes the pieces at the two that were chosen. O(size) time, O(longest) memory.
/// Error: cancelled, when `stop` says so (asked every few million bytes). Throws std::bad_alloc.
Result<Ctph> ctph_signature(Bytes document, std::size_t longest, Stop stop = {});

/// "B:letters:letters", the decimal block size first.
std::string format_ctph(const Ctph& signature);

/// The inverse. invalid_argument with a sentence, unless the text is exactly what format_ctph may
/// print: B a power of two up to 2^max_level without sign or leading zeros, the letters' number
/// within bounds, the second part no longer than the first.
Result<Ctph> parse_ctph(std::string_view text);

/// Whether level, lengths and letters are what ctph_signature may produce; a sentence if not.
Status check_ctph(const Ctph& signature);

/// Negative, 0, positive: ordered by block size, then by the letters' bytes.
int compare_ctph(const Ctph& a, const Ctph& b);

/// The smallest edit rate among the parts of a and b that share a block size; 1 when none do.
/// O(length^2 / 64). Throws std::bad_alloc.
double edit_rate(const Ctph& a, const Ctph& b);

// ---- Levenshtein distance of signatures: short strings over 64 letters ----

/// One signature prepared to be compared with many (Myers 1999, blocks of 64 letters).
/// Letters are those of kSignatureAlphabet; at most kMostSignatureLetters of them.
class SignaturePattern {
public:
    explicit SignaturePattern(std::string_view pattern);

    /// O(size of text * blocks of the pattern).
    std::size_t distance(std::string_view text) const;

private:
    std::size_t length_;
    std::size_t blocks_;
    std::vector<std::uint64_t> matches_;  // [letter][block]
};

}  // namespace gputext
