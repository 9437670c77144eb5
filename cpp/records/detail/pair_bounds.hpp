// cpp/records/detail/pair_bounds.hpp - what a field of two records adds to their match weight at
// most, in a few instructions

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/records/linkage_model.hpp"
#include "cpp/records/value_levels.hpp"

namespace gputext {

/// What a bound sees of a text or a set.
struct Probe {
    std::uint8_t length = 0;  // kLong for longer texts
    std::uint8_t excess = 0;  // symbols that have no bit
    std::uint8_t begin = 0;   // a hash of the first symbol
    /// Of texts: the n-th symbol of each of 32 kinds sets bit n of two. Of sets a bit for each of 64
    /// kinds of elements.
    std::uint64_t bits = 0;

    static constexpr std::uint8_t kLong = 65;
};

/// What one record's value adds to match weights at most, told by the codes of the other ones. In
/// parts of a bit, rounded up, so that sums are exact.
struct CodeQuery {
    std::uint32_t code;
    std::int32_t equal, near, different;
    /// Codes of near numbers: [begin, begin + size), and of the exchanged date.
    std::uint32_t begin, size, exchanged;
};

/// Bounds for one field. A view of what it is made of.
class PairBounds {
public:
    static constexpr double kPartsOfBit = 4096;
    /// What set(), the levels and the weights take for each value, at most.
    static constexpr std::size_t kBytesOfValue = 40;

    PairBounds(const ValueLevels& levels, const FieldWeights& weights)
        : levels_(&levels), weights_(&weights) {}
    /// To be called first. O(values) time and memory, and for texts half a megabyte. Errors:
    /// cancelled.
    Status set(Stop stop);

    /// Numbers of values whose order is that of the numbers; kNullValue for null.
    std::uint32_t code(std::uint32_t value) const {
        return value == kNullValue || codes_.empty() ? value : levels_->place(value);
    }
    std::uint32_t value(std::uint32_t code) const {
        return code == kNullValue || codes_.empty() ? code : codes_[code];
    }
    bool has_near() const { return !near_.empty(); }
    /// Of a value that is not null.
    CodeQuery code_query(std::uint32_t code) const;

    /// The most that two values of these codes may add, which are not null and differ.
    double different(std::uint32_t a, std::uint32_t b) const { return up_to_[most_level(a, b)]; }
    /// Whether that is less than what a query tells for some of them.
    bool refines() const { return refines_; }
    std::int32_t different_parts(std::uint32_t a, std::uint32_t b) const {
        return parts_[most_level(a, b)];
    }

private:
    using HighestLevels = std::array<std::uint8_t, 65>;  // [common symbols]

    const HighestLevels& highest(std::size_t n, std::size_t m, bool same_begin) const {
        return highest_[(n * 65 + m) * 2 + same_begin];
    }
    /// Of a number, the codes of those that have a level above 0 with it.
    struct Near {
        std::uint32_t begin, end, exchanged;
    };

    Status make_codes(Stop stop);
    Status make_probes(Stop stop);
    Status make_parts(Stop stop);
    std::size_t most_level(std::uint32_t a, std::uint32_t b) const;
    Status make_highest(Stop stop);

    const ValueLevels* levels_;
    const FieldWeights* weights_;
    std::vector<Probe> probes_;           // of each value that is a text or a set
    std::vector<double> up_to_;           // [level]: the largest weight of different values up to it
    std::vector<HighestLevels> highest_;  // of texts
    std::vector<std::uint32_t> codes_;    // of numbers: the value of each code
    std::vector<Near> near_;              // of numbers that may be near, by code
    // In parts of a bit:
    std::vector<std::int32_t> parts_;        // up_to_
    std::vector<std::int32_t> equal_parts_;  // by code; none where all are equal_
    std::int32_t equal_ = 0, different_ = 0;
    bool refines_ = false;
};

inline CodeQuery PairBounds::code_query(std::uint32_t code) const {
    CodeQuery query{code, equal_parts_.empty() ? equal_ : equal_parts_[code], parts_.back(),
                    different_, 0, 0, kNullValue};
    if (!near_.empty()) {
        query.begin = near_[code].begin;
        query.size = near_[code].end - near_[code].begin;
        query.exchanged = near_[code].exchanged;
    }
    return query;
}

inline std::size_t PairBounds::most_level(std::uint32_t a, std::uint32_t b) const {
    const std::size_t top = parts_.size() - 1;
    switch (levels_->values().kind()) {
        case FieldKind::text: {
            if (highest_.empty()) return 0;
            const Probe& one = probes_[a];
            const Probe& other = probes_[b];
            if (one.length == Probe::kLong || other.length == Probe::kLong) return top;
            const auto common = static_cast<unsigned>(std::popcount(one.bits & other.bits)) +
                                std::min(one.excess, other.excess);
            return highest(one.length, other.length, one.begin == other.begin)[common];
        }
        case FieldKind::number:
        case FieldKind::date:
            return !near_.empty() && (b - near_[a].begin < near_[a].end - near_[a].begin ||
                                      b == near_[a].exchanged)
                       ? top
                       : 0;
        case FieldKind::set:
            return (probes_[a].bits & probes_[b].bits) == 0 ? 0 : top;
        case FieldKind::other:
            break;
    }
    return 0;
}

}  // namespace gputext
