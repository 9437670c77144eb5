// cpp/documents/detail/signature_join.hpp - finds all pairs of signatures whose edit rate is at
// most a threshold
//
// Exact: the same pairs as comparing every signature with every other. Source of the task: the
// 2015 thesis, algorithm CTPHBasedHomoDocsDetect (sections 4.3 and 4.4).

#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/detail/index_pair.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"

namespace gputext {

/// Every pair with edit_rate(signatures[first], signatures[second]) <= rate, ascending, into
/// `pairs`. Signatures share a block size where the first or second part of one has that of the
/// other; parts of one block size are joined by join_letters. Signatures without a common block
/// size have rate 1 and are no pair. Requires 0 <= rate < 1.
/// Memory: about 100 bytes a signature more than the signatures themselves, and the pairs. Ends
/// soon after it has found more than `most` pairs, some perhaps twice, and then sets `too_many` and
/// leaves `pairs` empty. A pair belongs to the part whose stripes
/// (cpp/documents/detail/pair_stripes.hpp) have the earlier one of its two strings, in the order of
/// block size, of length, of first parts before second ones, and of the signatures' numbers; a pair
/// that is near at two block sizes may belong to two parts.
/// With `sides`, one a signature (cpp/documents/detail/document_sides.hpp), only pairs across are
/// found, and a pair belongs to the part that has the string of its row, in the order of the rows.
Status join_signatures(std::span<const Ctph> signatures, double rate, Simd simd,
                       Execution& execution, std::vector<IndexPair>& pairs,
                       std::uint64_t most = UINT64_MAX, bool* too_many = nullptr,
                       const PairPart& part = {}, std::span<const std::uint8_t> sides = {});

/// Joins plain strings of signature letters, all of them comparable: every pair with
/// distance / (sum of lengths) <= rate, ascending. It is the inner join of join_signatures: sorted
/// by length, filtered by common letters, then bit-parallel Levenshtein on what remains. Time:
/// length-compatible pairs times 4 to 32 word operations (cpp/documents/detail/letter_filter.hpp),
/// and about 2 * length steps for each pair that passes. Strings are at most Ctph::max_length long.
Status join_letters(std::span<const std::string_view> strings, double rate, Simd simd,
                    Execution& execution, std::vector<IndexPair>& pairs);

}  // namespace gputext
