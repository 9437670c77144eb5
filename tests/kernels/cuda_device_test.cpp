// The GPU as gputextd uses it: every answer is the one of cpp/documents/near_duplicates.hpp.

#include "kernels/daemon/cuda_devices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <regex>
#include <thread>

#include "cpp/daemon/on_device.hpp"
#include "tests/support/device.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using namespace std::chrono_literals;
using testing::bytes_of;
using testing::corpus;
using testing::OnDevice;
using testing::Packed;
using testing::RandomStrings;
using testing::rounds;

constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;
constexpr NearDuplicateMode kModes[] = {NearDuplicateMode::ctph, NearDuplicateMode::exact};

/// An answer as plain values.
struct Answer {
    std::vector<std::uint32_t> first_copies;
    std::vector<std::tuple<std::uint32_t, std::uint32_t, double>> pairs;

    explicit Answer(const NearDuplicates& answer)
        : first_copies(answer.first_copies().begin(), answer.first_copies().end()) {
        for (const NearPair& pair : answer.near_pairs_of(0, UINT32_MAX))
            pairs.emplace_back(pair.first, pair.second, pair.edit_rate);
    }
    bool operator==(const Answer&) const = default;
};

class CudaDeviceTest : public OnDevice {
protected:
    void SetUp() override {
        OnDevice::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        ASSERT_FALSE(all().devices.empty()) << all().why_none;
        device_ = all().devices[0].get();
        device_->prepare();
    }

    static CudaDevices& all() {
        static CudaDevices devices = cuda_devices();
        return devices;
    }

    static Answer expected(const Packed& packed, const NearDuplicateParameters& parameters,
                           GivenSignatures signatures = {}) {
        Execution execution(4);
        auto answer = near_duplicates(parameters, packed.documents(), signatures, execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return Answer(*answer);
    }

    Status run(const Packed& packed, const NearDuplicateParameters& parameters,
               NearDuplicates& answer, std::uint64_t memory = 0, GivenSignatures signatures = {}) {
        Execution execution(4);
        if (memory == 0) memory = device_->free_memory();
        return run(*device_, packed, parameters, answer, memory, signatures, execution);
    }

    static Status run(Device& device, const Packed& packed,
                      const NearDuplicateParameters& parameters, NearDuplicates& answer,
                      std::uint64_t memory, GivenSignatures signatures, Execution& execution) {
        auto found = device.compute<NearDuplicatesOnDevice>(parameters, packed.documents(),
                                                            signatures, memory, execution);
        if (found.ok()) answer = std::move(*found);
        return found.status();
    }

    /// Returns how many pairs there are.
    std::size_t expect_same(const Packed& packed, const NearDuplicateParameters& parameters,
                            std::uint64_t memory = 0, GivenSignatures signatures = {}) {
        NearDuplicates answer;
        const Status status = run(packed, parameters, answer, memory, signatures);
        EXPECT_TRUE(status.ok()) << status.message();
        const Answer wanted = expected(packed, parameters, signatures);
        EXPECT_TRUE(Answer(answer) == wanted)
            << "mode " << static_cast<int>(parameters.mode) << ", threshold "
            << parameters.threshold << ", " << memory << " bytes: " << answer.near_pair_count()
            << " pairs instead of " << wanted.pairs.size();
        return wanted.pairs.size();
    }

    /// Most device memory that jobs have taken since the last call.
    static std::uint64_t most_used() {
        cudaMemPool_t pool = nullptr;
        std::uint64_t most = 0;
        std::uint64_t zero = 0;
        EXPECT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
        EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &most), cudaSuccess);
        EXPECT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero), cudaSuccess);
        return most;
    }

    Device* device_ = nullptr;
};

/// Families of versions, each of them some edits away from the one before.
std::vector<std::string> families(RandomStrings& random, std::size_t count, std::size_t versions,
                                  std::size_t length, std::size_t edits) {
    constexpr std::string_view letters = "etaoin shrdlucmfwypvbgk\n";
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) {
        texts.push_back(random.string(length / 2 + random.below(length), letters));
        for (std::size_t version = 1; version < versions; ++version)
            texts.push_back(random.edited(texts.back(), random.below(edits + 1), letters));
    }
    return texts;
}

/// Large clusters, which are searched in parts, chains, and texts of any kind: the components are
/// those of all pairs, and the answer keeps fewer pairs than documents.
TEST_F(CudaDeviceTest, HasTheComponentsOfAllPairs) {
    RandomStrings random;
    std::vector<std::vector<std::string>> cases{
        corpus(random, 600, 300), families(random, 3, 300, 200, 3), {}};
    const std::string base = random.string(150, std::string_view("etaoin shrdlu"));
    for (int i = 0; i < 6000; ++i)
        cases.back().push_back(i % 3 == 0 ? random.string(150, std::string_view("etaoin shrdlu"))
                                          : random.edited(base, 4, std::string_view("etaoin ")));
    for (const auto& texts : cases) {
        const Packed packed(texts);
        for (const NearDuplicateMode mode : kModes)
            for (const double threshold : {0.05, 0.2}) {
                NearDuplicateParameters parameters{threshold, mode};
                parameters.components_only = true;
                NearDuplicates answer;
                const Status status = run(packed, parameters, answer);
                ASSERT_TRUE(status.ok()) << status.message();
                EXPECT_LT(answer.near_pair_count(), texts.size());
                Execution execution(4);
                const auto wanted = near_duplicates(parameters, packed.documents(), {}, execution);
                ASSERT_TRUE(wanted.ok()) << wanted.status().message();
                EXPECT_EQ(*answer.components(), *wanted->components())
                    << static_cast<int>(mode) << ' ' << threshold;
            }
    }
}

TEST_F(CudaDeviceTest, SaysWhatItIs) {
    const DeviceInfo info = device_->info();
    EXPECT_NE(info.name, "");
    EXPECT_GT(info.memory, kMegabyte);
    EXPECT_TRUE(std::regex_match(info.driver, std::regex("([0-9.]+ \\(CUDA [0-9.]+\\)|CUDA .*)")))
        << info.driver;
    EXPECT_GT(device_->free_memory(), kMegabyte);
    EXPECT_LT(device_->free_memory(), info.memory);
}

TEST_F(CudaDeviceTest, AnswersForFewDocuments) {
    for (const std::vector<std::string>& texts :
         {std::vector<std::string>{},
          {""},
          {"", ""},
          {"a"},
          {"a", "b"},
          {"a", "a"},
          {"", "a", "", "ab", "abc", "abc", "abcd", "abcde"}}) {
        const Packed packed(texts);
        for (const auto mode : kModes)
            for (const double threshold : {0.0, 1e-9, 0.05, 0.3, 0.4999})
                expect_same(packed, {threshold, mode});
    }
}

TEST_F(CudaDeviceTest, AnswersAsTheHostDoes) {
    RandomStrings random;
    std::size_t pairs = 0;
    for (int round = 0; round < rounds(12); ++round) {
        const auto texts = corpus(random, 20 + random.below(500), 30 + random.below(2000));
        for (const auto& characters : {CharacterLengths::utf8(), CharacterLengths::single_byte()}) {
            const Packed packed(texts, characters);
            for (const auto mode : kModes)
                for (const double threshold : {0.0, 0.001, 0.05, 0.2, 0.4999})
                    pairs += expect_same(packed, {threshold, mode, 1 + random.below(200)});
        }
    }
    EXPECT_GT(pairs, 0u);
}

TEST_F(CudaDeviceTest, AnswersForRealFiles) {
    std::vector<std::string> texts;
    const std::size_t most = rounds(3000);
    std::error_code error;
    using Files = std::filesystem::recursive_directory_iterator;
    for (Files file("/usr/include", error); !error && file != Files() && texts.size() < most;
         file.increment(error)) {
        // Large ones take the host too long.
        if (!file->is_regular_file() || file->file_size() > 50000) continue;
        std::ifstream stream(file->path(), std::ios::binary);
        texts.emplace_back(std::istreambuf_iterator<char>(stream),
                           std::istreambuf_iterator<char>());
    }
    std::cout << texts.size() << " files\n";
    for (const auto& characters : {CharacterLengths::utf8(), CharacterLengths::single_byte()}) {
        const Packed packed(texts, characters);
        for (const auto mode : kModes)
            for (const double threshold : {0.01, 0.05, 0.15})
                expect_same(packed, {threshold, mode});
    }
}

TEST_F(CudaDeviceTest, TakesGivenSignatures) {
    RandomStrings random;
    const Packed packed(corpus(random, rounds(400), 900));
    const Documents& documents = packed.documents();
    // Signatures of other documents make a difference that shows; first of all, then of some.
    std::vector<std::optional<Ctph>> signatures;
    for (std::size_t i = 0; i < documents.size(); ++i)
        signatures.push_back(*ctph_signature(documents[i / 2], 50));
    const NearDuplicateParameters parameters{0.2, NearDuplicateMode::ctph, 50};
    for (const std::size_t missing : {0, 7, 2, 1}) {
        for (std::size_t i = 0; missing > 0 && i < signatures.size(); i += missing)
            signatures[i].reset();
        EXPECT_GT(expect_same(packed, parameters, 0, signatures), 0u);
        EXPECT_GT(expect_same(packed, parameters, 64 * kMegabyte, signatures), 0u);
    }
}

TEST_F(CudaDeviceTest, AnswersForManyCopies) {
    RandomStrings random;
    auto texts = families(random, 20, 3, 400, 12);
    const std::size_t distinct = texts.size();
    while (texts.size() < 50000u) texts.push_back(texts[random.below(distinct)]);
    const Packed packed(texts);
    for (const auto mode : kModes) EXPECT_GT(expect_same(packed, {0.05, mode}), 0u);
}

TEST_F(CudaDeviceTest, AnswersWhereAllDocumentsAreAlike) {
    RandomStrings random;
    // So many pairs have near signatures that mode ctph looks for near documents first.
    std::vector<std::string> texts(1, random.string(600, "etaoin shrdlucmfwypvbgk"));
    for (int i = 0; i < rounds(450); ++i) texts.push_back(random.edited(texts[0], 4, "etaoin"));
    const Packed packed(texts);
    for (const auto mode : kModes)
        for (const double threshold : {0.03, 0.1, 0.2})
            EXPECT_GT(expect_same(packed, {threshold, mode}), 0u);
}

TEST_F(CudaDeviceTest, AnswersForHugeDocuments) {
    RandomStrings random;
    // With few letters, a signature would have next to none.
    std::string letters(128, '\0');
    std::iota(letters.begin(), letters.end(), '\0');
    const auto huge = random.string<std::string>(rounds(6) * std::size_t{1000000}, letters);
    std::vector<std::string> texts{huge, random.edited<std::string>(huge, 300, letters),
                                   random.edited<std::string>(huge, 1, letters), huge, "small"};
    texts.push_back("\u6f22\u5b57" + huge);  // no longer of single bytes
    const Packed packed(texts);
    for (const auto mode : kModes) EXPECT_GT(expect_same(packed, {0.01, mode}), 1u);
}

TEST_F(CudaDeviceTest, WorksInTheMemoryGiven) {
    RandomStrings random;
    const auto texts = families(random, rounds(400), 8, 8000, 12);
    const std::uint64_t sizes[] = {5 * kMegabyte, 9 * kMegabyte, 32 * kMegabyte, 48 * kMegabyte,
                                   200 * kMegabyte};
    const Packed packed(texts, CharacterLengths::single_byte());
    for (const auto mode : kModes) {
        const NearDuplicateParameters parameters{0.05, mode};
        const Answer wanted = expected(packed, parameters);
        EXPECT_GT(wanted.pairs.size(), texts.size());
        int done = 0;
        for (const std::uint64_t memory : sizes) {
            NearDuplicates answer;
            most_used();
            const Status status = run(packed, parameters, answer, memory);
            EXPECT_LE(most_used(), memory);
            if (status.code() == ErrorCode::out_of_memory) {
                std::cout << status.message() << '\n';
                continue;
            }
            ASSERT_TRUE(status.ok()) << status.message();
            EXPECT_TRUE(Answer(answer) == wanted) << memory;
            ++done;
        }
        EXPECT_GE(done, mode == NearDuplicateMode::exact ? 5 : 2);
    }
}

// The documents before and behind the split are versions of each other, and copies.
TEST_F(CudaDeviceTest, AnswersBetweenTwoSides) {
    RandomStrings random;
    auto texts = families(random, rounds(300), 6, 3000, 60);
    for (std::size_t i = texts.size(); i > 1; --i) std::swap(texts[i - 1], texts[random.below(i)]);
    for (std::size_t i = 0; i < 40; ++i)
        texts[random.below(texts.size())] = texts[random.below(texts.size())];
    const Packed packed(texts, CharacterLengths::single_byte());
    for (const auto mode : kModes)
        for (const double threshold : {0.02, 0.05, 0.2})
            for (const std::size_t split :
                 {std::size_t{1}, texts.size() / 9, texts.size() * 4 / 5, texts.size()})
                for (const std::uint64_t memory : {std::uint64_t{0}, 48 * kMegabyte}) {
                    NearDuplicateParameters parameters{threshold, mode};
                    parameters.split = static_cast<std::uint32_t>(split);
                    const std::size_t pairs = expect_same(packed, parameters, memory);
                    EXPECT_TRUE(split == 1 || (pairs > 0) == (split < texts.size()));
                }
}

TEST_F(CudaDeviceTest, PartsAreTheAnswer) {
    RandomStrings random;
    const auto texts = families(random, rounds(400), 8, 4000, 12);
    const Packed packed(texts, CharacterLengths::single_byte());
    Execution execution(4);
    for (const std::size_t split : {std::size_t{0}, texts.size() / 5, texts.size() * 4 / 5}) {
        const auto first = static_cast<std::uint32_t>(split);
        FirstCopies copies;
        ASSERT_TRUE(copies.find(packed.documents(), {}, first, execution).ok());
        const DistinctDocuments distinct = copies.distinct();
        const auto signatures = device_->compute<SignaturesOnDevice>(
            distinct.documents, std::size_t{100}, device_->free_memory(), execution);
        ASSERT_TRUE(signatures.ok()) << signatures.status().message();
        std::vector<const Ctph*> all_signatures;
        for (const Ctph& signature : *signatures) all_signatures.push_back(&signature);
        DistinctDocuments with_signatures = distinct;
        with_signatures.signatures = all_signatures;
        for (const auto mode : kModes) {
            NearDuplicateParameters parameters{0.05, mode};
            parameters.split = first;
            const Answer wanted = expected(packed, parameters);
            for (const PairSource source : {PairSource::signatures, PairSource::documents}) {
                if (mode == NearDuplicateMode::exact && source == PairSource::signatures) continue;
                for (const std::uint32_t count : {2u, 3u, 5u}) {
                    // Parts may be computed in different memory: here as groups of documents.
                    std::vector<NearPair> all;
                    for (std::uint32_t index = 0; index < count; ++index) {
                        const auto part = device_->compute<NearPairsOnDevice>(
                            parameters,
                            source == PairSource::signatures ? with_signatures : distinct,
                            PairPart{index, count, source},
                            index % 2 == 0 ? device_->free_memory() : 48 * kMegabyte, execution);
                        ASSERT_TRUE(part.ok()) << part.status().message();
                        ASSERT_FALSE(part->too_many);
                        all.insert(all.end(), part->pairs.begin(), part->pairs.end());
                    }
                    FirstCopies again;
                    ASSERT_TRUE(again.find(packed.documents(), {}, first, execution).ok());
                    const auto answer = again.answer(std::move(all), execution);
                    ASSERT_TRUE(answer.ok());
                    EXPECT_TRUE(Answer(*answer) == wanted) << count << " parts";
                }
            }
        }
    }
}

TEST_F(CudaDeviceTest, WorksInTheMemoryGivenOnWideCharacters) {
    RandomStrings random;
    const Packed packed(corpus(random, rounds(3000), 3000));
    for (const auto mode : kModes)
        for (const std::uint64_t memory : {6 * kMegabyte, 30 * kMegabyte, 40 * kMegabyte}) {
            NearDuplicates answer;
            most_used();
            const Status status = run(packed, {0.1, mode}, answer, memory);
            EXPECT_LE(most_used(), memory);
            if (mode == NearDuplicateMode::ctph && status.code() == ErrorCode::out_of_memory)
                continue;
            ASSERT_TRUE(status.ok()) << status.message();
            EXPECT_TRUE(Answer(answer) == expected(packed, {0.1, mode})) << memory;
        }
}

TEST_F(CudaDeviceTest, SaysHowMuchMemoryItNeeds) {
    RandomStrings random;
    const auto text = random.string(3000000, "etaoin");
    const Packed packed({text, text + "a", "b"});
    for (const auto mode : kModes) {
        NearDuplicates answer;
        const Status status = run(packed, {0.05, mode}, answer, kMegabyte);
        EXPECT_EQ(status.code(), ErrorCode::out_of_memory);
        std::smatch found;
        ASSERT_TRUE(std::regex_match(
            status.message(), found,
            std::regex("this job needs at least ([0-9]+) MB of device memory, and may take 1 MB")))
            << status.message();
        // Mode ctph hashes first, and a join says itself what it needs.
        if (mode == NearDuplicateMode::ctph) continue;
        const std::uint64_t least = std::stoull(found[1]) * kMegabyte;
        EXPECT_TRUE(run(packed, {0.05, mode}, answer, least).ok());
        EXPECT_EQ(run(packed, {0.05, mode}, answer, least - kMegabyte).code(),
                  ErrorCode::out_of_memory);
    }
}

TEST_F(CudaDeviceTest, GoesOnAfterMemoryThatWasNotThere) {
    RandomStrings random;
    const Packed packed(families(random, rounds(400), 8, 8000, 12));
    const NearDuplicateParameters parameters{0.05, NearDuplicateMode::exact};
    device_->release_memory();
    std::size_t available = 0;
    std::size_t total = 0;
    ASSERT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
    const std::size_t left = rounds(32) * kMegabyte;
    ASSERT_GT(available, left);
    void* others = nullptr;
    ASSERT_EQ(cudaMalloc(&others, available - left), cudaSuccess);
    EXPECT_LE(device_->free_memory(), left);
    NearDuplicates answer;
    const Status status = run(packed, parameters, answer, total);
    EXPECT_EQ(status.code(), ErrorCode::out_of_memory) << status.message();
    EXPECT_EQ(cudaFree(others), cudaSuccess);
    EXPECT_GT(expect_same(packed, parameters), 0u);
}

/// Vectors with elements of type float32.
Vectors vectors_of(const std::vector<float>& elements, std::size_t dimensions) {
    return {
        ElementType::float32, elements.size() / dimensions, dimensions, elements.data(), {}, {}};
}

TEST_F(CudaDeviceTest, NeighborsOfManyCopiesAreTheHosts) {
    RandomStrings random;
    const std::size_t count = rounds(20000);
    // All equal; nearly all; each of a thousand many times; none.
    for (const std::size_t values : {std::size_t{1}, std::size_t{10}, std::size_t{1000}, count}) {
        std::vector<float> elements;
        for (std::size_t row = 0; row < count; ++row) {
            const std::size_t value =
                values == 10 && random.below(10) != 0 ? 1 : random.below(values);
            elements.push_back(static_cast<float>(value));
            elements.push_back(static_cast<float>(value % 7));
        }
        const Vectors items = vectors_of(elements, 2);
        std::vector<std::uint32_t> own(count);
        std::iota(own.begin(), own.end(), 0u);
        for (const RowKeys& keys : {RowKeys{}, RowKeys{own, own}}) {
            const KnnParameters parameters{.k = 10, .metric = Metric::euclidean};
            Execution execution(4);
            const auto answer = device_->compute<KnnOnDevice>(parameters, items, items, keys,
                                                              device_->free_memory(), execution);
            ASSERT_TRUE(answer.ok()) << answer.status().message();
            const auto wanted = knn(parameters, items, items, keys, execution);
            EXPECT_EQ(answer->begins, wanted->begins);
            EXPECT_EQ(answer->items, wanted->items);
            EXPECT_EQ(answer->distances, wanted->distances);
        }
    }
}

TEST_F(CudaDeviceTest, WordsHaveTheHostsNeighbors) {
    RandomStrings random;
    const CooccurrenceShape shape{200, 3, true};
    std::vector<std::uint32_t> words, positions;
    for (std::uint32_t i = 0; i < 5000; ++i) {
        words.push_back(static_cast<std::uint32_t>(random.below(1 + random.below(shape.words))));
        positions.push_back(i + i / 20 * 10);
    }
    const TokenStream tokens{words, positions};
    const SimilarityParameters parameters;
    Execution execution(4);
    const auto counts = count_cooccurrences(shape, tokens, kMegabyte, execution);
    ASSERT_TRUE(counts.ok());
    const auto features = weigh_features({}, *counts, execution);
    ASSERT_TRUE(features.ok());
    const auto wanted = word_similarities(parameters, *features, execution);
    ASSERT_TRUE(wanted.ok());
    const auto of_texts = device_->compute<WordSimilarityOnDevice>(
        parameters, WeightParameters(), shape, tokens, 256 * kMegabyte, execution);
    const auto of_counts = device_->compute<CountedSimilarityOnDevice>(
        parameters, WeightParameters(), *counts, 256 * kMegabyte, execution);
    for (const auto* found : {&of_texts, &of_counts}) {
        ASSERT_TRUE(found->ok()) << found->status().message();
        EXPECT_EQ((**found).begins, wanted->begins);
        EXPECT_EQ((**found).neighbors, wanted->neighbors);
        EXPECT_EQ((**found).similarities, wanted->similarities);
    }
}

TEST_F(CudaDeviceTest, RefusesParametersOutOfRange) {
    const Packed packed({"a", "b"});
    NearDuplicates answer;
    EXPECT_EQ(run(packed, {0.5}, answer).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(run(packed, {0.05, NearDuplicateMode::ctph, 0}, answer).code(),
              ErrorCode::invalid_argument);
}

TEST_F(CudaDeviceTest, StopsWheneverItIsAsked) {
    RandomStrings random;
    const Packed packed(families(random, rounds(300), 10, 10000, 900));
    std::map<std::string, int> stopped_in;
    for (const auto mode : kModes) {
        // Groups of documents, too.
        for (const std::uint64_t memory : {64 * kMegabyte, 1024 * kMegabyte}) {
            const NearDuplicateParameters parameters{0.12, mode};
            NearDuplicates answer;
            const auto begin = std::chrono::steady_clock::now();
            ASSERT_TRUE(run(packed, parameters, answer, memory).ok());
            const Answer wanted(answer);
            const auto whole = std::chrono::steady_clock::now() - begin;
            for (int round = 0; round < rounds(25); ++round) {
                Execution execution(4);
                std::chrono::steady_clock::time_point asked;
                std::string phase;
                std::thread stopper([&] {
                    std::this_thread::sleep_for(whole * static_cast<double>(random.below(1000)) /
                                                1000);
                    phase = execution.phase();
                    asked = std::chrono::steady_clock::now();
                    execution.request_stop();
                });
                const Status status =
                    run(*device_, packed, parameters, answer, memory, {}, execution);
                const auto ended = std::chrono::steady_clock::now();
                stopper.join();
                if (status.ok()) {
                    EXPECT_TRUE(Answer(answer) == wanted);
                    continue;
                }
                EXPECT_EQ(status.code(), ErrorCode::cancelled) << status.message();
                // A checker of the device makes it slow.
                if (rounds(10) == 10) {
                    EXPECT_LT(ended - asked, 200ms) << phase;
                }
                ++stopped_in[phase];
            }
            ASSERT_TRUE(run(packed, parameters, answer, memory).ok());
            EXPECT_TRUE(Answer(answer) == wanted);
        }
    }
    for (const auto& [phase, count] : stopped_in)
        std::cout << "stopped while " << phase << ": " << count << '\n';
}

TEST_F(CudaDeviceTest, WorksBesideOtherDevices) {
    RandomStrings random;
    const Packed packed(families(random, rounds(300), 4, 3000, 30));
    const Answer wanted = expected(packed, {0.05, NearDuplicateMode::exact});
    std::cout << all().devices.size() << " devices\n";
    std::vector<std::thread> threads;
    for (const auto& device : all().devices)
        threads.emplace_back([&, device = device.get()] {
            device->prepare();
            for (int round = 0; round < rounds(20); ++round) {
                Execution execution(3);
                NearDuplicates answer;
                const Status status = run(*device, packed, {0.05, NearDuplicateMode::exact}, answer,
                                          device->free_memory(), {}, execution);
                EXPECT_TRUE(status.ok()) << status.message();
                EXPECT_TRUE(Answer(answer) == wanted);
            }
        });
    for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaDeviceTest, KeepsNoMemoryOfJobs) {
    RandomStrings random;
    const Packed packed(families(random, 50, 4, 5000, 100));
    NearDuplicates answer;
    for (const auto mode : kModes) ASSERT_TRUE(run(packed, {0.05, mode}, answer).ok());
    device_->release_memory();
    const std::uint64_t before = device_->free_memory();
    for (int round = 0; round < 20; ++round)
        for (const auto mode : kModes) {
            ASSERT_TRUE(run(packed, {0.05, mode}, answer).ok());
            Execution stopped(2);
            stopped.request_stop();
            EXPECT_EQ(run(*device_, packed, {0.05, mode}, answer, before, {}, stopped).code(),
                      ErrorCode::cancelled);
        }
    // What the pool keeps counts as free.
    EXPECT_GT(device_->free_memory() + 64 * kMegabyte, before);
    device_->release_memory();
    EXPECT_GT(device_->free_memory() + 64 * kMegabyte, before);
}

TEST(CudaDevices, SayWhyThereAreNone) {
    const CudaDevices found = cuda_devices();
    EXPECT_EQ(found.devices.empty(), !found.why_none.empty());
    if (found.devices.empty()) std::cout << found.why_none << '\n';
}

}  // namespace
}  // namespace gputext
