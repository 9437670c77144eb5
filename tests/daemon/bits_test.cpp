// gputextd as a process of its own, and jobs on rows of bits: every answer, and what it refuses.

#include <algorithm>
#include <string>
#include <vector>

#include "cpp/link/client.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/random_bits.hpp"
#include "tests/support/random_keys.hpp"

namespace gputext {
namespace {

using namespace testing;

class GputextdBits : public ::testing::Test {
protected:
    explicit GputextdBits(int devices = 1)
        : daemon_(socket_, {"--fake-devices=" + std::to_string(devices), "--allow-faults"}) {
        connection_ = connect_to(socket_);
    }

    Result<KnnAnswer> answer(const NearestBitsRequest& request) {
        EXPECT_TRUE(connection_->submit(request).ok());
        return next<KnnAnswer>(*connection_);
    }

    void expect_neighbors(const NearestBitsRequest& request, unsigned devices = 1) {
        Execution execution(2);
        const auto expected =
            nearest_bits(request.parameters, request.queries.vectors, request.items.vectors,
                         request.matches, request.keys, execution);
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

    ErrorCode error_of(const NearestBitsRequest& request) {
        return answer(request).status().code();
    }

    Folder folder_;
    std::string socket_ = folder_ / "socket";
    DaemonProcess daemon_;
    std::unique_ptr<DaemonConnection> connection_;
};

TEST_F(GputextdBits, AnswersAsTheOperatorDoes) {
    RandomBits random;
    RandomKeys random_keys;
    for (const BitMetric metric : kAllBitMetrics)
        for (const std::size_t bits : {1, 100, 256})
            for (const KeyShape shape : {KeyShape::uniform, KeyShape::one, KeyShape::none}) {
                const BitRows queries(random.rows(40, bits)), items(random.rows(140, bits));
                NearestBitsRequest request;
                request.parameters.metric = metric;
                request.parameters.k = 1 + random.below(9);
                request.queries.vectors = queries.view();
                request.items.vectors = items.view();
                expect_neighbors(request);
                const auto query_keys = random_keys.keys(shape, 40),
                           item_keys = random_keys.keys(shape, 140);
                request.matches = {query_keys, item_keys};
                expect_neighbors(request);
                request.keys = {query_keys, item_keys};
                expect_neighbors(request);
                request.matches = {};
                request.parameters.k = KnnParameters::all_items;
                request.parameters.radius = metric == BitMetric::jaccard ? 0.6 : 20;
                expect_neighbors(request);
            }
    NearestBitsRequest none;
    none.queries.vectors.type = none.items.vectors.type = ElementType::bit;
    expect_neighbors(none);
}

TEST_F(GputextdBits, RefusesWhatIsWrong) {
    RandomBits random;
    const BitRows rows(random.rows(20, 70)), others(random.rows(20, 71));
    NearestBitsRequest good;
    good.queries.vectors = good.items.vectors = rows.view();
    expect_neighbors(good);
    auto request = good;
    request.parameters.k = 0;
    EXPECT_EQ(error_of(request), ErrorCode::invalid_argument);
    request = good;
    request.items.vectors = others.view();
    EXPECT_EQ(error_of(request), ErrorCode::invalid_argument);
    request = good;
    request.parameters.answer_limit = kBytesOfNeighbor;
    EXPECT_EQ(error_of(request), ErrorCode::memory_limit);
    ASSERT_TRUE(connection_->inject_fault("in_job:out_of_memory:2").ok());
    const auto reply = answer(good);
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(reply->summary.report.retries, 2u);
}

class GputextdBitDevices : public GputextdBits {
protected:
    GputextdBitDevices() : GputextdBits(2) {}
};

TEST_F(GputextdBitDevices, ShareOutTheQueriesOfALargeSearch) {
    std::vector<std::uint32_t> items(100'000), queries(2'100'000);
    for (std::uint32_t i = 0; i < items.size(); ++i) items[i] = 1u << i % 32 | 1u << i % 31;
    // Most queries have so many ones that no item can be near.
    for (std::uint32_t i = 0; i < queries.size(); ++i)
        queries[i] = i % 100'000 == 0 ? 1u << i / 100'000 : 0xffff0000 | (i & 255);
    NearestBitsRequest request;
    request.parameters.radius = 1;
    request.parameters.k = 1;
    request.queries.vectors = {ElementType::bit, queries.size(), 32, queries.data(), {}, {}};
    request.items.vectors = {ElementType::bit, items.size(), 32, items.data(), {}, {}};
    gather_devices(*connection_, 2);
    expect_neighbors(request, 2);
}

}  // namespace
}  // namespace gputext
