// bench/document_sketch_bench.cpp - sketches of documents: making and comparing them, the documents
// that they leave, and the check of those
//
// Arguments: a file of documents with a zero byte behind each, or `-` for generated ones; then
// threshold=0.05 bins=320 queries=200 documents=20000 page=42, the documents compared at once,
// models=16, and learned=3200, the documents that the models of sketches are learned from; 0 for
// the general model.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/expect.hpp"
#include "bench/options.hpp"
#include "bench/stopwatch.hpp"
#include "bench/text_documents.hpp"
#include "cpp/documents/document_sketch.hpp"
#include "cpp/documents/near_duplicate_check.hpp"
#include "cpp/documents/sketch_model.hpp"
#include "cpp/documents/sketch_model_learner.hpp"

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

/// Sketches of documents of one length class and model, as a page of an index has them.
struct Page {
    std::uint8_t length_class, model;
    std::vector<std::size_t> documents;  // their numbers
    std::vector<std::uint32_t> lengths, hashes;
    std::vector<std::uint8_t> letters, grams;

    SketchColumns columns() const {
        return {lengths.data(), hashes.data(), letters.data(), lengths.size(), grams.data()};
    }
};

/// Pages of so many sketches.
class Pages {
public:
    explicit Pages(std::size_t room) : room_(room) {}

    void add(std::size_t number, SketchedDocument document, const std::uint8_t* letters,
             const std::uint8_t* grams, std::size_t gram_bytes) {
        const std::uint8_t of_class = length_class(document.length);
        std::size_t& open = open_.try_emplace({of_class, document.model}, SIZE_MAX).first->second;
        if (open == SIZE_MAX || pages[open].documents.size() == room_) {
            open = pages.size();
            pages.push_back({of_class,
                             document.model,
                             {},
                             std::vector<std::uint32_t>(room_),
                             std::vector<std::uint32_t>(room_),
                             std::vector<std::uint8_t>(room_ * SketchShape::letters + 64),
                             std::vector<std::uint8_t>(room_ * gram_bytes)});
        }
        Page& page = pages[open];
        const std::size_t place = page.documents.size();
        page.documents.push_back(number);
        page.lengths[place] = document.length;
        page.hashes[place] = document.hash;
        for (std::size_t i = 0; i < SketchShape::letters; ++i)
            page.letters[i * room_ + place] = letters[i];
        std::copy_n(grams, gram_bytes, &page.grams[place * gram_bytes]);
    }

    std::vector<Page> pages;

private:
    std::size_t room_;
    std::map<std::pair<std::uint8_t, std::uint8_t>, std::size_t> open_;
};

/// Like an index, from some of the documents.
std::vector<OwnedSketchModel> models_of(const std::vector<std::string>& documents,
                                        std::size_t learned, std::size_t bins, std::size_t most,
                                        unsigned threads) {
    if (learned == 0) return {general_sketch_model(bins)};
    const std::size_t step = std::max<std::size_t>(1, documents.size() / learned);
    SketchModelLearner learner;
    for (std::size_t i = 0; i < documents.size(); i += step)
        learner.add(bytes_of(documents[i]), CharacterLengths::utf8());
    const bench::Stopwatch stopwatch;
    Execution execution(threads);
    std::vector<OwnedSketchModel> models = bench::expect(learner.learn(bins, most, execution));
    std::printf("learned from %zu documents in %.3f s on %u threads; bins:", learner.documents(),
                stopwatch.seconds(), execution.threads());
    for (const OwnedSketchModel& model : models)
        std::printf(" %zu%s", model.shape.bins, model.shape.halves ? " in halves" : "");
    for (const PhaseTime& phase : execution.phase_times())
        std::printf("; %s %.3f s", phase.name.c_str(), phase.seconds);
    std::printf("\n");
    return models;
}

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
          owned_(
              models_of(documents, options.whole<std::size_t>("learned", 3200),
                        options.whole<std::size_t>("bins", SketchShape::default_bins),
                        options.whole<std::size_t>("models", kMostSketchModels),
                        options.whole<unsigned>("threads", std::thread::hardware_concurrency()))),
          threshold_(options.number("threshold", 0.05)),
          queries_(std::min(documents.size(), options.whole<std::size_t>("queries", 200))),
          lengths_(documents.size()),
          sketches_(options.whole<std::size_t>("page", 42)) {
        for (const OwnedSketchModel& model : owned_) models_.push_back(model.view());
    }

    void sketch() {
        DocumentSketcher sketcher(models_);
        std::vector<std::uint8_t> letters(SketchShape::letters), grams(SketchShape::most_bins / 2);
        double seconds = 0;
        std::size_t bytes = 0, sketch_bytes = 0;
        for (std::size_t i = 0; i < documents_.size(); ++i) {
            const bench::Stopwatch stopwatch;
            const SketchedDocument made =
                sketcher.sketch(bytes_of(documents_[i]), utf8_, letters.data(), grams.data());
            seconds += stopwatch.seconds();
            const std::size_t gram_bytes = models_[made.model].shape().gram_bytes();
            sketches_.add(i, made, letters.data(), grams.data(), gram_bytes);
            lengths_[i] = made.length;
            bytes += documents_[i].size();
            sketch_bytes += gram_bytes;
        }
        std::printf(
            "%zu documents of %.0f bytes: sketch() %.0f ns, %.0f MB/s; %.0f bytes of bigrams\n",
            documents_.size(), static_cast<double>(bytes) / static_cast<double>(documents_.size()),
            per(seconds, documents_.size()), static_cast<double>(bytes) / seconds / 1e6,
            static_cast<double>(sketch_bytes) / static_cast<double>(documents_.size()));
        const bench::Stopwatch stopwatch;
        for (std::size_t i = 0; i < queries_; ++i) query(i);
        std::printf("SketchQuery %.0f ns\n", per(stopwatch.seconds(), queries_));
    }

    /// With a part of the sketches made to exclude all or nothing, the others are seen alone.
    void compare(Simd simd) {
        std::vector<SketchQuery> queries;
        for (std::size_t i = 0; i < queries_; ++i) queries.push_back(query(i, simd));
        std::size_t comparable = 0;
        for (const SketchQuery& query : queries)
            for (const std::uint32_t length : lengths_)
                comparable += query.least_length() <= length && length <= query.most_length();

        comparable -= queries_;  // each query itself

        Pages far = sketches_, letters_only = sketches_, grams_only = sketches_;
        for (Page& page : letters_only.pages) std::ranges::fill(page.grams, std::uint8_t{255});
        for (Page& page : grams_only.pages) std::ranges::fill(page.letters, std::uint8_t{255});
        for (Page& page : far.pages) std::ranges::fill(page.lengths, UINT32_MAX);
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
            const SketchQuery query = this->query(i);
            std::vector<std::string> far, near, edited;
            const std::vector<std::size_t> found = numbers_of(query, sketches_);
            for (std::size_t j = 0; j < documents_.size(); ++j) {
                const std::uint32_t length = lengths_[j];
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
    SketchQuery query(std::size_t number, Simd simd = best_simd()) const {
        SketchQuery query(bytes_of(query_document(number)), utf8_, threshold_, models_, simd);
        for (const Page& page : sketches_.pages) query.prepare(page.length_class, page.model);
        return query;
    }

    std::vector<std::size_t> numbers_of(const SketchQuery& query, const Pages& sketches) const {
        std::vector<std::uint16_t> places(sketches.pages[0].lengths.size());
        std::vector<std::size_t> found;
        for (const Page& page : sketches.pages) {
            if (page.length_class < length_class(query.least_length()) ||
                page.length_class > length_class(query.most_length()))
                continue;
            const std::size_t left = query.candidates(page.columns(), page.length_class, page.model,
                                                      page.documents.size(), places.data());
            for (std::size_t i = 0; i < left; ++i) found.push_back(page.documents[places[i]]);
        }
        std::ranges::sort(found);
        return found;
    }

    Found search(const std::vector<SketchQuery>& queries, const Pages& sketches) const {
        std::size_t count = 0;
        const bench::Stopwatch stopwatch;
        for (const SketchQuery& query : queries) count += numbers_of(query, sketches).size();
        return {count - std::min(count, queries.size()), stopwatch.seconds()};
    }

    const std::vector<std::string>& documents_;
    const CharacterLengths utf8_ = CharacterLengths::utf8();
    std::vector<OwnedSketchModel> owned_;
    std::vector<SketchModel> models_;  // views of these
    double threshold_;
    std::size_t queries_;
    std::vector<std::uint32_t> lengths_;
    Pages sketches_;
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
