#include "cpp/passages/passages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "cpp/passages/rolling_hash.hpp"
#include "tests/support/plain_strings.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/words_of_one_hash.hpp"

namespace gputext {
namespace {

using testing::RandomNames;

/// Documents with a view of them.
class DocumentTexts {
public:
    explicit DocumentTexts(const std::vector<std::string>& documents) {
        for (const std::string& document : documents) {
            extents_.push_back({bytes_.size(), document.size()});
            bytes_ += document + "|";
        }
    }
    Documents view() const {
        return {reinterpret_cast<const std::uint8_t*>(bytes_.data()), extents_,
                CharacterLengths::utf8()};
    }

private:
    std::string bytes_;
    std::vector<Extent> extents_;
};

struct Case {
    std::vector<std::string> documents;
    SharedWindowsParameters parameters;

    Case() = default;
    explicit Case(RandomNames& random) {
        const std::size_t letters = 1 + random.below(random.below(2) == 0 ? 2 : 8);
        const std::size_t longest = random.below(4) == 0 ? 120 : 25;
        std::vector<std::string> parts;
        for (int i = 0; i < 4; ++i) parts.push_back(text(random, letters, longest));
        for (std::size_t d = random.below(9); d > 0; --d) {
            std::string document = text(random, letters, longest);
            for (std::size_t copies = random.below(4); copies > 0; --copies)
                document.insert(random.below(document.size() + 1), parts[random.below(4)]);
            documents.push_back(document);
        }
        parameters.length = 1 + random.below(random.below(3) == 0 ? 40 : 9);
        parameters.two_tables = random.below(2) == 0;
        if (parameters.two_tables) parameters.split = random.below(documents.size() + 1);
        // Several parts, too.
        parameters.memory_limit = random.below(2) == 0 ? 1 : 1 << 20;
    }

    bool are_compared(std::size_t a, std::size_t b) const {
        if (!parameters.two_tables) return a != b;
        return (a < parameters.split) != (b < parameters.split);
    }

private:
    static std::string text(RandomNames& random, std::size_t letters, std::size_t longest) {
        std::string text;
        for (std::size_t size = random.below(longest); size > 0; --size)
            text += static_cast<char>('a' + random.below(letters));
        return text;
    }
};

using Pairs = std::set<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>>;

Pairs plain_pairs(const Case& one) {
    Pairs pairs;
    for (std::size_t a = 0; a < one.documents.size(); ++a)
        for (std::size_t b = a + 1; b < one.documents.size(); ++b) {
            if (!one.are_compared(a, b)) continue;
            const std::string &left = one.documents[a], &right = one.documents[b];
            for (std::size_t i = 0; i < left.size(); ++i)
                for (std::size_t j = 0; j < right.size(); ++j) {
                    if (i > 0 && j > 0 && left[i - 1] == right[j - 1]) continue;
                    std::size_t length = 0;
                    while (i + length < left.size() && j + length < right.size() &&
                           left[i + length] == right[j + length])
                        ++length;
                    if (length >= one.parameters.length) pairs.insert({a, i, b, j, length});
                }
        }
    return pairs;
}

Result<PassagePairs> pairs_of(const PassageTexts& texts, const Case& one, unsigned threads,
                              std::uint64_t most = UINT64_MAX) {
    Execution execution(threads);
    return shared_passages(texts, one.parameters, most, SIZE_MAX, execution);
}

PassageTexts texts_of(const DocumentTexts& documents, const PassageForm& form = {}) {
    PassageTexts texts;
    Execution execution(2);
    const Status status = texts.set(documents.view(), form, true, execution);
    EXPECT_TRUE(status.ok()) << status.message();
    return texts;
}

TEST(SharedPassages, AreThoseOfTheDefinitionOnRandomDocuments) {
    RandomNames random;
    for (std::size_t i = 0; i < testing::rounds<std::size_t>(testing::kSanitized ? 100 : 600);
         ++i) {
        const Case one(random);
        const DocumentTexts documents(one.documents);
        // Wide ones are compared by other code.
        PassageForm form;
        form.fold_blanks = random.below(2) == 0;
        const PassageTexts texts = texts_of(documents, form);
        const Result<PassagePairs> found =
            pairs_of(texts, one, 1 + static_cast<unsigned>(random.below(3)));
        ASSERT_TRUE(found.ok()) << found.status().message();
        Pairs pairs;
        for (const SharedPassage& passage : found->passages)
            EXPECT_TRUE(pairs
                            .insert({passage.first,
                                     passage.first_symbol - texts.begin(passage.first),
                                     passage.second,
                                     passage.second_symbol - texts.begin(passage.second),
                                     passage.symbols})
                            .second);
        const Pairs expected = plain_pairs(one);
        ASSERT_EQ(pairs, expected) << "case " << i;
        EXPECT_EQ(found->count, expected.size());
        EXPECT_TRUE(std::ranges::is_sorted(found->passages, {}, [](const SharedPassage& passage) {
            return std::tuple(passage.first_symbol, passage.second_symbol);
        }));
        if (expected.empty()) continue;
        const Result<PassagePairs> counted = pairs_of(texts, one, 2, expected.size() - 1);
        ASSERT_TRUE(counted.ok());
        EXPECT_TRUE(counted->passages.empty());
        EXPECT_EQ(counted->count, expected.size());
        EXPECT_EQ(pairs_of(texts, one, 2, expected.size())->passages.size(), expected.size());
    }
}

// Windows of one hash that overlap, and whose last halves are equal
TEST(SharedPassages, TellWindowsOfOneHashApart) {
    // Parts of half the length have different ones.
    const auto [word, other] = testing::words_of_one_hash(1024);
    Case one;
    one.documents = {word + other + other, "x" + other + other};
    one.parameters.length = 2048;
    const DocumentTexts documents(one.documents);
    const PassageTexts texts = texts_of(documents);
    const Result<PassagePairs> found = pairs_of(texts, one, 1);
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found->count, 1u);
    EXPECT_EQ(found->passages[0].first_symbol, 1024u);
    EXPECT_EQ(found->passages[0].symbols, 2048u);
}

/// For each document, which windows stand in so many others.
std::vector<std::vector<bool>> plain_windows(const Case& one, std::size_t others) {
    const std::size_t length = one.parameters.length;
    std::vector<std::vector<bool>> windows;
    for (std::size_t a = 0; a < one.documents.size(); ++a) {
        std::vector<bool>& shared = windows.emplace_back(one.documents[a].size());
        if (one.parameters.two_tables && a >= one.parameters.split) continue;
        for (std::size_t i = 0; i + length <= one.documents[a].size(); ++i) {
            std::size_t count = 0;
            for (std::size_t b = 0; b < one.documents.size(); ++b)
                count += one.are_compared(a, b) &&
                         one.documents[b].find(one.documents[a].substr(i, length)) !=
                             std::string::npos;
            shared[i] = count >= others;
        }
    }
    return windows;
}

TEST(SharedStretches, AreThoseOfTheDefinitionOnRandomDocuments) {
    RandomNames random;
    for (std::size_t i = 0; i < testing::rounds<std::size_t>(testing::kSanitized ? 100 : 600);
         ++i) {
        const Case one(random);
        const std::size_t others = 1 + random.below(3);
        const DocumentTexts documents(one.documents);
        const PassageTexts texts = texts_of(documents);
        Execution execution(2);
        const Result<std::vector<SharedStretch>> found =
            shared_stretches(texts, one.parameters, others, execution);
        ASSERT_TRUE(found.ok()) << found.status().message();
        using Stretch = std::tuple<std::size_t, std::size_t, std::size_t>;
        const auto listed = [&](const std::vector<SharedStretch>& stretches) {
            std::vector<Stretch> list;
            for (const SharedStretch& stretch : stretches)
                list.emplace_back(stretch.document,
                                  stretch.symbol - texts.begin(stretch.document), stretch.symbols);
            return list;
        };
        std::vector<Stretch> expected, joined;
        const std::vector<std::vector<bool>> windows = plain_windows(one, others);
        for (std::size_t d = 0; d < windows.size(); ++d) {
            std::vector<bool> covered(windows[d].size() + 1);
            for (std::size_t begin = 0; begin < windows[d].size(); ++begin) {
                if (!windows[d][begin]) continue;
                const std::size_t first = begin;
                while (begin + 1 < windows[d].size() && windows[d][begin + 1]) ++begin;
                expected.emplace_back(d, first, begin - first + one.parameters.length);
                for (std::size_t at = first; at < begin + one.parameters.length; ++at)
                    covered[at] = true;
            }
            for (std::size_t at = 0; at < covered.size(); ++at) {
                if (!covered[at]) continue;
                const std::size_t first = at;
                while (covered[at]) ++at;
                joined.emplace_back(d, first, at - first);
            }
        }
        ASSERT_EQ(listed(*found), expected) << "case " << i;
        const Result<std::vector<SharedStretch>> covered =
            covered_stretches(texts, one.parameters, others, execution);
        ASSERT_TRUE(covered.ok()) << covered.status().message();
        ASSERT_EQ(listed(*covered), joined) << "case " << i;

        if (one.parameters.two_tables) continue;
        std::set<std::string> common;
        const auto text_of = [&](const Stretch& stretch) {
            const auto& [d, at, size] = stretch;
            return one.documents[d].substr(at, size);
        };
        for (const Stretch& stretch : expected) common.insert(text_of(stretch));
        const Result<std::vector<CommonPassage>> passages =
            common_passages(texts, *found, SIZE_MAX, execution);
        ASSERT_TRUE(passages.ok());
        ASSERT_EQ(passages->size(), common.size());
        for (const CommonPassage& passage : *passages) {
            const SharedStretch& first = passage.first;
            const std::size_t first_at = first.symbol - texts.begin(first.document);
            const std::string text = text_of({first.document, first_at, first.symbols});
            std::size_t stand_in = 0, occurrences = 0;
            for (std::size_t d = 0; d < one.documents.size(); ++d) {
                const std::string& document = one.documents[d];
                std::size_t at = document.find(text);
                if (stand_in == 0 && at != std::string::npos) {
                    EXPECT_EQ(std::tuple(first.document, first_at), std::tuple(d, at)) << text;
                }
                stand_in += at != std::string::npos;
                for (; at != std::string::npos; at = document.find(text, at + 1)) ++occurrences;
            }
            EXPECT_EQ(passage.documents, stand_in) << text;
            EXPECT_EQ(passage.occurrences, occurrences) << text;
            common.erase(text);
        }
        EXPECT_TRUE(common.empty());
        EXPECT_TRUE(std::ranges::is_sorted(*passages, {}, [](const CommonPassage& passage) {
            return std::tuple(passage.first.symbol, passage.first.symbols);
        }));
    }
}

// By all runs of words, each of which is a letter here
TEST(CoveredStretches, HaveGapsBetweenWordsOnlyWithinPassages) {
    RandomNames random;
    for (std::size_t i = 0; i < testing::rounds<std::size_t>(testing::kSanitized ? 100 : 600);
         ++i) {
        Case one(random);
        one.parameters.length = 1 + random.below(4);
        const std::size_t others = 1 + random.below(2);
        std::vector<std::string> spaced;
        for (std::string& document : one.documents) {
            document.resize(std::min<std::size_t>(document.size(), 30));
            std::string& text = spaced.emplace_back(random.below(3), ' ');
            for (const char word : document)
                text += word + std::string(1 + random.below(3), random.below(2) == 0 ? ',' : ' ');
        }
        const DocumentTexts documents(spaced);
        const PassageTexts texts = texts_of(documents, {PassageUnit::words});
        Execution execution(2);
        const Result<std::vector<SharedStretch>> found =
            covered_stretches(texts, one.parameters, others, execution);
        ASSERT_TRUE(found.ok()) << found.status().message();
        std::vector<std::string> covered;
        for (const std::string& text : spaced) covered.emplace_back(text.size(), '.');
        std::vector<std::string> expected = covered;
        for (const SharedStretch& stretch : *found) {
            const Place place = texts.place(stretch.document, stretch.symbol, stretch.symbols);
            covered[stretch.document].replace(place.start, place.length, place.length, '#');
        }
        for (std::size_t d = 0; d < spaced.size(); ++d) {
            if (one.parameters.two_tables && d >= one.parameters.split) continue;
            const std::string& words = one.documents[d];
            std::vector<std::size_t> places;
            for (std::size_t at = 0; at < spaced[d].size(); ++at)
                if (spaced[d][at] != ' ' && spaced[d][at] != ',') places.push_back(at);
            for (std::size_t first = 0; first < words.size(); ++first)
                for (std::size_t size = one.parameters.length; first + size <= words.size();
                     ++size) {
                    std::size_t count = 0;
                    for (std::size_t other = 0; other < spaced.size(); ++other)
                        count += one.are_compared(d, other) &&
                                 one.documents[other].find(words.substr(first, size)) !=
                                     std::string::npos;
                    if (count < others) break;
                    const std::size_t length = places[first + size - 1] + 1 - places[first];
                    expected[d].replace(places[first], length, length, '#');
                }
        }
        ASSERT_EQ(covered, expected) << "case " << i;
    }
}

TEST(CommonPassages, TakeNoMoreMemoryThanAllowed) {
    const std::string text(1000, 'a');
    const DocumentTexts documents({text, text + 'b', text + text});
    const PassageTexts texts = texts_of(documents);
    Execution execution(2);
    SharedWindowsParameters parameters;
    parameters.length = 50;
    const auto stretches = shared_stretches(texts, parameters, 1, execution);
    ASSERT_TRUE(stretches.ok());
    const auto found = [&](std::size_t limit) {
        return common_passages(texts, *stretches, limit, execution);
    };
    EXPECT_EQ(found(10000).status().code(), ErrorCode::memory_limit);
    const Result<std::vector<CommonPassage>> passages = found(40000);
    ASSERT_TRUE(passages.ok());
    ASSERT_EQ(passages->size(), 2u);
    EXPECT_EQ((*passages)[0].documents, 3u);
    EXPECT_EQ((*passages)[0].occurrences, 1003u);
    EXPECT_EQ((*passages)[1].documents, 1u);
    EXPECT_EQ((*passages)[1].occurrences, 1u);
    execution.request_stop();
    EXPECT_EQ(found(40000).status().code(), ErrorCode::cancelled);
}

TEST(PassageTexts, HavePlacesInCharacters) {
    const DocumentTexts documents({"Gr\xc3\xbc\xc3\x9f" "e,  An\tna", "x gr\xc3\xbc\xc3\x9f" "e an Na"});
    SharedWindowsParameters parameters;
    parameters.length = 4;
    Execution execution(1);
    const auto places = [&](const PassageForm& form) {
        const PassageTexts texts = texts_of(documents, form);
        std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>> found;
        const Result<PassagePairs> pairs =
            shared_passages(texts, parameters, 100, SIZE_MAX, execution);
        for (const SharedPassage& passage : pairs->passages) {
            const Place a = texts.place(passage.first, passage.first_symbol, passage.symbols);
            const Place b = texts.place(passage.second, passage.second_symbol, passage.symbols);
            found.emplace_back(a.start, a.length, b.start, b.length);
        }
        EXPECT_EQ(texts.characters(0), 13);
        return found;
    };
    using Found = decltype(places({}));
    EXPECT_EQ(places({}), (Found{{1, 4, 3, 4}}));
    EXPECT_EQ(places({PassageUnit::characters, true, false}), (Found{{0, 5, 2, 5}}));
    // ", An na" and " an na" differ in the comma
    EXPECT_EQ(places({PassageUnit::characters, true, true}),
              (Found{{0, 5, 2, 5}, {6, 7, 7, 6}}));
    parameters.length = 3;
    EXPECT_EQ(places({PassageUnit::words, true, false}), (Found{{0, 13, 2, 11}}));
    EXPECT_EQ(places({PassageUnit::words, false, false}), Found());
}

TEST(PassageTexts, GiveWordsOneNumberInAllParts) {
    // A part ends after 4 MB.
    constexpr std::uint32_t kWords = 400000;
    std::string upward, downward;
    for (std::uint32_t i = 0; i < kWords; ++i) {
        upward += "a word" + std::to_string(i) + ' ';
        downward += "word" + std::to_string(kWords - 1 - i) + " a ";
    }
    const PassageTexts texts = texts_of(DocumentTexts({upward, downward}), {PassageUnit::words});
    ASSERT_EQ(texts.symbols(), 4 * kWords);
    const std::vector<std::uint32_t> first(texts.numbers(), texts.numbers() + 2 * kWords);
    const std::vector<std::uint32_t> second(first.size() + texts.numbers(),
                                            2 * first.size() + texts.numbers());
    EXPECT_TRUE(std::equal(first.begin(), first.end(), second.rbegin()));
    EXPECT_EQ(std::set(first.begin(), first.end()).size(), kWords + 1);
    const Place place = texts.place(1, texts.begin(1) + 2, 2);
    EXPECT_EQ(downward.substr(place.start, place.length), "word399998 a");
}

TEST(SharedWindows, ComeInAsManyPartsAsTheMemoryNeeds) {
    const DocumentTexts documents({"once upon a time", "once upon a day"});
    const PassageTexts texts = texts_of(documents);
    Execution execution(2);
    SharedWindowsParameters parameters;
    parameters.length = 5;
    // Of hashes that a part has: each group is of two windows, of 16 bytes.
    const auto most_at_once = [&](std::size_t limit) {
        parameters.memory_limit = limit;
        std::size_t groups = 0;
        std::uint64_t most = 0;
        std::mutex mutex;
        EXPECT_TRUE(each_shared_window(texts, parameters, execution,
                                       [&](std::span<const std::uint64_t>, unsigned) {
                                           const std::lock_guard lock(mutex);
                                           most = std::max(most, execution.total());
                                           ++groups;
                                           return Status();
                                       })
                        .ok());
        EXPECT_EQ(groups, 8u);
        return most;
    };
    const std::uint64_t all = most_at_once(8 * 2 * 16);
    EXPECT_EQ(most_at_once(1 << 20), all);
    EXPECT_LT(most_at_once(2 * 2 * 16), all);
    EXPECT_EQ(most_at_once(1), 1u);
}

TEST(Windows, AreNotHashedToTheirEndAfterAStop) {
    const std::vector<std::uint8_t> symbols(3 * kLookEvery, 'a');
    int looks = 0;
    const Stop at_once{[](void* count) { return ++*static_cast<int*>(count) > 0; }, &looks};
    std::uint64_t last = 0;
    EXPECT_FALSE(each_window(symbols.data(), 0, symbols.size() - 9, 10, at_once,
                             [&](std::uint64_t, std::uint64_t symbol) { last = symbol; }));
    EXPECT_EQ(looks, 1);
    EXPECT_LT(last, kLookEvery);
}

TEST(SharedPassages, EndWhenStopped) {
    const DocumentTexts documents({"once upon a time", "once upon a day"});
    const PassageTexts texts = texts_of(documents);
    Execution execution(2);
    execution.request_stop();
    SharedWindowsParameters parameters;
    parameters.length = 5;
    EXPECT_EQ(shared_passages(texts, parameters, 10, SIZE_MAX, execution).status().code(),
              ErrorCode::cancelled);
}

TEST(SharedPassages, TakeNoMoreMemoryThanAllowed) {
    std::vector<std::string> many;
    for (int i = 0; i < 100; ++i) many.push_back("the same sentence");
    const DocumentTexts documents(many);
    const PassageTexts texts = texts_of(documents);
    Execution execution(2);
    SharedWindowsParameters parameters;
    parameters.length = 5;
    EXPECT_EQ(shared_passages(texts, parameters, 1000000, 1000, execution).status().code(),
              ErrorCode::memory_limit);
}

}  // namespace
}  // namespace gputext
