// kernels/terms/detail/search.hpp - searches the items of an index for a tile of queries

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "cpp/base/execution.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/knn/neighbor_lists.hpp"
#include "kernels/terms/detail/filter.hpp"

namespace gputext::gpu {

/// How long the parts of searches took on the device, for those who measure.
struct TermTimers {
    TermTimers(bool enabled, cudaStream_t stream)
        : sample(enabled, stream),
          filter(enabled, stream),
          score(enabled, stream),
          sort(enabled, stream),
          again(enabled, stream) {}

    StreamTimer sample, filter, score, sort;
    StreamTimer again;  // all of it, for queries that were searched again
};

/// Brings the lists of a tile of queries up to date with an index, all on the device.
class TermSearch {
public:
    /// Lists for k of `items` items, or for all within a radius; as open ones these are taken away.
    static NeighborLists::Shape shape_of(std::size_t k, double radius, std::size_t items);
    /// Device memory for one query, its list included.
    static std::size_t bytes_per_query(const NeighborLists::Shape& shape, std::size_t items);
    /// And for all of them, if they are few and their scores are to be kept; else 0.
    static std::size_t bytes_for_scores(const NeighborLists::Shape& shape, std::size_t queries,
                                        std::size_t items);

    /// `taken` is called whenever open lists hold items that the caller must take away. Scores are
    /// kept where that takes not 0 bytes, and `keep_scores`.
    /// Errors of all: out_of_memory, device_error, cancelled.
    Status allocate(const NeighborLists::Shape& shape, std::uint32_t queries, std::size_t items,
                    bool keep_scores, std::function<Status()> taken, Execution& execution,
                    TermTimers& timers, cudaStream_t stream);

    /// Begins a tile of queries. `most_terms`: of one of them.
    void begin(const TermQueries& queries, std::uint32_t most_terms, double radius);
    /// Searches the next items in order, of numbers from `first_item` on, which is 0 at first.
    /// `dense` and `bounded`
    /// are of this index; bounded terms serve where no term is dense.
    Status search(const TermIndex& index, const DenseTerms& dense, const BoundedTerms& bounded,
                  std::uint32_t first_item);

    NeighborLists& lists() { return lists_; }
    /// Queries for which a first filter did not do.
    std::uint64_t escalated() const { return escalated_; }
    /// Waits for the stream.
    Status counts(std::uint64_t& rescored, std::uint64_t& found);

private:
    TermFilterJob job(const QuerySelection& selection, std::uint32_t begin,
                      std::uint32_t end) const;
    TermFilterJob dense_job(std::uint32_t begin, std::uint32_t end) const;
    TermGates gates(const QuerySelection& selection, float* to) const;
    TermGates dense_gates(float* to) const;
    Status measure_work();
    Status guess();
    Status search_by_guess(std::uint32_t begin, std::uint32_t end);
    Status search_by_scores(std::uint32_t begin, std::uint32_t end);
    Status search_failed(std::uint32_t begin, std::uint32_t end);
    Status search_again(std::uint32_t count, std::uint32_t begin, std::uint32_t end);
    Status score(const TermGates& gates, bool any_k);
    Status score_and_keep(const TermGates& gates, bool any_k);
    Status search_directly(const QuerySelection& selection, std::uint32_t begin, std::uint32_t end,
                           bool lists_are_empty);
    Status search_range(const QuerySelection& selection, std::uint32_t begin, std::uint32_t end);

    Execution* execution_ = nullptr;
    TermTimers* timers_ = nullptr;
    cudaStream_t stream_ = nullptr;
    std::function<Status()> taken_;
    NeighborLists lists_;
    DeviceBuffer<float> gates_, proven_, least_, sampled_;
    DeviceBuffer<std::uint32_t> failed_;
    DeviceBuffer<int> scores_;  // where they are kept
    DenseQueriesMemory dense_queries_;
    LightQueriesMemory light_queries_;
    DeviceBuffer<unsigned long long> counters_;  // work, rescored, found

    TermQueries queries_;
    std::uint32_t most_terms_ = 0;
    double radius_ = 0;
    TermIndex index_;
    DenseTerms dense_;
    BoundedTerms bounded_;
    std::uint32_t first_item_ = 0;
    double work_ = 0;  // postings that all queries touch in the index
    std::uint64_t escalated_ = 0;
};

}  // namespace gputext::gpu
