#include "kernels/strings/nearest_strings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/device_fixture.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/plain_strings.hpp"
#include "tests/support/random_keys.hpp"

namespace gputext {
namespace {

using testing::kAllKeyShapes;
using testing::kAllStringMetrics;
using testing::RandomKeys;
using testing::RandomNames;
using testing::rows_of;
using testing::String;
using testing::StringRows;

class NearestStringsOnEmulator : public testing::RingTest {
protected:
    /// Few long strings or many short ones.
    std::vector<String> random_strings(StringMetric metric, std::size_t count) {
        std::vector<String> strings;
        if (random_.below(4) > 0) {
            strings = random_.strings(count, random_.below(8) == 0 ? 300 : 3 + random_.below(70));
        } else {
            String common(50 + random_.below(200));
            for (std::uint32_t& symbol : common)
                symbol = static_cast<std::uint32_t>('A' + random_.below(4));
            for (std::size_t i = 0; i < std::min<std::size_t>(count, 60); ++i)
                strings.push_back(random_.edited(common, 4));
        }
        // An exchange alone, of which a bound of osa has to think
        for (std::size_t i = 1; metric == StringMetric::osa && i < strings.size(); i += 3) {
            strings[i] = strings[random_.below(i)];
            if (strings[i].size() < 2) continue;
            const std::size_t at = random_.below(strings[i].size() - 1);
            std::swap(strings[i][at], strings[i][at + 1]);
        }
        if (metric == StringMetric::trigram)
            for (String& string : strings) string = RandomNames::ascending(std::move(string));
        return strings;
    }

    NearestStringsParameters random_parameters(StringMetric metric) {
        constexpr double kRadii[] = {-1, 0, 0.05, 0.2, 0.5, 1, 1.5, 2, 3, 10, 1e9};
        NearestStringsParameters parameters;
        parameters.metric = metric;
        parameters.k = random_.below(4) == 0 ? KnnParameters::all_items
                                             : 1 + random_.below(random_.below(2) == 0 ? 3 : 40);
        if (random_.below(2) == 0 || parameters.k == KnnParameters::all_items)
            parameters.radius = kRadii[random_.below(std::size(kRadii))];
        return parameters;
    }

    RandomNames random_;
    RandomKeys keys_;
};

TEST_F(NearestStringsOnEmulator, EqualTheCpusOnRandomCalls) {
    const std::size_t calls = testing::rounds<std::size_t>(160, 4000);
    for (std::size_t call = 0; call < calls; ++call) {
        const StringMetric metric = kAllStringMetrics[call % std::size(kAllStringMetrics)];
        // Drawn at once, so that some of both are alike
        std::vector<String> items =
            random_strings(metric, 2 + random_.below(random_.below(4) == 0 ? 500 : 100));
        const auto middle =
            items.begin() + static_cast<std::ptrdiff_t>(1 + random_.below(items.size() - 1));
        const StringRows queries({middle, items.end()});
        items.erase(middle, items.end());
        const StringRows rows(items);
        const NearestStringsParameters parameters = random_parameters(metric);
        std::vector<std::uint32_t> of_queries, of_items;
        if (random_.below(2) == 0) {
            const auto shape = kAllKeyShapes[random_.below(std::size(kAllKeyShapes))];
            of_queries = keys_.keys(shape, queries.view().size());
            of_items = keys_.keys(shape, rows.view().size());
        }
        const RowKeys excluded{of_queries, of_items};
        work.bytes = random_.below(3) == 0 ? 1300000 + random_.below(1000000) : 1u << 28;
        SCOPED_TRACE("call " + std::to_string(call) + ", " + testing::name_of(metric) + ", " +
                     std::to_string(queries.view().size()) + " queries, " +
                     std::to_string(items.size()) + " items, k " + std::to_string(parameters.k) +
                     ", radius " + std::to_string(parameters.radius));
        Execution execution(2);
        const auto expected =
            nearest_strings(parameters, queries.view(), rows.view(), {}, excluded, execution);
        ASSERT_TRUE(expected.ok()) << expected.status().message();
        const auto found = gpu::nearest_strings(parameters, queries.view(), rows.view(), excluded,
                                                work, ring(), execution);
        ASSERT_TRUE(found.ok()) << found.status().message();
        ASSERT_EQ(rows_of(*found), rows_of(*expected));
    }
}

}  // namespace
}  // namespace gputext
