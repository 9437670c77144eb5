// kernels/strings/coded_strings.hpp - strings in order of length, as a device reads them

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/strings/strings.hpp"

namespace gputext::gpu {

/// The longest string that a device looks at.
inline constexpr std::size_t kLongestString = UINT16_MAX - 1;
/// The length of a place that no string has.
inline constexpr std::uint16_t kNoLength = UINT16_MAX;
/// Its number.
inline constexpr std::uint32_t kNoString = UINT32_MAX;
/// Places of a tile: strings of one length begin with a tile of their own.
inline constexpr std::uint32_t kTilePlaces = 8;
/// Codes are read by so many at once.
inline constexpr std::size_t kCodesTogether = 4;

/// Strings that are read one by one, by several threads at once.
class StringSource {
public:
    virtual ~StringSource() = default;
    virtual std::size_t size() const = 0;
    virtual std::size_t length(std::size_t string) const = 0;
    /// Its symbols, perhaps in `scratch`.
    virtual Symbols read(std::size_t string, std::vector<std::uint32_t>& scratch) const = 0;
};

class StringsAsSource final : public StringSource {
public:
    explicit StringsAsSource(const Strings& strings) : strings_(strings) {}
    std::size_t size() const override { return strings_.size(); }
    std::size_t length(std::size_t string) const override { return strings_.length(string); }
    Symbols read(std::size_t string, std::vector<std::uint32_t>&) const override {
        return strings_[string];
    }

private:
    Strings strings_;
};

/// The symbols that occur in some strings, numbered.
class SymbolCodes {
public:
    /// Symbols of all strings. O(symbols), on the execution's threads. Error: cancelled.
    Status set(std::span<const StringSource* const> sources, Execution& execution);

    std::size_t size() const { return low_symbols_ + high_.size(); }
    /// Whether a code fits into 16 bits.
    bool fit() const { return size() <= std::size_t{UINT16_MAX} + 1; }
    /// Bits that tell all codes.
    unsigned bits() const;
    std::uint16_t code(std::uint32_t symbol) const {
        return symbol < kLow ? low_[symbol] : high_.find(symbol)->second;
    }

private:
    static constexpr std::uint32_t kLow = 1 << 16;

    std::vector<std::uint16_t> low_;
    std::size_t low_symbols_ = 0;
    std::unordered_map<std::uint32_t, std::uint16_t> high_;
};

/// Neighboring places of strings of one length, in whole tiles.
struct StringGroup {
    std::uint32_t begin, end;
    std::uint32_t length;
};

/// Strings by place: in order of length, and those of one length in their own order.
struct CodedStrings {
    std::vector<std::uint32_t> numbers;
    std::vector<std::uint16_t> lengths;
    std::vector<StringGroup> groups;
    std::vector<std::uint64_t> begins;     // of the symbols of a place, and the end
    // The symbols' codes, or without codes the symbols; as many as the last of `begins` says.
    std::unique_ptr<std::uint16_t[]> coded;
    std::unique_ptr<std::uint32_t[]> plain;

    std::size_t places() const { return numbers.size(); }
    std::span<const std::uint16_t> codes() const {
        return {coded.get(), coded != nullptr ? begins.back() : 0};
    }
    std::span<const std::uint32_t> trigrams() const {
        return {plain.get(), plain != nullptr ? begins.back() : 0};
    }

    /// Those of `strings` that `chosen` names, none of which is longer than kLongestString. Without
    /// codes the symbols are copied. O(strings + symbols), on the execution's threads. Error:
    /// cancelled.
    Status set(const StringSource& strings, std::span<const std::uint32_t> chosen,
               const SymbolCodes* codes, Execution& execution);
};

}  // namespace gputext::gpu
