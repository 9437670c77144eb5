// cpp/thesaurus/detail/similar_lists.hpp - lists of the most similar words found so far, filled by
// any thread

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gputext {

struct SimilarWord {
    double similarity;
    std::uint32_t word;

    /// By (similarity descending, number ascending): the better one first.
    bool operator<(const SimilarWord& other) const {
        return similarity != other.similarity ? similarity > other.similarity : word < other.word;
    }
};

/// Which words are kept does not depend on the order in which they are offered. A list takes some
/// more than k before it leaves out the worst, so that most of the time a word is only written
/// behind the others: what is there before is in no near cache.
class SimilarLists {
public:
    static std::size_t bytes_of_list(std::size_t k) {
        return capacity(k) * sizeof(SimilarWord) + sizeof(List);
    }

    /// `gate(similarity)` is what similarities at least as high are recognised by
    /// (cpp/thesaurus/detail/feature_sums.hpp); `open` the gate of lists that have fewer than k.
    SimilarLists(std::size_t lists, std::size_t k, float open)
        : k_(k),
          capacity_(capacity(k)),
          words_(std::make_unique_for_overwrite<SimilarWord[]>(lists * capacity_)),
          lists_(lists) {
        for (List& list : lists_) list.gate.store(open, std::memory_order_relaxed);
    }

    float gate(std::size_t list) const { return lists_[list].gate.load(std::memory_order_relaxed); }

    /// A word that passes the list's gate, and has not been offered to it. Returns the gate from
    /// now on. Amortised O(1) time.
    template <class Gate>
    float offer(std::size_t number, SimilarWord word, Gate&& gate) {
        List& list = lists_[number];
        while (list.lock.exchange(1, std::memory_order_acquire) != 0) {
        }
        SimilarWord* const begin = words_.get() + number * capacity_;
        begin[list.size++] = word;
        if (list.size == capacity_) {
            list.size = static_cast<std::uint32_t>(prune(begin));
            list.gate.store(gate(least_of(begin, list.size)), std::memory_order_relaxed);
        } else if (list.size == k_) {
            list.gate.store(gate(least_of(begin, list.size)), std::memory_order_relaxed);
        }
        const float now = this->gate(number);
        list.lock.store(0, std::memory_order_release);
        return now;
    }

    /// When nothing is offered any more: leaves the k best, the best first.
    void sort(std::size_t number) {
        SimilarWord* const begin = words_.get() + number * capacity_;
        std::sort(begin, begin + lists_[number].size);
        lists_[number].size = std::min(lists_[number].size, static_cast<std::uint32_t>(k_));
    }
    const SimilarWord* list(std::size_t number) const { return words_.get() + number * capacity_; }
    std::size_t size(std::size_t number) const { return lists_[number].size; }

private:
    struct List {
        std::atomic<float> gate;
        std::uint32_t size = 0;
        std::atomic<std::uint32_t> lock = 0;
    };

    static std::size_t capacity(std::size_t k) { return k + std::max<std::size_t>(16, k / 2); }

    static double least_of(const SimilarWord* words, std::size_t size) {
        double least = words[0].similarity;
        for (std::size_t i = 1; i < size; ++i) least = std::min(least, words[i].similarity);
        return least;
    }

    /// Leaves the k best of a full list, or some more: those above a boundary of a histogram, which
    /// is found without comparing them with each other. Returns how many.
    std::size_t prune(SimilarWord* words) const {
        double least = words[0].similarity, most = least;
        for (std::size_t i = 1; i < capacity_; ++i) {
            least = std::min(least, words[i].similarity);
            most = std::max(most, words[i].similarity);
        }
        constexpr int kBuckets = 128;
        std::uint32_t sizes[kBuckets + 1] = {};
        const double scale = most > least ? kBuckets / (most - least) : 0;
        const auto bucket = [&](double similarity) {
            return static_cast<int>((similarity - least) * scale);
        };
        for (std::size_t i = 0; i < capacity_; ++i) ++sizes[bucket(words[i].similarity)];
        int boundary = kBuckets;
        for (std::size_t above = sizes[boundary]; above < k_; above += sizes[boundary]) --boundary;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < capacity_; ++i) {
            const SimilarWord word = words[i];
            words[kept] = word;
            kept += bucket(word.similarity) >= boundary;
        }
        if (kept <= k_ + (capacity_ - k_) / 4) return kept;
        std::nth_element(words, words + (k_ - 1), words + kept);
        return k_;
    }

    std::size_t k_, capacity_;
    std::unique_ptr<SimilarWord[]> words_;
    std::vector<List> lists_;
};

}  // namespace gputext
