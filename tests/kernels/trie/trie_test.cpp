// Dictionaries on a GPU: every code and every image is the one of cpp/trie/trie.hpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "cpp/daemon/on_device.hpp"
#include "cpp/trie/trie.hpp"
#include "kernels/daemon/cuda_devices.hpp"
#include "kernels/trie/trie_build.hpp"
#include "kernels/trie/word_lookup.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using namespace std::chrono_literals;
using testing::RandomStrings;
using testing::rounds;

constexpr std::size_t kPlenty = std::size_t{8} << 30;

std::string all_bytes() {
    std::string letters;
    for (int byte = 0; byte < 256; ++byte) letters.push_back(static_cast<char>(byte));
    return letters;
}

/// Words one behind the other.
class WordList {
public:
    WordList() : begins_{0} {}
    explicit WordList(const std::vector<std::string>& words) : WordList() {
        for (const std::string& word : words) add(word);
    }

    void add(std::string_view word) {
        bytes_.insert(bytes_.end(), word.begin(), word.end());
        begins_.push_back(bytes_.size());
    }
    void add(const WordList& other) {
        for (std::size_t i = 0; i < other.size(); ++i) add(other[i]);
    }
    std::size_t size() const { return begins_.size() - 1; }
    std::string_view operator[](std::size_t i) const { return words()[i]; }
    Words words() const { return {bytes_.data(), begins_.data(), size()}; }

private:
    std::vector<std::uint8_t> bytes_;
    std::vector<std::uint64_t> begins_;
};

class TrieOnDevice : public testing::RingTest {
protected:
    void SetUp() override {
        RingTest::SetUp();
        work.bytes = kPlenty;
    }
    void TearDown() override {
        tries.clear();
        RingTest::TearDown();
    }

    /// The host's.
    static std::vector<std::uint8_t> image_of(const WordList& words,
                                              TrieStructure structure = TrieStructure::front) {
        Execution execution(4);
        auto built = build_trie(structure, words.words(), execution);
        EXPECT_TRUE(built.ok()) << built.status().message();
        return std::move(*built);
    }

    void expect_built(const WordList& words, const std::vector<std::uint8_t>& image) {
        Execution execution(4);
        auto built = gpu::build_trie(TrieStructure::front, words.words(), work, ring(), execution);
        ASSERT_TRUE(built.ok()) << built.status().message();
        ASSERT_EQ(built->size(), image.size());
        const auto [at, unused] = std::mismatch(image.begin(), image.end(), built->begin());
        ASSERT_TRUE(at == image.end()) << "byte " << at - image.begin();
    }

    void expect_looked_up(const std::vector<std::uint8_t>& image, const WordList& asked) {
        Execution execution(4);
        std::vector<std::uint32_t> codes(asked.size(), 0x12345678), wanted(asked.size());
        const Status status =
            gpu::lookup_words(image, asked.words(), tries, work, ring(), execution, codes);
        ASSERT_TRUE(status.ok()) << status.message();
        const auto trie = open_trie(image);
        ASSERT_TRUE(trie.ok());
        ASSERT_TRUE(lookup_words(**trie, asked.words(), wanted, execution).ok());
        const auto [at, unused] = std::mismatch(codes.begin(), codes.end(), wanted.begin());
        ASSERT_TRUE(at == codes.end())
            << "word " << at - codes.begin() << ", code " << *at << ", "
            << asked[static_cast<std::size_t>(at - codes.begin())].substr(0, 100);
    }

    /// Builds, and looks up its words and absent ones.
    void expect_same(const WordList& words, const WordList& absent = {}) {
        const std::vector<std::uint8_t> image = image_of(words);
        ASSERT_NO_FATAL_FAILURE(expect_built(words, image));
        WordList asked = words;
        asked.add(absent);
        ASSERT_NO_FATAL_FAILURE(expect_looked_up(image, asked));
        ASSERT_NO_FATAL_FAILURE(expect_looked_up(image_of(words, TrieStructure::xbw), asked));
    }

    gpu::ResidentTries tries{kPlenty};

private:
};

TEST_F(TrieOnDevice, FewWords) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{},
                                               {""},
                                               {"", ""},
                                               {"a"},
                                               {"", "a", "a", ""},
                                               {"cb", "ba", "cc", "aba", "ba", "bb"},
                                               {std::string(1, '\0'), "", std::string(2, '\0')}})
        ASSERT_NO_FATAL_FAILURE(
            expect_same(WordList(words), WordList({"", "b", std::string(1, '\0'), "abab"})));
}

TEST_F(TrieOnDevice, WordsAreAnyBytes) {
    WordList words, absent;
    for (int byte = 0; byte < 256; ++byte) {
        const auto c = static_cast<char>(byte);
        for (const std::size_t length : {1, 6, 7, 8, 14, 15, 17}) words.add(std::string(length, c));
        words.add(std::string(16, '\0') + c);
        words.add(std::string(15, '\xff') + c);
        absent.add(std::string(16, c));
        absent.add(std::string(18, c));
    }
    for (std::size_t zeros = 0; zeros < 70; ++zeros) {
        words.add(std::string(zeros, '\0'));
        absent.add(std::string(zeros, '\0') + "x\xff");
        absent.add(std::string(71 + zeros, '\0'));
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(words, absent));
}

TEST_F(TrieOnDevice, RandomWords) {
    RandomStrings random;
    const std::string all = all_bytes();
    const std::string_view alphabets[] = {"a", "ab", "abcdefgh", all,
                                          std::string_view(all).substr(0, 2)};
    for (int round = 0; round < rounds(150); ++round) {
        const std::string_view letters = alphabets[random.below(std::size(alphabets))];
        const std::size_t count = 1 + random.below(3000), longest = 1 + random.below(40);
        const std::string prefix = random.string(random.below(40), letters);
        WordList words, absent;
        for (std::size_t i = 0; i < count; ++i) {
            std::string word = random.string(random.below(longest), letters);
            if (random.below(2) == 0) word = prefix + word;
            if (random.below(100) == 0) word += random.string(random.below(700), letters);
            words.add(word);
            absent.add(random.edited(std::string(words[random.below(words.size())]), 1, letters));
        }
        ASSERT_NO_FATAL_FAILURE(expect_same(words, absent)) << "round " << round;
    }
}

TEST_F(TrieOnDevice, WordsThatSharePrefixesOfAnyLength) {
    WordList words, absent;
    for (const std::size_t length :
         {7, 14, 15, 16, 17, 31, 32, 100, 254, 255, 256, 447, 448, 449, 1000, 5000})
        for (int i = 0; i < 100; ++i) {
            const std::string end = std::to_string(i);
            words.add(std::string(length, 'p') + end);
            words.add(std::string(length, 'q') + std::string(static_cast<std::size_t>(i), 'r'));
            words.add(std::string(length, 'p') + end);  // again
            absent.add(std::string(length, 'q') + std::string(static_cast<std::size_t>(i), 'r') +
                       "!");
            absent.add(std::string(length, 'p') + "x" + end);
        }
    for (std::size_t length = 0; length < 300; ++length) words.add(std::string(length, 'a'));
    ASSERT_NO_FATAL_FAILURE(expect_same(words, absent));
}

TEST_F(TrieOnDevice, VeryLongWords) {
    RandomStrings random;
    const std::string all = all_bytes();
    for (const std::size_t longest : {4095, 4096, 4097, 1 << 16, (1 << 16) + 1, 1 << 20}) {
        WordList words, absent;
        for (const std::string_view letters : {std::string_view("a"), std::string_view(all)}) {
            const std::string word = random.string(longest, letters);
            for (const char* end : {"", "x", "xx"})
                words.add(word.substr(0, longest - std::string_view(end).size()) + end);
            words.add(word.substr(0, longest / 2) + "y");
            words.add(word);
            absent.add(word + "?");
            absent.add(word.substr(0, longest / 2));
        }
        for (int i = 0; i < 1000; ++i) words.add(random.string(random.below(20), "abc"));
        ASSERT_NO_FATAL_FAILURE(expect_same(words, absent)) << longest;
    }
}

TEST_F(TrieOnDevice, ManyWordsThatDifferInTheirLastBytes) {
    const auto count = static_cast<unsigned>(small() ? 20000 : 1000000);
    for (const std::string& prefix :
         {std::string("a prefix that is longer than a separator "), std::string(460, 'p')}) {
        // 460 bytes are sorted by the host in the end.
        WordList words, absent;
        for (unsigned i = 0; i < (prefix.size() < 100 ? count : count / 10); ++i) {
            std::string end;
            for (unsigned rest = i * 7919 % count, digits = 0; digits < 3; ++digits, rest /= 100)
                end.insert(end.begin(), static_cast<char>(100 + rest % 100));
            words.add(prefix + end);
            if (i % 50 == 0) absent.add(prefix + end.substr(0, 2) + static_cast<char>(99));
            if (i % 50 == 1) absent.add(prefix + end + "!");
        }
        ASSERT_NO_FATAL_FAILURE(expect_same(words, absent));
    }
}

TEST_F(TrieOnDevice, ManyRealisticWordsAndAbsentOnes) {
    RandomStrings random;
    WordList words, absent;
    for (std::size_t i = 0; i < (small() ? 20000u : 500000u); ++i) {
        words.add(random.string(1 + random.below(24), "etaoinshrdlu"));
        const std::string word(words[random.below(words.size())]);
        absent.add(random.edited(word, 1 + random.below(3), "etaoinshrdlu"));
        if (word.size() >= 16) absent.add(word.substr(0, 16) + "absent");
        if (i % 5 == 0) words.add(word);
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(words, absent));
}

TEST_F(TrieOnDevice, CodesOfMoreWordsThanAChunkHas) {
    RandomStrings random;
    WordList words, asked;
    for (std::size_t i = 0; i < 3000; ++i) words.add(random.string(1 + random.below(12), "etaoin"));
    for (std::size_t i = 0; i < (small() ? 30000u : 3000000u); ++i) {
        asked.add(words[random.below(words.size())]);
        if (i % 5000 == 0) asked.add(random.string(random.below(200000), "etaoin"));
    }
    const std::vector<std::uint8_t> image = image_of(words);
    const gpu::LookupBytes bytes = gpu::lookup_bytes(asked.words());
    const std::size_t dictionary = gpu::ResidentTrie::bytes(image);
    for (const std::size_t memory :
         {dictionary + bytes.least, dictionary + bytes.least + (std::size_t{1} << 20),
          dictionary + bytes.good}) {
        tries.clear();
        work.bytes = memory;
        ASSERT_NO_FATAL_FAILURE(expect_looked_up(image, asked)) << memory;
    }
    tries.clear();
    work.bytes = dictionary + bytes.least - 1;
    Execution execution(4);
    std::vector<std::uint32_t> codes(asked.size());
    const Status refused =
        gpu::lookup_words(image, asked.words(), tries, work, ring(), execution, codes);
    EXPECT_EQ(refused.code(), ErrorCode::out_of_memory);
    EXPECT_NE(refused.message().find(std::to_string(dictionary + bytes.least)), std::string::npos)
        << refused.message();
}

TEST_F(TrieOnDevice, TheHostBuildsWhatDoesNotFit) {
    RandomStrings random;
    WordList words;
    for (std::size_t i = 0; i < 5000; ++i) words.add(random.string(random.below(12), "etaoin"));
    const std::vector<std::uint8_t> image = image_of(words);
    const std::size_t needed = gpu::build_bytes(words.words());
    for (const std::size_t memory : {std::size_t{0}, needed - 1, needed}) {
        work.bytes = memory;
        ASSERT_NO_FATAL_FAILURE(expect_built(words, image));
    }
}

TEST_F(TrieOnDevice, DictionariesStayWhileTheyFit) {
    RandomStrings random;
    std::vector<std::vector<std::uint8_t>> images;
    WordList words;
    for (int i = 0; i < 4; ++i) {
        for (std::size_t n = 0; n < 1000; ++n) words.add(random.string(random.below(12), "abcd"));
        images.push_back(image_of(words));
    }
    for (const auto& image : images) ASSERT_NO_FATAL_FAILURE(expect_looked_up(image, words));
    EXPECT_EQ(tries.count(), 4u);
    ASSERT_NO_FATAL_FAILURE(expect_looked_up(images[0], words));
    EXPECT_EQ(tries.count(), 4u);
    gpu::ResidentTries few(gpu::ResidentTrie::bytes(images[3]) +
                           gpu::ResidentTrie::bytes(images[0]));
    Execution execution(4);
    const auto get = [&](int i, std::size_t limit) {
        return few.get(images[i], limit, stream(), ring(), execution).ok();
    };
    EXPECT_TRUE(get(0, kPlenty) && get(3, kPlenty) && get(0, kPlenty));
    EXPECT_TRUE(few.has(images[0]) && few.has(images[3]));
    EXPECT_TRUE(get(2, kPlenty));  // with the one that was used last
    EXPECT_TRUE(few.has(images[2]) && few.has(images[0]) && !few.has(images[3]));
    EXPECT_TRUE(get(1, 0));
    EXPECT_TRUE(few.has(images[1]));
    EXPECT_EQ(few.count(), 1u);
    // A broken one is refused.
    std::vector<std::uint8_t> broken = images[1];
    tries.clear();
    broken[broken.size() / 2] ^= 1;
    std::vector<std::uint32_t> codes(words.size());
    const Status refused =
        gpu::lookup_words(broken, words.words(), tries, work, ring(), execution, codes);
    EXPECT_EQ(refused.code(), ErrorCode::invalid_argument) << refused.message();
    EXPECT_EQ(tries.count(), 0u);
}

TEST_F(TrieOnDevice, ServesAsADevice) {
    CudaDevices all = cuda_devices();
    ASSERT_FALSE(all.devices.empty()) << all.why_none;
    Device& device = *all.devices[0];
    device.prepare();
    RandomStrings random;
    WordList words;
    for (std::size_t i = 0; i < 20000; ++i) words.add(random.string(random.below(14), "etaoin"));
    const std::vector<std::uint8_t> wanted = image_of(words);
    Execution execution(4);
    const auto image = device.compute<TrieBuildOnDevice>(TrieStructure::front, words.words(),
                                                         device.free_memory(), execution);
    ASSERT_TRUE(image.ok()) << image.status().message();
    EXPECT_TRUE(*image == wanted);
    const auto trie = open_trie(*image);
    std::vector<std::uint32_t> expected(words.size());
    ASSERT_TRUE(lookup_words(**trie, words.words(), expected, execution).ok());
    for (int round = 0; round < 3; ++round) {
        std::vector<std::uint32_t> codes(words.size());
        const Status status = device.compute<WordLookupOnDevice>(
            *image, words.words(), device.free_memory(), execution, codes);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(codes, expected);
        if (round == 1) device.release_memory();
    }
    const std::vector<std::uint8_t> none(10);
    std::vector<std::uint32_t> codes(words.size());
    const Status refused =
        device.compute<WordLookupOnDevice>(none, words.words(), kPlenty, execution, codes);
    EXPECT_EQ(refused.code(), ErrorCode::invalid_argument);
}

/// Asks at some time of a run to stop; returns how long that took then, nothing if it ended first.
template <class Run>
std::chrono::nanoseconds time_to_stop(std::chrono::nanoseconds after, const Run& run) {
    Execution execution(4);
    std::chrono::steady_clock::time_point asked;
    std::thread stopper([&] {
        std::this_thread::sleep_for(after);
        asked = std::chrono::steady_clock::now();
        execution.request_stop();
    });
    const Status status = run(execution);
    const auto ended = std::chrono::steady_clock::now();
    stopper.join();
    if (status.ok()) return {};
    EXPECT_EQ(status.code(), ErrorCode::cancelled) << status.message();
    return ended - asked;
}

TEST_F(TrieOnDevice, StopsWheneverItIsAsked) {
    RandomStrings random;
    WordList words;
    for (std::size_t i = 0; i < (small() ? 20000u : 4000000u); ++i)
        words.add(random.string(1 + random.below(20), "etaoinshrdlu"));
    const std::vector<std::uint8_t> image = image_of(words);
    std::vector<std::uint32_t> codes(words.size());
    const auto look_up = [&](Execution& execution) {
        tries.clear();
        return gpu::lookup_words(image, words.words(), tries, work, ring(), execution, codes);
    };
    const auto build = [&](Execution& execution) {
        return gpu::build_trie(TrieStructure::front, words.words(), work, ring(), execution)
            .status();
    };
    const auto check = [&](const char* name, const auto& run) {
        const auto begin = std::chrono::steady_clock::now();
        Execution execution(4);
        ASSERT_TRUE(run(execution).ok());
        const auto whole = std::chrono::steady_clock::now() - begin;
        std::chrono::nanoseconds most{};
        for (int round = 0; round < rounds(30); ++round)
            most = std::max(most, time_to_stop(whole * random.below(1000) / 1000, run));
        std::cout << name << " takes " << whole / 1ms << " ms, and ends "
                  << static_cast<double>(most / 1us) / 1e3 << " ms after it is asked to\n";
        if (!small()) {
            EXPECT_LT(most, 200ms);
        }
    };
    ASSERT_NO_FATAL_FAILURE(check("lookup", look_up));
    ASSERT_NO_FATAL_FAILURE(check("building", build));
    work.bytes = kPlenty;
    ASSERT_NO_FATAL_FAILURE(expect_built(words, image));
    ASSERT_NO_FATAL_FAILURE(expect_looked_up(image, words));
}

}  // namespace
}  // namespace gputext
