// The supervisor and what it can meet: no program to run, one that keeps ending or does not answer,
// no devices, no place for itself, other settings. And what gputextd gets from it.

#include <cmath>
#include <cstdio>

#include "tests/live/daemon_test.hpp"

namespace gputext::live {
namespace {

/// The supervisor of these tests takes its library, and gputextd beside it, from a folder of the
/// test's own.
class Supervisor : public DaemonTest {
protected:
    void TearDown() override {
        if (has_server() && server().running()) {
            other().rows("ALTER SYSTEM RESET ALL");
            reload("dynamic_library_path", "$libdir");
            end_supervisor();
        }
        DaemonTest::TearDown();
    }

    fs::path folder() { return server().root() / "lib"; }
    fs::path installed() {
        return other().value("SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'");
    }

    void put_program(const std::string& script, bool executable = true) {
        // Not over one that runs.
        fs::remove(folder() / "gputextd");
        std::ofstream(folder() / "gputextd") << script;
        fs::permissions(folder() / "gputextd", static_cast<fs::perms>(executable ? 0755 : 0644));
    }
    void install_program() {
        fs::remove(folder() / "gputextd");  // a program that runs is not written
        fs::copy_file(installed() / "gputextd", folder() / "gputextd");
    }

    /// Installs the program changed so that it says that it was built from other sources.
    void install_older_program() {
        install_program();
        std::string program = contents(folder() / "gputextd");
        const std::string release = release_of_program();
        const std::string digest = release.substr(release.find('+') + 1);
        ASSERT_EQ(digest.size(), 16u) << release;
        const std::size_t at = program.find(release);
        ASSERT_NE(at, std::string::npos);
        program.replace(at + release.size() - digest.size(), digest.size(), "0123456789abcdef");
        fs::remove(folder() / "gputextd");
        std::ofstream(folder() / "gputextd", std::ios::binary) << program;
        fs::permissions(folder() / "gputextd", static_cast<fs::perms>(0755));
    }

    /// As it says it: "gputextd VERSION+DIGEST, protocol NUMBER".
    std::string release_of_program() {
        const std::string command = (installed() / "gputextd").string() + " --version";
        const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), pclose);
        char line[200] = "";
        if (output == nullptr || std::fgets(line, sizeof line, output.get()) == nullptr) return "";
        const std::string text = line;
        return text.substr(text.find(' ') + 1, text.find(',') - text.find(' ') - 1);
    }

    /// The file that the running one was started from.
    fs::path program_of_daemon() {
        const std::string line = contents(proc(server().daemon()) / "cmdline");
        return line.substr(0, line.find('\0'));
    }

    long occurrences(const std::string& words, std::size_t logged) {
        const std::string log = server().log();
        long count = 0;
        for (std::size_t at = logged; (at = log.find(words, at)) != std::string::npos; ++at)
            ++count;
        return count;
    }
    long looks_since(std::size_t logged) {
        return occurrences("gputextd is ready, number of devices: 0", logged);
    }

    /// From here on the supervisor runs what is in the folder: nothing, as yet.
    void use_folder() {
        fs::remove_all(folder());
        fs::create_directory(folder());
        fs::permissions(folder(), static_cast<fs::perms>(0755));
        // Not a copy: since PostgreSQL 18 sessions find the library there, too, and may have it
        // already.
        fs::create_symlink(installed() / "gputext.so", folder() / "gputext.so");
        set_system("dynamic_library_path", folder().string() + ":$libdir");
        end_supervisor();
        connect();  // for the same reason
    }

    void set_system(const std::string& name, const std::string& value) {
        other().rows("ALTER SYSTEM SET " + name + " = '" + value + "'");
        reload(name, value);
    }

    /// Waits until the postmaster knows.
    void reload(const std::string& name, const std::string& value) {
        other().rows("SELECT pg_reload_conf()");
        ASSERT_TRUE(eventually(
            [&] { return Session(server().connection()).value("SHOW " + name) == value; }));
    }

    void expect_error_of_a_gpu(const std::string& message, const std::string& hint) {
        set("gputext.device = gpu");
        EXPECT_EQ(session().sqlstate(kJob), "55000");
        EXPECT_NE(session().message().find(message), std::string::npos) << session().message();
        EXPECT_NE(session().message().find("HINT:  " + hint), std::string::npos)
            << session().message();
    }

    void expect_answer_of_the_cpu(const std::string& reason) {
        const long before = fallbacks(reason);
        const long cpu_jobs = counter("cpu_jobs");
        set("gputext.device = auto");
        set("gputext.cpu_threads = 1");
        EXPECT_EQ(session().value(kLargeJob), kLargeAnswer);
        EXPECT_EQ(fallbacks(reason), before + 1);
        EXPECT_EQ(counter("cpu_jobs"), cpu_jobs + 1);
    }

    void expect_one_runs() {
        EXPECT_EQ(server().supervisors().size(), 1u);
        EXPECT_EQ(server().daemons().size(), 1u);
        EXPECT_EQ(server().daemon_files(), 2u);
    }

    void expect_nothing_runs() {
        EXPECT_TRUE(eventually([&] { return server().supervisors().empty(); }));
        EXPECT_EQ(server().daemons().size(), 0u);
        EXPECT_EQ(server().daemon_files(), 0u);
    }
};

// ---- No gputextd ----

TEST_F(Supervisor, WithoutAProgramSaysSo) {
    use_folder();
    expect_error_of_a_gpu("gputextd cannot be started", "With gputext.device set to auto or cpu");
    EXPECT_NE(session().message().find(folder().string() + "/gputextd"), std::string::npos)
        << session().message();
    expect_answer_of_the_cpu("gputextd not ready");
    expect_nothing_runs();
    install_program();
    expect_recovered();
}

// A job on the CPU may be all that ever asks for values.
TEST_F(Supervisor, IsStartedAgainToKeepValues) {
    use_folder();
    expect_error_of_a_gpu("gputextd cannot be started", "With gputext.device set to auto or cpu");
    expect_nothing_runs();
    install_program();
    set("gputext.device = cpu");
    EXPECT_TRUE(eventually([&] {
        session().rows("SELECT FROM gputext_resident()");
        return server().daemons().size() == 1;
    }));
    expect_recovered();
}

// Nobody is there any more to remove it, who made the socket.
TEST_F(Supervisor, RemovesTheSocketOfAProgramThatIsKilled) {
    use_folder();
    install_program();
    expect_job_on_device();
    fs::remove(folder() / "gputextd");
    send_signal(server().daemon(), SIGKILL);
    expect_nothing_runs();
    install_program();
    expect_recovered();
}

TEST_F(Supervisor, WithAProgramThatIsNotExecutableSaysSo) {
    use_folder();
    put_program("#!/bin/sh\n", false);
    expect_error_of_a_gpu("gputextd cannot be started", "With gputext.device set to auto or cpu");
    expect_answer_of_the_cpu("gputextd not ready");
    expect_nothing_runs();
    install_program();
    expect_recovered();
}

TEST_F(Supervisor, WithoutDevicesSaysSo) {
    use_folder();
    put_program("#!/bin/sh\nCUDA_VISIBLE_DEVICES= exec " + (installed() / "gputextd").string() +
                " \"$@\"\n");
    set_system("gputext.fake_devices", "0");
    expect_error_of_a_gpu("there is no GPU to use: ", "With gputext.device set to auto or cpu");
    expect_answer_of_the_cpu("no device");
    EXPECT_EQ(session().value("SELECT count(*) FROM gputext_devices() WHERE device IS NULL AND "
                              "status LIKE 'there is no GPU to use: %'"),
              "1");
    // It keeps values without devices, unless it is to keep none.
    expect_one_runs();
    set_system("gputext.resident_memory", "0");
    expect_nothing_runs();
    // A job that wants a device looks again.
    set_system("gputext.fake_devices", "2");
    expect_job_on_device();
    expect_others_untouched();
}

TEST_F(Supervisor, LooksForDevicesLessAndLessOften) {
    use_folder();
    put_program("#!/bin/sh\nCUDA_VISIBLE_DEVICES= exec " + (installed() / "gputextd").string() +
                " \"$@\"\n");
    set_system("gputext.fake_devices", "0");
    const std::string look =
        "SELECT count(*) FROM gputext_devices() WHERE device IS NULL AND "
        "status LIKE 'there is no GPU to use: %'";
    const std::string known =
        look + " AND status LIKE '% s ago, and again in % s or after a reload)'";
    const auto begin = Clock::now();
    const std::size_t logged = server().log().size();
    long answers_from_memory = 0;
    for (int call = 0; call < 200; ++call) {
        EXPECT_EQ(session().value(look), "1");
        answers_from_memory += std::stol(session().value(known));
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    // Three at once, then after 1, 2, 4 seconds and so on.
    const long most = 3 + 1 + static_cast<long>(std::log2(seconds + 1));
    EXPECT_GE(looks_since(logged), 3);
    EXPECT_LE(looks_since(logged), most) << seconds << " s";
    EXPECT_GE(answers_from_memory, 200 - most);
    // A job that has to have a device gets the same answer; a reload begins anew.
    expect_error_of_a_gpu("s ago, and again in ", "With gputext.device set to auto or cpu");
    const std::size_t reloaded = server().log().size();
    set_system("work_mem", "5MB");
    EXPECT_EQ(session().value(look), "1");
    EXPECT_EQ(looks_since(reloaded), 1);
    set_system("gputext.fake_devices", "2");
    expect_job_on_device();
    expect_others_untouched();
}

// ---- A gputextd of another release ----

TEST_F(Supervisor, TakesUpAProgramThatIsInstalledWhileItRuns) {
    use_folder();
    install_older_program();
    const std::size_t logged = server().log().size();
    expect_job_on_device();
    // Neither is newer, as far as the files say it.
    EXPECT_EQ(occurrences("were not built from the same sources", logged), 1);
    EXPECT_EQ(session().value("SELECT count(*) FROM gputext_devices() WHERE status LIKE "
                              "'ready; gputextd (%'"),
              session().value("SELECT count(*) FROM gputext_devices()"));
    expect_job_on_device();
    EXPECT_EQ(occurrences("were not built from the same sources", logged), 1) << "again";
    const pid_t before = server().daemon();
    install_program();
    expect_job_on_device();
    EXPECT_FALSE(alive(before));
    EXPECT_EQ(occurrences("another program was installed", logged), 1);
    EXPECT_EQ(session().value("SELECT count(*) FROM gputext_devices() WHERE status <> 'ready'"),
              "0");
    expect_recovered();
}

TEST_F(Supervisor, LetsJobsEndBeforeItTakesUpAnotherProgram) {
    use_folder();
    install_older_program();
    expect_job_on_device();
    const auto running = job_in_flight();
    const pid_t before = server().daemon();
    const std::size_t logged = server().log().size();
    install_program();
    Session late(server().connection());
    late.rows("SET gputext.device = gpu");
    EXPECT_EQ(late.value(kJob), kAnswer);
    EXPECT_EQ(occurrences("is older than this session's gputext", logged), 1);
    EXPECT_EQ(server().daemon(), before);
    EXPECT_FALSE(running->done());
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    EXPECT_EQ(running->wait(), "57014");
    // Without any other job.
    EXPECT_TRUE(eventually([&] { return !alive(before); }));
    expect_recovered();
    EXPECT_EQ(occurrences("is older than this session's gputext", logged), 1);
}

TEST_F(Supervisor, SaysThatTheSessionIsTheOlderOne) {
    use_folder();
    install_older_program();
    // Loaded from the folder, before another file takes its place there: the installed one serves
    // programs beside this one, whose sessions would read without workers from then on.
    other().rows("UPDATE pg_proc SET probin = 'gputext' WHERE probin = '$libdir/gputext'");
    connect_session();
    session().rows("SELECT edit_distance('a', 'b')");
    fs::copy_file(installed() / "gputext.so", folder() / "gputext.so.new");
    fs::rename(folder() / "gputext.so.new", folder() / "gputext.so");
    const std::size_t logged = server().log().size();
    expect_job_on_device();
    EXPECT_EQ(occurrences("this session's gputext", logged), 1);
    EXPECT_EQ(occurrences("connect anew, or restart", logged), 1);
    install_program();
    expect_recovered();
}

// ---- gputextd-cuda, from a package of its own ----

TEST_F(Supervisor, PrefersTheProgramWithKernels) {
    use_folder();
    install_program();
    fs::copy_file(installed() / "gputextd", folder() / "gputextd-cuda");
    expect_job_on_device();
    EXPECT_EQ(program_of_daemon(), folder() / "gputextd-cuda");
    // One that is there is meant to be used.
    end_supervisor();
    fs::permissions(folder() / "gputextd-cuda", static_cast<fs::perms>(0644));
    expect_error_of_a_gpu("gputextd cannot be started", "With gputext.device set to auto or cpu");
    EXPECT_NE(session().message().find(folder().string() + "/gputextd-cuda"), std::string::npos)
        << session().message();
    fs::remove(folder() / "gputextd-cuda");
    expect_job_on_device();
    EXPECT_EQ(program_of_daemon(), folder() / "gputextd");
}

// The package is installed while the server runs, whose gputextd has found no GPU.
TEST_F(Supervisor, TakesUpTheProgramWithKernelsWhenItIsInstalled) {
    use_folder();
    put_program("#!/bin/sh\nCUDA_VISIBLE_DEVICES= exec " + (installed() / "gputextd").string() +
                " \"$@\"\n");
    set_system("gputext.fake_devices", "0");
    expect_error_of_a_gpu("there is no GPU to use: ", "With gputext.device set to auto or cpu");
    expect_one_runs();
    fs::copy_file(installed() / "gputextd", folder() / "gputextd-cuda");
    set_system("gputext.fake_devices", "2");
    expect_job_on_device();
    EXPECT_EQ(program_of_daemon(), folder() / "gputextd-cuda");
}

// ---- A gputextd that does not work ----

TEST_F(Supervisor, StartsAProgramThatKeepsEndingLessAndLessOften) {
    use_folder();
    put_program("#!/bin/sh\nexit 1\n");
    const long restarts = counter("restarts");
    set("statement_timeout = '60s'");
    Running running(session(), kJob);
    // Not before it has waited one second and two.
    ASSERT_TRUE(eventually([&] { return counter("restarts") >= restarts + 8; }));
    for (const char* wait : {"in 1 s", "in 2 s", "in 4 s"})
        EXPECT_NE(server().log().find("gputextd is started again " + std::string(wait)),
                  std::string::npos);
    EXPECT_LE(counter("restarts"), restarts + 9);
    install_program();
    EXPECT_EQ(running.wait(), "ok") << session().message();
    expect_recovered();
}

TEST_F(Supervisor, WaitingToStartAgainIsNotForAuto) {
    use_folder();
    put_program("#!/bin/sh\necho 'WARNING out of luck' >&4\nexit 1\n");
    set("gputext.device = auto");
    set("gputext.cpu_threads = 1");
    // Patient enough to see it end often; then not at all.
    EXPECT_EQ(session().value(kLargeJob), kLargeAnswer);
    set("log_min_messages = notice");
    expect_answer_of_the_cpu("gputextd not ready");
    EXPECT_NE(server().log().find("computing on the CPU: gputextd keeps ending: out of luck"),
              std::string::npos);
    // Other settings end the wait.
    install_program();
    set_system("gputext.fake_devices", "3");
    expect_job_on_device();
}

TEST_F(Supervisor, EndsAProgramThatDoesNotAnswer) {
    use_folder();
    put_program("#!/bin/sh\nexec sleep 1000\n");
    Running running(session(), kJob);
    ASSERT_TRUE(eventually([&] { return server().supervisor() != 0; }));
    const pid_t supervisor = server().supervisor();
    ASSERT_TRUE(reaches(session().pid(), "waiting for a device"));
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    EXPECT_EQ(running.wait(), "57014");
    send_signal(supervisor, SIGTERM);
    EXPECT_TRUE(eventually([&] { return !alive(supervisor); }));
    // It was a shell of the data directory's.
    EXPECT_TRUE(processes_in(server().data(), [](pid_t pid) {
                    return contents(proc(pid) / "comm") == "sleep\n";
                }).empty());
    install_program();
    expect_recovered();
}

// ---- Settings ----

TEST_F(Supervisor, StartsGputextdAnewForOtherSettings) {
    if (on_real_gpus()) GTEST_SKIP() << "about devices without a GPU";
    const pid_t before = server().daemon();
    inject("in_job:slow:1000");
    Running running(session(), kJob);
    ASSERT_TRUE(reaches(session().pid(), "being slow"));
    set_system("gputext.fake_devices", "3");
    EXPECT_EQ(running.wait(), "ok") << session().message();
    EXPECT_FALSE(alive(before));
    EXPECT_EQ(session().value("SELECT count(*) FROM gputext_devices()"), "3");
    expect_others_untouched();
}

TEST_F(Supervisor, KeepsGputextdWhenOtherThingsAreSet) {
    const pid_t before = server().daemon();
    const auto running = job_in_flight();
    set_system("work_mem", "5MB");
    EXPECT_FALSE(running->done());
    EXPECT_EQ(server().daemon(), before);
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    EXPECT_EQ(running->wait(), "57014");
    expect_recovered();
}

TEST_F(Supervisor, NeedsABackgroundWorker) {
    const auto restart_with = [&](const std::string& workers) {
        disconnect();
        server().signal_server(SIGINT);
        ASSERT_TRUE(server().ended());
        server().configure("max_worker_processes = " + workers + "\n");
        server().start();
        connect();
    };
    restart_with("1");  // which PostgreSQL itself takes
    expect_error_of_a_gpu("no background worker is free", "Raise max_worker_processes");
    expect_answer_of_the_cpu("no free background worker");
    expect_nothing_runs();
    restart_with("8");
    expect_recovered();
}

// ---- The extension and its databases ----

TEST_F(Supervisor, OutlivesTheExtension) {
    const pid_t before = server().daemon();
    session().rows("DROP EXTENSION gputext");
    session().rows("CREATE EXTENSION gputext");
    expect_recovered();
    EXPECT_EQ(server().daemon(), before);
}

TEST_F(Supervisor, ServesAllDatabases) {
    const pid_t before = server().daemon();
    other().rows("CREATE DATABASE elsewhere");
    {
        Session session(server().connection("elsewhere"));
        session.rows("CREATE EXTENSION gputext");
        session.rows("SET gputext.device = gpu");
        const long jobs = counter("gpu_jobs");
        EXPECT_EQ(session.value(kJob), kAnswer);
        EXPECT_EQ(counter("gpu_jobs"), jobs + 1);
    }
    // It connects to none of them.
    other().rows("DROP DATABASE elsewhere");
    expect_recovered();
    EXPECT_EQ(server().daemon(), before);
}

// ---- What gputextd gets from it ----

TEST_F(Supervisor, GivesGputextdACleanStart) {
    const pid_t daemon = server().daemon();
    const std::string status = contents(proc(daemon) / "status");
    EXPECT_NE(status.find("SigIgn:\t0000000000000000"), std::string::npos) << status;
    EXPECT_EQ(contents(proc(daemon) / "oom_score_adj"), "500\n");
    EXPECT_EQ(getsid(daemon), daemon);
    for (const std::string& descriptor : descriptors_of(daemon)) {
        EXPECT_EQ(descriptor.find("pg_wal"), std::string::npos) << descriptor;
        EXPECT_EQ(descriptor.find("/base/"), std::string::npos) << descriptor;
    }
    // Its socket, and what only that has to have.
    struct stat socket;
    ASSERT_EQ(lstat((server().data() / "pgsql_tmp_gputext.sock").c_str(), &socket), 0);
    EXPECT_TRUE(S_ISSOCK(socket.st_mode));
    EXPECT_EQ(socket.st_mode & 0777u, 0600u);
}

}  // namespace
}  // namespace gputext::live
