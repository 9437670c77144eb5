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

/// What a bound sees of a record's value.
struct Probe {
    std::uint32_t value = kNullValue;
    std::uint8_t length = 0;  // kLong for longer texts
    std::uint8_t excess = 0;  // symbols that have no bit
    std::uint8_t begin = 0;   // a hash of the first symbol
    /// Of texts: the n-th symbol of each of 32 kinds sets bit n of two. Of sets a bit for each of 64
    /// kinds of elements. Of numbers their own.
    std::uint64_t bits = 0;

    static constexpr std::uint8_t kLong = 65;
};

/// Bounds for one field. A view of what it is made of.
class PairBounds {
public:
    PairBounds(const ValueLevels& levels, const FieldWeights& weights)
        : levels_(&levels), weights_(&weights) {}
    /// To be called first. O(values) time and memory, and for texts half a megabyte. Errors:
    /// cancelled.
    Status set(Stop stop);

    Probe probe(std::uint32_t value) const {
        return value == kNullValue ? Probe() : probes_[value];
    }

    /// One record's value, to be compared with others.
    class Query {
    public:
        Query() = default;
        Query(const PairBounds& bounds, const Probe& probe);

        /// The largest that any value may add.
        double most() const { return most_; }
        /// The most that the other value may add; just that for numbers and values that are only
        /// equal or not.
        double bound(const Probe& other) const {
            if (is_null_ || other.value == kNullValue) return 0;
            if (other.value == probe_.value) return equal_;
            return different(other);
        }

    private:
        double different(const Probe& other) const;

        const PairBounds* bounds_ = nullptr;
        Probe probe_;
        bool is_null_ = true;
        double equal_ = 0, most_ = 0;
        double exchanged_ = 0;  // of a date
    };

private:
    using HighestLevels = std::array<std::uint8_t, 65>;  // [common symbols]

    const HighestLevels& highest(std::size_t n, std::size_t m, bool same_begin) const {
        return highest_[(n * 65 + m) * 2 + same_begin];
    }
    Status make_probes(Stop stop);
    Status make_highest(Stop stop);

    const ValueLevels* levels_;
    const FieldWeights* weights_;
    std::vector<Probe> probes_;       // of each value
    std::vector<double> up_to_;       // [level]: the largest weight of different values up to it
    std::vector<HighestLevels> highest_;  // of texts
};

inline double PairBounds::Query::different(const Probe& other) const {
    switch (bounds_->levels_->values().kind()) {
        case FieldKind::text: {
            if (bounds_->highest_.empty()) return bounds_->up_to_[0];
            if (probe_.length == Probe::kLong || other.length == Probe::kLong)
                return bounds_->up_to_.back();
            const auto common =
                static_cast<unsigned>(std::popcount(probe_.bits & other.bits)) +
                std::min(probe_.excess, other.excess);
            return bounds_->up_to_[bounds_->highest(probe_.length, other.length,
                                                    probe_.begin == other.begin)[common]];
        }
        case FieldKind::number:
        case FieldKind::date:
            return bounds_->weights_->of(bounds_->levels_->level_of_numbers(
                std::bit_cast<double>(probe_.bits), std::bit_cast<double>(other.bits),
                exchanged_));
        case FieldKind::set:
            return (probe_.bits & other.bits) == 0 ? bounds_->up_to_[0] : bounds_->up_to_.back();
        case FieldKind::other:
            break;
    }
    return bounds_->up_to_[0];
}

}  // namespace gputext
