// bench/gpu_terms_bench.cu - the nearest texts on one GPU: figures by phase, floor, compaction
//
// usage: gpu_terms_bench SHAPE [SCALE] [QUERIES] [CHECKED] [DIRECTORY]
//
// SHAPE is medline or pubmed (bench/term_corpus.hpp), of which SCALE is a part. Questions are
// documents at equal distances. Times of resident queries are the device's, between events on the
// stream, the least of several passes; the index is made once, and its time told apart. The answers
// to CHECKED of the questions are held against the CPU's. With a DIRECTORY the corpus is written
// there for bench/peers/cupy_terms.py.

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/gpu_resources.hpp"
#include "bench/term_corpus.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/terms/tfidf.hpp"
#include "kernels/knn/neighbor_lists.hpp"
#include "kernels/terms/detail/search.hpp"
#include "kernels/terms/knn.hpp"

using namespace gputext;
using bench::check;
using bench::Clock;
using bench::every_core;
using bench::ring;
using bench::stream;
using bench::wait;

namespace {

constexpr double kMemory = 4.3e12;  // bytes/s, device memory
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();  // bytes

/// A corpus on the device.
struct Resident {
    const Vectors& items;
    std::vector<double> factors;
    DeviceBuffer<double> factors_on_device;
    gpu::TermRowsMemory rows;
    gpu::TermIndexMemory index;
    gpu::DenseTermsMemory dense;
    gpu::BoundedTermsMemory bounded;

    Resident(const Vectors& from, std::span<const std::uint32_t> frequencies, std::size_t queries,
             std::size_t elements)
        : items(from), factors(term_factors({}, frequencies, from.rows)) {
        const std::size_t tiles = (items.rows + gpu::kTermTile - 1) / gpu::kTermTile;
        const std::size_t stored = items.row_begins[items.rows];
        check(factors_on_device.upload(factors, stream()));
        check(rows.allocate(items.rows, stored, stream()));
        check(index.allocate(tiles, items.dimensions, stored, stream()));
        for (int pass = 0; pass < 2; ++pass) {
            const Clock clock;
            check(rows.load(items, 0, items.rows, {}, factors_on_device.data(), ring(),
                            every_core()));
            wait();
            const double loaded = clock.seconds();
            gpu::StreamTimer timer(true, stream());
            timer.begin();
            check(index.build(rows.view()));
            timer.end();
            gpu::StreamTimer dense_timer(true, stream());
            dense_timer.begin();
            check(dense.build(index.view(), {100000, queries, elements, std::size_t{16} << 30},
                              stream()));
            if (dense.view().padded == 0) check(bounded.build(index.view(), stream()));
            dense_timer.end();
            wait();
            std::printf(
                "index: copied and weighed in %.1f ms, indexed in %.2f ms, %u columns of "
                "dense terms in %.2f ms; %.2f GB of lists\n",
                loaded * 1e3, timer.milliseconds(), dense.view().padded, dense_timer.milliseconds(),
                1e-9 * static_cast<double>(
                           gpu::TermIndexMemory::bytes(tiles, items.dimensions, stored)));
        }
    }
};

std::size_t most_terms(const Vectors& rows) {
    std::size_t most = 0;
    for (std::size_t row = 0; row < rows.rows; ++row) most = std::max(most, rows.stored(row));
    return most;
}

/// Questions that are loaded, and their search.
struct Session {
    Resident& corpus;
    gpu::TermTimers timers;
    gpu::TermQueriesMemory queries;
    gpu::TermSearch search;
    std::uint32_t terms;

    Session(Resident& on, const Vectors& questions, std::size_t k, bool measure)
        : corpus(on), timers(measure, stream()) {
        const auto count = static_cast<std::uint32_t>(questions.rows);
        const std::size_t items = corpus.items.rows;
        terms = static_cast<std::uint32_t>(most_terms(questions));
        const double scale = gpu::TermQueriesMemory::scale_for(
            std::max<std::size_t>(terms, most_terms(corpus.items)));
        check(queries.allocate(count, questions.row_begins[count], scale, stream()));
        check(queries.load(questions, 0, count, {}, corpus.factors_on_device.data(), ring(),
                           every_core()));
        check(search.allocate(
            gpu::TermSearch::shape_of(k, kInfinity, items), count, items, true,
            [] { return Status(); }, every_core(), timers, stream()));
        wait();
    }

    /// Milliseconds on the device.
    double run() {
        gpu::StreamTimer timer(true, stream());
        timer.begin();
        search.begin(queries.view(), terms, kInfinity);
        check(search.search(corpus.index.view(), corpus.dense.view(), corpus.bounded.view(), 0));
        timer.end();
        wait();
        return timer.milliseconds();
    }
};

/// Some of the questions, and what the CPU answers.
struct Truth {
    std::vector<std::size_t> questions;
    Neighbors answers;

    /// Number of queries that were answered otherwise, or with other bits.
    std::size_t differing(const Neighbors& found, std::size_t k) const {
        std::size_t count = 0;
        for (std::size_t i = 0; i < questions.size(); ++i) {
            const std::uint64_t a = found.begins[questions[i]], b = answers.begins[i];
            const std::uint64_t size = std::min<std::uint64_t>(k, answers.begins[i + 1] - b);
            bool same = found.begins[questions[i] + 1] - a == size;
            for (std::uint64_t n = 0; same && n < size; ++n)
                same = found.items[a + n] == answers.items[b + n] &&
                       std::bit_cast<std::uint64_t>(found.distances[a + n]) ==
                           std::bit_cast<std::uint64_t>(answers.distances[b + n]);
            count += !same;
        }
        return count;
    }
};

/// Postings that a question touches.
double touched(const Vectors& questions, std::span<const std::uint32_t> frequencies) {
    double sum = 0;
    for (const std::uint32_t column : questions.columns) sum += frequencies[column];
    return sum / static_cast<double>(questions.rows);
}

void measure_batch(Resident& corpus, const Vectors& questions, std::size_t k, double postings,
                   const Truth& truth) {
    double best = 1e300;
    {
        Session session(corpus, questions, k, false);
        for (int pass = 0; pass < 4; ++pass) best = std::min(best, session.run());
    }
    Session session(corpus, questions, k, true);
    session.run();
    const double n = static_cast<double>(questions.rows);
    const double us = 1e3 / n;
    std::uint64_t rescored = 0, found = 0;
    check(session.search.counts(rescored, found));
    const double per_query = static_cast<double>(found) / n;
    Neighbors answer;
    MemoryBudget budget(kUnlimited);
    check(session.search.lists().download(static_cast<std::uint32_t>(questions.rows), budget,
                                          answer.begins, answer.items, answer.distances));
    std::printf(
        "batch of %zu, k = %zu: %.3f us a query (sample %.3f, filter %.3f, score %.3f, sort %.3f, "
        "again %.3f); %.3g postings/s; found %.1f, rescored %.1f, 1 of %.0f scores; escalated "
        "%llu; %zu of %zu answers differ from the CPU's\n",
        questions.rows, k, best * us, session.timers.sample.milliseconds() * us,
        session.timers.filter.milliseconds() * us, session.timers.score.milliseconds() * us,
        session.timers.sort.milliseconds() * us, session.timers.again.milliseconds() * us,
        postings * n / best * 1e3, per_query, static_cast<double>(rescored) / n,
        static_cast<double>(corpus.items.rows) / per_query,
        static_cast<unsigned long long>(session.search.escalated()), truth.differing(answer, k),
        truth.questions.size());
    std::fflush(stdout);
}

/// What the search for many questions answers.
Truth answers_of_batch(Resident& corpus, const Vectors& questions, std::size_t k) {
    Truth truth;
    for (std::size_t i = 0; i < questions.rows; ++i) truth.questions.push_back(i);
    Session session(corpus, questions, k, false);
    session.run();
    MemoryBudget budget(kUnlimited);
    Neighbors& answers = truth.answers;
    check(session.search.lists().download(static_cast<std::uint32_t>(questions.rows), budget,
                                          answers.begins, answers.items, answers.distances));
    return truth;
}

void measure_single(Resident& corpus, const Vectors& all, std::size_t k) {
    constexpr std::size_t kTries = 40;
    std::vector<double> device, elapsed;
    std::vector<std::uint32_t> rows;
    Neighbors found;
    found.begins.push_back(0);
    std::uint64_t escalated = 0;
    for (std::size_t i = 0; i < kTries; ++i) {
        const std::uint32_t row = static_cast<std::uint32_t>((2 * i + 1) * all.rows / (2 * kTries));
        rows.push_back(row);
        const bench::TermRows one(all, {&row, 1});
        const Vectors question = one.vectors();
        Session session(corpus, question, k, false);
        session.run();
        device.push_back(session.run());
        const Clock clock;
        check(session.queries.load(question, 0, 1, {}, corpus.factors_on_device.data(), ring(),
                                   every_core()));
        session.search.begin(session.queries.view(), session.terms, kInfinity);
        check(session.search.search(corpus.index.view(), corpus.dense.view(), corpus.bounded.view(),
                                    0));
        MemoryBudget budget(kUnlimited);
        check(gpu::append_kept(session.search.lists(), 1, budget, found));
        elapsed.push_back(clock.seconds());
        escalated += session.search.escalated();
    }
    const Truth truth = answers_of_batch(corpus, bench::TermRows(all, rows).vectors(), k);
    std::ranges::sort(device);
    std::ranges::sort(elapsed);
    std::printf(
        "one question at a time, k = %zu: median %.1f us on the device (%.1f to %.1f), %.1f us "
        "from its copy to the answer's; escalated %llu of %zu; %zu of %zu answers differ from the "
        "batch's\n",
        k, device[kTries / 2] * 1e3, device[0] * 1e3, device[kTries - 1] * 1e3,
        elapsed[kTries / 2] * 1e6, static_cast<unsigned long long>(escalated), 3 * kTries,
        truth.differing(found, k), kTries);
    std::fflush(stdout);
}

/// The whole operator, from the host's memory and back.
void measure_whole(const std::vector<double>& factors, const Vectors& items,
                   const Vectors& questions, std::size_t k, const Truth& truth) {
    double best = 1e300;
    Neighbors answer;
    gpu::TermKnnCounts counts;
    for (int pass = 0; pass < 3; ++pass) {
        const Clock clock;
        auto found =
            gpu::term_knn({.k = k}, factors, questions, items, {},
                          {stream(), std::size_t{60} << 30}, ring(), every_core(), &counts);
        best = std::min(best, clock.seconds());
        check(found.status());
        answer = std::move(*found);
    }
    std::printf(
        "whole call, %zu questions, k = %zu: %.1f ms, of which %.1f for the index on the device; "
        "%zu of %zu answers differ from the CPU's\n",
        questions.rows, k, best * 1e3, counts.index_ms, truth.differing(answer, k),
        truth.questions.size());
    std::fflush(stdout);
}

template <class T>
void write(const std::string& name, const T* data, std::size_t count) {
    std::ofstream(name, std::ios::binary)
        .write(reinterpret_cast<const char*>(data),
               static_cast<std::streamsize>(count * sizeof(T)));
}

void write_corpus(const std::string& directory, const Vectors& items) {
    const std::size_t stored = items.row_begins[items.rows];
    write(directory + "/begins.u64", items.row_begins.data(), items.rows + 1);
    write(directory + "/columns.u32", items.columns.data(), stored);
    write(directory + "/counts.i32", static_cast<const std::int32_t*>(items.elements), stored);
    const std::uint64_t sizes[] = {items.rows, items.dimensions, stored};
    write(directory + "/sizes.u64", sizes, 3);
}

}  // namespace

int main(int argc, char** argv) {
    bench::TermShape shape = bench::term_shape_named(argc > 1 ? argv[1] : "medline");
    const double scale = argc > 2 ? std::atof(argv[2]) : 1;
    if (scale < 1) shape = shape.scaled(scale);
    const std::size_t query_count = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 4096;
    const std::size_t checked = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 0;
    if (shape.documents == 0) {
        std::fprintf(stderr, "no such shape: %s\n", argv[1]);
        return 1;
    }
    const Clock clock;
    const bench::TermCorpus corpus(shape, every_core().threads());
    const Vectors items = corpus.vectors();
    std::printf("%zu documents, %zu terms, %zu elements, made in %.1f s\n", items.rows,
                items.dimensions, shape.stored, clock.seconds());
    if (argc > 5) write_corpus(argv[5], items);
    const auto questions = bench::TermRows::spread(items, query_count);
    const double postings = touched(questions.vectors(), corpus.frequencies());
    std::printf("a question touches %.0f postings: floor %.3f us by memory alone\n", postings,
                postings * 4 / kMemory * 1e6);
    const auto factors = term_factors({}, corpus.frequencies(), items.rows);
    Truth truth;
    if (checked > 0) {
        std::vector<std::uint32_t> rows;
        for (std::size_t i = 0; i < checked; ++i) {
            truth.questions.push_back(i * query_count / checked);
            rows.push_back(questions.rows()[truth.questions.back()]);
        }
        const bench::TermRows some(items, rows);
        const Clock cpu_clock;
        auto expected = term_knn({.k = 512, .memory_limit = std::size_t{32} << 30}, factors,
                                 some.vectors(), items, {}, every_core());
        check(expected.status());
        truth.answers = std::move(*expected);
        std::printf("the CPU: %zu questions, k = 512, in %.1f s on %u threads\n", checked,
                    cpu_clock.seconds(), every_core().threads());
    }
    {
        Resident resident(items, corpus.frequencies(), query_count,
                          questions.vectors().columns.size());
        for (const std::size_t k : {32, 64, 128, 256, 512})
            measure_batch(resident, questions.vectors(), k, postings, truth);
        for (const std::size_t k : {32, 512}) measure_single(resident, items, k);
    }
    measure_whole(factors, items, questions.vectors(), 32, truth);
}
