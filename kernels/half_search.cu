#include <algorithm>
#include <cmath>

#include "kernels/half_search.hpp"
#include "kernels/launch.hpp"

namespace gputext::gpu {
namespace {

constexpr double kWorkOfLaunch = 8e12;  // pairs times dimensions: about 30 ms

std::uint32_t samples_of(std::size_t items) {
    return items <= 1 << 17 ? 16 * kSampleGroups : 64 * kSampleGroups;
}

std::size_t padded_of(std::size_t dimensions) {
    return dimensions <= 64 ? (dimensions + 15) / 16 * 16 : (dimensions + 63) / 64 * 64;
}

/// Of the groups of samples, how many must reach a gate that the k nearest of all items reach but
/// for one case in about a hundred thousand: how many of them are sampled follows Poisson's law.
std::uint32_t rank_of_gate(double k, double samples, double items) {
    constexpr double groups = kSampleGroups;
    const double mean = k * samples / items;
    const double rank = mean + 4 * std::sqrt(mean) + 3;
    return static_cast<std::uint32_t>(std::ceil(groups * (1 - std::pow(1 - 1 / groups, rank))));
}

}  // namespace

HalfSearch::Bytes HalfSearch::bytes(std::size_t dimensions, std::size_t items) {
    const std::size_t row = padded_of(dimensions) * sizeof(__half);
    const std::size_t samples = samples_of(items);
    return {row + sizeof(HalfQueryBound) + sizeof(float2) + (3 + kSampleGroups) * sizeof(float),
            row + sizeof(HalfItemBound),
            samples * (row + sizeof(HalfItemBound)) + dimensions * sizeof(double)};
}

Status HalfSearch::prepare(Metric metric, const Vectors& items, const HalfFilterDevice& device,
                           cudaStream_t stream) {
    device_ = device;
    stream_ = stream;
    return choice_.choose(metric, items, stream);
}

Status HalfSearch::allocate(std::size_t queries, std::size_t items) {
    const std::size_t padded = choice_.space().padded;
    samples_ = samples_of(items);
    GPUTEXT_TRY(query_rows_.allocate(queries * padded, stream_));
    GPUTEXT_TRY(query_bounds_.allocate(queries, stream_));
    GPUTEXT_TRY(groups_.allocate(blocks_for(queries, kGroupQueries), stream_));
    GPUTEXT_TRY(gates_.allocate(queries, stream_));
    GPUTEXT_TRY(widths_.allocate(queries, stream_));
    GPUTEXT_TRY(proven_.allocate(queries, stream_));
    GPUTEXT_TRY(item_rows_.allocate(items * padded, stream_));
    GPUTEXT_TRY(item_bounds_.allocate(items, stream_));
    GPUTEXT_TRY(largest_.allocate(2, stream_));
    GPUTEXT_TRY(sampled_rows_.allocate(samples_ * padded, stream_));
    GPUTEXT_TRY(sampled_bounds_.allocate(samples_, stream_));
    return sampled_scores_.allocate(queries * kSampleGroups, stream_);
}

Status HalfSearch::load_queries(const DeviceQueries& queries) {
    queries_ = queries.rows;
    return convert_queries(choice_.space(), queries, query_rows_.data(), query_bounds_.data(),
                           groups_.data(), stream_);
}

Status HalfSearch::load_items(const DeviceRows& items, std::uint32_t first_item) {
    first_item_ = first_item;
    return convert_items(choice_.space(), items, item_rows_.data(), item_bounds_.data(),
                         largest_.data(), stream_);
}

GateJob HalfSearch::gate_job(const ListsView& lists, float* gates, float* widths) const {
    return {choice_.space(), {query_rows_.data(), query_bounds_.data(), groups_.data()},
            queries_,        lists.limits,
            largest_.data(), gates,
            widths};
}

HalfFilterJob HalfSearch::job(std::uint32_t begin, std::uint32_t end) const {
    HalfFilterJob job{};
    job.queries = {query_rows_.data(), query_bounds_.data(), groups_.data()};
    job.rows = queries_;
    job.gates = gates_.data();
    job.items = {item_rows_.data(), item_bounds_.data(), largest_.data()};
    job.first_item = first_item_;
    job.begin = begin;
    job.end = end;
    return job;
}

Status HalfSearch::sample(const ListsView& lists, std::uint32_t begin, std::uint32_t end) {
    const HalfSpace& space = choice_.space();
    const std::size_t skipped = begin - first_item_;
    GPUTEXT_TRY(sample_items(
        space, {item_rows_.data() + skipped * space.padded, item_bounds_.data() + skipped, nullptr},
        end - begin, samples_, sampled_rows_.data(), sampled_bounds_.data(), stream_));
    const std::uint32_t rank = rank_of_gate(lists.k + 1, samples_, end - begin);
    HalfFilterJob sampled = job(0, samples_);
    sampled.items = {sampled_rows_.data(), sampled_bounds_.data(), nullptr};
    sampled.first_item = 0;
    sampled.largest = sampled_scores_.data();
    sampled.group_items = samples_ / kSampleGroups;
    GPUTEXT_TRY(run_half_filter(device_, sampled, space.padded, stream_));
    return guess_gates(gate_job(lists, gates_.data(), widths_.data()), sampled_scores_.data(), rank,
                       stream_);
}

Status HalfSearch::filter(const NeighbourLists& lists, std::uint32_t begin, std::uint32_t end,
                          bool guess, Execution& execution) {
    const ListsView view = lists.view();
    if (guess)
        GPUTEXT_TRY(sample(view, begin, end));
    else
        GPUTEXT_TRY(set_gates(gate_job(view, gates_.data(), widths_.data()), stream_));
    const double work = static_cast<double>(queries_) * choice_.space().padded;
    const auto most = static_cast<std::uint32_t>(std::clamp(kWorkOfLaunch / work, 4096.0, 1e9));
    for (std::uint32_t next = begin; next < end;) {
        const std::uint32_t last = end - next > most + most / 2 ? next + most : end;
        HalfFilterJob part = job(next, last);
        part.lists = view;
        GPUTEXT_TRY(run_half_filter(device_, part, choice_.space().padded, stream_));
        next = last;
        // A queue of long launches could not be stopped.
        if (next < end)
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "filtering neighbours"));
        GPUTEXT_TRY(execution.checkpoint(0));
    }
    return {};
}

Status HalfSearch::prove(const NeighbourLists& lists) {
    return set_gates(gate_job(lists.view(), proven_.data(), nullptr), stream_);
}

}  // namespace gputext::gpu
