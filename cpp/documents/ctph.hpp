// cpp/documents/ctph.hpp - context-triggered piecewise hashes: a short signature of a document's
// pieces
//
// Source: the 2015 thesis, section 4.3, algorithm CTPH. The thesis leaves both hashes open. Here
// the rolling hash is the spamsum one (cpp/documents/detail/rolling_hash.hpp); a piece's hash is a
// polynomial over its bytes modulo 2^32, because then the hash of any piece follows from two prefix
// hashes, which both block sizes of a signature share.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cpp/base/characters.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/detail/signature_alphabet.hpp"

namespace gputext {

/// The signature of one document at two neighbouring block sizes. At block size B = 2^level a
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

}  // namespace gputext
