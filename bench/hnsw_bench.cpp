// bench/hnsw_bench.cpp - graphs of HNSW indexes from exact neighbors, and what searches of them
// find
//
// Arguments: items, queries, dimensions, metric (euclidean, inner_product), m, candidates, threads,
// files of items and queries (float32, row by row), and values of ef. Prints the seconds of the
// graph and recall of the 10 nearest, as cpp/hnsw makes it and pgvector searches it. In the
// environment, EXACT_ROWS is HnswLinkParameters::exact_rows; all items are exact without it.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <queue>

#include "bench/stopwatch.hpp"
#include "bench/vector_files.hpp"
#include "cpp/hnsw/builder.hpp"

using namespace gputext;

namespace {

constexpr std::size_t kNearest = 10;

struct Found {
    double distance;
    std::uint32_t row;
    bool operator<(const Found& other) const {
        return distance != other.distance ? distance < other.distance : row < other.row;
    }
};

/// Searches as Malkov and Yashunin's algorithm 5 does.
class Searcher {
public:
    Searcher(const HnswGraph& graph, const std::vector<float>& items, std::size_t dimensions,
             Metric metric)
        : graph_(graph),
          items_(items),
          dimensions_(dimensions),
          metric_(metric),
          seen_(graph.size(), 0) {}

    std::vector<Found> search(const float* query, std::size_t ef) {
        query_ = query;
        std::uint32_t entry = graph_.entry();
        std::vector<Found> found{{distance(entry), entry}};
        for (unsigned layer = graph_.level(entry); layer > 0; --layer)
            found = search_layer(found, 1, layer);
        return search_layer(found, ef, 0);
    }
    std::uint64_t distances() const { return distances_; }

private:
    double distance(std::uint32_t row) {
        ++distances_;
        const float* const item = items_.data() + row * dimensions_;
        float sum = 0;
        if (metric_ == Metric::euclidean)
            for (std::size_t i = 0; i < dimensions_; ++i) {
                const float difference = query_[i] - item[i];
                sum += difference * difference;
            }
        else
            for (std::size_t i = 0; i < dimensions_; ++i) sum -= query_[i] * item[i];
        return static_cast<double>(sum);
    }

    std::vector<Found> search_layer(const std::vector<Found>& entries, std::size_t ef,
                                    unsigned layer) {
        ++visit_;
        const auto later = [](const Found& a, const Found& b) { return b < a; };
        std::priority_queue<Found, std::vector<Found>, decltype(later)> open(later);
        std::priority_queue<Found> best;
        for (const Found& entry : entries) {
            open.push(entry);
            best.push(entry);
            seen_[entry.row] = visit_;
        }
        while (!open.empty()) {
            const Found at = open.top();
            open.pop();
            if (best.top() < at) break;
            for (const std::uint32_t next : graph_.neighbors(at.row, layer)) {
                if (next == kNoElement || seen_[next] == visit_) continue;
                seen_[next] = visit_;
                const Found other{distance(next), next};
                if (best.size() >= ef && !(other < best.top())) continue;
                open.push(other);
                best.push(other);
                if (best.size() > ef) best.pop();
            }
        }
        std::vector<Found> found(best.size());
        for (std::size_t i = found.size(); i-- > 0; best.pop()) found[i] = best.top();
        return found;
    }

    const HnswGraph& graph_;
    const std::vector<float>& items_;
    std::size_t dimensions_;
    Metric metric_;
    const float* query_ = nullptr;
    std::vector<std::uint32_t> seen_;
    std::uint32_t visit_ = 0;
    std::uint64_t distances_ = 0;
};

Status make(HnswBuilder& builder, Execution& execution) {
    GPUTEXT_TRY(builder.begin(execution));
    while (builder.has_layer()) {
        auto links = link_layer(builder.layer(), execution);
        if (!links.ok()) return links.status();
        GPUTEXT_TRY(builder.add(*links, execution));
    }
    return {};
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 10)
        return std::fprintf(stderr,
                            "wanted: items queries dimensions metric m candidates threads "
                            "items.f32 queries.f32 [ef...]\n"),
               2;
    const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(arguments[i])); };
    const std::size_t n = number(1), q = number(2), d = number(3);
    const std::vector<float> items = bench::floats(n * d, 1, arguments[8]);
    const std::vector<float> queries = bench::floats(q * d, 2, arguments[9]);
    const Vectors rows{ElementType::float32, n, d, items.data(), {}, {}};
    const Vectors asked{ElementType::float32, q, d, queries.data(), {}, {}};
    HnswParameters parameters;
    parameters.links.metric =
        std::strcmp(arguments[4], "euclidean") == 0 ? Metric::euclidean : Metric::inner_product;
    parameters.m = static_cast<unsigned>(number(5));
    parameters.links.candidates = number(6);
    const char* const exact_rows = std::getenv("EXACT_ROWS");
    parameters.links.exact_rows =
        exact_rows == nullptr ? n : static_cast<std::size_t>(std::atoll(exact_rows));

    Execution execution(static_cast<unsigned>(number(7)));
    HnswBuilder builder(parameters, rows, {});
    const bench::Stopwatch stopwatch;
    const auto start = std::chrono::steady_clock::now();
    const Status status = make(builder, execution);
    if (!status.ok()) return std::fprintf(stderr, "%s\n", status.message().c_str()), 1;
    std::printf(
        "%zu items, d = %zu, m = %u, %zu candidates, %zu threads: %.2f s, %.2f s of "
        "processors\n",
        n, d, parameters.m, parameters.links.candidates, number(7),
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
        stopwatch.seconds());
    for (const PhaseTime& phase : execution.phase_times())
        std::printf("  %s %.2f s\n", phase.name.c_str(), phase.seconds);
    if (count == 10) return 0;

    KnnParameters exact;
    exact.k = kNearest;
    exact.metric = parameters.links.metric;
    const auto nearest = knn(exact, asked, rows, {}, execution);
    if (!nearest.ok()) return 1;
    const HnswGraph graph = builder.take();
    for (int i = 10; i < count; ++i) {
        Searcher searcher(graph, items, d, parameters.links.metric);
        std::size_t found = 0, least = kNearest, below = 0;
        for (std::size_t query = 0; query < q; ++query) {
            const auto list = searcher.search(queries.data() + query * d, number(i));
            // As near as the tenth, whose distance may be rounded otherwise
            std::size_t right = 0;
            const auto begin =
                nearest->items.begin() + static_cast<std::ptrdiff_t>(nearest->begins[query]);
            for (std::size_t at = 0; at < std::min(kNearest, list.size()); ++at)
                right += std::find(begin, begin + kNearest, list[at].row) != begin + kNearest;
            found += right;
            least = std::min(least, right);
            below += right < 8;
        }
        std::printf("  ef %zu: recall %.4f, least %.1f, below 0.8 %zu, %.1f distances a query\n",
                    number(i), static_cast<double>(found) / static_cast<double>(q * kNearest),
                    static_cast<double>(least) / kNearest, below,
                    static_cast<double>(searcher.distances()) / static_cast<double>(q));
    }
}
