// bench/gpu_trie_peers.cuh - peers of the dictionaries on a GPU: hash table, state transition table
//
// The state transition table of the paper's section 2.2.2: of every node the child by each symbol.
// A hash table of words with linear probing, at most half full, eight bytes a slot: 32 bits of the
// hash and the word's number; the words beside it, one behind the other. And random reads of 64
// bytes, which bound both.

#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/gpu_bench.hpp"
#include "cpp/base/words.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/trie/detail/device_words.cuh"

namespace gputext::bench {

inline constexpr unsigned kPeerThreads = 256;

/// As many blocks as fill any device; threads take words in turn.
inline constexpr unsigned kPeerBlocks = 4096;

struct Edge {
    std::uint32_t parent, symbol, child;
};

__global__ void set_edges(const Edge* edges, std::uint64_t count, std::uint32_t symbols,
                          std::uint32_t* table) {
    for (std::uint64_t i = blockIdx.x * kPeerThreads + threadIdx.x; i < count;
         i += gridDim.x * kPeerThreads)
        table[std::uint64_t{edges[i].parent} * symbols + edges[i].symbol] = edges[i].child;
}

__global__ void look_up_in_table(const std::uint32_t* table, const std::uint32_t* codes,
                                 const std::uint8_t* symbol_of, std::uint32_t symbols,
                                 gpu::DeviceWords words, std::uint32_t* found) {
    __shared__ std::uint8_t own_symbols[256];
    own_symbols[threadIdx.x] = symbol_of[threadIdx.x];
    __syncthreads();
    for (std::uint64_t i = blockIdx.x * kPeerThreads + threadIdx.x; i < words.count;
         i += gridDim.x * kPeerThreads) {
        const std::uint8_t* const word = words.begin(i);
        const auto length = static_cast<std::uint32_t>(words.length(i));
        gpu::ByteReader bytes;
        std::uint32_t node = 1;  // the root; 0 is none
        for (std::uint32_t at = 0; at < length && node != 0; ++at) {
            const std::uint32_t symbol = own_symbols[bytes[word + at]];
            node = symbol < symbols ? table[std::uint64_t{node} * symbols + symbol] : 0;
        }
        found[i] = codes[node];
    }
}

/// State transition table of sorted words.
class TransitionTable {
public:
    static constexpr std::uint64_t kMost = std::uint64_t{60} << 30;  // bytes

    TransitionTable(const Words& words, cudaStream_t stream) : stream_(stream) {
        std::vector<std::uint8_t> symbol_of(256, 255);
        for (std::uint64_t i = 0; i < words.byte_count(); ++i) symbol_of[words.bytes[i]] = 0;
        for (std::uint8_t& symbol : symbol_of)
            if (symbol == 0) symbol = static_cast<std::uint8_t>(symbols_++);
        std::vector<Edge> edges;
        std::vector<std::uint32_t> codes(2, UINT32_MAX), path(1, 1);
        std::string_view before;
        for (std::uint32_t i = 0; i < words.size(); ++i) {
            const std::string_view word = words[i];
            std::size_t at = 0;
            while (at < before.size() && at < word.size() && before[at] == word[at]) ++at;
            path.resize(at + 1);
            for (; at < word.size(); ++at) {
                const auto child = static_cast<std::uint32_t>(codes.size());
                edges.push_back(
                    {path.back(), symbol_of[static_cast<std::uint8_t>(word[at])], child});
                codes.push_back(UINT32_MAX);
                path.push_back(child);
            }
            codes[path.back()] = i;
            before = word;
        }
        nodes_ = codes.size();
        if (bytes() > kMost) return;
        check(table_.allocate(nodes_ * symbols_, stream));
        check(cuda_status(
            cudaMemsetAsync(table_.data(), 0, nodes_ * symbols_ * sizeof(std::uint32_t), stream),
            "the benchmark"));
        DeviceBuffer<Edge> on_device;
        check(on_device.upload(edges, stream));
        set_edges<<<kPeerBlocks, kPeerThreads, 0, stream>>>(on_device.data(), edges.size(),
                                                            symbols_, table_.data());
        check(codes_.upload(codes, stream));
        check(symbol_of_.upload(symbol_of, stream));
        check(cuda_status(cudaStreamSynchronize(stream), "the benchmark"));
    }

    std::uint64_t nodes() const { return nodes_ - 1; }
    std::uint64_t bytes() const { return nodes_ * (symbols_ + 1) * sizeof(std::uint32_t); }
    bool fits() const { return table_.data() != nullptr; }
    void look_up(const gpu::DeviceWords& words, std::uint32_t* found) const {
        look_up_in_table<<<kPeerBlocks, kPeerThreads, 0, stream_>>>(
            table_.data(), codes_.data(), symbol_of_.data(), symbols_, words, found);
        check(gpu::launched("the benchmark"));
    }

private:
    cudaStream_t stream_;
    std::uint32_t symbols_ = 0;
    std::uint64_t nodes_ = 0;
    DeviceBuffer<std::uint32_t> table_, codes_;
    DeviceBuffer<std::uint8_t> symbol_of_;
};

__device__ inline std::uint64_t hash_of(const std::uint8_t* word, std::uint32_t length) {
    std::uint64_t hash = length * 0x9e3779b97f4a7c15;
    for (std::uint32_t at = 0; at < length; at += 8) {
        hash = (hash ^ gpu::load_up_to_eight(word + at, length - at)) * 0xbf58476d1ce4e5b9;
        hash ^= hash >> 29;
    }
    hash *= 0x94d049bb133111eb;
    return hash ^ hash >> 31;
}

inline constexpr unsigned long long kEmptySlot = ~0ull;

__global__ void fill_slots(gpu::DeviceWords words, unsigned long long* slots, std::uint64_t mask) {
    for (std::uint64_t i = blockIdx.x * kPeerThreads + threadIdx.x; i < words.count;
         i += gridDim.x * kPeerThreads) {
        const std::uint64_t hash =
            hash_of(words.begin(i), static_cast<std::uint32_t>(words.length(i)));
        const unsigned long long slot = hash >> 32 << 32 | i;
        for (std::uint64_t at = hash & mask;; at = (at + 1) & mask)
            if (atomicCAS(&slots[at], kEmptySlot, slot) == kEmptySlot) break;
    }
}

__global__ void look_up_in_slots(gpu::DeviceWords dictionary, const unsigned long long* slots,
                                 std::uint64_t mask, gpu::DeviceWords words, std::uint32_t* found) {
    for (std::uint64_t i = blockIdx.x * kPeerThreads + threadIdx.x; i < words.count;
         i += gridDim.x * kPeerThreads) {
        const std::uint8_t* const word = words.begin(i);
        const auto length = static_cast<std::uint32_t>(words.length(i));
        const std::uint64_t hash = hash_of(word, length);
        std::uint32_t code = UINT32_MAX;
        for (std::uint64_t at = hash & mask;; at = (at + 1) & mask) {
            const unsigned long long slot = slots[at];
            if (slot == kEmptySlot) break;
            if (slot >> 32 != hash >> 32) continue;
            const auto own = static_cast<std::uint32_t>(slot);
            if (dictionary.length(own) != length ||
                gpu::common_bytes(dictionary.begin(own), word, length) != length)
                continue;
            code = own;
            break;
        }
        found[i] = code;
    }
}

class HashTable {
public:
    /// The words have to live as long.
    HashTable(const gpu::DeviceWords& words, std::uint64_t text_bytes, cudaStream_t stream)
        : stream_(stream),
          words_(words),
          slot_count_(std::bit_ceil(2 * std::uint64_t{words.count})) {
        bytes_ = slot_count_ * 8 + text_bytes + (std::uint64_t{words.count} + 1) * 8;
        check(slots_.allocate(slot_count_, stream));
        check(cuda_status(cudaMemsetAsync(slots_.data(), 0xff, slot_count_ * 8, stream),
                          "the benchmark"));
        fill_slots<<<kPeerBlocks, kPeerThreads, 0, stream>>>(words, slots_.data(), slot_count_ - 1);
        check(gpu::launched("the benchmark"));
    }

    std::uint64_t bytes() const { return bytes_; }
    void look_up(const gpu::DeviceWords& words, std::uint32_t* found) const {
        look_up_in_slots<<<kPeerBlocks, kPeerThreads, 0, stream_>>>(words_, slots_.data(),
                                                                    slot_count_ - 1, words, found);
        check(gpu::launched("the benchmark"));
    }

private:
    cudaStream_t stream_;
    gpu::DeviceWords words_;
    std::uint64_t slot_count_, bytes_;
    DeviceBuffer<unsigned long long> slots_;
};

/// Each thread reads eight lines of 64 bytes at random places at a time, as four vectors each.
__global__ void read_lines(const uint4* memory, std::uint64_t lines, unsigned rounds,
                           std::uint32_t* sums) {
    std::uint64_t state = blockIdx.x * kPeerThreads + threadIdx.x + 1;
    std::uint32_t sum = 0;
    for (unsigned round = 0; round < rounds; ++round) {
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const std::uint64_t line = (state >> 32) * lines >> 32;
#pragma unroll
            for (unsigned part = 0; part < 4; ++part) {
                const uint4 vector = memory[line * 4 + part];
                sum += vector.x ^ vector.y ^ vector.z ^ vector.w;
            }
        }
    }
    sums[blockIdx.x * kPeerThreads + threadIdx.x] = sum;
}

}  // namespace gputext::bench
