// bench/near_duplicate_groups_bench.cpp - near_duplicate_groups on documents of a few large
// clusters
//
// Arguments: a shape, ctph or exact, a threshold, the number of threads, and numbers of documents,
// each of which is one row of the table that is printed. Documents have 940 characters. Shapes: one
// (a cluster in which all documents are near each other: 32 characters of one text are replaced, at
// 800 places), outliers (the same, and one unrelated document in a hundred), ten (of such
// clusters), thousand (clusters), chain (each document is eight edits away from the one before it),
// apart (two clusters a little further apart than the threshold). "pairs" as the last argument also
// finds all near pairs, for comparison.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/expect.hpp"
#include "cpp/documents/near_duplicates.hpp"

using namespace gputext;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLength = 940;
constexpr std::string_view kLetters = "etaoinshrdlcumwfgypbvk     ";

/// Of all threads of this process.
double processor_seconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::size_t peak_megabytes() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss) / 1024;
}

class Texts {
public:
    std::vector<std::string> make(std::string_view shape, std::size_t count) {
        std::vector<std::string> texts;
        if (shape == "chain") {
            std::string text = random_text();
            while (texts.size() < count) {
                for (int edit = 0; edit < 8; ++edit) text[below(kLength)] = letter();
                texts.push_back(text);
            }
            return texts;
        }
        std::vector<std::string> bases;
        const std::size_t clusters = shape == "ten" ? 10 : shape == "thousand" ? 1000 : 1;
        while (bases.size() < clusters) bases.push_back(random_text());
        if (shape == "apart") {
            bases.push_back(bases.front());
            for (std::size_t i = 0; i < kLength; i += 4) bases.back()[i] = '#';
        }
        for (std::size_t i = 0; i < count; ++i)
            texts.push_back(shape == "outliers" && i % 100 == 0 ? random_text()
                                                                : version(bases[i % bases.size()]));
        return texts;
    }

private:
    std::size_t below(std::size_t bound) { return random_() % bound; }
    char letter() { return kLetters[below(kLetters.size())]; }

    std::string random_text() {
        std::string text(kLength, ' ');
        for (char& symbol : text) symbol = letter();
        return text;
    }

    std::string version(std::string text) {
        const std::size_t place = below(800);
        for (std::size_t i = place; i < place + 32; ++i) text[i] = letter();
        return text;
    }

    std::mt19937_64 random_{7};
};

struct Measured {
    double seconds, processor_seconds;
    NearDuplicates answer;
};

Measured measure(const NearDuplicateParameters& parameters, const std::vector<std::string>& texts,
                 unsigned threads) {
    std::string bytes;
    std::vector<Extent> extents;
    for (const std::string& text : texts) {
        extents.push_back({bytes.size(), text.size()});
        bytes += text;
    }
    const Documents documents{reinterpret_cast<const std::uint8_t*>(bytes.data()), extents,
                              CharacterLengths::utf8()};
    Execution execution(threads);
    const auto start = Clock::now();
    const double busy = processor_seconds();
    auto answer = bench::expect(near_duplicates(parameters, documents, {}, execution));
    return {std::chrono::duration<double>(Clock::now() - start).count(), processor_seconds() - busy,
            std::move(answer)};
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 6)
        return std::fprintf(stderr, "wanted: SHAPE MODE THRESHOLD THREADS DOCUMENTS... [pairs]\n"),
               2;
    NearDuplicateParameters parameters;
    parameters.mode = std::strcmp(arguments[2], "exact") == 0 ? NearDuplicateMode::exact
                                                              : NearDuplicateMode::ctph;
    parameters.threshold = std::atof(arguments[3]);
    const auto threads = static_cast<unsigned>(std::atoi(arguments[4]));
    const bool with_pairs = std::strcmp(arguments[count - 1], "pairs") == 0;
    std::printf("documents   groups  seconds  processor s  peak MB%s\n",
                with_pairs ? "  pairs: processor s" : "");
    for (int i = 5; i < count - (with_pairs ? 1 : 0); ++i) {
        const auto texts = Texts().make(arguments[1], std::strtoull(arguments[i], nullptr, 10));
        parameters.components_only = true;
        const Measured groups = measure(parameters, texts, threads);
        const auto firsts = bench::expect(groups.answer.components());
        std::size_t number = 0;
        for (std::uint32_t k = 0; k < firsts.size(); ++k) number += firsts[k] == k;
        std::printf("%9zu %8zu %8.3f %12.3f %8zu", texts.size(), number, groups.seconds,
                    groups.processor_seconds, peak_megabytes());
        if (with_pairs) {
            parameters.components_only = false;
            const Measured pairs = measure(parameters, texts, threads);
            if (bench::expect(pairs.answer.components()) != firsts)
                return std::fprintf(stderr, "the components differ\n"), 1;
            std::printf(" %19.3f", pairs.processor_seconds);
        }
        std::printf("\n");
        std::fflush(stdout);
    }
}
