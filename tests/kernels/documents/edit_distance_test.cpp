#include "kernels/documents/detail/edit_distance.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "cpp/documents/edit_distance.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::DeviceTest;
using testing::RandomStrings;
using testing::ResidentDocuments;
using testing::utf8_of;

/// Documents and pairs of them, whose distances the device and cpp/ compute.
class EditDistances : public DeviceTest {
protected:
    void add(std::string a, std::string b, std::size_t limit) {
        const auto at = static_cast<std::uint32_t>(texts_.size());
        texts_.push_back(std::move(a));
        texts_.push_back(std::move(b));
        pairs_.push_back({at, at + 1, static_cast<std::uint32_t>(limit)});
    }

    void expect_same(const CharacterLengths& characters = CharacterLengths::single_byte(),
                     std::size_t memory_limit = std::size_t{1} << 30) {
        const ResidentDocuments documents(texts_, characters, stream());
        std::vector<std::uint32_t> distances(pairs_.size(), 12345);
        Execution execution(1);
        memory_limit = std::max(memory_limit, least_edit_distance_bytes(documents.view(), pairs_));
        const Status status =
            edit_distances(documents.view(), pairs_, memory_limit, execution, stream(), distances);
        ASSERT_TRUE(status.ok()) << status.message();
        EditDistance oracle;
        for (std::size_t i = 0; i < pairs_.size(); ++i) {
            const std::size_t limit = pairs_[i].limit;
            const std::size_t truth = *oracle.of_texts(
                documents[pairs_[i].first], documents[pairs_[i].second], characters, limit);
            ASSERT_EQ(distances[i], truth > limit ? kAboveLimit : truth)
                << "pair " << i << ", limit " << limit << ", lengths "
                << texts_[pairs_[i].first].size() << " " << texts_[pairs_[i].second].size();
        }
        texts_.clear();
        pairs_.clear();
    }

    std::vector<std::string> texts_;
    std::vector<DocumentPair> pairs_;
};

/// Edits that lie together, as those of versions do.
std::string version(RandomStrings& random, std::string text, std::size_t edits,
                    std::string_view letters) {
    while (edits > 0 && !text.empty()) {
        const std::size_t some = std::min(edits, 1 + random.below(40));
        const std::size_t at = random.below(text.size());
        switch (random.below(3)) {
            case 0:
                text.insert(at, random.string(some, letters));
                break;
            case 1:
                text.erase(at, some);
                break;
            default:
                text.replace(at, some, random.string(some, letters));
        }
        edits -= some;
    }
    return text;
}

TEST_F(EditDistances, OfPlainCases) {
    for (const std::size_t limit : {0, 1, 2, 3, 5, 100}) {
        add("", "", limit);
        add("", "abc", limit);
        add("kitten", "sitting", limit);
        add("intention", "execution", limit);
        add("same", "same", limit);
        add("a", "b", limit);
        add(std::string(300, 'a'), std::string(300, 'b'), limit);
        add(std::string(300, 'a'), std::string(305, 'a'), limit);
    }
    expect_same();
}

TEST_F(EditDistances, NoPairs) {
    expect_same();
}

TEST_F(EditDistances, AroundTheLanesRows) {
    RandomStrings random;
    for (const std::size_t length :
         {1,   31,  32,   33,   63,   64,   65,   127,  128,  129,  255,
          256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097}) {
        const std::string text = random.string(length, "abcd");
        const std::string other = random.string(length, "abcd");
        for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, length / 20, length / 2,
                                        length - 1, length, length + 7}) {
            add(text, other, limit);
            add(text, random.edited(text, limit / 2, "abcd"), limit);
            add("x" + text + "y", "y" + other.substr(length / 3) + "x", limit);
        }
    }
    expect_same();
}

TEST_F(EditDistances, OfRandomStrings) {
    RandomStrings random;
    const std::string_view alphabets[] = {"ab", "abcd", "abcdefghijklmnopqrstuvwxyz0123456789"};
    const int rounds = small() ? 200 : 6000;
    for (int round = 0; round < rounds; ++round) {
        const std::string_view letters = alphabets[random.below(3)];
        const std::size_t length = random.below(round % 50 == 0 ? 3000 : 300);
        const auto a = random.string(length, letters);
        const auto b = random.below(2) == 0
                           ? random.edited(a, random.below(length / 2 + 2), letters)
                           : random.string(random.below(400), letters);
        add(a, b, random.below(length + 20));
    }
    expect_same();
}

TEST_F(EditDistances, OfVersions) {
    RandomStrings random;
    const std::string_view letters = "etaoinshrdlu \n";
    const int rounds = small() ? 20 : 400;
    for (int round = 0; round < rounds; ++round) {
        const auto a = random.string(2000 + random.below(9000), letters);
        const auto b = version(random, a, random.below(a.size() / 5), letters);
        add(a, b, random.below(a.size() / 5));
        add(b, a, a.size() / 20);
    }
    expect_same();
}

TEST_F(EditDistances, OfUnrelatedDocuments) {
    RandomStrings random;
    for (int i = 0; i < (small() ? 10 : 100); ++i)
        add(random.string(9000 + random.below(2000), "etaoinshrdlu \n"),
            random.string(9000 + random.below(2000), "etaoinshrdlu \n"), 1000 + random.below(1500));
    expect_same();
}

TEST_F(EditDistances, OfLongRuns) {
    RandomStrings random;
    for (int i = 0; i < (small() ? 10 : 60); ++i) {
        std::string a, b;
        for (int run = 0; run < 20; ++run) {
            a += std::string(random.below(500), "ab"[random.below(2)]);
            b += std::string(random.below(500), "ab"[random.below(2)]);
        }
        add(a, b, random.below(6000));
        add(a, std::string(random.below(4), 'b') + a.substr(random.below(3000)), 3100);
    }
    expect_same();
}

TEST_F(EditDistances, OfBytesOfAllValues) {
    RandomStrings random;
    std::string letters;
    for (int byte = 0; byte < 256; ++byte) letters += static_cast<char>(byte);
    for (int i = 0; i < (small() ? 20 : 200); ++i) {
        const auto a = random.string(random.below(3000), letters);
        add(a, random.edited(a, random.below(300), letters), random.below(400));
    }
    expect_same();
}

TEST_F(EditDistances, OfLimitsWiderThanAWarp) {
    RandomStrings random;
    const std::string_view letters = "etaoinshrdlu \n";
    const std::size_t length = small() ? 9000 : 30000;
    for (const std::size_t edits : {1000, 2500, 5000, 9000}) {
        const auto a = random.string(length, letters);
        const auto b = version(random, a, edits, letters);
        for (const std::size_t limit : {edits / 2, edits, 2 * edits, length}) add(a, b, limit);
    }
    add(random.string(length, letters), random.string(length / 2, letters), length);
    expect_same();
}

TEST_F(EditDistances, OfDocumentsLongerThanALaunchMayTake) {
    if (small()) GTEST_SKIP() << "takes long under a sanitizer";
    RandomStrings random;
    const std::string_view letters = "etaoinshrdlu \n";
    const auto a = random.string(1500000, letters);
    add(a, version(random, a, 300, letters), 5000);
    add(a, version(random, a, 6000, letters), 75000);
    add(a, random.string(1500000, letters), 30000);
    add(a, a, 0);
    add(a, a.substr(7), 7);
    add("x" + a + "y", a + "z", 0);
    add("x" + a.substr(0, 200000) + "y", "y" + a.substr(0, 200000) + "x", 2);
    expect_same();
}

TEST_F(EditDistances, OfCharactersInUtf8) {
    RandomStrings random;
    const std::u32string_view letters = U"aé€ß漢字かな한글🙂🙃z";
    for (int round = 0; round < (small() ? 50 : 1500); ++round) {
        const auto a = random.string<std::u32string>(random.below(900), letters);
        const auto b = round % 2 == 0 ? random.edited(a, random.below(60), letters)
                                      : random.string<std::u32string>(
                                            random.below(900), round % 4 == 1 ? U"az" : letters);
        add(utf8_of(a), utf8_of(b), random.below(700));
    }
    expect_same(CharacterLengths::utf8());
}

TEST_F(EditDistances, OfLongTextsInUtf8) {
    RandomStrings random;
    const std::u32string_view letters = U"aé€ß漢字かな한글🙂🙃z etnoi";
    const auto a = random.string<std::u32string>(small() ? 5000 : 150000, letters);
    const auto b = random.edited(a, a.size() / 40, letters);
    const std::u32string_view first_a = std::u32string_view(a).substr(0, 20000);
    const std::u32string_view first_b = std::u32string_view(b).substr(0, 20000);
    add(utf8_of(a), utf8_of(b), a.size() / 15);
    add(utf8_of(first_a), utf8_of(first_b), 4000);
    add(utf8_of(first_a), utf8_of(first_b), 12000);
    add(utf8_of(first_a), std::string(20000, 'e'), 20000);
    expect_same(CharacterLengths::utf8());
}

TEST_F(EditDistances, OfBrokenCharactersOfAnyEncoding) {
    RandomStrings random;
    std::string letters;
    for (int byte = 0; byte < 256; byte += 3) letters += static_cast<char>(byte);
    std::array<std::uint8_t, 256> euc;
    for (int byte = 0; byte < 256; ++byte)
        euc[byte] = static_cast<std::uint8_t>(byte < 0x80 ? 1 : byte == 0x8f ? 3 : 2);
    std::array<std::uint8_t, 256> odd;
    for (int byte = 0; byte < 256; ++byte) odd[byte] = static_cast<std::uint8_t>(1 + byte / 16 % 4);
    for (const auto& characters :
         {CharacterLengths::utf8(), CharacterLengths(euc), CharacterLengths(odd)}) {
        for (int round = 0; round < (small() ? 20 : 300); ++round) {
            const auto a = random.string(random.below(2000), letters);
            add(a, random.edited(a, random.below(100), letters), random.below(300));
        }
        expect_same(characters);
    }
}

TEST_F(EditDistances, InLittleMemory) {
    RandomStrings random;
    for (int i = 0; i < 50; ++i) {
        const auto a = random.string<std::u32string>(random.below(500), U"aé€z");
        add(utf8_of(a), utf8_of(random.edited(a, 20, U"aé€z")), 30);
    }
    expect_same(CharacterLengths::utf8(), 0);
}

TEST_F(EditDistances, SayWhenMemoryIsTooLittle) {
    add("ab", "ba", 1);
    const ResidentDocuments documents(texts_, CharacterLengths::utf8(), stream());
    Execution execution(1);
    std::uint32_t distance;
    const Status status =
        edit_distances(documents.view(), pairs_, 1, execution, stream(), {&distance, 1});
    EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
}

TEST_F(EditDistances, StopWhenAsked) {
    if (small()) GTEST_SKIP() << "takes long under a sanitizer";
    RandomStrings random;
    const auto a = random.string(6000000, "abcdefgh");
    add(a, random.string(6000000, "abcdefgh"), 6000000);
    const ResidentDocuments documents(texts_, CharacterLengths::single_byte(), stream());
    Execution execution(1);
    std::chrono::steady_clock::time_point asked;
    std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        asked = std::chrono::steady_clock::now();
        execution.request_stop();
    });
    std::uint32_t distance;
    const Status status = edit_distances(documents.view(), pairs_, std::size_t{1} << 33, execution,
                                         stream(), {&distance, 1});
    const auto ended = std::chrono::steady_clock::now();
    stopper.join();
    EXPECT_EQ(status.code(), ErrorCode::cancelled);
    EXPECT_LT(std::chrono::duration<double>(ended - asked).count(), 0.1);
}

}  // namespace
}  // namespace gputext
