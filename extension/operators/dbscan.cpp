#include "extension/base/postgres.hpp"

#include "cpp/knn/dbscan.hpp"

#include <cmath>
#include <vector>

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
struct DbscanArguments {
    InnerQuery items;
    DbscanParameters parameters;
};

/// What a call needs until its last row; dies with the call's memory context.
class DbscanComputation final : public Computation {
public:
    DbscanComputation(const DbscanArguments& arguments, const IdType& id_type,
                      std::size_t memory_limit)
        : items("item", id_type, memory_limit), parameters_(arguments.parameters) {}

    VectorRows items;
    DbscanClusters answer;

    JobSize size() const override {
        const Vectors view = items.view();
        return {items.size(), items.bytes(), knn_cpu_seconds(view, view, cpu_threads()), 0,
                items.resident_bytes()};
    }
    Status compute(Execution& execution) override {
        return take_value(dbscan(parameters_, items.view(), execution), answer);
    }
    void prepare_for_device() override { items.share(); }
    Status submit(DaemonConnection& connection, Stop stop) override {
        return connection.submit(
            DbscanRequest{parameters_, items.files(), {gpu_memory_limit(), -1}}, stop);
    }
    Status take(const DaemonEvent& event, Stop stop) override {
        return take_value(std::get<DbscanAnswer>(event).read(stop), answer);
    }

private:
    DbscanParameters parameters_;
};

double distance_limit(const Arguments& given, const char* name) {
    const double limit = given.number(name);
    if (!(limit >= 0) || std::isinf(limit))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s must be a finite number of at least 0, not %g", name, limit)));
    return limit;
}

DbscanArguments read_arguments(const Arguments& given, const char* epsilon) {
    DbscanArguments arguments{};
    arguments.items.sql = given.text("items");
    arguments.items.id_type = id_type_argument(given);
    arguments.parameters.epsilon = distance_limit(given, epsilon);
    arguments.parameters.metric = distance_argument(given);
    arguments.parameters.memory_limit = host_memory_limit();
    arguments.parameters.answer_limit = host_memory_limit();
    return arguments;
}

void put_clusters(const DbscanComputation& work, SetCall& set) {
    for (std::size_t row = 0; row < work.items.size(); ++row) {
        if (row % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const std::uint32_t cluster = work.answer.clusters[row];
        Datum values[3] = {work.items.id(row), Int64GetDatum(cluster),
                           BoolGetDatum(work.answer.core[row] != 0)};
        bool nulls[3] = {false, cluster == DbscanClusters::kNoise, false};
        set.put(values, nulls);
    }
}

/// Of each cluster its first row, and how many it has.
struct ClusterRows {
    std::vector<std::size_t> firsts;
    std::vector<int64> sizes;
};

void put_groups(const DbscanComputation& work, SetCall& set) {
    const std::vector<std::uint32_t>& clusters = work.answer.clusters;
    auto* const rows = make_owned<ClusterRows>(set.context());
    attempt_or_raise([&] {
        rows->firsts.resize(work.answer.count);
        rows->sizes.resize(work.answer.count);
    });
    for (std::size_t row = 0; row < clusters.size(); ++row) {
        if (row % 1024 == 0) CHECK_FOR_INTERRUPTS();
        if (clusters[row] == DbscanClusters::kNoise) continue;
        if (rows->sizes[clusters[row]]++ == 0) rows->firsts[clusters[row]] = row;
    }
    bool nulls[3] = {};
    for (std::size_t row = 0; row < clusters.size(); ++row) {
        if (row % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const bool alone = clusters[row] == DbscanClusters::kNoise;
        Datum values[3] = {work.items.id(row),
                           work.items.id(alone ? row : rows->firsts[clusters[row]]),
                           Int64GetDatum(alone ? 1 : rows->sizes[clusters[row]])};
        set.put(values, nulls);
    }
}

Datum answer(FunctionCallInfo fcinfo, const char* operation, const DbscanArguments& arguments,
             void (*put)(const DbscanComputation&, SetCall&)) {
    SetCall set(fcinfo, operation);
    DbscanComputation* work = make_owned<DbscanComputation>(
        set.context(), arguments, id_type_of(arguments.items.id_type), host_memory_limit());
    run_vector_query(arguments.items, work->items);
    set.times().lap("reading rows");
    run_computation(*work, set.times(), set.context());
    work->items.release_vectors();
    put(*work, set);
    work->items.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_dbscan) {
    const Arguments given(fcinfo);
    DbscanArguments arguments = read_arguments(given, "epsilon");
    arguments.parameters.min_points = given.count("min_points");
    return answer(fcinfo, "dbscan", arguments, put_clusters);
}
SQL_ALIAS(gputext_dbscan_typed, gputext_dbscan);

// Groups are the clusters of rows that are all core: those with another one in their neighborhood.
SQL_FUNCTION(gputext_semantic_duplicate_groups) {
    DbscanArguments arguments = read_arguments(Arguments(fcinfo), "threshold");
    arguments.parameters.min_points = 2;
    return answer(fcinfo, "semantic_duplicate_groups", arguments, put_groups);
}
SQL_ALIAS(gputext_semantic_duplicate_groups_typed, gputext_semantic_duplicate_groups);
}
