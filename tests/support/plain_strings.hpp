// tests/support/plain_strings.hpp - strings at random, and the definitions of
// cpp/strings/string_distance.hpp taken literally

#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "cpp/strings/string_distance.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

using String = std::vector<std::uint32_t>;

/// Strings with a view of them.
class StringRows {
public:
    explicit StringRows(const std::vector<String>& rows) : begins_(1, 0) {
        for (const String& row : rows) {
            symbols_.insert(symbols_.end(), row.begin(), row.end());
            begins_.push_back(symbols_.size());
        }
    }
    Strings view() const { return {begins_, symbols_.data()}; }

private:
    std::vector<std::uint64_t> begins_;
    std::vector<std::uint32_t> symbols_;
};

inline String string_of(const char* text) {
    return {text, text + std::char_traits<char>::length(text)};
}

/// Optimal string alignment with transpositions, else Levenshtein, by all cells.
inline std::size_t plain_edits(const String& a, const String& b, bool transpositions) {
    std::vector<std::vector<std::size_t>> cells(a.size() + 1,
                                                std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i)
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                cells[i][j] = i + j;
                continue;
            }
            cells[i][j] = std::min({cells[i - 1][j] + 1, cells[i][j - 1] + 1,
                                    cells[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
            if (transpositions && i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cells[i][j] = std::min(cells[i][j], cells[i - 2][j - 2] + 1);
        }
    return cells[a.size()][b.size()];
}

/// Lowrance and Wagner's recurrence.
inline std::size_t plain_damerau_levenshtein(const String& a, const String& b) {
    std::vector<std::vector<std::size_t>> cells(a.size() + 1,
                                                std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i)
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                cells[i][j] = i + j;
                continue;
            }
            cells[i][j] = std::min({cells[i - 1][j] + 1, cells[i][j - 1] + 1,
                                    cells[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
            for (std::size_t k = 1; k < i; ++k)
                for (std::size_t l = 1; l < j; ++l)
                    if (a[k - 1] == b[j - 1] && a[i - 1] == b[l - 1])
                        cells[i][j] = std::min(cells[i][j], cells[k - 1][l - 1] + (i - k - 1) + 1 +
                                                                (j - l - 1));
        }
    return cells[a.size()][b.size()];
}

inline double plain_jaro(const String& a, const String& b) {
    if (a.empty() && b.empty()) return 1;
    const std::size_t half = std::max(a.size(), b.size()) / 2, window = half == 0 ? 0 : half - 1;
    std::vector<bool> matched(a.size());
    String of_a, of_b;
    for (std::size_t j = 0; j < b.size(); ++j)
        for (std::size_t i = j > window ? j - window : 0; i < a.size() && i <= j + window; ++i)
            if (!matched[i] && a[i] == b[j]) {
                matched[i] = true;
                of_b.push_back(b[j]);
                break;
            }
    for (std::size_t i = 0; i < a.size(); ++i)
        if (matched[i]) of_a.push_back(a[i]);
    if (of_a.empty()) return 0;
    std::size_t differing = 0;
    for (std::size_t i = 0; i < of_a.size(); ++i) differing += of_a[i] != of_b[i];
    const auto c = static_cast<double>(of_a.size());
    const auto t = static_cast<double>(differing / 2);
    return (c / static_cast<double>(a.size()) + c / static_cast<double>(b.size()) + (c - t) / c) /
           3;
}

inline double plain_jaro_winkler(const String& a, const String& b) {
    const double jaro = plain_jaro(a, b);
    std::size_t prefix = 0;
    while (prefix < std::min({a.size(), b.size(), std::size_t{4}}) && a[prefix] == b[prefix])
        ++prefix;
    return jaro > 0.7 ? std::min(1.0, jaro + static_cast<double>(prefix) * 0.1 * (1 - jaro)) : jaro;
}

/// With trigram, of rows that ascend.
inline double plain_string_distance(StringMetric metric, const String& a, const String& b) {
    const double lengths = static_cast<double>(a.size() + b.size());
    switch (metric) {
        case StringMetric::edit_rate:
            return lengths == 0 ? 0 : static_cast<double>(plain_edits(a, b, false)) / lengths;
        case StringMetric::levenshtein:
            return static_cast<double>(plain_edits(a, b, false));
        case StringMetric::osa:
            return static_cast<double>(plain_edits(a, b, true));
        case StringMetric::jaro:
            return 1 - plain_jaro(a, b);
        case StringMetric::jaro_winkler:
            return 1 - plain_jaro_winkler(a, b);
        case StringMetric::trigram: {
            if (a.empty() || b.empty()) return 1;
            String common;
            std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                                  std::back_inserter(common));
            const auto all = static_cast<float>(a.size() + b.size() - common.size());
            return static_cast<float>(1.0 - static_cast<float>(common.size()) / all);
        }
    }
    return 0;
}

inline constexpr StringMetric kAllStringMetrics[] = {
    StringMetric::edit_rate, StringMetric::levenshtein,  StringMetric::osa,
    StringMetric::jaro,      StringMetric::jaro_winkler, StringMetric::trigram};

inline const char* name_of(StringMetric metric) {
    constexpr const char* names[] = {"edit_rate", "levenshtein",  "osa",
                                     "jaro",      "jaro_winkler", "trigram"};
    return names[static_cast<std::size_t>(metric)];
}

/// Strings of few symbols or of many, with common parts; some empty, some long, some equal.
class RandomNames {
public:
    RandomNames() : trace_(__FILE__, __LINE__, "GPUTEXT_TEST_SEED=" + std::to_string(seed())) {}

    std::size_t below(std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_);
    }

    /// A third of them are made of others by some edits.
    std::vector<String> strings(std::size_t count, std::size_t longest) {
        const std::size_t alphabet = alphabets_[below(std::size(alphabets_))];
        std::vector<String> strings(count);
        for (std::size_t i = 0; i < count; ++i)
            strings[i] = i > 0 && below(3) == 0 ? edited(strings[below(i)], alphabet)
                                                : string(length(longest), alphabet);
        return strings;
    }

    /// `string` with up to five edits, exchanges of neighbors among them.
    String edited(String string, std::size_t alphabet) {
        for (std::size_t edits = below(6); edits > 0; --edits) {
            const std::size_t at = below(string.size() + 1), kind = below(4);
            const auto place = string.begin() + static_cast<std::ptrdiff_t>(at);
            if (kind == 0 || at == string.size())
                string.insert(place, symbol(alphabet));
            else if (kind == 1)
                string.erase(place);
            else if (kind == 2)
                *place = symbol(alphabet);
            else if (at + 1 < string.size())
                std::swap(string[at], string[at + 1]);
        }
        return string;
    }

    /// The string's symbols as a set.
    static String ascending(String string) {
        std::sort(string.begin(), string.end());
        string.erase(std::unique(string.begin(), string.end()), string.end());
        return string;
    }

private:
    std::size_t length(std::size_t longest) {
        const std::size_t kind = below(10);
        if (kind == 0) return 0;
        if (kind == 1) return std::min<std::size_t>(longest, 60 + below(10));
        return below(kind < 9 ? std::min<std::size_t>(longest, 40) + 1 : longest + 1);
    }
    std::uint32_t symbol(std::size_t alphabet) {
        // Beyond Latin letters, as a server numbers them: by their bytes.
        const auto number = static_cast<std::uint32_t>(below(alphabet));
        return number < 60 ? 'A' + number : 0xe38080 + number * 7;
    }
    String string(std::size_t size, std::size_t alphabet) {
        String made(size);
        for (std::uint32_t& some : made) some = symbol(alphabet);
        return made;
    }

    static constexpr std::size_t alphabets_[] = {1, 2, 4, 26, 300, 5000};
    std::mt19937_64 generator_{seed()};
    ::testing::ScopedTrace trace_;
};

}  // namespace gputext::testing
