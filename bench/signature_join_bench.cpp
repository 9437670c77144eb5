// bench/signature_join_bench.cpp - exact join of signatures: pairs a second on one core
//
// Arguments: a corpus's documents.bin, an edit rate, and a file to write the signatures to, one a
// line, for peers to join.

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "bench/corpus_reader.hpp"
#include "bench/stopwatch.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/detail/signature_join.hpp"

using namespace gputext;

int main(int count, char** arguments) {
    if (count != 4) return std::fprintf(stderr, "wanted: documents.bin rate signatures.txt\n"), 2;
    const bench::Corpus corpus(arguments[1]);
    const double rate = std::atof(arguments[2]);
    std::vector<std::string> signatures;
    std::ofstream file(arguments[3]);
    for (const std::string_view document : corpus.documents()) {
        const auto signature = ctph_signature(
            {reinterpret_cast<const std::uint8_t*>(document.data()), document.size()}, 100);
        file << signatures.emplace_back(signature->first()) << '\n';
    }
    const std::vector<std::string_view> views(signatures.begin(), signatures.end());
    const double pairs =
        0.5 * static_cast<double>(views.size()) * static_cast<double>(views.size() - 1);
    for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512}) {
        if (!simd_available(simd)) continue;
        double best = 1e9;
        std::vector<IndexPair> found;
        for (int pass = 0; pass < 5; ++pass) {
            Execution execution(1);
            const bench::Stopwatch stopwatch;
            if (!join_letters(views, rate, simd, execution, found).ok()) return 1;
            best = std::min(best, stopwatch.seconds());
        }
        std::printf("%-9s %.3g pairs/s: all %.3g pairs of %zu signatures in %.4f s, %zu found\n",
                    simd_name(simd), pairs / best, pairs, views.size(), best, found.size());
    }
}
