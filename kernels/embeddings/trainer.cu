#include "kernels/embeddings/trainer.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cpp/base/counter_random.hpp"
#include "cpp/base/execution.hpp"
#include "cpp/base/machine.hpp"
#include "cpp/embeddings/detail/training_windows.hpp"
#include "cpp/embeddings/trainer.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/embeddings/detail/training_steps.hpp"

namespace gputext::gpu {

// What an epoch trains on: the entries of cpp/embeddings/trainer.hpp, which are a replica's tokens
// that stay, with a break before each text. Each block of tokens counts its entries, the counts are
// added up, and each writes its own.

/// The entries of one replica in one epoch, and the tokens that they are made of: on the device,
/// or, where memory is short, copied there some at a time whenever entries are made.
class WordEntries {
public:
    /// A word's number and a bit that says whether a text begins with it.
    static constexpr std::uint32_t kBegins = std::uint32_t{1} << 31;

    WordEntries(const TrainerParameters& parameters, const TokenStream& tokens, UploadRing& ring,
                cudaStream_t stream)
        : parameters_(parameters), tokens_(tokens), ring_(ring), stream_(stream) {}

    /// Looks at all tokens. Errors: invalid_argument for a word that is not below `words`,
    /// cancelled. O(tokens) on the execution's threads.
    Status measure(std::uint32_t words, Execution& execution);
    /// Device memory, after measure().
    std::uint64_t bytes(bool resident) const;
    /// Copies the tokens to the device if they are to be resident. Errors: cancelled,
    /// out_of_memory, a device's.
    Status open(bool resident, Execution& execution);

    /// Makes the entries, unless they are there; `keep` is on the device, of each word. Waits for
    /// the stream. Errors as before.
    Status make(const std::uint32_t* keep, std::uint32_t epoch, std::uint32_t replica,
                Execution& execution);

    const std::uint32_t* data() const { return entries_.data(); }
    std::uint64_t size() const { return size_; }

private:
    /// Tokens that are taken at once.
    std::uint64_t chunk() const;
    Status copy_tokens(std::uint64_t begin, std::uint64_t end, std::uint32_t* to,
                       Execution& execution);
    Status copy_packed(std::uint64_t begin, std::uint64_t end, std::uint32_t* to,
                       Execution& copying);

    const TrainerParameters parameters_;
    const TokenStream tokens_;
    UploadRing& ring_;
    const cudaStream_t stream_;
    std::uint64_t texts_ = 0;
    bool resident_ = false;
    std::vector<std::uint32_t> packed_;      // on the host, on their way
    DeviceBuffer<std::uint32_t> on_device_;  // with kBegins
    DeviceBuffer<std::uint32_t> begins_;     // of each block's entries
    DeviceBuffer<std::uint8_t> scratch_;
    DeviceBuffer<std::uint32_t> entries_;
    std::uint64_t size_ = 0;
    bool made_ = false;
    std::uint32_t epoch_ = 0, replica_ = 0;  // that they are of
};

/// Device memory of the entries of so many tokens and texts.
std::uint64_t entry_bytes(const TrainerParameters& parameters, std::uint64_t tokens,
                          std::uint64_t texts, bool resident);

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kTokensOfThread = 8;
constexpr unsigned kTokensOfBlock = kThreads * kTokensOfThread;

/// Tokens on the device that are taken at once: their entries can be counted in 32 bits.
constexpr std::uint64_t kMostChunk = std::uint64_t{1} << 30;
/// Tokens that are copied from the host at once.
constexpr std::uint64_t kCopied = std::uint64_t{1} << 22;
/// Tokens that one thread of the host looks at in one step.
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

namespace {

constexpr std::uint64_t kMostWords = WordEntries::kBegins - 1;
/// Seconds that a launch is to take.
constexpr double kLaunchSeconds = 0.010;
constexpr std::uint64_t kFirstSteps = 64;
/// How often the host looks at a launch, and at the stop request.
constexpr std::chrono::microseconds kLook{200};
/// Elements of the model that are copied at once.
constexpr std::uint64_t kCopiedElements = std::uint64_t{1} << 24;
/// Rounding of the allocations, and small ones.
constexpr std::uint64_t kSmallBuffers = std::uint64_t{1} << 20;

/// Bytes of everything whose size does not depend on the tokens.
std::uint64_t model_bytes(const TrainerParameters& parameters, std::uint64_t words) {
    const std::uint64_t row = row_stride(parameters.dimensions) + sum_stride(parameters.dimensions);
    const std::uint64_t copied = std::min(kCopiedElements, words * parameters.dimensions);
    return 4 * (2 * words * (row + 2) + 3 * words + copied) + kSmallBuffers;
}

/// Rows as the host has them to where they lie on the device, or back.
struct RowCopy {
    float* rows;
    float* plain;
    std::uint64_t first, size;  // rows
    std::uint32_t dimensions, stride, quad;
};

template <bool Back>
__global__ void copy_rows(RowCopy job) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (at >= job.size * job.stride) return;
    const std::uint64_t row = at / job.stride;
    const auto place = static_cast<std::uint32_t>(at % job.stride);
    const std::uint32_t of_quad = 32 * job.quad, within = place % of_quad;
    const std::uint32_t element =
        (place / of_quad * job.quad + within % job.quad) * 32 + within / job.quad;
    float& there = job.rows[(job.first + row) * job.stride + place];
    if (element < job.dimensions) {
        float& here = job.plain[row * job.dimensions + element];
        if (Back)
            here = there;
        else
            there = here;
    } else if (!Back) {
        there = 0;
    }
}

class CudaWordTrainer final : public WordTrainer {
public:
    CudaWordTrainer(const TrainerParameters& parameters, const TokenStream& tokens,
                    const DeviceWork& work, UploadRing& ring, WordTrainerTimes* times)
        : parameters_(parameters),
          tokens_(tokens),
          work_(work),
          ring_(ring),
          times_(times),
          entries_(parameters, tokens, ring, work.stream) {}

    ~CudaWordTrainer() override {
        for (cudaEvent_t& event : done_)
            if (event != nullptr) cudaEventDestroy(event);
    }

    Status open(const WordSampling& sampling, Execution& execution) {
        const std::uint64_t words = sampling.keep.size();
        if (words > kMostWords)
            return {ErrorCode::invalid_argument, "there are " + std::to_string(words) +
                                                     " words, more than " +
                                                     std::to_string(kMostWords)};
        GPUTEXT_TRY(entries_.measure(static_cast<std::uint32_t>(words), execution));
        const std::uint64_t model = model_bytes(parameters_, words);
        const bool resident = model + entries_.bytes(true) <= work_.bytes;
        taken_ = model + entries_.bytes(resident);
        GPUTEXT_TRY(check_memory(taken_));
        job_.model = parameters_.model;
        job_.dimensions = parameters_.dimensions;
        job_.window = parameters_.window;
        job_.negative = parameters_.negative;
        job_.batch = parameters_.batch;
        job_.epochs = parameters_.epochs;
        job_.learning_rate = parameters_.learning_rate;
        job_.damping = parameters_.damping;
        job_.words = static_cast<std::uint32_t>(words);
        GPUTEXT_TRY(plan_steps(job_, plan_));
        GPUTEXT_TRY(allocate(sampling));
        for (cudaEvent_t& event : done_)
            GPUTEXT_TRY(cuda_status(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                    "creating an event"));
        return entries_.open(resident, execution);
    }

    Status load(const TrainingModel& model) override {
        // Written without its const: the device reads it only.
        GPUTEXT_TRY(copy<false>(const_cast<float*>(model.vectors.data()), 0));
        return copy<false>(const_cast<float*>(model.outputs.data()), job_.words);
    }

    Status store(TrainingModel& model) override {
        const std::size_t size = std::size_t{job_.words} * parameters_.dimensions;
        model.vectors.resize(size);
        model.outputs.resize(size);
        GPUTEXT_TRY(copy<true>(model.vectors.data(), 0));
        return copy<true>(model.outputs.data(), job_.words);
    }

    Status train(const TrainingPart& part, Execution& execution, TrainingCount& count) override {
        const Status status = train_part(part, execution, count);
        // Waits, so that nothing of this part runs when the caller hears of its end or of an error.
        const Status finished =
            cuda_status(cudaStreamSynchronize(work_.stream), "training vectors");
        // The stop request has arrived, too, so that it cannot stop the next part.
        cudaStreamSynchronize(ring_.stream());
        return status.ok() ? finished : status;
    }

private:
    Status check_memory(std::uint64_t needed) const {
        if (needed <= work_.bytes) return {};
        return {ErrorCode::out_of_memory, "training vectors takes " + std::to_string(needed) +
                                              " bytes of device memory, and " +
                                              std::to_string(work_.bytes) + " may be taken"};
    }

    template <class T>
    Status clear(DeviceBuffer<T>& buffer, std::uint64_t size) {
        GPUTEXT_TRY(buffer.allocate(size, work_.stream));
        return cuda_status(cudaMemsetAsync(buffer.data(), 0, size * sizeof(T), work_.stream),
                           "allocating device memory");
    }

    Status allocate(const WordSampling& sampling) {
        const std::uint64_t words = job_.words;
        GPUTEXT_TRY(clear(rows_, 2 * words * row_stride(parameters_.dimensions)));
        GPUTEXT_TRY(clear(sums_, 2 * words * sum_stride(parameters_.dimensions)));
        GPUTEXT_TRY(clear(counts_, count_size(words)));
        GPUTEXT_TRY(spill_.allocate(2 * words, work_.stream));
        GPUTEXT_TRY(keep_.upload(sampling.keep, work_.stream));
        GPUTEXT_TRY(own_.upload(sampling.own, work_.stream));
        GPUTEXT_TRY(other_.upload(sampling.other, work_.stream));
        GPUTEXT_TRY(sync_.allocate(1, work_.stream));
        GPUTEXT_TRY(totals_.allocate(1, work_.stream));
        GPUTEXT_TRY(clear(stop_, 1));
        job_.rows = rows_.data();
        job_.sums = sums_.data();
        job_.counts = counts_.data();
        job_.spill = spill_.data();
        job_.own = own_.data();
        job_.other = other_.data();
        job_.sync = sync_.data();
        job_.totals = totals_.data();
        job_.stop = stop_.data();
        return {};
    }

    /// Copies the rows of all words between the host's array and the device's rows from number
    /// `first` on.
    template <bool Back>
    Status copy(float* on_host, std::uint64_t first) {
        Execution copying(usable_processors());
        const std::uint32_t dimensions = parameters_.dimensions;
        RowCopy job{rows_.data(), nullptr, 0, 0, dimensions, row_stride(dimensions), 0};
        while (place_in_row(32 * job.quad, dimensions) == job.quad) ++job.quad;
        DeviceBuffer<float> plain;
        const std::uint64_t most = std::max<std::uint64_t>(1, kCopiedElements / dimensions);
        GPUTEXT_TRY(
            plain.allocate(std::min<std::uint64_t>(most, job_.words) * dimensions, work_.stream));
        job.plain = plain.data();
        StreamEvent event;
        GPUTEXT_TRY(event.create());
        for (std::uint64_t row = 0; row < job_.words; row += job.size) {
            job.size = std::min<std::uint64_t>(most, job_.words - row);
            job.first = first + row;
            float* const here = on_host + row * dimensions;
            const std::size_t bytes = job.size * dimensions * sizeof(float);
            auto* const there = reinterpret_cast<std::uint8_t*>(plain.data());
            if (!Back) {
                GPUTEXT_TRY(event.hold(ring_.stream(), work_.stream));
                GPUTEXT_TRY(ring_.copy(there, {reinterpret_cast<const std::uint8_t*>(here), bytes},
                                       copying));
                GPUTEXT_TRY(event.hold(work_.stream, ring_.stream()));
            }
            copy_rows<Back><<<blocks_for(job.size * job.stride, 256), 256, 0, work_.stream>>>(job);
            GPUTEXT_TRY(launched("copying vectors"));
            if (Back)
                GPUTEXT_TRY(ring_.copy_back({reinterpret_cast<std::uint8_t*>(here), bytes}, there,
                                            work_.stream, copying));
        }
        return cuda_status(cudaStreamSynchronize(work_.stream), "copying vectors");
    }

    Status upload_farthest(const TrainingPart& part) {
        job_.farthest = nullptr;
        job_.far_count = 0;
        if (part.farthest.empty()) return {};
        GPUTEXT_TRY(check_memory(taken_ + part.farthest.size_bytes()));
        GPUTEXT_TRY(farthest_.upload(part.farthest, work_.stream));
        job_.farthest = farthest_.data();
        job_.far_count = static_cast<std::uint32_t>(part.farthest.size() / job_.words);
        return {};
    }

    Status train_part(const TrainingPart& part, Execution& execution, TrainingCount& count) {
        StreamTimer entries_timer(times_ != nullptr, work_.stream);
        StreamTimer steps_timer(times_ != nullptr, work_.stream);
        entries_timer.begin();
        GPUTEXT_TRY(entries_.make(keep_.data(), part.epoch, part.replica, execution));
        entries_timer.end();
        GPUTEXT_TRY(upload_farthest(part));
        const TrainingSteps steps(entries_.size(), parameters_.batch);
        job_.entries = entries_.data();
        job_.entry_count = entries_.size();
        job_.window_key =
            random_key(parameters_.seed, TrainerParameters::kWindowUse + part.replica, part.epoch);
        job_.epoch = part.epoch;
        job_.length = steps.length;
        if (steps.length > 0)
            job_.streams =
                static_cast<std::uint32_t>((entries_.size() + steps.length - 1) / steps.length);
        const std::uint64_t begin = steps.begin(part.part, part.parts);
        const std::uint64_t end = steps.begin(part.part + 1, part.parts);
        const ReplicaRange range = replica_range(parameters_, tokens_.words.size(), part.replica);
        const std::uint64_t tokens = range.end - range.first;
        const std::uint64_t part_tokens =
            tokens * (part.part + 1) / part.parts - tokens * part.part / part.parts;
        GPUTEXT_TRY(
            cuda_status(cudaMemsetAsync(stop_.data(), 0, sizeof(std::uint32_t), work_.stream),
                        "training vectors"));
        GPUTEXT_TRY(
            cuda_status(cudaMemsetAsync(totals_.data(), 0, sizeof(StepTotals), work_.stream),
                        "training vectors"));
        steps_timer.begin();
        const Status status = run_steps(begin, end, part_tokens, execution, count);
        steps_timer.end();
        if (status.ok() || status.code() == ErrorCode::cancelled) {
            StepTotals totals{};
            GPUTEXT_TRY(download_value(totals_.data(), totals, work_.stream, "training vectors"));
            count.windows += totals.windows;
            count.steps += totals.steps;
            count.loss += totals.loss;
        }
        if (times_ != nullptr) {
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(work_.stream), "training vectors"));
            times_->entries_ms += entries_timer.milliseconds();
            times_->steps_ms += steps_timer.milliseconds();
            times_->entries += entries_.size() * (end - begin) / std::max(steps.length, 1ul);
            times_->steps += end - begin;
        }
        return status;
    }

    /// A step may take long, so the device is told of a stop request.
    Status wait_for(cudaEvent_t done, const Execution& execution) {
        for (bool told = false;;) {
            const cudaError_t state = cudaEventQuery(done);
            if (state != cudaErrorNotReady) return cuda_status(state, "training vectors");
            if (execution.stop_requested() && !told) {
                GPUTEXT_TRY(cuda_status(
                    cudaMemsetAsync(stop_.data(), 1, sizeof(std::uint32_t), ring_.stream()),
                    "stopping a training"));
                told = true;
            }
            std::this_thread::sleep_for(kLook);
        }
    }

    /// Two launches are queued, so that the device need not wait for the host; each has as many
    /// steps as those before say it should.
    Status run_steps(std::uint64_t begin, std::uint64_t end, std::uint64_t tokens,
                     Execution& execution, TrainingCount& count) {
        using Clock = std::chrono::steady_clock;
        std::uint64_t queued[2] = {};  // steps
        std::uint64_t launches = 0, waited = 0, next = begin, done = 0;
        Clock::time_point before = Clock::now();
        GPUTEXT_TRY(execution.checkpoint(begin == end ? tokens : 0));
        if (begin == end) count.tokens += tokens;
        while (done < end - begin) {
            while (next < end && launches - waited < 2) {
                job_.begin = next;
                job_.end = std::min(end, next + steps_of_launch_);
                GPUTEXT_TRY(launch_steps(job_, plan_, work_.stream));
                GPUTEXT_TRY(cuda_status(cudaEventRecord(done_[launches % 2], work_.stream),
                                        "training vectors"));
                queued[launches++ % 2] = job_.end - job_.begin;
                next = job_.end;
            }
            GPUTEXT_TRY(wait_for(done_[waited % 2], execution));
            GPUTEXT_TRY(execution.checkpoint(0));  // its last steps may have been cut short
            const std::uint64_t steps = queued[waited++ % 2];
            const std::uint64_t all = end - begin, told = part_of(tokens, done, all);
            done += steps;
            const std::uint64_t some = part_of(tokens, done, all) - told;
            count.tokens += some;
            if (times_ != nullptr) ++times_->launches;
            GPUTEXT_TRY(execution.checkpoint(some));
            const Clock::time_point now = Clock::now();
            choose_steps(steps, std::chrono::duration<double>(now - before).count());
            before = now;
        }
        return {};
    }

    static std::uint64_t part_of(std::uint64_t tokens, std::uint64_t done, std::uint64_t all) {
        return static_cast<std::uint64_t>(static_cast<unsigned __int128>(tokens) * done / all);
    }

    void choose_steps(std::uint64_t steps, double seconds) {
        const double wanted = static_cast<double>(steps) * kLaunchSeconds / std::max(seconds, 1e-5);
        const double most = 4 * static_cast<double>(steps_of_launch_);
        steps_of_launch_ = static_cast<std::uint64_t>(std::clamp(wanted, 1.0, most));
    }

    const TrainerParameters parameters_;
    const TokenStream tokens_;
    const DeviceWork work_;
    UploadRing& ring_;
    WordTrainerTimes* const times_;
    WordEntries entries_;
    std::uint64_t taken_ = 0;  // bytes
    StepJob job_;
    StepPlan plan_;
    DeviceBuffer<float> rows_;
    DeviceBuffer<std::int32_t> sums_;
    DeviceBuffer<std::uint32_t> counts_, spill_, keep_, own_, other_, farthest_;
    DeviceBuffer<StepSync> sync_;
    DeviceBuffer<StepTotals> totals_;
    DeviceBuffer<std::uint32_t> stop_;
    cudaEvent_t done_[2] = {};  // of the launches that are queued
    std::uint64_t steps_of_launch_ = kFirstSteps;
};

}  // namespace

WordTrainerBytes word_trainer_bytes(const TrainerParameters& parameters, std::uint64_t words,
                                    std::uint64_t tokens, std::uint64_t texts) {
    const std::uint64_t model = model_bytes(parameters, words);
    return {model + entry_bytes(parameters, tokens, texts, false),
            model + entry_bytes(parameters, tokens, texts, true)};
}

Result<std::unique_ptr<WordTrainer>> word_trainer(const TrainerParameters& parameters,
                                                  const WordSampling& sampling,
                                                  const TokenStream& tokens, const DeviceWork& work,
                                                  UploadRing& ring, Execution& execution,
                                                  WordTrainerTimes* times) {
    auto trainer = std::make_unique<CudaWordTrainer>(parameters, tokens, work, ring, times);
    GPUTEXT_TRY(finish_work(trainer->open(sampling, execution), work.stream, "training vectors"));
    return std::unique_ptr<WordTrainer>(std::move(trainer));
}

}  // namespace gputext::gpu
