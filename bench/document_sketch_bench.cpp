// bench/document_sketch_bench.cpp - sketches of documents: making and comparing them, the documents
// that they leave, and the check of those
//
// Arguments: a file of documents with a zero byte behind each, or `-` for generated ones; then
// threshold=0.05 bins=320 queries=200 documents=20000 page=42, the documents compared at once, and
// learned=1500, the documents that the model of sketches is learned from; 0 for the general model.

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
#include "cpp/documents/length_class.hpp"
#include "cpp/documents/near_duplicate_check.hpp"

using namespace gputext;

namespace {

constexpr std::size_t kGenerated = 2000;  // characters

std::vector<std::string> read_documents(const std::string& path, std::size_t most) {
    std::vector<std::string> documents;
    if (path == "-") {
        // Each has a subject of its own.
        while (documents.size() < most)
            documents.push_back(bench::TextDocuments(documents.size(), 300).document(kGenerated));
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
    std::vector<std::uint8_t> classes;  // of lengths

    Sketches(std::size_t count, SketchShape shape)
        : lengths(count),
          hashes(count),
          letters(count * SketchShape::letters),
          grams(count * shape.gram_bytes()),
          classes(count) {}

    SketchColumns from(std::size_t begin, SketchShape shape) const {
        return {&lengths[begin], &hashes[begin], &letters[begin * SketchShape::letters],
                &grams[begin * shape.gram_bytes()]};
    }
    /// Behind the last document from `begin` on that comes into a page.
    std::size_t page_end(std::size_t begin, std::size_t page) const {
        std::size_t end = begin;
        while (end < classes.size() && end < begin + page && classes[end] == classes[begin]) ++end;
        return end;
    }
};

/// Like the index, from some of the documents.
std::vector<std::uint16_t> model_of(const std::vector<std::string>& documents, std::size_t learned,
                                    SketchShape shape) {
    if (learned == 0) return general_sketch_model(shape);
    const std::size_t step = std::max<std::size_t>(1, documents.size() / learned);
    SketchModelLearner learner;
    for (std::size_t i = 0; i < documents.size(); i += step)
        learner.add(bytes_of(documents[i]), CharacterLengths::utf8());
    const bench::Stopwatch stopwatch;
    auto numbers = learner.learn(shape);
    std::printf("learned from %zu documents in %.3f s\n", learner.documents(), stopwatch.seconds());
    return numbers;
}

double per(double seconds, std::size_t count) {
    return 1e9 * seconds / static_cast<double>(std::max<std::size_t>(1, count));
}

double share(std::size_t part, std::size_t whole) {
    return 100 * static_cast<double>(part) / static_cast<double>(std::max<std::size_t>(1, whole));
}

class Run {
public:
    /// Of documents in the order of their lengths.
    Run(const std::vector<std::string>& documents, const bench::Options& options)
        : documents_(documents),
          shape_{options.whole<std::size_t>("bins", SketchShape::default_bins)},
          numbers_(model_of(documents, options.whole<std::size_t>("learned", 1500), shape_)),
          model_(shape_, numbers_.data()),
          threshold_(options.number("threshold", 0.05)),
          queries_(std::min(documents.size(), options.whole<std::size_t>("queries", 200))),
          page_(options.whole<std::size_t>("page", 42)),
          sketches_(documents.size(), shape_) {}

    void sketch() {
        DocumentSketcher sketcher(model_);
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
                sketches_.classes[i] = length_class(made.length);
                bytes += documents_[i].size();
            }
            best = std::min(best, stopwatch.seconds());
        }
        std::printf("%zu documents of %.0f bytes: sketch() %.0f ns, %.0f MB/s\n", documents_.size(),
                    static_cast<double>(bytes) / static_cast<double>(documents_.size()),
                    per(best, documents_.size()), static_cast<double>(bytes) / best / 1e6);
        const bench::Stopwatch stopwatch;
        for (std::size_t i = 0; i < queries_; ++i)
            SketchQuery(bytes_of(query_document(i)), utf8_, threshold_, model_);
        std::printf("SketchQuery %.0f ns\n", per(stopwatch.seconds(), queries_));
    }

    /// With a part of the sketches made to exclude all or nothing, the others are seen alone.
    void compare(Simd simd) {
        std::vector<SketchQuery> queries;
        for (std::size_t i = 0; i < queries_; ++i)
            queries.emplace_back(bytes_of(query_document(i)), utf8_, threshold_, model_, simd);
        std::size_t comparable = 0;
        for (const SketchQuery& query : queries)
            for (const std::uint32_t length : sketches_.lengths)
                comparable += query.least_length() <= length && length <= query.most_length();

        comparable -= queries_;  // each query itself

        Sketches far = sketches_, letters_only = sketches_, grams_only = sketches_;
        std::fill(letters_only.grams.begin(), letters_only.grams.end(), std::uint8_t{255});
        std::fill(grams_only.letters.begin(), grams_only.letters.end(), std::uint8_t{255});
        for (std::uint32_t& length : far.lengths) length = UINT32_MAX;
        const double letter_seconds = search(queries, far).seconds;
        const std::size_t by_letters = search(queries, letters_only).others;
        const std::size_t by_grams = search(queries, grams_only).others;
        const auto [left, seconds] = search(queries, sketches_);

        const std::size_t pairs = queries_ * documents_.size();
        std::printf(
            "%-8s threshold %.2f: of %zu pairs, %.2f %% have comparable lengths; of these "
            "letters leave %.3f %%, bigrams %.3f %%, both %.4f %%\n",
            simd_name(simd), threshold_, pairs, share(comparable, pairs),
            share(by_letters, comparable), share(by_grams, comparable), share(left, comparable));
        std::printf("%-8s ns a document of comparable length: letters %.1f, all %.1f\n",
                    simd_name(simd), per(letter_seconds, comparable), per(seconds, comparable));
    }

    /// Documents of comparable length that sketches exclude, those that they leave, and versions.
    void check() {
        constexpr std::size_t most = 200;  // of each kind, a query
        Checked excluded, left, versions;
        bench::TextDocuments texts(2);
        for (std::size_t i = 0; i < queries_; ++i) {
            const std::string& document = query_document(i);
            const SketchQuery query(bytes_of(document), utf8_, threshold_, model_);
            std::vector<std::string> far, near, edited;
            const std::vector<std::size_t> found = places_of(query, sketches_);
            for (std::size_t j = 0; j < documents_.size(); ++j) {
                const std::uint32_t length = sketches_.lengths[j];
                if (&documents_[j] == &document || length < query.least_length() ||
                    length > query.most_length())
                    continue;
                auto& kind = std::ranges::binary_search(found, j) ? near : far;
                if (kind.size() < most) kind.push_back(documents_[j]);
            }
            for (int version = 0; version < 5; ++version) {
                const double rate = texts.realistic_rate() * threshold_ / 0.05;
                edited.push_back(texts.version(
                    document,
                    static_cast<std::size_t>(rate * 2 * static_cast<double>(document.size()))));
            }
            NearDuplicateCheck check;
            check.prepare(bytes_of(document), utf8_, threshold_);
            excluded.add(check, far);
            left.add(check, near);
            versions.add(check, edited);
        }
        excluded.print("that sketches exclude");
        left.print("that sketches leave");
        versions.print("made of the query by edits");
    }

private:
    /// Documents of one kind.
    struct Checked {
        std::size_t documents = 0, near = 0;
        double seconds = 0;

        void add(NearDuplicateCheck& check, const std::vector<std::string>& others) {
            const bench::Stopwatch stopwatch;
            for (const std::string& other : others) near += *check.is_near(bytes_of(other));
            seconds += stopwatch.seconds();
            documents += others.size();
        }
        void print(const char* kind) const {
            std::printf("is_near() of %zu documents %s: %.2f us, %zu are near\n", documents, kind,
                        per(seconds, documents) / 1000, near);
        }
    };

    struct Found {
        std::size_t others;  // besides each query itself
        double seconds;
    };

    /// Of all lengths.
    const std::string& query_document(std::size_t query) const {
        return documents_[query * documents_.size() / queries_];
    }

    std::vector<std::size_t> places_of(const SketchQuery& query, const Sketches& sketches) const {
        std::vector<std::uint16_t> places(page_);
        std::vector<std::size_t> found;
        for (std::size_t from = 0; from < documents_.size();) {
            const std::size_t end = sketches.page_end(from, page_);
            const std::size_t left = query.candidates(
                sketches.from(from, shape_), sketches.classes[from], end - from, places.data());
            for (std::size_t i = 0; i < left; ++i) found.push_back(from + places[i]);
            from = end;
        }
        return found;
    }

    Found search(const std::vector<SketchQuery>& queries, const Sketches& sketches) const {
        std::size_t count = 0;
        const bench::Stopwatch stopwatch;
        for (const SketchQuery& query : queries) count += places_of(query, sketches).size();
        return {count - std::min(count, queries.size()), stopwatch.seconds()};
    }

    const std::vector<std::string>& documents_;
    const CharacterLengths utf8_ = CharacterLengths::utf8();
    SketchShape shape_;
    std::vector<std::uint16_t> numbers_;
    SketchModel model_;
    double threshold_;
    std::size_t queries_, page_;
    Sketches sketches_;
};

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return std::fprintf(stderr, "wanted: a file of documents, or -\n"), 2;
    const bench::Options options(count, arguments);
    auto documents = read_documents(arguments[1], options.whole<std::size_t>("documents", 20000));
    const auto utf8 = CharacterLengths::utf8();
    std::ranges::stable_sort(documents, {}, [&](const std::string& document) {
        return count_characters(bytes_of(document), utf8);
    });
    Run run(documents, options);
    run.sketch();
    for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512})
        if (simd_available(simd)) run.compare(simd);
    run.check();
}
