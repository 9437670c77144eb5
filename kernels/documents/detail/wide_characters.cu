#include "kernels/documents/detail/wide_characters.cuh"

#include <algorithm>

#include "kernels/base/device_buffer.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/documents/detail/band_columns.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kBlock = 256;
constexpr unsigned kPart = 16;                            // bytes a lane
constexpr std::uint64_t kRound = std::uint64_t{1} << 22;  // bytes of a document a launch

unsigned blocks_for(std::size_t warps) {
    return static_cast<unsigned>((warps * kWarp + kBlock - 1) / kBlock);
}

__global__ void find_wide(const std::uint8_t* bytes, const Extent* extents, std::uint32_t count,
                          std::uint64_t begin, std::uint8_t* wide) {
    const std::uint32_t document = (blockIdx.x * kBlock + threadIdx.x) / kWarp;
    if (document >= count) return;
    const Extent extent = extents[document];
    const std::uint64_t end = min(extent.size, begin + kRound);
    unsigned any = 0;
    for (std::uint64_t at = begin + threadIdx.x % kWarp; at < end; at += kWarp)
        any |= bytes[extent.begin + at];
    if (any >= 0x80) wide[document] = 1;
}

/// How many bytes a character takes, in shared memory.
struct Lengths {
    std::uint8_t of[256];
};

/// What 16 bytes do, for each place at which the first character in them may begin: where the
/// first one behind them begins, 2 bits, and how many begin in them, 5 bits.
__device__ std::uint32_t part_of(const std::uint8_t* text, unsigned size, const Lengths& lengths) {
    std::uint32_t part = 0;
    for (unsigned begin = 0; begin < 4; ++begin) {
        unsigned at = begin;
        unsigned count = 0;
        for (; at < kPart && at < size; ++count) at += lengths.of[text[at]];
        const unsigned beyond = at > kPart ? at - kPart : 0;
        part |= beyond << 2 * begin | count << (8 + 5 * begin);
    }
    return part;
}

/// A warp decodes up to kRound bytes of a document.
__global__ void decode(const std::uint8_t* bytes, DecodeTask* tasks, std::uint32_t count,
                       Lengths table) {
    __shared__ Lengths lengths;
    lengths.of[threadIdx.x] = table.of[threadIdx.x];
    __syncthreads();
    const std::uint32_t which = (blockIdx.x * kBlock + threadIdx.x) / kWarp;
    if (which >= count) return;
    const unsigned lane = threadIdx.x % kWarp;
    DecodeTask task = tasks[which];
    const std::uint8_t* document = bytes + task.extent.begin;
    const std::uint64_t round_end = min(task.extent.size, task.next + kRound);
    while (task.next < round_end) {
        const std::uint64_t mine = task.next + lane * kPart;
        const auto left = static_cast<unsigned>(
            mine < task.extent.size ? min(task.extent.size - mine, std::uint64_t{kWarp * kPart})
                                    : 0);
        const std::uint32_t part = part_of(document + mine, left, lengths);
        unsigned begin = 0, before = 0;        // while going through the lanes
        unsigned my_begin = 0, my_before = 0;  // as they were at this one
        for (unsigned i = 0; i < kWarp; ++i) {
            if (i == lane) {
                my_begin = begin;
                my_before = before;
            }
            const std::uint32_t theirs = __shfl_sync(kAllLanes, part, i);
            before += theirs >> (8 + 5 * begin) & 31;
            begin = theirs >> 2 * begin & 3;
        }
        std::uint32_t* symbols = task.symbols + task.count + my_before;
        for (unsigned at = my_begin; at < kPart && at < left;) {
            const unsigned end = min(at + lengths.of[document[mine + at]], left);
            std::uint32_t symbol = 0;
            for (; at < end; ++at) symbol = symbol << 8 | document[mine + at];
            *symbols++ = symbol;
        }
        task.count += before;
        task.next += kWarp * kPart + begin;
    }
    __syncwarp();
    if (lane == 0) {
        tasks[which].next = task.next;
        tasks[which].count = task.count;
    }
}

Lengths lengths_of(const CharacterLengths& characters) {
    Lengths lengths;
    for (unsigned byte = 0; byte < 256; ++byte)
        lengths.of[byte] =
            static_cast<std::uint8_t>(characters.of(static_cast<std::uint8_t>(byte)));
    return lengths;
}

/// Between launches that may each take milliseconds.
Status look_for_stop(const Execution& execution, cudaStream_t stream) {
    GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "reading documents"));
    return execution.stop_requested() ? Status::cancelled() : Status();
}

}  // namespace

Status find_wide_documents(const DeviceDocuments& documents, const Execution& execution,
                           cudaStream_t stream, std::vector<std::uint8_t>& wide) {
    wide.assign(documents.size(), 0);
    if (documents.characters.all_single() || wide.empty()) return {};
    DeviceBuffer<std::uint8_t> found;
    GPUTEXT_TRY(found.allocate(wide.size(), stream));
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(found.data(), 0, wide.size(), stream), "reading documents"));
    std::uint64_t longest = 0;
    for (const Extent& extent : documents.host_extents) longest = std::max(longest, extent.size);
    for (std::uint64_t begin = 0; begin < longest; begin += kRound) {
        find_wide<<<blocks_for(wide.size()), kBlock, 0, stream>>>(
            documents.bytes, documents.extents, static_cast<std::uint32_t>(wide.size()), begin,
            found.data());
        GPUTEXT_TRY(look_for_stop(execution, stream));
    }
    return download(found.data(), wide.data(), wide.size(), stream, "reading documents");
}

Status decode_documents(const DeviceDocuments& documents, DecodeTask* tasks, std::uint32_t count,
                        std::uint64_t longest, const Execution& execution, cudaStream_t stream) {
    const Lengths lengths = lengths_of(documents.characters);
    for (std::uint64_t begin = 0; begin < longest; begin += kRound) {
        decode<<<blocks_for(count), kBlock, 0, stream>>>(documents.bytes, tasks, count, lengths);
        GPUTEXT_TRY(look_for_stop(execution, stream));
    }
    return {};
}

}  // namespace gputext::gpu
