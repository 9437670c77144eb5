#include "cpp/terms/detail/inverted_index.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "cpp/terms/detail/filter.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::seed;

/// A random matrix of terms: the first ones in many rows, the last ones in hardly any.
class RandomTexts {
public:
    RandomTexts(std::size_t rows, std::uint32_t terms, bool negative, ElementType type)
        : factors_(terms) {
        std::uniform_real_distribution<double> uniform;
        for (double& factor : factors_)
            factor = uniform(generator_) < 0.1 ? 0 : uniform(generator_);
        begins_.push_back(0);
        for (std::size_t row = 0; row < rows; ++row) {
            const bool empty = uniform(generator_) < 0.02;
            for (std::uint32_t term = 0; term < terms && !empty;) {
                columns_.push_back(term);
                append(negative, type);
                // The gaps grow with the term.
                std::geometric_distribution<std::uint32_t> gap(1 / (1.5 + 0.001 * term * term));
                term += 1 + gap(generator_);
            }
            begins_.push_back(columns_.size());
        }
        vectors_.type = type;
        vectors_.rows = rows;
        vectors_.dimensions = terms;
        vectors_.elements = type == ElementType::int32 ? static_cast<const void*>(integers_.data())
                                                       : floats_.data();
        vectors_.row_begins = begins_;
        vectors_.columns = columns_;
    }
    RandomTexts(const RandomTexts&) = delete;

    const Vectors& vectors() const { return vectors_; }
    std::span<const double> factors() const { return factors_; }
    /// Some of the rows, in another order.
    std::vector<std::uint32_t> some_rows() {
        std::vector<std::uint32_t> rows(vectors_.rows);
        std::iota(rows.begin(), rows.end(), 0u);
        std::shuffle(rows.begin(), rows.end(), generator_);
        rows.resize(rows.size() * 9 / 10);
        return rows;
    }

private:
    void append(bool negative, ElementType type) {
        const std::uint64_t draw = generator_();
        const double sign = negative && draw % 3 == 0 ? -1 : 1;
        if (type == ElementType::int32) {
            integers_.push_back(static_cast<std::int32_t>(sign * static_cast<double>(draw % 20)));
        } else {
            // Some so small that a float near 0 is all that is left of them beside others.
            const double small = draw % 50 == 0 ? 1e-20 : 1;
            floats_.push_back(static_cast<float>(sign * small * static_cast<double>(draw % 1000)));
        }
    }

    std::mt19937_64 generator_{seed()};
    std::vector<double> factors_;
    std::vector<std::uint64_t> begins_;
    std::vector<std::uint32_t> columns_;
    std::vector<float> floats_;
    std::vector<std::int32_t> integers_;
    Vectors vectors_;
};

/// How many terms of each form an index has.
struct Forms {
    std::size_t dense = 0, frequent = 0, rare = 0;
};

/// Takes the numbers of one form, each of which may be given to one term only.
class Numbers {
public:
    void take(std::uint32_t number) {
        EXPECT_TRUE(taken_.insert(number).second) << "number " << number << " was given before";
    }
    /// How many there are, from 0 on.
    std::size_t count() const {
        EXPECT_TRUE(taken_.empty() || *taken_.rbegin() == taken_.size() - 1);
        return taken_.size();
    }

private:
    std::set<std::uint32_t> taken_;
};

/// The weights of each term by position, as the matrix gives them, divided by the row's length.
std::vector<std::map<std::uint32_t, double>> postings_of(const TermMatrix& weights,
                                                         std::span<const std::uint32_t> rows) {
    std::vector<std::map<std::uint32_t, double>> postings(weights.terms());
    for (std::uint32_t position = 0; position < rows.size(); ++position) {
        const double length = std::sqrt(weights.square(rows[position]));
        weights.each(rows[position], [&](std::uint32_t term, double weight) {
            postings[term][position] = weight / length;
        });
    }
    return postings;
}

void expect_weight(float found, double wanted) {
    const auto rounded = static_cast<float>(wanted);
    if (std::fabs(rounded) >= InvertedIndex::least_weight)
        EXPECT_EQ(found, rounded);
    else
        EXPECT_EQ(found, std::copysign(InvertedIndex::least_weight, rounded));
}

/// A column has a number for each row of a tile, 0 only where the row has no posting.
void expect_column(const InvertedIndex& index, std::uint32_t dense,
                   const std::map<std::uint32_t, double>& postings) {
    std::size_t found = 0;
    for (std::size_t tile = 0; tile < index.tiles(); ++tile) {
        const std::uint16_t* const column = index.column(tile, dense);
        for (std::size_t row = 0; row < index.tile_rows(); ++row) {
            const auto posting =
                postings.find(static_cast<std::uint32_t>(tile * index.tile_rows() + row));
            if (posting == postings.end()) {
                ASSERT_EQ(column[row], 0) << "row " << row << " of tile " << tile;
                continue;
            }
            ++found;
            const double weight = column[row] * InvertedIndex::dense_unit;
            ASSERT_NE(column[row], 0) << "row " << row << " of tile " << tile;
            ASSERT_LT((column[row] - 1) * InvertedIndex::dense_unit, posting->second);
            ASSERT_LE(posting->second - weight, InvertedIndex::dense_unit * (0.5 + 1e-9));
        }
    }
    EXPECT_EQ(found, postings.size());
}

void expect_lists(const InvertedIndex& index, std::uint32_t frequent,
                  const std::map<std::uint32_t, double>& postings) {
    auto wanted = postings.begin();
    for (std::size_t tile = 0; tile < index.tiles(); ++tile) {
        const InvertedIndex::List list = index.list(tile, frequent);
        for (std::size_t i = 0; i < list.size; ++i, ++wanted) {
            ASSERT_NE(wanted, postings.end());
            ASSERT_LT(list.rows[i], index.rows_of(tile));
            ASSERT_EQ(tile * index.tile_rows() + list.rows[i], wanted->first);
            expect_weight(list.weights[i], wanted->second);
        }
    }
    EXPECT_EQ(wanted, postings.end());
}

void expect_rare(const InvertedIndex& index, std::uint32_t rare,
                 const std::map<std::uint32_t, double>& postings) {
    const auto list = index.rare(rare);
    ASSERT_EQ(list.size(), postings.size());
    auto wanted = postings.begin();
    for (std::size_t i = 0; i < list.size(); ++i, ++wanted) {
        ASSERT_EQ(list[i].position, wanted->first);
        expect_weight(list[i].weight, wanted->second);
    }
}

/// Every posting is found exactly once, in the form of its term, and none besides.
Forms expect_all_postings(const InvertedIndex& index, const TermMatrix& weights,
                          std::span<const std::uint32_t> rows) {
    using Kind = InvertedIndex::Kind;
    Numbers dense, frequent, rare;
    const auto postings = postings_of(weights, rows);
    for (std::uint32_t term = 0; term < weights.terms(); ++term) {
        SCOPED_TRACE("term " + std::to_string(term));
        const InvertedIndex::Place place = index.place(term);
        // A term that weighs nothing takes no room.
        if (weights.factors()[term] == 0) {
            EXPECT_EQ(place.kind, Kind::none);
        }
        switch (place.kind) {
            case Kind::none:
                EXPECT_TRUE(postings[term].empty());
                break;
            case Kind::dense:
                dense.take(place.number);
                expect_column(index, place.number, postings[term]);
                break;
            case Kind::frequent:
                frequent.take(place.number);
                expect_lists(index, place.number, postings[term]);
                break;
            case Kind::rare:
                rare.take(place.number);
                expect_rare(index, place.number, postings[term]);
        }
        if (::testing::Test::HasFatalFailure()) break;
    }
    EXPECT_EQ(index.tile_rows() % InvertedIndex::row_step, 0u);
    EXPECT_LE(index.tile_rows(), InvertedIndex::most_tile_rows);
    EXPECT_EQ(index.size(), rows.size());
    for (std::size_t position = 0; position < rows.size(); ++position)
        EXPECT_EQ(index.square(position), weights.square(rows[position]));
    return {dense.count(), frequent.count(), rare.count()};
}

Forms build_and_compare(std::size_t rows, std::uint32_t terms, bool negative, ElementType type,
                        std::size_t dense_memory, unsigned threads) {
    SCOPED_TRACE(::testing::Message()
                 << rows << " rows, " << terms << " terms, negative " << negative << ", memory "
                 << dense_memory << ", threads " << threads << ", seed " << seed());
    RandomTexts texts(rows, terms, negative, type);
    const TermMatrix weights(texts.vectors(), texts.factors());
    const std::vector<std::uint32_t> some = texts.some_rows();
    Execution execution(threads);
    InvertedIndex index;
    EXPECT_TRUE(
        index.build(texts.vectors(), weights, some, negative, dense_memory, execution).ok());
    return expect_all_postings(index, weights, some);
}

TEST(InvertedIndex, HasEveryPostingOnceInEachForm) {
    // Several tiles, and terms of each form.
    const Forms forms =
        build_and_compare(20000, 3000, false, ElementType::float32, SIZE_MAX / 2, 3);
    EXPECT_GT(forms.dense, 3u);
    EXPECT_GT(forms.frequent, 100u);
    EXPECT_GT(forms.rare, 10u);
}

TEST(InvertedIndex, HasFewerDenseTermsWhereMemoryIsShort) {
    const std::size_t column = 20000 * sizeof(std::uint16_t);
    const Forms some = build_and_compare(20000, 300, false, ElementType::float32, 4 * column, 2);
    EXPECT_GT(some.dense, 0u);
    EXPECT_LE(some.dense, 4u);
    EXPECT_EQ(build_and_compare(20000, 300, false, ElementType::float32, 0, 2).dense, 0u);
}

TEST(InvertedIndex, HasNoDenseTermsWhereWeightsMayBeNegative) {
    const Forms forms = build_and_compare(20000, 300, true, ElementType::float32, SIZE_MAX / 2, 3);
    EXPECT_EQ(forms.dense, 0u);
    EXPECT_GT(forms.frequent, 10u);
}

TEST(InvertedIndex, HasEveryPostingOfFewRowsAndOfCounts) {
    for (const std::size_t rows : {0, 1, 2, 63, 64, 65, 1023, 1024, 1025, 3000})
        for (const ElementType type : {ElementType::float32, ElementType::int32})
            for (const bool negative : {false, true})
                build_and_compare(rows, 100, negative, type, SIZE_MAX / 2, 1);
}

TEST(InvertedIndex, IsBuiltAgainForOtherRows) {
    RandomTexts texts(5000, 200, false, ElementType::float32);
    const TermMatrix weights(texts.vectors(), texts.factors());
    Execution execution(2);
    InvertedIndex index;
    for (int time = 0; time < 3; ++time) {
        std::vector<std::uint32_t> rows = texts.some_rows();
        if (time == 1) rows.resize(100);
        ASSERT_TRUE(index.build(texts.vectors(), weights, rows, false, 1 << 20, execution).ok());
        expect_all_postings(index, weights, rows);
    }
}

/// The bound of cpp/terms/detail/filter.hpp, with more digits than a double has: a score that is
/// rounded up leaves out an item that is as near as the limit.
TEST(ScoreBound, IsNeverAboveWhatIsProven) {
    std::mt19937_64 generator(seed());
    std::uniform_real_distribution<double> uniform(0, 2);
    for (const std::size_t terms : {1, 7, 300, 100000})
        for (const bool negative : {false, true}) {
            const ScoreBound bound(terms, 0, negative, 0);
            const long double u = (static_cast<long double>(terms) + 8) * 0x1p-24L;
            const long double relative = u / (1 - u), absolute = terms * 0x1p-38L;
            for (int i = 0; i < 1000; ++i) {
                const double distance = uniform(generator);
                const long double cosine = 1 - static_cast<long double>(distance);
                const long double score = negative ? cosine - relative - absolute
                                                   : cosine * (1 - relative) - absolute;
                if (!negative && score <= 0) continue;  // which all items reach that share a term
                ASSERT_LE(static_cast<long double>(bound.least_within(distance)), score);
            }
        }
}

}  // namespace
}  // namespace gputext
