// bench/term_corpus.hpp - generates counts of terms in documents, of any size, from a seed
//
// Zipf's law as it is measured (with Mandelbrot's shift), and capped, as stop words are left out:
// the document frequency of term t is min(cap * N, A / (t + shift)^exponent), at least 1, with A
// such that their sum is the wanted number of non-zeros to the last one. Term numbers ascend from
// the most frequent term. A document's length follows from a log-normal weight: it lies between a
// tenth of the mean and three times the mean. Terms are independent of each other: there are no
// subjects, which makes the nearest documents farther than those of real text.
//
// The corpus is the same for any number of threads.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext::bench {

struct TermShape {
    std::size_t documents, terms, stored;
    double cap = 0.5;
    double exponent = 1;
    double shift = 10;

    /// Shape with fewer documents of the same lengths, and a vocabulary that grows with the square
    /// root of a text's length (Heaps' law).
    TermShape scaled(double factor) const {
        TermShape shape = *this;
        shape.documents = static_cast<std::size_t>(factor * static_cast<double>(documents));
        shape.stored = static_cast<std::size_t>(factor * static_cast<double>(stored));
        shape.terms = static_cast<std::size_t>(std::sqrt(factor) * static_cast<double>(terms));
        return shape;
    }
};

/// Amorim, 2019, chapter 6.
inline constexpr TermShape kMedline{861'454, 362'717, 26'500'000};
inline constexpr TermShape kPubMed{729'937, 958'067, 624'000'000};

/// Or of no documents for another name.
inline TermShape term_shape_named(const char* name) {
    if (std::strcmp(name, "medline") == 0) return kMedline;
    if (std::strcmp(name, "pubmed") == 0) return kPubMed;
    return {};
}

/// For each term in how many documents it is; their sum is shape.stored.
inline std::vector<std::uint32_t> term_frequencies(const TermShape& shape) {
    const double most = shape.cap * static_cast<double>(shape.documents);
    const auto wanted = [&](double a, std::size_t term) {
        const double rank = static_cast<double>(term) + shape.shift;
        return std::clamp(a / std::pow(rank, shape.exponent), 1.0, std::max(1.0, most));
    };
    double low = 0, high = most * std::pow(static_cast<double>(shape.terms), shape.exponent);
    for (int step = 0; step < 60; ++step) {
        const double a = (low + high) / 2;
        double sum = 0;
        for (std::size_t term = 0; term < shape.terms; ++term) sum += wanted(a, term);
        (sum < static_cast<double>(shape.stored) ? low : high) = a;
    }
    std::vector<std::uint32_t> frequencies(shape.terms);
    double exact = 0;
    std::size_t sum = 0;
    for (std::size_t term = 0; term < shape.terms; ++term) {
        exact += wanted(high, term);
        const double rest = std::floor(exact - static_cast<double>(sum) + 0.5);
        frequencies[term] = static_cast<std::uint32_t>(std::max(1.0, rest));
        sum += frequencies[term];
    }
    // What rounding left over or wanted in excess.
    for (std::size_t term = 0; sum != shape.stored; term = (term + 1) % shape.terms) {
        const int step = sum < shape.stored ? 1 : -1;
        if (step < 0 && frequencies[term] == 1) continue;
        frequencies[term] += static_cast<std::uint32_t>(step);
        sum += static_cast<std::size_t>(step);
    }
    return frequencies;
}

/// A matrix of counts: documents by terms.
class TermCorpus {
public:
    TermCorpus(const TermShape& shape, unsigned threads, std::uint64_t seed = 1)
        : shape_(shape),
          seed_(mixed(seed)),
          frequencies_(term_frequencies(shape)),
          lengths_(shape.documents),
          begins_(shape.documents + 1),
          columns_(std::make_unique_for_overwrite<std::uint32_t[]>(shape.stored)),
          counts_(std::make_unique_for_overwrite<std::int32_t[]>(shape.stored)) {
        Execution execution(threads);
        const std::size_t tiles = (shape.documents + kTile - 1) / kTile;
        for (std::size_t d = 0; d < shape.documents; ++d) lengths_[d] = length_weight(d);
        // A tile's documents get their terms in ascending order: once to count them, once to write.
        (void)execution.parallel_for(tiles, [&](std::size_t tile, unsigned) {
            each(tile, [&](std::size_t document, std::uint32_t, std::int32_t) {
                ++begins_[document + 1];
            });
            return Status();
        });
        for (std::size_t d = 0; d < shape.documents; ++d) begins_[d + 1] += begins_[d];
        (void)execution.parallel_for(tiles, [&](std::size_t tile, unsigned) {
            const std::size_t first = tile * kTile;
            std::vector<std::uint64_t> next(
                begins_.begin() + static_cast<std::ptrdiff_t>(first),
                begins_.begin() + static_cast<std::ptrdiff_t>(end_of(tile)));
            each(tile, [&](std::size_t document, std::uint32_t term, std::int32_t count) {
                const std::uint64_t at = next[document - first]++;
                columns_[at] = term;
                counts_[at] = count;
            });
            return Status();
        });
    }

    Vectors vectors() const {
        return {ElementType::int32, shape_.documents, shape_.terms,
                counts_.get(),      begins_,          columns()};
    }
    std::span<const std::uint32_t> columns() const { return {columns_.get(), shape_.stored}; }
    std::span<const std::uint32_t> frequencies() const { return frequencies_; }

private:
    static constexpr std::size_t kTile = 4096;  // their rows' ends stay in the cache

    static std::uint64_t mixed(std::uint64_t x) {
        x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
        x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
        return x ^ (x >> 32);
    }
    static double share(std::uint64_t random) {
        return static_cast<double>(random >> 11) * 0x1p-53;
    }

    std::size_t end_of(std::size_t tile) const {
        return std::min(shape_.documents, (tile + 1) * kTile);
    }
    float length_weight(std::size_t document) const {
        const std::uint64_t random = mixed(seed_ + 0x9e3779b97f4a7c15 * (document + 1));
        const double radius = std::sqrt(-2 * std::log(1 - share(random)));
        return static_cast<float>(
            std::exp(0.7 * radius * std::cos(6.283185307 * share(mixed(random)))));
    }

    /// A term that is in f documents is in one of each f-th part of them: in which one of four that
    /// are drawn from the part is decided by their weights.
    template <class Function>
    void each(std::size_t tile, Function&& function) const {
        const std::uint64_t documents = shape_.documents, first = tile * kTile, end = end_of(tile);
        for (std::uint32_t term = 0; term < shape_.terms; ++term) {
            const std::uint64_t frequency = frequencies_[term];
            const std::uint64_t quotient = documents / frequency, rest = documents % frequency;
            std::uint64_t part = ((first + 1) * frequency - 1) / documents;
            std::uint64_t begin = part * documents / frequency;
            std::uint64_t fraction = part * documents % frequency;
            const std::uint64_t salt = seed_ ^ (std::uint64_t{term} << 32);
            for (; part < frequency && begin < end; ++part) {
                std::uint64_t width = quotient;
                fraction += rest;
                if (fraction >= frequency) fraction -= frequency, ++width;
                const std::uint64_t random = mixed(salt + part);
                const std::uint64_t document = begin + drawn(begin, width, random);
                if (document >= first && document < end)
                    function(document, term, 1 + std::countr_zero(mixed(random) | 1ull << 40));
                begin += width;
            }
        }
    }

    std::uint64_t drawn(std::uint64_t begin, std::uint64_t width, std::uint64_t random) const {
        if (width == 1) return 0;
        std::array<std::uint64_t, 4> places;
        std::array<float, 4> sums;
        float sum = 0;
        for (std::size_t i = 0; i < places.size(); ++i) {
            random = random * 0x5851f42d4c957f2d + 0x14057b7ef767814f;
            places[i] = (random >> 32) * width >> 32;
            sums[i] = sum += lengths_[begin + places[i]];
        }
        random = random * 0x5851f42d4c957f2d + 0x14057b7ef767814f;
        const float at = sum * (static_cast<float>(random >> 40) * 0x1p-24f);
        std::size_t i = 0;
        while (i < 3 && sums[i] <= at) ++i;
        return places[i];
    }

    TermShape shape_;
    std::uint64_t seed_;
    std::vector<std::uint32_t> frequencies_;
    std::vector<float> lengths_;
    std::vector<std::uint64_t> begins_;
    std::unique_ptr<std::uint32_t[]> columns_;
    std::unique_ptr<std::int32_t[]> counts_;
};

/// Copies of some rows of a matrix of counts: what is asked.
class TermRows {
public:
    TermRows(const Vectors& from, std::span<const std::uint32_t> rows)
        : rows_(rows.begin(), rows.end()), begins_{0} {
        for (const std::uint32_t row : rows) {
            const std::size_t begin = from.begin(row), count = from.stored(row);
            const auto* counts = static_cast<const std::int32_t*>(from.elements) + begin;
            counts_.insert(counts_.end(), counts, counts + count);
            const auto columns = from.columns.subspan(begin, count);
            columns_.insert(columns_.end(), columns.begin(), columns.end());
            begins_.push_back(columns_.size());
        }
        dimensions_ = from.dimensions;
    }

    /// So many rows at equal distances.
    static TermRows spread(const Vectors& from, std::size_t count) {
        std::vector<std::uint32_t> rows(count);
        for (std::size_t i = 0; i < count; ++i)
            rows[i] = static_cast<std::uint32_t>(i * from.rows / count);
        return {from, rows};
    }

    Vectors vectors() const {
        return {
            ElementType::int32, begins_.size() - 1, dimensions_, counts_.data(), begins_, columns_};
    }
    /// Where they were.
    std::span<const std::uint32_t> rows() const { return rows_; }

private:
    std::vector<std::uint32_t> rows_;
    std::size_t dimensions_ = 0;
    std::vector<std::uint64_t> begins_;
    std::vector<std::uint32_t> columns_;
    std::vector<std::int32_t> counts_;
};

/// Terms and elements by document frequency, in parts of all documents and of powers of two.
inline void print_frequencies(std::span<const std::uint32_t> frequencies, std::size_t documents) {
    std::array<std::size_t, 33> terms{}, stored{};
    double touched = 0, all = 0;
    for (const std::uint32_t frequency : frequencies) {
        terms[std::bit_width(frequency)] += 1;
        stored[std::bit_width(frequency)] += frequency;
        all += frequency;
        touched += static_cast<double>(frequency) * frequency / static_cast<double>(documents);
    }
    std::printf("document frequency    of documents      terms      elements\n");
    for (std::size_t width = terms.size(); width-- > 0;) {
        if (terms[width] == 0) continue;
        const std::uint64_t least = width == 0 ? 0 : std::uint64_t{1} << (width - 1);
        std::printf("from %13llu %12.4f %%  %9zu  %12zu\n", static_cast<unsigned long long>(least),
                    100 * static_cast<double>(least) / static_cast<double>(documents), terms[width],
                    stored[width]);
    }
    std::printf("elements that share a term with a document of the corpus: %.0f (%.2f %%)\n",
                touched, 100 * touched / all);
}

}  // namespace gputext::bench
