// bench/gpu_bm25_bench.cu - the best texts by BM25 on one GPU
//
// usage: gpu_bm25_bench [DOCUMENTS] [QUESTIONS] [CHECKED]
//
// 500,000 documents of 80 different terms and 10,000 questions of about 10 by default, made by
// bench/term_corpus.hpp; a question has every eighth term of a document. A call goes from counts in
// the host's memory to the answer there: the least of three, and what of it is what. The answers to
// CHECKED of the questions, and as many single questions, are held against the CPU's.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "bench/gpu_resources.hpp"
#include "bench/term_corpus.hpp"
#include "cpp/terms/bm25.hpp"
#include "cpp/terms/knn.hpp"
#include "kernels/terms/knn.hpp"

using namespace gputext;
using bench::check;
using bench::Clock;
using bench::every_core;
using bench::ring;
using bench::stream;

namespace {

constexpr std::size_t kTermsOfDocument = 80, kTerms = 200'000, kNeighbors = 10;

/// Every eighth term of some documents, once.
class Questions {
public:
    Questions(const Vectors& documents, std::size_t count) : terms_(documents.dimensions) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t row = i * documents.rows / count;
            const std::size_t begin = documents.begin(row), size = documents.stored(row);
            for (std::size_t at = i % 8; at < size; at += 8)
                columns_.push_back(documents.columns[begin + at]);
            begins_.push_back(columns_.size());
        }
        counts_.assign(columns_.size(), 1);
    }

    Vectors vectors() const {
        return {ElementType::int32, begins_.size() - 1, terms_, counts_.data(), begins_, columns_};
    }

private:
    std::size_t terms_;
    std::vector<std::uint64_t> begins_{0};
    std::vector<std::uint32_t> columns_;
    std::vector<std::int32_t> counts_;
};

const TermKnnParameters kSearch{
    .k = kNeighbors, .metric = Metric::inner_product, .memory_limit = std::size_t{32} << 30};

/// Whether the neighbors of a query are those of the only query of another answer.
bool same(const Neighbors& found, std::size_t query, const Neighbors& wanted) {
    const auto begin = static_cast<std::ptrdiff_t>(found.begins[query]);
    const auto end = static_cast<std::ptrdiff_t>(found.begins[query + 1]);
    return std::equal(found.items.begin() + begin, found.items.begin() + end, wanted.items.begin(),
                      wanted.items.end()) &&
           std::equal(found.distances.begin() + begin, found.distances.begin() + end,
                      wanted.distances.begin(), wanted.distances.end());
}

struct Call {
    double weighing = 0, seconds = 0;
    gpu::TermKnnCounts counts;
    Neighbors answer;
};

Call called(const Vectors& items, const Vectors& questions) {
    Call call;
    TermParameters terms;
    terms.weighting = TermWeighting::bm25;
    const Clock clock;
    auto frequencies = document_frequencies(items, every_core());
    check(frequencies.status());
    WeighedItems weighed;
    check(weighed.set(terms, term_factors(terms, *frequencies, items.rows), items, every_core()));
    call.weighing = clock.seconds();
    auto found =
        gpu::term_knn(kSearch, weighed.factors(), questions, weighed.items(), {},
                      {stream(), std::size_t{40} << 30}, ring(), every_core(), &call.counts);
    call.seconds = clock.seconds();
    check(found.status());
    call.answer = std::move(*found);
    return call;
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t documents = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 500'000;
    const std::size_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10'000;
    const std::size_t checked = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 200;
    const bench::TermCorpus corpus({documents, kTerms, documents * kTermsOfDocument},
                                   every_core().threads());
    const Vectors items = corpus.vectors();
    const Questions questions(items, count);
    Call best;
    for (int pass = 0; pass < 3; ++pass) {
        Call call = called(items, questions.vectors());
        if (pass == 0 || call.seconds < best.seconds) best = std::move(call);
    }
    const auto milliseconds = [](double seconds) { return 1e3 * seconds; };
    std::printf(
        "BM25: %zu documents, %zu elements, %zu questions, k = %zu: %.1f ms, of which %.1f to "
        "weigh "
        "the terms on %u threads; on the device %.1f to index, %.1f to sample, %.1f to filter, "
        "%.1f "
        "to score, %.1f to sort; %llu scored, %llu questions searched again, which took %.1f\n",
        documents, documents * kTermsOfDocument, count, kNeighbors, milliseconds(best.seconds),
        milliseconds(best.weighing), every_core().threads(), best.counts.index_ms,
        best.counts.sample_ms, best.counts.filter_ms, best.counts.score_ms, best.counts.sort_ms,
        static_cast<unsigned long long>(best.counts.rescored),
        static_cast<unsigned long long>(best.counts.escalated), best.counts.again_ms);
    if (checked == 0) return 0;
    const std::size_t step = count / checked;
    TermParameters terms;
    terms.weighting = TermWeighting::bm25;
    WeighedItems weighed;
    check(weighed.set(terms, term_factors(terms, corpus.frequencies(), items.rows), items,
                      every_core()));
    std::size_t of_batch = 0, single = 0;
    for (std::size_t query = 0; query < checked; ++query) {
        const RowRange question(questions.vectors(), query * step, query * step + 1);
        const auto wanted = term_knn(kSearch, weighed.factors(), question.vectors(),
                                     weighed.items(), {}, every_core());
        check(wanted.status());
        of_batch += !same(best.answer, query * step, *wanted);
        if (query % 20 == 0) single += !same(called(items, question.vectors()).answer, 0, *wanted);
    }
    std::printf("%zu of %zu answers differ from the CPU's, and %zu of %zu to single questions\n",
                of_batch, checked, single, (checked + 19) / 20);
    return of_batch + single > 0;
}
