// cpp/trie/trie.hpp - immutable dictionaries: words to codes, codes to words, ranges of codes by
// prefix
//
// A dictionary is one run of bytes, its image, that can be stored, sent and mapped: a header
// (cpp/trie/image.hpp) and what its structure needs. Words are any bytes, the empty word too. Codes
// are 0 .. words - 1 in the byte order of the words, so that they depend on the set of words alone,
// sort as the words do, and those of the words with one prefix are a range.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/words.hpp"
#include "cpp/trie/image.hpp"

namespace gputext {

/// Codes first .. end - 1.
struct CodeRange {
    std::uint32_t first = 0, end = 0;

    bool empty() const { return first == end; }
};

/// A word of the dictionary that a text begins with: the first `length` bytes of the text.
struct PrefixWord {
    std::uint32_t code = 0;
    std::size_t length = 0;
};

/// Goes through the words of a range of codes.
class TrieCursor {
public:
    virtual ~TrieCursor() = default;

    /// Steps to the first or the next word; false behind the last one. O(bytes of the word).
    virtual bool next() = 0;
    /// Code of the word that next() stepped to; valid until next() is called again.
    std::uint32_t code() const { return code_; }
    std::string_view word() const { return word_; }

protected:
    std::uint32_t code_ = 0;
    std::string_view word_;
};

/// Reads an image, which has to outlive it. Any number of threads may use it at once.
class Trie {
public:
    /// The code of no word.
    static constexpr std::uint32_t kNone = UINT32_MAX;
    /// Bytes that decode() may write behind the longest word.
    static constexpr std::size_t kSlack = 8;

    virtual ~Trie() = default;

    const TrieStats& stats() const { return stats_; }

    /// codes[i] becomes the code of words[i], or kNone. Both are of one size. Many at once take
    /// less time each than one: they wait for memory together.
    virtual void lookup(std::span<const std::string_view> words,
                        std::span<std::uint32_t> codes) const = 0;
    std::uint32_t lookup(std::string_view word) const;

    /// How many words sort before this one, whether it is in the dictionary or not.
    virtual std::uint32_t lower_bound(std::string_view word) const = 0;

    /// Writes the word of a code below stats().words to `out`, which has room for stats().longest +
    /// kSlack bytes; returns its length.
    virtual std::size_t decode(std::uint32_t code, char* out) const = 0;
    std::string decode(std::uint32_t code) const;

    /// The words of the range, which ends at stats().words at most, in order.
    virtual std::unique_ptr<TrieCursor> cursor(CodeRange range) const = 0;

    /// The words that begin with `prefix`. Two lookups.
    CodeRange prefix_range(std::string_view prefix) const;

    /// The words that `text` begins with, the shortest first. At most two lookups for each of them
    /// and for each length at which the text leaves the words, or less.
    virtual void prefixes_of(std::string_view text, std::vector<PrefixWord>& found) const;

    /// Whether the structure is a trie of numbered nodes, of which the root is 0.
    virtual bool has_nodes() const { return false; }
    /// The number of the node in which the word ends; kNone for one that is not in the dictionary,
    /// and where there are no nodes.
    virtual std::uint32_t node(std::string_view word) const;

protected:
    TrieStats stats_;
};

/// The image of a dictionary of these words, in any order, each any number of times; words are
/// copied. O(bytes + words log words) time, on the execution's threads; about 50 bytes a word and
/// twice the image beside the words, and for xbw 32 bytes a node. Errors: cancelled;
/// invalid_argument for 2^32 - 1 words or more, a word of 4 GB, or what a structure has no room
/// for: front words of more than 4 GB when packed, xbw more than 2^32 - 2 nodes.
Result<std::vector<std::uint8_t>> build_trie(TrieStructure structure,
                                             std::vector<std::string_view> words,
                                             Execution& execution);
Result<std::vector<std::uint8_t>> build_trie(TrieStructure structure, const Words& words,
                                             Execution& execution);

/// Trie::lookup of many words on the execution's threads; both are of one size. Error: cancelled.
Status lookup_words(const Trie& trie, const Words& words, std::span<std::uint32_t> codes,
                    Execution& execution);

/// The dictionary in an image that build_trie() made or that validate_trie() accepts. Looks at all
/// of its bytes for the checksum, some GB a second. Error: invalid_argument for what is cut short,
/// changed by accident, no image, or one of a version or structure that is not known here.
Result<std::unique_ptr<Trie>> open_trie(std::span<const std::uint8_t> image);

/// For an image of unknown origin, whose checksum may have been made to fit: checks that reading
/// any of its words stays within the image, and that it is the image that build_trie() might have
/// made: words in strict order, every statistic right. Follows nothing before it is checked. Some
/// 50 ns a word of front, 100 ns a node of xbw. Error: invalid_argument.
Status validate_trie(std::span<const std::uint8_t> image, Stop stop = {});

}  // namespace gputext
