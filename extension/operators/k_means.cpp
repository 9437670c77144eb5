#include "extension/base/postgres.hpp"

#include "cpp/knn/k_means.hpp"

#include <cstring>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/vector_arguments.hpp"
#include "extension/inputs/vector_query.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// What a call's arguments say.
struct KMeansArguments {
    InnerQuery items;
    KMeansParameters parameters;
};

/// What a call needs until its last row; dies with the call's memory context.
class KMeansComputation final : public Computation {
public:
    KMeansComputation(const KMeansArguments& arguments, const IdType& id_type,
                      std::size_t memory_limit)
        : items("item", id_type, memory_limit), parameters_(arguments.parameters) {}

    VectorRows items;
    KMeans answer;

    /// After the items have been read: raises an error when k does not suit them, and for the
    /// first one that can have no cluster.
    void check() const {
        attempt_or_raise([&] { return check_k_means(parameters_, items.view()); });
        const Vectors view = items.view();
        for (std::size_t row = 0; row < view.rows; ++row) {
            if (row % 1024 == 0) CHECK_FOR_INTERRUPTS();
            if (const char* why = why_no_cluster(parameters_.metric, view, row))
                ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                                errmsg("the vector of %s %s", items.name_of(items.id(row)), why)));
        }
    }

    JobSize size() const override {
        Vectors centroids = items.view();
        centroids.rows = parameters_.k;
        const double of_step = knn_cpu_seconds(items.view(), centroids, cpu_threads());
        return {items.size(), items.bytes(),
                of_step * static_cast<double>(1 + parameters_.iterations), 0,
                items.resident_bytes()};
    }
    Status compute(Execution& execution) override {
        return take_value(k_means(parameters_, items.view(), execution), answer);
    }
    void prepare_for_device() override { items.share(); }
    Status submit(DaemonConnection& connection, Stop stop) override {
        return connection.submit(
            KMeansRequest{parameters_, items.files(), {gpu_memory_limit(), -1}}, stop);
    }
    Status take(const DaemonEvent& event, Stop stop) override {
        return take_value(std::get<KMeansAnswer>(event).read(stop), answer);
    }

private:
    KMeansParameters parameters_;
};

Metric centroid_metric_argument(const Arguments& given) {
    const char* const name = given.text("metric");
    const std::optional<Metric> metric = metric_of(name);
    if (metric != Metric::euclidean && metric != Metric::cosine)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("metric must be 'euclidean' or 'cosine', not \"%s\"", name),
                        errdetail("A cluster's centroid is the mean of its items.")));
    return *metric;
}

KMeansArguments read_arguments(const Arguments& given) {
    KMeansArguments arguments{};
    arguments.items.sql = given.text("items");
    arguments.items.id_type = id_type_argument(given);
    arguments.parameters.k = given.count("k");
    arguments.parameters.metric = centroid_metric_argument(given);
    arguments.parameters.seed = static_cast<std::uint64_t>(given.big_integer("seed"));
    arguments.parameters.iterations = given.count("iterations");
    arguments.parameters.memory_limit = host_memory_limit();
    return arguments;
}

/// Clusters are numbered from 1 in SQL.
Datum cluster_datum(std::size_t cluster) {
    return Int32GetDatum(static_cast<int32>(cluster + 1));
}

void put_items(const KMeansComputation& work, SetCall& set) {
    bool nulls[3] = {};
    for (std::size_t row = 0; row < work.items.size(); ++row) {
        if (row % 1024 == 0) CHECK_FOR_INTERRUPTS();
        Datum values[3] = {work.items.id(row), cluster_datum(work.answer.clusters[row]),
                           Float8GetDatum(work.answer.distances[row])};
        set.put(values, nulls);
    }
}

void put_centroids(const KMeansComputation& work, SetCall& set) {
    const std::size_t dimensions = work.answer.dimensions;
    ArrayType* const centroid = new_real_array(dimensions);
    bool nulls[3] = {};
    for (std::size_t cluster = 0; cluster < work.answer.sizes.size(); ++cluster) {
        CHECK_FOR_INTERRUPTS();
        std::memcpy(ARR_DATA_PTR(centroid), work.answer.centroids.data() + cluster * dimensions,
                    dimensions * sizeof(float));
        Datum values[3] = {cluster_datum(cluster),
                           Int64GetDatum(static_cast<int64>(work.answer.sizes[cluster])),
                           PointerGetDatum(centroid)};
        set.put(values, nulls);
    }
}

Datum answer(FunctionCallInfo fcinfo, const char* operation,
             void (*put)(const KMeansComputation&, SetCall&)) {
    const KMeansArguments arguments = read_arguments(Arguments(fcinfo));
    SetCall set(fcinfo, operation);
    KMeansComputation* work = make_owned<KMeansComputation>(
        set.context(), arguments, id_type_of(arguments.items.id_type), host_memory_limit());
    run_vector_query(arguments.items, work->items);
    // No rows have no clusters.
    if (work->items.size() > 0) {
        work->check();
        set.times().lap("reading rows");
        run_computation(*work, set.times(), set.context());
        work->items.release_vectors();
        put(*work, set);
    }
    work->items.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_k_means) {
    return answer(fcinfo, "k_means", put_items);
}
SQL_ALIAS(gputext_k_means_typed, gputext_k_means);

SQL_FUNCTION(gputext_k_means_centroids) {
    return answer(fcinfo, "k_means_centroids", put_centroids);
}
SQL_ALIAS(gputext_k_means_centroids_typed, gputext_k_means_centroids);
}
