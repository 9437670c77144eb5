#include "cpp/terms/chunked_texts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace gputext {
namespace {

/// Texts of random words, spread over chunks, each of which numbers words in its own way and has
/// words that none of the texts has.
struct Texts {
    std::vector<std::vector<std::string>> texts;  // the words of each, in their order
    std::vector<Vocabulary> vocabularies;
    std::vector<Words> chunks;
    std::vector<std::vector<std::uint32_t>> records;
    std::vector<ChunkText> places;
    std::uint64_t size = 0;

    Texts(TextForm its_form, unsigned seed, unsigned count, unsigned chunk_count) : form(its_form) {
        std::mt19937 random(seed);
        vocabularies.resize(chunk_count);
        for (Vocabulary& vocabulary : vocabularies)
            for (int i = 0; i < 40; ++i) vocabulary.add(word(random));
        for (unsigned i = 0; i < count; ++i) {
            std::vector<std::string>& text = texts.emplace_back(random() % 12);
            for (std::string& word : text) word = Texts::word(random);
            const auto chunk = static_cast<std::uint32_t>(random() % chunk_count);
            records.push_back(form == TextForm::terms ? terms(text, vocabularies[chunk])
                                                      : words(text, vocabularies[chunk]));
            places.push_back({nullptr, static_cast<std::uint32_t>(records[i].size()), chunk});
            size += records[i].size();
        }
        for (unsigned i = 0; i < count; ++i) places[i].record = records[i].data();
        for (const Vocabulary& vocabulary : vocabularies) chunks.push_back(vocabulary.words());
    }

    /// In parts of a single text, or in one part.
    ChunkedTexts view(bool in_parts) const {
        return {form, places, chunks, in_parts ? UINT64_MAX : size};
    }

private:
    TextForm form;

    static std::string word(std::mt19937& random) { return std::to_string(random() % 80); }
    static std::vector<std::uint32_t> terms(const std::vector<std::string>& text,
                                            Vocabulary& vocabulary) {
        std::map<std::uint32_t, std::uint32_t> counts;
        for (const std::string& word : text) ++counts[vocabulary.add(word)];
        std::vector<std::uint32_t> record{static_cast<std::uint32_t>(counts.size())};
        for (const auto& [term, count] : counts) record.push_back(term);
        for (const auto& [term, count] : counts) record.push_back(count);
        return record;
    }
    /// With a stop word before each.
    static std::vector<std::uint32_t> words(const std::vector<std::string>& text,
                                            Vocabulary& vocabulary) {
        const auto count = static_cast<std::uint32_t>(text.size());
        std::vector<std::uint32_t> record{2 * count, count};
        for (std::uint32_t i = 0; i < count; ++i) {
            record.push_back(vocabulary.add(text[i]));
            record.push_back(2 * i + 2);
        }
        return record;
    }
};

TEST(ChunkedTexts, ListTheirWordsInTheOrderOfTexts) {
    for (const unsigned threads : {1u, 4u})
        for (unsigned seed = 0; seed < 60; ++seed) {
            const Texts texts(TextForm::terms, seed, seed, 1 + seed % 3);
            Execution execution(threads);
            std::vector<std::vector<ChunkWord>> lists;
            ASSERT_TRUE(list_words(texts.view(seed % 2 == 0), lists, execution).ok());
            std::vector<std::string> listed;
            std::set<std::string> seen;
            for (const auto& list : lists)
                for (const ChunkWord& word : list) {
                    const std::string bytes(texts.chunks[word.chunk][word.word]);
                    if (seen.insert(bytes).second) listed.push_back(bytes);
                }
            std::vector<std::string> expected;
            seen.clear();
            for (const std::vector<std::string>& text : texts.texts)
                for (const std::string& word : std::set<std::string>(text.begin(), text.end()))
                    if (seen.insert(word).second) expected.push_back(word);
            EXPECT_EQ(listed, expected);
        }
}

TEST(ChunkedTexts, CountTheirWords) {
    for (const unsigned threads : {1u, 4u})
        for (unsigned seed = 0; seed < 60; ++seed) {
            const Texts texts(TextForm::words, seed, seed, 1 + seed % 3);
            Execution execution(threads);
            std::vector<std::vector<std::uint64_t>> counts;
            ASSERT_TRUE(count_words(texts.view(seed % 2 == 0), counts, execution).ok());
            std::map<std::string, std::uint64_t> counted, expected;
            for (std::size_t chunk = 0; chunk < counts.size(); ++chunk) {
                ASSERT_EQ(counts[chunk].size(), texts.chunks[chunk].size());
                for (std::size_t word = 0; word < counts[chunk].size(); ++word)
                    if (counts[chunk][word] > 0)
                        counted[std::string(texts.chunks[chunk][word])] += counts[chunk][word];
            }
            for (const std::vector<std::string>& text : texts.texts)
                for (const std::string& word : text) ++expected[word];
            EXPECT_EQ(counted, expected);
        }
}

/// The words of a record, with counts or positions.
std::multiset<std::pair<std::string, std::uint32_t>> content(TextForm form,
                                                             const std::uint32_t* record,
                                                             const Words& words) {
    std::multiset<std::pair<std::string, std::uint32_t>> found;
    if (form == TextForm::terms) {
        for (std::uint32_t i = 0; i < record[0]; ++i)
            found.emplace(words[record[1 + i]], record[1 + record[0] + i]);
    } else {
        for (const PlacedWord& placed : WordRecord(record).words)
            found.emplace(words[placed.word], placed.position);
    }
    return found;
}

TEST(ChunkedTexts, AreTheSameInOneChunk) {
    for (const TextForm form : {TextForm::terms, TextForm::words})
        for (unsigned seed = 0; seed < 60; ++seed) {
            const Texts texts(form, seed, seed, 1 + seed % 3);
            const ChunkedTexts view = texts.view(seed % 2 == 0);
            Execution execution(3);
            ASSERT_TRUE(check_texts(view, execution).ok());
            Vocabulary vocabulary;
            ChunkNumbers numbers;
            ASSERT_TRUE(merge_words(texts.chunks, vocabulary, numbers, execution).ok());
            std::vector<std::uint32_t> records(texts.size);
            const auto sink = [&](std::uint64_t begin, std::span<const std::uint32_t> some) {
                std::copy(some.begin(), some.end(),
                          records.begin() + static_cast<std::ptrdiff_t>(begin));
                return Status();
            };
            ASSERT_TRUE(renumber_texts(view, numbers, sink, execution).ok());
            const Words words = vocabulary.words();
            std::vector<ChunkText> places;
            const std::uint32_t* record = records.data();
            for (const ChunkText& text : texts.places) {
                places.push_back({record, text.size, 0});
                EXPECT_EQ(content(form, record, words),
                          content(form, text.record, texts.chunks[text.chunk]));
                record += text.size;
            }
            EXPECT_TRUE(
                check_texts({form, places, std::span(&words, 1), texts.size}, execution).ok());
        }
}

TEST(ChunkedTexts, AreCheckedNumberByNumber) {
    Vocabulary vocabulary;
    for (const char* word : {"a", "b", "c"}) vocabulary.add(word);
    const Words words = vocabulary.words();
    const auto right = [&words](TextForm form, const std::vector<std::uint32_t>& record) {
        const ChunkText text{record.data(), static_cast<std::uint32_t>(record.size()), 0};
        Execution execution(1);
        return check_texts({form, std::span(&text, 1), std::span(&words, 1), 1}, execution).ok();
    };
    EXPECT_TRUE(right(TextForm::terms, {0}));
    EXPECT_TRUE(right(TextForm::terms, {2, 0, 2, 7, 7}));
    EXPECT_FALSE(right(TextForm::terms, {}));
    EXPECT_FALSE(right(TextForm::terms, {2, 0, 2, 7}));
    EXPECT_FALSE(right(TextForm::terms, {2, 0, 3, 7, 7}));
    EXPECT_FALSE(right(TextForm::terms, {2, 2, 0, 7, 7}));
    EXPECT_FALSE(right(TextForm::terms, {2, 1, 1, 7, 7}));
    EXPECT_FALSE(right(TextForm::terms, {UINT32_MAX, 1, 1}));
    EXPECT_TRUE(right(TextForm::words, {5, 0}));
    EXPECT_TRUE(right(TextForm::words, {2, 3, 1, 1, 0, 2, 2, 2}));
    EXPECT_FALSE(right(TextForm::words, {5}));
    EXPECT_FALSE(right(TextForm::words, {5, 1}));
    EXPECT_FALSE(right(TextForm::words, {5, 1, 3, 1}));
    EXPECT_FALSE(right(TextForm::words, {5, 1, 2, 6}));
    EXPECT_FALSE(right(TextForm::words, {5, 1, 2, 0}));
    EXPECT_FALSE(right(TextForm::words, {5, 2, 2, 3, 1, 2}));
    EXPECT_FALSE(right(TextForm::words, {5, UINT32_MAX, 2, 3}));
}

TEST(ChunkedTexts, EndWhenStoppedAndWithTheErrorOfTheSink) {
    const Texts terms(TextForm::terms, 1, 20, 2), words(TextForm::words, 1, 20, 2);
    Execution execution(2);
    Vocabulary vocabulary;
    ChunkNumbers numbers;
    ASSERT_TRUE(merge_words(terms.chunks, vocabulary, numbers, execution).ok());
    const auto full = [](std::uint64_t, auto) { return Status::out_of_memory(); };
    EXPECT_EQ(renumber_texts(terms.view(true), numbers, full, execution).code(),
              ErrorCode::out_of_memory);
    execution.request_stop();
    std::vector<std::vector<ChunkWord>> lists;
    std::vector<std::vector<std::uint64_t>> counts;
    EXPECT_EQ(check_texts(terms.view(true), execution).code(), ErrorCode::cancelled);
    EXPECT_EQ(list_words(terms.view(true), lists, execution).code(), ErrorCode::cancelled);
    EXPECT_EQ(count_words(words.view(true), counts, execution).code(), ErrorCode::cancelled);
    EXPECT_EQ(merge_words(terms.chunks, vocabulary, numbers, execution).code(),
              ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
