// Functions of vectors on devices: random tables have the same answers as on the CPU, and a job
// ends when it is cancelled.

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "tests/live/on_device.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::live {
namespace {

using testing::RandomStrings;

class VectorsOnDevice : public OnDevice {
protected:
    std::size_t below(std::size_t bound) { return random_.below(bound); }

    /// An SQL expression for an element of row i: normal, of a few values, or of any magnitude.
    std::string random_element() {
        static const char* const kinds[] = {
            "(random() + random() + random() - 1.5)", "floor(4 * random() - 1)",
            "floor(2 * random()) * (i % 7)", "(1e6 + random())", "(random() - 0.5) * 10 ^ (i % 9)"};
        return kinds[below(std::size(kinds))];
    }

    /// Rows with copies, rows of zeros and null vectors among them.
    void make_vectors(std::size_t count, std::size_t dimensions) {
        const std::string row = "ARRAY(SELECT " + random_element() + " FROM generate_series(1, " +
                                std::to_string(dimensions) + ") j WHERE i + j > 0)";
        session().rows("DROP TABLE IF EXISTS vectors");
        session().rows("CREATE TABLE vectors AS SELECT i::bigint AS id, 'v' || i AS key, " + row +
                       "::real[] AS vector FROM generate_series(1, " + std::to_string(count) +
                       ") i");
        session().rows(
            "INSERT INTO vectors SELECT 10000 + id, 'copy of ' || key, vector FROM vectors "
            "WHERE id % 5 = 0");
        session().rows(
            "INSERT INTO vectors SELECT 20000 + i, 'zero' || i, array_fill(0::real, "
            "ARRAY[" +
            std::to_string(dimensions) + "]) FROM generate_series(1, 3) i");
        session().rows("INSERT INTO vectors VALUES (30000, 'null', NULL)");
    }

    void expect_same(const std::string& call) {
        const std::string on_cpu = rows_on("cpu", call);
        EXPECT_TRUE(rows_on("gpu", call) == on_cpu) << call;
        ++calls_;
        rows_ += static_cast<std::size_t>(std::count(on_cpu.begin(), on_cpu.end(), '\n'));
    }

    std::string number(std::size_t value) { return std::to_string(value); }

    std::size_t calls_ = 0, rows_ = 0;

private:
    RandomStrings random_;
};

const char* const kMetrics[] = {"euclidean", "cosine", "inner_product", "manhattan"};
const char* const kTypes[] = {"real[]", "double precision[]", "integer[]"};

TEST_F(VectorsOnDevice, AnswersAreThoseOfTheCpu) {
    for (int round = 0; round < 6; ++round) {
        make_vectors(50 + below(400), 1 + below(30));
        for (const std::string metric : kMetrics) {
            const std::string queries = "$$SELECT id, vector::" + std::string(kTypes[below(3)]) +
                                        " FROM vectors WHERE id % 3 = 0 ORDER BY id$$";
            const std::string items = "$$SELECT id, vector::" + std::string(kTypes[below(3)]) +
                                      " FROM vectors ORDER BY id DESC$$";
            const std::string self = below(2) == 0 ? "true" : "false";
            expect_same("gpu_knn(" + queries + ", " + items + ", " + number(1 + below(600)) +
                        ", '" + metric + "', " + self + ")");
            expect_same("gpu_knn_within(" + queries + ", " + items + ", " + number(below(5)) +
                        ", '" + metric + "', " + self + ")");
            if (metric == "inner_product") continue;
            for (const std::string ties : {"sklearn", "breunig"})
                expect_same("local_outlier_factor(" + items + ", " + number(1 + below(20)) + ", '" +
                            metric + "', '" + ties + "')");
            const std::string reach = metric == "cosine" ? "0.3" : number(1 + below(6));
            expect_same("dbscan(" + items + ", " + reach + ", " + number(1 + below(6)) + ", '" +
                        metric + "')");
            expect_same("semantic_duplicate_groups(" + items + ", " + reach + ", '" + metric +
                        "')");
        }
        expect_same(
            "cosine_similarities((SELECT vector FROM vectors WHERE id = 7), "
            "'SELECT id, vector FROM vectors')");
        expect_same(
            "gpu_knn('SELECT key, vector FROM vectors', 'SELECT key, vector FROM vectors', "
            "NULL::text, 4, exclude_self => true)");
    }
    std::printf("             %zu calls, %zu rows\n", calls_, rows_);
}

TEST_F(VectorsOnDevice, AnswersAreThoseOfTheCpuFromATemporaryFileAndInLittleMemory) {
    // 14 MB of vectors, more than both limits; the neighbors fit the first one.
    make_vectors(7000, 512);
    session().rows("SET gputext.host_memory_limit = '3MB'");
    session().rows("SET gputext.gpu_memory_limit = '4200kB'");
    const std::string vectors = "'SELECT id, vector FROM vectors'";
    const std::string some = "'SELECT id, vector FROM vectors WHERE id % 8 = 0'";
    for (const std::string metric : kMetrics)
        expect_same("gpu_knn(" + some + ", " + vectors + ", 7, '" + metric + "', true)");
    expect_same("local_outlier_factor(" + vectors + ", 7)");
    // Few rows but copies are so near.
    expect_same("dbscan(" + vectors + ", 1, 3)");
    expect_same("semantic_duplicate_groups(" + vectors + ", 1, 'euclidean')");
    expect_same("cosine_similarities((SELECT vector FROM vectors WHERE id = 7), " + vectors + ")");
    expect_nothing_left(session().pid(), "spilling");
}

TEST_F(VectorsOnDevice, ClustersAreThoseOfTheCpu) {
    for (int round = 0; round < 6; ++round) {
        const std::string items = "$$SELECT i::bigint, ARRAY(SELECT sin(i * j * " +
                                  number(1 + below(1000)) + ") FROM generate_series(1, " +
                                  number(2 + below(20)) + ") j)::" + std::string(kTypes[below(2)]) +
                                  " FROM generate_series(1, " + number(50 + below(1000)) +
                                  ") i$$, ";
        for (const std::string metric : {"euclidean", "cosine"}) {
            const std::string arguments = items + number(1 + below(40)) + ", '" + metric +
                                          "', seed => " + number(below(1000)) + ", iterations => " +
                                          number(1 + below(30)) + ")";
            expect_same("k_means(" + arguments);
            expect_same("k_means_centroids(" + arguments);
        }
    }
}

TEST_F(VectorsOnDevice, SomeFailuresAreTheCpusAnswers) {
    make_vectors(3000, 100);
    const std::string call =
        "SELECT count(*) FROM gpu_knn('SELECT id, vector FROM vectors', "
        "'SELECT id, vector FROM vectors', 3, 'euclidean')";
    expect_failures_answered(call, "10809");
}

TEST_F(VectorsOnDevice, AJobEndsWhenItIsCancelled) {
    make_vectors(3, 2);
    const std::string series =
        "SELECT i::bigint, ARRAY[random(), random(), random(), random(), "
        "random(), random(), random(), random()] FROM generate_series(1, ";
    const std::string call = "SELECT count(*) FROM gpu_knn('" + series + "100000) i', '" + series +
                             "100000) i', 1000, 'euclidean')";
    ASSERT_NO_FATAL_FAILURE(cancel_on_device(call));
    // The device is free again.
    session().rows("SET gputext.device = gpu");
    EXPECT_EQ(session().value("SELECT count(*) FROM gpu_knn('SELECT id, vector FROM vectors WHERE "
                              "id < 4', 'SELECT id, vector FROM vectors WHERE id < 4', 1, "
                              "'euclidean')"),
              "3");
}

}  // namespace
}  // namespace gputext::live
