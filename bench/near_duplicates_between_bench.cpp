// bench/near_duplicates_between_bench.cpp - new documents against old ones on the CPU
//
// Arguments: the numbers of new and of old documents, their mean length, a threshold. The documents
// are generated; one new document in ten is a version of an old one. For each mode, on one thread:
// processor seconds and pairs between new and old documents, and of all documents together, which
// have as many pairs across. Phases that take a hundredth of the time or more follow.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/stopwatch.hpp"
#include "bench/text_documents.hpp"
#include "cpp/documents/near_duplicates.hpp"

using namespace gputext;

namespace {

constexpr std::uint64_t kSeed = 20261123;

std::size_t number(int count, char** arguments, int at, std::size_t otherwise) {
    return count > at ? std::strtoull(arguments[at], nullptr, 10) : otherwise;
}

/// New documents, then old ones, in one block of memory.
struct Texts {
    std::string bytes;
    std::vector<Extent> extents;

    void add(const std::string& text) {
        extents.push_back({bytes.size(), text.size()});
        bytes += text;
    }
    std::string text(std::size_t i) const {
        return bytes.substr(extents[i].begin, extents[i].size);
    }
    Documents documents() const {
        return {reinterpret_cast<const std::uint8_t*>(bytes.data()), extents,
                CharacterLengths::single_byte()};
    }
};

Texts new_and_old(std::size_t new_count, std::size_t old_count, std::size_t length) {
    bench::TextDocuments random(kSeed);
    std::vector<std::string> old_texts;
    while (old_texts.size() < old_count)
        old_texts.push_back(random.document(length / 2 + random.below(length)));
    Texts texts;
    while (texts.extents.size() < new_count) {
        const bool version = texts.extents.size() % 10 == 0;
        const std::string& old_text = old_texts[random.below(old_count)];
        const auto sum = static_cast<double>(2 * old_text.size());
        texts.add(version ? random.version(old_text,
                                           static_cast<std::size_t>(random.realistic_rate() * sum))
                          : random.document(length / 2 + random.below(length)));
    }
    for (const std::string& text : old_texts) texts.add(text);
    return texts;
}

bool measure(const char* name, const Texts& texts, const NearDuplicateParameters& parameters) {
    Execution execution(1);
    const bench::Stopwatch watch;
    const auto answer = near_duplicates(parameters, texts.documents(), {}, execution);
    const double seconds = watch.seconds();
    if (!answer.ok()) {
        std::fprintf(stderr, "%s\n", answer.status().message().c_str());
        return false;
    }
    std::printf("  %-24s %7.3f s, %8llu pairs:", name, seconds,
                static_cast<unsigned long long>(answer->pairs()));
    for (const PhaseTime& phase : execution.phase_times())
        if (phase.seconds > seconds / 100)
            std::printf(" %s %.3f", phase.name.c_str(), phase.seconds);
    std::printf("\n");
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    const std::size_t new_count = number(count, arguments, 1, 1000);
    const std::size_t old_count = number(count, arguments, 2, 100'000);
    const std::size_t length = number(count, arguments, 3, 2000);
    const double threshold = count > 4 ? std::atof(arguments[4]) : 0.05;
    const Texts texts = new_and_old(new_count, old_count, length);
    for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact}) {
        std::printf("%s %g: %zu new documents, %zu old ones of %zu bytes\n",
                    mode == NearDuplicateMode::ctph ? "ctph" : "exact", threshold, new_count,
                    old_count, length);
        NearDuplicateParameters parameters{threshold, mode};
        parameters.split = static_cast<std::uint32_t>(new_count);
        if (!measure("new with old", texts, parameters)) return 1;
        parameters.split = 0;
        if (!measure("all with all", texts, parameters)) return 1;
    }
}
