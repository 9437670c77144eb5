// cpp/documents/length_class.hpp - classes of documents of about one length

#pragma once

#include <cstdint>

namespace gputext {

inline constexpr unsigned kLengthClasses = 248;

/// Classes of growing lengths: 16 each time the length doubles, from 64 to 65,535 characters, and 4
/// for shorter and longer ones.
std::uint8_t length_class(std::uint32_t length);

/// The least length of a class. Some numbers of classes below 8 are those of no length.
std::uint32_t least_length_of(std::uint8_t length_class);

}  // namespace gputext
