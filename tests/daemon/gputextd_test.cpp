// gputextd as a process of its own, and its clients: every answer, and every way to fail.

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <tuple>

#include "cpp/link/client.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/link/message_socket.hpp"
#include "tests/support/answer_rows.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using namespace testing;

/// Whether what is no matter of the device's kind is tested on the host's GPUs.
bool on_gpu() {
    const char* const device = std::getenv("GPUTEXT_TEST_DEVICE");
    return device != nullptr && std::string(device) == "gpu";
}
const bool kOnGpu = on_gpu();

/// Documents in a sealed file, and the request that names them.
class Work {
public:
    explicit Work(const std::vector<std::string>& texts,
                  CharacterLengths characters = CharacterLengths::utf8())
        : packed_(texts, characters) {
        EXPECT_TRUE(file_.append(packed_.bytes()).ok());
        EXPECT_TRUE(file_.seal().ok());
        request_.parameters = {0.1, NearDuplicateMode::exact};
        request_.bytes_file = file_.descriptor();
        request_.bytes_size = file_.size();
        request_.extents = packed_.documents().extents;
        request_.characters = characters;
    }
    Work(const Work&) = delete;

    NearDuplicatesRequest& request() { return request_; }
    const Packed& packed() const { return packed_; }

    std::vector<Row> expected() const {
        Execution execution(2);
        const auto answer = near_duplicates(request_.parameters, packed_.documents(),
                                            request_.signatures, execution);
        EXPECT_TRUE(answer.ok());
        return rows(*answer);
    }

private:
    Packed packed_;
    MemoryFile file_;
    NearDuplicatesRequest request_;
};

class Gputextd : public ::testing::Test {
protected:
    void start() { start({kOnGpu ? "--threads=4" : "--fake-devices=1", "--allow-faults"}); }
    void start(DaemonProcess::Arguments arguments) {
        daemon_.emplace(socket_, std::move(arguments));
    }
    std::unique_ptr<DaemonConnection> connect() { return connect_to(socket_); }

    /// Sends a job that suffers this fault and returns its outcome.
    Result<NearDuplicatesAnswer> answer_with_fault(DaemonConnection& connection,
                                                   const std::string& fault) {
        EXPECT_TRUE(connection.inject_fault(fault).ok());
        EXPECT_TRUE(connection.submit(small_.request()).ok());
        return next<NearDuplicatesAnswer>(connection);
    }

    void expect_good_answer(DaemonConnection& connection, Work& work) {
        ASSERT_TRUE(connection.submit(work.request()).ok());
        const auto reply = next<NearDuplicatesAnswer>(connection);
        ASSERT_TRUE(reply.ok()) << reply.status().message();
        const auto answer = reply->read();
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        EXPECT_EQ(rows(*answer), work.expected());
    }
    void expect_good_answer() {
        const auto connection = connect();
        ASSERT_NE(connection, nullptr);
        expect_good_answer(*connection, small_);
    }

    /// Injects a fault into the next connection; returns when the server knows.
    void inject_at_accept(const std::string& kind) {
        const auto connection = connect();
        ASSERT_TRUE(connection->inject_fault("accept:" + kind).ok());
        ASSERT_TRUE(connection->ask_counters().ok());
        ASSERT_TRUE(next<CounterValues>(*connection).ok());
    }

    /// What one new connection hears first, or how it failed, which may be before it could say who
    /// it is.
    Status first_status() {
        auto connection = DaemonConnection::connect(socket_);
        return connection.ok() ? next_event(**connection).status() : connection.status();
    }

    bool is_running(DaemonConnection& connection) {
        const auto jobs = running_jobs(connection);
        return !jobs.empty() && jobs[0].device >= 0;
    }

    Folder folder_;
    std::string socket_ = folder_ / "socket";
    Work small_{{"one text of many letters", "one text of many letters!", "another", "another"}};
    std::optional<DaemonProcess> daemon_;
};

TEST_F(Gputextd, AnswersAsTheOperatorDoes) {
    start();
    const auto connection = connect();
    RandomStrings random;
    for (const std::size_t count : {0, 1, 2, 150}) {
        const auto texts = corpus(random, count, 600);
        for (const auto& characters : {CharacterLengths::utf8(), CharacterLengths::single_byte()}) {
            Work work(count == 0 ? std::vector<std::string>() : texts, characters);
            for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact})
                for (const double threshold : {0.0, 0.05, 0.3}) {
                    work.request().parameters = {threshold, mode, 32};
                    expect_good_answer(*connection, work);
                }
        }
    }
}

TEST_F(Gputextd, TakesGivenSignatures) {
    start();
    const auto connection = connect();
    RandomStrings random;
    Work work(corpus(random, 100, 900));
    // Signatures of other documents make a difference that shows.
    std::vector<std::optional<Ctph>> signatures;
    for (std::size_t i = 0; i < work.packed().documents().size(); ++i)
        signatures.push_back(*ctph_signature(work.packed().documents()[i / 2], 50));
    for (std::size_t i = 0; i < signatures.size(); i += 5) signatures[i].reset();
    work.request().parameters = {0.2, NearDuplicateMode::ctph, 50};
    work.request().signatures = signatures;
    expect_good_answer(*connection, work);
}

/// Documents so many, by their copies, that a job on them is worth several devices.
std::vector<std::string> many_documents(RandomStrings& random, std::size_t families,
                                        std::size_t length, std::size_t edits, std::size_t count) {
    constexpr std::string_view letters = "etaoinshrdlu \n";
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < families; ++i) {
        texts.push_back(random.string(length - random.below(length / 30 + 1), letters));
        for (int version = 0; version < 3; ++version)
            texts.push_back(random.edited(texts.back(), random.below(edits), letters));
    }
    const std::size_t distinct = texts.size();
    while (texts.size() < count) texts.push_back(texts[random.below(distinct)]);
    return texts;
}

TEST_F(Gputextd, SharesManyDocumentsOutToDevices) {
    if (kOnGpu) GTEST_SKIP() << "of fake devices";
    RandomStrings random;
    Work shorts(many_documents(random, 500, 60, 5, 47'000));
    Work longs(many_documents(random, 120, 1040, 60, 41'000), CharacterLengths::single_byte());
    std::vector<std::optional<Ctph>> given, some, alike;
    for (std::size_t i = 0; i < shorts.packed().documents().size(); ++i) {
        given.push_back(*ctph_signature(shorts.packed().documents()[i], 100));
        some.push_back(i % 3 == 0 ? std::nullopt : given.back());
        alike.push_back(*parse_ctph("4:ABCDEFGH:ABCD"));
    }
    const auto pairs_of = [](const NearDuplicates& answer) {
        std::vector<Row> pairs;
        for (const NearPair& pair : answer.near_pairs_of(0, UINT32_MAX))
            pairs.emplace_back(pair.first, pair.second, pair.edit_rate);
        return pairs;
    };
    const auto copies_of = [](const NearDuplicates& answer) {
        return std::vector(answer.first_copies().begin(), answer.first_copies().end());
    };
    struct Case {
        Work& work;
        NearDuplicateMode mode;
        GivenSignatures signatures;
        double threshold;
        double split = 0;  // of all documents
    };
    constexpr auto ctph = NearDuplicateMode::ctph, exact = NearDuplicateMode::exact;
    for (const Case& one : {Case{shorts, ctph, {}, 0.05}, Case{shorts, ctph, given, 0.05},
                            Case{shorts, ctph, some, 0.05}, Case{shorts, ctph, alike, 0.05},
                            Case{longs, ctph, {}, 0.2}, Case{longs, exact, {}, 0.05},
                            Case{shorts, ctph, some, 0.05, 0.5}, Case{longs, exact, {}, 0.05, 0.4},
                            Case{longs, ctph, {}, 0.2, 0.6}}) {
        // Those that are split in two have both kinds of shares.
        if (testing::tests_are_small() && one.split == 0) continue;
        NearDuplicatesRequest& request = one.work.request();
        request.parameters = {one.threshold, one.mode};
        const auto documents = static_cast<double>(one.work.packed().documents().size());
        request.parameters.split = static_cast<std::uint32_t>(one.split * documents);
        request.signatures = one.signatures;
        Execution execution(2);
        const auto expected = near_duplicates(request.parameters, one.work.packed().documents(),
                                              one.signatures, execution);
        ASSERT_TRUE(expected.ok());
        ASSERT_GT(expected->near_pair_count(), 100u);
        for (const int devices : {1, 2, 3, 4}) {
            if (kSanitized && devices != 3) continue;
            daemon_.reset();
            start({"--fake-devices=" + std::to_string(devices), "--allow-faults"});
            const auto connection = connect();
            gather_devices(*connection, std::min(devices, 2));
            ASSERT_TRUE(connection->submit(request).ok());
            const auto reply = next<NearDuplicatesAnswer>(*connection);
            ASSERT_TRUE(reply.ok()) << reply.status().message();
            const std::string& names = reply->summary.report.device_name;
            EXPECT_GE(1 + std::ranges::count(names, ','), std::min(devices, 2)) << names;
            const auto answer = reply->read();
            ASSERT_TRUE(answer.ok()) << answer.status().message();
            EXPECT_EQ(copies_of(*answer), copies_of(*expected));
            EXPECT_EQ(answer->pairs(), expected->pairs());
            EXPECT_EQ(pairs_of(*answer), pairs_of(*expected)) << devices << " devices";
        }
    }
}

TEST_F(Gputextd, TakesAPlainFile) {
    start();
    const auto connection = connect();
    std::FILE* const file = std::tmpfile();
    const auto bytes = small_.packed().bytes();
    ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
    std::fflush(file);
    small_.request().bytes_file = fileno(file);
    expect_good_answer(*connection, small_);
    std::fclose(file);
}

TEST_F(Gputextd, TakesDocumentsInParts) {
    start();
    const auto connection = connect();
    RandomStrings random;
    Work work(corpus(random, 150, 2000));
    const auto bytes = work.packed().bytes();
    const std::uint64_t pages = bytes.size() / page_size() + 1;
    for (const std::uint64_t parts : {std::uint64_t{2}, std::uint64_t{7}, kMostParts}) {
        PartedFile file;
        ASSERT_TRUE(file.create(bytes.size(), (pages / parts + 1) * page_size()).ok());
        ASSERT_TRUE(file.write(0, bytes).ok());
        ASSERT_TRUE(file.seal().ok());
        ASSERT_GT(file.parts().descriptors().size(), 1u);
        work.request().bytes_file = file.parts();
        expect_good_answer(*connection, work);
        work.request().bytes_size = bytes.size() - 1;
        ASSERT_TRUE(connection->submit(work.request()).ok());
        EXPECT_EQ(next<NearDuplicatesAnswer>(*connection).status().code(),
                  ErrorCode::invalid_argument);
        work.request().bytes_size = bytes.size();
    }
}

TEST_F(Gputextd, SaysWhichDevicesThereAreAndUsesTheOneAskedFor) {
    start({"--fake-devices=3"});
    const auto connection = connect();
    ASSERT_TRUE(connection->ask_devices().ok());
    const auto list = next<DeviceList>(*connection);
    ASSERT_TRUE(list.ok());
    ASSERT_EQ(list->devices.size(), 3u);
    EXPECT_EQ(list->devices[2].name, "fake device 2");
    EXPECT_EQ(list->devices[2].memory, std::uint64_t{1} << 30);
    EXPECT_EQ(list->why_none, "");
    for (const std::int32_t device : {2, 0, 1}) {
        small_.request().limits.device = device;
        ASSERT_TRUE(connection->submit(small_.request()).ok());
        const auto answer = next<NearDuplicatesAnswer>(*connection);
        ASSERT_TRUE(answer.ok());
        EXPECT_EQ(answer->summary.report.device, device);
        EXPECT_EQ(answer->summary.report.device_name, "fake device " + std::to_string(device));
    }
    small_.request().limits.device = 3;
    ASSERT_TRUE(connection->submit(small_.request()).ok());
    EXPECT_EQ(next<NearDuplicatesAnswer>(*connection).status().code(), ErrorCode::invalid_argument);
}

TEST_F(Gputextd, SaysWhyThereAreNoDevices) {
    start({});
    const auto connection = connect();
    ASSERT_TRUE(connection->ask_devices().ok());
    const auto list = next<DeviceList>(*connection);
    ASSERT_TRUE(list.ok());
    if (!list->devices.empty()) GTEST_SKIP() << "there is a GPU";
#ifdef GPUTEXT_CUDA
    EXPECT_NE(list->why_none.find("NVIDIA"), std::string::npos) << list->why_none;
#else
    EXPECT_EQ(list->why_none, "gputextd was built without support for NVIDIA GPUs");
#endif
    ASSERT_TRUE(connection->submit(small_.request()).ok());
    const auto answer = next<NearDuplicatesAnswer>(*connection);
    EXPECT_EQ(answer.status().code(), ErrorCode::unavailable);
    EXPECT_EQ(answer.status().message(), list->why_none);
}

TEST_F(Gputextd, ReportsProgressActivityAndCounters) {
    start();
    const auto watcher = connect();
    const auto client = connect();
    const auto waiting = connect();
    ASSERT_TRUE(client->inject_fault("before_job:hold").ok());
    ASSERT_TRUE(client->inject_fault("before_job:slow:1000").ok());
    ASSERT_TRUE(client->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return is_running(*watcher); }));
    ASSERT_TRUE(waiting->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return running_jobs(*watcher).size() == 2; }));
    const auto jobs = running_jobs(*watcher);
    EXPECT_EQ(jobs[0].pid, static_cast<std::uint32_t>(getpid()));
    EXPECT_EQ(jobs[0].operation, "near_duplicates");
    EXPECT_EQ(jobs[0].phase, "being held");
    EXPECT_EQ(jobs[0].rows, 4u);
    EXPECT_EQ(jobs[0].bytes, small_.request().bytes_size);
    EXPECT_EQ(jobs[1].device, -1);
    EXPECT_EQ(jobs[1].phase, "waiting for a device");

    lift_faults(*watcher);
    std::optional<DaemonEvent> event;
    const Progress* progress = nullptr;
    ASSERT_TRUE(soon([&] {
        auto received = client->receive();
        if (received.ok()) event = std::move(*received);
        progress = event ? std::get_if<Progress>(&*event) : nullptr;
        // Before that, a GPU may still be getting ready.
        return progress != nullptr && progress->phase == "being slow" && progress->done > 0;
    }));
    EXPECT_EQ(progress->total, 100u);

    const auto answer = next<NearDuplicatesAnswer>(*client);
    ASSERT_TRUE(answer.ok());
    const auto& phases = answer->summary.report.phases;
    ASSERT_GE(phases.size(), 4u);
    EXPECT_EQ(phases[0].name, "being held");
    EXPECT_EQ(phases[1].name, "being slow");
    EXPECT_GE(phases[1].seconds, 0.99);
    EXPECT_EQ(phases[2].name, "checking the request");
    EXPECT_TRUE(next<NearDuplicatesAnswer>(*waiting).ok());
    ASSERT_TRUE(watcher->ask_counters().ok());
    const auto counters = next<CounterValues>(*watcher);
    ASSERT_TRUE(counters.ok());
    EXPECT_EQ(counters->jobs, 2u);
    EXPECT_EQ(counters->rows, 8u);
    EXPECT_EQ(counters->bytes, 2 * small_.request().bytes_size);
    EXPECT_GE(counters->milliseconds, 990u);
    EXPECT_EQ(counters->failures + counters->cancelled + counters->retries, 0u);
    EXPECT_TRUE(running_jobs(*watcher).empty());
}

TEST_F(Gputextd, DropsAJobSoonAfterItsClientHasGone) {
    start();
    const auto watcher = connect();
    std::vector<double> latencies;
    for (int round = 0; round < 50; ++round) {
        auto client = connect();
        ASSERT_TRUE(client->inject_fault("in_job:slow:600000").ok());
        ASSERT_TRUE(client->submit(small_.request()).ok());
        ASSERT_TRUE(soon([&] { return is_running(*watcher); }));
        const auto closed = Clock::now();
        client.reset();
        ASSERT_TRUE(soon([&] { return running_jobs(*watcher).empty(); }));
        latencies.push_back(
            std::chrono::duration<double, std::milli>(Clock::now() - closed).count());
    }
    std::sort(latencies.begin(), latencies.end());
    std::cout << "cancel: median " << latencies[25] << " ms, longest " << latencies.back()
              << " ms\n";
    expect_good_answer();
}

TEST_F(Gputextd, StopsTheOperatorItselfToo) {
    start();
    const auto watcher = connect();
    RandomStrings random;
    // Random texts of few letters are near each other at this threshold, but far from equal.
    std::vector<std::string> texts;
    for (int i = 0; i < (kOnGpu ? 2000 : 400); ++i)
        texts.push_back(random.string(20000, "abcdefgh"));
    Work large(texts);
    large.request().parameters.threshold = 0.45;
    std::vector<double> latencies;
    std::map<std::string, int> phases;
    for (int round = 0; round < (kOnGpu ? 200 : 5); ++round) {
        auto client = connect();
        ASSERT_TRUE(client->submit(large.request()).ok());
        ASSERT_TRUE(soon([&] { return is_running(*watcher); }));
        std::this_thread::sleep_for(milliseconds(random.below(100)));
        const auto jobs = running_jobs(*watcher);
        ASSERT_EQ(jobs.size(), 1u);
        ++phases[jobs[0].phase];
        const auto closed = Clock::now();
        client.reset();
        ASSERT_TRUE(soon([&] { return running_jobs(*watcher).empty(); }));
        latencies.push_back(
            std::chrono::duration<double, std::milli>(Clock::now() - closed).count());
    }
    std::sort(latencies.begin(), latencies.end());
    std::cout << "cancel: median " << latencies[latencies.size() / 2] << " ms, 99th percentile "
              << latencies[latencies.size() * 99 / 100] << " ms";
    for (const auto& [phase, count] : phases) std::cout << ", " << count << " in " << phase;
    std::cout << '\n';
    // A busy machine may stall now and then.
    EXPECT_LT(kOnGpu ? latencies[197] : latencies[0], kOnGpu ? 200 : 1000);
    expect_good_answer();
}

TEST_F(Gputextd, ForgetsAWaitingJobWhoseClientHasGone) {
    start();
    const auto watcher = connect();
    const auto running = connect();
    auto waiting = connect();
    ASSERT_TRUE(running->inject_fault("before_job:hang").ok());
    ASSERT_TRUE(running->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return is_running(*watcher); }));
    ASSERT_TRUE(waiting->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return running_jobs(*watcher).size() == 2; }));
    waiting.reset();
    EXPECT_TRUE(soon([&] { return running_jobs(*watcher).size() == 1; }));
}

TEST_F(Gputextd, ServesAHundredClientsAtOnce) {
    if (kOnGpu)
        start();
    else
        start({"--fake-devices=2"});
    const auto watcher = connect();
    ASSERT_TRUE(watcher->ask_devices().ok());
    const auto list = next<DeviceList>(*watcher);
    ASSERT_TRUE(list.ok());
    RandomStrings random;
    std::vector<std::unique_ptr<Work>> works;
    std::vector<std::unique_ptr<DaemonConnection>> clients;
    for (int i = 0; i < 100; ++i) {
        works.push_back(std::make_unique<Work>(corpus(random, 20, 300)));
        clients.push_back(connect());
        ASSERT_NE(clients.back(), nullptr);
    }
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(clients[i]->submit(works[i]->request()).ok());
    std::set<std::int32_t> used;
    for (int i = 99; i >= 0; --i) {
        const auto reply = next<NearDuplicatesAnswer>(*clients[i]);
        ASSERT_TRUE(reply.ok()) << reply.status().message();
        used.insert(reply->summary.report.device);
        ASSERT_EQ(rows(*reply->read()), works[i]->expected());
    }
    EXPECT_EQ(used.size(), list->devices.size());
}

TEST_F(Gputextd, KeepsNoDescriptors) {
    start();
    const auto watcher = connect();
    const auto round = [&] {
        auto client = connect();
        expect_good_answer(*client, small_);
        EXPECT_FALSE(answer_with_fault(*client, "before_job:device_error").ok());
        EXPECT_FALSE(answer_with_fault(*client, "before_reply:short_file").ok());
        client = connect();
        EXPECT_FALSE(answer_with_fault(*client, "before_reply:too_many_files").ok());
        client = connect();
        EXPECT_TRUE(client->inject_fault("in_job:hang").ok());
        EXPECT_TRUE(client->submit(small_.request()).ok());
        client.reset();
        EXPECT_TRUE(soon([&] { return running_jobs(*watcher).empty(); }));
    };
    round();
    const std::size_t server = open_descriptors(daemon_->pid());
    const std::size_t own = open_descriptors(getpid());
    for (int i = 0; i < 10; ++i) round();
    EXPECT_TRUE(soon([&] { return open_descriptors(daemon_->pid()) == server; }));
    EXPECT_EQ(open_descriptors(getpid()), own);
}

TEST_F(Gputextd, RetriesWithLessMemory) {
    start();
    const auto connection = connect();
    auto reply = answer_with_fault(*connection, "in_job:out_of_memory:2");
    ASSERT_TRUE(reply.ok()) << reply.status().message();
    EXPECT_EQ(reply->summary.report.retries, 2u);
    EXPECT_EQ(rows(*reply->read()), small_.expected());
    reply = answer_with_fault(*connection, "in_job:out_of_memory:100");
    EXPECT_EQ(reply.status().code(), ErrorCode::out_of_memory);
    expect_good_answer(*connection, small_);
    ASSERT_TRUE(connection->ask_counters().ok());
    const auto counters = next<CounterValues>(*connection);
    ASSERT_TRUE(counters.ok());
    EXPECT_EQ(counters->retries, 6u);
    EXPECT_EQ(counters->failures, 1u);
    EXPECT_EQ(counters->jobs, 2u);
}

TEST_F(Gputextd, GoesOnAfterADeviceError) {
    start();
    const auto connection = connect();
    const auto reply = answer_with_fault(*connection, "in_job:device_error");
    EXPECT_EQ(reply.status().code(), ErrorCode::device_error);
    EXPECT_EQ(reply.status().message(), "the device failed, as a test asked for");
    expect_good_answer(*connection, small_);
}

TEST_F(Gputextd, EndsWhenADeviceIsLostAndAllHaveAnswers) {
    start();
    const auto loser = connect();
    const auto waiting = connect();
    small_.request().limits.device = 0;
    const auto watcher = connect();
    ASSERT_TRUE(loser->inject_fault("before_job:hold").ok());
    ASSERT_TRUE(loser->inject_fault("in_job:device_lost").ok());
    ASSERT_TRUE(loser->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return is_running(*watcher); }));
    ASSERT_TRUE(waiting->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return running_jobs(*watcher).size() == 2; }));
    lift_faults(*watcher);
    EXPECT_EQ(next<NearDuplicatesAnswer>(*loser).status().code(), ErrorCode::device_lost);
    const auto other = next<NearDuplicatesAnswer>(*waiting);
    EXPECT_EQ(other.status().code(), ErrorCode::unavailable);
    EXPECT_EQ(other.status().message(), "gputextd ends because a device was lost");
    EXPECT_EQ(daemon_->exit_code(), 3);
    EXPECT_TRUE(folder_.empty());
    start();
    expect_good_answer();
}

TEST_F(Gputextd, LosesADeviceAndGoesOnWithTheOthersUntilThereIsNoJob) {
    start({"--fake-devices=2", "--allow-faults"});
    const auto watcher = connect(), busy = connect(), loser = connect(), late = connect();
    small_.request().limits.device = 1;
    ASSERT_TRUE(busy->inject_fault("in_job:hold").ok());
    ASSERT_TRUE(busy->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return is_running(*watcher); }));
    small_.request().limits.device = -1;
    ASSERT_TRUE(loser->inject_fault("in_job:device_lost:1:0").ok());
    ASSERT_TRUE(loser->submit(small_.request()).ok());
    // This job comes after that one, and is refused as soon as that one has lost the device.
    small_.request().limits.device = 0;
    ASSERT_TRUE(late->submit(small_.request()).ok());
    const auto refused = next<NearDuplicatesAnswer>(*late);
    EXPECT_EQ(refused.status().code(), ErrorCode::unavailable);
    EXPECT_EQ(refused.status().message(), "gputextd ends because a device was lost");
    small_.request().limits.device = -1;
    ASSERT_TRUE(late->inject_fault("in_job:hold:2").ok());
    ASSERT_TRUE(late->submit(small_.request()).ok());
    // Until the only device that is left is free.
    ASSERT_TRUE(soon([&] {
        const auto jobs = running_jobs(*watcher);
        return jobs.size() == 3 && jobs[1].device < 0 && jobs[2].device < 0;
    }));
    EXPECT_EQ(running_jobs(*watcher)[1].phase, "waiting for a device");

    lift_faults(*watcher);
    ASSERT_TRUE(next<NearDuplicatesAnswer>(*busy).ok());
    const auto answer = next<NearDuplicatesAnswer>(*loser);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(rows(*answer->read()), small_.expected());
    EXPECT_EQ(answer->summary.report.device, 1);
    EXPECT_EQ(answer->summary.report.device_name, "fake device 1");
    EXPECT_EQ(answer->summary.report.retries, 1u);
    ASSERT_TRUE(watcher->ask_counters().ok());
    const auto counters = next<CounterValues>(*watcher);
    ASSERT_TRUE(counters.ok());
    EXPECT_EQ(counters->jobs, 2u);
    EXPECT_EQ(counters->retries, 1u);
    EXPECT_EQ(counters->failures, 1u);
    lift_faults(*watcher);
    EXPECT_TRUE(next<NearDuplicatesAnswer>(*late).ok());
    EXPECT_EQ(daemon_->exit_code(), 3);
    EXPECT_TRUE(folder_.empty());
}

TEST_F(Gputextd, EndsForALostDeviceAlsoWhenItsJobIsCancelled) {
    start({"--fake-devices=2", "--allow-faults"});
    const auto watcher = connect(), busy = connect();
    auto loser = connect();
    small_.request().limits.device = 1;
    ASSERT_TRUE(busy->inject_fault("in_job:hold:2").ok());
    ASSERT_TRUE(busy->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return is_running(*watcher); }));
    small_.request().limits.device = -1;
    ASSERT_TRUE(loser->inject_fault("in_job:hold").ok());
    ASSERT_TRUE(loser->inject_fault("in_job:device_lost:1:0").ok());
    ASSERT_TRUE(loser->submit(small_.request()).ok());
    const auto device_of_loser = [&] {
        const auto jobs = running_jobs(*watcher);
        return jobs.size() == 2 ? jobs[1].device : -2;
    };
    ASSERT_TRUE(soon([&] { return device_of_loser() == 0; }));
    lift_faults(*watcher);
    ASSERT_TRUE(soon([&] { return device_of_loser() == -1; }));
    loser.reset();
    EXPECT_TRUE(soon([&] { return running_jobs(*watcher).size() == 1; }));
    lift_faults(*watcher);
    EXPECT_TRUE(next<NearDuplicatesAnswer>(*busy).ok());
    EXPECT_EQ(daemon_->exit_code(), 3);
}

TEST_F(Gputextd, RunsTwoJobsOnTheDevicesOfEachOtherWhenBothFail) {
    start({"--fake-devices=2", "--allow-faults"});
    const auto one = connect(), other = connect(), watcher = connect();
    for (const auto& client : {one.get(), other.get()}) {
        ASSERT_TRUE(client->inject_fault("before_job:hold").ok());
        ASSERT_TRUE(client->inject_fault("in_job:device_error").ok());
        ASSERT_TRUE(client->submit(small_.request()).ok());
    }
    ASSERT_TRUE(soon([&] {
        const auto jobs = running_jobs(*watcher);
        return jobs.size() == 2 && jobs[0].device >= 0 && jobs[1].device >= 0;
    }));
    lift_faults(*watcher);
    const auto first = next<NearDuplicatesAnswer>(*one),
               second = next<NearDuplicatesAnswer>(*other);
    for (const auto* answer : {&first, &second}) {
        ASSERT_TRUE(answer->ok()) << answer->status().message();
        EXPECT_EQ((*answer)->summary.report.retries, 1u);
        EXPECT_EQ(rows(*(*answer)->read()), small_.expected());
    }
    EXPECT_NE(first->summary.report.device, second->summary.report.device);
    expect_good_answer();
}

TEST_F(Gputextd, CrashesAreErrorsOfTheirClients) {
    for (const char* fault :
         {"before_job:crash", "in_job:crash", "in_job:abort", "before_reply:crash"}) {
        start();
        const auto connection = connect();
        const auto bystander = connect();
        const auto reply = answer_with_fault(*connection, fault);
        EXPECT_EQ(reply.status().code(), ErrorCode::unavailable) << fault;
        EXPECT_EQ(reply.status().message(), "gputextd ended unexpectedly");
        EXPECT_NE(reply.status().hint(), "");
        EXPECT_FALSE(next_event(*bystander).ok());
        EXPECT_EQ(connection->submit(small_.request()).code(), ErrorCode::unavailable);
        ASSERT_TRUE(daemon_->wait().has_value());
        EXPECT_EQ(DaemonConnection::connect(socket_).status().code(), ErrorCode::unavailable);
        // The next one finds the socket of the one that crashed.
        start();
        expect_good_answer();
        daemon_.reset();
    }
}

TEST_F(Gputextd, AKillIsAnErrorOfItsClients) {
    start();
    const auto connection = connect();
    const auto watcher = connect();
    ASSERT_TRUE(connection->inject_fault("in_job:stuck").ok());
    ASSERT_TRUE(connection->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return is_running(*watcher); }));
    daemon_->send_signal(SIGKILL);
    EXPECT_EQ(next_event(*connection).status().code(), ErrorCode::unavailable);
    EXPECT_EQ(daemon_->ending_signal(), SIGKILL);
}

TEST_F(Gputextd, BrokenRepliesAreErrorsOfTheirClients) {
    start();
    for (const char* fault :
         {"no_reply", "wrong_magic", "wrong_version", "wrong_length", "wrong_counts", "short_file",
          "unsealed_file", "no_file", "too_many_files"}) {
        const auto connection = connect();
        const auto reply = answer_with_fault(*connection, std::string("before_reply:") + fault);
        EXPECT_EQ(reply.status().code(), ErrorCode::unavailable) << fault;
    }
    const auto connection = connect();
    const auto reply = answer_with_fault(*connection, "before_reply:wrong_answer");
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(reply->read().status().code(), ErrorCode::unavailable);
    EXPECT_EQ(reply->read().status().message(),
              "gputextd sent a reply that makes no sense: wrong classes of copies");
    expect_good_answer(*connection, small_);
}

TEST_F(Gputextd, FaultsOfAWelcomeAreErrorsOfTheirClients) {
    start();
    for (const char* fault : {"no_reply", "wrong_magic", "wrong_version", "wrong_length"}) {
        inject_at_accept(fault);
        const Status status = first_status();
        EXPECT_EQ(status.code(), ErrorCode::unavailable) << fault;
        if (std::string(fault) == "wrong_version") {
            EXPECT_EQ(status.message(),
                      "gputextd speaks version " + std::to_string(kProtocolVersion + 1) +
                          " of the protocol instead of " + std::to_string(kProtocolVersion));
        }
        expect_good_answer();
    }
    inject_at_accept("hang");
    const auto ignored = connect();
    ASSERT_TRUE(ignored->submit(small_.request()).ok());
    EXPECT_FALSE(readable(*ignored, milliseconds(100)));
    expect_good_answer();
    inject_at_accept("crash");
    EXPECT_FALSE(first_status().ok());
}

TEST_F(Gputextd, AllowsFaultsOnlyWhenStartedSo) {
    start({"--fake-devices=1"});
    const auto connection = connect();
    ASSERT_TRUE(connection->inject_fault("in_job:crash").ok());
    ASSERT_TRUE(connection->submit(small_.request()).ok());
    const auto refused = next_event(*connection);
    ASSERT_TRUE(refused.ok());
    const auto* failed = std::get_if<Failed>(&*refused);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->status.message(), "gputextd was not started to allow faults");
    EXPECT_FALSE(failed->of_job);
    const auto reply = next<NearDuplicatesAnswer>(*connection);
    ASSERT_TRUE(reply.ok()) << reply.status().message();
}

TEST_F(Gputextd, RefusesUnknownFaults) {
    start();
    const auto connection = connect();
    for (const char* fault : {"", "nowhere:crash", "in_job:tea", "in_job:slow:x", "in_job",
                              "in_job:slow:1:x", "before_job:slow:1:0"}) {
        ASSERT_TRUE(connection->inject_fault(fault).ok());
        EXPECT_EQ(next<DeviceList>(*connection).status().code(), ErrorCode::invalid_argument);
    }
}

TEST_F(Gputextd, RefusesParametersAndFilesThatAreWrong) {
    start();
    const auto connection = connect();
    const auto code_of = [&](const NearDuplicatesRequest& request) {
        EXPECT_TRUE(connection->submit(request).ok());
        return next<NearDuplicatesAnswer>(*connection).status().code();
    };
    auto request = small_.request();
    request.parameters.threshold = 0.5;
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    request = small_.request();
    request.parameters.signature_length = 5000;
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    request = small_.request();
    request.bytes_size += 1;
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    request = small_.request();
    const Extent outside[] = {{0, small_.request().bytes_size + 1}};
    request.extents = outside;
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    const FileDescriptor open_file = std::move(*new_memory_file());
    ASSERT_TRUE(write_file(open_file.get(), small_.packed().bytes(), 0).ok());
    request = small_.request();
    request.bytes_file = open_file.get();
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    expect_good_answer(*connection, small_);
}

TEST_F(Gputextd, TellsAClientOfAnotherVersion) {
    start();
    RawClient client(socket_);
    auto hello = encode(Hello{1, "0"});
    hello[4] = 200;
    ASSERT_EQ(client.send(hello), Sent::all);
    const auto messages = client.messages_until_close();
    ASSERT_TRUE(messages.has_value());
    ASSERT_EQ(messages->size(), 2u);
    EXPECT_TRUE(std::holds_alternative<Hello>((*messages)[0]));
    const auto* error = std::get_if<ErrorReply>(&(*messages)[1]);
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->code, ErrorCode::unavailable);
    EXPECT_EQ(error->message, "gputextd received version 200 of the protocol instead of " +
                                  std::to_string(kProtocolVersion));
}

TEST_F(Gputextd, ClosesOnThoseWhoDoNotSpeakTheProtocol) {
    start();
    const auto watcher = connect();
    const auto hello = encode(Hello{1, "0"});
    const auto closes = [&](std::span<const std::uint8_t> packet, bool greet,
                            std::span<const int> descriptors = {}) {
        RawClient client(socket_);
        if (greet) {
            EXPECT_EQ(client.send(hello), Sent::all);
        }
        EXPECT_EQ(client.send(packet, descriptors), Sent::all);
        return client.messages_until_close().has_value();
    };
    EXPECT_TRUE(closes(encode(AskDevices()), false));
    EXPECT_TRUE(closes(encode(CounterValues()), true));
    EXPECT_TRUE(closes(encode(SubmitNearDuplicates()), true));  // without its files
    const int file[] = {0};
    EXPECT_TRUE(closes(encode(AskDevices()), true, file));
    EXPECT_TRUE(closes(std::vector<std::uint8_t>(kMaxMessageSize + 100), true));
    RandomStrings random;
    for (int i = 0; i < 200; ++i) {
        std::vector<std::uint8_t> garbage(1 + random.below(300));
        for (auto& byte : garbage) byte = static_cast<std::uint8_t>(random.below(256));
        ASSERT_TRUE(closes(garbage, i % 2 == 0));
    }
    // Two jobs at once.
    NearDuplicatesRequest request = small_.request();
    const auto client = connect();
    ASSERT_TRUE(client->inject_fault("in_job:hang").ok());
    ASSERT_TRUE(client->submit(request).ok());
    EXPECT_EQ(client->submit(request).code(), ErrorCode::invalid_argument);
    EXPECT_TRUE(is_running(*watcher) || soon([&] { return is_running(*watcher); }));
}

TEST_F(Gputextd, ClosesOnThoseWhoAskAndDoNotListen) {
    start();
    RawClient client(socket_);
    ASSERT_EQ(client.send(encode(Hello{1, "0"})), Sent::all);
    const auto question = encode(AskCounters());
    EXPECT_TRUE(soon([&] { return client.send(question) == Sent::closed; }));
    expect_good_answer();
}

TEST_F(Gputextd, OnlyItsOwnerMayConnect) {
    start();
    ASSERT_NE(connect(), nullptr);
    struct stat file;
    ASSERT_EQ(stat(socket_.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777, 0600u);  // whatever the umask, which is 0 there
}

TEST_F(Gputextd, EndsWhenToldAndLeavesNothing) {
    start();
    const auto connection = connect(), watcher = connect();
    ASSERT_TRUE(connection->inject_fault("in_job:hang").ok());
    ASSERT_TRUE(connection->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return is_running(*watcher); }));
    daemon_->close_supervisor_pipe();
    const auto reply = next<NearDuplicatesAnswer>(*connection);
    EXPECT_EQ(reply.status().message(), "gputextd is shutting down");
    EXPECT_EQ(daemon_->exit_code(), 0);
    EXPECT_TRUE(folder_.empty());

    start();
    ASSERT_NE(connect(), nullptr);
    daemon_->send_signal(SIGTERM);
    EXPECT_EQ(daemon_->exit_code(), 0);
    EXPECT_TRUE(folder_.empty());
}

TEST_F(Gputextd, EndsWhenToldThoughADeviceIsStuck) {
    start();
    const auto connection = connect(), watcher = connect();
    ASSERT_TRUE(connection->inject_fault("in_job:stuck").ok());
    ASSERT_TRUE(connection->submit(small_.request()).ok());
    ASSERT_TRUE(soon([&] { return is_running(*watcher); }));
    daemon_->send_signal(SIGTERM);
    EXPECT_EQ(daemon_->exit_code(), 0);
    EXPECT_TRUE(folder_.empty());
}

TEST_F(Gputextd, DiesWithItsParent) {
    // Orphans become this process' children, so that it can wait for them.
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t parent = fork();
    if (parent == 0) {
        DaemonProcess daemon(socket_,
                             {"--fake-devices=1", "--parent-pid=" + std::to_string(getpid())});
        const pid_t pid = daemon.pid();
        if (write(ends[1], &pid, sizeof pid) != sizeof pid) _exit(1);
        pause();
    }
    pid_t pid = 0;
    ASSERT_EQ(read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    ASSERT_NE(connect(), nullptr);
    kill(parent, SIGKILL);
    waitpid(parent, nullptr, 0);
    int status = 0;
    EXPECT_TRUE(soon([&] { return waitpid(pid, &status, WNOHANG) == pid; }));
    close(ends[0]);
    close(ends[1]);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    start();
    expect_good_answer();
}

TEST_F(Gputextd, LeavesARunningServerItsSocket) {
    start();
    expect_good_answer();
    DaemonProcess second(socket_, {"--fake-devices=1"});
    EXPECT_EQ(second.exit_code(), 1);
    expect_good_answer();
}

TEST_F(Gputextd, ReplacesNoFileThatIsNoSocket) {
    std::fclose(std::fopen(socket_.c_str(), "w"));
    start();
    EXPECT_EQ(daemon_->exit_code(), 1);
    EXPECT_TRUE(std::filesystem::is_regular_file(socket_));
}

TEST_F(Gputextd, RefusesWrongUsage) {
    for (const char* argument : {"--tea", "--threads=x", "extra", "--fake-devices=1000"}) {
        start({argument});
        EXPECT_EQ(daemon_->exit_code(), 2) << argument;
    }
    start({"--version"});
    EXPECT_EQ(daemon_->exit_code(), 0);
}

TEST_F(Gputextd, AnswersAnEmptyJobQuickly) {
    start();
    const auto connection = connect();
    Work empty(std::vector<std::string>{});
    std::vector<double> times;
    for (int i = 0; i < 200; ++i) {
        const auto begin = Clock::now();
        ASSERT_TRUE(connection->submit(empty.request()).ok());
        ASSERT_TRUE(next<NearDuplicatesAnswer>(*connection).ok());
        times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    std::sort(times.begin(), times.end());
    std::cout << "empty job: median " << times[100] << " ms, 99th percentile " << times[198]
              << " ms\n";
    EXPECT_LT(times[0], 30);  // a busy machine may delay most of them
}

TEST(DaemonConnection, SaysThatNobodyListens) {
    const Folder folder;
    EXPECT_EQ(DaemonConnection::connect(folder / "socket").status().code(), ErrorCode::unavailable);
    const std::string too_long(200, 'x');
    EXPECT_EQ(DaemonConnection::connect(folder / too_long).status().code(),
              ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace gputext
