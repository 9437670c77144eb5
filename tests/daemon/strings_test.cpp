// gputextd as a process of its own, and jobs on strings: every answer, and what it refuses.

#include <algorithm>
#include <string>
#include <vector>

#include "cpp/link/client.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/plain_strings.hpp"
#include "tests/support/random_keys.hpp"

namespace gputext {
namespace {

using namespace testing;

class GputextdStrings : public ::testing::Test {
protected:
    explicit GputextdStrings(int devices = 1)
        : daemon_(socket_, {"--fake-devices=" + std::to_string(devices), "--allow-faults"}) {
        connection_ = connect_to(socket_);
    }

    Result<KnnAnswer> answer(const NearestStringsRequest& request) {
        EXPECT_TRUE(connection_->submit(request).ok());
        return next<KnnAnswer>(*connection_);
    }

    void expect_neighbors(const NearestStringsRequest& request, unsigned devices = 1) {
        Execution execution(2);
        const auto expected =
            nearest_strings(request.parameters, request.queries, request.items, request.matches,
                            request.keys, execution);
        ASSERT_TRUE(expected.ok()) << expected.status().message();
        const auto reply = answer(request);
        ASSERT_TRUE(reply.ok()) << reply.status().message();
        const std::string& names = reply->summary.report.device_name;
        EXPECT_EQ(std::count(names.begin(), names.end(), ',') + 1, devices) << names;
        const auto found = reply->read();
        ASSERT_TRUE(found.ok()) << found.status().message();
        EXPECT_EQ(found->begins, expected->begins);
        EXPECT_EQ(found->items, expected->items);
        EXPECT_EQ(found->distances, expected->distances);
    }

    ErrorCode error_of(const NearestStringsRequest& request) {
        return answer(request).status().code();
    }

    Folder folder_;
    std::string socket_ = folder_ / "socket";
    DaemonProcess daemon_;
    std::unique_ptr<DaemonConnection> connection_;
};

TEST_F(GputextdStrings, AnswersAsTheOperatorDoes) {
    RandomNames random;
    RandomKeys random_keys;
    for (const StringMetric metric : kAllStringMetrics)
        for (const KeyShape shape : {KeyShape::uniform, KeyShape::one, KeyShape::none}) {
            std::vector<String> all = random.strings(140, 50);
            if (metric == StringMetric::trigram)
                for (String& string : all) string = RandomNames::ascending(std::move(string));
            const StringRows rows(all);
            NearestStringsRequest request;
            request.parameters.metric = metric;
            request.parameters.k = 1 + random.below(9);
            // Some of a table's strings, which do not begin with its first symbol.
            const Strings table = rows.view();
            request.items = table;
            request.queries = {table.begins.subspan(100), table.symbols};
            expect_neighbors(request);
            const auto query_keys = random_keys.keys(shape, 40), item_keys = random_keys.keys(shape, 140);
            request.matches = {query_keys, item_keys};
            expect_neighbors(request);
            request.keys = {query_keys, item_keys};
            expect_neighbors(request);
            request.matches = {};
            request.parameters.k = KnnParameters::all_items;
            request.parameters.radius = 0.4;
            expect_neighbors(request);
        }
    expect_neighbors({});
}

TEST_F(GputextdStrings, RefusesWhatIsWrong) {
    const StringRows rows({string_of("abc"), string_of("b")}), falling({string_of("cba")});
    NearestStringsRequest good;
    good.queries = good.items = rows.view();
    expect_neighbors(good);
    auto request = good;
    request.parameters.k = 0;
    EXPECT_EQ(error_of(request), ErrorCode::invalid_argument);
    request = good;
    request.parameters.answer_limit = kBytesOfNeighbor;
    EXPECT_EQ(error_of(request), ErrorCode::memory_limit);
    request = good;
    request.parameters.metric = StringMetric::trigram;
    expect_neighbors(request);
    request.items = falling.view();
    EXPECT_EQ(error_of(request), ErrorCode::invalid_argument);
    ASSERT_TRUE(connection_->inject_fault("in_job:out_of_memory:2").ok());
    const auto reply = answer(good);
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(reply->summary.report.retries, 2u);
}

class GputextdStringDevices : public GputextdStrings {
protected:
    GputextdStringDevices() : GputextdStrings(2) {}
};

TEST_F(GputextdStringDevices, ShareOutTheQueriesOfALargeSearch) {
    RandomNames random;
    std::vector<String> items, queries;
    for (std::uint32_t i = 0; i < 10'000; ++i) items.push_back({i % 97, 7 + i % 13});
    for (std::uint32_t i = 0; i < 200'001; ++i) queries.push_back({i % 89, 7 + i % 11});
    const StringRows query_rows(queries), item_rows(items);
    NearestStringsRequest request;
    request.parameters.metric = StringMetric::levenshtein;
    request.parameters.k = 1;
    request.queries = query_rows.view();
    request.items = item_rows.view();
    gather_devices(*connection_, 2);
    expect_neighbors(request, 2);
    request.parameters.answer_limit = 200'000 * kBytesOfNeighbor;
    EXPECT_EQ(error_of(request), ErrorCode::memory_limit);
}

}  // namespace
}  // namespace gputext
