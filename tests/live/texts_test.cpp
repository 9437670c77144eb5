// Functions of texts on devices: random tables have the same answers as on the CPU, whatever the
// number of devices, and a job ends when it is cancelled.

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "tests/live/on_device.hpp"
#include "tests/live/private_server.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::live {
namespace {

using testing::RandomStrings;

class TextsOnDevice : public OnDevice {
protected:
    void TearDown() override {
        if (devices_ != 0) set_devices(2);
        OnDevice::TearDown();
    }

    std::size_t below(std::size_t bound) { return random_.below(bound); }

    void set_devices(std::size_t count) {
        devices_ = count;
        OnDevice::set_devices(count);
    }

    /// Words of Zipf's law, of about half of those of the last table, with copies, texts of no
    /// words or only frequent ones, and nulls among them.
    void make_texts(std::size_t count, std::size_t words, std::size_t vocabulary) {
        session().rows("DROP TABLE IF EXISTS texts");
        session().rows(
            "CREATE TABLE texts AS SELECT i::bigint AS id, 't' || i AS key, (SELECT string_agg('w' "
            "|| floor(exp(random() * ln(" +
            number(vocabulary) + ")))::text, ' ') FROM generate_series(1, (random() * 2 * " +
            number(words) + " + 0 * i)::int) j) AS body FROM generate_series(1, " + number(count) +
            ") i");
        session().rows(
            "INSERT INTO texts SELECT 10000 + id, 'copy of ' || key, body FROM texts "
            "WHERE id % 5 = 0");
        session().rows(
            "INSERT INTO texts VALUES (20000, 'empty', ''), (20001, 'frequent', 'w1'), "
            "(20002, 'null', NULL)");
    }

    void expect_same(const std::string& call) {
        const std::string on_cpu = rows_on("cpu", call);
        EXPECT_TRUE(rows_on("gpu", call) == on_cpu) << call;
        ++calls_;
        rows_ += static_cast<std::size_t>(std::count(on_cpu.begin(), on_cpu.end(), '\n'));
    }

    void expect_same_in_many_ways() {
        static const char* const kTexts[] = {"body", "to_tsvector('simple', body)",
                                             "strip(to_tsvector('english', body))"};
        const std::string queries =
            "$$SELECT id, " + std::string(kTexts[below(3)]) + " FROM texts WHERE id % 3 = 0$$";
        const std::string items =
            "$$SELECT id, " + std::string(kTexts[below(3)]) + " FROM texts ORDER BY id DESC$$";
        const std::string rest = std::string(", 'cosine', ") + (below(2) == 0 ? "true" : "false") +
                                 ", 'simple', " + number(1 + below(4)) + ")";
        expect_same("gpu_knn(" + queries + ", " + items + ", " + number(1 + below(600)) + rest);
        expect_same("gpu_knn_within(" + queries + ", " + items + ", 0." + number(below(10)) + rest);
        // As weights of the user's, some of them negative
        session().rows("DROP TABLE IF EXISTS weights");
        session().rows(
            "CREATE TABLE weights AS SELECT id, array_agg(substr(term, 2)::int) AS terms, "
            "array_agg((weight * (id % 5 - 1))::real) AS weights FROM tfidf('SELECT id, body FROM "
            "texts', config => 'simple') GROUP BY id ORDER BY id");
        expect_same("gpu_knn('TABLE weights', 'TABLE weights', " + number(1 + below(50)) +
                    ", exclude_self => true, min_document_frequency => " + number(1 + below(3)) +
                    ")");
    }

    static std::string number(std::size_t value) { return std::to_string(value); }

    std::size_t calls_ = 0, rows_ = 0;

private:
    RandomStrings random_;
    std::size_t devices_ = 0;
};

TEST_F(TextsOnDevice, AnswersAreThoseOfTheCpu) {
    for (int round = 0; round < 6; ++round) {
        make_texts(50 + below(400), 1 + below(60), 2 + below(3000));
        expect_same_in_many_ways();
        expect_same(
            "gpu_knn('SELECT key, body FROM texts', 'SELECT key, body FROM texts', "
            "NULL::text, 4, exclude_self => true)");
    }
    // No terms, no rows
    expect_same("gpu_knn('SELECT id, '''' FROM texts', 'SELECT id, body FROM texts', 3)");
    expect_same("gpu_knn('SELECT id, body FROM texts', 'SELECT id, '''' FROM texts', 3)");
    expect_same(
        "gpu_knn('SELECT id, body FROM texts', 'SELECT id, body FROM texts WHERE false', 3)");
    std::printf("             %zu calls, %zu rows\n", calls_, rows_);
}

TEST_F(TextsOnDevice, AnswersDoNotDependOnTheNumberOfDevices) {
    if (on_real_gpus()) GTEST_SKIP() << "about devices without a GPU";
    // So many elements that each of four devices gets a part of the items
    session().rows(
        "DROP TABLE IF EXISTS bags; CREATE TABLE bags AS SELECT i::bigint AS id, "
        "array_agg((j * 50 + (i * j * 7919::bigint) % 50)::int) AS terms, "
        "array_agg((1 + i * j % 7)::real) AS weights "
        "FROM generate_series(1, 45000) i, generate_series(1, 100) j GROUP BY i ORDER BY i");
    for (const std::size_t devices : {1, 2, 4}) {
        set_devices(devices);
        make_texts(300, 30, 500);
        expect_same_in_many_ways();
        // A scan of a large table may begin anywhere in it.
        expect_same(
            "gpu_knn('SELECT * FROM bags WHERE id % 3000 = 0 ORDER BY id', "
            "'SELECT * FROM bags ORDER BY id', 20, exclude_self => true)");
    }
}

TEST_F(TextsOnDevice, AnswersAreThoseOfTheCpuFromATemporaryFileAndInLittleMemory) {
    make_texts(3000, 100, 5000);
    session().rows("SET gputext.host_memory_limit = '1MB'");
    session().rows("SET gputext.gpu_memory_limit = '4200kB'");
    expect_same(
        "gpu_knn('SELECT id, body FROM texts WHERE id % 10 = 0', 'SELECT id, body FROM texts', 7, "
        "exclude_self => true, config => 'simple')");
    expect_nothing_left(session().pid(), "spilling");
}

TEST_F(TextsOnDevice, SomeFailuresAreTheCpusAnswers) {
    make_texts(3000, 100, 5000);
    const std::string call =
        "SELECT count(*) FROM gpu_knn('SELECT id, body FROM texts WHERE id <= 1000', "
        "'SELECT id, body FROM texts', 1, config => 'simple')";
    session().rows("SET gputext.device = cpu");
    const std::string expected = session().value(call);
    expect_failures_answered(call, expected);
}

TEST_F(TextsOnDevice, AJobEndsWhenItIsCancelled) {
    make_texts(300, 30, 500);
    const std::string call =
        "SELECT count(*) FROM gpu_knn('SELECT id, body FROM texts', "
        "'SELECT id, body FROM texts', 10)";
    cancel_on_device(call, [this] { session().rows(slow(5000)); });
}

// Between two pieces of one text
TEST_F(TextsOnDevice, ParsingEndsWhenItIsCancelled) {
    session().rows("DROP TABLE IF EXISTS texts");
    session().rows(
        "CREATE TABLE texts AS SELECT 1::bigint AS id, repeat('some words of a long text' || "
        "chr(10), 6000000) AS body");
    for (const auto place : {200ms, 400ms, 600ms})
        expect_in_time(
            [&] {
                Control control;
                Running job(session(),
                            "SELECT count(*) FROM tfidf('TABLE texts', config => 'english')");
                EXPECT_TRUE(eventually([&] { return is_active(other(), session().pid()); }));
                std::this_thread::sleep_for(place);
                const double late = control.cancel(other(), job, session().pid());
                EXPECT_EQ(job.wait(), "57014");
                expect_nothing_left(session().pid(), "a cancelled parser");
                return late;
            },
            1000);
}

}  // namespace
}  // namespace gputext::live
