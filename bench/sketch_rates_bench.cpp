// bench/sketch_rates_bench.cpp - how often characters and bigrams occur in documents, for
// cpp/documents/sketch_model.cpp
//
// Argument: a file of documents with a zero byte behind each. Writes the tables in C++.

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "cpp/documents/detail/sketch_counts.hpp"

using namespace gputext;

namespace {

constexpr std::uint32_t kLeastLength = 200;  // rates of shorter documents are those of chance

struct Sums {
    explicit Sums(std::size_t cells) : first(cells), second(cells) {}

    void add(const std::vector<std::uint32_t>& counts, std::uint32_t length) {
        for (std::size_t cell = 0; cell < first.size(); ++cell) {
            const double rate = double{kRateUnit} * counts[cell] / length;
            first[cell] += rate;
            second[cell] += rate * rate;
        }
        ++documents;
    }
    void print(const char* name, const char* cells) const {
        std::printf("const std::array<CellRate, %s> %s = {{", cells, name);
        for (std::size_t cell = 0; cell < first.size(); ++cell) {
            const double mean = first[cell] / documents;
            const double variance = second[cell] / documents - mean * mean;
            std::printf("%s{%.0f, %.0f},", cell % 8 == 0 ? "\n    " : " ", mean,
                        std::sqrt(std::max(0.0, variance)));
        }
        std::printf("\n}};\n");
    }

    std::vector<double> first, second;
    double documents = 0;
};

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return std::fprintf(stderr, "wanted: a file of documents\n"), 2;
    std::ifstream file(arguments[1], std::ios::binary);
    SketchCounts counts;
    Sums letters(kLetterCells), grams(kGramCells);
    for (std::string document; std::getline(file, document, '\0');) {
        const Bytes bytes{reinterpret_cast<const std::uint8_t*>(document.data()), document.size()};
        if (!counts.count(bytes, CharacterLengths::utf8(), {}) || counts.length() < kLeastLength)
            continue;
        letters.add(counts.letters(), counts.length());
        grams.add(counts.grams(), counts.length());
    }
    letters.print("kGeneralLetters", "kLetterCells");
    grams.print("kGeneralGrams", "kGramCells");
}
