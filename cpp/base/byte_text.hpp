// cpp/base/byte_text.hpp - numbers of bytes, for people

#pragma once

#include <cstdint>
#include <string>

namespace gputext {

/// "417 bytes", "3.07 GB": below 1000 exactly, else in the decimal unit that leaves one to three
/// digits before the point, rounded to two behind it.
std::string byte_text(std::uint64_t bytes);

}  // namespace gputext
