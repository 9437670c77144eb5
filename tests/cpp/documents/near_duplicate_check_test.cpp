#include "cpp/documents/near_duplicate_check.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "cpp/documents/detail/gram_set.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::kSanitized;
using testing::plain_edit_distance;
using testing::RandomStrings;
using testing::utf8_of;

bool is_near(std::string_view a, std::string_view b, double threshold) {
    NearDuplicateCheck check;
    check.prepare(bytes_of(a), CharacterLengths::utf8(), threshold);
    return *check.is_near(bytes_of(b));
}

TEST(NearDuplicateCheck, DividesTheDistanceByBothLengths) {
    EXPECT_TRUE(is_near("", "", 0));
    EXPECT_FALSE(is_near("", "a", 0.49));
    EXPECT_FALSE(is_near("a", "", 0.49));
    EXPECT_TRUE(is_near("abcdefghij", "abcdefghiX", 0.05));
    EXPECT_FALSE(is_near("abcdefghij", "abcdefghiX", 0.0499));
    EXPECT_TRUE(is_near("äbcdefghij", "abcdefghij", 0.05));
    EXPECT_FALSE(is_near("äbcdefghij", "abcdefghij", 0));
}

/// The rate that a document has is the smallest threshold at which it is near.
TEST(NearDuplicateCheck, EqualsTheEditRate) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    const std::u32string_view alphabets[] = {U"etaoinshrdlu ,.\n", U"ab", U"aäоб漢字🙂 ",
                                             U"0123456789ABCDEFabcdef"};
    NearDuplicateCheck check;
    for (int round = 0; round < testing::rounds(kSanitized ? 300 : 4000); ++round) {
        const auto letters = alphabets[random.below(std::size(alphabets))];
        const auto text =
            random.string<std::u32string>(random.below(round % 20 == 0 ? 700 : 60), letters);
        const std::string document = utf8_of(text);
        for (int i = 0; i < 4; ++i) {
            const auto other =
                random.below(4) == 0
                    ? random.string<std::u32string>(random.below(text.size() + 5), letters)
                    : random.edited(text, random.below(text.size() / (1 + random.below(9)) + 2),
                                    letters);
            const std::size_t sum = text.size() + other.size();
            const double rate = edit_rate(plain_edit_distance(text, other), sum);
            const double other_threshold = static_cast<double>(random.below(50)) / 100;
            for (const double threshold :
                 {rate, std::nextafter(rate, 0.0), std::nextafter(rate, 1.0), other_threshold}) {
                if (threshold >= 0.5) continue;
                check.prepare(bytes_of(document), utf8, threshold);
                ASSERT_EQ(*check.is_near(bytes_of(utf8_of(other))), rate <= threshold)
                    << "threshold " << threshold << "\n"
                    << document << "\n"
                    << utf8_of(other);
            }
        }
    }
}

/// One prepared document and many others, of characters of one byte and of several by turns.
TEST(NearDuplicateCheck, KeepsTheDocument) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    for (const std::u32string_view letters : {U"etaoinshrdlu", U"etaoinshrdluäöüß"}) {
        const auto text = random.string<std::u32string>(800, letters);
        NearDuplicateCheck check;
        {
            const std::string document = utf8_of(text);
            check.prepare(bytes_of(document), utf8, 0.05);
        }
        EXPECT_EQ(check.threshold(), 0.05);
        EXPECT_EQ(count_characters(check.document(), utf8), text.size());
        std::size_t near = 0;
        for (int i = 0; i < 100; ++i) {
            const auto other =
                random.edited(text, random.below(160),
                              i % 2 == 0 ? std::u32string_view(U"äöü€🙂") : U"abc");
            const double rate =
                edit_rate(plain_edit_distance(text, other), text.size() + other.size());
            ASSERT_EQ(*check.is_near(bytes_of(utf8_of(other))), rate <= 0.05);
            near += rate <= 0.05;
        }
        EXPECT_GT(near, 20u);
        EXPECT_LT(near, 80u);
    }
}

TEST(NearDuplicateCheck, IsStopped) {
    RandomStrings random;
    const std::string text = random.string(3'000'000, "abcdefgh");
    const std::string other = random.string(3'000'000, "abcdefgh");
    const auto utf8 = CharacterLengths::utf8();
    const Stop always{[](void*) { return true; }, nullptr};
    NearDuplicateCheck check;
    EXPECT_EQ(check.is_near(bytes_of(other)).status().code(), ErrorCode::cancelled);
    check.prepare(bytes_of(text), utf8, 0.1, always);
    EXPECT_EQ(check.is_near(bytes_of(other)).status().code(), ErrorCode::cancelled);
    check.prepare(bytes_of(text), utf8, 0.1);
    int asked = 0;
    const Stop later{[](void* count) { return ++*static_cast<int*>(count) > 9; }, &asked};
    EXPECT_EQ(check.is_near(bytes_of(other), later).status().code(), ErrorCode::cancelled);
    EXPECT_LT(asked, 15);
    EXPECT_TRUE(*check.is_near(bytes_of(text)));
}

/// Wherever it was stopped, it never takes a part of the document for the document.
TEST(NearDuplicateCheck, IsNotPreparedWhereItWasStopped) {
    RandomStrings random;
    const auto utf8 = CharacterLengths::utf8();
    for (const std::u32string_view letters : {U"abcdefgh", U"abcdefgä"}) {
        const std::string text = utf8_of(random.string<std::u32string>(2'500'000, letters));
        NearDuplicateCheck check;
        for (int most = 0;; ++most) {
            int left = most;
            const Stop stop{[](void* count) { return --*static_cast<int*>(count) < 0; }, &left};
            check.prepare(bytes_of(text), utf8, 0.1, stop);
            const auto answer = check.is_near(bytes_of(text));
            ASSERT_EQ(answer.ok(), left >= 0) << most;
            if (!answer.ok()) continue;
            ASSERT_TRUE(*answer);
            break;
        }
    }
}

class GramSetOn : public testing::OnEachSimd {
protected:
    std::size_t absent(const std::string& other, std::size_t most = SIZE_MAX - 1) const {
        return grams_.absent(bytes_of(other), most, {}, GetParam());
    }

    GramSet grams_;
};
INSTANTIATE_TEST_SUITE_P(Simd, GramSetOn, testing::kEachSimd, testing::name_of_simd);

TEST_P(GramSetOn, IsALowerBoundOfTheDistance) {
    RandomStrings random;
    for (int round = 0; round < testing::rounds(kSanitized ? 500 : 8000); ++round) {
        const std::string_view letters = round % 2 == 0 ? "abc" : "etaoinshrdlu ,.\n";
        const auto text = random.string(random.below(120), letters);
        const auto other = random.edited(text, random.below(text.size() / 2 + 2), letters);
        ASSERT_TRUE(grams_.assign(bytes_of(text), {}));
        const std::size_t distance = plain_edit_distance(text, other);
        const std::size_t found = absent(other);
        ASSERT_LE(found, distance) << text << "\n" << other;
        if (found > 0) {
            ASSERT_EQ(absent(other, found - 1), found);
        }
    }
}

/// The grams are counted that a plain search counts, but for hashes that are alike: 65,536 bits
/// seldom have those of 200 characters' grams for others.
TEST_P(GramSetOn, FindsMostOfWhatIsAbsent) {
    RandomStrings random;
    std::size_t found = 0, wanted = 0;
    for (int round = 0; round < 2000; ++round) {
        const auto text = random.string(random.below(200), "etaoin");
        const auto other = random.string(random.below(400), "etaoin");
        ASSERT_TRUE(grams_.assign(bytes_of(text), {}));
        std::size_t plain = 0;
        for (std::size_t at = 0; at + GramSet::gram <= other.size();) {
            const bool occurs = text.find(other.substr(at, GramSet::gram)) != std::string::npos;
            plain += !occurs;
            at += occurs ? 1 : GramSet::gram;
        }
        ASSERT_LE(absent(other), plain) << text << "\n" << other;
        found += absent(other);
        wanted += plain;
    }
    EXPECT_GE(found, wanted - wanted / 50);
}

/// What has nothing in common lacks a gram at each fourth character.
TEST_P(GramSetOn, FindsWhatIsAbsent) {
    for (const std::size_t size : {4, 63, 66, 67, 68, 100, 5000, 100'000}) {
        ASSERT_TRUE(grams_.assign(bytes_of(std::string(size, 'a')), {}));
        EXPECT_EQ(absent(std::string(size, 'b')), size / 4);
        EXPECT_EQ(absent(std::string(size, 'a')), 0u);
    }
}

}  // namespace
}  // namespace gputext
