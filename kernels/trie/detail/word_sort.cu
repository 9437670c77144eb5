#include "kernels/trie/detail/word_sort.hpp"

#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <string_view>
#include <vector>

#include "cpp/trie/detail/word_sort.hpp"
#include "kernels/base/launch.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::uint32_t kKeyBytes = 7;
/// Elements behind the order, so that its last bucket can be read as a whole.
constexpr std::size_t kOrderSlack = 32;

/// What a place in the order has to do with the one before it.
enum Relation : std::uint8_t {
    other,  // another word
    same,   // the same word
    alike   // not known: equal so far
};

/// Seven bytes of a word from `at` on, zeros behind its end, and then how many there are, 8 for
/// more. Of words that are equal before, keys compare as the words do where they differ; equal ones
/// below 8 are of equal words.
__device__ std::uint64_t key_at(const DeviceWords& words, std::uint32_t word, std::uint32_t at) {
    const std::uint64_t left = words.length(word) - at;
    const std::uint64_t eight = load_up_to_eight(words.begin(word) + at, left);
    const std::uint64_t seven = reversed_bytes(eight) & ~std::uint64_t{255};
    return seven | (left > kKeyBytes ? kKeyBytes + 1 : left);
}

__device__ Relation relation_of(std::uint64_t before, std::uint64_t key) {
    if (before != key) return other;
    return (key & 255) > kKeyBytes ? alike : same;
}

__global__ void first_keys(DeviceWords words, std::uint64_t* keys, std::uint32_t* numbers) {
    const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= words.count) return;
    keys[i] = key_at(words, i, 0);
    numbers[i] = i;
}

__global__ void relate_first(const std::uint64_t* keys, std::uint32_t count, Relation* relations) {
    const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    relations[i] = i == 0 ? other : relation_of(keys[i - 1], keys[i]);
}

/// flags[j]: whether place number j, of `places` or of all where that is null, is in a group of
/// words that are alike.
__global__ void flag_alike(const Relation* relations, const std::uint32_t* places,
                           std::uint32_t count, std::uint32_t all, std::uint8_t* flags) {
    const std::uint32_t j = blockIdx.x * kThreads + threadIdx.x;
    if (j >= count) return;
    const std::uint32_t at = places == nullptr ? j : places[j];
    flags[j] = relations[at] == alike || (at + 1 < all && relations[at + 1] == alike);
}

/// 1 where a group begins.
__global__ void mark_groups(const Relation* relations, const std::uint32_t* places,
                            std::uint32_t count, std::uint32_t* groups) {
    const std::uint32_t j = blockIdx.x * kThreads + threadIdx.x;
    if (j < count) groups[j] = relations[places[j]] != alike;
}

__global__ void next_keys(DeviceWords words, const std::uint32_t* order,
                          const std::uint32_t* places, std::uint32_t count, std::uint32_t at,
                          std::uint64_t* keys, std::uint32_t* numbers) {
    const std::uint32_t j = blockIdx.x * kThreads + threadIdx.x;
    if (j >= count) return;
    keys[j] = key_at(words, order[places[j]], at);
    numbers[j] = j;
}

__global__ void gather(const std::uint32_t* from, const std::uint32_t* which, std::uint32_t count,
                       std::uint32_t* to) {
    const std::uint32_t j = blockIdx.x * kThreads + threadIdx.x;
    if (j < count) to[j] = from[which[j]];
}

/// The words of the places, as they were before.
__global__ void gather_words(const std::uint32_t* order, const std::uint32_t* places,
                             const std::uint32_t* sorted, std::uint32_t count,
                             std::uint32_t* words) {
    const std::uint32_t j = blockIdx.x * kThreads + threadIdx.x;
    if (j < count) words[j] = order[places[sorted[j]]];
}

/// A group's first place stays related to the one before it as it was.
__global__ void place_words(const std::uint32_t* words, const std::uint32_t* places,
                            const std::uint32_t* groups, const std::uint32_t* sorted,
                            const std::uint64_t* keys, std::uint32_t count, std::uint32_t* order,
                            Relation* relations) {
    const std::uint32_t j = blockIdx.x * kThreads + threadIdx.x;
    if (j >= count) return;
    order[places[j]] = words[j];
    if (j > 0 && groups[j] == groups[j - 1])
        relations[places[j]] = relation_of(keys[sorted[j - 1]], keys[sorted[j]]);
}

__global__ void flag_different(const Relation* relations, std::uint32_t count,
                               std::uint8_t* flags) {
    const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i < count) flags[i] = relations[i] == other;
}

/// Sorts the words of groups where they are, those that begin behind the first `skipped` bytes.
class HostOrder {
public:
    HostOrder(const Words& words, std::size_t skipped, std::span<std::uint32_t> order,
              std::span<Relation> relations, Execution& execution)
        : words_(words),
          skipped_(skipped),
          order_(order),
          relations_(relations),
          execution_(execution) {}

    Status sort(std::span<const std::uint32_t> groups) {
        constexpr std::size_t kLarge = std::size_t{1} << 16;
        std::vector<Group> small;
        for (std::size_t begin = 0; begin < groups.size();) {
            std::size_t end = begin + 1;
            while (end < groups.size() && groups[end] == groups[begin]) ++end;
            if (end - begin < kLarge) {
                small.push_back({begin, end});
            } else {
                auto words = words_of({begin, end});
                GPUTEXT_TRY(sort_words(words, execution_));
                put({begin, end}, words);
            }
            begin = end;
        }
        execution_.begin_phase("sorting words", small.size());
        return execution_.parallel_for(small.size(), [&](std::size_t i, unsigned) -> Status {
            auto words = words_of(small[i]);
            std::sort(words.begin(), words.end());
            words.erase(std::unique(words.begin(), words.end()), words.end());
            put(small[i], words);
            return {};
        });
    }

private:
    struct Group {
        std::size_t begin, end;
    };

    std::vector<std::string_view> words_of(const Group& group) const {
        std::vector<std::string_view> words;
        for (std::size_t j = group.begin; j < group.end; ++j)
            words.push_back(words_[order_[j]].substr(skipped_));
        return words;
    }
    void put(const Group& group, std::span<const std::string_view> words) {
        for (std::size_t i = 0; i < words.size(); ++i) {
            // None of them is empty, so each begins elsewhere.
            const auto at = static_cast<std::uint64_t>(
                reinterpret_cast<const std::uint8_t*>(words[i].data()) - words_.bytes - skipped_);
            const std::uint64_t* const begin =
                std::upper_bound(words_.begins, words_.begins + words_.size(), at) - 1;
            order_[group.begin + i] = static_cast<std::uint32_t>(begin - words_.begins);
            if (i > 0) relations_[group.begin + i] = other;
        }
        for (std::size_t j = group.begin + words.size(); j < group.end; ++j) relations_[j] = same;
    }

    const Words& words_;
    std::size_t skipped_;
    std::span<std::uint32_t> order_;
    std::span<Relation> relations_;
    Execution& execution_;
};

class Orderer {
public:
    Orderer(const DeviceWords& words, const Words& host_words, cudaStream_t stream,
            Execution& execution)
        : words_(words),
          host_words_(host_words),
          count_(words.count),
          stream_(stream),
          execution_(execution) {}

    Status run(WordOrder& order) {
        GPUTEXT_TRY(allocate());
        execution_.begin_phase("sorting words", 0);
        GPUTEXT_TRY(sort_all());
        GPUTEXT_TRY(execution_.checkpoint());
        for (unsigned round = 1; alike_ > 0 && round < kOrderRounds; ++round) {
            GPUTEXT_TRY(sort_alike(round * kKeyBytes));
            GPUTEXT_TRY(find_alike(places_.data(), alike_));
            GPUTEXT_TRY(execution_.checkpoint());
        }
        if (alike_ > 0) GPUTEXT_TRY(sort_on_host());
        return keep_different(order);
    }

private:
    Status allocate() {
        for (auto* buffer :
             {&order_, &numbers_, &sorted_, &places_, &other_places_, &groups_, &sorted_groups_})
            GPUTEXT_TRY(buffer->allocate(count_ + kOrderSlack, stream_));
        for (auto* buffer : {&keys_, &sorted_keys_}) GPUTEXT_TRY(buffer->allocate(count_, stream_));
        GPUTEXT_TRY(relations_.allocate(count_, stream_));
        GPUTEXT_TRY(flags_.allocate(count_, stream_));
        return selected_.allocate(1, stream_);
    }

    template <class Key>
    Status sort(const Key* keys, Key* sorted_keys, const std::uint32_t* numbers,
                std::uint32_t* sorted, std::uint32_t count, int bits) {
        return with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
            return cub::DeviceRadixSort::SortPairs(space, bytes, keys, sorted_keys, numbers, sorted,
                                                   static_cast<std::int64_t>(count), 0, bits,
                                                   stream_);
        });
    }

    template <class From>
    Status select(From from, std::uint32_t* to, std::uint32_t count, std::uint32_t& selected) {
        GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
            return cub::DeviceSelect::Flagged(space, bytes, from, flags_.data(), to,
                                              selected_.data(), static_cast<std::int64_t>(count),
                                              stream_);
        }));
        return download_value(selected_.data(), selected, stream_, "sorting words");
    }

    unsigned blocks(std::uint32_t count) const { return blocks_for(count, kThreads); }

    Status sort_all() {
        first_keys<<<blocks(count_), kThreads, 0, stream_>>>(words_, keys_.data(), numbers_.data());
        GPUTEXT_TRY(launched("sorting words"));
        GPUTEXT_TRY(
            sort(keys_.data(), sorted_keys_.data(), numbers_.data(), order_.data(), count_, 64));
        relate_first<<<blocks(count_), kThreads, 0, stream_>>>(sorted_keys_.data(), count_,
                                                               relations_.data());
        GPUTEXT_TRY(launched("sorting words"));
        return find_alike(nullptr, count_);
    }

    /// Finds, among these places or all where `places` is null, those in groups of words that are
    /// alike, and their groups.
    Status find_alike(const std::uint32_t* places, std::uint32_t count) {
        flag_alike<<<blocks(count), kThreads, 0, stream_>>>(relations_.data(), places, count,
                                                            count_, flags_.data());
        GPUTEXT_TRY(launched("sorting words"));
        if (places == nullptr)
            GPUTEXT_TRY(select(thrust::make_counting_iterator(std::uint32_t{0}),
                               other_places_.data(), count, alike_));
        else
            GPUTEXT_TRY(select(places, other_places_.data(), count, alike_));
        std::swap(places_, other_places_);
        if (alike_ == 0) return {};
        mark_groups<<<blocks(alike_), kThreads, 0, stream_>>>(relations_.data(), places_.data(),
                                                              alike_, groups_.data());
        GPUTEXT_TRY(launched("sorting words"));
        return with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
            return cub::DeviceScan::InclusiveSum(space, bytes, groups_.data(), groups_.data(),
                                                 static_cast<std::int64_t>(alike_), stream_);
        });
    }

    Status sort_alike(std::uint32_t at) {
        const unsigned grid = blocks(alike_);
        next_keys<<<grid, kThreads, 0, stream_>>>(words_, order_.data(), places_.data(), alike_, at,
                                                  keys_.data(), numbers_.data());
        GPUTEXT_TRY(launched("sorting words"));
        GPUTEXT_TRY(
            sort(keys_.data(), sorted_keys_.data(), numbers_.data(), sorted_.data(), alike_, 64));
        std::uint32_t groups = 0;
        GPUTEXT_TRY(download_value(groups_.data() + alike_ - 1, groups, stream_, "sorting words"));
        if (groups > 1) {
            // Stable, so that within a group the order stays. `numbers_` has done its work, and so
            // have the sorted keys, which serve for the groups.
            auto* const own = reinterpret_cast<std::uint32_t*>(sorted_keys_.data());
            gather<<<grid, kThreads, 0, stream_>>>(groups_.data(), sorted_.data(), alike_, own);
            GPUTEXT_TRY(launched("sorting words"));
            GPUTEXT_TRY(sort(own, sorted_groups_.data(), sorted_.data(), numbers_.data(), alike_,
                             std::bit_width(groups)));
            std::swap(sorted_, numbers_);
        }
        gather_words<<<grid, kThreads, 0, stream_>>>(order_.data(), places_.data(), sorted_.data(),
                                                     alike_, other_places_.data());
        GPUTEXT_TRY(launched("sorting words"));
        place_words<<<grid, kThreads, 0, stream_>>>(other_places_.data(), places_.data(),
                                                    groups_.data(), sorted_.data(), keys_.data(),
                                                    alike_, order_.data(), relations_.data());
        return launched("sorting words");
    }

    Status download(const void* from, void* to, std::size_t bytes) {
        return cuda_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_),
                           "sorting words");
    }

    Status sort_on_host() {
        std::vector<std::uint32_t> groups(alike_), places(alike_), order(count_);
        std::vector<Relation> relations(count_);
        GPUTEXT_TRY(download(groups_.data(), groups.data(), alike_ * sizeof(std::uint32_t)));
        GPUTEXT_TRY(download(places_.data(), places.data(), alike_ * sizeof(std::uint32_t)));
        GPUTEXT_TRY(download(order_.data(), order.data(), count_ * sizeof(std::uint32_t)));
        GPUTEXT_TRY(download(relations_.data(), relations.data(), count_ * sizeof(Relation)));
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "sorting words"));
        std::vector<std::uint32_t> own(alike_);
        std::vector<Relation> own_relations(alike_);
        for (std::size_t j = 0; j < alike_; ++j) {
            own[j] = order[places[j]];
            own_relations[j] = relations[places[j]];
        }
        GPUTEXT_TRY(HostOrder(host_words_, kOrderRounds * kKeyBytes, own, own_relations, execution_)
                        .sort(groups));
        for (std::size_t j = 0; j < alike_; ++j) {
            order[places[j]] = own[j];
            relations[places[j]] = own_relations[j];
        }
        GPUTEXT_TRY(order_.upload(order, stream_));
        GPUTEXT_TRY(relations_.upload(relations, stream_));
        return cuda_status(cudaStreamSynchronize(stream_), "sorting words");
    }

    Status keep_different(WordOrder& order) {
        flag_different<<<blocks(count_), kThreads, 0, stream_>>>(relations_.data(), count_,
                                                                 flags_.data());
        GPUTEXT_TRY(launched("sorting words"));
        std::uint32_t different = 0;
        GPUTEXT_TRY(select(order_.data(), places_.data(), count_, different));
        order.count = different;
        order.words = std::move(places_);
        return {};
    }

    DeviceWords words_;
    const Words& host_words_;
    std::uint32_t count_;
    std::uint32_t alike_ = 0;
    cudaStream_t stream_;
    Execution& execution_;

    DeviceBuffer<std::uint32_t> order_, numbers_, sorted_, places_, other_places_, groups_,
        sorted_groups_;
    DeviceBuffer<std::uint64_t> keys_, sorted_keys_;
    DeviceBuffer<Relation> relations_;
    DeviceBuffer<std::uint8_t> flags_, scratch_;
    DeviceBuffer<std::uint32_t> selected_;
};

}  // namespace

std::size_t word_order_bytes(std::size_t words) {
    constexpr std::size_t kOwn = 7 * sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t) + 2;
    // CUB's scratch memory: another copy of keys and values, and counts.
    constexpr std::size_t kScratch = sizeof(std::uint64_t) + sizeof(std::uint32_t) + 1;
    return words * (kOwn + kScratch) + (std::size_t{32} << 20);
}

Status order_words(const DeviceWords& words, const Words& host_words, cudaStream_t stream,
                   Execution& execution, WordOrder& order) {
    return Orderer(words, host_words, stream, execution).run(order);
}

}  // namespace gputext::gpu
