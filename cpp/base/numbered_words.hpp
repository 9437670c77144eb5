// cpp/base/numbered_words.hpp - numbers the words of several lists by one vocabulary, on threads
//
// Processes that read texts side by side number words by lists of their own. Here the words of all
// lists get numbers of a common vocabulary: the same ones as if one thread had added them one by
// one.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vocabulary.hpp"
#include "cpp/base/words.hpp"

namespace gputext {

/// Words that follow each other in a list: those from `begin` up to `end`.
struct WordRun {
    std::uint32_t list;
    std::uint32_t begin, end;
};

/// Puts a word behind the runs.
inline void append_word(std::vector<WordRun>& runs, std::uint32_t list, std::uint32_t word) {
    if (!runs.empty() && runs.back().list == list && runs.back().end == word)
        ++runs.back().end;
    else
        runs.push_back({list, word, word + 1});
}

/// Gives each word of the runs its number in the vocabulary: numbers[list][word]. Words that are
/// new are added in the order of the runs, so that the numbers depend on this order alone; with
/// `closed` none is added, and a word that the vocabulary does not have gets Vocabulary::kNone. The
/// runs have no word of a list twice; numbers of words that are in no run stay as they are.
///
/// `numbers` has as many as each list has words. O(bytes of the words), in threads but for what is
/// new; takes 8 bytes for each run, and with several threads 32 for each word of the runs, at most
/// 34 MB, and about 1 MB for each thread. Errors: cancelled; out_of_memory; internal_error as
/// Vocabulary::add() throws. After an error, some of the words are in the vocabulary and some have
/// their numbers.
Status number_words(std::span<const Words> lists, std::span<const WordRun> runs, bool closed,
                    Vocabulary& vocabulary, std::span<std::vector<std::uint32_t>> numbers,
                    Execution& execution);

}  // namespace gputext
