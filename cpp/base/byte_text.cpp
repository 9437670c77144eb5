#include "cpp/base/byte_text.hpp"

#include <cstdio>
#include <iterator>

namespace gputext {

std::string byte_text(std::uint64_t bytes) {
    constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    if (bytes < 1000) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
    auto number = static_cast<double>(bytes) / 1000;
    std::size_t unit = 0;
    // What would be rounded to 1000.00 is one of the next unit.
    for (; number >= 999.995 && unit + 1 < std::size(kUnits); ++unit) number /= 1000;
    char text[16];
    std::snprintf(text, sizeof text, "%.2f %s", number, kUnits[unit]);
    return text;
}

}  // namespace gputext
