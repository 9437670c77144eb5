#include "kernels/documents/detail/folded_documents.cuh"

#include <algorithm>
#include <bit>

#include "kernels/documents/detail/band_columns.cuh"
#include "kernels/documents/detail/count_features.cuh"
#include "kernels/documents/detail/wide_characters.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kBlock = 256;
constexpr std::uint32_t kAlignment = 16;
/// Bins for each letter of a group's longest document: then about one in ten of the grams that a
/// document lacks seems to be there.
constexpr std::uint32_t kBinsPerLetter = 8;
constexpr unsigned kLeastBits = 10;
constexpr unsigned kMostBits = 19;

constexpr std::uint64_t room_for(std::uint32_t letters) {
    if (letters > kMostLetters) return 0;
    return (std::uint64_t{letters} + kAlignment - 1) / kAlignment * kAlignment;
}

/// For a group of documents of these lengths.
unsigned bits_for(std::span<const std::uint32_t> lengths) {
    std::uint32_t longest = 1;
    for (const std::uint32_t letters : lengths)
        if (letters <= kMostLetters) longest = std::max(longest, letters);
    return std::clamp(static_cast<unsigned>(std::bit_width(longest * kBinsPerLetter - 1)),
                      kLeastBits, kMostBits);
}

/// The end of the last document that is folded.
std::size_t folded(std::span<const std::uint32_t> lengths) {
    std::size_t end = lengths.size();
    while (end > 0 && lengths[end - 1] > kMostLetters) --end;
    return end;
}

/// What a warp copies or folds.
struct NarrowTask {
    std::uint64_t begin;  // in the documents' bytes
    std::uint64_t to;
    std::uint32_t letters;
};

struct WideTask {
    std::uint32_t place;  // among the decoded ones
    std::uint64_t to;
    std::uint32_t room;
};

__device__ inline std::uint32_t warp_number() {
    return (blockIdx.x * kBlock + threadIdx.x) / kWarp;
}

unsigned blocks_for(std::size_t warps) {
    return static_cast<unsigned>((warps * kWarp + kBlock - 1) / kBlock);
}

__global__ void copy_letters(const std::uint8_t* bytes, const NarrowTask* tasks,
                             std::uint32_t count, std::uint8_t* letters) {
    const std::uint32_t which = warp_number();
    if (which >= count) return;
    const NarrowTask task = tasks[which];
    for (std::uint32_t i = threadIdx.x % kWarp; i < task.letters; i += kWarp)
        letters[task.to + i] = bytes[task.begin + i];
}

__global__ void fold_letters(const DecodeTask* decoded, const WideTask* tasks, std::uint32_t count,
                             std::uint8_t* letters) {
    const std::uint32_t which = warp_number();
    if (which >= count) return;
    const WideTask task = tasks[which];
    const DecodeTask symbols = decoded[task.place];
    const std::uint32_t own = min(symbols.count, task.room);
    for (std::uint32_t i = threadIdx.x % kWarp; i < own; i += kWarp)
        letters[task.to + i] = static_cast<std::uint8_t>(character_bin(symbols.symbols[i]));
}

/// A warp a place.
__global__ void fill_gram_sets(FoldedView view, const std::uint32_t* lengths, std::uint32_t* sets) {
    const std::uint32_t place = warp_number();
    if (place >= view.places) return;
    const std::uint8_t* letters = view.letters + view.begins[place];
    const std::uint32_t length = lengths[place];
    if (length > kMostLetters) return;
    std::uint32_t* set = sets + view.set_begins[place / kGroup];
    const unsigned bits = view.set_bits[place / kGroup];
    const std::uint32_t own = 1u << place % kGroup;
    for (std::uint32_t i = threadIdx.x % kWarp; i + view.gram <= length; i += kWarp) {
        std::uint32_t gram = 0;
        for (unsigned k = 0; k < view.gram; ++k)
            gram |= static_cast<std::uint32_t>(letters[i + k]) << 8 * k;
        atomicOr(set + gram_bin(gram, view.gram, bits), own);
    }
}

}  // namespace

std::size_t DeviceFoldedDocuments::bytes_needed(std::span<const std::uint32_t> lengths) {
    const std::size_t places = folded(lengths);
    std::size_t bytes = kLetterPadding;
    for (std::size_t place = 0; place < places; ++place)
        bytes += room_for(lengths[place]) + sizeof(std::uint64_t) + sizeof(std::uint32_t) +
                 sizeof(NarrowTask);
    for (std::size_t group = 0; group < places; group += kGroup) {
        const std::size_t documents = std::min<std::size_t>(places - group, kGroup);
        bytes += sizeof(std::uint32_t) << bits_for(lengths.subspan(group, documents));
        bytes += sizeof(std::uint64_t) + 1;
    }
    return bytes;
}

void DeviceFoldedDocuments::plan(std::span<const std::uint32_t> lengths) {
    begins_.assign(1, 0);
    set_begins_.assign(1, 0);
    set_bits_.clear();
    for (std::size_t place = 0; place < lengths.size(); ++place) {
        begins_.push_back(begins_.back() + room_for(lengths[place]));
        if (place % kGroup != kGroup - 1 && place + 1 < lengths.size()) continue;
        const std::size_t group = place / kGroup * kGroup;
        const unsigned bits = bits_for(lengths.subspan(group, place + 1 - group));
        set_bits_.push_back(static_cast<std::uint8_t>(bits));
        set_begins_.push_back(set_begins_.back() + (std::uint64_t{1} << bits));
    }
}

Status DeviceFoldedDocuments::build(const DeviceDocuments& documents,
                                    std::span<const std::uint32_t> order,
                                    std::span<const std::uint32_t> lengths,
                                    std::span<const std::uint8_t> wide, unsigned gram,
                                    std::size_t decode_limit, const Execution& execution,
                                    cudaStream_t stream) {
    stream_ = stream;
    gram_ = gram;
    lengths = lengths.first(folded(lengths));
    order = order.first(lengths.size());
    plan(lengths);
    if (order.empty()) return {};
    GPUTEXT_TRY(letters_.allocate(begins_.back() + kLetterPadding, stream));
    GPUTEXT_TRY(sets_.allocate(set_begins_.back(), stream));
    GPUTEXT_TRY(device_begins_.upload(begins_, stream));
    GPUTEXT_TRY(device_set_begins_.upload(set_begins_, stream));
    GPUTEXT_TRY(device_set_bits_.upload(set_bits_, stream));
    GPUTEXT_TRY(device_lengths_.upload(lengths, stream));
    cudaError_t error = cudaMemsetAsync(letters_.data(), 0, letters_.size(), stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(sets_.data(), 0, sets_.size() * sizeof(std::uint32_t), stream);
    if (error != cudaSuccess) return cuda_status(error, "folding documents");
    GPUTEXT_TRY(copy_narrow(documents, order, wide));
    GPUTEXT_TRY(fold_wide(documents, order, wide, decode_limit, execution));
    GPUTEXT_TRY(fill_sets());
    return execution.stop_requested() ? Status::cancelled() : Status();
}

Status DeviceFoldedDocuments::copy_narrow(const DeviceDocuments& documents,
                                          std::span<const std::uint32_t> order,
                                          std::span<const std::uint8_t> wide) {
    std::vector<NarrowTask> tasks;
    for (std::size_t place = 0; place < order.size(); ++place) {
        const Extent extent = documents.host_extents[order[place]];
        const std::uint64_t room = begins_[place + 1] - begins_[place];
        if (room > 0 && wide[order[place]] == 0)
            tasks.push_back({extent.begin, begins_[place],
                             static_cast<std::uint32_t>(std::min(extent.size, room))});
    }
    if (tasks.empty()) return {};
    DeviceBuffer<NarrowTask> resident;
    GPUTEXT_TRY(resident.upload(tasks, stream_));
    copy_letters<<<blocks_for(tasks.size()), kBlock, 0, stream_>>>(
        documents.bytes, resident.data(), static_cast<std::uint32_t>(tasks.size()),
        letters_.data());
    return cuda_status(cudaGetLastError(), "folding documents");
}

Status DeviceFoldedDocuments::fold_wide(const DeviceDocuments& documents,
                                        std::span<const std::uint32_t> order,
                                        std::span<const std::uint8_t> wide,
                                        std::size_t decode_limit, const Execution& execution) {
    std::vector<std::uint32_t> places;
    std::size_t bytes = 0;
    for (std::uint32_t place = 0; place < order.size(); ++place) {
        if (wide[order[place]] == 0 || begins_[place + 1] == begins_[place]) continue;
        const std::size_t own = documents.host_extents[order[place]].size * sizeof(std::uint32_t) +
                                sizeof(DecodeTask) + sizeof(WideTask);
        if (bytes + own > decode_limit && !places.empty()) {
            GPUTEXT_TRY(fold_some(documents, order, places, execution));
            places.clear();
            bytes = 0;
        }
        places.push_back(place);
        bytes += own;
    }
    return places.empty() ? Status() : fold_some(documents, order, places, execution);
}

Status DeviceFoldedDocuments::fold_some(const DeviceDocuments& documents,
                                        std::span<const std::uint32_t> order,
                                        std::span<const std::uint32_t> places,
                                        const Execution& execution) {
    std::uint64_t bytes = 0, longest = 0;
    for (const std::uint32_t place : places) {
        bytes += documents.host_extents[order[place]].size;
        longest = std::max(longest, documents.host_extents[order[place]].size);
    }
    DeviceBuffer<std::uint32_t> symbols;
    GPUTEXT_TRY(symbols.allocate(bytes, stream_));
    std::vector<DecodeTask> decode;
    std::vector<WideTask> tasks;
    std::uint32_t* next = symbols.data();
    for (const std::uint32_t place : places) {
        const Extent extent = documents.host_extents[order[place]];
        tasks.push_back({static_cast<std::uint32_t>(decode.size()), begins_[place],
                         static_cast<std::uint32_t>(begins_[place + 1] - begins_[place])});
        decode.push_back({extent, next});
        next += extent.size;
    }
    DeviceBuffer<DecodeTask> device_decode;
    DeviceBuffer<WideTask> device_tasks;
    GPUTEXT_TRY(device_decode.upload(decode, stream_));
    GPUTEXT_TRY(device_tasks.upload(tasks, stream_));
    GPUTEXT_TRY(decode_documents(documents, device_decode.data(),
                                 static_cast<std::uint32_t>(decode.size()), longest, execution,
                                 stream_));
    fold_letters<<<blocks_for(tasks.size()), kBlock, 0, stream_>>>(
        device_decode.data(), device_tasks.data(), static_cast<std::uint32_t>(tasks.size()),
        letters_.data());
    return cuda_status(cudaGetLastError(), "folding documents");
}

Status DeviceFoldedDocuments::fill_sets() {
    fill_gram_sets<<<blocks_for(begins_.size() - 1), kBlock, 0, stream_>>>(
        view(), device_lengths_.data(), sets_.data());
    GPUTEXT_TRY(cuda_status(cudaGetLastError(), "folding documents"));
    return cuda_status(cudaStreamSynchronize(stream_), "folding documents");
}

FoldedView DeviceFoldedDocuments::view() const {
    return {letters_.data(),
            device_begins_.data(),
            sets_.data(),
            device_set_begins_.data(),
            device_set_bits_.data(),
            static_cast<std::uint32_t>(begins_.size() - 1),
            gram_};
}

}  // namespace gputext::gpu
