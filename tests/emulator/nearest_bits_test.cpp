#include "kernels/bits/nearest_bits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/device_fixture.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/random_bits.hpp"
#include "tests/support/random_keys.hpp"

namespace gputext {
namespace {

using namespace testing;

class NearestBitsOnEmulator : public RingTest {
protected:
    NearestBitsParameters random_parameters(BitMetric metric, std::size_t bits) {
        NearestBitsParameters parameters;
        parameters.metric = metric;
        parameters.k = random_.below(4) == 0 ? KnnParameters::all_items
                                             : 1 + random_.below(random_.below(2) == 0 ? 3 : 60);
        if (random_.below(2) == 0 || parameters.k == KnnParameters::all_items) {
            const double part = static_cast<double>(random_.below(9)) / 8;
            parameters.radius = random_.below(9) == 0 ? -1
                                : metric == BitMetric::jaccard
                                    ? part
                                    : std::floor(part * static_cast<double>(bits));
        }
        return parameters;
    }

    RandomBits random_;
    RandomKeys keys_;
};

TEST_F(NearestBitsOnEmulator, EqualTheCpusOnRandomCalls) {
    constexpr std::size_t kLengths[] = {1, 20, 64, 65, 200, 256, 257, 512, 513, 1100};
    const std::size_t calls = rounds<std::size_t>(60, 2000);
    for (std::size_t call = 0; call < calls; ++call) {
        const std::size_t bits = kLengths[random_.below(std::size(kLengths))];
        // Drawn at once, so that some of both are alike
        const std::vector<BitRow> all =
            random_.rows(2 + random_.below(random_.below(4) == 0 ? 1500 : 300), bits);
        const auto middle =
            all.begin() + static_cast<std::ptrdiff_t>(
                              1 + random_.below(std::min<std::size_t>(all.size() - 1, 600)));
        const BitRows queries({all.begin(), middle}), items({middle, all.end()}, bits);
        const NearestBitsParameters parameters =
            random_parameters(kAllBitMetrics[call % 2], bits);
        std::vector<std::uint32_t> of_queries, of_items;
        if (random_.below(2) == 0) {
            const auto shape = kAllKeyShapes[random_.below(std::size(kAllKeyShapes))];
            of_queries = keys_.keys(shape, queries.view().rows);
            of_items = keys_.keys(shape, items.view().rows);
        }
        const RowKeys excluded{of_queries, of_items};
        work.bytes = random_.below(3) == 0 ? 4000000 + random_.below(1000000) : 1u << 28;
        SCOPED_TRACE("call " + std::to_string(call) + ", " +
                     std::to_string(queries.view().rows) + " queries, " +
                     std::to_string(items.view().rows) + " items of " + std::to_string(bits) +
                     " bits, k " + std::to_string(parameters.k) + ", radius " +
                     std::to_string(parameters.radius));
        Execution execution(2);
        const auto expected =
            nearest_bits(parameters, queries.view(), items.view(), {}, excluded, execution);
        ASSERT_TRUE(expected.ok()) << expected.status().message();
        const auto found = gpu::nearest_bits(parameters, queries.view(), items.view(), excluded,
                                             work, ring(), execution);
        ASSERT_TRUE(found.ok()) << found.status().message();
        ASSERT_EQ(rows_of(*found), rows_of(*expected));
    }
}

}  // namespace
}  // namespace gputext
