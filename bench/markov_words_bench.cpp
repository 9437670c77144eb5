// bench/markov_words_bench.cpp - prints generated words that resemble those of a list
//
// Arguments: a file with a word a line, of which what follows a tab is ignored, and how many words
// to write. Each byte follows the three before it as often as in the different words of the list
// that have nothing but the letters a to z; always the same words, one a line, in order.

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/word_bench.hpp"

using namespace gputext;

namespace {

constexpr std::size_t kOrder = 3;

/// What may follow some bytes, '\n' for the end of the word, each as often as it does.
using Followers = std::unordered_map<std::string, std::string>;

Followers followers_in(const std::vector<std::string>& words) {
    Followers followers;
    for (const std::string& word : words) {
        if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != word.npos) continue;
        const std::string line = std::string(kOrder, '\n') + word + '\n';
        for (std::size_t i = kOrder; i < line.size(); ++i)
            followers[line.substr(i - kOrder, kOrder)].push_back(line[i]);
    }
    return followers;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return std::fprintf(stderr, "wanted: words count\n"), 2;
    const Followers followers = followers_in(bench::read_words(arguments[1]));
    if (followers.empty()) return std::fprintf(stderr, "no words of letters alone\n"), 1;
    const std::size_t wanted = std::strtoull(arguments[2], nullptr, 10);
    std::mt19937_64 random(42);
    std::vector<std::string> words;
    while (words.size() < wanted) {
        for (std::size_t missing = (wanted - words.size()) * 5 / 4 + 1; missing > 0; --missing) {
            std::string line(kOrder, '\n');
            do {
                const std::string& next = followers.at(line.substr(line.size() - kOrder));
                line.push_back(next[random() % next.size()]);
            } while (line.back() != '\n');
            words.push_back(line.substr(kOrder));
        }
        std::sort(words.begin(), words.end());
        words.erase(std::unique(words.begin(), words.end()), words.end());
    }
    // Any, not the first ones.
    std::shuffle(words.begin(), words.end(), random);
    words.resize(wanted);
    std::sort(words.begin(), words.end());
    for (const std::string& word : words) std::fputs(word.c_str(), stdout);
}
