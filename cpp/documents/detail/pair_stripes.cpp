#include "cpp/documents/detail/pair_stripes.hpp"

#include <algorithm>

#include "cpp/base/radix_sort.hpp"

namespace gputext {
namespace {

constexpr std::size_t kRowBlock = 64;  // of a device's tiles
constexpr std::size_t kStripesOfPart = 32;
/// Devices that hold a part of the documents at a time cut these into other row blocks, so that
/// they look at some row blocks of other parts, too, at the ends of each stripe.
constexpr std::size_t kMostStripe = 1024;

}  // namespace

bool rows_of_part(std::span<const std::uint32_t> lengths, const PairPart& part, Stop stop,
                  std::vector<std::uint8_t>& rows) {
    rows.clear();
    if (part.count == 1) return true;
    std::vector<std::uint64_t> keys(lengths.size());
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = std::uint64_t{lengths[i]} << 32 | i;
    if (!radix_sort(keys, stop)) return false;
    const std::size_t blocks = keys.size() / (kStripesOfPart * part.count) / kRowBlock;
    const std::size_t stripe = std::clamp(blocks * kRowBlock, kRowBlock, kMostStripe);
    rows.resize(keys.size());
    for (std::size_t place = 0; place < keys.size(); ++place)
        rows[static_cast<std::uint32_t>(keys[place])] = has_stripe(part, place / stripe) ? 1 : 0;
    return true;
}

}  // namespace gputext
