#include "cpp/trie/trie.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <unordered_map>

#include "cpp/trie/detail/front_coded_layout.hpp"
#include "cpp/trie/detail/xbw_steps.hpp"
#include "tests/fuzz/trie_seeds.hpp"
#include "tests/fuzz/trie_target.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::kSanitized;
using testing::RandomStrings;
using Words = std::vector<std::string>;

std::string bytes_letters() {
    std::string letters;
    for (int byte = 0; byte < 256; ++byte) letters.push_back(static_cast<char>(byte));
    return letters;
}

std::vector<std::string_view> views_of(const Words& words) {
    return {words.begin(), words.end()};
}

/// A dictionary and its image.
struct Dictionary {
    Dictionary(TrieStructure structure, const Words& words, unsigned threads = 1) {
        Execution execution(threads);
        auto built = build_trie(structure, {words.begin(), words.end()}, execution);
        EXPECT_TRUE(built.ok()) << built.status().message();
        image = std::move(*built);
        auto opened = open_trie(image);
        EXPECT_TRUE(opened.ok()) << opened.status().message();
        trie = std::move(*opened);
    }

    const Trie* operator->() const { return trie.get(); }

    std::vector<std::uint8_t> image;
    std::unique_ptr<Trie> trie;
};

/// What the words that are asked for should give, from a sorted array.
void expect_answers(const Dictionary& dictionary, const Words& sorted, const Words& asked) {
    std::vector<std::uint32_t> codes(asked.size());
    dictionary->lookup(views_of(asked), codes);
    std::vector<PrefixWord> found;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        const std::string& word = asked[i];
        const auto place = std::lower_bound(sorted.begin(), sorted.end(), word);
        const auto code = static_cast<std::uint32_t>(place - sorted.begin());
        const bool known = place != sorted.end() && *place == word;
        ASSERT_EQ(codes[i], known ? code : Trie::kNone) << word.substr(0, 100);
        ASSERT_EQ(dictionary->lookup(word), codes[i]);
        ASSERT_EQ(dictionary->lower_bound(word), code);
        const auto end = std::find_if(place, sorted.end(), [&](const std::string& other) {
            return other.compare(0, word.size(), word) != 0;
        });
        const CodeRange range = dictionary->prefix_range(word);
        ASSERT_EQ(range.first, code);
        ASSERT_EQ(range.end, end - sorted.begin());

        if (word.size() > 300) continue;
        dictionary->prefixes_of(word, found);
        auto next = found.begin();
        for (std::size_t length = 0; length <= word.size(); ++length) {
            const auto prefix =
                std::lower_bound(sorted.begin(), sorted.end(), word.substr(0, length));
            if (prefix == sorted.end() || *prefix != word.substr(0, length)) continue;
            ASSERT_NE(next, found.end());
            ASSERT_EQ(next->code, prefix - sorted.begin());
            ASSERT_EQ(next++->length, length);
        }
        ASSERT_EQ(next, found.end());
    }
}

/// Builds, and compares with a sorted set, words that are not in it included. Returns the image.
std::vector<std::uint8_t> expect_dictionary(TrieStructure structure, const Words& words,
                                            const Words& absent = {}) {
    const std::set<std::string> set(words.begin(), words.end());
    const Words sorted(set.begin(), set.end());
    const Dictionary dictionary(structure, words);
    EXPECT_TRUE(validate_trie(dictionary.image).ok()) << validate_trie(dictionary.image).message();

    const TrieStats& stats = dictionary->stats();
    std::set<char> alphabet;
    std::size_t longest = 0, text_bytes = 0;
    for (const std::string& word : sorted) {
        alphabet.insert(word.begin(), word.end());
        longest = std::max(longest, word.size());
        text_bytes += word.size();
    }
    EXPECT_EQ(stats.structure, structure);
    EXPECT_EQ(stats.words, sorted.size());
    EXPECT_EQ(stats.longest, longest);
    EXPECT_EQ(stats.alphabet, alphabet.size());
    EXPECT_EQ(stats.text_bytes, text_bytes);
    EXPECT_EQ(stats.bytes, dictionary.image.size());

    const auto cursor = dictionary->cursor({0, stats.words});
    for (std::uint32_t code = 0; code < sorted.size(); ++code) {
        EXPECT_TRUE(cursor->next());
        EXPECT_EQ(cursor->code(), code);
        if (cursor->word() != sorted[code] || dictionary->decode(code) != sorted[code]) {
            ADD_FAILURE() << "word " << code;
            break;
        }
    }
    EXPECT_FALSE(cursor->next());
    expect_answers(dictionary, sorted, sorted);
    expect_answers(dictionary, sorted, absent);
    return dictionary.image;
}

/// Every structure is the same dictionary.
class TrieTest : public ::testing::TestWithParam<TrieStructure> {
protected:
    static std::vector<std::uint8_t> image_of(const Words& words) {
        return testing::image_of(words, GetParam());
    }
    static Dictionary dictionary_of(const Words& words, unsigned threads = 1) {
        return {GetParam(), words, threads};
    }
    static std::vector<std::uint8_t> expect_dictionary(const Words& words,
                                                       const Words& absent = {}) {
        return gputext::expect_dictionary(GetParam(), words, absent);
    }
};

INSTANTIATE_TEST_SUITE_P(Structures, TrieTest, ::testing::ValuesIn(kTrieStructures),
                         [](const auto& structure) { return name_of(structure.param); });

TEST_P(TrieTest, NumbersWordsInTheOrderOfTheirBytes) {
    const Dictionary dictionary = dictionary_of({"cb", "ba", "cc", "aba", "ba", "bb"});
    EXPECT_EQ(dictionary->stats().words, 5u);
    EXPECT_EQ(dictionary->lookup("aba"), 0u);
    EXPECT_EQ(dictionary->lookup("cc"), 4u);
    EXPECT_EQ(dictionary->lookup("c"), Trie::kNone);
    EXPECT_EQ(dictionary->decode(2), "bb");
    EXPECT_EQ(dictionary->prefix_range("b").first, 1u);
    EXPECT_EQ(dictionary->prefix_range("b").end, 3u);
    EXPECT_TRUE(dictionary->prefix_range("bc").empty());
    EXPECT_EQ(dictionary->stats().structure, GetParam());
}

TEST_P(TrieTest, MayBeEmptyOrHaveTheEmptyWordAlone) {
    expect_dictionary({}, {"", "a", std::string(1, '\0')});
    expect_dictionary({""}, {"a", std::string(1, '\0'), std::string(20, '\0')});
    expect_dictionary({"", "a"}, {"b", "aa"});
}

TEST_P(TrieTest, WordsAreAnyBytes) {
    Words words, absent;
    for (int byte = 0; byte < 256; ++byte) {
        const auto c = static_cast<char>(byte);
        words.emplace_back(1, c);
        words.emplace_back(17, c);
        words.push_back(std::string(16, '\0') + c);
        words.push_back(std::string(15, '\xff') + c);
        absent.emplace_back(16, c);
        absent.emplace_back(18, c);
    }
    for (std::size_t zeros = 0; zeros < 70; ++zeros) {
        words.emplace_back(zeros, '\0');
        absent.push_back(std::string(zeros, '\0') + "x\xff");
        absent.emplace_back(71 + zeros, '\0');
    }
    std::erase_if(absent, [&](const std::string& word) {
        return std::find(words.begin(), words.end(), word) != words.end();
    });
    expect_dictionary(words, absent);
}

TEST_P(TrieTest, IsASortedSetOfRandomWords) {
    RandomStrings random;
    const std::string all = bytes_letters();
    const std::string_view alphabets[] = {"a", "ab", "abcdefgh", all,
                                          std::string_view(all).substr(0, 2)};
    for (int round = 0; round < testing::rounds(30, kSanitized ? 30 : 150); ++round) {
        const std::string_view letters = alphabets[random.below(std::size(alphabets))];
        const std::size_t count = 1 + random.below(2000), longest = 1 + random.below(40);
        const std::string prefix = random.string(random.below(40), letters);
        Words words, absent;
        for (std::size_t i = 0; i < count; ++i) {
            words.push_back(random.string(random.below(longest), letters));
            if (random.below(2) == 0) words.back() = prefix + words.back();
            absent.push_back(random.edited(words[random.below(words.size())], 1, letters));
        }
        expect_dictionary(words, absent);
    }
}

TEST_P(TrieTest, WordsMaySharePrefixesOfAnyLength) {
    Words words, absent;
    for (const std::size_t length : {14, 15, 16, 17, 31, 32, 100, 254, 255, 256, 400, 70000})
        for (int i = 0; i < (length < 1000 ? 100 : 20); ++i) {
            words.push_back(std::string(length, 'p') + std::to_string(i));
            words.push_back(std::string(length, 'q') +
                            std::string(static_cast<std::size_t>(i), 'r'));
            // Shares all but its end with words of the dictionary
            absent.push_back(words.back() + "!");
            absent.push_back(std::string(length, 'p') + "x" + std::to_string(i));
        }
    for (std::size_t length = 0; length < 300; ++length) words.emplace_back(length, 'a');
    expect_dictionary(words, absent);
}

TEST_P(TrieTest, AWordMayBeAMegabyteLong) {
    RandomStrings random;
    Words words = {"", "a", "b"};
    const std::string all = bytes_letters();
    for (const std::string_view letters : {std::string_view("a"), std::string_view(all)}) {
        words.push_back(random.string(std::size_t{1} << (kSanitized ? 16 : 20), letters));
        words.push_back(words.back() + "x");
        words.push_back(words.back().substr(0, words.back().size() / 2) + "y");
    }
    Words absent;
    for (const std::string& word : words) absent.push_back(word + "?");
    expect_dictionary(words, absent);
}

TEST_P(TrieTest, AMillionWordsMayDifferInTheirLastBytes) {
    const std::string prefix = "a prefix that is longer than a separator ";
    Words words, absent;
    const unsigned count = testing::rounds(kSanitized ? 50000u : 200000u, kSanitized ? 50000u : 1000000u);
    for (unsigned i = 0; i < count; ++i) {
        // In the last byte, of which there are not enough for a million, and the ones before it
        std::string end;
        for (unsigned rest = i, digits = 0; digits < 3; ++digits, rest /= 100)
            end.insert(end.begin(), static_cast<char>(100 + rest % 100));
        words.push_back(prefix + end);
        if (i % 50 == 0) absent.push_back(prefix + end.substr(0, 2) + static_cast<char>(99));
        if (i % 50 == 1) absent.push_back(prefix + end + "!");
    }
    const Dictionary dictionary = dictionary_of(words, 2);
    std::vector<std::uint32_t> codes(words.size());
    dictionary->lookup(views_of(words), codes);
    for (std::uint32_t i = 0; i < count; ++i) {
        ASSERT_EQ(codes[i], i);
        ASSERT_EQ(dictionary->decode(i), words[i]);
    }
    codes.resize(absent.size());
    dictionary->lookup(views_of(absent), codes);
    for (const std::uint32_t code : codes) ASSERT_EQ(code, Trie::kNone);
    EXPECT_EQ(dictionary->prefix_range(prefix).end, count);
}

TEST_P(TrieTest, AgreesWithAHashMapOnManyWordsAndAbsentOnes) {
    RandomStrings random;
    std::unordered_map<std::string, std::uint32_t> expected;
    Words words;
    for (std::size_t i = 0; i < testing::rounds(kSanitized ? 20000u : 60000u, kSanitized ? 20000u : 300000u); ++i)
        words.push_back(random.string(1 + random.below(24), "etaoinshrdlu"));
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    for (std::uint32_t i = 0; i < words.size(); ++i) expected[words[i]] = i;
    Words asked = words;
    for (const std::string& word : words) {
        asked.push_back(random.edited(word, 1 + random.below(3), "etaoinshrdlu"));
        if (word.size() >= 16) asked.push_back(word.substr(0, 16) + "absent");
    }
    const Dictionary dictionary = dictionary_of(words);
    std::vector<std::uint32_t> codes(asked.size());
    dictionary->lookup(views_of(asked), codes);
    for (std::size_t i = 0; i < asked.size(); ++i) {
        const auto known = expected.find(asked[i]);
        ASSERT_EQ(codes[i], known == expected.end() ? Trie::kNone : known->second) << asked[i];
    }
}

TEST_P(TrieTest, CursorBeginsAndEndsAnywhere) {
    Words words;
    for (int i = 100; i < 300; ++i) words.push_back("word " + std::to_string(i));
    const Dictionary dictionary = dictionary_of(words);
    for (std::uint32_t first = 0; first <= words.size(); ++first)
        for (const std::uint32_t count : {0u, 1u, 31u, 32u, 33u, 70u}) {
            const auto end = std::min(first + count, static_cast<std::uint32_t>(words.size()));
            const auto cursor = dictionary->cursor({first, end});
            for (std::uint32_t code = first; code < end; ++code) {
                ASSERT_TRUE(cursor->next());
                ASSERT_EQ(cursor->code(), code);
                ASSERT_EQ(cursor->word(), words[code]);
            }
            ASSERT_FALSE(cursor->next());
        }
}

TEST_P(TrieTest, ImageDependsOnTheSetOfWordsAlone) {
    RandomStrings random;
    Words words;
    const int count = testing::rounds(40000, 200000);
    for (int i = 0; i < count; ++i) words.push_back(random.string(random.below(12), "abcdef"));
    const std::vector<std::uint8_t> image = dictionary_of(words, 1).image;
    std::reverse(words.begin(), words.end());
    words.insert(words.end(), words.begin(), words.begin() + 1000);
    EXPECT_EQ(dictionary_of(words, 4).image, image);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    EXPECT_EQ(dictionary_of(words, 3).image, image);
}

/// Words that are sorted already are not sorted again.
TEST_P(TrieTest, SortedWordsMayRepeat) {
    EXPECT_EQ(image_of({"a", "a", "b", "c", "c"}), image_of({"a", "b", "c"}));
}

/// Images are stored in tables, and read by later releases: a change of the format needs another
/// version.
TEST_P(TrieTest, ImagesAreThoseOfTheVersion) {
    Words words;
    for (std::uint32_t i = 0, number = 1; i < 1000; ++i, number = number * 1664525u + 1013904223u)
        words.push_back(std::to_string(number >> 12));
    const auto header = load_at<TrieHeader>(image_of(words).data());
    EXPECT_EQ(header.checksum,
              GetParam() == TrieStructure::front ? 6176067684699414078u : 1327696673510886119u);
}

TEST_P(TrieTest, BuildingEndsWhenStopped) {
    Execution execution(2);
    execution.request_stop();
    const auto built = build_trie(GetParam(), {"b", "a"}, execution);
    ASSERT_FALSE(built.ok());
    EXPECT_EQ(built.status().code(), ErrorCode::cancelled);
}

TEST_P(TrieTest, RefusesWhatIsCutShortOrLonger) {
    for (const auto& image : testing::trie_seeds(GetParam())) {
        for (std::size_t size = 0; size < image.size(); ++size) {
            const std::vector<std::uint8_t> cut(image.begin(),
                                                image.begin() + static_cast<std::ptrdiff_t>(size));
            ASSERT_EQ(open_trie(cut).status().code(), ErrorCode::invalid_argument);
            ASSERT_EQ(validate_trie(cut).code(), ErrorCode::invalid_argument);
        }
        std::vector<std::uint8_t> longer = image;
        longer.push_back(0);
        EXPECT_FALSE(open_trie(longer).ok());
    }
}

TEST_P(TrieTest, RefusesEveryChangedByte) {
    for (const auto& image : testing::trie_seeds(GetParam()))
        for (std::size_t at = 0; at < image.size(); ++at)
            for (const unsigned change : {0x01u, 0x80u, 0xffu}) {
                std::vector<std::uint8_t> changed = image;
                changed[at] = static_cast<std::uint8_t>(changed[at] ^ change);
                ASSERT_FALSE(open_trie(changed).ok()) << at;
                ASSERT_FALSE(validate_trie(changed).ok()) << at;
            }
}

TEST_P(TrieTest, RefusesRandomChangesOfALargeImage) {
    RandomStrings random;
    Words words;
    const int count = testing::rounds(20000, 100000);
    for (int i = 0; i < count; ++i) words.push_back(random.string(random.below(20), "abcdefg"));
    std::vector<std::uint8_t> image = image_of(words);
    for (int round = 0; round < 300; ++round) {
        const std::vector<std::uint8_t> before = image;
        for (std::size_t changes = 1 + random.below(20); changes > 0; --changes)
            image[random.below(image.size())] ^= static_cast<std::uint8_t>(1 + random.below(255));
        ASSERT_EQ(open_trie(image).ok(), image == before);
        image = before;
    }
}

/// The checksum keeps out no one who makes it fit: then what is accepted has to be a dictionary.
TEST_P(TrieTest, ImagesWithAFittingChecksumAreRefusedOrDictionaries) {
    for (const auto& image : testing::trie_seeds(GetParam()))
        for (std::size_t at = 0; at < image.size(); ++at)
            for (const unsigned value : {0x00u, 0x01u, 0x7fu, 0x80u, 0xf0u, 0xffu}) {
                std::vector<std::uint8_t> changed = image;
                changed[at] = static_cast<std::uint8_t>(value);
                if (changed != image) testing::read_trie(changed);
                changed[at] = static_cast<std::uint8_t>(image[at] + 1);
                testing::read_trie(changed);
            }
}

TEST_P(TrieTest, RefusesWhatIsNoImage) {
    const Status none = open_trie({}).status();
    EXPECT_EQ(none.message(), "it has fewer bytes than a header");
    const std::vector<std::uint8_t> zeros(1000);
    EXPECT_EQ(open_trie(zeros).status().message(), "its header is not that of a dictionary");
    std::vector<std::uint8_t> image = image_of({"a", "b"});
    image[8] = 2;
    EXPECT_EQ(open_trie(image).status().message(), "its version is 2, and the one known is 1");
    image[8] = 1;
    image[12] = 9;
    EXPECT_EQ(open_trie(testing::with_checksum(image)).status().message(),
              "its structure has the unknown number 9");
}

/// A byte that nothing reads, with a size and a checksum that fit.
TEST(FrontCodedTrie, RefusesBytesThatNoWordHas) {
    std::vector<std::uint8_t> image =
        Dictionary(TrieStructure::front, {"ant", "anthem", "bee", "beetle", "cat"}).image;
    constexpr std::size_t end_of_bucket = sizeof(TrieHeader) + kSeparatorBytes + 4;
    std::uint32_t end;
    std::memcpy(&end, &image[end_of_bucket], sizeof end);
    ++end;
    std::memcpy(&image[end_of_bucket], &end, sizeof end);
    image.push_back(0);
    EXPECT_EQ(validate_trie(testing::with_checksum(image)).message(),
              "a bucket has bytes to spare");
}

/// Words before the first one whose first sixteen bytes are its own
TEST(FrontCodedTrie, FindsThePlaceBeforeAllWords) {
    const std::string prefix(16, 'p');
    const Words words = {prefix + "b", prefix + "d", prefix + "dd", "q"};
    expect_dictionary(TrieStructure::front, words, {prefix, prefix + "a", prefix + "aa", "p"});
}

/// A count that only lines without words are before, with a checksum that fits
TEST(XbwTrie, RefusesACountOfWordsThatIsTooSmall) {
    const Dictionary dictionary(TrieStructure::xbw, {"a", std::string(1000, 'a')});
    const auto layout = read_xbw_layout(dictionary.image);
    ASSERT_TRUE(layout.ok());
    std::vector<std::uint8_t> image = dictionary.image;
    std::uint8_t* const line = &image[layout->ends + 2 * sizeof(XbwLine)];
    ASSERT_EQ(load_at<XbwLine>(line).before, 1u);
    const std::uint32_t none = 0;
    std::memcpy(line, &none, sizeof none);
    EXPECT_EQ(validate_trie(testing::with_checksum(image)).message(),
              "the ends of its words are wrong");
}

TEST_P(TrieTest, ValidationEndsWhenStopped) {
    const Stop stop{[](void*) { return true; }, nullptr};
    EXPECT_EQ(validate_trie(image_of({"a"}), stop).code(), ErrorCode::cancelled);
}

/// The numbers of the paper's figure 1 and table 1.
TEST(XbwTrie, NumbersNodesAsThePaperDoes) {
    const Words words = {"aba", "ba", "bb", "cb", "cc"};
    const Dictionary dictionary(TrieStructure::xbw, words);
    ASSERT_TRUE(dictionary->has_nodes());
    EXPECT_EQ(dictionary->node("aba"), 3u);
    EXPECT_EQ(dictionary->node("ba"), 2u);
    EXPECT_EQ(dictionary->node("bb"), 6u);
    EXPECT_EQ(dictionary->node("cb"), 7u);
    EXPECT_EQ(dictionary->node("cc"), 9u);
    for (const char* const absent : {"", "a", "ab", "b", "c", "abab", "d"})
        EXPECT_EQ(dictionary->node(absent), Trie::kNone) << absent;

    const auto layout = read_xbw_layout(dictionary.image);
    ASSERT_TRUE(layout.ok());
    const XbwImage image{dictionary.image.data(), *layout};
    constexpr std::uint32_t none = kXbwNone;
    const std::uint32_t table[10][3] = {{1, 4, 8},          {none, 5, none},    {none, none, none},
                                        {none, none, none}, {2, 6, none},       {3, none, none},
                                        {none, none, none}, {none, none, none}, {none, 7, 9},
                                        {none, none, none}};
    ASSERT_EQ(layout->nodes, std::size(table));
    for (std::uint32_t node = 0; node < layout->nodes; ++node)
        for (std::uint32_t symbol = 0; symbol < 3; ++symbol) {
            const std::uint32_t child = xbw_steps().child(image, node, symbol);
            EXPECT_EQ(child, table[node][symbol]);
            if (child == none) continue;
            EXPECT_EQ(xbw_steps().parent(image, child, symbol), node);
        }
}

TEST(XbwTrie, NodesAreInTheOrderOfTheirPrefixesReadBackwards) {
    RandomStrings random;
    for (const std::string& letters : {std::string("ab"), std::string(1, '\0'), bytes_letters()}) {
        Words words;
        for (int i = 0; i < 3000; ++i) words.push_back(random.string(random.below(40), letters));
        std::set<std::string> prefixes;  // backwards
        for (const std::string& word : words)
            for (std::size_t length = 0; length <= word.size(); ++length)
                prefixes.emplace(word.rend() - static_cast<std::ptrdiff_t>(length), word.rend());
        const Words sorted(prefixes.begin(), prefixes.end());
        const Dictionary dictionary(TrieStructure::xbw, words, 2);
        for (const std::string& word : words) {
            const std::string backwards(word.rbegin(), word.rend());
            const auto place = std::lower_bound(sorted.begin(), sorted.end(), backwards);
            ASSERT_EQ(dictionary->node(word), place - sorted.begin());
        }
    }
}

TEST(XbwTrie, OnlyTriesHaveNodes) {
    const Dictionary dictionary(TrieStructure::front, {"a"});
    EXPECT_FALSE(dictionary->has_nodes());
    EXPECT_EQ(dictionary->node("a"), Trie::kNone);
}

TEST(XbwTrie, ClassesAreSummedAtOnce) {
    RandomStrings random;
    for (int round = 0; round < 1000; ++round) {
        std::uint64_t classes = 0;
        std::uint32_t sums[16] = {}, widths[16] = {};
        for (std::uint32_t i = 0; i < 16; ++i) {
            const std::size_t k = random.below(16);
            classes |= std::uint64_t{k} << 4 * i;
            for (std::uint32_t behind = i + 1; behind < 16; ++behind) {
                sums[behind] += static_cast<std::uint32_t>(k);
                widths[behind] += kXbwWidths[k];
            }
        }
        for (std::uint32_t i = 0; i < 16; ++i) {
            const std::uint64_t before = xbw_classes_before(classes, i);
            ASSERT_EQ(xbw_sum(before), sums[i]);
            ASSERT_EQ(xbw_sum(xbw_widths(before)), widths[i]);
        }
    }
}

/// Debian's word lists, where they are installed.
TEST_P(TrieTest, HoldsRealWords) {
    bool any = false;
    for (const char* const name : {"american-english-insane", "american-english", "ngerman"}) {
        std::ifstream file(std::string("/usr/share/dict/") + name);
        Words words;
        for (std::string line; std::getline(file, line);) words.push_back(line);
        if (words.size() < 1000 || (any && testing::kFewer)) continue;
        any = true;
        const std::set<std::string> set(words.begin(), words.end());
        const auto image = image_of(words);
        const auto trie = open_trie(image);
        ASSERT_TRUE(trie.ok() && validate_trie(image).ok());
        std::uint32_t code = 0;
        for (const std::string& word : set) {
            ASSERT_EQ((*trie)->lookup(word), code);
            ASSERT_EQ((*trie)->decode(code++), word);
            const std::string absent = word + "\x01";
            ASSERT_EQ((*trie)->lookup(absent), Trie::kNone);
        }
        const double bits =
            8.0 * static_cast<double>(image.size()) / static_cast<double>(set.size());
        EXPECT_LT(bits, GetParam() == TrieStructure::front ? 40 : 100);
    }
    if (!any) GTEST_SKIP() << "no word list is installed";
}

}  // namespace
}  // namespace gputext
