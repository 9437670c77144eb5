// What an ordinary role can make a session and gputextd take: answers that grow with the square of
// the rows keep to gputext.host_memory_limit, in parts or by an error.

#include <cstdio>

#include "tests/live/daemon_test.hpp"
#include "tests/live/live_test.hpp"

namespace gputext::live {
namespace {

constexpr long kLimit = 16;  // MB
/// Beside the limit: the rows, work_mem, two threads with 16 MB each, PostgreSQL's own memory and
/// what the allocator keeps. All the neighbors of kPoints points would take 150 MB.
constexpr long kMost = kLimit + 64;
constexpr int kPoints = 2500;

/// The most that a process holds while something runs, beyond what it held before, in MB.
class Peak {
public:
    explicit Peak(int pid) : pid_(pid) {
        std::ofstream(proc(pid) / "clear_refs") << 5;  // sets VmHWM to VmRSS
        before_ = resident_of(pid);
    }

    long megabytes() const {
        std::ifstream status(proc(pid_) / "status");
        for (std::string line; std::getline(status, line);)
            if (line.rfind("VmHWM:", 0) == 0) return (std::stol(line.substr(6)) - before_) / 1024;
        return -1;
    }

private:
    int pid_;
    long before_;
};

void make_points(Session& session) {
    session.rows(
        "CREATE TABLE points AS SELECT i::bigint AS id, "
        "ARRAY[i % 101, i % 103, i * 7919 % 1009]::real[] AS place FROM generate_series(1, " +
        std::to_string(kPoints) + ") i");
}

const std::string kPointsQuery = "'SELECT id, place FROM points'";
const std::string kAllNeighbors = "SELECT count(*) FROM gpu_knn_within(" + kPointsQuery + ", " +
                                   kPointsQuery + ", radius => 'Infinity', metric => 'euclidean')";
const std::string kManyNeighbors = "SELECT count(*) FROM gpu_knn(" + kPointsQuery + ", " +
                                    kPointsQuery + ", k => 2000, metric => 'euclidean')";
const std::string kAllFactors = "SELECT count(*) FROM local_outlier_factor(" + kPointsQuery +
                                ", k => " + std::to_string(kPoints - 1) + ")";
const std::string kNeighborsOfOne =
    "SELECT count(*) FROM gpu_knn_within('SELECT id, place FROM points LIMIT 1', "
    "'SELECT id + 10000 * i, place FROM points, generate_series(1, 20) i', "
    "radius => 'Infinity', metric => 'euclidean')";

class MemoryLimit : public LiveTest {
protected:
    void SetUp() override {
        LiveTest::SetUp();
        if (HasFatalFailure()) return;
        const std::string role = new_role("user");
        make_points(session());
        session().rows("GRANT SELECT ON points TO " + role);
        user_ = std::make_unique<Session>(role);
        user().rows("SET gputext.host_memory_limit = '" + std::to_string(kLimit) + "MB'");
        user().rows("SET work_mem = '1MB'");
        user().rows("SELECT * FROM gpu_knn(" + kPointsQuery + ", " + kPointsQuery + ", 1)");
    }
    void TearDown() override {
        user_.reset();
        LiveTest::TearDown();
    }

    Session& user() { return *user_; }

    void expect_refused(const std::string& statement, const std::string& what) {
        const Peak peak(user().pid());
        EXPECT_EQ(user().sqlstate(statement), "53200") << user().message();
        EXPECT_NE(user().message().find(what + " would take at least "), std::string::npos)
            << user().message();
        EXPECT_LT(peak.megabytes(), kMost) << statement;
        expect_nothing_left(user().pid(), statement);
    }
    void expect_within(const std::string& statement, const std::string& wanted) {
        const Peak peak(user().pid());
        EXPECT_EQ(user().value(statement), wanted);
        std::printf("             %ld MB at most\n", peak.megabytes());
        EXPECT_LT(peak.megabytes(), kMost) << statement;
        expect_nothing_left(user().pid(), statement);
    }

private:
    std::unique_ptr<Session> user_;
};

TEST_F(MemoryLimit, NeighborsAreSearchedInParts) {
    expect_within(kAllNeighbors, std::to_string(kPoints * kPoints));
    expect_within(kManyNeighbors, std::to_string(kPoints * 2000));
}

TEST_F(MemoryLimit, NeighborsOfTextsAreSearchedInParts) {
    session().rows(
        "CREATE TABLE texts AS SELECT i::bigint AS id, 'word ' || i AS body FROM "
        "generate_series(1, 2500) i");
    // A word that all texts have would weigh nothing.
    session().rows("INSERT INTO texts VALUES (0, 'none')");
    session().rows("GRANT SELECT ON texts TO PUBLIC");
    expect_within(
        "SELECT count(*) FROM gpu_knn_within('SELECT id, body FROM texts', "
        "'SELECT id, body FROM texts', radius => 'Infinity', min_document_frequency => 1)",
        "6250001");
}

TEST_F(MemoryLimit, WhatCannotBeDoneInPartsIsRefused) {
    expect_refused(kAllFactors, "the neighbors");
    user().rows("SET gputext.host_memory_limit = '1MB'");
    expect_refused(kNeighborsOfOne, "");
}

TEST_F(MemoryLimit, CountsOfWordsAreRefused) {
    session().rows(
        "CREATE TABLE texts AS SELECT (SELECT string_agg('w' || i * j * 7919 % 4999, ' ') "
        "FROM generate_series(1, 200) j) AS body FROM generate_series(1, 500) i");
    session().rows("GRANT SELECT ON texts TO PUBLIC");
    expect_refused(
        "SELECT count(*) FROM word_cooccurrences('SELECT body FROM texts', 100, "
        "min_count => 1, preset => 'thesis')",
        "the counts");
    expect_refused(
        "SELECT count(*) FROM word_similarity('SELECT body FROM texts', 5, "
        "window_size => 100, min_count => 1, preset => 'thesis')",
        "the counts");
}

TEST_F(MemoryLimit, OnlyASuperuserSetsTheMaximum) {
    EXPECT_EQ(user().sqlstate("SET gputext.host_memory_limit = '2TB'"), "22023")
        << user().message();
    EXPECT_EQ(user().sqlstate("SET gputext.max_host_memory = '2TB'"), "42501");
}

class MemoryLimitOnDevice : public DaemonTest {
protected:
    void SetUp() override {
        DaemonTest::SetUp();
        if (HasFailure()) return;
        session().rows("DROP TABLE IF EXISTS points");
        make_points(session());
        set("gputext.host_memory_limit = '" + std::to_string(kLimit) + "MB'");
        set("work_mem = '1MB'");
    }
};

TEST_F(MemoryLimitOnDevice, HoldsForGputextdToo) {
    const long jobs = counter("gpu_jobs");
    for (const auto& [statement, wanted] : {std::pair(kAllNeighbors, kPoints * kPoints),
                                            std::pair(kManyNeighbors, kPoints * 2000)}) {
        const Peak of_session(session().pid()), of_daemon(server().daemon());
        EXPECT_EQ(session().value(statement), std::to_string(wanted));
        EXPECT_LT(of_session.megabytes(), kMost);
        if (!on_real_gpus()) {
            EXPECT_LT(of_daemon.megabytes(), kMost);
        }
    }
    EXPECT_GT(counter("gpu_jobs"), jobs + 2);
    set("gputext.device = auto");
    const Peak of_session(session().pid()), of_daemon(server().daemon());
    EXPECT_EQ(session().sqlstate(kAllFactors), "53200") << session().message();
    EXPECT_EQ(session().sqlstate("SET gputext.device = gpu"), "ok");
    EXPECT_EQ(session().sqlstate(kAllFactors), "53200") << session().message();
    EXPECT_LT(of_session.megabytes(), kMost);
    if (!on_real_gpus()) {
        EXPECT_LT(of_daemon.megabytes(), kMost);
    }
    expect_others_untouched();
    expect_nothing_left();
}

}  // namespace
}  // namespace gputext::live
