// bench/signature_hash_bench.cpp - signatures: bytes a second on one core
//
// Arguments: a corpus's documents.bin.

#include <algorithm>
#include <cstdio>
#include <functional>

#include "bench/corpus_reader.hpp"
#include "bench/stopwatch.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/ssdeep.hpp"

using namespace gputext;

namespace {

/// The best of several passes over the corpus; `hash` returns something that depends on the work.
void measure(const char* name, const bench::Corpus& corpus,
             const std::function<std::size_t(Bytes)>& hash) {
    double best = 1e9;
    std::size_t letters = 0;
    for (int pass = 0; pass < 5; ++pass) {
        const bench::Stopwatch stopwatch;
        letters = 0;
        for (const std::string_view document : corpus.documents())
            letters +=
                hash({reinterpret_cast<const std::uint8_t*>(document.data()), document.size()});
        best = std::min(best, stopwatch.seconds());
    }
    std::printf("%-6s %8.0f MB/s  %8.0f documents/s  (%zu letters)\n", name,
                static_cast<double>(corpus.bytes()) / best / 1e6,
                static_cast<double>(corpus.documents().size()) / best, letters);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "wanted: documents.bin\n"), 2;
    const bench::Corpus corpus(arguments[1]);
    measure("ctph", corpus,
            [](Bytes document) { return ctph_signature(document, 100)->letters.size(); });
    measure("ssdeep", corpus, [](Bytes document) { return ssdeep_hash(document)->size(); });
}
