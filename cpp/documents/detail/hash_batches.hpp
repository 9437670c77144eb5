// cpp/documents/detail/hash_batches.hpp - finds the positions where pieces of a document may end,
// many at a time

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "cpp/base/simd.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

// ---- Rolling hash of spamsum, whose values cut a document into pieces ----

// The hash of the last seven bytes c(n-6)..c(n) of a stream, bytes before its start being zero:
//
//     sum(c(n-j)) + sum((7-j) * c(n-j)) + xor(c(n-j) << 5j),  j = 0..6,  modulo 2^32
//
// Nothing older than seven bytes matters, so every position can be hashed on its own. Source:
// A. Tridgell's spamsum; J. Kornblum, "Identifying almost identical files using context triggered
// piecewise hashing", Digital Investigation 3S, 2006.
inline constexpr std::size_t rolling_hash_window = 7;  // bytes

/// Writes to hashes[i] the hash of the seven bytes up to at[i], for i < Count. at[-7] on must be
/// readable, though at[-7] itself does not matter.
///
/// No position waits for another: compiled for vector instructions, into the function of which
/// this is inlined, it takes a fraction of the time of
/// a hash carried along from byte to byte. The two sums together are
/// that of (8 - j) * c(n - j) and fit 16 bits; the xor doubles its bytes step by step: of two,
/// of four and of eight, the eighth being shifted out.
template <std::size_t Count>
[[gnu::always_inline]] inline void rolling_hashes(const std::uint8_t* __restrict at,
                                                  std::uint32_t* __restrict hashes) {
    alignas(64) std::array<std::uint16_t, Count> sums;
    for (std::size_t i = 0; i < Count; ++i) {
        const std::uint8_t* last = at + i;
        std::uint16_t run = last[0];
        std::uint16_t sum = run;
        for (int j = 1; j < 7; ++j) {
            run = static_cast<std::uint16_t>(run + last[-j]);
            sum = static_cast<std::uint16_t>(sum + run);
        }
        sums[i] = static_cast<std::uint16_t>(sum + run);
    }
    alignas(64) std::array<std::uint16_t, Count + 6> pairs;  // up to position i - 6
    for (std::size_t i = 0; i < Count + 6; ++i) {
        const std::uint8_t* last = at + i - 6;
        pairs[i] = static_cast<std::uint16_t>(last[0] ^ last[-1] << 5);
    }
    alignas(64) std::array<std::uint32_t, Count + 4> fours;  // up to position i - 4
    for (std::size_t i = 0; i < Count + 4; ++i) {
        fours[i] = pairs[i + 2] ^ static_cast<std::uint32_t>(pairs[i]) << 10;
    }
    for (std::size_t i = 0; i < Count; ++i) hashes[i] = (fours[i + 4] ^ fours[i] << 20) + sums[i];
}

/// Some hundred neighboring positions with their rolling hashes; those of interest are marked.
struct HashBatch {
    static constexpr std::size_t size = 512;  // a multiple of 64

    alignas(64) std::array<std::uint32_t, size> hashes;
    alignas(64) std::array<std::uint8_t, size> marked;  // 0 or 1
};

/// Hashes the positions at[0]..at[size - 1], for which at[-7] on must be readable, and marks those
/// whose hash `mark(hash)` is true of.
template <class Mark>
[[gnu::always_inline]] inline void hash_batch_here(const std::uint8_t* __restrict at, Mark mark,
                                                   HashBatch& __restrict out) {
    rolling_hashes<HashBatch::size>(at, out.hashes.data());
    for (std::size_t i = 0; i < HashBatch::size; ++i) out.marked[i] = mark(out.hashes[i]);
}

// The loops above, compiled for each instruction set.

template <class Mark>
[[gnu::optimize("O3")]] void hash_batch(const std::uint8_t* at, Mark mark, HashBatch& out) {
    hash_batch_here(at, mark, out);
}

#ifdef GPUTEXT_X86
template <class Mark>
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void hash_batch_avx2(const std::uint8_t* at, Mark mark,
                                                                 HashBatch& out) {
    hash_batch_here(at, mark, out);
}

template <class Mark>
[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 void
hash_batch_avx512(const std::uint8_t* at, Mark mark, HashBatch& out) {
    hash_batch_here(at, mark, out);
}
#endif

template <class Mark>
using HashBatchFunction = void (*)(const std::uint8_t* at, Mark mark, HashBatch& out);

template <class Mark>
HashBatchFunction<Mark> best_hash_batch() {
#ifdef GPUTEXT_X86
    if (best_simd() == Simd::avx512) return hash_batch_avx512<Mark>;
    if (best_simd() == Simd::avx2) return hash_batch_avx2<Mark>;
#endif
    return hash_batch<Mark>;
}

/// Calls visit(end, hash) in ascending order for each position whose rolling hash is marked; `end`
/// counts the bytes up to and with the position. `mark` is copied before each batch, so visit() may
/// narrow it; a few more positions are visited then. `last_hash` becomes the hash of the last
/// position, 0 for an empty document. Returns false, early, when `stop` says so.
template <class Mark, class Visit>
bool for_each_marked(std::span<const std::uint8_t> document, const Mark& mark, Visit&& visit,
                     std::uint32_t& last_hash, Stop stop) {
    static_assert(std::endian::native == std::endian::little);
    static const HashBatchFunction<Mark> hash_one = best_hash_batch<Mark>();
    constexpr std::size_t size = HashBatch::size;
    constexpr std::size_t before = rolling_hash_window;
    constexpr std::size_t look_every = std::size_t{1} << 22;  // bytes
    // A batch at the document's begin or end is read from a copy: the hash wants zeros before the
    // document, and a whole batch is hashed, whatever stands behind the document.
    std::array<std::uint8_t, before + size> edge = {};
    HashBatch batch;
    last_hash = 0;
    for (std::size_t begin = 0; begin < document.size(); begin += size) {
        if (begin % look_every == 0 && begin > 0 && stop()) return false;
        const std::uint8_t* at = document.data() + begin;
        const std::size_t used = std::min(size, document.size() - begin);
        if (begin == 0 || used < size) {
            const std::size_t history = begin == 0 ? 0 : before;
            std::memcpy(&edge[before - history], at - history, history + used);
            at = &edge[before];
        }
        hash_one(at, mark, batch);
        std::fill(batch.marked.begin() + static_cast<std::ptrdiff_t>(used), batch.marked.end(),
                  std::uint8_t{0});
        // Marks are sparse, so eight positions are skipped at a time.
        for (std::size_t i = 0; i < used; i += 8) {
            std::uint64_t marks = 0;
            std::memcpy(&marks, &batch.marked[i], sizeof marks);
            for (; marks != 0; marks &= marks - 1) {
                const std::size_t k = i + static_cast<std::size_t>(std::countr_zero(marks)) / 8;
                visit(begin + k + 1, batch.hashes[k]);
            }
        }
        last_hash = batch.hashes[used - 1];
    }
    return true;
}

}  // namespace gputext
