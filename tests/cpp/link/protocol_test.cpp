#include "cpp/link/protocol.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "cpp/link/mapped_file.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/link/message_socket.hpp"
#include "tests/fuzz/protocol_seeds.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::RandomStrings;
using testing::sample_messages;

TEST(Protocol, ReadsWhatItWrites) {
    for (const Message& message : sample_messages()) {
        const auto packet = encode(message);
        EXPECT_LE(packet.size(), kMaxMessageSize);
        const auto read = decode(packet, descriptors_of(message));
        ASSERT_TRUE(read.ok()) << read.status().message();
        EXPECT_EQ(read->index(), message.index());
        EXPECT_EQ(encode(*read), packet);
    }
}

TEST(Protocol, RefusesMessagesOfAnyOtherLength) {
    for (const Message& message : sample_messages()) {
        auto packet = encode(message);
        const std::size_t descriptors = descriptors_of(message);
        const auto fits = [&](std::size_t size) {
            auto cut = packet;
            cut.resize(size);
            if (size >= 12) {
                const auto body = static_cast<std::uint32_t>(size - 16);
                std::memcpy(cut.data() + 8, &body, sizeof body);
            }
            return decode(cut, descriptors).ok();
        };
        for (std::size_t size = 0; size < packet.size(); ++size) ASSERT_FALSE(fits(size)) << size;
        ASSERT_TRUE(fits(packet.size()));
        ASSERT_FALSE(fits(packet.size() + 1));
    }
}

TEST(Protocol, RefusesAWrongNumberOfDescriptors) {
    for (const Message& message : sample_messages())
        for (std::size_t descriptors = 0; descriptors < kMaxDescriptors + 2; ++descriptors)
            EXPECT_EQ(decode(encode(message), descriptors).ok(),
                      descriptors == descriptors_of(message));
}

TEST(Protocol, RefusesOtherMagicVersionsTypesAndChoices) {
    const auto changed = [](const Message& message, std::size_t at, std::uint8_t byte) {
        auto packet = encode(message);
        packet[at] = byte;
        return decode(packet, descriptors_of(message)).status();
    };
    EXPECT_EQ(changed(AskDevices(), 0, 'g').code(), ErrorCode::invalid_argument);
    EXPECT_EQ(changed(AskDevices(), 4, 200).code(), ErrorCode::unavailable);
    EXPECT_EQ(changed(AskDevices(), 4, 200).message(),
              "version 200 of the protocol instead of " + std::to_string(kProtocolVersion));
    EXPECT_EQ(changed(AskDevices(), 6, 0).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(changed(AskDevices(), 6, 200).code(), ErrorCode::invalid_argument);
    // The code of an error, and whether a job has signatures.
    const ErrorReply error{ErrorCode::io_error, "", "", 0};
    EXPECT_EQ(changed(error, 16, 0).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(changed(error, 16, 100).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(changed(SubmitNearDuplicates(), 60, 2).code(), ErrorCode::invalid_argument);
}

TEST(Protocol, CutsWhatIsTooLongAndShowsNoControlCharacters) {
    const ErrorReply error{ErrorCode::io_error, std::string(100000, 'x'), "a\n\x80z", 0};
    const auto read = decode(encode(error), 0);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(std::get<ErrorReply>(*read).message, std::string(kMaxSentence, 'x'));
    EXPECT_EQ(std::get<ErrorReply>(*read).hint, "a??z");

    ActivityList activity;
    const std::string longest(1000, 'p');
    activity.jobs.resize(10000, {1, longest, 0, longest, 0, 0, 0, 0, 0});
    EXPECT_LE(encode(activity).size(), kMaxMessageSize);
    DeviceList devices;
    devices.devices.resize(10000, {longest, 0, longest});
    EXPECT_LE(encode(devices).size(), kMaxMessageSize);
    const auto few = decode(encode(activity), 0);
    ASSERT_TRUE(few.ok());
    EXPECT_EQ(std::get<ActivityList>(*few).jobs.size(), kMaxActivity);
}

TEST(Protocol, RefusesDocumentsOutsideTheBytes) {
    const auto good = [](Extent extent) { return check_extents({&extent, 1}, 100).ok(); };
    EXPECT_TRUE(good({0, 100}));
    EXPECT_TRUE(good({100, 0}));
    EXPECT_FALSE(good({0, 101}));
    EXPECT_FALSE(good({101, 0}));
    EXPECT_FALSE(good({50, UINT64_MAX}));
    EXPECT_FALSE(good({UINT64_MAX, 2}));
    const Extent large{0, std::uint64_t{1} << 31};
    EXPECT_FALSE(check_extents({&large, 1}, UINT64_MAX).ok());
}

TEST(Protocol, CarriesSignatures) {
    RandomStrings random;
    std::vector<std::optional<Ctph>> signatures;
    constexpr int kSignatures = 10000;  // for several threads
    for (int i = 0; i < kSignatures; ++i) {
        signatures.emplace_back();
        if (random.below(3) == 0) continue;
        const auto text = random.string(random.below(500), "abcdefgh");
        signatures.back() = *ctph_signature(bytes_of(text), 1 + random.below(100));
    }
    Execution execution(3);
    const auto read = unpack_signatures(pack_signatures(signatures), signatures.size(), execution);
    ASSERT_TRUE(read.ok());
    for (std::size_t i = 0; i < signatures.size(); ++i) {
        ASSERT_EQ(signatures[i].has_value(), (*read)[i].has_value());
        if (signatures[i]) {
            EXPECT_EQ(format_ctph(*signatures[i]), format_ctph(*(*read)[i]));
        }
    }
    EXPECT_FALSE(unpack_signatures(pack_signatures(signatures), kSignatures + 1, execution).ok());
    EXPECT_FALSE(unpack_signatures(pack_signatures(signatures), kSignatures - 1, execution).ok());
    EXPECT_FALSE(unpack_signatures({}, 1, execution).ok());
    EXPECT_TRUE(unpack_signatures({}, 0, execution).ok());
    auto broken = pack_signatures(signatures);
    broken.back() = '!';
    EXPECT_FALSE(unpack_signatures(broken, kSignatures, execution).ok());
    execution.request_stop();
    EXPECT_EQ(
        unpack_signatures(pack_signatures(signatures), kSignatures, execution).status().code(),
        ErrorCode::cancelled);
}

TEST(Protocol, LaysRepliesOutWithoutOverflow) {
    EXPECT_EQ(reply_layout(0, 0)->size, 0u);
    EXPECT_EQ(reply_layout(3, 2)->pairs_begin, 16u);
    EXPECT_EQ(reply_layout(3, 2)->size, 48u);
    EXPECT_FALSE(reply_layout(UINT32_MAX, UINT64_MAX).has_value());
    EXPECT_FALSE(reply_layout(1, std::uint64_t{1} << 60).has_value());
}

TEST(Protocol, RefusesMatricesThatCannotBe) {
    const auto good = [](const MatrixShape& items) {
        SubmitOutlierFactor submit;
        submit.items = items;
        return decode(encode(submit), descriptors_of(submit)).ok();
    };
    EXPECT_TRUE(good({ElementType::float16, 3, 5, false, 15}));
    EXPECT_TRUE(good({ElementType::float32, 3, 5, true, 2}));
    EXPECT_TRUE(good({}));
    EXPECT_FALSE(good({ElementType::float16, 3, 5, false, 14}));
    EXPECT_FALSE(good({ElementType::float64, 3, 5, true, 2}));
    EXPECT_FALSE(good({ElementType::float32, UINT32_MAX, 1, false, UINT32_MAX}));
    EXPECT_FALSE(good({ElementType::float32, 2, std::uint64_t{1} << 63, false, 0}));
    EXPECT_FALSE(good({ElementType::float32, 2, 5, true, UINT64_MAX}));
}

TEST(Protocol, RefusesLayersThatCannotBe) {
    SubmitHnswLinks good;
    good.values = {ElementType::float16, 3, 5, false, 15};
    good.linked = 3;
    const auto passes = [&](auto change) {
        SubmitHnswLinks changed = good;
        change(changed);
        return decode(encode(changed), descriptors_of(changed)).ok();
    };
    EXPECT_TRUE(passes([](SubmitHnswLinks&) {}));
    EXPECT_TRUE(passes([](SubmitHnswLinks& submit) { submit.linked = 0; }));
    EXPECT_FALSE(passes([](SubmitHnswLinks& submit) { submit.linked = 4; }));
    EXPECT_FALSE(passes([](SubmitHnswLinks& submit) {
        submit.values = {ElementType::float32, 3, 5, true, 2};
    }));
    const auto with_centroids = [&](const MatrixShape& shape) {
        return passes([&](SubmitHnswLinks& submit) { submit.centroids = shape; });
    };
    EXPECT_TRUE(with_centroids({ElementType::float32, 2, 5, false, 10}));
    EXPECT_FALSE(with_centroids({ElementType::float32, 2, 4, false, 8}));
    EXPECT_FALSE(with_centroids({ElementType::float16, 2, 5, false, 10}));
    EXPECT_FALSE(with_centroids({ElementType::float32, 2, 5, true, 3}));
    EXPECT_FALSE(with_centroids({ElementType::float32, 70000, 5, false, 350000}));
    EXPECT_FALSE(passes([](SubmitHnswLinks& submit) { submit.parameters.probing_rows = 0; }));
    EXPECT_FALSE(passes([](SubmitHnswLinks& submit) { submit.parameters.candidates = 0; }));
    EXPECT_FALSE(passes([](SubmitHnswLinks& submit) { submit.parameters.block_rows = 0; }));
    EXPECT_FALSE(passes([](SubmitHnswLinks& submit) { submit.parameters.places = 0; }));
    EXPECT_FALSE(passes([](SubmitHnswLinks& submit) { submit.parameters.places = 65537; }));
}

TEST(Protocol, RefusesTextsThatCannotBe) {
    const auto good = [](const MatrixShape& queries, const MatrixShape& items) {
        SubmitTermKnn submit;
        submit.search.queries = queries;
        submit.search.items = items;
        return decode(encode(submit), descriptors_of(submit)).ok();
    };
    const MatrixShape counts{ElementType::int32, 3, 5, true, 2};
    const MatrixShape weights{ElementType::float32, 7, 5, true, 20};
    EXPECT_TRUE(good(counts, weights));
    EXPECT_TRUE(good(weights, counts));
    EXPECT_FALSE(good(counts, {ElementType::int32, 3, 5, false, 15}));
    EXPECT_FALSE(good({ElementType::float64, 3, 5, true, 2}, weights));
    EXPECT_FALSE(good({ElementType::float16, 3, 5, true, 2}, weights));
    EXPECT_FALSE(good({ElementType::int32, UINT32_MAX, 5, true, 2}, weights));
    EXPECT_FALSE(good(counts, {ElementType::int32, 3, std::uint64_t{1} << 63, true, 2}));
}

TEST(Protocol, RefusesStringsThatCannotBe) {
    const auto good = [](const StringsShape& queries, const StringsShape& items) {
        SubmitNearestStrings submit;
        submit.queries = queries;
        submit.items = items;
        return decode(encode(submit), descriptors_of(submit)).ok();
    };
    EXPECT_TRUE(good({0, 0}, {UINT32_MAX - 1, 1}));
    EXPECT_FALSE(good({UINT32_MAX, 1}, {1, 1}));
    EXPECT_FALSE(good({1, 1}, {UINT32_MAX, 1}));
    EXPECT_FALSE(good({1, UINT64_MAX}, {1, 1}));
    EXPECT_FALSE(good({1, 1}, {1, kMostStored}));
}

TEST(Protocol, RefusesBitsThatCannotBe) {
    const auto good = [](const MatrixShape& queries, const MatrixShape& items) {
        SubmitNearestBits submit;
        submit.search.queries = queries;
        submit.search.items = items;
        return decode(encode(submit), descriptors_of(submit)).ok();
    };
    const MatrixShape bits{ElementType::bit, 3, 70, false, 210};
    EXPECT_TRUE(good(bits, bits));
    EXPECT_EQ(bits.element_bytes(), 36u);
    EXPECT_FALSE(good({ElementType::int32, 3, 70, false, 210}, bits));
    EXPECT_FALSE(good(bits, {ElementType::bit, 3, 70, false, 211}));
    EXPECT_FALSE(good(bits, {ElementType::bit, 3, 70, true, 210}));
    EXPECT_FALSE(good({ElementType::bit, UINT32_MAX, 0, false, 0}, bits));
    // No other operator takes them.
    EXPECT_FALSE(bits.consistent() || bits.consistent_texts() || bits.consistent_model());
}

TEST(Protocol, CountsTheFilesOfMatrices) {
    SubmitKnn submit;
    EXPECT_EQ(descriptors_of(submit), 2u);
    submit.search.has_keys = true;
    EXPECT_EQ(descriptors_of(submit), 3u);
    submit.search.has_matches = true;
    EXPECT_EQ(descriptors_of(submit), 4u);
    submit.search.has_keys = false;
    EXPECT_EQ(descriptors_of(submit), 3u);
    submit.search.has_keys = true;
    submit.search.queries.sparse = submit.search.items.sparse = true;
    EXPECT_EQ(descriptors_of(submit), 8u);
    submit.search.items.parts.parts = 5;
    EXPECT_EQ(descriptors_of(submit), 12u);
    submit.search.queries.parts.parts = submit.search.items.parts.parts = kMostParts;
    EXPECT_EQ(descriptors_of(submit), kMaxDescriptors);
    SubmitNearDuplicates documents;
    EXPECT_EQ(descriptors_of(documents), 2u);
    documents.bytes_parts.parts = kMostParts;
    documents.has_signatures = true;
    EXPECT_EQ(descriptors_of(documents), kMostParts + 2);
}

TEST(Protocol, RefusesASplitBehindTheDocuments) {
    SubmitNearDuplicates documents;
    documents.documents = 7;
    for (const std::uint32_t split : {0u, 3u, 7u, 8u, UINT32_MAX}) {
        documents.parameters.split = split;
        EXPECT_EQ(decode(encode(documents), descriptors_of(documents)).ok(), split <= 7) << split;
    }
}

TEST(Protocol, RefusesPartsThatCannotBe) {
    const std::uint64_t page = page_size();
    const auto good = [](PartsShape parts, std::uint64_t size) {
        // Both kinds of input, a matrix of single bytes not being one of them.
        SubmitNearDuplicates documents;
        documents.bytes_parts = parts;
        documents.bytes_size = size;
        SubmitKnn search;
        search.search.items = {ElementType::float32, 1, size / 4, false, size / 4, parts};
        // What a message says of the number of its files is not believed when there are more.
        const auto arrives = [](const Message& message) {
            const std::size_t files = std::min(descriptors_of(message), kMaxDescriptors);
            return decode(encode(message), files).ok();
        };
        EXPECT_EQ(arrives(documents), arrives(search)) << parts.parts << ' ' << parts.part_bytes;
        EXPECT_EQ(arrives(documents), parts.hold(size));
        return arrives(documents);
    };
    EXPECT_TRUE(good({1, 0}, 100));
    EXPECT_TRUE(good({1, 0}, 0));
    EXPECT_TRUE(good({2, page}, page + 4));
    EXPECT_TRUE(good({2, page}, 2 * page));
    EXPECT_TRUE(good({kMostParts, page}, kMostParts * page));
    EXPECT_FALSE(good({0, 0}, 0));
    EXPECT_FALSE(good({0, page}, 100));
    EXPECT_FALSE(good({1, page}, 100));
    EXPECT_FALSE(good({2, page}, 0));
    EXPECT_FALSE(good({2, page}, page));
    EXPECT_FALSE(good({2, page}, 2 * page + 4));
    EXPECT_FALSE(good({2, 0}, page + 4));
    EXPECT_FALSE(good({2, page / 2}, page));
    EXPECT_FALSE(good({2, page + 4}, page + 8));
    EXPECT_FALSE(good({2, UINT64_MAX}, page + 4));
    EXPECT_FALSE(good({kMostParts + 1, page}, (kMostParts + 1) * page));
    EXPECT_FALSE(good({UINT32_MAX, page}, UINT32_MAX * page));
    EXPECT_FALSE(good({UINT32_MAX, UINT64_MAX / page * page}, page));
}

TEST(Protocol, TermsComeInTheirFiles) {
    const auto arrives = [](const Message& message) {
        return decode(encode(message), std::min(descriptors_of(message), kMaxDescriptors)).ok();
    };
    EXPECT_TRUE(arrives(AddTerms{0, 0, 8}));
    EXPECT_TRUE(arrives(AddTerms{100, 9, 80}));
    EXPECT_FALSE(arrives(AddTerms{100, 9, 79}));
    EXPECT_FALSE(arrives(AddTerms{100, UINT32_MAX, kMostStored}));
    EXPECT_FALSE(arrives(AddTerms{100, UINT64_MAX, 0})) << "there are no begins of 2^64 words";
    EXPECT_FALSE(arrives(AddTerms{kMostStored + 1, 9, 80}));
    EXPECT_FALSE(arrives(AddTerms{100, 9, kMostStored + 1}));
    EXPECT_TRUE(arrives(TakenTerms{kMostTermChunks, 1000}));
    EXPECT_FALSE(arrives(TakenTerms{kMostTermChunks + 1, 1000}));
    EXPECT_FALSE(arrives(TakenTerms{1, std::uint64_t{1} << 32}));
    EXPECT_EQ(descriptors_of(TakenTerms{kMostTermChunks, 1000}), 65u);
    EXPECT_FALSE(has_words(ValueForm::vector) || has_words(ValueForm::document));
    EXPECT_TRUE(has_words(ValueForm::counted_terms) && has_words(ValueForm::word_positions));
}

TEST(Protocol, RefusesRowsOutsideTheirMatrix) {
    const auto good = [](std::vector<std::uint64_t> begins, std::uint64_t stored) {
        return check_row_begins(begins, stored, {}).ok();
    };
    EXPECT_TRUE(good({0}, 0));
    EXPECT_TRUE(good({0, 0, 3, 3, 7}, 7));
    EXPECT_FALSE(good({}, 0));
    EXPECT_FALSE(good({0, 3}, 4));
    EXPECT_FALSE(good({1, 4}, 4));
    EXPECT_FALSE(good({0, 5, 4}, 4));
    EXPECT_FALSE(good({0, 3, 2, 4}, 4));
    EXPECT_FALSE(good({0, UINT64_MAX}, 4));
}

TEST(Protocol, RefusesWordsAndStructuresThatCannotBe) {
    const auto good = [](const auto& submit) {
        return decode(encode(submit), descriptors_of(submit)).ok();
    };
    SubmitWordLookup lookup;
    lookup.dictionary_bytes = 1 << 20;
    lookup.words = {UINT32_MAX - 1, std::uint64_t{1} << 56};
    SubmitTrieBuild build;
    build.words = lookup.words;
    EXPECT_TRUE(good(lookup));
    EXPECT_TRUE(good(build));
    EXPECT_EQ(descriptors_of(lookup), 3u);
    EXPECT_EQ(descriptors_of(build), 2u);
    for (const std::uint32_t number : {0u, 1000u, UINT32_MAX}) {
        SubmitTrieBuild other = build;
        other.structure = static_cast<TrieStructure>(number);
        EXPECT_FALSE(good(other)) << number;
    }
    for (const WordsShape words : {WordsShape{UINT32_MAX, 1}, WordsShape{1, UINT64_MAX}}) {
        lookup.words = build.words = words;
        EXPECT_FALSE(good(lookup));
        EXPECT_FALSE(good(build));
    }
    lookup.words = {1, 1};
    lookup.dictionary_bytes = UINT64_MAX;
    EXPECT_FALSE(good(lookup));
}

TEST(Protocol, RefusesThesauriThatCannotBe) {
    const auto good = [](const SubmitWordSimilarity& submit) {
        return decode(encode(submit), descriptors_of(submit)).ok();
    };
    SubmitWordSimilarity submit;
    submit.shape.words = UINT32_MAX - 1;
    submit.count = std::uint64_t{1} << 56;
    EXPECT_EQ(descriptors_of(submit), 2u);
    EXPECT_TRUE(good(submit));
    SubmitWordSimilarity other = submit;
    other.shape.words = UINT32_MAX;
    EXPECT_FALSE(good(other));
    other = submit;
    ++other.count;
    EXPECT_FALSE(good(other));
    other = submit;
    other.weighting.weight = static_cast<WordWeight>(3);
    EXPECT_FALSE(good(other));
    other = submit;
    other.parameters.measure = static_cast<WordMeasure>(3);
    EXPECT_FALSE(good(other));
}

TEST(Protocol, RefusesTrainingsThatCannotBe) {
    const auto good = [](const SubmitWord2Vec& submit) {
        return decode(encode(submit), descriptors_of(submit)).ok();
    };
    SubmitWord2Vec submit;
    submit.words = submit.known = UINT32_MAX - 1;
    submit.tokens = std::uint64_t{1} << 56;
    submit.parameters.dimensions = TrainerParameters::kMostDimensions;
    EXPECT_EQ(descriptors_of(submit), 4u);
    EXPECT_TRUE(good(submit));
    SubmitWord2Vec other = submit;
    other.known = 0;
    EXPECT_EQ(descriptors_of(other), 3u);
    EXPECT_TRUE(good(other));
    other.words = UINT32_MAX;
    EXPECT_FALSE(good(other));
    other = submit;
    --other.words;
    EXPECT_FALSE(good(other));
    other = submit;
    ++other.tokens;
    EXPECT_FALSE(good(other));
    other = submit;
    ++other.parameters.dimensions;
    EXPECT_FALSE(good(other));
    other = submit;
    other.parameters.model = static_cast<WordModel>(2);
    EXPECT_FALSE(good(other));
    Word2VecReply reply;
    reply.words = UINT32_MAX;
    EXPECT_FALSE(decode(encode(reply), 1).ok());
}

TEST(Protocol, RefusesModelsThatCannotBe) {
    const auto good = [](const auto& submit) {
        return decode(encode(submit), descriptors_of(submit)).ok();
    };
    const MatrixShape model{ElementType::float32, 50, 8, false, 400};
    SubmitWordMovers movers;
    movers.vectors = model;
    SubmitSequenceProbability sequences;
    sequences.vectors = sequences.outputs = model;
    EXPECT_EQ(descriptors_of(movers), 4u);
    EXPECT_EQ(descriptors_of(sequences), 4u);
    EXPECT_TRUE(good(movers));
    EXPECT_TRUE(good(sequences));
    MatrixShape doubles = model, sparse = model, larger = model;
    doubles.element = ElementType::float64;
    sparse.sparse = true;
    ++larger.stored;
    for (const MatrixShape& bad : {doubles, sparse, larger}) {
        SubmitWordMovers other = movers;
        other.vectors = bad;
        EXPECT_FALSE(good(other));
        SubmitSequenceProbability third = sequences;
        third.outputs = bad;
        EXPECT_FALSE(good(third));
        third = sequences;
        third.vectors = bad;
        EXPECT_FALSE(good(third));
    }
    SubmitSequenceProbability fewer = sequences;
    fewer.outputs = {ElementType::float32, 49, 8, false, 392};
    EXPECT_FALSE(good(fewer));
    SubmitWordMovers many = movers;
    many.pairs = UINT32_MAX;
    EXPECT_FALSE(good(many));
    many = movers;
    many.masses = (std::uint64_t{1} << 56) + 1;
    EXPECT_FALSE(good(many));
    many = movers;
    many.parameters.method = static_cast<MoversMethod>(2);
    EXPECT_FALSE(good(many));
    fewer = sequences;
    fewer.tokens = (std::uint64_t{1} << 56) + 1;
    EXPECT_FALSE(good(fewer));
}

TEST(Protocol, RefusesWordsOutsideTheirBytes) {
    const auto good = [](std::vector<std::uint64_t> begins, std::uint64_t bytes) {
        return check_word_begins(begins, bytes, {}).ok();
    };
    EXPECT_TRUE(good({0}, 0));
    EXPECT_TRUE(good({0, 0, 3, 3, 7}, 7));
    EXPECT_TRUE(good({0, UINT32_MAX}, UINT32_MAX));
    EXPECT_FALSE(good({}, 0));
    EXPECT_FALSE(good({0, 3}, 4));
    EXPECT_FALSE(good({1, 4}, 4));
    EXPECT_FALSE(good({0, 5, 4}, 4));
    EXPECT_FALSE(good({0, 3, 2, 4}, 4));
    EXPECT_FALSE(good({0, UINT64_MAX, 4}, 4));
    EXPECT_FALSE(good({0, std::uint64_t{1} << 32}, std::uint64_t{1} << 32));
}

TEST(Protocol, RefusesCodesThatAreNone) {
    const auto unpack = [](std::vector<std::uint32_t> codes, std::uint32_t count) {
        return unpack_codes(testing::raw_bytes(codes), count, 7);
    };
    const auto good = unpack({6, Trie::kNone, 0}, 3);
    ASSERT_TRUE(good.ok());
    EXPECT_EQ(*good, (std::vector<std::uint32_t>{6, Trie::kNone, 0}));
    EXPECT_TRUE(unpack({}, 0).ok());
    EXPECT_FALSE(unpack({6, 7, 0}, 3).ok());
    EXPECT_FALSE(unpack({6, Trie::kNone - 1}, 2).ok());
    EXPECT_FALSE(unpack({6, 0}, 3).ok());
    EXPECT_FALSE(unpack({6, 0}, 1).ok());
    const Stop stop{[](void*) { return true; }, nullptr};
    const std::vector<std::uint32_t> some{1, 2};
    EXPECT_EQ(unpack_codes(testing::raw_bytes(some), 2, 7, stop).status().code(),
              ErrorCode::cancelled);
}

TEST(Protocol, RefusesNeighborsThatAreNone) {
    const std::vector<std::uint64_t> begins{0, 2, 3};
    const std::vector<double> distances{0.5, 1, 0};
    const auto unpack = [&](std::vector<std::uint32_t> items, std::uint32_t queries,
                            std::uint64_t neighbors) {
        std::vector<std::uint8_t> file;
        for (const auto bytes :
             {testing::raw_bytes(begins), testing::raw_bytes(distances), testing::raw_bytes(items)})
            file.insert(file.end(), bytes.begin(), bytes.end());
        return unpack_neighbors(file, queries, 7, neighbors);
    };
    const auto good = unpack({6, 0, 6}, 2, 3);
    ASSERT_TRUE(good.ok());
    EXPECT_EQ(good->begins, begins);
    EXPECT_EQ(good->distances, distances);
    EXPECT_EQ(good->items, (std::vector<std::uint32_t>{6, 0, 6}));
    EXPECT_FALSE(unpack({6, 0, 7}, 2, 3).ok());
    EXPECT_FALSE(unpack({6, 0}, 2, 3).ok());
    EXPECT_FALSE(unpack({6, 0, 6}, 3, 3).ok());
    EXPECT_FALSE(unpack({6, 0, 6}, 2, 2).ok());
    EXPECT_FALSE(unpack({6, 0, 6}, UINT32_MAX, UINT64_MAX).ok());
    EXPECT_FALSE(neighbors_layout(1, UINT64_MAX / 12).has_value());
}

/// A corpus' seeds, changed at random: the deterministic part of what the fuzzer does.
TEST(Protocol, SurvivesChangedBytes) {
    RandomStrings random;
    const auto seeds = testing::seed_inputs();
    for (const auto& seed : seeds) testing::read_anything(seed);
    for (int round = 0; round < (testing::kSanitized ? 50'000 : 1'000'000); ++round) {
        auto input = seeds[random.below(seeds.size())];
        for (std::size_t edits = 1 + random.below(4); edits > 0 && !input.empty(); --edits) {
            const std::size_t at = random.below(input.size());
            static constexpr std::uint8_t bytes[] = {0, 1, 2, 4, 127, 128, 254, 255};
            const std::uint8_t byte = random.below(2) == 0
                                          ? bytes[random.below(8)]
                                          : static_cast<std::uint8_t>(random.below(256));
            const std::size_t kind = random.below(6);
            if (kind == 0)
                input.resize(at);
            else if (kind == 1)
                input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), byte);
            else
                input[at] = byte;
        }
        testing::read_anything(input);
    }
}

TEST(MessageSocket, ChecksThePeersUser) {
    EXPECT_TRUE(same_user({1, 1000, 1000}, 1000));
    EXPECT_FALSE(same_user({1, 0, 0}, 1000));
    EXPECT_FALSE(same_user({1, 1000, 1000}, 0));
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    EXPECT_EQ(peer_of_same_user(ends[0]), getpid());
    close(ends[0]);
    EXPECT_EQ(send_packet(ends[1], bytes_of("x"), {}), Sent::closed);
    close(ends[1]);
}

TEST(MessageSocket, ClosesDescriptorsThatDoNotFit) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    // By hand: send_packet would not send so many.
    int many[kMaxDescriptors + 3];
    std::fill(std::begin(many), std::end(many), ends[0]);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof many)] = {};
    char byte = 'x';
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    *header = {CMSG_LEN(sizeof many), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(header), many, sizeof many);
    const int next_before = dup(0);
    close(next_before);
    ASSERT_EQ(sendmsg(ends[0], &message, 0), 1);
    Packet packet;
    EXPECT_EQ(receive_packet(ends[1], packet), Received::broken);
    EXPECT_TRUE(packet.descriptors.empty());
    const int next = dup(0);
    close(next);
    EXPECT_EQ(next, next_before);

    const std::vector<std::uint8_t> large(kMaxMessageSize + 1);
    ASSERT_EQ(send_packet(ends[0], large, {}), Sent::all);
    EXPECT_EQ(receive_packet(ends[1], packet), Received::broken);
    EXPECT_EQ(receive_packet(ends[1], packet), Received::nothing);
    close(ends[0]);
    EXPECT_EQ(receive_packet(ends[1], packet), Received::closed);
    close(ends[1]);
}

}  // namespace
}  // namespace gputext
