// cpp/base/gather.hpp - puts elements into another order, on threads

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// to[i] = from(order[i]) for each i. `from` is called on the execution's threads. Error:
/// cancelled.
template <class To, class From>
Status gather(std::span<const std::uint32_t> order, To* to, const From& from,
              Execution& execution) {
    constexpr std::size_t kBlock = std::size_t{1} << 16;
    const std::size_t blocks = (order.size() + kBlock - 1) / kBlock;
    execution.begin_phase("ordering rows", blocks);
    return execution.parallel_for(blocks, [&](std::size_t block, unsigned) {
        const std::size_t end = std::min(order.size(), (block + 1) * kBlock);
        for (std::size_t i = block * kBlock; i < end; ++i) to[i] = from(order[i]);
        return Status();
    });
}

}  // namespace gputext
