// bench/gpu_near_duplicates_on_devices_bench.cu - near_duplicates on some GPUs of the host, as
// gputextd shares it out
//
// Arguments: ctph, exact or signatures; how many documents; their length; how many GPUs, or all.
// `signatures` is mode ctph with given signatures of 40 to 100 letters, uniformly, of one block
// size, which are the documents, too; one in five begins a cluster of 2 to 5, up to 6 edits apart.
// Milliseconds of the first job, and the best of some later ones, from the files of the request,
// mapped anew for each job, to the file of the reply; which GPUs took part; pairs, and a number
// that depends on each of them, to compare with other numbers of GPUs; and the phases of the best
// job on the GPU that began it.

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "bench/gpu_bench.hpp"
#include "bench/text_documents.hpp"
#include "cpp/daemon/device_workers.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/link/near_duplicates.hpp"
#include "cpp/link/protocol.hpp"
#include "kernels/daemon/cuda_devices.hpp"

using namespace gputext;

namespace {

constexpr std::uint64_t kSeed = 20261123;
constexpr double kThreshold = 0.05;
constexpr int kJobs = 5;

using bench::check;

/// Signatures of one block size, so that all are comparable.
std::vector<std::optional<Ctph>> clusters_of_signatures(std::size_t count) {
    bench::TextDocuments random(kSeed);
    std::vector<std::optional<Ctph>> signatures;
    const auto add = [&](const std::string& letters) {
        Ctph signature;
        signature.level = 4;
        signature.first_length = static_cast<std::uint16_t>(letters.size());
        signature.letters = letters;
        if (signatures.size() < count) signatures.push_back(std::move(signature));
    };
    const auto letter = [&] { return kSignatureAlphabet[random.below(64)]; };
    while (signatures.size() < count) {
        std::string letters(40 + random.below(61), 'A');
        for (char& each : letters) each = letter();
        add(letters);
        if (random.below(5) != 0) continue;
        for (std::size_t more = 1 + random.below(4); more > 0; --more) {
            std::string other = letters;
            for (std::size_t edits = random.below(7); edits > 0; --edits)
                other[random.below(other.size())] = letter();
            add(other);
        }
    }
    return signatures;
}

/// What a client hands over.
class Input {
public:
    Input(const std::string& kind, std::size_t count, std::size_t length) {
        request_.parameters.threshold = kThreshold;
        if (kind == "exact") request_.parameters.mode = NearDuplicateMode::exact;
        if (kind == "signatures") {
            signatures_ = clusters_of_signatures(count);
            for (const auto& signature : signatures_) add(signature->letters);
        } else {
            for (const std::string& text : bench::documents_with_versions(count, length, kSeed))
                add(text);
        }
        check(file_.seal());
        request_.bytes_file = file_.descriptor();
        request_.bytes_size = file_.size();
        request_.extents = extents_;
        request_.signatures = signatures_;
    }
    Input(const Input&) = delete;

    std::shared_ptr<DaemonJob> job(unsigned threads) const {
        NearDuplicatesRequest::Packed packed;
        check(request_.pack(packed, {}));
        auto job = std::make_shared<DaemonJob>(threads, operator_job(packed.message));
        for (const int descriptor : packed.files.descriptors())
            job->files.push_back(FileDescriptor(dup(descriptor)));
        return job;
    }
    std::uint64_t bytes() const { return file_.size(); }

private:
    void add(const std::string& text) {
        extents_.push_back({file_.size(), text.size()});
        check(file_.append({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
    }

    MemoryFile file_;
    std::vector<Extent> extents_;
    std::vector<std::optional<Ctph>> signatures_;
    NearDuplicatesRequest request_;
};

/// Runs one job after the other.
class Devices {
public:
    explicit Devices(std::span<const std::unique_ptr<Device>> devices)
        : workers_(devices, 0, [this](auto job) {
              const std::lock_guard lock(mutex_);
              ended_ = std::move(job);
              changed_.notify_all();
          }) {}

    /// In milliseconds.
    double run(const std::shared_ptr<DaemonJob>& job) {
        const bench::Clock clock;
        workers_.submit(job);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_ == job; });
        check(job->status);
        return 1e3 * clock.seconds();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::shared_ptr<DaemonJob> ended_;
    DeviceWorkers workers_;  // last: its threads use what is above
};

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

void print(const DaemonJob& job, double first, double best) {
    const auto message = decode(job.reply.bytes, job.reply.descriptors.size());
    check(message.status());
    NearDuplicatesAnswer answer;
    answer.summary = std::get<NearDuplicatesReply>(*message);
    answer.documents = answer.summary.documents;
    const auto size = answer.file_size();
    check(size.status());
    auto file = MappedFile::map(job.reply.descriptors[0].get(), *size, Trust::sealed);
    check(file.status());
    answer.file = std::move(*file);
    const auto read = answer.read();
    check(read.status());
    std::printf("first job %.1f ms, best of %d later ones %.1f ms, on %s; %llu pairs (%016llx)\n",
                first, kJobs, best, answer.summary.report.device_name.c_str(),
                static_cast<unsigned long long>(read->near_pair_count()),
                static_cast<unsigned long long>(mark_of(read->near_pairs_of(0, UINT32_MAX))));
    for (const PhaseTime& phase : answer.summary.report.phases)
        std::printf("  %-32s %9.2f ms\n", phase.name.c_str(), phase.seconds * 1e3);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) {
        std::fprintf(stderr, "wanted: ctph|exact|signatures DOCUMENTS LENGTH [GPUS]\n");
        return 1;
    }
    const CudaDevices found = cuda_devices();
    if (found.devices.empty()) return std::fprintf(stderr, "%s\n", found.why_none.c_str()), 1;
    std::size_t some = found.devices.size();
    if (count > 4) some = std::min<std::size_t>(some, std::strtoul(arguments[4], nullptr, 10));
    const Input input(arguments[1], std::strtoul(arguments[2], nullptr, 10),
                      std::strtoul(arguments[3], nullptr, 10));
    std::printf("%.1f MB\n", static_cast<double>(input.bytes()) / 1e6);
    Devices devices(std::span(found.devices).first(some));
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    const double first = devices.run(input.job(threads));
    double best = 1e300;
    std::shared_ptr<DaemonJob> best_job;
    for (int i = 0; i < kJobs; ++i) {
        auto job = input.job(threads);
        const double milliseconds = devices.run(job);
        if (milliseconds >= best) continue;
        best = milliseconds;
        best_job = std::move(job);
    }
    print(*best_job, first, best);
}
