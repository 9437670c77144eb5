#include "kernels/trie/word_lookup.hpp"

#include <algorithm>
#include <atomic>

#include "cpp/trie/detail/front_coded.hpp"
#include "cpp/trie/detail/xbw.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/trie/detail/device_words.cuh"
#include "kernels/trie/detail/trie_lookup.hpp"

namespace gputext::gpu {
namespace {

/// Words of a chunk. All but the longest words fit the smallest chunk.
constexpr std::size_t kMostWords = std::size_t{1} << 23, kLeastWords = std::size_t{1} << 12;
constexpr std::size_t kBytesPerWord = 16;
static_assert(kLeastWords * kBytesPerWord > kLongestOnDevice);

constexpr std::size_t kSmallBuffers = 1 << 13;
/// Words that the host looks through between two looks at a stop request.
constexpr std::size_t kStep = std::size_t{1} << 16;

/// How much fits one of the two places for chunks.
struct ChunkSize {
    std::size_t words = 0, text = 0;

    ChunkSize(const Words& all, std::size_t most_words)
        : words(std::min(most_words, all.size())),
          text(std::min<std::uint64_t>(most_words * kBytesPerWord, all.byte_count())) {}

    std::size_t begins_bytes() const { return (words + 1) * sizeof(std::uint64_t); }
    std::size_t bytes() const {
        return begins_bytes() + text + kWordSlack + (words + 1) * sizeof(std::uint32_t) +
               kSmallBuffers;
    }
};

/// The largest of which two fit.
ChunkSize chunk_for(const Words& words, std::size_t memory) {
    std::size_t most = kMostWords;
    while (most > kLeastWords && 2 * ChunkSize(words, most).bytes() > memory) most /= 2;
    return {words, most};
}

/// Words first .. end - 1.
struct Chunk {
    std::size_t first, end;
    bool on_host;  // one word that does not fit

    std::size_t size() const { return end - first; }
};

std::vector<Chunk> chunks_of(const Words& words, const ChunkSize& size) {
    std::vector<Chunk> chunks;
    for (std::size_t first = 0; first < words.size();) {
        const std::uint64_t* const begin = words.begins + first;
        const std::uint64_t* const last = words.begins + std::min(first + size.words, words.size());
        const std::uint64_t* const end = std::upper_bound(begin, last + 1, *begin + size.text) - 1;
        const bool none = end == begin;
        chunks.push_back(
            {first, none ? first + 1 : static_cast<std::size_t>(end - words.begins), none});
        first = chunks.back().end;
    }
    return chunks;
}

/// A place for a chunk on the device: begins, then text.
struct Place {
    DeviceBuffer<std::uint8_t> words;
    DeviceBuffer<std::uint32_t> codes;  // and behind them, how many words were too long

    Status allocate(const ChunkSize& size, cudaStream_t stream) {
        GPUTEXT_TRY(words.allocate(size.begins_bytes() + size.text + kWordSlack, stream));
        return codes.allocate(size.words + 1, stream);
    }
};

class WordLookup {
public:
    WordLookup(std::span<const std::uint8_t> image, const ResidentTrie& trie, const Words& words,
               cudaStream_t stream, UploadRing& ring, Execution& execution,
               std::span<std::uint32_t> codes)
        : image_(image),
          trie_(trie),
          words_(words),
          stream_(stream),
          ring_(ring),
          execution_(execution),
          codes_(codes) {}

    Status run(const ChunkSize& size) {
        GPUTEXT_TRY(ready_.create());
        for (Place& place : places_) GPUTEXT_TRY(place.allocate(size, stream_));
        // The places' memory may be in use by earlier work until the stream comes here.
        GPUTEXT_TRY(ready_.hold(ring_.stream(), stream_));
        const Status status = look_up_all(chunks_of(words_, size));
        // And nobody else may have this memory before the last copy has arrived.
        GPUTEXT_TRY(ready_.hold(stream_, ring_.stream()));
        return status;
    }

private:
    Status look_up_all(const std::vector<Chunk>& chunks) {
        std::uint64_t slices = 0;
        for (const Chunk& chunk : chunks)
            slices += slices_of(upload_bytes(chunk)) + slices_of(4 * chunk.size());
        execution_.begin_phase("looking up words", slices);
        const Chunk* before = nullptr;
        for (std::size_t i = 0; i < chunks.size(); ++i) {
            const Chunk& chunk = chunks[i];
            if (!chunk.on_host) GPUTEXT_TRY(upload(chunk, places_[i % 2]));
            if (before != nullptr) GPUTEXT_TRY(finish(*before, places_[(i + 1) % 2]));
            if (!chunk.on_host) GPUTEXT_TRY(begin(chunk, places_[i % 2]));
            before = &chunk;
        }
        if (before == nullptr) return {};
        return finish(*before, places_[(chunks.size() + 1) % 2]);
    }

    static std::uint64_t slices_of(std::uint64_t bytes) {
        return (bytes + UploadRing::slice - 1) / UploadRing::slice;
    }
    std::uint64_t upload_bytes(const Chunk& chunk) const {
        return (chunk.size() + 1) * sizeof(std::uint64_t) + words_.begins[chunk.end] -
               words_.begins[chunk.first];
    }

    Status upload(const Chunk& chunk, Place& place) {
        const std::uint64_t* const begins = words_.begins + chunk.first;
        const Bytes pieces[] = {{reinterpret_cast<const std::uint8_t*>(begins),
                                 (chunk.size() + 1) * sizeof(std::uint64_t)},
                                {words_.bytes + begins[0], words_.begins[chunk.end] - begins[0]}};
        return ring_.copy_pieces(place.words.data(), pieces, execution_);
    }

    Status begin(const Chunk& chunk, Place& place) {
        GPUTEXT_TRY(ready_.hold(stream_, ring_.stream()));
        DeviceWords words;
        words.begins = reinterpret_cast<const std::uint64_t*>(place.words.data());
        words.bytes = place.words.data() + (chunk.size() + 1) * sizeof(std::uint64_t);
        words.base = words_.begins[chunk.first];
        words.count = static_cast<std::uint32_t>(chunk.size());
        std::uint32_t* const too_long = place.codes.data() + chunk.size();
        GPUTEXT_TRY(cuda_status(cudaMemsetAsync(too_long, 0, sizeof *too_long, stream_),
                                "looking up words"));
        std::uint32_t* const codes = place.codes.data();
        if (trie_.stats().structure == TrieStructure::xbw)
            return look_up(trie_.xbw(), words, codes, too_long, stream_);
        return look_up(trie_.front(), words, codes, too_long, stream_);
    }

    Status finish(const Chunk& chunk, const Place& place) {
        if (chunk.on_host) return look_up_long(chunk);
        std::uint32_t too_long = 0;
        GPUTEXT_TRY(download_value(place.codes.data() + chunk.size(), too_long, stream_,
                                   "looking up words"));
        const std::span<std::uint32_t> own = codes_.subspan(chunk.first, chunk.size());
        GPUTEXT_TRY(ring_.copy_back({reinterpret_cast<std::uint8_t*>(own.data()), own.size_bytes()},
                                    reinterpret_cast<const std::uint8_t*>(place.codes.data()),
                                    stream_, execution_));
        return too_long == 0 ? Status() : look_up_long(chunk);
    }

    /// Looks up the words of a chunk that the device leaves out.
    Status look_up_long(const Chunk& chunk) {
        if (on_host_ == nullptr) {
            auto opened = trie_.stats().structure == TrieStructure::xbw
                              ? open_xbw_trie(image_)
                              : open_front_coded_trie(image_);
            if (!opened.ok()) return opened.status();
            on_host_ = std::move(*opened);
        }
        const std::size_t steps = (chunk.size() + kStep - 1) / kStep;
        return execution_.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
            const std::size_t end = std::min(chunk.end, chunk.first + (step + 1) * kStep);
            for (std::size_t i = chunk.first + step * kStep; i < end; ++i) {
                if (words_[i].size() <= kLongestOnDevice) continue;
                codes_[i] = on_host_->lookup(words_[i]);
                if (execution_.stop_requested()) return Status::cancelled();
            }
            return {};
        });
    }

    std::span<const std::uint8_t> image_;
    const ResidentTrie& trie_;
    const Words& words_;
    cudaStream_t stream_;
    UploadRing& ring_;
    Execution& execution_;
    std::span<std::uint32_t> codes_;

    Place places_[2];
    StreamEvent ready_;
    std::unique_ptr<Trie> on_host_;
};

}  // namespace

LookupBytes lookup_bytes(const Words& words) {
    return {2 * ChunkSize(words, kLeastWords).bytes(), 2 * ChunkSize(words, kMostWords).bytes()};
}

Status lookup_words(std::span<const std::uint8_t> image, const Words& words, ResidentTries& tries,
                    const DeviceWork& work, UploadRing& ring, Execution& execution,
                    std::span<std::uint32_t> codes) {
    const LookupBytes needed = lookup_bytes(words);
    const std::size_t own = ResidentTrie::bytes(image);
    const std::size_t available = work.bytes + tries.bytes();
    if (available < own + needed.least)
        return too_little_memory("looking up words takes", own + needed.least, available);
    execution.begin_phase("copying a dictionary", 0);
    const auto trie = tries.get(image, available - std::min(needed.good, available - own),
                                work.stream, ring, execution);
    if (!trie.ok()) return trie.status();
    if (words.size() == 0) return {};
    const std::size_t left = available - tries.bytes();
    return WordLookup(image, **trie, words, work.stream, ring, execution, codes)
        .run(chunk_for(words, left));
}

}  // namespace gputext::gpu
