// tests/support/random_strings.hpp - seeded strings that resemble each other, for property tests

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/test_size.hpp"

namespace gputext::testing {

/// Seed of this run: GPUTEXT_TEST_SEED when set, else fixed. Printed with every failure.
inline std::uint64_t seed() {
    const char* text = std::getenv("GPUTEXT_TEST_SEED");
    return text == nullptr ? 20261121 : std::strtoull(text, nullptr, 10);
}

class RandomStrings {
public:
    RandomStrings() : trace_(__FILE__, __LINE__, "GPUTEXT_TEST_SEED=" + std::to_string(seed())) {}

    std::size_t below(std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_);
    }

    template <class String = std::string>
    String string(std::size_t length, std::basic_string_view<typename String::value_type> letters) {
        String text(length, letters[0]);
        for (auto& letter : text) letter = letters[below(letters.size())];
        return text;
    }

    /// The text after `edits` random insertions, deletions and substitutions: at most that far
    /// away.
    template <class String>
    String edited(String text, std::size_t edits,
                  std::basic_string_view<typename String::value_type> letters) {
        for (; edits > 0; --edits) {
            const auto letter = letters[below(letters.size())];
            const std::size_t kind = text.empty() ? 0 : below(3);
            if (kind == 0)
                text.insert(text.begin() + static_cast<std::ptrdiff_t>(below(text.size() + 1)),
                            letter);
            else if (kind == 1)
                text.erase(below(text.size()), 1);
            else
                text[below(text.size())] = letter;
        }
        return text;
    }

    /// Texts of the same blocks of letters in different orders, 800 characters each.
    std::vector<std::string> shuffled_blocks(std::size_t count) {
        std::vector<std::string> blocks, texts;
        while (blocks.size() < 20) blocks.push_back(string(40, "abcdefghijklmnopqrstuvwxyz "));
        while (texts.size() < count) {
            std::shuffle(blocks.begin(), blocks.end(), generator_);
            std::string& text = texts.emplace_back();
            for (const std::string& block : blocks) text += block;
        }
        return texts;
    }

private:
    std::mt19937_64 generator_{seed()};
    ::testing::ScopedTrace trace_;
};

/// The textbook dynamic program, the oracle of every faster one.
template <class Sequence>
std::size_t plain_edit_distance(const Sequence& a, const Sequence& b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

inline std::string utf8_of(std::u32string_view text) {
    std::string bytes;
    const auto add = [&bytes](char32_t byte) { bytes += static_cast<char>(byte); };
    for (const char32_t c : text) {
        if (c < 0x80) {
            add(c);
            continue;
        }
        if (c < 0x800) {
            add(0xc0 | c >> 6);
        } else {
            if (c < 0x10000) {
                add(0xe0 | c >> 12);
            } else {
                add(0xf0 | c >> 18);
                add(0x80 | (c >> 12 & 63));
            }
            add(0x80 | (c >> 6 & 63));
        }
        add(0x80 | (c & 63));
    }
    return bytes;
}

inline std::span<const std::uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace gputext::testing
