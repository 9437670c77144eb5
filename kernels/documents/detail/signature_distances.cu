#include <algorithm>
#include <new>
#include <string>

#include "kernels/base/launch.hpp"
#include "kernels/documents/detail/edit_limits.hpp"
#include "kernels/documents/detail/pair_sink.hpp"
#include "kernels/documents/detail/pair_verifier.hpp"
#include "kernels/documents/detail/side_by_side.hpp"
#include "kernels/documents/detail/signature_distances.hpp"
#include "kernels/documents/detail/signature_parts.hpp"

namespace gputext::gpu {
namespace {

constexpr std::size_t kDepth = 4;  // of the letter counts, which are not used here
constexpr std::uint32_t kTextsPerTask = 128;
constexpr std::size_t kMostPairs = 1 << 26;   // that the device collects
constexpr std::size_t kMostListed = 1 << 20;  // pairs of long strings in one go
constexpr std::size_t kLeastPairs = 32 * kSideLayouts[0] * kTextsPerTask;
/// Letters of texts that an SM's warps go through in one launch: about 10 ms.
constexpr std::size_t kLettersPerSm = 250'000;

constexpr unsigned longest_of(unsigned layout) {
    return kSideBits / layout - 1;
}

/// Tasks of one layout, in ascending order of their patterns.
struct LayoutTasks {
    unsigned layout;
    std::vector<SideTask> tasks;
    std::vector<std::uint32_t> letters;  // of a task's texts
};

std::uint16_t length_of(std::span<const PartRun> runs, std::uint32_t part) {
    const auto ends_after = [](std::uint32_t p, const PartRun& run) { return p < run.end; };
    return std::upper_bound(runs.begin(), runs.end(), part, ends_after)->length;
}

/// All tasks, and the first part too long for any layout.
std::uint32_t plan_tasks(std::span<const PartRun> runs, std::uint32_t size,
                         std::vector<LayoutTasks>& plan) {
    for (const unsigned layout : kSideLayouts) plan.push_back({layout, {}, {}});
    std::uint32_t begin = 0;
    while (begin < size && length_of(runs, begin) <= longest_of(1)) {
        // The most patterns a lane such that all of them fit; the longest one is the last.
        std::uint32_t end = begin;
        for (LayoutTasks& chosen : plan) {
            end = std::min(size, begin + 32 * chosen.layout);
            if (chosen.layout == 1)
                while (length_of(runs, end - 1) > longest_of(1)) --end;
            if (length_of(runs, end - 1) > longest_of(chosen.layout)) continue;
            for (std::uint32_t text = begin + 1; text < size; text += kTextsPerTask) {
                const std::uint32_t texts_end = std::min(size, text + kTextsPerTask);
                chosen.tasks.push_back({begin, end, text, texts_end});
                chosen.letters.push_back((texts_end - text) * (length_of(runs, texts_end - 1) + 8));
            }
            break;
        }
        begin = end;
    }
    return begin;
}

__global__ void list_pairs(std::uint32_t first, std::uint32_t columns, std::uint32_t row,
                           std::uint32_t count, Candidate* candidates) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) candidates[i] = {row + i / columns, first + i % columns};
}

class AllPairs {
public:
    AllPairs(const DeviceWork& work, Execution& execution) : work_(work), execution_(execution) {}

    Status run(const PackedParts& packed, double rate, std::vector<IndexPair>& pairs,
               std::uint64_t* checksum) {
        const std::size_t needed =
            distances_bytes(packed.size(), packed.letters.size(), packed.longest());
        if (work_.bytes < needed)
            return {ErrorCode::out_of_memory, "comparing " + std::to_string(packed.size()) +
                                                  " signatures needs " + std::to_string(needed) +
                                                  " bytes of device memory, and may take " +
                                                  std::to_string(work_.bytes)};
        longest_ = packed.longest();
        GPUTEXT_TRY(parts_.build(packed, kDepth, work_.stream));
        const std::size_t capacity =
            std::clamp((work_.bytes - needed) / PairSink::bytes_per_pair, kLeastPairs, kMostPairs);
        GPUTEXT_TRY(sink_.allocate(capacity, work_.stream));
        GPUTEXT_TRY(edits_.upload(most_edits_by_length(rate), work_.stream));
        if (checksum != nullptr) GPUTEXT_TRY(clear_checksum());
        GPUTEXT_TRY(compare());
        if (checksum != nullptr) {
            unsigned long long sum = 0;
            GPUTEXT_TRY(download_value(checksum_.data(), sum, work_.stream, "adding distances"));
            *checksum = sum;
        }
        return sink_.take(pairs, execution_.stop());
    }

private:
    Status clear_checksum() {
        GPUTEXT_TRY(checksum_.allocate(1, work_.stream));
        return cuda_status(
            cudaMemsetAsync(checksum_.data(), 0, sizeof(unsigned long long), work_.stream),
            "clearing a sum");
    }

    Status compare() {
        std::vector<LayoutTasks> plan;
        std::uint32_t first_long = 0;
        int processors = 0;
        bool fits = false;
        GPUTEXT_TRY(look_at_device(processors, fits));
        const auto size = static_cast<std::uint32_t>(parts_.size());
        if (fits) first_long = plan_tasks(parts_.runs(), size, plan);
        std::size_t steps = size - first_long;
        for (const LayoutTasks& layout : plan) steps += layout.tasks.size();
        execution_.begin_phase("comparing signatures", steps);
        for (const LayoutTasks& layout : plan)
            GPUTEXT_TRY(run_layout(layout, static_cast<std::size_t>(processors) * kLettersPerSm));
        return compare_long(first_long);
    }

    static Status look_at_device(int& processors, bool& fits) {
        int device = 0;
        int shared = 0;
        GPUTEXT_TRY(cuda_status(cudaGetDevice(&device), "asking for the device"));
        GPUTEXT_TRY(
            cuda_status(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                        "asking for the device's size"));
        GPUTEXT_TRY(cuda_status(
            cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
            "asking for the device's shared memory"));
        fits = static_cast<std::size_t>(shared) >= side_shared_bytes();
        return {};
    }

    Status run_layout(const LayoutTasks& layout, std::size_t letters_per_launch) {
        GPUTEXT_TRY(tasks_.upload(layout.tasks, work_.stream));
        const std::size_t task_pairs = std::size_t{32} * layout.layout * kTextsPerTask;
        for (std::size_t begin = 0; begin < layout.tasks.size();) {
            if (execution_.stop_requested()) return Status::cancelled();
            std::size_t end = begin;
            std::size_t letters = 0;
            while (end < layout.tasks.size() && (end == begin || letters < letters_per_launch) &&
                   (end + 1 - begin) * task_pairs <= sink_.capacity())
                letters += layout.letters[end++];
            // Also waits for the launch before.
            GPUTEXT_TRY(sink_.reserve((end - begin) * task_pairs));
            GPUTEXT_TRY(run_side_by_side(layout.layout, parts_.view(), edits_.data(),
                                         tasks_.data() + begin, static_cast<unsigned>(end - begin),
                                         sink_.pairs(), sink_.count(), checksum_.data(),
                                         work_.stream));
            execution_.advance(end - begin);
            begin = end;
        }
        return {};
    }

    /// Pairs of parts from `first` on, a few rows at a time, or parts of a row.
    Status compare_long(std::uint32_t first) {
        const auto size = static_cast<std::uint32_t>(parts_.size());
        if (first == size) return {};
        GPUTEXT_TRY(candidates_.allocate(kMostListed, work_.stream));
        for (std::uint32_t columns_begin = first; columns_begin < size;) {
            const auto columns = static_cast<std::uint32_t>(
                std::min<std::size_t>(size - columns_begin, kLeastPairs));
            const auto rows_at_once =
                static_cast<std::uint32_t>(std::min(kMostListed, sink_.capacity()) / columns);
            for (std::uint32_t row = first; row < columns_begin + columns; row += rows_at_once) {
                const std::uint32_t rows = std::min(rows_at_once, columns_begin + columns - row);
                GPUTEXT_TRY(compare_rows(columns_begin, columns, row, rows));
            }
            columns_begin += columns;
            execution_.advance(columns);
        }
        return {};
    }

    Status compare_rows(std::uint32_t first, std::uint32_t columns, std::uint32_t row,
                        std::uint32_t rows) {
        const std::uint32_t count = rows * columns;
        GPUTEXT_TRY(sink_.reserve(count));
        list_pairs<<<blocks_for(count, 256), 256, 0, work_.stream>>>(first, columns, row, count,
                                                                     candidates_.data());
        GPUTEXT_TRY(launched("listing pairs"));
        return verify_pairs(parts_.view(), edits_.data(), candidates_.data(), count, longest_,
                            execution_, sink_, checksum_.data(), work_.stream);
    }

    DeviceWork work_;
    Execution& execution_;
    std::size_t longest_ = 0;
    SortedParts parts_;
    PairSink sink_;
    DeviceBuffer<std::uint16_t> edits_;
    DeviceBuffer<SideTask> tasks_;
    DeviceBuffer<Candidate> candidates_;
    DeviceBuffer<unsigned long long> checksum_;
};

}  // namespace

std::size_t distances_bytes(std::size_t strings, std::size_t letters, std::size_t longest) {
    // The largest list of tasks is that of one layout, with the fewest patterns a task.
    const std::size_t tasks = (strings / 32 + 1) * (strings / kTextsPerTask + 1);
    return SortedParts::bytes_needed(strings, letters, longest, kDepth) + tasks * sizeof(SideTask) +
           kMostListed * sizeof(Candidate) + kLeastPairs * PairSink::bytes_per_pair;
}

Status find_pairs_within(std::span<const std::string_view> strings, double rate,
                         const DeviceWork& work, Execution& execution,
                         std::vector<IndexPair>& pairs, std::uint64_t* checksum) {
    pairs.clear();
    if (checksum != nullptr) *checksum = 0;
    if (strings.empty()) return {};
    try {
        PackedParts parts;
        GPUTEXT_TRY(pack_parts(strings, execution, parts));
        return AllPairs(work, execution).run(parts, rate, pairs, checksum);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
}

}  // namespace gputext::gpu
