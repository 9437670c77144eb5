#include "cpp/daemon/keyed_parts.hpp"

#include <algorithm>
#include <utility>

#include "cpp/base/memory_budget.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {
namespace {

// What a device takes, about, in seconds.
constexpr double kLeastPart = 250e-6;     // a part that is worth one
constexpr double kLinkByte = 1 / 40e9;    // from the host
constexpr double kPairElement = 1.5e-12;  // of an exact distance

double bytes_of_row(const Vectors& vectors) {
    if (vectors.rows == 0) return 0;
    return static_cast<double>(vectors.average_stored() * element_size(vectors.type));
}

/// On one device.
double seconds_of(const KeyGroups& groups, const Vectors& queries, const Vectors& items) {
    const double bytes = static_cast<double>(groups.queries.size()) * bytes_of_row(queries) +
                         static_cast<double>(groups.items.size()) * bytes_of_row(items);
    const auto elements = static_cast<double>(items.rows == 0 ? 0 : items.average_stored());
    return bytes * kLinkByte + static_cast<double>(groups.pairs()) * elements * kPairElement;
}

}  // namespace

KeyGroups groups_of_queries(const KeyGroups& groups, std::uint64_t begin, std::uint64_t end) {
    KeyGroups part;
    part.query_begins.assign(1, 0);
    part.item_begins.assign(1, 0);
    if (begin == end) return part;
    const auto group_at = [&](std::uint64_t at) {
        return static_cast<std::size_t>(std::ranges::upper_bound(groups.query_begins, at) -
                                        groups.query_begins.begin() - 1);
    };
    const std::size_t first = group_at(begin), last = group_at(end - 1) + 1;
    const auto copy = [](const std::vector<std::uint32_t>& rows, std::uint64_t from,
                         std::uint64_t to) {
        return std::vector<std::uint32_t>(rows.begin() + static_cast<std::ptrdiff_t>(from),
                                          rows.begin() + static_cast<std::ptrdiff_t>(to));
    };
    const std::uint64_t first_item = groups.item_begins[first];
    part.queries = copy(groups.queries, begin, end);
    part.items = copy(groups.items, first_item, groups.item_begins[last]);
    for (std::size_t group = first; group < last; ++group) {
        part.query_begins.push_back(std::min(end, groups.query_begins[group + 1]) - begin);
        part.item_begins.push_back(groups.item_begins[group + 1] - first_item);
    }
    return part;
}

std::vector<std::uint64_t> parts_by_pairs(const KeyGroups& groups, std::size_t parts) {
    std::vector<std::uint64_t> begins(1, 0);
    // As doubles: pairs of parts need not be exact, and their products may be large.
    const auto all = static_cast<double>(groups.pairs());
    double before = 0;
    for (std::size_t group = 0; group < groups.size() && begins.size() < parts; ++group) {
        const auto items = static_cast<double>(groups.items_of(group).size());
        const auto queries = static_cast<double>(groups.queries_of(group).size());
        while (begins.size() < parts) {
            const double wanted =
                all * static_cast<double>(begins.size()) / static_cast<double>(parts);
            if (wanted > before + queries * items) break;
            const double some = std::clamp((wanted - before) / items, 0.0, queries);
            const auto at = groups.query_begins[group] + static_cast<std::uint64_t>(some);
            begins.push_back(std::max(at, begins.back()));
        }
        before += queries * items;
    }
    begins.resize(parts, groups.queries.size());
    begins.push_back(groups.queries.size());
    return begins;
}

Result<std::size_t> KeyedParts::prepare(const MatchKeys& matches, const Vectors& queries,
                                        const Vectors& items, std::size_t devices,
                                        Execution& execution) {
    auto groups = group_by_key(matches, execution);
    if (!groups.ok()) return groups.status();
    const double seconds = seconds_of(*groups, queries, items);
    const double worth = std::min(seconds / kLeastPart, static_cast<double>(devices));
    const std::size_t parts = worth < 2 ? 1 : static_cast<std::size_t>(worth);
    answers_ = std::vector<Neighbors>(parts);
    groups_.clear();
    if (parts == 1) {
        groups_.push_back(std::move(*groups));
        return parts;
    }
    const auto begins = parts_by_pairs(*groups, parts);
    for (std::size_t part = 0; part < parts; ++part) {
        groups_.push_back(groups_of_queries(*groups, begins[part], begins[part + 1]));
        if (execution.stop_requested()) return Status::cancelled();
    }
    return parts;
}

/// While answers are merged there are those of the parts, and the whole one.
Status KeyedParts::merge(const AnswerLimit& limit, Execution& execution) {
    std::uint64_t found = 0;
    for (const Neighbors& part : answers_) found += part.items.size();
    const std::uint64_t bytes = kBytesOfNeighbor * found;
    if (bytes > limit.bytes) return over_memory_limit("the neighbors", bytes, limit.bytes);
    if (answers_.size() <= 1) return {};
    const std::vector<std::uint32_t> first_items(answers_.size());
    std::vector<Neighbors> whole(1);
    // Each query has its neighbors from one part: nothing is cut off.
    GPUTEXT_TRY(
        merge_neighbors(answers_, first_items, KnnParameters::all_items, execution, whole[0]));
    answers_ = std::move(whole);
    return {};
}

}  // namespace gputext
