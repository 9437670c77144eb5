// bench/groups_bench.cpp - groups of pairs of ids: connected components
//
// Arguments: millions of pairs, shape, ids, threads, and optionally a file to write the pairs to,
// as 64-bit integers, for bench/peers/scipy_groups.py. Shapes: sparse (random pairs of as many ids
// as there are pairs), chains (of a million ids, in random order), small (groups of 4 ids in
// cliques), stars (hubs with a thousand ids each), one (a single group: random pairs of few ids).
// Ids: dense (1, 2, 3, ...) or random (of 64 bits). Prints the time by the clock, the best of three
// runs, of the whole and of its phases.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <string>

#include "bench/expect.hpp"
#include "bench/stopwatch.hpp"
#include "cpp/groups/groups.hpp"

using namespace gputext;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kChain = 1000000;
constexpr std::uint64_t kStar = 1000;

/// A permutation of 64-bit numbers: the finalizer of splitmix64.
std::uint64_t scattered(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/// Nodes, two for each pair.
std::vector<std::int64_t> make_pairs(const std::string& shape, std::uint64_t pairs) {
    std::mt19937_64 random(7);
    std::vector<std::int64_t> ends;
    ends.reserve(2 * pairs);
    const auto add = [&](std::uint64_t a, std::uint64_t b) {
        ends.push_back(static_cast<std::int64_t>(a));
        ends.push_back(static_cast<std::int64_t>(b));
    };
    if (shape == "sparse" || shape == "one") {
        const std::uint64_t nodes = shape == "one" ? pairs / 16 + 1 : pairs;
        for (std::uint64_t i = 0; i < pairs; ++i) add(random() % nodes, random() % nodes);
        return ends;
    }
    std::vector<std::uint32_t> order(pairs);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    static constexpr std::uint8_t clique[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    for (const std::uint32_t i : order) {
        if (shape == "chains")
            add(i / kChain * (kChain + 1) + i % kChain, i / kChain * (kChain + 1) + i % kChain + 1);
        else if (shape == "small")
            add(i / 6 * 4u + clique[i % 6][0], i / 6 * 4u + clique[i % 6][1]);
        else
            add(i / kStar * (kStar + 1), i / kStar * (kStar + 1) + i % kStar + 1);
    }
    return ends;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 5) {
        std::fprintf(stderr, "usage: groups_bench MILLIONS SHAPE IDS THREADS [FILE]\n");
        return 1;
    }
    const auto pairs = static_cast<std::uint64_t>(1e6 * std::atof(arguments[1]));
    std::vector<std::int64_t> ends = make_pairs(arguments[2], pairs);
    if (std::string(arguments[3]) == "random")
        for (std::int64_t& end : ends)
            end = static_cast<std::int64_t>(scattered(static_cast<std::uint64_t>(end)));
    if (count > 5)
        std::ofstream(arguments[5], std::ios::binary)
            .write(reinterpret_cast<const char*>(ends.data()),
                   static_cast<std::streamsize>(ends.size() * sizeof(std::int64_t)));

    double best = 1e9, processor = 1e9;
    std::vector<PhaseTime> phases;
    std::size_t ids = 0, groups = 0;
    for (int run = 0; run < 3; ++run) {
        Execution execution(static_cast<unsigned>(std::atoi(arguments[4])));
        const bench::Stopwatch stopwatch;
        const auto begin = Clock::now();
        const IdGroups found = bench::expect(
            groups_of_ids(ends, GroupOrder::by_node, std::size_t{1} << 40, execution));
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        processor = std::min(processor, stopwatch.seconds());
        if (seconds < best) {
            best = seconds;
            phases = execution.phase_times();
        }
        ids = groups = 0;
        found.groups.for_each([&](std::uint32_t node) {
            ++ids;
            groups += found.groups.names[node] == node;
        });
    }
    std::printf(
        "gputext groups: %s million pairs, %s, %s ids, %s threads: %.3f s, %.3f s of a "
        "processor (best of 3);",
        arguments[1], arguments[2], arguments[3], arguments[4], best, processor);
    for (const PhaseTime& phase : phases)
        std::printf(" %s %.3f;", phase.name.c_str(), phase.seconds);
    std::printf(" %zu ids, %zu groups\n", ids, groups);
    return 0;
}
