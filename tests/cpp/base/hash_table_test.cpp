#include "cpp/base/hash_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

namespace gputext {
namespace {

/// A number and how often it came.
struct Tally {
    std::uint64_t key;
    std::uint32_t count;

    static Tally nothing() { return {0, 0}; }
    bool free() const { return count == 0; }
};

std::uint64_t mixed(std::uint64_t key) {
    return key * 0x9e3779b97f4a7c15u >> 32;
}

std::uint32_t count_of(const HashTable<Tally>& table, std::uint64_t hash, std::uint64_t key) {
    return table.find(hash, [key](const Tally& tally) { return tally.key == key; }).count;
}

void add(HashTable<Tally>& table, std::uint64_t hash, std::uint64_t key) {
    Tally& tally = table.find(hash, [key](const Tally& other) { return other.key == key; });
    tally.key = key;
    ++tally.count;
}

TEST(HashTable, CountsAsAMapDoes) {
    std::mt19937_64 random(1);
    for (const std::size_t most : {1, 2, 3, 64, 1000}) {
        HashTable<Tally> table(most);
        std::unordered_map<std::uint64_t, std::uint32_t> expected;
        for (std::size_t i = 0; i < 10 * most; ++i) {
            const std::uint64_t key = random() % most;
            add(table, mixed(key), key);
            ++expected[key];
        }
        for (std::uint64_t key = 0; key < 2 * most; ++key)
            EXPECT_EQ(count_of(table, mixed(key), key), expected[key]) << key;
    }
}

TEST(HashTable, TellsKeysOfOneHashApart) {
    constexpr std::uint64_t keys = 100;
    // The last slot of any table: all further ones are behind the end.
    for (const std::uint64_t hash : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        HashTable<Tally> table(keys);
        for (std::uint64_t round = 1; round <= 3; ++round)
            for (std::uint64_t key = 0; key < keys; ++key) add(table, hash, key);
        for (std::uint64_t key = 0; key < keys; ++key) EXPECT_EQ(count_of(table, hash, key), 3u);
        EXPECT_EQ(count_of(table, hash, keys), 0u);
    }
}

TEST(HashTable, KeepsAtLeastHalfOfTheSlotsFree) {
    for (std::size_t most = 0; most < 300; ++most)
        EXPECT_GE(HashTable<NumberSlot>(most).bytes(), (2 * most + 1) * sizeof(NumberSlot));
}

TEST(HashTable, GrowsAtTwoThirdsAndKeepsWhatItHolds) {
    HashTable<Tally> table(1);
    std::size_t slots = table.bytes() / sizeof(Tally);
    for (std::uint64_t key = 0; key < 5000; ++key) {
        const bool full = 3 * (key + 1) > 2 * slots;
        EXPECT_EQ(table.grow(key + 1, [](const Tally& tally) { return mixed(tally.key); }), full);
        if (full) slots *= 2;
        ASSERT_EQ(table.bytes(), slots * sizeof(Tally));
        add(table, mixed(key), key);
        for (std::uint64_t other = full ? 0 : key; other <= key; ++other)
            ASSERT_EQ(count_of(table, mixed(other), other), 1u) << other;
    }
}

TEST(HashTable, FreesAllSlotsOnReset) {
    HashTable<Tally> table;
    for (const std::size_t most : {1000, 10, 2000}) {
        ASSERT_TRUE(table.reset(most, {}));
        for (std::uint64_t key = 0; key < most; ++key) {
            EXPECT_EQ(count_of(table, mixed(key), key), 0u);
            add(table, mixed(key), key);
        }
    }
    EXPECT_FALSE(table.reset(10, {[](void*) { return true; }, nullptr}));
}

TEST(HashTable, HoldsNumbersOfThingsElsewhere) {
    const std::vector<std::uint64_t> things{7, 9, 7, 7, 8, 9};
    HashTable<NumberSlot> table(things.size());
    std::vector<std::uint32_t> firsts;
    for (std::uint32_t i = 0; i < things.size(); ++i) {
        NumberSlot& slot = table.find(
            things[i], [&](NumberSlot other) { return things[other.number] == things[i]; });
        if (slot.free()) slot.number = i;
        firsts.push_back(slot.number);
    }
    EXPECT_EQ(firsts, (std::vector<std::uint32_t>{0, 1, 0, 0, 4, 1}));
}

}  // namespace
}  // namespace gputext
