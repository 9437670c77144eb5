#include "cpp/hnsw/graph.hpp"

#include <utility>

#include "cpp/base/large_pages.hpp"

namespace gputext {

HnswGraph::HnswGraph(unsigned m, std::vector<std::uint8_t> levels)
    : m_(m), levels_(std::move(levels)), upper_begins_(levels_.size()) {
    std::size_t end = size() * places(0);
    for (std::size_t element = 0; element < size(); ++element) {
        if (entry_ == kNoElement || levels_[element] > levels_[entry_])
            entry_ = static_cast<std::uint32_t>(element);
        upper_begins_[element] = end;
        end += levels_[element] * places(1);
    }
    links_.reserve(end);
    prefer_large_pages(links_.data(), end);
    links_.assign(end, kNoElement);
}

}  // namespace gputext
