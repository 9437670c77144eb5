// gputextd as a process of its own, and jobs on vectors: every answer, and what it refuses.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "bench/term_corpus.hpp"
#include "cpp/knn/cosine_similarity.hpp"
#include "cpp/knn/k_means.hpp"
#include "cpp/knn/keyed_knn.hpp"
#include "cpp/link/client.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/terms/bm25.hpp"
#include "cpp/terms/keyed_knn.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/random_keys.hpp"
#include "tests/support/text_rows.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using namespace testing;

std::span<const std::uint8_t> bytes_at(const void* data, std::size_t size) {
    return {static_cast<const std::uint8_t*>(data), size};
}

/// Vectors in sealed files.
class FiledVectors {
public:
    explicit FiledVectors(const Vectors& vectors) {
        files_.vectors = vectors;
        const std::size_t stored =
            vectors.sparse() ? vectors.row_begins.back() : vectors.rows * vectors.dimensions;
        EXPECT_TRUE(
            elements_.append(bytes_at(vectors.elements, stored * element_size(vectors.type))).ok());
        EXPECT_TRUE(elements_.seal().ok());
        files_.elements = elements_.descriptor();
        if (!vectors.sparse()) return;
        EXPECT_TRUE(
            columns_.append(bytes_at(vectors.columns.data(), vectors.columns.size_bytes())).ok());
        EXPECT_TRUE(columns_.seal().ok());
        files_.columns = columns_.descriptor();
    }
    FiledVectors(const FiledVectors&) = delete;

    const VectorFiles& files() const { return files_; }

private:
    MemoryFile elements_, columns_;
    VectorFiles files_;
};

/// Vectors whose elements are in so many parts of a page or more each.
class PartedVectors {
public:
    PartedVectors(const Vectors& vectors, std::size_t parts) : whole_(vectors) {
        const std::size_t stored =
            vectors.sparse() ? vectors.row_begins.back() : vectors.rows * vectors.dimensions;
        const std::uint64_t size = stored * element_size(vectors.type);
        const std::uint64_t pages = (size + page_size() - 1) / page_size();
        EXPECT_TRUE(elements_.create(size, (pages + parts - 1) / parts * page_size()).ok());
        EXPECT_TRUE(elements_.write(0, bytes_at(vectors.elements, size)).ok());
        EXPECT_TRUE(elements_.seal().ok());
        files_ = whole_.files();
        files_.elements = elements_.parts();
        // Only the files have them.
        files_.vectors.elements = nullptr;
    }

    std::size_t parts() const { return elements_.parts().descriptors().size(); }
    const VectorFiles& files() const { return files_; }

private:
    FiledVectors whole_;
    PartedFile elements_;
    VectorFiles files_;
};

/// Expects equal bits, and NaN for NaN.
void expect_same(const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << i;
}

void expect_same(const Neighbors& a, const Neighbors& b) {
    EXPECT_EQ(a.begins, b.begins);
    EXPECT_EQ(a.items, b.items);
    EXPECT_EQ(a.distances, b.distances);
}

void expect_same(const Result<KMeans>& found, const Result<KMeans>& expected) {
    ASSERT_TRUE(expected.ok() && found.ok());
    EXPECT_EQ(found->clusters, expected->clusters);
    EXPECT_EQ(found->distances, expected->distances);
    EXPECT_EQ(found->sizes, expected->sizes);
    EXPECT_EQ(found->centroids, expected->centroids);
    EXPECT_EQ(found->iterations, expected->iterations);
    EXPECT_EQ(found->inertia, expected->inertia);
}

class GputextdVectors : public ::testing::Test {
protected:
    explicit GputextdVectors(int devices = 1)
        : daemon_(socket_, {"--fake-devices=" + std::to_string(devices), "--allow-faults"}) {
        connection_ = connect_to(socket_);
    }

    template <class Answer, class Request>
    auto answer(const Request& request) {
        using Read = decltype(std::declval<Answer>().read());
        EXPECT_TRUE(connection_->submit(request).ok());
        const auto reply = next<Answer>(*connection_);
        return reply.ok() ? reply->read() : Read(reply.status());
    }

    void expect_neighbors(const KnnRequest& request) {
        Execution execution(2);
        const auto expected =
            keyed_knn(request.parameters, request.queries.vectors, request.items.vectors,
                      request.matches, request.keys, execution);
        const auto found = answer<KnnAnswer>(request);
        ASSERT_TRUE(expected.ok() && found.ok()) << found.status().message();
        expect_same(*found, *expected);
    }

    static Neighbors computed_here(const TermKnnRequest& request) {
        Execution execution(2);
        const Vectors &queries = request.queries.vectors, &items = request.items.vectors;
        std::vector<double> factors(request.factors.begin(), request.factors.end());
        if (factors.empty())
            factors =
                term_factors(request.terms, *document_frequencies(items, execution), items.rows);
        WeighedItems weighed;
        EXPECT_TRUE(weighed.set(request.terms, std::move(factors), items, execution).ok());
        auto expected = keyed_term_knn(request.parameters, weighed.factors(), queries,
                                       weighed.items(), request.matches, request.keys, execution);
        EXPECT_TRUE(expected.ok()) << expected.status().message();
        return std::move(*expected);
    }

    void expect_neighbors(const TermKnnRequest& request) {
        const auto found = answer<KnnAnswer>(request);
        ASSERT_TRUE(found.ok()) << found.status().message();
        expect_same(*found, computed_here(request));
    }

    void expect_scores(const OutlierFactorRequest& request) {
        Execution execution(2);
        const auto expected =
            local_outlier_factors(request.parameters, request.items.vectors, execution);
        const auto found = answer<ScoresAnswer>(request);
        ASSERT_TRUE(expected.ok() && found.ok()) << found.status().message();
        expect_same(*found, *expected);
    }

    void expect_scores(const CosineSimilarityRequest& request) {
        Execution execution(2);
        const auto expected = cosine_similarities(request.query.vectors, request.items.vectors,
                                                  best_simd(), execution);
        const auto found = answer<ScoresAnswer>(request);
        ASSERT_TRUE(expected.ok() && found.ok()) << found.status().message();
        expect_same(*found, *expected);
    }

    Folder folder_;
    std::string socket_ = folder_ / "socket";
    DaemonProcess daemon_;
    std::unique_ptr<DaemonConnection> connection_;
    RandomRows random_;
    RandomKeys random_keys_;
};

struct Kind {
    ElementType type;
    bool sparse;
};
constexpr Kind kKinds[] = {{ElementType::float16, false},
                           {ElementType::float32, false},
                           {ElementType::float64, false},
                           {ElementType::int32, false},
                           {ElementType::float32, true}};

TEST_F(GputextdVectors, AnswersAsTheOperatorsDo) {
    for (const Kind kind : kKinds)
        for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies, Shape::sparse}) {
            const std::size_t d = 1 + random_.below(40);
            const TypedRows queries(random_.rows(shape, 30, d), kind.type, d, kind.sparse);
            const TypedRows items(random_.rows(shape, 200, d), kind.type, d, kind.sparse);
            const FiledVectors query_files(queries.vectors()), item_files(items.vectors());
            KnnRequest neighbors;
            neighbors.queries = query_files.files();
            neighbors.items = item_files.files();
            std::vector<std::uint32_t> query_keys(30), item_keys(200);
            for (auto& key : query_keys) key = static_cast<std::uint32_t>(random_.below(50));
            for (auto& key : item_keys) key = static_cast<std::uint32_t>(random_.below(50));
            for (const Metric metric :
                 {Metric::euclidean, Metric::cosine, Metric::inner_product, Metric::manhattan}) {
                neighbors.parameters = {.k = 1 + random_.below(20), .metric = metric};
                neighbors.keys = {};
                expect_neighbors(neighbors);
                neighbors.parameters.include_ties = true;
                neighbors.keys = {query_keys, item_keys};
                expect_neighbors(neighbors);
                neighbors.parameters.k = KnnParameters::all_items;
                neighbors.parameters.radius = 3;
                expect_neighbors(neighbors);
                if (metric == Metric::inner_product) continue;
                for (const TieRule ties : {TieRule::sklearn, TieRule::breunig})
                    expect_scores(OutlierFactorRequest{{.k = 5, .metric = metric, .ties = ties},
                                                       item_files.files()});
            }
            const TypedRows one(random_.rows(shape, 1, d), kind.type, d, kind.sparse);
            const FiledVectors one_file(one.vectors());
            expect_scores(CosineSimilarityRequest{one_file.files(), item_files.files()});
        }
}

TEST_F(GputextdVectors, AnswersWithinKeysAsTheOperatorDoes) {
    for (const Kind kind : kKinds)
        for (const KeyShape keys : kAllKeyShapes) {
            const std::size_t d = 1 + random_.below(20);
            const TypedRows queries(random_.rows(Shape::grid, 70, d), kind.type, d, kind.sparse);
            const TypedRows items(random_.rows(Shape::grid, 200, d), kind.type, d, kind.sparse);
            const FiledVectors query_files(queries.vectors()), item_files(items.vectors());
            const auto query_keys = random_keys_.keys(keys, 70);
            const auto item_keys = random_keys_.keys(keys, 200);
            std::vector<std::uint32_t> query_ids(70), item_ids(200);
            for (auto& id : query_ids) id = static_cast<std::uint32_t>(random_.below(9));
            for (auto& id : item_ids) id = static_cast<std::uint32_t>(random_.below(9));
            KnnRequest request;
            request.queries = query_files.files();
            request.items = item_files.files();
            request.matches = {query_keys, item_keys};
            for (const Metric metric :
                 {Metric::euclidean, Metric::cosine, Metric::inner_product, Metric::manhattan}) {
                request.parameters = {.k = 1 + random_.below(20), .metric = metric};
                request.keys = {};
                expect_neighbors(request);
                request.parameters.include_ties = true;
                request.keys = {query_ids, item_ids};
                expect_neighbors(request);
                request.parameters = {.k = KnnParameters::all_items, .metric = metric, .radius = 3};
                expect_neighbors(request);
            }
        }
}

TEST_F(GputextdVectors, RefusesKeysThatAreNotAsManyAsTheRows) {
    const TypedRows rows(random_.rows(Shape::gaussian, 10, 4), ElementType::float32, 4);
    const FiledVectors files(rows.vectors());
    const std::vector<std::uint32_t> keys(10);
    KnnRequest request;
    request.queries = request.items = files.files();
    for (const MatchKeys matches :
         {MatchKeys{keys, std::span(keys).first(9)}, MatchKeys{keys, {}}, MatchKeys{{}, keys}}) {
        request.matches = matches;
        EXPECT_EQ(answer<KnnAnswer>(request).status().code(), ErrorCode::invalid_argument);
    }
    request.matches = {keys, keys};
    expect_neighbors(request);
    request.parameters.k = 0;
    EXPECT_EQ(answer<KnnAnswer>(request).status().code(), ErrorCode::invalid_argument);
    request.parameters = {.k = KnnParameters::all_items};
    request.parameters.memory_limit = 100 * kBytesOfNeighbor - 1;
    EXPECT_EQ(answer<KnnAnswer>(request).status().code(), ErrorCode::memory_limit);
}

TEST_F(GputextdVectors, AnswersTextsWithinKeysAsTheOperatorDoes) {
    RandomTexts random;
    for (const TextShape shape : kAllTextShapes)
        for (const KeyShape keys : kAllKeyShapes) {
            const ElementType type = of_counts(shape) ? ElementType::int32 : ElementType::float32;
            const TextRows queries(random.texts(shape, 40, 200), type, 200);
            const TextRows items(random.texts(shape, 300, 200), type, 200);
            const FiledVectors query_files(queries.vectors()), item_files(items.vectors());
            const auto query_keys = random_keys_.keys(keys, 40);
            const auto item_keys = random_keys_.keys(keys, 300);
            TermKnnRequest request;
            request.queries = query_files.files();
            request.items = item_files.files();
            request.matches = {query_keys, item_keys};
            request.terms.weighting = TermWeighting::tf_idf;
            request.parameters = {.k = 1 + random.below(20)};
            expect_neighbors(request);
            const auto query_ids = random_keys_.keys(KeyShape::zipf, 40);
            const auto item_ids = random_keys_.keys(KeyShape::zipf, 300);
            request.keys = {query_ids, item_ids};
            request.parameters = {.k = KnnParameters::all_items, .radius = 0.9};
            expect_neighbors(request);
            if (!of_counts(shape)) continue;
            request.terms.weighting = TermWeighting::bm25;
            request.parameters = {.k = 5, .radius = -0.5, .metric = Metric::inner_product};
            expect_neighbors(request);
        }
}

TEST_F(GputextdVectors, AnswersTextsAsTheOperatorDoes) {
    RandomTexts random;
    for (const TextShape shape : kAllTextShapes)
        for (const std::size_t n : {0, 1, 300}) {
            const ElementType type = of_counts(shape) ? ElementType::int32 : ElementType::float32;
            const TextRows queries(random.texts(shape, 40, 200), type, 200);
            const TextRows items(random.texts(shape, n, 200), type, 200);
            const FiledVectors query_files(queries.vectors()), item_files(items.vectors());
            std::vector<std::uint32_t> query_keys(40), item_keys(n);
            for (auto& key : query_keys) key = static_cast<std::uint32_t>(random.below(50));
            for (auto& key : item_keys) key = static_cast<std::uint32_t>(random.below(50));
            TermKnnRequest request;
            request.queries = query_files.files();
            request.items = item_files.files();
            for (const TermWeighting weighting :
                 {TermWeighting::given, TermWeighting::tf_idf, TermWeighting::bm25}) {
                if (weighting == TermWeighting::bm25 && !of_counts(shape)) continue;
                request.terms.weighting = weighting;
                request.parameters = {.k = 1 + random.below(20)};
                if (weighting == TermWeighting::bm25)
                    request.parameters.metric = Metric::inner_product;
                request.keys = {};
                expect_neighbors(request);
                request.terms.min_document_frequency = 2;
                request.keys = {query_keys, item_keys};
                expect_neighbors(request);
                request.parameters = {.k = KnnParameters::all_items, .radius = 0.5};
                expect_neighbors(request);
                // Those of a collection of which the items are a part
                std::vector<double> factors(200);
                for (double& factor : factors) factor = static_cast<double>(random.below(9)) / 7;
                request.factors = factors;
                expect_neighbors(request);
                request.factors = {};
            }
        }
}

TEST_F(GputextdVectors, RefusesTextsThatAreWrong) {
    RandomTexts random;
    const TextRows rows(random.texts(TextShape::zipf, 20, 50), ElementType::int32, 50);
    const FiledVectors files(rows.vectors());
    TermKnnRequest good;
    good.queries = good.items = files.files();
    auto request = good;
    request.parameters.k = 0;
    EXPECT_EQ(answer<KnnAnswer>(request).status().message(), "k must be at least 1");
    request = good;
    std::vector<std::uint32_t> columns(rows.vectors().columns.begin(),
                                       rows.vectors().columns.end());
    columns[0] = 50;
    const FiledVectors beyond(
        {ElementType::int32, 20, 50, rows.vectors().elements, rows.vectors().row_begins, columns});
    request.items = beyond.files();
    EXPECT_EQ(answer<KnnAnswer>(request).status().code(), ErrorCode::invalid_argument);
    request = good;
    for (const double wrong : {-1.0, HUGE_VAL, std::nan("")}) {
        std::vector<double> factors(50, 1.0);
        factors[49] = wrong;
        request.factors = factors;
        EXPECT_EQ(answer<KnnAnswer>(request).status().message(),
                  "factors of terms must be finite and not negative");
    }
    request = good;
    request.terms.weighting = TermWeighting::bm25;
    request.terms.b = 1.5;  // which no session says: it ends the connection
    const auto other = connect_to(socket_);
    ASSERT_TRUE(other->submit(request).ok());
    EXPECT_FALSE(next<KnnAnswer>(*other).ok());
    request.terms.b = 1;
    request.parameters.metric = Metric::manhattan;
    EXPECT_EQ(answer<KnnAnswer>(request).status().message(),
              "the metric of texts must be cosine or inner_product");
    request = good;
    const std::vector<double> too_few(49, 1.0);
    request.factors = too_few;
    EXPECT_FALSE(answer<KnnAnswer>(request).status().ok());
    request = good;
    request.queries = beyond.files();
    EXPECT_EQ(answer<KnnAnswer>(request).status().code(), ErrorCode::invalid_argument);
    expect_neighbors(good);
    ASSERT_TRUE(connection_->inject_fault("in_job:out_of_memory:2").ok());
    ASSERT_TRUE(connection_->submit(good).ok());
    const auto reply = next<KnnAnswer>(*connection_);
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(reply->summary.report.retries, 2u);
}

/// As many elements as four devices are worth.
class GputextdDevices : public GputextdVectors, public ::testing::WithParamInterface<int> {
protected:
    GputextdDevices() : GputextdVectors(GetParam()) {
        request_.parameters.k = 20;
        request_.queries = query_files_.files();
        request_.items = item_files_.files();
        request_.keys = {questions_.rows(), numbers_};
    }

    KnnAnswer expect_report(unsigned devices, const TermKnnRequest& request) {
        EXPECT_TRUE(connection_->submit(request).ok());
        auto reply = next<KnnAnswer>(*connection_);
        EXPECT_TRUE(reply.ok()) << reply.status().message();
        if (!reply.ok()) return {};
        const std::string& names = reply->summary.report.device_name;
        EXPECT_EQ(std::count(names.begin(), names.end(), ',') + 1, devices) << names;
        const auto found = reply->read();
        EXPECT_TRUE(found.ok());
        if (found.ok()) expect_same(*found, expected_);
        return std::move(*reply);
    }

    static constexpr bench::TermShape kShape{120'000, 20'000, (std::size_t{4} << 20) + 1000};
    bench::TermCorpus corpus_{kShape, 2};
    bench::TermRows questions_ = bench::TermRows::spread(corpus_.vectors(), 100);
    std::vector<std::uint32_t> numbers_ = std::vector<std::uint32_t>(kShape.documents);
    FiledVectors query_files_{questions_.vectors()}, item_files_{corpus_.vectors()};
    TermKnnRequest request_;
    Neighbors expected_ = [&] {
        TermKnnRequest request;
        request.parameters.k = 20;
        request.queries.vectors = questions_.vectors();
        request.items.vectors = corpus_.vectors();
        std::iota(numbers_.begin(), numbers_.end(), 0u);
        request.keys = {questions_.rows(), numbers_};
        return computed_here(request);
    }();
};

INSTANTIATE_TEST_SUITE_P(Fake, GputextdDevices, ::testing::ValuesIn(numbers_of_devices({1, 2, 4})));

TEST_P(GputextdDevices, ShareOutTheItemsOfALargeSearch) {
    const auto devices = static_cast<unsigned>(GetParam());
    gather_devices(*connection_, devices);
    expect_report(devices, request_);
    gather_devices(*connection_, devices);
    ASSERT_TRUE(connection_->inject_fault("in_job:out_of_memory:2").ok());
    EXPECT_EQ(expect_report(devices, request_).summary.report.retries, 2u);
}

/// The statistics of BM25 are of all items, whoever searches them.
TEST_P(GputextdDevices, WeighByAllItemsWhatTheyShareOut) {
    const auto devices = static_cast<unsigned>(GetParam());
    request_.terms.weighting = TermWeighting::bm25;
    request_.parameters.metric = Metric::inner_product;
    expected_ = computed_here(request_);
    gather_devices(*connection_, devices);
    expect_report(devices, request_);
}

TEST_P(GputextdDevices, RunAJobThatNamesOneOnThatOne) {
    auto request = request_;
    request.limits.device = GetParam() - 1;
    const KnnAnswer answer = expect_report(1, request);
    EXPECT_EQ(answer.summary.report.device, request.limits.device);
    EXPECT_EQ(answer.summary.report.device_name,
              "fake device " + std::to_string(request.limits.device));
}

TEST_P(GputextdDevices, DoNotShareOutASmallSearch) {
    const FiledVectors few(questions_.vectors());
    auto request = request_;
    request.items = few.files();
    request.keys = {};
    ASSERT_TRUE(connection_->submit(request).ok());
    const auto reply = next<KnnAnswer>(*connection_);
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(reply->summary.report.device_name.find(','), std::string::npos);
    expect_same(*reply->read(), computed_here(request));
}

TEST_P(GputextdDevices, StandInForOneThatFails) {
    expect_others_to_stand_in(daemon_, *connection_, GetParam(), [&]() -> Result<JobReport> {
        EXPECT_TRUE(connection_->submit(request_).ok());
        const auto reply = next<KnnAnswer>(*connection_);
        if (!reply.ok()) return reply.status();
        expect_same(*reply->read(), expected_);
        return reply->summary.report;
    });
}

TEST_P(GputextdDevices, EndTogetherWhenAllAreCancelled) {
    auto request = request_;
    request.parameters.k = KnnParameters::all_items;
    for (const int after : {20, 100, 300}) {
        const auto cancelled = connect_to(socket_);
        ASSERT_TRUE(cancelled->submit(request).ok());
        std::this_thread::sleep_for(std::chrono::milliseconds(after));
    }
    expect_report(static_cast<unsigned>(GetParam()), [&] {
        gather_devices(*connection_, GetParam());
        return request_;
    }());
}

/// As many rows as two devices are worth, or more.
class GputextdSharedVectors : public GputextdVectors, public ::testing::WithParamInterface<int> {
protected:
    GputextdSharedVectors() : GputextdVectors(GetParam()) {}

    void expect_shared(const auto& request) {
        gather_devices(*connection_, std::min(GetParam(), 2));
        ASSERT_NO_FATAL_FAILURE(expect_answer(request));
    }
    void expect_answer(const KnnRequest& request) {
        const auto reply = reply_to<KnnAnswer>(request);
        Execution execution(2);
        const auto expected =
            keyed_knn(request.parameters, request.queries.vectors, request.items.vectors,
                      request.matches, request.keys, execution);
        ASSERT_TRUE(expected.ok());
        expect_same(*reply.read(), *expected);
    }
    void expect_answer(const OutlierFactorRequest& request) {
        const auto reply = reply_to<ScoresAnswer>(request);
        Execution execution(2);
        const auto expected =
            local_outlier_factors(request.parameters, request.items.vectors, execution);
        ASSERT_TRUE(expected.ok());
        expect_same(*reply.read(), *expected);
    }
    void expect_answer(const DbscanRequest& request) {
        const auto reply = reply_to<DbscanAnswer>(request);
        Execution execution(2);
        const auto expected = dbscan(request.parameters, request.items.vectors, execution);
        const auto found = reply.read();
        ASSERT_TRUE(expected.ok() && found.ok());
        EXPECT_EQ(found->count, expected->count);
        EXPECT_EQ(found->clusters, expected->clusters);
        EXPECT_EQ(found->core, expected->core);
    }

    void expect_answer(const HnswLinksRequest& request) {
        const auto reply = reply_to<HnswLinksAnswer>(request);
        Execution execution(2);
        const auto expected = link_layer(
            {request.parameters, {request.values.vectors, request.centroids}, request.linked},
            execution);
        const auto found = reply.read();
        ASSERT_TRUE(expected.ok() && found.ok());
        EXPECT_EQ(*found, *expected);
    }

private:
    template <class Answer>
    Answer reply_to(const auto& request) {
        EXPECT_TRUE(connection_->submit(request).ok());
        auto reply = next<Answer>(*connection_);
        EXPECT_TRUE(reply.ok()) << reply.status().message();
        const std::string& names = reply->summary.report.device_name;
        EXPECT_GE(std::count(names.begin(), names.end(), ',') + 1, std::min(GetParam(), 2))
            << names;
        return std::move(*reply);
    }
};

INSTANTIATE_TEST_SUITE_P(Fake, GputextdSharedVectors,
                         ::testing::ValuesIn(numbers_of_devices({1, 2, 3, 4})));

TEST_P(GputextdSharedVectors, AreSearchedByItems) {
    const std::size_t d = 64, n = 200'000;
    std::vector<float> elements(n * d);
    for (std::size_t i = 0; i < elements.size(); ++i)
        elements[i] = static_cast<float>(i * 7919 % 1009) / 1009;
    const Vectors items{ElementType::float32, n, d, elements.data(), {}, {}};
    Vectors queries = items;
    queries.rows = 5;
    const FiledVectors query_files(queries), item_files(items);
    std::vector<std::uint32_t> numbers(n);
    std::iota(numbers.begin(), numbers.end(), 0u);
    KnnRequest request;
    request.queries = query_files.files();
    request.items = item_files.files();
    request.parameters = {.k = 20, .metric = Metric::euclidean};
    request.keys = {std::span(numbers).first(5), numbers};
    expect_shared(request);
    request.keys = {};
    request.parameters = {.k = 50, .radius = 0.9};
    expect_shared(request);
}

TEST_P(GputextdSharedVectors, AreSearchedByQueries) {
    const TypedRows rows(random_.rows(Shape::gaussian, 20'000, 3), ElementType::float32, 3);
    const FiledVectors files(rows.vectors());
    OutlierFactorRequest request;
    request.items = files.files();
    for (const TieRule ties : {TieRule::sklearn, TieRule::breunig}) {
        request.parameters = {.k = 10, .ties = ties};
        expect_shared(request);
    }
}

TEST_P(GputextdSharedVectors, AreClustered) {
    const TypedRows rows(random_.rows(Shape::gaussian, 20'000, 3), ElementType::float32, 3);
    const FiledVectors files(rows.vectors());
    DbscanRequest request;
    request.items = files.files();
    for (const std::size_t min_points : {2, 8}) {
        request.parameters = {.epsilon = 0.1, .min_points = min_points};
        expect_shared(request);
    }
}

/// Without the last rows, which are copies of others in an index.
TEST_P(GputextdSharedVectors, AreLinked) {
    const TypedRows rows(random_.rows(Shape::gaussian, 17'000, 3), ElementType::float32, 3);
    const FiledVectors files(rows.vectors());
    HnswLinksRequest request;
    request.values = files.files();
    request.linked = 16'500;
    request.parameters = {.candidates = 12, .places = 6, .block_rows = 4096};
    expect_shared(request);
    // Most rows probe clusters.
    std::vector<float> centroids(3 * 200);
    for (float& x : centroids) x = static_cast<float>(random_.below(400)) / 100 - 2;
    request.centroids = {ElementType::float32, 200, 3, centroids.data(), {}, {}};
    request.parameters.exact_rows = 1000;
    request.parameters.probing_rows = 3000;
    expect_shared(request);
}

/// Few and many items a key, one key of all rows, and keys of one side alone.
TEST_P(GputextdSharedVectors, AreSearchedWithinKeys) {
    const std::size_t d = 16, n = 60'000;
    const TypedRows rows(random_.rows(Shape::gaussian, n, d), ElementType::float32, d);
    const FiledVectors files(rows.vectors());
    std::vector<std::uint32_t> query_keys(n), item_keys(n), numbers(n);
    std::iota(numbers.begin(), numbers.end(), 0u);
    KnnRequest request;
    request.queries = request.items = files.files();
    request.keys = {numbers, numbers};
    request.matches = {query_keys, item_keys};
    for (const std::size_t keys : {std::size_t{300}, n}) {
        for (std::size_t row = 0; row < n; ++row) {
            query_keys[row] = static_cast<std::uint32_t>(random_.below(keys));
            item_keys[row] = static_cast<std::uint32_t>(random_.below(keys));
        }
        for (std::size_t row = 0; row < n / 10; ++row) {
            query_keys[row] = 5;
            item_keys[row] = 5;
        }
        request.parameters = {.k = 1, .metric = Metric::euclidean};
        expect_shared(request);
        request.parameters = {.k = 3, .include_ties = true};
        expect_shared(request);
    }
}

TEST_P(GputextdSharedVectors, AreSearchedWithinKeysByOthersWhereOneFails) {
    const std::size_t d = 16, n = 40'000;
    const TypedRows rows(random_.rows(Shape::gaussian, n, d), ElementType::float32, d);
    const FiledVectors files(rows.vectors());
    std::vector<std::uint32_t> keys(n);
    for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(random_.below(30));
    KnnRequest request;
    request.queries = request.items = files.files();
    request.matches = {keys, keys};
    request.parameters = {.k = 2, .metric = Metric::euclidean};
    Execution execution(2);
    const auto expected = keyed_knn(request.parameters, rows.vectors(), rows.vectors(),
                                    request.matches, {}, execution);
    ASSERT_TRUE(expected.ok());
    expect_others_to_stand_in(daemon_, *connection_, GetParam(), [&]() -> Result<JobReport> {
        EXPECT_TRUE(connection_->submit(request).ok());
        const auto reply = next<KnnAnswer>(*connection_);
        if (!reply.ok()) return reply.status();
        expect_same(*reply->read(), *expected);
        return reply->summary.report;
    });
}

TEST_P(GputextdSharedVectors, EndTogetherWithinKeysWhenAllAreCancelled) {
    const std::size_t d = 64, n = 60'000;
    const TypedRows rows(random_.rows(Shape::gaussian, n, d), ElementType::float32, d);
    const FiledVectors files(rows.vectors());
    const std::vector<std::uint32_t> keys(n, 7);  // one group of all pairs
    KnnRequest request;
    request.queries = request.items = files.files();
    request.matches = {keys, keys};
    request.parameters = {.k = 100};
    for (const int after : {20, 100, 300}) {
        const auto cancelled = connect_to(socket_);
        ASSERT_TRUE(cancelled->submit(request).ok());
        std::this_thread::sleep_for(std::chrono::milliseconds(after));
    }
    // The next one does not wait for what nobody wants any more.
    const TypedRows few(random_.rows(Shape::gaussian, 5, d), ElementType::float32, d);
    const FiledVectors few_files(few.vectors());
    KnnRequest small;
    small.queries = small.items = few_files.files();
    expect_neighbors(small);
}

class GputextdTwoDevices : public GputextdVectors {
protected:
    GputextdTwoDevices() : GputextdVectors(2) {}
};

/// So many bytes that two devices have them sooner than one.
TEST_F(GputextdTwoDevices, ClusterByMeansTogether) {
    const std::size_t n = 500'000, d = 80;
    std::vector<float> elements(n * d);
    for (std::size_t i = 0; i < elements.size(); ++i)
        elements[i] = static_cast<float>(i * 7919 % 1009) / 1009;
    const Vectors items{ElementType::float32, n, d, elements.data(), {}, {}};
    const FiledVectors files(items);
    KMeansRequest request;
    request.items = files.files();
    request.parameters = {.k = 2, .iterations = 1};
    Execution execution(2);
    const auto expected = k_means(request.parameters, items, execution);
    const auto job = [&]() -> Result<JobReport> {
        EXPECT_TRUE(connection_->submit(request).ok());
        const auto reply = next<KMeansAnswer>(*connection_);
        if (!reply.ok()) return reply.status();
        expect_same(reply->read(), expected);
        return reply->summary.report;
    };
    gather_devices(*connection_, 2);
    const auto report = job();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->device_name, "fake device 0, fake device 1");
    expect_others_to_stand_in(daemon_, *connection_, 2, job);
}

/// So many pairs of an item and a centroid that two devices have them sooner than one. Each is free
/// for another job soon, whether it leads or follows.
TEST_F(GputextdTwoDevices, EndTogetherWhereAllMeansAreCancelled) {
    const std::size_t n = 300'000;
    const TypedRows rows(random_.rows(Shape::gaussian, n, 2), ElementType::float32, 2);
    const FiledVectors files(rows.vectors());
    KMeansRequest request;
    request.items = files.files();
    request.parameters = {.k = 2000, .iterations = 100};
    const TypedRows few(random_.rows(Shape::gaussian, 5, 3), ElementType::float32, 3);
    const FiledVectors few_files(few.vectors());
    KMeansRequest small;
    small.items = few_files.files();
    small.parameters = {.k = 2};
    // Seconds until both devices have done another job.
    const auto late = [&](int after) {
        auto cancelled = connect_to(socket_);
        gather_devices(*cancelled, 2);
        EXPECT_TRUE(cancelled->submit(request).ok());
        // One of them shows what it does, whether it leads or follows.
        EXPECT_TRUE(soon([&] {
            const auto jobs = running_jobs(*connection_);
            return jobs.size() == 1 && (jobs[0].phase == "choosing first centroids" ||
                                        jobs[0].phase == "assigning items");
        }));
        std::this_thread::sleep_for(std::chrono::milliseconds(after));
        EXPECT_EQ(running_jobs(*connection_).size(), 1u) << "it has ended before";
        const auto begin = std::chrono::steady_clock::now();
        cancelled.reset();
        std::vector<std::unique_ptr<DaemonConnection>> others;
        for (small.limits.device = 0; small.limits.device < 2; ++small.limits.device) {
            others.push_back(connect_to(socket_));
            EXPECT_TRUE(others.back()->submit(small).ok());
        }
        for (const auto& other : others) EXPECT_TRUE(next<KMeansAnswer>(*other).ok());
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    for (const int after : {0, 100, 1000}) {
        double least = late(after);
        for (int i = 1; i < 3 && least > 0.2; ++i) least = std::min(least, late(after));
        EXPECT_LT(least, kSanitized ? 4 : 0.2) << "seconds, after milliseconds: " << after;
    }
}

TEST_F(GputextdVectors, AnswersForNoRows) {
    for (const Kind kind : kKinds) {
        const TypedRows some(random_.rows(Shape::gaussian, 3, 4), kind.type, 4, kind.sparse);
        const TypedRows none({}, kind.type, 4, kind.sparse);
        const FiledVectors some_files(some.vectors()), none_files(none.vectors());
        KnnRequest request;
        request.queries = none_files.files();
        request.items = some_files.files();
        expect_neighbors(request);
        std::swap(request.queries, request.items);
        expect_neighbors(request);
        expect_scores(OutlierFactorRequest{{}, none_files.files()});
    }
}

TEST_F(GputextdVectors, KeepsToTheMemoryThatItIsGiven) {
    const TypedRows queries(random_.rows(Shape::clusters, 20, 32), ElementType::float32, 32);
    const TypedRows items(random_.rows(Shape::clusters, 5000, 32), ElementType::float32, 32);
    const FiledVectors query_files(queries.vectors()), item_files(items.vectors());
    KnnRequest request;
    request.queries = query_files.files();
    request.items = item_files.files();
    request.limits.device_memory_limit = 5000 * 32 * 4 / 4;
    expect_neighbors(request);
    ASSERT_TRUE(connection_->inject_fault("in_job:out_of_memory:2").ok());
    ASSERT_TRUE(connection_->submit(request).ok());
    const auto reply = next<KnnAnswer>(*connection_);
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(reply->summary.report.retries, 2u);
}

/// Neither tried again with less of the device's memory, nor kept from the next job.
TEST_F(GputextdVectors, KeepsAnswersToTheHostsMemoryThatItIsGiven) {
    const TypedRows rows(random_.rows(Shape::gaussian, 300, 8), ElementType::float32, 8);
    const FiledVectors files(rows.vectors());
    const auto expect_refused = [&](const auto& request) {
        ASSERT_TRUE(connection_->submit(request).ok());
        const auto reply = next<Failed>(*connection_);
        ASSERT_TRUE(reply.ok());
        EXPECT_EQ(reply->status.code(), ErrorCode::memory_limit) << reply->status.message();
    };
    KnnRequest request;
    request.queries = request.items = files.files();
    request.parameters = {.k = KnnParameters::all_items, .metric = Metric::euclidean};
    request.parameters.memory_limit = 300 * 300 * kBytesOfNeighbor - 1;
    expect_refused(request);
    request.parameters.memory_limit *= 2;
    expect_neighbors(request);
    OutlierFactorRequest outliers{{.k = 299}, files.files()};
    outliers.parameters.memory_limit = 300 * 300 * kBytesOfNeighbor;
    expect_refused(outliers);
    outliers.parameters.memory_limit *= 2;
    expect_scores(outliers);
    // Clusters take fewer rows at a time, and one at least.
    DbscanRequest clusters{{.epsilon = 100}, files.files()};
    clusters.parameters.memory_limit = 300 * kBytesOfNeighbor - 1;
    expect_refused(clusters);
    clusters.parameters.memory_limit *= 3;
    const auto found = answer<DbscanAnswer>(clusters);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->clusters, std::vector<std::uint32_t>(300, 0));
}

/// As part of the rows of a file have none.
TEST_F(GputextdVectors, AnswersForVectorsWithoutFiles) {
    for (const Kind kind : kKinds) {
        const TypedRows rows(random_.rows(Shape::grid, 50, 6), kind.type, 6, kind.sparse);
        const FiledVectors files(rows.vectors());
        KnnRequest request;
        request.queries = {rows.vectors(), -1, -1};
        request.items = files.files();
        expect_neighbors(request);
    }
}

TEST_F(GputextdVectors, AnswersForVectorsInParts) {
    for (const Kind kind : kKinds)
        for (const std::size_t parts : {std::size_t{2}, std::size_t{5}, kMostParts}) {
            const std::size_t rows = parts * page_size() / (30 * element_size(kind.type));
            const TypedRows queries(random_.rows(Shape::grid, rows, 30), kind.type, 30,
                                    kind.sparse);
            const TypedRows items(random_.rows(Shape::grid, rows, 30), kind.type, 30, kind.sparse);
            const FiledVectors whole_queries(queries.vectors()), whole_items(items.vectors());
            const PartedVectors query_parts(queries.vectors(), parts);
            const PartedVectors item_parts(items.vectors(), parts);
            EXPECT_GT(item_parts.parts(), parts / 2);
            KnnRequest request;
            request.parameters = {.k = 3, .metric = Metric::euclidean};
            request.queries = whole_queries.files();
            request.items = whole_items.files();
            const auto whole = answer<KnnAnswer>(request);
            ASSERT_TRUE(whole.ok()) << whole.status().message();
            request.items = item_parts.files();
            const auto some_parts = answer<KnnAnswer>(request);
            ASSERT_TRUE(some_parts.ok()) << some_parts.status().message();
            expect_same(*some_parts, *whole);
            request.queries = query_parts.files();
            const auto all_parts = answer<KnnAnswer>(request);
            ASSERT_TRUE(all_parts.ok()) << all_parts.status().message();
            expect_same(*all_parts, *whole);

            const auto factors_of = [&](const VectorFiles& files) {
                return answer<ScoresAnswer>(OutlierFactorRequest{{.k = 5}, files});
            };
            const auto factors = factors_of(whole_items.files());
            const auto factors_in_parts = factors_of(item_parts.files());
            ASSERT_TRUE(factors.ok()) << factors.status().message();
            ASSERT_TRUE(factors_in_parts.ok()) << factors_in_parts.status().message();
            expect_same(*factors_in_parts, *factors);
            if (kind.sparse) continue;  // k-means takes none
            const auto clusters_of = [&](const VectorFiles& files) {
                return answer<KMeansAnswer>(
                    KMeansRequest{{.k = 3, .metric = Metric::euclidean}, files});
            };
            const auto clusters = clusters_of(whole_items.files());
            const auto clusters_in_parts = clusters_of(item_parts.files());
            ASSERT_TRUE(clusters.ok()) << clusters.status().message();
            ASSERT_TRUE(clusters_in_parts.ok()) << clusters_in_parts.status().message();
            EXPECT_EQ(clusters_in_parts->clusters, clusters->clusters);
        }
}

TEST_F(GputextdVectors, RefusesPartsThatAreWrong) {
    const std::uint64_t part = page_size();
    const std::size_t rows = 4 * part / (16 * sizeof(float));
    const TypedRows vectors(random_.rows(Shape::gaussian, rows, 16), ElementType::float32, 16);
    const FiledVectors query(vectors.vectors());
    const PartedVectors items(vectors.vectors(), 4);
    const FileParts good = items.files().elements;
    KnnRequest request;
    request.queries = query.files();
    request.items = items.files();
    const auto refused = [&](std::vector<int> descriptors, std::uint64_t part_bytes) {
        request.items.elements = {descriptors, part_bytes};
        const Status submitted = connection_->submit(request);
        EXPECT_TRUE(submitted.ok()) << submitted.message();
        const auto reply = next<KnnAnswer>(*connection_);
        return reply.status().code() == ErrorCode::invalid_argument;
    };
    std::vector<int> parts(good.descriptors().begin(), good.descriptors().end());
    EXPECT_FALSE(refused(parts, part));
    // Parts of other sizes than the message says, as another program may send them.
    const std::vector<int> two{parts[0], parts[1]};
    EXPECT_TRUE(refused(two, 2 * part));
    PartedFile open;
    ASSERT_TRUE(open.create(4 * part, part).ok());
    std::vector<int> not_sealed = parts;
    not_sealed[2] = open.parts().descriptors()[2];
    EXPECT_TRUE(refused(not_sealed, part));
    std::vector<int> no_file = parts;
    no_file[3] = connection_->fd();
    EXPECT_TRUE(refused(no_file, part));
    // What the session itself finds.
    request.items.elements = {parts, part / 2};
    EXPECT_EQ(connection_->submit(request).code(), ErrorCode::invalid_argument);
    request.items.elements = {two, part};
    EXPECT_EQ(connection_->submit(request).code(), ErrorCode::invalid_argument);
    EXPECT_FALSE(refused(parts, part));
}

TEST_F(GputextdVectors, SaysThatDescriptorsWereLost) {
    const std::size_t rows = 20 * page_size() / (16 * sizeof(float));
    const TypedRows vectors(random_.rows(Shape::gaussian, rows, 16), ElementType::float32, 16);
    const FiledVectors whole(vectors.vectors());
    const PartedVectors parts(vectors.vectors(), 20);
    KnnRequest request;
    request.queries = request.items = whole.files();
    expect_neighbors(request);
    const std::size_t before = open_descriptors(daemon_.pid());
    rlimit limit{before + 10, before + 10};
    ASSERT_EQ(prlimit(daemon_.pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
    request.items = parts.files();
    ASSERT_TRUE(connection_->submit(request).ok());
    const auto reply = next<KnnAnswer>(*connection_);
    EXPECT_EQ(reply.status().code(), ErrorCode::invalid_argument);
    EXPECT_EQ(reply.status().message(),
              "gputextd received a message that is too large or has lost files");
    // None of those that arrived is kept, and the next session has its answer.
    connection_ = connect_to(socket_);
    request.items = whole.files();
    expect_neighbors(request);
    EXPECT_TRUE(soon([&] { return open_descriptors(daemon_.pid()) == before; }));
}

TEST_F(GputextdVectors, SaysWhatItRuns) {
    const TypedRows rows(random_.rows(Shape::gaussian, 10, 4), ElementType::float32, 4);
    const FiledVectors files(rows.vectors());
    const auto watcher = connect_to(socket_);
    ASSERT_TRUE(connection_->inject_fault("in_job:hold").ok());
    KnnRequest request;
    request.queries = request.items = files.files();
    ASSERT_TRUE(connection_->submit(request).ok());
    std::vector<RunningJob> jobs;
    ASSERT_TRUE(soon([&] { return !(jobs = running_jobs(*watcher)).empty(); }));
    lift_faults(*watcher);
    EXPECT_EQ(jobs[0].operation, "knn");
    EXPECT_EQ(jobs[0].rows, 20u);
    EXPECT_EQ(jobs[0].bytes, 2u * 10 * 4 * sizeof(float));
    EXPECT_TRUE(next<KnnAnswer>(*connection_).ok());
}

TEST_F(GputextdVectors, RefusesParametersAndFilesThatAreWrong) {
    const TypedRows dense(random_.rows(Shape::gaussian, 10, 4), ElementType::float32, 4);
    const TypedRows sparse(random_.rows(Shape::sparse, 10, 4), ElementType::float32, 4, true);
    const FiledVectors dense_files(dense.vectors()), sparse_files(sparse.vectors());
    KnnRequest good;
    good.queries = good.items = dense_files.files();
    const auto code_of = [&](const KnnRequest& request) {
        return answer<KnnAnswer>(request).status().code();
    };
    auto request = good;
    request.parameters.k = 0;
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    request = good;
    request.parameters.radius = std::nan("");
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    request = good;
    request.items = sparse_files.files();
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    request = good;
    request.items.vectors.rows = 11;  // more than the file holds
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    request = good;
    request.items.vectors.dimensions = 2;
    request.items.vectors.rows = 20;
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    const std::vector<std::uint32_t> keys(10);
    request = good;
    request.keys = {keys, std::span(keys).first(9)};
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);

    request = good;
    request.queries = request.items = sparse_files.files();
    EXPECT_EQ(code_of(request), ErrorCode::ok);
    std::vector<std::uint64_t> begins(sparse.vectors().row_begins.begin(),
                                      sparse.vectors().row_begins.end());
    std::swap(begins[3], begins[9]);
    begins[3] += begins[3] == begins[9];
    request.items.vectors.row_begins = begins;
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);
    std::tie(request.items.elements, request.items.columns) =
        std::make_tuple(request.items.columns, request.items.elements.descriptors()[0]);
    EXPECT_EQ(code_of(request), ErrorCode::invalid_argument);

    const float infinite[] = {1, 2, 3, INFINITY};
    const FiledVectors infinite_file({ElementType::float32, 1, 4, infinite, {}, {}});
    EXPECT_EQ(
        answer<ScoresAnswer>(OutlierFactorRequest{{}, infinite_file.files()}).status().message(),
        "item 0 has an element that is not a finite number");
    EXPECT_EQ(
        answer<ScoresAnswer>(OutlierFactorRequest{{.k = 0}, dense_files.files()}).status().code(),
        ErrorCode::invalid_argument);
    EXPECT_EQ(
        answer<ScoresAnswer>(CosineSimilarityRequest{dense_files.files(), dense_files.files()})
            .status()
            .code(),
        ErrorCode::invalid_argument);
    expect_neighbors(good);
}

TEST_F(GputextdVectors, BrokenRepliesAreErrorsOfTheirClients) {
    const TypedRows rows(random_.rows(Shape::gaussian, 10, 4), ElementType::float32, 4);
    const FiledVectors files(rows.vectors());
    KnnRequest neighbors;
    neighbors.queries = neighbors.items = files.files();
    const OutlierFactorRequest outliers{{}, files.files()};
    const DbscanRequest clusters{{.epsilon = 1}, files.files()};
    for (const char* fault : {"no_reply", "wrong_magic", "wrong_length", "wrong_counts",
                              "short_file", "unsealed_file", "no_file", "too_many_files"})
        for (const int kind : {0, 1, 2}) {
            connection_ = connect_to(socket_);
            ASSERT_TRUE(connection_->inject_fault(std::string("before_reply:") + fault).ok());
            const Status status = kind == 0   ? answer<KnnAnswer>(neighbors).status()
                                  : kind == 1 ? answer<ScoresAnswer>(outliers).status()
                                              : answer<DbscanAnswer>(clusters).status();
            EXPECT_EQ(status.code(), ErrorCode::unavailable) << fault;
        }
    for (const bool of_clusters : {false, true}) {
        connection_ = connect_to(socket_);
        ASSERT_TRUE(connection_->inject_fault("before_reply:wrong_answer").ok());
        const Status status = of_clusters ? answer<DbscanAnswer>(clusters).status()
                                          : answer<KnnAnswer>(neighbors).status();
        EXPECT_EQ(status.code(), ErrorCode::unavailable);
    }
    expect_neighbors(neighbors);
}

}  // namespace
}  // namespace gputext
