// bench/word_corpus.hpp - reads a file of words as the stream for counting co-occurrences

#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cpp/thesaurus/cooccurrences.hpp"

namespace gputext::bench {

/// Each line is a text of words between blanks. Words that are there less than `min_count` times
/// keep their places; the others have numbers by frequency, those of equal frequency in the order
/// of their bytes.
class WordCorpus {
public:
    WordCorpus(const std::string& name, std::uint32_t window, std::uint64_t min_count,
               std::size_t most_words) {
        std::ifstream file(name, std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        std::unordered_map<std::string_view, std::uint64_t> counts;
        each_word(
            text, [&](std::string_view word) { ++counts[word]; }, [] {});
        std::vector<std::pair<std::uint64_t, std::string_view>> frequent;
        for (const auto& [word, count] : counts)
            if (count >= min_count) frequent.emplace_back(count, word);
        std::sort(frequent.begin(), frequent.end(), [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first > b.first : a.second < b.second;
        });
        frequent.resize(std::min(frequent.size(), most_words));
        std::unordered_map<std::string_view, std::uint32_t> numbers;
        for (const auto& [count, word] : frequent) {
            numbers.emplace(word, static_cast<std::uint32_t>(names.size()));
            names.emplace_back(word);
        }
        std::uint32_t position = 0;
        each_word(
            text,
            [&](std::string_view word) {
                ++all;
                if (const auto found = numbers.find(word); found != numbers.end()) {
                    words_.push_back(found->second);
                    positions_.push_back(position);
                }
                ++position;
            },
            [&] { position += window; });
        for (const auto& [word, number] : numbers) numbers_.emplace(names[number], number);
    }

    TokenStream stream() const { return {words_, positions_}; }
    /// UINT32_MAX for none.
    std::uint32_t number_of(const std::string& word) const {
        const auto found = numbers_.find(word);
        return found == numbers_.end() ? UINT32_MAX : found->second;
    }

    std::vector<std::string> names;
    std::uint64_t all = 0;  // words, those without a number included

private:
    template <class Word, class Line>
    static void each_word(std::string_view text, Word&& word, Line&& line) {
        for (std::size_t i = 0; i < text.size();) {
            const auto end = std::min(text.find_first_of(" \n", i), text.size());
            if (end > i) word(text.substr(i, end - i));
            if (end < text.size() && text[end] == '\n') line();
            i = end + 1;
        }
    }

    std::vector<std::uint32_t> words_, positions_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace gputext::bench
