// gputextd as a process of its own, and trainings of words' vectors: every answer, and what it
// refuses.

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpp/embeddings/word2vec.hpp"
#include "cpp/link/client.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/filed_numbers.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using namespace testing;

/// Texts of words of which low numbers come often, and what of them goes into files.
struct Corpus {
    Corpus(RandomStrings& random, std::size_t tokens, std::uint32_t vocabulary)
        : counts(vocabulary) {
        std::uint32_t position = 1;
        for (std::size_t i = 0; i < tokens; ++i) {
            words.push_back(static_cast<std::uint32_t>(random.below(1 + random.below(vocabulary))));
            positions.push_back(position);
            ++counts[words.back()];
            position += random.below(20) == 0 ? 101 : 1;
        }
    }

    TokenStream view() const { return {words, positions}; }

    std::vector<std::uint32_t> words, positions;
    std::vector<std::uint64_t> counts;
};

class GputextdTraining : public ::testing::TestWithParam<int> {
protected:
    GputextdTraining()
        : daemon_(socket_, {"--fake-devices=" + std::to_string(GetParam()), "--allow-faults"}) {
        connection_ = connect_to(socket_);
    }

    static TrainingParameters little() {
        TrainingParameters parameters;
        parameters.dimensions = 12;
        parameters.window = 3;
        parameters.negative = 3;
        parameters.epochs = 3;
        parameters.batch = 20;
        parameters.learning_rate = 0.05f;
        return parameters;
    }

    Word2VecRequest request_of(const TrainingParameters& parameters) const {
        Word2VecRequest request;
        request.parameters = parameters;
        request.sample = 0.01;
        request.tokens = corpus_.words.size();
        request.words = words_.descriptor();
        request.positions = positions_.descriptor();
        request.counts = corpus_.counts;
        request.host_memory_limit = std::uint64_t{1} << 30;
        return request;
    }

    Result<TrainingModel> answer(const Word2VecRequest& request) {
        const Status sent = connection_->submit(request);
        EXPECT_TRUE(sent.ok()) << sent.message();
        const auto reply = next<Word2VecAnswer>(*connection_);
        if (!reply.ok()) return reply.status();
        const std::string& names = reply->summary.report.device_name;
        devices_ = 1 + std::count(names.begin(), names.end(), ',');
        summary_ = reply->summary;
        return reply->read();
    }
    ErrorCode code(const Word2VecRequest& request) { return answer(request).status().code(); }

    /// That of a session's own threads.
    void expect_as_on_cpu(const Word2VecRequest& request, std::span<const float> known = {}) {
        TrainingRun run(
            {request.parameters, request.sample, corpus_.view(), corpus_.counts, known});
        Execution execution(2);
        ASSERT_TRUE(run.prepare(execution).ok());
        const Status status = run.run_on_cpu(execution);
        ASSERT_TRUE(status.ok()) << status.message();
        const auto found = answer(request);
        ASSERT_TRUE(found.ok()) << found.status().message();
        EXPECT_TRUE(found->vectors == run.model().vectors);
        EXPECT_TRUE(found->outputs == run.model().outputs);
        EXPECT_EQ(summary_.hub_lists, run.hub().lists);
        EXPECT_EQ(summary_.hub_of, run.hub().of);
    }

    Folder folder_;
    std::string socket_ = folder_ / "socket";
    DaemonProcess daemon_;
    std::unique_ptr<DaemonConnection> connection_;
    RandomStrings random_;
    const Corpus corpus_{random_, 5000, 100};
    const FiledNumbers<std::uint32_t> words_{corpus_.words}, positions_{corpus_.positions};
    std::ptrdiff_t devices_ = 0;
    Word2VecReply summary_;
};

INSTANTIATE_TEST_SUITE_P(Fake, GputextdTraining,
                         ::testing::ValuesIn(numbers_of_devices({1, 2, 3, 4})));

TEST_P(GputextdTraining, IsThatOfTheCpu) {
    for (const WordModel model : {WordModel::skipgram, WordModel::cbow})
        for (const std::uint32_t replicas : {1u, 3u})
            for (const std::uint32_t far_count : {0u, 4u}) {
                TrainingParameters parameters = little();
                parameters.model = model;
                parameters.replicas = replicas;
                parameters.far_count = far_count;
                parameters.farthest_from = 1;
                parameters.average_every = 500;
                parameters.seed = random_.below(1000);
                ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(request_of(parameters)));
                EXPECT_EQ(summary_.hub_of > 0, far_count > 0);
            }
}

TEST_P(GputextdTraining, IsSharedByDevices) {
    for (const std::uint32_t replicas : {1u, 2u, 5u}) {
        TrainingParameters parameters = little();
        parameters.replicas = replicas;
        parameters.epochs = kSanitized ? 4 : 20;
        parameters.average_every = 200;
        const auto devices = std::min<std::ptrdiff_t>(GetParam(), replicas);
        gather_devices(*connection_, devices);
        Word2VecRequest request = request_of(parameters);
        ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(request));
        EXPECT_EQ(devices_, devices);
        request.limits.device = GetParam() - 1;
        ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(request));
        EXPECT_EQ(devices_, 1);
    }
}

TEST_P(GputextdTraining, GoesOnFromKnownVectors) {
    std::vector<float> known;
    for (int i = 0; i < 2 * 40 * 12; ++i)
        known.push_back(static_cast<float>(random_.below(1000)) / 1000 - 0.5f);
    const FiledNumbers file(known);
    Word2VecRequest request = request_of(little());
    request.known_words = 40;
    request.known = file.descriptor();
    expect_as_on_cpu(request, known);
}

TEST_P(GputextdTraining, RefusesWhatIsNone) {
    const Word2VecRequest good = request_of(little());
    const auto refused = [&](auto change) {
        Word2VecRequest request = good;
        change(request);
        return code(request) == ErrorCode::invalid_argument;
    };
    EXPECT_TRUE(refused([](auto& r) { r.parameters.dimensions = 0; }));
    EXPECT_TRUE(refused([](auto& r) { r.parameters.window = 101; }));
    EXPECT_TRUE(refused([](auto& r) { r.parameters.negative = 65; }));
    EXPECT_TRUE(refused([](auto& r) { r.parameters.epochs = 0; }));
    EXPECT_TRUE(refused([](auto& r) { r.parameters.replicas = 0; }));
    EXPECT_TRUE(refused([](auto& r) { r.parameters.batch = 0; }));
    EXPECT_TRUE(refused([](auto& r) { r.parameters.learning_rate = 0; }));
    EXPECT_TRUE(refused([](auto& r) { r.parameters.far_count = 100; }));
    EXPECT_TRUE(refused([](auto& r) { r.parameters.damping = -1; }));
    EXPECT_TRUE(refused([](auto& r) { r.parameters.average_every = 0; }));
    EXPECT_TRUE(refused([](auto& r) { r.counts = r.counts.first(50); }));
    const std::vector<std::uint64_t> none(100);
    EXPECT_TRUE(refused([&](auto& r) { r.counts = none; }));
    EXPECT_TRUE(refused([](auto& r) { r.counts = {}; }));
    std::vector<float> broken(2 * 12, std::numeric_limits<float>::quiet_NaN());
    const FiledNumbers file(broken), too_many(std::vector<float>(2 * 101 * 12));
    EXPECT_TRUE(refused([&](auto& r) { r.known = file.descriptor(), r.known_words = 1; }));
    EXPECT_FALSE(refused([](auto&) {}));
    EXPECT_FALSE(answer([&] {
                     Word2VecRequest request = good;
                     ++request.tokens;
                     return request;
                 }())
                     .ok());
    connection_ = connect_to(socket_);
    Word2VecRequest request = good;
    request.known = too_many.descriptor();
    request.known_words = 101;
    EXPECT_FALSE(answer(request).ok());
}

TEST_P(GputextdTraining, BrokenRepliesAreErrorsOfTheirClients) {
    for (const char* fault : {"no_reply", "wrong_magic", "wrong_length", "wrong_counts",
                              "short_file", "unsealed_file", "no_file", "too_many_files"}) {
        connection_ = connect_to(socket_);
        ASSERT_TRUE(connection_->inject_fault(std::string("before_reply:") + fault).ok());
        EXPECT_EQ(code(request_of(little())), ErrorCode::unavailable) << fault;
    }
    connection_ = connect_to(socket_);
    expect_as_on_cpu(request_of(little()));
}

TEST_P(GputextdTraining, GoesOnWithoutADeviceThatFails) {
    TrainingParameters parameters = little();
    parameters.replicas = 4;
    parameters.epochs = kSanitized ? 4 : 20;
    parameters.average_every = 200;
    parameters.far_count = 4;
    parameters.farthest_from = 1;
    const Word2VecRequest request = request_of(parameters);
    expect_as_on_cpu(request);
    const auto right = answer(request);
    ASSERT_TRUE(right.ok());
    expect_others_to_stand_in(daemon_, *connection_, GetParam(), [&]() -> Result<JobReport> {
        const auto found = answer(request);
        if (!found.ok()) return found.status();
        EXPECT_TRUE(found->vectors == right->vectors);
        EXPECT_TRUE(found->outputs == right->outputs);
        return summary_.report;
    });
}

TEST_P(GputextdTraining, FailuresOfAllDevicesAreErrorsOfTheJob) {
    TrainingParameters parameters = little();
    parameters.replicas = 4;
    const Word2VecRequest request = request_of(parameters);
    for (int device = 0; device < GetParam(); ++device)
        ASSERT_TRUE(
            connection_->inject_fault("in_job:out_of_memory:5:" + std::to_string(device)).ok());
    EXPECT_EQ(code(request), ErrorCode::out_of_memory);
    ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(request));
    ASSERT_TRUE(connection_->inject_fault("in_job:out_of_memory:2").ok());
    ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(request));
    EXPECT_EQ(summary_.report.retries, 2u);
}

TEST_P(GputextdTraining, SaysHowFarItIsAndEndsWhenItIsCancelled) {
    const auto watcher = connect_to(socket_);
    for (const std::uint32_t replicas : {1u, 4u}) {
        TrainingParameters parameters = little();
        parameters.epochs = 100'000;
        parameters.replicas = replicas;
        parameters.far_count = 2;
        parameters.farthest_from = 1000;
        ASSERT_TRUE(connection_->submit(request_of(parameters)).ok());
        RunningJob job;
        ASSERT_TRUE(soon([&] {
            const auto jobs = running_jobs(*watcher);
            if (!jobs.empty()) job = jobs[0];
            return job.epoch > 2;
        }));
        EXPECT_EQ(job.operation, "word2vec");
        EXPECT_EQ(job.rows, 5000u);
        EXPECT_EQ(job.bytes, 2 * 5000 * 4 + 100 * 8);
        EXPECT_EQ(job.phase, "training");
        EXPECT_EQ(job.total, 5000u * 100'000);
        EXPECT_GE(job.done, 2 * 5000u);
        EXPECT_TRUE(job.loss > 0.1 && job.loss < 1) << job.loss;
        connection_ = connect_to(socket_);
        EXPECT_TRUE(soon([&] { return running_jobs(*watcher).empty(); }));
        ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(request_of(little())));
    }
}

}  // namespace
}  // namespace gputext
