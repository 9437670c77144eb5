#include "cpp/records/detail/pair_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gputext {
namespace {

std::uint32_t hash(std::uint32_t symbol) {
    return symbol * std::uint32_t{0x9e3779b1};
}

constexpr std::size_t kLengths = 65;  // 0 to 64

std::int32_t parts_of(double weight) {
    return static_cast<std::int32_t>(std::ceil(weight * PairBounds::kPartsOfBit));
}

}  // namespace

Status PairBounds::set(Stop stop) {
    double most = weights_->of(0);
    up_to_.push_back(most);
    for (int level = 1; level <= levels_->top_level(); ++level) {
        if (levels_->comparison().condition(level).kind != ConditionKind::exact)
            most = std::max(most, weights_->of(level));
        up_to_.push_back(most);
    }
    const FieldKind kind = levels_->values().kind();
    if (is_number(kind)) GPUTEXT_TRY(make_codes(stop));
    if (kind == FieldKind::text || kind == FieldKind::set) GPUTEXT_TRY(make_probes(stop));
    if (kind == FieldKind::text && levels_->has_similar_values()) GPUTEXT_TRY(make_highest(stop));
    return make_parts(stop);
}

Status PairBounds::make_codes(Stop stop) {
    const std::span<const std::uint32_t> ascending = levels_->ascending();
    const std::span<const double> numbers = levels_->values().numbers();
    codes_.assign(ascending.begin(), ascending.end());
    for (std::uint32_t value = 0; value < numbers.size(); ++value)
        if (std::isnan(numbers[value])) codes_.push_back(value);
    if (!levels_->has_similar_values()) return {};
    const auto are_near = [&](std::size_t a, std::size_t b) {
        return levels_->level_of_numbers(numbers[ascending[a]], numbers[ascending[b]],
                                         std::numeric_limits<double>::quiet_NaN()) > 0;
    };
    const auto size = static_cast<std::uint32_t>(ascending.size());
    near_.assign(codes_.size(), {size, size, size});
    // Numbers between two that are near are near to both, so that ends ascend as well.
    std::uint32_t begin = 0, end = 0;
    for (std::uint32_t code = 0; code < size; ++code) {
        if (code % 4096 == 0 && stop()) return Status::cancelled();
        while (begin < code && !are_near(begin, code)) ++begin;
        end = std::max(end, code + 1);
        while (end < size && are_near(code, end)) ++end;
        const double exchanged = levels_->exchanged_date(numbers[ascending[code]]);
        near_[code] = {begin, end,
                       std::isnan(exchanged)
                           ? size
                           : static_cast<std::uint32_t>(levels_->place_of(exchanged))};
    }
    return {};
}

Status PairBounds::make_parts(Stop stop) {
    for (const double weight : up_to_) parts_.push_back(parts_of(weight));
    const FieldValues& values = levels_->values();
    const bool is_text = values.kind() == FieldKind::text && levels_->has_similar_values();
    refines_ = is_text || values.kind() == FieldKind::set;
    // What no query can tell is taken for the most that it may be.
    different_ = refines_ ? parts_.back() : parts_.front();
    if (!weights_->term_frequencies() && values.kind() != FieldKind::set) {
        equal_ = parts_of(weights_->of(levels_->top_level()));
        return {};
    }
    equal_parts_.resize(values.count());
    for (std::uint32_t one = 0; one < values.count(); ++one) {
        if (one % 65536 == 0 && stop()) return Status::cancelled();
        const std::uint32_t of_code = value(one);
        equal_parts_[one] =
            parts_of(weights_->of_equal(of_code, levels_->level_of_equal(of_code)));
    }
    return {};
}

Status PairBounds::make_probes(Stop stop) {
    const FieldValues& values = levels_->values();
    const Strings strings = values.strings();
    probes_.resize(values.count());
    for (std::uint32_t value = 0; value < values.count(); ++value) {
        if (value % 65536 == 0 && stop()) return Status::cancelled();
        Probe& probe = probes_[value];
        if (values.kind() == FieldKind::set) {
            for (const std::uint32_t element : strings[value])
                probe.bits |= std::uint64_t{1} << (hash(element) >> 26);
        } else {
            const Symbols text = strings[value];
            if (text.size() >= Probe::kLong) {
                probe.length = Probe::kLong;
                continue;
            }
            probe.length = static_cast<std::uint8_t>(text.size());
            if (!text.empty()) probe.begin = static_cast<std::uint8_t>(hash(text[0]) >> 24);
            for (const std::uint32_t symbol : text) {
                const unsigned place = 2 * (hash(symbol) >> 27);
                const std::uint64_t taken = probe.bits >> place & 3;
                if (taken == 3)
                    ++probe.excess;
                else
                    probe.bits |= (taken + 1) << place;
            }
        }
    }
    return {};
}

Status PairBounds::make_highest(Stop stop) {
    highest_.resize(kLengths * kLengths * 2);
    for (std::size_t n = 0; n < kLengths; ++n) {
        if (stop()) return Status::cancelled();
        for (std::size_t m = 0; m < kLengths; ++m)
            for (const bool same_begin : {false, true})
                for (std::size_t common = 0; common < kLengths; ++common)
                    highest_[(n * kLengths + m) * 2 + same_begin][common] =
                        static_cast<std::uint8_t>(levels_->highest_level(
                            n, m, std::min({common, n, m}), same_begin));
    }
    return {};
}

}  // namespace gputext
