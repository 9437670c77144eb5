// bench/movers_corpus.hpp - random models, pairs of texts and mutants of programs for benchmarks

#pragma once

#include <cstdint>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpp/embeddings/word_movers.hpp"

namespace gputext::bench {

inline constexpr std::uint32_t kVocabulary = 19200;

inline std::vector<float> random_vectors(std::size_t words, std::size_t dimensions, float spread) {
    std::mt19937 random(7);
    std::normal_distribution<float> element(0, spread);
    std::vector<float> elements(words * dimensions);
    for (float& x : elements) x = element(random);
    return elements;
}

/// Pairs in one piece.
struct Pairs {
    std::vector<std::uint64_t> begins{0};
    std::vector<WordMass> masses;
    std::vector<std::uint32_t> totals;

    TextPairs view() const { return {begins, masses, totals}; }
    TextPairs first(std::size_t count) const {
        return {std::span(begins).first(2 * count + 1), masses, std::span(totals).first(count)};
    }
    void append(std::vector<std::uint32_t>& first, std::vector<std::uint32_t>& second) {
        std::vector<WordMass> left, right;
        totals.push_back(append_masses(first, second, left, right));
        for (const auto* side : {&left, &right}) {
            masses.insert(masses.end(), side->begin(), side->end());
            begins.push_back(masses.size());
        }
    }
};

/// Pairs with `least` to `words` different words on each side, none of which is on the other.
inline Pairs random_pairs(std::size_t count, std::uint32_t words, std::uint32_t least) {
    Pairs pairs;
    std::mt19937 random(11);
    const std::uint32_t range = kVocabulary / words / 2;
    std::vector<std::uint32_t> sides[2];
    for (std::size_t pair = 0; pair < count; ++pair) {
        for (std::uint32_t which = 0; which < 2; ++which) {
            sides[which].clear();
            const std::uint32_t own =
                least + static_cast<std::uint32_t>(random() % (words - least + 1));
            for (std::uint32_t k = 0; k < own; ++k)
                sides[which].insert(
                    sides[which].end(), 1 + random() % 3,
                    (2 * k + which) * range + static_cast<std::uint32_t>(random() % range));
        }
        pairs.append(sides[0], sides[1]);
    }
    return pairs;
}

template <class T>
void write_array(const std::string& name, std::span<const T> values) {
    std::ofstream file(name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
}

/// What bench/peers/pot_movers.py and scipy_movers.py read.
inline void write_pairs(const std::string& directory, const WordVectors& vectors,
                        const TextPairs& pairs, std::span<const double> distances) {
    write_array(directory + "/model.f32",
                std::span(vectors.elements, vectors.words * vectors.dimensions));
    write_array(directory + "/begins.u64", pairs.begins);
    write_array(directory + "/masses.u32", pairs.masses.first(pairs.begins.back()));
    write_array(directory + "/distances.f64", distances.first(pairs.size()));
}

inline constexpr std::uint32_t kLines = 3465;
inline constexpr std::size_t kLineDimensions = 50;

/// A program of about 22 lines, of which low numbers are frequent.
inline std::vector<std::uint32_t> random_program(std::mt19937& random) {
    std::vector<std::uint32_t> program(12 + random() % 21);
    for (std::uint32_t& line : program) {
        const double x = static_cast<double>(random()) / 4294967296.0;
        line = static_cast<std::uint32_t>(x * x * kLines);
    }
    return program;
}

/// Lines deleted, inserted or swapped, one to ten times.
inline void mutate(std::vector<std::uint32_t>& program, std::mt19937& random) {
    const std::size_t operation = random() % 3;
    for (std::size_t level = 1 + random() % 10; level > 0 && program.size() > 1; --level) {
        const auto at = static_cast<std::ptrdiff_t>(random() % program.size());
        if (operation == 0)
            program.erase(program.begin() + at);
        else if (operation == 1)
            program.insert(program.begin() + at, static_cast<std::uint32_t>(random() % kLines));
        else
            std::swap(program[static_cast<std::size_t>(at)], program[random() % program.size()]);
    }
}

}  // namespace gputext::bench
