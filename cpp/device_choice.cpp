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

// Of one core of a Zen 4, from gpu_knn with 20,000 items, 1,000 to 5,000 queries, 41 and 768
// dimensions and the 10 nearest, and from cosine_similarities on the same: seconds for a pair and
// for each of its dimensions by the filter; for a dimension without it, as for sparse vectors and
// few queries; and for a number that is checked, hashed and packed, or only checked.
constexpr double kFilterSecondsPerPair = 5e-10;
constexpr double kFilterSecondsPerElement = 1.3e-11;
constexpr double kPlainSecondsPerElement = 1.7e-10;
constexpr double kPackSecondsPerElement = 6e-9;
constexpr double kReadSecondsPerElement = 1e-9;
constexpr double kSimilaritySecondsPerElement = 3e-10;

// Of what one thread takes, the part that more threads do not share: 16 of them take a twelfth.
constexpr double kUnsharedPart = 0.03;

// Of a device: connecting, launching, returning; and mapping, hashing and copying the input. From
// `bench/sql_gpu` on an H200 beside 16 cores, where the medians of jobs of 10 to 20,000 documents
// of 10 KB lie about this line, and both take the same time from 2,000 to 5,000 documents.
constexpr double kDeviceSeconds = 0.005;
constexpr double kDeviceSecondsPerByte = 1 / 4e9;

double shared_by(double seconds, unsigned threads) {
    return seconds * (kUnsharedPart + (1 - kUnsharedPart) / std::max(1u, threads));
}

/// Elements that are stored.
double elements_of(const Vectors& vectors) {
    return static_cast<double>(vectors.sparse() ? vectors.row_begins.back()
                                                : vectors.rows * vectors.dimensions);
}

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
    return shared_by(seconds, threads);
}

double knn_cpu_seconds(const Vectors& queries, const Vectors& items, unsigned threads) {
    const auto count = static_cast<double>(queries.rows);
    const double elements = elements_of(items);
    const double all_elements = elements + elements_of(queries);
    if (items.sparse() || queries.rows < 4)
        return shared_by(
            kPlainSecondsPerElement * elements * count + kReadSecondsPerElement * all_elements,
            threads);
    return shared_by(kFilterSecondsPerElement * elements * count +
                         kFilterSecondsPerPair * static_cast<double>(items.rows) * count +
                         kPackSecondsPerElement * all_elements,
                     threads);
}

double similarities_cpu_seconds(const Vectors& items, unsigned threads) {
    return shared_by(kSimilaritySecondsPerElement * elements_of(items), threads);
}

}  // namespace gputext
