// tests/support/filed_numbers.hpp - numbers in a sealed file, as gputextd's jobs read them

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/link/memory_file.hpp"

namespace gputext::testing {

template <class T>
class FiledNumbers {
public:
    explicit FiledNumbers(std::span<const T> numbers) {
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(numbers.data());
        EXPECT_TRUE(file_.append({bytes, numbers.size_bytes()}).ok());
        EXPECT_TRUE(file_.seal().ok());
    }
    explicit FiledNumbers(const std::vector<T>& numbers)
        : FiledNumbers(std::span<const T>(numbers)) {}

    int descriptor() const { return file_.descriptor(); }

private:
    MemoryFile file_;
};

}  // namespace gputext::testing
