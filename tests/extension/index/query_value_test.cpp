// First, as PostgreSQL defines Max()
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "extension/index/query_value.hpp"
#include "tests/extension/server.hpp"

namespace gputext::index {
namespace {

using testing::error_of;

Bytes bytes_of(const char* text) {
    return {reinterpret_cast<const std::uint8_t*>(text), std::strlen(text)};
}

TEST(QueryValue, GivesBackWhatItWasMadeOf) {
    const QueryValue* const made = make_query_value(bytes_of("a document"), true, 0.25);
    const QueryValue* const read = query_value(PointerGetDatum(made));
    EXPECT_EQ(read->binary, 1);
    EXPECT_EQ(read->threshold, 0.25);
    const Bytes document = read->document();
    EXPECT_EQ(std::string(document.begin(), document.end()), "a document");
    EXPECT_TRUE(make_query_value({}, false, 0)->document().empty());
    EXPECT_EQ(make_query_value({}, false, 0)->binary, 0);
}

TEST(QueryValue, RefusesAValueWithoutAWholeHeader) {
    alignas(QueryValue) char bytes[sizeof(QueryValue)] = {};
    SET_VARSIZE(bytes, sizeof bytes - 1);
    EXPECT_EQ(error_of([&] { query_value(PointerGetDatum(bytes)); }),
              "a value of the type near_duplicate_query is too short");
    SET_VARSIZE(bytes, sizeof bytes);
    EXPECT_EQ(query_value(PointerGetDatum(bytes))->document().size(), 0u);
}

TEST(QueryValue, TakesThresholdsFromZeroToBelowAHalf) {
    for (const double good : {0.0, -0.0, 1e-300, 0.05, std::nextafter(0.5, 0.0)})
        EXPECT_EQ(error_of([&] { check_threshold(good); }), "") << good;
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double bad : {0.5, -1e-300, 1.0, 0.95, infinity, -infinity, std::nan("")})
        EXPECT_NE(error_of([&] { check_threshold(bad); }).find("threshold must be at least 0"),
                  std::string::npos)
            << bad;
}

}  // namespace
}  // namespace gputext::index
