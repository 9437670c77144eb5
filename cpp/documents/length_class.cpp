#include "cpp/documents/length_class.hpp"

#include <bit>

namespace gputext {
namespace {

// Most documents have from 2^6 to 2^16 characters: these lengths are told apart most finely.
constexpr unsigned kFirstFine = 6, kFirstLong = 16;  // octaves
constexpr unsigned kFineBits = 4, kCoarseBits = 2;   // of the steps of an octave
constexpr unsigned kBeforeFine = kFirstFine << kCoarseBits;
constexpr unsigned kBeforeLong = kBeforeFine + ((kFirstLong - kFirstFine) << kFineBits);
static_assert(kLengthClasses == kBeforeLong + ((32 - kFirstLong) << kCoarseBits));

/// An octave's first class, and the bits of its steps.
struct Octave {
    unsigned number;
    unsigned before;
    unsigned bits;
};

Octave octave(unsigned number) {
    if (number < kFirstFine) return {number, number << kCoarseBits, kCoarseBits};
    if (number < kFirstLong)
        return {number, kBeforeFine + ((number - kFirstFine) << kFineBits), kFineBits};
    return {number, kBeforeLong + ((number - kFirstLong) << kCoarseBits), kCoarseBits};
}

}  // namespace

std::uint8_t length_class(std::uint32_t length) {
    const std::uint64_t above = std::uint64_t{length} + 1;
    const Octave of = octave(static_cast<unsigned>(std::bit_width(above)) - 1);
    if (of.number == 32) return kLengthClasses - 1;
    const std::uint64_t step = (above << of.bits >> of.number) - (std::uint64_t{1} << of.bits);
    return static_cast<std::uint8_t>(of.before + step);
}

std::uint32_t least_length_of(std::uint8_t length_class) {
    const unsigned number = length_class < kBeforeFine ? length_class >> kCoarseBits
                            : length_class < kBeforeLong
                                ? kFirstFine + ((length_class - kBeforeFine) >> kFineBits)
                                : kFirstLong + ((length_class - kBeforeLong) >> kCoarseBits);
    const Octave of = octave(number);
    const std::uint64_t steps = (std::uint64_t{1} << of.bits) + length_class - of.before;
    // Of short documents the first length that is not below: a step of theirs is below 1.
    const std::uint64_t above =
        ((steps << of.number) + (std::uint64_t{1} << of.bits) - 1) >> of.bits;
    return static_cast<std::uint32_t>(above - 1);
}

}  // namespace gputext
