// cpp/strings/detail/edit_tiles.hpp - edits between a query and many items of one length at once
//
// All cells of the dynamic program, a byte each, of 64 items side by side: where no bound leaves
// items out, this takes less than a bit-parallel distance of each. Symbols are bytes, too, so that
// two beyond ASCII may count as equal, and edits be too few.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/strings/detail/string_index.hpp"
#include "cpp/strings/strings.hpp"

namespace gputext {

/// The symbols of items, in tiles of neighboring places of a group.
class EditTiles {
public:
    /// Items of a tile.
    static constexpr std::size_t lanes = 64;
    /// The most symbols of strings that are compared.
    static constexpr std::size_t longest = 128;

    /// O(symbols). Error: cancelled.
    Status set(const Strings& strings, const LengthOrder& order, Simd simd, Stop stop);

    /// Whether the group has tiles: one of few items has none.
    bool has(std::size_t group) const { return begins_[group] != kNone; }

    static std::vector<std::uint8_t> query(Symbols string);
    /// Whether the query's edits are no bounds, but the edits: all of its symbols are of ASCII.
    static bool is_exact(std::span<const std::uint8_t> query);
    /// Writes lower bounds of the edits between the query and each item of the group's tile, or
    /// whatever is above `most` for more edits than that. Neither is longer than `longest`, nor
    /// empty, and their lengths differ by at most `most`. With transpositions as
    /// StringMetric::osa. O(n * m), less for small `most`.
    void edits(std::span<const std::uint8_t> query, std::size_t group, std::size_t length,
               std::size_t tile, std::size_t most, bool transpositions, std::uint8_t* found) const;

private:
    static constexpr std::size_t kNone = SIZE_MAX;

    std::vector<std::size_t> begins_;    // of each group's tiles
    std::vector<std::uint8_t> symbols_;  // [tile][symbol][lane]
    Simd simd_ = Simd::portable;
};

}  // namespace gputext
