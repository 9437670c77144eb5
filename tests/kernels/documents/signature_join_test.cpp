#include "kernels/documents/detail/signature_join.hpp"

#include <gtest/gtest.h>

#include "cpp/documents/ctph.hpp"
#include "cpp/documents/detail/signature_join.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "tests/support/device.hpp"
#include "tests/support/random_strings.hpp"
#include "tests/support/related_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::RandomStrings;
using testing::related_strings;
using testing::rounds;

class SignatureJoinOnDevice : public testing::OnDevice {};

std::vector<std::string_view> views_of(const std::vector<std::string>& strings) {
    return {strings.begin(), strings.end()};
}

std::vector<IndexPair> expected_pairs(const std::vector<std::string>& strings, double rate) {
    Execution execution(4);
    std::vector<IndexPair> pairs;
    EXPECT_TRUE(join_letters(views_of(strings), rate, best_simd(), execution, pairs).ok());
    return pairs;
}

TEST_F(SignatureJoinOnDevice, OfLettersEqualsTheCpus) {
    RandomStrings random;
    for (const std::size_t longest : {0, 12, 100, 104, 128, 129, 208, 400, 416, 1024}) {
        const std::size_t count = static_cast<std::size_t>(rounds(longest > 128 ? 700 : 3000));
        const auto strings = related_strings(random, count, longest);
        for (const double rate : {0.0, 0.02, 0.075, 0.15, 0.3, 0.6, 1.0}) {
            const auto expected = expected_pairs(strings, rate);
            for (const auto filter : {gpu::FilterKernel::fitting, gpu::FilterKernel::count_ones}) {
                Execution execution(2);
                std::vector<IndexPair> pairs;
                const Status status =
                    gpu::join_letters(views_of(strings), rate, work, execution, pairs, filter);
                ASSERT_TRUE(status.ok()) << status.message();
                ASSERT_EQ(pairs, expected) << "rate " << rate << ", up to " << longest;
            }
        }
    }
}

TEST_F(SignatureJoinOnDevice, OfSignaturesEqualsTheCpus) {
    RandomStrings random;
    std::vector<Ctph> signatures;
    for (int i = 0; i < rounds(1500); ++i) {
        const auto text = random.string(random.below(4000), "etaoin shrdlu\n");
        signatures.push_back(*ctph_signature(bytes_of(text), 100));
        auto grown = text + random.string(random.below(text.size() / 10 + 2), "etaoin shrdlu\n");
        grown = random.edited(grown, random.below(30), "etaoin");
        signatures.push_back(*ctph_signature(bytes_of(grown), random.below(4) == 0 ? 60 : 100));
    }
    for (const double rate : {0.05, 0.15, 0.5}) {
        std::vector<IndexPair> expected, pairs;
        Execution execution(2);
        ASSERT_TRUE(join_signatures(signatures, rate, best_simd(), execution, expected).ok());
        ASSERT_FALSE(expected.empty());
        const Status status = gpu::join_signatures(signatures, rate, work, execution, pairs);
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_EQ(pairs, expected) << "rate " << rate;
    }
}

TEST_F(SignatureJoinOnDevice, OfPartsEqualsTheCpus) {
    RandomStrings random;
    std::vector<Ctph> signatures;
    for (int i = 0; i < rounds(2000); ++i) {
        const auto text = random.string(100 + random.below(100), "etaoin shrdlu\n");
        signatures.push_back(*ctph_signature(bytes_of(text), 100));
        signatures.push_back(
            *ctph_signature(bytes_of(random.edited(text, random.below(12), "etaoin")), 100));
    }
    for (const double rate : {0.1, 0.2})
        for (const std::uint32_t count : {2u, 3u, 5u})
            for (std::uint32_t index = 0; index < count; ++index)
                for (const auto filter :
                     {gpu::FilterKernel::fitting, gpu::FilterKernel::count_ones}) {
                    const PairPart part{index, count, PairSource::signatures};
                    std::vector<IndexPair> expected, pairs;
                    Execution execution(2);
                    ASSERT_TRUE(join_signatures(signatures, rate, best_simd(), execution, expected,
                                                UINT64_MAX, nullptr, part)
                                    .ok());
                    const Status status = gpu::join_signatures(
                        signatures, rate, work, execution, pairs, filter, nullptr, nullptr, part);
                    ASSERT_TRUE(status.ok()) << status.message();
                    ASSERT_EQ(pairs, expected) << "part " << index << " of " << count;
                }
}

TEST_F(SignatureJoinOnDevice, BetweenSidesEqualsTheCpus) {
    RandomStrings random;
    std::vector<Ctph> signatures;
    for (int i = 0; i < rounds(2000); ++i) {
        const auto text = random.string(60 + random.below(600), "etaoin shrdlu\n");
        signatures.push_back(*ctph_signature(bytes_of(text), 100));
        signatures.push_back(
            *ctph_signature(bytes_of(random.edited(text, random.below(12), "etaoin")), 100));
    }
    for (const std::string_view which : {"12", "1222222222", "1111112", "11223", "3", "1"}) {
        std::vector<std::uint8_t> sides;
        for (std::size_t i = 0; i < signatures.size(); ++i)
            sides.push_back(static_cast<std::uint8_t>(which[random.below(which.size())] - '0'));
        for (const std::uint32_t count : {1u, 2u, 3u})
            for (std::uint32_t index = 0; index < count; ++index)
                for (const auto filter :
                     {gpu::FilterKernel::fitting, gpu::FilterKernel::count_ones}) {
                    const PairPart part{index, count, PairSource::signatures};
                    std::vector<IndexPair> expected, pairs;
                    Execution execution(2);
                    ASSERT_TRUE(join_signatures(signatures, 0.2, best_simd(), execution, expected,
                                                UINT64_MAX, nullptr, part, sides)
                                    .ok());
                    const Status status =
                        gpu::join_signatures(signatures, 0.2, work, execution, pairs, filter,
                                             nullptr, nullptr, part, sides);
                    ASSERT_TRUE(status.ok()) << status.message();
                    ASSERT_EQ(pairs, expected)
                        << "part " << index << " of " << count << ", sides " << which;
                    EXPECT_EQ(expected.empty(), which == "1");
                }
    }
}

TEST_F(SignatureJoinOnDevice, FindsAllPairsInLittleMemory) {
    // Every pair passes, so that launches overflow and pairs move to the host.
    RandomStrings random;
    std::vector<std::string> strings(1500, random.string(50, kSignatureAlphabet));
    for (std::size_t i = 0; i < strings.size(); i += 2)
        strings[i] = random.edited(strings[i], 2, kSignatureAlphabet);
    const auto bytes = gpu::join_bytes(strings.size(), 53 * strings.size(), 60);
    work.bytes = bytes.least;
    Execution execution(2);
    std::vector<IndexPair> pairs;
    gpu::JoinCounts counts;
    const Status status = gpu::join_letters(views_of(strings), 0.2, work, execution, pairs,
                                            gpu::FilterKernel::fitting, &counts);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(pairs, expected_pairs(strings, 0.2));
    EXPECT_GT(counts.repeated, 0u);
    work.bytes = bytes.least / 2;
    EXPECT_EQ(gpu::join_letters(views_of(strings), 0.2, work, execution, pairs).code(),
              ErrorCode::out_of_memory);
}

TEST_F(SignatureJoinOnDevice, EndsWherePairsAreTooMany) {
    RandomStrings random;
    std::vector<Ctph> signatures;
    const std::string text = random.string(2000, "etaoinshrdlu ");
    for (int i = 0; i < 300; ++i)
        signatures.push_back(
            *ctph_signature(bytes_of(random.edited(text, random.below(3), "etaoinshrdlu ")), 50));
    Execution execution(2);
    std::vector<IndexPair> all, pairs;
    ASSERT_TRUE(gpu::join_signatures(signatures, 0.3, work, execution, all).ok());
    ASSERT_GT(all.size(), 1000u);
    gpu::PairLimit limit{all.size() / 2};
    ASSERT_TRUE(gpu::join_signatures(signatures, 0.3, work, execution, pairs,
                                     gpu::FilterKernel::fitting, nullptr, &limit)
                    .ok());
    EXPECT_TRUE(limit.exceeded);
    EXPECT_TRUE(pairs.empty());
    limit = {2 * all.size()};
    ASSERT_TRUE(gpu::join_signatures(signatures, 0.3, work, execution, pairs,
                                     gpu::FilterKernel::fitting, nullptr, &limit)
                    .ok());
    EXPECT_FALSE(limit.exceeded);
    EXPECT_EQ(pairs, all);
}

TEST_F(SignatureJoinOnDevice, EndsSoonWhereAllPairsPass) {
    // The first launch would find 10^10 pairs, and has room for 10^8 at most.
    const std::vector<Ctph> signatures(300000, Ctph{5, 4, "ABCDAB"});
    Execution execution(2);
    std::vector<IndexPair> pairs;
    gpu::JoinCounts counts;
    gpu::PairLimit limit{1 << 20};
    ASSERT_TRUE(gpu::join_signatures(signatures, 0.15, work, execution, pairs,
                                     gpu::FilterKernel::fitting, &counts, &limit)
                    .ok());
    EXPECT_TRUE(limit.exceeded);
    EXPECT_GT(counts.repeated, 0u);
    EXPECT_LT(counts.filter_ms, 300);  // more, by estimate, where all that pass are counted
}

TEST_F(SignatureJoinOnDevice, EndsWhenAskedToStop) {
    const std::vector<std::string> strings(1000, "ABC");
    Execution execution(1);
    execution.request_stop();
    std::vector<IndexPair> pairs;
    EXPECT_EQ(gpu::join_letters(views_of(strings), 0.1, work, execution, pairs).code(),
              ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
