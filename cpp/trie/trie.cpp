#include "cpp/trie/trie.hpp"

#include <algorithm>

#include "cpp/base/large_pages.hpp"
#include "cpp/trie/detail/front_coded.hpp"
#include "cpp/trie/detail/word_sort.hpp"
#include "cpp/trie/detail/xbw.hpp"

namespace gputext {
namespace {

/// Words that are looked up between two looks at a stop request.
constexpr std::size_t kTaskWords = std::size_t{1} << 14;

std::size_t common_length(std::string_view a, std::string_view b) {
    const std::size_t size = std::min(a.size(), b.size());
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.begin() + size, b.begin()).first -
                                    a.begin());
}

/// An image that has been checked is of one of two structures; the other one is front coding.
bool is_xbw(const TrieHeader& header) {
    return header.structure == static_cast<std::uint32_t>(TrieStructure::xbw);
}

}  // namespace

std::uint32_t Trie::lookup(std::string_view word) const {
    std::uint32_t code;
    lookup({&word, 1}, {&code, 1});
    return code;
}

std::string Trie::decode(std::uint32_t code) const {
    std::string word(stats_.longest + kSlack, '\0');
    word.resize(decode(code, word.data()));
    return word;
}

std::uint32_t Trie::node(std::string_view) const {
    return kNone;
}

CodeRange Trie::prefix_range(std::string_view prefix) const {
    // The words behind all with the prefix begin where its last byte below 255 is one more.
    std::string behind(prefix);
    while (!behind.empty() && behind.back() == '\xff') behind.pop_back();
    const std::uint32_t first = lower_bound(prefix);
    if (behind.empty()) return {first, stats_.words};
    ++behind.back();
    return {first, lower_bound(behind)};
}

/// Finds them from the longest down. The last word not above the text either is its longest prefix,
/// or bounds it: a prefix longer than the bytes that both share would lie between them.
void Trie::prefixes_of(std::string_view text, std::vector<PrefixWord>& found) const {
    found.clear();
    text = text.substr(0, stats_.longest);
    std::string last(stats_.longest + kSlack, '\0');
    for (;;) {
        std::uint32_t code = lower_bound(text);
        const std::uint32_t exact = lookup(text);
        std::size_t length = text.size();
        if (exact != kNone) {
            code = exact;
        } else {
            if (code == 0) break;
            const std::string_view word(last.data(), decode(--code, last.data()));
            length = common_length(word, text);
            if (length < word.size()) {
                text = text.substr(0, length);
                continue;
            }
        }
        found.push_back({code, length});
        if (length == 0) break;
        text = text.substr(0, length - 1);
    }
    std::reverse(found.begin(), found.end());
}

Result<std::vector<std::uint8_t>> build_trie(TrieStructure structure,
                                             std::vector<std::string_view> words,
                                             Execution& execution) {
    GPUTEXT_TRY(sort_words(words, execution));
    if (words.size() == UINT32_MAX)
        return Status{ErrorCode::invalid_argument, "there are more than 4294967294 words"};
    switch (structure) {
        case TrieStructure::front:
            return build_front_coded_trie(words, execution);
        case TrieStructure::xbw:
            return build_xbw_trie(words, execution);
    }
    return Status{ErrorCode::invalid_argument, "there is no such structure"};
}

Result<std::vector<std::uint8_t>> build_trie(TrieStructure structure, const Words& words,
                                             Execution& execution) {
    std::vector<std::string_view> views;
    if (!assign_pages(views, words.size(), std::string_view(), execution.stop()))
        return Status::cancelled();
    for (std::size_t i = 0; i < views.size(); ++i) views[i] = words[i];
    return build_trie(structure, std::move(views), execution);
}

Status lookup_words(const Trie& trie, const Words& words, std::span<std::uint32_t> codes,
                    Execution& execution) {
    const std::size_t tasks = (words.size() + kTaskWords - 1) / kTaskWords;
    execution.begin_phase("looking up words", tasks);
    return execution.parallel_for(tasks, [&](std::size_t task, unsigned) -> Status {
        const std::size_t begin = task * kTaskWords;
        const std::size_t end = std::min(words.size(), begin + kTaskWords);
        std::vector<std::string_view> views(end - begin);
        for (std::size_t i = begin; i < end; ++i) views[i - begin] = words[i];
        trie.lookup(views, codes.subspan(begin, end - begin));
        return {};
    });
}

Result<std::unique_ptr<Trie>> open_trie(std::span<const std::uint8_t> image) {
    const Result<TrieHeader> header = read_trie_header(image);
    if (!header.ok()) return header.status();
    if (is_xbw(*header)) return open_xbw_trie(image);
    return open_front_coded_trie(image);
}

Status validate_trie(std::span<const std::uint8_t> image, Stop stop) {
    const Result<TrieHeader> header = read_trie_header(image);
    if (!header.ok()) return header.status();
    if (is_xbw(*header)) return validate_xbw_trie(image, stop);
    return validate_front_coded_trie(image, stop);
}

}  // namespace gputext
