// bench/gpu_signatures_bench.cu - signatures on one GPU: measured figure, floor and their ratio
//
// Arguments: what to measure (join, hash; both when none is named), and perhaps a
// corpus's documents.bin. Data is made from a fixed seed. Lengths of signatures are uniform in
// 40..100 letters, drawn uniformly from 64; one signature in five begins a cluster of 2 to 5, the
// others of which are at most 6 edits away.

#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/corpus_reader.hpp"
#include "bench/gpu_resources.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/detail/signature_join.hpp"
#include "kernels/documents/detail/signature_hash.hpp"
#include "kernels/documents/detail/signature_join.hpp"

using namespace gputext;

namespace {

// Rates of one H200: 132 multiprocessors of 64 32-bit operations a clock at 1.98 GHz; 1-bit
// products as measured by a plain loop of mma.sync m16n8k256.
constexpr double kOperations = 132 * 64 * 1.98e9;
constexpr double kBitOperations = 5.7e15;
constexpr double kMemory = 4.3e12;  // bytes/s, device memory
constexpr double kHostLink = 55e9;  // bytes/s, pinned

using bench::check;
using bench::Clock;
using bench::every_core;

void check(cudaError_t error) {
    check(cuda_status(error, "the benchmark"));
}

/// Fast and small, since billions of letters are drawn.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
    std::uint32_t below(std::uint32_t bound) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<std::uint32_t>((state_ >> 32) * bound >> 32);
    }

private:
    std::uint64_t state_;
};

void edit(std::string& text, Random& random) {
    const char letter = kSignatureAlphabet[random.below(64)];
    const auto at = random.below(static_cast<std::uint32_t>(text.size()));
    const std::uint32_t kind = random.below(3);
    if (kind == 0 && text.size() < 100)
        text.insert(text.begin() + at, letter);
    else if (kind == 1 && text.size() > 40)
        text.erase(at, 1);
    else
        text[at] = letter;
}

struct Signatures {
    std::string letters;
    std::vector<std::string_view> views;
};

Signatures make_signatures(std::size_t count, std::uint32_t shortest, std::uint32_t longest) {
    Random random(20261121);
    Signatures made;
    made.letters.reserve(count * longest);
    std::vector<std::size_t> begins;
    const auto add = [&](const std::string& text) {
        if (begins.size() == count) return;
        begins.push_back(made.letters.size());
        made.letters += text;
    };
    while (begins.size() < count) {
        std::string text(shortest + random.below(longest - shortest + 1), 'A');
        for (char& letter : text) letter = kSignatureAlphabet[random.below(64)];
        add(text);
        if (shortest == longest || random.below(5) != 0) continue;
        for (std::uint32_t more = 1 + random.below(4); more > 0; --more) {
            std::string other = text;
            for (std::uint32_t edits = random.below(7); edits > 0; --edits) edit(other, random);
            add(other);
        }
    }
    begins.push_back(made.letters.size());
    for (std::size_t i = 0; i < count; ++i)
        made.views.emplace_back(made.letters.data() + begins[i], begins[i + 1] - begins[i]);
    return made;
}

double all_pairs(std::size_t count) {
    return 0.5 * static_cast<double>(count) * static_cast<double>(count - 1);
}

gpu::DeviceWork all_memory() {
    std::size_t available = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&available, &total));
    // Memory that is freed stays with the process, as it would in a server.
    cudaMemPool_t pool;
    std::uint64_t keep = UINT64_MAX;
    check(cudaDeviceGetDefaultMemPool(&pool, 0));
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    gpu::DeviceWork work;
    work.bytes = std::min<std::size_t>(available - available / 10, std::size_t{64} << 30);
    return work;
}

void measure_join(std::size_t count, gpu::FilterKernel filter, const char* name, int passes) {
    const Signatures made = make_signatures(count, 40, 100);
    const gpu::DeviceWork work = all_memory();
    double best = 1e9;
    std::vector<IndexPair> pairs;
    gpu::JoinCounts counts;
    for (int pass = 0; pass < passes; ++pass) {
        counts = {};
        const Clock clock;
        check(gpu::join_letters(made.views, 0.15, work, every_core(), pairs, filter, &counts));
        best = std::min(best, clock.seconds());
    }
    const double floor = static_cast<double>(counts.filtered) * 512 / kBitOperations;
    std::printf(
        "join %zu (%s): %.3g pairs/s, %.4f s; floor %.4f s; ratio %.2f; filter %.4f s, "
        "verify %.4f s; filtered %.3g, candidates %.3g, repeated %llu, pairs %zu\n",
        count, name, all_pairs(count) / best, best, floor, best / floor, counts.filter_ms / 1e3,
        counts.verify_ms / 1e3, static_cast<double>(counts.filtered),
        static_cast<double>(counts.candidates), static_cast<unsigned long long>(counts.repeated),
        pairs.size());
    if (count > 200'000) return;
    std::vector<IndexPair> expected;
    const Clock clock;
    check(join_letters(made.views, 0.15, best_simd(), every_core(), expected));
    std::printf("  the CPU on %u threads: %.4f s, %s\n", every_core().threads(), clock.seconds(),
                expected == pairs ? "the same pairs" : "OTHER PAIRS");
}

/// Documents of English-like letters, of which no two are alike.
std::string make_bytes(std::size_t size) {
    static const char letters[] = "etaoin shrdlu cmfwyp vbgkjq xz.,;\n(){}=ETAOINSHRDLU0123456789";
    std::string bytes(size, ' ');
    check(every_core().parallel_for(size >> 20, [&](std::size_t i, unsigned) {
        Random random(i + 1);
        for (std::size_t k = i << 20; k < (i + 1) << 20; ++k)
            bytes[k] = letters[random.below(sizeof letters - 1)];
        return Status();
    }));
    return bytes;
}

std::vector<Extent> make_extents(std::size_t size, std::uint32_t mean) {
    Random random(7);
    std::vector<Extent> extents;
    for (std::size_t at = 0; at < size;) {
        const std::size_t own = std::min<std::size_t>(size - at, mean / 2 + random.below(mean + 1));
        extents.push_back({at, own});
        at += own;
    }
    return extents;
}

float event_seconds(cudaEvent_t begin, cudaEvent_t end) {
    float ms = 0;
    check(cudaEventSynchronize(end));
    check(cudaEventElapsedTime(&ms, begin, end));
    return ms / 1000;
}

void measure_hash(const char* what, const std::uint8_t* bytes, std::size_t size,
                  std::span<const Extent> extents) {
    const gpu::DeviceWork work = all_memory();
    const auto gigabytes = static_cast<double>(size) / 1e9;
    DeviceBuffer<std::uint8_t> on_device;
    check(on_device.allocate(size + 32, nullptr));
    check(on_device.upload({bytes, size}, nullptr));
    gpu::DeviceSignatures found;
    check(found.allocate(extents.size(), 100, nullptr));
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    double best = 1e9, best_wall = 1e9;
    for (int pass = 0; pass < 7; ++pass) {
        check(cudaDeviceSynchronize());
        const Clock clock;
        check(cudaEventRecord(begin));
        check(gpu::hash_resident(on_device.data(), extents, 100, work, every_core(), found));
        check(cudaEventRecord(end));
        best = std::min<double>(best, event_seconds(begin, end));
        best_wall = std::min(best_wall, clock.seconds());
    }
    const double floor = 2 * static_cast<double>(size) * 11 / (2 * kOperations);
    std::printf(
        "hash %s, resident, %.2f GB in %zu documents: %.0f GB/s, %.5f s with planning; floor "
        "%.5f s (22 operations a byte on two pipes), memory %.5f s; ratio %.2f\n",
        what, gigabytes, extents.size(), gigabytes / best_wall, best_wall, floor,
        2 * static_cast<double>(size) / kMemory, best_wall / floor);
    on_device.reset();

    auto ring = gpu::UploadRing::create(every_core().threads() * 3 / 2);
    check(ring.status());
    gpu::PackedSignatures signatures;
    const Documents documents = {bytes, extents, CharacterLengths::single_byte()};
    best = 1e9;
    for (int pass = 0; pass < 4; ++pass) {
        const Clock clock;
        check(gpu::hash_documents(documents, 100, work, **ring, every_core(), signatures));
        best = std::min(best, clock.seconds());
    }
    const double link = static_cast<double>(size) / kHostLink;
    std::printf("hash %s, from host memory: %.1f GB/s, %.4f s; floor %.4f s; ratio %.2f\n", what,
                gigabytes / best, best, link, best / link);
    std::size_t other = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(extents.size(), 2000); ++i)
        other += format_ctph(signatures[i]) != format_ctph(*ctph_signature(documents[i], 100));
    if (other != 0) std::printf("  %zu OTHER SIGNATURES\n", other);
}

void measure_made_hashes() {
    const std::size_t size = std::size_t{4} << 30;
    const std::string bytes = make_bytes(size);
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    measure_hash("10 KB", data, size, make_extents(size, 10'000));
    measure_hash("1 KB", data, size / 4, make_extents(size / 4, 1'000));
    measure_hash("100 MB", data, size, make_extents(size, 100'000'000));
    const std::string zeros(std::size_t{1} << 28, '\0');
    measure_hash("10 KB of zeros", reinterpret_cast<const std::uint8_t*>(zeros.data()),
                 zeros.size(), make_extents(zeros.size(), 10'000));
}

void measure_corpus(const char* path) {
    const bench::Corpus corpus(path);
    std::string bytes;
    std::vector<Extent> extents;
    for (const std::string_view document : corpus.documents()) {
        extents.push_back({bytes.size(), document.size()});
        bytes += document;
    }
    measure_hash("corpus", reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
                 extents);
}

}  // namespace

int main(int count, char** arguments) {
    const auto wanted = [&](const char* what) {
        for (int i = 1; i < count; ++i)
            if (std::strcmp(arguments[i], what) == 0) return true;
        return count == 1;
    };
    if (wanted("join")) {
        measure_join(20'000, gpu::FilterKernel::fitting, "bit product", 5);
        measure_join(100'000, gpu::FilterKernel::fitting, "bit product", 5);
        measure_join(100'000, gpu::FilterKernel::count_ones, "counting ones", 3);
        measure_join(1'000'000, gpu::FilterKernel::fitting, "bit product", 5);
        measure_join(10'000'000, gpu::FilterKernel::fitting, "bit product", 2);
    }
    if (wanted("hash")) measure_made_hashes();
    for (int i = 1; i < count; ++i)
        if (std::strstr(arguments[i], "documents.bin") != nullptr) measure_corpus(arguments[i]);
}
