// kernels/knn/detail/fp16_search.hpp - passes of the filter in half precision, and its state on the
// device

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cpp/base/execution.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/knn/detail/fp16_filter.hpp"
#include "kernels/knn/detail/fp16_rows.hpp"
#include "kernels/knn/item_cache.hpp"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

class Fp16Search {
public:
    Fp16Search() = default;
    Fp16Search(const Fp16Search&) = delete;

    /// Device memory for one query, for one item, and for samples.
    struct Bytes {
        std::size_t per_query;
        std::size_t per_item;
        std::size_t samples;
    };
    /// `made`: the items' rows are made already.
    static Bytes bytes(const Vectors& items, bool made = false);
    /// Items below which no sample is taken: a search in double precision is as fast.
    static constexpr std::uint32_t kLeastItems = 8192;

    /// `made`: what an earlier search has made of all the items, by the same metric, or null; it
    /// stays as long as this search. Errors of all functions: out_of_memory, device_error,
    /// cancelled.
    Status prepare(Metric metric, const Vectors& items, const Fp16FilterDevice& device,
                   const Fp16ItemSet* made, cudaStream_t stream);
    Status allocate(std::size_t queries, std::size_t items);
    Status load_queries(const DeviceQueries& queries);
    /// The items that the filter is about from now on: numbers from `first_item` on.
    Status load_items(const DeviceRows& items, std::uint32_t first_item);

    /// Fills the lists with the items [begin, end) that may be near, or marks these. `guess`: the
    /// lists are empty, and gates come from a sample as well as from limits; then at least
    /// kLeastItems items.
    Status filter(const NeighborLists& lists, std::uint32_t begin, std::uint32_t end, bool guess,
                  Execution& execution);
    /// Computes, after merging, which gates would have sufficed.
    Status prove(const NeighborLists& lists);
    /// What load_items() has made, of all items if they were loaded at once, but for squares. After
    /// the last filter().
    Fp16ItemSet take_items() { return std::move(own_items_); }

    /// What filter() found; no words where it is in the lists.
    const MarkedItems& marked() const { return marked_; }
    const float* gates() const { return gates_.data(); }
    const float* proven() const { return proven_.data(); }
    const float* widths() const { return widths_.data(); }

private:
    GateJob gate_job(const ListsView& lists, float* gates, float* widths) const;
    Fp16FilterJob job(std::uint32_t begin, std::uint32_t end) const;
    Status take_samples(std::uint32_t begin, std::uint32_t end);
    Status sample(const ListsView& lists, std::uint32_t begin, std::uint32_t end);
    bool marks(const ListsView& lists, std::uint32_t items) const;
    Status mark(const ListsView& lists, std::uint32_t begin, std::uint32_t end);
    Status align(const DeviceRows& items);

    const Fp16Space& space() const { return items_->choice.space(); }

    Fp16FilterDevice device_;
    Fp16ItemSet own_items_;
    const Fp16ItemSet* items_ = &own_items_;
    cudaStream_t stream_ = nullptr;
    std::uint32_t queries_ = 0;
    std::uint32_t first_item_ = 0;
    DeviceBuffer<__half> query_rows_;
    DeviceBuffer<Fp16QueryBound> query_bounds_;
    DeviceBuffer<float2> groups_;
    DeviceBuffer<float> gates_, widths_, proven_, group_scores_;
    std::size_t marks_words_ = 0;  // of a query; 0 where items are not marked
    DeviceBuffer<std::uint32_t> marks_;
    std::size_t copied_vectors_ = 0;  // of an item whose row is not of whole vectors
    DeviceBuffer<std::byte> copied_rows_;
    const std::byte* aligned_rows_ = nullptr;
    std::uint32_t row_vectors_ = 0;
    MarkedItems marked_;
};

}  // namespace gputext::gpu
