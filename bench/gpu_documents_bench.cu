// bench/gpu_documents_bench.cu - document comparison on one GPU: measured figure, floor and ratio
//
// Arguments: none, or a corpus's documents.bin, whose documents are joined and compared. One line a
// figure: measured, floor, ratio. The floor of a verification: 10 operations for each 32 cells of
// the band that the limit leaves, or that the distance would have (Myers 1999), at the device's
// integer rate of 64 lanes a clock and multiprocessor.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "bench/corpus_reader.hpp"
#include "bench/gpu_bench.hpp"
#include "bench/text_documents.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/documents/detail/edit_distance.hpp"
#include "kernels/documents/detail/exact_join.hpp"

using namespace gputext;

namespace {

constexpr std::uint64_t kSeed = 20261121;
constexpr double kThreshold = 0.05;
constexpr std::size_t kLength = 10000;
constexpr std::size_t kMemory = std::size_t{8} << 30;

using bench::check;

/// Median of five, after one to warm up.
double seconds_of(const std::function<void()>& work) {
    std::vector<double> times;
    for (int i = 0; i < 6; ++i) {
        const auto start = std::chrono::steady_clock::now();
        work();
        times.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(times.begin() + 1, times.end());
    return times[3];
}

/// Lane operations a second.
double integer_rate() {
    int processors = 0, kilohertz = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0);
    return 64.0 * processors * kilohertz * 1e3;
}

class Resident {
public:
    explicit Resident(const std::vector<std::string_view>& texts) {
        for (const std::string_view text : texts) {
            extents_.push_back({packed_.size(), text.size()});
            packed_.insert(packed_.end(), text.begin(), text.end());
        }
        check(bytes_.upload(packed_, nullptr));
        check(device_extents_.upload(extents_, nullptr));
        cudaStreamSynchronize(nullptr);
    }

    DeviceDocuments view() const {
        return {bytes_.data(), device_extents_.data(), extents_, CharacterLengths::utf8()};
    }
    Documents host_view() const { return {packed_.data(), extents_, CharacterLengths::utf8()}; }

private:
    std::vector<std::uint8_t> packed_;
    std::vector<Extent> extents_;
    DeviceBuffer<std::uint8_t> bytes_;
    DeviceBuffer<Extent> device_extents_;
};

void print_verification(const char* name, const Resident& documents,
                        const std::vector<DocumentPair>& pairs) {
    std::vector<std::uint32_t> distances(pairs.size());
    Execution execution(1);
    const double seconds = seconds_of([&] {
        check(edit_distances(documents.view(), pairs, kMemory, execution, nullptr, distances));
    });
    double full = 0, own = 0;
    std::size_t near = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const double columns =
            static_cast<double>(std::max(documents.host_view()[pairs[i].first].size(),
                                         documents.host_view()[pairs[i].second].size()));
        const double limit = pairs[i].limit;
        full += columns * (limit + 1) / 32 * 10;
        own += columns * (std::min<double>(distances[i], limit) + 1) / 32 * 10;
        near += distances[i] != kAboveLimit;
    }
    full /= integer_rate();
    own /= integer_rate();
    std::printf(
        "verify %-22s %8zu pairs (%5.1f %% near) %8.2f ms %6.2fe6 pairs/s; floor of the "
        "full band %7.2f ms, ratio %5.2f; of the distances' bands %7.2f ms, ratio %5.2f\n",
        name, pairs.size(), 100.0 * static_cast<double>(near) / pairs.size(), seconds * 1e3,
        static_cast<double>(pairs.size()) / seconds / 1e6, full * 1e3, seconds / full, own * 1e3,
        seconds / own);
    std::fflush(stdout);
}

/// Both steps of the exact mode, and how many pairs are near.
void print_join(const char* name, const std::vector<std::string_view>& texts) {
    const Resident documents(texts);
    const Documents host = documents.host_view();
    std::vector<std::uint32_t> lengths;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < host.size(); ++i) {
        lengths.push_back(static_cast<std::uint32_t>(count_characters(host[i], host.characters)));
        bytes += host[i].size();
    }
    Execution execution(1);
    std::vector<IndexPair> candidates;
    const double seconds = seconds_of([&] {
        candidates.clear();
        check(join_documents(kThreshold, documents.view(), lengths, kMemory, execution, nullptr,
                             [&](std::span<const IndexPair> some) {
                                 candidates.insert(candidates.end(), some.begin(), some.end());
                                 return Status();
                             }));
    });
    // For pairs that lengths allow, by classes: 16 minima and 16 sums of two 16-bit counts.
    std::vector<std::uint32_t> sorted = lengths;
    std::sort(sorted.begin(), sorted.end());
    double compatible = 0;
    std::size_t end = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        while (end < sorted.size() &&
               sorted[end] - sorted[i] <=
                   most_edits_within(kThreshold, std::size_t{sorted[end]} + sorted[i]))
            ++end;
        compatible += static_cast<double>(end - i - 1);
    }
    const double floor = compatible * 16 / integer_rate() + static_cast<double>(bytes) / 4.3e12;
    std::printf(
        "join   %-22s %8zu documents, %6.1f MB, %8.2fe6 pairs of compatible length, %zu "
        "candidates: %8.2f ms; floor %7.3f ms, ratio %.1f\n",
        name, texts.size(), static_cast<double>(bytes) / 1e6, compatible / 1e6, candidates.size(),
        seconds * 1e3, floor * 1e3, seconds / floor);
    std::vector<DocumentPair> pairs;
    for (const auto [a, b] : candidates)
        pairs.push_back({a, b,
                         static_cast<std::uint32_t>(
                             most_edits_within(kThreshold, std::size_t{lengths[a]} + lengths[b]))});
    print_verification(name, documents, pairs);
}

void bench_join(std::size_t count) {
    const auto strings = bench::documents_with_versions(count, kLength, kSeed);
    print_join("of synthetic documents", {strings.begin(), strings.end()});
}

/// Pairs of a document and a version of it, repeated until there are enough to fill the device.
void bench_versions(const char* name,
                    const std::function<std::size_t(bench::TextDocuments&)>& edits) {
    constexpr std::size_t documents = 4000, repeats = 64;
    bench::TextDocuments texts(kSeed);
    std::vector<std::string> strings;
    std::vector<DocumentPair> pairs;
    for (std::uint32_t i = 0; i < documents; ++i) {
        strings.push_back(texts.document(kLength));
        strings.push_back(texts.version(strings.back(), edits(texts)));
        const std::size_t sum = strings[2 * i].size() + strings[2 * i + 1].size();
        pairs.push_back(
            {2 * i, 2 * i + 1, static_cast<std::uint32_t>(most_edits_within(kThreshold, sum))});
    }
    std::vector<DocumentPair> all;
    for (std::size_t i = 0; i < repeats; ++i) all.insert(all.end(), pairs.begin(), pairs.end());
    print_verification(name, Resident({strings.begin(), strings.end()}), all);
}

void bench_unrelated() {
    constexpr std::uint32_t documents = 4000;
    bench::TextDocuments texts(kSeed);
    std::vector<std::string> strings;
    for (std::uint32_t i = 0; i < documents; ++i) strings.push_back(texts.document(kLength));
    std::vector<DocumentPair> pairs;
    for (std::uint32_t i = 0; i < 64 * documents; ++i)
        pairs.push_back({i % documents, (i % documents + 1 + i / documents) % documents, 999});
    print_verification("unrelated", Resident({strings.begin(), strings.end()}), pairs);
}

}  // namespace

int main(int count, char** arguments) {
    if (count > 1) {
        const bench::Corpus corpus(arguments[1]);
        print_join("of the corpus", corpus.documents());
        return 0;
    }
    const auto edits = [](std::size_t some) {
        return [some](bench::TextDocuments&) { return some; };
    };
    bench_versions("realistic versions", [](bench::TextDocuments& texts) {
        return static_cast<std::size_t>(texts.realistic_rate() * 2 * kLength);
    });
    for (const std::size_t some : {0, 20, 60, 150, 400, 600, 900, 1300})
        bench_versions((std::to_string(some) + " edits").c_str(), edits(some));
    bench_unrelated();
    bench_join(20000);
}
