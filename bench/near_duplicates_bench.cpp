// bench/near_duplicates_bench.cpp - near_duplicates on a corpus: time by phase
//
// Arguments: a corpus's documents.bin, ctph or exact, a threshold, the number of threads, and
// optionally a file to write the pairs of ids and their edit rates to.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "bench/corpus_reader.hpp"
#include "cpp/documents/near_duplicates.hpp"

using namespace gputext;
using Clock = std::chrono::steady_clock;

/// Of all threads of this process.
static double processor_seconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int main(int count, char** arguments) {
    if (count < 5)
        return std::fprintf(
                   stderr,
                   "wanted: documents.bin mode threshold threads [pairs.tsv [megabytes]]\n"),
               2;
    const bench::Corpus corpus(arguments[1]);
    std::vector<Extent> extents;
    const std::string_view first = corpus.documents().front();
    for (const std::string_view document : corpus.documents())
        extents.push_back(
            {static_cast<std::uint64_t>(document.data() - first.data()), document.size()});
    const Documents documents{reinterpret_cast<const std::uint8_t*>(first.data()), extents,
                              CharacterLengths::utf8()};
    NearDuplicateParameters parameters;
    parameters.mode = std::strcmp(arguments[2], "exact") == 0 ? NearDuplicateMode::exact
                                                              : NearDuplicateMode::ctph;
    parameters.threshold = std::atof(arguments[3]);
    if (count > 6) parameters.memory_limit = std::strtoull(arguments[6], nullptr, 10) << 20;
    Execution execution(static_cast<unsigned>(std::atoi(arguments[4])));

    const auto start = Clock::now();
    const double busy_before = processor_seconds();
    const auto answer = near_duplicates(parameters, documents, {}, execution);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double busy = processor_seconds() - busy_before;
    // Not measured by a thread beside it, whose time would count.
    const std::vector<PhaseTime> phases = execution.phase_times();
    if (!answer.ok()) return std::fprintf(stderr, "%s\n", answer.status().message().c_str()), 1;

    std::printf("%s %s: %zu documents, %.1f MB, %.3f s, %.2f processor s, %llu pairs\n",
                arguments[2], arguments[3], documents.size(),
                static_cast<double>(corpus.bytes()) / 1e6, seconds, busy,
                static_cast<unsigned long long>(answer->pairs()));
    for (const PhaseTime& phase : phases)
        std::printf("  %-22s %7.3f s\n", phase.name.c_str(), phase.seconds);
    if (count < 6 || std::strcmp(arguments[5], "-") == 0) return 0;
    std::ofstream file(arguments[5]);
    file.precision(17);
    std::vector<NearDuplicate> neighbors;
    for (std::uint32_t i = 0; i < answer->documents(); ++i) {
        answer->later_neighbors(i, neighbors);
        for (const NearDuplicate& neighbor : neighbors)
            file << i + 1 << '\t' << neighbor.document + 1 << '\t' << neighbor.edit_rate << '\n';
    }
}
