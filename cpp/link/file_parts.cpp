#include "cpp/link/file_parts.hpp"

#include <unistd.h>

namespace gputext {

std::uint64_t page_size() {
    static const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return size;
}

bool PartsShape::hold(std::uint64_t size) const {
    if (parts == 1) return part_bytes == 0;
    return parts >= 2 && parts <= kMostParts && part_bytes > 0 && part_bytes % page_size() == 0 &&
           size > 0 && (size - 1) / part_bytes == parts - 1;
}

}  // namespace gputext
