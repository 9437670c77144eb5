#include "cpp/daemon/search_parts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "cpp/base/memory_budget.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {
namespace {

// What an H200 takes, and the 16 cores of its host, about, in seconds. Among 1 million resident
// items of 768 dimensions, one device searches for 1 to 64 queries in 0.66 to 0.74 ms, and for
// 1,000 in 3.2 to 3.4 ms. 0.2 ms of that do not depend on how the search is shared out: they are
// left out.
constexpr double kPart = 100e-6;                 // to begin a part on one more device
constexpr double kLinkByte = 1 / 27e9;           // from the host to one device
constexpr double kHostByte = 1 / 54e9;           // from the host to all devices
constexpr double kDeviceByte = 1 / 3e12;         // from the device's own, to prepare the items
constexpr double kPreparedElement = 2 / 4.2e12;  // of items that are prepared already, to read it
constexpr double kProduct = 1 / 360e12;          // of elements in half precision
constexpr double kPair = 1 / 1.2e12;             // of a query and an item, beside their products
constexpr double kExactElement = 1.5e-12;        // of a neighbor's exact distance
constexpr double kMergedNeighbor = 30e-9;        // on one thread
constexpr double kCachedNeighbors = 1e6;         // further ones are read from memory,
constexpr double kReadNeighbor = 6e-9;           // by any number of threads

/// What a search takes, shared out in either way.
class SearchCost {
public:
    SearchCost(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
               bool on_device, unsigned threads)
        : on_device_(on_device), threads_(threads) {
        const auto rows = static_cast<double>(items.rows);
        elements_ = rows * static_cast<double>(items.dimensions);
        bytes_ = elements_ * static_cast<double>(element_size(items.type));
        pairs_ = rows * static_cast<double>(queries.rows);
        products_ = pairs_ * static_cast<double>(items.dimensions);
        neighbors_ = static_cast<double>(queries.rows) *
                     static_cast<double>(std::min(parameters.k, items.rows));
        rescored_ = neighbors_ * static_cast<double>(items.dimensions);
    }

    /// Each device gets all items, and finds the neighbors of its queries.
    double by_queries(double parts) const {
        return parts * kPart + uploading(parts * bytes_, bytes_) + searching(1, parts) +
               rescored_ * kExactElement / parts;
    }
    /// Each device gets its items, and finds as many neighbors as a whole search does.
    double by_items(double parts) const {
        const double to_merge = parts > 1 ? parts * neighbors_ : 0;
        const double merged = to_merge * kMergedNeighbor / threads_ +
                              std::max(to_merge - kCachedNeighbors, 0.0) * kReadNeighbor;
        return parts * kPart + uploading(bytes_, bytes_ / parts) + searching(parts, 1) +
               rescored_ * kExactElement + merged;
    }

private:
    double uploading(double all, double to_each) const {
        return on_device_ ? 0 : std::max(all * kHostByte, to_each * kLinkByte);
    }
    /// A device's part of the items for its part of the queries. Items that come from the host are
    /// prepared before they are compared; prepared ones are compared while more of them are read.
    double searching(double item_parts, double query_parts) const {
        const double comparing =
            (products_ * kProduct + pairs_ * kPair) / (item_parts * query_parts);
        return on_device_ ? std::max(elements_ * kPreparedElement / item_parts, comparing)
                          : bytes_ * kDeviceByte / item_parts + comparing;
    }

    bool on_device_;
    double threads_;
    double elements_, bytes_, pairs_, products_, neighbors_, rescored_;
};

}  // namespace

SearchShares best_shares(const KnnParameters& parameters, const Vectors& queries,
                         const Vectors& items, bool on_device, std::size_t devices,
                         unsigned threads) {
    const SearchCost cost(parameters, queries, items, on_device, threads);
    // Merging would cut off what is as far as the last of k.
    const std::size_t most_by_items =
        parameters.include_ties
            ? 1
            : most_item_parts({parameters.k, parameters.answer_limit}, queries.rows, items.rows);
    SearchShares best;
    double least = std::numeric_limits<double>::infinity();
    const auto consider = [&](SearchShares::By by, std::size_t parts, double seconds) {
        if (seconds >= least) return;
        least = seconds;
        best = {by, parts};
    };
    consider(SearchShares::By::queries, 1, cost.by_queries(1));
    for (std::size_t parts = 2; parts <= devices; ++parts) {
        const auto count = static_cast<double>(parts);
        if (parts <= queries.rows)
            consider(SearchShares::By::queries, parts, cost.by_queries(count));
        if (parts <= std::min(most_by_items, items.rows))
            consider(SearchShares::By::items, parts, cost.by_items(count));
    }
    return best;
}

std::size_t most_item_parts(const AnswerLimit& limit, std::size_t queries, std::size_t items) {
    const double merged = static_cast<double>(std::max<std::size_t>(std::min(items, limit.k), 1)) *
                          static_cast<double>(std::max<std::size_t>(queries, 1)) * kBytesOfNeighbor;
    const double parts = 2 * (static_cast<double>(limit.bytes) - merged) / merged;
    return parts < 1 ? 1 : static_cast<std::size_t>(std::min(parts, 1e6));
}

std::vector<std::size_t> even_parts(std::size_t rows, std::size_t parts) {
    std::vector<std::size_t> begins;
    for (std::size_t part = 0; part <= parts; ++part) begins.push_back(rows * part / parts);
    return begins;
}

SearchParts::SearchParts(const Vectors& queries, const Vectors& items, const RowKeys& keys,
                         SearchShares::By by, std::vector<std::size_t> begins)
    : by_(by),
      whole_(by == SearchShares::By::queries ? items : queries),
      keys_(keys),
      begins_(std::move(begins)),
      answers_(begins_.size() - 1) {
    const Vectors& shared = by == SearchShares::By::queries ? queries : items;
    for (std::size_t part = 0; part < size(); ++part)
        rows_.emplace_back(shared, begins_[part], begins_[part + 1]);
}

RowKeys SearchParts::keys(std::size_t part) const {
    RowKeys own = keys_;
    const std::size_t begin = begins_[part], count = begins_[part + 1] - begin;
    auto& shared = by_ == SearchShares::By::queries ? own.queries : own.items;
    if (!shared.empty()) shared = shared.subspan(begin, count);
    return own;
}

/// While answers are merged there are those of the parts, and the whole one; while they are
/// returned, there are they and their copy.
Status SearchParts::check_memory(const AnswerLimit& limit) const {
    std::uint64_t found = 0;
    for (const Neighbors& part : answers_) found += part.items.size();
    std::uint64_t bytes = kBytesOfNeighbor * found;
    if (by_ == SearchShares::By::items) {
        const std::uint64_t rows = std::max<std::uint64_t>(whole_.rows, 1);
        const std::uint64_t merged = limit.k < found / rows ? rows * limit.k : found;
        bytes = kBytesOfNeighbor / 2 * found + kBytesOfNeighbor * merged;
    }
    if (bytes <= limit.bytes) return {};
    return over_memory_limit("the neighbors", bytes, limit.bytes);
}

Status SearchParts::merge(const AnswerLimit& limit, Execution& execution) {
    if (size() <= 1) return {};
    GPUTEXT_TRY(check_memory(limit));
    if (by_ == SearchShares::By::queries) return {};
    const std::vector<std::uint32_t> first_items(begins_.begin(), begins_.end() - 1);
    std::vector<Neighbors> whole(1);
    GPUTEXT_TRY(merge_neighbors(answers_, first_items, limit.k, execution, whole[0]));
    answers_ = std::move(whole);
    return {};
}

KnnReply knn_reply(const JobReport& report, std::uint32_t queries,
                   std::span<const Neighbors> answers) {
    KnnReply reply{report, queries, 0, 0, 0};
    for (const Neighbors& answer : answers) {
        reply.neighbors += answer.items.size();
        reply.rescored += answer.rescored;
        reply.escalated += answer.escalated;
    }
    return reply;
}

}  // namespace gputext
