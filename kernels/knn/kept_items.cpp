#include "kernels/knn/kept_items.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gputext::gpu {

const Fp16ItemSet* KeptItems::find(const Key& key) {
    const auto found =
        std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
    if (key.range == 0 || found == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found);
    return &kept_.front().items;
}

void KeptItems::keep(const Key& key, Fp16ItemSet items) {
    const std::uint64_t bytes = items.bytes();
    if (key.range == 0 || bytes > limit_) return;
    while (!kept_.empty() && bytes_ > limit_ - bytes) drop(std::prev(kept_.end()));
    bytes_ += bytes;
    kept_.push_front({key, std::move(items)});
}

void KeptItems::drop_gone(const ResidentRanges& ranges) {
    for (auto kept = kept_.begin(); kept != kept_.end();) {
        const auto next = std::next(kept);
        if (!ranges.has(kept->key.range)) drop(kept);
        kept = next;
    }
}

void KeptItems::drop(std::list<Kept>::iterator kept) {
    bytes_ -= kept->items.bytes();
    kept_.erase(kept);
}

void KeptItems::clear() {
    kept_.clear();
    bytes_ = 0;
}

}  // namespace gputext::gpu
