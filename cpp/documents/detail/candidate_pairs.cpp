#include "cpp/documents/detail/candidate_pairs.hpp"

#include <algorithm>

#include "cpp/base/radix_sort.hpp"

namespace gputext {

Status PairLists::take(std::vector<IndexPair>& pairs, Stop stop) {
    std::vector<std::uint64_t> all;
    for (List& list : lists_) {
        all.insert(all.end(), list.pairs.begin(), list.pairs.end());
        list = {};
    }
    if (!radix_sort(all, stop)) return Status::cancelled();
    all.erase(std::unique(all.begin(), all.end()), all.end());
    pairs.clear();
    pairs.reserve(all.size());
    for (const std::uint64_t pair : all)
        pairs.push_back({static_cast<std::uint32_t>(pair >> 32), static_cast<std::uint32_t>(pair)});
    return {};
}

WantedPairs::WantedPairs(const DistinctDocuments& documents)
    : connect_sets_(!documents.sets.empty()),
      sets_({documents.sets.begin(), documents.sets.end()}),
      set_count_(0) {
    for (std::uint32_t i = 0; i < documents.sets.size(); ++i)
        if (documents.sets[i] == i) ++set_count_;
}

std::size_t WantedPairs::put_forest_first(std::span<const std::uint32_t> documents,
                                          std::vector<IndexPair>& pairs) {
    std::erase_if(pairs, [&](const IndexPair& pair) {
        return !wants(documents[pair.first], documents[pair.second]);
    });
    DisjointSets if_near = sets_;
    const auto behind =
        std::stable_partition(pairs.begin(), pairs.end(), [&](const IndexPair& pair) {
            return if_near.join(documents[pair.first], documents[pair.second]);
        });
    return static_cast<std::size_t>(behind - pairs.begin());
}

}  // namespace gputext
