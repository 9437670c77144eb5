// cpp/documents/edit_distance.hpp - Levenshtein distance with a limit, and the edit rate made of it
//
// Source of the rate: the 2015 thesis, section 4.1: distance over the sum of the two lengths.
// Method: what both strings share at either end is cut off; a few edits are found by furthest
// reaching points on diagonals (Ukkonen 1985; Myers 1986), more of them bit-parallel (Myers 1999,
// in Hyyro's block form of 2003) within the band of diagonals that the limit leaves. Before a wide
// band, lower bounds of the edits that each rest takes (cpp/documents/detail/rest_edits.hpp) tell
// unrelated strings apart, and leave out more of the band (as A* does).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cpp/base/characters.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

/// Edits: insertion, deletion, substitution of one symbol, each costing 1.
/// An object keeps its scratch memory between calls; one thread uses it at a time.
class EditDistance {
public:
    EditDistance();
    ~EditDistance();
    EditDistance(EditDistance&&) noexcept;
    EditDistance& operator=(EditDistance&&) noexcept;

    static constexpr std::size_t no_limit = SIZE_MAX - 1;

    /// The distance of a and b, or `limit + 1` when it is above `limit`.
    /// Time: about n * min(limit, distance) / 64 steps for strings of n symbols, less when the
    /// distance is small (n + distance^2) or hopeless: about 40 ns a symbol for unrelated long
    /// texts and a limit of a tenth of their length. Memory: distinct symbols * limit / 8 bytes.
    /// Errors: cancelled, when `stop` says so (asked every few milliseconds); out_of_memory.
    /// Both strings must be shorter than 2^31 symbols, which a PostgreSQL value always is.
    Result<std::size_t> operator()(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                                   std::size_t limit = no_limit, Stop stop = {});
    Result<std::size_t> operator()(std::span<const std::uint32_t> a,
                                   std::span<const std::uint32_t> b, std::size_t limit = no_limit,
                                   Stop stop = {});

    /// Distance of two texts, in characters. Decodes only where a text is not narrow.
    Result<std::size_t> of_texts(Bytes a, Bytes b, const CharacterLengths& lengths,
                                 std::size_t limit = no_limit, Stop stop = {});

    /// Steps of 64 rows by one column that all calls together took, for measurements.
    std::uint64_t band_steps() const;

private:
    struct Scratch;
    std::unique_ptr<Scratch> scratch_;
};

/// distance / sum_of_lengths; 0 for two empty strings.
double edit_rate(std::size_t distance, std::size_t sum_of_lengths);

/// The largest distance whose edit_rate is at most the threshold, as the division rounds it.
/// Requires threshold >= 0.
std::size_t most_edits_within(double threshold, std::size_t sum_of_lengths);

}  // namespace gputext
