// gputextd as a process of its own, and jobs on words and their neighbors: every answer, and what
// it refuses.

#include <algorithm>
#include <numeric>

#include "cpp/link/client.hpp"
#include "cpp/thesaurus/cooccurrence_table.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/filed_numbers.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using namespace testing;

struct Stream {
    std::vector<std::uint32_t> words, positions;

    TokenStream view() const { return {words, positions}; }
};

class GputextdThesaurus : public ::testing::TestWithParam<int> {
protected:
    GputextdThesaurus()
        : daemon_(socket_, {"--fake-devices=" + std::to_string(GetParam()), "--allow-faults"}) {
        connection_ = connect_to(socket_);
    }

    /// Words of which low numbers come often, with gaps between texts and some within them.
    Stream stream(std::size_t tokens, std::uint32_t words) {
        Stream made;
        std::uint32_t position = 1;
        for (std::size_t i = 0; i < tokens; ++i) {
            made.words.push_back(
                static_cast<std::uint32_t>(random_.below(1 + random_.below(words))));
            made.positions.push_back(position);
            position += random_.below(50) == 0 ? 101 : random_.below(10) == 0 ? 2 : 1;
        }
        return made;
    }

    Result<Neighbors> answer(const WordSimilarityRequest& request) {
        const Status sent = connection_->submit(request);
        EXPECT_TRUE(sent.ok()) << sent.message();
        const auto reply = next<KnnAnswer>(*connection_);
        if (!reply.ok()) return reply.status();
        report_ = reply->summary.report;
        const std::string& names = report_.device_name;
        devices_ = 1 + std::count(names.begin(), names.end(), ',');
        return reply->read();
    }

    static Thesaurus expected(const WordSimilarityRequest& request, const Cooccurrences& counts) {
        Execution execution(2);
        const auto features = weigh_features(request.weighting, counts, execution);
        EXPECT_TRUE(features.ok());
        return *word_similarities(request.parameters, *features, execution);
    }

    void expect_same(const WordSimilarityRequest& request, const Thesaurus& wanted) {
        const auto found = answer(request);
        ASSERT_TRUE(found.ok()) << found.status().message();
        EXPECT_TRUE(found->begins == wanted.begins);
        EXPECT_TRUE(found->items == wanted.neighbors);
        EXPECT_TRUE(found->distances == wanted.similarities);
    }

    static WordSimilarityRequest request_of(const CooccurrenceShape& shape) {
        WordSimilarityRequest request;
        request.shape = shape;
        request.parameters.top_k = 7;
        return request;
    }

    Folder folder_;
    std::string socket_ = folder_ / "socket";
    DaemonProcess daemon_;
    std::unique_ptr<DaemonConnection> connection_;
    RandomStrings random_;
    JobReport report_;
    std::ptrdiff_t devices_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Fake, GputextdThesaurus,
                         ::testing::ValuesIn(numbers_of_devices({1, 2, 4})));

TEST_P(GputextdThesaurus, OfTextsIsTheCpus) {
    for (const std::size_t tokens : {0, 1, 1000, 20'000})
        for (const bool positions : {true, false})
            for (const auto measure :
                 {WordMeasure::lin, WordMeasure::cosine, WordMeasure::jaccard}) {
                const CooccurrenceShape shape{300, 1 + static_cast<std::uint32_t>(random_.below(5)),
                                              positions};
                const Stream made = stream(tokens, shape.words);
                const FiledNumbers words(made.words), places(made.positions);
                WordSimilarityRequest request = request_of(shape);
                request.rows = tokens;
                request.first = words.descriptor();
                request.second = places.descriptor();
                request.parameters.measure = measure;
                request.weighting.weight = static_cast<WordWeight>(random_.below(3));
                request.weighting.features = random_.below(2) * 100;
                Execution execution(2);
                const auto counts =
                    count_cooccurrences(shape, made.view(), std::size_t{1} << 30, execution);
                ASSERT_TRUE(counts.ok()) << counts.status().message();
                ASSERT_NO_FATAL_FAILURE(expect_same(request, expected(request, *counts)));
            }
}

TEST_P(GputextdThesaurus, OfManyTextsIsSharedByDevicesAlsoWhenOneFails) {
    const CooccurrenceShape shape{2000, 2, true};
    const Stream made = stream((static_cast<std::size_t>(GetParam()) << 20) + 1, shape.words);
    const FiledNumbers words(made.words), places(made.positions);
    WordSimilarityRequest request = request_of(shape);
    request.rows = made.words.size();
    request.first = words.descriptor();
    request.second = places.descriptor();
    // Discounted so much that few features are left
    request.weighting.discount = 20;
    Execution execution(2);
    const auto counts = count_cooccurrences(shape, made.view(), std::size_t{1} << 30, execution);
    ASSERT_TRUE(counts.ok());
    gather_devices(*connection_, GetParam());
    const Thesaurus wanted = expected(request, *counts);
    expect_same(request, wanted);
    EXPECT_EQ(devices_, GetParam());
    expect_others_to_stand_in(daemon_, *connection_, GetParam(), [&]() -> Result<JobReport> {
        const auto found = answer(request);
        if (!found.ok()) return found.status();
        EXPECT_TRUE(found->begins == wanted.begins);
        EXPECT_TRUE(found->items == wanted.neighbors);
        EXPECT_TRUE(found->distances == wanted.similarities);
        return report_;
    });
}

TEST_P(GputextdThesaurus, OfCountsIsTheCpus) {
    std::vector<CountedTriple> triples;
    for (int i = 0; i < 5000; ++i)
        triples.push_back({random_.below(20), static_cast<std::uint32_t>(random_.below(100)),
                           static_cast<std::uint32_t>(random_.below(100)),
                           random_.below(2) == 0 ? -2 : 1});
    std::vector<std::uint32_t> order(100);
    std::iota(order.rbegin(), order.rend(), 0u);
    const FiledNumbers file(triples);
    WordSimilarityRequest request = request_of({100});
    request.counted = true;
    request.rows = triples.size();
    request.first = file.descriptor();
    request.order = order;
    Execution execution(2);
    const auto shape = shape_of_triples(100, triples, execution);
    ASSERT_TRUE(shape.ok());
    EXPECT_EQ(*shape, (CooccurrenceShape{100, 2, true}));
    const auto counts = collect_triples(*shape, order, triples, execution);
    ASSERT_TRUE(counts.ok());
    expect_same(request, expected(request, *counts));
    EXPECT_EQ(devices_, 1);
}

TEST_P(GputextdThesaurus, RefusesWhatIsNone) {
    const auto code = [&](const WordSimilarityRequest& request) {
        return answer(request).status().code();
    };
    const FiledNumbers<std::uint32_t> words({0, 3}), back({2, 1}), places({1, 2}), unknown({0, 4});
    WordSimilarityRequest request = request_of({4, 1, true});
    request.rows = 2;
    request.first = words.descriptor();
    request.second = places.descriptor();
    EXPECT_TRUE(answer(request).ok());
    request.second = back.descriptor();
    EXPECT_EQ(code(request), ErrorCode::invalid_argument);
    request.second = places.descriptor();
    request.first = unknown.descriptor();
    EXPECT_EQ(code(request), ErrorCode::invalid_argument);
    request.first = words.descriptor();
    request.parameters.top_k = 0;
    EXPECT_EQ(code(request), ErrorCode::invalid_argument);
    request.parameters.top_k = 1;
    request.shape.window = 101;
    EXPECT_EQ(code(request), ErrorCode::invalid_argument);
    request.shape.window = 1;
    request.weighting.discount = -1;
    EXPECT_EQ(code(request), ErrorCode::invalid_argument);
    request.weighting.discount = 0;
    request.rows = 3;
    EXPECT_FALSE(answer(request).ok());

    connection_ = connect_to(socket_);
    const std::vector<std::uint32_t> order{1, 0}, twice{1, 1};
    const FiledNumbers<CountedTriple> triples({{3, 0, 1, 1, 0}}), far({{3, 0, 1, 101, 0}}),
        none({{3, 0, 2, 1, 0}});
    WordSimilarityRequest counted = request_of({2});
    counted.counted = true;
    counted.rows = 1;
    counted.first = triples.descriptor();
    counted.order = order;
    EXPECT_TRUE(answer(counted).ok());
    counted.order = twice;
    EXPECT_EQ(code(counted), ErrorCode::invalid_argument);
    counted.order = order;
    for (const int file : {far.descriptor(), none.descriptor()}) {
        counted.first = file;
        EXPECT_EQ(code(counted), ErrorCode::invalid_argument);
    }
}

}  // namespace
}  // namespace gputext
