// gputextd as a process of its own, and jobs by models of words: every answer, and what it refuses.

#include <algorithm>
#include <cmath>

#include "cpp/link/client.hpp"
#include "cpp/link/memory_file.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/text_pairs.hpp"
#include "tests/support/token_sequences.hpp"

namespace gputext {
namespace {

using namespace testing;

/// Numbers in a sealed file.
class Filed {
public:
    template <class T>
    explicit Filed(std::span<const T> numbers) {
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(numbers.data());
        EXPECT_TRUE(file_.append({bytes, numbers.size_bytes()}).ok());
        EXPECT_TRUE(file_.seal().ok());
    }

    int descriptor() const { return file_.descriptor(); }

private:
    MemoryFile file_;
};

Filed filed(const WordVectors& vectors) {
    return Filed(std::span(vectors.elements, vectors.words * vectors.dimensions));
}

/// Expects equal bits, and NaN for NaN.
template <class T>
void expect_same(const std::vector<T>& a, const std::vector<T>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << i;
}

class GputextdModels : public ::testing::TestWithParam<int> {
protected:
    GputextdModels()
        : daemon_(socket_, {"--fake-devices=" + std::to_string(GetParam()), "--allow-faults"}) {
        connection_ = connect_to(socket_);
    }

    template <class Answer, class Request>
    auto answer(const Request& request) {
        using Read = decltype(std::declval<Answer>().read());
        const Status sent = connection_->submit(request);
        EXPECT_TRUE(sent.ok()) << sent.message();
        const auto reply = next<Answer>(*connection_);
        if (!reply.ok()) return Read(reply.status());
        report_ = reply->summary.report;
        const std::string& names = report_.device_name;
        devices_ = 1 + std::count(names.begin(), names.end(), ',');
        return reply->read();
    }

    void expect_distances(const RandomModel& model, const PackedPairs& pairs, MoversMethod method) {
        const Status status = compare_distances(model, pairs, method);
        ASSERT_TRUE(status.ok()) << status.message();
    }

    /// The error of the job, if it has one.
    Status compare_distances(const RandomModel& model, const PackedPairs& pairs,
                             MoversMethod method) {
        const Filed elements = filed(model.view()), masses(pairs.view().masses);
        WordMoversRequest request;
        request.parameters.method = method;
        request.vectors = model.view();
        request.elements = elements.descriptor();
        request.pairs = pairs.view();
        request.masses = masses.descriptor();
        const auto found = answer<ScoresAnswer>(request);
        if (!found.ok()) return found.status();
        Execution execution(2);
        const auto expected =
            word_movers_distances(request.parameters, model.view(), pairs.view(), execution);
        if (!expected.ok()) return expected.status();
        expect_same(*found, *expected);
        return {};
    }

    void expect_probabilities(const RandomModel& vectors, const RandomModel& outputs,
                              const PackedSequences& sequences) {
        const Status status = compare_probabilities(vectors, outputs, sequences);
        ASSERT_TRUE(status.ok()) << status.message();
    }

    /// The error of the job, if it has one.
    Status compare_probabilities(const RandomModel& vectors, const RandomModel& outputs,
                                 const PackedSequences& sequences) {
        const Filed elements = filed(vectors.view()), more = filed(outputs.view()),
                    tokens(sequences.view().tokens);
        SequenceProbabilityRequest request;
        request.model = {vectors.view(), outputs.view()};
        request.elements = elements.descriptor();
        request.output_elements = more.descriptor();
        request.sequences = sequences.view();
        request.tokens = tokens.descriptor();
        const auto found = answer<SequenceProbabilityAnswer>(request);
        if (!found.ok()) return found.status();
        Execution execution(2);
        const auto expected =
            sequence_probabilities(request.model, sequences.view(), best_simd(), execution);
        if (!expected.ok()) return expected.status();
        expect_same(found->sequences, expected->sequences);
        expect_same(found->tokens, expected->tokens);
        return {};
    }

    Folder folder_;
    std::string socket_ = folder_ / "socket";
    DaemonProcess daemon_;
    std::unique_ptr<DaemonConnection> connection_;
    JobReport report_;
    std::ptrdiff_t devices_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Fake, GputextdModels,
                         ::testing::ValuesIn(numbers_of_devices({1, 2, 3, 4})));

TEST_P(GputextdModels, MovesWordsAsTheCpuDoes) {
    const RandomModel model(100, 20, 1);
    for (const std::size_t pairs : {0, 1, 300})
        for (const MoversMethod method : {MoversMethod::exact, MoversMethod::relaxed})
            ASSERT_NO_FATAL_FAILURE(
                expect_distances(model, random_pairs(pairs, 100, 30, 2), method));
}

/// As many as four devices are worth.
/// As many as so many devices are worth, and a few more.
PackedPairs many_pairs(int devices) {
    PackedPairs pairs;
    std::mt19937 random(3);
    for (int i = 0; i < (devices << 16) + 3; ++i)
        pairs.append({static_cast<std::uint32_t>(random() % 50)},
                     {static_cast<std::uint32_t>(random() % 50)});
    return pairs;
}

TEST_P(GputextdModels, SharesManyPairsAmongDevices) {
    const RandomModel model(50, 4, 1);
    const PackedPairs pairs = many_pairs(GetParam());
    gather_devices(*connection_, GetParam());
    expect_distances(model, pairs, MoversMethod::exact);
    EXPECT_EQ(devices_, GetParam());
}

TEST_P(GputextdModels, SharesManyPairsWithoutADeviceThatFails) {
    const RandomModel model(50, 4, 1);
    const PackedPairs pairs = many_pairs(GetParam());
    expect_others_to_stand_in(daemon_, *connection_, GetParam(), [&]() -> Result<JobReport> {
        GPUTEXT_TRY(compare_distances(model, pairs, MoversMethod::exact));
        return report_;
    });
}

TEST_P(GputextdModels, KnowsSequencesAsTheCpuDoes) {
    const RandomModel vectors(80, 20, 1, 0.5f), outputs(80, 20, 2, 0.5f);
    for (const std::size_t sequences : {0, 1, 500})
        ASSERT_NO_FATAL_FAILURE(
            expect_probabilities(vectors, outputs, random_sequences(sequences, 80, 30, 4)));
}

/// Of as many words as so many devices are worth. Every word is followed by one; one sequence is
/// far longer than the others.
PackedSequences sequences_of_many_words(std::uint32_t words) {
    PackedSequences sequences;
    sequences.append(std::vector<std::uint32_t>(20000, 7));
    for (std::uint32_t word = 0; word < words; ++word)
        sequences.append({word, words - 1 - word, word / 2});
    sequences.append({});
    return sequences;
}

TEST_P(GputextdModels, SharesSequencesOfManyWordsAmongDevices) {
    const std::uint32_t all = static_cast<std::uint32_t>(GetParam()) << 12;
    const RandomModel vectors(all, 2, 1, 0.5f), outputs(all, 2, 2, 0.5f);
    gather_devices(*connection_, GetParam());
    expect_probabilities(vectors, outputs, sequences_of_many_words(all));
    EXPECT_EQ(devices_, GetParam());
}

TEST_P(GputextdModels, SharesSequencesWithoutADeviceThatFails) {
    const std::uint32_t all = static_cast<std::uint32_t>(GetParam()) << 12;
    const RandomModel vectors(all, 2, 1, 0.5f), outputs(all, 2, 2, 0.5f);
    const PackedSequences sequences = sequences_of_many_words(all);
    expect_others_to_stand_in(daemon_, *connection_, GetParam(), [&]() -> Result<JobReport> {
        GPUTEXT_TRY(compare_probabilities(vectors, outputs, sequences));
        return report_;
    });
}

TEST_P(GputextdModels, RefusesWhatIsNone) {
    const RandomModel model(10, 4, 1);
    const Filed elements = filed(model.view());
    const std::vector<std::uint64_t> begins{0, 1, 2};
    const std::vector<std::uint32_t> totals{2};
    const std::vector<WordMass> good{{1, 2}, {2, 2}}, unknown{{1, 2}, {10, 2}},
        uneven{{1, 2}, {2, 1}};
    const auto code = [&](const std::vector<WordMass>& masses, std::size_t words) {
        const Filed file{std::span(masses)};
        WordMoversRequest request;
        request.vectors = model.view();
        request.vectors.words = words;
        request.elements = elements.descriptor();
        request.pairs = {begins, masses, totals};
        request.masses = file.descriptor();
        return answer<ScoresAnswer>(request).status().code();
    };
    EXPECT_EQ(code(good, 10), ErrorCode::ok);
    EXPECT_EQ(code(unknown, 10), ErrorCode::invalid_argument);
    EXPECT_EQ(code(uneven, 10), ErrorCode::invalid_argument);
    EXPECT_EQ(code(good, 11), ErrorCode::invalid_argument);  // the file is too short

    const auto code_of_tokens = [&](const std::vector<std::uint32_t>& tokens) {
        const Filed file{std::span(tokens)};
        SequenceProbabilityRequest request;
        request.model = {model.view(), model.view()};
        request.elements = request.output_elements = elements.descriptor();
        request.sequences = {begins, tokens};
        request.tokens = file.descriptor();
        return answer<SequenceProbabilityAnswer>(request).status().code();
    };
    EXPECT_EQ(code_of_tokens({3, 9}), ErrorCode::ok);
    EXPECT_EQ(code_of_tokens({3, 10}), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of_tokens({3, 9, 1}), ErrorCode::invalid_argument);
}

TEST_P(GputextdModels, GivesWayToACancel) {
    const RandomModel model(4000, 4, 1);
    PackedPairs pairs;
    std::vector<std::uint32_t> first, second;
    for (std::uint32_t i = 0; i < 2000; ++i) first.push_back(i), second.push_back(2000 + i);
    for (int i = 0; i < 400; ++i) pairs.append(first, second);  // some minutes
    const Filed elements = filed(model.view()), masses(pairs.view().masses);
    WordMoversRequest request;
    request.vectors = model.view();
    request.elements = elements.descriptor();
    request.pairs = pairs.view();
    request.masses = masses.descriptor();
    ASSERT_TRUE(connection_->submit(request).ok());
    const auto watcher = connect_to(socket_);
    ASSERT_TRUE(soon([&] {
        const auto jobs = running_jobs(*watcher);
        return !jobs.empty() && jobs[0].phase == "moving words";
    }));
    connection_.reset();
    // The device is free again at once.
    connection_ = connect_to(socket_);
    expect_distances(RandomModel(10, 4, 1), random_pairs(10, 10, 5, 2), MoversMethod::exact);
}

}  // namespace
}  // namespace gputext
