#include "cpp/device_choice.hpp"

#include <algorithm>

namespace gputext {
namespace {

// Of one core of a Zen 4, from the table "Where the time goes" in docs/benchmarks.md, which
// `bench/run thesis_job` measures: seconds for 200 MB, seconds for 2e8 pairs.
constexpr double kCtphSecondsPerByte = (0.07 + 0.33 + 0.41) / 200e6;
constexpr double kCtphGivenSecondsPerByte = (0.07 + 0.41) / 200e6;
constexpr double kExactSecondsPerByte = (0.29 + 0.36 + 0.99) / 200e6;
constexpr double kCtphSecondsPerPair = 0.10 / 2e8;
constexpr double kExactSecondsPerPair = 0.12 / 2e8;

// Of a device: connecting, allocating, launching, returning; and sealing, mapping and copying the
// input. Bounds that a device is to keep, until they are measured by comparing
// `gputext.device = cpu` and `gpu` on jobs of growing size.
constexpr double kDeviceSeconds = 0.030;
constexpr double kDeviceSecondsPerByte = 1 / 5e9;

}  // namespace

bool worth_a_device(const JobSize& size) {
    const double overhead =
        kDeviceSeconds + kDeviceSecondsPerByte * static_cast<double>(size.bytes);
    return size.cpu_seconds > overhead;
}

double near_duplicates_cpu_seconds(NearDuplicateMode mode, std::uint64_t documents,
                                   std::uint64_t bytes, bool signatures_given, unsigned threads) {
    const bool exact = mode == NearDuplicateMode::exact;
    const double per_byte = exact              ? kExactSecondsPerByte
                            : signatures_given ? kCtphGivenSecondsPerByte
                                               : kCtphSecondsPerByte;
    const auto count = static_cast<double>(documents);
    const double pairs = std::max(0.0, count * (count - 1) / 2);
    const double seconds = per_byte * static_cast<double>(bytes) +
                           (exact ? kExactSecondsPerPair : kCtphSecondsPerPair) * pairs;
    return seconds / std::max(1u, threads);
}

}  // namespace gputext
