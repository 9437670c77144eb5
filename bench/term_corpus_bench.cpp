// bench/term_corpus_bench.cpp - statistics of a corpus of terms of the shapes of Amorim, 2019
//
// Arguments: the shape (medline, pubmed), threads, and optionally a factor of the size.

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "bench/term_corpus.hpp"
#include "cpp/terms/tfidf.hpp"

using namespace gputext;

int main(int count, char** arguments) {
    bench::TermShape shape = count < 3 ? bench::TermShape{} : bench::term_shape_named(arguments[1]);
    if (shape.documents == 0)
        return std::fprintf(stderr, "wanted: medline|pubmed threads [factor]\n"), 2;
    if (count > 3) shape = shape.scaled(std::atof(arguments[3]));
    const auto threads = static_cast<unsigned>(std::atoi(arguments[2]));
    const auto start = std::chrono::steady_clock::now();
    const bench::TermCorpus corpus(shape, threads);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const Vectors rows = corpus.vectors();
    std::vector<std::size_t> lengths(rows.rows);
    for (std::size_t d = 0; d < rows.rows; ++d) lengths[d] = rows.stored(d);
    std::sort(lengths.begin(), lengths.end());
    const auto quantile = [&](double part) {
        return lengths[static_cast<std::size_t>(part * static_cast<double>(lengths.size() - 1))];
    };
    std::printf(
        "%s: %zu documents, %zu terms, %zu elements, in %.1f s by %u threads\n"
        "terms of a document: least %zu, 10 %% %zu, median %zu, 90 %% %zu, most %zu\n",
        arguments[1], shape.documents, shape.terms, shape.stored, seconds, threads, lengths[0],
        quantile(.1), quantile(.5), quantile(.9), lengths.back());
    bench::print_frequencies(corpus.frequencies(), shape.documents);
}
