// cpp/trie/detail/word_sort.hpp - sorts words by their bytes, on several threads

#pragma once

#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// Sorts the words in byte order and drops those that repeat one: O(words log words) comparisons of
/// eight bytes beside each other, and O(bytes that words share with others) where these do not
/// tell; 34 bytes a word beside them meanwhile. Error: cancelled.
Status sort_words(std::vector<std::string_view>& words, Execution& execution);

}  // namespace gputext
