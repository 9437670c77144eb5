#include "cpp/records/detail/pair_bounds.hpp"

#include <algorithm>

namespace gputext {
namespace {

std::uint32_t hash(std::uint32_t symbol) {
    return symbol * std::uint32_t{0x9e3779b1};
}

constexpr std::size_t kLengths = 65;  // 0 to 64

}  // namespace

Status PairBounds::set(Stop stop) {
    double most = weights_->of(0);
    up_to_.push_back(most);
    for (int level = 1; level <= levels_->top_level(); ++level) {
        if (levels_->comparison().condition(level).kind != ConditionKind::exact)
            most = std::max(most, weights_->of(level));
        up_to_.push_back(most);
    }
    GPUTEXT_TRY(make_probes(stop));
    if (levels_->values().kind() == FieldKind::text && levels_->has_similar_values())
        return make_highest(stop);
    return {};
}

Status PairBounds::make_probes(Stop stop) {
    const FieldValues& values = levels_->values();
    const Strings strings = values.strings();
    probes_.resize(values.count());
    for (std::uint32_t value = 0; value < values.count(); ++value) {
        if (value % 65536 == 0 && stop()) return Status::cancelled();
        Probe& probe = probes_[value];
        probe.value = value;
        if (is_number(values.kind())) {
            probe.bits = std::bit_cast<std::uint64_t>(values.numbers()[value]);
        } else if (values.kind() == FieldKind::set) {
            for (const std::uint32_t element : strings[value])
                probe.bits |= std::uint64_t{1} << (hash(element) >> 26);
        } else if (values.kind() == FieldKind::text) {
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

PairBounds::Query::Query(const PairBounds& bounds, const Probe& probe)
    : bounds_(&bounds), probe_(probe), is_null_(probe.value == kNullValue) {
    if (is_null_) return;
    equal_ = bounds.weights_->of_equal(probe.value, bounds.levels_->level_of_equal(probe.value));
    most_ = std::max({0.0, equal_, bounds.up_to_.back()});
    if (is_number(bounds.levels_->values().kind()))
        exchanged_ = bounds.levels_->exchanged_date(std::bit_cast<double>(probe.bits));
}

}  // namespace gputext
