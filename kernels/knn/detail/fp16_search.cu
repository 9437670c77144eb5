#include <algorithm>

#include "kernels/base/launch.hpp"
#include "kernels/knn/detail/fp16_search.hpp"

namespace gputext::gpu {
namespace {

constexpr double kWorkOfLaunch = 8e12;  // pairs times dimensions: about 30 ms

std::uint32_t samples_of(std::size_t items) {
    return items <= 1 << 17 ? 16 * kSampleGroups : 64 * kSampleGroups;
}

/// Among few items, a large part is found: looking at all scores twice then costs less than lists
/// of the items that pass a sample's gate.
std::size_t marks_words(const Vectors& items) {
    if (items.dimensions > MarkedItems::most_dimensions || items.rows > MarkedItems::most_items)
        return 0;
    return MarkedItems::words_of(static_cast<std::uint32_t>(items.rows));
}

/// Vectors of 16 bytes of a marked item's row, unless it has whole ones already.
std::size_t copied_vectors(const Vectors& items) {
    const std::uint32_t vectors = MarkedItems::row_vectors_of(items.dimensions, items.type);
    const bool whole = items.dimensions * element_size(items.type) == vectors * sizeof(uint4);
    return marks_words(items) == 0 || whole ? 0 : vectors;
}

/// Size of a group, where items are put into at most kMostGroups groups.
std::uint32_t items_of_group(std::uint32_t items) {
    return (items + 16 * kMostGroups - 1) / (16 * kMostGroups) * 16;
}

}  // namespace

Fp16Search::Bytes Fp16Search::bytes(const Vectors& items, bool made) {
    const std::size_t row = Fp16Space::padded_of(items.dimensions) * sizeof(__half);
    const std::size_t samples = samples_of(items.rows);
    const std::size_t marks =
        marks_words(items) * sizeof(std::uint32_t) + kMostGroups * sizeof(float);
    return {row + sizeof(Fp16QueryBound) + sizeof(float2) + 3 * sizeof(float) + marks,
            (made ? 0 : row + sizeof(Fp16ItemBound)) + copied_vectors(items) * sizeof(uint4),
            samples * (row + sizeof(Fp16ItemBound)) + items.dimensions * sizeof(double)};
}

Status Fp16Search::prepare(Metric metric, const Vectors& items, const Fp16FilterDevice& device,
                           const Fp16ItemSet* made, cudaStream_t stream) {
    items_ = made != nullptr ? made : &own_items_;
    device_ = device;
    stream_ = stream;
    marks_words_ = marks_words(items);
    copied_vectors_ = copied_vectors(items);
    return made != nullptr ? Status() : own_items_.choice.choose(metric, items, stream);
}

Status Fp16Search::allocate(std::size_t queries, std::size_t items) {
    const std::size_t padded = space().padded;
    GPUTEXT_TRY(query_rows_.allocate(queries * padded, stream_));
    GPUTEXT_TRY(query_bounds_.allocate(queries, stream_));
    GPUTEXT_TRY(groups_.allocate(blocks_for(queries, kGroupQueries), stream_));
    GPUTEXT_TRY(gates_.allocate(queries, stream_));
    GPUTEXT_TRY(widths_.allocate(queries, stream_));
    GPUTEXT_TRY(proven_.allocate(queries, stream_));
    if (items_ == &own_items_) {
        GPUTEXT_TRY(own_items_.rows.allocate(items * padded, stream_));
        GPUTEXT_TRY(own_items_.bounds.allocate(items, stream_));
        GPUTEXT_TRY(own_items_.largest.allocate(2, stream_));
    }
    GPUTEXT_TRY(marks_.allocate(queries * marks_words_, stream_));
    GPUTEXT_TRY(copied_rows_.allocate(items * copied_vectors_ * sizeof(uint4), stream_));
    return group_scores_.allocate(queries * kMostGroups, stream_);
}

Status Fp16Search::load_queries(const DeviceQueries& queries) {
    queries_ = queries.rows;
    return convert_queries(space(), queries, query_rows_.data(), query_bounds_.data(),
                           groups_.data(), stream_);
}

Status Fp16Search::load_items(const DeviceRows& items, std::uint32_t first_item) {
    first_item_ = first_item;
    GPUTEXT_TRY(align(items));
    if (items_ != &own_items_) return {};
    return convert_items(space(), items, own_items_.rows.data(), own_items_.bounds.data(),
                         own_items_.largest.data(), stream_);
}

/// Before marked items are compared, whose rows are read in whole vectors.
Status Fp16Search::align(const DeviceRows& items) {
    aligned_rows_ = static_cast<const std::byte*>(items.elements);
    row_vectors_ = MarkedItems::row_vectors_of(items.dimensions, items.type);
    if (copied_vectors_ == 0) return {};
    aligned_rows_ = copied_rows_.data();
    return align_rows(items, static_cast<std::uint32_t>(copied_vectors_), copied_rows_.data(),
                      stream_);
}

GateJob Fp16Search::gate_job(const ListsView& lists, float* gates, float* widths) const {
    return {space(),
            {query_rows_.data(), query_bounds_.data(), groups_.data()},
            queries_,
            lists.limits,
            items_->largest.data(),
            gates,
            widths};
}

Fp16FilterJob Fp16Search::job(std::uint32_t begin, std::uint32_t end) const {
    Fp16FilterJob job{};
    job.queries = {query_rows_.data(), query_bounds_.data(), groups_.data()};
    job.rows = queries_;
    job.gates = gates_.data();
    job.items = {items_->rows.data(), items_->bounds.data(), items_->largest.data()};
    job.first_item = first_item_;
    job.begin = begin;
    job.end = end;
    return job;
}

Status Fp16Search::take_samples(std::uint32_t begin, std::uint32_t end) {
    Fp16Samples& to = own_items_.samples;
    const std::uint32_t samples = samples_of(end - begin);
    const std::size_t skipped = begin - first_item_;
    const std::size_t padded = space().padded;
    GPUTEXT_TRY(to.rows.allocate(samples * padded, stream_));
    GPUTEXT_TRY(to.bounds.allocate(samples, stream_));
    to.begin = begin;
    to.end = end;
    return sample_items(
        space(), {items_->rows.data() + skipped * padded, items_->bounds.data() + skipped, nullptr},
        end - begin, samples, to.rows.data(), to.bounds.data(), stream_);
}

Status Fp16Search::sample(const ListsView& lists, std::uint32_t begin, std::uint32_t end) {
    // Earlier searches, or this one for other queries, may have taken the same ones.
    const Fp16Samples* samples = &items_->samples;
    if (!samples->are_of(begin, end)) {
        samples = &own_items_.samples;
        if (!samples->are_of(begin, end)) GPUTEXT_TRY(take_samples(begin, end));
    }
    const std::uint32_t count = samples_of(end - begin);
    const std::uint32_t rank = rank_of_gate(lists.k + 1, count, end - begin, kSampleGroups);
    Fp16FilterJob sampled = job(0, count);
    sampled.items = {samples->rows.data(), samples->bounds.data(), nullptr};
    sampled.first_item = 0;
    sampled.largest = group_scores_.data();
    sampled.groups = kSampleGroups;
    sampled.group_items = count / kSampleGroups;
    GPUTEXT_TRY(run_fp16_filter(device_, sampled, space().padded, stream_));
    return guess_gates(gate_job(lists, gates_.data(), widths_.data()), group_scores_.data(), rank,
                       stream_);
}

/// Whether so many items of empty lists are marked.
bool Fp16Search::marks(const ListsView& lists, std::uint32_t items) const {
    const MarkedItems marked{nullptr, MarkedItems::words_of(items), 0, nullptr, row_vectors_};
    return marked.per_query <= marks_words_ && lists.k < kMostGroups / 4 &&
           lists.capacity <= NeighborLists::kShort &&
           shared_bytes_for_marks(marked, lists.capacity) <=
               static_cast<std::size_t>(device_.shared_bytes);
}

/// Marks the few items that reach what the k nearest of the largest scores of groups do.
Status Fp16Search::mark(const ListsView& lists, std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t padded = space().padded;
    Fp16FilterJob grouped = job(begin, end);
    grouped.largest = group_scores_.data();
    grouped.groups = kMostGroups;
    grouped.group_items = items_of_group(end - begin);
    const std::uint32_t groups = 4 * blocks_for(end - begin, 4 * grouped.group_items);
    GPUTEXT_TRY(run_fp16_filter(device_, grouped, padded, stream_));
    GPUTEXT_TRY(find_gates(gate_job(lists, gates_.data(), widths_.data()), group_scores_.data(),
                           groups, lists.k + 1, stream_));
    Fp16FilterJob marked = job(begin, end);
    marked.marks = marks_.data();
    const std::size_t skipped = std::size_t{begin - first_item_} * row_vectors_ * sizeof(uint4);
    marked_ = {marks_.data(), MarkedItems::words_of(end - begin), begin, aligned_rows_ + skipped,
               row_vectors_};
    return run_fp16_filter(device_, marked, padded, stream_);
}

Status Fp16Search::filter(const NeighborLists& lists, std::uint32_t begin, std::uint32_t end,
                          bool guess, Execution& execution) {
    const ListsView view = lists.view();
    marked_ = {};
    if (guess && marks(view, end - begin)) return mark(view, begin, end);
    if (guess)
        GPUTEXT_TRY(sample(view, begin, end));
    else
        GPUTEXT_TRY(set_gates(gate_job(view, gates_.data(), widths_.data()), stream_));
    const double work = static_cast<double>(queries_) * space().padded;
    const auto most = static_cast<std::uint32_t>(std::clamp(kWorkOfLaunch / work, 4096.0, 1e9));
    for (std::uint32_t next = begin; next < end;) {
        const std::uint32_t last = end - next > most + most / 2 ? next + most : end;
        Fp16FilterJob part = job(next, last);
        part.lists = view;
        GPUTEXT_TRY(run_fp16_filter(device_, part, space().padded, stream_));
        next = last;
        // A queue of long launches could not be stopped.
        if (next < end)
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "filtering neighbors"));
        GPUTEXT_TRY(execution.checkpoint(0));
    }
    return {};
}

Status Fp16Search::prove(const NeighborLists& lists) {
    return set_gates(gate_job(lists.view(), proven_.data(), nullptr), stream_);
}

}  // namespace gputext::gpu
