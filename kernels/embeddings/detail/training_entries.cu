#include "kernels/embeddings/detail/training_entries.hpp"

#include <algorithm>
#include <atomic>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include "cpp/base/counter_random.hpp"
#include "cpp/embeddings/detail/training_entries.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kTokensOfThread = 8;
constexpr unsigned kTokensOfBlock = kThreads * kTokensOfThread;

/// At once, of those that are on the device: so that their entries can be counted in 32 bits.
constexpr std::uint64_t kMostChunk = std::uint64_t{1} << 30;
/// At once, of those that come from the host.
constexpr std::uint64_t kCopied = std::uint64_t{1} << 22;
/// That one thread of the host looks at in one go.
constexpr std::size_t kPiece = std::size_t{1} << 16;
/// Scratch memory of adding up.
constexpr std::uint64_t kScratch = std::uint64_t{1} << 20;

struct EntryJob {
    const std::uint32_t* tokens;
    std::uint64_t first;  // the number of the first of them in all
    std::uint64_t size;
    std::uint64_t replica_first;  // no break before this one
    std::uint64_t key;
    const std::uint32_t* keep;
};

/// Calls put() with each entry of a thread's tokens.
template <class Put>
__device__ void each_entry(const EntryJob& job, Put put) {
    const std::uint64_t begin =
        std::uint64_t{blockIdx.x} * kTokensOfBlock + threadIdx.x * kTokensOfThread;
    for (unsigned i = 0; i < kTokensOfThread; ++i) {
        const std::uint64_t at = begin + i;
        if (at >= job.size) return;
        const std::uint32_t token = job.tokens[at], word = token & ~WordEntries::kBegins;
        if (token != word && job.first + at != job.replica_first) put(TrainerParameters::kBreak);
        const std::uint64_t bits = random_bits(job.key, job.first + at);
        if (static_cast<std::uint32_t>(bits >> 32) <= job.keep[word]) put(word);
    }
}

__global__ __launch_bounds__(kThreads) void count_entries(EntryJob job, std::uint32_t* counts) {
    using Reduce = cub::BlockReduce<std::uint32_t, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    std::uint32_t count = 0;
    each_entry(job, [&](std::uint32_t) { ++count; });
    count = Reduce(storage).Sum(count);
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

__global__ __launch_bounds__(kThreads) void write_entries(EntryJob job, const std::uint32_t* begins,
                                                          std::uint32_t* entries) {
    using Scan = cub::BlockScan<std::uint32_t, kThreads>;
    __shared__ typename Scan::TempStorage storage;
    std::uint32_t count = 0, before = 0;
    each_entry(job, [&](std::uint32_t) { ++count; });
    Scan(storage).ExclusiveSum(count, before);
    std::uint32_t* out = entries + begins[blockIdx.x] + before;
    each_entry(job, [&](std::uint32_t entry) { *out++ = entry; });
}

}  // namespace

Status WordEntries::measure(std::uint32_t words, Execution& execution) {
    const std::size_t size = tokens_.words.size();
    std::atomic<std::uint64_t> texts{0};
    std::atomic<bool> wrong{false};
    Execution looking(execution.threads(), execution);  // whose steps nobody sees
    GPUTEXT_TRY(looking.parallel_for(
        (size + kPiece - 1) / kPiece, [&](std::size_t piece, unsigned) -> Status {
            std::uint64_t begins = 0;
            bool above = false;
            for (std::size_t i = piece * kPiece; i < std::min(size, (piece + 1) * kPiece); ++i) {
                begins += i > 0 && tokens_.positions[i] - tokens_.positions[i - 1] >
                                       CooccurrenceShape::kMostWindow;
                above |= tokens_.words[i] >= words;
            }
            texts += begins;
            if (above) wrong = true;
            return {};
        }));
    if (wrong) return {ErrorCode::invalid_argument, "a token is not in the vocabulary"};
    texts_ = texts;
    return {};
}

std::uint64_t WordEntries::chunk() const {
    const std::uint64_t replica = tokens_.words.size() / parameters_.replicas + 1;
    return std::min(replica, resident_ ? kMostChunk : kCopied);
}

std::uint64_t WordEntries::bytes(bool resident) const {
    return entry_bytes(parameters_, tokens_.words.size(), texts_, resident);
}

/// Packs and copies some tokens at a time, by threads; later work on the stream finds them on the
/// device.
Status WordEntries::copy_tokens(std::uint64_t begin, std::uint64_t end, std::uint32_t* to,
                                Execution& execution) {
    Execution copying(execution.threads(), execution);  // whose steps nobody sees
    StreamEvent event;
    GPUTEXT_TRY(event.create());
    GPUTEXT_TRY(event.hold(ring_.stream(), stream_));
    const Status copied = copy_packed(begin, end, to, copying);
    // After an error, too: the memory is not freed before the last copy has come.
    GPUTEXT_TRY(event.hold(stream_, ring_.stream()));
    return copied;
}

Status WordEntries::copy_packed(std::uint64_t begin, std::uint64_t end, std::uint32_t* to,
                                Execution& copying) {
    for (std::uint64_t first = begin; first < end; first += kCopied) {
        const std::size_t some = std::min(kCopied, end - first);
        packed_.resize(some);
        GPUTEXT_TRY(copying.parallel_for(
            (some + kPiece - 1) / kPiece, [&](std::size_t piece, unsigned) -> Status {
                for (std::size_t i = piece * kPiece; i < std::min(some, (piece + 1) * kPiece);
                     ++i) {
                    const std::size_t at = first + i;
                    const bool begins =
                        at > 0 && tokens_.positions[at] - tokens_.positions[at - 1] >
                                      CooccurrenceShape::kMostWindow;
                    packed_[i] = tokens_.words[at] | (begins ? kBegins : 0);
                }
                return {};
            }));
        GPUTEXT_TRY(ring_.copy(reinterpret_cast<std::uint8_t*>(to + (first - begin)),
                               {reinterpret_cast<const std::uint8_t*>(packed_.data()), some * 4},
                               copying));
    }
    return {};
}

Status WordEntries::open(bool resident, Execution& execution) {
    resident_ = resident;
    const std::uint64_t tokens = tokens_.words.size(), replica = tokens / parameters_.replicas + 1;
    GPUTEXT_TRY(on_device_.allocate(resident ? tokens : chunk(), stream_));
    GPUTEXT_TRY(begins_.allocate(chunk() / kTokensOfBlock + 2, stream_));
    GPUTEXT_TRY(entries_.allocate(replica + std::min(replica, texts_), stream_));
    if (!resident || tokens == 0) return {};
    GPUTEXT_TRY(copy_tokens(0, tokens, on_device_.data(), execution));
    packed_ = {};
    return {};
}

Status WordEntries::make(const std::uint32_t* keep, std::uint32_t epoch, std::uint32_t replica,
                         Execution& execution) {
    if (made_ && epoch_ == epoch && replica_ == replica) return {};
    made_ = false;
    size_ = 0;
    const ReplicaRange range = replica_range(parameters_, tokens_.words.size(), replica);
    EntryJob job{};
    job.replica_first = range.first;
    job.key = random_key(parameters_.seed, TrainerParameters::kKeepUse, epoch);
    job.keep = keep;
    for (job.first = range.first; job.first < range.end; job.first += job.size) {
        job.size = std::min<std::uint64_t>(chunk(), range.end - job.first);
        job.tokens = on_device_.data() + (resident_ ? job.first : 0);
        if (!resident_)
            GPUTEXT_TRY(copy_tokens(job.first, job.first + job.size, on_device_.data(), execution));
        const unsigned blocks = blocks_for(job.size, kTokensOfBlock);
        count_entries<<<blocks, kThreads, 0, stream_>>>(job, begins_.data());
        GPUTEXT_TRY(launched("counting words to train on"));
        // The sum of all lands behind the last one, whose own value does not count.
        GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
            return cub::DeviceScan::ExclusiveSum(space, bytes, begins_.data(), begins_.data(),
                                                 blocks + 1, stream_);
        }));
        write_entries<<<blocks, kThreads, 0, stream_>>>(job, begins_.data(),
                                                        entries_.data() + size_);
        GPUTEXT_TRY(launched("listing words to train on"));
        std::uint32_t some = 0;
        GPUTEXT_TRY(
            download_value(begins_.data() + blocks, some, stream_, "listing words to train on"));
        size_ += some;
        GPUTEXT_TRY(execution.checkpoint(0));
    }
    made_ = true;
    epoch_ = epoch;
    replica_ = replica;
    return {};
}

std::uint64_t entry_bytes(const TrainerParameters& parameters, std::uint64_t tokens,
                          std::uint64_t texts, bool resident) {
    const std::uint64_t replica = tokens / parameters.replicas + 1;
    const std::uint64_t kept = resident ? tokens : std::min(replica, kCopied);
    const std::uint64_t blocks = std::min(replica, kMostChunk) / kTokensOfBlock + 2;
    return 4 * (kept + blocks + replica + std::min(replica, texts)) + kScratch;
}

}  // namespace gputext::gpu
