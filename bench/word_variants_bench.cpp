// bench/word_variants_bench.cpp - which parameters of word similarity agree best with people
//
// Arguments: a file of variants, a file of words (a line a text), and files of pairs of words and
// their similarity by people's judgement, between tabs. A variant is a line of name=value for
//
//     window (3), positions (0), features (0: all)
//     weight (lin, ppmi, count), discount (0.95), measure (cosine, lin, jaccard)
//     compare  1: also find the 20 nearest of all words, for its time
//
// Prints a row of a table a variant: Spearman's correlation with each file and their mean, and
// processor seconds. Words seen less than 5 times are left out. Variants of one window side by
// side are counted once, and weighed once where only the measure differs.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "bench/expect.hpp"
#include "bench/options.hpp"
#include "bench/stopwatch.hpp"
#include "bench/word_corpus.hpp"
#include "bench/word_judgements.hpp"
#include "cpp/thesaurus/word_similarity.hpp"

using namespace gputext;
using bench::expect;

namespace {

struct Variant {
    CooccurrenceShape shape;  // but for the number of words
    WeightParameters weighting;
    WordMeasure measure;
    bool compare;
};

Variant parse(const std::string& line) {
    const std::map<std::string, WordWeight> weights{
        {"lin", WordWeight::lin}, {"ppmi", WordWeight::ppmi}, {"count", WordWeight::count}};
    const std::map<std::string, WordMeasure> measures{{"lin", WordMeasure::lin},
                                                      {"cosine", WordMeasure::cosine},
                                                      {"jaccard", WordMeasure::jaccard}};
    std::vector<std::string> words{"", ""};
    std::istringstream fields(line);
    for (std::string word; fields >> word;) words.push_back(word);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    const bench::Options options(static_cast<int>(arguments.size()), arguments.data());
    Variant variant;
    variant.shape.window = options.whole<std::uint32_t>("window", 3);
    variant.shape.positions = options.whole<int>("positions", 0) != 0;
    variant.weighting.weight = weights.at(options.text("weight", "lin"));
    variant.weighting.discount = options.number("discount", 0.95);
    variant.weighting.features = options.whole<std::uint64_t>("features", 0);
    variant.measure = measures.at(options.text("measure", "cosine"));
    variant.compare = options.whole<int>("compare", 0) != 0;
    return variant;
}

bool same_weights(const WeightParameters& a, const WeightParameters& b) {
    return a.weight == b.weight && a.discount == b.discount && a.features == b.features;
}

/// The last counts and features that were asked for, and what they took.
class Steps {
public:
    explicit Steps(const bench::WordCorpus& corpus) : corpus_(corpus) {}

    const WordFeatures& features_of(const Variant& variant) {
        CooccurrenceShape shape = variant.shape;
        shape.words = static_cast<std::uint32_t>(corpus_.names.size());
        if (!counts_ || counts_->shape != shape) {
            features_.reset();
            counts_.reset();
            const bench::Stopwatch stopwatch;
            Execution execution(2);
            counts_ = expect(
                count_cooccurrences(shape, corpus_.stream(), std::size_t{1} << 30, execution));
            counting_ = stopwatch.seconds();
        }
        if (!features_ || !same_weights(variant.weighting, weighting_)) {
            features_.reset();
            weighting_ = variant.weighting;
            const bench::Stopwatch stopwatch;
            Execution execution(2);
            features_ = expect(weigh_features(weighting_, *counts_, execution));
            weighing_ = stopwatch.seconds();
        }
        return *features_;
    }
    double seconds() const { return counting_ + weighing_; }

private:
    const bench::WordCorpus& corpus_;
    std::optional<Cooccurrences> counts_;
    std::optional<WordFeatures> features_;
    WeightParameters weighting_;
    double counting_ = 0, weighing_ = 0;
};

double comparing_seconds(WordMeasure measure, const WordFeatures& features) {
    SimilarityParameters parameters;
    parameters.measure = measure;
    const bench::Stopwatch stopwatch;
    Execution execution(2);
    (void)expect(word_similarities(parameters, features, execution));
    return stopwatch.seconds();
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) return std::fprintf(stderr, "wanted: VARIANTS WORDS PAIRS..\n"), 2;
    std::ifstream variants(arguments[1]);
    if (!variants) return std::fprintf(stderr, "cannot read %s\n", arguments[1]), 1;
    const bench::WordCorpus corpus(arguments[2], CooccurrenceShape::kMostWindow, 5, UINT32_MAX);
    std::vector<std::vector<bench::Judgement>> gold;
    for (int i = 3; i < count; ++i) gold.push_back(bench::read_judgements(arguments[i]));

    std::printf("%s: %llu words, %zu different ones in the vocabulary, %zu places\n", arguments[2],
                static_cast<unsigned long long>(corpus.all), corpus.names.size(),
                corpus.stream().words.size());
    std::printf("| variant | features, M | s, counting and weighing | s, comparing |");
    for (std::size_t i = 0; i < gold.size(); ++i) {
        std::size_t found = 0;
        for (const bench::Judgement& judgement : gold[i])
            found += corpus.number_of(judgement.a) != UINT32_MAX &&
                     corpus.number_of(judgement.b) != UINT32_MAX;
        const std::string name = arguments[3 + i];
        std::printf(" %s, %zu of %zu |", name.substr(name.rfind('/') + 1).c_str(), found,
                    gold[i].size());
    }
    std::printf(" mean |\n");
    Steps steps(corpus);
    for (std::string line; std::getline(variants, line);) {
        if (line.empty() || line[0] == '#') continue;
        const Variant variant = parse(line);
        const WordFeatures& features = steps.features_of(variant);
        std::printf("| `%s` | %.1f | %.1f |", line.c_str(),
                    static_cast<double>(features.columns.size()) / 1e6, steps.seconds());
        if (variant.compare)
            std::printf(" %.1f |", comparing_seconds(variant.measure, features));
        else
            std::printf(" |");
        double sum = 0;
        for (const auto& judgements : gold) {
            const auto agreement = bench::judge(judgements, variant.measure, corpus, features);
            sum += agreement.spearman;
            std::printf(" %.3f |", agreement.spearman);
        }
        std::printf(" %.3f |\n", sum / static_cast<double>(gold.size()));
        std::fflush(stdout);
    }
}
