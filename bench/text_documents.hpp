// bench/text_documents.hpp - generates documents that resemble texts, and versions of them, from a
// seed

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace gputext::bench {

/// Words of a Zipf-like vocabulary, and edits that lie together as a person's do.
class TextDocuments {
public:
    /// A small vocabulary, and letters with frequencies of its own, make a subject of its own.
    explicit TextDocuments(std::uint64_t seed, std::size_t vocabulary = 4000)
        : generator_(seed), words_(vocabulary) {
        std::string letters = "etaoinshrdlucmfwygpbvkxjqz";
        if (vocabulary < 4000) std::shuffle(letters.begin(), letters.end(), generator_);
        for (std::string& word : words_) {
            word.resize(2 + below(9));
            for (char& letter : word) letter = letters[skewed(26)];
        }
    }

    std::string document(std::size_t length) {
        std::string text;
        while (text.size() < length) {
            text += words_[skewed(words_.size())];
            text += " \n"[below(12) == 0];
        }
        text.resize(length);
        return text;
    }

    /// After about `edits` edits, in clusters of a line or less.
    std::string version(std::string text, std::size_t edits) {
        while (edits > 0) {
            const std::size_t some = std::min(edits, 1 + below(60));
            const std::size_t at = below(text.size());
            switch (below(3)) {
                case 0:
                    text.insert(at, document(some));
                    break;
                case 1:
                    text.erase(at, some);
                    break;
                default:
                    text.replace(at, some, document(some));
            }
            edits -= some;
        }
        return text;
    }

    /// Edit rates as those of source files' versions: 10, 25, 50, 90 % are below .0022, .0084,
    /// .0205, .0433.
    double realistic_rate() {
        constexpr std::array<double, 6> shares{0, .1, .25, .5, .9, 1};
        constexpr std::array<double, 6> rates{.0001, .0022, .0084, .0205, .0433, .05};
        const double share = std::uniform_real_distribution<double>()(generator_);
        std::size_t i = 1;
        while (shares[i] < share) ++i;
        const double part = (share - shares[i - 1]) / (shares[i] - shares[i - 1]);
        return rates[i - 1] + part * (rates[i] - rates[i - 1]);
    }

    std::size_t below(std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_);
    }

private:
    std::size_t skewed(std::size_t bound) {
        const double at = std::uniform_real_distribution<double>()(generator_);
        return std::min(bound - 1,
                        static_cast<std::size_t>(std::pow(static_cast<double>(bound), at) - 0.5));
    }

    std::mt19937_64 generator_;
    std::vector<std::string> words_;
};

/// Documents of about `length` bytes in fours: three are versions of the first. Each four has a
/// subject of its own.
inline std::vector<std::string> documents_with_versions(std::size_t count, std::size_t length,
                                                        std::uint64_t seed) {
    std::vector<std::string> strings;
    while (strings.size() < count) {
        TextDocuments texts(seed + strings.size(), 300);
        const std::string first = texts.document(length / 2 + texts.below(length));
        const auto sum = static_cast<double>(2 * first.size());
        strings.push_back(first);
        for (int i = 0; i < 3; ++i)
            strings.push_back(
                texts.version(first, static_cast<std::size_t>(texts.realistic_rate() * sum)));
    }
    return strings;
}

}  // namespace gputext::bench
