// cpp/documents/ssdeep.hpp - ssdeep's fuzzy hash and its score, bit for bit as in libfuzzy 2.14

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

// A document is cut where its rolling hash (cpp/documents/detail/hash_batches.hpp), taken modulo a
// block size, is the block size less one; each piece becomes one letter, the low six bits of a hash
// of its bytes. A signature holds the letters for one block size 3 * 2^n and for its double, so
// that documents whose lengths differ somewhat still have a block size in common.
//
// Source: J. Kornblum, "Identifying almost identical files using context triggered piecewise
// hashing", Digital Investigation 3S, 2006, and the observable behaviour of the ssdeep program,
// version 2.14.1. No source of ssdeep or libfuzzy was used.

/// The signature "blocksize:letters:letters" of a document, as `ssdeep` prints it: up to 64
/// letters, then up to 32. Any document is allowed, the empty one too ("3::").
///
/// O(size) time, one pass over the document for its cuts (two where it has far fewer than its
/// size promises, such as a long run of one byte) and one for its pieces; about 45 KB of stack.
/// Error: cancelled, when `stop` says so (asked every few million bytes).
Result<std::string> ssdeep_hash(std::span<const std::uint8_t> document, Stop stop = {});

/// One of the two parts of a signature, ready to be compared: letters as numbers 0..63, of a run
/// of equal ones only the first three.
struct SsdeepPart {
    static constexpr std::size_t max_size = 64;

    std::array<std::uint8_t, max_size> letters = {};  // zero beyond `size`
    std::size_t size = 0;

    bool operator==(const SsdeepPart&) const = default;
};

/// A signature that was checked; the block size is 3 * 2^level.
struct SsdeepSignature {
    static constexpr int max_level = 30;

    int level = 0;
    SsdeepPart single;   // at the block size
    SsdeepPart doubled;  // at twice the block size

    bool operator==(const SsdeepSignature&) const = default;
};

/// Reads "blocksize:letters:letters", which ends with the text or at a comma; the rest, in a file
/// of signatures the name of the document, is not looked at. `name` begins the message of an
/// error. invalid_argument if the block size is not 3 * 2^n (n = 0..30) in decimal digits without
/// leading zeros, if a colon is missing, if a part holds anything but A-Z, a-z, 0-9, + and /, or
/// if more than 64 letters of it are left after runs are cut to three. O(size).
Result<SsdeepSignature> parse_ssdeep(std::string_view text,
                                     std::string_view name = "ssdeep signature");

/// How alike two documents are by their signatures, 0 (nothing in common) to 100. Symmetric.
///
/// Signatures that are equal score 100. Otherwise parts of the same block size are compared, and
/// the best score counts; there are none if the block sizes differ by more than a factor of two.
/// Two parts of m and n letters score 0 unless they share seven consecutive letters; else
/// 100 - 100 * floor(64 * (m + n - 2 * LCS) / (m + n)) / 64, where LCS is the length of their
/// longest common subsequence; for block sizes below 45 at most min(m, n) * block size / 3.
/// O(m + n), bit-parallel.
int compare_ssdeep(const SsdeepSignature& a, const SsdeepSignature& b) noexcept;

/// compare_ssdeep of two signatures in text; errors as of parse_ssdeep, naming the first or the
/// second signature.
Result<int> ssdeep_compare(std::string_view a, std::string_view b);

}  // namespace gputext
