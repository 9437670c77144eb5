// Statements on devices: the same answers as on the CPU, and what a user sees of them.

#include <libpq-fe.h>

#include <algorithm>
#include <cstdio>
#include <regex>

#include "tests/live/on_device.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::live {
namespace {

using testing::RandomStrings;

const std::string kTwo =
    "near_duplicates('SELECT i::bigint, ''same'' FROM generate_series(1, 2) i')";

class Statements : public OnDevice {
protected:
    /// A table that auto takes to a device: 2000 documents of 2 kB.
    void make_large() {
        session().rows(
            "CREATE TABLE large AS SELECT i::bigint AS id, (SELECT string_agg(md5(i || '/' || j), "
            "'') FROM generate_series(1, 64) j) AS body FROM generate_series(1, 2000) i");
    }
};

// ---- Answers ----

class Answers : public OnDevice, public ::testing::WithParamInterface<const char*> {
protected:
    /// Documents with relatives and copies among them, some empty, some beyond ASCII.
    void make_corpus(std::size_t count) {
        session().rows(
            "CREATE TABLE corpus (id bigint, word text, key uuid, "
            "body text, signature ctph)");
        pqxx::connection connection;
        pqxx::work work(connection);
        work.exec0("SET search_path = " + schema() + ", public");
        for (std::size_t i = 0; i < count; ++i) {
            if (i % 3 == 0) body_ = random_.string<std::u32string>(random_.below(700), kLetters);
            work.exec_params0(
                "INSERT INTO corpus SELECT i, 'w' || i, gen_random_uuid(), body, "
                "CASE WHEN i % 4 > 0 THEN ctph_signature(body, 20) END "
                "FROM (SELECT $1::bigint AS i, $2::text AS body) AS one",
                static_cast<long>(i), testing::utf8_of(body_));
            body_ = random_.edited(body_, random_.below(body_.size() / 8 + 1), kLetters);
        }
        work.commit();
    }

    void expect_same(const std::string& columns, const std::string& arguments) {
        for (const char* function : {"near_duplicates", "near_duplicate_groups"}) {
            const std::string call = std::string(function) + "($$SELECT " + columns +
                                     " FROM corpus ORDER BY corpus.id$$" + arguments + ")";
            const std::string on_cpu = rows_on("cpu", call);
            EXPECT_NE(on_cpu, "") << call;
            EXPECT_TRUE(rows_on("gpu", call) == on_cpu) << call;
        }
    }

    /// Of new documents, of which there is one in `some`, and old ones.
    void expect_same_between(const std::string& new_columns, const std::string& old_columns,
                             int some, const std::string& arguments) {
        const auto documents = [&](const std::string& columns, const char* is) {
            return "$$SELECT " + columns + " FROM corpus WHERE hashint8(id) % " +
                   std::to_string(some) + is + " 0 ORDER BY corpus.id$$";
        };
        const std::string call = "near_duplicates_between(" + documents(new_columns, " =") + ", " +
                                 documents(old_columns, " <>") + arguments + ")";
        const std::string on_cpu = rows_on("cpu", call);
        EXPECT_NE(on_cpu, "") << call;
        EXPECT_TRUE(rows_on("gpu", call) == on_cpu) << call;
    }

    std::string mode(const std::string& more = "") {
        return more + ", mode => '" + GetParam() + "', threshold => 0.1";
    }

private:
    static constexpr std::u32string_view kLetters = U"abcdefgh éß中😀";
    RandomStrings random_;
    std::u32string body_;
};

TEST_P(Answers, AreThoseOfTheCpu) {
    make_corpus(400);
    expect_same("id, body", mode());
    expect_same("id, convert_to(body, 'UTF8')", mode());
    expect_same("id, body, signature", mode());
    expect_same("id, body, NULL::ctph", mode());
    expect_same("id::int, body", mode(", id_type => NULL::int"));
    expect_same("word, body", mode(", id_type => NULL::text"));
    expect_same("key, body", mode(", id_type => NULL::uuid"));
    expect_same("ROW(id, word), body", mode(", id_type => NULL::record"));
}

TEST_P(Answers, BetweenTwoQueriesAreThoseOfTheCpu) {
    make_corpus(400);
    expect_same_between("id, body", "id, body", 2, mode());
    expect_same_between("id, body", "id, body", 10, mode());
    expect_same_between("id, body, signature", "id, body", 5, mode());
    expect_same_between("id, body", "id, body, signature", 5, mode());
    expect_same_between("id, convert_to(body, 'UTF8')", "id, convert_to(body, 'UTF8')", 3, mode());
    expect_same_between("word, body", "word, body", 3, mode(", id_type => NULL::text"));
    session().rows("SET gputext.host_memory_limit = '1MB'");
    expect_same_between("id, repeat(body, 10)", "id, repeat(body, 10)", 3, mode());
}

TEST_P(Answers, AreThoseOfTheCpuFromATemporaryFile) {
    make_corpus(100);
    session().rows("SET gputext.host_memory_limit = '1MB'");
    expect_same("id, repeat(body, 50)", mode());
    expect_same("id, repeat(body, 50), signature", mode());
    expect_nothing_left(session().pid(), "spilling");
}

TEST_P(Answers, AreThoseOfTheCpuInLittleMemory) {
    make_corpus(200);
    session().rows("SET gputext.gpu_memory_limit = '64MB'");
    expect_same("id, body", mode());
}

INSTANTIATE_TEST_SUITE_P(Modes, Answers, ::testing::Values("ctph", "exact"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(Statements, CountsWhatItComputes) {
    const long jobs = counter("gpu_jobs"), rows = counter("rows"), bytes = counter("bytes");
    session().rows(
        "SELECT * FROM near_duplicates("
        "'SELECT i::bigint, ''12345678'' FROM generate_series(1, 100) i')");
    EXPECT_EQ(counter("gpu_jobs"), jobs + 1);
    EXPECT_EQ(counter("rows"), rows + 100);
    EXPECT_EQ(counter("bytes"), bytes + 800);

    const long retries = counter("retries"), milliseconds = counter("gpu_milliseconds");
    session().rows("SET gputext.inject_fault = 'in_job:out_of_memory:2'");
    EXPECT_EQ(session().value("SELECT count(*) FROM " + kTwo), "1");
    EXPECT_EQ(counter("retries"), retries + 2);
    session().rows(slow(50));
    session().rows("SELECT * FROM " + kTwo);
    EXPECT_GE(counter("gpu_milliseconds"), milliseconds + 50);
}

// ---- Without one ----

TEST_F(Statements, SmallJobsOfAutoStayOnTheCpuAndLargeOnesDoNot) {
    session().rows("SET gputext.device = auto");
    const long cpu = counter("cpu_jobs"), gpu = counter("gpu_jobs");
    session().rows("SELECT * FROM " + kTwo);
    EXPECT_EQ(counter("cpu_jobs"), cpu + 1);
    make_large();
    session().rows("SELECT * FROM near_duplicates('TABLE large')");
    EXPECT_EQ(counter("gpu_jobs"), gpu + 1);
}

TEST_F(Statements, AFailedInnerQueryIsNoJob) {
    const auto counters = [&] {
        return other().table("SELECT gpu_jobs, cpu_jobs, failures, cancelled, rows FROM gputext_stat");
    };
    const std::string before = counters();
    EXPECT_EQ(session().sqlstate("SELECT * FROM near_duplicates('SELECT 1 / (i - 2), ''x'' FROM "
                                 "generate_series(1, 9) AS i')"),
              "22012");
    EXPECT_EQ(counters(), before);
}

struct Fault {
    const char* fault;
    const char* sqlstate;
    const char* reason;
};

// In auto the CPU answers, with gpu it is an error; then all goes on.
TEST_F(Statements, FailuresAreErrorsOrTheCpusAnswers) {
    make_large();
    const std::string large = "SELECT count(*) FROM near_duplicate_groups('TABLE large')";
    for (const Fault& fault : {Fault{"in_job:out_of_memory:100", "53200", "out of device memory"},
                               Fault{"in_job:device_error:100", "58000", "device error"},
                               Fault{"before_reply:wrong_answer", "38000", "gputextd ended"}}) {
        session().rows("SET gputext.inject_fault = '" + std::string(fault.fault) + "'");
        session().rows("SET gputext.device = gpu");
        const long failures = counter("failures"), fallbacks = counter("cpu_fallbacks");
        EXPECT_EQ(session().sqlstate(large), fault.sqlstate) << session().message();
        EXPECT_EQ(counter("failures"), failures + 1);

        const std::string reason =
            "coalesce((fallback_reasons->>'" + std::string(fault.reason) + "')::bigint, 0)";
        const long of_reason = counter(reason), cpu = counter("cpu_jobs");
        session().rows("SET gputext.device = auto");
        EXPECT_EQ(session().value(large), "2000");
        EXPECT_EQ(counter("cpu_fallbacks"), fallbacks + 1);
        EXPECT_EQ(counter(reason), of_reason + 1);
        EXPECT_EQ(counter("cpu_jobs"), cpu + 1);
        EXPECT_EQ(counter("failures"), failures + 1);
        expect_nothing_left(session().pid(), fault.fault);
    }
    session().rows("RESET gputext.inject_fault");
    session().rows("SET gputext.device = gpu");
    EXPECT_EQ(session().sqlstate(large), "ok");
}

TEST_F(Statements, UnknownFaultsAreErrors) {
    session().rows("SET gputext.inject_fault = 'in_job:nonsense'");
    EXPECT_EQ(session().sqlstate("SELECT * FROM " + kTwo), "22023");
    EXPECT_NE(session().message().find("unknown fault"), std::string::npos);
}

// ---- Activity ----

TEST_F(Statements, ActivityShowsWhereAJobIs) {
    Session stranger(new_role("stranger"));
    session().rows(slow(60000));
    Running job(session(), "SELECT * FROM " + kTwo);
    const std::string place = "function_name, device_name IS NOT NULL AND device ~ '^[0-9]+$', phase";
    EXPECT_TRUE(eventually([&] {
        return activity(session(), place) == "near_duplicates|t|being slow\n";
    })) << activity(session(), place);
    EXPECT_EQ(activity(session(),
                       "rows, bytes, total, done BETWEEN 0 AND 6000, "
                       "seconds BETWEEN 0 AND 60, started < clock_timestamp()"),
              "2|16|6000|t|t|t\n");

    EXPECT_EQ(stranger.table("SELECT pid, function_name, device, phase, rows, started "
                             "FROM gputext_activity WHERE pid = " +
                             std::to_string(session().pid())),
              std::to_string(session().pid()) + "|||||\n");

    const long cancelled = counter("cancelled");
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    EXPECT_EQ(job.wait(), "57014");
    EXPECT_TRUE(eventually([&] { return activity(session(), "pid").empty(); }));
    EXPECT_EQ(counter("cancelled"), cancelled + 1);
    expect_nothing_left(session().pid(), "a cancelled job");
}

TEST_F(Statements, ActivityShowsWhoWaits) {
    const int devices = std::stoi(session().value("SELECT count(*) FROM gputext_devices()"));
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<std::unique_ptr<Running>> jobs;
    for (int i = 0; i <= devices; ++i) {
        sessions.push_back(std::make_unique<Session>());
        sessions.back()->rows("SET gputext.device = gpu");
        sessions.back()->rows(slow(60000));
        jobs.push_back(std::make_unique<Running>(*sessions.back(), "SELECT * FROM " + kTwo));
    }
    const auto count = [&](const std::string& condition) {
        return other().value("SELECT count(*) FROM gputext_activity WHERE " + condition);
    };
    EXPECT_TRUE(eventually([&] {
        return count("phase = 'being slow' AND device IS NOT NULL") == std::to_string(devices) &&
               count("phase = 'waiting for a device' AND device IS NULL") == "1";
    })) << other().table("TABLE gputext_activity");
    other().rows("SELECT pg_terminate_backend(pid) FROM gputext_activity");
    for (const auto& job : jobs) EXPECT_TRUE(job->wait() == "gone" || job->wait() == "57P01");
    EXPECT_TRUE(eventually([&] { return count("true") == "0"; }));
}

TEST_F(Statements, ActivityShowsTheScanAndTheCpu) {
    session().rows("SET gputext.device = cpu");
    {
        Running job(session(),
                    "SELECT * FROM near_duplicates("
                    "'SELECT i::bigint, pg_sleep(0.01)::text FROM generate_series(1, 100000) i')");
        EXPECT_TRUE(eventually([&] {
            return activity(session(), "phase, device, total, done = rows AND rows > 20") ==
                   "reading rows|||t\n";
        })) << activity(session(), "phase, device, total, done, rows");
        other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
        EXPECT_EQ(job.wait(), "57014");
    }
    Running job(session(), "SELECT count(*) FROM " + kFarDocuments);
    EXPECT_TRUE(eventually([&] {
        return activity(session(), "phase, device, rows, done < total") ==
               "comparing documents|cpu|10000|t\n";
    })) << activity(session(), "phase, device, rows, done, total");
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    EXPECT_EQ(job.wait(), "57014");
}

// ---- gputext.progress ----

/// What a statement says to its client.
std::vector<std::string> notices_of(const std::vector<std::string>& settings,
                                    const std::string& sql) {
    std::vector<std::string> notices;
    PGconn* connection = PQconnectdb("");
    PQsetNoticeProcessor(
        connection,
        [](void* all, const char* text) {
            static_cast<std::vector<std::string>*>(all)->push_back(text);
        },
        &notices);
    for (const std::string& setting : settings) PQclear(PQexec(connection, setting.c_str()));
    PGresult* result = PQexec(connection, sql.c_str());
    EXPECT_EQ(PQresultStatus(result), PGRES_TUPLES_OK) << PQerrorMessage(connection);
    PQclear(result);
    PQfinish(connection);
    return notices;
}

std::size_t count_matches(const std::vector<std::string>& lines, const std::string& pattern) {
    return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
        return std::regex_match(line, std::regex(pattern + "\n"));
    });
}

TEST_F(Statements, ProgressIsALineASecond) {
    const auto begin = Clock::now();
    const auto lines =
        notices_of({"SET gputext.device = gpu", slow(3500), "SET gputext.progress = on"},
                   "SELECT * FROM " + kTwo);
    const auto seconds = static_cast<std::size_t>((Clock::now() - begin) / 1s);
    const std::size_t matches = count_matches(
        lines,
        "INFO:  near_duplicates: being slow, [0-9]+ %, about [0-9]+ s left \\(device [0-9]\\)");
    // On a busy machine the job waits for a device that long.
    EXPECT_EQ(count_matches(lines, "INFO:  near_duplicates: .*"), lines.size())
        << ::testing::PrintToString(lines);
    EXPECT_GE(matches, 2u) << ::testing::PrintToString(lines);
    EXPECT_LE(lines.size(), seconds) << ::testing::PrintToString(lines);
    EXPECT_EQ(notices_of({"SET gputext.device = gpu", slow(1500)}, "SELECT * FROM " + kTwo).size(),
              0u);
}

TEST_F(Statements, ProgressTellsOfTheScanAndTheCpu) {
    const auto scan =
        notices_of({"SET gputext.progress = on"},
                   "SELECT * FROM near_duplicates("
                   "'SELECT i::bigint, pg_sleep(0.01)::text FROM generate_series(1, 250) i')");
    EXPECT_GE(count_matches(scan, "INFO:  near_duplicates: reading rows, [0-9]+ so far"), 2u)
        << ::testing::PrintToString(scan);
    const auto cpu = notices_of(
        {"SET gputext.progress = on", "SET gputext.device = cpu", "SET gputext.cpu_threads = 1"},
        "SELECT count(*) FROM near_duplicates("
        "'SELECT i::bigint, md5(i::text) FROM generate_series(1, 8000) i', threshold => 0.3)");
    EXPECT_GE(count_matches(cpu,
                            "INFO:  near_duplicates: comparing documents, [0-9]+ %"
                            "(, about [0-9]+ (s|min) left)? \\(CPU\\)"),
              1u)
        << ::testing::PrintToString(cpu);
}

TEST_F(Statements, TheChosenModeIsADebugMessage) {
    const auto chosen = [](const std::string& arguments) {
        const auto lines = notices_of({"SET client_min_messages = debug1"},
                                      "SELECT * FROM near_duplicates(" + arguments + ")");
        const std::string estimates =
            "\nDETAIL:  Mode exact is estimated to take [0-9.e-]+ s on one processor, mode ctph "
            "[0-9.e-]+ s[.]";
        return std::pair(
            count_matches(lines,
                          "DEBUG:  mode exact chosen, since no signatures are given" + estimates),
            count_matches(lines,
                          "DEBUG:  mode ctph chosen, since signatures are given" + estimates));
    };
    EXPECT_EQ(chosen("'SELECT 1, ''text'''"), std::pair(1ul, 0ul));
    EXPECT_EQ(chosen("'SELECT 1, ''text'', ctph_signature(''text'')'"), std::pair(0ul, 1ul));
    EXPECT_EQ(chosen("'SELECT 1, ''text''', mode => 'exact'"), std::pair(0ul, 0ul));
}

TEST_F(Statements, NumberingValuesOfRecordsIsADebugMessageOfItsOwn) {
    const auto lines = notices_of({"SET client_min_messages = debug1"},
                                  "SELECT count(*) FROM linkage_model("
                                  "'SELECT i, i % 9 AS x FROM generate_series(1, 99) i', "
                                  "'{x: exact}')");
    EXPECT_EQ(count_matches(lines,
                            "DEBUG:  linkage_model: reading rows [0-9.]+ ms; numbering values "
                            "[0-9.]+ ms; .*"),
              1u)
        << ::testing::PrintToString(lines);
}

TEST_F(Statements, BytesThatWereCopiedToADeviceAreADebugMessage) {
    const auto lines = notices_of({"SET gputext.device = gpu", "SET client_min_messages = debug1"},
                                  "SELECT * FROM gpu_knn('SELECT 1, ARRAY[1::real, 2]', "
                                  "'SELECT 1, ARRAY[2::real, 1]', 1)");
    // None where devices have no memory of their own.
    EXPECT_EQ(count_matches(lines,
                            "DEBUG:  gpu_knn: .*on a device [0-9.]+ ms \\([^)]*; copied "
                            "[0-9]+ bytes from the host\\).*"),
              1u)
        << ::testing::PrintToString(lines);
}

// ---- Costs ----

TEST_F(Statements, FirstJobOfASessionIsNotMuchSlowerThanOnTheCpu) {
    const auto first_job = [](const std::string& device) {
        Session fresh;
        fresh.rows("SET gputext.device = " + device);
        const auto begin = Clock::now();
        fresh.rows("SELECT * FROM " + kTwo);
        return Milliseconds(Clock::now() - begin).count();
    };
    // The fastest of each: a busy machine may delay most of them.
    double gpu = first_job("gpu"), cpu = first_job("cpu");
    for (int i = 0; i < 20; ++i) {
        gpu = std::min(gpu, first_job("gpu"));
        cpu = std::min(cpu, first_job("cpu"));
    }
    std::printf("             the first job of a session: %.2f ms more on a device\n", gpu - cpu);
    EXPECT_LT(gpu - cpu, 30);
}

}  // namespace
}  // namespace gputext::live
