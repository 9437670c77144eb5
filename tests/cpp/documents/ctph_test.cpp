#include "cpp/documents/ctph.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::plain_edit_distance;
using testing::RandomStrings;

/// The rolling hash as its definition says it, each position on its own.
std::uint32_t rolling_hash_at(std::string_view text, std::size_t position) {
    std::uint32_t sum = 0, weighted = 0, shifted = 0;
    for (std::uint32_t j = 0; j < 7 && j <= position; ++j) {
        const auto byte = static_cast<std::uint8_t>(text[position - j]);
        sum += byte;
        weighted += (7 - j) * byte;
        shifted ^= static_cast<std::uint32_t>(byte) << (5 * j);
    }
    return sum + weighted + shifted;
}

/// The thesis's algorithm to the letter: one reading of the document a block size.
std::string letters_at(std::string_view text, unsigned level) {
    const std::uint64_t block_size = std::uint64_t{1} << level;
    std::string letters;
    std::uint32_t hash = 0;
    bool open = false;
    const auto close = [&] {
        letters += kSignatureAlphabet[hash * 0x9e3779b1u >> 26];
        hash = 0;
        open = false;
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        hash = hash * 0x01000193u + static_cast<std::uint8_t>(text[i]) + 1u;
        open = true;
        if (rolling_hash_at(text, i) % block_size == block_size - 1) close();
    }
    if (open) close();
    return letters;
}

std::string plain_signature(std::string_view text, std::size_t longest) {
    unsigned level = 0;
    while (letters_at(text, level).size() > longest) ++level;
    return std::to_string(std::uint64_t{1} << level) + ":" + letters_at(text, level) + ":" +
           letters_at(text, level + 1);
}

std::string signature(std::string_view text, std::size_t longest = 100) {
    return format_ctph(*ctph_signature(bytes_of(text), longest));
}

TEST(Ctph, HasTheseFixedVectors) {
    EXPECT_EQ(signature(""), "1::");
    EXPECT_EQ(signature("a"), plain_signature("a", 100));
    // These are stored in databases: a change of them is a change of format.
    std::string text;
    for (int i = 0; i < 400; ++i) text += "line " + std::to_string(i * i) + "\n";
    EXPECT_EQ(signature("The quick brown fox jumps over the lazy dog", 100),
              "1:i5CZd7gzvZLEOKmZqOyZI7+1sZOiCEZT5CZXkBZZaOR:7Zd7gZ0mZql7+1eCE072R");
    EXPECT_EQ(signature(text, 100),
              "32:tshgwFKORyfSgSPvrKF4QvKfoKOHbJWAe9D6SWkKRhIbg3/"
              "7Hvf6E2GU0OWPu7O8oJsBzRhiklOXQPCGsl3zswywuUHASJGzpEe:"
              "tsh7WSgSMJ4sHbJWAeS6xhIby6c80OWPuL8oJJdOXllzVy8/6zps");
    EXPECT_EQ(signature(text, 16), "256:tfUSiJWvxxHDWFs:tfU7JWvVq");
}

TEST(Ctph, EqualsTheAlgorithmReadAgainForEachBlockSize) {
    RandomStrings random;
    for (int round = 0; round < 800; ++round) {
        const std::string_view letters = round % 3 == 0 ? "ab" : "etaoin shrdlu(){};=\n\xff";
        auto text = random.string(random.below(round % 20 == 0 ? 20000 : 1500), letters);
        if (round % 7 == 0) text.append(random.below(3000), text.empty() ? '\0' : text[0]);
        const std::size_t longest = std::size_t{1} << random.below(11);
        ASSERT_EQ(signature(text, longest), plain_signature(text, longest)) << longest;
    }
}

TEST(Ctph, HandlesDocumentsThatTriggerEverywhereOrNowhere) {
    for (int byte = 0; byte < 256; ++byte) {
        for (const std::size_t size : {1, 6, 7, 8, 100, 101, 5000}) {
            const std::string text(size, static_cast<char>(byte));
            ASSERT_EQ(signature(text), plain_signature(text, 100)) << byte << " x " << size;
        }
    }
}

TEST(Ctph, IsReadBackAsItWasWritten) {
    RandomStrings random;
    for (int round = 0; round < 200; ++round) {
        const auto text = random.string(random.below(5000), "abcdefgh\n");
        const std::string written = signature(text, 1 + random.below(1024));
        const auto read = parse_ctph(written);
        ASSERT_TRUE(read.ok()) << written << ": " << read.status().message();
        EXPECT_EQ(format_ctph(*read), written);
    }
}

TEST(Ctph, RefusesMalformedText) {
    const std::string long_part(1025, 'A');
    for (const std::string& text : {std::string(""),
                                    std::string(":"),
                                    std::string("::"),
                                    std::string("1"),
                                    std::string("1:"),
                                    std::string("1:A"),
                                    std::string("0::"),
                                    std::string("3:A:"),
                                    std::string("-1:A:"),
                                    std::string("+1:A:"),
                                    std::string("01:A:"),
                                    std::string(" 1:A:"),
                                    std::string("1:A:B:"),
                                    std::string("1:A: "),
                                    std::string("1:A*:"),
                                    std::string("1:A:AB"),
                                    std::string("17179869184::"),
                                    std::string("99999999999999999999999::"),
                                    std::string("1:A\0:", 5),
                                    "1:" + long_part + ":",
                                    std::string("1:\xc3\xa9:A")}) {
        const auto result = parse_ctph(text);
        EXPECT_FALSE(result.ok()) << text;
        EXPECT_EQ(result.status().code(), ErrorCode::invalid_argument);
        EXPECT_FALSE(result.status().message().empty());
    }
    EXPECT_TRUE(parse_ctph("8589934592:A:").ok());
}

TEST(Ctph, RefusesWhatNoDocumentHas) {
    Ctph signature = *parse_ctph("4:ABC:DE");
    EXPECT_TRUE(check_ctph(signature).ok());
    signature.level = 34;
    EXPECT_FALSE(check_ctph(signature).ok());
    signature.level = 2;
    signature.first_length = 6;
    EXPECT_FALSE(check_ctph(signature).ok());
}

TEST(Ctph, IsOrderedByBlockSizeThenLetters) {
    const std::vector<std::string> ascending = {
        "1::", "1:A:", "1:A:A", "1:AB:", "2:A:", "16:A:", "16:B:", "1024::"};
    for (std::size_t i = 0; i < ascending.size(); ++i) {
        for (std::size_t j = 0; j < ascending.size(); ++j) {
            const int order = compare_ctph(*parse_ctph(ascending[i]), *parse_ctph(ascending[j]));
            EXPECT_EQ(order < 0, i < j) << ascending[i] << " " << ascending[j];
            EXPECT_EQ(order == 0, i == j);
        }
    }
}

TEST(Ctph, RateIsTheSmallestAmongCommonBlockSizes) {
    const auto rate = [](const char* a, const char* b) {
        const double one_way = edit_rate(*parse_ctph(a), *parse_ctph(b));
        EXPECT_EQ(one_way, edit_rate(*parse_ctph(b), *parse_ctph(a)));
        return one_way;
    };
    EXPECT_EQ(rate("4:ABCD:XY", "4:ABCD:ZZ"), 0.0);
    EXPECT_EQ(rate("4:ABCD:XY", "4:EFGH:XZ"), 0.25);
    EXPECT_EQ(rate("4:ABCD:XY", "8:XYZ:W"), 0.2);
    EXPECT_EQ(rate("4:ABCD:XY", "16:ABCD:XY"), 1.0);
    EXPECT_EQ(rate("1::", "1::"), 0.0);
}

TEST(SignaturePattern, EqualsTheDynamicProgram) {
    RandomStrings random;
    for (int round = 0; round < 4000; ++round) {
        const std::string_view letters =
            round % 2 == 0 ? kSignatureAlphabet : kSignatureAlphabet.substr(0, 3);
        const auto a = random.string(random.below(round % 10 == 0 ? 1025 : 140), letters);
        const auto b = round % 3 == 0 ? random.string(random.below(140), letters)
                                      : random.edited(a, random.below(20), letters).substr(0, 1024);
        ASSERT_EQ(SignaturePattern(a).distance(b), plain_edit_distance(a, b)) << a << "\n" << b;
    }
}

}  // namespace
}  // namespace gputext
