#include "cpp/documents/near_duplicate_cost.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "cpp/documents/detail/exact_search.hpp"
#include "cpp/documents/detail/near_duplicate_search.hpp"
#include "cpp/documents/distinct_documents.hpp"

namespace gputext {
namespace {

// Measured by `bench/run near_duplicates FILE.bin MODE THRESHOLD` on 1,000 to 317,295 documents of
// 120 to 9,200 bytes, at thresholds of 0.02 to 0.06.
//
// Mode exact, long documents: seconds for a byte whose counts are compared, and for a pair of
// documents of comparable length.
constexpr double kCountSecondsPerByte = 6e-9;
constexpr double kCountSecondsPerPair = 5e-9;
// Mode exact otherwise: seconds for a byte, for a byte beside each further tile of 512 documents of
// comparable length, and for a byte that an index looks up, which grows with the threshold.
constexpr double kExactSecondsPerByte = 2.2e-8;
constexpr double kTileSecondsPerByte = 4e-9;
constexpr double kTileDocuments = 512;
constexpr double kIndexSecondsPerByteAndThreshold = 9e-7;
// Mode ctph: seconds for a document and a byte that are hashed, or a byte that is only verified,
// and for a pair of signatures of documents of comparable length.
constexpr double kHashSecondsPerDocument = 4e-6;
constexpr double kHashSecondsPerByte = 3e-9;
constexpr double kVerifySecondsPerByte = 1e-9;
constexpr double kSecondsPerPair = 4e-9;
// Short documents, such as names, up to a threshold and between two of them as the logarithms of
// both go: seconds for a pair of comparable length of one processor, of a GPU that needs all pairs,
// and of a GPU that connects groups. From whole statements on an NVIDIA H100 with 16 cores,
// `bench/sql_strings grid`, on names of 8 to 64 characters (2026-11-26), and for groups
// `bench/short_names_and_cluster.sql`. Random letters take less of a processor than names, whose
// syllables are often the same.
constexpr double kMostShort = 64;  // bytes
struct RatesAt {
    double threshold, cpu, device, device_groups;
};
constexpr RatesAt kShortPairRates[] = {{0.02, 2e-11, 4.4e-13, 1.7e-10},
                                       {0.05, 1.3e-10, 4.4e-13, 1.7e-10},
                                       {0.1, 9e-10, 7.2e-13, 5.1e-9},
                                       {0.2, 1.3e-8, 5.2e-11, 2.8e-8},
                                       {0.3, 1.7e-7, 2e-9, 5e-8}};
// A GPU's host takes so long for each of them besides (bench/sql_strings goals).
constexpr double kShortDeviceSecondsPerDocument = 2.5e-7;

/// Signatures of a larger rate exclude few pairs: to compare them takes longer than to compare the
/// documents.
constexpr double kTellingRate = 0.2;

/// Documents by size: 64 bins for each power of two, so that the sizes of a bin are within 1.6 %.
class Sizes {
public:
    struct Bin {
        double documents = 0;
        double bytes = 0;

        double size() const { return bytes / documents; }  // of a document
    };

    void add(const Extent& document) {
        Bin& bin = bins_[bin_of(document.size)];
        ++bin.documents;
        bin.bytes += static_cast<double>(document.size);
    }

    /// Calls function(bin, documents that are as long or longer and near enough in size).
    template <class Function>
    void each(double threshold, Function&& function) const {
        const double ratio = (1 + threshold) / (1 - threshold);
        std::size_t end = 0;
        double comparable = 0;  // in the bins from this one to `end`
        for (std::size_t i = 0; i < bins_.size(); ++i) {
            if (end < i) end = i, comparable = 0;
            for (; end < bins_.size() && (end == i || least(end) <= least(i) * ratio); ++end)
                comparable += bins_[end].documents;
            if (bins_[i].documents > 0) function(bins_[i], comparable - bins_[i].documents / 2);
            comparable -= bins_[i].documents;
        }
    }

    /// Calls function(bin, others that are near enough in size).
    template <class Function>
    void each_beside(const Sizes& others, double threshold, Function&& function) const {
        const double ratio = (1 + threshold) / (1 - threshold);
        std::size_t begin = 0, end = 0;
        double comparable = 0;  // in the others' bins from `begin` to `end`
        for (std::size_t i = 0; i < bins_.size(); ++i) {
            for (; end < bins_.size() && least(end) <= least(i) * ratio; ++end)
                comparable += others.bins_[end].documents;
            for (; least(begin) * ratio < least(i); ++begin)
                comparable -= others.bins_[begin].documents;
            if (bins_[i].documents > 0) function(bins_[i], comparable);
        }
    }

private:
    static constexpr unsigned kSteps = 6;  // bits of a size behind its highest one that tell bins
    static constexpr std::size_t kBins = std::size_t{33} << kSteps;

    static std::size_t bin_of(std::uint64_t size) {
        const std::uint64_t scaled = (std::min<std::uint64_t>(size, UINT32_MAX) + 1) << kSteps;
        const auto power = static_cast<unsigned>(std::bit_width(scaled)) - 1 - kSteps;
        return std::min(kBins - 1,
                        std::size_t{power} << kSteps | ((scaled >> power) & ((1u << kSteps) - 1)));
    }

    /// The least size of a bin, and one more.
    static double least(std::size_t bin) {
        const auto mantissa = static_cast<double>((1u << kSteps) | (bin & ((1u << kSteps) - 1)));
        return mantissa * static_cast<double>(std::uint64_t{1} << (bin >> kSteps)) /
               static_cast<double>(1u << kSteps);
    }

    std::array<Bin, kBins> bins_{};
};

/// Seconds of a pair of short documents.
double short_pair_seconds(double threshold, double RatesAt::*rate) {
    const RatesAt* from = std::begin(kShortPairRates);
    if (threshold <= from->threshold) return from->*rate;
    // Above the last threshold the last two rates are extrapolated.
    while (from + 2 != std::end(kShortPairRates) && threshold > from[1].threshold) ++from;
    const double share =
        std::log(threshold / from->threshold) / std::log(from[1].threshold / from->threshold);
    return from->*rate * std::pow(from[1].*rate / (from->*rate), share);
}

/// Seconds for a document that is compared with `comparable` others, of which a table has been
/// made.
double row_seconds(double size, double comparable, double threshold) {
    if (size >= kLeastCounted && threshold <= kMostCountedThreshold)
        return kCountSecondsPerByte * size + kCountSecondsPerPair * comparable;
    double per_byte = kTileSecondsPerByte * (1 + comparable / kTileDocuments);
    if (comparable >= kLeastIndexed)
        per_byte = std::min(per_byte, kIndexSecondsPerByteAndThreshold * threshold);
    return per_byte * size;
}

/// Seconds for a document with `comparable` others that is also entered into a table.
double exact_seconds(double size, double comparable, double threshold) {
    if (size >= kLeastCounted && threshold <= kMostCountedThreshold)
        return kCountSecondsPerByte * size + kCountSecondsPerPair * comparable;
    double per_byte = kTileSecondsPerByte * comparable / kTileDocuments;
    if (comparable >= kLeastIndexed)
        per_byte = std::min(per_byte, kIndexSecondsPerByteAndThreshold * threshold);
    return (kExactSecondsPerByte + per_byte) * size;
}

/// What a search takes in all.
class Costs {
public:
    Costs(double threshold, bool signatures_given)
        : threshold_(threshold), signatures_given_(signatures_given) {}

    /// Adds documents, each with `comparable` others.
    void add(const Sizes::Bin& bin, double comparable) {
        add(bin, comparable, exact_seconds(bin.size(), comparable, threshold_));
    }
    /// Adds documents that no table is made of.
    void add_rows(const Sizes::Bin& bin, double comparable) {
        add(bin, comparable, row_seconds(bin.size(), comparable, threshold_));
    }

    NearDuplicateSeconds seconds() const {
        NearDuplicateSeconds seconds = seconds_;
        seconds.documents_first =
            signature_rate(threshold_) > kTellingRate || seconds.exact < seconds.signatures_first;
        seconds.ctph = seconds.documents_first ? seconds.exact : seconds.signatures_first;
        return seconds;
    }

private:
    void add(const Sizes::Bin& bin, double comparable, double exact) {
        const double hashing = kHashSecondsPerDocument + kHashSecondsPerByte * bin.size();
        seconds_.exact += bin.documents * exact;
        if (bin.size() <= kMostShort) {
            const double pairs = bin.documents * comparable;
            seconds_.exact += pairs * short_pair_seconds(threshold_, &RatesAt::cpu);
            seconds_.device += bin.documents * kShortDeviceSecondsPerDocument +
                               pairs * short_pair_seconds(threshold_, &RatesAt::device);
            seconds_.device_groups +=
                pairs * short_pair_seconds(threshold_, &RatesAt::device_groups);
        }
        const double pairs = bin.documents * kSecondsPerPair * comparable;
        seconds_.signature_pairs += pairs;
        seconds_.signatures_first +=
            bin.documents * (signatures_given_ ? kVerifySecondsPerByte * bin.size() : hashing) +
            pairs;
    }

    double threshold_;
    bool signatures_given_;
    NearDuplicateSeconds seconds_;
};

/// Between two sides, of which `side` has the rows. `side_of` tells a document's side, or sides.
template <class SideOf>
NearDuplicateSeconds estimate_between(std::span<const Extent> documents, Costs costs,
                                      double threshold, std::uint8_t side, SideOf&& side_of) {
    Sizes rows, columns;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        if ((side_of(i) & side) != 0) rows.add(documents[i]);
        if ((side_of(i) & ~side) != 0) columns.add(documents[i]);
    }
    rows.each_beside(columns, threshold, [&](const Sizes::Bin& bin, double comparable) {
        costs.add_rows(bin, comparable);
    });
    // Tables are made of the columns, which are not compared once more.
    columns.each_beside(rows, threshold, [&](const Sizes::Bin& bin, double) { costs.add(bin, 0); });
    return costs.seconds();
}

}  // namespace

NearDuplicateSeconds estimate_near_duplicates(std::span<const Extent> documents, double threshold,
                                              bool signatures_given, std::uint32_t split) {
    Costs costs(threshold, signatures_given);
    if (split > 0)
        return estimate_between(
            documents, costs, threshold, split > documents.size() / 2 ? kFirstSide : kSecondSide,
            [=](std::size_t i) { return i < split ? kFirstSide : kSecondSide; });
    Sizes sizes;
    for (const Extent& document : documents) sizes.add(document);
    sizes.each(threshold,
               [&](const Sizes::Bin& bin, double comparable) { costs.add(bin, comparable); });
    return costs.seconds();
}

NearDuplicateSeconds estimate_near_duplicates(const DistinctDocuments& documents,
                                              double threshold) {
    const std::span<const Extent> extents = documents.documents.extents;
    const bool signatures_given = !documents.signatures.empty();
    if (documents.sides.empty())
        return estimate_near_duplicates(extents, threshold, signatures_given);
    return estimate_between(extents, Costs(threshold, signatures_given), threshold,
                            row_side(documents.sides),
                            [&](std::size_t i) { return documents.sides[i]; });
}

}  // namespace gputext
