#include "cpp/documents/detail/index_pair.hpp"

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

}  // namespace gputext
