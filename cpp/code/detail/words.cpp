#include "cpp/code/detail/words.hpp"

#include <algorithm>
#include <string>

namespace gputext {
namespace {

bool is_own(std::string_view name) {
    if (name.starts_with(kVariableWord)) return name.substr(kVariableWord.size()).starts_with('_');
    if (!name.starts_with(kClassWord)) return false;
    name.remove_prefix(kClassWord.size());
    return name.empty() || (name.size() > 1 && name.front() == '_' &&
                            std::all_of(name.begin() + 1, name.end(), is_digit));
}

}  // namespace

Vocabulary fixed_vocabulary() {
    Vocabulary words;
    for (const FixedWord& word : kFixedWords) words.add(word.text);
    return words;
}

CodeWord code_word(const Vocabulary& words, std::uint32_t number) {
    if (number < kFixedWords.size()) return kFixedWords[number].type;
    const std::string_view text = words.term(number);
    if (!begins_identifier(text.front())) return CodeWord::other;
    return is_own(text) ? CodeWord::own : CodeWord::name;
}

std::uint32_t class_word(Vocabulary& words, std::uint32_t pairs) {
    std::string word(kClassWord);
    if (pairs > 0) word += '_' + std::to_string(pairs);
    return words.add(word);
}

}  // namespace gputext
