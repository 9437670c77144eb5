// bench/gpu_near_duplicates_bench.cu - near_duplicates on a GPU as gputextd runs it: time by phase
//
// Arguments: none, or a corpus's documents.bin and thresholds, 0.05 when there are none. For each
// mode and threshold: milliseconds of the first job and of later ones, from the files of a request,
// mapped anew for each job, to the answer; those of the phases of the median job; and those of the
// host's implementation on the same threads, whose answer has to be the same one. With
// GPUTEXT_BENCH_HOST=0 the host computes nothing, which may take it long, and the number after the
// pairs, which depends on each of them, is left to compare. Without a corpus: 20,000 documents of
// about 10 KB, generated.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/corpus_reader.hpp"
#include "bench/gpu_bench.hpp"
#include "bench/phase_times.hpp"
#include "bench/text_documents.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/memory_file.hpp"
#include "kernels/daemon/cuda_devices.hpp"

using namespace gputext;

namespace {

constexpr std::uint64_t kSeed = 20261121;
constexpr double kThreshold = 0.05;
constexpr std::size_t kJobs = 15;
constexpr double kEnough = 4000;  // milliseconds of jobs

using bench::check;

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Documents as a client hands them over.
class Request {
public:
    explicit Request(const std::vector<std::string_view>& texts) {
        for (const std::string_view text : texts) {
            extents_.push_back({file_.size(), text.size()});
            check(file_.append({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
        }
        check(file_.seal());
    }

    MappedFile map() const {
        auto mapped = MappedFile::map(file_.descriptor(), file_.size(), Trust::sealed);
        check(mapped.status());
        return std::move(*mapped);
    }
    Documents documents(const MappedFile& mapped) const {
        return {mapped.bytes().data(), extents_, CharacterLengths::utf8()};
    }
    std::size_t bytes() const { return file_.size(); }

private:
    MemoryFile file_;
    std::vector<Extent> extents_;
};

struct Job {
    double milliseconds;
    std::map<std::string, double> phases;
    std::vector<NearPair> pairs;
};

template <class Operator>
Job run(const Request& request, unsigned threads, Operator&& near_duplicates) {
    Execution execution(threads);
    bench::PhaseTimes phases(execution);
    const auto begin = Clock::now();
    Job job;
    {
        const MappedFile mapped = request.map();
        const NearDuplicates answer = near_duplicates(request.documents(mapped), execution);
        job.pairs = answer.near_pairs_of(0, UINT32_MAX);
    }
    job.milliseconds = milliseconds_since(begin);
    job.phases = phases.stop();
    return job;
}

Job run_on_device(const Request& request, unsigned threads, NearDuplicateMode mode,
                  double threshold, Device& device) {
    return run(request, threads, [&](const Documents& documents, Execution& execution) {
        auto answer = device.compute<NearDuplicatesOnDevice>(
            NearDuplicateParameters{threshold, mode}, documents, GivenSignatures(),
            device.free_memory(), execution);
        check(answer.status());
        return std::move(*answer);
    });
}

Job run_on_host(const Request& request, unsigned threads, NearDuplicateMode mode,
                double threshold) {
    return run(request, threads, [&](const Documents& documents, Execution& execution) {
        auto answer = near_duplicates({threshold, mode}, documents, {}, execution);
        check(answer.status());
        return std::move(*answer);
    });
}

bool same(const std::vector<NearPair>& a, const std::vector<NearPair>& b) {
    return std::ranges::equal(a, b, [](const NearPair& x, const NearPair& y) {
        return x.first == y.first && x.second == y.second && x.edit_rate == y.edit_rate;
    });
}

/// Differs, most likely, where a pair does.
std::uint64_t mark_of(const std::vector<NearPair>& pairs) {
    std::uint64_t mark = 0;
    for (const NearPair& pair : pairs) {
        mark = (mark ^ pair.first) * 0xff51afd7ed558ccdu;
        mark = (mark ^ pair.second ^ std::bit_cast<std::uint64_t>(pair.edit_rate)) *
               0xc4ceb9fe1a85ec53u;
        mark ^= mark >> 32;
    }
    return mark;
}

bool uses_host() {
    const char* wish = std::getenv("GPUTEXT_BENCH_HOST");
    return wish == nullptr || std::string_view(wish) != "0";
}

void bench_mode(const char* name, NearDuplicateMode mode, double threshold, const Request& request,
                Device& device) {
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    const auto job = [&] { return run_on_device(request, threads, mode, threshold, device); };
    std::vector<Job> jobs;
    const double first = job().milliseconds;
    double sum = 0;
    while (jobs.empty() || (jobs.size() < kJobs && sum < kEnough)) {
        jobs.push_back(job());
        sum += jobs.back().milliseconds;
    }
    const auto faster = [](const Job& a, const Job& b) { return a.milliseconds < b.milliseconds; };
    std::ranges::sort(jobs, faster);
    device.release_memory();
    const double after_release = job().milliseconds;
    const Job& median = jobs[jobs.size() / 2];
    std::printf(
        "%s, threshold %g: %zu near pairs of distinct documents (%016llx); first job %.1f ms, then "
        "median of %zu %.1f ms, best %.1f ms, worst %.1f ms, %.1f ms after memory was given back",
        name, threshold, median.pairs.size(),
        static_cast<unsigned long long>(mark_of(median.pairs)), first, jobs.size(),
        median.milliseconds, jobs.front().milliseconds, jobs.back().milliseconds, after_release);
    if (uses_host()) {
        Job host = run_on_host(request, threads, mode, threshold);
        if (host.milliseconds < kEnough)
            host = std::min(host, run_on_host(request, threads, mode, threshold), faster);
        std::printf("; host on %u threads %.1f ms%s", threads, host.milliseconds,
                    same(median.pairs, host.pairs) ? "" : " (WRONG)");
    }
    std::printf("\n");
    for (const auto& [phase, seconds] : median.phases)
        std::printf("  %-32s %7.2f ms\n", phase.empty() ? "(before and after)" : phase.c_str(),
                    seconds * 1e3);
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
    const auto begin = Clock::now();
    const CudaDevices found = cuda_devices();
    if (found.devices.empty()) return std::fprintf(stderr, "%s\n", found.why_none.c_str()), 1;
    const double listed = milliseconds_since(begin);
    Device& device = *found.devices[0];
    device.prepare();
    std::printf("%s, driver %s: %.0f ms to list the devices, %.0f ms to prepare one\n",
                device.info().name.c_str(), device.info().driver.c_str(), listed,
                milliseconds_since(begin) - listed);
    const auto few = bench::documents_with_versions(100, 1000, kSeed);
    const Request small(std::vector<std::string_view>(few.begin(), few.end()));
    bench_mode("100 documents of 1 KB, ctph", NearDuplicateMode::ctph, kThreshold, small, device);
    bench_mode("100 documents of 1 KB, exact", NearDuplicateMode::exact, kThreshold, small, device);
    std::optional<Request> request;
    if (count > 1) {
        const bench::Corpus corpus(arguments[1]);
        request.emplace(corpus.documents());
    } else {
        const auto texts = bench::documents_with_versions(20000, 10000, kSeed);
        request.emplace(std::vector<std::string_view>(texts.begin(), texts.end()));
    }
    std::printf("%.1f MB\n", static_cast<double>(request->bytes()) / 1e6);
    std::vector<double> thresholds;
    for (int i = 2; i < count; ++i) thresholds.push_back(std::atof(arguments[i]));
    if (thresholds.empty()) thresholds.push_back(kThreshold);
    for (const double threshold : thresholds) {
        bench_mode("ctph", NearDuplicateMode::ctph, threshold, *request, device);
        bench_mode("exact", NearDuplicateMode::exact, threshold, *request, device);
    }
}
