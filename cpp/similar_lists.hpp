// cpp/similar_lists.hpp - for each word of some the nearest ones found until now, from any thread

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

/// Which words are kept does not depend on the order in which they are offered. Takes
/// bytes_of_list() for each list.
class SimilarLists {
public:
    static std::size_t bytes_of_list(std::size_t k) {
        return k * sizeof(SimilarWord) + sizeof(std::uint32_t) + sizeof(std::atomic<float>) + 1;
    }

    /// `gate(similarity)` is what similarities at least as high are recognised by
    /// (cpp/word_sums.hpp); `open` the gate of lists that are not full.
    SimilarLists(std::size_t lists, std::size_t k, float open)
        : k_(k),
          entries_(std::make_unique_for_overwrite<SimilarWord[]>(lists * k)),
          sizes_(lists),
          gates_(lists),
          locks_(lists) {
        for (auto& gate : gates_) gate.store(open, std::memory_order_relaxed);
    }

    float gate(std::size_t list) const { return gates_[list].load(std::memory_order_relaxed); }

    /// Returns the list's gate from now on. O(log k) time.
    template <class Gate>
    float offer(std::size_t list, SimilarWord word, Gate&& gate) {
        while (locks_[list].exchange(1, std::memory_order_acquire) != 0) {
        }
        SimilarWord* const begin = entries_.get() + list * k_;
        if (sizes_[list] < k_) {
            begin[sizes_[list]++] = word;
            // A heap with the worst one on top, from when it is full.
            if (sizes_[list] == k_) std::make_heap(begin, begin + k_);
        } else if (word < *begin) {
            replace_top(begin, word);
        } else {
            locks_[list].store(0, std::memory_order_release);
            return this->gate(list);
        }
        if (sizes_[list] == k_)
            gates_[list].store(gate(begin->similarity), std::memory_order_relaxed);
        const float now = this->gate(list);
        locks_[list].store(0, std::memory_order_release);
        return now;
    }

    /// When nothing is offered any more: sorted, the best first.
    void sort(std::size_t list) {
        SimilarWord* const begin = entries_.get() + list * k_;
        std::sort(begin, begin + sizes_[list]);
    }
    const SimilarWord* list(std::size_t list) const { return entries_.get() + list * k_; }
    std::size_t size(std::size_t list) const { return sizes_[list]; }

private:
    void replace_top(SimilarWord* heap, SimilarWord word) const {
        std::size_t at = 0;
        for (std::size_t child = 1; child < k_; child = 2 * at + 1) {
            if (child + 1 < k_ && heap[child] < heap[child + 1]) ++child;
            if (!(word < heap[child])) break;
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = word;
    }

    std::size_t k_;
    std::unique_ptr<SimilarWord[]> entries_;
    std::vector<std::uint32_t> sizes_;
    std::vector<std::atomic<float>> gates_;
    std::vector<std::atomic<std::uint8_t>> locks_;
};

}  // namespace gputext
