#include "cpp/link/device_choice.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace gputext {
namespace {

// Measured on one core of an AMD EPYC, by gpu_knn with 20,000 items, 1,000 to 5,000 queries, 41 and
// 768 dimensions and the 10 nearest, and by cosine_similarities on these items: seconds for a pair
// and for each of its dimensions by the filter; for a dimension without the filter, as for sparse
// vectors and few queries; and for a number that is checked, hashed and packed, or only checked.
constexpr double kFilterSecondsPerPair = 5e-10;
constexpr double kFilterSecondsPerElement = 1.3e-11;
constexpr double kPlainSecondsPerElement = 1.7e-10;
constexpr double kPackSecondsPerElement = 6e-9;
constexpr double kReadSecondsPerElement = 1e-9;
constexpr double kSimilaritySecondsPerElement = 3e-10;

// Measured on one core of an AMD EPYC, `bench/run term_knn medline`: seconds for a term that a
// query and an item share, for a pair's score, for an element of the items that is indexed, and for
// one that a few queries read instead, each.
constexpr double kTermSecondsPerPosting = 7e-10;
constexpr double kTermSecondsPerPair = 2.5e-10;
constexpr double kIndexSecondsPerElement = 4.5e-8;
constexpr double kTermScanSecondsPerElement = 1.2e-8;

// Measured on one core of an AMD EPYC, `bench/sql_trie`: seconds for looking up a word of about ten
// bytes, and more for each doubling of the dictionary's size beyond what a cache holds; and for
// each word of a dictionary that is built, and for each of its bytes.
constexpr double kLookupSecondsPerWord = 1.1e-7;
constexpr double kLookupSecondsPerDoubling = 1.5e-8;
constexpr double kCachedDictionaryBytes = 1 << 20;
constexpr double kBuildSecondsPerWord = 1e-7;
constexpr double kBuildSecondsPerByte = 1.2e-8;

// Measured on one core of an AMD EPYC, `bench/run word_similarity` on 21 million English words:
// seconds for counting a word and a place beside it; and for weighing and comparing such a
// count.
constexpr double kCountSecondsPerPlace = 1.5e-8;
constexpr double kCompareSecondsPerPlace = 7.4e-8;
constexpr double kCompareSecondsPerCount = 3.6e-7;

// Measured on one core of an AMD EPYC, by word2vec() with 20 to 200 dimensions, and halved, since
// about half of the words are left out: seconds for a word in an epoch; and for an element of the
// product of a context and an output, the updates included.
constexpr double kTrainSecondsPerWord = 4e-7;
constexpr double kTrainSecondsPerElement = 1.2e-10;
// On a device, the seconds between two steps.
constexpr double kDeviceSecondsPerStep = 2e-5;

// Measured on one core of an AMD EPYC, `bench/run word_movers`: seconds for the distance of two
// words, and for each of its dimensions; for two words between which masses may be carried; for a
// word's term in a softmax sum, and for each of its dimensions; for looking up a token.
constexpr double kCostSeconds = 6e-9;
constexpr double kCostSecondsPerDimension = 8e-11;
constexpr double kCarrySeconds = 3.8e-8;
constexpr double kNextWordSeconds = 1.2e-8;
constexpr double kNextWordSecondsPerDimension = 1.7e-10;
constexpr double kNextTokenSeconds = 1.2e-7;

// Part of one thread's time that further threads do not reduce: 16 threads take a twelfth.
constexpr double kUnsharedPart = 0.03;

// Costs of a device: connecting, launching, returning; and mapping, checking and copying the input.
// From `bench/sql_resident` on an H200 with 16 cores: documents of 258 MB take 0.02 s in all, at 11
// GB/s, and vectors of 3 GB 0.11 s, at 28 GB/s. Most hosts have slower links.
constexpr double kDeviceSeconds = 0.005;
constexpr double kDeviceSecondsPerByte = 1 / 1e10;
// Of a job on resident vectors there is nothing to map, to check and to copy but the
// queries: a statement with one query among 1 million of 768 dimensions took 1.9 ms there, 0.7 ms
// of them on the device. A session that computes on the CPU maps and checks them anew.
constexpr double kResidentDeviceSeconds = 0.0015;

double shared_by(double seconds, unsigned threads) {
    return seconds * (kUnsharedPart + (1 - kUnsharedPart) / std::max(1u, threads));
}

/// Elements that are stored.
double elements_of(const Vectors& vectors) {
    return static_cast<double>(vectors.sparse() ? vectors.row_begins.back()
                                                : vectors.rows * vectors.dimensions);
}

/// Rows at equal distances: at most `most` of them, with about so many elements.
template <class Function>
double each_sampled(const Vectors& vectors, std::size_t most, std::size_t elements,
                    Function&& function) {
    const std::size_t fit = elements / (vectors.average_stored() + 1) + 1;
    const std::size_t count = std::min({vectors.rows, most, fit});
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = i * vectors.rows / count;
        for (const std::uint32_t column :
             vectors.columns.subspan(vectors.begin(row), vectors.stored(row)))
            function(column);
    }
    return static_cast<double>(vectors.rows) / static_cast<double>(count);
}

/// About how many times a query and an item share a column.
double shared_columns(const Vectors& queries, const Vectors& items) {
    if (queries.rows == 0 || items.rows == 0) return 0;
    std::unordered_map<std::uint32_t, std::uint32_t> asked;
    double touched = 0;
    const double query_part =
        each_sampled(queries, 256, 1 << 16, [&](std::uint32_t column) { ++asked[column]; });
    const double item_part = each_sampled(items, 1 << 16, 1 << 17, [&](std::uint32_t column) {
        if (const auto found = asked.find(column); found != asked.end()) touched += found->second;
    });
    return touched * query_part * item_part;
}

/// Of a search within keys: each pair by itself, at `per_element`, or as a search without keys
/// would, which large groups are searched by, whichever is less.
double keyed_cpu_seconds(double without_keys, double per_element, const Vectors& queries,
                         const Vectors& items, double pairs, unsigned threads) {
    if (queries.rows == 0 || items.rows == 0) return 0;
    const double compared = per_element * static_cast<double>(items.average_stored()) * pairs;
    const double read = kReadSecondsPerElement * (elements_of(queries) + elements_of(items));
    return std::min(shared_by(compared + read, threads), without_keys);
}

}  // namespace

bool worth_a_device(const JobSize& size) {
    const double beginning = size.resident_bytes > 0 ? kResidentDeviceSeconds : kDeviceSeconds;
    const double overhead =
        beginning + kDeviceSecondsPerByte * static_cast<double>(size.bytes - size.resident_bytes) +
        size.device_seconds;
    return size.cpu_seconds > overhead;
}

double near_duplicates_cpu_seconds(NearDuplicateMode mode, const NearDuplicateSeconds& seconds,
                                   unsigned threads) {
    return shared_by(mode == NearDuplicateMode::exact ? seconds.exact : seconds.ctph, threads);
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

double keyed_knn_cpu_seconds(const Vectors& queries, const Vectors& items, double pairs,
                             unsigned threads) {
    return keyed_cpu_seconds(knn_cpu_seconds(queries, items, threads), kPlainSecondsPerElement,
                             queries, items, pairs, threads);
}

double keyed_term_knn_cpu_seconds(const Vectors& queries, const Vectors& items, double pairs,
                                  unsigned threads) {
    return keyed_cpu_seconds(term_knn_cpu_seconds(queries, items, threads),
                             kTermScanSecondsPerElement, queries, items, pairs, threads);
}

double term_knn_cpu_seconds(const Vectors& queries, const Vectors& items, unsigned threads) {
    const double elements = elements_of(items), all_elements = elements + elements_of(queries);
    const auto count = static_cast<double>(queries.rows);
    const double reading = kReadSecondsPerElement * all_elements;
    if (queries.rows < 8)
        return shared_by(reading + kTermScanSecondsPerElement * elements * count, threads);
    return shared_by(reading + kIndexSecondsPerElement * elements +
                         kTermSecondsPerPair * count * static_cast<double>(items.rows) +
                         kTermSecondsPerPosting * shared_columns(queries, items),
                     threads);
}

double word_lookup_cpu_seconds(std::uint64_t words, std::uint64_t dictionary_bytes,
                               unsigned threads) {
    const double larger =
        std::max(1.0, static_cast<double>(dictionary_bytes) / kCachedDictionaryBytes);
    const double per_word = kLookupSecondsPerWord + kLookupSecondsPerDoubling * std::log2(larger);
    return shared_by(per_word * static_cast<double>(words), threads);
}

double trie_build_cpu_seconds(std::uint64_t words, std::uint64_t bytes, unsigned threads) {
    return shared_by(kBuildSecondsPerWord * static_cast<double>(words) +
                         kBuildSecondsPerByte * static_cast<double>(bytes),
                     threads);
}

double word_similarity_cpu_seconds(std::uint64_t tokens, const CooccurrenceShape& shape,
                                   unsigned threads) {
    const double places = 2.0 * shape.window * static_cast<double>(tokens);
    return shared_by((kCountSecondsPerPlace + kCompareSecondsPerPlace) * places, threads);
}

double counted_similarity_cpu_seconds(std::uint64_t counts, unsigned threads) {
    return shared_by(kCompareSecondsPerCount * static_cast<double>(counts), threads);
}

double word2vec_cpu_seconds(const TrainerParameters& parameters, std::uint64_t tokens,
                            unsigned threads) {
    const double context = parameters.window + 1.0, outputs = parameters.negative + 1.0;
    const double products =
        parameters.model == WordModel::skipgram ? context * outputs : context + outputs;
    const double per_word =
        kTrainSecondsPerWord + kTrainSecondsPerElement * products * parameters.dimensions;
    return shared_by(per_word * static_cast<double>(tokens) * parameters.epochs,
                     trainer_threads(parameters.batch, threads));
}

double word2vec_device_seconds(const TrainerParameters& parameters, std::uint64_t tokens) {
    return kDeviceSecondsPerStep * static_cast<double>(tokens) / parameters.batch *
           parameters.epochs;
}

double word_movers_cpu_seconds(MoversMethod method, const TextPairs& pairs, std::size_t dimensions,
                               unsigned threads) {
    double cells = 0;
    for (std::size_t pair = 0; pair < pairs.size(); ++pair)
        cells += static_cast<double>(pairs.side(pair, 0).size()) *
                 static_cast<double>(pairs.side(pair, 1).size());
    const double per_cell = kCostSeconds +
                            kCostSecondsPerDimension * static_cast<double>(dimensions) +
                            (method == MoversMethod::exact ? kCarrySeconds : 0);
    return shared_by(per_cell * cells, threads);
}

double sequence_cpu_seconds(std::uint64_t words, std::uint64_t tokens, std::size_t dimensions,
                            unsigned threads) {
    const auto contexts = static_cast<double>(std::min(words, tokens));
    const double per_word =
        kNextWordSeconds + kNextWordSecondsPerDimension * static_cast<double>(dimensions);
    return shared_by(per_word * contexts * static_cast<double>(words) +
                         kNextTokenSeconds * static_cast<double>(tokens),
                     threads);
}

double similarities_cpu_seconds(const Vectors& items, unsigned threads) {
    return shared_by(kSimilaritySecondsPerElement * elements_of(items), threads);
}

}  // namespace gputext
