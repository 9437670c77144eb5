#include "kernels/documents/detail/edit_distance.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/base/device_buffer.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/documents/detail/band_distances.cuh"
#include "kernels/documents/detail/wide_characters.cuh"

namespace gputext {
namespace {

using namespace gpu;

constexpr unsigned kBlock = 256;
constexpr unsigned kAbreast = 4;                 // symbols that a lane compares at once
constexpr std::uint32_t kTrimRound = 1u << 20;   // symbols of a pair a launch
constexpr std::uint64_t kLaunchTime = 15000000;  // nanoseconds
/// What is tried first, unless the lengths differ by more: a shape's limit. Smaller ones are for
/// pairs whose own limit is below.
constexpr std::uint32_t kFirstLimit = 196;
/// Too few pairs to fill a device several times take as long as the longest of them in each class.
constexpr std::uint32_t kFewPairs = 1u << 15;
constexpr std::uint32_t kFewClasses = 1u << 3 | 1u << 7 | 1u << 8 | 1u << 10 | 1u << 11;
constexpr std::uint32_t kAllClasses = (1u << kBandClasses) - 1;
constexpr std::size_t kMostPairs = std::size_t{1} << 20;  // at a time

/// How far the cutting of a pair's ends has come.
enum class Trim : std::uint8_t { front, back, done };

/// A document's symbols, by its place among the decoded ones if it is not narrow.
struct SymbolSource {
    const std::uint8_t* bytes;
    const Extent* extents;
    const std::uint32_t* decoded;  // by document, or null when all are narrow
    const DecodeTask* decode_tasks;

    __device__ Symbols operator[](std::uint32_t document) const {
        const Extent extent = extents[document];
        if (decoded != nullptr && decoded[document] != kAbove) {
            const DecodeTask& task = decode_tasks[decoded[document]];
            return {task.symbols, task.count, 1};
        }
        return {bytes + extent.begin, static_cast<std::uint32_t>(extent.size), 0};
    }
};

__global__ void make_tasks(SymbolSource source, const DocumentPair* pairs, std::uint32_t count,
                           PairTask* tasks, Trim* trims, std::uint32_t* distances) {
    const std::uint32_t i = blockIdx.x * kBlock + threadIdx.x;
    if (i >= count) return;
    Symbols a = source[pairs[i].first];
    Symbols b = source[pairs[i].second];
    if (a.count > b.count) {
        const Symbols longer = a;
        a = b;
        b = longer;
    }
    const std::uint32_t limit = min(pairs[i].limit, b.count);
    tasks[i] = {a, b, limit};
    trims[i] = b.count - a.count > limit ? Trim::done : Trim::front;
    distances[i] = kAbove;
}

/// A warp cuts off what a pair has in common, up to kTrimRound symbols a launch.
class TrimWarp {
public:
    __device__ TrimWarp(PairTask& task) : task_(task), lane_(threadIdx.x % kWarp) {}

    /// False when there may be more in common.
    template <bool kBack>
    __device__ bool cut() {
        const std::uint32_t both = min(task_.rows.count, task_.columns.count);
        const std::uint32_t most = min(both, kTrimRound);
        std::uint32_t equal = 0;
        while (equal < most) {
            const unsigned differs = __ballot_sync(kAllLanes, !same_here<kBack>(equal, both));
            const unsigned lanes = differs == 0 ? kWarp : __ffs(differs) - 1;
            equal += lanes * kAbreast;
            if (differs == 0) continue;
            while (equal < both && same<kBack>(equal)) ++equal;
            break;
        }
        equal = min(equal, both);
        drop<kBack>(task_.rows, equal);
        drop<kBack>(task_.columns, equal);
        return equal < most || most == both;
    }

private:
    template <bool kBack>
    __device__ bool same(std::uint32_t i) const {
        return kBack ? task_.rows[task_.rows.count - 1 - i] ==
                           task_.columns[task_.columns.count - 1 - i]
                     : task_.rows[i] == task_.columns[i];
    }

    /// Whether this lane's symbols behind the first `equal` are the same, where there are any.
    template <bool kBack>
    __device__ bool same_here(std::uint32_t equal, std::uint32_t both) const {
        bool all = true;
#pragma unroll
        for (unsigned k = 0; k < kAbreast; ++k) {
            const std::uint32_t i = equal + lane_ * kAbreast + k;
            all &= i >= both || same<kBack>(i);
        }
        return all;
    }

    template <bool kBack>
    __device__ static void drop(Symbols& symbols, std::uint32_t count) {
        symbols.count -= count;
        if (kBack) return;
        const std::size_t width = symbols.wide != 0 ? sizeof(std::uint32_t) : 1;
        symbols.data = static_cast<const char*>(symbols.data) + count * width;
    }

    PairTask& task_;
    unsigned lane_;
};

/// lists[0] are those of narrow pairs, lists[1] of the others.
struct ListsByWidth {
    TaskLists lists[2];
};

__global__ void trim_tasks(PairTask* tasks, Trim* trims, std::uint32_t count, ListsByWidth by_width,
                           std::uint32_t* distances, std::uint32_t* unfinished) {
    const std::uint32_t i = (blockIdx.x * kBlock + threadIdx.x) / kWarp;
    if (i >= count || trims[i] == Trim::done) return;
    PairTask task = tasks[i];
    Trim trim = trims[i];
    TrimWarp warp(task);
    if (trim == Trim::front && warp.cut<false>()) trim = Trim::back;
    if (trim == Trim::back && warp.cut<true>()) trim = Trim::done;
    __syncwarp();
    if (threadIdx.x % kWarp != 0) return;
    task.limit = min(task.limit, task.columns.count);
    tasks[i] = task;
    trims[i] = trim;
    if (trim != Trim::done) {
        atomicAdd(unfinished, 1);
        return;
    }
    const std::uint32_t difference = task.columns.count - task.rows.count;
    if (task.rows.count == 0) {
        distances[i] = difference;
        return;
    }
    const std::uint32_t guess = min(task.limit, max(kFirstLimit, 2 * difference + 64));
    const TaskLists& lists = by_width.lists[task.is_wide() ? 1 : 0];
    lists.add(class_for(guess, task, 0, lists.usable), i);
}

__global__ void gather_pairs(const std::uint32_t* which, std::uint32_t count, const PairTask* tasks,
                             StripPair* pairs) {
    const std::uint32_t i = blockIdx.x * kBlock + threadIdx.x;
    if (i < count) pairs[i] = {which[i], tasks[which[i]]};
}

/// Distances of one batch of pairs after another.
class Verification {
public:
    Verification(const DeviceDocuments& documents, std::size_t memory_limit, Execution& execution,
                 cudaStream_t stream)
        : documents_(documents),
          memory_limit_(memory_limit),
          execution_(execution),
          stream_(stream) {}

    Status run(std::span<const DocumentPair> pairs, std::span<std::uint32_t> distances) {
        GPUTEXT_TRY(find_wide_documents(documents_, execution_, stream_, wide_));
        any_wide_ = std::ranges::find(wide_, 1) != wide_.end();
        place_.assign(any_wide_ ? documents_.size() : 0, kAbove);
        while (!pairs.empty()) {
            const std::size_t count = next_batch(pairs);
            GPUTEXT_TRY(run_batch(pairs.first(count), distances.first(count)));
            execution_.advance(count);
            pairs = pairs.subspan(count);
            distances = distances.subspan(count);
        }
        return {};
    }

    static constexpr std::size_t kPairBytes = sizeof(DocumentPair) + sizeof(PairTask) +
                                              sizeof(Trim) + sizeof(std::uint32_t) +
                                              2 * kClasses * sizeof(std::uint32_t);

private:
    /// As many pairs as half of the memory holds with their documents' characters; the other half
    /// is for long pairs. Chooses the documents to decode.
    std::size_t next_batch(std::span<const DocumentPair> pairs) {
        for (const std::uint32_t document : to_decode_) place_[document] = kAbove;
        to_decode_.clear();
        decoded_bytes_ = 0;
        std::size_t bytes = 0;
        std::size_t count = 0;
        while (count < pairs.size() && count < kMostPairs) {
            const auto [first, second, limit] = pairs[count];
            bytes += kPairBytes + bytes_to_decode(first) +
                     (first == second ? 0 : bytes_to_decode(second));
            if (count > 0 && bytes > memory_limit_ / 2) break;
            for (const std::uint32_t document : {first, second}) {
                if (bytes_to_decode(document) == 0) continue;
                place_[document] = static_cast<std::uint32_t>(to_decode_.size());
                to_decode_.push_back(document);
                decoded_bytes_ += documents_.host_extents[document].size;
            }
            ++count;
        }
        return count;
    }

    /// 0 for a narrow document and for one that is in the batch already.
    std::size_t bytes_to_decode(std::uint32_t document) const {
        if (!any_wide_ || wide_[document] == 0 || place_[document] != kAbove) return 0;
        return documents_.host_extents[document].size * sizeof(std::uint32_t) + sizeof(DecodeTask);
    }

    Status run_batch(std::span<const DocumentPair> pairs, std::span<std::uint32_t> distances) {
        for (const auto step : {&Verification::decode, &Verification::allocate})
            GPUTEXT_TRY((this->*step)(pairs));
        GPUTEXT_TRY(trim(static_cast<std::uint32_t>(pairs.size())));
        for (const bool wide : {false, true}) {
            if (wide && !any_wide_) continue;
            GPUTEXT_TRY(run_bands(wide));
            GPUTEXT_TRY(run_strips(wide));
        }
        return download(distances_.data(), distances.data(), distances.size(), stream_,
                        "verifying pairs");
    }

    Status decode(std::span<const DocumentPair>) {
        if (to_decode_.empty()) return {};
        GPUTEXT_TRY(decoded_.allocate(decoded_bytes_, stream_));
        std::vector<DecodeTask> tasks;
        std::uint32_t* symbols = decoded_.data();
        std::uint64_t longest = 0;
        for (const std::uint32_t document : to_decode_) {
            const Extent extent = documents_.host_extents[document];
            tasks.push_back({extent, symbols});
            symbols += extent.size;
            longest = std::max(longest, extent.size);
        }
        GPUTEXT_TRY(decode_tasks_.upload(tasks, stream_));
        GPUTEXT_TRY(places_.upload(place_, stream_));
        return decode_documents(documents_, decode_tasks_.data(),
                                static_cast<std::uint32_t>(tasks.size()), longest, execution_,
                                stream_);
    }

    Status allocate(std::span<const DocumentPair> pairs) {
        const std::size_t count = pairs.size();
        GPUTEXT_TRY(pairs_.upload(pairs, stream_));
        if (count > tasks_.size()) {
            GPUTEXT_TRY(tasks_.allocate(count, stream_));
            GPUTEXT_TRY(trims_.allocate(count, stream_));
            GPUTEXT_TRY(distances_.allocate(count, stream_));
            GPUTEXT_TRY(list_memory_.allocate(2 * kClasses * count, stream_));
        }
        if (counters_.size() == 0) GPUTEXT_TRY(counters_.allocate(kCounters, stream_));
        const auto room = static_cast<std::uint32_t>(tasks_.size());
        for (unsigned i = 0; i < 2; ++i)
            lists_.lists[i] = {list_memory_.data() + std::size_t{i} * kClasses * room,
                               counters_.data() + i * kClasses,
                               counters_.data() + (2 + i) * kClasses, room,
                               count < kFewPairs ? kFewClasses : kAllClasses};
        return cuda_status(
            cudaMemsetAsync(counters_.data(), 0, kCounters * sizeof(std::uint32_t), stream_),
            "verifying pairs");
    }

    Status trim(std::uint32_t count) {
        const SymbolSource source{documents_.bytes, documents_.extents,
                                  to_decode_.empty() ? nullptr : places_.data(),
                                  decode_tasks_.data()};
        make_tasks<<<(count + kBlock - 1) / kBlock, kBlock, 0, stream_>>>(
            source, pairs_.data(), count, tasks_.data(), trims_.data(), distances_.data());
        const auto blocks =
            static_cast<unsigned>((std::size_t{count} * kWarp + kBlock - 1) / kBlock);
        do {
            std::uint32_t* unfinished = counters_.data() + kUnfinished;
            cudaMemsetAsync(unfinished, 0, sizeof *unfinished, stream_);
            trim_tasks<<<blocks, kBlock, 0, stream_>>>(tasks_.data(), trims_.data(), count, lists_,
                                                       distances_.data(), unfinished);
            GPUTEXT_TRY(look());
        } while (seen_[kUnfinished] > 0);
        return {};
    }

    /// Pairs go from smaller shapes' lists to larger ones', so one pass does them all.
    Status run_bands(bool wide) {
        const unsigned counts = wide ? kClasses : 0;
        const unsigned taken = counts + 2 * kClasses;
        for (unsigned which = 0; which < band_classes(wide); ++which) {
            while (seen_[taken + which] < seen_[counts + which]) {
                GPUTEXT_TRY(launch_band_distances(which, wide, tasks_.data(), lists_.lists[wide],
                                                  distances_.data(), kLaunchTime, stream_));
                GPUTEXT_TRY(look());
            }
        }
        return {};
    }

    Status run_strips(bool wide) {
        const std::uint32_t count = seen_[(wide ? kClasses : 0) + kStripClass];
        if (count == 0) return {};
        const TaskLists& lists = lists_.lists[wide];
        DeviceBuffer<StripPair> gathered;
        GPUTEXT_TRY(gathered.allocate(count, stream_));
        gather_pairs<<<(count + kBlock - 1) / kBlock, kBlock, 0, stream_>>>(
            lists.tasks + std::size_t{kStripClass} * lists.room, count, tasks_.data(),
            gathered.data());
        std::vector<StripPair> pairs(count);
        GPUTEXT_TRY(download(gathered.data(), pairs.data(), count, stream_, "verifying pairs"));
        return strip_distances(pairs, wide, distances_.data(), memory_limit_ / 2, execution_,
                               stream_);
    }

    /// Waits for the stream and looks at the counters and the wish to stop.
    Status look() {
        GPUTEXT_TRY(cuda_status(cudaGetLastError(), "verifying pairs"));
        GPUTEXT_TRY(
            download(counters_.data(), seen_.data(), kCounters, stream_, "verifying pairs"));
        return execution_.stop_requested() ? Status::cancelled() : Status();
    }

    // The lists' counts of narrow and wide pairs, how many of them are taken, and one more.
    static constexpr unsigned kUnfinished = 4 * kClasses;
    static constexpr unsigned kCounters = kUnfinished + 1;

    const DeviceDocuments& documents_;
    std::size_t memory_limit_;
    Execution& execution_;
    cudaStream_t stream_;

    std::vector<std::uint8_t> wide_;  // by document
    bool any_wide_ = false;
    std::vector<std::uint32_t> place_;      // by document: in to_decode_, or kAbove
    std::vector<std::uint32_t> to_decode_;  // documents of this batch
    std::size_t decoded_bytes_ = 0;         // of those
    std::array<std::uint32_t, kCounters> seen_{};

    DeviceBuffer<std::uint32_t> decoded_, places_;
    DeviceBuffer<DecodeTask> decode_tasks_;
    DeviceBuffer<DocumentPair> pairs_;
    DeviceBuffer<PairTask> tasks_;
    DeviceBuffer<Trim> trims_;
    DeviceBuffer<std::uint32_t> distances_, list_memory_, counters_;
    ListsByWidth lists_{};
};

}  // namespace

std::size_t least_edit_distance_bytes(const DeviceDocuments& documents,
                                      std::span<const DocumentPair> pairs) {
    std::size_t most = 0;
    for (const DocumentPair& pair : pairs) {
        const std::size_t first = documents.host_extents[pair.first].size;
        const std::size_t second = documents.host_extents[pair.second].size;
        const std::size_t decoded =
            documents.characters.all_single() ? 0 : (first + second) * sizeof(std::uint32_t);
        most = std::max({most, decoded, strip_bytes(std::min(first, second))});
    }
    return 2 * (most + 2 * sizeof(DecodeTask) + Verification::kPairBytes);
}

Status edit_distances(const DeviceDocuments& documents, std::span<const DocumentPair> pairs,
                      std::size_t memory_limit, Execution& execution, cudaStream_t stream,
                      std::span<std::uint32_t> distances) try {
    if (pairs.empty()) return {};
    if (memory_limit < least_edit_distance_bytes(documents, pairs))
        return {ErrorCode::invalid_argument,
                "too little device memory allowed to compare these documents"};
    execution.begin_phase("verifying candidates", pairs.size());
    return Verification(documents, memory_limit, execution, stream).run(pairs, distances);
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

}  // namespace gputext
