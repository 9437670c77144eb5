// How often the operators look at the stop request: the longest time that passes without a look, on
// inputs so large that each of their loops would take long.

#include "cpp/base/stop.hpp"

#include <gtest/gtest.h>

#include <time.h>

#include <algorithm>

#include "cpp/base/radix_sort.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/detail/count_filter.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "cpp/documents/ssdeep.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;

/// Processor time of this thread, which other programs on the machine lengthen less than the time
/// by the clock.
double thread_milliseconds() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

/// A stop request that never comes and takes note of who asks for it.
class Watch {
public:
    Stop stop() {
        return {[](void* watch) {
                    static_cast<Watch*>(watch)->look();
                    return false;
                },
                this};
    }

    /// Milliseconds of processor time between two looks; the end of the work counts as one.
    double longest_gap() {
        look();
        return longest_;
    }

private:
    void look() {
        const double now = thread_milliseconds();
        longest_ = std::max(longest_, now - last_);
        last_ = now;
    }

    double longest_ = 0;
    double last_ = thread_milliseconds();
};

constexpr double kMost = testing::kSanitized ? 1000 : 50;  // milliseconds
constexpr std::size_t kSize = testing::kSanitized ? 20'000'000 : 200'000'000;

/// The longest gap of a run: of the first of three that is as short as it has to be, as a busy
/// machine can lengthen any single one, else the smallest.
template <class Work>
double gap_of(Work&& work) {
    double least = 1e9;
    for (int run = 0; run < 3 && least >= kMost; ++run) {
        Watch watch;
        work(watch.stop());
        least = std::min(least, watch.longest_gap());
    }
    return least;
}

std::string wide(std::size_t characters) {
    std::string text;
    for (std::size_t i = 0; i < characters; ++i) text += "\u00e4";
    return text;
}

TEST(Looks, OfSignaturesAreOften) {
    const std::string plain(kSize, 'a');  // without a piece's end anywhere
    EXPECT_LT(gap_of([&](Stop stop) { (void)ctph_signature(bytes_of(plain), 100, stop); }), kMost);
    EXPECT_LT(gap_of([&](Stop stop) { (void)ssdeep_hash(bytes_of(plain), stop); }), kMost);
}

TEST(Looks, OfCountingAreOften) {
    const std::string plain(kSize, 'a');
    const std::string text = wide(kSize / 4);
    const CharacterLengths utf8 = CharacterLengths::utf8();
    std::vector<std::uint32_t> symbols;
    DocumentFeatures features;
    EXPECT_LT(gap_of([&](Stop stop) { (void)count_characters(bytes_of(text), utf8, stop); }),
              kMost);
    EXPECT_LT(gap_of([&](Stop stop) { decode_characters(bytes_of(text), utf8, symbols, stop); }),
              kMost);
    EXPECT_LT(gap_of([&](Stop stop) { (void)features.set(bytes_of(plain), utf8, stop); }), kMost);
    EXPECT_LT(gap_of([&](Stop stop) { (void)features.set(bytes_of(text), utf8, stop); }), kMost);
}

TEST(Looks, OfEditDistancesAreOften) {
    const std::string a(kSize, 'a');
    const std::string shared_end = "x" + a;
    EXPECT_LT(gap_of([&](Stop stop) {
                  (void)EditDistance()(bytes_of(a), bytes_of(shared_end), EditDistance::no_limit,
                                       stop);
              }),
              kMost);
    // Long common parts on many diagonals.
    std::string edited = shared_end;
    for (const std::size_t place : {1000, 2000, 3000, 4000}) edited[place] = 'y';
    edited[kSize / 2] = 'y';
    edited += 'z';
    EXPECT_LT(gap_of([&](Stop stop) {
                  (void)EditDistance()(bytes_of(a), bytes_of(edited), EditDistance::no_limit, stop);
              }),
              kMost);
}

TEST(Looks, OfStandardStepsAreOften) {
    std::vector<std::uint64_t> numbers;
    EXPECT_LT(gap_of([&](Stop stop) { stoppable_assign(numbers, kSize / 8, {}, stop); }), kMost);
    std::uint64_t next = 1;
    for (auto& number : numbers) number = next = next * 6364136223846793005u + 1;
    EXPECT_LT(gap_of([&](Stop stop) { radix_sort(numbers, stop); }), kMost);
}

TEST(Looks, EndAStandardStepWhenStopped) {
    const Stop now{[](void*) { return true; }, nullptr};
    std::vector<int> numbers;
    EXPECT_FALSE(stoppable_assign(numbers, 10, 7, now));
    EXPECT_TRUE(stoppable_assign(numbers, 1000000, 7, {}));
    EXPECT_EQ(numbers, std::vector<int>(1000000, 7));
}

}  // namespace
}  // namespace gputext
