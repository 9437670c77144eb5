#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <new>

#include "cpp/base/large_pages.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/documents/detail/bit_planes.cuh"
#include "kernels/documents/detail/signature_parts.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kLengthBits = 11;
constexpr unsigned kKeyBits = kLengthBits + 7;
constexpr unsigned kKeys = 1u << kKeyBits;
static_assert(kPartLengths <= 1u << kLengthBits && kPartGroups <= 1u << (kKeyBits - kLengthBits));

__global__ void make_keys(const std::uint16_t* lengths, const std::uint8_t* groups,
                          std::uint32_t size, std::uint32_t* keys, std::uint32_t* order,
                          std::uint32_t* histogram) {
    const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= size) return;
    keys[i] = std::uint32_t{groups[i]} << kLengthBits | lengths[i];
    order[i] = i;
    atomicAdd(&histogram[keys[i]], 1u);
}

__global__ void count_blocks(const std::uint32_t* keys, std::uint32_t size, std::uint32_t* blocks) {
    const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i < size) blocks[i] = plane_blocks(keys[i] & ((1u << kLengthBits) - 1));
}

__global__ void letters_to_values(std::uint8_t* letters, std::size_t size) {
    const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i < size) letters[i] = static_cast<std::uint8_t>(letter_value(letters[i]));
}

__device__ void write_planes(const std::uint8_t* values, unsigned length, PlaneBlock* planes) {
    for (unsigned word = 0; word < plane_blocks(length) * kPlaneWords; ++word) {
        std::uint32_t bits[kPlanes] = {};
        for (unsigned i = 32 * word; i < min(32 * word + 32, length); ++i) {
            const std::uint32_t value = values[i];
#pragma unroll
            for (unsigned p = 0; p < kPlanes; ++p) bits[p] |= (value >> p & 1) << i % 32;
        }
#pragma unroll
        for (unsigned p = 0; p < kPlanes; ++p)
            planes[word / kPlaneWords].words[p][word % kPlaneWords] = bits[p];
    }
}

/// Returns the letters that are not counted.
template <unsigned Depth>
__device__ unsigned write_counts(const std::uint8_t* values, unsigned length, std::uint32_t part,
                                 std::uint32_t parts, uint4* counts) {
    std::uint64_t words[Depth] = {};
    unsigned excess = 0;
    for (unsigned i = 0; i < length; ++i) {
        // The bit goes to the first word that lacks it.
        std::uint64_t bit = std::uint64_t{1} << values[i];
#pragma unroll
        for (unsigned w = 0; w < Depth; ++w) {
            const std::uint64_t carried = words[w] & bit;
            words[w] |= bit;
            bit = carried;
        }
        excess += bit != 0;
    }
#pragma unroll
    for (unsigned w = 0; w < Depth; w += 2) {
        const std::size_t step = w / 4;
        counts[2 * (step * parts + part) + w / 2 % 2] = {
            static_cast<std::uint32_t>(words[w]), static_cast<std::uint32_t>(words[w] >> 32),
            static_cast<std::uint32_t>(words[w + 1]),
            static_cast<std::uint32_t>(words[w + 1] >> 32)};
    }
    return excess;
}

template <unsigned Depth>
__global__ void write_features(const std::uint8_t* values, const std::uint64_t* begins,
                               const std::uint32_t* order, const std::uint32_t* keys,
                               const std::uint32_t* blocks, std::uint32_t size, PlaneBlock* planes,
                               std::uint32_t* lengths, uint4* counts) {
    const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= size) return;
    const unsigned length = keys[i] & ((1u << kLengthBits) - 1);
    const std::uint8_t* part = values + begins[order[i]];
    write_planes(part, length, planes + blocks[i]);
    lengths[i] = length | write_counts<Depth>(part, length, i, size, counts) << 16;
}

auto features_kernel(std::size_t depth) {
    if (depth == 4) return write_features<4>;
    if (depth == 8) return write_features<8>;
    if (depth == 16) return write_features<16>;
    return write_features<32>;
}

/// Copies strings to where their letters begin.
template <class LettersOf>
Status copy_letters(std::size_t strings, LettersOf letters_of, Execution& execution,
                    PackedParts& parts) {
    constexpr std::size_t step = 1 << 14;
    return execution.parallel_for((strings + step - 1) / step, [&](std::size_t task, unsigned) {
        for (std::size_t i = task * step; i < std::min(strings, (task + 1) * step); ++i) {
            const std::string_view letters = letters_of(i);
            std::copy(letters.begin(), letters.end(), parts.letters.begin() + parts.begins[i]);
        }
        return Status();
    });
}

Status pack(std::span<const std::string_view> strings, Execution& execution, PackedParts& parts) {
    const std::size_t size = strings.size();
    parts.strings = static_cast<std::uint32_t>(size);
    parts.begins.resize(size);
    parts.lengths.resize(size);
    parts.groups.assign(size, 0);
    std::size_t letters = 0;
    for (std::size_t i = 0; i < size; ++i) {
        parts.begins[i] = letters;
        parts.lengths[i] = static_cast<std::uint16_t>(strings[i].size());
        letters += strings[i].size();
    }
    parts.letters.resize(letters);
    execution.begin_phase("packing signatures", size);
    return copy_letters(
        size, [&](std::size_t i) { return strings[i]; }, execution, parts);
}

Status pack(std::span<const Ctph> signatures, Execution& execution, PackedParts& parts) {
    const std::size_t size = signatures.size();
    parts.strings = static_cast<std::uint32_t>(size);
    parts.begins.resize(2 * size);
    parts.lengths.resize(2 * size);
    parts.groups.resize(2 * size);
    std::size_t letters = 0;
    for (std::size_t i = 0; i < size; ++i) {
        const Ctph& signature = signatures[i];
        const std::size_t all = signature.letters.size();
        parts.begins[i] = letters;
        parts.begins[i + size] = letters + signature.first_length;
        parts.lengths[i] = signature.first_length;
        parts.lengths[i + size] = static_cast<std::uint16_t>(all - signature.first_length);
        parts.groups[i] = signature.level;
        parts.groups[i + size] = static_cast<std::uint8_t>(signature.level + 1);
        letters += all;
    }
    resize_pages(parts.letters, letters);
    execution.begin_phase("packing signatures", size);
    return copy_letters(
        size, [&](std::size_t i) { return std::string_view(signatures[i].letters); }, execution,
        parts);
}

template <class Strings>
Status pack_or_say(std::span<const Strings> strings, Execution& execution, PackedParts& parts) {
    try {
        return pack(strings, execution, parts);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
}

}  // namespace

Status pack_parts(std::span<const std::string_view> strings, Execution& execution,
                  PackedParts& parts) {
    return pack_or_say(strings, execution, parts);
}

Status pack_parts(std::span<const Ctph> signatures, Execution& execution, PackedParts& parts) {
    return pack_or_say(signatures, execution, parts);
}

void separate_parts(PackedParts& parts, std::size_t split) {
    parts.between = true;
    for (std::size_t i = 0; i < parts.size(); ++i)
        parts.groups[i] =
            static_cast<std::uint8_t>(2 * parts.groups[i] + (i % parts.strings < split ? 0 : 1));
}

std::size_t SortedParts::bytes_needed(std::size_t parts, std::size_t letters, std::size_t longest,
                                      std::size_t depth) {
    const std::size_t planes =
        parts * plane_blocks(static_cast<unsigned>(longest)) * sizeof(PlaneBlock);
    const std::size_t kept = 8 + 3 * 4 + 8 * depth;  // begins, order, lengths, blocks, counts
    const std::size_t sorting = 2 * 4 * 3 + 3;       // both sides of the sort, and its input
    return letters + planes + parts * (kept + sorting) + kKeys * 4 + (std::size_t{16} << 20);
}

Status SortedParts::build(const PackedParts& parts, std::size_t depth, cudaStream_t stream) {
    size_ = parts.size();
    strings_ = parts.strings;
    runs_.clear();
    if (size_ == 0) return {};
    const auto size = static_cast<std::uint32_t>(size_);
    const unsigned grid = blocks_for(size_, kThreads);

    DeviceBuffer<std::uint16_t> lengths;
    DeviceBuffer<std::uint8_t> groups;
    DeviceBuffer<std::uint32_t> keys, sorted_keys, numbers, histogram;
    DeviceBuffer<std::uint8_t> scratch;
    GPUTEXT_TRY(values_.upload(parts.letters, stream));
    GPUTEXT_TRY(begins_.upload(parts.begins, stream));
    GPUTEXT_TRY(lengths.upload(parts.lengths, stream));
    GPUTEXT_TRY(groups.upload(parts.groups, stream));
    GPUTEXT_TRY(keys.allocate(size_, stream));
    GPUTEXT_TRY(sorted_keys.allocate(size_, stream));
    GPUTEXT_TRY(numbers.allocate(size_, stream));
    GPUTEXT_TRY(order_.allocate(size_, stream));
    GPUTEXT_TRY(histogram.allocate(kKeys, stream));
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(histogram.data(), 0, kKeys * 4, stream), "clearing"));
    if (!parts.letters.empty())
        letters_to_values<<<blocks_for(parts.letters.size(), kThreads), kThreads, 0, stream>>>(
            values_.data(), parts.letters.size());
    make_keys<<<grid, kThreads, 0, stream>>>(lengths.data(), groups.data(), size, keys.data(),
                                             numbers.data(), histogram.data());
    GPUTEXT_TRY(launched("listing parts"));
    GPUTEXT_TRY(with_scratch(scratch, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceRadixSort::SortPairs(space, bytes, keys.data(), sorted_keys.data(),
                                               numbers.data(), order_.data(), size_, 0, kKeyBits,
                                               stream);
    }));
    GPUTEXT_TRY(find_runs(histogram.data(), stream));

    GPUTEXT_TRY(blocks_.allocate(size_, stream));
    count_blocks<<<grid, kThreads, 0, stream>>>(sorted_keys.data(), size, blocks_.data());
    GPUTEXT_TRY(launched("counting blocks"));
    GPUTEXT_TRY(with_scratch(scratch, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(space, bytes, blocks_.data(), blocks_.data(), size_,
                                             stream);
    }));
    std::size_t blocks = 0;
    for (const PartRun& run : runs_)
        blocks += std::size_t{run.end - run.begin} * plane_blocks(run.length);
    GPUTEXT_TRY(planes_.allocate(std::max<std::size_t>(blocks, 1), stream));
    GPUTEXT_TRY(counts_.allocate(size_ * depth / 2, stream));
    GPUTEXT_TRY(lengths_.allocate(size_, stream));
    features_kernel(depth)<<<grid, kThreads, 0, stream>>>(
        values_.data(), begins_.data(), order_.data(), sorted_keys.data(), blocks_.data(), size,
        planes_.data(), lengths_.data(), counts_.data());
    return launched("counting letters");
}

Status SortedParts::find_runs(const std::uint32_t* histogram, cudaStream_t stream) {
    std::vector<std::uint32_t> counts(kKeys);
    GPUTEXT_TRY(download(histogram, counts.data(), kKeys, stream, "listing parts"));
    std::uint32_t begin = 0;
    for (unsigned key = 0; key < kKeys; ++key) {
        if (counts[key] == 0) continue;
        runs_.push_back({begin, begin + counts[key], static_cast<std::uint16_t>(key >> kLengthBits),
                         static_cast<std::uint16_t>(key & ((1u << kLengthBits) - 1))});
        begin += counts[key];
    }
    return {};
}

PartsView SortedParts::view() const {
    return {static_cast<std::uint32_t>(size_),
            strings_,
            order_.data(),
            lengths_.data(),
            blocks_.data(),
            planes_.data(),
            counts_.data(),
            begins_.data(),
            values_.data()};
}

}  // namespace gputext::gpu
