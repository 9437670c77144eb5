// bench/long_documents_bench.cpp - what a pair of long documents takes on the CPU
//
// Arguments: kinds of documents, unrelated,half,near,few,periodic by default, then NAME=VALUE of
// shortest=1000 and longest=100000000 characters, and threshold=0.05. The length grows tenfold. All
// pairs of eight documents, from ten million characters on of two, are compared by the check of
// is_near_duplicate, which prepares each document once, and by near_duplicates in mode exact, on
// one thread: processor seconds a pair without reading, the least of three if all take less than a
// second, and the pairs that are near. Texts have a Zipf-like vocabulary. Of half-related ones
// every other thousand characters are those of the first. Near ones are versions of the first with
// edits of one to sixty characters, two of a hundred characters in all, and at most a hundred edits
// of one character are between few ones and the first. Periodic ones repeat 32 hexadecimal digits
// of their own.

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "bench/stopwatch.hpp"
#include "bench/text_documents.hpp"
#include "cpp/documents/near_duplicate_check.hpp"
#include "cpp/documents/near_duplicates.hpp"

using namespace gputext;

namespace {

constexpr std::uint64_t kSeed = 20261126;

Bytes bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string half_of(const std::string& text, bench::TextDocuments& random) {
    constexpr std::size_t part = 1000;
    std::string other;
    for (std::size_t at = 0; at < text.size(); at += 2 * part)
        other += text.substr(at, part) + random.document(part);
    other.resize(text.size());
    return other;
}

std::string version_of(const std::string& text, bench::TextDocuments& random) {
    constexpr std::size_t part = 10'000;
    std::string version;
    for (std::size_t at = 0; at < text.size(); at += part) {
        const std::string own = text.substr(at, part);
        version += random.version(own, own.size() / 50);
    }
    return version;
}

std::string with_few_edits(std::string text, bench::TextDocuments& random) {
    for (int i = 0; i < 100; ++i) text[random.below(text.size())] = '#';
    return text;
}

std::string periodic(std::size_t length, bench::TextDocuments& random) {
    std::string period;
    while (period.size() < 32) period += "0123456789abcdef"[random.below(16)];
    std::string text;
    while (text.size() < length) text += period;
    text.resize(length);
    return text;
}

std::vector<std::string> texts_of(const std::string& kind, std::size_t length) {
    bench::TextDocuments random(kSeed);
    std::vector<std::string> texts{random.document(length)};
    while (texts.size() < (length < 10'000'000 ? 8 : 2)) {
        if (kind == "half")
            texts.push_back(half_of(texts[0], random));
        else if (kind == "near")
            texts.push_back(version_of(texts[0], random));
        else if (kind == "few")
            texts.push_back(with_few_edits(texts[0], random));
        else if (kind == "periodic")
            texts.push_back(periodic(length, random));
        else
            texts.push_back(random.document(length));
    }
    return texts;
}

/// Calls run() once or, if that is soon over, three times.
template <class Run>
double least_seconds(Run&& run) {
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
        const bench::Stopwatch watch;
        run();
        least = std::min(least, watch.seconds());
        if (least > 1) break;
    }
    return least;
}

void measure(const std::string& kind, std::size_t length, double threshold) {
    const std::vector<std::string> texts = texts_of(kind, length);
    std::string bytes;
    std::vector<Extent> extents;
    for (const std::string& text : texts) {
        extents.push_back({bytes.size(), text.size()});
        bytes += text;
    }
    const Documents documents{bytes_of(bytes).data(), extents, CharacterLengths::single_byte()};
    NearDuplicateParameters parameters;
    parameters.threshold = threshold;
    parameters.mode = NearDuplicateMode::exact;
    std::uint64_t near = 0;
    std::uint64_t joined = 0;
    const double by_check = least_seconds([&] {
        near = 0;
        NearDuplicateCheck check;
        for (std::size_t i = 0; i < texts.size(); ++i) {
            check.prepare(bytes_of(texts[i]), documents.characters, threshold);
            for (std::size_t j = i + 1; j < texts.size(); ++j)
                near += *check.is_near(bytes_of(texts[j])) ? 1 : 0;
        }
    });
    const double by_join = least_seconds([&] {
        Execution execution(1);
        joined = near_duplicates(parameters, documents, {}, execution)->pairs();
    });
    const auto pairs = static_cast<double>(texts.size() * (texts.size() - 1) / 2);
    std::printf(
        "%-9s %9zu characters: is_near_duplicate %.3g s, near_duplicates %.3g s, %llu near\n",
        kind.c_str(), length, by_check / pairs, by_join / pairs,
        static_cast<unsigned long long>(near));
    if (near != joined) std::printf("  NOT the same answer\n");
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
    const bench::Options options(count, arguments);
    const auto shortest = options.whole<std::size_t>("shortest", 1000);
    const auto longest = options.whole<std::size_t>("longest", 100'000'000);
    std::istringstream kinds(count > 1 ? arguments[1] : "unrelated,half,near,few,periodic");
    for (std::string kind; std::getline(kinds, kind, ',');)
        for (std::size_t length = shortest; length <= longest; length *= 10)
            measure(kind, length, options.number("threshold", 0.05));
}
