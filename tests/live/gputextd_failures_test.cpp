// What a statement gives when its job fails on a device: with gputext.device = gpu an error that
// says why, with auto the CPU's answer. Nothing else notices, the next job works, nothing is left.

#include "tests/live/daemon_test.hpp"

namespace gputext::live {
namespace {

struct Failing {
    const char* name;
    const char* fault;
    const char* sqlstate;
    const char* message;   // in the error's text, as is the hint
    const char* fallback;  // of gputext_stat
};

void PrintTo(const Failing& failing, std::ostream* out) {
    *out << failing.name;
}

const Failing kFailing[] = {
    {"Crash", "in_job:crash", "38000", "gputextd ended", "gputextd ended"},
    {"Abort", "in_job:abort", "38000", "gputextd ended", "gputextd ended"},
    {"CrashBeforeTheJob", "before_job:crash", "38000", "gputextd ended", "gputextd ended"},
    {"CrashBeforeTheReply", "before_reply:crash", "38000", "gputextd ended", "gputextd ended"},
    {"OutOfMemory", "in_job:out_of_memory:1000", "53200", "out of device memory",
     "out of device memory"},
    {"DeviceError", "in_job:device_error:1000", "58000", "the device failed", "device error"},
    {"DeviceLost", "in_job:device_lost:1000", "58000", "the device is lost", "device error"},
    {"NoReply", "before_reply:no_reply", "38000", "gputextd", "gputextd ended"},
    {"WrongMagic", "before_reply:wrong_magic", "38000", "gputextd", "gputextd ended"},
    {"WrongVersion", "before_reply:wrong_version", "38000", "gputextd", "gputextd ended"},
    {"WrongLength", "before_reply:wrong_length", "38000", "gputextd", "gputextd ended"},
    {"WrongCounts", "before_reply:wrong_counts", "38000", "gputextd", "gputextd ended"},
    {"WrongAnswer", "before_reply:wrong_answer", "38000", "gputextd", "gputextd ended"},
    {"ShortFile", "before_reply:short_file", "38000", "gputextd", "gputextd ended"},
    {"UnsealedFile", "before_reply:unsealed_file", "38000", "gputextd", "gputextd ended"},
    {"NoFile", "before_reply:no_file", "38000", "gputextd", "gputextd ended"},
    {"TooManyFiles", "before_reply:too_many_files", "38000", "gputextd", "gputextd ended"},
};

class FailingJob : public DaemonTest, public ::testing::WithParamInterface<Failing> {};

TEST_P(FailingJob, IsAnErrorOfAGpu) {
    const long failures = counter("failures");
    inject(GetParam().fault);
    EXPECT_EQ(session().sqlstate(kJob), GetParam().sqlstate);
    EXPECT_NE(session().message().find(GetParam().message), std::string::npos)
        << session().message();
    EXPECT_NE(session().message().find("HINT:"), std::string::npos) << session().message();
    EXPECT_EQ(counter("failures"), failures + 1);
    expect_recovered();
}

TEST_P(FailingJob, IsComputedOnTheCpu) {
    const long before = fallbacks(GetParam().fallback);
    const long cpu_jobs = counter("cpu_jobs");
    set("gputext.device = auto");
    set("gputext.cpu_threads = 1");
    inject(GetParam().fault);
    EXPECT_EQ(session().value(kLargeJob), kLargeAnswer);
    EXPECT_EQ(fallbacks(GetParam().fallback), before + 1);
    EXPECT_EQ(counter("cpu_jobs"), cpu_jobs + 1);
    expect_recovered();
}

INSTANTIATE_TEST_SUITE_P(Faults, FailingJob, ::testing::ValuesIn(kFailing),
                         [](const auto& tested) { return tested.param.name; });

class Device : public DaemonTest {};

TEST_F(Device, ThatRunsOutOfMemoryIsAskedAgainWithLess) {
    const long retries = counter("retries");
    const long fallback = counter("cpu_fallbacks");
    inject("in_job:out_of_memory:3");
    EXPECT_EQ(session().value(kJob), kAnswer);
    EXPECT_EQ(counter("retries"), retries + 3);
    EXPECT_EQ(counter("cpu_fallbacks"), fallback);
    expect_recovered();
}

TEST_F(Device, ThatIsSlowTakesItsTime) {
    inject("in_job:slow:300");
    EXPECT_EQ(session().value(kJob), kAnswer);
    expect_recovered();
}

// ---- Another process ends gputextd ----

class Gputextd : public DaemonTest, public ::testing::WithParamInterface<int> {};

TEST_P(Gputextd, KilledIsAnErrorOfAGpu) {
    const pid_t killed = server().daemon();
    const long restarts = counter("restarts");
    const auto running = job_in_flight();
    send_signal(killed, GetParam());
    EXPECT_EQ(running->wait(), "38000");
    EXPECT_NE(session().message().find("gputextd ended"), std::string::npos) << session().message();
    EXPECT_NE(session().message().find("HINT:"), std::string::npos) << session().message();
    expect_recovered();
    EXPECT_NE(server().daemon(), killed);
    EXPECT_EQ(counter("restarts"), restarts + 1);
    EXPECT_NE(
        server().log().find("gputextd was terminated by signal " + std::to_string(GetParam())),
        std::string::npos);
}

TEST_P(Gputextd, KilledLeavesTheAnswerToTheCpu) {
    const long before = fallbacks("gputextd ended");
    set("gputext.device = auto");
    set("gputext.cpu_threads = 1");
    const auto running = job_in_flight(kLargeJob);
    send_signal(server().daemon(), GetParam());
    EXPECT_EQ(running->wait(), "ok") << session().message();
    EXPECT_EQ(fallbacks("gputextd ended"), before + 1);
    expect_recovered();
}

INSTANTIATE_TEST_SUITE_P(Signals, Gputextd, ::testing::Values(SIGKILL, SIGSEGV),
                         [](const auto& tested) {
                             return tested.param == SIGKILL ? "SIGKILL" : "SIGSEGV";
                         });

// Told to end, it says so, and its jobs are sent to the next one.
TEST_F(Device, JobsOfAGputextdThatIsToldToEndGoToTheNext) {
    const pid_t told = server().daemon();
    inject("in_job:slow:1000");
    Running running(session(), kJob);
    ASSERT_TRUE(reaches(session().pid(), "being slow"));
    send_signal(told, SIGTERM);
    EXPECT_EQ(running.wait(), "ok") << session().message();
    EXPECT_TRUE(eventually([&] { return !alive(told); }));
    expect_recovered();
}

// ---- The connection ----

class Connecting : public DaemonTest, public ::testing::WithParamInterface<const char*> {};

// The job was not looked at yet, so it is sent once more.
TEST_P(Connecting, IsTriedAgain) {
    inject(std::string("accept:") + GetParam());
    EXPECT_EQ(session().sqlstate(kJob), "ok") << session().message();
    expect_recovered();
}

INSTANTIATE_TEST_SUITE_P(Faults, Connecting,
                         ::testing::Values("no_reply", "wrong_magic", "wrong_version",
                                           "wrong_length", "crash", "abort", "hang"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace gputext::live
