// The store of values: what is found, what is given up, and that whatever is found is right.

#include "cpp/resident/resident_values.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/resident_value_files.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using namespace testing;

constexpr std::uint64_t kSize = 400;  // of a vector
constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;

const ValueKind kVectors{7, ValueForm::vector, ElementType::float32, kSize / 4};
const ValueKind kDocuments{7, ValueForm::document, ElementType::float32, 0};

/// A connection of a session, and what it asks the store for.
class Session {
public:
    explicit Session(ResidentValues& store) : store_(store) {}

    /// Returns the rows that are missing.
    std::vector<std::uint32_t> find(const ResidentValueList& values,
                                    const ValueKind& kind = kVectors, std::uint64_t horizon = 100,
                                    std::uint64_t run = 1) {
        values_ = values;
        const FindValues message{run, horizon, kind, static_cast<std::uint32_t>(values.size())};
        const auto pointers = pointer_file(values);
        const Status status = store_.find(message, pointers.get(), request_, {});
        EXPECT_TRUE(status.ok()) << status.message();
        return ResidentValues::missing(request_);
    }

    /// What they are called when they are really kept, or 0.
    Result<std::uint64_t> keep(std::uint64_t pages = 0) {
        const auto bytes = bytes_of_rows(values_, ResidentValues::missing(request_));
        ValueFiles files(bytes, pages);
        auto kept = store_.add(request_, {bytes.size(), files.shape}, std::move(files.files));
        if (!kept.ok() || *kept == 0 || request_.number != 0) return kept;
        Execution execution(1);
        const auto again = store_.take(request_, {}, execution);
        return again.ok() ? again->resident : 0;
    }

    /// All bytes, which have to be the values'. Returns what they are called when they are really
    /// kept, or 0.
    std::uint64_t take() {
        const std::uint64_t id = take_files(false);
        if (taken_ == nullptr) return id;
        expect_bytes();
        const auto held = taken_;
        return take_files(false);
    }
    /// The same of a session that will ask for them again by that name.
    std::uint64_t take_again() {
        const std::uint64_t id = take_files(false, {}, true);
        if (taken_ != nullptr) expect_bytes();
        return id;
    }
    /// Their chunk, which may still be filled. `begin` is how it is.
    std::uint64_t take_early(ResidentValues::BeginFilling begin = {}) {
        return take_files(true, std::move(begin));
    }
    void expect_bytes() const {
        ASSERT_TRUE(taken_->filling().filled());
        const auto bytes = taken_->bytes();
        EXPECT_EQ(ByteList(bytes.begin(), bytes.end()), bytes_of_all(values_));
    }
    const std::shared_ptr<const ResidentChunk>& taken() const { return taken_; }

    /// Finds, keeps what is missing, and takes all. Returns what it is called.
    std::uint64_t read(const ResidentValueList& values, const ValueKind& kind = kVectors,
                       std::uint64_t horizon = 100) {
        const auto missing = find(values, kind, horizon);
        if (!missing.empty()) {
            const auto kept = keep();
            EXPECT_TRUE(kept.ok()) << kept.status().message();
            if (missing.size() == values.size()) return kept.ok() ? *kept : 0;
        }
        return take();
    }

    ValueRequest& request() { return request_; }

private:
    std::uint64_t take_files(bool early, ResidentValues::BeginFilling begin = {},
                             bool again = false) {
        Execution execution(2);
        taken_ = nullptr;
        auto taken = store_.take(request_, {early, again}, execution, std::move(begin));
        EXPECT_TRUE(taken.ok()) << taken.status().message();
        if (!taken.ok()) return UINT64_MAX;
        taken_ = taken->chunk;
        return taken->resident;
    }

    ResidentValues& store_;
    ValueRequest request_;
    ResidentValueList values_;
    std::shared_ptr<const ResidentChunk> taken_;
};

class ResidentValuesTest : public ::testing::Test {
protected:
    void set_limits(ResidentLimits limits) { store_.emplace(limits, ranges_); }
    /// With all done that requests have left.
    ResidentValues& store() {
        store_->settle();
        return *store_;
    }
    std::size_t missing(const ResidentValueList& values, const ValueKind& kind = kVectors,
                        std::uint64_t horizon = 100, std::uint64_t run = 1) {
        return Session(store()).find(values, kind, horizon, run).size();
    }
    std::uint64_t read(const ResidentValueList& values, const ValueKind& kind = kVectors) {
        return Session(store()).read(values, kind);
    }

    std::shared_ptr<ResidentRanges> ranges_ = std::make_shared<ResidentRanges>();
    std::optional<ResidentValues> store_{std::in_place, ResidentLimits{kMuch, 1000}, ranges_};
};

/// What a chunk of so many vectors counts for.
std::uint64_t cost(std::size_t values) {
    return values * (kSize + 96);
}

ResidentValueList slice(const ResidentValueList& values, std::size_t begin, std::size_t end) {
    return {values.begin() + static_cast<std::ptrdiff_t>(begin),
            values.begin() + static_cast<std::ptrdiff_t>(end)};
}

ResidentValueList joined(ResidentValueList first, const ResidentValueList& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

TEST_F(ResidentValuesTest, FindsWhatItHasKept) {
    const auto values = some_values(3, 1000, 500, kSize);
    Session first(store());
    EXPECT_EQ(first.find(values).size(), 500u);
    const auto id = first.keep(10);
    ASSERT_TRUE(id.ok()) << id.status().message();
    ASSERT_NE(*id, 0u);
    EXPECT_EQ(first.take(), *id) << "what is kept can be taken by whoever has read it, too";

    Session second(store());
    EXPECT_TRUE(second.find(values).empty());
    EXPECT_EQ(second.take(), *id);
    EXPECT_EQ(second.take(), *id);
    EXPECT_EQ(second.taken()->shape().parts, (500 * kSize - 1) / (10 * page_size()) + 1);
    EXPECT_EQ(store().bytes(), cost(500));
}

TEST_F(ResidentValuesTest, TellsKindsTablesAndSizesApart) {
    const auto values = some_values(3, 1, 10, kSize);
    read(values);
    EXPECT_EQ(missing(values), 0u);
    EXPECT_EQ(missing(some_values(4, 1, 10, kSize)), 10u);
    EXPECT_EQ(missing(some_values(3, 11, 10, kSize)), 10u);
    ValueKind other = kVectors;
    other.database = 8;
    EXPECT_EQ(missing(values, other), 10u);
    other = kVectors;
    other.element = ElementType::int32;
    EXPECT_EQ(missing(values, other), 10u);
    EXPECT_EQ(missing(values, kDocuments), 10u);
    read(values, kDocuments);
    EXPECT_EQ(missing(some_values(3, 1, 10, kSize - 1), kDocuments), 10u);
    EXPECT_EQ(missing(values, kDocuments), 0u);
}

TEST_F(ResidentValuesTest, UsesAValueOnlyBeforeItsHorizon) {
    auto values = some_values(3, 1, 100, kSize);
    read(values);
    for (auto& value : values) value.since = 99;
    EXPECT_EQ(missing(values), 0u);
    EXPECT_EQ(missing(values, kVectors, 50), 0u) << "the session's own horizon is no matter";
    for (auto& value : values) value.since = 100;
    EXPECT_EQ(missing(values), 100u);
    EXPECT_EQ(missing(values, kVectors, 200), 100u);
    for (auto& value : values) value.since = ValuePointer::never;
    EXPECT_EQ(missing(values, kVectors, UINT64_MAX), 100u);
}

TEST_F(ResidentValuesTest, FindsTheNewestOfTwoValuesWithOneNumber) {
    auto old_values = some_values(3, 1, 100, kSize);
    auto new_values = old_values;
    for (auto& value : new_values) {
        value.since = 150;
        value.content += 1;
    }
    read(old_values);
    Session(store()).read(new_values, kVectors, 200);
    EXPECT_EQ(missing(new_values), 0u);
    EXPECT_EQ(Session(store()).read(new_values, kVectors, 200), read(new_values));
    EXPECT_EQ(store().bytes(), cost(100)) << "the old ones are gone";
}

TEST_F(ResidentValuesTest, KeepsTheLaterOfTwoHorizons) {
    auto values = some_values(3, 1, 100, kSize);
    Session early(store()), late(store());
    EXPECT_EQ(early.find(values, kVectors, 100).size(), 100u);
    EXPECT_EQ(late.find(values, kVectors, 200).size(), 100u);
    const auto of_late = late.keep();
    ASSERT_TRUE(of_late.ok());
    ASSERT_TRUE(early.keep().ok());
    EXPECT_EQ(read(values), *of_late);
    for (auto& value : values) value.since = 150;
    EXPECT_EQ(missing(values), 0u);
    EXPECT_EQ(store().bytes(), cost(100));
}

TEST_F(ResidentValuesTest, ForgetsEverythingInAnotherRun) {
    const auto values = some_values(3, 1, 100, kSize);
    read(values);
    Session of_first_run(store());
    EXPECT_EQ(of_first_run.find(some_values(4, 1, 10, kSize)).size(), 10u);
    EXPECT_EQ(missing(values, kVectors, 100, 2), 100u);
    EXPECT_EQ(store().bytes(), 0u);
    EXPECT_TRUE(store().tables().empty());
    const auto kept = of_first_run.keep();
    ASSERT_TRUE(kept.ok());
    EXPECT_EQ(*kept, 0u) << "values of another run are not kept";
}

TEST_F(ResidentValuesTest, CopiesValuesOfSeveralChunksAndKeepsTheCopyInstead) {
    const auto all = some_values(3, 1, 1000, kSize);
    const auto first = read(slice(all, 0, 400));
    const auto second = read(slice(all, 400, 1000));
    const auto both = read(all);
    EXPECT_NE(both, 0u);
    EXPECT_TRUE(both != first && both != second);
    EXPECT_EQ(store().bytes(), cost(1000));
    EXPECT_EQ(read(all), both);
    EXPECT_EQ(store().tables().at(0).values, 1000u);
}

TEST_F(ResidentValuesTest, KeepsUpWithUpdatesOfSomeRows) {
    std::mt19937 random(1);
    auto values = some_values(3, 1, 2000, kSize);
    read(values);
    std::uint64_t horizon = 100;
    for (std::uint32_t update = 1; update <= 20; ++update) {
        // The rows' new versions come last.
        ResidentValueList updated;
        for (std::size_t i = 0; i < 20; ++i) {
            const auto at = values.begin() + static_cast<std::ptrdiff_t>(random() % values.size());
            ResidentValue value = *at;
            value.number = 10000 * update + static_cast<std::uint32_t>(i);
            value.since = horizon;
            value.content = value.number;
            updated.push_back(value);
            values.erase(at);
        }
        values = joined(std::move(values), updated);
        horizon += 10;
        Session session(store());
        EXPECT_EQ(session.find(values, kVectors, horizon).size(), 20u);
        ASSERT_TRUE(session.keep().ok());
        const auto id = session.take();
        EXPECT_NE(id, 0u);
        EXPECT_EQ(Session(store()).read(values, kVectors, horizon), id);
        EXPECT_EQ(store().bytes(), cost(2000)) << "what is left of the chunk before is given up";
    }
}

TEST_F(ResidentValuesTest, DoesNotKeepCopiesOfLessThanHalf) {
    const auto all = some_values(3, 1, 1000, kSize);
    const auto id = read(all);
    EXPECT_EQ(read(slice(all, 100, 500)), 0u);
    auto shuffled = all;
    std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
    EXPECT_EQ(read(slice(shuffled, 0, 499)), 0u);
    EXPECT_EQ(read(all), id);
    const auto in_other_order = read(shuffled);
    EXPECT_NE(in_other_order, 0u);
    EXPECT_EQ(read(shuffled), in_other_order);
    EXPECT_EQ(store().bytes(), cost(1000));
}

TEST_F(ResidentValuesTest, KeepsPartsForThoseWhoWillAskAgain) {
    const auto all = some_values(3, 1, 1000, kSize);
    const auto id = read(all);
    const auto part = [&](std::size_t begin, std::size_t end) {
        Session session(store());
        EXPECT_TRUE(session.find(slice(all, begin, end)).empty());
        return session.take_again();
    };
    const auto is_there = [&](std::uint64_t of) {
        const auto chunk = store().take_resident(of);
        EXPECT_TRUE(chunk.ok());
        return *chunk != nullptr;
    };
    const auto first = part(100, 200);
    EXPECT_NE(first, 0u);
    EXPECT_NE(first, id);
    EXPECT_TRUE(is_there(first));
    const auto chunk = store().take_resident(first);
    const auto bytes = (*chunk)->bytes();
    EXPECT_EQ(ByteList(bytes.begin(), bytes.end()), bytes_of_all(slice(all, 100, 200)));
    EXPECT_EQ(store().bytes(), cost(1000) + 100 * kSize);
    // Values are found where they were found before.
    EXPECT_EQ(read(all), id);
    EXPECT_EQ(store().tables().size(), 1u);
    EXPECT_EQ(store().tables()[0].values, 1000u);
    // What all are asked for is a chunk, and no part.
    EXPECT_EQ(part(0, 1000), id);
    // With a table, its parts are forgotten.
    EXPECT_EQ(store().forget(kVectors.database, 4), 0u);
    EXPECT_TRUE(is_there(first));
    EXPECT_EQ(store().forget(kVectors.database, 3), 1000u);
    EXPECT_FALSE(is_there(first));
    EXPECT_EQ(store().bytes(), 0u);
}

TEST_F(ResidentValuesTest, GivesPartsUpBeforeChunks) {
    const auto all = some_values(3, 1, 1000, kSize);
    const auto part = [&](std::size_t begin, std::size_t end) {
        Session session(store());
        session.find(slice(all, begin, end));
        return session.take_again();
    };
    const auto is_there = [&](std::uint64_t id) { return *store().take_resident(id) != nullptr; };
    // Room for parts of 420 values, as a fourth of the limit
    set_limits({4 * 420 * kSize, 1000});
    ASSERT_LE(cost(1000) + 420 * kSize, 4 * 420 * kSize);
    const auto id = read(all);
    EXPECT_EQ(part(0, 421), 0u) << "more than parts may have";
    const auto first = part(0, 150), second = part(150, 300);
    EXPECT_TRUE(is_there(first) && is_there(second));
    EXPECT_TRUE(is_there(first));
    const auto third = part(300, 450);
    EXPECT_TRUE(is_there(first) && is_there(third));
    EXPECT_FALSE(is_there(second)) << "used longest ago";
    EXPECT_TRUE(is_there(id));
    // Other chunks come.
    read(some_values(4, 1, 100, kSize));
    read(some_values(5, 1, 200, kSize));
    EXPECT_LE(store().bytes(), 4u * 420 * kSize);
    EXPECT_FALSE(is_there(first) && is_there(third));
    EXPECT_TRUE(is_there(id));
    // No chunk is given up for a part of it.
    set_limits({cost(1000) + 100 * kSize, 1000});
    read(all);
    EXPECT_EQ(part(0, 101), 0u);
    EXPECT_NE(part(0, 100), 0u);
    EXPECT_EQ(missing(all), 0u);
}

TEST_F(ResidentValuesTest, GivesChunksUpForAPartThatTheyAreNotOf) {
    const auto all = some_values(3, 1, 100, kSize);
    const auto other = some_values(4, 1, 1000, kSize), third = some_values(5, 1, 1000, kSize);
    const auto part = [&] {
        Session session(store());
        session.find(slice(all, 0, 50));
        return session.take_again();
    };
    const auto is_there = [&](std::uint64_t id) { return *store().take_resident(id) != nullptr; };
    set_limits({cost(2100) + 49 * kSize, 1000});
    const auto of_other = read(other), of_third = read(third), of_all = read(all);
    for (const auto& values : {other, third, all}) read(values);
    EXPECT_TRUE(is_there(of_other) && is_there(of_third) && is_there(of_all));
    EXPECT_TRUE(is_there(of_other)) << "used last";
    const auto id = part();
    EXPECT_TRUE(is_there(id));
    EXPECT_FALSE(is_there(of_third)) << "used longest ago";
    EXPECT_TRUE(is_there(of_other) && is_there(of_all));
    // What is used longer ago than the part goes before it.
    EXPECT_TRUE(is_there(of_all) && is_there(id));
    read(third);
    EXPECT_TRUE(is_there(id));
    EXPECT_LE(store().bytes(), cost(2100) + 49 * kSize);
}

TEST_F(ResidentValuesTest, DoesNotKeepWhatHardlyAnybodyCouldFind) {
    auto values = some_values(3, 1, 100, kSize);
    for (std::size_t i = 0; i < 51; ++i) values[i].since = i % 2 == 0 ? 100 : ValuePointer::never;
    Session session(store());
    EXPECT_EQ(session.find(values).size(), 100u);
    auto kept = session.keep();
    ASSERT_TRUE(kept.ok());
    EXPECT_EQ(*kept, 0u);
    EXPECT_EQ(store().bytes(), 0u);

    values[0].since = 10;
    EXPECT_NE(read(values), 0u);
    EXPECT_EQ(missing(values), 50u);
    // With the ones that cannot be kept it is read, but not kept again.
    Session second(store());
    EXPECT_EQ(second.find(values).size(), 50u);
    kept = second.keep();
    ASSERT_TRUE(kept.ok());
    EXPECT_EQ(*kept, 0u);
    EXPECT_EQ(second.take(), 0u);
    EXPECT_EQ(store().bytes(), cost(100));
}

TEST_F(ResidentValuesTest, GivesUpAChunkOfWhichLessThanAQuarterIsLeft) {
    // Copies of some rows replace them; what is left of the first chunk can be found until it is
    // too little.
    for (const std::size_t left : {25, 24}) {
        set_limits({kMuch, 1000});
        auto values = some_values(3, 1, 100, kSize);
        read(values);
        for (std::size_t i = left; i < 100; ++i) {
            values[i].since = 100;
            values[i].content = static_cast<std::uint32_t>(1000 + i);
        }
        Session session(store());
        EXPECT_EQ(session.find(slice(values, left, 100), kVectors, 200).size(), 100 - left);
        ASSERT_TRUE(session.keep().ok());
        EXPECT_EQ(missing(slice(values, 0, left), kVectors, 200), left == 25 ? 0u : left);
    }
}

TEST_F(ResidentValuesTest, ServesRowsThatPointToTheSameValue) {
    auto values = some_values(3, 1, 50, kSize);
    for (std::size_t i = 0; i < 50; ++i) values.push_back(values[i / 2]);
    const auto id = read(values);
    EXPECT_NE(id, 0u);
    EXPECT_EQ(read(values), id);
    EXPECT_EQ(store().bytes(), cost(100));
}

TEST_F(ResidentValuesTest, KeepsDocumentsOfAllSizes) {
    std::mt19937 random(3);
    auto values = some_values(9, 1, 300, 0);
    for (auto& value : values) value.size = random() % 3 == 0 ? 0 : random() % 3000;
    const auto id = read(values, kDocuments);
    EXPECT_NE(id, 0u);
    EXPECT_EQ(read(values, kDocuments), id);
    const ResidentValueList backwards(values.rbegin(), values.rend());
    EXPECT_NE(read(backwards, kDocuments), 0u);
    EXPECT_EQ(read(slice(backwards, 0, 10), kDocuments), 0u);

    const auto empty = some_values(10, 1, 20, 0);
    const auto nothing = read(empty, kDocuments);
    EXPECT_NE(nothing, 0u);
    EXPECT_EQ(read(empty, kDocuments), nothing);
    EXPECT_EQ(missing({}, kDocuments), 0u);
    EXPECT_EQ(read({}, kDocuments), 0u);
}

// ---- Limits ----

TEST_F(ResidentValuesTest, KeepsNothingWithoutMemory) {
    set_limits({0, 1000});
    const auto values = some_values(3, 1, 100, kSize);
    EXPECT_EQ(read(values), 0u);
    EXPECT_EQ(missing(values), 100u);
    EXPECT_EQ(store().bytes(), 0u);
    EXPECT_EQ(ranges_->containing(nullptr, 0).has_value(), false);
}

TEST_F(ResidentValuesTest, GivesUpWhatWasUsedLongestAgo) {
    set_limits({cost(300), 1000});
    const auto a = some_values(1, 1, 100, kSize), b = some_values(2, 1, 100, kSize),
               c = some_values(3, 1, 100, kSize), d = some_values(4, 1, 100, kSize);
    for (const auto* values : {&a, &b, &c}) EXPECT_NE(read(*values), 0u);
    for (const auto* values : {&b, &a, &c}) EXPECT_EQ(missing(*values), 0u);
    EXPECT_EQ(read(some_values(5, 1, 301, kSize)), 0u) << "larger than the limit";
    EXPECT_EQ(missing(b), 0u);
    EXPECT_NE(read(d), 0u);
    EXPECT_EQ(missing(a), 100u);
    EXPECT_EQ(missing(b), 0u);
    EXPECT_EQ(missing(c), 0u);
    EXPECT_EQ(missing(d), 0u);
    EXPECT_EQ(store().bytes(), cost(300));
}

TEST_F(ResidentValuesTest, LimitsItsFiles) {
    set_limits({kMuch, 10});
    for (std::uint32_t table = 1; table <= 12; ++table)
        EXPECT_NE(read(some_values(table, 1, 10, kSize)), 0u);
    EXPECT_EQ(store().tables().size(), 10u);
    EXPECT_EQ(missing(some_values(2, 1, 10, kSize)), 10u);
    EXPECT_EQ(missing(some_values(3, 1, 10, kSize)), 0u);
    Session session(store());
    session.find(some_values(20, 1, 1000, kSize));
    const auto kept = session.keep(8);
    ASSERT_TRUE(kept.ok());
    EXPECT_EQ(*kept, 0u) << "more files than there may be";
}

TEST_F(ResidentValuesTest, DoesNotLetAScanPushOutWhatIsUsedAgain) {
    set_limits({cost(1000), 1000});
    const auto used = some_values(1, 1, 450, kSize);
    EXPECT_NE(read(used), 0u);
    EXPECT_EQ(missing(used), 0u);
    // A scan in pieces of its own, and one in a piece that would take more than half.
    for (std::uint32_t piece = 0; piece < 10; ++piece)
        EXPECT_NE(read(some_values(2, 1 + 100 * piece, 100, kSize)), 0u);
    EXPECT_EQ(missing(used), 0u);
    EXPECT_EQ(read(some_values(3, 1, 600, kSize)), 0u);
    EXPECT_EQ(missing(used), 0u);
    EXPECT_LE(store().bytes(), cost(1000));
    // New values alone may have everything.
    set_limits({cost(1000), 1000});
    EXPECT_NE(read(some_values(3, 1, 900, kSize)), 0u);
    EXPECT_NE(read(some_values(4, 1, 800, kSize)), 0u);
    EXPECT_EQ(missing(some_values(4, 1, 800, kSize)), 0u);
}

TEST_F(ResidentValuesTest, LetsGoOfWhatIsNotUsedAnyMore) {
    set_limits({cost(1000), 1000});
    const auto used = some_values(1, 1, 600, kSize);
    read(used);
    EXPECT_EQ(missing(used), 0u);
    const auto large = some_values(2, 1, 700, kSize);
    std::uint64_t id = 0;
    int times = 0;
    for (; id == 0 && times < 10; ++times) id = read(large);
    EXPECT_GT(times, 1);
    EXPECT_LE(times, 5) << "after twice the limit has been offered";
    EXPECT_EQ(missing(large), 0u);
    EXPECT_EQ(missing(used), 600u);
}

// ---- What goes on around ----

TEST_F(ResidentValuesTest, LetsRequestsAndJobsGoOnWithWhatItGivesUp) {
    const auto values = some_values(1, 1, 100, kSize);
    const auto id = read(values);
    std::optional<Session> slow(store());
    EXPECT_TRUE(slow->find(values).empty());
    auto held = store().chunks()->find(id);
    ASSERT_NE(held, nullptr);
    const std::uint8_t* const address = held->bytes().data();
    EXPECT_EQ(ranges_->containing(address + 10, 20)->id, id);
    EXPECT_EQ(store().forget(7, 1), 100u);
    EXPECT_EQ(missing(values), 100u);
    EXPECT_EQ(store().given_up().size(), 1u);
    EXPECT_TRUE(ranges_->has(id));
    EXPECT_EQ(slow->take(), 0u) << "it is not kept any more";
    EXPECT_TRUE(ranges_->has(id));
    held.reset();
    slow.reset();
    EXPECT_FALSE(ranges_->has(id));
    EXPECT_EQ(store().chunks()->find(id), nullptr);
    EXPECT_FALSE(ranges_->containing(address, 1).has_value());
}

TEST_F(ResidentValuesTest, SaysWhatItKeepsAndForgetsIt) {
    const auto a = some_values(1, 1, 100, kSize), b = some_values(2, 1, 300, kSize);
    const auto id = read(joined(a, b));
    missing(a);
    missing(joined(a, some_values(1, 500, 50, kSize)));
    auto never = some_values(1, 600, 10, kSize);
    for (auto& value : never) value.since = ValuePointer::never;
    missing(never);
    ranges_->set_kept(0, id, 40000);
    ranges_->set_kept(1, id, 80000);
    auto tables = store().tables();
    ASSERT_EQ(tables.size(), 2u);
    EXPECT_EQ(tables[0].database, 7u);
    EXPECT_EQ(tables[0].table, 1u);
    EXPECT_EQ(tables[0].values, 100u);
    EXPECT_EQ(tables[0].bytes, 100 * kSize);
    EXPECT_EQ(tables[0].hits, 200u);
    EXPECT_EQ(tables[0].misses, 150u) << "the first ones, and those that were not there later";
    EXPECT_EQ(tables[0].device_bytes, 30000u);
    EXPECT_GE(tables[0].idle_seconds, 0);
    EXPECT_LT(tables[0].idle_seconds, 60);
    EXPECT_EQ(tables[1].table, 2u);
    EXPECT_EQ(tables[1].device_bytes, 90000u);
    EXPECT_EQ(tables[1].hits, 0u);

    EXPECT_EQ(store().forget(7, 99), 0u);
    EXPECT_EQ(store().forget(8, 1), 0u);
    EXPECT_EQ(store().forget(7, 1), 100u);
    EXPECT_EQ(missing(a), 100u);
    EXPECT_EQ(missing(b), 0u);
    ASSERT_EQ(store().tables().size(), 1u);
    EXPECT_EQ(store().forget(7, 0), 300u);
    EXPECT_EQ(missing(b), 300u);
    EXPECT_TRUE(store().tables().empty());
    EXPECT_EQ(store().bytes(), 0u);
    store().given_up();
    EXPECT_FALSE(ranges_->has(id));
    EXPECT_NE(read(a), 0u) << "it can be kept again";
}

TEST_F(ResidentValuesTest, GivesKeptValuesByTheirName) {
    const auto a = some_values(1, 1, 100, kSize), b = some_values(2, 1, 300, kSize);
    const auto both = joined(a, b);
    const auto id = read(both);
    for (int times = 1; times < 3; ++times) {
        const auto taken = store().take_resident(id);
        ASSERT_TRUE(taken.ok() && *taken != nullptr);
        const auto bytes = (*taken)->bytes();
        EXPECT_EQ(ByteList(bytes.begin(), bytes.end()), bytes_of_all(both));
        const auto tables = store().tables();
        ASSERT_EQ(tables.size(), 2u);
        EXPECT_EQ(tables[0].hits, 100u * times);
        EXPECT_EQ(tables[1].hits, 300u * times);
        EXPECT_EQ(tables[0].misses, 100u);
    }
    EXPECT_EQ(*store().take_resident(id + 1), nullptr);
    EXPECT_EQ(*store().take_resident(0), nullptr);
    // A chunk that somebody holds is not a chunk that is kept.
    const auto held = store().take_resident(id);
    ASSERT_TRUE(held.ok());
    EXPECT_EQ(store().forget(7, 0), 400u);
    EXPECT_EQ(*store().take_resident(id), nullptr);
}

TEST_F(ResidentValuesTest, GivesUpWhatWasTakenByItsNameLongestAgo) {
    set_limits({cost(300), 1000});
    const auto a = some_values(1, 1, 100, kSize), b = some_values(2, 1, 100, kSize);
    const auto id_a = read(a), id_b = read(b);
    EXPECT_EQ(missing(a), 0u);
    EXPECT_EQ(missing(b), 0u);
    EXPECT_NE(*store().take_resident(id_a), nullptr);
    read(some_values(3, 1, 150, kSize));
    EXPECT_NE(*store().take_resident(id_a), nullptr);
    EXPECT_EQ(*store().take_resident(id_b), nullptr);
}

TEST_F(ResidentValuesTest, StopsWhenAsked) {
    const auto values = some_values(1, 1, 100, kSize);
    read(values);
    const Stop stop{[](void*) { return true; }, nullptr};
    ValueRequest request;
    const auto pointers = pointer_file(values);
    EXPECT_EQ(store().find({1, 100, kVectors, 100}, pointers.get(), request, stop).code(),
              ErrorCode::cancelled);
    Session session(store());
    session.find(slice(values, 0, 60));
    Execution execution(2);
    execution.request_stop();
    EXPECT_EQ(store().take(session.request(), {}, execution).status().code(), ErrorCode::cancelled);
    EXPECT_NE(session.take(), UINT64_MAX) << "the request is as it was";
}

TEST_F(ResidentValuesTest, ReadsPointersInAPlainFile) {
    const auto values = some_values(1, 1, 100, kSize);
    read(values);
    std::FILE* const file = std::tmpfile();
    const auto sealed = pointer_file(values);
    ByteList bytes(100 * sizeof(ValuePointer));
    ASSERT_EQ(pread(sealed.get(), bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
    ASSERT_TRUE(write_file(fileno(file), bytes, 0).ok());
    ValueRequest request;
    ASSERT_TRUE(store().find({1, 100, kVectors, 100}, fileno(file), request, {}).ok());
    EXPECT_EQ(request.missing, 0u);
    // Nobody looks at the file any more.
    ASSERT_EQ(ftruncate(fileno(file), 0), 0);
    Execution execution(1);
    const auto taken = store().take(request, {}, execution);
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(taken->chunk->bytes().size(), 100 * kSize);
    std::fclose(file);
}

// ---- Copies that are filled behind the answer ----

const ValueKind kNumbers{7, ValueForm::vector, ElementType::int32, kSize / 4};

/// A filling that goes on when it is told to.
class HeldUp {
public:
    ~HeldUp() { go_on(); }
    ResidentValues::BeginFilling begin() {
        return [this](Execution& execution) {
            while (!go_on_ && !execution.stop_requested())
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return execution.stop_requested() ? Status::cancelled() : Status();
        };
    }
    void go_on() { go_on_ = true; }

private:
    std::atomic<bool> go_on_{false};
};

class FilledBehind : public ResidentValuesTest {
protected:
    template <class Condition>
    static bool soon(const Condition& condition) {
        for (int i = 0; i < 1000 && !condition(); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return condition();
    }
    /// Values of two chunks, in turn; the sessions read them before.
    ResidentValueList values_of_two_chunks(const ValueKind& kind = kVectors) {
        const auto first = some_values(3, 1, 900, kSize), second = some_values(3, 901, 100, kSize);
        first_ = read(first, kind);
        second_ = read(second, kind);
        ResidentValueList values;
        for (std::size_t i = 0; i < 100; ++i) {
            values.push_back(second[i]);
            for (std::size_t j = 0; j < 9; ++j) values.push_back(first[9 * i + j]);
        }
        return values;
    }
    Status await(std::uint64_t id) { return store().await(id, {}); }

    std::uint64_t first_ = 0, second_ = 0;
    HeldUp held_up_;
};

TEST_F(FilledBehind, IsNamedBeforeItIsThere) {
    const auto values = values_of_two_chunks();
    Session session(store());
    EXPECT_TRUE(session.find(values).empty());
    const auto id = session.take_early(held_up_.begin());
    EXPECT_NE(id, 0u);
    EXPECT_FALSE(session.taken()->filling().filled());
    const auto files = session.taken()->duplicate_files();
    ASSERT_TRUE(files.ok());
    std::vector<int> descriptors;
    for (const FileDescriptor& file : *files) descriptors.push_back(file.get());
    const FileParts parts(descriptors, session.taken()->shape().part_bytes);
    EXPECT_FALSE(MappedFile::map(parts, 1000 * kSize, Trust::sealed).ok()) << "nobody may read it";
    // It is found like any other.
    Session other(store());
    EXPECT_TRUE(other.find(values).empty());
    EXPECT_EQ(other.take_early(), id);
    EXPECT_EQ(*store().take_resident(id), nullptr) << "not before it is filled";
    held_up_.go_on();
    EXPECT_TRUE(await(id).ok());
    session.expect_bytes();
    EXPECT_NE(*store().take_resident(id), nullptr);
    const auto mapped = MappedFile::map(parts, 1000 * kSize, Trust::sealed);
    ASSERT_TRUE(mapped.ok());
    EXPECT_EQ(ByteList(mapped->bytes().begin(), mapped->bytes().end()), bytes_of_all(values));
    EXPECT_EQ(read(values), id);
    EXPECT_EQ(store().bytes(), cost(1000));
    EXPECT_TRUE(await(id + 1000).ok()) << "there is none";
}

TEST_F(FilledBehind, IsAwaitedByWhoeverNeedsTheBytes) {
    const auto values = values_of_two_chunks();
    Session session(store());
    session.find(values);
    const auto id = session.take_early(held_up_.begin());
    Session cancelled(store());
    cancelled.find(values);
    Execution execution(1);
    execution.request_stop();
    EXPECT_EQ(store().take(cancelled.request(), {}, execution).status().code(),
              ErrorCode::cancelled);
    const Stop stop{[](void*) { return true; }, nullptr};
    EXPECT_EQ(store().await(id, stop).code(), ErrorCode::cancelled);
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        held_up_.go_on();
    });
    EXPECT_EQ(read(values), id);
    later.join();
}

TEST_F(FilledBehind, MayComeFromWhatIsBeingFilled) {
    auto values = values_of_two_chunks();
    std::vector<Session> sessions;
    for (int i = 0; i < 4; ++i) {
        sessions.emplace_back(store());
        sessions.back().find(values);
        EXPECT_NE(sessions.back().take_early(held_up_.begin()), 0u);
        EXPECT_FALSE(sessions.back().taken()->filling().filled());
        std::rotate(values.begin(), values.begin() + 77, values.end());
    }
    held_up_.go_on();
    for (const Session& session : sessions) {
        EXPECT_TRUE(await(session.taken()->id()).ok());
        session.expect_bytes();
    }
    EXPECT_EQ(store().bytes(), cost(1000));
}

TEST_F(FilledBehind, IsGivenUpWhenItFails) {
    const auto values = values_of_two_chunks();
    Session session(store()), waiting(store());
    session.find(values);
    const auto id = session.take_early([](Execution&) { return Status::out_of_memory(); });
    EXPECT_NE(id, 0u);
    const Status status = session.taken()->filling().wait({});
    EXPECT_EQ(status.code(), ErrorCode::unavailable);
    EXPECT_NE(status.message().find("out of memory"), std::string::npos);
    EXPECT_EQ(missing(values), 1000u);
    EXPECT_EQ(store().bytes(), 0u);
    EXPECT_NE(read(values), 0u) << "it can be kept again";
}

TEST_F(FilledBehind, FailsWithWhatItComesFrom) {
    auto values = values_of_two_chunks();
    Session first(store()), second(store());
    first.find(values);
    const auto fail = [begin = held_up_.begin()](Execution& execution) {
        const Status held_up = begin(execution);
        return held_up.ok() ? Status(ErrorCode::io_error, "no more") : held_up;
    };
    EXPECT_NE(first.take_early(fail), 0u);
    std::reverse(values.begin(), values.end());
    second.find(values);
    EXPECT_NE(second.take_early(), 0u);
    held_up_.go_on();
    EXPECT_FALSE(second.taken()->filling().wait({}).ok());
    EXPECT_FALSE(first.taken()->filling().wait({}).ok());
    EXPECT_EQ(missing(values), 1000u);
}

TEST_F(FilledBehind, EndsWithTheStore) {
    const auto values = values_of_two_chunks();
    std::optional<Session> session(store());
    session->find(values);
    EXPECT_NE(session->take_early(held_up_.begin()), 0u);
    const auto chunk = session->taken();
    store().stop_filling();
    EXPECT_EQ(chunk->filling().wait({}).code(), ErrorCode::unavailable);
    Session after(store());
    EXPECT_EQ(after.find(values).size(), 1000u);
    ASSERT_TRUE(after.keep().ok());
    after.find(slice(values, 500, 1000));
    EXPECT_NE(after.take_early(), 0u);
    EXPECT_FALSE(after.taken()->filling().wait({}).ok()) << "nothing is filled any more";
    session.reset();
    store_.reset();
}

TEST_F(FilledBehind, KnowsHowLargeItsElementsAre) {
    const auto values = values_of_two_chunks(kNumbers);
    Execution execution(2);
    const auto largest_of = [&](std::uint64_t id, Vectors& vectors) {
        const auto chunk = store().chunks()->find(id);
        vectors = {ElementType::int32,
                   chunk->bytes().size() / kSize,
                   kSize / 4,
                   chunk->bytes().data(),
                   {},
                   {},
                   &chunk->known()};
        return largest_magnitude(vectors, "item", execution);
    };
    Vectors vectors;
    ASSERT_TRUE(largest_of(first_, vectors).ok());  // a job that has looked at it
    Session session(store());
    session.find(values, kNumbers);
    const auto id = session.take_early(held_up_.begin());
    const auto& known = session.taken()->known();
    vectors = {ElementType::int32, 1000, kSize / 4, session.taken()->bytes().data(), {}, {}};
    EXPECT_FALSE(known.largest(vectors).has_value());
    ASSERT_TRUE(known.bound(vectors).has_value());
    EXPECT_EQ(await_elements(vectors, {}).code(), ErrorCode::ok) << "of others it is not asked";
    vectors.known = &session.taken()->known();
    const Stop stop{[](void*) { return true; }, nullptr};
    EXPECT_EQ(await_elements(vectors, stop).code(), ErrorCode::cancelled);
    const double bound = *magnitude_bound(vectors, "item", execution);
    held_up_.go_on();
    EXPECT_TRUE(await(id).ok());
    ASSERT_TRUE(known.largest(vectors).has_value());
    vectors.known = nullptr;
    EXPECT_EQ(*session.taken()->known().largest(vectors),
              *largest_magnitude(vectors, "item", execution));
    EXPECT_GE(bound, *largest_magnitude(vectors, "item", execution));
}

TEST_F(FilledBehind, IsNotBoundedByElementsThatAreNotFinite) {
    // Random bits are, among other things, not a number.
    const auto values = values_of_two_chunks();
    Session session(store());
    session.find(values);
    session.take();
    Vectors vectors{ElementType::float32, 1000, kSize / 4, session.taken()->bytes().data(), {}, {}};
    EXPECT_FALSE(session.taken()->known().bound(vectors).has_value());
    vectors.known = &session.taken()->known();
    Execution execution(2);
    EXPECT_EQ(magnitude_bound(vectors, "item", execution).status().code(),
              ErrorCode::invalid_argument);
}

TEST_F(FilledBehind, SaysDevicesWhereItsBytesAre) {
    auto values = values_of_two_chunks();
    ranges_->set_kept(0, first_, 900 * kSize);
    ranges_->set_kept(1, first_, 900 * kSize);
    Session session(store());
    session.find(values);
    const auto id = session.take_early(held_up_.begin());
    auto origin = ranges_->origin(id);
    ASSERT_NE(origin, nullptr);
    EXPECT_EQ(origin->pieces.size(), 200u) << "neighbors are one piece";
    ByteList bytes;
    for (const auto& piece : origin->pieces) {
        EXPECT_EQ(piece.begin, bytes.size());
        const auto part = origin->bytes_of(piece);
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    EXPECT_EQ(bytes, bytes_of_all(values));
    origin.reset();
    held_up_.go_on();
    EXPECT_TRUE(await(id).ok());
    store().given_up();
    EXPECT_TRUE(ranges_->has(first_)) << "the devices' copies are of use";
    // One device has made its copy, and then the other.
    ranges_->set_kept(1, id, 1000 * kSize);
    ranges_->origin_used(1, id);
    EXPECT_TRUE(ranges_->has_origin(id));
    ranges_->set_kept(0, id, 1000 * kSize);
    ranges_->origin_used(0, id);
    EXPECT_FALSE(ranges_->has_origin(id));
    EXPECT_TRUE(soon([&] { return !ranges_->has(first_) && !ranges_->has(second_); }));
    session.expect_bytes();
}

TEST_F(FilledBehind, SaysDevicesNothingThatIsOfNoUse) {
    // No device has a copy; or only of the smaller part.
    for (const bool smaller : {false, true}) {
        const auto values = values_of_two_chunks();
        if (smaller) ranges_->set_kept(0, second_, 100 * kSize);
        Session session(store());
        session.find(values);
        const auto id = session.take_early();
        EXPECT_FALSE(ranges_->has_origin(id)) << smaller;
        store().forget(7, 0);
    }
    // Nobody comes for it.
    const auto values = values_of_two_chunks();
    ranges_->set_kept(0, first_, 900 * kSize);
    Session session(store());
    session.find(values);
    const auto begin = std::chrono::steady_clock::now();
    const auto id = session.take_early();
    EXPECT_TRUE(ranges_->has_origin(id));
    EXPECT_TRUE(await(id).ok());
    store().given_up();
    EXPECT_TRUE(soon([&] { return !ranges_->has(first_); }));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, ChunkFiller::kOriginStays);
    EXPECT_FALSE(ranges_->has_origin(id));
}

// ---- What must not come ----

TEST_F(ResidentValuesTest, RefusesWhatDoesNotAddUp) {
    const auto values = some_values(1, 1, 10, kSize);
    const auto pointers = pointer_file(values);
    ValueRequest request;
    const auto find = [&](const FindValues& message, int file) {
        return store().find(message, file, request, {}).code();
    };
    EXPECT_EQ(find({1, 100, kVectors, 11}, pointers.get()), ErrorCode::invalid_argument);
    EXPECT_EQ(find({1, 100, kVectors, 9}, pointers.get()), ErrorCode::invalid_argument);
    EXPECT_EQ(find({1, 100, kVectors, 10}, -1), ErrorCode::invalid_argument);
    EXPECT_EQ(
        find({1, 100, {7, ValueForm::vector, ElementType::float64, kSize / 4}, 10}, pointers.get()),
        ErrorCode::invalid_argument);
    EXPECT_EQ(find({1, 100, {7, ValueForm::document, ElementType::float32, 3}, 10}, pointers.get()),
              ErrorCode::invalid_argument);
    const std::uint64_t too_many = (std::uint64_t{1} << 31) + 1;
    EXPECT_EQ(find({1, 100, {7, ValueForm::vector, ElementType::float64, too_many}, 0},
                   pointer_file({}).get()),
              ErrorCode::invalid_argument);
    const ResidentValueList huge(3, {1, 1, 10, 1, UINT32_MAX});
    EXPECT_EQ(find({1, 100, kDocuments, 3}, pointer_file(huge).get()), ErrorCode::invalid_argument);
    MemoryFile unsealed;
    ASSERT_TRUE(unsealed.append(ByteList(10 * sizeof(ValuePointer) + (1 << 20))).ok());
    EXPECT_EQ(find({1, 100, kVectors, 10}, unsealed.descriptor()), ErrorCode::invalid_argument);

    // Nothing has been asked for now.
    const auto keep = [&](std::uint64_t bytes, const PartsShape& parts,
                          std::vector<FileDescriptor> files) {
        return store().add(request, {bytes, parts}, std::move(files)).status().code();
    };
    Execution execution(1);
    const ByteList bytes = bytes_of_all(values);
    EXPECT_EQ(keep(bytes.size(), {}, ValueFiles(bytes).files), ErrorCode::invalid_argument);
    EXPECT_EQ(store().take(request, {}, execution).status().code(), ErrorCode::invalid_argument);

    ASSERT_TRUE(store().find({1, 100, kVectors, 10}, pointers.get(), request, {}).ok());
    EXPECT_EQ(store().take(request, {}, execution).status().code(), ErrorCode::invalid_argument)
        << "values are missing";
    const std::span<const std::uint8_t> fewer(bytes.data(), bytes.size() - 1);
    EXPECT_EQ(keep(fewer.size(), {}, ValueFiles(fewer).files), ErrorCode::invalid_argument);
    EXPECT_EQ(keep(bytes.size(), {}, ValueFiles(fewer).files), ErrorCode::invalid_argument);
    EXPECT_EQ(keep(bytes.size(), {2, page_size()}, ValueFiles(bytes).files),
              ErrorCode::invalid_argument);
    std::vector<FileDescriptor> changeable;
    changeable.push_back(FileDescriptor(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
    ASSERT_EQ(ftruncate(changeable.back().get(), static_cast<off_t>(bytes.size())), 0);
    EXPECT_EQ(keep(bytes.size(), {}, std::move(changeable)), ErrorCode::invalid_argument);
    std::vector<FileDescriptor> pipes(1);
    EXPECT_EQ(keep(bytes.size(), {}, std::move(pipes)), ErrorCode::invalid_argument);
    EXPECT_EQ(store().bytes(), 0u);

    EXPECT_EQ(keep(bytes.size(), {}, ValueFiles(bytes).files), ErrorCode::ok);
    EXPECT_EQ(keep(bytes.size(), {}, ValueFiles(bytes).files), ErrorCode::invalid_argument)
        << "they are not missing any more";
    EXPECT_EQ(missing(values), 0u);
}

// ---- Compared with a simple model ----

/// A table whose rows come, go, and change, and whose numbers are given again; and sessions that
/// read it at different times. What a session takes has to be what its rows pointed to when it
/// asked.
class World {
public:
    World(ResidentValues& store, std::uint32_t seed, ValueKind kind, std::uint64_t limit)
        : store_(store), random_(seed), kind_(kind), limit_(limit) {
        for (int i = 0; i < 4; ++i) sessions_.emplace_back(store);
        for (int i = 0; i < 100; ++i) change();
    }

    void step() {
        const auto what = below(20);
        Reader& reader = sessions_[below(sessions_.size())];
        if (what < 6) return change();
        if (what < 12 && !reader.asked) return ask(reader);
        if (what == 12) forget();
        if (!reader.asked) return;
        if (reader.missing > 0)
            keep(reader);
        else
            take(reader);
        EXPECT_LE(store_.bytes(), limit_);
        store_.given_up();
    }

    std::uint64_t found() const { return found_; }
    std::uint64_t resident() const { return resident_; }
    std::uint64_t side_by_side() const { return side_by_side_; }
    std::uint64_t asked() const { return asked_; }

private:
    struct Reader {
        explicit Reader(ResidentValues& store) : session(store) {}
        Session session;
        ResidentValueList values;
        bool asked = false;
        std::size_t missing = 0;
    };
    /// A value that was kept with this horizon.
    struct Kept {
        std::uint64_t horizon;
        std::uint64_t content;
    };

    std::uint64_t below(std::uint64_t end) { return random_() % end; }

    /// A number that no row has is given to a new row; or a row is deleted.
    void change() {
        const std::uint64_t changes = 1 + below(10);
        for (std::uint64_t i = 0; i < changes; ++i) {
            const auto number = static_cast<std::uint32_t>(below(300));
            const auto table = static_cast<std::uint32_t>(1 + below(3));
            ++now_;
            const auto row = rows_.find({table, number});
            if (row != rows_.end()) {
                if (below(3) == 0) rows_.erase(row);
                continue;
            }
            const bool document = kind_.form == ValueForm::document;
            rows_[{table, number}] = {table, number, now_, ++contents_,
                                      document ? below(5) * below(100) : kSize};
        }
    }

    void ask(Reader& reader) {
        reader.values.clear();
        const auto table = static_cast<std::uint32_t>(below(4));
        for (const auto& [name, value] : rows_)
            if (table == 0 || name.first == table) reader.values.push_back(value);
        if (below(4) == 0) std::shuffle(reader.values.begin(), reader.values.end(), random_);
        if (below(4) == 0) reader.values.resize(reader.values.size() / (1 + below(3)));
        for (auto& value : reader.values)
            if (below(100) == 0) value.since = ValuePointer::never;
        if (reader.values.empty()) return;
        // All transactions before the horizon have ended, and what they did is seen.
        const std::uint64_t horizon = now_ + 1 - std::min(now_, below(20));
        const auto missing = reader.session.find(reader.values, kind_, horizon);
        reader.asked = true;
        reader.missing = missing.size();
        asked_ += reader.values.size();
        found_ += reader.values.size() - missing.size();
        std::size_t next = 0;
        for (std::uint32_t i = 0; i < reader.values.size(); ++i) {
            const bool is_missing = next < missing.size() && missing[next] == i;
            next += is_missing;
            if (!is_missing) check_found(reader.values[i]);
        }
        EXPECT_EQ(next, missing.size());
    }

    /// Somebody has kept it with a horizon that allows to use it.
    void check_found(const ResidentValue& value) {
        const auto& kept = kept_[{value.table, value.number}];
        EXPECT_TRUE(std::any_of(kept.begin(), kept.end(), [&](const Kept& one) {
            return one.content == value.content && value.since < one.horizon;
        }));
    }

    void keep(Reader& reader) {
        const bool all = reader.missing == reader.values.size();
        const std::uint64_t horizon = reader.session.request().asked.horizon;
        for (const std::uint32_t row : ResidentValues::missing(reader.session.request())) {
            const ResidentValue& value = reader.values[row];
            if (value.since < horizon)
                kept_[{value.table, value.number}].push_back({horizon, value.content});
        }
        const auto kept = reader.session.keep(16 * below(3));
        ASSERT_TRUE(kept.ok()) << kept.status().message();
        reader.missing = 0;
        if (all) reader.asked = false;
        if (all && *kept != 0) {
            EXPECT_EQ(reader.session.take(), *kept);
        }
    }

    /// The bytes are compared in take(). What is kept is found at once when it is asked for again.
    void take(Reader& reader) {
        const auto id = reader.session.take();
        reader.asked = false;
        if (id == 0) return;
        ++resident_;
        Session other(store_);
        const auto missing = other.find(reader.values, kind_);
        // Another chunk may have some of the values with a later horizon.
        side_by_side_ += missing.empty() && other.take() == id;
        for (const std::uint32_t row : missing)
            EXPECT_EQ(reader.values[row].since, ValuePointer::never);
    }

    void forget() {
        const auto table = static_cast<std::uint32_t>(below(12));
        if (table > 3) return;
        std::uint64_t values = 0;
        for (const ResidentTable& kept : store_.tables())
            if (table == 0 || kept.table == table) values += kept.values;
        EXPECT_EQ(store_.forget(7, table), values);
        // A session that had found some before may bring them back.
    }

    ResidentValues& store_;
    std::mt19937 random_;
    const ValueKind kind_;
    const std::uint64_t limit_;
    std::uint64_t now_ = 1000;
    std::uint64_t contents_ = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, ResidentValue> rows_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Kept>> kept_;
    std::vector<Reader> sessions_;
    std::uint64_t found_ = 0, asked_ = 0, resident_ = 0, side_by_side_ = 0;
};

TEST_F(ResidentValuesTest, NeverGivesAValueThatARowDoesNotPointTo) {
    // The first ones have all limits and both kinds of values.
    const std::uint32_t seeds = testing::tests_are_small() ? 5 : 12;
    for (std::uint32_t seed = 0; seed < seeds; ++seed) {
        SCOPED_TRACE(seed);
        const std::uint64_t limit = seed % 3 == 0 ? cost(150) : seed % 3 == 1 ? cost(600) : kMuch;
        set_limits({limit, seed % 4 == 0 ? 5u : 1000u});
        World world(store(), seed, seed % 2 == 0 ? kVectors : kDocuments, limit);
        for (int i = 0; i < 1000 && !HasFailure(); ++i) world.step();
        EXPECT_GT(world.found(), world.asked() / 20);
        EXPECT_GT(world.resident(), 0u);
        EXPECT_GT(world.side_by_side(), world.resident() / 2);
    }
}

}  // namespace
}  // namespace gputext
