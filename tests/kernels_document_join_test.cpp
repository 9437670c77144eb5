#include "kernels/document_join.hpp"

#include <gtest/gtest.h>

#include "cpp/document_join.hpp"
#include "tests/device_fixture.hpp"
#include "tests/random_strings.hpp"

namespace gputext {
namespace {

using testing::DeviceTest;
using testing::RandomStrings;
using testing::ResidentDocuments;
using testing::utf8_of;

/// Documents whose candidates the device and cpp/ compute.
class DocumentJoins : public DeviceTest {
protected:
    /// Returns how many candidates there are.
    std::size_t expect_same(double threshold,
                            const CharacterLengths& characters = CharacterLengths::single_byte(),
                            std::size_t memory_limit = std::size_t{1} << 30) {
        const ResidentDocuments documents(texts_, characters, stream());
        std::vector<std::uint32_t> lengths;
        for (std::size_t i = 0; i < texts_.size(); ++i)
            lengths.push_back(
                static_cast<std::uint32_t>(count_characters(documents[i], characters)));
        Execution execution(2);
        std::vector<IndexPair> wanted, found{{7, 8}};
        EXPECT_TRUE(join_documents(DocumentJoin{threshold}, documents.host_view(), lengths,
                                   execution, wanted)
                        .ok());
        memory_limit = std::max(memory_limit, least_document_join_bytes(documents.view()));
        const Status status = join_documents(threshold, documents.view(), lengths, memory_limit,
                                             execution, stream(), found);
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(found, wanted);
        return wanted.size();
    }

    /// Families of versions of about a length.
    void add_families(RandomStrings& random, int families, std::size_t length, std::size_t edits,
                      std::string_view letters = "etaoinshrdlu \n") {
        for (int family = 0; family < families; ++family) {
            texts_.push_back(random.string(length - random.below(length / 3 + 1), letters));
            for (int version = 0; version < 4; ++version)
                texts_.push_back(random.edited(texts_.back(), random.below(edits + 1), letters));
        }
    }

    std::vector<std::string> texts_;
};

TEST_F(DocumentJoins, OfFewDocuments) {
    EXPECT_EQ(expect_same(0.05), 0u);
    texts_ = {""};
    EXPECT_EQ(expect_same(0.05), 0u);
    texts_ = {"", "", "a", "a", "b", "ab", "ba", "abc"};
    for (const double threshold : {0.0, 1e-9, 0.05, 0.2, 0.34, 0.49}) expect_same(threshold);
}

TEST_F(DocumentJoins, OfVersions) {
    RandomStrings random;
    add_families(random, small() ? 20 : 300, 1000, 120);
    for (const double threshold : {0.01, 0.05, 0.15, 0.4}) EXPECT_GT(expect_same(threshold), 0u);
}

TEST_F(DocumentJoins, OfShortTexts) {
    RandomStrings random;
    add_families(random, small() ? 60 : 500, 12, 3, "abcdef");
    for (const double threshold : {0.05, 0.2, 0.45}) expect_same(threshold);
}

TEST_F(DocumentJoins, OfLongRuns) {
    RandomStrings random;
    for (int i = 0; i < 60; ++i) {
        texts_.push_back(std::string(30000 + random.below(6000), 'a') +
                         std::string(random.below(600), 'b'));
        texts_.push_back(std::string(32700 + random.below(200), 'a'));
        texts_.push_back(std::string(65500 + random.below(100), 'a'));
    }
    EXPECT_GT(expect_same(0.05), 0u);
    EXPECT_GT(expect_same(0.001), 0u);
}

TEST_F(DocumentJoins, OfLongDocuments) {
    RandomStrings random;
    for (const std::size_t length : {32766u, 32767u, 32768u, 40000u, 70000u})
        add_families(random, 2, length, 2000);
    if (!small()) add_families(random, 1, 2500000, 1000);
    EXPECT_GT(expect_same(0.05), 0u);
}

TEST_F(DocumentJoins, OfUtf8) {
    RandomStrings random;
    const std::u32string_view letters = U"aé€ß漢字かな한글🙂🙃z etnoi";
    for (int family = 0; family < (small() ? 10 : 100); ++family) {
        auto text = random.string<std::u32string>(random.below(1500), letters);
        for (int version = 0; version < 4; ++version) {
            texts_.push_back(utf8_of(text));
            text = random.edited(text, random.below(90), letters);
        }
        texts_.push_back(random.string(random.below(1500), "etaoin "));
    }
    EXPECT_GT(expect_same(0.05, CharacterLengths::utf8()), 0u);
    EXPECT_GT(expect_same(0.05, CharacterLengths::utf8(), 0), 0u);
}

TEST_F(DocumentJoins, InManyTiles) {
    RandomStrings random;
    add_families(random, small() ? 150 : 600, 700, 60);
    EXPECT_GT(expect_same(0.05, CharacterLengths::single_byte(), 0), 0u);
}

TEST_F(DocumentJoins, OfWhatIsAllAlike) {
    RandomStrings random;
    add_families(random, 1, 300, 3);
    for (int i = 0; i < (small() ? 600 : 3000); ++i)
        texts_.push_back(random.edited(texts_.front(), 2, "ab"));
    // Hits beyond the room for them: tiles are looked at again, fewer at a time.
    EXPECT_GT(expect_same(0.1, CharacterLengths::single_byte(), std::size_t{12} << 20), 100000u);
}

TEST_F(DocumentJoins, SayWhenMemoryIsTooLittle) {
    texts_ = {"a", "b"};
    const ResidentDocuments documents(texts_, CharacterLengths::utf8(), stream());
    const std::vector<std::uint32_t> lengths{1, 1};
    Execution execution(1);
    std::vector<IndexPair> candidates;
    EXPECT_EQ(
        join_documents(0.05, documents.view(), lengths, 1, execution, stream(), candidates).code(),
        ErrorCode::invalid_argument);
}

TEST_F(DocumentJoins, StopWhenAsked) {
    RandomStrings random;
    add_families(random, 10, 300, 3);
    const ResidentDocuments documents(texts_, CharacterLengths::utf8(), stream());
    const std::vector<std::uint32_t> lengths(texts_.size(), 300);
    Execution execution(1);
    execution.request_stop();
    std::vector<IndexPair> candidates;
    EXPECT_EQ(join_documents(0.05, documents.view(), lengths, std::size_t{1} << 30, execution,
                             stream(), candidates)
                  .code(),
              ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
