#include "cpp/knn/detail/filter_space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "tests/support/test_size.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRow;
using testing::DoubleRows;
using testing::plain_distance;
using testing::RandomRows;
using testing::TypedRows;

constexpr std::size_t kRows = 20;

/// Rows that make one of the bound's terms as large as it can be, or another one vanish.
struct Hard {
    const char* name;
    std::function<double(RandomRows&, std::size_t row, std::size_t column)> element;
};

double random_sign(RandomRows& random) {
    return random.below(2) == 0 ? 1 : -1;
}

const Hard kHard[] = {
    {"gaussian", [](RandomRows& random, auto, auto) { return random.normal(); }},
    // Nothing is lost where they are converted to float: only the sum errs.
    {"floats",
     [](RandomRows& random, auto, auto) {
         return static_cast<double>(static_cast<float>(1 + std::fabs(random.normal())));
     }},
    // Each element loses half a unit of a float, all in one direction.
    {"between floats",
     [](RandomRows& random, auto, auto) {
         return 1 + (static_cast<double>(2 * random.below(100)) + 0.49) * 0x1p-23;
     }},
    // Equal but for the last bits, and some of them equal.
    {"last bits",
     [](RandomRows& random, std::size_t row, std::size_t column) {
         const double x = 1000 + static_cast<double>(column % 7);
         return row % 3 == 0 ? x : x * (1 + static_cast<double>(random.below(5)) * DBL_EPSILON);
     }},
    // Large products of both signs with a sum near 0.
    {"cancelling",
     [](RandomRows& random, std::size_t row, std::size_t column) {
         const double x = 1 + random.normal() * 0x1p-20;
         return (column >> row % 4) % 2 == 0 ? x : -x;
     }},
    // One element a row that is not 0, and rows of zeros.
    {"one-hot",
     [](RandomRows&, std::size_t row, std::size_t column) {
         return row % 5 != 0 && column % kRows == row ? std::ldexp(1.5, -static_cast<int>(row)) : 0;
     }},
    // The limits of float, with its smallest numbers beside its largest.
    {"limits of float",
     [](RandomRows& random, auto, auto) {
         const double limits[] = {FLT_MAX, FLT_MIN, FLT_TRUE_MIN, 0, 1};
         return random_sign(random) * limits[random.below(5)];
     }},
    // Rows whose products float rounds to 0, beside one of ordinary numbers.
    {"vanishing products",
     [](RandomRows& random, std::size_t row, auto) {
         return row == 0 ? 1 : std::ldexp(1.0, -70 - static_cast<int>(random.below(10)));
     }},
    // Below the normal doubles, beside one number that holds() wants.
    {"below normal",
     [](RandomRows& random, std::size_t row, std::size_t column) {
         if (row == 0 && column == 0) return 0x1p-399;
         return random_sign(random) * static_cast<double>(random.below(1000)) * DBL_TRUE_MIN;
     }},
    // All magnitudes that doubles have, up to what holds() allows.
    {"all magnitudes",
     [](RandomRows& random, auto, auto) {
         return random_sign(random) * std::ldexp(1.0, static_cast<int>(random.below(1474)) - 1074);
     }},
    // Each row of one magnitude.
    {"rows of all magnitudes",
     [](RandomRows& random, std::size_t row, auto) {
         return std::ldexp(1 + std::fabs(random.normal()), static_cast<int>(37 * row) - 390);
     }},
};

double largest_of(const DoubleRows& rows) {
    double largest = 0;
    for (const DoubleRow& row : rows)
        for (const double x : row) largest = std::max(largest, std::fabs(x));
    return largest;
}

/// The rows that a space converts, and the bounds that it states.
template <class T>
struct Converted {
    std::vector<T> elements;  // rows of space.padded()
    std::vector<FilterRow> bounds;

    Converted(const FilterSpace& space, FilterSpace::Side side, const DoubleRows& rows)
        : elements(rows.size() * space.padded()) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            DoubleRow row = rows[i];
            row.resize(space.padded());
            bounds.push_back(space.convert(side, row.data(), &elements[i * space.padded()]));
        }
    }
};

/// The scores of one query with all items, as the filter computes them.
template <class T>
std::vector<ScoreOf<T>> scores_of(const FilterSpace& space, Simd simd, std::size_t dimensions,
                                  const T* query, const Converted<T>& items) {
    using S = ScoreOf<T>;
    const DistanceFilter<T> filter = distance_filter<T>(space.score(), simd);
    const std::size_t count = items.bounds.size(), rows = filter.items.rows;
    const std::size_t panels = (count + rows - 1) / rows;
    const std::size_t size = filter.items.size(dimensions);
    std::vector<PanelNumber<T>> query_panel(filter.queries.size(dimensions)),
        item_panels(panels * size);
    std::vector<S> offsets(panels * rows, std::numeric_limits<S>::quiet_NaN());
    fill_panel(query, space.padded(), 1, dimensions, filter.queries, query_panel.data());
    for (std::size_t panel = 0; panel < panels; ++panel)
        fill_panel(&items.elements[panel * rows * space.padded()], space.padded(),
                   std::min(rows, count - panel * rows), dimensions, filter.items,
                   &item_panels[panel * size]);
    for (std::size_t i = 0; i < count; ++i) offsets[i] = static_cast<S>(items.bounds[i].offset);

    std::vector<S> scores(panels * rows);
    std::vector<std::uint32_t> positions(scores.size());
    PassedScores<S> passed;
    for (std::size_t q = 0; q < filter.queries.rows; ++q) {
        passed.gate[q] = -std::numeric_limits<S>::infinity();
        passed.count[q] = 0;
        passed.capacity[q] = SIZE_MAX;
    }
    passed.gate[0] = std::numeric_limits<S>::infinity();
    passed.scores[0] = scores.data();
    passed.positions[0] = positions.data();
    passed.capacity[0] = scores.size();
    // The last panel needs no room behind it.
    const std::size_t end = filter.scan(query_panel.data(), item_panels.data(), offsets.data(),
                                        dimensions, 0, panels, passed);
    EXPECT_EQ(end, panels);
    EXPECT_EQ(passed.count[0], count);
    std::vector<S> by_item(count, std::numeric_limits<S>::quiet_NaN());
    for (std::size_t i = 0; i < passed.count[0]; ++i) by_item[positions[i]] = scores[i];
    return by_item;
}

/// The center times the scale, and the scales, as two rows show them that are converted to double.
struct Scales {
    std::vector<double> center;
    double query = 1, item = 1;

    Scales(const FilterSpace& space, std::size_t dimensions, double largest) {
        center = row_of(space, FilterSpace::Side::query, 0);
        for (double& x : center) x = -x;
        center.resize(dimensions);
        query = scale(space, FilterSpace::Side::query, largest);
        item = scale(space, FilterSpace::Side::item, largest);
    }

private:
    static std::vector<double> row_of(const FilterSpace& space, FilterSpace::Side side,
                                      double first) {
        std::vector<double> row(space.padded()), out(space.padded());
        row[0] = first;
        space.convert(side, row.data(), out.data());
        return out;
    }
    /// A power of two.
    double scale(const FilterSpace& space, FilterSpace::Side side, double largest) const {
        if (largest == 0) return 1;
        const double moved = row_of(space, side, largest)[0] + center[0];
        return std::exp2(std::round(std::log2(moved) - std::log2(largest)));
    }
};

/// t of the header: from the distance as it is defined, and else in more digits than a double has.
long double t_of(Metric metric, const Scales& scales, const DoubleRow& query, double distance) {
    switch (metric) {
        case Metric::euclidean: {
            long double square = 0;
            for (std::size_t i = 0; i < query.size(); ++i) {
                const long double x =
                    static_cast<long double>(query[i]) * scales.query - scales.center[i];
                square += x * x;
            }
            const long double scaled = static_cast<long double>(distance) * scales.query;
            return (scaled * scaled - square) / 2;
        }
        case Metric::cosine:
            return static_cast<long double>(distance) - 1;
        case Metric::inner_product:
            return static_cast<long double>(distance) * scales.query * scales.item;
        default:
            return static_cast<long double>(distance) * scales.query;
    }
}

template <class T>
class FilterSpaceOf : public ::testing::Test {
protected:
    /// Every pair of rows on every instruction set.
    void check(Metric metric, const DoubleRows& queries, const DoubleRows& items) {
        const std::size_t d = queries[0].size();
        const double largest_query = largest_of(queries), largest_item = largest_of(items);
        ASSERT_TRUE(FilterSpace::holds(largest_query, largest_item, d));
        const TypedRows typed(items, ElementType::float64, d);
        const Score score = metric == Metric::manhattan ? Score::magnitude : Score::product;
        for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512, Simd::bfloat16, Simd::amx}) {
            if (!simd_available(simd)) continue;
            if (is_bfloat16<T> && !bfloat16_filter_available(score, simd)) continue;
            SCOPED_TRACE(simd_name(simd));
            const FilterSpace space(metric, typed.vectors(), largest_query, largest_item, simd);
            const Scales scales(space, d,
                                metric == Metric::inner_product
                                    ? std::min(largest_query, largest_item)
                                    : std::max(largest_query, largest_item));
            const Converted<T> from(space, FilterSpace::Side::query, queries);
            const Converted<T> to(space, FilterSpace::Side::item, items);
            for (std::size_t q = 0; q < queries.size(); ++q) {
                const auto scores =
                    scores_of(space, simd, d, &from.elements[q * space.padded()], to);
                for (std::size_t i = 0; i < items.size(); ++i)
                    check_pair(metric, space, scales, queries[q], from.bounds[q], items[i],
                               to.bounds[i], scores[i]);
            }
        }
    }

    /// The bounds of each size that a query and an item give alone.
    static void check_pair(Metric metric, const FilterSpace& space, const Scales& scales,
                           const DoubleRow& query, const FilterRow& query_bounds,
                           const DoubleRow& item, const FilterRow& item_bounds, ScoreOf<T> score) {
        const auto distance = plain_distance(metric, query, item);
        if (!distance) return;
        const long double t = t_of(metric, scales, query, *distance);
        const FilterSpace::Bound bound = space.bound<T>(query_bounds, item_bounds);
        const long double v = score, r = bound.absolute, g = bound.relative;
        ASSERT_LE(v * (1 - g) - r, t) << "distance " << *distance;
        ASSERT_GE(v * (1 + g) + r, t) << "distance " << *distance;
        ASSERT_GE(space.most_of(query_bounds, *distance), t) << "distance " << *distance;
        // An item whose distance is the limit must pass, or it would be lost.
        ASSERT_LE(bound.least(score), space.most_of(query_bounds, *distance));
        ASSERT_LE(space.least_of(query_bounds, item_bounds) - r, t) << "distance " << *distance;
    }
};
using Types = ::testing::Types<Bfloat16, Bfloat16Pair, float, double>;
TYPED_TEST_SUITE(FilterSpaceOf, Types);

TYPED_TEST(FilterSpaceOf, BoundsTheErrorOfEveryScore) {
    RandomRows random;
    for (const Hard& hard : kHard)
        for (const std::size_t d : {1, 2, 16, 17, 300, 2000}) {
            // Where sums are as long, only errors of rounding are new.
            if (d == 2000 && testing::tests_are_small()) continue;
            for (const Metric metric :
                 {Metric::euclidean, Metric::cosine, Metric::inner_product, Metric::manhattan}) {
                SCOPED_TRACE(std::string(hard.name) + ", dimensions " + std::to_string(d) +
                             ", metric " + std::to_string(static_cast<int>(metric)));
                DoubleRows rows(kRows, DoubleRow(d));
                for (std::size_t r = 0; r < kRows; ++r)
                    for (std::size_t i = 0; i < d; ++i) rows[r][i] = hard.element(random, r, i);
                // Against themselves, so that rows meet equal ones.
                this->check(metric, rows, rows);
                if (this->HasFatalFailure()) return;
            }
        }
}

TYPED_TEST(FilterSpaceOf, BoundsScoresOfQueriesAndItemsOfOtherMagnitudes) {
    RandomRows random;
    const std::size_t d = 50;
    for (const int exponent : {-390, -130, 130, 390})
        for (const Metric metric :
             {Metric::euclidean, Metric::cosine, Metric::inner_product, Metric::manhattan}) {
            SCOPED_TRACE("exponent " + std::to_string(exponent) + ", metric " +
                         std::to_string(static_cast<int>(metric)));
            const DoubleRows queries = random.rows(testing::Shape::gaussian, kRows, d);
            DoubleRows items = random.rows(testing::Shape::gaussian, kRows, d);
            for (DoubleRow& item : items)
                for (double& x : item) x = std::ldexp(x, exponent);
            this->check(metric, queries, items);
            if (this->HasFatalFailure()) return;
        }
}

/// Scores of which the bound says, in more precise numbers, that t may be the limit
template <class S>
void expect_all_below_largest() {
    RandomRows random;
    for (int round = 0; round < 20000; ++round) {
        const long double t = random.normal(),
                          relative = std::ldexp(1 + std::fabs(random.normal()), -5 - round % 50),
                          absolute = std::ldexp(std::fabs(random.normal()), -(round % 40));
        const FilterSpace::Bound bound{static_cast<double>(relative),
                                       static_cast<double>(absolute)};
        const auto largest = bound.largest_score<S>(static_cast<double>(t));
        const auto below_limit = [&](S score) {
            return static_cast<long double>(score) *
                           (1 - static_cast<long double>(bound.relative)) -
                       static_cast<long double>(bound.absolute) <=
                   static_cast<long double>(static_cast<double>(t));
        };
        ASSERT_FALSE(below_limit(std::nextafter(largest, std::numeric_limits<S>::infinity())))
            << "limit " << t << ", relative " << relative << ", absolute " << absolute;
    }
}

TEST(FilterSpace, NoScoreAboveTheLargestMayBeWithinTheLimit) {
    expect_all_below_largest<float>();
    expect_all_below_largest<double>();
}

TEST(FilterSpace, HoldsForMagnitudesWhoseSquaresAreNormal) {
    EXPECT_TRUE(FilterSpace::holds(0x1p400, 0x1p-400, 1));
    EXPECT_TRUE(FilterSpace::holds(0, 0, 1 << 17));
    EXPECT_FALSE(FilterSpace::holds(0x1p401, 1, 1));
    EXPECT_FALSE(FilterSpace::holds(1, 0x1p-401, 1));
    EXPECT_FALSE(FilterSpace::holds(1, 1, (1 << 17) + 1));
    EXPECT_FALSE(FilterSpace::holds(1, 1, 0));
}

}  // namespace
}  // namespace gputext
