// bench/document_sketch_bench.cpp - sketches of documents: making and comparing them, the documents
// that they leave, and the check of those
//
// Arguments: a file of documents with a zero byte behind each, or `-` for generated ones; then
// threshold=0.05 bins=232 queries=200 documents=20000 page=40, the documents compared at once.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/options.hpp"
#include "bench/stopwatch.hpp"
#include "bench/text_documents.hpp"
#include "cpp/documents/document_sketch.hpp"
#include "cpp/documents/near_duplicate_check.hpp"

using namespace gputext;

namespace {

constexpr std::size_t kGenerated = 2000;  // characters

std::vector<std::string> read_documents(const std::string& path, std::size_t most) {
    std::vector<std::string> documents;
    if (path == "-") {
        bench::TextDocuments texts(1);
        while (documents.size() < most) documents.push_back(texts.document(kGenerated));
        return documents;
    }
    std::ifstream file(path, std::ios::binary);
    for (std::string document; std::getline(file, document, '\0');) documents.push_back(document);
    std::shuffle(documents.begin(), documents.end(), std::mt19937(1));
    documents.resize(std::min(documents.size(), most));
    return documents;
}

Bytes bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Sketches of all documents, in columns.
struct Sketches {
    std::vector<std::uint32_t> lengths, hashes;
    std::vector<std::uint8_t> letters, grams;

    Sketches(std::size_t count, SketchShape shape)
        : lengths(count),
          hashes(count),
          letters(count * SketchShape::letters),
          grams(count * shape.gram_bytes()) {}

    SketchColumns from(std::size_t begin, SketchShape shape) const {
        return {&lengths[begin], &hashes[begin], &letters[begin * SketchShape::letters],
                &grams[begin * shape.gram_bytes()]};
    }
};

double per(double seconds, std::size_t count) {
    return 1e9 * seconds / static_cast<double>(std::max<std::size_t>(1, count));
}

double share(std::size_t part, std::size_t whole) {
    return 100 * static_cast<double>(part) / static_cast<double>(std::max<std::size_t>(1, whole));
}

class Run {
public:
    Run(const std::vector<std::string>& documents, const bench::Options& options)
        : documents_(documents),
          shape_{options.whole<std::size_t>("bins", SketchShape::default_bins)},
          threshold_(options.number("threshold", 0.05)),
          queries_(std::min(documents.size(), options.whole<std::size_t>("queries", 200))),
          page_(options.whole<std::size_t>("page", 40)),
          sketches_(documents.size(), shape_) {}

    void sketch() {
        DocumentSketcher sketcher(shape_);
        double best = 1e9;
        std::size_t bytes = 0;
        for (int pass = 0; pass < 5; ++pass) {
            const bench::Stopwatch stopwatch;
            bytes = 0;
            for (std::size_t i = 0; i < documents_.size(); ++i) {
                const SketchedDocument made = sketcher.sketch(
                    bytes_of(documents_[i]), utf8_, &sketches_.letters[i * SketchShape::letters],
                    &sketches_.grams[i * shape_.gram_bytes()]);
                sketches_.lengths[i] = made.length;
                sketches_.hashes[i] = made.hash;
                bytes += documents_[i].size();
            }
            best = std::min(best, stopwatch.seconds());
        }
        std::printf("%zu documents of %.0f bytes: sketch() %.0f ns, %.0f MB/s\n", documents_.size(),
                    static_cast<double>(bytes) / static_cast<double>(documents_.size()),
                    per(best, documents_.size()), static_cast<double>(bytes) / best / 1e6);
        const bench::Stopwatch stopwatch;
        for (std::size_t i = 0; i < queries_; ++i)
            SketchQuery(bytes_of(documents_[i]), utf8_, threshold_, shape_);
        std::printf("SketchQuery %.0f ns\n", per(stopwatch.seconds(), queries_));
    }

    /// With letters, or bigrams, that exclude nothing, the others are seen alone.
    void compare(Simd simd) {
        std::vector<SketchQuery> queries;
        for (std::size_t i = 0; i < queries_; ++i)
            queries.emplace_back(bytes_of(documents_[i]), utf8_, threshold_, shape_, simd);
        std::size_t comparable = 0;
        for (const SketchQuery& query : queries)
            for (const std::uint32_t length : sketches_.lengths)
                comparable += query.least_length() <= length && length <= query.most_length();

        Sketches none = sketches_, letters_only = sketches_, grams_only = sketches_;
        std::fill(letters_only.grams.begin(), letters_only.grams.end(), std::uint8_t{255});
        std::fill(grams_only.letters.begin(), grams_only.letters.end(), std::uint8_t{255});
        for (std::uint32_t& length : none.lengths) length = UINT32_MAX;
        const auto [zero, by_lengths] = search(queries, none);
        const auto [by_letters, letter_seconds] = search(queries, letters_only);
        const auto [by_grams, gram_seconds] = search(queries, grams_only);
        const auto [left, seconds] = search(queries, sketches_);

        const std::size_t pairs = queries_ * documents_.size();
        std::printf(
            "%-8s threshold %.2f: of %zu pairs, %.2f %% have comparable lengths; of these "
            "letters leave %.3f %%, bigrams %.3f %%, both %.4f %%\n",
            simd_name(simd), threshold_, pairs, share(comparable, pairs),
            share(by_letters, comparable), share(by_grams, comparable), share(left, comparable));
        std::printf(
            "%-8s ns a document: lengths %.2f, all %.2f; ns a document of comparable length: "
            "letters %.1f, all %.1f\n",
            simd_name(simd), per(by_lengths, pairs), per(seconds, pairs),
            per(letter_seconds - by_lengths, comparable), per(seconds - by_lengths, comparable));
        (void)zero, (void)gram_seconds;
    }

    /// Unrelated documents of comparable length, those that sketches leave, and versions.
    void check() {
        std::vector<std::uint16_t> places(documents_.size());
        NearDuplicateCheck check;
        double unrelated_seconds = 0, left_seconds = 0, near_seconds = 0;
        std::size_t unrelated = 0, left = 0, left_near = 0, near = 0, near_answers = 0;
        bench::TextDocuments texts(2);
        for (std::size_t i = 0; i < queries_; ++i) {
            const SketchQuery query(bytes_of(documents_[i]), utf8_, threshold_, shape_);
            check.prepare(bytes_of(documents_[i]), utf8_, threshold_);
            const auto at_once = std::min<std::size_t>(documents_.size(), 65536);
            places.resize(query.candidates(sketches_.from(0, shape_), at_once, places.data()));
            std::erase(places, static_cast<std::uint16_t>(i));
            std::vector<std::size_t> some;
            for (std::size_t j = 0; j < documents_.size() && some.size() < 200; ++j)
                if (query.least_length() <= sketches_.lengths[j] &&
                    sketches_.lengths[j] <= query.most_length() &&
                    !std::binary_search(places.begin(), places.end(), j) && i != j)
                    some.push_back(j);
            const bench::Stopwatch first;
            for (const std::size_t j : some)
                unrelated += 1, (void)check.is_near(bytes_of(documents_[j]));
            unrelated_seconds += first.seconds();
            const bench::Stopwatch second;
            for (const std::uint16_t j : places) {
                ++left;
                left_near += *check.is_near(bytes_of(documents_[j]));
            }
            left_seconds += second.seconds();
            places.resize(documents_.size());
            std::vector<std::string> versions;
            for (int version = 0; version < 5; ++version)
                versions.push_back(texts.version(
                    documents_[i],
                    static_cast<std::size_t>(texts.realistic_rate() * threshold_ / 0.05 * 2 *
                                             static_cast<double>(documents_[i].size()))));
            const bench::Stopwatch third;
            for (const std::string& version : versions)
                near += 1, near_answers += *check.is_near(bytes_of(version));
            near_seconds += third.seconds();
        }
        std::printf(
            "is_near: excluded documents of comparable length %.2f us; %zu documents that "
            "sketches leave, %zu near, %.2f us; %zu versions, %zu near, %.2f us\n",
            per(unrelated_seconds, unrelated) / 1000, left, left_near,
            per(left_seconds, left) / 1000, near, near_answers, per(near_seconds, near) / 1000);
    }

private:
    struct Found {
        std::size_t count;
        double seconds;
    };

    Found search(const std::vector<SketchQuery>& queries, const Sketches& sketches) const {
        std::vector<std::uint16_t> places(page_);
        std::size_t count = 0;
        const bench::Stopwatch stopwatch;
        for (const SketchQuery& query : queries)
            for (std::size_t from = 0; from < documents_.size(); from += page_)
                count += query.candidates(sketches.from(from, shape_),
                                          std::min(page_, documents_.size() - from), places.data());
        return {count, stopwatch.seconds()};
    }

    const std::vector<std::string>& documents_;
    const CharacterLengths utf8_ = CharacterLengths::utf8();
    SketchShape shape_;
    double threshold_;
    std::size_t queries_, page_;
    Sketches sketches_;
};

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return std::fprintf(stderr, "wanted: a file of documents, or -\n"), 2;
    const bench::Options options(count, arguments);
    const auto documents =
        read_documents(arguments[1], options.whole<std::size_t>("documents", 20000));
    Run run(documents, options);
    run.sketch();
    for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512})
        if (simd_available(simd)) run.compare(simd);
    run.check();
}
